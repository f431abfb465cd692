//! Tests of work on a thread without a current context: streams, graphs, libraries and memory are used by their
//! handles.

use std::ffi::{CString, c_void};
use std::ptr::{self, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};

use cuda_driver::sys::*;

use crate::common::Codes;
use crate::graph_tools::{PTX, Steps, event, graph, instantiate};
use crate::{arguments, is, ok};

/// Adds one to the counter that `data` points to.
unsafe extern "system" fn count(data: *mut c_void) {
    // SAFETY: the test passes a counter that outlives the stream's work.
    unsafe { &*data.cast::<AtomicU32>() }.fetch_add(1, Ordering::SeqCst);
}

#[test]
fn work_in_a_stream() {
    let s = Steps::new();
    let mut c = Codes::new();
    let stream = s.stream;
    ok!(cuCtxPopCurrent(null_mut()));
    let calls = AtomicU32::new(0);
    let counter = (&raw const calls).cast_mut().cast();
    let (mut address, mut pool, mut status) = (0, null_mut(), CUstreamCaptureStatus(77));
    is!(c, 0, cuLaunchHostFunc(stream, Some(count), counter));
    is!(c, 0, cuMemAllocAsync(&raw mut address, 64, stream));
    is!(c, 0, cuMemsetD32Async(address, 5, 16, stream));
    is!(c, 0, cuMemcpyDtoDAsync(s.data, address, 64, stream));
    is!(c, 0, cuMemFreeAsync(address, stream));
    is!(c, 0, cuDeviceGetDefaultMemPool(&raw mut pool, 0));
    is!(c, 0, cuMemAllocFromPoolAsync(&raw mut address, 64, pool, stream));
    is!(c, 0, cuMemFreeAsync(address, stream));
    is!(c, 0, cuStreamSynchronize(stream));
    c.that(calls.load(Ordering::SeqCst) == 1, || {
        format!("the host function ran {calls:?} times, expected once")
    });
    // A capture.
    let relaxed = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    let mut captured = null_mut();
    is!(c, 0, cuStreamBeginCapture(stream, relaxed));
    is!(c, 0, cuStreamIsCapturing(stream, &raw mut status));
    c.that(status == CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE, || {
        format!("{status:?} during a capture, expected an active one")
    });
    s.step(stream, 1);
    is!(c, 0, cuStreamEndCapture(stream, &raw mut captured));
    is!(c, 0, cuGraphDestroy(captured));
    // The null stream and the per-thread stream belong to the current context.
    for stream in [null_mut(), CU_STREAM_LEGACY, CU_STREAM_PER_THREAD] {
        is!(c, 201, cuStreamQuery(stream));
        is!(c, 201, cuStreamIsCapturing(stream, &raw mut status));
        is!(c, 201, cuLaunchHostFunc(stream, Some(count), counter));
        is!(c, 201, cuMemsetD32Async(s.data, 5, 16, stream));
        is!(c, 201, cuMemAllocAsync(&raw mut address, 64, stream));
        is!(c, 201, cuMemFreeAsync(s.data, stream));
        is!(c, 201, cuStreamBeginCapture(stream, relaxed));
    }
    is!(c, 201, cuProfilerStart());
    ok!(cuCtxPushCurrent(s.gpu.context));
    c.that(s.value(0) == 5, || format!("{} in memory, expected 5", s.value(0)));
    is!(c, 0, cuStreamDestroy(stream));
}

#[test]
fn graphs() {
    let s = Steps::new();
    let mut c = Codes::new();
    let g = graph();
    s.digit(g, &[], 4);
    let exec = instantiate(g);
    let done = event();
    s.clear();
    ok!(cuCtxPopCurrent(null_mut()));
    let (mut empty, mut node, mut other) = (null_mut(), null_mut(), null_mut());
    is!(c, 0, cuGraphCreate(&raw mut empty, 0));
    is!(c, 0, cuGraphAddEmptyNode(&raw mut node, empty, ptr::null(), 0));
    is!(c, 0, cuGraphUpload(exec, s.stream));
    is!(c, 0, cuGraphLaunch(exec, s.stream));
    is!(c, 0, cuEventRecord(done, s.stream));
    is!(c, 0, cuEventSynchronize(done));
    is!(c, 201, cuGraphLaunch(exec, null_mut()));
    // An instantiation needs a context.
    is!(c, 201, cuGraphInstantiateWithFlags(&raw mut other, g, 0));
    is!(c, 0, cuGraphExecDestroy(exec));
    is!(c, 0, cuGraphDestroy(g));
    is!(c, 0, cuGraphDestroy(empty));
    is!(c, 0, cuEventDestroy(done));
    ok!(cuCtxPushCurrent(s.gpu.context));
    c.that(s.value(0) == 4, || {
        format!("{} after the launch, expected 4", s.value(0))
    });
}

#[test]
fn libraries_modules_and_memory() {
    let s = Steps::new();
    let mut c = Codes::new();
    let (mut pinned, mut address, mut flags) = (null_mut(), 0, 0);
    let module = s.gpu.text(PTX);
    let none = s.gpu.function(module, "none");
    let device = s.gpu.alloc(64);
    ok!(cuMemHostAlloc(&raw mut pinned, 64, 0));
    ok!(cuCtxPopCurrent(null_mut()));

    let text = CString::new(PTX).expect("no NUL byte in PTX");
    let (mut library, mut kernel, mut value) = (null_mut(), null_mut(), -1);
    let (options, values): (*mut CUjit_option, *mut *mut c_void) = (null_mut(), null_mut());
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
    is!(c, 0, cuLibraryGetKernel(&raw mut kernel, library, c"put".as_ptr()));
    let threads = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK;
    is!(c, 0, cuKernelGetAttribute(&raw mut value, threads, kernel, 0));
    c.that(value == 1024, || format!("{value} threads, expected 1024"));
    let (mut function, mut module_of_library) = (null_mut(), null_mut());
    is!(c, 201, cuKernelGetFunction(&raw mut function, kernel));
    is!(c, 201, cuLibraryGetModule(&raw mut module_of_library, library));
    let mut arguments = arguments![s.data, 9_u32];
    let mut pointers = arguments.pointers();
    let pointers = pointers.as_mut_ptr();
    let f: CUfunction = kernel.cast();
    is!(
        c,
        0,
        cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s.stream, pointers, null_mut())
    );
    is!(c, 0, cuStreamSynchronize(s.stream));
    is!(c, 0, cuLibraryUnload(library));

    let dynamic = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    is!(c, 0, cuFuncSetAttribute(none, dynamic, 60_000));
    is!(c, 0, cuFuncGetAttribute(&raw mut value, dynamic, none));
    c.that(value == 60_000, || {
        format!("{value} bytes of shared memory, expected 60000")
    });
    is!(c, 0, cuModuleUnload(module));

    // Without a context, page-locked memory can be freed, but not queried.
    is!(c, 201, cuMemHostGetDevicePointer(&raw mut address, pinned, 0));
    is!(c, 201, cuMemHostGetFlags(&raw mut flags, pinned));
    is!(c, 0, cuMemFreeHost(pinned));
    is!(c, 0, cuMemFree(device));
    is!(c, 0, cuMemAddressReserve(&raw mut address, 2 << 20, 0, 0, 0));
    is!(c, 0, cuMemAddressFree(address, 2 << 20));
    ok!(cuCtxPushCurrent(s.gpu.context));
    c.that(s.value(0) == 9, || {
        format!("{} after the launch, expected 9", s.value(0))
    });
}

#[test]
fn queries_of_the_current_context() {
    crate::common::driver();
    let mut c = Codes::new();
    let (mut device, mut flags, mut least, mut greatest) = (0, 0, 0, 0);
    let (mut bytes, mut cache, mut context) = (0, CUfunc_cache(0), ptr::dangling_mut());
    is!(c, 201, cuCtxGetDevice(&raw mut device));
    is!(c, 201, cuCtxGetFlags(&raw mut flags));
    is!(c, 201, cuCtxGetCacheConfig(&raw mut cache));
    is!(c, 201, cuCtxSetCacheConfig(CUfunc_cache(0)));
    is!(c, 201, cuCtxGetStreamPriorityRange(&raw mut least, &raw mut greatest));
    is!(c, 201, cuCtxGetLimit(&raw mut bytes, CUlimit::CU_LIMIT_STACK_SIZE));
    is!(c, 201, cuCtxSetLimit(CUlimit::CU_LIMIT_STACK_SIZE, 1024));
    is!(c, 201, cuCtxResetPersistingL2Cache());
    is!(c, 201, cuCtxSynchronize());
    is!(c, 201, cuCtxPopCurrent(&raw mut context));
    is!(c, 0, cuCtxGetCurrent(&raw mut context));
    c.that(context.is_null(), || format!("{context:?} is current"));
}
