//! Compares `cvt` with `rustc_apfloat` and wide integers.

use super::super::cvt::*;
use super::super::float::NAN_F32;
use super::super::half::NAN_HALF;
use super::super::int::Int;
use super::float::apfloat_mode;
use super::{MODES, Random};
use ptx::ir::{Cvt, Rounding, Type};
use rustc_apfloat::ieee::{BFloat, Double, Float8E4M3FN, Float8E5M2, Half, Single};
use rustc_apfloat::{Float, FloatConvert, Round};

const ROUNDS: u32 = 100_000;

/// Returns the bits after a conversion by `rustc_apfloat`. A NaN becomes `nan`; if that is `None`, it keeps the upper
/// bits of its payload.
fn narrowed<S: Float + FloatConvert<D>, D: Float>(bits: u64, rnd: Rounding, nan: Option<u16>) -> u64 {
    let value = S::from_bits(bits.into()).convert_r(apfloat_mode(rnd), &mut false).value;
    match nan {
        Some(nan) if value.is_nan() => nan.into(),
        _ => value.to_bits() as u64,
    }
}

#[test]
fn float_to_float() {
    let mut random = Random::new();
    for _ in 0..ROUNDS {
        // Few random numbers of f64 are in the ranges of f16 and of f32, so two more are drawn in or near these ranges.
        let wide = random.float(64, 52, 0);
        let exponent = 1023 - 14 + random.next() % 30;
        let in_f16_range = random.float(64, 52, exponent << 52);
        let exponent = 1023 - 126 + random.next() % 254;
        let in_f32_range = random.float(64, 52, exponent << 52);
        for bits in [wide, in_f16_range, in_f32_range] {
            let a = f64::from_bits(bits);
            let s = (a as f32).to_bits() ^ (random.next() % 4) as u32;
            let (single, nan) = (f32::from_bits(s), Some(NAN_HALF));
            for rnd in MODES {
                let at = format!("{rnd:?} {bits:016x} {s:08x}");
                let expected = narrowed::<Double, Single>(bits, rnd, None);
                assert_eq!(
                    u64::from(cvt_f32_from_f64(a, rnd, false, false).to_bits()),
                    expected,
                    "{at}"
                );
                let expected = narrowed::<Double, Half>(bits, rnd, None);
                assert_eq!(u64::from(cvt_f16_from_f64(a, rnd, false)), expected, "{at}");
                let expected = narrowed::<Double, BFloat>(bits, rnd, None);
                assert_eq!(u64::from(cvt_bf16_from_f64(a, rnd)), expected, "{at}");
                let expected = narrowed::<Single, Half>(s.into(), rnd, nan);
                assert_eq!(
                    u64::from(cvt_f16_from_f32(single, rnd, false, false, false)),
                    expected,
                    "{at}"
                );
                let expected = narrowed::<Single, BFloat>(s.into(), rnd, nan);
                assert_eq!(
                    u64::from(cvt_bf16_from_f32(single, rnd, false, false, false)),
                    expected,
                    "{at}"
                );
            }
            if !single.is_nan() {
                let wide = cvt_f64_from_f32(single, false, false);
                assert_eq!(wide.to_bits(), f64::from(single).to_bits(), "{s:08x}");
            }
        }
    }
    for bits in 0..=u16::MAX {
        for rnd in MODES {
            let nan = Some(NAN_HALF);
            let expected = narrowed::<Half, BFloat>(bits.into(), rnd, nan);
            assert_eq!(u64::from(cvt_bf16_from_f16(bits, rnd)), expected, "{bits:04x} {rnd:?}");
            let expected = narrowed::<BFloat, Half>(bits.into(), rnd, nan);
            assert_eq!(
                u64::from(cvt_f16_from_bf16(bits, rnd, false)),
                expected,
                "{bits:04x} {rnd:?}"
            );
        }
    }
}

#[test]
fn nan_payloads_are_those_of_an_h200() {
    let nan = f32::from_bits(0x7fc1_2345);
    let widened = |bits, ftz| cvt_f64_from_f32(f32::from_bits(bits), ftz, false).to_bits();
    assert_eq!(widened(0x7fc1_2345, false), 0x7ff8_2468_a000_0000);
    assert_eq!(widened(0xff80_0001, false), 0xfff8_0000_2000_0000);
    assert_eq!(widened(0xff80_0001, true), 0x7fff_ffff_e000_0000);
    let wide = f64::from_bits(0xfff4_0000_0000_0001);
    let narrow = |ftz| cvt_f32_from_f64(wide, Rounding::Rz, ftz, false).to_bits();
    assert_eq!((narrow(false), narrow(true)), (0xffe0_0000, 0xffe0_0000));
    assert_eq!(cvt_f16_from_f64(wide, Rounding::Rn, false), 0xff00);
    assert_eq!(cvt_bf16_from_f64(wide, Rounding::Rn), 0xffe0);
    assert_eq!(cvt_f32(nan, None, false, false).to_bits(), 0x7fc1_2345);
    assert_eq!(cvt_f32(nan, None, true, false).to_bits(), NAN_F32);
    assert_eq!(cvt_f32(nan, None, false, true).to_bits(), 0);
    assert_eq!(cvt_f16(0xfd00, None, false), NAN_HALF);
    let shifted = cvt_f32_from_bf16(0xffc1, false, false);
    assert_eq!(shifted.to_bits(), 0xffc1_0000);
}

/// A result just below the least normal number is flushed if it stays below when rounded to 24 bits.
#[test]
fn ftz_of_narrowed_numbers() {
    let least = f64::from(f32::MIN_POSITIVE);
    let just_below = least * (1.0 - 2f64.powi(-25));
    let lower = least * (1.0 - 2f64.powi(-24));
    let cvt = |a, rnd| cvt_f32_from_f64(a, rnd, true, false);
    assert_eq!(cvt(just_below, Rounding::Rn), f32::MIN_POSITIVE);
    assert_eq!(cvt(just_below.next_down(), Rounding::Rn), 0.0);
    assert_eq!(cvt(least.next_down(), Rounding::Rz), 0.0);
    assert_eq!(cvt(-least.next_down(), Rounding::Rm), -f32::MIN_POSITIVE);
    assert_eq!(cvt(-lower, Rounding::Rm).to_bits(), 0x8000_0000);
    assert_eq!(cvt(lower.next_up(), Rounding::Rp), f32::MIN_POSITIVE);
}

/// Tests conversions from one integer type.
fn int_sources<S: Int>(random: &mut Random) {
    for _ in 0..ROUNDS / 10 {
        let a = S::from_bits(random.int() ^ random.next() >> (random.next() % 64));
        let value = a.widen();
        for rnd in MODES {
            let at = format!("{} {a:?} {rnd:?}", std::any::type_name::<S>());
            let r = apfloat_mode(rnd);
            let single = Single::from_i128_r(value, r).value.to_bits();
            assert_eq!(u128::from(cvt_f32_from_int(a, rnd, false).to_bits()), single, "{at}");
            let double = Double::from_i128_r(value, r).value.to_bits();
            assert_eq!(u128::from(cvt_f64_from_int(a, rnd, false).to_bits()), double, "{at}");
            let half = Half::from_i128_r(value, r).value.to_bits();
            assert_eq!(u128::from(cvt_f16_from_int(a, rnd, false)), half, "{at}");
            let bfloat = BFloat::from_i128_r(value, r).value.to_bits();
            assert_eq!(u128::from(cvt_bf16_from_int(a, rnd)), bfloat, "{at}");
        }
        let unit = if value > 0 { 1.0 } else { 0.0 };
        assert_eq!(f64::from(cvt_f32_from_int(a, Rounding::Rn, true)), unit);
        assert_eq!(cvt_f64_from_int(a, Rounding::Rn, true), unit);
        assert_eq!(
            cvt_f16_from_int(a, Rounding::Rn, true),
            if value > 0 { 0x3c00 } else { 0 }
        );
        int_pair::<S, u8>(a);
        int_pair::<S, u16>(a);
        int_pair::<S, u32>(a);
        int_pair::<S, u64>(a);
        int_pair::<S, i8>(a);
        int_pair::<S, i16>(a);
        int_pair::<S, i32>(a);
        int_pair::<S, i64>(a);
    }
}

/// Tests the conversion of one integer to another integer type.
fn int_pair<S: Int, D: Int>(a: S) {
    let value = a.widen();
    let (least, greatest) = if D::SIGNED {
        (-(1i128 << (D::BITS - 1)), (1i128 << (D::BITS - 1)) - 1)
    } else {
        (0, (1i128 << D::BITS) - 1)
    };
    assert_eq!(cvt_int::<S, D>(a, true).widen(), value.max(least).min(greatest));
    let wrapped = (value - least).rem_euclid(1i128 << D::BITS) + least;
    assert_eq!(cvt_int::<S, D>(a, false).widen(), wrapped, "{a:?}");
}

#[test]
fn integer_sources() {
    let mut random = Random::new();
    int_sources::<u8>(&mut random);
    int_sources::<u16>(&mut random);
    int_sources::<u32>(&mut random);
    int_sources::<u64>(&mut random);
    int_sources::<i8>(&mut random);
    int_sources::<i16>(&mut random);
    int_sources::<i32>(&mut random);
    int_sources::<i64>(&mut random);
}

/// Returns the integer that a number of `rustc_apfloat` rounds to, limited to the range of the type.
fn limited<F: Float, D: Int>(a: F, rnd: Round) -> i128 {
    // Every integer of PTX fits into 66 bits with its sign. Larger numbers are limited to 66 bits first.
    a.to_i128_r(66, rnd, &mut false)
        .value
        .max(D::MIN.widen())
        .min(D::MAX.widen())
}

/// Tests conversions to one integer type.
fn int_destinations<D: Int>(random: &mut Random) {
    for _ in 0..ROUNDS / 4 {
        let near = (1023 - 2 + random.next() % 68) << 52;
        let a = f64::from_bits(random.float(64, 52, near));
        let s = a as f32;
        for rnd in MODES {
            let at = format!("{} {a:e} {s:e} {rnd:?}", std::any::type_name::<D>());
            if !a.is_nan() {
                let double = Double::from_bits(a.to_bits().into());
                assert_eq!(
                    cvt_int_from_f64::<D>(a, rnd).widen(),
                    limited::<_, D>(double, apfloat_mode(rnd)),
                    "{at}"
                );
                let single = Single::from_bits(s.to_bits().into());
                assert_eq!(
                    cvt_int_from_f32::<D>(s, rnd, false).widen(),
                    limited::<_, D>(single, apfloat_mode(rnd)),
                    "{at}"
                );
            }
        }
    }
    for bits in (0..=u16::MAX).step_by(7) {
        for rnd in MODES {
            let (half, bfloat) = (Half::from_bits(bits.into()), BFloat::from_bits(bits.into()));
            if !half.is_nan() {
                assert_eq!(
                    cvt_int_from_f16::<D>(bits, rnd).widen(),
                    limited::<_, D>(half, apfloat_mode(rnd))
                );
            }
            if !bfloat.is_nan() {
                assert_eq!(
                    cvt_int_from_bf16::<D>(bits, rnd).widen(),
                    limited::<_, D>(bfloat, apfloat_mode(rnd))
                );
            }
        }
    }
}

#[test]
fn integer_destinations() {
    let mut random = Random::new();
    int_destinations::<u8>(&mut random);
    int_destinations::<u16>(&mut random);
    int_destinations::<u32>(&mut random);
    int_destinations::<u64>(&mut random);
    int_destinations::<i8>(&mut random);
    int_destinations::<i16>(&mut random);
    int_destinations::<i32>(&mut random);
    int_destinations::<i64>(&mut random);
    // An H200 returns these integers for NaN.
    assert_eq!(cvt_int_from_f32::<i32>(f32::NAN, Rounding::Rz, false), 0);
    assert_eq!(cvt_int_from_f64::<u32>(f64::NAN, Rounding::Rz), 0x8000_0000);
    assert_eq!(cvt_int_from_f32::<i64>(f32::NAN, Rounding::Rz, false), i64::MIN);
    // .ftz applies before rounding.
    assert_eq!(cvt_int_from_f32::<i32>(1e-40, Rounding::Rp, false), 1);
    assert_eq!(cvt_int_from_f32::<i32>(1e-40, Rounding::Rp, true), 0);
}

#[test]
fn integral_values() {
    let mut random = Random::new();
    for _ in 0..ROUNDS {
        let exponent = 1023 - 2 + random.next() % 56;
        let bits = random.float(64, 52, exponent << 52);
        let a = f64::from_bits(bits);
        let s = a as f32;
        for rnd in MODES {
            if a.is_nan() {
                continue;
            }
            let expected = Double::from_bits(bits.into())
                .round_to_integral(apfloat_mode(rnd))
                .value
                .to_bits();
            assert_eq!(
                u128::from(cvt_f64(a, Some(rnd), false).to_bits()),
                expected,
                "{a:e} {rnd:?}"
            );
            let expected = Single::from_bits(s.to_bits().into())
                .round_to_integral(apfloat_mode(rnd))
                .value
                .to_bits();
            assert_eq!(
                u128::from(cvt_f32(s, Some(rnd), false, false).to_bits()),
                expected,
                "{s:e} {rnd:?}"
            );
        }
    }
    for bits in 0..=u16::MAX {
        for rnd in MODES {
            let (half, bfloat) = (Half::from_bits(bits.into()), BFloat::from_bits(bits.into()));
            if !half.is_nan() {
                let expected = half.round_to_integral(apfloat_mode(rnd)).value.to_bits();
                assert_eq!(u128::from(cvt_f16(bits, Some(rnd), false)), expected, "{bits:04x}");
            }
            if !bfloat.is_nan() {
                let expected = bfloat.round_to_integral(apfloat_mode(rnd)).value.to_bits();
                assert_eq!(u128::from(cvt_bf16(bits, Some(rnd))), expected, "{bits:04x}");
            }
        }
    }
}

#[test]
fn eight_bit_formats() {
    for bits in 0..=u8::MAX {
        let wide: Half = Float8E4M3FN::from_bits(bits.into()).convert(&mut false).value;
        let expected = if wide.is_nan() { NAN_HALF } else { wide.to_bits() as u16 };
        assert_eq!(cvt_f16_from_e4m3(bits, false), expected, "{bits:02x}");
        let wide: Half = Float8E5M2::from_bits(bits.into()).convert(&mut false).value;
        let expected = if wide.is_nan() { NAN_HALF } else { wide.to_bits() as u16 };
        assert_eq!(cvt_f16_from_e5m2(bits, false), expected, "{bits:02x}");
    }
    for bits in 0..=u16::MAX {
        let half = Half::from_bits(bits.into());
        let e4m3: Float8E4M3FN = half.convert_r(Round::NearestTiesToEven, &mut false).value;
        let e5m2: Float8E5M2 = half.convert_r(Round::NearestTiesToEven, &mut false).value;
        let sign = (bits >> 8) as u8 & 0x80;
        // .satfinite: the greatest numbers are 448 and 57344.
        let magnitude = super::super::half::f16_to_f32(bits & 0x7fff);
        let expected = if half.is_nan() {
            0x7f
        } else if magnitude >= 448.0 {
            sign | 0x7e
        } else {
            e4m3.to_bits() as u8
        };
        assert_eq!(cvt_e4m3_from_f16(bits, false), expected, "{bits:04x}");
        let expected = if half.is_nan() {
            0x7f
        } else if magnitude >= 57344.0 {
            sign | 0x7b
        } else {
            e5m2.to_bits() as u8
        };
        assert_eq!(cvt_e5m2_from_f16(bits, false), expected, "{bits:04x}");
        let relu = if expected & 0x80 != 0 && !half.is_nan() {
            0
        } else {
            expected
        };
        assert_eq!(cvt_e5m2_from_f16(bits, true), relu, "{bits:04x}");
    }
}

#[test]
fn tensor_float() {
    // 13 bits are cut off, so 0x1000 is a tie.
    let cvt = |bits, rnd| cvt_tf32_from_f32(f32::from_bits(bits), rnd, false, false);
    assert_eq!(cvt(0x3f80_1000, Rounding::Rna), 0x3f80_2000);
    assert_eq!(cvt(0xbf80_1000, Rounding::Rna), 0xbf80_2000);
    assert_eq!(cvt(0x3f80_1000, Rounding::Rn), 0x3f80_0000);
    assert_eq!(cvt(0x3f80_3000, Rounding::Rn), 0x3f80_4000);
    assert_eq!(cvt(0x3f80_1fff, Rounding::Rz), 0x3f80_0000);
    assert_eq!(cvt(0x7f7f_ffff, Rounding::Rn), 0x7f80_0000);
    assert_eq!(cvt_tf32_from_f32(f32::MAX, Rounding::Rn, false, true), 0x7f7f_e000);
    assert_eq!(cvt_tf32_from_f32(f32::MAX, Rounding::Rna, false, true), 0x7f7f_e000);
    assert_eq!(cvt_tf32_from_f32(-1.0, Rounding::Rn, true, false), 0);
}

#[test]
fn saturating_and_packing_forms() {
    assert_eq!(cvt_f16_from_f32(1e9, Rounding::Rn, false, false, true), 0x7bff);
    assert_eq!(
        cvt_f16_from_f32(f32::NEG_INFINITY, Rounding::Rz, false, false, true),
        0xfbff
    );
    assert_eq!(
        cvt_f16_from_f32(f32::INFINITY, Rounding::Rz, false, false, false),
        0x7c00
    );
    assert_eq!(cvt_f16_from_f32(-3.0, Rounding::Rn, false, true, false), 0);
    assert_eq!(cvt_f16_from_f32(-3.0, Rounding::Rn, true, false, false), 0);
    assert_eq!(cvt_bf16_from_f32(f32::MAX, Rounding::Rn, false, false, true), 0x7f7f);
    assert_eq!(cvt_bf16_from_f32(f32::NAN, Rounding::Rn, false, true, true), NAN_HALF);
    assert_eq!(cvt_pack(8, false, 300, -1, Some(0x1234_5678)), 0x5678_ff00);
    assert_eq!(cvt_pack(4, true, 100, -100, Some(0xff)), 0x0000_ff78);
    assert_eq!(cvt_pack(2, false, 2, 1, Some(0xffff_ffff)), 0xffff_fff9);
    assert_eq!(cvt_pack(16, true, 40_000, -40_000, None), 0x7fff_8000);
}

#[test]
fn chosen_by_type() {
    let plain = |to, from| Cvt {
        to,
        from,
        rnd: None,
        int_rnd: None,
        ftz: false,
        sat: false,
        relu: false,
        satfinite: false,
    };
    assert_eq!(cvt(plain(Type::S32, Type::S8), 0x80), Some((-128i64) as u64));
    assert_eq!(cvt(plain(Type::U8, Type::S32), 0x1ff), Some(0xff));
    let rn = |to, from| Cvt {
        rnd: Some(Rounding::Rn),
        ..plain(to, from)
    };
    assert_eq!(cvt(rn(Type::F32, Type::U64), u64::MAX), Some(0x5f80_0000));
    assert_eq!(cvt(rn(Type::F16, Type::F64), 1.5f64.to_bits()), Some(0x3e00));
    assert_eq!(cvt(rn(Type::F16x2, Type::E4M3x2), 0xb838), Some(0xbc00_3c00));
    assert_eq!(cvt(rn(Type::E5M2x2, Type::F16x2), 0xbc00_3c00), Some(0xbc3c));
    assert_eq!(cvt(rn(Type::F16x2, Type::F32), 0), None);
    assert_eq!(cvt_pair(rn(Type::F16x2, Type::F32), 1.0, 2.0), Some(0x3c00_4000));
    assert_eq!(cvt_pair(rn(Type::BF16x2, Type::F32), 1.0, 2.0), Some(0x3f80_4000));
    assert_eq!(cvt_pair(rn(Type::E4M3x2, Type::F32), 1.0, -1.0), Some(0x38b8));
    assert_eq!(cvt_pair(rn(Type::F32, Type::F32), 1.0, 2.0), None);
}
