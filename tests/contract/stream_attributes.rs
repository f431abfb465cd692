//! Tests of stream attributes, of events of a whole context, and of queries for atomic operations across the bus.

use std::ptr;

use cuda_driver::sys::*;

use crate::common::gpu::Gpu;
use crate::common::{Codes, driver_version};
use crate::{call, is, ok};

fn stream(priority: i32) -> CUstream {
    let mut stream = ptr::null_mut();
    ok!(cuStreamCreateWithPriority(&raw mut stream, 1, priority));
    stream
}

/// Returns the result code of the query, and the first four bytes of the attribute's value.
fn get(stream: CUstream, attribute: u32) -> (u32, i32) {
    let mut value = CUlaunchAttributeValue::default();
    value.cooperative = 0x7777_7777;
    let id = CUlaunchAttributeID(attribute);
    let code = call!(cuStreamGetAttribute(stream, id, &raw mut value)).0;
    // SAFETY: the member was written above, and any bits are a valid number.
    (code, unsafe { value.cooperative })
}

fn set(stream: CUstream, attribute: u32, number: i32) -> u32 {
    let mut value = CUlaunchAttributeValue::default();
    value.cooperative = number;
    let id = CUlaunchAttributeID(attribute);
    call!(cuStreamSetAttribute(stream, id, &raw const value)).0
}

#[test]
fn attributes_are_kept() {
    let _gpu = Gpu::new();
    let mut c = Codes::new();
    let (one, other) = (stream(0), stream(-3));
    const POLICY: u32 = 3;
    const PRIORITY: u32 = 8;
    const DOMAINS: u32 = 9;
    const DOMAIN: u32 = 10;
    for (attribute, at_first) in [(1, 0), (POLICY, -1), (PRIORITY, 0), (DOMAIN, 0)] {
        assert_eq!(get(one, attribute), (0, at_first), "attribute {attribute}");
    }
    // The map of domains has only two bytes: the default domain is 0, and the remote one is 1.
    assert_eq!(get(one, DOMAINS), (0, 0x7777_0100));
    for (attribute, number, code) in [
        (POLICY, 0, 1),
        (POLICY, 1, 0),
        (POLICY, 99, 1),
        (PRIORITY, 1, 0),
        (PRIORITY, 99, 0),
        (DOMAINS, 1, 0),
        (DOMAINS, 99, 1),
        (DOMAIN, 1, 0),
        (DOMAIN, 99, 1),
    ] {
        c.is(code, "cuStreamSetAttribute", set(one, attribute, number));
    }
    assert_eq!(get(one, POLICY), (0, 1));
    assert_eq!(get(one, PRIORITY), (0, 0));
    assert_eq!(get(one, DOMAINS), (0, 0x7777_0001));
    assert_eq!(get(one, DOMAIN), (0, 1));
    // Attributes that only launches have, and numbers without an attribute.
    for attribute in [0, 2, 4, 5, 6, 7, 11, 12, 13, 14, 15] {
        c.is(1, "cuStreamGetAttribute", get(one, attribute).0);
        c.is(1, "cuStreamSetAttribute", set(one, attribute, 1));
    }
    is!(c, 0, cuStreamCopyAttributes(other, one));
    assert_eq!(get(other, POLICY), (0, 1));
    let mut priority = 7;
    ok!(cuStreamGetPriority(other, &raw mut priority));
    assert_eq!(priority, 0);
    c.is(
        0,
        "cuStreamGetAttribute of the null stream",
        get(ptr::null_mut(), POLICY).0,
    );
    ok!(cuStreamDestroy(one));
    ok!(cuStreamDestroy(other));
}

#[test]
fn attributes_are_copied_in_one_context() {
    let first = Gpu::new();
    let mut c = Codes::new();
    let one = stream(0);
    let second = Gpu::new();
    let other = stream(0);
    is!(c, 1, cuStreamCopyAttributes(other, one));
    is!(c, 1, cuStreamCopyAttributes(one, other));
    is!(c, 0, cuStreamCopyAttributes(other, other));
    ok!(cuStreamDestroy(other));
    drop(second);
    ok!(cuCtxSetCurrent(first.context));
    ok!(cuStreamDestroy(one));
}

#[test]
fn access_policy_windows() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let one = stream(0);
    let memory = gpu.upload(&[0_u32; 1024]);
    let persisting = CUaccessProperty::CU_ACCESS_PROPERTY_PERSISTING;
    let streaming = CUaccessProperty::CU_ACCESS_PROPERTY_STREAMING;
    let id = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW;
    let mut longest = 0;
    let attribute = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE;
    ok!(cuDeviceGetAttribute(&raw mut longest, attribute, 0));
    let longest = longest as usize;
    for (code, bytes, ratio, misses) in [
        (0, 4096, 0.0, streaming),
        (0, 4096, 1.0, streaming),
        (1, 4096, 1.5, streaming),
        (1, 4096, -0.5, streaming),
        (1, 4096, 0.5, persisting),
        (0, 0, 0.5, streaming),
        (0, longest, 0.5, streaming),
        (1, longest + 1, 0.5, streaming),
    ] {
        let value = CUlaunchAttributeValue {
            accessPolicyWindow: CUaccessPolicyWindow {
                base_ptr: ptr::without_provenance_mut(memory as usize),
                num_bytes: bytes,
                hitRatio: ratio,
                hitProp: persisting,
                missProp: misses,
            },
        };
        is!(c, code, cuStreamSetAttribute(one, id, &raw const value));
    }
    ok!(cuStreamDestroy(one));
}

#[test]
fn events_of_a_context() {
    // CUDA 12.5 added cuCtxRecordEvent and cuCtxWaitEvent.
    if driver_version() < 12050 {
        crate::common::needs("a driver of CUDA 12.5 or later");
        return;
    }
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let (one, other) = (stream(0), stream(0));
    let mut event = ptr::null_mut();
    ok!(cuEventCreate(&raw mut event, 0));
    let mut flag = ptr::null_mut();
    ok!(cuMemHostAlloc(&raw mut flag, 4, 0));
    let flag = flag.cast::<u32>();
    // SAFETY: the flag is in this test's page-locked memory, and no work uses it yet.
    unsafe { flag.write_volatile(0) };
    let memory = gpu.upload(&[0_u32; 4]);
    ok!(cuStreamWaitValue32(one, flag as CUdeviceptr, 1, 1));
    ok!(cuMemsetD32Async(memory, 1, 1, one));
    // The event waits for all streams of the context, and later work on every stream waits for the event.
    is!(c, 0, cuCtxRecordEvent(gpu.context, event));
    is!(c, 600, cuEventQuery(event));
    is!(c, 0, cuCtxWaitEvent(gpu.context, event));
    ok!(cuMemcpyDtoDAsync(memory + 4, memory, 4, other));
    is!(c, 600, cuStreamQuery(other));
    // SAFETY: the flag is in this test's page-locked memory. The device only reads it.
    unsafe { flag.write_volatile(1) };
    ok!(cuStreamSynchronize(other));
    is!(c, 0, cuEventQuery(event));
    assert_eq!(gpu.read::<u32>(memory, 2), [1, 1]);
    is!(c, 400, cuCtxRecordEvent(gpu.context, ptr::null_mut()));
    is!(c, 400, cuCtxWaitEvent(gpu.context, ptr::null_mut()));
    is!(c, 201, cuCtxRecordEvent(ptr::null_mut(), event));
    is!(c, 201, cuCtxWaitEvent(ptr::null_mut(), event));
    let second = Gpu::new();
    is!(c, 400, cuCtxRecordEvent(second.context, event));
    is!(c, 0, cuCtxWaitEvent(second.context, event));
    drop(second);
    ok!(cuCtxSetCurrent(gpu.context));
    ok!(cuEventDestroy(event));
    ok!(cuStreamDestroy(one));
    ok!(cuStreamDestroy(other));
    ok!(cuMemFreeHost(flag.cast()));
}

#[test]
fn atomic_operations_across_the_bus() {
    if driver_version() < 13000 {
        crate::common::needs("a driver of CUDA 13.0 or later");
        return;
    }
    let _gpu = Gpu::new();
    let mut c = Codes::new();
    let operations = [CUatomicOperation(0), CUatomicOperation(1)];
    let mut can = [9_u32; 2];
    let (out, all) = (can.as_mut_ptr(), operations.as_ptr());
    is!(c, 0, cuDeviceGetHostAtomicCapabilities(out, all, 2, 0));
    assert_eq!(can, [0, 0]);
    is!(c, 1, cuDeviceGetHostAtomicCapabilities(out, all, 0, 0));
    is!(c, 101, cuDeviceGetP2PAtomicCapabilities(out, all, 2, 0, 0));
}
