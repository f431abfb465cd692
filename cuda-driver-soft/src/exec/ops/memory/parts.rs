//! Loads and stores of numbers that are narrower than their registers, and of vectors.

use super::affine;
use super::{Access, load_slow, store_slow, widened};
use crate::exec::code::{Flow, Inst};
use crate::exec::isa::{Body, Common, Handlers, Worth};
use crate::exec::lanes::{self, FULL as FULL_MASK, LANES, Lanes, Mask};
use crate::exec::machine::Machine;
use crate::exec::registers::{Lane, Regs, Slot};
use crate::exec::window::SHARED;
use crate::ir::{RegClass, Space};
use crate::memory::access;
use crate::memory::warp::Shape;
use std::marker::PhantomData;

/// A number in memory, and in the register that it is loaded to or stored from.
trait Part {
    /// In memory.
    type Memory: Copy + Default;
    /// In the register.
    type Row: Lane;
    const BYTES: usize = size_of::<Self::Memory>();
    fn widen(value: Self::Memory) -> Self::Row;
    fn narrow(value: Self::Row) -> Self::Memory;
    /// # Safety
    /// `at` must be valid for reads and aligned.
    unsafe fn load(at: *const u8) -> Self::Memory;
    /// # Safety
    /// `at` must be valid for writes and aligned.
    unsafe fn store(at: *mut u8, value: Self::Memory);
}

/// `M` in memory, `R` in the register.
struct As<M, R>(PhantomData<(M, R)>);

macro_rules! part {
    ($($memory:ident $row:ident $load:ident $store:ident;)*) => {$(
        impl Part for As<$memory, $row> {
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
part! {
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

/// Whether the handlers here know the space and the address of an access, and it is one piece.
fn known(access: &Access) -> bool {
    let space = match access.space {
        Space::Shared => true,
        Space::Global | Space::Const | Space::Generic => access.wide_address,
        _ => false,
    };
    space && !access.strong && access.align == access.element * access.count
}

/// Handlers of a load.
pub(super) fn load(access: &Access) -> Option<Handlers> {
    use RegClass::{B16, B32, B64};
    macro_rules! of {
        ($memory:ident $row:ident $count:literal) => {
            Some(Common::compile::<LoadParts<As<$memory, $row>, $count>>())
        };
    }
    if !known(access) {
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

/// Handlers of a store.
pub(super) fn store(access: &Access) -> Option<Handlers> {
    use RegClass::{B16, B32, B64};
    macro_rules! of {
        ($memory:ident $row:ident $count:literal) => {
            Some(Common::compile::<StoreParts<As<$memory, $row>, $count>>())
        };
    }
    if !known(access) {
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

/// Where the lanes of an access are on the host, each place valid for it and aligned.
pub(super) struct Found<'c> {
    /// The place that distances are from.
    pub(super) host: *mut u8,
    /// How the lanes lie; with [`Shape::Any`] at the distances.
    pub(super) shape: Shape,
    pub(super) deltas: &'c Lanes<u32>,
}

impl Found<'_> {
    /// Where a lane is, by the size of the access.
    #[inline(always)]
    fn lane(&self, i: usize, bytes: usize) -> *mut u8 {
        // Distances need not be there where they are known otherwise.
        self.host.wrapping_add(match self.shape {
            Shape::Same => 0,
            Shape::Row => i * bytes,
            Shape::Any => self.deltas[i] as usize,
        })
    }
}

/// Finds the lanes where they are known to be; the distances may be written to `own`.
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
    own: &'c mut Lanes<u32>,
) -> Option<Found<'c>> {
    if affine::is_affine(inst.mods) {
        // SAFETY: as promised by the caller.
        return unsafe { affine::find(m, regs, inst, bytes, own) };
    }
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
    Some(Found {
        host: host?,
        shape: cache.shape,
        deltas: &cache.deltas,
    })
}

/// The addresses one by one.
///
/// # Safety
/// See [`Regs`].
#[inline(never)]
unsafe fn addresses(m: &Machine<'_>, regs: Regs<'_>, inst: &Inst) -> Lanes<u64> {
    // SAFETY: as promised by the caller.
    unsafe {
        if affine::is_affine(inst.mods) {
            affine::addresses(m, regs, inst)
        } else {
            widened(regs, inst)
        }
    }
}

struct LoadParts<P, const N: usize>(PhantomData<P>);

impl<P: Part, const N: usize> Body for LoadParts<P, N> {
    #[inline(always)]
    unsafe fn run<const FULL: bool, const WIDE: bool>(
        m: &mut Machine<'_>,
        regs: Regs<'_>,
        inst: &Inst,
        mask: Mask,
    ) -> Flow {
        let bytes = (N * P::BYTES) as u64;
        let mut own = [0; LANES];
        // SAFETY: as promised by the caller.
        if let Some(found) = unsafe { find(m, regs, inst, bytes, mask, &mut own) } {
            // SAFETY: the places are valid for reads; the destinations are of this frame and class.
            unsafe { load_found::<P, N, WIDE>(&found, regs, inst, mask) };
            return Flow::Next;
        }
        // SAFETY: as promised by the caller.
        unsafe {
            let addresses = addresses(m, regs, inst);
            load_slow(m, regs, inst, &addresses, mask)
        }
    }
}

/// # Safety
/// See [`Regs`]; the places of the lanes of the mask are valid for reads, and aligned.
#[inline(always)]
unsafe fn load_found<P: Part, const N: usize, const WIDE: bool>(
    found: &Found<'_>,
    regs: Regs<'_>,
    inst: &Inst,
    mask: Mask,
) {
    let slots: [Slot; 4] = [inst.d, inst.b, inst.c, inst.e];
    let mut rows = [[P::Row::default(); LANES]; N];
    // SAFETY (all blocks): the places are valid, as promised by the caller.
    match found.shape {
        Shape::Row if mask == FULL_MASK => {
            let mut all = [[P::Memory::default(); N]; LANES];
            // SAFETY: a row without gaps; any bytes are numbers.
            unsafe {
                access::copy_row::<WIDE>(all.as_mut_ptr().cast(), found.host, LANES * N * P::BYTES);
            }
            for k in 0..N {
                for i in 0..LANES {
                    rows[k][i] = P::widen(all[i][k]);
                }
            }
        }
        Shape::Same => {
            for (k, row) in rows.iter_mut().enumerate() {
                // SAFETY: one valid place for all.
                let value = unsafe { P::load(found.host.wrapping_add(k * P::BYTES)) };
                *row = [P::widen(value); LANES];
            }
        }
        Shape::Any if mask == FULL_MASK => {
            for i in 0..LANES {
                let host = found.host.wrapping_add(found.deltas[i] as usize);
                for k in 0..N {
                    // SAFETY: the place of this lane.
                    rows[k][i] = P::widen(unsafe { P::load(host.wrapping_add(k * P::BYTES)) });
                }
            }
        }
        _ => {
            for i in lanes::iter(mask) {
                let host = found.lane(i, N * P::BYTES);
                for k in 0..N {
                    // SAFETY: the place of this lane, which is one of the mask.
                    rows[k][i] = P::widen(unsafe { P::load(host.wrapping_add(k * P::BYTES)) });
                }
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

struct StoreParts<P, const N: usize>(PhantomData<P>);

impl<P: Part, const N: usize> Body for StoreParts<P, N> {
    #[inline(always)]
    unsafe fn run<const FULL: bool, const WIDE: bool>(
        m: &mut Machine<'_>,
        regs: Regs<'_>,
        inst: &Inst,
        mask: Mask,
    ) -> Flow {
        let bytes = (N * P::BYTES) as u64;
        let mut own = [0; LANES];
        // SAFETY: as promised by the caller.
        if let Some(found) = unsafe { find(m, regs, inst, bytes, mask, &mut own) } {
            // SAFETY: the places are valid for writes, since only a store that was allowed made the cache remember the
            // allocation; the sources are of this frame and class.
            unsafe { store_found::<P, N, WIDE>(&found, regs, inst, mask) };
            return Flow::Next;
        }
        // SAFETY: as promised by the caller.
        unsafe {
            let addresses = addresses(m, regs, inst);
            store_slow(m, regs, inst, &addresses, mask)
        }
    }
}

/// # Safety
/// See [`Regs`]; the places of the lanes of the mask are valid for writes, and aligned.
#[inline(always)]
unsafe fn store_found<P: Part, const N: usize, const WIDE: bool>(
    found: &Found<'_>,
    regs: Regs<'_>,
    inst: &Inst,
    mask: Mask,
) {
    let slots: [Slot; 4] = [inst.b, inst.d, inst.c, inst.e];
    let mut all = [[P::Memory::default(); N]; LANES];
    for k in 0..N {
        // SAFETY: the sources are of this frame and class, as promised by the caller.
        let row = unsafe { P::Row::read(regs, slots[k]) };
        for i in 0..LANES {
            all[i][k] = P::narrow(row[i]);
        }
    }
    if found.shape == Shape::Row && mask == FULL_MASK {
        // SAFETY: a row without gaps, all of it valid.
        unsafe {
            access::copy_row::<WIDE>(found.host, all.as_ptr().cast(), LANES * N * P::BYTES);
        }
        return;
    }
    // Of lanes that store to one place the last wins.
    for i in lanes::iter(mask) {
        let host = found.lane(i, N * P::BYTES);
        for k in 0..N {
            // SAFETY: the place of this lane, which is one of the mask.
            unsafe { P::store(host.wrapping_add(k * P::BYTES), all[i][k]) };
        }
    }
}
