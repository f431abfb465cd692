//! Atomic operations: where `atom.global.add.u32` happens.
//!
//! The lanes of a warp do theirs one after the other, lowest first, as they do on a GPU where they meet in one place.

use super::memory::{Access, places, widened};
use crate::exec::code::{Flow, Inst};
use crate::exec::isa::{Body, Handlers, Rare, Worth};
use crate::exec::machine::Machine;
use crate::exec::registers::{Lane, Regs};
use crate::exec::semantics::{atomic, half, int};
use crate::lanes::{self, LANES, Mask};
use crate::memory::access;
use ptx::ir::{AtomOp, Order, RegClass, Space, Type};
use std::sync::atomic::{Ordering, fence};

/// Bits of [`Inst::mods`] above those of [`Access`]: the operation, its kind of number, and what it gives.
const OP_SHIFT: u32 = 17;
const KIND_SHIFT: u32 = 21;
pub(super) const HAS_RESULT: u32 = 1 << 26;

const OPS: [AtomOp; 10] = {
    use AtomOp::*;
    [And, Or, Xor, Add, Inc, Dec, Min, Max, Exch, Cas]
};

/// How the bits in memory are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Unsigned,
    Signed,
    F32,
    F64,
    F16,
    Bf16,
    F16x2,
    Bf16x2,
}

const KINDS: [Kind; 8] = {
    use Kind::*;
    [Unsigned, Signed, F32, F64, F16, Bf16, F16x2, Bf16x2]
};

/// Handlers and modifiers of `atom` and `red`. `None`: there is no such operation here.
pub(crate) fn form(
    op: AtomOp,
    ty: Type,
    access: &Access,
    has_result: bool,
) -> Option<(Handlers, u32)> {
    if access.count != 1 {
        return None;
    }
    let result = if has_result { HAS_RESULT } else { 0 };
    Some((
        Rare::compile::<Atomic>(),
        access.pack() | operation(op, ty)? | result,
    ))
}

/// An operation on values of a type, as a part of [`Inst::mods`]. `None`: there is none.
pub(super) fn operation(op: AtomOp, ty: Type) -> Option<u32> {
    use AtomOp::*;
    let kind = match ty {
        Type::B16 | Type::B32 | Type::B64 | Type::U16 | Type::U32 | Type::U64 => Kind::Unsigned,
        Type::S32 | Type::S64 => Kind::Signed,
        Type::F32 => Kind::F32,
        Type::F64 => Kind::F64,
        Type::F16 => Kind::F16,
        Type::BF16 => Kind::Bf16,
        Type::F16x2 => Kind::F16x2,
        Type::BF16x2 => Kind::Bf16x2,
        _ => return None,
    };
    let integer = matches!(kind, Kind::Unsigned | Kind::Signed);
    let fits = match op {
        And | Or | Xor | Exch | Cas => integer,
        Inc | Dec => ty == Type::U32,
        Min | Max => integer || matches!(kind, Kind::F16 | Kind::F16x2 | Kind::Bf16 | Kind::Bf16x2),
        Add => true,
    };
    if !fits {
        return None;
    }
    let op = OPS.iter().position(|o| *o == op)? as u32;
    let kind = KINDS.iter().position(|k| *k == kind)? as u32;
    Some(op << OP_SHIFT | kind << KIND_SHIFT)
}

/// What [`operation`] made a part of these modifiers: the new value from the old one and the operands.
pub(super) fn applied(mods: u32, bytes: u32, global: bool, a: u64, b: u64, c: u64) -> u64 {
    let op = OPS[(mods >> OP_SHIFT & 15) as usize % OPS.len()];
    let kind = KINDS[(mods >> KIND_SHIFT & 7) as usize];
    new_value(op, kind, bytes, global, a, b, c)
}

/// Whether the order in which threads do the operation can be seen: its result is used, or it rounds.
pub(crate) fn order_matters(op: AtomOp, ty: Type, has_result: bool, order: Order) -> bool {
    has_result
        || matches!(op, AtomOp::Exch | AtomOp::Cas | AtomOp::Inc | AtomOp::Dec)
        || (op == AtomOp::Add && ty.is_float())
        || !matches!(order, Order::Weak | Order::Relaxed(_))
}

/// The new value from the old one and the operands.
fn new_value(op: AtomOp, kind: Kind, bytes: u32, global: bool, a: u64, b: u64, c: u64) -> u64 {
    let f32_of = |bits: u64| f32::from_bits(bits as u32);
    let half = |f: fn(u16, u16) -> u16| u64::from(f(a as u16, b as u16));
    let pair = |f: fn(u32, u32) -> u32| u64::from(f(a as u32, b as u32));
    match (op, kind) {
        (AtomOp::And, _) => a & b,
        (AtomOp::Or, _) => a | b,
        (AtomOp::Xor, _) => a ^ b,
        (AtomOp::Exch, _) => b,
        (AtomOp::Cas, _) => atomic::cas(a, b, c),
        (AtomOp::Inc, _) => u64::from(atomic::inc(a as u32, b as u32)),
        (AtomOp::Dec, _) => u64::from(atomic::dec(a as u32, b as u32)),
        (AtomOp::Add, Kind::F32) => {
            u64::from(atomic::atom_add_f32(f32_of(a), f32_of(b), global).to_bits())
        }
        (AtomOp::Add, Kind::F64) => {
            atomic::atom_add_f64(f64::from_bits(a), f64::from_bits(b), global).to_bits()
        }
        (AtomOp::Add, Kind::F16) => half(atomic::atom_add_f16),
        (AtomOp::Add, Kind::Bf16) => half(atomic::atom_add_bf16),
        (AtomOp::Add, Kind::F16x2) => pair(|a, b| half::add_f16x2(a, b, false, false)),
        (AtomOp::Add, Kind::Bf16x2) => pair(half::add_bf16x2),
        (AtomOp::Add, _) => int::add(a, b),
        (AtomOp::Min, Kind::Signed) if bytes == 4 => {
            int::min(a as u32 as i32, b as u32 as i32) as u32 as u64
        }
        (AtomOp::Max, Kind::Signed) if bytes == 4 => {
            int::max(a as u32 as i32, b as u32 as i32) as u32 as u64
        }
        (AtomOp::Min, Kind::Signed) => int::min(a as i64, b as i64) as u64,
        (AtomOp::Max, Kind::Signed) => int::max(a as i64, b as i64) as u64,
        (AtomOp::Min, Kind::F16) => half(|a, b| half::min_f16(a, b, false, false, false)),
        (AtomOp::Max, Kind::F16) => half(|a, b| half::max_f16(a, b, false, false, false)),
        (AtomOp::Min, Kind::Bf16) => half(|a, b| half::min_bf16(a, b, false, false)),
        (AtomOp::Max, Kind::Bf16) => half(|a, b| half::max_bf16(a, b, false, false)),
        (AtomOp::Min, Kind::F16x2) => pair(|a, b| half::min_f16x2(a, b, false, false, false)),
        (AtomOp::Max, Kind::F16x2) => pair(|a, b| half::max_f16x2(a, b, false, false, false)),
        (AtomOp::Min, Kind::Bf16x2) => pair(|a, b| half::min_bf16x2(a, b, false, false)),
        (AtomOp::Max, Kind::Bf16x2) => pair(|a, b| half::max_bf16x2(a, b, false, false)),
        (AtomOp::Min, _) => int::min(a, b),
        (AtomOp::Max, _) => int::max(a, b),
    }
}

/// `a` the address, `b` and `c` the operands, `d` the result.
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
        let all = All {
            places: &places,
            mask,
            bytes: access.element,
            own: access.space == Space::Shared,
        };
        let op = OPS[(inst.mods >> OP_SHIFT & 15) as usize % OPS.len()];
        let kind = KINDS[(inst.mods >> KIND_SHIFT & 7) as usize];
        // SAFETY: `places` checked the access of each lane of the mask, to its alignment.
        let old = unsafe {
            match (op, kind) {
                (AtomOp::Add, Kind::Unsigned | Kind::Signed) => all.add(&b),
                (AtomOp::And, _) => all.each(|i, a| a & b[i]),
                (AtomOp::Or, _) => all.each(|i, a| a | b[i]),
                (AtomOp::Xor, _) => all.each(|i, a| a ^ b[i]),
                (AtomOp::Exch, _) => all.each(|i, _| b[i]),
                (AtomOp::Cas, _) => all.each(|i, a| atomic::cas(a, b[i], c[i])),
                (AtomOp::Min, Kind::Unsigned) => all.each(|i, a| int::min(a, b[i])),
                (AtomOp::Max, Kind::Unsigned) => all.each(|i, a| int::max(a, b[i])),
                _ => all.each(|i, a| {
                    let global = !is_shared(access.space, addresses[i]);
                    new_value(op, kind, access.element, global, a, b[i], c[i])
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

/// The places of an operation.
struct All<'p> {
    places: &'p [*mut u8; LANES],
    mask: Mask,
    bytes: u32,
    /// They are in the memory of a block, all of whose threads are run by one thread of the host.
    own: bool,
}

impl All<'_> {
    /// Replaces what is at each place by a function of the lane and of that, lane by lane. Gives the old values.
    ///
    /// # Safety
    /// The places of the lanes of the mask are valid for reads and writes, and aligned.
    #[inline(always)]
    unsafe fn each(&self, new: impl Fn(usize, u64) -> u64) -> [u64; LANES] {
        let mut old = [0; LANES];
        for i in lanes::iter(self.mask) {
            let (at, new) = (self.places[i], |a| new(i, a));
            // SAFETY: as promised by the caller.
            old[i] = unsafe {
                if self.own {
                    access::replace(at, self.bytes, new)
                } else {
                    access::update(at, self.bytes, new)
                }
            };
        }
        old
    }

    /// Adds. Where all lanes add to one place, as one step.
    ///
    /// # Safety
    /// As for [`each`](Self::each).
    unsafe fn add(&self, b: &[u64; LANES]) -> [u64; LANES] {
        let first = self.places[self.mask.trailing_zeros() as usize % LANES];
        if self.own || lanes::iter(self.mask).any(|i| self.places[i] != first) || self.mask == 0 {
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

fn is_shared(space: Space, address: u64) -> bool {
    use crate::memory::warp::resolve;
    matches!(
        resolve(space, address).0,
        Space::Shared | Space::SharedCluster
    )
}

/// # Safety
/// See [`Regs`]; the slot is of this class.
unsafe fn operand(
    regs: Regs<'_>,
    slot: crate::exec::registers::Slot,
    class: RegClass,
) -> [u64; LANES] {
    // SAFETY: as promised by the caller.
    unsafe {
        match class {
            RegClass::B16 => u16::read(regs, slot).map(u64::from),
            RegClass::B32 => u32::read(regs, slot).map(u64::from),
            _ => u64::read(regs, slot),
        }
    }
}
