//! Logic and shifts: `and or xor not cnot shl shr lop3 shf`, and selection: `selp slct`.

use super::int::Int;

/// The types of `and or xor not`: `.b16 .b32 .b64`, and `bool` for `.pred`.
pub trait Bits:
    Copy
    + core::ops::BitAnd<Output = Self>
    + core::ops::BitOr<Output = Self>
    + core::ops::BitXor<Output = Self>
    + core::ops::Not<Output = Self>
{
}
impl Bits for bool {}
impl Bits for u16 {}
impl Bits for u32 {}
impl Bits for u64 {}

/// `and.type d, a, b`
#[inline(always)]
pub fn and<T: Bits>(a: T, b: T) -> T {
    a & b
}

/// `or.type d, a, b`
#[inline(always)]
pub fn or<T: Bits>(a: T, b: T) -> T {
    a | b
}

/// `xor.type d, a, b`
#[inline(always)]
pub fn xor<T: Bits>(a: T, b: T) -> T {
    a ^ b
}

/// `not.type d, a`
#[inline(always)]
pub fn not<T: Bits>(a: T) -> T {
    !a
}

/// `cnot.type d, a`: 1 if `a` is 0, else 0.
#[inline(always)]
pub fn cnot<T: Int>(a: T) -> T {
    T::from_bits(u64::from(a == T::ZERO))
}

/// `shl.type d, a, b`: `b` is 32 bits wide for every type; amounts of the width and more give 0.
#[inline(always)]
pub fn shl<T: Int>(a: T, b: u32) -> T {
    a.shl(b)
}

/// `shr.type d, a, b`: amounts of the width and more give 0, or copies of the sign for signed types.
#[inline(always)]
pub fn shr<T: Int>(a: T, b: u32) -> T {
    a.shr(b)
}

/// `lop3.b32 d, a, b, c, table`: bit `4a + 2b + c` of the table, for each bit position.
#[inline(always)]
pub fn lop3(a: u32, b: u32, c: u32, table: u8) -> u32 {
    let row = |index: u32, bits: u32| if table >> index & 1 != 0 { bits } else { 0 };
    row(0, !a & !b & !c)
        | row(1, !a & !b & c)
        | row(2, !a & b & !c)
        | row(3, !a & b & c)
        | row(4, a & !b & !c)
        | row(5, a & !b & c)
        | row(6, a & b & !c)
        | row(7, a & b & c)
}

/// Returns the shift amount of `shf`: limited to 32, or modulo 32 with `.wrap`.
#[inline(always)]
fn funnel_amount(wrap: bool, c: u32) -> u32 {
    if wrap { c & 31 } else { c.min(32) }
}

/// `shf.l.mode.b32 d, a, b, c`: the high word of `{b, a}` shifted left.
#[inline(always)]
pub fn shf_l(a: u32, b: u32, c: u32, wrap: bool) -> u32 {
    let both = u64::from(b) << 32 | u64::from(a);
    (both << funnel_amount(wrap, c) >> 32) as u32
}

/// `shf.r.mode.b32 d, a, b, c`: the low word of `{b, a}` shifted right.
#[inline(always)]
pub fn shf_r(a: u32, b: u32, c: u32, wrap: bool) -> u32 {
    let both = u64::from(b) << 32 | u64::from(a);
    (both >> funnel_amount(wrap, c)) as u32
}

/// `selp.type d, a, b, c`: `a` if the predicate is true, else `b`.
#[inline(always)]
pub fn selp<T: Copy>(a: T, b: T, c: bool) -> T {
    if c { a } else { b }
}

/// `slct.type.s32 d, a, b, c`: `a` if `c` is not negative, else `b`.
#[inline(always)]
pub fn slct_s32<T: Copy>(a: T, b: T, c: i32) -> T {
    if c >= 0 { a } else { b }
}

/// `slct{.ftz}.type.f32 d, a, b, c`: `a` if `c` is at least 0 (or -0), else `b`. A NaN selects `b`.
#[inline(always)]
pub fn slct_f32<T: Copy>(a: T, b: T, c: f32, ftz: bool) -> T {
    if super::float::flush_f32(c, ftz) >= 0.0 { a } else { b }
}
