//! Tests of calls on a thread without a current context: calls that find their context by a handle work, and calls that
//! need a current context return `CUDA_ERROR_INVALID_CONTEXT` (201).

use std::ptr;

use cuda_driver::sys::*;

use crate::common::gpu::Gpu;
use crate::common::{Codes, ptx};
use crate::{arguments, is, ok};

#[test]
fn calls_that_need_a_context() {
    crate::common::driver();
    let mut c = Codes::new();
    let (mut address, mut bytes, mut host) = (0, 0_usize, ptr::null_mut());
    let (mut stream, mut event, mut module) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
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
    is!(c, 201, cuMemGetInfo(&raw mut bytes, ptr::null_mut()));
    is!(c, 201, cuMemGetAddressRange(&raw mut address, ptr::null_mut(), 4096));
    is!(c, 201, cuStreamCreate(&raw mut stream, 0));
    is!(c, 201, cuEventCreate(&raw mut event, 0));
    is!(c, 201, cuStreamQuery(ptr::null_mut()));
    is!(c, 201, cuStreamSynchronize(ptr::null_mut()));
    is!(c, 201, cuStreamSynchronize(legacy));
    is!(c, 201, cuModuleLoadData(&raw mut module, text.as_ptr().cast()));
    is!(c, 201, cuCtxSynchronize());
    let (mut device, mut flags) = (0, 0);
    is!(c, 201, cuCtxGetDevice(&raw mut device));
    is!(c, 201, cuCtxGetFlags(&raw mut flags));
}

#[test]
fn calls_with_a_handle() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let module = gpu.module("vector_add.ptx");
    let kernel = gpu.function(module, "vector_add");
    let globals = gpu.module("globals.ptx");
    let (mut stream, mut start, mut end) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
    ok!(cuStreamCreate(
        &raw mut stream,
        CUstream_flags::CU_STREAM_NON_BLOCKING.0
    ));
    ok!(cuEventCreate(&raw mut start, 0));
    ok!(cuEventCreate(&raw mut end, 0));
    let a = gpu.upload(&[1.0_f32, 2.0, 3.0]);
    let out = gpu.alloc(12);
    ok!(cuCtxPopCurrent(ptr::null_mut()));

    let mut function = ptr::null_mut();
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
        cuLaunchKernel(
            kernel,
            1,
            1,
            1,
            32,
            1,
            1,
            0,
            stream,
            pointers.as_mut_ptr(),
            ptr::null_mut()
        )
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
            ptr::null_mut(),
            pointers.as_mut_ptr(),
            ptr::null_mut()
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
    let mut stream = ptr::null_mut();
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
            ptr::null_mut(),
            pointers.as_mut_ptr(),
            ptr::null_mut()
        )
    );
    is!(
        c,
        0,
        cuLaunchKernel(
            kernel,
            1,
            1,
            1,
            8,
            1,
            1,
            0,
            stream,
            pointers.as_mut_ptr(),
            ptr::null_mut()
        )
    );
    is!(c, 0, cuStreamSynchronize(stream));
    drop(other);
    c.that(gpu.read::<f32>(data, 8) == [3.0; 8], || {
        "the values are not those of one launch, on the stream of the function's context".to_owned()
    });
}
