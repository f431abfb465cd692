//! The sum that `mma` computes for one element of its result: the products of a row and a column plus an accumulator.
//!
//! Integer sums are exact until they are limited or wrapped to 32 bits, and f64 sums are rounded after each product.
//! NVIDIA does not document the sums of narrower floating-point formats. This module follows the model of sm_90 in the
//! literature (Fasi et al.; MMA-Sim): products are exact; a group of them and the accumulator are truncated to some
//! bits below the greatest of them, added without error, and truncated to f32, or rounded to f16. On the GPU and here,
//! a sum is exact if none of these steps cuts off a bit that is set.

use super::{cvt, half};
use ptx::ir::Rounding;
use std::ops::Range;

/// A floating-point number as a summand: `significand * 2^(exponent - bits)`, where `bits` is the number of fraction
/// bits.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Number {
    Nan,
    /// True if the number is negative.
    Infinite(bool),
    Finite {
        significand: i64,
        exponent: i32,
        bits: u32,
    },
}

/// Splits a number into a sign, `exponent_bits` bits of exponent, and `bits` fraction bits.
fn number(value: u32, exponent_bits: u32, bits: u32) -> Number {
    let negative = value >> (exponent_bits + bits) & 1 != 0;
    let most = (1 << exponent_bits) - 1;
    let (field, fraction) = ((value >> bits & most) as i32, i64::from(value & ((1 << bits) - 1)));
    if field == most as i32 {
        return if fraction != 0 {
            Number::Nan
        } else {
            Number::Infinite(negative)
        };
    }
    let bias = (most >> 1) as i32;
    let (significand, exponent) = if field == 0 {
        (fraction, 1 - bias)
    } else {
        (fraction | 1 << bits, field - bias)
    };
    Number::Finite {
        significand: if negative { -significand } else { significand },
        exponent,
        bits,
    }
}

fn f32_number(value: f32) -> Number {
    number(value.to_bits(), 8, 23)
}

/// The floating-point format of factors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Factor {
    /// `.f16`
    F16,
    /// `.bf16`
    Bf16,
    /// `.tf32`
    Tf32,
    /// `.e4m3`
    E4m3,
    /// `.e5m2`
    E5m2,
}

impl Factor {
    /// Returns the number of fraction bits.
    fn bits(self) -> u32 {
        match self {
            Factor::F16 | Factor::Tf32 => 10,
            Factor::Bf16 => 7,
            Factor::E4m3 => 3,
            Factor::E5m2 => 2,
        }
    }

    /// Splits a number of this format.
    #[inline]
    fn number(self, bits: u32) -> Number {
        match self {
            Factor::F16 => number(bits & 0xffff, 5, 10),
            Factor::Bf16 => number(bits & 0xffff, 8, 7),
            // The low 13 bits are ignored.
            Factor::Tf32 => number(bits >> 13, 8, 10),
            Factor::E5m2 => number(bits & 0xff, 5, 2),
            // The format has no infinity. Only the greatest magnitude is a NaN.
            Factor::E4m3 => match bits & 0x7f {
                0x7f => Number::Nan,
                magnitude => {
                    let (field, fraction) = (magnitude >> 3, i64::from(magnitude & 7));
                    let (significand, exponent) = match field {
                        0 => (fraction, -6),
                        field => (fraction | 8, field as i32 - 7),
                    };
                    Number::Finite {
                        significand: if bits & 0x80 != 0 { -significand } else { significand },
                        exponent,
                        bits: 3,
                    }
                }
            },
        }
    }

    /// Returns the number of products that are added at once, and the number of bits below the greatest exponent that
    /// are kept.
    fn group(self) -> (usize, u32) {
        match self {
            Factor::F16 | Factor::Bf16 => (16, 25),
            Factor::Tf32 => (8, 25),
            Factor::E4m3 | Factor::E5m2 => (32, 13),
        }
    }

    /// Truncates a sum. On an H200, sums of 8-bit factors have 13 fraction bits.
    fn truncate(self, sum: f32) -> f32 {
        match self {
            Factor::E4m3 | Factor::E5m2 => f32::from_bits(sum.to_bits() & !0x3ff),
            _ => sum,
        }
    }
}

/// Returns the product of two numbers.
fn product(a: Number, b: Number) -> Number {
    let is_zero = |n| matches!(n, Number::Finite { significand: 0, .. });
    let negative = |n| match n {
        Number::Infinite(negative) => negative,
        Number::Finite { significand, .. } => significand < 0,
        Number::Nan => false,
    };
    match (a, b) {
        (Number::Nan, _) | (_, Number::Nan) => Number::Nan,
        (
            Number::Finite {
                significand: x,
                exponent: p,
                bits: m,
            },
            Number::Finite {
                significand: y,
                exponent: q,
                bits: n,
            },
        ) => Number::Finite {
            significand: x * y,
            exponent: p + q,
            bits: m + n,
        },
        _ if is_zero(a) || is_zero(b) => Number::Nan,
        // Products with zero were handled above, so both signs are known.
        _ => Number::Infinite(negative(a) != negative(b)),
    }
}

/// Returns the significand and exponent of the sum of some numbers, each truncated to `keep` bits below the greatest
/// exponent. Returns `Err` with the sum if it is an infinity or a NaN.
fn sum(numbers: &[Number], keep: u32) -> Result<(i64, i32), f32> {
    let mut infinite = None;
    let mut greatest = i32::MIN;
    for number in numbers {
        match *number {
            Number::Nan => return Err(nan()),
            Number::Infinite(negative) => {
                if *infinite.get_or_insert(negative) != negative {
                    return Err(nan());
                }
            }
            Number::Finite {
                significand, exponent, ..
            } if significand != 0 => greatest = greatest.max(exponent),
            Number::Finite { .. } => {}
        }
    }
    match infinite {
        Some(true) => return Err(f32::NEG_INFINITY),
        Some(false) => return Err(f32::INFINITY),
        None => {}
    }
    let mut sum = 0i64;
    for number in numbers {
        if let Number::Finite {
            significand,
            exponent,
            bits,
        } = *number
            && significand != 0
        {
            // A significand has at most `bits` + 2 bits, so at most `keep` + 2 after the shift: the sum cannot
            // overflow.
            let down = i64::from(bits) + i64::from(greatest) - i64::from(exponent) - i64::from(keep);
            sum += if down <= 0 {
                significand << -down
            } else if down > 62 {
                0
            } else {
                // Truncate towards zero.
                significand.signum() * (significand.abs() >> down)
            };
        }
    }
    Ok((sum, greatest.saturating_sub(keep as i32)))
}

/// Returns the NaN of these sums.
fn nan() -> f32 {
    f32::from_bits(0x7fff_ffff)
}

/// Returns `significand * 2^exponent`, truncated to f32; an infinity if it is too large.
fn cut_to_f32(significand: i64, exponent: i32) -> f32 {
    if significand == 0 {
        return 0.0;
    }
    let magnitude = significand.unsigned_abs();
    let top = 63 - magnitude.leading_zeros() as i32;
    let power = top + exponent;
    if power > 127 {
        return if significand < 0 {
            f32::NEG_INFINITY
        } else {
            f32::INFINITY
        };
    }
    // The lowest bit of the result, as a power of two.
    let lowest = (power - 23).max(-149);
    let down = lowest - exponent;
    let kept = if down >= 64 {
        0
    } else if down >= 0 {
        magnitude >> down
    } else {
        magnitude << -down
    };
    let bits = if kept >> 23 == 0 {
        kept as u32
    } else {
        ((power + 127) as u32) << 23 | (kept as u32 & 0x7f_ffff)
    };
    f32::from_bits(bits | u32::from(significand < 0) << 31)
}

/// A row of A or a column of B, whose elements are split once for all sums.
#[derive(Clone, Debug)]
pub struct Factors {
    format: Factor,
    /// The elements; zero for those that are not finite.
    finite: Vec<Finite>,
    /// All elements, if some are not finite.
    others: Option<Vec<Number>>,
}

/// A finite element: `significand * 2^(exponent - bits)`, where `bits` is the number of the format's fraction bits.
#[derive(Clone, Copy, Debug)]
struct Finite {
    significand: i32,
    /// [`NONE`] for zero.
    exponent: i32,
}

/// The exponent of zero: less than the sum of any two exponents.
const NONE: i32 = -1 << 20;

impl Factors {
    /// Splits elements of this format, each in the low bits of a `u64`.
    pub fn new(format: Factor, elements: &[u64]) -> Self {
        let mut all_finite = true;
        let mut split = |bits: &u64| match format.number(*bits as u32) {
            Number::Finite {
                significand, exponent, ..
            } if significand != 0 => Finite {
                significand: significand as i32,
                exponent,
            },
            number => {
                all_finite &= matches!(number, Number::Finite { .. });
                Finite {
                    significand: 0,
                    exponent: NONE,
                }
            }
        };
        let finite = elements.iter().map(&mut split).collect();
        let numbers = || elements.iter().map(|bits| format.number(*bits as u32)).collect();
        Factors {
            format,
            finite,
            others: (!all_finite).then(numbers),
        }
    }

    /// Returns an element.
    fn number(&self, at: usize) -> Number {
        match &self.others {
            Some(others) => others[at],
            None => Number::Finite {
                significand: self.finite[at].significand.into(),
                exponent: self.finite[at].exponent,
                bits: self.format.bits(),
            },
        }
    }
}

/// Maximum number of products that are added at once.
const MOST: usize = 32;

/// Returns the sum of a group of products and an accumulator, as [`sum`] does. `group` is the range of the group's
/// elements in `a` and `b`.
fn group_sum(
    (a, b): (&Factors, &Factors),
    group: Range<usize>,
    accumulator: Number,
    keep: u32,
) -> Result<(i64, i32), f32> {
    if let Number::Finite {
        significand,
        exponent,
        bits,
    } = accumulator
        && a.others.is_none()
        && b.others.is_none()
    {
        let products = (&a.finite[group.clone()], &b.finite[group]);
        // Products have fewer bits than are kept, so they are only shifted to the left before the common shift.
        let up = keep - a.format.bits() - b.format.bits();
        return Ok(finite_sum(products, up, (significand, exponent, bits), keep));
    }
    let mut numbers = [accumulator; MOST + 1];
    let count = group.len().min(MOST);
    for (to, at) in numbers[1..].iter_mut().zip(group) {
        *to = product(a.number(at), b.number(at));
    }
    sum(&numbers[..=count], keep)
}

/// Returns the sum of finite products and a finite accumulator, as [`sum`] does.
fn finite_sum(
    (a, b): (&[Finite], &[Finite]),
    up: u32,
    (significand, exponent, bits): (i64, i32, u32),
    keep: u32,
) -> (i64, i32) {
    let mut greatest = if significand == 0 { NONE } else { exponent };
    for (a, b) in a.iter().zip(b) {
        greatest = greatest.max(a.exponent + b.exponent);
    }
    let mut sum = 0;
    for (a, b) in a.iter().zip(b) {
        // Shifted to the left, it has at most 27 bits (15 for factors of 8 bits), so that 16 products (32 for factors
        // of 8 bits) fit into 32 bits.
        let product = a.significand * b.significand;
        let kept = (product.unsigned_abs() << up) >> (greatest - a.exponent - b.exponent).min(31);
        sum += if product < 0 {
            -kept.cast_signed()
        } else {
            kept.cast_signed()
        };
    }
    let mut sum = i64::from(sum);
    if significand != 0 {
        let down = i64::from(bits) + i64::from(greatest) - i64::from(exponent) - i64::from(keep);
        let magnitude = significand.unsigned_abs();
        let kept = match down {
            ..=0 => magnitude << -down,
            down => magnitude >> down.min(63),
        };
        sum += significand.signum() * kept.cast_signed();
    }
    (sum, greatest.saturating_sub(keep.cast_signed()))
}

/// Returns the groups of elements that are added at once.
fn groups(a: &Factors, b: &Factors, group: usize) -> impl Iterator<Item = Range<usize>> {
    let count = a.finite.len().min(b.finite.len());
    (0..count)
        .step_by(group)
        .map(move |start| start..(start + group).min(count))
}

/// Returns the sum of the accumulator `c` and the products, added group by group in f32.
pub fn dot_f32(a: &Factors, b: &Factors, c: f32) -> f32 {
    let format = a.format;
    let (group, keep) = format.group();
    let mut result = c;
    for group in groups(a, b, group) {
        result = match group_sum((a, b), group, f32_number(result), keep) {
            Ok((significand, exponent)) => format.truncate(cut_to_f32(significand, exponent)),
            Err(value) => value,
        };
    }
    result
}

/// Returns the sum of the accumulator `c` and the products, added group by group and rounded to the nearest f16.
pub fn dot_f16(a: &Factors, b: &Factors, c: u16) -> u16 {
    let (group, keep) = a.format.group();
    let mut result = c;
    for group in groups(a, b, group) {
        let accumulator = Factor::F16.number(u32::from(result));
        result = match group_sum((a, b), group, accumulator, keep) {
            // A sum has fewer bits than f64, so this is exact.
            Ok((significand, exponent)) => {
                let power = f64::from_bits(((exponent.max(-1000) + 1023) as u64) << 52);
                cvt::cvt_f16_from_f64(significand as f64 * power, Rounding::Rn, false)
            }
            Err(value) if value.is_nan() => 0x7fff,
            Err(value) => half::f32_to_f16(value),
        };
    }
    result
}

/// Returns the sum of the accumulator `c` and the products in f64, by one fused multiply-add after the other.
pub fn dot_f64(a: &[f64], b: &[f64], c: f64) -> f64 {
    let products = a.iter().zip(b);
    products.fold(c, |sum, (a, b)| super::float::fma_f64(*a, *b, sum, Rounding::Rn, false))
}

/// Returns the sum of the accumulator `c` and the products of integers: limited to the range of i32 if `limit`, else
/// modulo 2^32.
pub fn dot_s32(a: &[i32], b: &[i32], c: i32, limit: bool) -> i32 {
    let sum = a
        .iter()
        .zip(b)
        .fold(i64::from(c), |sum, (a, b)| sum + i64::from(*a) * i64::from(*b));
    if limit {
        sum.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32
    } else {
        sum as i32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two((first, second): (Factor, Factor), a: &[u32], b: &[u32]) -> [Factors; 2] {
        [(first, a), (second, b)].map(|(format, elements)| {
            let elements: Vec<u64> = elements.iter().map(|x| u64::from(*x)).collect();
            Factors::new(format, &elements)
        })
    }

    fn dot_f32(formats: (Factor, Factor), a: &[u32], b: &[u32], c: f32) -> f32 {
        let [a, b] = two(formats, a, b);
        super::dot_f32(&a, &b, c)
    }

    fn dot_f16(formats: (Factor, Factor), a: &[u32], b: &[u32], c: u16) -> u16 {
        let [a, b] = two(formats, a, b);
        super::dot_f16(&a, &b, c)
    }

    const TWO_F16: (Factor, Factor) = (Factor::F16, Factor::F16);
    const TWO_BF16: (Factor, Factor) = (Factor::Bf16, Factor::Bf16);
    const TWO_TF32: (Factor, Factor) = (Factor::Tf32, Factor::Tf32);
    const TWO_E4M3: (Factor, Factor) = (Factor::E4m3, Factor::E4m3);
    const TWO_E5M2: (Factor, Factor) = (Factor::E5m2, Factor::E5m2);

    fn halves(values: &[f32]) -> Vec<u32> {
        values.iter().map(|v| u32::from(half::f32_to_f16(*v))).collect()
    }

    #[test]
    fn sums_that_are_exact() {
        let a = halves(&[1.0, 2.0, -3.0, 0.5, 1024.0, 0.0, -0.0, 65504.0]);
        let b = halves(&[4.0, 0.25, 2.0, -8.0, 3.0, 7.0, 7.0, 1.0]);
        let expected = 4.0 + 0.5 - 6.0 - 4.0 + 3072.0 + 65504.0 + 0.125;
        assert_eq!(dot_f32(TWO_F16, &a, &b, 0.125), expected);
        // Subnormal factors and results.
        let small = vec![1; 8];
        let ones = halves(&[1.0; 8]);
        assert_eq!(dot_f32(TWO_F16, &small, &ones, 0.0), 8.0 * 2.0f32.powi(-24));
        assert_eq!(dot_f16(TWO_F16, &small, &ones, 0), 8);
        assert_eq!(dot_f32(TWO_F16, &[0; 8], &ones, f32::from_bits(5)), f32::from_bits(5));
        // 0x40 is 2 in e4m3, 0x38 is 1; 0x3c is 1 in e5m2.
        assert_eq!(dot_f32(TWO_E4M3, &[0x40, 0xc0, 0x38], &[0x38, 0x38, 0x40], 0.5), 2.5);
        assert_eq!(dot_f32(TWO_E5M2, &[0x3c, 0x40], &[0x3c, 0x40], 1.0), 6.0);
        assert_eq!(dot_f32(TWO_TF32, &[1.5f32.to_bits()], &[2.0f32.to_bits()], -1.0), 2.0);
    }

    #[test]
    fn sums_are_truncated() {
        // Bits more than 25 below the greatest are lost, and the sum is truncated to 24 significant bits.
        let (one, tiny) = (0x3c00, 0x0001);
        let a = [one, tiny];
        let sum = dot_f32(TWO_F16, &a, &[one, one], 0.0);
        assert_eq!(sum.to_bits(), 1.0f32.to_bits(), "2^-24 is cut off from 1 + 2^-24");
        let difference = dot_f32(TWO_F16, &[one, tiny | 0x8000], &[one, one], 0.0);
        assert_eq!(difference, 1.0 - 2.0f32.powi(-24));
    }

    #[test]
    fn sums_of_8_bit_factors_have_13_fraction_bits() {
        // 32 times 1.875 is 60. The accumulator adds lower bits, and the sum keeps 13 fraction bits.
        let a = [0x3f; 32];
        let b = [0x38; 32];
        let accumulator = 1.0 / 128.0 + 1.0 / 256.0 + 1.0 / 512.0;
        let sum = dot_f32(TWO_E4M3, &a, &b, accumulator);
        assert_eq!(sum, 60.0 + 1.0 / 128.0 + 1.0 / 256.0);
        assert_eq!(dot_f32(TWO_E4M3, &a[..1], &b[..1], accumulator), 1.875 + accumulator);
    }

    #[test]
    fn finite_sums_are_the_general_ones() {
        let mut state = 7u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state >> 32
        };
        for format in [Factor::F16, Factor::Bf16, Factor::Tf32, Factor::E4m3, Factor::E5m2] {
            let (group, keep) = format.group();
            for round in 0..2_000 {
                let mut factors = || {
                    let all: Vec<u64> = (0..group).map(|_| random() & random() & 0xffff_ffff).collect();
                    Factors::new(format, &all)
                };
                let (mut a, b) = (factors(), factors());
                if round % 3 == 0 {
                    a = Factors::new(format, &vec![random() % 2; group]);
                }
                let accumulator = f32_number(f32::from_bits((random() & random()) as u32));
                let mut numbers = vec![accumulator];
                numbers.extend((0..group).map(|at| product(a.number(at), b.number(at))));
                let (found, expected) = (group_sum((&a, &b), 0..group, accumulator, keep), sum(&numbers, keep));
                match (found, expected) {
                    // The exponent of zero is arbitrary.
                    (Ok((0, _)), Ok((0, _))) => {}
                    (Err(x), Err(y)) => assert_eq!(x.to_bits(), y.to_bits()),
                    (found, expected) => assert_eq!(found, expected, "{format:?} {a:?} {b:?} {accumulator:?}"),
                }
            }
        }
    }

    #[test]
    fn infinities_and_nans() {
        let (one, infinite, negative, not) = (0x3c00, 0x7c00, 0xfc00, 0x7e01);
        let dot = |a: &[u32], b: &[u32]| dot_f32(TWO_F16, a, b, 0.0);
        assert_eq!(dot(&[one, infinite], &[one, one]), f32::INFINITY);
        assert_eq!(dot(&[negative], &[one]), f32::NEG_INFINITY);
        assert_eq!(dot(&[infinite, negative], &[one, one]).to_bits(), 0x7fff_ffff);
        assert_eq!(dot(&[infinite], &[0]).to_bits(), 0x7fff_ffff);
        assert_eq!(dot(&[not], &[one]).to_bits(), 0x7fff_ffff);
        assert_eq!(dot_f16(TWO_F16, &[0x7bff; 4], &[one; 4], 0), 0x7c00);
        // The sum overflows f32.
        assert_eq!(dot_f32(TWO_BF16, &[0x7f7f; 2], &[0x3f80; 2], 0.0), f32::INFINITY);
    }

    #[test]
    fn integers() {
        assert_eq!(dot_s32(&[1, -2, 300], &[4, 5, -6], 7, false), 4 - 10 - 1800 + 7);
        assert_eq!(dot_s32(&[127; 4], &[127; 4], i32::MAX, true), i32::MAX);
        assert_eq!(dot_s32(&[127; 4], &[127; 4], i32::MAX, false), i32::MIN + 64515);
    }
}
