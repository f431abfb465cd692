//! Affine values, which differ by the same step from each lane of a warp to the next, and integer instructions on them.
//!
//! Two numbers describe an affine value, or three if the lanes are in several rows of their block. Most indexes and
//! addresses are affine: `%tid.x` and `%tid.y` are, and so are sums of affine values and their products with values
//! that are uniform (the same in all lanes). All results are exact: a function whose result is not affine, or not known
//! to be, returns `None`.

use super::compare::compare_int;
use super::int::Int;
use super::logic;
use ptx::ir::Compare;

/// The arrangement of the lanes of a warp in its block: consecutive rows of equal length. Warps of a block whose first
/// dimension is 16 have two rows; most warps have one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows {
    shift: u32,
}

impl Rows {
    /// All lanes are in one row.
    pub const ONE: Rows = Rows { shift: 5 };

    /// Returns the arrangement in rows of `lanes` lanes, or `None` if a warp does not consist of such rows.
    pub const fn of(lanes: u32) -> Option<Rows> {
        if lanes.is_power_of_two() && lanes <= 32 {
            Some(Rows {
                shift: lanes.trailing_zeros(),
            })
        } else {
            None
        }
    }

    /// Returns the number of lanes in a row.
    #[inline(always)]
    pub const fn lanes(self) -> u32 {
        1 << self.shift
    }

    /// Returns the number of rows in a warp.
    #[inline(always)]
    pub const fn count(self) -> u32 {
        32 >> self.shift
    }

    /// Returns the row of a lane, and its position in the row.
    #[inline(always)]
    pub const fn split(self, lane: u32) -> (u32, u32) {
        (lane >> self.shift, lane & (self.lanes() - 1))
    }
}

/// One value per lane: lane `i` of row `j` has `base + i * step + j * row`, modulo 2 to the width of the type.
///
/// All fields are modulo 2 to the width, so large steps are negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Affine {
    /// The value in lane 0.
    pub base: u64,
    /// The difference between a lane and the one before it in its row.
    pub step: u64,
    /// The difference between a row and the one before it; 0 if there is one row.
    pub row: u64,
}

impl Affine {
    /// Returns true if all lanes have the same value.
    #[inline(always)]
    pub const fn is_uniform(self) -> bool {
        self.step | self.row == 0
    }
}

/// Returns the affine value that is the same in all lanes.
#[inline(always)]
pub fn uniform<T: Int>(value: T) -> Affine {
    Affine {
        base: value.bits(),
        step: 0,
        row: 0,
    }
}

/// Returns the affine value with its fields reduced to the width of type `T`.
#[inline(always)]
fn wrap<T: Int>(base: u64, step: u64, row: u64) -> Affine {
    Affine {
        base: T::from_bits(base).bits(),
        step: T::from_bits(step).bits(),
        row: T::from_bits(row).bits(),
    }
}

/// Returns the value of one lane.
#[inline(always)]
pub fn lane<T: Int>(a: Affine, rows: Rows, lane: u32) -> T {
    let (row, place) = rows.split(lane);
    let in_row = a.base.wrapping_add(a.step.wrapping_mul(u64::from(place)));
    T::from_bits(in_row.wrapping_add(a.row.wrapping_mul(u64::from(row))))
}

/// Returns a step as a signed number.
#[inline(always)]
pub fn signed<T: Int>(step: u64) -> i64 {
    let shift = 64 - T::BITS;
    (step << shift) as i64 >> shift
}

/// Returns the values at the corners: the first and the last lane of the first row, and of the last row. Returns `None`
/// if the values of some lanes wrap around, or if a step is so large that they might.
#[inline(always)]
fn corners<T: Int>(a: Affine, rows: Rows) -> Option<[T; 4]> {
    let (step, row) = (signed::<T>(a.step), signed::<T>(a.row));
    // 31 steps are less than half of all values.
    let most = 1 << (T::BITS - 6);
    let small = |step: i64| -most < step && step < most;
    let in_order = |step: i64, from: T, to: T| if step < 0 { to <= from } else { from <= to };
    let last = rows.lanes() - 1;
    let (first, end) = (lane::<T>(a, rows, 0), lane::<T>(a, rows, last));
    if !small(step) || !in_order(step, first, end) {
        return None;
    }
    if rows.count() == 1 {
        return Some([first, end, first, end]);
    }
    let below = lane::<T>(a, rows, 32 - rows.lanes());
    let corner = lane::<T>(a, rows, 31);
    let fits = small(row) && in_order(row, first, below) && in_order(step, below, corner);
    fits.then_some([first, end, below, corner])
}

/// `add.type d, a, b`
#[inline(always)]
pub fn add<T: Int>(a: Affine, b: Affine) -> Affine {
    wrap::<T>(
        a.base.wrapping_add(b.base),
        a.step.wrapping_add(b.step),
        a.row.wrapping_add(b.row),
    )
}

/// `sub.type d, a, b`
#[inline(always)]
pub fn sub<T: Int>(a: Affine, b: Affine) -> Affine {
    wrap::<T>(
        a.base.wrapping_sub(b.base),
        a.step.wrapping_sub(b.step),
        a.row.wrapping_sub(b.row),
    )
}

/// `mul.lo.type d, a, b`, where `a` or `b` is uniform.
#[inline(always)]
pub fn mul_lo<T: Int>(a: Affine, b: Affine) -> Affine {
    // One of the two products of each sum is zero.
    let step = (a.step.wrapping_mul(b.base)).wrapping_add(b.step.wrapping_mul(a.base));
    let row = (a.row.wrapping_mul(b.base)).wrapping_add(b.row.wrapping_mul(a.base));
    wrap::<T>(a.base.wrapping_mul(b.base), step, row)
}

/// `mad.lo.type d, a, b, c`, where `a` or `b` is uniform.
#[inline(always)]
pub fn mad_lo<T: Int>(a: Affine, b: Affine, c: Affine) -> Affine {
    add::<T>(mul_lo::<T>(a, b), c)
}

/// `shl.type d, a, b`, where `b` is uniform.
#[inline(always)]
pub fn shl<T: Int>(a: Affine, b: Affine) -> Affine {
    if b.base >= u64::from(T::BITS) {
        return Affine::default();
    }
    wrap::<T>(a.base << b.base, a.step << b.base, a.row << b.base)
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

/// `cvt.u64.type d, a` and `cvt.s64.type d, a`. Returns `None` if the values of some lanes wrap around, or if a step is
/// so large that they might.
#[inline(always)]
pub fn extend<T: Int>(a: Affine, rows: Rows) -> Option<Affine> {
    let base = T::from_bits(a.base).widen() as u64;
    if a.is_uniform() {
        // The most common case.
        return Some(Affine { base, ..a });
    }
    corners::<T>(a, rows)?;
    Some(Affine {
        base,
        step: signed::<T>(a.step) as u64,
        row: signed::<T>(a.row) as u64,
    })
}

/// `cvt.u32.u64 d, a`
#[inline(always)]
pub fn truncate(a: Affine) -> Affine {
    wrap::<u32>(a.base, a.step, a.row)
}

/// `mul.wide.type d, a, b` of 32 bits, where `a` or `b` is uniform.
#[inline(always)]
pub fn mul_wide<T: Int>(a: Affine, b: Affine, rows: Rows) -> Option<Affine> {
    Some(mul_lo::<u64>(extend::<T>(a, rows)?, extend::<T>(b, rows)?))
}

/// `mad.wide.type d, a, b, c` of 32 bits, where `a` or `b` is uniform.
#[inline(always)]
pub fn mad_wide<T: Int>(a: Affine, b: Affine, c: Affine, rows: Rows) -> Option<Affine> {
    Some(add::<u64>(mul_wide::<T>(a, b, rows)?, c))
}

/// `and.b32 d, a, b` and `and.b64`, if both are uniform, or if `b` is a uniform mask of low bits and no lane of `a`
/// carries out of them.
#[inline(always)]
pub fn and<T: Int>(a: Affine, b: Affine, rows: Rows) -> Option<Affine> {
    let mask = b.base;
    let base = a.base & mask;
    if a.is_uniform() && b.is_uniform() {
        return Some(uniform(T::from_bits(base)));
    }
    let (step, row) = (signed::<T>(a.step), signed::<T>(a.row));
    let small = |step: i64| (0..1 << 16).contains(&step);
    if !b.is_uniform() || mask & mask.wrapping_add(1) != 0 || !small(step) || !small(row) {
        return None;
    }
    let most = step as u64 * u64::from(rows.lanes() - 1) + row as u64 * u64::from(rows.count() - 1);
    (most <= mask && base <= mask - most).then_some(Affine { base, ..a })
}

/// `shr.type d, a, b`, if `b` is uniform and the corners of `a` have the same upper bits. The result is then uniform.
#[inline(always)]
pub fn shr<T: Int>(a: Affine, b: Affine, rows: Rows) -> Option<Affine> {
    let shifted = |value: T| logic::shr(value, b.base as u32);
    let first = shifted(T::from_bits(a.base));
    let same = a.is_uniform() || corners::<T>(a, rows)?.iter().all(|c| shifted(*c) == first);
    (same && b.is_uniform()).then(|| uniform(first))
}

/// `min.type d, a, b`, if all lanes take the same operand.
#[inline(always)]
pub fn min<T: Int>(a: Affine, b: Affine, rows: Rows) -> Option<Affine> {
    let a_is_least = not_above::<T>(a, b, rows);
    if a_is_least {
        return Some(a);
    }
    not_above::<T>(b, a, rows).then_some(b)
}

/// `max.type d, a, b`, if all lanes take the same operand.
#[inline(always)]
pub fn max<T: Int>(a: Affine, b: Affine, rows: Rows) -> Option<Affine> {
    let b_is_greatest = not_above::<T>(a, b, rows);
    if b_is_greatest {
        return Some(b);
    }
    not_above::<T>(b, a, rows).then_some(a)
}

/// Returns true if `a <= b` is known for all lanes.
#[inline(always)]
fn not_above<T: Int>(a: Affine, b: Affine, rows: Rows) -> bool {
    if a.is_uniform() && b.is_uniform() {
        return T::from_bits(a.base) <= T::from_bits(b.base);
    }
    match (corners::<T>(a, rows), corners::<T>(b, rows)) {
        (Some(a), Some(b)) => (0..4).all(|i| a[i] <= b[i]),
        _ => false,
    }
}

/// `setp.cmp.type p, a, b`: returns the lanes for which the comparison is true.
#[inline(always)]
pub fn compare<T: Int>(op: Compare, a: Affine, b: Affine, rows: Rows) -> u32 {
    let all = |holds: bool| if holds { u32::MAX } else { 0 };
    if a.is_uniform() && b.is_uniform() {
        let (a, b) = (T::from_bits(a.base), T::from_bits(b.base));
        return all(compare_int(op, a, b));
    }
    if let (Some(x), Some(y)) = (corners::<T>(a, rows), corners::<T>(b, rows)) {
        // The difference is linear between corners. If the comparison has the same result at all corners, it has that
        // result in all lanes, except that for `.eq` and `.ne` the difference may be zero in between.
        let (holds, less) = (compare_int(op, x[0], y[0]), x[0] < y[0]);
        let same_result = |i: usize| {
            let sign_changes = matches!(op, Compare::Eq | Compare::Ne) && (x[i] < y[i]) != less;
            compare_int(op, x[i], y[i]) == holds && !sign_changes
        };
        let last_row = rows.count() == 1 || (same_result(2) && same_result(3));
        if same_result(1) && last_row {
            return all(holds);
        }
        if T::BITS == 32
            && let Some(lanes) = compare_rows(op, difference::<T>(a, b), rows)
        {
            return lanes;
        }
    }
    compare_lanes::<T>(op, a, b, rows)
}

/// Returns the base, step and row of `a - b`, for values of 32 bits that do not wrap around.
fn difference<T: Int>(a: Affine, b: Affine) -> [i64; 3] {
    let first = |a: Affine| T::from_bits(a.base).widen() as i64;
    [
        first(a) - first(b),
        signed::<T>(a.step) - signed::<T>(b.step),
        signed::<T>(a.row) - signed::<T>(b.row),
    ]
}

/// Returns the lanes for which the comparison of a difference with 0 is true. Returns `None` for rare operators.
fn compare_rows(op: Compare, [first, step, row]: [i64; 3], rows: Rows) -> Option<u32> {
    let lanes = i64::from(rows.lanes());
    let low = |count: i64| ((1u64 << count.clamp(0, lanes)) - 1) as u32;
    // The lanes of a row for which the difference is negative.
    let negative = |first: i64| match step {
        0 => low(if first < 0 { lanes } else { 0 }),
        1.. => low((-first + step - 1).div_euclid(step)),
        _ => low(lanes) & !low(first.div_euclid(-step) + 1),
    };
    let zero = |first: i64| negative(first - 1) & !negative(first);
    let mut found = 0;
    for number in 0..rows.count() {
        let first = first + row * i64::from(number);
        let lanes = match op {
            Compare::Lt | Compare::Lo => negative(first),
            Compare::Le | Compare::Ls => negative(first - 1),
            Compare::Eq => zero(first),
            Compare::Ne => low(lanes) & !zero(first),
            _ => return None,
        };
        found |= lanes << (number * rows.lanes());
    }
    Some(found)
}

/// Compares lane by lane.
#[inline(never)]
fn compare_lanes<T: Int>(op: Compare, a: Affine, b: Affine, rows: Rows) -> u32 {
    (0..32).fold(0, |mask, i| {
        let holds = compare_int(op, lane::<T>(a, rows, i), lane::<T>(b, rows, i));
        mask | u32::from(holds) << i
    })
}
