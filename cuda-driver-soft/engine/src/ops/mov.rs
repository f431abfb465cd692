//! Handlers of `mov`, `mapa`, `getctarank` and `isspacep`, and of special registers that change while a kernel runs.

use super::mods::Mods;
use super::shapes::{Form, binary, binary_once, masks, unary, unary_hot, unary_once, unary_rare};
use crate::code::handlers::{Body, Copies, Handlers, Rare};
use crate::code::inst::{Flow, Inst};
use crate::code::machine::Machine;
use crate::code::registers::{Lane, Regs};
use crate::lanes::{self, LANES, Mask};
use crate::memory::AllocationKind;
use crate::memory::warp::{RANK_SHIFT, of_rank, resolve};
use ptx::ir::{Op, RegClass, Space, Special, Type::*};

pub(super) fn form(op: &Op) -> Option<Form> {
    Some(match op {
        Op::Mov { ty: Pred } => masks(1, |a, _, _| a),
        Op::Mov { ty } => of_class(match ty.size() {
            2 => RegClass::B16,
            4 => RegClass::B32,
            8 => RegClass::B64,
            _ => return None,
        })?,
        Op::Mapa { ty } => match ty.size() {
            4 => binary_once(|a: u32, rank: u32| of_rank(u64::from(a), rank) as u32),
            _ => binary_once(of_rank),
        },
        Op::Getctarank { ty } => match ty.size() {
            4 => unary_once(|a: u32| a >> RANK_SHIFT),
            _ => unary_once(|a: u64| a as u32 >> RANK_SHIFT),
        },
        Op::Isspacep { space } => Form {
            handlers: Rare::compile::<Isspacep>(),
            dsts: [Some(RegClass::Pred), None],
            srcs: [Some(RegClass::B64), None, None, None],
            mods: Mods(match space {
                Space::Global => 0,
                Space::Const => 1,
                Space::Shared => 2,
                Space::Local => 3,
                Space::Param => 4,
                Space::SharedCluster => ANY_SHARED,
                Space::Generic => return None,
            }),
        },
        _ => return None,
    })
}

/// Returns the form of `mov` between registers of a class. Returns `None` for registers of 128 bits, which have two
/// rows; the decoder copies each of them.
pub(crate) fn of_class(class: RegClass) -> Option<Form> {
    Some(match class {
        RegClass::Pred => masks(1, |a, _, _| a),
        RegClass::B16 => unary_once(|a: u16| a),
        RegClass::B32 => unary_hot(|a: u32| a),
        RegClass::B64 => unary_hot(|a: u64| a),
        RegClass::B128 => return None,
    })
}

/// Returns the form of `mov.b32 d, {a, b}` or `mov.b64 d, {a, b}`, by the class of the parts.
pub(crate) fn pack(part: RegClass) -> Option<Form> {
    Some(match part {
        RegClass::B16 => binary(|a: u16, b: u16| u32::from(a) | u32::from(b) << 16),
        RegClass::B32 => binary(|a: u32, b: u32| u64::from(a) | u64::from(b) << 32),
        _ => return None,
    })
}

/// Returns the form of `mov.b16 d, {a, b}`. Each part has 8 bits and is in a register of 16 bits.
pub(crate) fn pack_bytes() -> Form {
    binary_once(|a: u16, b: u16| a & 0xff | b << 8)
}

/// Returns the form for one part of 8 bits of `mov {d, e}, a`: the 8 bits of `a` from `shift` on.
pub(crate) fn byte(whole: RegClass, shift: u32) -> Option<Form> {
    let mods = Mods(shift);
    Some(match whole {
        RegClass::B16 => unary_rare(mods, |m: Mods, _, a: u16| a >> (m.0 & 15) & 0xff),
        RegClass::B32 => unary_rare(mods, |m: Mods, _, a: u32| (a >> (m.0 & 31)) as u16 & 0xff),
        _ => return None,
    })
}

/// Returns the form for one part of `mov {d, e}, a`: the bits of `a` from `shift` on.
pub(crate) fn extract(whole: RegClass, part: RegClass, shift: u32) -> Option<Form> {
    let mods = Mods(shift);
    Some(match (whole, part) {
        (RegClass::B32, RegClass::B16) => unary_rare(mods, |m: Mods, _, a: u32| (a >> (m.0 & 31)) as u16),
        (RegClass::B64, RegClass::B16) => unary_rare(mods, |m: Mods, _, a: u64| (a >> (m.0 & 63)) as u16),
        (RegClass::B64, RegClass::B32) if shift == 0 => unary(|a: u64| a as u32),
        (RegClass::B64, RegClass::B32) => unary(|a: u64| (a >> 32) as u32),
        _ => return None,
    })
}

/// The number of `.shared::cluster` in [`Inst::mods`].
const ANY_SHARED: u32 = 5;

struct Isspacep;

impl Body for Isspacep {
    #[inline(always)]
    unsafe fn run<const FULL: bool, const FUSED: bool>(
        m: &mut Machine<'_>,
        regs: Regs<'_>,
        inst: &Inst,
        mask: Mask,
    ) -> Flow {
        // SAFETY: the slot is of this frame and class, as promised by the caller.
        let a = unsafe { u64::read(regs, inst.a) };
        let mut inside = 0;
        for i in lanes::iter(mask) {
            let number = match resolve(Space::Generic, a[i]).0 {
                // An address of another block of the cluster is only in `.shared::cluster`.
                Space::Shared | Space::SharedCluster if inst.mods == ANY_SHARED || !m.spaces.is_own(a[i]) => ANY_SHARED,
                Space::Shared | Space::SharedCluster => 2,
                Space::Local => 3,
                // The window of a kernel's parameters is part of the global one.
                Space::Param if inst.mods == 0 => 0,
                Space::Param => 4,
                _ => match m.spaces.flight.lookup(a[i]) {
                    Some(record) if record.info().kind == AllocationKind::Constant => 1,
                    _ => 0,
                },
            };
            inside |= u32::from(number == inst.mods) << i;
        }
        // SAFETY: as above; the destination is a predicate.
        unsafe { regs.merge_mask(inst.d, inside, mask) };
        Flow::Next
    }
}

/// Returns the handlers, class and modifiers for reading a special register that changes while a kernel runs, or `None`
/// for the other special registers.
pub(crate) fn changing(special: Special) -> Option<(Handlers, RegClass, Mods)> {
    let (number, class) = match special {
        Special::Clock => (0, RegClass::B32),
        Special::ClockHi => (1, RegClass::B32),
        Special::Clock64 => (2, RegClass::B64),
        Special::Globaltimer => (3, RegClass::B64),
        Special::GlobaltimerLo => (4, RegClass::B32),
        Special::GlobaltimerHi => (5, RegClass::B32),
        _ => return None,
    };
    Some((Rare::compile::<ReadTimer>(), class, Mods(number)))
}

struct ReadTimer;

impl Body for ReadTimer {
    #[inline(always)]
    unsafe fn run<const FULL: bool, const FUSED: bool>(
        m: &mut Machine<'_>,
        regs: Regs<'_>,
        inst: &Inst,
        mask: Mask,
    ) -> Flow {
        let clock = m.read_clock();
        // Clock and timer are virtual, so that runs are reproducible. A tick is 1 ns, and the timer starts at 2^60 ns.
        let timer = clock.wrapping_add(1 << 60);
        // SAFETY: the slot is of this frame, and of the class that `changing` returned.
        unsafe {
            match inst.mods {
                0 => u32::merge(regs, inst.d, [clock as u32; LANES], mask),
                1 => u32::merge(regs, inst.d, [(clock >> 32) as u32; LANES], mask),
                2 => u64::merge(regs, inst.d, [clock; LANES], mask),
                3 => u64::merge(regs, inst.d, [timer; LANES], mask),
                4 => u32::merge(regs, inst.d, [timer as u32; LANES], mask),
                _ => u32::merge(regs, inst.d, [(timer >> 32) as u32; LANES], mask),
            }
        }
        Flow::Next
    }
}
