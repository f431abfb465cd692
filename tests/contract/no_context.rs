//! Tests of calls on a thread without a current context: calls that find their context by a handle work (streams, graphs,
//! libraries, memory), and calls that need a current context return `CUDA_ERROR_INVALID_CONTEXT` (201).

use std::ffi::{CString, c_void};
use std::ptr::{self, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};

use cuda_driver::sys::*;

use crate::common::gpu::Gpu;
use crate::common::{Codes, ptx};
use crate::graph_tools::{PTX, Steps, event, graph, instantiate};
use crate::{arguments, is, ok};

/// Adds one to the counter that `data` points to.
unsafe extern "system" fn count(data: *mut c_void) {
    // SAFETY: the test passes a counter that outlives the stream's work.
    unsafe { &*data.cast::<AtomicU32>() }.fetch_add(1, Ordering::SeqCst);
}

#[test]
fn calls_that_need_a_context() {
    crate::common::driver();
    let mut c = Codes::new();
    let (mut address, mut bytes, mut host) = (0, 0_usize, null_mut());
    let (mut stream, mut event, mut module) = (null_mut(), null_mut(), null_mut());
    let mut word = 0_u32;
    let word: *mut std::ffi::c_void = (&raw mut word).cast();
    let legacy: CUstream = ptr::without_provenance_mut(1);
    let text = ptx("vector_add.ptx");
    is!(c, 201, cuMemAlloc(&raw mut address, 4));
    is!(c, 201, cuMemHostAlloc(&raw mut host, 4, 0));
    is!(c, 201, cuMemcpyHtoD(4096, word, 4));
    is!(c, 201, cuMemcpyDtoH(word, 4096, 4));
    is!(c, 201, cuMemcpyDtoD(4096, 8192, 4));
    is!(c, 201, cuMemsetD8(4096, 0, 4));
    is!(c, 201, cuMemsetD32(4096, 0, 4));
    is!(c, 201, cuMemGetInfo(&raw mut bytes, null_mut()));
    is!(c, 201, cuMemGetAddressRange(&raw mut address, null_mut(), 4096));
    is!(c, 201, cuStreamCreate(&raw mut stream, 0));
    is!(c, 201, cuEventCreate(&raw mut event, 0));
    is!(c, 201, cuStreamQuery(null_mut()));
    is!(c, 201, cuStreamSynchronize(null_mut()));
    is!(c, 201, cuStreamSynchronize(legacy));
    is!(c, 201, cuModuleLoadData(&raw mut module, text.as_ptr().cast()));
    is!(c, 201, cuCtxSynchronize());
    let (mut device, mut flags, mut least, mut greatest) = (0, 0, 0, 0);
    let (mut cache, mut context) = (CUfunc_cache(0), ptr::dangling_mut());
    is!(c, 201, cuCtxGetDevice(&raw mut device));
    is!(c, 201, cuCtxGetFlags(&raw mut flags));
    is!(c, 201, cuCtxGetCacheConfig(&raw mut cache));
    is!(c, 201, cuCtxSetCacheConfig(CUfunc_cache(0)));
    is!(c, 201, cuCtxGetStreamPriorityRange(&raw mut least, &raw mut greatest));
    is!(c, 201, cuCtxGetLimit(&raw mut bytes, CUlimit::CU_LIMIT_STACK_SIZE));
    is!(c, 201, cuCtxSetLimit(CUlimit::CU_LIMIT_STACK_SIZE, 1024));
    is!(c, 201, cuCtxResetPersistingL2Cache());
    is!(c, 201, cuCtxPopCurrent(&raw mut context));
    is!(c, 0, cuCtxGetCurrent(&raw mut context));
    c.that(context.is_null(), || format!("{context:?} is current"));
}

#[test]
fn calls_with_a_handle() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let module = gpu.module("vector_add.ptx");
    let kernel = gpu.function(module, "vector_add");
    let globals = gpu.module("globals.ptx");
    let (mut stream, mut start, mut end) = (null_mut(), null_mut(), null_mut());
    ok!(cuStreamCreate(
        &raw mut stream,
        CUstream_flags::CU_STREAM_NON_BLOCKING.0
    ));
    ok!(cuEventCreate(&raw mut start, 0));
    ok!(cuEventCreate(&raw mut end, 0));
    let a = gpu.upload(&[1.0_f32, 2.0, 3.0]);
    let out = gpu.alloc(12);
    ok!(cuCtxPopCurrent(null_mut()));

    let mut function = null_mut();
    is!(
        c,
        0,
        cuModuleGetFunction(&raw mut function, module, c"vector_add".as_ptr())
    );
    c.that(function == kernel, || "the function's handle changed".to_owned());
    let (mut address, mut bytes) = (0, 0);
    is!(
        c,
        0,
        cuModuleGetGlobal(&raw mut address, &raw mut bytes, globals, c"pi".as_ptr())
    );
    c.that(address != 0 && bytes == 8, || {
        format!("pi at {address:#x} has {bytes} bytes, expected 8")
    });
    let mut registers = 0;
    is!(
        c,
        0,
        cuFuncGetAttribute(
            &raw mut registers,
            CUfunction_attribute::CU_FUNC_ATTRIBUTE_NUM_REGS,
            kernel
        )
    );
    c.that(registers > 0, || format!("{registers} registers"));
    is!(c, 0, cuEventRecord(start, stream));
    is!(c, 0, cuMemsetD32Async(out, 0, 3, stream));
    let mut arguments = arguments![a, a, out, 3_i32];
    let mut pointers = arguments.pointers();
    is!(
        c,
        0,
        cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, stream, pointers.as_mut_ptr(), null_mut())
    );
    let mut results = [0.0_f32; 3];
    is!(c, 0, cuMemcpyDtoHAsync(results.as_mut_ptr().cast(), out, 12, stream));
    is!(c, 0, cuEventRecord(end, stream));
    is!(c, 0, cuStreamWaitEvent(stream, start, 0));
    is!(c, 0, cuStreamSynchronize(stream));
    is!(c, 0, cuStreamQuery(stream));
    is!(c, 0, cuEventQuery(end));
    is!(c, 0, cuEventSynchronize(end));
    let mut time = -1.0;
    is!(c, 0, cuEventElapsedTime(&raw mut time, start, end));
    c.that(results == [2.0, 4.0, 6.0], || {
        format!("{results:?}, expected [2.0, 4.0, 6.0]")
    });

    // A launch uses the context of its stream. The null stream belongs to the current context, and there is none.
    is!(
        c,
        201,
        cuLaunchKernel(
            kernel,
            1,
            1,
            1,
            32,
            1,
            1,
            0,
            null_mut(),
            pointers.as_mut_ptr(),
            null_mut()
        )
    );
    let mut kind = 0_u32;
    let which = CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
    is!(c, 0, cuPointerGetAttribute((&raw mut kind).cast(), which, a));
    c.that(kind == CUmemorytype::CU_MEMORYTYPE_DEVICE.0, || {
        format!("memory type {kind}, expected that of device memory")
    });
    is!(c, 0, cuMemFree(a));
    is!(c, 0, cuMemFree(out));
    is!(c, 0, cuEventDestroy(start));
    is!(c, 0, cuEventDestroy(end));
    is!(c, 0, cuStreamDestroy(stream));
    let mut version = 0;
    is!(c, 0, cuCtxGetApiVersion(gpu.context, &raw mut version));
}

#[test]
fn a_function_launched_under_another_context() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let kernel = gpu.kernel("my_kernel.ptx", "my_kernel");
    let data = gpu.upload(&[1.0_f32; 8]);
    let mut stream = null_mut();
    ok!(cuStreamCreate(&raw mut stream, 0));
    let other = Gpu::new();
    let mut arguments = arguments![data, 8_u64];
    let mut pointers = arguments.pointers();
    is!(
        c,
        400,
        cuLaunchKernel(
            kernel,
            1,
            1,
            1,
            8,
            1,
            1,
            0,
            null_mut(),
            pointers.as_mut_ptr(),
            null_mut()
        )
    );
    is!(
        c,
        0,
        cuLaunchKernel(kernel, 1, 1, 1, 8, 1, 1, 0, stream, pointers.as_mut_ptr(), null_mut())
    );
    is!(c, 0, cuStreamSynchronize(stream));
    drop(other);
    c.that(gpu.read::<f32>(data, 8) == [3.0; 8], || {
        "the values are not those of one launch, on the stream of the function's context".to_owned()
    });
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
