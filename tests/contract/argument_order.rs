//! Tests of the order in which arguments are checked: calls with wrong arguments on a thread without a current context.

use std::ffi::c_void;
use std::ptr::{self, null_mut};

use cuda_driver::sys::*;

use crate::common::{Codes, driver};
use crate::is;

/// Returns the legacy stream.
fn legacy() -> CUstream {
    ptr::without_provenance_mut(1)
}

#[test]
fn memory() {
    driver();
    let mut c = Codes::new();
    let (mut address, mut word, mut pointer) = (0, 0_u32, null_mut());
    let host: *mut c_void = (&raw mut word).cast();
    // The context is checked before the arguments.
    is!(c, 201, cuMemAlloc(null_mut(), 4));
    is!(c, 201, cuMemAlloc(&raw mut address, 0));
    is!(c, 201, cuMemHostAlloc(null_mut(), 4, 0));
    is!(c, 201, cuMemHostAlloc(&raw mut pointer, 4, 99));
    is!(c, 201, cuMemAllocHost(null_mut(), 4));
    is!(c, 201, cuMemAllocPitch(null_mut(), null_mut(), 4, 4, 4));
    is!(c, 201, cuMemHostRegister(null_mut(), 0, 99));
    is!(c, 201, cuMemHostGetDevicePointer(null_mut(), null_mut(), 9));
    is!(c, 201, cuMemcpyHtoD(0, ptr::null(), 0));
    is!(c, 201, cuMemcpy(0, 0, 0));
    is!(c, 201, cuMemcpy2D(ptr::null()));
    is!(c, 201, cuMemcpy3D(ptr::null()));
    is!(c, 201, cuMemsetD32(1, 0, 1));
    is!(c, 201, cuMemGetAddressRange(&raw mut address, null_mut(), 4096));
    // `cuMemAllocManaged`, and calls that need no context, check their arguments first.
    is!(c, 1, cuMemAllocManaged(&raw mut address, 4, 9));
    is!(c, 1, cuMemAllocManaged(&raw mut address, 0, 1));
    is!(c, 0, cuMemGetAddressRange(null_mut(), null_mut(), 0));
    is!(c, 0, cuMemFree(0));
    is!(c, 0, cuMemFreeHost(null_mut()));
    is!(c, 1, cuMemFree(4096));
    is!(c, 1, cuMemFreeHost(host));
    is!(c, 1, cuMemHostUnregister(null_mut()));
    is!(c, 713, cuMemHostUnregister(host));
    is!(c, 1, cuMemHostGetFlags(null_mut(), null_mut()));
}

#[test]
fn modules_and_functions() {
    driver();
    let mut c = Codes::new();
    let (mut module, mut function, mut number) = (null_mut(), null_mut(), 0);
    is!(c, 201, cuModuleLoadData(null_mut(), ptr::null()));
    is!(c, 201, cuModuleLoad(&raw mut module, ptr::null()));
    is!(c, 201, cuLinkCreate(0, null_mut(), null_mut(), null_mut()));
    is!(
        c,
        400,
        cuModuleGetFunction(&raw mut function, null_mut(), c"k".as_ptr())
    );
    is!(
        c,
        400,
        cuFuncGetAttribute(&raw mut number, CUfunction_attribute(99), null_mut())
    );
    // The output is checked before the handle.
    is!(
        c,
        1,
        cuFuncGetAttribute(null_mut(), CUfunction_attribute(0), null_mut())
    );
    is!(c, 1, cuFuncGetModule(null_mut(), null_mut()));
    is!(c, 1, cuFuncGetModule(&raw mut module, null_mut()));
    // The calls of CUDA 2.0 need a context.
    is!(c, 201, cuFuncSetBlockShape(null_mut(), 0, 0, 0));
    is!(c, 201, cuParamSetSize(null_mut(), 99_999));
    is!(c, 201, cuLaunch(null_mut()));
    // The stream is checked before the function.
    let none = null_mut();
    for stream in [none, legacy()] {
        is!(
            c,
            201,
            cuLaunchKernel(null_mut(), 0, 0, 0, 0, 0, 0, 0, stream, null_mut(), null_mut())
        );
    }
    is!(
        c,
        201,
        cuOccupancyMaxActiveBlocksPerMultiprocessor(null_mut(), null_mut(), 0, 0)
    );
}

#[test]
fn contexts_and_devices() {
    driver();
    let mut c = Codes::new();
    let (mut context, mut flags, mut active, mut value) = (null_mut(), 0, 0, 0);
    is!(c, 1, cuCtxGetDevice(null_mut()));
    is!(c, 1, cuCtxGetFlags(null_mut()));
    is!(c, 201, cuCtxGetApiVersion(null_mut(), null_mut()));
    is!(c, 201, cuCtxDetach(null_mut()));
    is!(c, 201, cuCtxAttach(null_mut(), 0));
    is!(c, 201, cuCtxAttach(&raw mut context, 1));
    is!(c, 201, cuCtxGetLimit(null_mut(), CUlimit(0)));
    is!(c, 201, cuCtxGetLimit(&raw mut value, CUlimit(99)));
    is!(c, 201, cuCtxSetLimit(CUlimit(99), 0));
    is!(c, 201, cuCtxGetCacheConfig(null_mut()));
    is!(c, 201, cuCtxEnablePeerAccess(null_mut(), 9));
    is!(c, 1, cuCtxPushCurrent(null_mut()));
    is!(c, 1, cuCtxDestroy(null_mut()));
    // The device is checked before the flags and the output.
    is!(c, 101, cuCtxCreate(null_mut(), 9999, 99));
    is!(c, 101, cuCtxCreate(&raw mut context, 3, 99));
    is!(c, 1, cuCtxCreate(null_mut(), 0, 0));
    is!(c, 1, cuCtxCreate(&raw mut context, 0xffff_0000, 0));
    is!(c, 1, cuCtxGetCurrent(null_mut()));
    is!(c, 0, cuCtxGetCurrent(&raw mut context));
    c.that(context.is_null(), || "a failed create left a context".to_owned());
    is!(c, 101, cuDevicePrimaryCtxRetain(null_mut(), 99));
    is!(c, 1, cuDevicePrimaryCtxGetState(0, null_mut(), null_mut()));
    is!(c, 1, cuDevicePrimaryCtxGetState(0, &raw mut flags, null_mut()));
    is!(c, 1, cuDevicePrimaryCtxGetState(99, null_mut(), &raw mut active));
    is!(c, 101, cuDevicePrimaryCtxGetState(99, &raw mut flags, &raw mut active));
}

#[test]
fn streams_and_events() {
    driver();
    let mut c = Codes::new();
    let (mut stream, mut event, mut priority) = (null_mut(), null_mut(), 0);
    // `cuStreamCreate` checks its arguments first, `cuEventCreate` the context.
    is!(c, 1, cuStreamCreate(&raw mut stream, 2));
    is!(c, 1, cuStreamCreate(null_mut(), 0));
    is!(c, 201, cuEventCreate(&raw mut event, 8));
    is!(c, 201, cuEventCreate(null_mut(), 0));
    is!(c, 201, cuStreamDestroy(legacy()));
    is!(c, 400, cuStreamDestroy(null_mut()));
    is!(c, 1, cuStreamGetPriority(null_mut(), null_mut()));
    is!(c, 201, cuStreamGetPriority(null_mut(), &raw mut priority));
    is!(c, 1, cuStreamIsCapturing(null_mut(), null_mut()));
    is!(c, 201, cuStreamWaitEvent(null_mut(), null_mut(), 9));
    is!(c, 201, cuEventRecord(null_mut(), null_mut()));
    is!(c, 400, cuEventQuery(null_mut()));
    is!(c, 400, cuEventDestroy(null_mut()));
    is!(c, 1, cuLaunchHostFunc(null_mut(), None, null_mut()));
}
