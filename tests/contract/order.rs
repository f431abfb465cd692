//! Tests of threads that wait for one another: barriers with votes, named barriers, flags and fences, locks, tickets,
//! and a barrier of the whole grid.

use crate::arguments;
use crate::common::gpu::Gpu;
use crate::common::values::Random;

fn words(count: usize, seed: u64) -> Vec<u32> {
    let mut random = Random::new(seed);
    (0..count).map(|_| random.word()).collect()
}

#[test]
fn votes_at_a_barrier() {
    let gpu = Gpu::new();
    let kernel = gpu.kernel("order.ptx", "barrier_votes");
    for threads in [1, 31, 32, 33, 100, 1024] {
        let mixed: Vec<i32> = words(threads, 1).iter().map(|w| w.cast_signed() >> 20).collect();
        for input in [mixed, vec![1; threads], vec![0; threads]] {
            let (data, out) = (gpu.upload(&input), gpu.alloc(threads * 12));
            let mut arguments = arguments![data, out];
            gpu.launch(kernel, [1, 1, 1], [threads as u32, 1, 1], 0, &mut arguments);
            let count = input.iter().filter(|x| **x > 0).count();
            let one = [count as i32, i32::from(count == threads), i32::from(count > 0)];
            assert_eq!(gpu.read::<i32>(out, threads * 3), one.repeat(threads));
        }
    }
}

#[test]
fn one_warp_produces_and_three_consume() {
    let gpu = Gpu::new();
    let kernel = gpu.kernel("order.ptx", "producer_consumer");
    let input = words(96, 2);
    for rounds in [1_u32, 2, 3, 20] {
        let (data, out) = (gpu.upload(&input), gpu.alloc(96 * 4 * rounds as usize));
        let mut arguments = arguments![data, out, rounds];
        gpu.launch(kernel, [1, 1, 1], [128, 1, 1], 0, &mut arguments);
        let expected: Vec<u32> = (0..rounds)
            .flat_map(|r| input.iter().map(move |x| x.wrapping_mul(r + 1) ^ r))
            .collect();
        assert_eq!(gpu.read::<u32>(out, expected.len()), expected);
    }
}

#[test]
fn barriers_of_half_a_block() {
    let gpu = Gpu::new();
    let kernel = gpu.kernel("order.ptx", "halves");
    let input = words(128, 3);
    let (data, out) = (gpu.upload(&input), gpu.alloc(512));
    let mut arguments = arguments![data, out];
    gpu.launch(kernel, [1, 1, 1], [128, 1, 1], 0, &mut arguments);
    let (mut low, mut high) = (input[..64].to_vec(), input[64..].to_vec());
    for _ in 0..3 {
        low = (0..64).map(|t| low[t].wrapping_add(low[63 - t])).collect();
    }
    for i in 0..5 {
        high = (0..64).map(|t| high[t] ^ high[63 - t].wrapping_add(i)).collect();
    }
    let expected: Vec<u32> = low.into_iter().chain(high).rev().collect();
    assert_eq!(gpu.read::<u32>(out, 128), expected);
}

#[test]
fn the_last_block_sums_up() {
    let gpu = Gpu::new();
    let kernel = gpu.kernel("order.ptx", "last_block");
    let input = words(5000, 4);
    let sum = input.iter().fold(0_u32, |a, b| a.wrapping_add(*b));
    let data = gpu.upload(&input);
    // The kernel's counter of finished blocks wraps to zero after the last block, so that the kernel can run again.
    for blocks in [1_u32, 7, 40, 7] {
        let (parts, out) = (gpu.alloc(blocks as usize * 4), gpu.alloc(4));
        let mut arguments = arguments![data, 5000_u32, parts, out];
        gpu.launch(kernel, [blocks, 1, 1], [64, 1, 1], 0, &mut arguments);
        assert_eq!(gpu.read::<u32>(out, 1), [sum], "{blocks} blocks");
    }
}

#[test]
fn two_warps_pass_a_number_back_and_forth() {
    let gpu = Gpu::new();
    let kernel = gpu.kernel("order.ptx", "warps_talk");
    let out = gpu.alloc(256);
    let mut arguments = arguments![200_u32, out];
    gpu.launch(kernel, [1, 1, 1], [64, 1, 1], 0, &mut arguments);
    let value = (0..200).fold(1_u32, |v, _| v.wrapping_mul(3).wrapping_mul(3).wrapping_add(1));
    assert_eq!(gpu.read::<u32>(out, 64), [value; 64]);
}

#[test]
fn a_lock_around_a_sum() {
    let gpu = Gpu::new();
    let kernel = gpu.kernel("order.ptx", "spin_lock");
    let input = words(256, 5);
    let (lock, sum, data) = (gpu.upload(&[0_u32]), gpu.upload(&[0_u32, 0]), gpu.upload(&input));
    let mut arguments = arguments![lock, sum, data];
    gpu.launch(kernel, [4, 1, 1], [64, 1, 1], 0, &mut arguments);
    let expected = input.iter().fold(0_u32, |a, b| a.wrapping_add(*b));
    assert_eq!(gpu.read::<u32>(sum, 2), [expected, 256]);
    assert_eq!(gpu.read::<u32>(lock, 1), [0]);
}

#[test]
fn one_block_after_another() {
    let gpu = Gpu::new();
    let kernel = gpu.kernel("order.ptx", "tickets");
    let (next, serving, log) = (gpu.upload(&[0_u32]), gpu.upload(&[0_u32]), gpu.upload(&[u32::MAX; 20]));
    let mut arguments = arguments![next, serving, log];
    gpu.launch(kernel, [20, 1, 1], [32, 1, 1], 0, &mut arguments);
    let mut seen = gpu.read::<u32>(log, 20);
    seen.sort_unstable();
    assert_eq!(seen, (0..20).collect::<Vec<u32>>());
    assert_eq!(gpu.read::<u32>(serving, 1), [20]);
}

#[test]
fn blocks_wait_for_later_blocks() {
    let gpu = Gpu::new();
    let kernel = gpu.kernel("order.ptx", "blocks_talk");
    let (flags, values) = (gpu.upload(&[0_u32; 16]), gpu.alloc(64));
    let mut arguments = arguments![flags, values];
    gpu.launch(kernel, [16, 1, 1], [32, 1, 1], 0, &mut arguments);
    let mut expected = [0_u32; 16];
    let mut got = 7_u32;
    for b in (0..16).rev() {
        got = got.wrapping_mul(5).wrapping_add(b);
        expected[b as usize] = got;
    }
    assert_eq!(gpu.read::<u32>(values, 16), expected);
}

#[test]
fn a_barrier_of_the_grid() {
    let gpu = Gpu::new();
    let kernel = gpu.kernel("order.ptx", "grid_steps");
    let input = words(512, 6);
    let (a, b, arrived) = (gpu.upload(&input), gpu.alloc(2048), gpu.upload(&[0_u32]));
    let mut arguments = arguments![a, b, 5_u32, arrived];
    gpu.launch(kernel, [8, 1, 1], [64, 1, 1], 0, &mut arguments);
    let mut x = input;
    for r in 0..5_u32 {
        x = (0..512)
            .map(|t| {
                let next = x[(t + 64) % 512].wrapping_mul(3);
                next.wrapping_add(x[511 - t]).wrapping_add(r)
            })
            .collect();
    }
    // The steps write to `b` and `a` in turn, and the fifth writes to `b`.
    assert_eq!(gpu.read::<u32>(b, 512), x);
}
