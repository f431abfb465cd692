//! The approximate instructions: `rcp sqrt rsqrt sin cos lg2 ex2 tanh` with `.approx`, `div.approx` and `div.full`.
//!
//! A GPU has a unit that computes these functions to about 22 bits, and flushes subnormal arguments and results. The
//! divisions and most forms without `.ftz` scale the argument into the unit's range, for example by a power of two, and
//! correct the result. This module does the same steps with a unit whose `.f32` results are correctly rounded, except
//! for rare arguments. So special cases give the GPU's results, and every result is within the bounds of the manual,
//! but its last bits can differ from a GPU's.

use super::elementary;
use super::float::{NAN_F64, flush_f32, mul_f32, sqrt_f32};
use super::half::{NAN_HALF, bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};
use super::round::round_f32_to_odd;
use ptx::ir::Rounding;

const NAN: f32 = f32::from_bits(super::float::NAN_F32);
const LEAST: f32 = f32::MIN_POSITIVE;
/// 2^24
const LIFT: f32 = 16_777_216.0;
/// 2^126. Greater numbers have a subnormal reciprocal.
const LARGE: f32 = f32::from_bits((127 + 126) << 23);

/// Replaces any NaN by [`NAN`].
#[inline(always)]
fn number(a: f32) -> f32 {
    if a.is_nan() { NAN } else { a }
}

/// Returns a product rounded to nearest.
#[inline(always)]
fn times(a: f32, b: f32, ftz: bool) -> f32 {
    mul_f32(a, b, Rounding::Rn, ftz, false)
}

/// Returns the unit's reciprocal.
#[inline(always)]
fn unit_rcp(a: f32) -> f32 {
    number(flush_f32(1.0 / flush_f32(a, true), true))
}

/// Returns the unit's square root.
#[inline(always)]
fn unit_sqrt(a: f32) -> f32 {
    sqrt_f32(a, Rounding::Rn, true)
}

/// Returns the unit's reciprocal square root.
#[inline(always)]
fn unit_rsqrt(a: f32) -> f32 {
    let a = f64::from(flush_f32(a, true));
    // The root of -0 is -0, whose reciprocal is the negative infinity, as required.
    number((1.0 / a.sqrt()) as f32)
}

/// Returns the unit's power of two.
#[inline(always)]
fn unit_ex2(a: f32) -> f32 {
    // Beyond these limits the result is zero or infinite.
    let limited = f64::from(a).clamp(-200.0, 200.0);
    let power = flush_f32(elementary::exp2(limited) as f32, true);
    if a.is_nan() { NAN } else { power }
}

/// Returns the unit's logarithm.
#[inline(always)]
fn unit_lg2(a: f32) -> f32 {
    let a = flush_f32(a, true);
    let value = elementary::log2(f64::from(a)) as f32;
    let value = if a == f32::INFINITY { a } else { value };
    let value = if a == 0.0 { f32::NEG_INFINITY } else { value };
    if a < 0.0 || a.is_nan() { NAN } else { value }
}

/// Returns the unit's sine of `t` turns plus `quarter` quarter turns.
#[inline(always)]
fn unit_sin(t: f32, quarter: u64) -> f32 {
    let t = flush_f32(t, true);
    // From 2^24 on, every f32 is a whole number of turns.
    let small = if t.abs() < LIFT { t } else { 0f32.copysign(t) };
    let value = elementary::sin_turns(f64::from(small), quarter) as f32;
    if t.is_finite() { flush_f32(value, true) } else { NAN }
}

/// `rcp.approx{.ftz}.f32 d, a`
#[inline(always)]
pub fn rcp_approx_f32(a: f32, ftz: bool) -> f32 {
    let scale = if ftz {
        1.0
    } else if a.abs() < LEAST {
        LIFT
    } else if a.abs() > LARGE {
        0.25
    } else {
        1.0
    };
    times(unit_rcp(a * scale), scale, false)
}

/// `div.approx{.ftz}.f32 d, a, b`: `a` times the reciprocal of `b`, which is 0 for `|b|` above 2^126.
#[inline(always)]
pub fn div_approx_f32(a: f32, b: f32, ftz: bool) -> f32 {
    let scale = if !ftz && b.abs() < LEAST { LIFT } else { 1.0 };
    times(unit_rcp(b * scale), a * scale, ftz)
}

/// `div.full{.ftz}.f32 d, a, b`, for the full range of `b`.
#[inline(always)]
pub fn div_full_f32(a: f32, b: f32, ftz: bool) -> f32 {
    let scale = if b.abs() > LARGE {
        0.25
    } else if !ftz && b.abs() < LEAST {
        LIFT
    } else {
        1.0
    };
    times(unit_rcp(b * scale), times(a, scale, ftz), ftz)
}

/// `sqrt.approx{.ftz}.f32 d, a`
#[inline(always)]
pub fn sqrt_approx_f32(a: f32, ftz: bool) -> f32 {
    let small = !ftz && a.abs() < LEAST;
    let root = unit_sqrt(if small { a * LIFT } else { a });
    if small { root * (1.0 / 4096.0) } else { root }
}

/// `rsqrt.approx{.ftz}.f32 d, a`
#[inline(always)]
pub fn rsqrt_approx_f32(a: f32, ftz: bool) -> f32 {
    let small = !ftz && a.abs() < LEAST;
    let root = unit_rsqrt(if small { a * LIFT } else { a });
    if small { number(root * 4096.0) } else { root }
}

/// `sin.approx{.ftz}.f32 d, a`. The argument is converted to turns in `.f32`, so the error grows with it.
#[inline(always)]
pub fn sin_approx_f32(a: f32, ftz: bool) -> f32 {
    unit_sin(to_turns(a, ftz), 0)
}

/// `cos.approx{.ftz}.f32 d, a`. See [`sin_approx_f32`].
#[inline(always)]
pub fn cos_approx_f32(a: f32, ftz: bool) -> f32 {
    unit_sin(to_turns(a, ftz), 1)
}

/// Returns `a / (2 π)`, truncated to `.f32`.
#[inline(always)]
fn to_turns(a: f32, ftz: bool) -> f32 {
    const PER_TURN: f32 = f32::from_bits(0x3e22_f983);
    mul_f32(flush_f32(a, ftz), PER_TURN, Rounding::Rz, false, false)
}

/// `lg2.approx{.ftz}.f32 d, a`
#[inline(always)]
pub fn lg2_approx_f32(a: f32, ftz: bool) -> f32 {
    let small = !ftz && a.abs() < LEAST;
    let value = unit_lg2(if small { a * LIFT } else { a });
    if small { number(value - 24.0) } else { value }
}

/// `ex2.approx{.ftz}.f32 d, a`
#[inline(always)]
pub fn ex2_approx_f32(a: f32, ftz: bool) -> f32 {
    // For a small result, the power of half the argument is squared.
    let small = !ftz && a < -126.0;
    let power = unit_ex2(if small { a * 0.5 } else { a });
    if small { power * power } else { power }
}

/// `tanh.approx.f32 d, a`
#[inline(always)]
pub fn tanh_approx_f32(a: f32) -> f32 {
    number(elementary::tanh(f64::from(a)) as f32)
}

/// `ex2.approx.f16 d, a`
#[inline(always)]
pub fn ex2_approx_f16(a: u16) -> u16 {
    let a = f16_to_f32(a);
    let power = elementary::exp2(f64::from(a).clamp(-200.0, 200.0));
    if a.is_nan() {
        NAN_HALF
    } else {
        f32_to_f16(round_f32_to_odd(power))
    }
}

/// `ex2.approx.ftz.bf16 d, a`
#[inline(always)]
pub fn ex2_approx_bf16(a: u16) -> u16 {
    let a = flush_f32(bf16_to_f32(a), true);
    let power = elementary::exp2(f64::from(a).clamp(-200.0, 200.0));
    let power = f32_to_bf16(round_f32_to_odd(power));
    let power = if power & 0x7f80 == 0 { 0 } else { power };
    if a.is_nan() { NAN_HALF } else { power }
}

/// `tanh.approx.f16 d, a`
#[inline(always)]
pub fn tanh_approx_f16(a: u16) -> u16 {
    f32_to_f16(round_f32_to_odd(elementary::tanh(f64::from(f16_to_f32(a)))))
}

/// `tanh.approx.bf16 d, a`
#[inline(always)]
pub fn tanh_approx_bf16(a: u16) -> u16 {
    f32_to_bf16(round_f32_to_odd(elementary::tanh(f64::from(bf16_to_f32(a)))))
}

/// Returns an `.f64` as the unit reads it: subnormal numbers flushed, and the lower half zero.
#[inline(always)]
fn upper(a: f64) -> f64 {
    let bits = a.to_bits() & !0xffff_ffff;
    f64::from_bits(if bits >> 52 & 0x7ff == 0 { bits & 1 << 63 } else { bits })
}

/// Returns an `.f64` as the unit writes it: subnormal numbers flushed, the lower half zero, and a single NaN.
#[inline(always)]
fn upper_result(a: f64) -> f64 {
    if a.is_nan() {
        f64::from_bits(0x7fff_ffff << 32)
    } else {
        upper(a)
    }
}

/// `rcp.approx.ftz.f64 d, a`. Only the upper halves of `a` and of the result are used.
#[inline(always)]
pub fn rcp_approx_f64(a: f64) -> f64 {
    upper_result(1.0 / upper(a))
}

/// `rsqrt.approx.ftz.f64 d, a`. Only the upper halves of `a` and of the result are used.
#[inline(always)]
pub fn rsqrt_approx_ftz_f64(a: f64) -> f64 {
    upper_result(1.0 / upper(a).sqrt())
}

/// `rsqrt.approx.f64 d, a`
#[inline(always)]
pub fn rsqrt_approx_f64(a: f64) -> f64 {
    let value = 1.0 / a.sqrt();
    if value.is_nan() { f64::from_bits(NAN_F64) } else { value }
}
