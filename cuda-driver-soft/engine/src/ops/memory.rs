//! Handlers of loads and stores, such as `ld.global.f32`.
//!
//! An access first finds its host addresses, which checks bounds and alignment (`crate::memory::warp`), and then moves
//! its values.

mod parts;

use super::shapes::put;
use crate::code::handlers::{Body, Common, Copies, Handlers, Hot, Rare};
use crate::code::inst::{Flow, Inst};
use crate::code::machine::Machine;
use crate::code::registers::{Lane, Regs, Slot};
use crate::lanes::{self, LANES, Lanes, Mask};
use crate::memory::access;
use crate::memory::warp::{LanePattern, Placed};
use crate::window::{LOCAL, SHARED, WINDOW_BITS};
use ptx::ir::{MemMods, Order, RegClass, Space};
use std::marker::PhantomData;
use std::sync::atomic::{Ordering, fence};

/// The properties of a load, a store or an atomic operation. They are packed into [`Inst::mods`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    /// The space.
    pub(crate) space: Space,
    /// True if the address is in a register of 64 bits rather than 32.
    pub(crate) wide_address: bool,
    /// Bytes of an element: 1, 2, 4 or 8.
    pub(crate) element: u32,
    /// Number of elements: 1, 2 or 4.
    pub(crate) count: u32,
    /// Required alignment of the whole access, in bytes.
    pub(crate) align: u32,
    /// True if a load extends elements by their sign.
    pub(crate) signed: bool,
    /// The class of the registers of the elements.
    pub(crate) class: RegClass,
    /// True for strong operations, which threads may use to wait for each other.
    pub(crate) strong: bool,
    /// True if the operation orders earlier or later accesses (acquire or release).
    pub(crate) fence: bool,
}

const SPACES: [Space; 7] = [
    Space::Generic,
    Space::Global,
    Space::Shared,
    Space::SharedCluster,
    Space::Local,
    Space::Const,
    Space::Param,
];

impl Access {
    /// Returns the properties of an instruction. The decoder has split accesses of more than 4 elements.
    pub(crate) fn new(m: &MemMods, element: u32, count: u32, wide_address: bool, class: RegClass) -> Self {
        Access {
            space: m.space,
            wide_address,
            element,
            count,
            align: m.ty.size() * u32::from(m.vec),
            signed: m.ty.is_signed(),
            class,
            strong: !matches!(m.order, Order::Weak),
            fence: matches!(
                m.order.of_memory(),
                Order::Acquire(_) | Order::Release(_) | Order::AcqRel(_)
            ),
        }
    }

    /// Packs the properties for [`Inst::mods`].
    pub(crate) fn pack(self) -> u32 {
        let space = SPACES.iter().position(|s| *s == self.space).unwrap_or(0) as u32;
        let class = match self.class {
            RegClass::Pred | RegClass::B16 => 0,
            RegClass::B32 => 1,
            RegClass::B64 | RegClass::B128 => 2,
        };
        let flags = [self.wide_address, self.signed, self.strong, self.fence];
        let flags = flags
            .iter()
            .enumerate()
            .fold(0, |bits, (i, f)| bits | u32::from(*f) << i);
        space
            | self.element.trailing_zeros() << 3
            | self.count.trailing_zeros() << 5
            | self.align.trailing_zeros() << 7
            | class << 10
            | flags << 12
    }

    /// Unpacks the properties in [`Inst::mods`].
    #[inline(always)]
    pub(crate) fn unpack(bits: u32) -> Self {
        let flag = |i: u32| bits >> (12 + i) & 1 != 0;
        Access {
            space: SPACES[(bits & 7) as usize % SPACES.len()],
            element: 1 << (bits >> 3 & 3),
            count: 1 << (bits >> 5 & 3),
            align: 1 << (bits >> 7 & 7),
            class: match bits >> 10 & 3 {
                0 => RegClass::B16,
                1 => RegClass::B32,
                _ => RegClass::B64,
            },
            wide_address: flag(0),
            signed: flag(1),
            strong: flag(2),
            fence: flag(3),
        }
    }
}

/// Returns the handlers of a load.
pub(crate) fn load(access: &Access) -> Handlers {
    let plain = access.count == 1 && !access.strong && access.align == access.element;
    // Generic addresses use the handlers for global memory. An address of another space is in no cached allocation, so
    // it takes the slow path.
    let global = matches!(access.space, Space::Global | Space::Const | Space::Generic);
    if plain && access.wide_address && global {
        match (access.element, access.class) {
            (4, RegClass::B32) => return Hot::compile::<LoadGlobal<u32>>(),
            (8, RegClass::B64) => return Hot::compile::<LoadGlobal<u64>>(),
            _ => {}
        }
    }
    if plain && access.space == Space::Shared {
        match (access.element, access.class, access.wide_address) {
            (4, RegClass::B32, false) => return Hot::compile::<LoadShared<u32, u32>>(),
            (4, RegClass::B32, true) => return Hot::compile::<LoadShared<u32, u64>>(),
            (8, RegClass::B64, false) => return Hot::compile::<LoadShared<u64, u32>>(),
            (8, RegClass::B64, true) => return Common::compile::<LoadShared<u64, u64>>(),
            _ => {}
        }
    }
    parts::load(access).unwrap_or_else(Rare::compile::<LoadAny>)
}

/// Returns the handlers of a store.
pub(crate) fn store(access: &Access) -> Handlers {
    let plain = access.count == 1 && !access.strong && access.align == access.element;
    let global = matches!(access.space, Space::Global | Space::Generic);
    if plain && access.wide_address && global {
        match (access.element, access.class) {
            (4, RegClass::B32) => return Hot::compile::<StoreGlobal<u32>>(),
            (8, RegClass::B64) => return Hot::compile::<StoreGlobal<u64>>(),
            _ => {}
        }
    }
    if plain && access.space == Space::Shared {
        match (access.element, access.class, access.wide_address) {
            (4, RegClass::B32, false) => return Hot::compile::<StoreShared<u32, u32>>(),
            (4, RegClass::B32, true) => return Hot::compile::<StoreShared<u32, u64>>(),
            (8, RegClass::B64, false) => return Hot::compile::<StoreShared<u64, u32>>(),
            (8, RegClass::B64, true) => return Common::compile::<StoreShared<u64, u64>>(),
            _ => {}
        }
    }
    let handlers = (access.space != Space::Const).then(|| parts::store(access));
    handlers.flatten().unwrap_or_else(Rare::compile::<StoreAny>)
}

/// A value that one load or store moves between memory and a register of the same size.
trait Element: Lane {
    const BYTES: u64;
    /// Loads a value.
    ///
    /// # Safety
    /// `at` must be valid for reads and aligned.
    unsafe fn load(at: *const u8) -> Self;
    /// Stores a value.
    ///
    /// # Safety
    /// `at` must be valid for writes and aligned.
    unsafe fn store(at: *mut u8, value: Self);
}

macro_rules! element {
    ($($ty:ident $load:ident $store:ident)*) => {$(
        impl Element for $ty {
            const BYTES: u64 = size_of::<$ty>() as u64;

            #[inline(always)]
            unsafe fn load(at: *const u8) -> Self {
                // SAFETY: as promised by the caller.
                unsafe { access::$load(at) }
            }

            #[inline(always)]
            unsafe fn store(at: *mut u8, value: Self) {
                // SAFETY: as promised by the caller.
                unsafe { access::$store(at, value) }
            }
        }
    )*};
}
element! { u32 load32 store32 u64 load64 store64 }

/// A type of address registers.
trait Addresses: Lane {
    /// Adds the offset to the addresses and widens them to 64 bits.
    fn widen(row: Lanes<Self>, offset: u64) -> Lanes<u64>;
}

impl Addresses for u64 {
    #[inline(always)]
    fn widen(row: Lanes<Self>, offset: u64) -> Lanes<u64> {
        // A loop, because `map` of an array is not always inlined.
        let mut out = [0; LANES];
        for i in 0..LANES {
            out[i] = row[i].wrapping_add(offset);
        }
        out
    }
}

impl Addresses for u32 {
    #[inline(always)]
    fn widen(row: Lanes<Self>, offset: u64) -> Lanes<u64> {
        let mut out = [0; LANES];
        for i in 0..LANES {
            out[i] = u64::from(row[i].wrapping_add(offset as u32));
        }
        out
    }
}

/// Loads a row from host addresses of a known pattern.
///
/// # Safety
/// See [`Regs`]; the host addresses of the lanes of the mask are valid for reads, and aligned. With `WIDE` the CPU has
/// AVX.
#[inline(always)]
unsafe fn load_pattern<E: Element, const FULL: bool, const WIDE: bool>(
    (host, pattern, deltas): (*mut u8, LanePattern, &Lanes<u32>),
    regs: Regs<'_>,
    d: Slot,
    mask: Mask,
) {
    match pattern {
        LanePattern::Row if FULL => {
            // SAFETY: the addresses are contiguous, and all are valid.
            unsafe { access::copy_row::<WIDE>(regs.row_ptr::<E>(d).cast(), host, 32 * E::BYTES as usize) }
        }
        LanePattern::Same => {
            // SAFETY: all lanes have this valid address.
            let value = unsafe { E::load(host) };
            // SAFETY: the caller promises the destination.
            unsafe { put::<E, FULL>(regs, d, [value; LANES], mask) };
        }
        _ if FULL => {
            let mut row = [E::default(); LANES];
            for i in 0..LANES {
                // SAFETY: the address of each lane is valid.
                row[i] = unsafe { E::load(host.wrapping_add(deltas[i] as usize)) };
            }
            // SAFETY: the caller promises the destination.
            unsafe { E::write(regs, d, row) };
        }
        _ => {
            // SAFETY: the caller promises a valid destination, and nothing else accesses the registers during the call.
            let row = unsafe { &mut *regs.row_ptr::<E>(d) };
            for i in lanes::iter(mask) {
                // SAFETY: the addresses of these lanes are valid.
                row[i] = unsafe { E::load(host.wrapping_add(deltas[i] as usize)) };
            }
        }
    }
}

/// Stores a row to host addresses of a known pattern. If several lanes store to one address, the highest lane wins.
///
/// # Safety
/// See [`Regs`]; the host addresses of the lanes of the mask are valid for writes, and aligned. With `WIDE` the CPU has
/// AVX.
#[inline(always)]
unsafe fn store_pattern<E: Element, const FULL: bool, const WIDE: bool>(
    (host, pattern, deltas): (*mut u8, LanePattern, &Lanes<u32>),
    regs: Regs<'_>,
    b: Slot,
    mask: Mask,
) {
    if FULL && pattern == LanePattern::Row {
        // SAFETY: the addresses are contiguous, and all are valid.
        unsafe { access::copy_row::<WIDE>(host, regs.row_ptr::<E>(b).cast(), 32 * E::BYTES as usize) };
        return;
    }
    // SAFETY: the caller promises the source.
    let row = unsafe { E::read(regs, b) };
    if FULL {
        for i in 0..LANES {
            // SAFETY: the address of each lane is valid.
            unsafe { E::store(host.wrapping_add(deltas[i] as usize), row[i]) };
        }
    } else {
        for i in lanes::iter(mask) {
            // SAFETY: the addresses of these lanes are valid.
            unsafe { E::store(host.wrapping_add(deltas[i] as usize), row[i]) };
        }
    }
}

/// Defines the body of an access. If the addresses match the pattern in its cache, `$transfer` moves the values;
/// otherwise `$slow` runs the access. `WIDE` is `FUSED` of [`Body::run`]: on x86-64, a CPU with a fused multiply-add
/// also has AVX.
macro_rules! fast {
    ($name:ident<$e:ident $(, $a:ident)?>, $address:ty, |$m:ident, $cache:ident, $addresses:ident, $mask:ident, $full:ident| $fast:expr,
     $transfer:ident, $slot:ident, $slow:ident) => {
        struct $name<$e $(, $a)?>(PhantomData<($e, $($a)?)>);

        impl<$e: Element $(, $a: Addresses)?> Body for $name<$e $(, $a)?> {
            #[inline(always)]
            unsafe fn run<const $full: bool, const WIDE: bool>(
                $m: &mut Machine<'_>,
                regs: Regs<'_>,
                inst: &Inst,
                $mask: Mask,
            ) -> Flow {
                // SAFETY: the slot is of this frame and class, as promised by the caller.
                let row = unsafe { <$address>::read(regs, inst.a) };
                let $addresses = <$address as Addresses>::widen(row, inst.imm);
                let $cache = &$m.caches[inst.aux as usize];
                match $fast {
                    Some(host) => {
                        let place = (host, $cache.pattern, &$cache.deltas);
                        // SAFETY: the cache has checked the addresses of all lanes; the slot is as above; with `WIDE`
                        // the CPU has AVX.
                        unsafe { $transfer::<$e, $full, WIDE>(place, regs, inst.$slot, $mask) };
                        Flow::Next
                    }
                    // SAFETY: as promised by the caller.
                    None => unsafe { $slow::<$e>($m, regs, inst, &$addresses, $mask) },
                }
            }
        }
    };
}

fast!(
    LoadGlobal<E>,
    u64,
    |m, cache, addresses, mask, FULL| cache.global::<FULL>(&addresses, mask, E::BYTES),
    load_pattern,
    d,
    load_scattered
);
fast!(
    StoreGlobal<E>,
    u64,
    |m, cache, addresses, mask, FULL| cache.global::<FULL>(&addresses, mask, E::BYTES),
    store_pattern,
    b,
    store_scattered
);
fast!(LoadShared<E, A>, A, |m, cache, addresses, mask, FULL| {
    cache.buffer::<FULL>(&addresses, mask, E::BYTES, m.spaces.shared(0))
}, load_pattern, d, load_scattered);
fast!(StoreShared<E, A>, A, |m, cache, addresses, mask, FULL| {
    cache.buffer::<FULL>(&addresses, mask, E::BYTES, m.spaces.shared(0))
}, store_pattern, b, store_scattered);

/// Loads from addresses that do not match the pattern in the cache: directly if they are in the last allocation, or for
/// `.shared` in the block's shared memory; else with [`load_slow`].
///
/// # Safety
/// See [`Regs`].
#[inline(never)]
unsafe fn load_scattered<E: Element>(
    m: &mut Machine<'_>,
    regs: Regs<'_>,
    inst: &Inst,
    addresses: &Lanes<u64>,
    mask: Mask,
) -> Flow {
    let Some(to_host) = scattered(m, inst, addresses, mask, E::BYTES) else {
        // SAFETY: as promised by the caller.
        return unsafe { load_slow(m, regs, inst, addresses, mask) };
    };
    // SAFETY: the destination is of this frame and class, as promised by the caller.
    let mut row = unsafe { E::read(regs, inst.d) };
    for i in lanes::iter(mask) {
        let at = addresses[i].wrapping_add(to_host) as usize as *const u8;
        // SAFETY: `scattered` has checked the addresses of these lanes.
        row[i] = unsafe { E::load(at) };
    }
    // SAFETY: as above.
    unsafe { E::write(regs, inst.d, row) };
    Flow::Next
}

/// Stores to addresses that do not match the pattern in the cache: directly if they are in the last allocation, or for
/// `.shared` in the block's shared memory; else with [`store_slow`].
///
/// # Safety
/// See [`Regs`].
#[inline(never)]
unsafe fn store_scattered<E: Element>(
    m: &mut Machine<'_>,
    regs: Regs<'_>,
    inst: &Inst,
    addresses: &Lanes<u64>,
    mask: Mask,
) -> Flow {
    let Some(to_host) = scattered(m, inst, addresses, mask, E::BYTES) else {
        // SAFETY: as promised by the caller.
        return unsafe { store_slow(m, regs, inst, addresses, mask) };
    };
    // SAFETY: the source is of this frame and class, as promised by the caller.
    let row = unsafe { E::read(regs, inst.b) };
    for i in lanes::iter(mask) {
        let at = addresses[i].wrapping_add(to_host) as usize as *mut u8;
        // SAFETY: `scattered` has checked the addresses of these lanes. They are valid for writes, because the cache of
        // a store only has an allocation that an earlier store was allowed to write.
        unsafe { E::store(at, row[i]) };
    }
    Flow::Next
}

/// Returns the difference between host addresses and the addresses of an access if all lanes access the last
/// allocation, or for `.shared` the block's shared memory. Some calls return `None` even then, so that the cache stores
/// a new pattern.
#[inline(always)]
fn scattered(m: &mut Machine<'_>, inst: &Inst, addresses: &Lanes<u64>, mask: Mask, bytes: u64) -> Option<u64> {
    let cache = &mut m.caches[inst.aux as usize];
    if Access::unpack(inst.mods).space == Space::Shared {
        cache.scattered_in(addresses, mask, bytes, m.spaces.shared(0))
    } else {
        cache.scattered(addresses, mask, bytes)
    }
}

/// A load that has no faster handler.
struct LoadAny;

impl Body for LoadAny {
    #[inline(always)]
    unsafe fn run<const FULL: bool, const FUSED: bool>(
        m: &mut Machine<'_>,
        regs: Regs<'_>,
        inst: &Inst,
        mask: Mask,
    ) -> Flow {
        // SAFETY: as promised by the caller.
        unsafe {
            let addresses = widened(regs, inst);
            load_slow(m, regs, inst, &addresses, mask)
        }
    }
}

/// A store that has no faster handler.
struct StoreAny;

impl Body for StoreAny {
    #[inline(always)]
    unsafe fn run<const FULL: bool, const FUSED: bool>(
        m: &mut Machine<'_>,
        regs: Regs<'_>,
        inst: &Inst,
        mask: Mask,
    ) -> Flow {
        // SAFETY: as promised by the caller.
        unsafe {
            let addresses = widened(regs, inst);
            store_slow(m, regs, inst, &addresses, mask)
        }
    }
}

/// Returns the addresses of an access, with its offset, in 64 bits.
///
/// # Safety
/// See [`Regs`].
#[inline(always)]
pub(super) unsafe fn widened(regs: Regs<'_>, inst: &Inst) -> Lanes<u64> {
    if Access::unpack(inst.mods).wide_address {
        // SAFETY: as promised by the caller.
        u64::widen(unsafe { u64::read(regs, inst.a) }, inst.imm)
    } else {
        // SAFETY: as promised by the caller.
        u32::widen(unsafe { u32::read(regs, inst.a) }, inst.imm)
    }
}

/// Returns the address of the start of local memory in `space`, if the first lane of the mask accesses local memory.
#[inline(always)]
fn local_start(space: Space, addresses: &Lanes<u64>, mask: Mask) -> Option<u64> {
    match space {
        Space::Local => Some(0),
        Space::Generic => {
            let first = addresses[mask.trailing_zeros() as usize % LANES];
            (first >> WINDOW_BITS == LOCAL >> WINDOW_BITS).then_some(LOCAL)
        }
        _ => None,
    }
}

/// Returns the host addresses of the lanes of the mask, each valid for the access and aligned. Returns `None` if a lane
/// faults; the machine then has the fault.
pub(super) fn places(
    m: &mut Machine<'_>,
    inst: &Inst,
    access: &Access,
    addresses: &Lanes<u64>,
    mask: Mask,
    write: bool,
) -> Option<Lanes<*mut u8>> {
    let bytes = u64::from(access.element * access.count);
    let align = u64::from(access.align);
    if bytes == align
        && let Some(start) = local_start(access.space, addresses, mask)
        && let Some(places) = m.spaces.local(addresses, mask, bytes, start)
    {
        return Some(places);
    }
    let cache = &mut m.caches[inst.aux as usize];
    let fast = if bytes != align {
        None
    } else {
        match access.space {
            Space::Global | Space::Const => cache.global::<false>(addresses, mask, bytes),
            Space::Shared | Space::SharedCluster => cache.buffer::<false>(addresses, mask, bytes, m.spaces.shared(0)),
            Space::Generic => cache
                .global::<false>(addresses, mask, bytes)
                .or_else(|| cache.buffer::<false>(addresses, mask, bytes, m.spaces.shared(SHARED))),
            Space::Local | Space::Param => None,
        }
    };
    if fast.is_none() && bytes == align {
        let shared = |m: &mut Machine<'_>, start| {
            let cache = &mut m.caches[inst.aux as usize];
            cache.scattered_in(addresses, mask, bytes, m.spaces.shared(start))
        };
        let to_host = match access.space {
            Space::Global | Space::Const => cache.scattered(addresses, mask, bytes),
            Space::Shared | Space::SharedCluster => shared(m, 0),
            Space::Generic => match cache.scattered(addresses, mask, bytes) {
                None => shared(m, SHARED),
                there => there,
            },
            Space::Local | Space::Param => None,
        };
        if let Some(to_host) = to_host {
            return Some(addresses.map(|a| a.wrapping_add(to_host) as usize as *mut u8));
        }
    }
    let cache = &mut m.caches[inst.aux as usize];
    let placed = match fast {
        Some(host) => Placed::Pattern(host),
        None => match m
            .spaces
            .place(cache, access.space, addresses, mask, (bytes, align), write)
        {
            Ok(placed) => placed,
            Err(refusal) => {
                m.refuse(refusal, access.align, write);
                return None;
            }
        },
    };
    Some(match placed {
        Placed::Pattern(host) => cache.deltas.map(|delta| host.wrapping_add(delta as usize)),
        Placed::Each(each) => each,
    })
}

/// Runs any load.
///
/// # Safety
/// See [`Regs`].
#[inline(never)]
unsafe fn load_slow(m: &mut Machine<'_>, regs: Regs<'_>, inst: &Inst, addresses: &Lanes<u64>, mask: Mask) -> Flow {
    let access = Access::unpack(inst.mods);
    let Some(places) = places(m, inst, &access, addresses, mask, false) else {
        return Flow::Fault;
    };
    let slots = [inst.d, inst.b, inst.c, inst.e];
    for (k, slot) in slots.into_iter().enumerate().take(access.count as usize) {
        let offset = k * access.element as usize;
        let mut row = [0u64; LANES];
        macro_rules! each {
            ($load:ident as $ty:ty) => {
                for i in lanes::iter(mask) {
                    let at = places[i].wrapping_add(offset).cast_const();
                    // SAFETY: `places` checked the access of each lane of the mask and its alignment. The element is a
                    // part of it.
                    row[i] = unsafe { access::$load(at) } as $ty as u64;
                }
            };
        }
        match (access.element, access.signed) {
            (1, false) => each!(load8 as u8),
            (1, true) => each!(load8 as i8),
            (2, false) => each!(load16 as u16),
            (2, true) => each!(load16 as i16),
            (4, false) => each!(load32 as u32),
            (4, true) => each!(load32 as i32),
            _ => each!(load64 as u64),
        }
        // SAFETY: the destinations are of this frame and class, as promised by the caller.
        unsafe {
            match access.class {
                RegClass::B16 => u16::merge(regs, slot, row.map(|v| v as u16), mask),
                RegClass::B32 => u32::merge(regs, slot, row.map(|v| v as u32), mask),
                _ => u64::merge(regs, slot, row, mask),
            }
        }
    }
    if access.fence {
        fence(Ordering::SeqCst);
    }
    Flow::Next
}

/// Runs any store.
///
/// # Safety
/// See [`Regs`].
#[inline(never)]
unsafe fn store_slow(m: &mut Machine<'_>, regs: Regs<'_>, inst: &Inst, addresses: &Lanes<u64>, mask: Mask) -> Flow {
    let access = Access::unpack(inst.mods);
    if access.fence {
        fence(Ordering::SeqCst);
    }
    let Some(places) = places(m, inst, &access, addresses, mask, true) else {
        return Flow::Fault;
    };
    let slots = [inst.b, inst.d, inst.c, inst.e];
    for (k, slot) in slots.into_iter().enumerate().take(access.count as usize) {
        let offset = k * access.element as usize;
        // SAFETY: the sources are of this frame and class, as promised by the caller.
        let row: Lanes<u64> = unsafe {
            match access.class {
                RegClass::B16 => u16::read(regs, slot).map(u64::from),
                RegClass::B32 => u32::read(regs, slot).map(u64::from),
                _ => u64::read(regs, slot),
            }
        };
        macro_rules! each {
            ($store:ident as $ty:ty) => {
                for i in lanes::iter(mask) {
                    let at = places[i].wrapping_add(offset);
                    // SAFETY: `places` checked the access of each lane of the mask and its alignment. The element is a
                    // part of it.
                    unsafe { access::$store(at, row[i] as $ty) };
                }
            };
        }
        match access.element {
            1 => each!(store8 as u8),
            2 => each!(store16 as u16),
            4 => each!(store32 as u32),
            _ => each!(store64 as u64),
        }
    }
    Flow::Next
}
