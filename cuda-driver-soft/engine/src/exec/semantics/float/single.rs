//! `.f32`: where `add.f32` happens.

use super::super::round::{add_to_odd, round_f32};
use ptx::ir::Rounding;

/// The NaN of `.f32` arithmetic.
pub const NAN_F32: u32 = 0x7fff_ffff;

/// `.ftz` on an operand: a subnormal number becomes a zero of its sign.
#[inline(always)]
pub fn flush_f32(a: f32, ftz: bool) -> f32 {
    let bits = a.to_bits();
    f32::from_bits(if ftz && bits & 0x7f80_0000 == 0 {
        bits & 0x8000_0000
    } else {
        bits
    })
}

/// Any NaN becomes the one NaN of `.f32` arithmetic.
#[inline(always)]
pub(crate) fn canonical_f32(a: f32) -> f32 {
    // The bits are compared, since the compiler takes one NaN for another: it drops `if a.is_nan()` behind a square root.
    let bits = a.to_bits();
    f32::from_bits(if bits & 0x7fff_ffff > 0x7f80_0000 {
        NAN_F32
    } else {
        bits
    })
}

/// `.sat`: limited to 0 … 1; a NaN, and -0, become 0.
#[inline(always)]
pub(crate) fn saturate_f32(a: f32) -> f32 {
    // By the bits, because the compiler takes `if a > 0.0 { a } else { 0.0 }` for a maximum: to it, every NaN is as good
    // as another, and the maximum of AArch64 answers a signalling NaN with a NaN.
    let bits = a.to_bits();
    let positive = if bits.wrapping_sub(1) < 0x7f80_0000 {
        bits
    } else {
        0
    };
    f32::from_bits(positive.min(1f32.to_bits()))
}

/// The last step of every operation: `.sat`, or the one NaN.
#[inline(always)]
fn finish(r: f32, sat: bool) -> f32 {
    if sat {
        saturate_f32(r)
    } else {
        canonical_f32(r)
    }
}

/// 2^24: enough to lift a subnormal result, with all bits that its rounding needs, into the normal range.
pub(crate) const SCALE: f32 = 16_777_216.0;

/// `.ftz` on a result that may be inexact. It is tiny, and becomes a zero of its sign, if it is less than the least
/// normal number when rounded to 24 bits with no limit to the exponent: so a number just below the least normal one is
/// flushed though in the subnormal format it would have been rounded up to it.
/// `scaled` is the same operation, rounded the same way, with a result 2^24 times as large.
#[inline(always)]
pub(crate) fn flush_result(r: f32, scaled: f32, ftz: bool) -> f32 {
    let tiny = ftz && scaled.abs() < f32::MIN_POSITIVE * SCALE;
    f32::from_bits(if tiny {
        r.to_bits() & 0x8000_0000
    } else {
        r.to_bits()
    })
}

/// The sum of two `.f64` that hold exact values: correctly rounded to `.f32`.
#[inline(always)]
fn add_exact(a: f64, b: f64, rnd: Rounding) -> f32 {
    let sum = round_f32(add_to_odd(a, b), rnd);
    // An exact zero is +0, but -0 in the mode .rm, unless both are +0.
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
    // A subnormal sum is exact.
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

// Functions and not closures: closures cannot be told to be inlined, and code outside of the caller is compiled for the
// plainest CPU.
#[inline(always)]
fn product(a: f32, b: f32, rnd: Rounding) -> f32 {
    match rnd {
        Rounding::Rn => a * b,
        // The product of two 24-bit significands fits into 53 bits.
        _ => round_f32(f64::from(a) * f64::from(b), rnd),
    }
}

/// `fma.rnd{.ftz}{.sat}.f32 d, a, b, c`, and `mad` of that type. `fused`: whether the code around this call is compiled
/// for a CPU that has the instruction; the result is the same.
#[inline(always)]
pub fn fma_f32(a: f32, b: f32, c: f32, rnd: Rounding, ftz: bool, sat: bool, fused: bool) -> f32 {
    let (a, b, c) = (flush_f32(a, ftz), flush_f32(b, ftz), flush_f32(c, ftz));
    let result = multiply_add(a, b, c, rnd, fused);
    let scaled = multiply_add(a * SCALE, b, c * SCALE, rnd, fused);
    finish(flush_result(result, scaled, ftz), sat)
}

#[inline(always)]
fn multiply_add(a: f32, b: f32, c: f32, rnd: Rounding, fused: bool) -> f32 {
    match rnd {
        Rounding::Rn if fused => a.mul_add(b, c),
        // The product is exact in f64. Its sum with c is not: rounded to odd, it can be rounded once more.
        _ => add_exact(f64::from(a) * f64::from(b), f64::from(c), rnd),
    }
}

/// `div.rnd{.ftz}.f32 d, a, b`
#[inline(always)]
pub fn div_f32(a: f32, b: f32, rnd: Rounding, ftz: bool) -> f32 {
    let (a, b) = (flush_f32(a, ftz), flush_f32(b, ftz));
    let result = quotient(a, b, rnd);
    finish(
        flush_result(result, quotient(a * SCALE, b, rnd), ftz),
        false,
    )
}

#[inline(always)]
fn quotient(a: f32, b: f32, rnd: Rounding) -> f32 {
    match rnd {
        Rounding::Rn => a / b,
        // A quotient of 24-bit significands that is no f32 number differs from every f32 number by more than f64's error.
        _ => round_f32(f64::from(a) / f64::from(b), rnd),
    }
}

/// `rcp.rnd{.ftz}.f32 d, a`
#[inline(always)]
pub fn rcp_f32(a: f32, rnd: Rounding, ftz: bool) -> f32 {
    div_f32(1.0, a, rnd, ftz)
}

/// `sqrt.rnd{.ftz}.f32 d, a`. Below zero: NaN; of -0: -0.
#[inline(always)]
pub fn sqrt_f32(a: f32, rnd: Rounding, ftz: bool) -> f32 {
    let a = flush_f32(a, ftz);
    // Of the magnitude, because LLVM drops a choice between a root and a NaN: to it, every NaN is as good as another.
    let magnitude = f32::from_bits(a.to_bits() & 0x7fff_ffff);
    let root = match rnd {
        Rounding::Rn => magnitude.sqrt(),
        // As for the quotient: a root that is no f32 number is far enough from all of them.
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

/// `min` where `less` is `<`, `max` where it is `>`; `prefers_a` decides between zeros of different sign.
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

/// `min{.ftz}{.NaN}{.xorsign.abs}.f32 d, a, b`. -0 is less than +0. One NaN operand: the other one, or with `.NaN` NaN.
/// `.xorsign.abs`: of the magnitudes, with the product of the signs.
#[inline(always)]
pub fn min_f32(a: f32, b: f32, ftz: bool, nan: bool, xorsign_abs: bool) -> f32 {
    select_f32(a, b, ftz, nan, xorsign_abs, false)
}

/// `max{.ftz}{.NaN}{.xorsign.abs}.f32 d, a, b`. See [`min_f32`].
#[inline(always)]
pub fn max_f32(a: f32, b: f32, ftz: bool, nan: bool, xorsign_abs: bool) -> f32 {
    select_f32(a, b, ftz, nan, xorsign_abs, true)
}
