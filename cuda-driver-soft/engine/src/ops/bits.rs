//! Handlers of instructions on bit fields, bytes and carries, such as `bfe.u32` and `add.cc.u32`.

use super::mods::Mods;
use super::shapes::{
    Form, binary_once, binary_rare, carrying, in_place, quaternary, quaternary_once, ternary, ternary_mods,
    ternary_once, ternary_rare, unary, unary_once, unary_rare,
};
use crate::semantics::bits::{self, Permute};
use crate::semantics::compare::{Property, testp_f32, testp_f64};
use crate::semantics::float::{copysign_f32, copysign_f64};
use crate::semantics::{carry, int, logic};
use ptx::ir::{FloatTest, Op, PrmtMode, Type::*};

pub(super) fn form(op: &Op) -> Option<Form> {
    Some(match *op {
        Op::Bfe { ty: U32 } => ternary(bits::bfe::<u32>),
        Op::Bfe { ty: S32 } => ternary(bits::bfe::<i32>),
        Op::Bfe { ty: U64 } => ternary_once(bits::bfe::<u64>),
        Op::Bfe { ty: S64 } => ternary_once(bits::bfe::<i64>),
        Op::Bfi { ty: B32 } => quaternary(bits::bfi::<u32>),
        Op::Bfi { ty: B64 } => quaternary_once(bits::bfi::<u64>),
        Op::Bfind { ty, shiftamt } => {
            let mods = Mods(u32::from(shiftamt));
            match ty {
                U32 => unary_rare(mods, |m, _, a: u32| bits::bfind(a, m.0 != 0)),
                S32 => unary_rare(mods, |m, _, a: i32| bits::bfind(a, m.0 != 0)),
                U64 => unary_rare(mods, |m, _, a: u64| bits::bfind(a, m.0 != 0)),
                S64 => unary_rare(mods, |m, _, a: i64| bits::bfind(a, m.0 != 0)),
                _ => return None,
            }
        }
        Op::Bmsk { clamp } => binary_rare(Mods(u32::from(!clamp)), |m, _, a, b| bits::bmsk(a, b, m.0 != 0)),
        Op::Szext { ty, clamp } => {
            let mods = Mods(u32::from(!clamp));
            match ty {
                U32 => binary_rare(mods, |m, _, a: u32, b| bits::szext(a, b, m.0 != 0)),
                S32 => binary_rare(mods, |m, _, a: i32, b| bits::szext(a, b, m.0 != 0)),
                _ => return None,
            }
        }
        Op::Brev { ty: B32 } => unary(bits::brev::<u32>),
        Op::Brev { ty: B64 } => unary_once(bits::brev::<u64>),
        Op::Clz { ty: B32 } => unary(bits::clz::<u32>),
        Op::Clz { ty: B64 } => unary_once(bits::clz::<u64>),
        Op::Popc { ty: B32 } => unary(bits::popc::<u32>),
        Op::Popc { ty: B64 } => unary_once(bits::popc::<u64>),
        Op::Fns => ternary_rare(Mods(0), |_, _, a, b, c| bits::fns(a, b, c)),
        Op::Lop3 { lut, bool_op: None } => {
            ternary_mods(Mods(u32::from(lut)), |m, _, a, b, c| logic::lop3(a, b, c, m.0 as u8))
        }
        Op::Prmt { mode: PrmtMode::Index } => ternary(|a, b, c| bits::prmt(a, b, c, Permute::Generic)),
        Op::Prmt { mode } => {
            let mods = Mods(PERMUTES.iter().position(|(m, _)| *m == mode)? as u32);
            ternary_rare(mods, |m, _, a, b, c| {
                bits::prmt(a, b, c, PERMUTES[m.0 as usize % PERMUTES.len()].1)
            })
        }
        Op::Shf { left, clamp } => {
            let mods = Mods(u32::from(!clamp));
            if left {
                ternary_mods(mods, |m, _, a, b, c| logic::shf_l(a, b, c, m.0 != 0))
            } else {
                ternary_mods(mods, |m, _, a, b, c| logic::shf_r(a, b, c, m.0 != 0))
            }
        }
        Op::Sad { ty } => match ty {
            U16 => ternary_once(int::sad::<u16>),
            S16 => ternary_once(int::sad::<i16>),
            U32 => ternary_once(int::sad::<u32>),
            S32 => ternary_once(int::sad::<i32>),
            U64 => ternary_once(int::sad::<u64>),
            S64 => ternary_once(int::sad::<i64>),
            _ => return None,
        },
        Op::Dp4a { aty, bty } => {
            let mods = Mods(u32::from(aty.is_signed()) | u32::from(bty.is_signed()) << 1);
            in_place!(mods, |m, a: u32 a, b: u32 b, c: u32 c| -> u32 bits::dp4a(a, b, c, m.0 & 1 != 0, m.0 & 2 != 0))
        }
        Op::Dp2a { aty, bty, hi } => {
            let mods = Mods(u32::from(aty.is_signed()) | u32::from(bty.is_signed()) << 1 | u32::from(hi) << 2);
            ternary_rare(mods, |m, _, a, b, c| {
                bits::dp2a(a, b, c, m.0 & 4 != 0, m.0 & 1 != 0, m.0 & 2 != 0)
            })
        }
        Op::Copysign { ty: F32 } => binary_once(copysign_f32),
        Op::Copysign { ty: F64 } => binary_once(copysign_f64),
        Op::Testp { test, ty } => {
            let property = match test {
                FloatTest::Finite => Property::Finite,
                FloatTest::Infinite => Property::Infinite,
                FloatTest::Number => Property::Number,
                FloatTest::NotANumber => Property::NotANumber,
                FloatTest::Normal => Property::Normal,
                FloatTest::Subnormal => Property::Subnormal,
            };
            let mods = Mods(PROPERTIES.iter().position(|p| *p == property)? as u32);
            match ty {
                F32 => unary_rare(mods, |m, _, a| testp_f32(PROPERTIES[m.0 as usize % 6], a)),
                F64 => unary_rare(mods, |m, _, a| testp_f64(PROPERTIES[m.0 as usize % 6], a)),
                _ => return None,
            }
        }
        Op::AddC { ty, sub, .. } => match (ty.size(), sub) {
            (4, false) => carrying(|a: u32, b, _, carry| carry::addc(a, b, carry)),
            (8, false) => carrying(|a: u64, b, _, carry| carry::addc(a, b, carry)),
            (4, true) => carrying(|a: u32, b, _, carry| not_borrowing(a, b, carry)),
            (8, true) => carrying(|a: u64, b, _, carry| not_borrowing(a, b, carry)),
            _ => return None,
        },
        Op::MadC { ty, hi, .. } => match (ty, hi) {
            (U32 | S32, false) => carrying(|a: u32, b, c, carry| carry::madc_lo(a, b, c, carry)),
            (U64 | S64, false) => carrying(|a: u64, b, c, carry| carry::madc_lo(a, b, c, carry)),
            (U32, true) => carrying(|a: u32, b, c, carry| carry::madc_hi(a, b, c, carry)),
            (S32, true) => carrying(|a: i32, b, c, carry| carry::madc_hi(a, b, c, carry)),
            (U64, true) => carrying(|a: u64, b, c, carry| carry::madc_hi(a, b, c, carry)),
            (S64, true) => carrying(|a: i64, b, c, carry| carry::madc_hi(a, b, c, carry)),
            _ => return None,
        },
        _ => return None,
    })
}

/// `subc` as GPUs run it. They add the complement, so the condition code is a carry, which is set if nothing is
/// borrowed. Chains that mix additions and subtractions show this.
#[inline(always)]
fn not_borrowing<T: int::Int>(a: T, b: T, carry: bool) -> (T, bool) {
    let (difference, borrowed) = carry::subc(a, b, !carry);
    (difference, !borrowed)
}

/// The modes of `prmt` by their numbers in the modifiers.
const PERMUTES: [(PrmtMode, Permute); 7] = [
    (PrmtMode::Index, Permute::Generic),
    (PrmtMode::F4e, Permute::F4e),
    (PrmtMode::B4e, Permute::B4e),
    (PrmtMode::Rc8, Permute::Rc8),
    (PrmtMode::Ecl, Permute::Ecl),
    (PrmtMode::Ecr, Permute::Ecr),
    (PrmtMode::Rc16, Permute::Rc16),
];

/// The properties of `testp` by their numbers in the modifiers.
const PROPERTIES: [Property; 6] = [
    Property::Finite,
    Property::Infinite,
    Property::Number,
    Property::NotANumber,
    Property::Normal,
    Property::Subnormal,
];
