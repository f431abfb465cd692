//! Compares `.f16` and `.bf16` with `rustc_apfloat`: unary functions and conversions to `f32` for every value, others
//! for samples.

use super::super::half::*;
use super::Random;
use ptx::ir::Compare;
use rustc_apfloat::ieee::{BFloat, Half, Single};
use rustc_apfloat::{Float, FloatConvert, Round};

const ROUNDS: u32 = 400_000;
const RN: Round = Round::NearestTiesToEven;

/// Returns the expected bits of a number.
fn expected<F: Float>(value: F) -> u16 {
    if value.is_nan() {
        NAN_HALF
    } else {
        value.to_bits() as u16
    }
}

/// Returns the bits of a number after its conversion to `f32`.
fn widened<F: Float + FloatConvert<Single>>(a: u16) -> u32 {
    F::from_bits(a.into()).convert(&mut false).value.to_bits() as u32
}

#[test]
fn widening_is_exact() {
    for a in 0..=u16::MAX {
        if f16_to_f32(a).is_nan() {
            assert!(Half::from_bits(a.into()).is_nan());
            assert_eq!(
                f16_to_f32(a).to_bits(),
                u32::from(a & 0x8000) << 16 | 0x7f80_0000 | u32::from(a & 0x3ff) << 13
            );
        } else {
            assert_eq!(f16_to_f32(a).to_bits(), widened::<Half>(a), "{a:04x}");
            assert_eq!(f32_to_f16(f16_to_f32(a)), a);
        }
        if !bf16_to_f32(a).is_nan() {
            assert_eq!(bf16_to_f32(a).to_bits(), widened::<BFloat>(a), "{a:04x}");
            assert_eq!(f32_to_bf16(bf16_to_f32(a)), a);
        }
    }
}

#[test]
fn narrowing_rounds_to_nearest_even() {
    // For every bf16 and every f16: the number, the midpoint above it, and one unit of f32 on either side of both.
    for upper in 0..=u32::from(u16::MAX) {
        for offset in (0..0x1_0000)
            .step_by(0x1000)
            .flat_map(|middle| [middle, middle + 1, middle + 0xfff])
        {
            let a = upper << 16 | offset;
            let single = Single::from_bits(a.into());
            let half: Half = single.convert_r(RN, &mut false).value;
            let bfloat: BFloat = single.convert_r(RN, &mut false).value;
            assert_eq!(f32_to_f16(f32::from_bits(a)), expected(half), "{a:08x}");
            assert_eq!(f32_to_bf16(f32::from_bits(a)), expected(bfloat), "{a:08x}");
        }
    }
}

#[test]
fn arithmetic_against_apfloat() {
    let mut random = Random::new();
    for _ in 0..ROUNDS {
        let a = random.float(16, 10, 0) as u16;
        let b = random.float(16, 10, a.into()) as u16;
        let c = random.float(16, 10, mul_f16(a, b, false, false).into()) as u16;
        let [x, y, z] = [a, b, c].map(|v| Half::from_bits(v.into()));
        let at = format!("{a:04x} {b:04x} {c:04x}");
        assert_eq!(
            add_f16(a, b, false, false),
            expected(x.add_r(y, RN).value),
            "add.f16 {at}"
        );
        assert_eq!(
            sub_f16(a, b, false, false),
            expected(x.sub_r(y, RN).value),
            "sub.f16 {at}"
        );
        assert_eq!(
            mul_f16(a, b, false, false),
            expected(x.mul_r(y, RN).value),
            "mul.f16 {at}"
        );
        let fma = expected(x.mul_add_r(y, z, RN).value);
        assert_eq!(fma_f16(a, b, c, false, false, false, false), fma, "fma.f16 {at}");
        let relu = if fma & 0x8000 != 0 { 0 } else { fma };
        assert_eq!(fma_f16(a, b, c, false, false, true, false), relu, "fma.relu.f16 {at}");

        let a = random.float(16, 7, 0) as u16;
        let b = random.float(16, 7, a.into()) as u16;
        let c = random.float(16, 7, mul_bf16(a, b).into()) as u16;
        let [x, y, z] = [a, b, c].map(|v| BFloat::from_bits(v.into()));
        let at = format!("{a:04x} {b:04x} {c:04x}");
        assert_eq!(add_bf16(a, b), expected(x.add_r(y, RN).value), "add.bf16 {at}");
        assert_eq!(sub_bf16(a, b), expected(x.sub_r(y, RN).value), "sub.bf16 {at}");
        assert_eq!(mul_bf16(a, b), expected(x.mul_r(y, RN).value), "mul.bf16 {at}");
        assert_eq!(
            fma_bf16(a, b, c, false, false),
            expected(x.mul_add_r(y, z, RN).value),
            "fma.bf16 {at}"
        );
    }
}

#[test]
fn uniformly_random_operands() {
    let mut random = Random::new();
    for _ in 0..ROUNDS {
        let bits = random.next();
        let [a, b, c] = [bits as u16, (bits >> 16) as u16, (bits >> 32) as u16];
        let [x, y, z] = [a, b, c].map(|v| Half::from_bits(v.into()));
        assert_eq!(
            add_f16(a, b, false, false),
            expected(x.add_r(y, RN).value),
            "{a:04x} {b:04x}"
        );
        assert_eq!(
            mul_f16(a, b, false, false),
            expected(x.mul_r(y, RN).value),
            "{a:04x} {b:04x}"
        );
        let fma = x.mul_add_r(y, z, RN).value;
        assert_eq!(
            fma_f16(a, b, c, false, false, false, false),
            expected(fma),
            "{a:04x} {b:04x} {c:04x}"
        );
        let [x, y, z] = [a, b, c].map(|v| BFloat::from_bits(v.into()));
        let fma = x.mul_add_r(y, z, RN).value;
        assert_eq!(
            fma_bf16(a, b, c, false, false),
            expected(fma),
            "{a:04x} {b:04x} {c:04x}"
        );
    }
}

#[test]
fn signs_and_order() {
    for a in 0..=u16::MAX {
        let x = Half::from_bits(a.into());
        assert_eq!(neg_f16(a, false), expected(-x));
        assert_eq!(abs_f16(a, false), expected(x.abs()));
        let x = BFloat::from_bits(a.into());
        assert_eq!(neg_bf16(a), expected(-x));
        assert_eq!(abs_bf16(a), expected(x.abs()));
    }
    let mut random = Random::new();
    for _ in 0..ROUNDS {
        let (a, b) = (random.next() as u16, random.next() as u16);
        let (x, y) = (f16_to_f32(a), f16_to_f32(b));
        assert_eq!(compare_f16(Compare::Lt, a, b, false), x < y);
        assert_eq!(
            compare_f16(Compare::Geu, a, b, false),
            !matches!(x.partial_cmp(&y), Some(std::cmp::Ordering::Less))
        );
        let (least, greatest) = (min_f16(a, b, false, false, false), max_f16(a, b, false, false, false));
        match x.partial_cmp(&y) {
            Some(std::cmp::Ordering::Less) => assert_eq!((least, greatest), (a, b)),
            Some(std::cmp::Ordering::Greater) => assert_eq!((least, greatest), (b, a)),
            Some(std::cmp::Ordering::Equal) => {
                assert_eq!((least, greatest), (a | b, a & b), "{a:04x} {b:04x}")
            }
            None if x.is_nan() && y.is_nan() => assert_eq!((least, greatest), (NAN_HALF, NAN_HALF)),
            None => {
                let number = if x.is_nan() { b } else { a };
                assert_eq!((least, greatest), (number, number));
                assert_eq!(min_f16(a, b, false, true, false), NAN_HALF);
            }
        }
    }
    assert_eq!(max_bf16(0xc000, 0xbf80, false, false), 0xbf80);
    assert_eq!(max_bf16(0xc000, 0xbf80, false, true), 0x4000);
    assert_eq!(min_bf16(0xc000, 0x3f80, true, true), 0xbf80);
}

#[test]
fn modifiers() {
    // .ftz flushes operands and results, and keeps the sign.
    assert_eq!(add_f16(0x8001, 0x8000, true, false), 0x8000);
    assert_eq!(mul_f16(0x0400, 0x3800, true, false), 0);
    assert_eq!(mul_f16(0x8400, 0x3800, true, false), 0x8000);
    assert_eq!(mul_f16(0x0400, 0x3800, false, false), 0x0200);
    assert_eq!(fma_f16(0x0001, 0x7000, 0x8000, true, false, false, false), 0);
    assert_eq!((neg_f16(0x0001, true), abs_f16(0x8001, true)), (0x8000, 0));
    assert!(compare_f16(Compare::Eq, 1, 0x8000, true) && !compare_f16(Compare::Eq, 1, 0x8000, false));
    // .sat limits to 0 … 1, and replaces NaN by 0.
    assert_eq!(add_f16(0x7e00, 0, false, true), 0);
    assert_eq!(mul_f16(0x4000, 0x4000, false, true), 0x3c00);
    assert_eq!(fma_f16(0x4000, 0xc000, 0, false, true, false, false), 0);
    // .relu replaces negative numbers by 0, and keeps NaN. .oob returns 0 if a factor is out of bounds.
    assert_eq!(fma_f16(0x4000, 0xc000, 0, false, false, true, false), 0);
    assert_eq!(fma_f16(0xfe00, 0x4000, 0, false, false, true, false), NAN_HALF);
    assert_eq!(fma_f16(0xfff7, 0x4000, 0x4000, false, false, false, true), 0);
    assert_eq!(fma_bf16(0x4000, 0x7ff7, 0x7fff, false, true), 0);
    assert_eq!(fma_bf16(0x4000, 0x3f80, 0x7ff7, false, true), NAN_HALF);
    // Pairs.
    assert_eq!(add_f16x2(0x3c00_4000, 0x3c00_c000, false, false), 0x4000_0000);
    assert_eq!(
        fma_bf16x2(0x3f80_4000, 0x3f80_4000, 0x3f80_0000, false, false),
        0x4000_4080
    );
    assert_eq!(neg_f16x2(0x0001_8001, false), 0x8001_0001);
    assert_eq!((set_f16(true), set_bf16(true), set_f16(false)), (0x3c00, 0x3f80, 0));
}
