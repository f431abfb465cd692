//! `cvt` to and from the 8-bit formats `.e4m3` and `.e5m2`. Narrowing is always `.rn.satfinite`.

use super::super::half::{NAN_HALF, f16_to_f32, f32_to_f16};
use super::super::round::{E4M3, E5M2, Format, round_f64};
use super::float::finish;
use ptx::ir::Rounding;

/// The NaN of both formats.
const NAN_EIGHT: u16 = 0x7f;

/// Rounds a number to a format.
#[inline(always)]
fn narrow(format: Format, a: f32, relu: bool) -> u8 {
    let bits = if a.is_nan() {
        0
    } else {
        round_f64(format, f64::from(a), Rounding::Rn)
    };
    finish::<NAN_EIGHT>(bits as u16, format, a.is_nan(), relu, true) as u8
}

/// Returns one element of `cvt.rn.satfinite{.relu}.e4m3x2.f32`.
#[inline(always)]
pub fn cvt_e4m3_from_f32(a: f32, relu: bool) -> u8 {
    narrow(E4M3, a, relu)
}

/// Returns one element of `cvt.rn.satfinite{.relu}.e5m2x2.f32`.
#[inline(always)]
pub fn cvt_e5m2_from_f32(a: f32, relu: bool) -> u8 {
    narrow(E5M2, a, relu)
}

/// Returns one element of `cvt.rn.satfinite{.relu}.e4m3x2.f16x2`.
#[inline(always)]
pub fn cvt_e4m3_from_f16(a: u16, relu: bool) -> u8 {
    narrow(E4M3, f16_to_f32(a), relu)
}

/// Returns one element of `cvt.rn.satfinite{.relu}.e5m2x2.f16x2`.
#[inline(always)]
pub fn cvt_e5m2_from_f16(a: u16, relu: bool) -> u8 {
    narrow(E5M2, f16_to_f32(a), relu)
}

/// Applies `.relu`: replaces negative numbers and -0 by +0.
#[inline(always)]
fn positive(a: u16, relu: bool) -> u16 {
    if relu && a & 0x8000 != 0 { 0 } else { a }
}

/// Returns one element of `cvt.rn{.relu}.f16x2.e4m3x2`, exact.
#[inline(always)]
pub fn cvt_f16_from_e4m3(a: u8, relu: bool) -> u16 {
    let magnitude = a & 0x7f;
    if magnitude == 0x7f {
        return NAN_HALF;
    }
    // As an f16, whose exponent bias is 15 instead of 7, the number is too small by a factor of 2^8.
    let scaled = f16_to_f32(u16::from(magnitude) << 7) * 256.0;
    positive(f32_to_f16(scaled) | u16::from(a & 0x80) << 8, relu)
}

/// Returns one element of `cvt.rn{.relu}.f16x2.e5m2x2`: the upper half of an `.f16`.
#[inline(always)]
pub fn cvt_f16_from_e5m2(a: u8, relu: bool) -> u16 {
    if a & 0x7f > 0x7c {
        return NAN_HALF;
    }
    positive(u16::from(a) << 8, relu)
}
