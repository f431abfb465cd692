//! Tests of calls during process exit: handlers registered before `cuInit` run after the driver's own, and all of their
//! calls return 4; handlers registered later still find a working driver.

use std::ffi::c_int;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use cuda_driver::sys::*;

use crate::common::{driver, in_child, say, select_driver};
use crate::{call, test_path};

unsafe extern "C" {
    fn atexit(handler: extern "C" fn()) -> c_int;
}

/// The context that the handlers use.
static CONTEXT: AtomicUsize = AtomicUsize::new(0);

/// Prints the codes of a few calls on one line.
fn print_codes(when: &str) {
    let (mut number, mut current, mut address) = (0, ptr::null_mut(), 0);
    let context = CONTEXT.load(Ordering::SeqCst) as CUcontext;
    let codes = [
        call!(cuDriverGetVersion(&raw mut number)),
        call!(cuDeviceGetCount(&raw mut number)),
        call!(cuCtxGetCurrent(&raw mut current)),
        call!(cuCtxPushCurrent(context)),
        call!(cuMemAlloc(&raw mut address, 16)),
        call!(cuMemFree(address)),
        call!(cuCtxDestroy(context)),
    ];
    let codes: Vec<String> = codes.iter().map(|code| code.0.to_string()).collect();
    say(&format!("{when}: {}", codes.join(" ")));
}

#[test]
fn calls_while_the_process_exits() {
    extern "C" fn registered_before() {
        print_codes("registered before");
    }
    extern "C" fn registered_after() {
        print_codes("registered after");
    }
    let written = in_child(&test_path!("calls_while_the_process_exits"), &[], || {
        select_driver();
        // SAFETY: the handlers use only statics.
        let registered = unsafe { atexit(registered_before) };
        assert_eq!(registered, 0);
        driver();
        let mut context = ptr::null_mut();
        crate::ok!(cuCtxCreate(&raw mut context, 0, 0));
        CONTEXT.store(context as usize, Ordering::SeqCst);
        // SAFETY: as above.
        let registered = unsafe { atexit(registered_after) };
        assert_eq!(registered, 0);
    });
    if let Some(text) = written {
        for expected in ["registered after: 0 0 0 0 0 0 0", "registered before: 4 4 4 4 4 4 4"] {
            assert!(text.contains(expected), "no `{expected}` in:\n{text}");
        }
    }
}
