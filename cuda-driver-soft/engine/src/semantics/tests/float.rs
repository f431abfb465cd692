//! Compares `.f32` and `.f64` arithmetic with `rustc_apfloat`, in every rounding mode.

use super::super::compare::*;
use super::super::float::*;
use super::{MODES, Random};
use ptx::ir::{Compare, Rounding};
use rustc_apfloat::ieee::{Double, Single};
use rustc_apfloat::{Float, Round};

const ROUNDS: u32 = 300_000;

/// Returns the rounding mode of `rustc_apfloat`.
pub(super) fn apfloat_mode(rnd: Rounding) -> Round {
    match rnd {
        Rounding::Rn => Round::NearestTiesToEven,
        Rounding::Rz | Rounding::Rs => Round::TowardZero,
        Rounding::Rm => Round::TowardNegative,
        Rounding::Rp => Round::TowardPositive,
        Rounding::Rna => Round::NearestTiesToAway,
    }
}

/// Asserts that the bits are equal. The expected bits of a NaN are [`NAN_F32`].
fn same_f32(got: f32, expected: Single, operation: &str, operands: &[f32]) {
    let expected = if expected.is_nan() {
        NAN_F32
    } else {
        expected.to_bits() as u32
    };
    let operands: Vec<_> = operands.iter().map(|a| format!("{:08x}", a.to_bits())).collect();
    assert_eq!(
        got.to_bits(),
        expected,
        "{operation} of {operands:?}: {:08x}, not {expected:08x}",
        got.to_bits()
    );
}

/// Asserts that the bits are equal or both are NaN. Another test checks the payloads of NaNs.
fn same_f64(got: f64, expected: Double, operation: &str, operands: &[f64]) {
    let operands: Vec<_> = operands.iter().map(|a| format!("{:016x}", a.to_bits())).collect();
    let equal = if expected.is_nan() {
        got.is_nan()
    } else {
        u128::from(got.to_bits()) == expected.to_bits()
    };
    assert!(
        equal,
        "{operation} of {operands:?}: {:016x}, not {:016x}",
        got.to_bits(),
        expected.to_bits()
    );
}

#[test]
fn f32_against_apfloat() {
    let mut random = Random::new();
    for _ in 0..ROUNDS {
        let a = random.float(32, 23, 0) as u32;
        let b = random.float(32, 23, a.into()) as u32;
        let [a, b] = [a, b].map(f32::from_bits);
        // An addend near the product, so that they cancel.
        let c = f32::from_bits(random.float(32, 23, (a * b).to_bits().into()) as u32);
        let [x, y, z] = [a, b, c].map(|v| Single::from_bits(v.to_bits().into()));
        for rnd in MODES {
            let r = apfloat_mode(rnd);
            same_f32(
                add_f32(a, b, rnd, false, false),
                x.add_r(y, r).value,
                &format!("add.{rnd:?}"),
                &[a, b],
            );
            same_f32(
                sub_f32(a, b, rnd, false, false),
                x.sub_r(y, r).value,
                &format!("sub.{rnd:?}"),
                &[a, b],
            );
            same_f32(
                mul_f32(a, b, rnd, false, false),
                x.mul_r(y, r).value,
                &format!("mul.{rnd:?}"),
                &[a, b],
            );
            same_f32(
                div_f32(a, b, rnd, false),
                x.div_r(y, r).value,
                &format!("div.{rnd:?}"),
                &[a, b],
            );
            let one = Single::from_bits(0x3f80_0000);
            same_f32(
                rcp_f32(a, rnd, false),
                one.div_r(x, r).value,
                &format!("rcp.{rnd:?}"),
                &[a],
            );
            let fma = x.mul_add_r(y, z, r).value;
            for fused in [false, true] {
                same_f32(
                    fma_f32(a, b, c, rnd, false, false, fused),
                    fma,
                    &format!("fma.{rnd:?}"),
                    &[a, b, c],
                );
            }
        }
    }
}

#[test]
fn f64_against_apfloat() {
    let mut random = Random::new();
    for _ in 0..ROUNDS {
        let a = random.float(64, 52, 0);
        let b = random.float(64, 52, a);
        let [a, b] = [a, b].map(f64::from_bits);
        let c = f64::from_bits(random.float(64, 52, (a * b).to_bits()));
        let [x, y, z] = [a, b, c].map(|v| Double::from_bits(v.to_bits().into()));
        for rnd in MODES {
            let r = apfloat_mode(rnd);
            same_f64(
                add_f64(a, b, rnd),
                x.add_r(y, r).value,
                &format!("add.{rnd:?}"),
                &[a, b],
            );
            same_f64(
                sub_f64(a, b, rnd),
                x.sub_r(y, r).value,
                &format!("sub.{rnd:?}"),
                &[a, b],
            );
            same_f64(
                mul_f64(a, b, rnd),
                x.mul_r(y, r).value,
                &format!("mul.{rnd:?}"),
                &[a, b],
            );
            same_f64(
                div_f64(a, b, rnd),
                x.div_r(y, r).value,
                &format!("div.{rnd:?}"),
                &[a, b],
            );
            let one = Double::from_bits(0x3ff0 << 48);
            same_f64(rcp_f64(a, rnd), one.div_r(x, r).value, &format!("rcp.{rnd:?}"), &[a]);
            let fma = x.mul_add_r(y, z, r).value;
            same_f64(
                fma_f64(a, b, c, rnd, BASELINE_FUSED),
                fma,
                &format!("fma.{rnd:?}"),
                &[a, b, c],
            );
            if a.is_finite() && b.is_finite() && c.is_finite() {
                same_f64(
                    fma_exact_f64(a, b, c, rnd),
                    fma,
                    &format!("exact fma.{rnd:?}"),
                    &[a, b, c],
                );
            }
        }
    }
}

/// Asserts that `root` is the correctly rounded root of `a`, by squaring it and its neighbours. Both are scaled to
/// integers.
fn root_is(rnd: Rounding, a: u128, root: u128, operand: &str) {
    let ok = match rnd {
        // |root - sqrt(a)| < 1/2 means (2 root - 1)^2 < 4 a < (2 root + 1)^2. A root is never a tie.
        Rounding::Rn => (2 * root - 1).pow(2) < 4 * a && 4 * a < (2 * root + 1).pow(2),
        Rounding::Rp => (root - 1).pow(2) < a && a <= root.pow(2),
        _ => root.pow(2) <= a && a < (root + 1).pow(2),
    };
    assert!(ok, "sqrt.{rnd:?} of {operand}");
}

#[test]
fn roots_are_correctly_rounded() {
    let mut random = Random::new();
    for _ in 0..ROUNDS {
        let a = f32::from_bits(random.float(32, 23, 0) as u32 & 0x7fff_ffff);
        let b = f64::from_bits(random.float(64, 52, 0) & !(1 << 63));
        for rnd in MODES {
            if a.is_finite() && a != 0.0 {
                // The root is significand · 2^e exactly, so the square of the significand is compared with a · 2^-2e.
                let r = sqrt_f32(a, rnd, false);
                let e = (r.to_bits() >> 23) as i32 - 150;
                let significand = u128::from(r.to_bits() & 0x7f_ffff | 0x80_0000);
                let scaled = f64::from(a) * 2f64.powi(-2 * e);
                root_is(rnd, scaled as u128, significand, &format!("{:08x}", a.to_bits()));
            }
            if b.is_finite() && b != 0.0 {
                let r = sqrt_f64(b, rnd);
                let e = (r.to_bits() >> 52) as i32 - 1075;
                let significand = u128::from(r.to_bits() & ((1 << 52) - 1) | 1 << 52);
                let scale = 2f64.powi(-e);
                root_is(
                    rnd,
                    (b * scale * scale) as u128,
                    significand,
                    &format!("{:016x}", b.to_bits()),
                );
            }
        }
    }
    for rnd in MODES {
        assert_eq!(sqrt_f32(-0.0, rnd, false).to_bits(), 0x8000_0000);
        assert_eq!(sqrt_f32(-1.0, rnd, false).to_bits(), NAN_F32);
        assert_eq!(sqrt_f32(f32::INFINITY, rnd, false), f32::INFINITY);
        assert_eq!(sqrt_f64(-0.0, rnd).to_bits(), 1 << 63);
        assert_eq!(sqrt_f64(-1.0, rnd).to_bits(), NAN_F64);
        assert_eq!(sqrt_f64(f64::INFINITY, rnd), f64::INFINITY);
    }
}

#[test]
fn ftz_flushes_operands_and_results_and_keeps_the_sign() {
    let tiny = f32::from_bits(0x8000_0001);
    let least = f32::MIN_POSITIVE;
    for rnd in MODES {
        assert_eq!(add_f32(tiny, -0.0, rnd, true, false).to_bits(), 0x8000_0000, "{rnd:?}");
        assert_eq!(mul_f32(tiny, 1e30, rnd, true, false).to_bits(), 0x8000_0000, "{rnd:?}");
        assert_eq!(mul_f32(-least, 0.5, rnd, true, false).to_bits(), 0x8000_0000, "{rnd:?}");
        assert_eq!(
            mul_f32(-least, 0.5, rnd, false, false).to_bits(),
            0x8040_0000,
            "{rnd:?}"
        );
        assert_eq!(sub_f32(least * 1.5, least, rnd, true, false).to_bits(), 0, "{rnd:?}");
        assert_eq!(div_f32(1.0, tiny, rnd, true).to_bits(), 0xff80_0000, "{rnd:?}");
        assert_eq!(rcp_f32(f32::MAX, rnd, true).to_bits(), 0, "{rnd:?}");
        assert_eq!(sqrt_f32(tiny, rnd, true).to_bits(), 0x8000_0000, "{rnd:?}");
        for fused in [false, true] {
            assert_eq!(
                fma_f32(tiny, 1e30, -0.0, rnd, true, false, fused).to_bits(),
                0x8000_0000,
                "{rnd:?}"
            );
            assert_eq!(
                fma_f32(least, 0.5, 0.0, rnd, true, false, fused).to_bits(),
                0,
                "{rnd:?}"
            );
        }
    }
    assert!(compare_f32(Compare::Eq, tiny, 0.0, true) && !compare_f32(Compare::Eq, tiny, 0.0, false));
}

#[test]
fn sat_limits_to_zero_and_one() {
    let cases: [(f32, u32); 8] = [
        (f32::NAN, 0),
        (f32::NEG_INFINITY, 0),
        (-1.0, 0),
        (-0.0, 0),
        (0.25, 0x3e80_0000),
        (1.0, 0x3f80_0000),
        (1.5, 0x3f80_0000),
        (f32::INFINITY, 0x3f80_0000),
    ];
    for (a, expected) in cases {
        for rnd in MODES {
            assert_eq!(add_f32(a, -0.0, rnd, false, true).to_bits(), expected, "{a}");
            assert_eq!(mul_f32(a, 1.0, rnd, false, true).to_bits(), expected, "{a}");
            assert_eq!(
                fma_f32(a, 1.0, -0.0, rnd, false, true, false).to_bits(),
                expected,
                "{a}"
            );
        }
    }
}

#[test]
fn minimum_and_maximum() {
    let nan = f32::from_bits(0xffc1_2345);
    let bits = |a: f32| a.to_bits();
    assert_eq!(bits(min_f32(0.0, -0.0, false, false, false)), 0x8000_0000);
    assert_eq!(bits(min_f32(-0.0, 0.0, false, false, false)), 0x8000_0000);
    assert_eq!(bits(max_f32(0.0, -0.0, false, false, false)), 0);
    assert_eq!(bits(max_f32(-0.0, 0.0, false, false, false)), 0);
    for f in [min_f32, max_f32] {
        assert_eq!(f(nan, 2.0, false, false, false), 2.0);
        assert_eq!(f(2.0, nan, false, false, false), 2.0);
        assert_eq!(bits(f(nan, nan, false, false, false)), NAN_F32);
        assert_eq!(bits(f(nan, 2.0, false, true, false)), NAN_F32);
        assert_eq!(bits(f(2.0, nan, false, true, false)), NAN_F32);
    }
    assert_eq!(min_f32(-3.0, 2.0, false, true, true), -2.0);
    assert_eq!(max_f32(-3.0, -2.0, false, true, true), 3.0);
    assert_eq!(
        (min_f64(0.0, -0.0).to_bits(), max_f64(-0.0, 0.0).to_bits()),
        (1 << 63, 0)
    );
    assert_eq!((min_f64(f64::NAN, 1.0), max_f64(1.0, f64::NAN)), (1.0, 1.0));

    let mut random = Random::new();
    for _ in 0..ROUNDS {
        let a = random.float(32, 23, 0);
        let [a, b] = [a, random.float(32, 23, a)].map(|v| f32::from_bits(v as u32));
        if a < b {
            assert_eq!(
                (
                    bits(min_f32(a, b, false, false, false)),
                    bits(max_f32(a, b, false, true, false))
                ),
                (bits(a), bits(b))
            );
            assert_eq!(
                (
                    bits(min_f32(b, a, false, true, false)),
                    bits(max_f32(b, a, false, false, false))
                ),
                (bits(a), bits(b))
            );
            assert_eq!(
                (min_f64(a.into(), b.into()), max_f64(a.into(), b.into())),
                (a.into(), b.into())
            );
        }
    }
}

/// On an H200 the last NaN operand decides; for `div` the first, and for `fma` the first of b, c, a.
#[test]
fn f64_keeps_the_payload() {
    let signalling = f64::from_bits(0x7ff0_0000_1234_5678);
    let negative = f64::from_bits(0xfff4_0000_0000_0042);
    let (quiet, quiet_negative) = (0x7ff8_0000_1234_5678, 0xfffc_0000_0000_0042);
    for rnd in MODES {
        assert_eq!(add_f64(signalling, 1.0, rnd).to_bits(), quiet);
        assert_eq!(mul_f64(1.0, signalling, rnd).to_bits(), quiet);
        assert_eq!(add_f64(signalling, negative, rnd).to_bits(), quiet_negative);
        assert_eq!(sub_f64(signalling, negative, rnd).to_bits(), quiet_negative);
        assert_eq!(div_f64(negative, signalling, rnd).to_bits(), quiet_negative);
        assert_eq!(fma_f64(1.0, 2.0, signalling, rnd, BASELINE_FUSED).to_bits(), quiet);
        assert_eq!(fma_f64(negative, 2.0, signalling, rnd, BASELINE_FUSED).to_bits(), quiet);
        assert_eq!(fma_f64(negative, signalling, 1.0, rnd, BASELINE_FUSED).to_bits(), quiet);
        assert_eq!(sqrt_f64(signalling, rnd).to_bits(), quiet);
        assert_eq!(rcp_f64(negative, rnd).to_bits(), quiet_negative);
        assert_eq!(mul_f64(0.0, f64::INFINITY, rnd).to_bits(), NAN_F64);
    }
    assert_eq!(min_f64(negative, signalling).to_bits(), quiet);
    assert_eq!(neg_f64(negative).to_bits(), quiet_negative);
    assert_eq!(abs_f64(negative).to_bits(), quiet_negative);
}

#[test]
fn comparisons_with_nan() {
    use Compare::*;
    let all = [Eq, Ne, Lt, Le, Gt, Ge, Equ, Neu, Ltu, Leu, Gtu, Geu, Num, Nan];
    let holds = |a: f32, b: f32| all.map(|op| compare_f32(op, a, b, false) as u8);
    assert_eq!(holds(1.0, 2.0), [0, 1, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0, 1, 0]);
    assert_eq!(holds(2.0, 1.0), [0, 1, 0, 0, 1, 1, 0, 1, 0, 0, 1, 1, 1, 0]);
    assert_eq!(holds(0.0, -0.0), [1, 0, 0, 1, 0, 1, 1, 0, 0, 1, 0, 1, 1, 0]);
    assert_eq!(holds(1.0, f32::NAN), [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 0, 1]);
    assert_eq!(holds(f32::NAN, f32::NAN), [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 0, 1]);
    for (a, b) in [(1.0, 2.0), (2.0, 1.0), (1.0, 1.0), (1.0, f64::NAN)] {
        for op in all {
            assert_eq!(compare_f64(op, a, b), compare_f32(op, a as f32, b as f32, false));
        }
    }
    let classes = |a: f32| {
        use Property::*;
        [Finite, Infinite, Number, NotANumber, Normal, Subnormal].map(|p| testp_f32(p, a) as u8)
    };
    assert_eq!(classes(-0.0), [1, 0, 1, 0, 1, 0]);
    assert_eq!(classes(1e-40), [1, 0, 1, 0, 0, 1]);
    assert_eq!(classes(f32::INFINITY), [0, 1, 1, 0, 0, 0]);
    assert_eq!(classes(f32::NAN), [0, 0, 0, 1, 0, 0]);
    assert!(testp_f64(Property::Subnormal, 1e-310) && testp_f64(Property::Normal, 0.0));
}
