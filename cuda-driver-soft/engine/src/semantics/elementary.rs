//! The elementary functions that the approximate instructions use, computed in `f64` with a relative error of at most
//! about 2^-51. For `f32` arguments, the results rounded to `f32` are correctly rounded except for one argument in many
//! millions.
//!
//! These functions use only exactly specified operations: additions, subtractions, multiplications, divisions,
//! conversions, bit operations and selections between computed values. They therefore give the same bits on every CPU,
//! and loops over lanes vectorise.

/// 1.5 · 2^52. Adding and subtracting it rounds a number of magnitude at most 2^51 to the nearest integer.
pub(crate) const ROUND: f64 = 6_755_399_441_055_744.0;

/// Returns the value of the polynomial with these coefficients, highest power first.
#[inline(always)]
fn polynomial<const N: usize>(x: f64, coefficients: [f64; N]) -> f64 {
    coefficients.iter().fold(0.0, |sum, &coefficient| sum * x + coefficient)
}

/// Taylor coefficients of `2^x`: `ln(2)^k / k!`, from `k = 13` down to 0.
pub(crate) const EXP2: [f64; 14] = {
    let mut coefficients = [1.0; 14];
    let mut k = 1;
    while k < 14 {
        coefficients[13 - k] = coefficients[14 - k] * core::f64::consts::LN_2 / k as f64;
        k += 1;
    }
    coefficients
};

/// Returns `2^x` for `|x| ≤ 1000`.
#[inline(always)]
pub(crate) fn exp2(x: f64) -> f64 {
    let shifted = x + ROUND;
    let fraction = x - (shifted - ROUND);
    // The integer is in the low bits of the sum.
    let power = shifted.to_bits().wrapping_add(1023) << 52;
    polynomial(fraction, EXP2) * f64::from_bits(power)
}

/// The coefficients of `log2((1 + s) / (1 - s)) / s` in powers of `s²`: `2 / ln(2) / (2 k + 1)` from `k = 12` down to
/// 0.
pub(crate) const LOG2: [f64; 13] = {
    let mut coefficients = [0.0; 13];
    let mut k = 0;
    while k < 13 {
        coefficients[12 - k] = 2.0 * core::f64::consts::LOG2_E / (2 * k + 1) as f64;
        k += 1;
    }
    coefficients
};

/// The bits of a number just below `sqrt(1/2)`.
pub(crate) const ROOT: u64 = 0x3fe6_a09e_0000_0000;

/// Returns the logarithm to base 2 of a positive normal number.
#[inline(always)]
pub(crate) fn log2(x: f64) -> f64 {
    // Split the number so that the significand is between sqrt(1/2) and sqrt(2).
    let offset = x.to_bits().wrapping_sub(ROOT);
    let exponent = (offset as i64 >> 52) as f64;
    let significand = f64::from_bits((offset & ((1 << 52) - 1)).wrapping_add(ROOT));
    let s = (significand - 1.0) / (significand + 1.0);
    exponent + s * polynomial(s * s, LOG2)
}

/// Returns the coefficients `±(2 π)^n / n!`, highest power first: for even `n` if `first` is 0, for odd `n` if it is 1.
const fn turns<const N: usize>(first: u32) -> [f64; N] {
    let mut coefficients = [0.0; N];
    let mut term = if first == 0 { 1.0 } else { core::f64::consts::TAU };
    let mut n = first;
    let mut i = N;
    while i > 0 {
        i -= 1;
        coefficients[i] = term;
        term = -term * core::f64::consts::TAU * core::f64::consts::TAU / ((n + 1) * (n + 2)) as f64;
        n += 2;
    }
    coefficients
}

/// The coefficients of the sine, in odd powers of turns.
pub(crate) const SIN: [f64; 9] = turns::<9>(1);
/// The coefficients of the cosine, in even powers of turns.
pub(crate) const COS: [f64; 10] = turns::<10>(0);

/// Returns the sine of `2 π (t + quarter / 4)`, for `|t| < 2^49`. If `quarter` is 0, the sine of a zero is that zero,
/// with its sign.
#[inline(always)]
pub(crate) fn sin_turns(t: f64, quarter: u64) -> f64 {
    // Reduce to an eighth of a turn on both sides of a multiple of a quarter turn. This is exact: the difference is a
    // multiple of the last bit of t, and is at most 1/8.
    let shifted = t * 4.0 + ROUND;
    let rest = t - (shifted - ROUND) * 0.25;
    let quadrant = shifted.to_bits().wrapping_add(quarter);
    let square = rest * rest;
    let sine = rest * polynomial(square, SIN);
    let cosine = polynomial(square, COS);
    let value = if quadrant & 1 == 0 { sine } else { cosine };
    if quadrant & 2 == 0 { value } else { -value }
}

/// Returns the hyperbolic tangent.
#[inline(always)]
pub(crate) fn tanh(x: f64) -> f64 {
    let magnitude = x.abs();
    let square = magnitude * magnitude;
    // Near zero this is the continued fraction x / (1 + x² / (3 + x² / (5 + …))), computed as one fraction; elsewhere
    // the result is computed from 2^x.
    let (mut above, mut below) = (1.0, 21.0);
    let mut odd = 19.0;
    while odd > 0.0 {
        // below / above is the tail so far, and becomes odd + square / (below / above).
        (above, below) = (below, odd * below + square * above);
        odd -= 2.0;
    }
    let near = magnitude * above / below;
    let power = exp2(-2.0 * core::f64::consts::LOG2_E * magnitude.min(100.0));
    let far = (1.0 - power) / (1.0 + power);
    let value = if magnitude < 0.625 { near } else { far };
    if x.is_nan() { x } else { value.copysign(x) }
}
