//! Tests of kernels that fault, each in a child process: the code, the calls that return it from then on, and the calls
//! that still work. Also runs the same kernels without a fault.

use std::ptr;

use cuda_driver::sys::*;

use crate::common::gpu::{Arguments, Gpu};
use crate::common::{Codes, in_child};
use crate::{arguments, child, is, ok, test_path};

/// Launches a kernel of `faults.ptx` that must fail with `code`, and checks the codes of later calls.
fn fault(kernel: &str, threads: u32, code: u32, arguments: impl FnOnce(&Gpu, u64) -> Arguments) {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let function = gpu.kernel("faults.ptx", kernel);
    let out = gpu.alloc(4096);
    let mut stream = ptr::null_mut();
    ok!(cuStreamCreate(&raw mut stream, 0));
    let mut event = ptr::null_mut();
    ok!(cuEventCreate(&raw mut event, 0));
    let mut arguments = arguments(&gpu, out);
    let mut pointers = arguments.pointers();
    is!(
        c,
        0,
        cuLaunchKernel(
            function,
            1,
            1,
            1,
            threads,
            1,
            1,
            0,
            ptr::null_mut(),
            pointers.as_mut_ptr(),
            ptr::null_mut()
        )
    );
    is!(c, code, cuCtxSynchronize());

    // From now on every call that uses the device returns the same code.
    let (mut address, mut word) = (0, 0_u32);
    let mut other = ptr::null_mut();
    is!(c, code, cuCtxSynchronize());
    is!(c, code, cuMemAlloc(&raw mut address, 4));
    is!(c, code, cuMemcpyDtoH((&raw mut word).cast(), out, 4));
    is!(c, code, cuMemsetD32(out, 0, 1));
    is!(c, code, cuMemFree(out));
    is!(c, code, cuStreamQuery(stream));
    is!(c, code, cuStreamSynchronize(stream));
    is!(c, code, cuEventRecord(event, stream));
    is!(
        c,
        code,
        cuLaunchKernel(
            function,
            1,
            1,
            1,
            threads,
            1,
            1,
            0,
            ptr::null_mut(),
            pointers.as_mut_ptr(),
            ptr::null_mut()
        )
    );
    is!(c, code, cuStreamDestroy(stream));
    is!(c, code, cuEventDestroy(event));
    let mut created = ptr::null_mut();
    is!(c, code, cuCtxCreate(&raw mut created, 0, 0));

    // These calls still work.
    let mut number = 0;
    is!(c, 0, cuInit(0));
    is!(c, 0, cuDeviceGetCount(&raw mut number));
    is!(c, 0, cuDeviceGet(&raw mut number, 0));
    is!(c, 0, cuCtxGetCurrent(&raw mut other));
    is!(c, 0, cuCtxSetCurrent(other));
    is!(c, 0, cuCtxGetDevice(&raw mut number));
    let mut flags = 0;
    is!(c, 0, cuCtxGetFlags(&raw mut flags));
    c.is(0, "cuCtxDestroy", gpu.destroy().0);
    // The process cannot recover.
    is!(c, code, cuDevicePrimaryCtxRetain(&raw mut other, 0));
}

#[test]
fn null_read() {
    child!("null_read", {
        fault("fault_read", 1, 700, |_, out| arguments![0_u64, out])
    });
}

#[test]
fn null_write() {
    child!("null_write", {
        fault("fault_write", 1, 700, |_, _| arguments![0_u64, 1_u32])
    });
}

#[test]
fn read_of_an_invalid_address() {
    child!("read_of_an_invalid_address", {
        fault("fault_read", 1, 700, |_, out| arguments![0x7777_0000_0000_u64, out])
    });
}

#[test]
fn one_thread_of_many() {
    child!("one_thread_of_many", {
        fault("fault_one_thread", 64, 700, |_, out| {
            arguments![out, 37_u32, 1_u64 << 40, out]
        });
    });
}

#[test]
fn shared_memory_out_of_range() {
    child!("shared_memory_out_of_range", {
        fault("fault_shared", 32, 715, |_, out| arguments![1_u32 << 24, out]);
    });
}

#[test]
fn shared_memory_past_its_end() {
    // Byte 2^20 is past the kernel's shared memory, but inside the 16 MiB of the window of shared memory; byte 2^26, in
    // the test above, is outside.
    child!("shared_memory_past_its_end", {
        fault("fault_shared", 32, 700, |_, out| arguments![1_u32 << 18, out]);
    });
}

#[test]
fn misaligned() {
    child!("misaligned", {
        fault("fault_misaligned", 1, 716, |_, out| arguments![out, 2_u32, out + 64])
    });
}

/// Launches a block of 128 threads that runs `body`, in which `%p` is true in threads 0 to 63, `%one` is 1 and `%odd`
/// is the thread's number modulo 2. Checks that the launch ends with `CUDA_ERROR_ILLEGAL_INSTRUCTION` (715).
fn illegal_barrier(body: &str) {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let module = gpu.text(&format!(
        ".version 7.7\n.target sm_70\n.address_size 64\n.visible .entry k(.param .u32 n) {{\n\
         .reg .pred %p; .reg .b32 %t, %one, %odd, %count;\n\
         mov.u32 %t, %tid.x; setp.lt.u32 %p, %t, 64; ld.param.u32 %one, [n];\n\
         and.b32 %odd, %t, 1; add.u32 %count, %one, 32;\n{body}\nret; }}\n"
    ));
    let (function, none) = (gpu.function(module, "k"), ptr::null_mut());
    let mut arguments = arguments![1_u32];
    let mut pointers = arguments.pointers();
    let parameters = pointers.as_mut_ptr();
    ok!(cuLaunchKernel(
        function,
        1,
        1,
        1,
        128,
        1,
        1,
        0,
        none,
        parameters,
        ptr::null_mut()
    ));
    is!(c, 715, cuCtxSynchronize());
}

#[test]
fn a_barrier_with_and_without_a_thread_count() {
    // The count is that of all threads, and yet it is not the same barrier.
    child!("a_barrier_with_and_without_a_thread_count", {
        illegal_barrier("@%p bra A; bar.sync 1; bra D; A: bar.sync 1, 128; D:");
    });
}

#[test]
fn a_thread_count_that_is_not_a_multiple_of_32() {
    child!("a_thread_count_that_is_not_a_multiple_of_32", {
        illegal_barrier("bar.sync %one, %count;");
    });
}

#[test]
fn threads_of_a_warp_at_two_barriers() {
    child!("threads_of_a_warp_at_two_barriers", {
        illegal_barrier("barrier.sync %odd;");
    });
}

#[test]
fn trap() {
    child!("trap", { fault("fault_trap", 1, 719, |_, out| arguments![1_u32, out]) });
}

#[test]
fn a_failed_assertion() {
    let written = in_child(&test_path!("a_failed_assertion"), &[], || {
        let gpu = Gpu::new();
        let mut c = Codes::new();
        let function = gpu.kernel("assert.ptx", "assert_below");
        let input = gpu.upload(&[1_u32, 99, 3, 4, 5, 99, 7, 50]);
        let out = gpu.alloc(32);
        let mut arguments = arguments![input, 50_u32, out, 8_u32];
        let mut pointers = arguments.pointers();
        is!(
            c,
            0,
            cuLaunchKernel(
                function,
                1,
                1,
                1,
                8,
                1,
                1,
                0,
                ptr::null_mut(),
                pointers.as_mut_ptr(),
                ptr::null_mut()
            )
        );
        is!(c, 710, cuCtxSynchronize());
        is!(c, 710, cuMemFree(out));
    });
    if let Some(text) = written {
        let line = |x: u32| {
            format!("assert.cu:14: assert_below: block: [0,0,0], thread: [{x},0,0] Assertion `in[i] < limit` failed.")
        };
        let lines: Vec<&str> = text.lines().filter(|line| line.contains("Assertion `")).collect();
        assert_eq!(lines, [line(1), line(5), line(7)], "{text}");
    }
}

#[test]
fn assertions_that_hold() {
    let gpu = Gpu::new();
    let function = gpu.kernel("assert.ptx", "assert_below");
    let input = gpu.upload(&[1_u32, 2, 3, 4]);
    let out = gpu.alloc(16);
    let mut arguments = arguments![input, 50_u32, out, 4_u32];
    gpu.launch(function, [1, 1, 1], [32, 1, 1], 0, &mut arguments);
    assert_eq!(gpu.read::<u32>(out, 4), [1, 2, 3, 4]);
}

#[test]
fn valid_accesses_do_not_fault() {
    let gpu = Gpu::new();
    let data = gpu.upload(&(0..1024_u32).collect::<Vec<_>>());
    let out = gpu.alloc(4096);
    let run = |name: &str, arguments: &mut Arguments| -> u32 {
        let function = gpu.kernel("faults.ptx", name);
        gpu.launch(function, [1, 1, 1], [1, 1, 1], 0, arguments);
        gpu.read::<u32>(out, 1)[0]
    };
    assert_eq!(run("fault_read", &mut arguments![data + 400, out]), 100);
    assert_eq!(run("fault_write", &mut arguments![out, 77_u32]), 77);
    assert_eq!(
        run("fault_one_thread", &mut arguments![data, 0_u32, 1023_u64, out]),
        1023
    );
    assert_eq!(run("fault_shared", &mut arguments![0_u32, out]), 0);
    assert_eq!(run("fault_misaligned", &mut arguments![data, 8_u32, out]), 2);
    assert_eq!(run("fault_trap", &mut arguments![0_u32, out]), 1);
}
