//! Handlers of atomic operations, such as `atom.global.add.u32`.
//!
//! The results are those of lanes that run the operation one after the other, lowest first, which is also the order on
//! a GPU if their addresses are equal.

use super::memory::{Access, places, widened};
use crate::code::handlers::{Body, Copies, Handlers, Rare};
use crate::code::inst::{Flow, Inst};
use crate::code::machine::Machine;
use crate::code::registers::{Lane, Regs};
use crate::lanes::{self, LANES, Mask};
use crate::memory::access;
use crate::semantics::{atomic, half, int};
use ptx::ir::{AtomOp, Order, RegClass, Space, Type};
use std::sync::atomic::{Ordering, fence};

/// Position of the operation in [`Inst::mods`], above the bits of [`Access`].
const OP_SHIFT: u32 = 17;
/// Position of the operation's number format.
const FORMAT_SHIFT: u32 = 21;
/// Flag for a result.
pub(super) const HAS_RESULT: u32 = 1 << 26;

/// The operations by their numbers in [`Inst::mods`].
const OPS: [AtomOp; 10] = {
    use AtomOp::*;
    [And, Or, Xor, Add, Inc, Dec, Min, Max, Exch, Cas]
};

/// The interpretation of the bits in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NumberFormat {
    Unsigned,
    Signed,
    F32,
    F64,
    F16,
    Bf16,
    F16x2,
    Bf16x2,
}

/// The number formats by their numbers in [`Inst::mods`].
const FORMATS: [NumberFormat; 8] = {
    use NumberFormat::*;
    [Unsigned, Signed, F32, F64, F16, Bf16, F16x2, Bf16x2]
};

/// Returns the handlers and modifiers of `atom` or `red`, or `None` if the operation is not implemented.
pub(crate) fn form(op: AtomOp, ty: Type, access: &Access, has_result: bool) -> Option<(Handlers, u32)> {
    if access.count != 1 {
        return None;
    }
    let result = if has_result { HAS_RESULT } else { 0 };
    Some((Rare::compile::<Atomic>(), access.pack() | operation(op, ty)? | result))
}

/// Encodes an operation on values of a type as a part of [`Inst::mods`]. Returns `None` if it is not implemented.
pub(super) fn operation(op: AtomOp, ty: Type) -> Option<u32> {
    use AtomOp::*;
    let format = match ty {
        Type::B16 | Type::B32 | Type::B64 | Type::U16 | Type::U32 | Type::U64 => NumberFormat::Unsigned,
        Type::S32 | Type::S64 => NumberFormat::Signed,
        Type::F32 => NumberFormat::F32,
        Type::F64 => NumberFormat::F64,
        Type::F16 => NumberFormat::F16,
        Type::BF16 => NumberFormat::Bf16,
        Type::F16x2 => NumberFormat::F16x2,
        Type::BF16x2 => NumberFormat::Bf16x2,
        _ => return None,
    };
    let integer = matches!(format, NumberFormat::Unsigned | NumberFormat::Signed);
    let fits = match op {
        And | Or | Xor | Exch | Cas => integer,
        Inc | Dec => ty == Type::U32,
        Min | Max => {
            integer
                || matches!(
                    format,
                    NumberFormat::F16 | NumberFormat::F16x2 | NumberFormat::Bf16 | NumberFormat::Bf16x2
                )
        }
        Add => true,
    };
    if !fits {
        return None;
    }
    let op = OPS.iter().position(|o| *o == op)? as u32;
    let format = FORMATS.iter().position(|f| *f == format)? as u32;
    Some(op << OP_SHIFT | format << FORMAT_SHIFT)
}

/// Applies the operation that [`operation`] encoded in the modifiers: returns the new value for the old value `a` and
/// the operands `b` and `c`. `global` is as for [`new_value`].
pub(super) fn applied(mods: u32, bytes: u32, global: bool, a: u64, b: u64, c: u64) -> u64 {
    let op = OPS[(mods >> OP_SHIFT & 15) as usize % OPS.len()];
    let format = FORMATS[(mods >> FORMAT_SHIFT & 7) as usize];
    new_value(op, format, bytes, global, a, b, c)
}

/// Returns true if the order in which threads run the operation is visible, for example because it returns the old
/// value or because it rounds sums.
pub(crate) fn order_matters(op: AtomOp, ty: Type, has_result: bool, order: Order) -> bool {
    has_result
        || matches!(op, AtomOp::Exch | AtomOp::Cas | AtomOp::Inc | AtomOp::Dec)
        || (op == AtomOp::Add && ty.is_float())
        || !matches!(order, Order::Weak | Order::Relaxed(_))
}

/// Returns the new value for the old value `a` and the operands `b` and `c`. `global` is true for global memory, where
/// an H200 adds `.f32` and `.f64` differently than in shared memory.
fn new_value(op: AtomOp, format: NumberFormat, bytes: u32, global: bool, a: u64, b: u64, c: u64) -> u64 {
    let f32_of = |bits: u64| f32::from_bits(bits as u32);
    let half = |f: fn(u16, u16) -> u16| u64::from(f(a as u16, b as u16));
    let pair = |f: fn(u32, u32) -> u32| u64::from(f(a as u32, b as u32));
    match (op, format) {
        (AtomOp::And, _) => a & b,
        (AtomOp::Or, _) => a | b,
        (AtomOp::Xor, _) => a ^ b,
        (AtomOp::Exch, _) => b,
        (AtomOp::Cas, _) => atomic::cas(a, b, c),
        (AtomOp::Inc, _) => u64::from(atomic::inc(a as u32, b as u32)),
        (AtomOp::Dec, _) => u64::from(atomic::dec(a as u32, b as u32)),
        (AtomOp::Add, NumberFormat::F32) => u64::from(atomic::atom_add_f32(f32_of(a), f32_of(b), global).to_bits()),
        (AtomOp::Add, NumberFormat::F64) => {
            atomic::atom_add_f64(f64::from_bits(a), f64::from_bits(b), global).to_bits()
        }
        (AtomOp::Add, NumberFormat::F16) => half(atomic::atom_add_f16),
        (AtomOp::Add, NumberFormat::Bf16) => half(atomic::atom_add_bf16),
        (AtomOp::Add, NumberFormat::F16x2) => pair(|a, b| half::add_f16x2(a, b, false, false)),
        (AtomOp::Add, NumberFormat::Bf16x2) => pair(half::add_bf16x2),
        (AtomOp::Add, _) => int::add(a, b),
        (AtomOp::Min, NumberFormat::Signed) if bytes == 4 => int::min(a as u32 as i32, b as u32 as i32) as u32 as u64,
        (AtomOp::Max, NumberFormat::Signed) if bytes == 4 => int::max(a as u32 as i32, b as u32 as i32) as u32 as u64,
        (AtomOp::Min, NumberFormat::Signed) => int::min(a as i64, b as i64) as u64,
        (AtomOp::Max, NumberFormat::Signed) => int::max(a as i64, b as i64) as u64,
        (AtomOp::Min, NumberFormat::F16) => half(|a, b| half::min_f16(a, b, false, false, false)),
        (AtomOp::Max, NumberFormat::F16) => half(|a, b| half::max_f16(a, b, false, false, false)),
        (AtomOp::Min, NumberFormat::Bf16) => half(|a, b| half::min_bf16(a, b, false, false)),
        (AtomOp::Max, NumberFormat::Bf16) => half(|a, b| half::max_bf16(a, b, false, false)),
        (AtomOp::Min, NumberFormat::F16x2) => pair(|a, b| half::min_f16x2(a, b, false, false, false)),
        (AtomOp::Max, NumberFormat::F16x2) => pair(|a, b| half::max_f16x2(a, b, false, false, false)),
        (AtomOp::Min, NumberFormat::Bf16x2) => pair(|a, b| half::min_bf16x2(a, b, false, false)),
        (AtomOp::Max, NumberFormat::Bf16x2) => pair(|a, b| half::max_bf16x2(a, b, false, false)),
        (AtomOp::Min, _) => int::min(a, b),
        (AtomOp::Max, _) => int::max(a, b),
    }
}

/// An operation on the address `a`, with the operands `b` and `c` and the result `d`.
struct Atomic;

impl Body for Atomic {
    #[inline(always)]
    unsafe fn run<const FULL: bool, const FUSED: bool>(
        m: &mut Machine<'_>,
        regs: Regs<'_>,
        inst: &Inst,
        mask: Mask,
    ) -> Flow {
        let access = Access::unpack(inst.mods);
        // SAFETY: the slots are of this frame and class, as promised by the caller.
        let (addresses, b, c) = unsafe {
            (
                widened(regs, inst),
                operand(regs, inst.b, access.class),
                operand(regs, inst.c, access.class),
            )
        };
        if access.fence {
            fence(Ordering::SeqCst);
        }
        let Some(places) = places(m, inst, &access, &addresses, mask, true) else {
            return Flow::Fault;
        };
        let all = AtomicLanes {
            places: &places,
            mask,
            bytes: access.element,
            block_local: access.space == Space::Shared,
        };
        let op = OPS[(inst.mods >> OP_SHIFT & 15) as usize % OPS.len()];
        let format = FORMATS[(inst.mods >> FORMAT_SHIFT & 7) as usize];
        // SAFETY: `places` checked the access of each lane of the mask, and its alignment.
        let old = unsafe {
            match (op, format) {
                (AtomOp::Add, NumberFormat::Unsigned | NumberFormat::Signed) => all.add(&b),
                (AtomOp::And, _) => all.each(|i, a| a & b[i]),
                (AtomOp::Or, _) => all.each(|i, a| a | b[i]),
                (AtomOp::Xor, _) => all.each(|i, a| a ^ b[i]),
                (AtomOp::Exch, _) => all.each(|i, _| b[i]),
                (AtomOp::Cas, _) => all.each(|i, a| atomic::cas(a, b[i], c[i])),
                (AtomOp::Min, NumberFormat::Unsigned) => all.each(|i, a| int::min(a, b[i])),
                (AtomOp::Max, NumberFormat::Unsigned) => all.each(|i, a| int::max(a, b[i])),
                _ => all.each(|i, a| {
                    let global = !is_shared(access.space, addresses[i]);
                    new_value(op, format, access.element, global, a, b[i], c[i])
                }),
            }
        };
        if access.fence {
            fence(Ordering::SeqCst);
        }
        if inst.mods & HAS_RESULT != 0 {
            // SAFETY: the destination is of this frame and class, as promised by the caller.
            unsafe {
                match access.class {
                    RegClass::B16 => u16::merge(regs, inst.d, old.map(|v| v as u16), mask),
                    RegClass::B32 => u32::merge(regs, inst.d, old.map(|v| v as u32), mask),
                    _ => u64::merge(regs, inst.d, old, mask),
                }
            }
        }
        Flow::Next
    }
}

/// The host addresses of an operation.
struct AtomicLanes<'p> {
    places: &'p [*mut u8; LANES],
    mask: Mask,
    bytes: u32,
    /// True if the addresses are in shared memory of the block. One host thread runs all threads of a block, so no
    /// other host thread accesses them.
    block_local: bool,
}

impl AtomicLanes<'_> {
    /// Replaces the value at each address by a function of the lane and the value, lane by lane. Returns the old
    /// values.
    ///
    /// # Safety
    /// The addresses of the lanes of the mask must be valid for reads and writes, and aligned.
    #[inline(always)]
    unsafe fn each(&self, new: impl Fn(usize, u64) -> u64) -> [u64; LANES] {
        let mut old = [0; LANES];
        for i in lanes::iter(self.mask) {
            let (at, new) = (self.places[i], |a| new(i, a));
            // SAFETY: as promised by the caller.
            old[i] = unsafe {
                if self.block_local {
                    access::replace(at, self.bytes, new)
                } else {
                    access::update(at, self.bytes, new)
                }
            };
        }
        old
    }

    /// Adds `b` to the values. If all lanes add to one address that other blocks may access, adds the sum in one step.
    /// Returns the old values.
    ///
    /// # Safety
    /// As for [`each`](Self::each).
    unsafe fn add(&self, b: &[u64; LANES]) -> [u64; LANES] {
        let first = self.places[self.mask.trailing_zeros() as usize % LANES];
        if self.block_local || lanes::iter(self.mask).any(|i| self.places[i] != first) || self.mask == 0 {
            // SAFETY: as promised by the caller.
            return unsafe { self.each(|i, a| a.wrapping_add(b[i])) };
        }
        let (mut old, mut sum) = ([0; LANES], 0u64);
        for i in lanes::iter(self.mask) {
            old[i] = sum;
            sum = sum.wrapping_add(b[i]);
        }
        // SAFETY: as promised by the caller.
        let before = unsafe { access::update(first, self.bytes, |a| a.wrapping_add(sum)) };
        old.map(|sum| sum.wrapping_add(before))
    }
}

/// Returns true if an address is in shared memory.
fn is_shared(space: Space, address: u64) -> bool {
    use crate::memory::warp::resolve;
    matches!(resolve(space, address).0, Space::Shared | Space::SharedCluster)
}

/// Reads an operand, zero-extended.
///
/// # Safety
/// See [`Regs`]; the slot is of this class.
unsafe fn operand(regs: Regs<'_>, slot: crate::code::registers::Slot, class: RegClass) -> [u64; LANES] {
    // SAFETY: as promised by the caller.
    unsafe {
        match class {
            RegClass::B16 => u16::read(regs, slot).map(u64::from),
            RegClass::B32 => u32::read(regs, slot).map(u64::from),
            _ => u64::read(regs, slot),
        }
    }
}
