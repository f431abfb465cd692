//! Bit fields and bytes: `bfe bfi bfind bmsk brev clz popc fns prmt szext dp2a dp4a`.

use super::int::Int;

/// `bfe.type d, a, b, c`: `c` bits from position `b`, extended by the type's sign. Bits past the highest bit of `a`
/// are copies of its sign bit, or 0 for unsigned types.
#[inline(always)]
pub fn bfe<T: Int>(a: T, b: u32, c: u32) -> T {
    let (position, length) = (field_operand::<T>(b), field_operand::<T>(c));
    if length == 0 {
        return T::ZERO;
    }
    // Past the highest bit, a shift gives zeros or copies of the sign, as the manual requires.
    let field = a.shr(position);
    if length >= T::BITS {
        return field;
    }
    let unused = T::BITS - length;
    field.shl(unused).shr(unused)
}

/// Returns the value of a position or length operand. The 32-bit instructions read only its low byte. The GPU's code
/// for the 64-bit instructions reads all of it, so values above 255 are past the highest bit.
#[inline(always)]
fn field_operand<T: Int>(a: u32) -> u32 {
    if T::BITS == 64 { a } else { a & 0xff }
}

/// `bfi.type f, a, b, c, d`: `b` with the low `d` bits of `a` at position `c`.
#[inline(always)]
pub fn bfi<T: Int>(a: T, b: T, c: u32, d: u32) -> T {
    let (position, length) = (field_operand::<T>(c), field_operand::<T>(d));
    let ones = if length >= 64 { u64::MAX } else { (1 << length) - 1 };
    let mask = if position >= T::BITS { 0 } else { ones << position };
    let inserted = if position >= T::BITS { 0 } else { a.bits() << position };
    T::from_bits(b.bits() & !mask | inserted & mask)
}

/// `bfind{.shiftamt}.type d, a`: the position of the highest bit that differs from the sign bit (for unsigned types, of
/// the highest bit that is 1), or with `.shiftamt` the shift that moves it to the top; all ones if there is none.
#[inline(always)]
pub fn bfind<T: Int>(a: T, shiftamt: bool) -> u32 {
    let magnitude = if a < T::ZERO {
        !a.bits() & (u64::MAX >> (64 - T::BITS))
    } else {
        a.bits()
    };
    if magnitude == 0 {
        return u32::MAX;
    }
    let position = 63 - magnitude.leading_zeros();
    if shiftamt { T::BITS - 1 - position } else { position }
}

/// `bmsk.mode.b32 d, a, b`: `b` ones from position `a`; both modulo 32 with `.wrap`.
#[inline(always)]
pub fn bmsk(a: u32, b: u32, wrap: bool) -> u32 {
    let (position, width) = if wrap { (a & 31, b & 31) } else { (a.min(32), b.min(32)) };
    let ones = (1u64 << width) - 1;
    (ones << position) as u32
}

/// `brev.type d, a`: the bits in reverse order.
#[inline(always)]
pub fn brev<T: Int>(a: T) -> T {
    T::from_bits(a.bits().reverse_bits() >> (64 - T::BITS))
}

/// `clz.type d, a`
#[inline(always)]
pub fn clz<T: Int>(a: T) -> u32 {
    a.bits().leading_zeros() - (64 - T::BITS)
}

/// `popc.type d, a`
#[inline(always)]
pub fn popc<T: Int>(a: T) -> u32 {
    a.bits().count_ones()
}

/// `fns.b32 d, mask, base, offset`: the position of the n-th set bit from `base` on, upwards, or downwards if the
/// offset n is negative. Bit `base` itself counts. With n = 0, only bit `base` is tested. All ones if there is no such
/// bit, or if `base` is above 31. With the least n, -2^31, the result is 0 for every other `base`.
#[inline(always)]
pub fn fns(mask: u32, base: u32, offset: i32) -> u32 {
    if base > 31 {
        return u32::MAX;
    }
    if offset == i32::MIN {
        // The magnitude overflows in the GPU's code, which then returns position 31 in the mirrored mask: position 0 in
        // the mask.
        return 0;
    }
    if offset == 0 {
        return if mask >> base & 1 != 0 { base } else { u32::MAX };
    }
    // A downward search is an upward search in the mirrored mask.
    let (mask, base) = if offset < 0 {
        (mask.reverse_bits(), 31 - base)
    } else {
        (mask, base)
    };
    let mut rest = mask & u32::MAX << base;
    let mut count = offset.unsigned_abs();
    while rest != 0 {
        count -= 1;
        if count == 0 {
            let position = rest.trailing_zeros();
            return if offset < 0 { 31 - position } else { position };
        }
        rest &= rest - 1;
    }
    u32::MAX
}

/// The modes of `prmt`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permute {
    /// No modifier: four selectors of four bits. The highest bit of a selector selects copies of the byte's sign.
    Generic,
    /// `.f4e`: four bytes from `c` upwards.
    F4e,
    /// `.b4e`: four bytes from `c` downwards.
    B4e,
    /// `.rc8`: one byte four times.
    Rc8,
    /// `.ecl`: edge clamp left.
    Ecl,
    /// `.ecr`: edge clamp right.
    Ecr,
    /// `.rc16`: one half-word twice.
    Rc16,
}

/// Returns the selectors of a mode, for the lowest byte of the result first.
#[inline(always)]
fn selectors(mode: Permute, c: u32) -> [u32; 4] {
    let n = c & 3;
    match mode {
        Permute::Generic => [c & 15, c >> 4 & 15, c >> 8 & 15, c >> 12 & 15],
        Permute::F4e => [n, n + 1, n + 2, n + 3],
        Permute::B4e => [n, (n + 7) & 7, (n + 6) & 7, (n + 5) & 7],
        Permute::Rc8 => [n; 4],
        Permute::Ecl => [n, n.max(1), n.max(2), 3],
        Permute::Ecr => [0, n.min(1), n.min(2), n],
        Permute::Rc16 => [(n & 1) * 2, (n & 1) * 2 + 1, (n & 1) * 2, (n & 1) * 2 + 1],
    }
}

/// `prmt.b32{.mode} d, a, b, c`: any four of the eight bytes of `{b, a}`.
#[inline(always)]
pub fn prmt(a: u32, b: u32, c: u32, mode: Permute) -> u32 {
    let bytes = u64::from(b) << 32 | u64::from(a);
    let byte = |selector: u32| {
        let byte = (bytes >> ((selector & 7) * 8)) as u8;
        if selector & 8 != 0 {
            (byte as i8 >> 7) as u8
        } else {
            byte
        }
    };
    u32::from_le_bytes(selectors(mode, c).map(byte))
}

/// `szext.mode.type d, a, b`: the low `b` bits of `a`, extended by the type's sign. A `b` of 32 or more means all bits,
/// or with `.wrap` is taken modulo 32. The result for no bits is 0.
#[inline(always)]
pub fn szext<T: Int>(a: T, b: u32, wrap: bool) -> T {
    let width = if wrap { b & 31 } else { b.min(32) };
    if width == 0 {
        return T::ZERO;
    }
    a.shl(32 - width).shr(32 - width)
}

/// Returns the part of `bits` bits (8 or 16) with this index in a word, extended to 32 bits with its sign or with
/// zeros.
#[inline(always)]
fn part(a: u32, index: u32, bits: u32, signed: bool) -> i32 {
    let shifted = a << (32 - bits - index * bits);
    if signed {
        shifted as i32 >> (32 - bits)
    } else {
        (shifted >> (32 - bits)) as i32
    }
}

/// `dp2a.mode.atype.btype d, a, b, c`: `c` plus the products of the half-words of `a` and the low or high two bytes of
/// `b`.
#[inline(always)]
pub fn dp2a(a: u32, b: u32, c: u32, high: bool, a_signed: bool, b_signed: bool) -> u32 {
    let first = if high { 2 } else { 0 };
    (0..2).fold(c, |sum, i| {
        let product = part(a, i, 16, a_signed).wrapping_mul(part(b, first + i, 8, b_signed));
        sum.wrapping_add(product as u32)
    })
}

/// `dp4a.atype.btype d, a, b, c`: `c` plus the products of the bytes of `a` and `b`.
#[inline(always)]
pub fn dp4a(a: u32, b: u32, c: u32, a_signed: bool, b_signed: bool) -> u32 {
    (0..4).fold(c, |sum, i| {
        let product = part(a, i, 8, a_signed).wrapping_mul(part(b, i, 8, b_signed));
        sum.wrapping_add(product as u32)
    })
}
