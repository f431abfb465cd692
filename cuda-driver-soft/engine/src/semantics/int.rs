//! Integer arithmetic: `add sub mul mad mul24 mad24 div rem abs neg min max sad`.
//!
//! The type parameter of a generic function is the instruction's type (`u32` for `.u32`, `i32` for `.s32`). Results
//! wrap unless the instruction has `.sat`, and no function panics, not even on division by zero.

/// An integer type of PTX: `.u8 .u16 .u32 .u64` and `.s8 .s16 .s32 .s64`.
pub trait Int: Copy + Ord + core::fmt::Debug {
    /// Width in bits.
    const BITS: u32;
    /// True if the type is signed.
    const SIGNED: bool;
    /// Zero.
    const ZERO: Self;
    /// The least value.
    const MIN: Self;
    /// The greatest value.
    const MAX: Self;
    /// The type of twice the width, signed if this type is.
    type Wide: Copy;

    /// Returns the value modulo 2^BITS.
    fn truncate(value: i128) -> Self;
    /// Returns the exact value.
    fn widen(self) -> i128;
    #[doc(hidden)]
    fn add(self, b: Self) -> Self;
    #[doc(hidden)]
    fn sub(self, b: Self) -> Self;
    #[doc(hidden)]
    fn mul(self, b: Self) -> Self;
    #[doc(hidden)]
    fn mul_hi(self, b: Self) -> Self;
    #[doc(hidden)]
    fn mul_wide(self, b: Self) -> Self::Wide;
    #[doc(hidden)]
    fn add_wide(a: Self::Wide, b: Self::Wide) -> Self::Wide;
    #[doc(hidden)]
    fn div(self, b: Self) -> Self;
    #[doc(hidden)]
    fn rem(self, b: Self) -> Self;
    #[doc(hidden)]
    fn abs_diff(self, b: Self) -> Self;
    #[doc(hidden)]
    fn shl(self, bits: u32) -> Self;
    #[doc(hidden)]
    fn shr(self, bits: u32) -> Self;
    /// Returns the value rounded to nearest.
    #[doc(hidden)]
    fn to_f32(self) -> f32;
    /// Returns the value rounded to nearest.
    #[doc(hidden)]
    fn to_f64(self) -> f64;
    /// Returns the integral part, limited to the range of the type; 0 for a NaN.
    #[doc(hidden)]
    fn from_f32(a: f32) -> Self;
    /// Returns the integral part, limited to the range of the type; 0 for a NaN.
    #[doc(hidden)]
    fn from_f64(a: f64) -> Self;
    /// Returns the bits of the value, extended with zeros.
    #[doc(hidden)]
    fn bits(self) -> u64;
    /// Returns the value with the low BITS bits of `bits`.
    #[doc(hidden)]
    fn from_bits(bits: u64) -> Self;
}

macro_rules! int {
    ($($t:ident $unsigned:ident $wide:ident $signed:literal;)*) => {$(
        impl Int for $t {
            const BITS: u32 = $t::BITS;
            const SIGNED: bool = $signed;
            const ZERO: Self = 0;
            const MIN: Self = $t::MIN;
            const MAX: Self = $t::MAX;
            type Wide = $wide;

            #[inline(always)]
            fn truncate(value: i128) -> Self {
                value as $t
            }
            #[inline(always)]
            fn widen(self) -> i128 {
                self as i128
            }
            #[inline(always)]
            fn add(self, b: Self) -> Self {
                self.wrapping_add(b)
            }
            #[inline(always)]
            fn sub(self, b: Self) -> Self {
                self.wrapping_sub(b)
            }
            #[inline(always)]
            fn mul(self, b: Self) -> Self {
                self.wrapping_mul(b)
            }
            #[inline(always)]
            fn mul_hi(self, b: Self) -> Self {
                ((self as $wide).wrapping_mul(b as $wide) >> $t::BITS) as $t
            }
            #[inline(always)]
            fn mul_wide(self, b: Self) -> $wide {
                // The product always fits into twice the width. `wrapping_mul` only avoids the overflow check.
                (self as $wide).wrapping_mul(b as $wide)
            }
            #[inline(always)]
            fn add_wide(a: $wide, b: $wide) -> $wide {
                a.wrapping_add(b)
            }
            #[inline(always)]
            fn div(self, b: Self) -> Self {
                // GPUs have no divide instruction. Their code for it selects !b if b is zero.
                if b == 0 { !0 } else { self.wrapping_div(b) }
            }
            #[inline(always)]
            fn rem(self, b: Self) -> Self {
                if b == 0 { !0 } else { self.wrapping_rem(b) }
            }
            #[inline(always)]
            fn abs_diff(self, b: Self) -> Self {
                $t::abs_diff(self, b) as $t
            }
            #[inline(always)]
            fn shl(self, bits: u32) -> Self {
                if bits < $t::BITS { self << bits } else { 0 }
            }
            #[inline(always)]
            fn shr(self, bits: u32) -> Self {
                if bits < $t::BITS {
                    self >> bits
                } else if $signed {
                    self >> ($t::BITS - 1)
                } else {
                    0
                }
            }
            #[inline(always)]
            fn to_f32(self) -> f32 {
                self as f32
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn from_f32(a: f32) -> Self {
                a as $t
            }
            #[inline(always)]
            fn from_f64(a: f64) -> Self {
                a as $t
            }
            #[inline(always)]
            fn bits(self) -> u64 {
                self as $unsigned as u64
            }
            #[inline(always)]
            fn from_bits(bits: u64) -> Self {
                bits as $t
            }
        }
    )*};
}

int! {
    u8 u8 u16 false;
    u16 u16 u32 false;
    u32 u32 u64 false;
    u64 u64 u128 false;
    i8 u8 i16 true;
    i16 u16 i32 true;
    i32 u32 i64 true;
    i64 u64 i128 true;
}

/// `add.type d, a, b`
#[inline(always)]
pub fn add<T: Int>(a: T, b: T) -> T {
    a.add(b)
}

/// `add.sat.s32 d, a, b`: limited to the range of the type.
#[inline(always)]
pub fn add_sat(a: i32, b: i32) -> i32 {
    a.saturating_add(b)
}

/// `sub.type d, a, b`
#[inline(always)]
pub fn sub<T: Int>(a: T, b: T) -> T {
    a.sub(b)
}

/// `sub.sat.s32 d, a, b`: limited to the range of the type.
#[inline(always)]
pub fn sub_sat(a: i32, b: i32) -> i32 {
    a.saturating_sub(b)
}

/// `mul.lo.type d, a, b`: the low half of the product.
#[inline(always)]
pub fn mul_lo<T: Int>(a: T, b: T) -> T {
    a.mul(b)
}

/// `mul.hi.type d, a, b`: the high half of the product.
#[inline(always)]
pub fn mul_hi<T: Int>(a: T, b: T) -> T {
    a.mul_hi(b)
}

/// `mul.wide.type d, a, b`: the whole product, in twice the width.
#[inline(always)]
pub fn mul_wide<T: Int>(a: T, b: T) -> T::Wide {
    a.mul_wide(b)
}

/// `mad.lo.type d, a, b, c`
#[inline(always)]
pub fn mad_lo<T: Int>(a: T, b: T, c: T) -> T {
    a.mul(b).add(c)
}

/// `mad.hi.type d, a, b, c`
#[inline(always)]
pub fn mad_hi<T: Int>(a: T, b: T, c: T) -> T {
    a.mul_hi(b).add(c)
}

/// `mad.wide.type d, a, b, c`
#[inline(always)]
pub fn mad_wide<T: Int>(a: T, b: T, c: T::Wide) -> T::Wide {
    T::add_wide(a.mul_wide(b), c)
}

/// `mad.hi.sat.s32 d, a, b, c`: the sum limited to the range of the type.
#[inline(always)]
pub fn mad_hi_sat(a: i32, b: i32, c: i32) -> i32 {
    a.mul_hi(b).saturating_add(c)
}

/// Returns an operand of `mul24` or `mad24`: the low 24 bits, extended by the type's sign.
#[inline(always)]
fn low24<T: Int>(a: T) -> i64 {
    let low = (a.bits() & 0xff_ffff) as i64;
    if T::SIGNED { low << 40 >> 40 } else { low }
}

/// `mul24.lo.type d, a, b`: bits 0 to 31 of the 48-bit product.
#[inline(always)]
pub fn mul24_lo<T: Int>(a: T, b: T) -> T {
    T::from_bits(low24(a).wrapping_mul(low24(b)) as u64)
}

/// `mul24.hi.type d, a, b`: bits 16 to 47 of the 48-bit product.
#[inline(always)]
pub fn mul24_hi<T: Int>(a: T, b: T) -> T {
    T::from_bits((low24(a).wrapping_mul(low24(b)) >> 16) as u64)
}

/// `mad24.lo.type d, a, b, c`
#[inline(always)]
pub fn mad24_lo<T: Int>(a: T, b: T, c: T) -> T {
    mul24_lo(a, b).add(c)
}

/// `mad24.hi.type d, a, b, c`
#[inline(always)]
pub fn mad24_hi<T: Int>(a: T, b: T, c: T) -> T {
    mul24_hi(a, b).add(c)
}

/// `mad24.hi.sat.s32 d, a, b, c`: the sum limited to the range of the type.
#[inline(always)]
pub fn mad24_hi_sat(a: i32, b: i32, c: i32) -> i32 {
    mul24_hi(a, b).saturating_add(c)
}

/// `div.type d, a, b`. Division by zero gives all ones. The least value divided by -1 is the least value.
#[inline(always)]
pub fn div<T: Int>(a: T, b: T) -> T {
    a.div(b)
}

/// `rem.type d, a, b`, with the sign of `a`. Division by zero gives all ones, and division by -1 gives 0.
#[inline(always)]
pub fn rem<T: Int>(a: T, b: T) -> T {
    a.rem(b)
}

/// `abs.type d, a`. The least value is returned unchanged.
#[inline(always)]
pub fn abs<T: Int>(a: T) -> T {
    if a < T::ZERO { T::ZERO.sub(a) } else { a }
}

/// `neg.type d, a`. The least value is returned unchanged.
#[inline(always)]
pub fn neg<T: Int>(a: T) -> T {
    T::ZERO.sub(a)
}

/// `min.type d, a, b`
#[inline(always)]
pub fn min<T: Int>(a: T, b: T) -> T {
    if a < b { a } else { b }
}

/// `max.type d, a, b`
#[inline(always)]
pub fn max<T: Int>(a: T, b: T) -> T {
    if a > b { a } else { b }
}

/// `min.relu.s32 d, a, b`: negative results become 0.
#[inline(always)]
pub fn min_relu<T: Int>(a: T, b: T) -> T {
    max(min(a, b), T::ZERO)
}

/// `max.relu.s32 d, a, b`: negative results become 0.
#[inline(always)]
pub fn max_relu<T: Int>(a: T, b: T) -> T {
    max(max(a, b), T::ZERO)
}

/// `sad.type d, a, b, c`: c + |a - b|.
#[inline(always)]
pub fn sad<T: Int>(a: T, b: T, c: T) -> T {
    c.add(a.abs_diff(b))
}

/// Applies a 16-bit operation to both halves: the `.u16x2` and `.s16x2` forms.
/// `x2(a, b, add::<u16>)` is `add.u16x2`, `x2(a, b, min_relu::<i16>)` is `min.relu.s16x2`.
#[inline(always)]
pub fn x2<T: Int>(a: u32, b: u32, op: impl Fn(T, T) -> T) -> u32 {
    let half = |shift: u32| {
        op(
            T::from_bits(u64::from(a >> shift & 0xffff)),
            T::from_bits(u64::from(b >> shift & 0xffff)),
        )
        .bits() as u32
    };
    half(16) << 16 | half(0)
}
