//! Comparison: `setp`, `set`, and the property test `testp`.

use super::float::flush_f32;
use super::int::Int;
use ptx::ir::{BoolOp, Compare};

/// Compares integers as `setp` and `set` do. `.lo .ls .hi .hs` compare as unsigned. The operators for NaNs have
/// no integer form and return false.
#[inline(always)]
pub fn compare_int<T: Int>(op: Compare, a: T, b: T) -> bool {
    match op {
        Compare::Eq => a == b,
        Compare::Ne => a != b,
        Compare::Lt => a < b,
        Compare::Le => a <= b,
        Compare::Gt => a > b,
        Compare::Ge => a >= b,
        Compare::Lo => a.bits() < b.bits(),
        Compare::Ls => a.bits() <= b.bits(),
        Compare::Hi => a.bits() > b.bits(),
        Compare::Hs => a.bits() >= b.bits(),
        Compare::Equ | Compare::Neu | Compare::Ltu | Compare::Leu => false,
        Compare::Gtu | Compare::Geu | Compare::Num | Compare::Nan => false,
    }
}

/// Compares floating-point numbers as `setp` and `set` do. If an operand is a NaN, the plain operators are
/// false, and those that end in `u` are true. `.lo .ls .hi .hs` have no floating-point form and return false.
#[inline(always)]
pub fn compare_float<T: PartialOrd>(op: Compare, a: T, b: T) -> bool {
    // `x != x` is true for NaNs only.
    #[allow(clippy::eq_op)]
    let unordered = a != a || b != b;
    match op {
        Compare::Eq => a == b,
        Compare::Ne => !unordered && a != b,
        Compare::Lt => a < b,
        Compare::Le => a <= b,
        Compare::Gt => a > b,
        Compare::Ge => a >= b,
        Compare::Equ => unordered || a == b,
        Compare::Neu => a != b,
        Compare::Ltu => unordered || a < b,
        Compare::Leu => unordered || a <= b,
        Compare::Gtu => unordered || a > b,
        Compare::Geu => unordered || a >= b,
        Compare::Num => !unordered,
        Compare::Nan => unordered,
        Compare::Lo | Compare::Ls | Compare::Hi | Compare::Hs => false,
    }
}

/// Compares as `setp.f32` and `set.f32` do; `.ftz` flushes both operands first.
#[inline(always)]
pub fn compare_f32(op: Compare, a: f32, b: f32, ftz: bool) -> bool {
    compare_float(op, flush_f32(a, ftz), flush_f32(b, ftz))
}

/// Compares as `setp.f64` and `set.f64` do.
#[inline(always)]
pub fn compare_f64(op: Compare, a: f64, b: f64) -> bool {
    compare_float(op, a, b)
}

/// Returns the two predicates `p|q` of `setp`, from the result `t` of the comparison, and the Boolean operator and
/// third operand if the instruction has them.
#[inline(always)]
pub fn setp(t: bool, op: Option<(BoolOp, bool)>) -> (bool, bool) {
    (combine(t, op), combine(!t, op))
}

/// Returns the first predicate of [`setp`], which is also the result of `set`.
#[inline(always)]
pub fn combine(t: bool, op: Option<(BoolOp, bool)>) -> bool {
    match op {
        None => t,
        Some((BoolOp::And, c)) => t & c,
        Some((BoolOp::Or, c)) => t | c,
        Some((BoolOp::Xor, c)) => t ^ c,
    }
}

/// `set` into an integer: all ones for true.
#[inline(always)]
pub fn set_int(t: bool) -> u32 {
    if t { !0 } else { 0 }
}

/// `set` into `.f32`: 1.0 for true.
#[inline(always)]
pub fn set_f32(t: bool) -> f32 {
    if t { 1.0 } else { 0.0 }
}

/// The property that `testp` tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Property {
    /// `.finite`
    Finite,
    /// `.infinite`
    Infinite,
    /// `.number`
    Number,
    /// `.notanumber`
    NotANumber,
    /// `.normal`
    Normal,
    /// `.subnormal`
    Subnormal,
}

macro_rules! testp {
    ($($name:ident $t:ident $doc:literal)*) => {$(
        #[doc = $doc]
        #[inline(always)]
        pub fn $name(property: Property, a: $t) -> bool {
            match property {
                Property::Finite => a.is_finite(),
                Property::Infinite => a.is_infinite(),
                Property::Number => !a.is_nan(),
                Property::NotANumber => a.is_nan(),
                Property::Normal => a.is_normal() || a == 0.0,
                Property::Subnormal => a.is_subnormal(),
            }
        }
    )*};
}

testp! {
    testp_f32 f32 "`testp.op.f32 p, a`. Zero counts as normal."
    testp_f64 f64 "`testp.op.f64 p, a`. Zero counts as normal."
}
