//! Tests of calls on a thread without a current context after a kernel has faulted: calls that need the current context
//! return 201, not the fault's code.

use std::ffi::c_void;
use std::ptr::{self, null_mut};

use cuda_driver::sys::*;

use crate::common::gpu::Gpu;
use crate::common::{Codes, ptx};
use crate::{arguments, child, is, ok};

#[test]
fn the_missing_context_comes_before_the_fault() {
    child!("the_missing_context_comes_before_the_fault", {
        let gpu = Gpu::new();
        let mut c = Codes::new();
        let text = ptx("faults.ptx");
        let image: *const c_void = text.as_ptr().cast();
        let loaded = gpu.module("faults.ptx");
        let function = gpu.function(loaded, "fault_read");
        let out = gpu.alloc(4);
        let mut arguments = arguments![0_u64, out];
        let mut pointers = arguments.pointers();
        let pointers = pointers.as_mut_ptr();
        let no_stream: CUstream = null_mut();
        ok!(cuLaunchKernel(
            function,
            1,
            1,
            1,
            1,
            1,
            1,
            0,
            no_stream,
            pointers,
            null_mut()
        ));
        is!(c, 700, cuCtxSynchronize());
        ok!(cuCtxPopCurrent(null_mut()));

        let (mut address, mut pitch, mut bytes, mut total) = (0, 0, 0, 0);
        let (mut number, mut word, mut host) = (0, 0_u32, null_mut());
        let word: *mut c_void = (&raw mut word).cast();
        let (mut stream, mut event, mut context) = (null_mut(), null_mut(), null_mut());
        let (mut module, mut library, mut graph) = (null_mut(), null_mut(), null_mut());
        let mut found = null_mut();

        // These calls need the current context.
        is!(c, 201, cuMemAlloc(&raw mut address, 16));
        is!(c, 201, cuMemAllocPitch(&raw mut address, &raw mut pitch, 16, 16, 4));
        is!(c, 201, cuMemAllocManaged(&raw mut address, 16, 1));
        is!(c, 201, cuMemAllocAsync(&raw mut address, 16, no_stream));
        is!(c, 201, cuMemHostAlloc(&raw mut host, 16, 0));
        is!(c, 201, cuModuleLoadData(&raw mut module, image));
        is!(
            c,
            201,
            cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, no_stream, pointers, null_mut())
        );
        is!(c, 201, cuCtxSynchronize());
        is!(c, 201, cuStreamCreate(&raw mut stream, 0));
        is!(c, 201, cuEventCreate(&raw mut event, 0));
        is!(c, 201, cuCtxGetDevice(&raw mut number));
        is!(c, 201, cuMemsetD8(16, 0, 4));
        is!(c, 201, cuMemcpyHtoD(16, word, 4));
        is!(c, 201, cuMemGetInfo(&raw mut bytes, &raw mut total));
        let stack = CUlimit::CU_LIMIT_STACK_SIZE;
        is!(c, 201, cuCtxGetLimit(&raw mut bytes, stack));
        is!(c, 201, cuStreamQuery(no_stream));
        is!(c, 201, cuStreamSynchronize(no_stream));
        is!(
            c,
            201,
            cuOccupancyMaxActiveBlocksPerMultiprocessor(&raw mut number, function, 32, 0)
        );

        // These calls name an object of the context, or need a device that works.
        is!(
            c,
            700,
            cuModuleGetFunction(&raw mut found, loaded, c"fault_read".as_ptr())
        );
        let threads = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK;
        is!(c, 700, cuFuncGetAttribute(&raw mut number, threads, function));
        is!(c, 700, cuModuleUnload(loaded));
        is!(c, 700, cuCtxCreate(&raw mut context, 0, 0));
        is!(c, 700, cuDevicePrimaryCtxRetain(&raw mut context, 0));

        // These calls do not use the device.
        is!(c, 0, cuMemFree(0));
        is!(c, 1, cuMemFree(16));
        let owner = CUpointer_attribute::CU_POINTER_ATTRIBUTE_CONTEXT;
        is!(c, 1, cuPointerGetAttribute((&raw mut context).cast(), owner, 16));
        is!(c, 0, cuDeviceGetCount(&raw mut number));
        is!(c, 0, cuGraphCreate(&raw mut graph, 0));
        is!(
            c,
            0,
            cuLibraryLoadData(
                &raw mut library,
                image,
                ptr::null_mut::<CUjit_option>(),
                null_mut(),
                0,
                null_mut(),
                null_mut(),
                0
            )
        );
        is!(c, 0, cuCtxGetCurrent(&raw mut context));
        c.that(context.is_null(), || format!("{context:?} is current"));
        is!(c, 0, cuCtxSetCurrent(gpu.context));
        is!(c, 0, cuCtxPopCurrent(null_mut()));
        is!(c, 0, cuCtxPushCurrent(gpu.context));
        is!(c, 0, cuCtxPopCurrent(null_mut()));
        c.is(0, "cuCtxDestroy", gpu.destroy().0);
    });
}
