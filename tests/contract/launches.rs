//! Tests of launches: dimensions, shared memory, arguments as an array of pointers and as a packed buffer.

use std::ffi::c_void;
use std::ptr;

use cuda_driver::sys::*;

use crate::common::Codes;
use crate::common::gpu::Gpu;
use crate::{arguments, is, ok};

#[test]
fn dimensions() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let kernel = gpu.kernel("registers.ptx", "registers");
    let out = gpu.alloc(1024 * 64);
    let mut arguments = arguments![out];
    let mut pointers = arguments.pointers();
    let mut launch = |grid: [u32; 3], block: [u32; 3], shared: u32| {
        // SAFETY: the kernel's only parameter is the address of memory for 1,024 threads; larger launches are refused.
        unsafe {
            cuLaunchKernel(
                kernel,
                grid[0],
                grid[1],
                grid[2],
                block[0],
                block[1],
                block[2],
                shared,
                ptr::null_mut(),
                pointers.as_mut_ptr(),
                ptr::null_mut(),
            )
        }
        .0
    };
    let one = [1, 1, 1];
    for axis in 0..3 {
        let mut zero = one;
        zero[axis] = 0;
        c.is(1, &format!("grid {zero:?}"), launch(zero, one, 0));
        c.is(1, &format!("block {zero:?}"), launch(one, zero, 0));
    }
    for grid in [[0x8000_0000, 1, 1], [1, 65536, 1], [1, 1, 65536]] {
        c.is(1, &format!("grid {grid:?}"), launch(grid, one, 0));
    }
    for block in [
        [1025, 1, 1],
        [4096, 1, 1],
        [1, 1025, 1],
        [1, 2048, 1],
        [1, 1, 65],
        [32, 33, 1],
        [1024, 2, 1],
    ] {
        c.is(1, &format!("block {block:?}"), launch(one, block, 0));
    }
    for block in [[1024, 1, 1], [1, 1024, 1], [16, 1, 64], [8, 8, 16]] {
        c.is(0, &format!("block {block:?}"), launch(one, block, 0));
    }
    c.is(0, "48 KiB of shared memory", launch(one, one, 49152));
    c.is(1, "48 KiB and one byte", launch(one, one, 49153));
    is!(
        c,
        0,
        cuFuncSetAttribute(
            kernel,
            CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
            65536
        )
    );
    c.is(0, "64 KiB with the attribute", launch(one, one, 65536));
    c.is(1, "64 KiB and one byte with the attribute", launch(one, one, 65537));
    is!(c, 0, cuCtxSynchronize());
}

#[test]
fn limits_of_the_kernel() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let kernel = gpu.kernel("spin.ptx", "bounded");
    let out = gpu.alloc(512);
    let mut arguments = arguments![out];
    let mut pointers = arguments.pointers();
    is!(
        c,
        0,
        cuLaunchKernel(
            kernel,
            1,
            1,
            1,
            128,
            1,
            1,
            0,
            ptr::null_mut(),
            pointers.as_mut_ptr(),
            ptr::null_mut()
        )
    );
    is!(
        c,
        1,
        cuLaunchKernel(
            kernel,
            1,
            1,
            1,
            129,
            1,
            1,
            0,
            ptr::null_mut(),
            pointers.as_mut_ptr(),
            ptr::null_mut()
        )
    );
    let expected: Vec<u32> = (0..128).collect();
    c.that(gpu.read::<u32>(out, 128) == expected, || {
        "not every thread wrote its index".to_owned()
    });
}

#[test]
fn arguments_missing() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let kernel = gpu.kernel("my_kernel.ptx", "my_kernel");
    let data = gpu.upload(&[0.0_f32; 4]);
    let mut arguments = arguments![data, 4_u64];
    let mut pointers = arguments.pointers();
    let none: *mut *mut c_void = ptr::null_mut();
    is!(
        c,
        1,
        cuLaunchKernel(kernel, 1, 1, 1, 4, 1, 1, 0, ptr::null_mut(), none, none)
    );
    is!(
        c,
        400,
        cuLaunchKernel(
            ptr::null_mut(),
            1,
            1,
            1,
            4,
            1,
            1,
            0,
            ptr::null_mut(),
            pointers.as_mut_ptr(),
            none
        )
    );
    let mut holed = [pointers[0], ptr::null_mut()];
    is!(
        c,
        1,
        cuLaunchKernel(kernel, 1, 1, 1, 4, 1, 1, 0, ptr::null_mut(), holed.as_mut_ptr(), none)
    );
    let mut packed = [data, 4];
    let mut bytes = 16_usize;
    let mut both: [*mut c_void; 5] = [
        CU_LAUNCH_PARAM_BUFFER_POINTER,
        packed.as_mut_ptr().cast(),
        CU_LAUNCH_PARAM_BUFFER_SIZE,
        (&raw mut bytes).cast(),
        CU_LAUNCH_PARAM_END,
    ];
    is!(
        c,
        1,
        cuLaunchKernel(
            kernel,
            1,
            1,
            1,
            4,
            1,
            1,
            0,
            ptr::null_mut(),
            pointers.as_mut_ptr(),
            both.as_mut_ptr()
        )
    );
    is!(c, 0, cuCtxSynchronize());
}

#[test]
fn an_extra_list_without_a_buffer() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let kernel = gpu.kernel("my_kernel.ptx", "my_kernel");
    let data = gpu.upload(&[1.0_f32; 4]);
    let mut arguments = arguments![data, 4_u64];
    let mut pointers = arguments.pointers();
    let mut packed = [data, 4];
    let mut empty = 0_usize;
    let packed: *mut c_void = packed.as_mut_ptr().cast();
    let mut end = [CU_LAUNCH_PARAM_END];
    let mut no_size = [CU_LAUNCH_PARAM_BUFFER_POINTER, packed, CU_LAUNCH_PARAM_END];
    let mut no_bytes = [
        CU_LAUNCH_PARAM_BUFFER_POINTER,
        packed,
        CU_LAUNCH_PARAM_BUFFER_SIZE,
        (&raw mut empty).cast(),
        CU_LAUNCH_PARAM_END,
    ];
    let mut unknown = [ptr::without_provenance_mut(9), packed, CU_LAUNCH_PARAM_END];
    let mut launch = |with_pointers: bool, extra: &mut [*mut c_void]| {
        let params = if with_pointers {
            pointers.as_mut_ptr()
        } else {
            ptr::null_mut()
        };
        // SAFETY: the arguments are the kernel's two parameters.
        unsafe { cuLaunchKernel(kernel, 1, 1, 1, 4, 1, 1, 0, ptr::null_mut(), params, extra.as_mut_ptr()) }.0
    };
    // Next to kernel parameters, a list without a buffer is ignored; without them, the arguments are missing.
    c.is(0, "END with parameters", launch(true, &mut end));
    c.is(1, "END alone", launch(false, &mut end));
    c.is(0, "no size, with parameters", launch(true, &mut no_size));
    c.is(1, "no size alone", launch(false, &mut no_size));
    c.is(1, "a buffer of no bytes", launch(false, &mut no_bytes));
    c.is(1, "an unknown key, with parameters", launch(true, &mut unknown));
    is!(c, 0, cuCtxSynchronize());
}

#[test]
fn packed_arguments() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let kernel = gpu.kernel("my_kernel.ptx", "my_kernel");
    let data = gpu.upload(&[1.0_f32; 4]);
    let mut packed = [data, 4, 0, 0, 0, 0, 0, 0];
    let mut launch = |bytes: usize| {
        let mut size = bytes;
        let mut extra: [*mut c_void; 5] = [
            CU_LAUNCH_PARAM_BUFFER_POINTER,
            packed.as_mut_ptr().cast(),
            CU_LAUNCH_PARAM_BUFFER_SIZE,
            (&raw mut size).cast(),
            CU_LAUNCH_PARAM_END,
        ];
        // SAFETY: the buffer has at least `bytes` bytes and holds the kernel's two parameters.
        unsafe {
            cuLaunchKernel(
                kernel,
                1,
                1,
                1,
                4,
                1,
                1,
                0,
                ptr::null_mut(),
                ptr::null_mut(),
                extra.as_mut_ptr(),
            )
        }
        .0
    };
    c.is(0, "16 bytes", launch(16));
    c.that(gpu.read::<f32>(data, 4) == [3.0; 4], || {
        "the packed launch did not write 3.0".to_owned()
    });
    c.is(701, "64 bytes for 16", launch(64));
    is!(c, 0, cuCtxSynchronize());
}

#[test]
fn registers_in_three_dimensions() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let kernel = gpu.kernel("registers.ptx", "registers");
    for (grid, block) in [
        ([1, 1, 1], [1, 1, 1]),
        ([3, 2, 4], [5, 3, 2]),
        ([2, 1, 1], [33, 1, 1]),
        ([1, 3, 1], [1, 2, 64]),
    ] {
        let threads = block.iter().product::<u32>();
        let blocks = grid.iter().product::<u32>();
        let count = (threads * blocks * 16) as usize;
        let out = gpu.alloc(count * 4);
        gpu.launch(kernel, grid, block, 0, &mut arguments![out]);
        let seen = gpu.read::<u32>(out, count);
        let mut expected = Vec::with_capacity(count);
        for b in 0..blocks {
            let place = [b % grid[0], b / grid[0] % grid[1], b / (grid[0] * grid[1])];
            for t in 0..threads {
                let lane = t % 32;
                expected.extend([t % block[0], t / block[0] % block[1], t / (block[0] * block[1])]);
                expected.extend(block);
                expected.extend(place);
                expected.extend(grid);
                expected.extend([lane, 32, lane, 0x5eed]);
            }
        }
        c.that(seen == expected, || {
            let at = seen.iter().zip(&expected).position(|(a, b)| a != b).unwrap_or(0);
            format!(
                "grid {grid:?}, block {block:?}: thread {} word {}: {} not {}",
                at / 16,
                at % 16,
                seen[at],
                expected[at]
            )
        });
        ok!(cuMemFree(out));
    }
}

#[test]
fn cooperative_launches_that_do_not_fit() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let kernel = gpu.kernel("registers.ptx", "registers");
    let out = gpu.alloc(1024 * 64);
    let mut arguments = arguments![out];
    let mut pointers = arguments.pointers();
    is!(
        c,
        0,
        cuLaunchCooperativeKernel(kernel, 1, 1, 1, 64, 1, 1, 0, ptr::null_mut(), pointers.as_mut_ptr())
    );
    is!(
        c,
        720,
        cuLaunchCooperativeKernel(
            kernel,
            1 << 20,
            1,
            1,
            1024,
            1,
            1,
            0,
            ptr::null_mut(),
            pointers.as_mut_ptr()
        )
    );
    is!(c, 0, cuCtxSynchronize());
}

#[test]
fn many_launches_in_a_row() {
    let gpu = Gpu::new();
    let kernel = gpu.kernel("globals.ptx", "write_globals");
    let module = {
        let mut module = ptr::null_mut();
        ok!(cuFuncGetModule(&raw mut module, kernel));
        module
    };
    let mut arguments = arguments![1_u32];
    let mut pointers = arguments.pointers();
    for _ in 0..2000 {
        ok!(cuLaunchKernel(
            kernel,
            1,
            1,
            1,
            1,
            1,
            1,
            0,
            ptr::null_mut(),
            pointers.as_mut_ptr(),
            ptr::null_mut()
        ));
    }
    assert_eq!(gpu.read::<u32>(gpu.global(module, "counter").0, 1), [2000]);
}
