//! Tests of the driver's part in cooperative groups: barriers of a grid, barriers of parts of a block in reserved
//! shared memory, and launches on a list of devices.

use std::ptr;

use cuda_driver::sys::*;

use crate::common::gpu::{Arguments, Gpu};
use crate::common::{Codes, has_architecture};
use crate::{arguments, call, is, ok};

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
    if !has_architecture(80) {
        return;
    }
    let gpu = Gpu::new();
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
    if !has_architecture(80) {
        return;
    }
    let gpu = Gpu::new();
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
    if !has_architecture(80) {
        return;
    }
    let gpu = Gpu::new();
    let kernel = gpu.kernel(FILE, "is_cooperative");
    let out = gpu.alloc(4);
    gpu.launch(kernel, [2, 1, 1], [1, 1, 1], 0, &mut arguments![out]);
    assert_eq!(gpu.read::<u32>(out, 1), [0]);
    launch(kernel, 2, 1, ptr::null_mut(), &mut arguments![out]);
    assert_eq!(gpu.read::<u32>(out, 1), [1]);
}

#[test]
fn reserved_and_kernel_shared_memory_are_separate() {
    if !has_architecture(80) {
        return;
    }
    let gpu = Gpu::new();
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

/// The kernel `add` adds `n` to a word, once per thread.
const ADD: &str = ".version 7.0\n.target sm_70\n.address_size 64\n\
    .visible .entry add(.param .u64 p, .param .u32 n) { .reg .b64 %a; .reg .b32 %r;\n\
    ld.param.u64 %a, [p]; ld.param.u32 %r, [n]; red.global.add.u32 [%a], %r; ret; }\n";

#[test]
fn lists_of_one_device() {
    if !has_architecture(70) {
        return;
    }
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let module = gpu.text(ADD);
    let kernel = gpu.function(module, "add");
    let sum = gpu.upload(&[0_u32]);
    let mut stream = ptr::null_mut();
    ok!(cuStreamCreate(&raw mut stream, 1));
    let mut arguments = arguments![sum, 3_u32];
    let mut pointers = arguments.pointers();
    let entry = CUDA_LAUNCH_PARAMS {
        function: kernel,
        gridDimX: 4,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 32,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: 0,
        hStream: stream,
        kernelParams: pointers.as_mut_ptr(),
    };
    for flags in 0..4 {
        let mut list = [entry];
        is!(c, 0, cuLaunchCooperativeKernelMultiDevice(list.as_mut_ptr(), 1, flags));
    }
    ok!(cuStreamSynchronize(stream));
    assert_eq!(gpu.read::<u32>(sum, 1), [4 * 4 * 32 * 3]);

    // Invalid lists.
    let mut second = ptr::null_mut();
    ok!(cuStreamCreate(&raw mut second, 1));
    let mut twice = [
        entry,
        CUDA_LAUNCH_PARAMS {
            hStream: second,
            ..entry
        },
    ];
    is!(c, 1, cuLaunchCooperativeKernelMultiDevice(twice.as_mut_ptr(), 1, 4));
    is!(c, 1, cuLaunchCooperativeKernelMultiDevice(twice.as_mut_ptr(), 0, 0));
    is!(c, 1, cuLaunchCooperativeKernelMultiDevice(ptr::null_mut(), 0, 0));
    is!(c, 1, cuLaunchCooperativeKernelMultiDevice(ptr::null_mut(), 1, 0));
    is!(c, 1, cuLaunchCooperativeKernelMultiDevice(twice.as_mut_ptr(), 2, 0));

    // Lists of one invalid entry.
    let (legacy, per_thread) = (ptr::without_provenance_mut(1), ptr::without_provenance_mut(2));
    let refused = [
        (
            "no arguments",
            1,
            CUDA_LAUNCH_PARAMS {
                kernelParams: ptr::null_mut(),
                ..entry
            },
        ),
        ("grid of 0", 1, CUDA_LAUNCH_PARAMS { gridDimX: 0, ..entry }),
        (
            "block of 1,025",
            1,
            CUDA_LAUNCH_PARAMS {
                blockDimX: 1025,
                ..entry
            },
        ),
        (
            "no function",
            400,
            CUDA_LAUNCH_PARAMS {
                function: ptr::null_mut(),
                ..entry
            },
        ),
        (
            "stream 0",
            400,
            CUDA_LAUNCH_PARAMS {
                hStream: ptr::null_mut(),
                ..entry
            },
        ),
        (
            "legacy stream",
            400,
            CUDA_LAUNCH_PARAMS {
                hStream: legacy,
                ..entry
            },
        ),
        (
            "per-thread stream",
            400,
            CUDA_LAUNCH_PARAMS {
                hStream: per_thread,
                gridDimX: 0,
                ..entry
            },
        ),
        (
            "shared memory of 1 MiB",
            720,
            CUDA_LAUNCH_PARAMS {
                sharedMemBytes: 1 << 20,
                ..entry
            },
        ),
        (
            "2^20 blocks",
            720,
            CUDA_LAUNCH_PARAMS {
                gridDimX: 1 << 20,
                ..entry
            },
        ),
    ];
    for (name, code, mut entry) in refused {
        c.is(
            code,
            name,
            call!(cuLaunchCooperativeKernelMultiDevice(&raw mut entry, 1, 0)).0,
        );
    }
    // A cooperative launch on one device refuses the same size of shared memory.
    let arguments = pointers.as_mut_ptr();
    is!(
        c,
        720,
        cuLaunchCooperativeKernel(kernel, 4, 1, 1, 32, 1, 1, 1 << 20, stream, arguments)
    );

    // A capture of the entry's stream forbids the launch; a capture of another stream does not.
    let mut graph = ptr::null_mut();
    let relaxed = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    ok!(cuStreamBeginCapture(stream, relaxed));
    is!(c, 900, cuLaunchCooperativeKernelMultiDevice(twice.as_mut_ptr(), 1, 0));
    is!(c, 901, cuStreamEndCapture(stream, &raw mut graph));
    ok!(cuStreamBeginCapture(second, relaxed));
    is!(c, 0, cuLaunchCooperativeKernelMultiDevice(twice.as_mut_ptr(), 1, 0));
    is!(c, 0, cuStreamEndCapture(second, &raw mut graph));
    ok!(cuGraphDestroy(graph));

    // No context needs to be current.
    let mut context = ptr::null_mut();
    ok!(cuCtxGetCurrent(&raw mut context));
    ok!(cuCtxSetCurrent(ptr::null_mut()));
    is!(c, 0, cuLaunchCooperativeKernelMultiDevice(twice.as_mut_ptr(), 1, 0));
    ok!(cuCtxSetCurrent(context));
    ok!(cuStreamSynchronize(stream));
    assert_eq!(gpu.read::<u32>(sum, 1), [6 * 4 * 32 * 3]);
    ok!(cuStreamDestroy(stream));
    ok!(cuStreamDestroy(second));
}
