//! Handlers of integer arithmetic, such as `add.s32`.

use super::shapes::{Form, binary, binary_hot, binary_once, ternary, ternary_hot, ternary_once, unary, unary_once};
use crate::semantics::int::{self, Int};
use ptx::ir::{Op, Part, Type, Type::*};

/// Returns the form for 16, 32 or 64 bits of an operation that is the same for signed and unsigned types.
macro_rules! any_sign {
    ($ty:expr, $f:ident, $of16:ident $of32:ident $of64:ident) => {
        match $ty {
            U16 | S16 => $of16(int::$f::<u16>),
            U32 | S32 => $of32(int::$f::<u32>),
            U64 | S64 => $of64(int::$f::<u64>),
            _ => return None,
        }
    };
}

/// Returns the form for 16, 32 or 64 bits of an operation that differs between signed and unsigned types.
macro_rules! each {
    ($ty:expr, $f:ident, $of16:ident $of32:ident $of64:ident) => {
        match $ty {
            U16 => $of16(int::$f::<u16>),
            S16 => $of16(int::$f::<i16>),
            U32 => $of32(int::$f::<u32>),
            S32 => $of32(int::$f::<i32>),
            U64 => $of64(int::$f::<u64>),
            S64 => $of64(int::$f::<i64>),
            _ => return None,
        }
    };
}

/// Returns the form of an operation on signed or unsigned 32 bits.
macro_rules! word {
    ($ty:expr, $f:ident, $shape:ident) => {
        match $ty {
            U32 => $shape(int::$f::<u32>),
            S32 => $shape(int::$f::<i32>),
            _ => return None,
        }
    };
}

#[rustfmt::skip] // a table
pub(super) fn form(op: &Op) -> Option<Form> {
    Some(match *op {
        Op::Add { ty: S32, sat: true } => binary_once(int::add_sat),
        Op::Add { ty: U16x2 | S16x2, sat: false } => binary_once(|a, b| int::x2::<u16>(a, b, int::add)),
        Op::Add { ty, sat: false } => any_sign!(ty, add, binary binary_hot binary_hot),
        Op::Sub { ty: S32, sat: true } => binary_once(int::sub_sat),
        Op::Sub { ty: U16x2 | S16x2, sat: false } => binary_once(|a, b| int::x2::<u16>(a, b, int::sub)),
        Op::Sub { ty, sat: false } => any_sign!(ty, sub, binary binary_hot binary),
        Op::Mul { ty, part: Part::Lo } => any_sign!(ty, mul_lo, binary binary_hot binary),
        Op::Mul { ty, part: Part::Hi } => each!(ty, mul_hi, binary_once binary binary_once),
        Op::Mul { ty: U16, part: Part::Wide } => binary(int::mul_wide::<u16>),
        Op::Mul { ty: S16, part: Part::Wide } => binary(int::mul_wide::<i16>),
        Op::Mul { ty: U32, part: Part::Wide } => binary_hot(int::mul_wide::<u32>),
        Op::Mul { ty: S32, part: Part::Wide } => binary_hot(int::mul_wide::<i32>),
        Op::Mad { ty, part: Part::Lo, sat: false } => any_sign!(ty, mad_lo, ternary_once ternary_hot ternary),
        Op::Mad { ty: S32, part: Part::Hi, sat: true } => ternary_once(int::mad_hi_sat),
        Op::Mad { ty, part: Part::Hi, sat: false } => each!(ty, mad_hi, ternary_once ternary_once ternary_once),
        Op::Mad { ty: U16, part: Part::Wide, sat: false } => ternary_once(int::mad_wide::<u16>),
        Op::Mad { ty: S16, part: Part::Wide, sat: false } => ternary_once(int::mad_wide::<i16>),
        Op::Mad { ty: U32, part: Part::Wide, sat: false } => ternary(int::mad_wide::<u32>),
        Op::Mad { ty: S32, part: Part::Wide, sat: false } => ternary(int::mad_wide::<i32>),
        Op::Mul24 { ty, hi: false } => word!(ty, mul24_lo, binary_once),
        Op::Mul24 { ty, hi: true } => word!(ty, mul24_hi, binary_once),
        Op::Mad24 { ty, hi: false, sat: false } => word!(ty, mad24_lo, ternary_once),
        Op::Mad24 { ty, hi: true, sat: false } => word!(ty, mad24_hi, ternary_once),
        Op::Mad24 { ty: S32, hi: true, sat: true } => ternary_once(int::mad24_hi_sat),
        Op::Div { ty } => each!(ty, div, binary_once binary_once binary_once),
        Op::Rem { ty } => each!(ty, rem, binary_once binary_once binary_once),
        Op::Abs { ty } => each!(ty, abs, unary_once unary unary_once),
        Op::Neg { ty } => any_sign!(ty, neg, unary_once unary unary_once),
        Op::Min { ty: S32, relu: true } => binary_once(int::min_relu::<i32>),
        Op::Max { ty: S32, relu: true } => binary_once(int::max_relu::<i32>),
        Op::Min { ty: U16x2 | S16x2, relu } => pair::<false>(ty_of(op)?, relu)?,
        Op::Max { ty: U16x2 | S16x2, relu } => pair::<true>(ty_of(op)?, relu)?,
        Op::Min { ty, relu: false } => each!(ty, min, binary_once binary binary_once),
        Op::Max { ty, relu: false } => each!(ty, max, binary_once binary binary_once),
        _ => return None,
    })
}

fn ty_of(op: &Op) -> Option<Type> {
    match op {
        Op::Min { ty, .. } | Op::Max { ty, .. } => Some(*ty),
        _ => None,
    }
}

fn pick<T: Int, const MAX: bool>(a: T, b: T) -> T {
    if MAX { int::max(a, b) } else { int::min(a, b) }
}

fn pick_relu<T: Int, const MAX: bool>(a: T, b: T) -> T {
    if MAX { int::max_relu(a, b) } else { int::min_relu(a, b) }
}

/// Returns the form of `min` or `max` of pairs.
fn pair<const MAX: bool>(ty: Type, relu: bool) -> Option<Form> {
    Some(match (ty, relu) {
        (U16x2, false) => binary_once(|a, b| int::x2::<u16>(a, b, pick::<_, MAX>)),
        (S16x2, false) => binary_once(|a, b| int::x2::<i16>(a, b, pick::<_, MAX>)),
        (S16x2, true) => binary_once(|a, b| int::x2::<i16>(a, b, pick_relu::<_, MAX>)),
        _ => return None,
    })
}
