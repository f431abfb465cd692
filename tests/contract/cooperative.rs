//! Tests of the driver's part in cooperative groups: barriers of a grid, and barriers of parts of a block in reserved
//! shared memory.

use std::ptr;

use cuda_driver::sys::*;

use crate::common::gpu::{Arguments, Gpu};
use crate::{arguments, ok};

const FILE: &str = "cooperative.sm_80.ptx";

fn launch(function: CUfunction, blocks: u32, threads: u32, stream: CUstream, arguments: &mut Arguments) {
    let mut pointers = arguments.pointers();
    ok!(cuLaunchCooperativeKernel(
        function,
        blocks,
        1,
        1,
        threads,
        1,
        1,
        0,
        stream,
        pointers.as_mut_ptr()
    ));
}

/// Returns the values of `a` after `rounds` steps of the kernel `grid_rounds`.
fn steps(mut a: Vec<u32>, threads: usize, rounds: u32) -> Vec<u32> {
    let n = a.len();
    for r in 0..rounds {
        let next = |t: usize| {
            let other = a[(t + threads) % n].wrapping_mul(3);
            other.wrapping_add(a[n - 1 - t]).wrapping_add(r)
        };
        a = (0..n).map(next).collect();
    }
    a
}

#[test]
fn barriers_of_a_grid() {
    let mut gpu = Gpu::new();
    let kernel = gpu.kernel(FILE, "grid_rounds");
    for (blocks, threads, rounds) in [(1, 32, 4), (16, 64, 10), (130, 96, 6)] {
        let input: Vec<u32> = (0..blocks * threads).map(|i| i * 77 + 5).collect();
        let a = gpu.upload(&input);
        let b = gpu.alloc(size_of_val(&*input));
        // Twice, because the barrier of the second launch starts from the state that the first launch left.
        let mut arguments = arguments![a, b, rounds];
        launch(kernel, blocks, threads, ptr::null_mut(), &mut arguments);
        launch(kernel, blocks, threads, ptr::null_mut(), &mut arguments);
        let threads = threads as usize;
        let expected = steps(steps(input, threads, rounds), threads, rounds);
        assert_eq!(gpu.read::<u32>(a, expected.len()), expected, "{blocks}");
    }
}

#[test]
fn grids_on_several_streams_have_separate_barriers() {
    let mut gpu = Gpu::new();
    let kernel = gpu.kernel(FILE, "grid_rounds");
    let input: Vec<u32> = (0..8 * 64).collect();
    let grids: Vec<(CUdeviceptr, CUstream)> = (0..4)
        .map(|_| {
            let a = gpu.upload(&input);
            let b = gpu.alloc(size_of_val(&*input));
            let mut stream = ptr::null_mut();
            ok!(cuStreamCreate(&raw mut stream, 1));
            launch(kernel, 8, 64, stream, &mut arguments![a, b, 50_u32]);
            (a, stream)
        })
        .collect();
    let expected = steps(input, 64, 50);
    for (a, stream) in grids {
        ok!(cuStreamSynchronize(stream));
        assert_eq!(gpu.read::<u32>(a, expected.len()), expected);
        ok!(cuStreamDestroy(stream));
    }
}

#[test]
fn other_launches_have_no_grid_barrier() {
    let mut gpu = Gpu::new();
    let kernel = gpu.kernel(FILE, "is_cooperative");
    let out = gpu.alloc(4);
    gpu.launch(kernel, [2, 1, 1], [1, 1, 1], 0, &mut arguments![out]);
    assert_eq!(gpu.read::<u32>(out, 1), [0]);
    launch(kernel, 2, 1, ptr::null_mut(), &mut arguments![out]);
    assert_eq!(gpu.read::<u32>(out, 1), [1]);
}

#[test]
fn reserved_and_kernel_shared_memory_are_separate() {
    let mut gpu = Gpu::new();
    let kernel = gpu.kernel(FILE, "reserved_shared");
    let (blocks, threads) = (20_u32, 256_u32);
    let out = gpu.alloc((blocks * 3 * threads * 4) as usize);
    let mut arguments = arguments![out];
    gpu.launch(kernel, [blocks, 1, 1], [threads, 1, 1], threads * 4, &mut arguments);
    let expected: Vec<u32> = (0..blocks * 3 * threads)
        .map(|i| {
            let (block, round, t) = (i / threads / 3, i / threads % 3, i % threads);
            let from = (t + threads - 33) % threads;
            from * 7 + round + (from + block) * 1000
        })
        .collect();
    assert_eq!(gpu.read::<u32>(out, expected.len()), expected);
}
