//! Integer arithmetic: where `add.s32` happens.

use super::shapes::{Form, binary, ternary, unary};
use crate::exec::semantics::int::{self, Int};
use crate::ir::{Op, Part, Type, Type::*};

/// A form for each width, where the sign makes no difference.
macro_rules! any_sign {
    ($ty:expr, $t:ident => $form:expr) => {
        match $ty {
            U16 | S16 => {
                type $t = u16;
                $form
            }
            U32 | S32 => {
                type $t = u32;
                $form
            }
            U64 | S64 => {
                type $t = u64;
                $form
            }
            _ => return None,
        }
    };
}

/// A form for each width and sign.
macro_rules! each {
    ($ty:expr, $t:ident => $form:expr) => {
        match $ty {
            U16 => {
                type $t = u16;
                $form
            }
            S16 => {
                type $t = i16;
                $form
            }
            U32 => {
                type $t = u32;
                $form
            }
            S32 => {
                type $t = i32;
                $form
            }
            U64 => {
                type $t = u64;
                $form
            }
            S64 => {
                type $t = i64;
                $form
            }
            _ => return None,
        }
    };
}

/// A form for 32 bits of each sign.
macro_rules! word {
    ($ty:expr, $t:ident => $form:expr) => {
        match $ty {
            U32 => {
                type $t = u32;
                $form
            }
            S32 => {
                type $t = i32;
                $form
            }
            _ => return None,
        }
    };
}

pub(super) fn form(op: &Op) -> Option<Form> {
    Some(match *op {
        Op::Add { ty: S32, sat: true } => binary(int::add_sat),
        Op::Add {
            ty: U16x2 | S16x2,
            sat: false,
        } => binary(|a, b| int::x2::<u16>(a, b, int::add)),
        Op::Add { ty, sat: false } => any_sign!(ty, T => binary(int::add::<T>)),
        Op::Sub { ty: S32, sat: true } => binary(int::sub_sat),
        Op::Sub {
            ty: U16x2 | S16x2,
            sat: false,
        } => binary(|a, b| int::x2::<u16>(a, b, int::sub)),
        Op::Sub { ty, sat: false } => any_sign!(ty, T => binary(int::sub::<T>)),
        Op::Mul { ty, part: Part::Lo } => any_sign!(ty, T => binary(int::mul_lo::<T>)),
        Op::Mul { ty, part: Part::Hi } => each!(ty, T => binary(int::mul_hi::<T>)),
        Op::Mul {
            ty,
            part: Part::Wide,
        } => wide(ty)?,
        Op::Mad {
            ty,
            part: Part::Lo,
            sat: false,
        } => any_sign!(ty, T => ternary(int::mad_lo::<T>)),
        Op::Mad {
            ty: S32,
            part: Part::Hi,
            sat: true,
        } => ternary(int::mad_hi_sat),
        Op::Mad {
            ty,
            part: Part::Hi,
            sat: false,
        } => each!(ty, T => ternary(int::mad_hi::<T>)),
        Op::Mad {
            ty,
            part: Part::Wide,
            sat: false,
        } => mad_wide(ty)?,
        Op::Mul24 { ty, hi: false } => word!(ty, T => binary(int::mul24_lo::<T>)),
        Op::Mul24 { ty, hi: true } => word!(ty, T => binary(int::mul24_hi::<T>)),
        Op::Mad24 {
            ty,
            hi: false,
            sat: false,
        } => word!(ty, T => ternary(int::mad24_lo::<T>)),
        Op::Mad24 {
            ty,
            hi: true,
            sat: false,
        } => word!(ty, T => ternary(int::mad24_hi::<T>)),
        Op::Mad24 {
            ty: S32,
            hi: true,
            sat: true,
        } => ternary(int::mad24_hi_sat),
        Op::Div { ty } => each!(ty, T => binary(int::div::<T>)),
        Op::Rem { ty } => each!(ty, T => binary(int::rem::<T>)),
        Op::Abs { ty } => each!(ty, T => unary(int::abs::<T>)),
        Op::Neg { ty } => any_sign!(ty, T => unary(int::neg::<T>)),
        Op::Min { ty, relu } => min_max::<false>(ty, relu)?,
        Op::Max { ty, relu } => min_max::<true>(ty, relu)?,
        _ => return None,
    })
}

fn wide(ty: Type) -> Option<Form> {
    Some(match ty {
        U16 => binary(int::mul_wide::<u16>),
        S16 => binary(int::mul_wide::<i16>),
        U32 => binary(int::mul_wide::<u32>),
        S32 => binary(int::mul_wide::<i32>),
        _ => return None,
    })
}

fn mad_wide(ty: Type) -> Option<Form> {
    Some(match ty {
        U16 => ternary(int::mad_wide::<u16>),
        S16 => ternary(int::mad_wide::<i16>),
        U32 => ternary(int::mad_wide::<u32>),
        S32 => ternary(int::mad_wide::<i32>),
        _ => return None,
    })
}

fn pick<T: Int, const MAX: bool>(a: T, b: T) -> T {
    if MAX { int::max(a, b) } else { int::min(a, b) }
}

fn pick_relu<T: Int, const MAX: bool>(a: T, b: T) -> T {
    if MAX {
        int::max_relu(a, b)
    } else {
        int::min_relu(a, b)
    }
}

fn min_max<const MAX: bool>(ty: Type, relu: bool) -> Option<Form> {
    Some(match (ty, relu) {
        (U16x2, false) => binary(|a, b| int::x2::<u16>(a, b, pick::<_, MAX>)),
        (S16x2, false) => binary(|a, b| int::x2::<i16>(a, b, pick::<_, MAX>)),
        (S16x2, true) => binary(|a, b| int::x2::<i16>(a, b, pick_relu::<_, MAX>)),
        (S32, true) => binary(pick_relu::<i32, MAX>),
        (ty, false) => each!(ty, T => binary(pick::<T, MAX>)),
        _ => return None,
    })
}
