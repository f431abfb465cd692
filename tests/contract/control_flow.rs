//! Tests of divergent control flow: branches, loops, calls, barriers.

use std::fmt::Debug;

use crate::arguments;
use crate::common::Codes;
use crate::common::gpu::{Gpu, Plain};
use crate::common::values::{Random, fma32};

fn compare<T: PartialEq + Debug>(label: &str, seen: &[T], expected: &[T]) {
    let mut c = Codes::new();
    let wrong = seen.iter().zip(expected).filter(|(a, b)| a != b).count();
    c.that(seen.len() == expected.len() && wrong == 0, || {
        let i = seen.iter().zip(expected).position(|(a, b)| a != b).unwrap_or(0);
        format!(
            "{label}: {wrong} of {} differ; element {i} is {:?}, expected {:?}",
            seen.len(),
            seen[i],
            expected[i]
        )
    });
}

/// Runs a kernel `(in, out, n)` and compares its results, one per element, with those of `reference`.
fn check<I: Plain, O: Plain + PartialEq + Debug>(file: &str, kernel: &str, input: &[I], reference: impl Fn(I) -> O) {
    let gpu = Gpu::new();
    let kernel_handle = gpu.kernel(file, kernel);
    let seen: Vec<O> = gpu.table(kernel_handle, &[input], 1);
    let expected: Vec<O> = input.iter().map(|x| reference(*x)).collect();
    compare(kernel, &seen, &expected);
}

fn words(count: usize, seed: u64) -> Vec<u32> {
    let mut random = Random::new(seed);
    (0..count)
        .map(|i| {
            if i < 200 {
                i as u32
            } else {
                random.word() >> random.below(32)
            }
        })
        .collect()
}

fn numbers(count: usize, seed: u64) -> Vec<i32> {
    words(count, seed).into_iter().map(u32::cast_signed).collect()
}

#[test]
fn collatz() {
    check("divergent.ptx", "collatz", &words(3000, 1), |x| {
        let (mut x, mut steps) = (u64::from(x), 0_u32);
        while x > 1 && steps < 10_000 {
            x = if x & 1 == 1 {
                x.wrapping_mul(3).wrapping_add(1)
            } else {
                x >> 1
            };
            steps += 1;
        }
        steps
    });
}

#[test]
fn nested() {
    check("divergent.ptx", "nested", &numbers(3000, 2), |x| {
        let mut r = 0_i32;
        if x & 1 != 0 {
            r += 1;
            if x & 2 != 0 {
                r += 10;
                if x & 4 != 0 {
                    for j in 0..(x & 15) {
                        r = r.wrapping_add(x ^ j);
                    }
                } else {
                    r = r.wrapping_sub(x);
                }
            } else if x & 8 != 0 {
                r ^= 0x55;
            }
            r = r.wrapping_mul(3);
        } else {
            while r < (x & 31) {
                r += 3;
            }
        }
        r
    });
}

#[test]
fn switched() {
    check("divergent.ptx", "switched", &words(3000, 3), |x| match x % 11 {
        0 => x.wrapping_mul(7),
        1 => x / 3,
        2 => x ^ 0xa5a5_a5a5,
        3 => x.wrapping_add(1000).wrapping_sub(77),
        4 => x.wrapping_sub(77),
        5 => !x,
        6 => (0..x % 5).fold(x, |r, j| r.wrapping_mul(31).wrapping_add(j)),
        7 => 12345,
        8 => x << (x & 7),
        _ => 9,
    });
}

#[test]
fn loops() {
    check("divergent.ptx", "loops", &words(3000, 4), |x| {
        let mut r = 0_u32;
        for a in 0..20_u32 {
            if (x >> (a & 15)) & 1 == 0 {
                continue;
            }
            let mut b = a;
            loop {
                r = r.wrapping_add(a.wrapping_mul(b));
                if b > x % 23 {
                    break;
                }
                if r > 5000 {
                    return r | 0x8000_0000;
                }
                b += 1;
            }
            if r % 13 == 5 {
                break;
            }
        }
        r
    });
}

#[test]
fn gcd() {
    let gpu = Gpu::new();
    let kernel = gpu.kernel("divergent.ptx", "gcd");
    let (a, b) = (words(3000, 5), words(3000, 6));
    let seen: Vec<u32> = gpu.table(kernel, &[&a, &b], 1);
    let expected: Vec<u32> = a
        .iter()
        .zip(&b)
        .map(|(&a, &b)| {
            let (mut x, mut y) = (a, b);
            while y != 0 {
                (x, y) = (y, x % y);
            }
            x
        })
        .collect();
    compare("gcd", &seen, &expected);
}

/// Runs a kernel `(in, out)` in one block with a thread per element, and returns the results.
fn one_block(file: &str, kernel: &str, input: &[u32]) -> Vec<u32> {
    let gpu = Gpu::new();
    let kernel = gpu.kernel(file, kernel);
    let (data, out) = (gpu.upload(input), gpu.alloc(input.len() * 4));
    gpu.launch(
        kernel,
        [1, 1, 1],
        [input.len() as u32, 1, 1],
        0,
        &mut arguments![data, out],
    );
    gpu.read(out, input.len())
}

#[test]
fn a_barrier_after_divergence() {
    for threads in [1, 31, 64, 100, 256] {
        let input = words(threads, 7);
        let slots: Vec<u32> = input
            .iter()
            .enumerate()
            .map(|(t, &x)| {
                if t & 1 == 1 {
                    (0..t).fold(1, |r: u32, _| r.wrapping_mul(5).wrapping_add(x))
                } else {
                    x
                }
            })
            .collect();
        let expected: Vec<u32> = slots.iter().rev().copied().collect();
        compare(
            &format!("mirror of {threads}"),
            &one_block("divergent.ptx", "mirror", &input),
            &expected,
        );
    }
}

#[test]
fn a_barrier_inside_a_function() {
    for threads in [2, 32, 66, 256] {
        let input = words(threads, 8);
        let expected: Vec<u32> = (0..threads).map(|t| input[t ^ 1]).collect();
        compare(
            &format!("call_barrier of {threads}"),
            &one_block("calls.ptx", "call_barrier", &input),
            &expected,
        );
    }
}

#[test]
fn direct_calls() {
    let input: Vec<f32> = (0..500).map(|i| i as f32 * 0.37 - 90.0).collect();
    let reference = |x: f32| fma32(fma32(2.0, x, 3.0), x, 1.0);
    let gpu = Gpu::new();
    let kernel = gpu.kernel("calls.ptx", "call_direct");
    let seen: Vec<f32> = gpu.table(kernel, &[&input], 1);
    let expected: Vec<u32> = input.iter().map(|x| reference(*x).to_bits()).collect();
    compare(
        "call_direct",
        &seen.iter().map(|x| x.to_bits()).collect::<Vec<_>>(),
        &expected,
    );
}

#[test]
fn recursive_calls() {
    fn ackermann(m: u32, k: u32) -> u32 {
        match (m, k) {
            (0, k) => k + 1,
            (m, 0) => ackermann(m - 1, 1),
            (m, k) => ackermann(m - 1, ackermann(m, k - 1)),
        }
    }
    check("calls.ptx", "call_recursive", &words(300, 9), |x| {
        ackermann(x % 3, x % 5)
    });
}

#[test]
fn indirect_calls() {
    check("calls.ptx", "call_indirect", &numbers(1000, 10), |x| {
        let y = x >> 2;
        match x & 3 {
            0 => y.wrapping_mul(2),
            1 => y.wrapping_mul(y),
            2 => y.wrapping_neg(),
            _ if y > 0 => y.wrapping_mul(2).wrapping_add(y.wrapping_mul(y)),
            _ => y.wrapping_neg(),
        }
    });
}

#[test]
fn structs_returned() {
    let input: Vec<f32> = (0..200).map(|i| (i as f32 * 0.71).fract() * 100.0 - 30.0).collect();
    let gpu = Gpu::new();
    let kernel = gpu.kernel("calls.ptx", "call_struct");
    let seen: Vec<f64> = gpu.table(kernel, &[&input], 1);
    let mut sum = 0.0;
    let expected: Vec<u64> = input
        .iter()
        .enumerate()
        .map(|(i, x)| {
            sum += f64::from(*x);
            (sum * (i + 1) as f64).to_bits()
        })
        .collect();
    compare(
        "call_struct",
        &seen.iter().map(|x| x.to_bits()).collect::<Vec<_>>(),
        &expected,
    );
}

#[test]
fn pointers_passed() {
    check("calls.ptx", "call_pointers", &numbers(500, 11), |x| {
        let values: Vec<i32> = (0..8_u32)
            .map(|j| (x.cast_unsigned().wrapping_mul(j.wrapping_mul(2_654_435_761)) >> (j + 3)).cast_signed())
            .collect();
        let low = values.iter().min().copied().unwrap_or(0);
        let high = values.iter().max().copied().unwrap_or(0);
        high.wrapping_sub(low)
    });
}

#[test]
fn jump_tables() {
    check("jump.ptx", "jump_table", &words(1000, 12), |x| match x & 3 {
        0 => x.wrapping_add(10),
        1 => x.wrapping_mul(x),
        2 => x.wrapping_sub(7),
        _ => !x,
    });
}

#[test]
fn lanes_that_leave_one_by_one() {
    let gpu = Gpu::new();
    let kernel = gpu.kernel("jump.ptx", "leave_one_by_one");
    let out = gpu.alloc(128);
    gpu.launch(kernel, [1, 1, 1], [32, 1, 1], 0, &mut arguments![out]);
    let expected: Vec<u32> = (1..=32).collect();
    compare("leave_one_by_one", &gpu.read::<u32>(out, 32), &expected);
}

#[test]
fn predicates() {
    let gpu = Gpu::new();
    let kernel = gpu.kernel("jump.ptx", "predicates");
    let (mut a, mut b) = (words(1000, 13), words(1000, 14));
    // Equal pairs, the constants with which the kernel compares, and the edges of signed numbers.
    a.extend([7, 7, 0, 5, u32::MAX, 0x8000_0000]);
    b.extend([7, 0, 0, 5, 0x7fff_ffff, 0x7fff_ffff]);
    let seen: Vec<u32> = gpu.table(kernel, &[&a, &b], 8);
    let expected: Vec<u32> = a
        .iter()
        .zip(&b)
        .flat_map(|(&x, &y)| {
            let (sx, sy) = (x.cast_signed(), y.cast_signed());
            let p1 = sx < sy;
            let p3 = x > y && !p1;
            let p4 = x == 7 || !p1;
            let p5 = (y != 0) ^ p1;
            [
                if p1 { 1 } else { 2 },
                if p3 { x } else { y },
                if p4 { u32::MAX } else { 1 },
                if p5 { 5 } else { 6 },
                if sx >= 0 { x } else { y },
                if p1 { 101 } else { 102 },
                if p1 { u32::MAX } else { 0 },
                if x >= y { 1.0_f32.to_bits() } else { 0 },
            ]
        })
        .collect();
    compare("predicates", &seen, &expected);
}
