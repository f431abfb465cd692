//! Rounding of exact values to representable ones, in the modes of PTX.
//!
//! There are three ways, the fastest first: the host's own rounding to nearest; one step from a result that the host
//! rounded to nearest, if the sign of the error is known; and [`round_pack`], which uses integers only, for all other
//! cases.

use ptx::ir::Rounding;

/// A binary floating-point format with at most 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Format {
    /// Bits of the significand, including the hidden bit.
    pub(crate) precision: u32,
    /// Exponent of the smallest normal number.
    pub(crate) min_exponent: i32,
    /// The bits of infinity; for a format without it, the first pattern past the greatest finite number.
    pub(crate) infinity: u64,
    /// Position of the sign bit.
    pub(crate) sign: u32,
}

const fn format(precision: u32, min_exponent: i32, infinity: u64, sign: u32) -> Format {
    Format {
        precision,
        min_exponent,
        infinity,
        sign,
    }
}

pub(crate) const E4M3: Format = format(4, -6, 0x7f, 7);
pub(crate) const E5M2: Format = format(3, -14, 0x7c, 7);
pub(crate) const F16: Format = format(11, -14, 0x7c00, 15);
pub(crate) const BF16: Format = format(8, -126, 0x7f80, 15);
pub(crate) const F32: Format = format(24, -126, 0x7f80_0000, 31);
pub(crate) const F64: Format = format(53, -1022, 0x7ff0 << 48, 63);

/// Returns true if the magnitude is rounded up. `odd` is the last bit that is kept, `rest` is the part that is cut off,
/// and `half` is half a unit.
#[inline(always)]
fn rounds_up(rnd: Rounding, negative: bool, odd: bool, rest: u64, half: u64) -> bool {
    match rnd {
        Rounding::Rn => rest > half || (rest == half && odd),
        Rounding::Rna => rest >= half,
        Rounding::Rm => negative && rest != 0,
        Rounding::Rp => !negative && rest != 0,
        // `.rs` adds random bits, and then truncates. No form with it is implemented.
        Rounding::Rz | Rounding::Rs => false,
    }
}

/// Returns true if a result past the greatest finite number becomes an infinity rather than that number.
#[inline(always)]
fn overflows_to_infinity(rnd: Rounding, negative: bool) -> bool {
    match rnd {
        Rounding::Rn | Rounding::Rna => true,
        Rounding::Rz | Rounding::Rs => false,
        Rounding::Rm => negative,
        Rounding::Rp => !negative,
    }
}

/// Returns the bits of `significand · 2^exponent`, rounded to `format`. Zero gives a zero of that sign.
#[inline]
pub(crate) fn round_pack(format: Format, negative: bool, significand: u64, exponent: i32, rnd: Rounding) -> u64 {
    let sign = u64::from(negative) << format.sign;
    if significand == 0 {
        return sign;
    }
    let top = 63 - significand.leading_zeros() as i32;
    let fraction_bits = format.precision as i32 - 1;
    let normal_exponent = (exponent + top).max(format.min_exponent);
    // The last bit of the result has the value 2^(normal_exponent - fraction_bits).
    let cut = normal_exponent - fraction_bits - exponent;
    let magnitude = if cut <= 0 {
        significand << -cut
    } else if cut > 64 {
        u64::from(rounds_up(rnd, negative, false, 1, 2))
    } else {
        let kept = significand.checked_shr(cut as u32).unwrap_or(0);
        // With cut = 64 all bits are cut off, bit 63 is half a unit, and nothing is shifted.
        let rest = significand << ((64 - cut) as u32 % 64);
        kept + u64::from(rounds_up(rnd, negative, kept & 1 != 0, rest, 1 << 63))
    };
    // The hidden bit adds the last 1 to the exponent field. So does a carry out of the significand.
    let field = (normal_exponent - format.min_exponent) as u64;
    let packed = (field << fraction_bits).saturating_add(magnitude);
    if packed < format.infinity {
        sign | packed
    } else {
        sign | (format.infinity - u64::from(!overflows_to_infinity(rnd, negative)))
    }
}

/// Rounds like [`round_pack`], from a significand of up to 128 bits.
#[inline]
pub(crate) fn round_pack_128(format: Format, negative: bool, significand: u128, exponent: i32, rnd: Rounding) -> u64 {
    let cut = 64 - (significand.leading_zeros() as i32).min(64);
    let sticky = u64::from(significand & ((1u128 << cut) - 1) != 0);
    // 64 bits are more than the format needs, so one bit replaces the bits that are cut off: it is set if any of them
    // was.
    round_pack(
        format,
        negative,
        (significand >> cut) as u64 | sticky,
        exponent + cut,
        rnd,
    )
}

/// Splits a finite number into sign, significand and exponent: `(-1)^sign · significand · 2^exponent`.
#[inline(always)]
pub(crate) fn unpack_f64(a: f64) -> (bool, u64, i32) {
    let bits = a.to_bits();
    let field = (bits >> 52 & 0x7ff) as i32;
    let fraction = bits & ((1 << 52) - 1);
    if field == 0 {
        (a.is_sign_negative(), fraction, -1074)
    } else {
        (bits >> 63 != 0, fraction | 1 << 52, field - 1075)
    }
}

/// Returns `x + e` rounded to odd, where `x` is a sum rounded to nearest and `e` its error. The result is exact, or the
/// one of the two neighbours whose last bit is 1. Rounding it again, to at least two bits less and in any mode, gives
/// the same as rounding the exact sum.
#[inline(always)]
pub(crate) fn to_odd(x: f64, e: f64) -> f64 {
    let bits = x.to_bits();
    // An infinite sum gives a NaN error, for which this is false.
    let inexact = (e > 0.0) | (e < 0.0);
    let outwards = (e > 0.0) == (x > 0.0);
    let odd = if outwards { bits | 1 } else { bits.wrapping_sub(1) | 1 };
    f64::from_bits(if inexact & (bits & 1 == 0) { odd } else { bits })
}

/// Returns the error of `sum`, which is `a + b` rounded to nearest. It is exact if `sum` is finite.
#[inline(always)]
pub(crate) fn sum_error(a: f64, b: f64, sum: f64) -> f64 {
    // Knuth's two-sum works for any order of the operands, so it needs no branch.
    let b_part = sum - a;
    (a - (sum - b_part)) + (b - b_part)
}

/// Returns `a + b` rounded to odd, for operands whose sum cannot overflow.
#[inline(always)]
pub(crate) fn add_to_odd(a: f64, b: f64) -> f64 {
    let sum = a + b;
    to_odd(sum, sum_error(a, b, sum))
}

/// Returns the next number below `a`, which must not be a NaN or the negative infinity.
#[inline(always)]
fn step_down(a: f32) -> f32 {
    let bits = a.to_bits();
    let negative = bits.wrapping_add(1);
    let positive = bits.wrapping_sub(1);
    let down = if bits >> 31 != 0 { negative } else { positive };
    f32::from_bits(if a == 0.0 { 0x8000_0001 } else { down })
}

/// Rounds an `.f64`, which is exact or rounded to odd, to `.f32`.
#[inline(always)]
pub(crate) fn round_f32(x: f64, rnd: Rounding) -> f32 {
    let nearest = x as f32;
    let back = f64::from(nearest);
    match rnd {
        Rounding::Rn => nearest,
        Rounding::Rz | Rounding::Rs => {
            if back.abs() > x.abs() {
                f32::from_bits(nearest.to_bits().wrapping_sub(1))
            } else {
                nearest
            }
        }
        Rounding::Rm => {
            if back > x {
                step_down(nearest)
            } else {
                nearest
            }
        }
        Rounding::Rp => {
            if back < x {
                -step_down(-nearest)
            } else {
                nearest
            }
        }
        // A tie is the midpoint of two neighbours. Rounding to nearest returned the even one.
        Rounding::Rna => {
            let away = f32::from_bits(nearest.to_bits().wrapping_add(1));
            if back.abs() < x.abs() && f64::from(away) - x == x - back {
                away
            } else {
                nearest
            }
        }
    }
}

/// Rounds to odd in `.f32`. Rounding the result to `.f16` or `.bf16` gives the same as rounding `x`.
#[inline(always)]
pub(crate) fn round_f32_to_odd(x: f64) -> f32 {
    let nearest = x as f32;
    let back = f64::from(nearest);
    let bits = nearest.to_bits();
    let bits = if back.abs() > x.abs() {
        bits.wrapping_sub(1)
    } else {
        bits
    };
    // A NaN differs from itself, and stays a NaN with its last bit set.
    f32::from_bits(if back != x { bits | 1 } else { bits })
}

/// Returns the bits in `format` of a number that is not a NaN.
#[inline]
pub(crate) fn round_f64(format: Format, x: f64, rnd: Rounding) -> u64 {
    if x.is_infinite() {
        return u64::from(x < 0.0) << format.sign | format.infinity;
    }
    let (negative, significand, exponent) = unpack_f64(x);
    round_pack(format, negative, significand, exponent, rnd)
}

/// Defines a function that rounds to an integral number: down, up, to zero, or in all other modes to nearest even. A
/// zero has the sign of `a`. The baseline CPU of x86-64 has no instruction for it.
macro_rules! integral {
    ($name:ident $t:ident $limit:literal) => {
        #[inline(always)]
        pub(crate) fn $name(a: $t, rnd: Rounding) -> $t {
            // Numbers from LIMIT on are integral. For smaller ones, the last bit of the sum with LIMIT has the value 1.
            const LIMIT: $t = $limit;
            let magnitude = a.abs();
            let nearest = (magnitude + LIMIT) - LIMIT;
            let nearest = if magnitude < LIMIT { nearest } else { magnitude };
            let negative = a.is_sign_negative();
            let (up, down) = (nearest < magnitude, nearest > magnitude);
            let result = match rnd {
                Rounding::Rn | Rounding::Rna | Rounding::Rs => nearest,
                Rounding::Rz => nearest - (down as u8 as $t),
                Rounding::Rm => nearest + ((up & negative) as u8 as $t) - ((down & !negative) as u8 as $t),
                Rounding::Rp => nearest + ((up & !negative) as u8 as $t) - ((down & negative) as u8 as $t),
            };
            result.copysign(a)
        }
    };
}

integral!(integral_f32 f32 8_388_608.0);
integral!(integral_f64 f64 4_503_599_627_370_496.0);
