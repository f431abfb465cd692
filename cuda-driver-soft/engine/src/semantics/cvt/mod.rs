//! `cvt` and `cvt.pack`: conversions between all types.
//!
//! There is one function for each kind of conversion, named by destination and source: `cvt_f32_from_int` is
//! `cvt.f32.s32`, `cvt.f32.u64` and so on. [`cvt()`] and [`cvt_pair`] choose one by the types and modifiers of the
//! instruction.

mod float;
mod integer;
mod small;

pub use float::*;
pub use integer::*;
pub use small::*;

use super::half::{map, pack};
use super::int::Int;
use ptx::ir::{Cvt, Rounding, Type};

/// `cvt.….to.from d, a` with one source: converts the bits of `a` to the bits of `d`. Bits above the widths of the
/// types are ignored in `a` and zero in `d`, except that a signed integer in `d` is sign-extended to 64 bits. Returns
/// `None` if there is no such conversion.
#[inline(always)]
pub fn cvt(c: Cvt, a: u64) -> Option<u64> {
    match c.from {
        Type::U8 | Type::B8 => from_int::<u8>(c, a),
        Type::U16 | Type::B16 => from_int::<u16>(c, a),
        Type::U32 | Type::B32 => from_int::<u32>(c, a),
        Type::U64 | Type::B64 => from_int::<u64>(c, a),
        Type::S8 => from_int::<i8>(c, a),
        Type::S16 => from_int::<i16>(c, a),
        Type::S32 => from_int::<i32>(c, a),
        Type::S64 => from_int::<i64>(c, a),
        Type::F16 => from_f16(c, a as u16),
        Type::BF16 => from_bf16(c, a as u16),
        Type::F32 => from_f32(c, f32::from_bits(a as u32)),
        Type::F64 => from_f64(c, f64::from_bits(a)),
        Type::F16x2 => {
            let element = |a| match c.to {
                Type::E4M3x2 => Some(cvt_e4m3_from_f16(a, c.relu)),
                Type::E5M2x2 => Some(cvt_e5m2_from_f16(a, c.relu)),
                _ => None,
            };
            let (low, high) = (element(a as u16)?, element((a >> 16) as u16)?);
            Some(u64::from(low) | u64::from(high) << 8)
        }
        Type::E4M3x2 | Type::E5M2x2 if c.to == Type::F16x2 => {
            let spread = pack(a as u16 & 0xff, (a >> 8) as u16 & 0xff);
            Some(u64::from(match c.from {
                Type::E4M3x2 => map(spread, |a| cvt_f16_from_e4m3(a as u8, c.relu)),
                _ => map(spread, |a| cvt_f16_from_e5m2(a as u8, c.relu)),
            }))
        }
        _ => None,
    }
}

/// `cvt.….to.f32 d, a, b`: `a` becomes the high element of `d`, and `b` the low one. Returns `None` if there is no such
/// conversion.
#[inline(always)]
pub fn cvt_pair(c: Cvt, a: f32, b: f32) -> Option<u32> {
    let rnd = c.rnd.unwrap_or(Rounding::Rn);
    let (element, bits): (&dyn Fn(f32) -> u32, u32) = match c.to {
        Type::F16x2 => (&|a| u32::from(cvt_f16_from_f32(a, rnd, false, c.relu, c.satfinite)), 16),
        Type::BF16x2 => (
            &|a| u32::from(cvt_bf16_from_f32(a, rnd, c.ftz, c.relu, c.satfinite)),
            16,
        ),
        Type::E4M3x2 => (&|a| u32::from(cvt_e4m3_from_f32(a, c.relu)), 8),
        Type::E5M2x2 => (&|a| u32::from(cvt_e5m2_from_f32(a, c.relu)), 8),
        _ => return None,
    };
    Some(element(a) << bits | element(b))
}

/// Returns the rounding mode. An instruction without one is exact or, in old PTX versions, means `.rn`.
#[inline(always)]
fn rounding(c: Cvt) -> Rounding {
    c.rnd.unwrap_or(Rounding::Rn)
}

/// Converts an integer.
#[inline(always)]
fn from_int<S: Int>(c: Cvt, a: u64) -> Option<u64> {
    let a = S::from_bits(a);
    Some(match c.to {
        Type::U8 | Type::B8 => cvt_int::<S, u8>(a, c.sat).into(),
        Type::U16 | Type::B16 => cvt_int::<S, u16>(a, c.sat).into(),
        Type::U32 | Type::B32 => cvt_int::<S, u32>(a, c.sat).into(),
        Type::U64 | Type::B64 => cvt_int::<S, u64>(a, c.sat),
        Type::S8 => cvt_int::<S, i8>(a, c.sat) as u64,
        Type::S16 => cvt_int::<S, i16>(a, c.sat) as u64,
        Type::S32 => cvt_int::<S, i32>(a, c.sat) as u64,
        Type::S64 => cvt_int::<S, i64>(a, c.sat) as u64,
        Type::F16 => cvt_f16_from_int(a, rounding(c), c.sat).into(),
        Type::BF16 => cvt_bf16_from_int(a, rounding(c)).into(),
        Type::F32 => cvt_f32_from_int(a, rounding(c), c.sat).to_bits().into(),
        Type::F64 => cvt_f64_from_int(a, rounding(c), c.sat).to_bits(),
        _ => return None,
    })
}

/// Converts a floating-point number to the integer type `$c.to`. `$rest` are match arms for other types.
macro_rules! to_int {
    ($c:ident, $convert:ident($($arguments:expr),*) $($rest:tt)*) => {
        match $c.to {
            Type::U8 | Type::B8 => $convert::<u8>($($arguments),*).into(),
            Type::U16 | Type::B16 => $convert::<u16>($($arguments),*).into(),
            Type::U32 | Type::B32 => $convert::<u32>($($arguments),*).into(),
            Type::U64 | Type::B64 => $convert::<u64>($($arguments),*),
            Type::S8 => $convert::<i8>($($arguments),*) as u64,
            Type::S16 => $convert::<i16>($($arguments),*) as u64,
            Type::S32 => $convert::<i32>($($arguments),*) as u64,
            Type::S64 => $convert::<i64>($($arguments),*) as u64,
            $($rest)*
            _ => return None,
        }
    };
}

/// Converts an `.f32`.
#[inline(always)]
fn from_f32(c: Cvt, a: f32) -> Option<u64> {
    let to_integral = c.int_rnd.unwrap_or(Rounding::Rz);
    Some(to_int!(c, cvt_int_from_f32(a, to_integral, c.ftz)
        Type::F16 => cvt_f16_from_f32(a, rounding(c), c.sat, c.relu, c.satfinite).into(),
        Type::BF16 => cvt_bf16_from_f32(a, rounding(c), c.ftz, c.relu, c.satfinite).into(),
        Type::TF32 => cvt_tf32_from_f32(a, rounding(c), c.relu, c.satfinite).into(),
        Type::F32 => cvt_f32(a, c.int_rnd, c.ftz, c.sat).to_bits().into(),
        Type::F64 => cvt_f64_from_f32(a, c.ftz, c.sat).to_bits(),
    ))
}

/// Converts an `.f64`.
#[inline(always)]
fn from_f64(c: Cvt, a: f64) -> Option<u64> {
    let to_integral = c.int_rnd.unwrap_or(Rounding::Rz);
    Some(to_int!(c, cvt_int_from_f64(a, to_integral)
        Type::F16 => cvt_f16_from_f64(a, rounding(c), c.sat).into(),
        Type::BF16 => cvt_bf16_from_f64(a, rounding(c)).into(),
        Type::F32 => cvt_f32_from_f64(a, rounding(c), c.ftz, c.sat).to_bits().into(),
        Type::F64 => cvt_f64(a, c.int_rnd, c.sat).to_bits(),
    ))
}

/// Converts an `.f16`.
#[inline(always)]
fn from_f16(c: Cvt, a: u16) -> Option<u64> {
    let to_integral = c.int_rnd.unwrap_or(Rounding::Rz);
    Some(to_int!(c, cvt_int_from_f16(a, to_integral)
        Type::F16 => cvt_f16(a, c.int_rnd, c.sat).into(),
        Type::BF16 => cvt_bf16_from_f16(a, rounding(c)).into(),
        Type::F32 => cvt_f32_from_f16(a, c.sat).to_bits().into(),
        Type::F64 => cvt_f64_from_f16(a, c.sat).to_bits(),
    ))
}

/// Converts a `.bf16`.
#[inline(always)]
fn from_bf16(c: Cvt, a: u16) -> Option<u64> {
    let to_integral = c.int_rnd.unwrap_or(Rounding::Rz);
    Some(to_int!(c, cvt_int_from_bf16(a, to_integral)
        Type::F16 => cvt_f16_from_bf16(a, rounding(c), c.sat).into(),
        Type::BF16 => cvt_bf16(a, c.int_rnd).into(),
        Type::F32 => cvt_f32_from_bf16(a, c.ftz, c.sat).to_bits().into(),
        Type::F64 => cvt_f64_from_bf16(a, c.sat).to_bits(),
    ))
}
