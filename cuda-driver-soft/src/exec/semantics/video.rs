//! The video instructions: `vadd vsub vabsdiff vmin vmax vshl vshr vset vmad`, and their forms for two half-words and
//! four bytes: `vadd2 … vset4`.
//!
//! No GPU since Kepler has them; drivers expand them. This follows the manual. The expansion of driver 580 for an H200
//! agrees for the packed forms and `vset`, but not for the scalar ones: there a result is cut to 32 bits before it is
//! saturated, scaled or compared with `c`, and a merge into `.h1` leaves zeros.

use super::compare::compare_int;
use crate::ir::Compare;

/// The part of a 32-bit register that an instruction reads, or merges its result into.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// No selector: all 32 bits.
    Word,
    B0,
    B1,
    B2,
    B3,
    H0,
    H1,
}

impl Part {
    /// Position and width in bits.
    #[inline(always)]
    fn place(self) -> (u32, u32) {
        match self {
            Part::Word => (0, 32),
            Part::B0 => (0, 8),
            Part::B1 => (8, 8),
            Part::B2 => (16, 8),
            Part::B3 => (24, 8),
            Part::H0 => (0, 16),
            Part::H1 => (16, 16),
        }
    }
}

/// What happens to the result and the operand `c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// There is no `c`.
    Nothing,
    /// `.add`
    Add,
    /// `.min`
    Min,
    /// `.max`
    Max,
    /// The result replaces this part of `c`.
    Merge(Part),
}

/// The modifiers of a scalar video instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Video {
    /// Selector of `a`, and whether its type is signed.
    pub a: (Part, bool),
    /// Selector of `b`, and whether its type is signed.
    pub b: (Part, bool),
    /// Whether the type of the result is signed.
    pub signed: bool,
    /// `.sat`
    pub sat: bool,
    /// The secondary operation.
    pub then: Then,
}

/// The bits at a place, extended.
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

impl Video {
    #[inline(always)]
    fn operands(&self, a: u32, b: u32) -> (i128, i128) {
        let a = extract(a, self.a.0.place(), self.a.1);
        let b = extract(b, self.b.0.place(), self.b.1);
        (a.into(), b.into())
    }

    /// `.sat`, then the secondary operation or the merge.
    #[inline(always)]
    fn finish(&self, result: i128, c: u32) -> u32 {
        let (position, width) = match self.then {
            Then::Merge(part) => part.place(),
            _ => (0, 32),
        };
        let result = if self.sat {
            limit(result, width, self.signed)
        } else {
            result
        } as u32;
        let less = if self.signed {
            (result as i32) < c as i32
        } else {
            result < c
        };
        match self.then {
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
}

/// `vadd.dtype.atype.btype{.sat}{.op2} d, a, b{, c}`
#[inline(always)]
pub fn vadd(v: Video, a: u32, b: u32, c: u32) -> u32 {
    let (x, y) = v.operands(a, b);
    v.finish(x + y, c)
}

/// `vsub.dtype.atype.btype{.sat}{.op2} d, a, b{, c}`
#[inline(always)]
pub fn vsub(v: Video, a: u32, b: u32, c: u32) -> u32 {
    let (x, y) = v.operands(a, b);
    v.finish(x - y, c)
}

/// `vabsdiff.dtype.atype.btype{.sat}{.op2} d, a, b{, c}`
#[inline(always)]
pub fn vabsdiff(v: Video, a: u32, b: u32, c: u32) -> u32 {
    let (x, y) = v.operands(a, b);
    v.finish((x - y).abs(), c)
}

/// `vmin.dtype.atype.btype{.sat}{.op2} d, a, b{, c}`
#[inline(always)]
pub fn vmin(v: Video, a: u32, b: u32, c: u32) -> u32 {
    let (x, y) = v.operands(a, b);
    v.finish(x.min(y), c)
}

/// `vmax.dtype.atype.btype{.sat}{.op2} d, a, b{, c}`
#[inline(always)]
pub fn vmax(v: Video, a: u32, b: u32, c: u32) -> u32 {
    let (x, y) = v.operands(a, b);
    v.finish(x.max(y), c)
}

/// The shift amount: limited to 32, or modulo 32 with `.wrap`.
#[inline(always)]
fn amount(b: i128, wrap: bool) -> u32 {
    let b = b as u32;
    if wrap { b & 31 } else { b.min(32) }
}

/// `vshl.dtype.atype.u32{.sat}.mode{.op2} d, a, b{, c}`
#[inline(always)]
pub fn vshl(v: Video, wrap: bool, a: u32, b: u32, c: u32) -> u32 {
    let (x, y) = v.operands(a, b);
    v.finish(x << amount(y, wrap), c)
}

/// `vshr.dtype.atype.u32{.sat}.mode{.op2} d, a, b{, c}`
#[inline(always)]
pub fn vshr(v: Video, wrap: bool, a: u32, b: u32, c: u32) -> u32 {
    let (x, y) = v.operands(a, b);
    v.finish(x >> amount(y, wrap), c)
}

/// `vset.atype.btype.cmp{.op2} d, a, b{, c}`: 1 where the comparison holds. Modifiers without `signed` and `sat`.
#[inline(always)]
pub fn vset(v: Video, op: Compare, a: u32, b: u32, c: u32) -> u32 {
    let (x, y) = v.operands(a, b);
    v.finish(compare_int(op, x as i64, y as i64).into(), c)
}

/// The modifiers of `vmad`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VideoMad {
    /// Selector of `a`, and whether its type is signed.
    pub a: (Part, bool),
    /// Selector of `b`, and whether its type is signed.
    pub b: (Part, bool),
    /// Exactly one of `-a` and `-b`.
    pub negate_product: bool,
    /// `-c`
    pub negate_c: bool,
    /// `.po`: one more
    pub plus_one: bool,
    /// `.sat`
    pub sat: bool,
    /// 7 for `.shr7`, 15 for `.shr15`, else 0
    pub shift: u32,
}

/// `vmad.dtype.atype.btype{.po}{.sat}{.scale} d, {-}a, {-}b, {-}c`
#[inline(always)]
pub fn vmad(v: VideoMad, a: u32, b: u32, c: u32) -> u32 {
    let x = i128::from(extract(a, v.a.0.place(), v.a.1));
    let y = i128::from(extract(b, v.b.0.place(), v.b.1));
    let product = if v.negate_product { -(x * y) } else { x * y };
    // c has the sign of the product; the result also where c is negated.
    let signed_product = v.a.1 || v.b.1 || v.negate_product;
    let addend = extract(c, (0, 32), signed_product || v.negate_c);
    let addend = if v.negate_c {
        -i128::from(addend)
    } else {
        addend.into()
    };
    let sum = (product + addend + i128::from(v.plus_one)) >> v.shift;
    (if v.sat {
        limit(sum, 32, signed_product || v.negate_c)
    } else {
        sum
    }) as u32
}

/// The operation of a packed video instruction on each element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packed {
    /// `vadd2`, `vadd4`
    Add,
    /// `vsub2`, `vsub4`
    Sub,
    /// `vavrg2`, `vavrg4`: half of the sum, halves away from zero
    Avrg,
    /// `vabsdiff2`, `vabsdiff4`
    AbsDiff,
    /// `vmin2`, `vmin4`
    Min,
    /// `vmax2`, `vmax4`
    Max,
    /// `vset2`, `vset4`
    Set(Compare),
}

/// The modifiers of a packed video instruction with `N` elements: 2 half-words or 4 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VideoPacked<const N: usize> {
    /// For each element, lowest first: which of the `2 N` elements of `{b, a}` is the first operand. By default 0, 1 ….
    pub a: [u8; N],
    /// The same for the second operand. By default N, N + 1 ….
    pub b: [u8; N],
    /// Whether the type of the first operand is signed.
    pub a_signed: bool,
    /// Whether the type of the second operand is signed.
    pub b_signed: bool,
    /// Whether the type of the result is signed.
    pub signed: bool,
    /// `.sat`
    pub sat: bool,
    /// The elements that are computed, as bits.
    pub mask: u8,
    /// `.add`: their sum is added to `c`. Otherwise the other elements come from `c`.
    pub add: bool,
}

/// `vadd2`, `vadd4` and their kin: `op.dtype.atype.btype{.sat|.add} d{.mask}, a{.asel}, b{.bsel}, c`
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
