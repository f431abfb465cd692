//! Faults: who sees them first, and what is left afterwards. Each in a process of its own, since faults stick to it.

use crate::common::{Context, Kernel, check, cuda, expect, in_child, ptr};
use cuda_driver_sys::*;
use std::ptr::null_mut;

/// Launches a kernel that fails, with all that is asked after it.
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
        // Nobody has asked yet: calls that do not wait know nothing of it.
        let mut more = 0;
        check(cuda.cuMemAlloc(&mut more, 64));
        // First seen by a query or a synchronisation.
        expect(cuda.cuCtxSynchronize(), code);
        // From then on every call that touches a context gives it.
        expect(cuda.cuCtxSynchronize(), code);
        expect(cuda.cuMemAlloc(&mut more, 64), code);
        expect(cuda.cuMemFree(address), code);
        expect(
            cuda.cuMemcpyHtoD(address, (&raw const number).cast(), 4),
            code,
        );
        expect(cuda.cuStreamQuery(stream), code);
        expect(cuda.cuStreamDestroy(stream), code);
        expect(cuda.cuEventQuery(event), code);
        expect(cuda.cuEventDestroy(event), code);
        let mut other = null_mut();
        expect(cuda.cuCtxCreate(&mut other, 0, 0), code);
        expect(cuda.cuDevicePrimaryCtxRetain(&mut other, 0), code);
        // These still answer.
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
            // Whatever the value is, the kernel traps or writes to NULL; make it trap.
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
            check(kernel.launch(
                1,
                1,
                null_mut(),
                &mut [ptr(&mut p), ptr(&mut offset), ptr(&mut to)],
            ));
        });
    });
}

#[test]
fn work_behind_a_fault_is_dropped_and_callbacks_are_told() {
    in_child(
        "fault::work_behind_a_fault_is_dropped_and_callbacks_are_told",
        &[],
        || {
            use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
            unsafe extern "system" fn told(
                _: CUstream,
                status: CUresult,
                data: *mut std::ffi::c_void,
            ) {
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
                    Some(told),
                    (&raw const status).cast_mut().cast(),
                    0,
                ));
                expect(cuda.cuStreamSynchronize(null_mut()), 700);
                assert_eq!((*pinned.cast::<u32>(), status.load(SeqCst)), (5, 700));
            }
        },
    );
}
