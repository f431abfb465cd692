//! `cvt` between `.f16 .bf16 .tf32 .f32 .f64`.

use super::super::float::{NAN_F32, SCALE, canonical_f32, flush_f32, flush_result, saturate_f32};
use super::super::half::{NAN_HALF, bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};
use super::super::round::{BF16, F16, Format, integral_f32, integral_f64, round_f32, round_f32_to_odd, round_f64};
use ptx::ir::Rounding;

/// Applies `.sat`: limits a number to 0 … 1, and replaces a NaN and -0 by 0.
#[inline(always)]
pub(crate) fn saturate_f64(a: f64) -> f64 {
    // Bits are compared for the reason in `saturate_f32`.
    let bits = a.to_bits();
    let positive = if bits.wrapping_sub(1) < 0x7ff0 << 48 { bits } else { 0 };
    f64::from_bits(positive.min(1f64.to_bits()))
}

/// `cvt{.irnd}{.ftz}{.sat}.f32.f32 d, a`. Without modifiers it copies the bits, even of a NaN.
#[inline(always)]
pub fn cvt_f32(a: f32, int_rnd: Option<Rounding>, ftz: bool, sat: bool) -> f32 {
    let a = flush_f32(a, ftz);
    let value = match int_rnd {
        Some(rnd) => canonical_f32(integral_f32(a, rnd)),
        None if ftz => canonical_f32(a),
        None => a,
    };
    if sat { saturate_f32(value) } else { value }
}

/// `cvt{.irnd}{.sat}.f64.f64 d, a`. Without modifiers it copies the bits, even of a NaN.
#[inline(always)]
pub fn cvt_f64(a: f64, int_rnd: Option<Rounding>, sat: bool) -> f64 {
    let value = match int_rnd {
        Some(_) if a.is_nan() => f64::from_bits(a.to_bits() | 1 << 51),
        Some(rnd) => integral_f64(a, rnd),
        None => a,
    };
    if sat { saturate_f64(value) } else { value }
}

/// `cvt{.irnd}{.sat}.f16.f16 d, a`
#[inline(always)]
pub fn cvt_f16(a: u16, int_rnd: Option<Rounding>, sat: bool) -> u16 {
    let value = f16_to_f32(a);
    let value = match int_rnd {
        Some(rnd) => integral_f32(value, rnd),
        None => value,
    };
    f32_to_f16(if sat { saturate_f32(value) } else { value })
}

/// `cvt{.irnd}.bf16.bf16 d, a`
#[inline(always)]
pub fn cvt_bf16(a: u16, int_rnd: Option<Rounding>) -> u16 {
    let value = bf16_to_f32(a);
    f32_to_bf16(match int_rnd {
        Some(rnd) => integral_f32(value, rnd),
        None => value,
    })
}

/// `cvt{.ftz}{.sat}.f64.f32 d, a`. Without `.ftz`, a NaN keeps its payload.
#[inline(always)]
pub fn cvt_f64_from_f32(a: f32, ftz: bool, sat: bool) -> f64 {
    let a = flush_f32(a, ftz);
    let value = widen(if ftz { canonical_f32(a) } else { a });
    if sat { saturate_f64(value) } else { value }
}

/// Converts an `f32` to `f64`. A NaN keeps its sign and payload, and becomes quiet.
#[inline(always)]
fn widen(a: f32) -> f64 {
    let bits = u64::from(a.to_bits());
    let nan = (bits & 0x8000_0000) << 32 | 0x7ff8 << 48 | (bits & 0x7f_ffff) << 29;
    // The host's instruction gives the same NaN, but the compiler may replace it.
    if a.is_nan() { f64::from_bits(nan) } else { f64::from(a) }
}

/// `cvt{.sat}.f64.f16 d, a`
#[inline(always)]
pub fn cvt_f64_from_f16(a: u16, sat: bool) -> f64 {
    cvt_f64_from_f32(f16_to_f32(a), false, sat)
}

/// `cvt{.sat}.f64.bf16 d, a`
#[inline(always)]
pub fn cvt_f64_from_bf16(a: u16, sat: bool) -> f64 {
    cvt_f64_from_f32(bf16_to_f32(a), false, sat)
}

/// `cvt{.sat}.f32.f16 d, a`
#[inline(always)]
pub fn cvt_f32_from_f16(a: u16, sat: bool) -> f32 {
    let value = f16_to_f32(a);
    if sat { saturate_f32(value) } else { canonical_f32(value) }
}

/// `cvt{.ftz}{.sat}.f32.bf16 d, a`. Without modifiers it shifts the bits, even of a NaN.
#[inline(always)]
pub fn cvt_f32_from_bf16(a: u16, ftz: bool, sat: bool) -> f32 {
    cvt_f32(bf16_to_f32(a), None, ftz, sat)
}

/// Narrows an `.f64` NaN, which keeps its sign and the upper bits of its payload, and becomes quiet. In the narrower
/// format, `sign` is the position of the sign bit, `fraction` the number of fraction bits, and `infinity` the bits of
/// infinity.
#[inline(always)]
fn narrow_nan(a: f64, sign: u32, fraction: u32, infinity: u32) -> u32 {
    let bits = a.to_bits();
    let payload = (bits & ((1 << 52) - 1)) >> (52 - fraction);
    ((bits >> 63) as u32) << sign | infinity | 1 << (fraction - 1) | payload as u32
}

/// `cvt.rnd{.ftz}{.sat}.f32.f64 d, a`. A NaN keeps the upper bits of its payload.
#[inline(always)]
pub fn cvt_f32_from_f64(a: f64, rnd: Rounding, ftz: bool, sat: bool) -> f32 {
    let scaled = round_f32(a * f64::from(SCALE), rnd);
    let value = flush_result(round_f32(a, rnd), scaled, ftz);
    if sat {
        saturate_f32(value)
    } else if a.is_nan() {
        f32::from_bits(narrow_nan(a, 31, 23, 0x7f80_0000))
    } else {
        value
    }
}

/// Does the last step of a narrowing conversion: `.satfinite` replaces an infinity by the greatest number, `.relu`
/// replaces negative numbers and -0 by +0, and a NaN becomes the single NaN of the format.
#[inline(always)]
pub(super) fn finish<const NAN: u16>(bits: u16, format: Format, nan: bool, relu: bool, satfinite: bool) -> u16 {
    let sign = 1u16 << format.sign;
    let infinity = format.infinity as u16;
    let bits = if satfinite && bits & !sign >= infinity {
        bits & sign | (infinity - 1)
    } else {
        bits
    };
    let bits = if relu && bits & sign != 0 { 0 } else { bits };
    if nan { NAN } else { bits }
}

/// `cvt.rnd{.ftz}{.sat}{.relu}{.satfinite}.f16.f32 d, a`. `.ftz` has no effect.
#[inline(always)]
pub fn cvt_f16_from_f32(a: f32, rnd: Rounding, sat: bool, relu: bool, satfinite: bool) -> u16 {
    let a = if sat { saturate_f32(a) } else { a };
    let bits = match rnd {
        Rounding::Rn => f32_to_f16(a),
        _ => round_f64(F16, f64::from(a), rnd) as u16,
    };
    finish::<NAN_HALF>(bits, F16, a.is_nan(), relu, satfinite)
}

/// `cvt.rnd{.sat}.f16.f64 d, a`. A NaN keeps the upper bits of its payload.
#[inline(always)]
pub fn cvt_f16_from_f64(a: f64, rnd: Rounding, sat: bool) -> u16 {
    let a = if sat { saturate_f64(a) } else { a };
    let bits = match rnd {
        Rounding::Rn => f32_to_f16(round_f32_to_odd(a)),
        _ => round_f64(F16, a, rnd) as u16,
    };
    if a.is_nan() {
        narrow_nan(a, 15, 10, 0x7c00) as u16
    } else {
        bits
    }
}

/// `cvt.rnd{.sat}.f16.bf16 d, a`
#[inline(always)]
pub fn cvt_f16_from_bf16(a: u16, rnd: Rounding, sat: bool) -> u16 {
    cvt_f16_from_f32(bf16_to_f32(a), rnd, sat, false, false)
}

/// `cvt.rnd{.ftz}{.relu}{.satfinite}.bf16.f32 d, a`
#[inline(always)]
pub fn cvt_bf16_from_f32(a: f32, rnd: Rounding, ftz: bool, relu: bool, satfinite: bool) -> u16 {
    let a = flush_f32(a, ftz);
    let bits = match rnd {
        Rounding::Rn => f32_to_bf16(a),
        _ => round_f64(BF16, f64::from(a), rnd) as u16,
    };
    finish::<NAN_HALF>(bits, BF16, a.is_nan(), relu, satfinite)
}

/// `cvt.rnd.bf16.f64 d, a`. A NaN keeps the upper bits of its payload.
#[inline(always)]
pub fn cvt_bf16_from_f64(a: f64, rnd: Rounding) -> u16 {
    let bits = match rnd {
        Rounding::Rn => f32_to_bf16(round_f32_to_odd(a)),
        _ => round_f64(BF16, a, rnd) as u16,
    };
    if a.is_nan() {
        narrow_nan(a, 15, 7, 0x7f80) as u16
    } else {
        bits
    }
}

/// `cvt.rnd.bf16.f16 d, a`
#[inline(always)]
pub fn cvt_bf16_from_f16(a: u16, rnd: Rounding) -> u16 {
    cvt_bf16_from_f32(f16_to_f32(a), rnd, false, false, false)
}

/// `cvt.rnd{.relu}{.satfinite}.tf32.f32 d, a`: an `f32` pattern whose low 13 bits are zero.
#[inline(always)]
pub fn cvt_tf32_from_f32(a: f32, rnd: Rounding, relu: bool, satfinite: bool) -> u32 {
    const CUT: u32 = 0xffff_e000;
    let bits = a.to_bits();
    if !a.is_finite() && rnd == Rounding::Rna {
        // Here the GPU's code for .rna only truncates: a NaN whose payload is in the low bits becomes an infinity.
        let cut = bits & CUT;
        return if satfinite && cut & 0x7fff_ffff >= 0x7f80_0000 {
            cut.wrapping_sub(0x2000)
        } else {
            cut
        };
    }
    let rounded = match rnd {
        Rounding::Rn => bits.wrapping_add(0xfff + (bits >> 13 & 1)),
        Rounding::Rna => bits.wrapping_add(0x1000),
        _ => bits,
    } & CUT;
    let rounded = if satfinite && rounded & 0x7fff_ffff >= 0x7f80_0000 {
        rounded & 0x8000_0000 | 0x7f7f_e000
    } else {
        rounded
    };
    let rounded = if relu && rounded >> 31 != 0 { 0 } else { rounded };
    if a.is_nan() { NAN_F32 & CUT } else { rounded }
}
