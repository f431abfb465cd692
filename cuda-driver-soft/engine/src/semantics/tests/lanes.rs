//! Compares the functions as the engine runs them (with constant modifiers, in loops over lanes that LLVM vectorises)
//! with the same functions called with modifiers and operands that LLVM cannot see at compile time.

use super::super::approx::*;
use super::super::float::*;
use super::Random;
use ptx::ir::Rounding::{self, Rm, Rn, Rz};
use std::hint::black_box;

type Lanes = [u32; 32];

/// Runs a loop over lanes that is compiled for the baseline CPU, and one for AVX2 and FMA if the host has them.
macro_rules! lanes {
    ($($name:ident: |$a:ident, $b:ident, $c:ident| $body:expr, $hidden:expr;)*) => {$({
        fn plain(d: &mut Lanes, a: &Lanes, b: &Lanes, c: &Lanes) {
            for i in 0..32 {
                let ($a, $b, $c) = (f32::from_bits(a[i]), f32::from_bits(b[i]), f32::from_bits(c[i]));
                let _ = ($b, $c);
                let result: f32 = $body;
                d[i] = result.to_bits();
            }
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma")]
        fn wide(d: &mut Lanes, a: &Lanes, b: &Lanes, c: &Lanes) {
            for i in 0..32 {
                let ($a, $b, $c) = (f32::from_bits(a[i]), f32::from_bits(b[i]), f32::from_bits(c[i]));
                let _ = ($b, $c);
                let result: f32 = $body;
                d[i] = result.to_bits();
            }
        }
        let mut random = Random::new();
        for _ in 0..2_000 {
            let a: Lanes = std::array::from_fn(|_| random.float(32, 23, 0x3f80_0000) as u32);
            let b: Lanes = std::array::from_fn(|i| random.float(32, 23, a[i].into()) as u32);
            let c: Lanes = std::array::from_fn(|i| random.float(32, 23, b[i].into()) as u32);
            let expected: Lanes = std::array::from_fn(|i| {
                let ($a, $b, $c) = (f32::from_bits(a[i]), f32::from_bits(b[i]), f32::from_bits(c[i]));
                let _ = ($b, $c);
                let hidden: f32 = $hidden;
                hidden.to_bits()
            });
            let mut d = [0; 32];
            plain(&mut d, &a, &b, &c);
            assert_eq!(d, expected, "{} of {a:08x?} {b:08x?} {c:08x?}", stringify!($name));
            #[cfg(target_arch = "x86_64")]
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                // SAFETY: the CPU has the features that the function is compiled for.
                unsafe { wide(&mut d, &a, &b, &c) };
                assert_eq!(d, expected, "wide {} of {a:08x?} {b:08x?} {c:08x?}", stringify!($name));
            }
        }
    })*};
}

/// Returns the mode as a value that LLVM cannot see at compile time.
fn mode(rnd: Rounding) -> Rounding {
    black_box(rnd)
}

#[test]
fn constant_forms_in_loops() {
    let off = || black_box(false);
    lanes! {
        add: |a, b, c| add_f32(a, b, Rn, false, false), add_f32(a, b, mode(Rn), off(), off());
        add_rm_ftz: |a, b, c| add_f32(a, b, Rm, true, false), add_f32(a, b, mode(Rm), !off(), off());
        mul: |a, b, c| mul_f32(a, b, Rn, false, false), mul_f32(a, b, mode(Rn), off(), off());
        mul_sat: |a, b, c| mul_f32(a, b, Rn, false, true), mul_f32(a, b, mode(Rn), off(), !off());
        mul_ftz: |a, b, c| mul_f32(a, b, Rn, true, false), mul_f32(a, b, mode(Rn), !off(), off());
        fma: |a, b, c| fma_f32(a, b, c, Rn, false, false, true), fma_f32(a, b, c, mode(Rn), off(), off(), off());
        fma_rz: |a, b, c| fma_f32(a, b, c, Rz, false, false, true), fma_f32(a, b, c, mode(Rz), off(), off(), off());
        fma_ftz: |a, b, c| fma_f32(a, b, c, Rn, true, false, true), fma_f32(a, b, c, mode(Rn), !off(), off(), off());
        div: |a, b, c| div_f32(a, b, Rn, false), div_f32(a, b, mode(Rn), off());
        sqrt: |a, b, c| sqrt_f32(a, Rn, false), sqrt_f32(a, mode(Rn), off());
        sqrt_rz: |a, b, c| sqrt_f32(a, Rz, false), sqrt_f32(a, mode(Rz), off());
        neg: |a, b, c| neg_f32(a, false), neg_f32(a, off());
        abs: |a, b, c| abs_f32(a, false), abs_f32(a, off());
        min: |a, b, c| min_f32(a, b, false, false, false), min_f32(a, b, off(), off(), off());
        max_nan: |a, b, c| max_f32(a, b, false, true, false), max_f32(a, b, off(), !off(), off());
        rcp_approx: |a, b, c| rcp_approx_f32(a, true), rcp_approx_f32(black_box(a), !off());
        sqrt_approx: |a, b, c| sqrt_approx_f32(a, true), sqrt_approx_f32(black_box(a), !off());
        rsqrt_approx: |a, b, c| rsqrt_approx_f32(a, false), rsqrt_approx_f32(black_box(a), off());
        ex2_approx: |a, b, c| ex2_approx_f32(a, false), ex2_approx_f32(black_box(a), off());
        lg2_approx: |a, b, c| lg2_approx_f32(a, true), lg2_approx_f32(black_box(a), !off());
        sin_approx: |a, b, c| sin_approx_f32(a, true), sin_approx_f32(black_box(a), !off());
        tanh_approx: |a, b, c| tanh_approx_f32(a), tanh_approx_f32(black_box(a));
    }
}

/// Compares NaNs with the expected bits: the test above would pass if both sides returned the same wrong NaN.
#[test]
fn loops_return_the_expected_nan() {
    fn roots(d: &mut Lanes, a: &Lanes) {
        for i in 0..32 {
            d[i] = sqrt_f32(f32::from_bits(a[i]), Rn, false).to_bits();
        }
    }
    fn logarithms(d: &mut Lanes, a: &Lanes) {
        for i in 0..32 {
            d[i] = lg2_approx_f32(f32::from_bits(a[i]), true).to_bits();
        }
    }
    fn reciprocal_roots(d: &mut Lanes, a: &Lanes) {
        for i in 0..32 {
            d[i] = rsqrt_approx_f32(f32::from_bits(a[i]), true).to_bits();
        }
    }
    let operands = [0xbf80_0000, 0x7f80_0001, 0xffc1_2345, 0xff80_0000];
    let a: Lanes = std::array::from_fn(|i| operands[i % 4]);
    for function in [roots, logarithms, reciprocal_roots] {
        let mut d = [0; 32];
        function(&mut d, &black_box(a));
        assert_eq!(d, [NAN_F32; 32]);
    }
}
