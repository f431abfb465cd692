//! Arithmetic of `.f64`. Unlike `.f32` it has no `.ftz` and `.sat`, and a NaN operand keeps its payload.
//!
//! Of two NaN operands, an H200 keeps the first one's payload in `div`, and the second one's in the other operations.
//! In `fma` it keeps that of the first NaN in the order b, c, a.

use super::super::round::{F64, round_pack, round_pack_128, unpack_f64};
use ptx::ir::Rounding;

/// The NaN that an invalid `.f64` operation returns.
pub const NAN_F64: u64 = 0xfff8_0000_0000_0000;

const QUIET: u64 = 1 << 51;

/// Returns `r` unless it is a NaN. For a NaN, returns the first of the other arguments that is a NaN, made quiet, or
/// [`NAN_F64`] if none is. The host's NaN is not used, because its payload depends on the order that the compiler gave
/// the operands.
#[inline(always)]
fn keep_payload(r: f64, first: f64, second: f64, third: f64) -> f64 {
    let mut payload = NAN_F64;
    if third.is_nan() {
        payload = third.to_bits() | QUIET;
    }
    if second.is_nan() {
        payload = second.to_bits() | QUIET;
    }
    if first.is_nan() {
        payload = first.to_bits() | QUIET;
    }
    f64::from_bits(if r.is_nan() { payload } else { r.to_bits() })
}

/// Rounds in any mode: returns `nearest`, or its neighbour if the mode requires that. `nearest` is the exact result
/// rounded to nearest, and `error` has the sign of the exact result minus `nearest`.
#[inline(always)]
fn step(nearest: f64, error: f64, rnd: Rounding) -> f64 {
    let (down, up) = match rnd {
        Rounding::Rm => (error < 0.0, false),
        Rounding::Rp => (false, error > 0.0),
        Rounding::Rz => (error < 0.0 && nearest > 0.0, error > 0.0 && nearest < 0.0),
        Rounding::Rn | Rounding::Rna | Rounding::Rs => (false, false),
    };
    if down {
        nearest.next_down()
    } else if up {
        nearest.next_up()
    } else {
        nearest
    }
}

/// Returns the result of an overflow of finite operands: the infinity `r`, or the greatest finite number if the mode
/// requires that.
#[inline(always)]
fn overflow(r: f64, rnd: Rounding) -> f64 {
    let finite = match rnd {
        Rounding::Rz => true,
        Rounding::Rm => r > 0.0,
        Rounding::Rp => r < 0.0,
        Rounding::Rn | Rounding::Rna | Rounding::Rs => false,
    };
    if finite { f64::MAX.copysign(r) } else { r }
}

/// Returns `a + b` in any mode.
fn add_directed(a: f64, b: f64, rnd: Rounding) -> f64 {
    let sum = a + b;
    if !a.is_finite() || !b.is_finite() {
        return sum;
    }
    if sum.is_infinite() {
        return overflow(sum, rnd);
    }
    if sum == 0.0 {
        // The sum is exact. The zero of operands of different signs is +0, but -0 in the mode .rm.
        let positive_zeros = (a.to_bits() | b.to_bits()) == 0;
        return if rnd == Rounding::Rm && !positive_zeros {
            -0.0
        } else {
            sum
        };
    }
    // With the greater operand first, the error term cannot overflow.
    let (greater, lesser) = if a.abs() >= b.abs() { (a, b) } else { (b, a) };
    let error = lesser - (sum - greater);
    step(sum, error, rnd)
}

/// `add{.rnd}.f64 d, a, b`
#[inline(always)]
pub fn add_f64(a: f64, b: f64, rnd: Rounding) -> f64 {
    let sum = match rnd {
        Rounding::Rn => a + b,
        _ => add_directed(a, b, rnd),
    };
    keep_payload(sum, b, a, 0.0)
}

/// `sub{.rnd}.f64 d, a, b`
#[inline(always)]
pub fn sub_f64(a: f64, b: f64, rnd: Rounding) -> f64 {
    let difference = match rnd {
        Rounding::Rn => a - b,
        _ => add_directed(a, -b, rnd),
    };
    keep_payload(difference, b, a, 0.0)
}

/// Returns `a b` in any mode.
fn mul_directed(a: f64, b: f64, rnd: Rounding) -> f64 {
    if !a.is_finite() || !b.is_finite() || a == 0.0 || b == 0.0 {
        return a * b;
    }
    let ((a_negative, x, a_exponent), (b_negative, y, b_exponent)) = (unpack_f64(a), unpack_f64(b));
    let product = u128::from(x) * u128::from(y);
    f64::from_bits(round_pack_128(
        F64,
        a_negative ^ b_negative,
        product,
        a_exponent + b_exponent,
        rnd,
    ))
}

/// `mul{.rnd}.f64 d, a, b`
#[inline(always)]
pub fn mul_f64(a: f64, b: f64, rnd: Rounding) -> f64 {
    let product = match rnd {
        Rounding::Rn => a * b,
        _ => mul_directed(a, b, rnd),
    };
    keep_payload(product, b, a, 0.0)
}

/// Returns `a b + c` of finite operands in any mode, computed with integers if the product is not zero.
pub(crate) fn fma_exact_f64(a: f64, b: f64, c: f64, rnd: Rounding) -> f64 {
    let ((a_negative, x, a_exponent), (b_negative, y, b_exponent)) = (unpack_f64(a), unpack_f64(b));
    let (c_negative, z, c_exponent) = unpack_f64(c);
    let negative = a_negative ^ b_negative;
    if x == 0 || y == 0 {
        let zero = if negative { -0.0 } else { 0.0 };
        return if z == 0 { add_directed(zero, c, rnd) } else { c };
    }
    let (product, exponent) = (u128::from(x) * u128::from(y), a_exponent + b_exponent);
    if z == 0 {
        return f64::from_bits(round_pack_128(F64, negative, product, exponent, rnd));
    }
    // Both numbers get their highest bit at 125. That leaves room for a carry above, and at least 20 bits below the
    // product.
    let normal = |significand: u128, exponent: i32| {
        let shift = significand.leading_zeros() as i32 - 2;
        (significand << shift, exponent - shift)
    };
    let (p, p_exponent) = normal(product, exponent);
    let (q, q_exponent) = normal(u128::from(z), c_exponent);
    // The smaller number is shifted right, and its last bit is set if bits are lost. Bits are lost only if the two are
    // so far apart that at most one leading bit cancels, and then the last bit is below all bits that decide the
    // rounding.
    let cut = |significand: u128, by: i32| {
        let by = by.min(127);
        significand >> by | u128::from(significand & ((1u128 << by) - 1) != 0)
    };
    let high = p_exponent.max(q_exponent);
    let (p, q) = (cut(p, high - p_exponent), cut(q, high - q_exponent));
    let (sum_negative, sum) = if negative == c_negative {
        (negative, p + q)
    } else if p >= q {
        (negative, p - q)
    } else {
        (c_negative, q - p)
    };
    if sum == 0 {
        return if rnd == Rounding::Rm { -0.0 } else { 0.0 };
    }
    f64::from_bits(round_pack_128(F64, sum_negative, sum, high, rnd))
}

/// Returns `a b + c` of any operands in any mode, without the instruction.
fn fma_by_integers(a: f64, b: f64, c: f64, rnd: Rounding) -> f64 {
    if a.is_finite() && b.is_finite() && c.is_finite() {
        fma_exact_f64(a, b, c, rnd)
    } else if a.is_finite() && b.is_finite() {
        // c is infinite or a NaN. A product that overflows must not make a NaN of it.
        c
    } else {
        a * b + c
    }
}

/// True if the `fma` of the C library, which replaces a missing instruction, is known to round once. The `fma` of
/// mingw rounds twice; other systems are unknown.
const LIBRARY_FUSES: bool = cfg!(any(target_os = "linux", target_vendor = "apple"));

/// Returns `a b + c`, rounded once to nearest.
#[inline(always)]
fn multiply_add(a: f64, b: f64, c: f64, fused: bool) -> f64 {
    if fused || LIBRARY_FUSES {
        a.mul_add(b, c)
    } else {
        fma_by_integers(a, b, c, Rounding::Rn)
    }
}

/// `fma.rnd.f64 d, a, b, c`, and `mad` of that type. `fused` as for [`fma_f32`](super::fma_f32).
#[inline(always)]
pub fn fma_f64(a: f64, b: f64, c: f64, rnd: Rounding, fused: bool) -> f64 {
    let result = match rnd {
        Rounding::Rn => multiply_add(a, b, c, fused),
        _ => fma_by_integers(a, b, c, rnd),
    };
    keep_payload(result, b, c, a)
}

/// Returns `a / b` in any mode.
fn div_directed(a: f64, b: f64, rnd: Rounding) -> f64 {
    if !a.is_finite() || !b.is_finite() || a == 0.0 || b == 0.0 {
        return a / b;
    }
    let ((a_negative, x, a_exponent), (b_negative, y, b_exponent)) = (unpack_f64(a), unpack_f64(b));
    // With the highest bits aligned, the quotient of (x · 2^62) by y has 62 or 63 bits, more than the result needs.
    let (x_shift, y_shift) = (x.leading_zeros(), y.leading_zeros());
    let (dividend, divisor) = (u128::from(x << x_shift) << 62, u128::from(y << y_shift));
    let sticky = u64::from(dividend % divisor != 0);
    let exponent = (a_exponent - x_shift as i32) - (b_exponent - y_shift as i32) - 62;
    f64::from_bits(round_pack(
        F64,
        a_negative ^ b_negative,
        (dividend / divisor) as u64 | sticky,
        exponent,
        rnd,
    ))
}

/// `div.rnd.f64 d, a, b`
#[inline(always)]
pub fn div_f64(a: f64, b: f64, rnd: Rounding) -> f64 {
    let quotient = match rnd {
        Rounding::Rn => a / b,
        _ => div_directed(a, b, rnd),
    };
    keep_payload(quotient, a, b, 0.0)
}

/// `rcp.rnd.f64 d, a`
#[inline(always)]
pub fn rcp_f64(a: f64, rnd: Rounding) -> f64 {
    div_f64(1.0, a, rnd)
}

/// Returns the square root in any mode.
fn sqrt_directed(a: f64, rnd: Rounding) -> f64 {
    let root = a.sqrt();
    if !root.is_finite() || root == 0.0 {
        return root;
    }
    // Scale by an even power of two, so that the remainder cannot underflow.
    let (scaled, scaled_root) = if a < 1e-200 {
        let scaled = a * f64::from_bits((1023 + 400) << 52);
        (scaled, root * f64::from_bits((1023 + 200) << 52))
    } else {
        (a, root)
    };
    let error = multiply_add(-scaled_root, scaled_root, scaled, super::BASELINE_FUSED);
    step(root, error, rnd)
}

/// `sqrt.rnd.f64 d, a`. Negative numbers give NaN, and -0 gives -0.
#[inline(always)]
pub fn sqrt_f64(a: f64, rnd: Rounding) -> f64 {
    let root = match rnd {
        Rounding::Rn => a.sqrt(),
        _ => sqrt_directed(a, rnd),
    };
    keep_payload(root, a, 0.0, 0.0)
}

/// `abs.f64 d, a`. A NaN keeps its sign.
#[inline(always)]
pub fn abs_f64(a: f64) -> f64 {
    keep_payload(f64::from_bits(a.to_bits() & !(1 << 63)), a, 0.0, 0.0)
}

/// `neg.f64 d, a`. A NaN keeps its sign.
#[inline(always)]
pub fn neg_f64(a: f64) -> f64 {
    keep_payload(f64::from_bits(a.to_bits() ^ (1 << 63)), a, 0.0, 0.0)
}

/// `copysign.f64 d, a, b`: the sign of `a` with the magnitude of `b`.
#[inline(always)]
pub fn copysign_f64(a: f64, b: f64) -> f64 {
    f64::from_bits(a.to_bits() & 1 << 63 | b.to_bits() & !(1 << 63))
}

/// `min.f64 d, a, b`. -0 is less than +0. If one operand is a NaN, returns the other.
#[inline(always)]
pub fn min_f64(a: f64, b: f64) -> f64 {
    let a_first = a < b || (a == b && a.to_bits() >> 63 != 0);
    select_f64(a, b, a_first)
}

/// `max.f64 d, a, b`. -0 is less than +0. If one operand is a NaN, returns the other.
#[inline(always)]
pub fn max_f64(a: f64, b: f64) -> f64 {
    let a_first = a > b || (a == b && a.to_bits() >> 63 == 0);
    select_f64(a, b, a_first)
}

/// Returns `a` if `a_first` is true or only `b` is a NaN, else `b`.
#[inline(always)]
fn select_f64(a: f64, b: f64, a_first: bool) -> f64 {
    let number = if a_first || b.is_nan() { a } else { b };
    let number = if a.is_nan() && !b.is_nan() { b } else { number };
    keep_payload(number, b, a, 0.0)
}
