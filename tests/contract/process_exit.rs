//! Tests of calls during process exit, in exit handlers, thread-local destructors and the program's destructors.
//!
//! Handlers registered before `cuInit` run after the driver's own handler, and all of their calls return
//! `CUDA_ERROR_DEINITIALIZED` (4). Handlers registered later still find a working driver.

use std::ffi::c_int;
use std::ptr;
use std::sync::Barrier;
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
        say(&format!("cuInit, registered before: {}", call!(cuInit(0)).0));
        print_codes("registered before");
    }
    extern "C" fn registered_after() {
        say(&format!("cuInit, registered after: {}", call!(cuInit(0)).0));
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
        // SAFETY: the handlers use only statics.
        let registered = unsafe { atexit(registered_after) };
        assert_eq!(registered, 0);
    });
    if let Some(text) = written {
        for expected in [
            "cuInit, registered after: 0",
            "registered after: 0 0 0 0 0 0 0",
            "cuInit, registered before: 4",
            "registered before: 4 4 4 4 4 4 4",
        ] {
            assert!(text.contains(expected), "no `{expected}` in:\n{text}");
        }
    }
}

/// The barrier at which the exit handler of [`another_thread_while_the_process_exits`] meets the other thread, before
/// and after that thread's calls.
static MEETING: Barrier = Barrier::new(2);

#[test]
fn another_thread_while_the_process_exits() {
    extern "C" fn let_the_other_thread_call() {
        MEETING.wait();
        MEETING.wait();
    }
    let test = test_path!("another_thread_while_the_process_exits");
    let written = in_child(&test, &[], || {
        select_driver();
        // SAFETY: the handler uses only statics.
        let registered = unsafe { atexit(let_the_other_thread_call) };
        assert_eq!(registered, 0);
        driver();
        let mut context = ptr::null_mut();
        crate::ok!(cuCtxCreate(&raw mut context, 0, 0));
        CONTEXT.store(context as usize, Ordering::SeqCst);
        std::thread::spawn(|| {
            MEETING.wait();
            print_codes("another thread");
            MEETING.wait();
        });
    });
    if let Some(text) = written {
        let expected = "another thread: 4 4 4 4 4 4 4";
        assert!(text.contains(expected), "no `{expected}` in:\n{text}");
    }
}

#[test]
fn destructors_of_thread_locals() {
    struct AtEnd;
    impl Drop for AtEnd {
        fn drop(&mut self) {
            print_codes("thread local");
        }
    }
    thread_local! {
        static FIRST: AtEnd = const { AtEnd };
    }
    let written = in_child(&test_path!("destructors_of_thread_locals"), &[], || {
        driver();
        let mut context = ptr::null_mut();
        crate::ok!(cuCtxCreate(&raw mut context, 0, 0));
        CONTEXT.store(context as usize, Ordering::SeqCst);
        let thread = std::thread::spawn(|| {
            // The destructor is registered before the thread's first call of the driver, and runs after the destructors
            // that the driver registers.
            FIRST.with(|_| ());
            let mut current = ptr::null_mut();
            crate::ok!(cuCtxGetCurrent(&raw mut current));
        });
        assert!(thread.join().is_ok());
    });
    if let Some(text) = written {
        let expected = "thread local: 0 0 0 0 0 0 0";
        assert!(text.contains(expected), "no `{expected}` in:\n{text}");
    }
}

/// A destructor of the test program, which runs after all exit handlers. It calls the driver only in the child process
/// of [`calls_of_a_programs_destructor`].
#[cfg(target_os = "linux")]
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_END: extern "C" fn() = {
    extern "C" fn at_end() {
        if IN_DESTRUCTOR.load(Ordering::SeqCst) == 1 {
            print_codes("destructor of the program");
        }
    }
    at_end
};
#[cfg(target_os = "linux")]
static IN_DESTRUCTOR: AtomicUsize = AtomicUsize::new(0);

#[cfg(target_os = "linux")]
#[test]
fn calls_of_a_programs_destructor() {
    let written = in_child(&test_path!("calls_of_a_programs_destructor"), &[], || {
        driver();
        let mut context = ptr::null_mut();
        crate::ok!(cuCtxCreate(&raw mut context, 0, 0));
        CONTEXT.store(context as usize, Ordering::SeqCst);
        IN_DESTRUCTOR.store(1, Ordering::SeqCst);
    });
    if let Some(text) = written {
        let expected = "destructor of the program: 4 4 4 4 4 4 4";
        assert!(text.contains(expected), "no `{expected}` in:\n{text}");
    }
}
