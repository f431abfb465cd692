//! Tests with kernels that run until the program stops them: teardown waits for them, and the exit of the process does
//! not.

use std::ffi::c_int;
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use cuda_driver::sys::*;

use crate::common::{Codes, driver, in_child, say};
use crate::{call, child, is, ok, test_path};

/// `until` ends when the word is not 0.
const KERNELS: &std::ffi::CStr = c".version 6.4
.target sm_52
.address_size 64
.visible .entry until(.param .u64 word)
{
    .reg .pred %p;
    .reg .b32 %r;
    .reg .b64 %rd;
    ld.param.u64 %rd, [word];
L:  ld.volatile.global.u32 %r, [%rd];
    setp.eq.u32 %p, %r, 0;
    @%p bra L;
    ret;
}
.visible .entry empty() { ret; }
";

fn module() -> CUmodule {
    let mut module = ptr::null_mut();
    ok!(cuModuleLoadData(&raw mut module, KERNELS.as_ptr().cast()));
    module
}

fn launch(module: CUmodule, name: &std::ffi::CStr, word: CUdeviceptr, stream: CUstream) -> CUresult {
    let mut function = ptr::null_mut();
    ok!(cuModuleGetFunction(&raw mut function, module, name.as_ptr()));
    let mut word = word;
    let mut arguments = [(&raw mut word).cast()];
    call!(cuLaunchKernel(
        function,
        1,
        1,
        1,
        1,
        1,
        1,
        0,
        stream,
        arguments.as_mut_ptr(),
        ptr::null_mut()
    ))
}

/// The context and the module that the handler uses.
static HANDLER: [AtomicUsize; 2] = [AtomicUsize::new(0), AtomicUsize::new(0)];

#[test]
fn the_process_exits() {
    unsafe extern "C" {
        fn atexit(handler: extern "C" fn()) -> c_int;
    }
    extern "C" fn in_handler() {
        let [context, module] = [0, 1].map(|i| HANDLER[i].load(Ordering::SeqCst));
        let codes = [
            call!(cuCtxPushCurrent(context as CUcontext)),
            launch(module as CUmodule, c"empty", 0, ptr::null_mut()),
            call!(cuStreamQuery(ptr::null_mut())),
        ];
        say(&format!("in the handler: {:?}", codes.map(|code| code.0)));
    }
    let written = in_child(&test_path!("the_process_exits"), &[], || {
        driver();
        let (mut context, mut word) = (ptr::null_mut(), 0);
        ok!(cuCtxCreate(&raw mut context, 0, 0));
        ok!(cuMemAlloc(&raw mut word, 4));
        ok!(cuMemsetD8(word, 0, 4));
        let module = module();
        assert_eq!(launch(module, c"until", word, ptr::null_mut()).0, 0);
        HANDLER[0].store(context as usize, Ordering::SeqCst);
        HANDLER[1].store(module as usize, Ordering::SeqCst);
        // SAFETY: the handler uses only statics.
        assert_eq!(unsafe { atexit(in_handler) }, 0);
    });
    if let Some(text) = written {
        assert!(text.contains("in the handler: [0, 0, 600]"), "{text}");
    }
}

/// A page of the program's memory; its first word ends the kernels.
#[repr(align(4096))]
struct Page([AtomicU32; 1024]);

/// Returns true if `call` returned only after a kernel on a stream of its own in the current context had ended. A
/// watchdog ends the kernel after a while.
fn waits_for_a_kernel(call: impl FnOnce()) -> bool {
    let page: &'static Page = Box::leak(Box::new(Page([const { AtomicU32::new(0) }; 1024])));
    let (mut word, mut stream) = (0, ptr::null_mut());
    let memory = ptr::from_ref(page).cast_mut().cast();
    ok!(cuMemHostRegister(memory, size_of::<Page>(), 2));
    ok!(cuMemHostGetDevicePointer(&raw mut word, memory, 0));
    ok!(cuStreamCreate(&raw mut stream, 1));
    assert_eq!(launch(module(), c"until", word, stream).0, 0);
    let (returned, changed) = (Mutex::new(false), Condvar::new());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let guard = returned.lock().expect("no panic while locked");
            // A call that takes longer for another reason counts as waiting, so a busy machine cannot fail a test.
            drop(changed.wait_timeout_while(guard, Duration::from_millis(150), |returned| !*returned));
            page.0[0].store(1, Ordering::SeqCst);
        });
        call();
        let waited = page.0[0].load(Ordering::SeqCst) != 0;
        *returned.lock().expect("no panic while locked") = true;
        changed.notify_all();
        waited
    })
}

#[test]
fn teardown_waits() {
    child!("teardown_waits", { teardown_waits_alone() });
}

fn teardown_waits_alone() {
    driver();
    let mut c = Codes::new();
    let mut context = ptr::null_mut();
    ok!(cuCtxCreate(&raw mut context, 0, 0));
    let other = module();
    let waited = waits_for_a_kernel(|| is!(c, 0, cuModuleUnload(other)));
    c.that(waited, || "cuModuleUnload did not wait".to_owned());
    let waited = waits_for_a_kernel(|| is!(c, 0, cuCtxDestroy(context)));
    c.that(waited, || "cuCtxDestroy did not wait".to_owned());
    ok!(cuDevicePrimaryCtxRetain(&raw mut context, 0));
    ok!(cuCtxSetCurrent(context));
    let waited = waits_for_a_kernel(|| is!(c, 0, cuDevicePrimaryCtxReset(0)));
    c.that(waited, || "cuDevicePrimaryCtxReset did not wait".to_owned());
    is!(c, 0, cuDevicePrimaryCtxRelease(0));
    ok!(cuDevicePrimaryCtxRetain(&raw mut context, 0));
    ok!(cuCtxSetCurrent(context));
    let waited = waits_for_a_kernel(|| is!(c, 0, cuDevicePrimaryCtxRelease(0)));
    c.that(waited, || "cuDevicePrimaryCtxRelease did not wait".to_owned());
}
