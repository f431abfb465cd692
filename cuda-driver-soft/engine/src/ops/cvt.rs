//! Handlers of conversions, such as `cvt.rn.f32.s32`.
//!
//! Registers may be wider than the types that are converted, so the forms depend on the registers, too. Frequent
//! conversions have handlers of their own; the others of one source share the function [`convert`].

use super::mods::Mods;
use super::shapes::{Form, binary_rare, unary, unary_hot, unary_once, unary_rare};
use crate::semantics::cvt::*;
use crate::semantics::int::Int;
use ptx::ir::RegClass::{B16, B32, B64};
use ptx::ir::Type::{BF16x2, F16x2, F32, F64, S8, S16, S32, S64, U8, U16, U32, U64};
use ptx::ir::{Cvt, Inst, Op, RegClass, Rounding::*, Type};

/// Returns the form of a conversion between registers of these classes.
pub(super) fn form(inst: &Inst, source: RegClass, destination: RegClass) -> Option<Form> {
    match &inst.op {
        Op::Cvt(c) if inst.srcs.len() == 2 => pair(c),
        Op::Cvt(c) => common(c, source, destination).or_else(|| any(c, source, destination)),
        Op::CvtPack { to, from: S32, c } => pack_form(*to, *c),
        _ => None,
    }
}

/// Returns the form of a frequent conversion.
fn common(c: &Cvt, source: RegClass, destination: RegClass) -> Option<Form> {
    if c.ftz || c.sat || c.relu || c.satfinite {
        return None;
    }
    // Most of these handlers need registers that are as wide as the types. When they are that wide, conversions between
    // integers do not depend on the sign of the destination, and depend on the sign of the source only if the source is
    // extended.
    let class_of = |ty: Type| match ty {
        U16 | S16 | Type::B16 => B16,
        U32 | S32 | Type::B32 | F32 => B32,
        _ => B64,
    };
    if class_of(c.from) != source || class_of(c.to) != destination {
        return match (c.from, c.to, source, destination) {
            (U8, U16 | S16, B16, B16) => Some(unary_once(|a: u16| cvt_int::<u8, u16>(a as u8, false))),
            (U8, U32 | S32, B16, B32) => Some(unary_once(|a: u16| cvt_int::<u8, u32>(a as u8, false))),
            (S8, S16 | U16, B16, B16) => Some(unary_once(|a: u16| cvt_int::<i8, i16>(a as i8, false))),
            (S8, S32 | U32, B16, B32) => Some(unary_once(|a: u16| cvt_int::<i8, i32>(a as i8, false))),
            _ => None,
        };
    }
    Some(match (c.from, c.to, c.rnd, c.int_rnd) {
        (U32 | S32, U16 | S16, None, None) => unary(int_to_int::<u32, u16>),
        (U16, U32 | S32, None, None) => unary(int_to_int::<u16, u32>),
        (S16, U32 | S32, None, None) => unary(int_to_int::<i16, i32>),
        (U32, U64 | S64, None, None) => unary_hot(int_to_int::<u32, u64>),
        (S32, U64 | S64, None, None) => unary_hot(int_to_int::<i32, i64>),
        (U64 | S64, U32 | S32, None, None) => unary(int_to_int::<u64, u32>),
        (U16, U64 | S64, None, None) => unary(int_to_int::<u16, u64>),
        (S16, U64 | S64, None, None) => unary_once(int_to_int::<i16, i64>),
        (U64 | S64, U16 | S16, None, None) => unary_once(int_to_int::<u64, u16>),
        (S32, F32, Some(Rn), None) => unary(|a: i32| cvt_f32_from_int(a, Rn, false)),
        (U32, F32, Some(Rn), None) => unary(|a: u32| cvt_f32_from_int(a, Rn, false)),
        (S32, F64, Some(Rn), None) => unary(|a: i32| cvt_f64_from_int(a, Rn, false)),
        (U32, F64, Some(Rn), None) => unary(|a: u32| cvt_f64_from_int(a, Rn, false)),
        (F32, S32, None, Some(Rz)) => unary(|a: f32| cvt_int_from_f32::<i32>(a, Rz, false)),
        (F32, U32, None, Some(Rz)) => unary(|a: f32| cvt_int_from_f32::<u32>(a, Rz, false)),
        (F64, S32, None, Some(Rz)) => unary(|a: f64| cvt_int_from_f64::<i32>(a, Rz)),
        (F32, F64, None, None) => unary(|a: f32| cvt_f64_from_f32(a, false, false)),
        (F64, F32, Some(Rn), None) => unary(|a: f64| cvt_f32_from_f64(a, Rn, false, false)),
        _ => return None,
    })
}

#[inline(always)]
fn int_to_int<S: Int, D: Int>(a: S) -> D {
    cvt_int(a, false)
}

/// Runs any conversion of one source. It is not inlined, so that all handlers share one copy of its code.
#[inline(never)]
fn convert(mods: Mods, a: u64) -> u64 {
    // `any` has checked that the conversion exists.
    cvt(mods.cvt(), a).unwrap_or(0)
}

/// Returns the form of any other conversion of one source.
fn any(c: &Cvt, source: RegClass, destination: RegClass) -> Option<Form> {
    cvt(*c, 0)?;
    let mods = Mods::of_cvt(c);
    macro_rules! form {
        ($s:ident, $d:ident) => {
            unary_rare(mods, |m: Mods, _, a: $s| convert(m, u64::from(a)) as $d)
        };
    }
    Some(match (source, destination) {
        (B16, B16) => form!(u16, u16),
        (B16, B32) => form!(u16, u32),
        (B16, B64) => form!(u16, u64),
        (B32, B16) => form!(u32, u16),
        (B32, B32) => form!(u32, u32),
        (B32, B64) => form!(u32, u64),
        (B64, B16) => form!(u64, u16),
        (B64, B32) => form!(u64, u32),
        (B64, B64) => form!(u64, u64),
        _ => return None,
    })
}

/// Returns the form of a conversion of two sources, such as `cvt.rn.f16x2.f32 d, a, b`.
fn pair(c: &Cvt) -> Option<Form> {
    cvt_pair(*c, 0.0, 0.0)?;
    let mods = Mods::of_cvt(c);
    Some(match c.to {
        F16x2 | BF16x2 => binary_rare(mods, |m: Mods, _, a: f32, b: f32| cvt_pair(m.cvt(), a, b).unwrap_or(0)),
        _ => binary_rare(mods, |m: Mods, _, a: f32, b: f32| {
            cvt_pair(m.cvt(), a, b).unwrap_or(0) as u16
        }),
    })
}

/// Returns the form of `cvt.pack` with or without the source `c`.
fn pack_form(to: Type, c: Option<Type>) -> Option<Form> {
    use super::shapes::ternary_rare;
    macro_rules! form {
        ($bits:literal, $signed:literal) => {
            match c {
                None => binary_rare(Mods(0), |_: Mods, _, a: i32, b: i32| {
                    cvt_pack($bits, $signed, a, b, None)
                }),
                Some(_) => ternary_rare(Mods(0), |_: Mods, _, a: i32, b: i32, c: u32| {
                    cvt_pack($bits, $signed, a, b, Some(c))
                }),
            }
        };
    }
    Some(match (to, c) {
        (U16, None) => form!(16, false),
        (S16, None) => form!(16, true),
        (U8, Some(Type::B32)) => form!(8, false),
        (S8, Some(Type::B32)) => form!(8, true),
        (Type::U4, Some(Type::B32)) => form!(4, false),
        (Type::S4, Some(Type::B32)) => form!(4, true),
        (Type::U2, Some(Type::B32)) => form!(2, false),
        (Type::S2, Some(Type::B32)) => form!(2, true),
        _ => return None,
    })
}
