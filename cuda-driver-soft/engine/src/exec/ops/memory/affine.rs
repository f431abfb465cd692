//! Loads and stores of converged warps, at addresses that are affine.
//!
//! Whether a whole warp may do an access is seen from the corners of the addresses: what is between them is in the same
//! piece of memory. Only where they are not in one that is known, each lane's address is looked at.

use super::parts::{self, Found, Lie};
use super::{Access, Addresses, Element, load_slow, put, store_slow};
use crate::exec::code::{Flow, Inst};
use crate::exec::isa::{Body, Common, Handlers, Worth};
use crate::exec::machine::Machine;
use crate::exec::registers::{Regs, Slot};
use crate::exec::semantics::affine::{self, Affine, Rows};
use crate::exec::semantics::int::Int;
use crate::lanes::{FULL as FULL_MASK, LANES, Lanes, Mask};
use crate::memory::access;
use ptx::ir::{RegClass, Space};
use std::marker::PhantomData;

/// Modifiers above those of [`Access`], for handlers that do not know it otherwise: the address is affine; the lanes are
/// in several rows.
const AFFINE: u32 = 1 << 17;
const GRID_ROWS: u32 = 1 << 18;

/// Modifiers of an access whose address is affine.
pub(crate) fn mods(access: &Access, grid: bool) -> u32 {
    access.pack() | AFFINE | if grid { GRID_ROWS } else { 0 }
}

/// Whether the modifiers are of an access whose address is affine.
#[inline(always)]
pub(super) fn is_affine(mods: u32) -> bool {
    mods & AFFINE != 0
}

/// Handlers of a load whose address is affine; `grid`: the lanes are in several rows.
pub(crate) fn load(access: &Access, grid: bool) -> Option<Handlers> {
    let one = if grid {
        handlers!(access, LoadAffine, true)
    } else {
        handlers!(access, LoadAffine, false)
    };
    one.or_else(|| parts::load(access))
}

/// Handlers of a store whose address is affine.
pub(crate) fn store(access: &Access, grid: bool) -> Option<Handlers> {
    if access.space == Space::Const {
        return None;
    }
    let one = if grid {
        handlers!(access, StoreAffine, true)
    } else {
        handlers!(access, StoreAffine, false)
    };
    one.or_else(|| parts::store(access))
}

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
            (false, _, 4, RegClass::B32) => {
                Some(Common::compile::<$name<u32, u64, false, $grid>>())
            }
            (false, _, 8, RegClass::B64) => {
                Some(Common::compile::<$name<u64, u64, false, $grid>>())
            }
            (true, false, 4, RegClass::B32) => {
                Some(Common::compile::<$name<u32, u32, true, $grid>>())
            }
            (true, false, 8, RegClass::B64) => {
                Some(Common::compile::<$name<u64, u32, true, $grid>>())
            }
            (true, true, 4, RegClass::B32) => {
                Some(Common::compile::<$name<u32, u64, true, $grid>>())
            }
            (true, true, 8, RegClass::B64) => {
                Some(Common::compile::<$name<u64, u64, true, $grid>>())
            }
            _ => None,
        }
    }};
}
use handlers;

/// The addresses of the lanes, with steps that have a sign.
#[derive(Clone, Copy)]
struct Steps {
    /// That of the first lane.
    first: u64,
    step: i64,
    row: i64,
    rows: Rows,
}

impl Steps {
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

    /// Lane after lane without gaps.
    #[inline(always)]
    fn is_row(&self, bytes: u64) -> bool {
        let next_row = i64::from(self.rows.lanes()) * bytes as i64;
        self.step == bytes as i64 && (self.rows.count() == 1 || self.row == next_row)
    }

    #[inline(always)]
    fn is_same(&self) -> bool {
        self.step | self.row == 0
    }

    /// How far the lowest of the addresses is from the first, and the highest from the lowest. `None` if a step is so large
    /// that lanes might wrap around.
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

    /// How far a lane is from the first.
    #[inline(always)]
    fn distance(&self, lane: u32) -> i64 {
        let (row, place) = self.rows.split(lane);
        self.row * i64::from(row) + self.step * i64::from(place)
    }

    /// The addresses one by one.
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

/// Where `span` bytes from an address on are, if they are known to be there.
#[inline(always)]
fn range(
    m: &mut Machine<'_>,
    inst: &Inst,
    shared: bool,
    address: u64,
    span: u64,
) -> Option<*mut u8> {
    if shared {
        let (start, length, host) = m.spaces.shared(0);
        let offset = address.wrapping_sub(start);
        let fits = length >= span && offset <= length - span;
        fits.then(|| host.wrapping_add(offset as usize))
    } else {
        m.caches[inst.aux as usize].range(address, span, 1)
    }
}

/// Where the first lane is, if accesses of so many bytes, a power of two, are known to be possible for all lanes.
#[inline(always)]
fn whole(
    m: &mut Machine<'_>,
    inst: &Inst,
    shared: bool,
    at: &Steps,
    bytes: u64,
) -> Option<*mut u8> {
    let aligned = (at.first | at.step as u64 | at.row as u64) & (bytes - 1) == 0;
    let (lowest, extent) = at.extent()?;
    let start = at.first.wrapping_add_signed(lowest);
    let host = range(m, inst, shared, start, extent + bytes).filter(|_| aligned)?;
    Some(host.wrapping_offset(-lowest as isize))
}

/// Where the first lane is, if the lanes of each row of `L` are without gaps or at one place, the rows go up, and all are known
/// to be there.
#[inline(always)]
fn rows<E: Element, const L: i64>(
    m: &mut Machine<'_>,
    inst: &Inst,
    shared: bool,
    at: &Steps,
) -> Option<*mut u8> {
    let size = E::BYTES as i64;
    let usual = (at.step == size || at.step == 0) && (0..1 << 30).contains(&at.row);
    if !usual || (at.first | at.row as u64) & (E::BYTES - 1) != 0 {
        return None;
    }
    let extent = at.row * (32 / L - 1) + at.step * (L - 1) + size;
    range(m, inst, shared, at.first, extent as u64)
}

/// The addresses of the lanes one by one, for handlers that learn from the modifiers how they are kept.
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

/// # Safety
/// See [`Regs`]; `a` is affine.
#[inline(always)]
unsafe fn steps(m: &Machine<'_>, regs: Regs<'_>, inst: &Inst) -> Steps {
    // SAFETY: as promised by the caller.
    unsafe {
        match (
            Access::unpack(inst.mods).wide_address,
            inst.mods & GRID_ROWS != 0,
        ) {
            (false, false) => Steps::of::<u32, false>(m, regs, inst),
            (false, true) => Steps::of::<u32, true>(m, regs, inst),
            (true, false) => Steps::of::<u64, false>(m, regs, inst),
            (true, true) => Steps::of::<u64, true>(m, regs, inst),
        }
    }
}

/// Where the lanes are, if accesses of so many bytes are known to be possible for all.
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
) -> Option<Found<'c>> {
    // SAFETY: as promised by the caller.
    let at = unsafe { steps(m, regs, inst) };
    let shared = Access::unpack(inst.mods).space == Space::Shared;
    let host = whole(m, inst, shared, &at, bytes)?;
    let (lowest, extent) = at.extent()?;
    let lie = if at.is_row(bytes) {
        Lie::Row
    } else if at.is_same() {
        Lie::Same
    } else if at.step == bytes as i64 && u64::from(at.rows.lanes()) * bytes >= 16 {
        Lie::Rows(at.row as isize)
    } else if extent > u64::from(u32::MAX) {
        return None;
    } else {
        for (i, delta) in (0..).zip(deltas.iter_mut()) {
            *delta = (at.distance(i) - lowest) as u32;
        }
        Lie::Any
    };
    let host = match lie {
        Lie::Any => host.wrapping_offset(lowest as isize),
        _ => host,
    };
    Some(Found {
        host,
        lie,
        lanes: at.rows.lanes() as usize,
        deltas,
    })
}

struct LoadAffine<E, A, const SHARED: bool, const GRID: bool>(PhantomData<(E, A)>);

impl<E: Element, A: Addresses + Int, const SHARED: bool, const GRID: bool> Body
    for LoadAffine<E, A, SHARED, GRID>
{
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
                    // SAFETY: a row without gaps, all of it valid; the destination is of this frame and class.
                    unsafe {
                        let row = regs.row_ptr::<E>(inst.d).cast();
                        access::copy_row::<WIDE>(row, host, 32 * E::BYTES as usize);
                    }
                    return Flow::Next;
                }
            } else if at.is_same() {
                if let Some(host) = range(m, inst, SHARED, at.first, E::BYTES) {
                    // SAFETY: one valid place for all; the destination is of this frame and class.
                    unsafe { put::<E, true>(regs, inst.d, [E::load(host); LANES], mask) };
                    return Flow::Next;
                }
            } else if GRID
                && at.rows.lanes() == 16
                && let Some(host) = rows::<E, 16>(m, inst, SHARED, &at)
            {
                // SAFETY: the places of all lanes are valid and aligned; the destination is of this frame and class.
                unsafe { load_rows::<E, 16, WIDE>(host, &at, regs, inst.d) };
                return Flow::Next;
            } else if GRID
                && at.rows.lanes() == 8
                && let Some(host) = rows::<E, 8>(m, inst, SHARED, &at)
            {
                // SAFETY: the same.
                unsafe { load_rows::<E, 8, WIDE>(host, &at, regs, inst.d) };
                return Flow::Next;
            }
        }
        // SAFETY: as promised by the caller.
        unsafe { load_other::<E, A>(m, regs, inst, at, SHARED, mask) }
    }
}

/// Loads what [`rows`] found: rows of `L` lanes without gaps, or at one place each. A register is written as it is read, by
/// as many lanes at once as the CPU can: else who reads it has to wait.
///
/// # Safety
/// See [`Regs`]; from `host` on, the place of each lane is valid for reads, and aligned. With `WIDE` the CPU has AVX.
#[inline(always)]
unsafe fn load_rows<E: Element, const L: usize, const WIDE: bool>(
    host: *mut u8,
    at: &Steps,
    regs: Regs<'_>,
    d: Slot,
) {
    let size = E::BYTES as usize;
    // SAFETY: the rows together are the register, as promised by the caller.
    let to = unsafe { regs.row_ptr::<E>(d) }.cast::<[E; L]>();
    for row in 0..LANES / L {
        let from = host.wrapping_offset(at.row as isize * row as isize);
        let to = to.wrapping_add(row);
        if at.step == 0 {
            // SAFETY: one place for the whole row.
            unsafe { to.write([E::load(from); L]) };
        } else {
            // SAFETY: a row without gaps.
            unsafe { access::copy_row::<WIDE>(to.cast(), from, L * size) };
        }
    }
}

/// Loads what is at any steps.
///
/// # Safety
/// See [`Regs`]; from `host` on, the place of each lane is valid for reads, and aligned.
#[inline(never)]
unsafe fn load_each<E: Element>(host: *mut u8, at: &Steps, regs: Regs<'_>, d: Slot) {
    let mut values = [E::default(); LANES];
    for (i, value) in (0..).zip(&mut values) {
        // SAFETY: the place of this lane is valid, as promised by the caller.
        *value = unsafe { E::load(host.wrapping_offset(at.distance(i) as isize)) };
    }
    // SAFETY: the destination as promised by the caller.
    unsafe { E::write(regs, d, values) };
}

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
        // SAFETY: the places of all lanes are valid and aligned; the destination is of this frame and class.
        unsafe { load_each::<E>(host, &at, regs, inst.d) };
        return Flow::Next;
    }
    // SAFETY: as promised by the caller.
    unsafe { load_slow(m, regs, inst, &at.each::<A>(), mask) }
}

struct StoreAffine<E, A, const SHARED: bool, const GRID: bool>(PhantomData<(E, A)>);

impl<E: Element, A: Addresses + Int, const SHARED: bool, const GRID: bool> Body
    for StoreAffine<E, A, SHARED, GRID>
{
    #[inline(always)]
    unsafe fn run<const FULL: bool, const WIDE: bool>(
        m: &mut Machine<'_>,
        regs: Regs<'_>,
        inst: &Inst,
        mask: Mask,
    ) -> Flow {
        // SAFETY: the slot is of this frame and affine, as promised by the caller.
        let at = unsafe { Steps::of::<A, GRID>(m, regs, inst) };
        // What the cache remembers is valid for writes, since only a store that was allowed made it do so.
        if mask == FULL_MASK && at.first & (E::BYTES - 1) == 0 {
            if at.is_row(E::BYTES) {
                if let Some(host) = range(m, inst, SHARED, at.first, 32 * E::BYTES) {
                    // SAFETY: a row without gaps, all of it valid for writes; the source is of this frame and class.
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
                // SAFETY: the places of all lanes are valid for writes, and aligned; the source is of this frame and
                // class.
                unsafe { store_rows::<E, 16, WIDE>(host, &at, regs, inst.b) };
                return Flow::Next;
            } else if GRID
                && at.step != 0
                && at.rows.lanes() == 8
                && let Some(host) = rows::<E, 8>(m, inst, SHARED, &at)
            {
                // SAFETY: the same.
                unsafe { store_rows::<E, 8, WIDE>(host, &at, regs, inst.b) };
                return Flow::Next;
            }
        }
        // SAFETY: as promised by the caller.
        unsafe { store_other::<E, A>(m, regs, inst, at, SHARED, mask) }
    }
}

/// Stores to what [`rows`] found: rows of `L` lanes without gaps.
///
/// # Safety
/// See [`Regs`]; from `host` on, the place of each lane is valid for writes, and aligned. With `WIDE` the CPU has AVX.
#[inline(always)]
unsafe fn store_rows<E: Element, const L: usize, const WIDE: bool>(
    host: *mut u8,
    at: &Steps,
    regs: Regs<'_>,
    b: Slot,
) {
    let size = E::BYTES as usize;
    // SAFETY: the rows together are the register, as promised by the caller.
    let from = unsafe { regs.row_ptr::<E>(b) }.cast::<[E; L]>();
    // In the order of the lanes: of those that store to one place the last wins.
    for row in 0..LANES / L {
        let to = host.wrapping_offset(at.row as isize * row as isize);
        // SAFETY: a row without gaps, all of it valid, as promised by the caller.
        unsafe { access::copy_row::<WIDE>(to, from.wrapping_add(row).cast(), L * size) };
    }
}

/// Stores at any steps.
///
/// # Safety
/// See [`Regs`]; from `host` on, the place of each lane is valid for writes, and aligned.
#[inline(never)]
unsafe fn store_each<E: Element>(host: *mut u8, at: &Steps, regs: Regs<'_>, b: Slot) {
    // SAFETY: the source as promised by the caller.
    let values = unsafe { E::read(regs, b) };
    // Of lanes that store to one place the last wins.
    for (i, value) in (0..).zip(values) {
        // SAFETY: the place of this lane is valid, as promised by the caller.
        unsafe { E::store(host.wrapping_offset(at.distance(i) as isize), value) };
    }
}

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
        // SAFETY: the places of all lanes are valid for writes, and aligned; the source is of this frame and class.
        unsafe { store_each::<E>(host, &at, regs, inst.b) };
        return Flow::Next;
    }
    // SAFETY: as promised by the caller.
    unsafe { store_slow(m, regs, inst, &at.each::<A>(), mask) }
}
