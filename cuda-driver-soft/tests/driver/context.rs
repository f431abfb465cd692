//! Tests of contexts: the stack of a thread, queries, and the memory of a context.

use crate::common::{check, cuda, expect, in_child, software};
use cuda_driver_sys::*;
use std::ptr::{null, null_mut};

fn create() -> CUcontext {
    let mut context = null_mut();
    check(unsafe { cuda().cuCtxCreate(&mut context, 0, 0) });
    context
}

fn current() -> CUcontext {
    let mut context = null_mut();
    check(unsafe { cuda().cuCtxGetCurrent(&mut context) });
    context
}

/// Returns the code of a call that needs a current context.
fn work() -> CUresult {
    let mut address = 0;
    let code = unsafe { cuda().cuMemAlloc(&mut address, 16) };
    if code == CUresult::CUDA_SUCCESS {
        check(unsafe { cuda().cuMemFree(address) });
    }
    code
}

#[test]
fn the_stack_of_a_thread() {
    let cuda = cuda();
    unsafe {
        assert!(current().is_null());
        expect(work(), 201);
        expect(cuda.cuCtxPopCurrent(null_mut()), 201);
        expect(cuda.cuCtxPushCurrent(null_mut()), 1);
        check(cuda.cuCtxSetCurrent(null_mut()));
        let (a, b) = (create(), create());
        assert_eq!(current(), b);
        // The call replaces the top.
        check(cuda.cuCtxSetCurrent(a));
        assert_eq!(current(), a);
        // NULL pops the top: the context below becomes current.
        check(cuda.cuCtxPushCurrent(b));
        check(cuda.cuCtxSetCurrent(null_mut()));
        assert_eq!(current(), a);
        let mut popped = null_mut();
        check(cuda.cuCtxPopCurrent(&mut popped));
        assert_eq!(popped, a);
        check(cuda.cuCtxPopCurrent(null_mut()));
        assert!(current().is_null());
        check(cuda.cuCtxSetCurrent(b));
        assert_eq!(current(), b);
        check(cuda.cuCtxDestroy(b));
        assert!(current().is_null());
        check(cuda.cuCtxDestroy(a));
        expect(cuda.cuCtxGetCurrent(null_mut()), 1);
    }
}

#[test]
fn a_destroyed_context_that_stays_current() {
    let cuda = cuda();
    unsafe {
        let context = create();
        check(cuda.cuCtxPushCurrent(context));
        // The context is on the stack twice and is popped once.
        check(cuda.cuCtxDestroy(context));
        assert_eq!(current(), context);
        expect(work(), 709);
        expect(cuda.cuCtxSynchronize(), 709);
        // A second destruction returns 709 while the context is current, and another code afterwards.
        expect(cuda.cuCtxDestroy(context), 709);
        check(cuda.cuCtxPopCurrent(null_mut()));
        expect(work(), 201);
        if software() {
            // NVIDIA's driver reads freed memory here, and returns 201 or 709.
            expect(cuda.cuCtxDestroy(context), 201);
            // A destroyed context can be made current again. NVIDIA's driver ends the process when it is then popped.
            for make_current in [Library::cuCtxSetCurrent, Library::cuCtxPushCurrent] {
                check(make_current(cuda, context));
                assert_eq!(current(), context);
                expect(work(), 709);
                check(cuda.cuCtxPopCurrent(null_mut()));
            }
            // Handles that never were contexts crash NVIDIA's driver.
            expect(cuda.cuCtxSetCurrent(0x10 as CUcontext), 201);
            expect(cuda.cuCtxPushCurrent(0x10 as CUcontext), 201);
            expect(cuda.cuCtxDestroy(0x10 as CUcontext), 201);
        }
        expect(cuda.cuCtxDestroy(null_mut()), 1);
    }
}

#[test]
fn destroying_a_context_that_another_thread_uses() {
    let cuda = cuda();
    let context = create() as usize;
    std::thread::scope(|scope| {
        scope.spawn(|| unsafe {
            check(cuda.cuCtxSetCurrent(context as CUcontext));
            check(cuda.cuCtxDestroy(context as CUcontext));
        });
    });
    assert_eq!(current() as usize, context);
    expect(work(), 709);
    check(unsafe { cuda.cuCtxPopCurrent(null_mut()) });
}

#[test]
fn queries_of_a_context() {
    let cuda = cuda();
    let (mut version, mut flags, mut device, mut limit, mut id) = (0, 9, 9, 0, 0);
    let (mut least, mut greatest) = (9, 9);
    unsafe {
        expect(cuda.cuCtxGetApiVersion(null_mut(), &mut version), 201);
        expect(cuda.cuCtxGetFlags(&mut flags), 201);
        expect(cuda.cuCtxGetDevice(&mut device), 201);
        expect(cuda.cuCtxGetLimit(&mut limit, CUlimit::CU_LIMIT_STACK_SIZE), 201);
        let mut context = null_mut();
        check(cuda.cuCtxCreate_v3(&mut context, null_mut(), 0, CUctx_flags::CU_CTX_MAP_HOST.0, 0));
        check(cuda.cuCtxGetApiVersion(context, &mut version));
        check(cuda.cuCtxGetApiVersion(null_mut(), &mut version));
        assert_eq!(version, 3020);
        check(cuda.cuCtxGetFlags(&mut flags));
        assert_eq!(flags, 8);
        check(cuda.cuCtxGetDevice(&mut device));
        assert_eq!(device, 0);
        check(cuda.cuCtxGetId(context, &mut id));
        check(cuda.cuCtxGetStreamPriorityRange(&mut least, &mut greatest));
        assert_eq!((least, greatest), (0, -5));
        check(cuda.cuCtxGetLimit(&mut limit, CUlimit::CU_LIMIT_STACK_SIZE));
        assert_eq!(limit, 1024);
        check(cuda.cuCtxSetLimit(CUlimit::CU_LIMIT_STACK_SIZE, 4096));
        check(cuda.cuCtxGetLimit(&mut limit, CUlimit::CU_LIMIT_STACK_SIZE));
        assert_eq!(limit, 4096);
        expect(
            cuda.cuCtxGetLimit(&mut limit, CUlimit::CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH),
            215,
        );
        expect(cuda.cuCtxSetLimit(CUlimit::CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, 1), 215);
        expect(cuda.cuCtxGetLimit(&mut limit, CUlimit(99)), 1);
        check(cuda.cuCtxDestroy(context));
        check(cuda.cuCtxCreate_v4(&mut context, null_mut(), 0, 0));
        check(cuda.cuCtxDestroy(context));
        expect(cuda.cuCtxCreate(&mut context, 3, 0), 1);
        expect(cuda.cuCtxCreate(&mut context, 0x100, 0), 1);
        expect(cuda.cuCtxCreate(&mut context, 0, 1), 101);
        expect(cuda.cuCtxCreate(&mut context, 0, -1), 101);
        expect(cuda.cuCtxCreate(null_mut(), 0, 0), 1);
        assert!(current().is_null());
    }
}

#[test]
fn a_context_frees_its_memory() {
    // The test needs a process of its own: another test could be given the freed memory immediately.
    in_child("context::a_context_frees_its_memory", &[], || {
        let cuda = cuda();
        let context = create();
        let mut address = 0;
        unsafe {
            check(cuda.cuMemAlloc(&mut address, 1 << 20));
            // The memory is readable while another context of the device is current.
            let other = create();
            let mut word = 1u32;
            check(cuda.cuMemcpyDtoH((&raw mut word).cast(), address, 4));
            check(cuda.cuCtxDestroy(context));
            expect(cuda.cuMemcpyDtoH((&raw mut word).cast(), address, 4), 1);
            expect(cuda.cuMemFree(address), 1);
            check(cuda.cuMemcpyHtoD(address, null(), 0));
            check(cuda.cuCtxDestroy(other));
        }
    });
}
