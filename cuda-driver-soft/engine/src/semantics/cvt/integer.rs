//! `cvt` with an integer on one side or on both, and `cvt.pack`.

use super::super::float::saturate_f32;
use super::super::half::{bf16_to_f32, f16_to_f32};
use super::super::int::Int;
use super::super::round::{BF16, F16, F32, F64, Format, integral_f32, integral_f64, round_pack};
use super::float::saturate_f64;
use ptx::ir::Rounding;

/// `cvt{.sat}.dtype.atype d, a` between integers: sign-extended or zero-extended by the type of the source, or
/// truncated; with `.sat` limited to the range of the destination instead.
#[inline(always)]
pub fn cvt_int<S: Int, D: Int>(a: S, sat: bool) -> D {
    if sat {
        D::truncate(a.widen().clamp(D::MIN.widen(), D::MAX.widen()))
    } else {
        D::truncate(a.widen())
    }
}

/// Rounds an integer to a format, in any mode.
#[inline(always)]
fn round_int<S: Int>(format: Format, a: S, rnd: Rounding) -> u64 {
    let a = a.widen();
    round_pack(format, a < 0, a.unsigned_abs() as u64, 0, rnd)
}

/// `cvt.rnd{.sat}.f32.atype d, a`
#[inline(always)]
pub fn cvt_f32_from_int<S: Int>(a: S, rnd: Rounding, sat: bool) -> f32 {
    let value = match rnd {
        Rounding::Rn => a.to_f32(),
        _ => f32::from_bits(round_int(F32, a, rnd) as u32),
    };
    if sat { saturate_f32(value) } else { value }
}

/// `cvt.rnd{.sat}.f64.atype d, a`
#[inline(always)]
pub fn cvt_f64_from_int<S: Int>(a: S, rnd: Rounding, sat: bool) -> f64 {
    let value = match rnd {
        Rounding::Rn => a.to_f64(),
        _ => f64::from_bits(round_int(F64, a, rnd)),
    };
    if sat { saturate_f64(value) } else { value }
}

/// `cvt.rnd{.sat}.f16.atype d, a`
#[inline(always)]
pub fn cvt_f16_from_int<S: Int>(a: S, rnd: Rounding, sat: bool) -> u16 {
    if sat {
        // Every integer above 0 is at least 1, and becomes 1.0.
        return if a > S::ZERO { 0x3c00 } else { 0 };
    }
    round_int(F16, a, rnd) as u16
}

/// `cvt.rnd.bf16.atype d, a`
#[inline(always)]
pub fn cvt_bf16_from_int<S: Int>(a: S, rnd: Rounding) -> u16 {
    round_int(BF16, a, rnd) as u16
}

/// Returns the integer for a NaN: only the highest bit set if source or destination has 64 bits, else zero.
#[inline(always)]
fn integer_of_nan<D: Int>(from_f64: bool) -> D {
    if from_f64 || D::BITS == 64 {
        D::from_bits(1 << (D::BITS - 1))
    } else {
        D::ZERO
    }
}

/// `cvt.irnd{.ftz}.dtype.f32 d, a`: rounded to an integral value, then limited to the range of the type.
#[inline(always)]
pub fn cvt_int_from_f32<D: Int>(a: f32, rnd: Rounding, ftz: bool) -> D {
    let a = super::super::float::flush_f32(a, ftz);
    // Rust's conversion truncates, as .rzi does.
    let value = match rnd {
        Rounding::Rz => D::from_f32(a),
        _ => D::from_f32(integral_f32(a, rnd)),
    };
    if a.is_nan() { integer_of_nan(false) } else { value }
}

/// `cvt.irnd.dtype.f64 d, a`
#[inline(always)]
pub fn cvt_int_from_f64<D: Int>(a: f64, rnd: Rounding) -> D {
    let value = match rnd {
        Rounding::Rz => D::from_f64(a),
        _ => D::from_f64(integral_f64(a, rnd)),
    };
    if a.is_nan() { integer_of_nan(true) } else { value }
}

/// `cvt.irnd.dtype.f16 d, a`
#[inline(always)]
pub fn cvt_int_from_f16<D: Int>(a: u16, rnd: Rounding) -> D {
    cvt_int_from_f32(f16_to_f32(a), rnd, false)
}

/// `cvt.irnd.dtype.bf16 d, a`
#[inline(always)]
pub fn cvt_int_from_bf16<D: Int>(a: u16, rnd: Rounding) -> D {
    cvt_int_from_f32(bf16_to_f32(a), rnd, false)
}

/// `cvt.pack.sat.type.s32{.b32} d, a, b{, c}`: `a` and `b` are limited to integers of `bits` bits (2, 4, 8 or 16) and
/// packed, `b` lowest, below the low bits of `c`. For 16 bits there is no `c`, because the two fill the result.
#[inline(always)]
pub fn cvt_pack(bits: u32, signed: bool, a: i32, b: i32, c: Option<u32>) -> u32 {
    let (least, greatest) = if signed {
        (-(1i32 << (bits - 1)), (1i32 << (bits - 1)) - 1)
    } else {
        (0, (1i32 << bits) - 1)
    };
    let mask = (1u32 << bits) - 1;
    let element = |v: i32| v.clamp(least, greatest) as u32 & mask;
    let pair = element(a) << bits | element(b);
    match c {
        Some(c) => pair | c.checked_shl(2 * bits).unwrap_or(0),
        None => pair,
    }
}
