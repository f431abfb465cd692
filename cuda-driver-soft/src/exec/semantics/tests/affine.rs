//! Operations on affine rows, against the same operation lane by lane.

use super::super::affine::*;
use super::super::compare::compare_int;
use super::super::int::Int;
use super::super::{int, logic};
use super::Random;
use crate::ir::Compare;

const ROUNDS: usize = 20_000;

fn lanes<T: int::Int>(a: Affine) -> Vec<T> {
    (0..32).map(|i| lane(a, i)).collect()
}

/// Small steps are what programs have; others must be right too.
fn any<T: int::Int>(random: &mut Random) -> Affine {
    let step = match random.next() % 4 {
        0 => 0,
        1 => 4,
        2 => random.next() % 9,
        _ => random.int(),
    };
    Affine {
        base: T::from_bits(random.int()).bits(),
        step: T::from_bits(step).bits(),
    }
}

fn same_in_all<T: int::Int>(random: &mut Random) -> Affine {
    uniform(T::from_bits(random.int()))
}

fn each<A: int::Int, B: int::Int, D>(a: Affine, b: Affine, f: impl Fn(A, B) -> D) -> Vec<D> {
    let pairs = lanes::<A>(a).into_iter().zip(lanes::<B>(b));
    pairs.map(|(a, b)| f(a, b)).collect()
}

macro_rules! for_types {
    ($random:ident, $($t:ident)*, $body:tt) => {$({
        type T = $t;
        for _ in 0..ROUNDS $body
    })*};
}

#[test]
fn sums_and_products_are_those_of_each_lane() {
    let mut random = Random::new();
    for_types!(random, u32 i32 u64 i64, {
        let (a, b) = (any::<T>(&mut random), any::<T>(&mut random));
        let (c, n) = (any::<T>(&mut random), same_in_all::<T>(&mut random));
        assert_eq!(lanes::<T>(add::<T>(a, b)), each(a, b, int::add::<T>));
        assert_eq!(lanes::<T>(sub::<T>(a, b)), each(a, b, int::sub::<T>));
        assert_eq!(lanes::<T>(mul_lo::<T>(a, n)), each(a, n, int::mul_lo::<T>));
        assert_eq!(lanes::<T>(mul_lo::<T>(n, a)), each(n, a, int::mul_lo::<T>));
        let product = mul_lo::<T>(n, a);
        assert_eq!(lanes::<T>(mad_lo::<T>(n, a, c)), each(product, c, int::add::<T>));
        assert_eq!(lanes::<T>(neg::<T>(a)), each(a, a, |a: T, _: T| int::neg(a)));
        assert_eq!(lanes::<T>(not::<T>(a)), each(a, a, |a: T, _: T| !a));
        let shift = uniform(random.next() as u32 % 70);
        assert_eq!(lanes::<T>(shl::<T>(a, shift)), each(a, shift, logic::shl::<T>));
    });
}

#[test]
fn what_is_widened_is_exact_or_refused() {
    let mut random = Random::new();
    let mut widened = 0;
    for_types!(random, u32 i32, {
        let (a, n) = (any::<T>(&mut random), same_in_all::<T>(&mut random));
        if let Some(wide) = extend::<T>(a) {
            widened += 1;
            assert_eq!(lanes::<i64>(wide), each(a, a, |a: T, _: T| i64::from(a)));
            let product = mul_wide::<T>(a, n).expect("both can be widened");
            let expected = each(a, n, |a: T, n: T| (i128::from(a) * i128::from(n)) as u64);
            assert_eq!(lanes::<u64>(product), expected);
            let c = any::<u64>(&mut random);
            let sum = mad_wide::<T>(n, a, c).expect("both can be widened");
            assert_eq!(lanes::<u64>(sum), each(product, c, int::add::<u64>));
        } else if a.step.wrapping_add(1 << 25) as u32 <= 1 << 26 {
            let exact: Vec<i64> = lanes::<T>(a).into_iter().map(i64::from).collect();
            let step = exact[1] - exact[0];
            assert!(exact.windows(2).any(|w| w[1] - w[0] != step), "{a:?}");
        }
    });
    assert!(widened > ROUNDS);
    for _ in 0..ROUNDS {
        let a = any::<u64>(&mut random);
        let expected = each(a, a, |a: u64, _: u64| a as u32);
        assert_eq!(lanes::<u32>(truncate(a)), expected);
    }
}

#[test]
fn comparisons_hold_in_the_lanes_in_which_they_do() {
    use Compare::*;
    let mut random = Random::new();
    let mut mixed = 0;
    for_types!(random, u32 i32 u64 i64, {
        let a = any::<T>(&mut random);
        // Often near enough that the lanes differ.
        let b = match random.next() % 3 {
            0 => uniform(lane::<T>(a, random.next() as u32 % 33)),
            1 => Affine { base: lane::<T>(a, 7).bits(), step: any::<T>(&mut random).step },
            _ => any::<T>(&mut random),
        };
        for op in [Eq, Ne, Lt, Le, Gt, Ge] {
            let expected = each(a, b, |a: T, b: T| compare_int(op, a, b));
            let expected = expected.iter().rev().fold(0u32, |m, p| m << 1 | u32::from(*p));
            assert_eq!(compare::<T>(op, a, b), expected, "{op:?} {a:?} {b:?}");
            mixed += u32::from(expected != 0 && expected != u32::MAX);
        }
    });
    assert!(mixed > 1000);
}
