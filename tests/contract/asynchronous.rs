//! Tests of asynchronous copies into shared memory, barriers in shared memory, and clusters of one block.

use crate::arguments;
use crate::common::gpu::Gpu;
use crate::common::has_architecture;
use crate::common::values::Random;

const FILE: &str = "asynchronous.sm_80.ptx";

fn words(count: usize, seed: u64) -> Vec<u32> {
    let mut random = Random::new(seed);
    (0..count).map(|_| random.word()).collect()
}

#[test]
fn copies_in_groups() {
    if !has_architecture(80) {
        return;
    }
    let gpu = Gpu::new();
    let kernel = gpu.kernel(FILE, "copy_groups");
    for threads in [32_usize, 96, 128] {
        let input = words(threads * 7, 1);
        let (data, out) = (gpu.upload(&input), gpu.alloc(threads * 28));
        let mut arguments = arguments![data, out];
        gpu.launch(kernel, [1, 1, 1], [threads as u32, 1, 1], 0, &mut arguments);
        let expected: Vec<u32> = (0..threads)
            .flat_map(|t| {
                let from = (t + threads - 1) % threads;
                let mut all = input[from * 4..][..4].to_vec();
                all.extend(&input[threads * 4 + from * 2..][..2]);
                all.push(input[threads * 6 + from]);
                all
            })
            .collect();
        assert_eq!(gpu.read::<u32>(out, threads * 7), expected);
    }
}

#[test]
fn copies_with_a_shorter_source() {
    if !has_architecture(80) {
        return;
    }
    let gpu = Gpu::new();
    let kernel = gpu.kernel(FILE, "copy_parts");
    let input = words(256, 2);
    let bytes: Vec<u32> = (0..64).map(|t| t % 17).collect();
    let (data, amounts, out) = (gpu.upload(&input), gpu.upload(&bytes), gpu.alloc(2048));
    let mut arguments = arguments![data, amounts, out];
    gpu.launch(kernel, [1, 1, 1], [64, 1, 1], 0, &mut arguments);
    let mut expected = Vec::new();
    for t in 0..64_usize {
        let all = &input[t * 4..][..4];
        let mut part: Vec<u8> = all.iter().flat_map(|w| w.to_le_bytes()).collect();
        part[bytes[t] as usize..].fill(0);
        expected.extend(part.chunks(4).map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]])));
        expected.extend(if t % 2 == 1 { &[0; 4] } else { all });
    }
    assert_eq!(gpu.read::<u32>(out, 512), expected);
}

#[test]
fn barriers_in_memory() {
    if !has_architecture(80) {
        return;
    }
    let gpu = Gpu::new();
    let kernel = gpu.kernel(FILE, "barrier_rounds");
    for threads in [1_usize, 32, 100, 256] {
        let input = words(threads, 3);
        let (data, out) = (gpu.upload(&input), gpu.alloc(threads * 4));
        let mut arguments = arguments![data, out, 9_u32];
        gpu.launch(kernel, [1, 1, 1], [threads as u32, 1, 1], 0, &mut arguments);
        let expected: Vec<u32> = (0..threads)
            .map(|t| input[(t + 9) % threads].wrapping_add(36))
            .collect();
        assert_eq!(gpu.read::<u32>(out, threads), expected);
    }
}

#[test]
fn barriers_that_wait_for_copies() {
    if !has_architecture(80) {
        return;
    }
    let gpu = Gpu::new();
    let kernel = gpu.kernel(FILE, "barrier_copies");
    let input = words(10 * 128, 4);
    let (data, out) = (gpu.upload(&input), gpu.alloc(256));
    let mut arguments = arguments![data, out, 10_u32];
    gpu.launch(kernel, [1, 1, 1], [64, 1, 1], 0, &mut arguments);
    let mut expected = vec![0_u32; 32];
    for t in 0..32 {
        let mine = (0..10).flat_map(|r| &input[(r * 32 + t) * 4..][..4]);
        expected.push(mine.fold(0, |sum: u32, x| sum.wrapping_mul(31).wrapping_add(*x)));
    }
    assert_eq!(gpu.read::<u32>(out, 64), expected);
}

#[test]
fn pending_counts_of_a_barrier() {
    if !has_architecture(80) {
        return;
    }
    let gpu = Gpu::new();
    let kernel = gpu.kernel(FILE, "barrier_counts");
    let out = gpu.alloc(20);
    gpu.launch(kernel, [1, 1, 1], [1, 1, 1], 0, &mut arguments![out]);
    assert_eq!(gpu.read::<u32>(out, 5), [5, 4, 2, 1, 4]);
}

#[test]
fn a_cluster_of_one_block() {
    if !has_architecture(90) {
        return;
    }
    let gpu = Gpu::new();
    let kernel = gpu.kernel("cluster.ptx", "alone");
    let out = gpu.alloc(1024);
    gpu.launch(kernel, [3, 1, 1], [64, 1, 1], 0, &mut arguments![out]);
    let expected: Vec<u32> = (0..64).flat_map(|t| [(63 - t) * 7, 0, t * 7, 16]).collect();
    assert_eq!(gpu.read::<u32>(out, 256), expected);
}

#[test]
fn transactions_of_a_barrier() {
    if !has_architecture(90) {
        return;
    }
    let gpu = Gpu::new();
    let kernel = gpu.kernel("cluster.ptx", "transactions");
    let out = gpu.alloc(16);
    gpu.launch(kernel, [1, 1, 1], [1, 1, 1], 0, &mut arguments![out]);
    assert_eq!(gpu.read::<u32>(out, 4), [0, 0, 1, 1]);
}
