//! The elementary functions below the approximate instructions: in `f64`, to within about 2^-51, for arguments and
//! results that are `f32` numbers. Rounded to `f32` they are correctly rounded but for one argument in many millions.
//!
//! Plain additions and multiplications without branches: the same bits on every CPU, and a loop over lanes vectorises.

/// 1.5 · 2^52: added and taken away again, it rounds a small number to an integer.
const ROUND: f64 = 6_755_399_441_055_744.0;

/// The polynomial with these coefficients, highest power first.
#[inline(always)]
fn polynomial<const N: usize>(x: f64, coefficients: [f64; N]) -> f64 {
    coefficients
        .iter()
        .fold(0.0, |sum, &coefficient| sum * x + coefficient)
}

/// Taylor coefficients of `2^x`: `ln(2)^k / k!`, from `k = 13` down to 0.
const EXP2: [f64; 14] = {
    let mut coefficients = [1.0; 14];
    let mut k = 1;
    while k < 14 {
        coefficients[13 - k] = coefficients[14 - k] * core::f64::consts::LN_2 / k as f64;
        k += 1;
    }
    coefficients
};

/// `2^x` for `|x| ≤ 1000`.
#[inline(always)]
pub(crate) fn exp2(x: f64) -> f64 {
    let shifted = x + ROUND;
    let fraction = x - (shifted - ROUND);
    // The integer sits in the low bits of the sum.
    let power = shifted.to_bits().wrapping_add(1023) << 52;
    polynomial(fraction, EXP2) * f64::from_bits(power)
}

/// `2 / ln(2) / (2 k + 1)` from `k = 12` down to 0: `log2((1 + s) / (1 - s))` as powers of `s²`, over `s`.
const LOG2: [f64; 13] = {
    let mut coefficients = [0.0; 13];
    let mut k = 0;
    while k < 13 {
        coefficients[12 - k] = 2.0 * core::f64::consts::LOG2_E / (2 * k + 1) as f64;
        k += 1;
    }
    coefficients
};

/// The logarithm to base 2 of a positive normal number.
#[inline(always)]
pub(crate) fn log2(x: f64) -> f64 {
    // Exponent and significand so that the significand lies between sqrt(1/2) and sqrt(2).
    const ROOT: u64 = 0x3fe6_a09e_0000_0000;
    let offset = x.to_bits().wrapping_sub(ROOT);
    let exponent = (offset as i64 >> 52) as f64;
    let significand = f64::from_bits((offset & ((1 << 52) - 1)).wrapping_add(ROOT));
    let s = (significand - 1.0) / (significand + 1.0);
    exponent + s * polynomial(s * s, LOG2)
}

/// `±(2 π)^n / n!` for odd and for even `n`, highest power first.
const fn turns<const N: usize>(first: u32) -> [f64; N] {
    let mut coefficients = [0.0; N];
    let mut term = if first == 0 {
        1.0
    } else {
        core::f64::consts::TAU
    };
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

const SIN: [f64; 9] = turns::<9>(1);
const COS: [f64; 10] = turns::<10>(0);

/// The sine of `2 π (t + quarter / 4)`, for `|t| < 2^50`; of a multiple of a half turn, a zero with the sign of `t`
/// where `quarter` is 0.
#[inline(always)]
pub(crate) fn sin_turns(t: f64, quarter: u64) -> f64 {
    // Reduced to an eighth of a turn on both sides of a quarter: exact, as t has few bits.
    let shifted = t * 4.0 + ROUND;
    let rest = t - (shifted - ROUND) * 0.25;
    let quadrant = shifted.to_bits().wrapping_add(quarter);
    let square = rest * rest;
    let sine = rest * polynomial(square, SIN);
    let cosine = polynomial(square, COS);
    let value = if quadrant & 1 == 0 { sine } else { cosine };
    if quadrant & 2 == 0 { value } else { -value }
}

/// The hyperbolic tangent.
#[inline(always)]
pub(crate) fn tanh(x: f64) -> f64 {
    let magnitude = x.abs();
    let square = magnitude * magnitude;
    // Near zero the continued fraction x / (1 + x² / (3 + x² / (5 + …))), as one fraction; elsewhere by 2^x.
    let (mut above, mut below) = (1.0, 21.0);
    let mut odd = 19.0;
    while odd > 0.0 {
        // below / above is the tail so far: odd + square / (below / above).
        (above, below) = (below, odd * below + square * above);
        odd -= 2.0;
    }
    let near = magnitude * above / below;
    let power = exp2(-2.0 * core::f64::consts::LOG2_E * magnitude.min(100.0));
    let far = (1.0 - power) / (1.0 + power);
    let value = if magnitude < 0.625 { near } else { far };
    if x.is_nan() { x } else { value.copysign(x) }
}
