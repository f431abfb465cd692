//! Extended precision: `add.cc addc sub.cc subc mad.cc madc`. The carry flag `CC.CF` is an argument and a result.

use super::int::Int;

/// Returns `a + b + carry`, and the carry out of the highest bit.
#[inline(always)]
fn sum<T: Int>(a: T, b: T, carry: bool) -> (T, bool) {
    let sum = u128::from(a.bits()) + u128::from(b.bits()) + u128::from(carry);
    (T::from_bits(sum as u64), sum >> T::BITS != 0)
}

/// `add.cc.type d, a, b`: the sum and the carry out.
#[inline(always)]
pub fn add_cc<T: Int>(a: T, b: T) -> (T, bool) {
    sum(a, b, false)
}

/// `addc{.cc}.type d, a, b`: the sum with the carry in, and the carry out, which only the form with `.cc` writes.
#[inline(always)]
pub fn addc<T: Int>(a: T, b: T, carry: bool) -> (T, bool) {
    sum(a, b, carry)
}

/// `sub.cc.type d, a, b`: the difference and the borrow out.
#[inline(always)]
pub fn sub_cc<T: Int>(a: T, b: T) -> (T, bool) {
    subc(a, b, false)
}

/// `subc{.cc}.type d, a, b`: the difference less the borrow in, and the borrow out, which only the form with `.cc`
/// writes.
#[inline(always)]
pub fn subc<T: Int>(a: T, b: T, borrow: bool) -> (T, bool) {
    let taken = u128::from(b.bits()) + u128::from(borrow);
    let difference = u128::from(a.bits()).wrapping_sub(taken);
    (T::from_bits(difference as u64), u128::from(a.bits()) < taken)
}

/// `mad.lo.cc.type d, a, b, c`, and `madc.lo{.cc}` with its carry in.
#[inline(always)]
pub fn madc_lo<T: Int>(a: T, b: T, c: T, carry: bool) -> (T, bool) {
    sum(a.mul(b), c, carry)
}

/// `mad.hi.cc.type d, a, b, c`, and `madc.hi{.cc}` with its carry in.
#[inline(always)]
pub fn madc_hi<T: Int>(a: T, b: T, c: T, carry: bool) -> (T, bool) {
    sum(a.mul_hi(b), c, carry)
}
