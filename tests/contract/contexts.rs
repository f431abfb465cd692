//! Tests of contexts: a thread's stack, destroyed contexts, queries and limits.
//!
//! Tests that use the handle of a destroyed context run alone in a process, because another thread's new context may
//! reuse the address of the destroyed one.

use std::ptr;

use cuda_driver::sys::*;

use crate::common::{Codes, driver, driver_version, needs};
use crate::{call, child, is, ok};

fn create() -> CUcontext {
    let mut context = ptr::null_mut();
    ok!(cuCtxCreate(&raw mut context, 0, 0));
    context
}

fn current() -> CUcontext {
    let mut context = ptr::dangling_mut();
    ok!(cuCtxGetCurrent(&raw mut context));
    context
}

#[test]
fn create_makes_current_and_destroy_pops() {
    driver();
    let mut c = Codes::new();
    c.that(current().is_null(), || {
        "a context is current on a new thread".to_owned()
    });
    let a = create();
    c.that(current() == a, || "the created context is not current".to_owned());
    let b = create();
    c.that(current() == b, || "the second context is not current".to_owned());
    is!(c, 0, cuCtxDestroy(b));
    c.that(current() == a, || "the first context is not current again".to_owned());
    is!(c, 0, cuCtxDestroy(a));
    c.that(current().is_null(), || "a context is still current".to_owned());
}

#[test]
fn push_and_pop() {
    driver();
    let mut c = Codes::new();
    let (a, b) = (create(), create());
    let mut popped = ptr::null_mut();
    is!(c, 0, cuCtxPopCurrent(&raw mut popped));
    c.that(popped == b && current() == a, || {
        "pop did not return the top".to_owned()
    });
    is!(c, 0, cuCtxPushCurrent(b));
    is!(c, 0, cuCtxPushCurrent(b));
    is!(c, 0, cuCtxPopCurrent(ptr::null_mut()));
    c.that(current() == b, || {
        "the second entry of the context is missing".to_owned()
    });
    is!(c, 0, cuCtxPopCurrent(&raw mut popped));
    is!(c, 0, cuCtxPopCurrent(&raw mut popped));
    c.that(popped == a && current().is_null(), || {
        "the stack is not empty".to_owned()
    });
    is!(c, 201, cuCtxPopCurrent(&raw mut popped));
    is!(c, 201, cuCtxPopCurrent(ptr::null_mut()));
    // Destroying a context that is not current does not pop the current one.
    is!(c, 0, cuCtxPushCurrent(a));
    is!(c, 0, cuCtxDestroy(b));
    c.that(current() == a, || "destroying another context popped".to_owned());
    is!(c, 0, cuCtxDestroy(a));
}

#[test]
fn set_current() {
    driver();
    let mut c = Codes::new();
    let (a, b) = (create(), create());
    is!(c, 0, cuCtxSetCurrent(a));
    c.that(current() == a, || "set did not replace the top".to_owned());
    // The stack holds the first context twice; setting NULL pops one entry.
    is!(c, 0, cuCtxSetCurrent(ptr::null_mut()));
    c.that(current() == a, || "set NULL did not pop one entry".to_owned());
    is!(c, 0, cuCtxSetCurrent(ptr::null_mut()));
    c.that(current().is_null(), || {
        "set NULL did not leave an empty stack".to_owned()
    });
    is!(c, 0, cuCtxSetCurrent(ptr::null_mut()));
    is!(c, 0, cuCtxSetCurrent(b));
    c.that(current() == b, || "set on an empty stack did not push".to_owned());
    is!(c, 0, cuCtxDestroy(b));
    is!(c, 0, cuCtxDestroy(a));
}

#[test]
fn destroyed_twice_while_another_is_current() {
    child!("destroyed_twice_while_another_is_current", {
        driver();
        let mut c = Codes::new();
        let first = create();
        let second = create();
        is!(c, 0, cuCtxDestroy(first));
        is!(c, 709, cuCtxDestroy(first));
        is!(c, 0, cuCtxDestroy(second));
    });
}

#[test]
fn destroyed_while_on_the_stack_twice() {
    child!("destroyed_while_on_the_stack_twice", {
        driver();
        let mut c = Codes::new();
        let a = create();
        ok!(cuCtxPushCurrent(a));
        is!(c, 0, cuCtxDestroy(a));
        // Only the top entry was popped; the stale handle below it stays current.
        c.that(current() == a, || "the stale handle is not current".to_owned());
        let mut address = 0;
        is!(c, 709, cuMemAlloc(&raw mut address, 4));
        is!(c, 709, cuCtxSynchronize());
        is!(c, 709, cuMemFree(0));
        is!(c, 709, cuMemFreeHost(ptr::null_mut()));
        is!(c, 709, cuCtxDetach(a));
        // Destroying the context again returns the same code while its handle is current.
        is!(c, 709, cuCtxDestroy(a));
        // Queries of the destroyed context still work.
        let (mut device, mut flags) = (-1, 77);
        is!(c, 0, cuCtxGetDevice(&raw mut device));
        c.that(device == 0, || format!("device {device}"));
        is!(c, 0, cuCtxGetFlags(&raw mut flags));
        is!(c, 0, cuCtxPopCurrent(ptr::null_mut()));
        c.that(current().is_null(), || "the stale handle was not popped".to_owned());
        is!(c, 201, cuMemAlloc(&raw mut address, 4));
        // NVIDIA's driver reads freed memory here, and returns either code.
        let code = call!(cuCtxDestroy(a)).0;
        c.that(matches!(code, 201 | 709), || {
            format!("cuCtxDestroy of a destroyed context: {code}")
        });
    });
}

#[test]
fn calls_with_the_handle_of_a_destroyed_context() {
    child!("calls_with_the_handle_of_a_destroyed_context", {
        driver();
        let mut c = Codes::new();
        let a = create();
        ok!(cuCtxPushCurrent(a));
        ok!(cuCtxDestroy(a));
        let (mut id, mut version) = (0, 0);
        is!(c, 709, cuCtxGetId(a, &raw mut id));
        is!(c, 201, cuCtxGetApiVersion(a, &raw mut version));
        if driver_version() >= 13000 {
            let mut device = -1;
            is!(c, 0, cuCtxGetDevice_v2(&raw mut device, a));
            c.that(device == 0, || format!("device {device}"));
            is!(c, 709, cuCtxSynchronize_v2(a));
        } else {
            needs("a driver of CUDA 13.0 or later for calls with a context's handle");
        }
        is!(c, 0, cuCtxPopCurrent(ptr::null_mut()));
    });
}

#[test]
fn flags() {
    driver();
    let mut c = Codes::new();
    let mut a = ptr::null_mut();
    let mut flags = 77;
    // Flags at creation: `CU_CTX_USER_COREDUMP_ENABLE` (64) is reported as `CU_CTX_COREDUMP_ENABLE` (32).
    for (asked, reported) in [(0, 0), (4, 4), (8, 8), (16, 16), (32, 32), (64, 32), (128, 128)] {
        is!(c, 0, cuCtxCreate(&raw mut a, asked, 0));
        is!(c, 0, cuCtxGetFlags(&raw mut flags));
        c.that(flags == reported, || format!("created with {asked}: {flags}"));
        ok!(cuCtxDestroy(a));
    }
    for bad in [3, 5, 6, 7, 256] {
        is!(c, 1, cuCtxCreate(&raw mut a, bad, 0));
    }
    // Some flags cannot be changed afterwards.
    is!(c, 0, cuCtxCreate(&raw mut a, 0, 0));
    for (asked, reported) in [(4, 4), (8, 0), (16, 16), (32, 0), (64, 0), (128, 128)] {
        is!(c, 0, cuCtxSetFlags(asked));
        is!(c, 0, cuCtxGetFlags(&raw mut flags));
        c.that(flags == reported, || format!("set to {asked}: {flags}"));
    }
    is!(c, 1, cuCtxSetFlags(3));
    is!(c, 0, cuCtxDestroy(a));
}

#[test]
fn peers_on_one_device() {
    driver();
    let mut c = Codes::new();
    let (b, a) = (create(), create());
    is!(c, 217, cuCtxEnablePeerAccess(a, 0));
    is!(c, 217, cuCtxEnablePeerAccess(b, 0));
    is!(c, 1, cuCtxEnablePeerAccess(b, 1));
    is!(c, 201, cuCtxEnablePeerAccess(ptr::null_mut(), 0));
    is!(c, 705, cuCtxDisablePeerAccess(a));
    is!(c, 705, cuCtxDisablePeerAccess(b));
    let mut can = 7;
    is!(c, 0, cuDeviceCanAccessPeer(&raw mut can, 0, 0));
    c.that(can == 0, || "a device is its own peer".to_owned());
    is!(c, 0, cuCtxDestroy(a));
    is!(c, 0, cuCtxDestroy(b));
}

#[test]
fn destroyed_on_another_thread() {
    child!("destroyed_on_another_thread", {
        driver();
        let mut c = Codes::new();
        let a = create();
        let handle = a as usize;
        std::thread::spawn(move || {
            let mut c = Codes::new();
            is!(c, 0, cuCtxDestroy(handle as CUcontext));
        })
        .join()
        .expect("the other thread's calls");
        c.that(current() == a, || "the stale handle is not current".to_owned());
        let mut address = 0;
        is!(c, 709, cuMemAlloc(&raw mut address, 4));
        is!(c, 0, cuCtxPopCurrent(ptr::null_mut()));
    });
}

#[test]
fn threads_have_stacks_of_their_own() {
    driver();
    let mut c = Codes::new();
    let a = create();
    let handle = a as usize;
    std::thread::spawn(move || {
        let mut c = Codes::new();
        c.that(current().is_null(), || "a new thread has a context".to_owned());
        is!(c, 0, cuCtxPushCurrent(handle as CUcontext));
        c.that(current() as usize == handle, || {
            "the context was not pushed on this thread".to_owned()
        });
    })
    .join()
    .expect("the other thread's calls");
    c.that(current() == a, || "another thread changed this one's stack".to_owned());
    is!(c, 0, cuCtxDestroy(a));
}

#[test]
fn queries() {
    driver();
    let mut c = Codes::new();
    let (mut device, mut version, mut flags) = (-1, 0, 99);
    is!(c, 201, cuCtxGetDevice(&raw mut device));
    let mut a = ptr::null_mut();
    is!(c, 0, cuCtxCreate(&raw mut a, CUctx_flags::CU_CTX_SCHED_YIELD.0, 0));
    is!(c, 0, cuCtxGetDevice(&raw mut device));
    c.that(device == 0, || format!("device {device}"));
    is!(c, 1, cuCtxGetDevice(ptr::null_mut()));
    is!(c, 0, cuCtxGetApiVersion(a, &raw mut version));
    c.that(version == 3020, || format!("API version {version}"));
    is!(c, 0, cuCtxGetApiVersion(ptr::null_mut(), &raw mut version));
    is!(c, 0, cuCtxGetFlags(&raw mut flags));
    c.that(flags & 7 == CUctx_flags::CU_CTX_SCHED_YIELD.0, || {
        format!("flags {flags}")
    });
    let (mut least, mut greatest) = (9, 9);
    is!(c, 0, cuCtxGetStreamPriorityRange(&raw mut least, &raw mut greatest));
    c.that(least == 0 && greatest <= 0, || {
        format!("priorities {least} to {greatest}")
    });
    is!(c, 0, cuCtxSynchronize());
    is!(c, 0, cuCtxDestroy(a));
}

#[test]
fn limits() {
    driver();
    let mut c = Codes::new();
    let a = create();
    let mut value = 0;
    is!(c, 0, cuCtxGetLimit(&raw mut value, CUlimit::CU_LIMIT_STACK_SIZE));
    c.that(value >= 512, || format!("a stack of {value} bytes"));
    is!(c, 0, cuCtxSetLimit(CUlimit::CU_LIMIT_STACK_SIZE, 4096));
    is!(c, 0, cuCtxGetLimit(&raw mut value, CUlimit::CU_LIMIT_STACK_SIZE));
    c.that(value >= 4096, || format!("a stack of {value} bytes after 4096 was set"));
    is!(c, 1, cuCtxGetLimit(ptr::null_mut(), CUlimit::CU_LIMIT_STACK_SIZE));
    is!(c, 215, cuCtxSetLimit(CUlimit::CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, 2));
    is!(c, 0, cuCtxDestroy(a));
}
