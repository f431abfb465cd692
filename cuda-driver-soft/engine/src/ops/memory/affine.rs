//! Handlers of loads and stores of converged warps at affine addresses.
//!
//! The lowest and the highest address decide for the whole warp: if both are in one known piece of memory, so are all
//! addresses between them. If not, the address of each lane is checked.

use super::host_lanes::{Arrangement, HostLanes};
use super::{Access, Addresses, Element, load_slow, put, store_slow};
use crate::code::handlers::{Body, Common, Copies, Handlers};
use crate::code::inst::{Flow, Inst};
use crate::code::machine::Machine;
use crate::code::registers::{Regs, Slot};
use crate::lanes::{FULL as FULL_MASK, LANES, Lanes, Mask};
use crate::memory::access;
use crate::semantics::affine::{self, Affine, Rows};
use crate::semantics::int::Int;
use ptx::ir::{RegClass, Space};
use std::marker::PhantomData;

/// A modifier above the bits of [`Access`]: the address is affine. Used by handlers that are not compiled separately
/// for the two cases.
const AFFINE: u32 = 1 << 17;
/// A modifier above the bits of [`Access`]: the lanes are in several rows of the block.
const GRID_ROWS: u32 = 1 << 18;

/// Packs the modifiers of an access whose address is affine; with `grid` the lanes are in several rows of the block.
pub(crate) fn mods(access: &Access, grid: bool) -> u32 {
    access.pack() | AFFINE | if grid { GRID_ROWS } else { 0 }
}

/// Returns true for the modifiers of an access whose address is affine.
#[inline(always)]
pub(super) fn is_affine(mods: u32) -> bool {
    mods & AFFINE != 0
}

/// Returns the handlers of a load of one number whose address is affine; with `grid` the lanes are in several rows of
/// the block.
pub(super) fn load(access: &Access, grid: bool) -> Option<Handlers> {
    if grid {
        handlers!(access, LoadAffine, true)
    } else {
        handlers!(access, LoadAffine, false)
    }
}

/// Returns the handlers of a store of one number whose address is affine; with `grid` the lanes are in several rows of
/// the block.
pub(super) fn store(access: &Access, grid: bool) -> Option<Handlers> {
    if grid {
        handlers!(access, StoreAffine, true)
    } else {
        handlers!(access, StoreAffine, false)
    }
}

/// Returns the handlers for accesses to one number in global or shared memory.
macro_rules! handlers {
    ($access:ident, $name:ident, $grid:literal) => {{
        let a = $access;
        let shared = a.space == Space::Shared;
        let global = matches!(a.space, Space::Global | Space::Const | Space::Generic);
        let plain = a.count == 1 && !a.strong && a.align == a.element;
        let known = plain && (shared || (global && a.wide_address));
        let key = (shared, a.wide_address, a.element, a.class);
        match key {
            _ if !known => None,
            (false, _, 4, RegClass::B32) => Some(Common::compile::<$name<u32, u64, false, $grid>>()),
            (false, _, 8, RegClass::B64) => Some(Common::compile::<$name<u64, u64, false, $grid>>()),
            (true, false, 4, RegClass::B32) => Some(Common::compile::<$name<u32, u32, true, $grid>>()),
            (true, false, 8, RegClass::B64) => Some(Common::compile::<$name<u64, u32, true, $grid>>()),
            (true, true, 4, RegClass::B32) => Some(Common::compile::<$name<u32, u64, true, $grid>>()),
            (true, true, 8, RegClass::B64) => Some(Common::compile::<$name<u64, u64, true, $grid>>()),
            _ => None,
        }
    }};
}
use handlers;

/// The affine addresses of the lanes, with signed steps.
#[derive(Clone, Copy)]
struct Steps {
    /// The address of the first lane.
    first: u64,
    /// The distance from one lane of a row to the next.
    step: i64,
    /// The distance from one row to the next.
    row: i64,
    rows: Rows,
}

impl Steps {
    /// Reads the addresses of an instruction.
    ///
    /// # Safety
    /// See [`Regs`]; `a` is affine.
    #[inline(always)]
    unsafe fn of<A: Int, const GRID: bool>(m: &Machine<'_>, regs: Regs<'_>, inst: &Inst) -> Self {
        // SAFETY: as promised by the caller.
        let a = unsafe { regs.affine::<GRID>(inst.a) };
        Steps {
            first: A::from_bits(a.base.wrapping_add(inst.imm)).bits(),
            step: affine::signed::<A>(a.step),
            row: affine::signed::<A>(a.row),
            rows: m.lane_rows::<GRID>(),
        }
    }

    /// Returns true if consecutive lanes access contiguous memory.
    #[inline(always)]
    fn is_row(&self, bytes: u64) -> bool {
        let next_row = i64::from(self.rows.lanes()) * bytes as i64;
        self.step == bytes as i64 && (self.rows.count() == 1 || self.row == next_row)
    }

    /// Returns true if all lanes have one address.
    #[inline(always)]
    fn is_same(&self) -> bool {
        self.step | self.row == 0
    }

    /// Returns the distance of the lowest address from the first, and of the highest from the lowest. Returns `None` if
    /// a step is so large that addresses might wrap around.
    #[inline(always)]
    fn extent(&self) -> Option<(i64, u64)> {
        const MOST: i64 = 1 << 30;
        let small = |step: i64| -MOST < step && step < MOST;
        if !small(self.step) || !small(self.row) {
            return None;
        }
        let along = self.step * i64::from(self.rows.lanes() - 1);
        let down = self.row * i64::from(self.rows.count() - 1);
        let lowest = along.min(0) + down.min(0);
        Some((lowest, along.unsigned_abs() + down.unsigned_abs()))
    }

    /// Returns the distance of a lane's address from the first.
    #[inline(always)]
    fn distance(&self, lane: u32) -> i64 {
        let (row, place) = self.rows.split(lane);
        self.row * i64::from(row) + self.step * i64::from(place)
    }

    /// Returns the address of each lane.
    #[inline(always)]
    fn each<A: Int>(&self) -> Lanes<u64> {
        let a = Affine {
            base: self.first,
            step: self.step as u64,
            row: self.row as u64,
        };
        let mut out = [0; LANES];
        for (i, address) in (0..).zip(&mut out) {
            *address = affine::lane::<A>(a, self.rows, i).bits();
        }
        out
    }
}

/// Returns the host address of `span` bytes at an address, if the cache covers them.
#[inline(always)]
fn range(m: &mut Machine<'_>, inst: &Inst, shared: bool, address: u64, span: u64) -> Option<*mut u8> {
    if shared {
        let (start, length, host) = m.spaces.shared(0);
        let offset = address.wrapping_sub(start);
        let fits = length >= span && offset <= length - span;
        fits.then(|| host.wrapping_add(offset as usize))
    } else {
        m.caches[inst.aux as usize].range(address, span, 1)
    }
}

/// Returns the host address of the first lane if the accesses of all lanes are aligned and in known memory. `bytes` is
/// the size of one access, a power of two.
#[inline(always)]
fn whole(m: &mut Machine<'_>, inst: &Inst, shared: bool, at: &Steps, bytes: u64) -> Option<*mut u8> {
    let aligned = (at.first | at.step as u64 | at.row as u64) & (bytes - 1) == 0;
    let (lowest, extent) = at.extent()?;
    let start = at.first.wrapping_add_signed(lowest);
    let host = range(m, inst, shared, start, extent + bytes).filter(|_| aligned)?;
    Some(host.wrapping_offset(-lowest as isize))
}

/// Returns the host address of the first lane if the lanes of each row of `L` are contiguous or at one address, the
/// rows ascend, and all accesses are aligned and in known memory.
#[inline(always)]
fn rows<E: Element, const L: i64>(m: &mut Machine<'_>, inst: &Inst, shared: bool, at: &Steps) -> Option<*mut u8> {
    let size = E::BYTES as i64;
    let usual = (at.step == size || at.step == 0) && (0..1 << 30).contains(&at.row);
    if !usual || (at.first | at.row as u64) & (E::BYTES - 1) != 0 {
        return None;
    }
    let extent = at.row * (32 / L - 1) + at.step * (L - 1) + size;
    range(m, inst, shared, at.first, extent as u64)
}

/// Returns the address of each lane, for handlers that are not compiled for the width of addresses and the rows of
/// lanes.
///
/// # Safety
/// See [`Regs`]; `a` is affine.
pub(super) unsafe fn addresses(m: &Machine<'_>, regs: Regs<'_>, inst: &Inst) -> Lanes<u64> {
    // SAFETY: as promised by the caller.
    let at = unsafe { steps(m, regs, inst) };
    if Access::unpack(inst.mods).wide_address {
        at.each::<u64>()
    } else {
        at.each::<u32>()
    }
}

/// Reads the addresses of an instruction as its modifiers describe them.
///
/// # Safety
/// See [`Regs`]; `a` is affine.
#[inline(always)]
unsafe fn steps(m: &Machine<'_>, regs: Regs<'_>, inst: &Inst) -> Steps {
    // SAFETY: as promised by the caller.
    unsafe {
        match (Access::unpack(inst.mods).wide_address, inst.mods & GRID_ROWS != 0) {
            (false, false) => Steps::of::<u32, false>(m, regs, inst),
            (false, true) => Steps::of::<u32, true>(m, regs, inst),
            (true, false) => Steps::of::<u64, false>(m, regs, inst),
            (true, true) => Steps::of::<u64, true>(m, regs, inst),
        }
    }
}

/// Returns the host addresses of the lanes if the accesses of all lanes are aligned and in known memory. `bytes` is the
/// size of one access. Distances may be written to `deltas`.
///
/// # Safety
/// See [`Regs`]; `a` is affine.
#[inline(never)]
pub(super) unsafe fn find<'c>(
    m: &mut Machine<'_>,
    regs: Regs<'_>,
    inst: &Inst,
    bytes: u64,
    deltas: &'c mut Lanes<u32>,
) -> Option<HostLanes<'c>> {
    // SAFETY: as promised by the caller.
    let at = unsafe { steps(m, regs, inst) };
    let shared = Access::unpack(inst.mods).space == Space::Shared;
    let host = whole(m, inst, shared, &at, bytes)?;
    let (lowest, extent) = at.extent()?;
    let arrangement = if at.is_row(bytes) {
        Arrangement::Row
    } else if at.is_same() {
        Arrangement::Same
    } else if at.step == bytes as i64 && u64::from(at.rows.lanes()) * bytes >= 16 {
        Arrangement::Rows(at.row as isize)
    } else if extent > u64::from(u32::MAX) {
        return None;
    } else {
        for (i, delta) in (0..).zip(deltas.iter_mut()) {
            *delta = (at.distance(i) - lowest) as u32;
        }
        Arrangement::Any
    };
    let host = match arrangement {
        Arrangement::Any => host.wrapping_offset(lowest as isize),
        _ => host,
    };
    Some(HostLanes {
        host,
        arrangement,
        lanes: at.rows.lanes() as usize,
        deltas,
    })
}

/// A load of one number of type `E` with addresses of type `A`.
struct LoadAffine<E, A, const SHARED: bool, const GRID: bool>(PhantomData<(E, A)>);

impl<E: Element, A: Addresses + Int, const SHARED: bool, const GRID: bool> Body for LoadAffine<E, A, SHARED, GRID> {
    #[inline(always)]
    unsafe fn run<const FULL: bool, const WIDE: bool>(
        m: &mut Machine<'_>,
        regs: Regs<'_>,
        inst: &Inst,
        mask: Mask,
    ) -> Flow {
        // SAFETY: the slot is of this frame and affine, as promised by the caller.
        let at = unsafe { Steps::of::<A, GRID>(m, regs, inst) };
        let aligned = at.first & (E::BYTES - 1) == 0;
        if mask == FULL_MASK && aligned {
            if at.is_row(E::BYTES) {
                if let Some(host) = range(m, inst, SHARED, at.first, 32 * E::BYTES) {
                    // SAFETY: the row is contiguous, and all of it valid; the destination is of this frame and class.
                    unsafe {
                        let row = regs.row_ptr::<E>(inst.d).cast();
                        access::copy_row::<WIDE>(row, host, 32 * E::BYTES as usize);
                    }
                    return Flow::Next;
                }
            } else if at.is_same() {
                if let Some(host) = range(m, inst, SHARED, at.first, E::BYTES) {
                    // SAFETY: all lanes have this valid address; the destination is of this frame and class.
                    unsafe { put::<E, true>(regs, inst.d, [E::load(host); LANES], mask) };
                    return Flow::Next;
                }
            } else if GRID
                && at.rows.lanes() == 16
                && let Some(host) = rows::<E, 16>(m, inst, SHARED, &at)
            {
                // SAFETY: the addresses of all lanes are valid and aligned; the destination is of this frame and class.
                unsafe { load_rows::<E, 16, WIDE>(host, &at, regs, inst.d) };
                return Flow::Next;
            } else if GRID
                && at.rows.lanes() == 8
                && let Some(host) = rows::<E, 8>(m, inst, SHARED, &at)
            {
                // SAFETY: as above.
                unsafe { load_rows::<E, 8, WIDE>(host, &at, regs, inst.d) };
                return Flow::Next;
            }
        }
        // SAFETY: as promised by the caller.
        unsafe { load_other::<E, A>(m, regs, inst, at, SHARED, mask) }
    }
}

/// Loads rows that [`rows`] found: `L` lanes each, contiguous or at one address. Stores to the register are as wide as
/// the loads that read it later, because the CPU cannot forward several narrow stores to one wide load.
///
/// # Safety
/// See [`Regs`]; the addresses of all lanes, from `host` on, must be valid for reads, and aligned. With `WIDE` the CPU
/// must have AVX.
#[inline(always)]
unsafe fn load_rows<E: Element, const L: usize, const WIDE: bool>(host: *mut u8, at: &Steps, regs: Regs<'_>, d: Slot) {
    let size = E::BYTES as usize;
    // SAFETY: all rows together are the register, as promised by the caller.
    let to = unsafe { regs.row_ptr::<E>(d) }.cast::<[E; L]>();
    for row in 0..LANES / L {
        let from = host.wrapping_offset(at.row as isize * row as isize);
        let to = to.wrapping_add(row);
        if at.step == 0 {
            // SAFETY: all lanes of the row have this valid address.
            unsafe { to.write([E::load(from); L]) };
        } else {
            // SAFETY: the row is contiguous and valid.
            unsafe { access::copy_row::<WIDE>(to.cast(), from, L * size) };
        }
    }
}

/// Loads from addresses with any steps.
///
/// # Safety
/// See [`Regs`]; the addresses of all lanes, from `host` on, must be valid for reads, and aligned.
#[inline(never)]
unsafe fn load_each<E: Element>(host: *mut u8, at: &Steps, regs: Regs<'_>, d: Slot) {
    let mut values = [E::default(); LANES];
    for (i, value) in (0..).zip(&mut values) {
        // SAFETY: the address of this lane is valid, as promised by the caller.
        *value = unsafe { E::load(host.wrapping_offset(at.distance(i) as isize)) };
    }
    // SAFETY: the caller promises the destination.
    unsafe { E::write(regs, d, values) };
}

/// Loads from addresses with any steps if the memory is known, and else checks each lane.
///
/// # Safety
/// See [`Regs`].
#[inline(never)]
unsafe fn load_other<E: Element, A: Int>(
    m: &mut Machine<'_>,
    regs: Regs<'_>,
    inst: &Inst,
    at: Steps,
    shared: bool,
    mask: Mask,
) -> Flow {
    if mask == FULL_MASK
        && let Some(host) = whole(m, inst, shared, &at, E::BYTES)
    {
        // SAFETY: the addresses of all lanes are valid and aligned; the destination is of this frame and class.
        unsafe { load_each::<E>(host, &at, regs, inst.d) };
        return Flow::Next;
    }
    // SAFETY: as promised by the caller.
    unsafe { load_slow(m, regs, inst, &at.each::<A>(), mask) }
}

/// A store of one number of type `E` with addresses of type `A`.
struct StoreAffine<E, A, const SHARED: bool, const GRID: bool>(PhantomData<(E, A)>);

impl<E: Element, A: Addresses + Int, const SHARED: bool, const GRID: bool> Body for StoreAffine<E, A, SHARED, GRID> {
    #[inline(always)]
    unsafe fn run<const FULL: bool, const WIDE: bool>(
        m: &mut Machine<'_>,
        regs: Regs<'_>,
        inst: &Inst,
        mask: Mask,
    ) -> Flow {
        // SAFETY: the slot is of this frame and affine, as promised by the caller.
        let at = unsafe { Steps::of::<A, GRID>(m, regs, inst) };
        // Memory in the cache of a store is valid for writes: an earlier store was allowed to write it.
        if mask == FULL_MASK && at.first & (E::BYTES - 1) == 0 {
            if at.is_row(E::BYTES) {
                if let Some(host) = range(m, inst, SHARED, at.first, 32 * E::BYTES) {
                    // SAFETY: the row is contiguous, and all of it valid for writes; the source is of this frame and
                    // class.
                    unsafe {
                        let row = regs.row_ptr::<E>(inst.b).cast();
                        access::copy_row::<WIDE>(host, row, 32 * E::BYTES as usize);
                    }
                    return Flow::Next;
                }
            } else if GRID
                && at.step != 0
                && at.rows.lanes() == 16
                && let Some(host) = rows::<E, 16>(m, inst, SHARED, &at)
            {
                // SAFETY: the addresses of all lanes are valid for writes, and aligned; the source is of this frame and
                // class.
                unsafe { store_rows::<E, 16, WIDE>(host, &at, regs, inst.b) };
                return Flow::Next;
            } else if GRID
                && at.step != 0
                && at.rows.lanes() == 8
                && let Some(host) = rows::<E, 8>(m, inst, SHARED, &at)
            {
                // SAFETY: as above.
                unsafe { store_rows::<E, 8, WIDE>(host, &at, regs, inst.b) };
                return Flow::Next;
            }
        }
        // SAFETY: as promised by the caller.
        unsafe { store_other::<E, A>(m, regs, inst, at, SHARED, mask) }
    }
}

/// Stores to contiguous rows of `L` lanes that [`rows`] found.
///
/// # Safety
/// See [`Regs`]; the addresses of all lanes, from `host` on, must be valid for writes, and aligned. With `WIDE` the CPU
/// must have AVX.
#[inline(always)]
unsafe fn store_rows<E: Element, const L: usize, const WIDE: bool>(host: *mut u8, at: &Steps, regs: Regs<'_>, b: Slot) {
    let size = E::BYTES as usize;
    // SAFETY: all rows together are the register, as promised by the caller.
    let from = unsafe { regs.row_ptr::<E>(b) }.cast::<[E; L]>();
    // Rows are stored in order: if several lanes store to one address, the highest lane wins.
    for row in 0..LANES / L {
        let to = host.wrapping_offset(at.row as isize * row as isize);
        // SAFETY: the row is contiguous and valid, as promised by the caller.
        unsafe { access::copy_row::<WIDE>(to, from.wrapping_add(row).cast(), L * size) };
    }
}

/// Stores to addresses with any steps.
///
/// # Safety
/// See [`Regs`]; the addresses of all lanes, from `host` on, must be valid for writes, and aligned.
#[inline(never)]
unsafe fn store_each<E: Element>(host: *mut u8, at: &Steps, regs: Regs<'_>, b: Slot) {
    // SAFETY: the caller promises the source.
    let values = unsafe { E::read(regs, b) };
    // Lanes are stored in order: if several lanes store to one address, the highest lane wins.
    for (i, value) in (0..).zip(values) {
        // SAFETY: the address of this lane is valid, as promised by the caller.
        unsafe { E::store(host.wrapping_offset(at.distance(i) as isize), value) };
    }
}

/// Stores to addresses with any steps if the memory is known, and else checks each lane.
///
/// # Safety
/// See [`Regs`].
#[inline(never)]
unsafe fn store_other<E: Element, A: Int>(
    m: &mut Machine<'_>,
    regs: Regs<'_>,
    inst: &Inst,
    at: Steps,
    shared: bool,
    mask: Mask,
) -> Flow {
    if mask == FULL_MASK
        && let Some(host) = whole(m, inst, shared, &at, E::BYTES)
    {
        // SAFETY: the addresses of all lanes are valid for writes, and aligned; the source is of this frame and class.
        unsafe { store_each::<E>(host, &at, regs, inst.b) };
        return Flow::Next;
    }
    // SAFETY: as promised by the caller.
    unsafe { store_slow(m, regs, inst, &at.each::<A>(), mask) }
}
