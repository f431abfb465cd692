//! Tests of a device's primary context. It belongs to the whole process, so each test runs in a process of its own.

use std::ptr;

use cuda_driver::sys::*;

use crate::common::{Codes, driver};
use crate::{child, is, ok};

fn retain() -> CUcontext {
    let mut context = ptr::null_mut();
    ok!(cuDevicePrimaryCtxRetain(&raw mut context, 0));
    context
}

fn state() -> (u32, i32) {
    let (mut flags, mut active) = (99, 99);
    ok!(cuDevicePrimaryCtxGetState(0, &raw mut flags, &raw mut active));
    (flags, active)
}

#[test]
fn retain_and_release() {
    child!("retain_and_release", {
        driver();
        let mut c = Codes::new();
        c.that(state() == (0, 0), || {
            format!("(flags, active) is {:?} before the first retain", state())
        });
        is!(c, 201, cuDevicePrimaryCtxRelease(0));
        let a = retain();
        c.that(state().1 == 1, || "the context is inactive after retain".to_owned());
        let mut current = ptr::null_mut();
        ok!(cuCtxGetCurrent(&raw mut current));
        c.that(current.is_null(), || "retain made the context current".to_owned());
        c.that(retain() == a, || "the second retain returned another handle".to_owned());
        is!(c, 0, cuDevicePrimaryCtxRelease(0));
        c.that(state().1 == 1, || {
            "the context is inactive while retained once".to_owned()
        });

        is!(c, 0, cuCtxPushCurrent(a));
        let mut address = 0;
        is!(c, 0, cuMemAlloc(&raw mut address, 4));
        is!(c, 0, cuDevicePrimaryCtxRelease(0));
        c.that(state().1 == 0, || {
            "the context is active after the last release".to_owned()
        });
        // The context stays current, and calls in it fail.
        ok!(cuCtxGetCurrent(&raw mut current));
        c.that(current == a, || "the last release popped the context".to_owned());
        is!(c, 709, cuMemAlloc(&raw mut address, 4));
        is!(c, 201, cuDevicePrimaryCtxRelease(0));

        c.that(retain() == a, || "a new retain returned another handle".to_owned());
        is!(c, 0, cuMemAlloc(&raw mut address, 4));
        is!(c, 0, cuMemFree(address));
        is!(c, 0, cuDevicePrimaryCtxRelease(0));
    });
}

#[test]
fn primary_contexts_cannot_be_destroyed() {
    child!("primary_contexts_cannot_be_destroyed", {
        driver();
        let mut c = Codes::new();
        let a = retain();
        is!(c, 201, cuCtxDestroy(a));
        is!(c, 1, cuDevicePrimaryCtxRetain(ptr::null_mut(), 0));
        let mut other = ptr::null_mut();
        is!(c, 101, cuDevicePrimaryCtxRetain(&raw mut other, 9999));
        ok!(cuCtxPushCurrent(a));
        let mut attached = ptr::null_mut();
        is!(c, 0, cuCtxAttach(&raw mut attached, 0));
        is!(c, 0, cuCtxDetach(a));
        is!(c, 0, cuCtxSynchronize());
        is!(c, 0, cuDevicePrimaryCtxRelease(0));
    });
}

#[test]
fn flags() {
    child!("flags", {
        driver();
        let mut c = Codes::new();
        let blocking = CUctx_flags::CU_CTX_SCHED_BLOCKING_SYNC.0;
        is!(c, 0, cuDevicePrimaryCtxSetFlags(0, blocking));
        c.that(state() == (blocking, 0), || {
            format!("(flags, active) is {:?} after flags {blocking} were set", state())
        });
        let a = retain();
        ok!(cuCtxPushCurrent(a));
        // Flags that are set while the context is active take effect.
        let spin = CUctx_flags::CU_CTX_SCHED_SPIN.0;
        is!(c, 0, cuDevicePrimaryCtxSetFlags(0, spin));
        c.that(state() == (spin, 1), || {
            format!(
                "(flags, active) is {:?} after flags {spin} were set while active",
                state()
            )
        });
        // The context always reports that it maps host memory, a flag that cannot be set.
        let mut reported = 99;
        is!(c, 0, cuCtxGetFlags(&raw mut reported));
        c.that(reported == spin | 8, || {
            format!("the context reports flags {reported}, expected {}", spin | 8)
        });
        is!(c, 1, cuDevicePrimaryCtxSetFlags(0, 8));
        is!(c, 1, cuDevicePrimaryCtxSetFlags(0, 3));
        is!(c, 0, cuDevicePrimaryCtxSetFlags(0, 0));
        let yields = CUctx_flags::CU_CTX_SCHED_YIELD.0;
        is!(c, 0, cuDevicePrimaryCtxSetFlags(0, yields));
        c.that(state() == (yields, 1), || {
            format!("(flags, active) is {:?} after flags {yields} were set", state())
        });
        is!(c, 0, cuDevicePrimaryCtxRelease(0));
        // The last release resets the flags.
        c.that(state() == (0, 0), || {
            format!(
                "(flags, active) is {:?} after the last release, expected zeros",
                state()
            )
        });
    });
}

#[test]
fn reset() {
    child!("reset", {
        driver();
        let mut c = Codes::new();
        let a = retain();
        ok!(cuCtxPushCurrent(a));
        let mut address = 0;
        is!(c, 0, cuMemAlloc(&raw mut address, 4));
        is!(c, 0, cuDevicePrimaryCtxReset(0));
        c.that(state() == (0, 0), || {
            format!("(flags, active) is {:?} after reset", state())
        });
        is!(c, 709, cuMemAlloc(&raw mut address, 4));
        // The device and the flags can be queried, and the context can be made current, but its API version cannot be
        // queried and work in it is refused.
        let (mut device, mut flags, mut version, mut current) = (-1, 99, 0, ptr::null_mut());
        is!(c, 0, cuCtxGetDevice(&raw mut device));
        is!(c, 0, cuCtxGetFlags(&raw mut flags));
        is!(c, 201, cuCtxGetApiVersion(a, &raw mut version));
        is!(c, 709, cuCtxSynchronize());
        is!(c, 709, cuCtxDetach(a));
        is!(c, 201, cuCtxDestroy(a));
        ok!(cuCtxSetCurrent(ptr::null_mut()));
        is!(c, 0, cuCtxPushCurrent(a));
        ok!(cuCtxGetCurrent(&raw mut current));
        c.that(device == 0 && current == a, || {
            format!("device {device}, expected 0; current context {current:?}, expected {a:?}")
        });
        is!(c, 709, cuMemAlloc(&raw mut address, 4));
        // One more release, for the retain before the reset.
        is!(c, 0, cuDevicePrimaryCtxRelease(0));
        is!(c, 201, cuDevicePrimaryCtxRelease(0));
    });
}

#[test]
fn each_retained_context_has_a_new_id() {
    child!("each_retained_context_has_a_new_id", {
        driver();
        let mut c = Codes::new();
        let (mut first, mut second) = (0, 0);
        let a = retain();
        is!(c, 0, cuCtxGetId(a, &raw mut first));
        is!(c, 0, cuDevicePrimaryCtxReset(0));
        is!(c, 709, cuCtxGetId(a, &raw mut second));
        c.that(retain() == a, || "the handle changed".to_owned());
        is!(c, 0, cuCtxGetId(a, &raw mut second));
        c.that(first != second, || format!("the id is {first} both times"));
        is!(c, 0, cuDevicePrimaryCtxRelease(0));
        is!(c, 0, cuDevicePrimaryCtxRelease(0));
    });
}
