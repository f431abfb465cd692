//! `.f16`, `.bf16` and their packed pairs: `add sub mul fma neg abs min max`, comparison, and conversion to and from
//! `f32`.
//!
//! Each number is passed as its bits in a `u16`. Arithmetic is done in `f32` or `f64`, with enough extra bits that the
//! result is correct when it is rounded to nearest, the only rounding mode that PTX has for these types. A NaN result
//! of arithmetic is always [`NAN_HALF`].

use super::compare::compare_float;
use super::float::saturate_f32;
use super::round::{add_to_odd, round_f32_to_odd};
use ptx::ir::Compare;

/// The NaN that `.f16` and `.bf16` arithmetic returns.
pub const NAN_HALF: u16 = 0x7fff;

/// The NaN, of either sign, that marks an element outside of a tensor: `fma.oob` returns zero for it.
pub const OUT_OF_BOUNDS: u16 = 0x7ff7;

/// `2^-14 - 2^-26`. Smaller numbers are less than the least normal `.f16` even when rounded to 11 bits.
const TINY_F16: f32 = f32::from_bits(0x387f_f000);

/// Converts an `.f16` to `f32`, which is exact. The payload of a NaN moves to the upper bits.
#[inline(always)]
pub fn f16_to_f32(a: u16) -> f32 {
    let sign = u32::from(a & 0x8000) << 16;
    let magnitude = u32::from(a & 0x7fff) << 13;
    let exponent = magnitude & 0x0f80_0000;
    let rebased = magnitude + (112 << 23);
    let value = if exponent == 0x0f80_0000 {
        rebased + (112 << 23)
    } else if exponent == 0 {
        // A subnormal number with the hidden bit set is too large by exactly the least normal number.
        (f32::from_bits(rebased + (1 << 23)) - f32::from_bits(113 << 23)).to_bits()
    } else {
        rebased
    };
    f32::from_bits(sign | value)
}

/// Converts an `.f16` to `f64`, which is exact.
#[inline(always)]
fn f16_to_f64(a: u16) -> f64 {
    f64::from(f16_to_f32(a))
}

/// Rounds an `f32` to the nearest `.f16`.
#[inline(always)]
pub fn f32_to_f16(a: f32) -> u16 {
    let sign = (a.to_bits() >> 16) as u16 & 0x8000;
    let magnitude = a.to_bits() & 0x7fff_ffff;
    // The last bit of 0.5 has the value of the smallest subnormal .f16, so the sum is rounded to a multiple of it.
    let subnormal = (f32::from_bits(magnitude) + 0.5)
        .to_bits()
        .wrapping_sub(0.5f32.to_bits());
    // Add half a unit less one, and one more if the last kept bit is 1. A carry goes into the exponent, up to infinity.
    let rounding = 0xfff + (magnitude >> 13 & 1);
    let normal = magnitude.wrapping_sub(112 << 23).wrapping_add(rounding) >> 13;
    let value = if magnitude >= 0x4780_0000 {
        0x7c00
    } else if magnitude < 0x3880_0000 {
        subnormal as u16
    } else {
        normal as u16
    };
    if a.is_nan() { NAN_HALF } else { sign | value }
}

/// Converts a `.bf16` to `f32`, which is exact: a `.bf16` is the upper half of an `f32`.
#[inline(always)]
pub fn bf16_to_f32(a: u16) -> f32 {
    f32::from_bits(u32::from(a) << 16)
}

/// Rounds an `f32` to the nearest `.bf16`.
#[inline(always)]
pub fn f32_to_bf16(a: f32) -> u16 {
    let bits = a.to_bits();
    // A NaN may overflow here. The result is not used then.
    let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
    if a.is_nan() { NAN_HALF } else { rounded as u16 }
}

/// Applies `.ftz` to an `.f16` operand.
#[inline(always)]
fn flush(a: u16, ftz: bool) -> u16 {
    if ftz && a & 0x7c00 == 0 { a & 0x8000 } else { a }
}

/// Applies `.relu`: replaces negative numbers and -0 by +0, and keeps a NaN.
#[inline(always)]
fn relu(a: u16, relu: bool) -> u16 {
    if relu && a & 0x8000 != 0 { 0 } else { a }
}

/// Flushes, saturates and rounds a result, given as an `f32` that rounds to the same `.f16` as the exact result.
#[inline(always)]
fn finish_f16(result: f32, ftz: bool, sat: bool) -> u16 {
    let tiny = ftz && result.abs() < TINY_F16;
    let result = if tiny { 0f32.copysign(result) } else { result };
    f32_to_f16(if sat { saturate_f32(result) } else { result })
}

/// `add{.rnd}{.ftz}{.sat}.f16 d, a, b`
#[inline(always)]
pub fn add_f16(a: u16, b: u16, ftz: bool, sat: bool) -> u16 {
    // f32 has more than twice the bits, so rounding twice gives the same as rounding once.
    finish_f16(f16_to_f32(flush(a, ftz)) + f16_to_f32(flush(b, ftz)), ftz, sat)
}

/// `sub{.rnd}{.ftz}{.sat}.f16 d, a, b`
#[inline(always)]
pub fn sub_f16(a: u16, b: u16, ftz: bool, sat: bool) -> u16 {
    add_f16(a, b ^ 0x8000, ftz, sat)
}

/// `mul{.rnd}{.ftz}{.sat}.f16 d, a, b`
#[inline(always)]
pub fn mul_f16(a: u16, b: u16, ftz: bool, sat: bool) -> u16 {
    // The product is exact: it has 22 bits, and is always in the range of f32.
    finish_f16(f16_to_f32(flush(a, ftz)) * f16_to_f32(flush(b, ftz)), ftz, sat)
}

/// `fma.rnd{.ftz}{.sat}{.relu}{.oob}.f16 d, a, b, c`
#[inline(always)]
pub fn fma_f16(a: u16, b: u16, c: u16, ftz: bool, sat: bool, relu: bool, oob: bool) -> u16 {
    if oob && (out_of_bounds(a) || out_of_bounds(b)) {
        return 0;
    }
    let (a, b) = (f16_to_f64(flush(a, ftz)), f16_to_f64(flush(b, ftz)));
    let c = f16_to_f64(flush(c, ftz));
    // The product is exact, and a multiple of 2^-48. If the f64 sum is not exact, it is at least 32, where the midpoint
    // of two f16 numbers is a multiple of 2^-6, and the product is less than 2^-14. So the sum could be close to a
    // midpoint only if c were one, but c is an f16 number. The error of the f64 sum therefore changes no result.
    let sum = round_f32_to_odd(a * b + c);
    self::relu(finish_f16(sum, ftz, sat), relu)
}

/// Returns true if a factor of `fma.oob` has the mark of an element outside of a tensor.
#[inline(always)]
fn out_of_bounds(a: u16) -> bool {
    a & 0x7fff == OUT_OF_BOUNDS
}

/// `add{.rnd}.bf16 d, a, b`
#[inline(always)]
pub fn add_bf16(a: u16, b: u16) -> u16 {
    // As for .f16, rounding twice gives the same as rounding once. Sums in the subnormal range are exact.
    f32_to_bf16(bf16_to_f32(a) + bf16_to_f32(b))
}

/// `sub{.rnd}.bf16 d, a, b`
#[inline(always)]
pub fn sub_bf16(a: u16, b: u16) -> u16 {
    add_bf16(a, b ^ 0x8000)
}

/// `mul{.rnd}.bf16 d, a, b`
#[inline(always)]
pub fn mul_bf16(a: u16, b: u16) -> u16 {
    // In f32, a product below 2^-126 would be rounded to a multiple of 2^-149, and then again to a bf16.
    let product = f64::from(bf16_to_f32(a)) * f64::from(bf16_to_f32(b));
    f32_to_bf16(round_f32_to_odd(product))
}

/// `fma.rnd{.relu}{.oob}.bf16 d, a, b, c`
#[inline(always)]
pub fn fma_bf16(a: u16, b: u16, c: u16, relu: bool, oob: bool) -> u16 {
    if oob && (out_of_bounds(a) || out_of_bounds(b)) {
        return 0;
    }
    let (a, b) = (f64::from(bf16_to_f32(a)), f64::from(bf16_to_f32(b)));
    let sum = add_to_odd(a * b, f64::from(bf16_to_f32(c)));
    self::relu(f32_to_bf16(round_f32_to_odd(sum)), relu)
}

/// Replaces any NaN by [`NAN_HALF`]. `infinity` has the bits of the format's positive infinity.
#[inline(always)]
fn canonical(a: u16, infinity: u16) -> u16 {
    if a & 0x7fff > infinity { NAN_HALF } else { a }
}

/// `neg{.ftz}.f16 d, a`
#[inline(always)]
pub fn neg_f16(a: u16, ftz: bool) -> u16 {
    canonical(flush(a, ftz) ^ 0x8000, 0x7c00)
}

/// `abs{.ftz}.f16 d, a`
#[inline(always)]
pub fn abs_f16(a: u16, ftz: bool) -> u16 {
    canonical(flush(a, ftz) & 0x7fff, 0x7c00)
}

/// `neg.bf16 d, a`
#[inline(always)]
pub fn neg_bf16(a: u16) -> u16 {
    canonical(a ^ 0x8000, 0x7f80)
}

/// `abs.bf16 d, a`
#[inline(always)]
pub fn abs_bf16(a: u16) -> u16 {
    canonical(a & 0x7fff, 0x7f80)
}

/// Returns the maximum if `maximum` is true, else the minimum; see [`min_f16`]. `infinity` has the bits of the format's
/// positive infinity.
#[inline(always)]
fn select(a: u16, b: u16, infinity: u16, nan: bool, xorsign_abs: bool, maximum: bool) -> u16 {
    let sign = (a ^ b) & 0x8000;
    let (a, b) = if xorsign_abs { (a & 0x7fff, b & 0x7fff) } else { (a, b) };
    let is_nan = |v: u16| v & 0x7fff > infinity;
    // Numbers compare as integers if all bits of negative ones but the sign are flipped. So -0 is less than +0.
    let key = |v: u16| (v ^ (((v as i16) >> 15) as u16 & 0x7fff)) as i16;
    let a_first = if maximum { key(a) > key(b) } else { key(a) < key(b) };
    let number = if a_first { a } else { b };
    let number = if is_nan(a) { b } else { number };
    let number = if is_nan(b) { a } else { number };
    if is_nan(number) || (nan && (is_nan(a) || is_nan(b))) {
        NAN_HALF
    } else if xorsign_abs {
        number | sign
    } else {
        number
    }
}

/// `min{.ftz}{.NaN}{.xorsign.abs}.f16 d, a, b`. -0 is less than +0. If one operand is a NaN, returns the other, or with
/// `.NaN` a NaN. With `.xorsign.abs`, returns the minimum of the magnitudes with the product of the signs.
#[inline(always)]
pub fn min_f16(a: u16, b: u16, ftz: bool, nan: bool, xorsign_abs: bool) -> u16 {
    select(flush(a, ftz), flush(b, ftz), 0x7c00, nan, xorsign_abs, false)
}

/// `max{.ftz}{.NaN}{.xorsign.abs}.f16 d, a, b`. See [`min_f16`].
#[inline(always)]
pub fn max_f16(a: u16, b: u16, ftz: bool, nan: bool, xorsign_abs: bool) -> u16 {
    select(flush(a, ftz), flush(b, ftz), 0x7c00, nan, xorsign_abs, true)
}

/// `min{.NaN}{.xorsign.abs}.bf16 d, a, b`. See [`min_f16`].
#[inline(always)]
pub fn min_bf16(a: u16, b: u16, nan: bool, xorsign_abs: bool) -> u16 {
    select(a, b, 0x7f80, nan, xorsign_abs, false)
}

/// `max{.NaN}{.xorsign.abs}.bf16 d, a, b`. See [`min_f16`].
#[inline(always)]
pub fn max_bf16(a: u16, b: u16, nan: bool, xorsign_abs: bool) -> u16 {
    select(a, b, 0x7f80, nan, xorsign_abs, true)
}

/// Compares as `setp.f16` and `set.f16` do.
#[inline(always)]
pub fn compare_f16(op: Compare, a: u16, b: u16, ftz: bool) -> bool {
    compare_float(op, f16_to_f32(flush(a, ftz)), f16_to_f32(flush(b, ftz)))
}

/// Compares as `setp.bf16` and `set.bf16` do.
#[inline(always)]
pub fn compare_bf16(op: Compare, a: u16, b: u16) -> bool {
    compare_float(op, bf16_to_f32(a), bf16_to_f32(b))
}

/// Returns the `.f16` result of `set`: 1.0 for true, 0.0 for false.
#[inline(always)]
pub fn set_f16(t: bool) -> u16 {
    if t { 0x3c00 } else { 0 }
}

/// Returns the `.bf16` result of `set`: 1.0 for true, 0.0 for false.
#[inline(always)]
pub fn set_bf16(t: bool) -> u16 {
    if t { 0x3f80 } else { 0 }
}

/// Returns the low and the high element of a packed pair.
#[inline(always)]
pub fn unpack(a: u32) -> [u16; 2] {
    [a as u16, (a >> 16) as u16]
}

/// Packs a pair from its low and its high element.
#[inline(always)]
pub fn pack(low: u16, high: u16) -> u32 {
    u32::from(high) << 16 | u32::from(low)
}

/// Defines the packed form of functions, which applies them to both elements.
macro_rules! packed {
    ($($doc:literal $name:ident = $element:ident($($operand:ident),*; $($modifier:ident),*);)*) => {$(
        #[doc = concat!("`", $doc, "`: [`", stringify!($element), "`] on both elements.")]
        #[inline(always)]
        #[allow(clippy::too_many_arguments)]
        pub fn $name($($operand: u32,)* $($modifier: bool),*) -> u32 {
            pack(
                $element($($operand as u16,)* $($modifier),*),
                $element($(($operand >> 16) as u16,)* $($modifier),*),
            )
        }
    )*};
}

packed! {
    "add{.rnd}{.ftz}{.sat}.f16x2 d, a, b" add_f16x2 = add_f16(a, b; ftz, sat);
    "sub{.rnd}{.ftz}{.sat}.f16x2 d, a, b" sub_f16x2 = sub_f16(a, b; ftz, sat);
    "mul{.rnd}{.ftz}{.sat}.f16x2 d, a, b" mul_f16x2 = mul_f16(a, b; ftz, sat);
    "fma.rnd{.ftz}{.sat}{.relu}{.oob}.f16x2 d, a, b, c" fma_f16x2 = fma_f16(a, b, c; ftz, sat, relu, oob);
    "neg{.ftz}.f16x2 d, a" neg_f16x2 = neg_f16(a; ftz);
    "abs{.ftz}.f16x2 d, a" abs_f16x2 = abs_f16(a; ftz);
    "min{.ftz}{.NaN}{.xorsign.abs}.f16x2 d, a, b" min_f16x2 = min_f16(a, b; ftz, nan, xorsign_abs);
    "max{.ftz}{.NaN}{.xorsign.abs}.f16x2 d, a, b" max_f16x2 = max_f16(a, b; ftz, nan, xorsign_abs);
    "add{.rnd}.bf16x2 d, a, b" add_bf16x2 = add_bf16(a, b;);
    "sub{.rnd}.bf16x2 d, a, b" sub_bf16x2 = sub_bf16(a, b;);
    "mul{.rnd}.bf16x2 d, a, b" mul_bf16x2 = mul_bf16(a, b;);
    "fma.rnd{.relu}{.oob}.bf16x2 d, a, b, c" fma_bf16x2 = fma_bf16(a, b, c; relu, oob);
    "neg.bf16x2 d, a" neg_bf16x2 = neg_bf16(a;);
    "abs.bf16x2 d, a" abs_bf16x2 = abs_bf16(a;);
    "min{.NaN}{.xorsign.abs}.bf16x2 d, a, b" min_bf16x2 = min_bf16(a, b; nan, xorsign_abs);
    "max{.NaN}{.xorsign.abs}.bf16x2 d, a, b" max_bf16x2 = max_bf16(a, b; nan, xorsign_abs);
}

/// Applies an operation to both elements: `map(a, ex2_approx_f16)` is `ex2.approx.f16x2`.
#[inline(always)]
pub fn map(a: u32, op: impl Fn(u16) -> u16) -> u32 {
    let [low, high] = unpack(a);
    pack(op(low), op(high))
}
