//! Values that differ from one lane of a warp to the next by the same step, and what integer instructions make of them.
//!
//! A row of such values is known from two numbers. Indexes and addresses are mostly of this kind: `%tid.x` is, and sums
//! of such values and their products with what is the same in all lanes are again. Everything here is exact: a function
//! that cannot say its result this way says `None`.

use super::compare::compare_int;
use super::int::Int;
use crate::ir::Compare;

/// One value per lane: in lane `i` it is `base + i * step`, modulo 2 to the width.
///
/// Both numbers are kept modulo 2 to the width; a step above half of that is a step down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Affine {
    /// The value in lane 0.
    pub base: u64,
    /// What each lane has more than the one before.
    pub step: u64,
}

/// The last lane of a warp.
const LAST: u32 = 31;

/// The same value in all lanes.
#[inline(always)]
pub fn uniform<T: Int>(value: T) -> Affine {
    Affine {
        base: value.bits(),
        step: 0,
    }
}

/// `base + i * step` of numbers of any size, as values of type `T`.
#[inline(always)]
fn wrap<T: Int>(base: u64, step: u64) -> Affine {
    Affine {
        base: T::from_bits(base).bits(),
        step: T::from_bits(step).bits(),
    }
}

/// The value of one lane.
#[inline(always)]
pub fn lane<T: Int>(a: Affine, lane: u32) -> T {
    T::from_bits(a.base.wrapping_add(a.step.wrapping_mul(u64::from(lane))))
}

/// The step as a signed number.
#[inline(always)]
fn signed_step<T: Int>(a: Affine) -> i64 {
    let shift = 64 - T::BITS;
    (a.step << shift) as i64 >> shift
}

/// The values of the first and of the last lane, if they are known to be what their type says: no lane wraps around. A
/// step so large that it may do so twice counts as one that does.
#[inline(always)]
fn ends<T: Int>(a: Affine) -> Option<(T, T)> {
    let step = signed_step::<T>(a);
    let (first, last) = (lane::<T>(a, 0), lane::<T>(a, LAST));
    // 31 steps are less than half of all values.
    let most = 1 << (T::BITS - 6);
    let small = -most < step && step < most;
    let onward = if step < 0 {
        last <= first
    } else {
        first <= last
    };
    (small && onward).then_some((first, last))
}

/// `add.type d, a, b`
#[inline(always)]
pub fn add<T: Int>(a: Affine, b: Affine) -> Affine {
    wrap::<T>(a.base.wrapping_add(b.base), a.step.wrapping_add(b.step))
}

/// `sub.type d, a, b`
#[inline(always)]
pub fn sub<T: Int>(a: Affine, b: Affine) -> Affine {
    wrap::<T>(a.base.wrapping_sub(b.base), a.step.wrapping_sub(b.step))
}

/// `mul.lo.type d, a, b`, where at least one is the same in all lanes.
#[inline(always)]
pub fn mul_lo<T: Int>(a: Affine, b: Affine) -> Affine {
    // One of the two products is zero.
    let step = (a.step.wrapping_mul(b.base)).wrapping_add(b.step.wrapping_mul(a.base));
    wrap::<T>(a.base.wrapping_mul(b.base), step)
}

/// `mad.lo.type d, a, b, c`, where `a` or `b` is the same in all lanes.
#[inline(always)]
pub fn mad_lo<T: Int>(a: Affine, b: Affine, c: Affine) -> Affine {
    add::<T>(mul_lo::<T>(a, b), c)
}

/// `shl.type d, a, b`, where `b` is the same in all lanes.
#[inline(always)]
pub fn shl<T: Int>(a: Affine, b: Affine) -> Affine {
    if b.base >= u64::from(T::BITS) {
        return Affine::default();
    }
    wrap::<T>(a.base << b.base, a.step << b.base)
}

/// `neg.type d, a`
#[inline(always)]
pub fn neg<T: Int>(a: Affine) -> Affine {
    sub::<T>(Affine::default(), a)
}

/// `not.type d, a`
#[inline(always)]
pub fn not<T: Int>(a: Affine) -> Affine {
    // -1 - a
    sub::<T>(uniform(T::from_bits(u64::MAX)), a)
}

/// `cvt.u64.type d, a` and `cvt.s64.type d, a`: `None` if the values of some lanes wrap around, or the
/// step is so large that they might.
#[inline(always)]
pub fn extend<T: Int>(a: Affine) -> Option<Affine> {
    if a.step == 0 {
        // The same in all lanes: the most common case.
        let base = T::from_bits(a.base).widen() as u64;
        return Some(Affine { base, step: 0 });
    }
    let (first, _) = ends::<T>(a)?;
    Some(Affine {
        base: first.widen() as u64,
        step: signed_step::<T>(a) as u64,
    })
}

/// `cvt.u32.u64 d, a`
#[inline(always)]
pub fn truncate(a: Affine) -> Affine {
    wrap::<u32>(a.base, a.step)
}

/// `mul.wide.type d, a, b` of 32 bits, where at least one is the same in all lanes.
#[inline(always)]
pub fn mul_wide<T: Int>(a: Affine, b: Affine) -> Option<Affine> {
    Some(mul_lo::<u64>(extend::<T>(a)?, extend::<T>(b)?))
}

/// `mad.wide.type d, a, b, c` of 32 bits, where `a` or `b` is the same in all lanes.
#[inline(always)]
pub fn mad_wide<T: Int>(a: Affine, b: Affine, c: Affine) -> Option<Affine> {
    Some(add::<u64>(mul_wide::<T>(a, b)?, c))
}

/// `setp.cmp.type p, a, b`: the lanes in which it holds.
#[inline(always)]
pub fn compare<T: Int>(op: Compare, a: Affine, b: Affine) -> u32 {
    let all = |holds: bool| if holds { u32::MAX } else { 0 };
    if a.step == 0 && b.step == 0 {
        return all(compare_int(op, lane::<T>(a, 0), lane::<T>(b, 0)));
    }
    if let (Some(a), Some(b)) = (ends::<T>(a), ends::<T>(b)) {
        // The difference goes from one end to the other on a line: what it is at both, it is everywhere, unless it goes
        // through zero in between and that is asked for.
        let holds = compare_int(op, a.0, b.0);
        let turns = matches!(op, Compare::Eq | Compare::Ne) && (a.0 < b.0) != (a.1 < b.1);
        if holds == compare_int(op, a.1, b.1) && !turns {
            return all(holds);
        }
    }
    compare_lanes::<T>(op, a, b)
}

#[inline(never)]
fn compare_lanes<T: Int>(op: Compare, a: Affine, b: Affine) -> u32 {
    (0..=LAST).fold(0, |mask, i| {
        mask | u32::from(compare_int(op, lane::<T>(a, i), lane::<T>(b, i))) << i
    })
}
