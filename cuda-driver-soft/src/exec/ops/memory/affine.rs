//! Loads and stores of converged warps, at addresses that are affine.

use super::{Access, Addresses, Element, load_pattern, load_slow, put, store_pattern, store_slow};
use crate::exec::code::{Flow, Inst};
use crate::exec::isa::{Body, Common, Handlers, Worth};
use crate::exec::lanes::{LANES, Lanes, Mask};
use crate::exec::machine::Machine;
use crate::exec::registers::Regs;
use crate::exec::semantics::affine::{self, Affine};
use crate::exec::semantics::int::Int;
use crate::ir::{RegClass, Space};
use crate::memory::access;
use std::marker::PhantomData;

/// Handlers of a load whose address is affine.
pub(crate) fn load(access: &Access) -> Option<Handlers> {
    handlers!(access, LoadAffine)
}

/// Handlers of a store whose address is affine.
pub(crate) fn store(access: &Access) -> Option<Handlers> {
    if access.space == Space::Const {
        return None;
    }
    handlers!(access, StoreAffine)
}

macro_rules! handlers {
    ($access:ident, $name:ident) => {{
        let a = $access;
        if a.count != 1 || a.strong || a.align != a.element {
            return None;
        }
        let shared = match a.space {
            Space::Shared => true,
            Space::Global | Space::Const | Space::Generic if a.wide_address => false,
            _ => return None,
        };
        match (shared, a.wide_address, a.element, a.class) {
            (false, _, 4, RegClass::B32) => Some(Common::compile::<$name<u32, u64, false>>()),
            (false, _, 8, RegClass::B64) => Some(Common::compile::<$name<u64, u64, false>>()),
            (true, false, 4, RegClass::B32) => Some(Common::compile::<$name<u32, u32, true>>()),
            (true, false, 8, RegClass::B64) => Some(Common::compile::<$name<u64, u32, true>>()),
            (true, true, 4, RegClass::B32) => Some(Common::compile::<$name<u32, u64, true>>()),
            (true, true, 8, RegClass::B64) => Some(Common::compile::<$name<u64, u64, true>>()),
            _ => None,
        }
    }};
}
use handlers;

/// The address of the first lane, and the distance to the next.
///
/// # Safety
/// See [`Regs`]; `a` is affine.
#[inline(always)]
unsafe fn address<A: Int>(regs: Regs<'_>, inst: &Inst) -> Affine {
    // SAFETY: as promised by the caller.
    let a = unsafe { regs.affine(inst.a) };
    affine::add::<A>(a, affine::uniform(A::from_bits(inst.imm)))
}

/// Where `span` bytes from an address on are, if they are known to be there.
#[inline(always)]
fn range<const SHARED: bool>(
    m: &mut Machine<'_>,
    inst: &Inst,
    address: u64,
    span: u64,
    align: u64,
) -> Option<*mut u8> {
    if SHARED {
        let (start, length, host) = m.spaces.shared(0);
        let offset = address.wrapping_sub(start);
        let fits = length >= span && offset <= length - span && address & (align - 1) == 0;
        fits.then(|| host.wrapping_add(offset as usize))
    } else {
        m.caches[inst.aux as usize].range(address, span, align)
    }
}

/// Where a whole warp's lanes are in memory, if that is remembered.
#[inline(always)]
fn pattern<const SHARED: bool>(
    m: &mut Machine<'_>,
    inst: &Inst,
    addresses: &Lanes<u64>,
    mask: Mask,
    bytes: u64,
) -> Option<*mut u8> {
    let cache = &m.caches[inst.aux as usize];
    if SHARED {
        cache.buffer::<true>(addresses, mask, bytes, m.spaces.shared(0))
    } else {
        cache.global::<true>(addresses, mask, bytes)
    }
}

/// Where the lanes are if not in a row, or not known yet.
#[inline(always)]
fn addresses<A: Int>(a: Affine) -> Lanes<u64> {
    let mut out = [0; LANES];
    for (i, address) in (0..).zip(&mut out) {
        *address = affine::lane::<A>(a, i).bits();
    }
    out
}

struct LoadAffine<E, A, const SHARED: bool>(PhantomData<(E, A)>);

impl<E: Element, A: Addresses + Int, const SHARED: bool> Body for LoadAffine<E, A, SHARED> {
    #[inline(always)]
    unsafe fn run<const FULL: bool, const WIDE: bool>(
        m: &mut Machine<'_>,
        regs: Regs<'_>,
        inst: &Inst,
        mask: Mask,
    ) -> Flow {
        // SAFETY: the slot is of this frame and affine, as promised by the caller.
        let at = unsafe { address::<A>(regs, inst) };
        let row = 32 * E::BYTES;
        if at.step == E::BYTES {
            if let Some(host) = range::<SHARED>(m, inst, at.base, row, E::BYTES) {
                // SAFETY: a row without gaps, all of it valid; the destination is of this frame and class.
                unsafe {
                    access::copy_row::<WIDE>(regs.row_ptr::<E>(inst.d).cast(), host, row as usize)
                };
                return Flow::Next;
            }
        } else if at.step == 0
            && let Some(host) = range::<SHARED>(m, inst, at.base, E::BYTES, E::BYTES)
        {
            // SAFETY: one valid place for all; the destination is of this frame and class.
            unsafe { put::<E, true>(regs, inst.d, [E::load(host); LANES], mask) };
            return Flow::Next;
        }
        // SAFETY: as promised by the caller.
        unsafe { load_other::<E, A, SHARED>(m, regs, inst, at, mask) }
    }
}

/// # Safety
/// See [`Regs`].
#[inline(never)]
unsafe fn load_other<E: Element, A: Int, const SHARED: bool>(
    m: &mut Machine<'_>,
    regs: Regs<'_>,
    inst: &Inst,
    at: Affine,
    mask: Mask,
) -> Flow {
    let addresses = addresses::<A>(at);
    match pattern::<SHARED>(m, inst, &addresses, mask, E::BYTES) {
        Some(host) => {
            let cache = &m.caches[inst.aux as usize];
            let place = (host, cache.shape, &cache.deltas);
            // SAFETY: the cache says that the places are valid; the slot is of this frame and class.
            unsafe { load_pattern::<E, true, false>(place, regs, inst.d, mask) };
            Flow::Next
        }
        // SAFETY: as promised by the caller.
        None => unsafe { load_slow(m, regs, inst, &addresses, mask) },
    }
}

struct StoreAffine<E, A, const SHARED: bool>(PhantomData<(E, A)>);

impl<E: Element, A: Addresses + Int, const SHARED: bool> Body for StoreAffine<E, A, SHARED> {
    #[inline(always)]
    unsafe fn run<const FULL: bool, const WIDE: bool>(
        m: &mut Machine<'_>,
        regs: Regs<'_>,
        inst: &Inst,
        mask: Mask,
    ) -> Flow {
        // SAFETY: the slot is of this frame and affine, as promised by the caller.
        let at = unsafe { address::<A>(regs, inst) };
        let row = 32 * E::BYTES;
        if at.step == E::BYTES
            && let Some(host) = range::<SHARED>(m, inst, at.base, row, E::BYTES)
        {
            // SAFETY: a row without gaps, all of it valid for writes, since only a store that was allowed made the
            // cache remember the allocation; the source is of this frame and class.
            unsafe {
                access::copy_row::<WIDE>(host, regs.row_ptr::<E>(inst.b).cast(), row as usize)
            };
            return Flow::Next;
        }
        // SAFETY: as promised by the caller.
        unsafe { store_other::<E, A, SHARED>(m, regs, inst, at, mask) }
    }
}

/// # Safety
/// See [`Regs`].
#[inline(never)]
unsafe fn store_other<E: Element, A: Int, const SHARED: bool>(
    m: &mut Machine<'_>,
    regs: Regs<'_>,
    inst: &Inst,
    at: Affine,
    mask: Mask,
) -> Flow {
    let addresses = addresses::<A>(at);
    match pattern::<SHARED>(m, inst, &addresses, mask, E::BYTES) {
        Some(host) => {
            let cache = &m.caches[inst.aux as usize];
            let place = (host, cache.shape, &cache.deltas);
            // SAFETY: the cache says that the places are valid; the slot is of this frame and class.
            unsafe { store_pattern::<E, true, false>(place, regs, inst.b, mask) };
            Flow::Next
        }
        // SAFETY: as promised by the caller.
        None => unsafe { store_slow(m, regs, inst, &addresses, mask) },
    }
}
