//! Compares the approximate functions with the host's `f64` functions, and with the manual's special cases.

use super::super::approx::*;
use super::super::cvt::cvt_f16_from_f64;
use super::super::float::NAN_F32;
use super::super::half::{NAN_HALF, f16_to_f32};
use super::Random;
use ptx::ir::Rounding;

const ROUNDS: u32 = 1_000_000;

/// Returns the distance of `got` from the exact result in units of the last bit of `got`. The unit is at least the last
/// bit of a subnormal number. An infinity has no distance from the same infinity.
fn error(got: f32, exact: f64) -> f64 {
    if f64::from(got) == exact {
        return 0.0;
    }
    let exponent = (got.to_bits() >> 23 & 0xff).max(1) as i32 - 150;
    (f64::from(got) - exact).abs() / 2f64.powi(exponent)
}

/// Returns the greatest error for random arguments of magnitude 2^low … 2^high, in units of the last bit.
fn worst(low: i32, high: i32, negative: bool, got: impl Fn(f32) -> f32, exact: impl Fn(f64) -> f64) -> f64 {
    let mut random = Random::new();
    let mut worst = 0f64;
    for _ in 0..ROUNDS {
        let bits = random.next();
        let exponent = low + (bits >> 33) as i32 % (high - low);
        let a = (1.0 + (bits & 0x7f_ffff) as f64 / 8_388_608.0) * 2f64.powi(exponent);
        let a = if negative && bits >> 63 != 0 { -a } else { a } as f32;
        let (got, exact) = (got(a), exact(f64::from(a)));
        let error = error(got, exact);
        assert!(!error.is_nan(), "{got:e} instead of {exact:e} for {a:e}");
        worst = worst.max(error);
    }
    worst
}

#[test]
fn results_are_correctly_rounded() {
    // 1/2, and an allowance for the error of the host's functions.
    let half = 0.500_001;
    assert!(worst(-126, 126, true, |a| rcp_approx_f32(a, true), |a| 1.0 / a) < half);
    assert!(worst(-127, 126, true, |a| rcp_approx_f32(a, false), |a| 1.0 / a) < half);
    // A subnormal reciprocal is rounded a second time.
    assert!(worst(126, 128, true, |a| rcp_approx_f32(a, false), |a| 1.0 / a) < 0.75);
    assert!(worst(-126, 127, false, |a| sqrt_approx_f32(a, true), f64::sqrt) < half);
    assert!(worst(-149, 127, false, |a| sqrt_approx_f32(a, false), f64::sqrt) < half);
    assert!(worst(-149, 127, false, |a| rsqrt_approx_f32(a, false), |a| 1.0 / a.sqrt()) < half);
    assert!(worst(-24, 6, true, |a| ex2_approx_f32(a, true), f64::exp2) < half);
    assert!(worst(-126, 127, false, |a| lg2_approx_f32(a, true), f64::log2) < half);
    assert!(worst(-1, 1, false, |a| lg2_approx_f32(a, true), f64::log2) < half);
    assert!(worst(-30, 5, true, tanh_approx_f32, f64::tanh) < half);
    assert!(worst(-149, 2, true, tanh_approx_f32, f64::tanh) < half);
}

#[test]
fn bounds_of_the_manual() {
    // The bound for ex2 without .ftz is 2 units, also for subnormal results.
    assert!(
        worst(
            6,
            8,
            true,
            |a| ex2_approx_f32(a.clamp(-150.0, 127.9), false),
            |a| a.clamp(-150.0, 127.9f32.into()).exp2()
        ) < 2.0
    );
    assert!(worst(-149, -126, false, |a| lg2_approx_f32(a, false), f64::log2) < 1.0);
    let mut random = Random::new();
    for _ in 0..ROUNDS {
        let bits = random.next();
        let a = f32::from_bits(0x3f80_0000 | bits as u32 & 0x7f_ffff);
        let b = f32::from_bits(((bits >> 32) as u32 & 0x7f_ffff) | (1 + (bits >> 55) as u32 % 252) << 23);
        let quotient = f64::from(a) / f64::from(b);
        assert!(error(div_approx_f32(a, b, false), quotient) < 2.0, "{a:e} / {b:e}");
        assert!(error(div_full_f32(a, b, false), quotient) < 2.0, "{a:e} / {b:e}");

        // The absolute error is at most 2^-20.5 for angles up to π.
        let angle = (bits as u32 as f32 / 4_294_967_296.0 - 0.5) * std::f32::consts::TAU;
        for ftz in [false, true] {
            let (s, c) = f64::from(angle).sin_cos();
            assert!(
                (f64::from(sin_approx_f32(angle, ftz)) - s).abs() < 2f64.powf(-20.5),
                "{angle}"
            );
            assert!(
                (f64::from(cos_approx_f32(angle, ftz)) - c).abs() < 2f64.powf(-20.5),
                "{angle}"
            );
        }
        let large = angle * 100.0;
        assert!((f64::from(sin_approx_f32(large, false)) - f64::from(large).sin()).abs() < 2f64.powf(-14.7));
        assert!((f64::from(cos_approx_f32(large, false)) - f64::from(large).cos()).abs() < 2f64.powf(-14.7));
    }
}

#[test]
fn special_cases() {
    let infinity = 0x7f80_0000;
    let bits = |f: &dyn Fn(f32, bool) -> f32, a: u32, ftz: bool| f(f32::from_bits(a), ftz).to_bits();
    // -inf, -1, the negative subnormal number nearest to zero, -0, their positive counterparts, and a NaN.
    let arguments = [
        0xff80_0000,
        0xbf80_0000,
        0x8000_0001,
        0x8000_0000,
        0,
        1,
        0x3f80_0000,
        infinity,
        0xffc1_2345,
    ];
    let row = |f: &dyn Fn(f32, bool) -> f32, ftz| arguments.map(|a| bits(f, a, ftz));
    let (minus, one, nan) = (0x8000_0000, 0x3f80_0000, NAN_F32);
    let rcp = [
        minus,
        0xbf80_0000,
        0xff80_0000,
        0xff80_0000,
        infinity,
        infinity,
        one,
        0,
        nan,
    ];
    assert_eq!(row(&rcp_approx_f32, true), rcp);
    assert_eq!(row(&rcp_approx_f32, false), rcp);
    let sqrt = [nan, nan, minus, minus, 0, 0, one, infinity, nan];
    assert_eq!(row(&sqrt_approx_f32, true), sqrt);
    let sqrt = [nan, nan, nan, minus, 0, 0x1a35_04f3, one, infinity, nan];
    assert_eq!(row(&sqrt_approx_f32, false), sqrt);
    let rsqrt = [nan, nan, 0xff80_0000, 0xff80_0000, infinity, infinity, one, 0, nan];
    assert_eq!(row(&rsqrt_approx_f32, true), rsqrt);
    let rsqrt = [nan, nan, nan, 0xff80_0000, infinity, 0x64b5_04f3, one, 0, nan];
    assert_eq!(row(&rsqrt_approx_f32, false), rsqrt);
    let lg2 = [
        nan,
        nan,
        0xff80_0000,
        0xff80_0000,
        0xff80_0000,
        0xff80_0000,
        0,
        infinity,
        nan,
    ];
    assert_eq!(row(&lg2_approx_f32, true), lg2);
    let lg2 = [
        nan,
        nan,
        nan,
        0xff80_0000,
        0xff80_0000,
        (-149f32).to_bits(),
        0,
        infinity,
        nan,
    ];
    assert_eq!(row(&lg2_approx_f32, false), lg2);
    let ex2 = [0, 0x3f00_0000, one, one, one, one, 0x4000_0000, infinity, nan];
    assert_eq!(row(&ex2_approx_f32, true), ex2);
    assert_eq!(row(&ex2_approx_f32, false), ex2);
    assert_eq!(bits(&ex2_approx_f32, (-149f32).to_bits(), false), 1);
    assert_eq!(bits(&ex2_approx_f32, (-149f32).to_bits(), true), 0);
    let sin = row(&sin_approx_f32, true);
    assert_eq!(
        (sin[0], &sin[2..6], sin[7], sin[8]),
        (nan, &[minus, minus, 0, 0][..], nan, nan)
    );
    let cos = row(&cos_approx_f32, true);
    assert_eq!((cos[0], &cos[2..6], cos[7], cos[8]), (nan, &[one; 4][..], nan, nan));
    let tanh = row(&|a, _| tanh_approx_f32(a), false);
    assert_eq!(
        (tanh[0], &tanh[2..6], tanh[7], tanh[8]),
        (0xbf80_0000, &[0x8000_0001, minus, 0, 1][..], one, nan)
    );
    // div.approx with a divisor above 2^126.
    let large = 1.5 * 2f32.powi(126);
    assert_eq!(div_approx_f32(1e38, large, false).to_bits(), 0);
    assert_eq!(div_approx_f32(f32::INFINITY, large, false).to_bits(), NAN_F32);
    assert_eq!(div_full_f32(large, large, false), 1.0);
    assert_eq!(div_full_f32(large, large, true), 1.0);
}

#[test]
fn half_forms_for_every_value() {
    for a in 0..=u16::MAX {
        let x = f64::from(f16_to_f32(a));
        if x.is_nan() {
            assert_eq!((ex2_approx_f16(a), tanh_approx_f16(a)), (NAN_HALF, NAN_HALF));
            continue;
        }
        assert_eq!(
            ex2_approx_f16(a),
            cvt_f16_from_f64(x.exp2(), Rounding::Rn, false),
            "{a:04x}"
        );
        assert_eq!(
            tanh_approx_f16(a),
            cvt_f16_from_f64(x.tanh(), Rounding::Rn, false),
            "{a:04x}"
        );
    }
    assert_eq!(
        (
            ex2_approx_bf16(0x3f80),
            ex2_approx_bf16(0xc300),
            ex2_approx_bf16(0x7fc1)
        ),
        (0x4000, 0, NAN_HALF)
    );
    assert_eq!(
        (
            tanh_approx_bf16(0x7f80),
            tanh_approx_bf16(0x8001),
            tanh_approx_bf16(0xff81)
        ),
        (0x3f80, 0x8001, NAN_HALF)
    );
}

#[test]
fn double_forms() {
    assert_eq!(rcp_approx_f64(3.0).to_bits(), 0x3fd5_5555 << 32);
    assert_eq!(rsqrt_approx_ftz_f64(4.0), 0.5);
    assert_eq!(rsqrt_approx_f64(2.0), 1.0 / 2f64.sqrt());
    assert_eq!(
        (rcp_approx_f64(-0.0), rsqrt_approx_f64(-0.0)),
        (f64::NEG_INFINITY, f64::NEG_INFINITY)
    );
    assert_eq!(rcp_approx_f64(1e-310), f64::INFINITY);
    assert!(rsqrt_approx_f64(-1.0).is_nan() && rcp_approx_f64(f64::NAN).is_nan());
}
