//! Tests of matrices that a warp loads and multiplies. The factors are small integers, so that all floating-point sums
//! are exact.

use crate::arguments;
use crate::common::gpu::{Gpu, Plain};
use crate::common::has_architecture;
use crate::common::values::Random;

const FILE: &str = "matrix.sm_80.ptx";

/// Returns `count` integers from -`most` to `most`.
fn integers(count: usize, most: u32, seed: u64) -> Vec<i32> {
    let mut random = Random::new(seed);
    (0..count)
        .map(|_| random.below(2 * most + 1).cast_signed() - most.cast_signed())
        .collect()
}

/// Returns `a * b + c`, row-major.
fn product(a: &[i32], b: &[i32], c: &[i32], [m, n, k]: [usize; 3]) -> Vec<i64> {
    (0..m * n)
        .map(|at| {
            let (i, j) = (at / n, at % n);
            let products = (0..k).map(|x| i64::from(a[i * k + x]) * i64::from(b[x * n + j]));
            products.sum::<i64>() + i64::from(c[at])
        })
        .collect()
}

/// Converts a small integer to a 16-bit floating-point number with `fraction` fraction bits and this exponent bias.
fn half(value: i32, fraction: u32, bias: u32) -> u16 {
    if value == 0 {
        return 0;
    }
    let power = value.unsigned_abs().ilog2();
    let bits = (bias + power) << fraction | (value.unsigned_abs() << (fraction - power) & ((1 << fraction) - 1));
    (bits | u32::from(value < 0) << 15) as u16
}

fn f16(values: &[i32]) -> Vec<u16> {
    values.iter().map(|v| half(*v, 10, 15)).collect()
}

fn bf16(values: &[i32]) -> Vec<u16> {
    values.iter().map(|v| half(*v, 7, 127)).collect()
}

fn f32s(values: &[i32]) -> Vec<f32> {
    values.iter().map(|v| *v as f32).collect()
}

/// Runs a kernel `(a, b, c, d)` of one warp, and returns the first `results` elements of `d`.
fn multiply<A: Plain, C: Plain>(kernel: &str, a: &[A], b: &[A], c: &[C], results: usize) -> Vec<C> {
    let gpu = Gpu::new();
    let kernel = gpu.kernel(FILE, kernel);
    let d = gpu.alloc(results * size_of::<C>());
    let mut arguments = arguments![gpu.upload(a), gpu.upload(b), gpu.upload(c), d];
    gpu.launch(kernel, [1, 1, 1], [32, 1, 1], 0, &mut arguments);
    gpu.read(d, results)
}

#[test]
fn halves_added_in_f32() {
    if !has_architecture(80) {
        return;
    }
    let shape = [16, 8, 16];
    let (a, b, c) = (integers(256, 100, 1), integers(128, 100, 2), integers(128, 9999, 3));
    let expected: Vec<f32> = product(&a, &b, &c, shape).iter().map(|x| *x as f32).collect();
    let seen = multiply("mma_f16", &f16(&a), &f16(&b), &f32s(&c), 128);
    assert_eq!(seen, expected);
    let seen = multiply("mma_bf16", &bf16(&a), &bf16(&b), &f32s(&c), 128);
    assert_eq!(seen, expected);
}

#[test]
fn halves_added_in_f16() {
    if !has_architecture(80) {
        return;
    }
    let (a, b, c) = (integers(128, 9, 4), integers(64, 9, 5), integers(128, 500, 6));
    let expected: Vec<i32> = product(&a, &b, &c, [16, 8, 8]).iter().map(|x| *x as i32).collect();
    assert!(expected.iter().all(|x| x.abs() <= 2048), "a sum is not exact in f16");
    let seen = multiply("mma_f16_f16", &f16(&a), &f16(&b), &f16(&c), 128);
    assert_eq!(seen, f16(&expected));
}

#[test]
fn tf32() {
    if !has_architecture(80) {
        return;
    }
    let (a, b, c) = (integers(128, 500, 7), integers(64, 500, 8), integers(128, 9999, 9));
    let expected: Vec<f32> = product(&a, &b, &c, [16, 8, 8]).iter().map(|x| *x as f32).collect();
    let bits = |values: &[i32]| -> Vec<u32> { values.iter().map(|v| (*v as f32).to_bits()).collect() };
    let seen = multiply("mma_tf32", &bits(&a), &bits(&b), &f32s(&c), 128);
    assert_eq!(seen, expected);
}

#[test]
fn bytes() {
    if !has_architecture(80) {
        return;
    }
    let a = integers(512, 127, 10);
    let b: Vec<i32> = integers(256, 127, 11).iter().map(|x| x + 128).collect();
    let mut c = integers(128, 99_999, 12);
    // The first two sums overflow with these addends; the third comes near the limit.
    c[0] = i32::MAX;
    c[1] = i32::MIN;
    c[77] = i32::MAX - 5;
    let signed: Vec<u8> = a.iter().map(|x| *x as i8 as u8).collect();
    let unsigned: Vec<u8> = b.iter().map(|x| *x as u8).collect();
    let all = product(&a, &b, &c, [16, 8, 32]);
    let limits = (i64::from(i32::MIN), i64::from(i32::MAX));
    let expected: Vec<i32> = all
        .iter()
        .map(|x| *x as i32)
        .chain(all.iter().map(|x| (*x).clamp(limits.0, limits.1) as i32))
        .collect();
    assert_eq!(multiply("mma_s8", &signed, &unsigned, &c, 256), expected);
}

#[test]
fn doubles() {
    if !has_architecture(80) {
        return;
    }
    let (a, b, c) = (
        integers(32, 99_999, 13),
        integers(32, 99_999, 14),
        integers(64, 99_999, 15),
    );
    let doubles = |v: &[i32]| -> Vec<f64> { v.iter().map(|x| f64::from(*x)).collect() };
    let expected: Vec<f64> = product(&a, &b, &c, [8, 8, 4]).iter().map(|x| *x as f64).collect();
    let seen = multiply("mma_f64", &doubles(&a), &doubles(&b), &doubles(&c), 64);
    assert_eq!(seen, expected);
}

#[test]
fn matrices_from_shared_memory() {
    if !has_architecture(80) {
        return;
    }
    let gpu = Gpu::new();
    let kernel = gpu.kernel(FILE, "load_matrix");
    let mut random = Random::new(16);
    let input: Vec<u16> = (0..256).map(|_| random.word() as u16).collect();
    let (data, out) = (gpu.upload(&input), gpu.alloc(1280));
    gpu.launch(kernel, [1, 1, 1], [32, 1, 1], 0, &mut arguments![data, out]);
    let element = |matrix: usize, row: usize, column: usize| -> u32 { input[matrix * 64 + row * 8 + column].into() };
    let pair = |matrix: usize, lane: usize, trans: bool| {
        let (row, column) = (lane / 4, lane % 4 * 2);
        if trans {
            element(matrix, column, row) | element(matrix, column + 1, row) << 16
        } else {
            element(matrix, row, column) | element(matrix, row, column + 1) << 16
        }
    };
    let mut expected = Vec::new();
    for trans in [false, true] {
        for lane in 0..32 {
            expected.extend((0..4).map(|matrix| pair(matrix, lane, trans)));
        }
    }
    for lane in 0..32 {
        expected.extend((0..2).map(|matrix| pair(matrix, lane, false)));
    }
    assert_eq!(gpu.read::<u32>(out, 320), expected);
}

#[test]
fn fragments_of_16_by_16() {
    if !has_architecture(80) {
        return;
    }
    let gpu = Gpu::new();
    let kernel = gpu.kernel(FILE, "wmma_f16");
    let (a, b, c) = (integers(256, 100, 17), integers(256, 100, 18), integers(256, 9999, 19));
    // Rows of A are 24 elements apart; B is column-major.
    let mut apart = vec![0x7e00_u16; 16 * 24];
    for (i, row) in f16(&a).chunks(16).enumerate() {
        apart[i * 24..][..16].copy_from_slice(row);
    }
    let columns: Vec<i32> = (0..256).map(|at| b[at % 16 * 16 + at / 16]).collect();
    let d = gpu.alloc(2048);
    let mut arguments = arguments![
        gpu.upload(&apart),
        gpu.upload(&f16(&columns)),
        gpu.upload(&f32s(&c)),
        d,
        24_u32
    ];
    gpu.launch(kernel, [1, 1, 1], [32, 1, 1], 0, &mut arguments);
    let result: Vec<f32> = product(&a, &b, &c, [16, 16, 16]).iter().map(|x| *x as f32).collect();
    let twice = (0..256).map(|at| result[at % 16 * 16 + at / 16] * 2.0);
    let expected: Vec<f32> = result.iter().copied().chain(twice).collect();
    assert_eq!(gpu.read::<f32>(d, 512), expected);
}

#[test]
fn fragments_of_bytes() {
    if !has_architecture(80) {
        return;
    }
    let gpu = Gpu::new();
    let kernel = gpu.kernel(FILE, "wmma_s8");
    let (a, b) = (integers(128, 127, 20), integers(512, 127, 21));
    let bytes = |v: &[i32]| -> Vec<i8> { v.iter().map(|x| *x as i8).collect() };
    let d = gpu.alloc(1024);
    let mut arguments = arguments![gpu.upload(&bytes(&a)), gpu.upload(&bytes(&b)), d];
    gpu.launch(kernel, [1, 1, 1], [32, 1, 1], 0, &mut arguments);
    let expected: Vec<i32> = product(&a, &b, &[0; 256], [8, 32, 16])
        .iter()
        .map(|x| *x as i32)
        .collect();
    assert_eq!(gpu.read::<i32>(d, 256), expected);
}
