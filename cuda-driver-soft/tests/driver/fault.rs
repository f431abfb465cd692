//! Tests of faults and of kernel output: the calls that report a fault, the state afterwards, and the output of a
//! process that aborts. Each test runs in a process of its own, because faults are sticky.

use crate::common::{Context, Kernel, check, cuda, expect, in_child, ptr, software};
use cuda_driver_sys::*;
use std::ptr::null_mut;

/// Launches a kernel whose fault has this code, and checks later calls.
fn fail_with(code: u32, launch: impl FnOnce()) {
    let cuda = cuda();
    let context = Context::new();
    let (mut address, mut stream, mut event, mut number) = (0, null_mut(), null_mut(), 0);
    unsafe {
        check(cuda.cuMemAlloc(&mut address, 64));
        check(cuda.cuStreamCreate(&mut stream, 0));
        check(cuda.cuEventCreate(&mut event, 0));
        let mut primary = null_mut();
        check(cuda.cuDevicePrimaryCtxRetain(&mut primary, 0));
        launch();
        std::thread::sleep(std::time::Duration::from_millis(100));
        // The fault has not been reported yet: calls that do not wait still succeed.
        let mut more = 0;
        check(cuda.cuMemAlloc(&mut more, 64));
        // The first query or synchronisation reports the fault.
        expect(cuda.cuCtxSynchronize(), code);
        // From now on, these calls return the fault's code, too.
        expect(cuda.cuCtxSynchronize(), code);
        expect(cuda.cuMemAlloc(&mut more, 64), code);
        expect(cuda.cuMemFree(address), code);
        expect(cuda.cuMemcpyHtoD(address, (&raw const number).cast(), 4), code);
        if software() {
            let (mut to, mut from, mut bytes, mut index) = (address, address, 4, 0);
            let mut attributes = CUmemcpyAttributes {
                srcAccessOrder: CUmemcpySrcAccessOrder::CU_MEMCPY_SRC_ACCESS_ORDER_STREAM,
                ..CUmemcpyAttributes::default()
            };
            let (attributes, index) = (&raw mut attributes, &raw mut index);
            let copied = cuda.cuMemcpyBatchAsync_v2(&mut to, &mut from, &mut bytes, 1, attributes, index, 1, stream);
            expect(copied, code);
        }
        expect(cuda.cuStreamQuery(stream), code);
        expect(cuda.cuStreamDestroy(stream), code);
        expect(cuda.cuEventQuery(event), code);
        expect(cuda.cuEventDestroy(event), code);
        let mut other = null_mut();
        expect(cuda.cuCtxCreate(&mut other, 0, 0), code);
        expect(cuda.cuDevicePrimaryCtxRetain(&mut other, 0), code);
        // These calls still work.
        check(cuda.cuInit(0));
        check(cuda.cuDeviceGetCount(&mut number));
        check(cuda.cuCtxGetCurrent(&mut other));
        check(cuda.cuCtxSetCurrent(other));
        check(cuda.cuCtxGetDevice(&mut number));
        let mut flags = 0;
        check(cuda.cuCtxGetFlags(&mut flags));
        let mut kind = 0u32;
        let attribute = CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
        check(cuda.cuPointerGetAttribute((&raw mut kind).cast(), attribute, address));
        check(cuda.cuDevicePrimaryCtxRelease(0));
        check(cuda.cuDevicePrimaryCtxReset(0));
    }
    drop(context);
}

#[test]
fn a_null_read() {
    in_child("fault::a_null_read", &[], || {
        fail_with(700, || {
            let kernel = Kernel::load("faults", "fault_read");
            let (mut from, mut to) = (0u64, 0u64);
            check(kernel.launch(1, 1, null_mut(), &mut [ptr(&mut from), ptr(&mut to)]));
        });
    });
}

#[test]
fn a_trap() {
    in_child("fault::a_trap", &[], || {
        fail_with(719, || {
            let kernel = Kernel::load("faults", "fault_trap");
            let (mut value, mut to) = (0u32, 0u64);
            // The first launch, with the value 0, writes to memory. The second one, with 1, traps.
            unsafe { check(cuda().cuMemAlloc(&mut to, 256)) };
            for trap in [0u32, 1] {
                value = value.max(trap);
                check(kernel.launch(1, 1, null_mut(), &mut [ptr(&mut value), ptr(&mut to)]));
            }
        });
    });
}

#[test]
fn a_misaligned_access() {
    in_child("fault::a_misaligned_access", &[], || {
        fail_with(716, || {
            let kernel = Kernel::load("faults", "fault_misaligned");
            let (mut p, mut offset, mut to) = (0u64, 1u64, 0u64);
            unsafe { check(cuda().cuMemAlloc(&mut p, 256)) };
            unsafe { check(cuda().cuMemAlloc(&mut to, 256)) };
            check(kernel.launch(1, 1, null_mut(), &mut [ptr(&mut p), ptr(&mut offset), ptr(&mut to)]));
        });
    });
}

#[test]
fn work_behind_a_fault_is_dropped_and_callbacks_get_the_code() {
    in_child(
        "fault::work_behind_a_fault_is_dropped_and_callbacks_get_the_code",
        &[],
        || {
            use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
            unsafe extern "system" fn store_status(_: CUstream, status: CUresult, data: *mut std::ffi::c_void) {
                unsafe { &*data.cast::<AtomicU32>() }.store(status.0, SeqCst);
            }
            let cuda = cuda();
            let _context = Context::new();
            let kernel = Kernel::load("faults", "fault_write");
            let (mut to, mut value, mut pinned) = (0u64, 1u32, null_mut());
            let status = AtomicU32::new(0);
            unsafe {
                check(cuda.cuMemAllocHost(&mut pinned, 4));
                pinned.cast::<u32>().write(5);
                let mut device = 0;
                check(cuda.cuMemAlloc(&mut device, 4));
                check(cuda.cuMemsetD32(device, 9, 1));
                check(kernel.launch(1, 1, null_mut(), &mut [ptr(&mut to), ptr(&mut value)]));
                check(cuda.cuMemcpyAsync(pinned as u64, device, 4, null_mut()));
                check(cuda.cuStreamAddCallback(
                    null_mut(),
                    Some(store_status),
                    (&raw const status).cast_mut().cast(),
                    0,
                ));
                expect(cuda.cuStreamSynchronize(null_mut()), 700);
                // The callback that was queued behind the faulting kernel soon receives the fault's code.
                for _ in 0..6000 {
                    if status.load(SeqCst) != 0 {
                        break;
                    }
                    std::thread::sleep(std::time::Duration::from_millis(10));
                }
                assert_eq!((*pinned.cast::<u32>(), status.load(SeqCst)), (5, 700));
            }
        },
    );
}

/// Returns the kernel `k(p)` with this body, which finds `p` in `%rd1` and the text "Hi!" in the variable `hi`.
fn kernel(body: &str) -> Kernel {
    let text = format!(
        ".version 6.4\n.target sm_52\n.address_size 64\n\
        .extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);\n\
        .global .align 1 .b8 hi[4] = {{72, 105, 33, 0}};\n\
        .visible .entry k(.param .u64 p)\n{{\n.reg .b64 %rd<8>; .reg .b32 %r<8>; .reg .pred %p<4>;\n\
        ld.param.u64 %rd1, [p];\n{body}\n}}\n"
    );
    Kernel::from_ptx(&std::ffi::CString::new(text).unwrap(), "k")
}

#[test]
fn after_a_fault_no_kernel_writes_to_returned_memory() {
    in_child(
        "fault::after_a_fault_no_kernel_writes_to_returned_memory",
        &[("CUDA_SOFT_THREADS", "4")],
        || {
            use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
            let _context = Context::new();
            let writes = kernel(
                "mov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %tid.x;\nmov.u32 %r4, %ntid.x;\n\
                mad.lo.u32 %r2, %r1, %r4, %r2;\n\
                mul.wide.u32 %rd2, %r2, 4;\nadd.u64 %rd2, %rd1, %rd2;\n\
                L: add.u32 %r3, %r3, 1;\nst.global.u32 [%rd2], %r3;\nbra L;",
            );
            let fails = kernel("trap;");
            // Host and device access these words at the same time.
            let words: Box<[AtomicU32]> = (0..64 * 1024).map(|_| AtomicU32::new(0)).collect();
            let seen = || -> Vec<u32> { words.iter().map(|w| w.load(Relaxed)).collect() };
            let mut streams = [null_mut(); 2];
            unsafe {
                for stream in &mut streams {
                    check(cuda().cuStreamCreate(stream, 1));
                }
                let mut p = words.as_ptr().cast_mut();
                check(cuda().cuMemHostRegister(p.cast(), size_of_val(&*words), 0));
                check(writes.launch(64, 1024, streams[0], &mut [ptr(&mut p)]));
                // From now on a block of the kernel is running.
                while words[0].load(Relaxed) == 0 {
                    std::thread::yield_now();
                }
                check(fails.launch(1, 1, streams[1], &mut [ptr(&mut p)]));
                expect(cuda().cuCtxSynchronize(), 719);
                let before = seen();
                std::thread::sleep(std::time::Duration::from_millis(50));
                assert!(before == seen(), "a kernel still runs after the fault was reported");
            }
        },
    );
}

#[test]
fn a_launch_of_the_largest_grid() {
    in_child("fault::a_launch_of_the_largest_grid", &[], || {
        let _context = Context::new();
        let (kernel, mut p) = (kernel("trap;"), 0u64);
        let mut params = [ptr(&mut p)];
        check(unsafe {
            cuda().cuLaunchKernel(
                kernel.function,
                i32::MAX as u32,
                65535,
                65535,
                1024,
                1,
                1,
                0,
                null_mut(),
                params.as_mut_ptr(),
                null_mut(),
            )
        });
        expect(unsafe { cuda().cuCtxSynchronize() }, 719);
    });
}

/// Runs the test with this name in a process of its own, with this standard error stream.
fn child(test: &str, stderr: impl Into<std::process::Stdio>) -> std::process::Output {
    std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env("CUDA_SOFT_LOG", "1")
        .env("FAULT_CHILD", "1")
        .stdout(std::process::Stdio::piped())
        .stderr(stderr)
        .spawn()
        .and_then(|child| child.wait_with_output())
        .unwrap()
}

#[test]
#[cfg(target_os = "linux")]
fn a_fault_is_sticky_if_standard_error_is_full() {
    if std::env::var_os("FAULT_CHILD").is_none() {
        let full = std::fs::File::options().write(true).open("/dev/full");
        let output = child("fault::a_fault_is_sticky_if_standard_error_is_full", full.unwrap());
        let ran = String::from_utf8_lossy(&output.stdout).contains("1 passed");
        assert!(output.status.success() && ran, "{output:?}");
        return;
    }
    let _context = Context::new();
    let kernel = Kernel::load("assert", "assert_below");
    let (mut data, mut n) = (0u64, 32u32);
    check(unsafe { cuda().cuMemAlloc(&mut data, 128) });
    check(unsafe { cuda().cuMemsetD32(data, 9, 32) });
    let mut limit = 5u32;
    let mut out = data;
    check(kernel.launch(
        1,
        32,
        null_mut(),
        &mut [ptr(&mut data), ptr(&mut limit), ptr(&mut out), ptr(&mut n)],
    ));
    // Neither the assertion's line nor the log's can be written.
    for _ in 0..2 {
        expect(unsafe { cuda().cuCtxSynchronize() }, 710);
    }
}

#[test]
fn kernel_output_is_not_lost_when_the_process_aborts() {
    const TEST: &str = "fault::kernel_output_is_not_lost_when_the_process_aborts";
    if std::env::var_os("FAULT_CHILD").is_none() {
        let output = child(TEST, std::process::Stdio::piped());
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(!output.status.success() && text.contains("Hi!"), "{output:?}");
        return;
    }
    let _context = Context::new();
    let prints = kernel(PRINTS);
    let mut p = 0u64;
    check(prints.launch(1, 1, null_mut(), &mut [ptr(&mut p)]));
    check(unsafe { cuda().cuCtxSynchronize() });
    // C programs end without the exit hooks of Rust's standard library; so does this one.
    std::process::abort();
}

/// The body of a kernel whose threads each print "Hi!".
const PRINTS: &str = "{\n.param .b64 f;\n.param .b64 a;\n.param .b32 r;\n\
    mov.u64 %rd2, hi;\ncvta.global.u64 %rd2, %rd2;\nmov.u64 %rd3, 0;\n\
    st.param.b64 [f], %rd2;\nst.param.b64 [a], %rd3;\ncall (r), vprintf, (f, a);\n}\nret;";

#[test]
fn the_driver_does_not_take_the_lock_of_standard_output() {
    use std::time::{Duration, Instant};
    const TEST: &str = "fault::the_driver_does_not_take_the_lock_of_standard_output";
    crate::common::in_child(TEST, &[], || {
        let _context = Context::new();
        let prints = kernel(PRINTS);
        let lock = std::io::stdout().lock();
        let mut p = 0u64;
        // The threads print 1.5 MiB. The driver does not keep so much text until a query finds that the kernel has
        // ended: the threads that run the kernel write it.
        check(prints.launch(512, 1024, null_mut(), &mut [ptr(&mut p)]));
        // A query does not run the kernel in this thread, as a wait does: the driver's own threads must run it.
        let began = Instant::now();
        while unsafe { cuda().cuStreamQuery(null_mut()) }.0 != 0 {
            assert!(began.elapsed() < Duration::from_secs(60), "the kernel has not ended");
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(lock);
    });
}
