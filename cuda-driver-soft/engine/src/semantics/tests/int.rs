//! Compares integer instructions with 128-bit arithmetic, or with the manual's bit-by-bit definitions.

use super::super::compare::*;
use super::super::int::*;
use super::super::logic::*;
use super::Random;
use ptx::ir::{BoolOp, Compare};

const ROUNDS: u32 = 20_000;

/// Returns the value modulo 2^BITS, in the range of the type.
fn wrap<T: Int>(value: i128) -> i128 {
    let modulus = 1i128 << T::BITS;
    let low = value.rem_euclid(modulus);
    if T::SIGNED && low >= modulus / 2 {
        low - modulus
    } else {
        low
    }
}

fn arithmetic<T: Int>() {
    let mut random = Random::new();
    for _ in 0..ROUNDS {
        let (a, b, c) = (
            T::from_bits(random.int()),
            T::from_bits(random.int()),
            T::from_bits(random.int()),
        );
        let (x, y, z) = (a.widen(), b.widen(), c.widen());
        let name = std::any::type_name::<T>();
        let check = |operation: &str, got: T, expected: i128| {
            assert_eq!(
                got.widen(),
                wrap::<T>(expected),
                "{operation}.{name} of {a:?}, {b:?}, {c:?}"
            );
        };
        // The product of two u64 does not fit i128.
        let (product_low, product_high) = if T::BITS == 64 && !T::SIGNED {
            let product = (x as u128) * (y as u128);
            ((product & u128::from(u64::MAX)) as i128, (product >> 64) as i128)
        } else {
            (x * y, (x * y).div_euclid(1i128 << T::BITS))
        };
        check("add", add(a, b), x + y);
        check("sub", sub(a, b), x - y);
        check("mul.lo", mul_lo(a, b), product_low);
        check("mul.hi", mul_hi(a, b), product_high);
        check("mad.lo", mad_lo(a, b, c), product_low + z);
        check("mad.hi", mad_hi(a, b, c), product_high + z);
        check("div", div(a, b), if y == 0 { -1 } else { x / y });
        check("rem", rem(a, b), if y == 0 { -1 } else { x % y });
        check("neg", neg(a), -x);
        check("abs", abs(a), x.abs());
        check("min", min(a, b), x.min(y));
        check("max", max(a, b), x.max(y));
        check("min.relu", min_relu(a, b), x.min(y).max(0));
        check("max.relu", max_relu(a, b), x.max(y).max(0));
        check("sad", sad(a, b, c), z + (x - y).abs());
        check("cnot", cnot(a), i128::from(x == 0));
        let amount = (random.int() % 80) as u32;
        check("shl", shl(a, amount), if amount < T::BITS { x << amount } else { 0 });
        check("shr", shr(a, amount), x >> amount);
        check("shr", shr(a, u32::MAX), if x < 0 { -1 } else { 0 });
        check("shl", shl(a, u32::MAX), 0);

        let unsigned = |v: i128| v.rem_euclid(1i128 << T::BITS);
        let (u, v) = (unsigned(x), unsigned(y));
        for (op, expected) in [
            (Compare::Eq, x == y),
            (Compare::Ne, x != y),
            (Compare::Lt, x < y),
            (Compare::Le, x <= y),
            (Compare::Gt, x > y),
            (Compare::Ge, x >= y),
            (Compare::Lo, u < v),
            (Compare::Ls, u <= v),
            (Compare::Hi, u > v),
            (Compare::Hs, u >= v),
        ] {
            assert_eq!(compare_int(op, a, b), expected, "setp.{op:?}.{name} of {a:?}, {b:?}");
        }
    }
}

#[test]
fn arithmetic_of_every_type() {
    arithmetic::<u8>();
    arithmetic::<u16>();
    arithmetic::<u32>();
    arithmetic::<u64>();
    arithmetic::<i8>();
    arithmetic::<i16>();
    arithmetic::<i32>();
    arithmetic::<i64>();
}

#[test]
fn wide_products() {
    let mut random = Random::new();
    for _ in 0..ROUNDS {
        let (a, b, c) = (random.int(), random.int(), random.int());
        let wide = |x: i128, y: i128, z: i128| (x * y, x * y + z);
        let (p, m) = wide(i128::from(a as u16), i128::from(b as u16), i128::from(c as u32));
        assert_eq!(mul_wide(a as u16, b as u16), p as u32);
        assert_eq!(mad_wide(a as u16, b as u16, c as u32), m as u32);
        let (p, m) = wide(i128::from(a as i16), i128::from(b as i16), i128::from(c as i32));
        assert_eq!(mul_wide(a as i16, b as i16), p as i32);
        assert_eq!(mad_wide(a as i16, b as i16, c as i32), m as i32);
        let (p, m) = wide(i128::from(a as u32), i128::from(b as u32), i128::from(c));
        assert_eq!(mul_wide(a as u32, b as u32), p as u64);
        assert_eq!(mad_wide(a as u32, b as u32, c), m as u64);
        let (p, m) = wide(i128::from(a as i32), i128::from(b as i32), i128::from(c as i64));
        assert_eq!(mul_wide(a as i32, b as i32), p as i64);
        assert_eq!(mad_wide(a as i32, b as i32, c as i64), m as i64);
    }
}

#[test]
fn saturating_and_24_bit_forms() {
    let limit = |v: i128| v.clamp(i128::from(i32::MIN), i128::from(i32::MAX)) as i32;
    let mut random = Random::new();
    for _ in 0..ROUNDS {
        let (a, b, c) = (random.int() as u32, random.int() as u32, random.int() as u32);
        let (x, y, z) = (i128::from(a as i32), i128::from(b as i32), i128::from(c as i32));
        assert_eq!(add_sat(a as i32, b as i32), limit(x + y));
        assert_eq!(sub_sat(a as i32, b as i32), limit(x - y));
        assert_eq!(
            mad_hi_sat(a as i32, b as i32, c as i32),
            limit((x * y).div_euclid(1 << 32) + z)
        );

        let unsigned = i128::from(a % (1 << 24)) * i128::from(b % (1 << 24));
        let low = |v: i128| {
            let low = v.rem_euclid(1 << 24);
            if low >= 1 << 23 { low - (1 << 24) } else { low }
        };
        let signed = low(x) * low(y);
        assert_eq!(mul24_lo(a, b), unsigned as u32);
        assert_eq!(mul24_hi(a, b), unsigned.div_euclid(1 << 16) as u32);
        assert_eq!(mul24_lo(a as i32, b as i32), signed as i32);
        assert_eq!(mul24_hi(a as i32, b as i32), signed.div_euclid(1 << 16) as i32);
        assert_eq!(mad24_lo(a as i32, b as i32, c as i32), (signed + z) as i32);
        assert_eq!(mad24_hi(a, b, c), (unsigned.div_euclid(1 << 16) + i128::from(c)) as u32);
        assert_eq!(
            mad24_hi_sat(a as i32, b as i32, c as i32),
            limit(signed.div_euclid(1 << 16) + z)
        );
    }
}

#[test]
fn packed_halves_are_independent() {
    assert_eq!(x2(0x0001_ffff, 0x0001_0001, add::<u16>), 0x0002_0000);
    assert_eq!(x2(0xffff_8000, 0x0001_7fff, min::<i16>), 0xffff_8000);
    assert_eq!(x2(0xffff_8000, 0x0001_7fff, max::<u16>), 0xffff_8000);
    assert_eq!(x2(0xffff_8000, 0x0001_7fff, min_relu::<i16>), 0x0000_0000);
    assert_eq!(x2(0xffff_8000, 0xfffe_7fff, max_relu::<i16>), 0x0000_7fff);
}

#[test]
fn logic_and_funnel_shifts() {
    assert!(and(true, true) && or(true, false) && xor(true, false) && not(false));
    let mut random = Random::new();
    for _ in 0..ROUNDS {
        let (a, b, c) = (random.int() as u32, random.int() as u32, random.int() as u32);
        assert_eq!(and(a, b) | xor(a, b), or(a, b));
        assert_eq!(not(a), u32::MAX - a);
        // Tables from the manual's examples.
        assert_eq!(lop3(a, b, c, 0x80), a & b & c);
        assert_eq!(lop3(a, b, c, 0xfe), a | b | c);
        assert_eq!(lop3(a, b, c, 0x40), a & b & !c);
        assert_eq!(lop3(a, b, c, 0x1a), (a & b | c) ^ a);
        let table = random.next() as u8;
        let expected = (0..32).fold(0, |d, i| {
            let index = (a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1);
            d | (u32::from(table) >> index & 1) << i
        });
        assert_eq!(lop3(a, b, c, table), expected);

        for wrap in [false, true] {
            let n = if wrap { c % 32 } else { c.min(32) };
            let both = u128::from(b) << 32 | u128::from(a);
            assert_eq!(shf_l(a, b, c, wrap), (both << n >> 32) as u32);
            assert_eq!(shf_r(a, b, c, wrap), (both >> n) as u32);
        }
    }
}

#[test]
fn selection_and_predicates() {
    assert_eq!((selp(1, 2, true), selp(1, 2, false)), (1, 2));
    assert_eq!(
        (slct_s32(1, 2, 0), slct_s32(1, 2, -1), slct_s32(1, 2, i32::MIN)),
        (1, 2, 2)
    );
    assert_eq!((slct_f32(1, 2, -0.0, false), slct_f32(1, 2, f32::NAN, false)), (1, 2));
    let below = f32::from_bits(0x8000_0001);
    assert_eq!((slct_f32(1, 2, below, false), slct_f32(1, 2, below, true)), (2, 1));
    for (t, c) in [(false, false), (false, true), (true, false), (true, true)] {
        assert_eq!(setp(t, None), (t, !t));
        assert_eq!(setp(t, Some((BoolOp::And, c))), (t && c, !t && c));
        assert_eq!(setp(t, Some((BoolOp::Or, c))), (t || c, !t || c));
        assert_eq!(setp(t, Some((BoolOp::Xor, c))), (t != c, t == c));
    }
    assert_eq!((set_int(true), set_int(false)), (0xffff_ffff, 0));
    assert_eq!((set_f32(true), set_f32(false)), (1.0, 0.0));
}
