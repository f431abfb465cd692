//! Tests of a context's usage count: `cuCtxAttach` and `cuCtxDetach`.

use std::ptr;

use cuda_driver::sys::*;

use crate::common::{Codes, driver};
use crate::{is, ok};

#[test]
fn attach_and_detach() {
    driver();
    let mut c = Codes::new();
    let (mut a, mut attached) = (ptr::null_mut(), ptr::null_mut());
    is!(c, 201, cuCtxAttach(&raw mut attached, 0));
    ok!(cuCtxCreate(&raw mut a, 0, 0));
    is!(c, 0, cuCtxAttach(&raw mut attached, 0));
    c.that(attached == a, || "attach returned another handle".to_owned());
    is!(c, 1, cuCtxAttach(&raw mut attached, 1));
    is!(c, 1, cuCtxAttach(ptr::null_mut(), 0));

    let (mut current, mut address) = (ptr::null_mut(), 0);
    is!(c, 0, cuCtxDetach(a)); // 2 -> 1
    ok!(cuCtxGetCurrent(&raw mut current));
    c.that(current == a, || {
        "detached at count 2, the context must stay current".to_owned()
    });
    is!(c, 0, cuMemAlloc(&raw mut address, 4));
    is!(c, 0, cuCtxDetach(a)); // 1 -> 0: destroyed and popped
    ok!(cuCtxGetCurrent(&raw mut current));
    c.that(current.is_null(), || {
        "detached at count 1, the context must be popped".to_owned()
    });
    is!(c, 201, cuMemAlloc(&raw mut address, 4));
    is!(c, 201, cuCtxDetach(a));
}

#[test]
fn only_the_current_context_can_be_detached() {
    driver();
    let mut c = Codes::new();
    let (mut a, mut b) = (ptr::null_mut(), ptr::null_mut());
    ok!(cuCtxCreate(&raw mut a, 0, 0));
    ok!(cuCtxCreate(&raw mut b, 0, 0));
    is!(c, 201, cuCtxDetach(a));
    ok!(cuCtxPopCurrent(ptr::null_mut()));
    ok!(cuCtxPopCurrent(ptr::null_mut()));
    is!(c, 201, cuCtxDetach(b));
    is!(c, 0, cuCtxDestroy(a));
    is!(c, 0, cuCtxDestroy(b));
}

#[test]
fn destroy_ignores_the_count() {
    driver();
    let mut c = Codes::new();
    let (mut a, mut again) = (ptr::null_mut(), ptr::null_mut());
    ok!(cuCtxCreate(&raw mut a, 0, 0));
    ok!(cuCtxAttach(&raw mut again, 0));
    ok!(cuCtxAttach(&raw mut again, 0));
    is!(c, 0, cuCtxDestroy(a));
    is!(c, 201, cuCtxDetach(a));
}

#[test]
fn attach_on_another_thread() {
    driver();
    let mut c = Codes::new();
    let mut a = ptr::null_mut();
    ok!(cuCtxCreate(&raw mut a, 0, 0));
    let handle = a as usize;
    std::thread::spawn(move || {
        let mut c = Codes::new();
        let mut again = ptr::null_mut();
        is!(c, 0, cuCtxPushCurrent(handle as CUcontext));
        is!(c, 0, cuCtxAttach(&raw mut again, 0));
        is!(c, 0, cuCtxDetach(again));
        is!(c, 0, cuCtxPopCurrent(ptr::null_mut()));
    })
    .join()
    .expect("the other thread's calls");
    is!(c, 0, cuCtxSynchronize());
    is!(c, 0, cuCtxDestroy(a));
}
