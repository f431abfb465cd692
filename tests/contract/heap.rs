//! Tests of memory that kernels allocate, and of C++ code in kernels: virtual functions, a linked list, lambdas.

use crate::arguments;
use crate::common::gpu::Gpu;
use crate::common::values::Random;

fn numbers(count: usize, seed: u64) -> Vec<i32> {
    let mut random = Random::new(seed);
    (0..count).map(|_| (random.word() >> 20).cast_signed()).collect()
}

#[test]
fn every_thread_allocates() {
    let gpu = Gpu::new();
    let kernel = gpu.kernel("heap.ptx", "heap_neighbours");
    for count in [1_u32, 10, 1000] {
        let out = gpu.alloc(256);
        let mut arguments = arguments![count, out];
        gpu.launch(kernel, [1, 1, 1], [64, 1, 1], 0, &mut arguments);
        let expected: Vec<u32> = (0..64)
            .map(|t| count * ((t + 1) % 64) * 1000 + count * (count - 1) / 2)
            .collect();
        assert_eq!(gpu.read::<u32>(out, 64), expected);
    }
}

#[test]
fn allocations_outlive_the_launch() {
    let gpu = Gpu::new();
    let module = gpu.module("heap.ptx");
    let keep = gpu.function(module, "heap_keep");
    let release = gpu.function(module, "heap_release");
    let (places, out) = (gpu.alloc(256), gpu.alloc(256));
    let mut arguments = arguments![places, 1_u64 << 40];
    gpu.launch(keep, [1, 1, 1], [32, 1, 1], 0, &mut arguments);
    let addresses = gpu.read::<u64>(places, 32);
    assert!(addresses.iter().all(|p| *p != 0 && p % 16 == 0));
    let mut arguments = arguments![places, out];
    gpu.launch(release, [1, 1, 1], [32, 1, 1], 0, &mut arguments);
    let expected: Vec<u64> = (0..32).map(|t| !((1_u64 << 40) + t)).collect();
    assert_eq!(gpu.read::<u64>(out, 32), expected);
    assert_eq!(gpu.read::<u64>(places, 32), [0; 32]);
}

#[test]
fn failed_allocations_return_null() {
    let gpu = Gpu::new();
    let kernel = gpu.kernel("heap.ptx", "heap_limits");
    let out = gpu.upload(&[7_u32, 7]);
    gpu.launch(kernel, [1, 1, 1], [1, 1, 1], 0, &mut arguments![out]);
    assert_eq!(gpu.read::<u32>(out, 2), [1, 1]);
}

#[test]
fn freed_memory_is_reused() {
    let gpu = Gpu::new();
    let kernel = gpu.kernel("heap.ptx", "heap_again");
    let out = gpu.alloc(4);
    // 1000 allocations of 64 KiB each, from a heap of 8 MiB.
    let mut arguments = arguments![1000_u32, out];
    gpu.launch(kernel, [1, 1, 1], [1, 1, 1], 0, &mut arguments);
    assert_eq!(gpu.read::<u32>(out, 1), [1000 * 1001 / 2]);
}

#[test]
fn virtual_functions() {
    let gpu = Gpu::new();
    let kernel = gpu.kernel("heap.ptx", "virtual_calls");
    let input = numbers(96, 1);
    let (data, out) = (gpu.upload(&input), gpu.alloc(384));
    let mut arguments = arguments![data, out];
    gpu.launch(kernel, [1, 1, 1], [96, 1, 1], 0, &mut arguments);
    let expected: Vec<i32> = input
        .iter()
        .map(|&x| match x % 3 {
            0 => -3,
            1 => (x + 1) * (x + 1) * 3 + 4,
            _ => (x + 2) * (x + 2) * 3 - x + 4,
        })
        .collect();
    assert_eq!(gpu.read::<i32>(out, 96), expected);
}

#[test]
fn a_list_built_by_all_threads() {
    let gpu = Gpu::new();
    let kernel = gpu.kernel("heap.ptx", "linked_list");
    let input: Vec<u32> = numbers(256, 2).iter().map(|x| x.cast_unsigned()).collect();
    let (data, out) = (gpu.upload(&input), gpu.alloc(8));
    let mut arguments = arguments![data, out];
    gpu.launch(kernel, [1, 1, 1], [256, 1, 1], 0, &mut arguments);
    assert_eq!(gpu.read::<u32>(out, 2), [256, input.iter().sum::<u32>()]);
}

#[test]
fn lambdas() {
    let gpu = Gpu::new();
    let kernel = gpu.kernel("heap.ptx", "lambdas");
    let input = numbers(64, 3);
    let (data, out) = (gpu.upload(&input), gpu.alloc(256));
    let mut arguments = arguments![data, out];
    gpu.launch(kernel, [1, 1, 1], [64, 1, 1], 0, &mut arguments);
    let expected: Vec<i32> = input
        .iter()
        .map(|&k| {
            let sum = (0..9).fold(1_i32, |r, i| r.wrapping_add(i * k));
            let mix = (0..5).fold(1_i32, |r, i| (r ^ (k >> (i & 7))).wrapping_mul(3));
            sum ^ mix
        })
        .collect();
    assert_eq!(gpu.read::<i32>(out, 64), expected);
}
