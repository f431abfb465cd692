//! The registers of a warp in one frame: each register is a row of 32 values, one per lane; a predicate is a mask.
//!
//! Access by handlers is unsafe: handlers run some 10^9 times a second, and a bounds check per operand would double the
//! cost of an instruction. [`Regs`] states the safety contract.

use crate::lanes::{self, FULL, LANES, Lanes, Mask};
use crate::memory::buffer::Buffer;
use crate::memory_budget::MemoryReservation;
use ptx::ir::RegClass;
use std::marker::PhantomData;

/// The location of a register: its offset in bytes from the start of the frame's registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Slot(pub(crate) u32);

/// Size of a predicate, which is a mask, in bytes.
pub(crate) const PREDICATE_BYTES: u32 = 4;

/// Size of the widest row that a handler reads or writes at once, in bytes.
pub(crate) const WIDEST_ROW: u32 = 8 * 32;

/// Returns the size of a register of this class in bytes.
pub(crate) const fn bytes_of(class: RegClass) -> u32 {
    match class {
        RegClass::Pred => PREDICATE_BYTES,
        RegClass::B16 => 2 * 32,
        RegClass::B32 => 4 * 32,
        RegClass::B64 => 8 * 32,
        // A row of low halves, then a row of high halves.
        RegClass::B128 => 2 * 8 * 32,
    }
}

/// Returns the size of a value of this class in one lane in bytes: 0 for a predicate, 8 for each half of 128 bits.
pub(crate) const fn lane_bytes(class: RegClass) -> u8 {
    match class {
        RegClass::Pred => 0,
        RegClass::B16 => 2,
        RegClass::B32 => 4,
        RegClass::B64 | RegClass::B128 => 8,
    }
}

/// The registers of one frame.
pub(crate) struct RegFile {
    /// Rows at multiples of 64; a buffer starts at a multiple of 128.
    rows: Buffer,
    _reservation: MemoryReservation,
}

impl RegFile {
    /// Returns registers that are all zero; `bytes` is the code's [`frame_bytes`](super::function::Code::frame_bytes).
    /// Returns `None` if the host is out of memory or the process has reached its
    /// [limit](crate::memory_budget).
    pub(crate) fn new(bytes: u32) -> Option<Self> {
        let bytes = u64::from(bytes).next_multiple_of(64);
        Some(RegFile {
            _reservation: MemoryReservation::new(bytes)?,
            rows: Buffer::new(bytes)?,
        })
    }

    /// Returns the size in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.rows.len()
    }

    /// Returns access to the registers for handlers.
    pub(crate) fn regs(&mut self) -> Regs<'_> {
        Regs {
            base: self.rows.host(),
            _file: PhantomData,
        }
    }

    /// Sets some lanes of a row of values of `width` bytes (0 for a predicate, which takes the lowest bit).
    ///
    /// The scheduler calls this function to fill constants and pass values; handlers use [`Regs`].
    pub(crate) fn set(&mut self, slot: Slot, width: u8, lanes: Mask, value: impl Fn(usize) -> u64) {
        let bytes = self.bytes_mut();
        let start = slot.0 as usize;
        if width == 0 {
            let Some(at) = bytes.get_mut(start..start + 4) else {
                return;
            };
            let mut mask = u32::from_le_bytes([at[0], at[1], at[2], at[3]]);
            for lane in lanes::iter(lanes) {
                mask = mask & !(1 << lane) | ((value(lane) as u32 & 1) << lane);
            }
            at.copy_from_slice(&mask.to_le_bytes());
            return;
        }
        let width = usize::from(width);
        for lane in lanes::iter(lanes) {
            let start = start + lane * width;
            if let Some(at) = bytes.get_mut(start..start + width) {
                at.copy_from_slice(&value(lane).to_le_bytes()[..width]);
            }
        }
    }

    /// Sets a row to one value in all lanes.
    pub(crate) fn set_all(&mut self, slot: Slot, width: u8, value: u64) {
        let start = slot.0 as usize;
        let bytes = self.bytes_mut();
        macro_rules! fill {
            ($ty:ty, $bytes:literal) => {
                if let Some(row) = bytes.get_mut(start..start + 32 * $bytes) {
                    let value = (value as $ty).to_le_bytes();
                    row.chunks_exact_mut($bytes)
                        .for_each(|lane| lane.copy_from_slice(&value));
                }
            };
        }
        match width {
            2 => fill!(u16, 2),
            4 => fill!(u32, 4),
            8 => fill!(u64, 8),
            _ => self.set(slot, width, FULL, |_| value),
        }
    }

    /// Returns true if in each group of `lanes` lanes of a row of values of `width` bytes (2, 4 or 8), each value is
    /// `step` more than the one before. In a predicate (`width` 0) and in a register of 128 bits (`width` 16), the
    /// lanes of each group must be the same.
    pub(crate) fn is_affine(&mut self, row: Slot, width: u8, step: i64, lanes: u32) -> bool {
        if width == 16 {
            // Each half has a row of its own.
            let upper = Slot(row.0 + 8 * LANES as u32);
            return self.is_affine(row, 8, 0, lanes) && self.is_affine(upper, 8, 0, lanes);
        }
        let (start, lanes) = (row.0 as usize, lanes as usize);
        macro_rules! check {
            ($ty:ty, $bytes:literal) => {{
                let Some(row) = self.bytes_mut().get(start..start + 32 * $bytes) else {
                    return false;
                };
                let mut differs = 0;
                for group in row.chunks_exact(lanes * $bytes) {
                    let value = |lane: &[u8]| lane.try_into().map_or(0, <$ty>::from_ne_bytes);
                    let first = value(&group[..$bytes]);
                    for (i, lane) in group.chunks_exact($bytes).enumerate() {
                        differs |= value(lane) ^ first.wrapping_add((step as $ty).wrapping_mul(i as $ty));
                    }
                }
                differs == 0
            }};
        }
        match width {
            8 => check!(u64, 8),
            4 => check!(u32, 4),
            2 => check!(u16, 2),
            _ => {
                let mask = (0..LANES).fold(0, |mask, lane| mask | (self.get(row, 0, lane) as u32) << lane);
                let group = u32::MAX >> (LANES - lanes);
                (0..LANES)
                    .step_by(lanes)
                    .all(|first| [0, group].contains(&(mask >> first & group)))
            }
        }
    }

    /// Sets the lanes of a group of `lanes` lanes in a row of values of `width` bytes (4 or 8) to the value of its
    /// first lane, plus `step` for each further lane. Does nothing for other widths.
    pub(crate) fn spread_group(&mut self, row: Slot, width: u8, step: i64, lanes: u32, group: u32) {
        macro_rules! fill {
            ($ty:ty, $bytes:literal) => {{
                let lanes = lanes as usize;
                let start = row.0 as usize + group as usize * lanes * $bytes;
                let Some(group) = self.bytes_mut().get_mut(start..start + lanes * $bytes) else {
                    return;
                };
                let first = group[..$bytes].try_into().map_or(0, <$ty>::from_ne_bytes);
                for (i, lane) in group.chunks_exact_mut($bytes).enumerate() {
                    let value = first.wrapping_add((step as $ty).wrapping_mul(i as $ty));
                    lane.copy_from_slice(&value.to_ne_bytes());
                }
            }};
        }
        match width {
            8 => fill!(u64, 8),
            4 => fill!(u32, 4),
            // Compiled code always writes all lanes of predicates, and of registers of 16 and 128 bits.
            _ => {}
        }
    }

    /// Returns the value of one lane in a row of values of `width` bytes (0 for a predicate).
    pub(crate) fn get(&mut self, slot: Slot, width: u8, lane: usize) -> u64 {
        let width_bytes = if width == 0 { 4 } else { usize::from(width) };
        let start = slot.0 as usize + if width == 0 { 0 } else { lane * width_bytes };
        let mut value = [0; 8];
        if let Some(at) = self.bytes_mut().get(start..start + width_bytes) {
            value[..width_bytes].copy_from_slice(at);
        }
        let value = u64::from_le_bytes(value);
        if width == 0 { value >> lane & 1 } else { value }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self.rows.as_mut_slice()
    }

    /// Sets a range of bytes to zero.
    pub(crate) fn clear(&mut self, start: u32, bytes: u32) {
        self.rows.clear_range(start as usize, bytes as usize);
    }
}

/// Unchecked access to the registers of a frame.
///
/// A `Regs` does not know its size. All functions that access a register are unsafe, with the condition that *the slot,
/// read as a row of the given type, lies inside the frame's registers and is aligned*. The decoder upholds this
/// condition: it makes all slots inside `Code::frame_bytes`, with rows at multiples of 64. `Code::check` checks the
/// slots of each instruction, as the widest row. `Frame` keeps a `RegFile` of the size that its code needs.
#[derive(Clone, Copy)]
pub(crate) struct Regs<'a> {
    base: *mut u8,
    _file: PhantomData<&'a mut RegFile>,
}

/// A type of the values in a register.
pub(crate) trait Lane: Copy + Default + 'static {
    /// The class of the registers.
    const CLASS: RegClass;

    /// Reads all lanes.
    ///
    /// # Safety
    /// See [`Regs`].
    unsafe fn read(regs: Regs<'_>, slot: Slot) -> Lanes<Self>;

    /// Sets all lanes.
    ///
    /// # Safety
    /// See [`Regs`].
    unsafe fn write(regs: Regs<'_>, slot: Slot, values: Lanes<Self>);

    /// Sets the lanes of the mask.
    ///
    /// # Safety
    /// See [`Regs`].
    unsafe fn merge(regs: Regs<'_>, slot: Slot, values: Lanes<Self>, mask: Mask);
}

impl Regs<'_> {
    #[inline(always)]
    fn row<T>(self, slot: Slot) -> *mut Lanes<T> {
        self.base.wrapping_add(slot.0 as usize).cast()
    }

    /// Returns a row of 32 bits per lane.
    ///
    /// # Safety
    /// See [`Regs`]; nothing writes the registers as long as the result is used.
    #[inline(always)]
    pub(crate) unsafe fn narrow_row<'r>(self, slot: Slot) -> &'r Lanes<u32> {
        // SAFETY: the caller upholds the contract; slots of rows are multiples of 64, and any bytes are valid.
        unsafe { &*self.row::<u32>(slot) }
    }

    /// Returns a row of 64 bits per lane.
    ///
    /// # Safety
    /// See [`narrow_row`](Self::narrow_row).
    #[inline(always)]
    pub(crate) unsafe fn wide_row<'r>(self, slot: Slot) -> &'r Lanes<u64> {
        // SAFETY: as for `narrow_row`.
        unsafe { &*self.row::<u64>(slot) }
    }

    /// Returns the address of the registers, for compiled code.
    pub(crate) fn frame(self) -> *mut u8 {
        self.base
    }

    /// Returns a pointer to the row of a register, for the primitives of `memory`.
    ///
    /// # Safety
    /// See [`Regs`]. The row must not be accessed while another access to the frame's registers happens.
    #[inline(always)]
    pub(crate) unsafe fn row_ptr<T: Lane>(self, slot: Slot) -> *mut Lanes<T> {
        self.row(slot)
    }

    /// Reads a predicate.
    ///
    /// # Safety
    /// See [`Regs`].
    #[inline(always)]
    pub(crate) unsafe fn mask(self, slot: Slot) -> Mask {
        // SAFETY: the caller upholds the contract of `Regs`; slots of predicates are multiples of 4.
        unsafe { *self.row::<()>(slot).cast::<u32>() }
    }

    /// Sets the lanes of `mask` in a predicate.
    ///
    /// # Safety
    /// See [`Regs`].
    #[inline(always)]
    pub(crate) unsafe fn merge_mask(self, slot: Slot, value: Mask, mask: Mask) {
        let at = self.row::<()>(slot).cast::<u32>();
        // SAFETY: as in `mask`.
        unsafe { *at = (*at & !mask) | (value & mask) };
    }
}

macro_rules! number {
    ($($ty:ident, $bits:ident, $class:ident, |$m:ident| $wide:expr;)*) => {$(
        impl Lane for $ty {
            const CLASS: RegClass = RegClass::$class;

            #[inline(always)]
            unsafe fn read(regs: Regs<'_>, slot: Slot) -> Lanes<Self> {
                // SAFETY: the caller upholds the contract of `Regs`; slots of rows are multiples of 64, and any bytes
                // are valid for this type.
                unsafe { *regs.row::<Self>(slot) }
            }

            #[inline(always)]
            unsafe fn write(regs: Regs<'_>, slot: Slot, values: Lanes<Self>) {
                // SAFETY: as for `read`.
                unsafe { *regs.row::<Self>(slot) = values }
            }

            #[inline(always)]
            unsafe fn merge(regs: Regs<'_>, slot: Slot, values: Lanes<Self>, mask: Mask) {
                // SAFETY: the caller upholds the contract of `Regs`.
                let mut row = unsafe { Self::read(regs, slot) };
                let lanes = lanes::expand(mask);
                for i in 0..32 {
                    let $m = lanes[i];
                    let m: $bits = $wide;
                    let (old, new): ($bits, $bits) = (row[i].to_bits_(), values[i].to_bits_());
                    row[i] = <$ty>::from_bits_((new & m) | (old & !m));
                }
                // SAFETY: the caller upholds the contract of `Regs`.
                unsafe { Self::write(regs, slot, row) }
            }
        }
    )*};
}

/// Conversion to and from bits, under the same names for integers and floats.
trait Bits<B> {
    fn to_bits_(self) -> B;
    fn from_bits_(bits: B) -> Self;
}

macro_rules! bits {
    ($($ty:ident $bits:ident)*) => {$(
        impl Bits<$bits> for $ty {
            #[inline(always)]
            fn to_bits_(self) -> $bits {
                self as $bits
            }

            #[inline(always)]
            fn from_bits_(bits: $bits) -> Self {
                bits as $ty
            }
        }
    )*};
}
bits! { u16 u16 i16 u16 u32 u32 i32 u32 u64 u64 i64 u64 }

impl Bits<u32> for f32 {
    #[inline(always)]
    fn to_bits_(self) -> u32 {
        self.to_bits()
    }

    #[inline(always)]
    fn from_bits_(bits: u32) -> Self {
        f32::from_bits(bits)
    }
}

impl Bits<u64> for f64 {
    #[inline(always)]
    fn to_bits_(self) -> u64 {
        self.to_bits()
    }

    #[inline(always)]
    fn from_bits_(bits: u64) -> Self {
        f64::from_bits(bits)
    }
}

number! {
    u16, u16, B16, |m| m as u16;
    i16, u16, B16, |m| m as u16;
    u32, u32, B32, |m| m;
    i32, u32, B32, |m| m;
    f32, u32, B32, |m| m;
    u64, u64, B64, |m| m as i32 as i64 as u64;
    i64, u64, B64, |m| m as i32 as i64 as u64;
    f64, u64, B64, |m| m as i32 as i64 as u64;
}

impl Lane for bool {
    const CLASS: RegClass = RegClass::Pred;

    #[inline(always)]
    unsafe fn read(regs: Regs<'_>, slot: Slot) -> Lanes<Self> {
        // SAFETY: the caller upholds the contract of `Regs`.
        let lanes = lanes::expand(unsafe { regs.mask(slot) });
        let mut out = [false; LANES];
        for i in 0..LANES {
            out[i] = lanes[i] != 0;
        }
        out
    }

    #[inline(always)]
    unsafe fn write(regs: Regs<'_>, slot: Slot, values: Lanes<Self>) {
        // SAFETY: the caller upholds the contract of `Regs`.
        unsafe { regs.merge_mask(slot, lanes::pack(values), !0) }
    }

    #[inline(always)]
    unsafe fn merge(regs: Regs<'_>, slot: Slot, values: Lanes<Self>, mask: Mask) {
        // SAFETY: the caller upholds the contract of `Regs`.
        unsafe { regs.merge_mask(slot, lanes::pack(values), mask) }
    }
}
