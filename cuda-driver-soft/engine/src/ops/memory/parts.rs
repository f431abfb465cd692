//! Handlers of loads and stores of vectors, of 16-bit numbers, and of numbers that are narrower than their registers.

use super::{Access, load_slow, store_slow, widened};
use crate::code::handlers::{Body, Common, Copies, Handlers};
use crate::code::inst::{Flow, Inst};
use crate::code::machine::Machine;
use crate::code::registers::{Lane, Regs, Slot};
use crate::lanes::{self, FULL as FULL_MASK, LANES, Lanes, Mask};
use crate::memory::access;
use crate::memory::warp::LanePattern;
use crate::window::SHARED;
use ptx::ir::{RegClass, Space};
use std::marker::PhantomData;

/// A number with a type in memory and a type in a register.
trait Number {
    /// The type in memory.
    type Memory: Copy + Default;
    /// The type in the register.
    type Row: Lane;
    /// The size in memory.
    const BYTES: usize = size_of::<Self::Memory>();
    /// Converts a number from memory for the register.
    fn widen(value: Self::Memory) -> Self::Row;
    /// Converts a number from the register for memory.
    fn narrow(value: Self::Row) -> Self::Memory;
    /// Loads a number.
    ///
    /// # Safety
    /// `at` must be valid for reads and aligned.
    unsafe fn load(at: *const u8) -> Self::Memory;
    /// Stores a number.
    ///
    /// # Safety
    /// `at` must be valid for writes and aligned.
    unsafe fn store(at: *mut u8, value: Self::Memory);
}

/// A number of type `M` in memory and of type `R` in the register.
struct Stored<M, R>(PhantomData<(M, R)>);

macro_rules! numbers {
    ($($memory:ident $row:ident $load:ident $store:ident;)*) => {$(
        impl Number for Stored<$memory, $row> {
            type Memory = $memory;
            type Row = $row;

            #[inline(always)]
            fn widen(value: $memory) -> $row {
                value as $row
            }

            #[inline(always)]
            fn narrow(value: $row) -> $memory {
                value as $memory
            }

            #[inline(always)]
            unsafe fn load(at: *const u8) -> $memory {
                // SAFETY: as promised by the caller.
                unsafe { access::$load(at) as $memory }
            }

            #[inline(always)]
            unsafe fn store(at: *mut u8, value: $memory) {
                // SAFETY: as promised by the caller.
                unsafe { access::$store(at, value as _) }
            }
        }
    )*};
}
numbers! {
    u8 u16 load8 store8;
    i8 u16 load8 store8;
    u8 u32 load8 store8;
    i8 u32 load8 store8;
    u16 u16 load16 store16;
    u16 u32 load16 store16;
    i16 u32 load16 store16;
    u32 u32 load32 store32;
    u32 u64 load32 store32;
    i32 u64 load32 store32;
    u64 u64 load64 store64;
    u8 u64 load8 store8;
    u16 u64 load16 store16;
}

/// Returns true if the handlers in this file support the space and the width of the address of an access, and the
/// access is weak and not a part of a larger one.
fn is_supported(access: &Access) -> bool {
    let space = match access.space {
        Space::Shared => true,
        Space::Global | Space::Const | Space::Generic => access.wide_address,
        _ => false,
    };
    space && !access.strong && access.align == access.element * access.count
}

/// Returns the handlers of a load, or `None` if this file has none.
pub(super) fn load(access: &Access) -> Option<Handlers> {
    use RegClass::{B16, B32, B64};
    macro_rules! of {
        ($memory:ident $row:ident $count:literal) => {
            Some(Common::compile::<LoadParts<Stored<$memory, $row>, $count>>())
        };
    }
    if !is_supported(access) {
        return None;
    }
    match (access.count, access.element, access.signed, access.class) {
        (1, 1, false, B16) => of!(u8 u16 1),
        (1, 1, true, B16) => of!(i8 u16 1),
        (1, 1, false, B32) => of!(u8 u32 1),
        (1, 1, true, B32) => of!(i8 u32 1),
        (1, 2, _, B16) => of!(u16 u16 1),
        (1, 2, false, B32) => of!(u16 u32 1),
        (1, 2, true, B32) => of!(i16 u32 1),
        (1, 4, false, B64) => of!(u32 u64 1),
        (1, 4, true, B64) => of!(i32 u64 1),
        (2, 1, false, B16) => of!(u8 u16 2),
        (2, 2, _, B16) => of!(u16 u16 2),
        (2, 4, _, B32) => of!(u32 u32 2),
        (2, 8, _, B64) => of!(u64 u64 2),
        (4, 1, false, B16) => of!(u8 u16 4),
        (4, 1, false, B32) => of!(u8 u32 4),
        (4, 2, _, B16) => of!(u16 u16 4),
        (4, 4, _, B32) => of!(u32 u32 4),
        _ => None,
    }
}

/// Returns the handlers of a store, or `None` if this file has none.
pub(super) fn store(access: &Access) -> Option<Handlers> {
    use RegClass::{B16, B32, B64};
    macro_rules! of {
        ($memory:ident $row:ident $count:literal) => {
            Some(Common::compile::<StoreParts<Stored<$memory, $row>, $count>>())
        };
    }
    if !is_supported(access) {
        return None;
    }
    match (access.count, access.element, access.class) {
        (1, 1, B16) => of!(u8 u16 1),
        (1, 1, B32) => of!(u8 u32 1),
        (1, 2, B16) => of!(u16 u16 1),
        (1, 2, B32) => of!(u16 u32 1),
        (1, 1, B64) => of!(u8 u64 1),
        (1, 2, B64) => of!(u16 u64 1),
        (1, 4, B64) => of!(u32 u64 1),
        (2, 1, B16) => of!(u8 u16 2),
        (2, 2, B16) => of!(u16 u16 2),
        (2, 4, B32) => of!(u32 u32 2),
        (2, 8, B64) => of!(u64 u64 2),
        (4, 1, B16) => of!(u8 u16 4),
        (4, 1, B32) => of!(u8 u32 4),
        (4, 2, B16) => of!(u16 u16 4),
        (4, 4, B32) => of!(u32 u32 4),
        _ => None,
    }
}

/// The host addresses of an access. Each is valid for the access, and aligned.
struct HostLanes<'c> {
    /// The address of lane 0; with [`LanePattern::Any`] the address to which the distances are added.
    host: *mut u8,
    /// The arrangement of the lanes.
    pattern: LanePattern,
    /// The distances of the lanes, for [`LanePattern::Any`].
    deltas: &'c Lanes<u32>,
}

impl HostLanes<'_> {
    /// Returns the address of a lane, for accesses of `bytes` bytes.
    #[inline(always)]
    fn lane(&self, i: usize, bytes: usize) -> *mut u8 {
        let distance = match self.pattern {
            LanePattern::Same => 0,
            LanePattern::Row => i * bytes,
            LanePattern::Any => self.deltas[i] as usize,
        };
        self.host.wrapping_add(distance)
    }
}

/// Returns the host addresses of the lanes if the access matches the pattern and the memory in its cache.
///
/// # Safety
/// See [`Regs`].
#[inline(always)]
unsafe fn find<'c>(
    m: &'c mut Machine<'_>,
    regs: Regs<'_>,
    inst: &Inst,
    bytes: u64,
    mask: Mask,
) -> Option<HostLanes<'c>> {
    // SAFETY: as promised by the caller.
    let addresses = unsafe { widened(regs, inst) };
    let cache = &m.caches[inst.aux as usize];
    let host = match Access::unpack(inst.mods).space {
        Space::Shared => cache.buffer::<false>(&addresses, mask, bytes, m.spaces.shared(0)),
        Space::Generic => cache
            .global::<false>(&addresses, mask, bytes)
            .or_else(|| cache.buffer::<false>(&addresses, mask, bytes, m.spaces.shared(SHARED))),
        _ => cache.global::<false>(&addresses, mask, bytes),
    };
    Some(HostLanes {
        host: host?,
        pattern: cache.pattern,
        deltas: &cache.deltas,
    })
}

/// A load of `N` numbers of type `P`.
struct LoadParts<P, const N: usize>(PhantomData<P>);

impl<P: Number, const N: usize> Body for LoadParts<P, N> {
    #[inline(always)]
    unsafe fn run<const FULL: bool, const WIDE: bool>(
        m: &mut Machine<'_>,
        regs: Regs<'_>,
        inst: &Inst,
        mask: Mask,
    ) -> Flow {
        let bytes = (N * P::BYTES) as u64;
        // SAFETY: as promised by the caller.
        if let Some(found) = unsafe { find(m, regs, inst, bytes, mask) } {
            // SAFETY: `find` returns addresses that are valid for reads; the destinations are of this frame and class;
            // with `WIDE`, which is `FUSED` of `Body::run`, the CPU has AVX.
            unsafe { load_found::<P, N, WIDE>(&found, regs, inst, mask) };
            return Flow::Next;
        }
        // SAFETY: as promised by the caller.
        unsafe {
            let addresses = widened(regs, inst);
            load_slow(m, regs, inst, &addresses, mask)
        }
    }
}

/// Loads the lanes of the mask.
///
/// # Safety
/// See [`Regs`]; the addresses of the lanes of the mask are valid for reads, and aligned. With `WIDE` the CPU has AVX.
#[inline(always)]
unsafe fn load_found<P: Number, const N: usize, const WIDE: bool>(
    found: &HostLanes<'_>,
    regs: Regs<'_>,
    inst: &Inst,
    mask: Mask,
) {
    let slots: [Slot; 4] = [inst.d, inst.b, inst.c, inst.e];
    let mut rows = [[P::Row::default(); LANES]; N];
    if found.pattern == LanePattern::Same {
        // SAFETY: all lanes have this address, which is valid, as promised by the caller.
        let values = unsafe { load_lane::<P, N>(found.host) };
        for (row, value) in rows.iter_mut().zip(values) {
            *row = [P::widen(value); LANES];
        }
    } else {
        let mut all = [[P::Memory::default(); N]; LANES];
        match found.pattern {
            LanePattern::Row if mask == FULL_MASK => {
                let bytes = LANES * N * P::BYTES;
                // SAFETY: the addresses are contiguous and valid, as promised by the caller; any bytes are valid
                // numbers.
                unsafe { access::copy_row::<WIDE>(all.as_mut_ptr().cast(), found.host, bytes) };
            }
            _ if mask == FULL_MASK => {
                for (i, values) in all.iter_mut().enumerate() {
                    let host = found.lane(i, N * P::BYTES);
                    // SAFETY: the address of this lane is valid, as promised by the caller.
                    *values = unsafe { load_lane::<P, N>(host) };
                }
            }
            _ => {
                for i in lanes::iter(mask) {
                    let host = found.lane(i, N * P::BYTES);
                    // SAFETY: as above, because this lane is in the mask.
                    all[i] = unsafe { load_lane::<P, N>(host) };
                }
            }
        }
        for (k, row) in rows.iter_mut().enumerate() {
            for (value, all) in row.iter_mut().zip(&all) {
                *value = P::widen(all[k]);
            }
        }
    }
    for (row, slot) in rows.into_iter().zip(slots) {
        // SAFETY: the destinations are of this frame and class, as promised by the caller.
        unsafe {
            if mask == FULL_MASK {
                P::Row::write(regs, slot, row);
            } else {
                P::Row::merge(regs, slot, row, mask);
            }
        }
    }
}

/// Loads the numbers of one lane.
///
/// # Safety
/// `host` must be valid for reads of all of them, and aligned.
#[inline(always)]
unsafe fn load_lane<P: Number, const N: usize>(host: *mut u8) -> [P::Memory; N] {
    let mut values = [P::Memory::default(); N];
    for (k, value) in values.iter_mut().enumerate() {
        // SAFETY: a part of the valid memory, as promised by the caller.
        *value = unsafe { P::load(host.wrapping_add(k * P::BYTES)) };
    }
    values
}

/// A store of `N` numbers of type `P`.
struct StoreParts<P, const N: usize>(PhantomData<P>);

impl<P: Number, const N: usize> Body for StoreParts<P, N> {
    #[inline(always)]
    unsafe fn run<const FULL: bool, const WIDE: bool>(
        m: &mut Machine<'_>,
        regs: Regs<'_>,
        inst: &Inst,
        mask: Mask,
    ) -> Flow {
        let bytes = (N * P::BYTES) as u64;
        // SAFETY: as promised by the caller.
        if let Some(found) = unsafe { find(m, regs, inst, bytes, mask) } {
            // SAFETY: the addresses are valid for writes, because the cache of a store only has an allocation that an
            // earlier store was allowed to write. The sources are of this frame and class. AVX is as for `LoadParts`.
            unsafe { store_found::<P, N, WIDE>(&found, regs, inst, mask) };
            return Flow::Next;
        }
        // SAFETY: as promised by the caller.
        unsafe {
            let addresses = widened(regs, inst);
            store_slow(m, regs, inst, &addresses, mask)
        }
    }
}

/// Stores the lanes of the mask in order: if several lanes store to one address, the highest lane wins.
///
/// # Safety
/// See [`Regs`]; the addresses of the lanes of the mask are valid for writes, and aligned. With `WIDE` the CPU has AVX.
#[inline(always)]
unsafe fn store_found<P: Number, const N: usize, const WIDE: bool>(
    found: &HostLanes<'_>,
    regs: Regs<'_>,
    inst: &Inst,
    mask: Mask,
) {
    let slots: [Slot; 4] = [inst.b, inst.d, inst.c, inst.e];
    let mut all = [[P::Memory::default(); N]; LANES];
    for (k, slot) in slots.into_iter().enumerate().take(N) {
        // SAFETY: the sources are of this frame and class, as promised by the caller.
        let row = unsafe { P::Row::read(regs, slot) };
        for (all, value) in all.iter_mut().zip(row) {
            all[k] = P::narrow(value);
        }
    }
    if found.pattern == LanePattern::Row && mask == FULL_MASK {
        let bytes = LANES * N * P::BYTES;
        // SAFETY: the addresses are contiguous and valid, as promised by the caller.
        unsafe { access::copy_row::<WIDE>(found.host, all.as_ptr().cast(), bytes) };
        return;
    }
    for i in lanes::iter(mask) {
        let host = found.lane(i, N * P::BYTES);
        for (k, value) in all[i].into_iter().enumerate() {
            // SAFETY: the address of this lane is valid, because the lane is in the mask.
            unsafe { P::store(host.wrapping_add(k * P::BYTES), value) };
        }
    }
}
