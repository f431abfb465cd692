//! Tests of atomic operations: final values that do not depend on the order of the threads, and returned values.

use std::collections::BTreeSet;

use crate::arguments;
use crate::common::gpu::{Gpu, Plain};
use crate::common::has_architecture;
use crate::common::values::Random;

fn wide(count: usize, seed: u64) -> Vec<u64> {
    let mut random = Random::new(seed);
    (0..count).map(|_| random.next()).collect()
}

/// Returns the cells after every element's operations, which change the first seven.
fn applied<T: Copy>(cells: &[T], input: impl Iterator<Item = (usize, T)>, ops: &[fn(T, T, usize) -> T; 7]) -> Vec<T> {
    let mut cells = cells.to_vec();
    for (i, x) in input {
        for (cell, op) in cells.iter_mut().zip(ops) {
            *cell = op(*cell, x, i % 29);
        }
    }
    cells
}

const THREADS: usize = 96;
const BLOCKS: usize = 3;

/// Runs a kernel of `atomics.cu`, in which each thread changes cells in global memory and in its block's shared memory
/// with one element of the input, and compares all cells.
fn table<T: Plain + PartialEq + std::fmt::Debug>(
    kernel: &str,
    input: &[T],
    start: &[T],
    ops: [fn(T, T, usize) -> T; 7],
) {
    let gpu = Gpu::new();
    let function = gpu.kernel("atomics.ptx", kernel);
    let mut cells = start[..8].to_vec();
    cells.extend_from_slice(&start[..8]);
    cells.extend(vec![T::default(); 8 * BLOCKS]);
    let (data, place) = (gpu.upload(input), gpu.upload(&cells));
    let mut arguments = arguments![data, input.len() as u32, place];
    gpu.launch(
        function,
        [BLOCKS as u32, 1, 1],
        [THREADS as u32, 1, 1],
        0,
        &mut arguments,
    );
    let seen = gpu.read::<T>(place, cells.len());
    let all = input.iter().copied().enumerate();
    assert_eq!(seen[..8], applied(&start[..8], all.clone(), &ops), "{kernel}: global");
    assert_eq!(seen[8..16], start[..8], "{kernel}: cells that must not change");
    for block in 0..BLOCKS {
        let own = all.clone().filter(|(i, _)| i / THREADS == block);
        assert_eq!(
            seen[16 + block * 8..][..8],
            applied(&start[..8], own, &ops),
            "{kernel}: shared, block {block}"
        );
    }
}

/// The operations that the kernels apply to their cells, in order: the same for integers of every type.
macro_rules! operations {
    () => {
        [
            |a, x, _| a.wrapping_add(x),
            |a, x, _| a.wrapping_sub(x),
            |a, x, _| a.min(x),
            |a, x, _| a.max(x),
            |a, _, k| a & !(1 << k),
            |a, _, k| a | 1 << k,
            |a, x, _| a ^ x,
        ]
    };
}

#[test]
fn all_operations_u32() {
    let mut input: Vec<u32> = wide(250, 1).iter().map(|x| *x as u32).collect();
    input[5] = 0;
    let start = [7, 7, 0x9000_0000, 0x7000_0000, u32::MAX, 0, 0x1234, 99];
    table("atomics_u32", &input, &start, operations!());
}

#[test]
fn all_operations_s32() {
    let input: Vec<i32> = wide(288, 2).iter().map(|x| *x as i32).collect();
    let start = [-7, 7, 0, 0, -1, 0, 0x1234, 99];
    table("atomics_s32", &input, &start, operations!());
}

#[test]
fn all_operations_u64() {
    let input = wide(200, 3);
    let start = [7, 7, 1 << 63, 1 << 62, u64::MAX, 0, 0x1234, 99];
    table("atomics_u64", &input, &start, operations!());
}

#[test]
fn min_and_max_s64() {
    let gpu = Gpu::new();
    let kernel = gpu.kernel("atomics.ptx", "atomics_s64");
    let input: Vec<i64> = wide(500, 4).iter().map(|x| x.cast_signed()).collect();
    let (data, cells) = (gpu.upload(&input), gpu.upload(&[0_i64, 0]));
    let mut arguments = arguments![data, 500_u32, cells];
    // The last block has no elements of the input, and the block before it has fewer elements than threads.
    gpu.launch(kernel, [5, 1, 1], [128, 1, 1], 0, &mut arguments);
    let expected = [
        input.iter().min().copied().unwrap_or(0),
        input.iter().max().copied().unwrap_or(0),
    ];
    assert_eq!(gpu.read::<i64>(cells, 2), expected);
}

/// Returns the number of occurrences of each number below `below`.
fn occurrences(values: &[u32], below: u32) -> Vec<usize> {
    (0..below).map(|k| values.iter().filter(|v| **v == k).count()).collect()
}

#[test]
fn returned_values() {
    let gpu = Gpu::new();
    let kernel = gpu.kernel("atomics.ptx", "old_values");
    let n = 700_u32;
    let cells = gpu.upload(&[0_u32, 0, 6, u32::MAX, u32::MAX]);
    let outs: [_; 5] = std::array::from_fn(|_| gpu.alloc(n as usize * 4));
    let mut arguments = arguments![cells, outs[0], outs[1], outs[2], outs[3], outs[4]];
    gpu.launch(kernel, [7, 1, 1], [100, 1, 1], 0, &mut arguments);
    let last = gpu.read::<u32>(cells, 5);
    let [added, up, down, changed, first] = outs.map(|out| gpu.read::<u32>(out, n as usize));
    assert_eq!(occurrences(&added, n), vec![1; n as usize], "each number once");
    assert_eq!(last[0], n);
    assert_eq!(occurrences(&up, 100), vec![7; 100], "0 to 99, seven times");
    assert_eq!(last[1], 0);
    assert_eq!(occurrences(&down, 7), vec![100; 7], "6 to 0, a hundred times");
    assert_eq!(last[2], 6);
    // Each exchange returns the value that the exchange before it stored, the first one the initial value; the last
    // value stays.
    let mut taken: BTreeSet<u32> = changed.iter().copied().collect();
    taken.insert(last[3]);
    let mut expected: BTreeSet<u32> = (0..n).collect();
    expected.insert(u32::MAX);
    assert_eq!(taken, expected);
    assert!(last[3] < n);
    let winners: Vec<usize> = (0..n as usize).filter(|t| first[*t] == u32::MAX).collect();
    assert_eq!(winners.len(), 1, "one thread wins");
    assert_eq!(last[4] as usize, winners[0]);
    assert!((0..n as usize).all(|t| t == winners[0] || first[t] as usize == winners[0]));
}

#[test]
fn sums_of_floating_point_numbers() {
    let gpu = Gpu::new();
    let kernel = gpu.kernel("atomics.ptx", "add_f32");
    let input: Vec<f32> = (0..640).map(|i| (i % 37) as f32 - 11.5).collect();
    let (data, sums) = (gpu.upload(&input), gpu.upload(&[0.0_f32, 0.25]));
    gpu.launch(kernel, [5, 1, 1], [128, 1, 1], 0, &mut arguments![data, sums]);
    let sum: f32 = input.iter().sum();
    assert_eq!(gpu.read::<f32>(sums, 2), [sum, sum + 0.25]);

    if !has_architecture(60) {
        return;
    }
    let kernel = gpu.kernel("atomics.sm_60.ptx", "add_f64");
    let input: Vec<f64> = input.iter().map(|x| f64::from(*x) * 1.0e10).collect();
    let (data, sums) = (gpu.upload(&input), gpu.upload(&[0.0_f64, 1.0]));
    gpu.launch(kernel, [5, 1, 1], [128, 1, 1], 0, &mut arguments![data, sums]);
    let sum: f64 = input.iter().sum();
    assert_eq!(gpu.read::<f64>(sums, 2), [sum, sum + 1.0]);
}

/// Converts a small integer to f16.
fn half(value: u32) -> u16 {
    match value {
        0 => 0,
        _ => {
            let power = value.ilog2();
            ((15 + power) << 10 | (value << (10 - power) & 0x3ff)) as u16
        }
    }
}

#[test]
fn sums_of_halves() {
    if !has_architecture(70) {
        return;
    }
    let gpu = Gpu::new();
    let values: Vec<u32> = (0..256).map(|i| i % 7).collect();
    let sum = values.iter().sum::<u32>();
    assert!(sum <= 2048, "exact in f16");
    let input: Vec<u16> = values.iter().map(|v| half(*v)).collect();
    let (data, sums) = (gpu.upload(&input), gpu.upload(&[0_u16, 0, 0x5a5a]));
    let kernel = gpu.kernel("atomics.sm_70.ptx", "add_f16");
    gpu.launch(kernel, [2, 1, 1], [128, 1, 1], 0, &mut arguments![data, sums]);
    assert_eq!(gpu.read::<u16>(sums, 3), [half(sum), half(sum), 0x5a5a]);

    let pairs: Vec<u32> = values
        .iter()
        .map(|v| u32::from(half(*v)) | u32::from(half(v * 2 / 3)) << 16)
        .collect();
    let second = values.iter().map(|v| v * 2 / 3).sum::<u32>();
    let (data, sums) = (gpu.upload(&pairs), gpu.upload(&[0_u16, 0]));
    let kernel = gpu.kernel("atomics.sm_70.ptx", "add_f16x2");
    gpu.launch(kernel, [2, 1, 1], [128, 1, 1], 0, &mut arguments![data, sums]);
    assert_eq!(gpu.read::<u16>(sums, 2), [half(sum), half(second)]);
}

#[test]
fn compare_and_swap_in_a_loop() {
    let gpu = Gpu::new();
    let kernel = gpu.kernel("atomics.ptx", "max_f64");
    let mut random = Random::new(5);
    let input: Vec<f64> = (0..500).map(|_| f64::from(random.word()) - 2.0e9).collect();
    let (data, best) = (gpu.upload(&input), gpu.upload(&[f64::NEG_INFINITY]));
    let mut arguments = arguments![data, 500_u32, best];
    gpu.launch(kernel, [4, 1, 1], [128, 1, 1], 0, &mut arguments);
    let expected = input.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    assert_eq!(gpu.read::<f64>(best, 1), [expected]);

    if !has_architecture(70) {
        return;
    }
    let kernel = gpu.kernel("atomics.sm_70.ptx", "min_u16");
    let input: Vec<u16> = (0..512).map(|_| (random.word() >> 16) as u16 | 9).collect();
    for place in [0, 1] {
        let cells = gpu.upload(&[0xffff_u16, 0xffff]);
        let data = gpu.upload(&input);
        let mut arguments = arguments![data, cells + place * 2];
        gpu.launch(kernel, [4, 1, 1], [128, 1, 1], 0, &mut arguments);
        let mut expected = [0xffff, 0xffff];
        expected[place as usize] = input.iter().min().copied().unwrap_or(0);
        assert_eq!(gpu.read::<u16>(cells, 2), expected);
    }
}

#[test]
fn histograms() {
    let gpu = Gpu::new();
    let kernel = gpu.kernel("atomics.ptx", "histogram");
    let input: Vec<u8> = wide(2500, 6)
        .iter()
        .map(|x| if x & 1 == 0 { 7 } else { (x >> 8) as u8 })
        .collect();
    let (data, bins) = (gpu.upload(&input), gpu.upload(&[0_u32; 8].repeat(32)));
    let mut arguments = arguments![data, 2500_u32, bins];
    gpu.launch(kernel, [6, 1, 1], [96, 1, 1], 0, &mut arguments);
    let mut expected = vec![0_u32; 256];
    for x in input {
        expected[usize::from(x)] += 1;
    }
    assert_eq!(gpu.read::<u32>(bins, 256), expected);
}

#[test]
fn through_generic_pointers() {
    let gpu = Gpu::new();
    let kernel = gpu.kernel("atomics.ptx", "add_generic");
    let (cell, out) = (gpu.upload(&[0_u32]), gpu.alloc(4));
    gpu.launch(kernel, [1, 1, 1], [128, 1, 1], 0, &mut arguments![cell, out]);
    let sum = |odd| (0..128).filter(|t| t & 1 == odd).sum::<u32>();
    assert_eq!(gpu.read::<u32>(cell, 1), [sum(1)]);
    assert_eq!(gpu.read::<u32>(out, 1), [sum(0)]);
}

#[test]
fn other_scopes() {
    if !has_architecture(60) {
        return;
    }
    let gpu = Gpu::new();
    let kernel = gpu.kernel("atomics.sm_60.ptx", "scopes");
    let (cells, wide) = (gpu.upload(&[0_u32; 6]), gpu.upload(&[0_u64; 6]));
    gpu.launch(kernel, [5, 1, 1], [40, 1, 1], 0, &mut arguments![cells, wide]);
    assert_eq!(gpu.read::<u32>(cells, 6), [200, 40, 40, 40, 40, 40]);
    let all = (1_u64 << 40) - 1;
    assert_eq!(gpu.read::<u64>(wide, 6), [4 << 40 | 39, all, all, all, all, all]);
}

#[test]
fn vectors() {
    if !has_architecture(90) {
        return;
    }
    let gpu = Gpu::new();
    let kernel = gpu.kernel("vectors.ptx", "add_vectors");
    let (sums, old) = (gpu.upload(&[0.0_f32; 8]), gpu.alloc(256));
    gpu.launch(kernel, [1, 1, 1], [64, 1, 1], 0, &mut arguments![sums, old]);
    let t: f32 = (0..64).map(|t| t as f32).sum();
    // Two bf16 values of 64.
    let pair = f32::from_bits(0x4280_4280);
    assert_eq!(gpu.read::<f32>(sums, 8), [64.0, 128.0, 192.0, t, t, 64.0, pair, 0.0]);
    let mut seen = gpu.read::<f32>(old, 64);
    seen.sort_unstable_by(f32::total_cmp);
    let expected: Vec<f32> = (0..64).map(|i| i as f32).collect();
    assert_eq!(seen, expected);
}
