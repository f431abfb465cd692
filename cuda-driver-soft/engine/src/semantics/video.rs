//! The video instructions: `vadd vsub vabsdiff vmin vmax vshl vshr vset vmad`, and the packed forms for two half-words
//! and four bytes: `vadd2 … vset4`.
//!
//! Recent GPUs have hardly any of them, so drivers expand them. This module follows the manual. The expansion of driver
//! 580 for an H200 agrees for the packed forms and `vset`, but not for the other scalar forms: it cuts a result to 32
//! bits before it saturates, scales or compares it with `c`, and a merge into `.h1` leaves zeros.

use super::compare::compare_int;
use ptx::ir::Compare;
pub use ptx::ir::{
    Video, VideoEach as Packed, VideoInst, VideoMad, VideoOp, VideoPacked, VideoPart as Part, VideoThen as Then,
};

/// Returns `width` bits from `position` on, extended with their sign if `signed` is true, else with zeros.
#[inline(always)]
fn extract(a: u32, (position, width): (u32, u32), signed: bool) -> i64 {
    let shifted = (a >> position) << (32 - width);
    if signed {
        i64::from(shifted as i32 >> (32 - width))
    } else {
        i64::from(shifted >> (32 - width))
    }
}

/// Limits a value to an integer of `width` bits.
#[inline(always)]
fn limit(value: i128, width: u32, signed: bool) -> i128 {
    if signed {
        value.clamp(-(1 << (width - 1)), (1 << (width - 1)) - 1)
    } else {
        value.clamp(0, (1 << width) - 1)
    }
}

/// Returns the selected and extended parts of `a` and `b`.
#[inline(always)]
fn operands(v: &Video, a: u32, b: u32) -> (i128, i128) {
    let a = extract(a, v.a.0.place(), v.a.1);
    let b = extract(b, v.b.0.place(), v.b.1);
    (a.into(), b.into())
}

/// Applies `.sat`, then the secondary operation or the merge.
#[inline(always)]
fn finish(v: &Video, result: i128, c: u32) -> u32 {
    let (position, width) = match v.then {
        Then::Merge(part) => part.place(),
        _ => (0, 32),
    };
    let result = if v.sat { limit(result, width, v.signed) } else { result } as u32;
    let less = if v.signed {
        (result as i32) < c as i32
    } else {
        result < c
    };
    match v.then {
        Then::Nothing => result,
        Then::Add => result.wrapping_add(c),
        Then::Min => {
            if less {
                result
            } else {
                c
            }
        }
        Then::Max => {
            if less {
                c
            } else {
                result
            }
        }
        Then::Merge(_) => {
            let mask = (u32::MAX >> (32 - width)) << position;
            c & !mask | result << position & mask
        }
    }
}

/// `vadd.dtype.atype.btype{.sat}{.op2} d, a, b{, c}`
#[inline(always)]
pub fn vadd(v: Video, a: u32, b: u32, c: u32) -> u32 {
    let (x, y) = operands(&v, a, b);
    finish(&v, x + y, c)
}

/// `vsub.dtype.atype.btype{.sat}{.op2} d, a, b{, c}`
#[inline(always)]
pub fn vsub(v: Video, a: u32, b: u32, c: u32) -> u32 {
    let (x, y) = operands(&v, a, b);
    finish(&v, x - y, c)
}

/// `vabsdiff.dtype.atype.btype{.sat}{.op2} d, a, b{, c}`
#[inline(always)]
pub fn vabsdiff(v: Video, a: u32, b: u32, c: u32) -> u32 {
    let (x, y) = operands(&v, a, b);
    finish(&v, (x - y).abs(), c)
}

/// `vmin.dtype.atype.btype{.sat}{.op2} d, a, b{, c}`
#[inline(always)]
pub fn vmin(v: Video, a: u32, b: u32, c: u32) -> u32 {
    let (x, y) = operands(&v, a, b);
    finish(&v, x.min(y), c)
}

/// `vmax.dtype.atype.btype{.sat}{.op2} d, a, b{, c}`
#[inline(always)]
pub fn vmax(v: Video, a: u32, b: u32, c: u32) -> u32 {
    let (x, y) = operands(&v, a, b);
    finish(&v, x.max(y), c)
}

/// Returns the shift amount: limited to 32, or modulo 32 with `.wrap`.
#[inline(always)]
fn amount(b: i128, wrap: bool) -> u32 {
    let b = b as u32;
    if wrap { b & 31 } else { b.min(32) }
}

/// `vshl.dtype.atype.u32{.sat}.mode{.op2} d, a, b{, c}`
#[inline(always)]
pub fn vshl(v: Video, wrap: bool, a: u32, b: u32, c: u32) -> u32 {
    let (x, y) = operands(&v, a, b);
    finish(&v, x << amount(y, wrap), c)
}

/// `vshr.dtype.atype.u32{.sat}.mode{.op2} d, a, b{, c}`
#[inline(always)]
pub fn vshr(v: Video, wrap: bool, a: u32, b: u32, c: u32) -> u32 {
    let (x, y) = operands(&v, a, b);
    finish(&v, x >> amount(y, wrap), c)
}

/// `vset.atype.btype.cmp{.op2} d, a, b{, c}`: 1 if the comparison is true, else 0. `v.signed` and `v.sat` must be
/// false.
#[inline(always)]
pub fn vset(v: Video, op: Compare, a: u32, b: u32, c: u32) -> u32 {
    let (x, y) = operands(&v, a, b);
    finish(&v, compare_int(op, x as i64, y as i64).into(), c)
}

/// `vmad.dtype.atype.btype{.po}{.sat}{.scale} d, {-}a, {-}b, {-}c`
#[inline(always)]
pub fn vmad(v: VideoMad, a: u32, b: u32, c: u32) -> u32 {
    let x = i128::from(extract(a, v.a.0.place(), v.a.1));
    let y = i128::from(extract(b, v.b.0.place(), v.b.1));
    let product = if v.negate_product { -(x * y) } else { x * y };
    // c and the result are signed if the product is, or if c is negated.
    let signed_product = v.a.1 || v.b.1 || v.negate_product;
    let addend = extract(c, (0, 32), signed_product || v.negate_c);
    let addend = if v.negate_c { -i128::from(addend) } else { addend.into() };
    let sum = (product + addend + i128::from(v.plus_one)) >> v.shift;
    (if v.sat {
        limit(sum, 32, signed_product || v.negate_c)
    } else {
        sum
    }) as u32
}

/// `op.dtype.atype.btype{.sat|.add} d{.mask}, a{.asel}, b{.bsel}, c`: any packed form, such as `vadd2` and `vadd4`.
#[inline(always)]
pub fn video_packed<const N: usize>(op: Packed, v: VideoPacked<N>, a: u32, b: u32, c: u32) -> u32 {
    let width = 32 / N as u32;
    let element = |index: u8, signed: bool| {
        let index = u32::from(index) % (2 * N as u32);
        let word = if index < N as u32 { a } else { b };
        extract(word, (index % N as u32 * width, width), signed)
    };
    let ones = u32::MAX >> (32 - width);
    let mut result = if v.add { c } else { 0 };
    for i in 0..N {
        let position = i as u32 * width;
        if v.mask >> i & 1 == 0 {
            result |= if v.add { 0 } else { c & ones << position };
            continue;
        }
        let (x, y) = (element(v.a[i], v.a_signed), element(v.b[i], v.b_signed));
        let t = match op {
            Packed::Add => x + y,
            Packed::Sub => x - y,
            Packed::Avrg => (x + y + i64::from(x + y >= 0)) >> 1,
            Packed::AbsDiff => (x - y).abs(),
            Packed::Min => x.min(y),
            Packed::Max => x.max(y),
            Packed::Set(compare) => compare_int(compare, x, y).into(),
        };
        let t = if v.sat {
            limit(t.into(), width, v.signed) as u32
        } else {
            t as u32
        };
        if v.add {
            result = result.wrapping_add(t);
        } else {
            result |= (t & ones) << position;
        }
    }
    result
}

/// Runs any video instruction.
#[inline]
pub fn video(inst: VideoInst, a: u32, b: u32, c: u32) -> u32 {
    match inst {
        VideoInst::Scalar(VideoOp::Add, v) => vadd(v, a, b, c),
        VideoInst::Scalar(VideoOp::Sub, v) => vsub(v, a, b, c),
        VideoInst::Scalar(VideoOp::AbsDiff, v) => vabsdiff(v, a, b, c),
        VideoInst::Scalar(VideoOp::Min, v) => vmin(v, a, b, c),
        VideoInst::Scalar(VideoOp::Max, v) => vmax(v, a, b, c),
        VideoInst::Scalar(VideoOp::Shl { wrap }, v) => vshl(v, wrap, a, b, c),
        VideoInst::Scalar(VideoOp::Shr { wrap }, v) => vshr(v, wrap, a, b, c),
        VideoInst::Scalar(VideoOp::Set(compare), v) => vset(v, compare, a, b, c),
        VideoInst::Mad(v) => vmad(v, a, b, c),
        VideoInst::Halves(op, v) => video_packed(op, v, a, b, c),
        VideoInst::Bytes(op, v) => video_packed(op, v, a, b, c),
    }
}
