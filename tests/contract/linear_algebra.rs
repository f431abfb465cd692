//! Tests of vector addition, saxpy, tiled matrix products and block reductions, bit for bit.

use crate::arguments;
use crate::common::Codes;
use crate::common::gpu::Gpu;
use crate::common::values::{Random, fma32, fma64, random_floats};

fn floats(count: usize, seed: u64) -> Vec<f32> {
    random_floats(count, seed)
        .into_iter()
        .map(f32::from_bits)
        .filter(|x| x.is_finite())
        .collect()
}

fn same32(label: &str, seen: &[f32], expected: &[f32]) {
    let mut c = Codes::new();
    c.that(seen.len() == expected.len(), || {
        format!("{label}: {} results, expected {}", seen.len(), expected.len())
    });
    for (i, (a, b)) in seen.iter().zip(expected).enumerate() {
        // All NaNs compare equal: the device always returns the same NaN, but NaNs of the host have signs and payloads.
        c.that(a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan(), || {
            format!("{label} {i}: {a}, expected {b}")
        });
    }
}

#[test]
fn vector_add() {
    let gpu = Gpu::new();
    let kernel = gpu.kernel("vector_add.ptx", "vector_add");
    for n in [1_usize, 255, 256, 257, 5000] {
        let (mut a, mut b) = (floats(n * 2, 1), floats(n * 2, 2));
        a.truncate(n);
        b.truncate(n);
        let (x, y, out) = (gpu.upload(&a), gpu.upload(&b), gpu.alloc(n * 4));
        gpu.launch(
            kernel,
            [n.div_ceil(256) as u32, 1, 1],
            [256, 1, 1],
            0,
            &mut arguments![x, y, out, n as i32],
        );
        let expected: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
        same32("vector_add", &gpu.read(out, n), &expected);
    }
}

#[test]
fn saxpy_and_daxpy() {
    let gpu = Gpu::new();
    let (single, double) = (gpu.kernel("saxpy.ptx", "saxpy"), gpu.kernel("saxpy.ptx", "daxpy"));
    for n in [1_usize, 100, 4096, 10_000] {
        let (mut x, mut y) = (floats(n * 2, 3), floats(n * 2, 4));
        x.truncate(n);
        y.truncate(n);
        let (dx, dy) = (gpu.upload(&x), gpu.upload(&y));
        // 256 threads: with more elements, the kernel's grid-stride loop runs more than once.
        gpu.launch(
            single,
            [4, 1, 1],
            [64, 1, 1],
            0,
            &mut arguments![-1.75_f32, dx, dy, n as u64],
        );
        let expected: Vec<f32> = x.iter().zip(&y).map(|(x, y)| fma32(-1.75, *x, *y)).collect();
        same32("saxpy", &gpu.read(dy, n), &expected);

        let (wide_x, wide_y): (Vec<f64>, Vec<f64>) = x
            .iter()
            .zip(&y)
            .map(|(x, y)| (f64::from(*x) / 3.0, f64::from(*y) / 7.0))
            .unzip();
        let (dx, dy) = (gpu.upload(&wide_x), gpu.upload(&wide_y));
        gpu.launch(
            double,
            [3, 1, 1],
            [96, 1, 1],
            0,
            &mut arguments![0.1_f64, dx, dy, n as u64],
        );
        let seen = gpu.read::<f64>(dy, n);
        for i in 0..n {
            let expected = fma64(0.1, wide_x[i], wide_y[i]);
            assert_eq!(
                seen[i].to_bits(),
                expected.to_bits(),
                "daxpy {i}: {} and {expected}",
                seen[i]
            );
        }
    }
}

#[test]
fn matrix_product() {
    let gpu = Gpu::new();
    let (single, double) = (
        gpu.kernel("matmul.ptx", "matmul_f32"),
        gpu.kernel("matmul.ptx", "matmul_f64"),
    );
    let mut random = Random::new(5);
    for (m, n, k) in [(1, 1, 1), (16, 16, 16), (33, 17, 40), (64, 48, 100)] {
        let grid = [(n as u32).div_ceil(16), (m as u32).div_ceil(16), 1];
        let mut matrix = |count: usize| -> Vec<f64> {
            (0..count)
                .map(|_| f64::from(random.word().cast_signed()) / f64::from(1_u32 << 28))
                .collect()
        };
        let (a, b) = (matrix(m * k), matrix(k * n));
        let (da, db, dc) = (gpu.upload(&a), gpu.upload(&b), gpu.alloc(m * n * 8));
        gpu.launch(
            double,
            grid,
            [16, 16, 1],
            0,
            &mut arguments![da, db, dc, m as i32, n as i32, k as i32],
        );
        let seen = gpu.read::<f64>(dc, m * n);
        let narrow = |v: &[f64]| v.iter().map(|x| *x as f32).collect::<Vec<f32>>();
        let (a32, b32) = (narrow(&a), narrow(&b));
        let (ea, eb, ec) = (gpu.upload(&a32), gpu.upload(&b32), gpu.alloc(m * n * 4));
        gpu.launch(
            single,
            grid,
            [16, 16, 1],
            0,
            &mut arguments![ea, eb, ec, m as i32, n as i32, k as i32],
        );
        let seen32 = gpu.read::<f32>(ec, m * n);
        for row in 0..m {
            for col in 0..n {
                let wide = (0..k).fold(0.0_f64, |acc, i| fma64(a[row * k + i], b[i * n + col], acc));
                let slim = (0..k).fold(0.0_f32, |acc, i| fma32(a32[row * k + i], b32[i * n + col], acc));
                let at = row * n + col;
                assert_eq!(
                    seen[at].to_bits(),
                    wide.to_bits(),
                    "f64 {m}x{n}x{k} at {row},{col}: {} and {wide}",
                    seen[at]
                );
                assert_eq!(
                    seen32[at].to_bits(),
                    slim.to_bits(),
                    "f32 {m}x{n}x{k} at {row},{col}: {} and {slim}",
                    seen32[at]
                );
            }
        }
    }
}

/// Combines one block's values with `op`, in the same order as the reduction kernels.
fn tree<T: Copy>(part: &[T], block: usize, neutral: T, op: impl Fn(T, T) -> T) -> T {
    let mut values = part.to_vec();
    values.resize(block, neutral);
    let mut s = block / 2;
    while s > 0 {
        for t in 0..s {
            values[t] = op(values[t], values[t + s]);
        }
        s /= 2;
    }
    values[0]
}

#[test]
fn reductions() {
    let gpu = Gpu::new();
    let mut random = Random::new(6);
    for n in [1_usize, 256, 300, 5000] {
        let blocks = n.div_ceil(256);
        let grid = [blocks as u32, 1, 1];
        let singles: Vec<f32> = (0..n).map(|_| random.word().cast_signed() as f32 / 65536.0).collect();
        let words: Vec<u64> = (0..n).map(|_| random.next()).collect();
        let numbers: Vec<i32> = (0..n).map(|_| random.word().cast_signed()).collect();

        let kernel = gpu.kernel("reduce.ptx", "reduce_sum_f32");
        let (input, out) = (gpu.upload(&singles), gpu.alloc(blocks * 4));
        gpu.launch(kernel, grid, [256, 1, 1], 0, &mut arguments![input, out, n as u32]);
        let expected: Vec<f32> = singles
            .chunks(256)
            .map(|part| tree(part, 256, 0.0, |a, b| a + b))
            .collect();
        same32("reduce_sum_f32", &gpu.read(out, blocks), &expected);

        let kernel = gpu.kernel("reduce.ptx", "reduce_dynamic");
        for block in [32_usize, 128, 1024] {
            let blocks = n.div_ceil(block);
            let out = gpu.alloc(blocks * 4);
            let config = ([blocks as u32, 1, 1], [block as u32, 1, 1], block as u32 * 4);
            gpu.launch(
                kernel,
                config.0,
                config.1,
                config.2,
                &mut arguments![input, out, n as u32],
            );
            let expected: Vec<f32> = singles
                .chunks(block)
                .map(|part| tree(part, block, 0.0, |a, b| a + b))
                .collect();
            same32("reduce_dynamic", &gpu.read(out, blocks), &expected);
        }

        let kernel = gpu.kernel("reduce.ptx", "reduce_sum_u64");
        let (input, out) = (gpu.upload(&words), gpu.alloc(blocks * 8));
        gpu.launch(kernel, grid, [256, 1, 1], 0, &mut arguments![input, out, n as u32]);
        let expected: Vec<u64> = words
            .chunks(256)
            .map(|part| part.iter().fold(0, |a, b| b.wrapping_add(a)))
            .collect();
        assert_eq!(gpu.read::<u64>(out, blocks), expected, "reduce_sum_u64");

        let kernel = gpu.kernel("reduce.ptx", "reduce_max_s32");
        let (input, out) = (gpu.upload(&numbers), gpu.alloc(blocks * 4));
        gpu.launch(kernel, grid, [256, 1, 1], 0, &mut arguments![input, out, n as u32]);
        let expected: Vec<i32> = numbers
            .chunks(256)
            .map(|part| part.iter().copied().max().unwrap_or(i32::MIN))
            .collect();
        assert_eq!(gpu.read::<i32>(out, blocks), expected, "reduce_max_s32");
    }
}

#[test]
fn a_kernel_with_line_information() {
    let gpu = Gpu::new();
    let kernel = gpu.kernel("lines.ptx", "lines");
    let (mut a, mut b) = (floats(2000, 8), floats(2000, 9));
    a.truncate(900);
    b.truncate(900);
    let (x, y, out) = (gpu.upload(&a), gpu.upload(&b), gpu.alloc(3600));
    let mut arguments = arguments![x, y, out, 0.3_f32, 900_u32];
    gpu.launch(kernel, [8, 1, 1], [128, 1, 1], 0, &mut arguments);
    let expected: Vec<f32> = a.iter().zip(&b).map(|(a, b)| fma32(0.3, b - a, *a)).collect();
    same32("lines", &gpu.read(out, 900), &expected);
}
