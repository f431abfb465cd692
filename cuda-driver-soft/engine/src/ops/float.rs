//! Handlers of arithmetic on f32 and f64, such as `add.f32`.
//!
//! Frequent forms have handlers of their own. Most others, for example with directed rounding, flushing or saturation,
//! share handlers that read their modifiers when they run.

use super::mods::Mods;
use super::shapes::{
    Form, binary, binary_hot, binary_once, binary_rare, in_place, ternary_fused, ternary_rare, unary, unary_once,
    unary_rare,
};
use crate::semantics::approx;
use crate::semantics::float::*;
use ptx::ir::{FloatMods, Op, Precision, Rounding::Rn, Type::*};

/// Returns true for rounding to nearest even without flushing or saturation.
fn plain(m: &FloatMods) -> bool {
    m.rnd == Rn && !m.ftz && !m.sat
}

pub(super) fn form(op: &Op) -> Option<Form> {
    Some(match op {
        Op::FAdd(m) if m.ty == F32 && plain(m) => binary_hot(|a, b| add_f32(a, b, Rn, false, false)),
        Op::FSub(m) if m.ty == F32 && plain(m) => binary_hot(|a, b| sub_f32(a, b, Rn, false, false)),
        Op::FMul(m) if m.ty == F32 && plain(m) => binary_hot(|a, b| mul_f32(a, b, Rn, false, false)),
        Op::Fma(m) if m.ty == F32 && plain(m) => {
            ternary_fused(|_, fused, a, b, c| fma_f32(a, b, c, Rn, false, false, fused))
        }
        Op::FAdd(m) if m.ty == F32 => {
            binary_rare(Mods::of_float(m), |m, _, a, b| add_f32(a, b, m.rnd(), m.ftz(), m.sat()))
        }
        Op::FSub(m) if m.ty == F32 => {
            binary_rare(Mods::of_float(m), |m, _, a, b| sub_f32(a, b, m.rnd(), m.ftz(), m.sat()))
        }
        Op::FMul(m) if m.ty == F32 => {
            binary_rare(Mods::of_float(m), |m, _, a, b| mul_f32(a, b, m.rnd(), m.ftz(), m.sat()))
        }
        Op::Fma(m) if m.ty == F32 => ternary_rare(Mods::of_float(m), |m, fused, a, b, c| {
            fma_f32(a, b, c, m.rnd(), m.ftz(), m.sat(), fused)
        }),

        Op::FAdd(m) if m.ty == F64 && m.rnd == Rn => binary(|a, b| add_f64(a, b, Rn)),
        Op::FSub(m) if m.ty == F64 && m.rnd == Rn => binary(|a, b| sub_f64(a, b, Rn)),
        Op::FMul(m) if m.ty == F64 && m.rnd == Rn => binary(|a, b| mul_f64(a, b, Rn)),
        Op::Fma(m) if m.ty == F64 && m.rnd == Rn => ternary_fused(|_, fused, a, b, c| fma_f64(a, b, c, Rn, fused)),
        Op::FAdd(m) if m.ty == F64 => binary_rare(Mods::of_float(m), |m, _, a, b| add_f64(a, b, m.rnd())),
        Op::FSub(m) if m.ty == F64 => binary_rare(Mods::of_float(m), |m, _, a, b| sub_f64(a, b, m.rnd())),
        Op::FMul(m) if m.ty == F64 => binary_rare(Mods::of_float(m), |m, _, a, b| mul_f64(a, b, m.rnd())),
        Op::Fma(m) if m.ty == F64 => {
            ternary_rare(Mods::of_float(m), |m, fused, a, b, c| fma_f64(a, b, c, m.rnd(), fused))
        }

        Op::FNeg { ty: F32, ftz: false } => unary(|a| neg_f32(a, false)),
        Op::FNeg { ty: F32, ftz: true } => unary_once(|a| neg_f32(a, true)),
        Op::FNeg { ty: F64, .. } => unary_once(neg_f64),
        Op::FAbs { ty: F32, ftz: false } => unary(|a| abs_f32(a, false)),
        Op::FAbs { ty: F32, ftz: true } => unary_once(|a| abs_f32(a, true)),
        Op::FAbs { ty: F64, .. } => unary_once(abs_f64),
        Op::FMin {
            ty: F32,
            ftz: false,
            nan: false,
            xorsign_abs: false,
        } => binary(|a, b| min_f32(a, b, false, false, false)),
        Op::FMax {
            ty: F32,
            ftz: false,
            nan: false,
            xorsign_abs: false,
        } => binary(|a, b| max_f32(a, b, false, false, false)),
        Op::FMin {
            ty: F32,
            ftz,
            nan,
            xorsign_abs,
        } => binary_rare(Mods::of_minmax(*ftz, *nan, *xorsign_abs), |m, _, a, b| {
            min_f32(a, b, m.ftz(), m.nan(), m.xorsign_abs())
        }),
        Op::FMax {
            ty: F32,
            ftz,
            nan,
            xorsign_abs,
        } => binary_rare(Mods::of_minmax(*ftz, *nan, *xorsign_abs), |m, _, a, b| {
            max_f32(a, b, m.ftz(), m.nan(), m.xorsign_abs())
        }),
        Op::FMin { ty: F64, .. } => binary_once(min_f64),
        Op::FMax { ty: F64, .. } => binary_once(max_f64),

        Op::FDiv { ty, precision, ftz } => match (ty, precision) {
            (F32, Precision::Ieee(Rn)) if !ftz => binary(|a, b| div_f32(a, b, Rn, false)),
            (F32, Precision::Ieee(rnd)) => binary_rare(Mods::of_rounding(*rnd, *ftz), |m, _, a, b| {
                div_f32(a, b, m.rnd(), m.ftz())
            }),
            (F32, Precision::Approx) => {
                in_place!(Mods::of_rounding(Rn, *ftz), |m, a: f32 a, b: f32 b| -> f32 approx::div_approx_f32(a, b, m.ftz()))
            }
            (F32, Precision::Full) => {
                in_place!(Mods::of_rounding(Rn, *ftz), |m, a: f32 a, b: f32 b| -> f32 approx::div_full_f32(a, b, m.ftz()))
            }
            (F64, Precision::Ieee(Rn)) => binary(|a, b| div_f64(a, b, Rn)),
            (F64, Precision::Ieee(rnd)) => {
                binary_rare(Mods::of_rounding(*rnd, false), |m, _, a, b| div_f64(a, b, m.rnd()))
            }
            _ => return None,
        },
        Op::Sqrt { ty, precision, ftz } => match (ty, precision) {
            (F32, Precision::Ieee(Rn)) if !ftz => unary(|a| sqrt_f32(a, Rn, false)),
            (F32, Precision::Ieee(rnd)) => {
                unary_rare(Mods::of_rounding(*rnd, *ftz), |m, _, a| sqrt_f32(a, m.rnd(), m.ftz()))
            }
            (F32, Precision::Approx) => {
                in_place!(Mods::of_rounding(Rn, *ftz), |m, a: f32 a| -> f32 approx::sqrt_approx_f32(a, m.ftz()))
            }
            (F64, Precision::Ieee(Rn)) => unary(|a| sqrt_f64(a, Rn)),
            (F64, Precision::Ieee(rnd)) => unary_rare(Mods::of_rounding(*rnd, false), |m, _, a| sqrt_f64(a, m.rnd())),
            _ => return None,
        },
        Op::Rcp { ty, precision, ftz } => match (ty, precision) {
            (F32, Precision::Ieee(Rn)) if !ftz => unary(|a| rcp_f32(a, Rn, false)),
            (F32, Precision::Ieee(rnd)) => {
                unary_rare(Mods::of_rounding(*rnd, *ftz), |m, _, a| rcp_f32(a, m.rnd(), m.ftz()))
            }
            (F32, Precision::Approx) => {
                in_place!(Mods::of_rounding(Rn, *ftz), |m, a: f32 a| -> f32 approx::rcp_approx_f32(a, m.ftz()))
            }
            (F64, Precision::Ieee(Rn)) => unary_once(|a| rcp_f64(a, Rn)),
            (F64, Precision::Ieee(rnd)) => unary_rare(Mods::of_rounding(*rnd, false), |m, _, a| rcp_f64(a, m.rnd())),
            (F64, Precision::Approx) => unary_rare(Mods(0), |_, _, a| approx::rcp_approx_f64(a)),
            _ => return None,
        },
        Op::Rsqrt { ty: F32, ftz } => {
            in_place!(Mods::of_rounding(Rn, *ftz), |m, a: f32 a| -> f32 approx::rsqrt_approx_f32(a, m.ftz()))
        }
        Op::Rsqrt { ty: F64, ftz: false } => unary_rare(Mods(0), |_, _, a| approx::rsqrt_approx_f64(a)),
        Op::Rsqrt { ty: F64, ftz: true } => unary_rare(Mods(0), |_, _, a| approx::rsqrt_approx_ftz_f64(a)),
        Op::Sin { ftz } => {
            in_place!(Mods::of_rounding(Rn, *ftz), |m, a: f32 a| -> f32 approx::sin_approx_f32(a, m.ftz()))
        }
        Op::Cos { ftz } => {
            in_place!(Mods::of_rounding(Rn, *ftz), |m, a: f32 a| -> f32 approx::cos_approx_f32(a, m.ftz()))
        }
        Op::Lg2 { ftz } => {
            in_place!(Mods::of_rounding(Rn, *ftz), |m, a: f32 a| -> f32 approx::lg2_approx_f32(a, m.ftz()))
        }
        Op::Ex2 { ty: F32, ftz } => {
            in_place!(Mods::of_rounding(Rn, *ftz), |m, a: f32 a| -> f32 approx::ex2_approx_f32(a, m.ftz()))
        }
        Op::Tanh { ty: F32 } => {
            in_place!(Mods(0), |_m, a: f32 a| -> f32 approx::tanh_approx_f32(a))
        }
        _ => return None,
    })
}
