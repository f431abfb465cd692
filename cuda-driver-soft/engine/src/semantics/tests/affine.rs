//! Compares operations on affine values with the same operations lane by lane.

use super::super::affine::*;
use super::super::compare::compare_int;
use super::super::int::Int;
use super::super::{int, logic};
use super::Random;
use ptx::ir::Compare;

const ROUNDS: usize = 20_000;

/// Returns a random arrangement of the lanes.
fn any_rows(random: &mut Random) -> Rows {
    Rows::of(1 << (random.next() % 8).min(5)).expect("a power of two")
}

/// Returns the values of all lanes.
fn lanes<T: int::Int>(a: Affine, rows: Rows) -> Vec<T> {
    (0..32).map(|i| lane(a, rows, i)).collect()
}

/// Returns a random affine value. Its steps are often small, as in programs.
fn any<T: int::Int>(random: &mut Random, rows: Rows) -> Affine {
    let mut step = || {
        let step = match random.next() % 4 {
            0 => 0,
            1 => 4,
            2 => random.next() % 9,
            _ => random.int(),
        };
        T::from_bits(step).bits()
    };
    let (step, row) = (step(), step());
    Affine {
        base: T::from_bits(random.int()).bits(),
        step,
        row: if rows == Rows::ONE { 0 } else { row },
    }
}

/// Returns a random uniform value.
fn same_in_all<T: int::Int>(random: &mut Random) -> Affine {
    uniform(T::from_bits(random.int()))
}

/// Returns the results of `f` for all lanes.
fn each<A: int::Int, B: int::Int, D>(a: Affine, b: Affine, rows: Rows, f: impl Fn(A, B) -> D) -> Vec<D> {
    let pairs = lanes::<A>(a, rows).into_iter().zip(lanes::<B>(b, rows));
    pairs.map(|(a, b)| f(a, b)).collect()
}

macro_rules! for_types {
    ($random:ident, $rows:ident, $($t:ident)*, $body:tt) => {$({
        type T = $t;
        for _ in 0..ROUNDS {
            let $rows = any_rows(&mut $random);
            $body
        }
    })*};
}

#[test]
fn sums_and_products_are_exact() {
    let mut random = Random::new();
    for_types!(random, rows, u32 i32 u64 i64, {
        let (a, b) = (any::<T>(&mut random, rows), any::<T>(&mut random, rows));
        let (c, n) = (any::<T>(&mut random, rows), same_in_all::<T>(&mut random));
        assert_eq!(lanes::<T>(add::<T>(a, b), rows), each(a, b, rows, int::add::<T>));
        assert_eq!(lanes::<T>(sub::<T>(a, b), rows), each(a, b, rows, int::sub::<T>));
        assert_eq!(lanes::<T>(mul_lo::<T>(a, n), rows), each(a, n, rows, int::mul_lo::<T>));
        assert_eq!(lanes::<T>(mul_lo::<T>(n, a), rows), each(n, a, rows, int::mul_lo::<T>));
        let product = mul_lo::<T>(n, a);
        assert_eq!(lanes::<T>(mad_lo::<T>(n, a, c), rows), each(product, c, rows, int::add::<T>));
        assert_eq!(lanes::<T>(neg::<T>(a), rows), each(a, a, rows, |a: T, _: T| int::neg(a)));
        assert_eq!(lanes::<T>(not::<T>(a), rows), each(a, a, rows, |a: T, _: T| !a));
        let shift = uniform(random.next() as u32 % 70);
        assert_eq!(lanes::<T>(shl::<T>(a, shift), rows), each(a, shift, rows, logic::shl::<T>));
    });
}

#[test]
fn widened_values_are_exact_or_refused() {
    let mut random = Random::new();
    let mut widened = 0;
    for_types!(random, rows, u32 i32, {
        let (a, n) = (any::<T>(&mut random, rows), same_in_all::<T>(&mut random));
        if let Some(wide) = extend::<T>(a, rows) {
            widened += 1;
            assert_eq!(lanes::<i64>(wide, rows), each(a, a, rows, |a: T, _: T| i64::from(a)));
            let product = mul_wide::<T>(a, n, rows).expect("both can be widened");
            let expected = each(a, n, rows, |a: T, n: T| (i128::from(a) * i128::from(n)) as u64);
            assert_eq!(lanes::<u64>(product, rows), expected);
            let c = any::<u64>(&mut random, rows);
            let sum = mad_wide::<T>(n, a, c, rows).expect("both can be widened");
            assert_eq!(lanes::<u64>(sum, rows), each(product, c, rows, int::add::<u64>));
        } else if [a.step, a.row].iter().all(|s| s.wrapping_add(1 << 25) as u32 <= 1 << 26) {
            let exact: Vec<i64> = lanes::<T>(a, rows).into_iter().map(i64::from).collect();
            let wide = Affine {
                base: exact[0] as u64,
                step: signed::<T>(a.step) as u64,
                row: signed::<T>(a.row) as u64,
            };
            assert_ne!(exact, lanes::<i64>(wide, rows), "{a:?}");
        }
    });
    assert!(widened > ROUNDS);
    for _ in 0..ROUNDS {
        let rows = any_rows(&mut random);
        let a = any::<u64>(&mut random, rows);
        let expected = each(a, a, rows, |a: u64, _: u64| a as u32);
        assert_eq!(lanes::<u32>(truncate(a), rows), expected);
    }
}

#[test]
fn comparisons_are_exact() {
    use Compare::*;
    let mut random = Random::new();
    let mut mixed = 0;
    for_types!(random, rows, u32 i32 u64 i64, {
        let a = any::<T>(&mut random, rows);
        // Values that are near each other, so that lanes differ.
        let b = match random.next() % 3 {
            0 => uniform(lane::<T>(a, rows, random.next() as u32 % 32)),
            1 => Affine { base: lane::<T>(a, rows, 7).bits(), ..any::<T>(&mut random, rows) },
            _ => any::<T>(&mut random, rows),
        };
        for op in [Eq, Ne, Lt, Le, Gt, Ge] {
            let expected = each(a, b, rows, |a: T, b: T| compare_int(op, a, b));
            let expected = expected.iter().rev().fold(0u32, |m, p| m << 1 | u32::from(*p));
            assert_eq!(compare::<T>(op, a, b, rows), expected, "{op:?} {a:?} {b:?}");
            mixed += u32::from(expected != 0 && expected != u32::MAX);
        }
    });
    assert!(mixed > 1000);
}

#[test]
fn masks_and_shifts_are_exact_or_refused() {
    let mut random = Random::new();
    let (mut masked, mut shifted) = (0, 0);
    for_types!(random, rows, u32 i32 u64 i64, {
        // Lane numbers plus a multiple of some power of two.
        let base = random.int() & !(!0 >> (random.next() % 64)) & 0xfff_ffff;
        let row = if rows == Rows::ONE { 0 } else { random.next() % 40 };
        let a = Affine { base, step: random.next() % 3, row };
        let mask = uniform(T::from_bits((1u64 << (random.next() % 20)) - 1));
        if let Some(low) = and::<T>(a, mask, rows) {
            masked += 1;
            assert_eq!(lanes::<T>(low, rows), each(a, mask, rows, |a: T, b: T| a & b));
        }
        let shift = uniform(random.next() as u32 % 70);
        if let Some(high) = shr::<T>(a, shift, rows) {
            shifted += 1;
            assert_eq!(lanes::<T>(high, rows), each(a, shift, rows, logic::shr::<T>));
        }
    });
    assert!(masked > ROUNDS && shifted > ROUNDS, "{masked} {shifted}");
    let lane = Affine {
        base: 64,
        step: 1,
        row: 0,
    };
    assert_eq!(shr::<u32>(lane, uniform(5u32), Rows::ONE), Some(uniform(2u32)));
    let place = Affine { base: 0, ..lane };
    assert_eq!(and::<u32>(lane, uniform(31u32), Rows::ONE), Some(place));
}

#[test]
fn minimum_and_maximum_are_exact_or_refused() {
    let mut random = Random::new();
    let (mut found, mut refused) = (0, 0);
    for_types!(random, rows, u32 i32 u64 i64, {
        let (a, b) = (any::<T>(&mut random, rows), any::<T>(&mut random, rows));
        let near = uniform(lane::<T>(a, rows, random.next() as u32 % 32));
        for b in [b, near] {
            for (got, wanted) in [
                (min::<T>(a, b, rows), each(a, b, rows, |a: T, b: T| a.min(b))),
                (max::<T>(a, b, rows), each(a, b, rows, |a: T, b: T| a.max(b))),
            ] {
                match got {
                    Some(got) => {
                        found += 1;
                        assert_eq!(lanes::<T>(got, rows), wanted);
                    }
                    None => refused += 1,
                }
            }
        }
    });
    assert!(found > ROUNDS && refused > ROUNDS, "{found} {refused}");
}
