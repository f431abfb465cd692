//! Tests of calls after a kernel has faulted: most return the fault's code in every context of the process. Work that
//! is queued after the faulty kernel is not done, but stream callbacks are called, with the code. Each test runs in a
//! process of its own.

use std::ffi::c_void;
use std::ptr::{self, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use cuda_driver::sys::*;

use crate::common::gpu::Gpu;
use crate::common::{Codes, ptx};
use crate::{arguments, call, child, is, ok};

/// Queues a kernel that writes to NULL.
fn fault(gpu: &Gpu) {
    let function = gpu.kernel("faults.ptx", "fault_write");
    write(function, null_mut(), 0);
}

/// Queues a kernel that writes a word to this address.
fn write(function: CUfunction, stream: CUstream, address: CUdeviceptr) {
    let mut arguments = arguments![address, 1_u32];
    let mut pointers = arguments.pointers();
    let pointers = pointers.as_mut_ptr();
    ok!(cuLaunchKernel(
        function,
        1,
        1,
        1,
        1,
        1,
        1,
        0,
        stream,
        pointers,
        null_mut()
    ));
}

#[test]
fn all_contexts_of_the_process() {
    child!("all_contexts_of_the_process", {
        let other = Gpu::new();
        let mut c = Codes::new();
        let (mut stream, mut event, mut address) = (null_mut(), null_mut(), 0);
        ok!(cuStreamCreate(&raw mut stream, 0));
        ok!(cuEventCreate(&raw mut event, 0));
        let memory = other.alloc(64);
        let mut primary = null_mut();
        ok!(cuDevicePrimaryCtxRetain(&raw mut primary, 0));
        let gpu = Gpu::new();
        fault(&gpu);
        is!(c, 700, cuCtxSynchronize());
        for context in [other.context, primary] {
            ok!(cuCtxSetCurrent(context));
            is!(c, 700, cuMemAlloc(&raw mut address, 64));
            is!(c, 700, cuCtxSynchronize());
            let mut new = null_mut();
            is!(c, 700, cuStreamCreate(&raw mut new, 0));
        }
        ok!(cuCtxSetCurrent(other.context));
        is!(c, 700, cuMemFree(memory));
        is!(c, 700, cuStreamQuery(stream));
        is!(c, 700, cuStreamDestroy(stream));
        is!(c, 700, cuEventQuery(event));
        is!(c, 700, cuEventDestroy(event));
        is!(c, 0, cuDevicePrimaryCtxRelease(0));
        is!(c, 0, cuDevicePrimaryCtxReset(0));
        is!(c, 700, cuDevicePrimaryCtxRetain(&raw mut primary, 0));
        ok!(cuCtxSetCurrent(gpu.context));
    });
}

/// A stream with a kernel that traps.
struct Trapped {
    stream: CUstream,
    /// 64 bytes.
    memory: CUdeviceptr,
    /// A kernel that does nothing.
    right: CUfunction,
    _gpu: Gpu,
}

impl Trapped {
    /// Queues the kernel that traps.
    fn new() -> Self {
        let gpu = Gpu::new();
        let (mut stream, memory) = (null_mut(), gpu.alloc(64));
        ok!(cuStreamCreate(&raw mut stream, 1));
        let module = gpu.text(
            ".version 7.0\n.target sm_52\n.address_size 64\n.visible .entry wrong() { trap; }\n\
             .visible .entry right() { ret; }\n",
        );
        let [wrong, right] = ["wrong", "right"].map(|name| gpu.function(module, name));
        let trapped = Trapped {
            stream,
            memory,
            right,
            _gpu: gpu,
        };
        assert_eq!(trapped.launch(wrong), 0);
        trapped
    }

    /// Launches a kernel in the stream, and returns the result code.
    fn launch(&self, function: CUfunction) -> u32 {
        call!(cuLaunchKernel(
            function,
            1,
            1,
            1,
            1,
            1,
            1,
            0,
            self.stream,
            null_mut(),
            null_mut()
        ))
        .0
    }
}

#[test]
fn launches_behind_a_trap() {
    child!("launches_behind_a_trap", {
        let s = Trapped::new();
        let mut c = Codes::new();
        // On an H200, launches succeed for some 350 ms after the trap.
        let code = s.launch(s.right);
        assert!(matches!(code, 0 | 719), "{code}");
        is!(c, 719, cuStreamSynchronize(s.stream));
        assert_eq!(s.launch(s.right), 719);
        is!(c, 719, cuStreamQuery(s.stream));
        is!(c, 719, cuMemFree(s.memory));
    });
}

#[test]
fn calls_that_do_not_wait_find_a_fault() {
    child!("calls_that_do_not_wait_find_a_fault", {
        let s = Trapped::new();
        let mut c = Codes::new();
        // On an H200, launches succeed for some 350 ms after the trap, then fail.
        let (mut code, began) = (0, Instant::now());
        while code == 0 && began.elapsed() < Duration::from_secs(120) {
            code = s.launch(s.right);
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(code, 719);
        let mut address = 0;
        is!(c, 719, cuMemAlloc(&raw mut address, 64));
        is!(c, 719, cuMemsetD32Async(s.memory, 1, 16, s.stream));
        is!(c, 719, cuStreamSynchronize(s.stream));
    });
}

#[test]
fn queries() {
    child!("queries", {
        let gpu = Gpu::new();
        let mut c = Codes::new();
        let mut stream = null_mut();
        ok!(cuStreamCreate(&raw mut stream, 0));
        let memory = gpu.alloc(64);
        fault(&gpu);
        is!(c, 700, cuCtxSynchronize());

        // These calls return the fault's code.
        let (mut id, mut bytes, mut flags, mut priority) = (0, 0, 0, 0);
        let (mut context, mut linker, mut unique) = (null_mut(), null_mut(), 0);
        let mut status = CUstreamCaptureStatus(0);
        is!(c, 700, cuCtxGetLimit(&raw mut bytes, CUlimit::CU_LIMIT_STACK_SIZE));
        is!(c, 700, cuStreamGetFlags(stream, &raw mut flags));
        is!(c, 700, cuStreamGetPriority(stream, &raw mut priority));
        is!(c, 700, cuStreamGetCtx(stream, &raw mut context));
        is!(c, 700, cuStreamGetId(stream, &raw mut unique));
        is!(c, 700, cuStreamIsCapturing(stream, &raw mut status));
        is!(c, 700, cuLinkCreate(0, null_mut(), null_mut(), &raw mut linker));

        // These calls succeed.
        let (mut attached, mut active, mut number) = (null_mut(), 0, 0);
        let (mut library, mut kernel, mut kind) = (null_mut(), null_mut(), 0_u32);
        let text = ptx("vector_add.ptx");
        let (options, values): (*mut CUjit_option, *mut *mut c_void) = (null_mut(), null_mut());
        is!(c, 0, cuCtxAttach(&raw mut attached, 0));
        is!(c, 0, cuCtxDetach(gpu.context));
        is!(c, 0, cuCtxPushCurrent(gpu.context));
        is!(c, 0, cuCtxPopCurrent(&raw mut context));
        is!(c, 0, cuCtxGetDevice(&raw mut number));
        is!(c, 0, cuCtxGetFlags(&raw mut flags));
        is!(c, 0, cuCtxGetId(gpu.context, &raw mut id));
        is!(
            c,
            0,
            cuLibraryLoadData(
                &raw mut library,
                text.as_ptr().cast(),
                options,
                values,
                0,
                null_mut(),
                null_mut(),
                0
            )
        );
        is!(
            c,
            0,
            cuLibraryGetKernel(&raw mut kernel, library, c"vector_add".as_ptr())
        );
        is!(c, 0, cuDevicePrimaryCtxGetState(0, &raw mut flags, &raw mut active));
        is!(c, 0, cuDevicePrimaryCtxSetFlags(0, 0));
        let which = CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
        is!(c, 0, cuPointerGetAttribute((&raw mut kind).cast(), which, memory));
        is!(c, 0, cuDeviceGetCount(&raw mut number));
        is!(c, 0, cuInit(0));
    });
}

/// Stores one more than the status in the number that `data` points to.
unsafe extern "system" fn store_status(_: CUstream, status: CUresult, data: *mut c_void) {
    // SAFETY: the test passes numbers that outlive the callbacks.
    unsafe { &*data.cast::<AtomicU32>() }.store(status.0 + 1, Ordering::SeqCst);
}

/// Stores 1 in the number that `data` points to.
unsafe extern "system" fn store(data: *mut c_void) {
    // SAFETY: the test passes numbers that outlive the stream's work.
    unsafe { &*data.cast::<AtomicU32>() }.store(1, Ordering::SeqCst);
}

/// Waits until the number that `data` points to is not 0, for at most 120 s.
unsafe extern "system" fn wait(data: *mut c_void) {
    // SAFETY: the test passes a number that outlives the stream's work.
    let number = unsafe { &*data.cast::<AtomicU32>() };
    wait_for(number);
}

fn wait_for(number: &AtomicU32) {
    let began = Instant::now();
    while number.load(Ordering::SeqCst) == 0 && began.elapsed() < Duration::from_secs(120) {
        std::thread::yield_now();
    }
}

#[test]
fn work_behind_the_fault() {
    child!("work_behind_the_fault", {
        let gpu = Gpu::new();
        let mut c = Codes::new();
        let (mut stream, mut other, mut pinned) = (null_mut(), null_mut(), null_mut());
        ok!(cuStreamCreate(&raw mut stream, 1));
        ok!(cuStreamCreate(&raw mut other, 1));
        ok!(cuMemHostAlloc(&raw mut pinned, 4, 0));
        let word = pinned.cast::<u32>();
        // SAFETY: the allocation has 4 bytes.
        unsafe { word.write(5) };
        let device = gpu.upload(&[9_u32]);
        static GATE: AtomicU32 = AtomicU32::new(0);
        static BEFORE: AtomicU32 = AtomicU32::new(0);
        static BEHIND: AtomicU32 = AtomicU32::new(0);
        static FUNCTION: AtomicU32 = AtomicU32::new(0);
        let at = |number: &'static AtomicU32| ptr::from_ref(number).cast_mut().cast::<c_void>();
        ok!(cuStreamAddCallback(other, Some(store_status), at(&BEFORE), 0));
        ok!(cuStreamSynchronize(other));
        // Loading a kernel waits for the device, so the kernel is loaded and run first.
        let function = gpu.kernel("faults.ptx", "fault_write");
        write(function, stream, device);
        ok!(cuStreamSynchronize(stream));
        // Everything is queued before the kernel runs.
        is!(c, 0, cuLaunchHostFunc(stream, Some(wait), at(&GATE)));
        write(function, stream, 0);
        is!(c, 0, cuMemcpyDtoHAsync(pinned, device, 4, stream));
        is!(c, 0, cuLaunchHostFunc(stream, Some(store), at(&FUNCTION)));
        is!(c, 0, cuStreamAddCallback(stream, Some(store_status), at(&BEHIND), 0));
        GATE.store(1, Ordering::SeqCst);
        is!(c, 700, cuStreamSynchronize(stream));
        // The stream callback is called with the code, possibly after the wait has returned.
        wait_for(&BEHIND);
        let statuses = [&BEFORE, &BEHIND, &FUNCTION].map(|number| number.load(Ordering::SeqCst));
        c.that(statuses == [1, 701, 0], || format!("{statuses:?}"));
        // SAFETY: the copy was dropped, and nothing else uses the memory.
        let word = unsafe { word.read() };
        c.that(word == 5, || format!("{word} was copied"));
    });
}
