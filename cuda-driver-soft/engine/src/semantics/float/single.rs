//! Arithmetic of `.f32`, such as `add.f32`.

use super::super::round::{add_to_odd, round_f32};
use ptx::ir::Rounding;

/// The NaN that `.f32` arithmetic returns.
pub const NAN_F32: u32 = 0x7fff_ffff;

/// Applies `.ftz` to an operand: a subnormal number becomes a zero of its sign.
#[inline(always)]
pub fn flush_f32(a: f32, ftz: bool) -> f32 {
    let bits = a.to_bits();
    f32::from_bits(if ftz && bits & 0x7f80_0000 == 0 {
        bits & 0x8000_0000
    } else {
        bits
    })
}

/// Replaces any NaN by [`NAN_F32`].
#[inline(always)]
pub(crate) fn canonical_f32(a: f32) -> f32 {
    // Bits are compared, because NaNs are interchangeable to the compiler: it drops `if a.is_nan()` after a square
    // root.
    let bits = a.to_bits();
    f32::from_bits(if bits & 0x7fff_ffff > 0x7f80_0000 {
        NAN_F32
    } else {
        bits
    })
}

/// Applies `.sat`: limits a number to 0 … 1, and replaces a NaN and -0 by 0.
#[inline(always)]
pub(crate) fn saturate_f32(a: f32) -> f32 {
    // Bits are compared, because the compiler replaces `if a > 0.0 { a } else { 0.0 }` by a maximum. NaNs are
    // interchangeable to it, but the maximum of AArch64 returns a NaN for a signalling NaN.
    let bits = a.to_bits();
    let positive = if bits.wrapping_sub(1) < 0x7f80_0000 { bits } else { 0 };
    f32::from_bits(positive.min(1f32.to_bits()))
}

/// Does the last step of an operation: `.sat`, or the replacement of NaNs.
#[inline(always)]
fn finish(r: f32, sat: bool) -> f32 {
    if sat { saturate_f32(r) } else { canonical_f32(r) }
}

/// 2^24. If a result is subnormal, the same operation with 2^24 times the value has a normal result, which is rounded
/// to 24 bits.
pub(crate) const SCALE: f32 = 16_777_216.0;

/// Applies `.ftz` to a result that may be inexact: it becomes a zero of its sign if the exact result, rounded to 24
/// bits without a limit to the exponent, is smaller than the least normal number. So a result just below that number is
/// flushed, although the subnormal format would have rounded it up.
///
/// `scaled` is the result of the same operation with 2^24 times the value, rounded the same way.
#[inline(always)]
pub(crate) fn flush_result(r: f32, scaled: f32, ftz: bool) -> f32 {
    let tiny = ftz && scaled.abs() < f32::MIN_POSITIVE * SCALE;
    f32::from_bits(if tiny { r.to_bits() & 0x8000_0000 } else { r.to_bits() })
}

/// Returns the sum of two `f64` values, correctly rounded to `.f32`.
#[inline(always)]
fn add_exact(a: f64, b: f64, rnd: Rounding) -> f32 {
    let sum = round_f32(add_to_odd(a, b), rnd);
    // The zero sum of operands of different signs is +0, but -0 in the mode .rm.
    let positive_zeros = (a.to_bits() | b.to_bits()) == 0;
    if matches!(rnd, Rounding::Rm) && sum == 0.0 && a == -b && !positive_zeros {
        -0.0
    } else {
        sum
    }
}

/// `add{.rnd}{.ftz}{.sat}.f32 d, a, b`
#[inline(always)]
pub fn add_f32(a: f32, b: f32, rnd: Rounding, ftz: bool, sat: bool) -> f32 {
    let (a, b) = (flush_f32(a, ftz), flush_f32(b, ftz));
    let sum = match rnd {
        Rounding::Rn => a + b,
        _ => add_exact(f64::from(a), f64::from(b), rnd),
    };
    // A subnormal sum is exact, so it does not need `flush_result`.
    finish(flush_f32(sum, ftz), sat)
}

/// `sub{.rnd}{.ftz}{.sat}.f32 d, a, b`
#[inline(always)]
pub fn sub_f32(a: f32, b: f32, rnd: Rounding, ftz: bool, sat: bool) -> f32 {
    add_f32(a, -b, rnd, ftz, sat)
}

/// `mul{.rnd}{.ftz}{.sat}.f32 d, a, b`
#[inline(always)]
pub fn mul_f32(a: f32, b: f32, rnd: Rounding, ftz: bool, sat: bool) -> f32 {
    let (a, b) = (flush_f32(a, ftz), flush_f32(b, ftz));
    let result = product(a, b, rnd);
    finish(flush_result(result, product(a * SCALE, b, rnd), ftz), sat)
}

/// Returns the product of two numbers.
// A function rather than a closure, because closures cannot be `#[inline(always)]`, and code outside of the caller is
// compiled for the baseline CPU.
#[inline(always)]
fn product(a: f32, b: f32, rnd: Rounding) -> f32 {
    match rnd {
        Rounding::Rn => a * b,
        // The product of two 24-bit significands fits into 53 bits.
        _ => round_f32(f64::from(a) * f64::from(b), rnd),
    }
}

/// `fma.rnd{.ftz}{.sat}.f32 d, a, b, c`, and `mad` of that type. `fused` is true if the code around this call is
/// compiled for a CPU with a fused multiply-add instruction. The result does not depend on it.
#[inline(always)]
pub fn fma_f32(a: f32, b: f32, c: f32, rnd: Rounding, ftz: bool, sat: bool, fused: bool) -> f32 {
    let (a, b, c) = (flush_f32(a, ftz), flush_f32(b, ftz), flush_f32(c, ftz));
    let result = multiply_add(a, b, c, rnd, fused);
    let scaled = multiply_add(a * SCALE, b, c * SCALE, rnd, fused);
    finish(flush_result(result, scaled, ftz), sat)
}

/// Returns `a b + c`, rounded once.
#[inline(always)]
fn multiply_add(a: f32, b: f32, c: f32, rnd: Rounding, fused: bool) -> f32 {
    match rnd {
        Rounding::Rn if fused => a.mul_add(b, c),
        // The product is exact in f64, but its sum with c is not. `add_exact` rounds that sum to odd first, so a second
        // rounding gives the right result.
        _ => add_exact(f64::from(a) * f64::from(b), f64::from(c), rnd),
    }
}

/// `div.rnd{.ftz}.f32 d, a, b`
#[inline(always)]
pub fn div_f32(a: f32, b: f32, rnd: Rounding, ftz: bool) -> f32 {
    let (a, b) = (flush_f32(a, ftz), flush_f32(b, ftz));
    let result = quotient(a, b, rnd);
    finish(flush_result(result, quotient(a * SCALE, b, rnd), ftz), false)
}

/// Returns the quotient of two numbers.
#[inline(always)]
fn quotient(a: f32, b: f32, rnd: Rounding) -> f32 {
    match rnd {
        Rounding::Rn => a / b,
        // A quotient of 24-bit significands that is not an f32 number differs from every f32 number by more than f64's
        // rounding error, which therefore does not change the result of a directed mode.
        _ => round_f32(f64::from(a) / f64::from(b), rnd),
    }
}

/// `rcp.rnd{.ftz}.f32 d, a`
#[inline(always)]
pub fn rcp_f32(a: f32, rnd: Rounding, ftz: bool) -> f32 {
    div_f32(1.0, a, rnd, ftz)
}

/// `sqrt.rnd{.ftz}.f32 d, a`. Negative numbers give NaN, and -0 gives -0.
#[inline(always)]
pub fn sqrt_f32(a: f32, rnd: Rounding, ftz: bool) -> f32 {
    let a = flush_f32(a, ftz);
    // This takes the root of the magnitude, because LLVM drops a choice between a root that is NaN and another NaN.
    let magnitude = f32::from_bits(a.to_bits() & 0x7fff_ffff);
    let root = match rnd {
        Rounding::Rn => magnitude.sqrt(),
        // A root that is not an f32 number differs from every f32 number by more than f64's rounding error, which
        // therefore does not change the result of a directed mode.
        _ => round_f32(f64::from(magnitude).sqrt(), rnd),
    };
    let signed = root.to_bits() | a.to_bits() & 0x8000_0000;
    f32::from_bits(if a >= 0.0 { signed } else { NAN_F32 })
}

/// `abs{.ftz}.f32 d, a`
#[inline(always)]
pub fn abs_f32(a: f32, ftz: bool) -> f32 {
    let a = flush_f32(a, ftz);
    finish(f32::from_bits(a.to_bits() & 0x7fff_ffff), false)
}

/// `neg{.ftz}.f32 d, a`
#[inline(always)]
pub fn neg_f32(a: f32, ftz: bool) -> f32 {
    let a = flush_f32(a, ftz);
    finish(f32::from_bits(a.to_bits() ^ 0x8000_0000), false)
}

/// `copysign.f32 d, a, b`: the sign of `a` with the magnitude of `b`.
#[inline(always)]
pub fn copysign_f32(a: f32, b: f32) -> f32 {
    f32::from_bits(a.to_bits() & 0x8000_0000 | b.to_bits() & 0x7fff_ffff)
}

/// Returns the maximum if `maximum` is true, else the minimum. See [`min_f32`].
#[inline(always)]
fn select_f32(a: f32, b: f32, ftz: bool, nan: bool, xorsign_abs: bool, maximum: bool) -> f32 {
    let (mut a, mut b) = (flush_f32(a, ftz), flush_f32(b, ftz));
    let sign = (a.to_bits() ^ b.to_bits()) & 0x8000_0000;
    if xorsign_abs {
        (a, b) = (
            f32::from_bits(a.to_bits() & 0x7fff_ffff),
            f32::from_bits(b.to_bits() & 0x7fff_ffff),
        );
    }
    // -0 is less than +0 here.
    let a_first = if maximum {
        a > b || (a == b && a.to_bits() >> 31 == 0)
    } else {
        a < b || (a == b && a.to_bits() >> 31 != 0)
    };
    let number = if a_first { a } else { b };
    let number = if b.is_nan() { a } else { number };
    let number = if a.is_nan() && (nan || !b.is_nan()) {
        if nan { a } else { b }
    } else {
        number
    };
    let number = if nan && b.is_nan() { b } else { number };
    if number.is_nan() {
        f32::from_bits(NAN_F32)
    } else if xorsign_abs {
        f32::from_bits(number.to_bits() | sign)
    } else {
        number
    }
}

/// `min{.ftz}{.NaN}{.xorsign.abs}.f32 d, a, b`. -0 is less than +0. If one operand is a NaN, returns the other, or with
/// `.NaN` a NaN. With `.xorsign.abs`, returns the minimum of the magnitudes with the product of the signs.
#[inline(always)]
pub fn min_f32(a: f32, b: f32, ftz: bool, nan: bool, xorsign_abs: bool) -> f32 {
    select_f32(a, b, ftz, nan, xorsign_abs, false)
}

/// `max{.ftz}{.NaN}{.xorsign.abs}.f32 d, a, b`. See [`min_f32`].
#[inline(always)]
pub fn max_f32(a: f32, b: f32, ftz: bool, nan: bool, xorsign_abs: bool) -> f32 {
    select_f32(a, b, ftz, nan, xorsign_abs, true)
}
