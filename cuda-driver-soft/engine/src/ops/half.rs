//! Handlers of arithmetic on f16, bf16 and their pairs, such as `fma.rn.f16x2`.

use super::mods::Mods;
use super::shapes::{Form, in_place};
use crate::semantics::approx;
use crate::semantics::half::*;
use ptx::ir::{Op, Type::*};

/// Returns the form for single values or, if `$pair`, for pairs, whose elements are computed alike.
macro_rules! unary_both {
    ($pair:expr, $mods:expr, |$m:ident, $a:ident| $f:expr) => {
        if $pair {
            in_place!($mods, |m, a: u32 a| -> u32 {
                let $m = m;
                let [low, high] = unpack(a);
                let $a = low;
                let low = $f;
                let $a = high;
                pack(low, $f)
            })
        } else {
            in_place!($mods, |$m, $a: u16 a| -> u16 $f)
        }
    };
}

macro_rules! binary_both {
    ($pair:expr, $mods:expr, |$m:ident, $a:ident, $b:ident| $f:expr) => {
        if $pair {
            in_place!($mods, |m, a: u32 a, b: u32 b| -> u32 {
                let $m = m;
                let ([a0, a1], [b0, b1]) = (unpack(a), unpack(b));
                let ($a, $b) = (a0, b0);
                let low = $f;
                let ($a, $b) = (a1, b1);
                pack(low, $f)
            })
        } else {
            in_place!($mods, |$m, $a: u16 a, $b: u16 b| -> u16 $f)
        }
    };
}

macro_rules! ternary_both {
    ($pair:expr, $mods:expr, |$m:ident, $a:ident, $b:ident, $c:ident| $f:expr) => {
        if $pair {
            in_place!($mods, |m, a: u32 a, b: u32 b, c: u32 c| -> u32 {
                let $m = m;
                let ([a0, a1], [b0, b1], [c0, c1]) = (unpack(a), unpack(b), unpack(c));
                let ($a, $b, $c) = (a0, b0, c0);
                let low = $f;
                let ($a, $b, $c) = (a1, b1, c1);
                pack(low, $f)
            })
        } else {
            in_place!($mods, |$m, $a: u16 a, $b: u16 b, $c: u16 c| -> u16 $f)
        }
    };
}

pub(super) fn form(op: &Op) -> Option<Form> {
    let pair = |ty| matches!(ty, F16x2 | BF16x2);
    Some(match op {
        Op::FAdd(m) if matches!(m.ty, F16 | F16x2) => {
            binary_both!(pair(m.ty), Mods::of_float(m), |m, a, b| add_f16(a, b, m.ftz(), m.sat()))
        }
        Op::FSub(m) if matches!(m.ty, F16 | F16x2) => {
            binary_both!(pair(m.ty), Mods::of_float(m), |m, a, b| sub_f16(a, b, m.ftz(), m.sat()))
        }
        Op::FMul(m) if matches!(m.ty, F16 | F16x2) => {
            binary_both!(pair(m.ty), Mods::of_float(m), |m, a, b| mul_f16(a, b, m.ftz(), m.sat()))
        }
        Op::Fma(m) if matches!(m.ty, F16 | F16x2) => {
            ternary_both!(pair(m.ty), Mods::of_float(m), |m, a, b, c| fma_f16(
                a,
                b,
                c,
                m.ftz(),
                m.sat(),
                m.relu(),
                m.oob()
            ))
        }
        Op::FAdd(m) if matches!(m.ty, BF16 | BF16x2) => {
            binary_both!(pair(m.ty), Mods::of_float(m), |_m, a, b| add_bf16(a, b))
        }
        Op::FSub(m) if matches!(m.ty, BF16 | BF16x2) => {
            binary_both!(pair(m.ty), Mods::of_float(m), |_m, a, b| sub_bf16(a, b))
        }
        Op::FMul(m) if matches!(m.ty, BF16 | BF16x2) => {
            binary_both!(pair(m.ty), Mods::of_float(m), |_m, a, b| mul_bf16(a, b))
        }
        Op::Fma(m) if matches!(m.ty, BF16 | BF16x2) => {
            ternary_both!(pair(m.ty), Mods::of_float(m), |m, a, b, c| fma_bf16(
                a,
                b,
                c,
                m.relu(),
                m.oob()
            ))
        }
        Op::FNeg {
            ty: ty @ (F16 | F16x2),
            ftz,
        } => {
            unary_both!(pair(*ty), Mods::of_minmax(*ftz, false, false), |m, a| {
                neg_f16(a, m.ftz())
            })
        }
        Op::FAbs {
            ty: ty @ (F16 | F16x2),
            ftz,
        } => {
            unary_both!(pair(*ty), Mods::of_minmax(*ftz, false, false), |m, a| {
                abs_f16(a, m.ftz())
            })
        }
        Op::FNeg {
            ty: ty @ (BF16 | BF16x2),
            ..
        } => unary_both!(pair(*ty), Mods(0), |_m, a| neg_bf16(a)),
        Op::FAbs {
            ty: ty @ (BF16 | BF16x2),
            ..
        } => unary_both!(pair(*ty), Mods(0), |_m, a| abs_bf16(a)),
        Op::FMin {
            ty: ty @ (F16 | F16x2),
            ftz,
            nan,
            xorsign_abs,
        } => {
            binary_both!(pair(*ty), Mods::of_minmax(*ftz, *nan, *xorsign_abs), |m, a, b| min_f16(
                a,
                b,
                m.ftz(),
                m.nan(),
                m.xorsign_abs()
            ))
        }
        Op::FMax {
            ty: ty @ (F16 | F16x2),
            ftz,
            nan,
            xorsign_abs,
        } => {
            binary_both!(pair(*ty), Mods::of_minmax(*ftz, *nan, *xorsign_abs), |m, a, b| max_f16(
                a,
                b,
                m.ftz(),
                m.nan(),
                m.xorsign_abs()
            ))
        }
        Op::FMin {
            ty: ty @ (BF16 | BF16x2),
            nan,
            xorsign_abs,
            ..
        } => {
            binary_both!(pair(*ty), Mods::of_minmax(false, *nan, *xorsign_abs), |m, a, b| {
                min_bf16(a, b, m.nan(), m.xorsign_abs())
            })
        }
        Op::FMax {
            ty: ty @ (BF16 | BF16x2),
            nan,
            xorsign_abs,
            ..
        } => {
            binary_both!(pair(*ty), Mods::of_minmax(false, *nan, *xorsign_abs), |m, a, b| {
                max_bf16(a, b, m.nan(), m.xorsign_abs())
            })
        }
        Op::Ex2 {
            ty: ty @ (F16 | F16x2), ..
        } => {
            unary_both!(pair(*ty), Mods(0), |_m, a| approx::ex2_approx_f16(a))
        }
        Op::Ex2 {
            ty: ty @ (BF16 | BF16x2),
            ..
        } => {
            unary_both!(pair(*ty), Mods(0), |_m, a| approx::ex2_approx_bf16(a))
        }
        Op::Tanh { ty: ty @ (F16 | F16x2) } => unary_both!(pair(*ty), Mods(0), |_m, a| approx::tanh_approx_f16(a)),
        Op::Tanh {
            ty: ty @ (BF16 | BF16x2),
        } => {
            unary_both!(pair(*ty), Mods(0), |_m, a| approx::tanh_approx_bf16(a))
        }
        _ => return None,
    })
}
