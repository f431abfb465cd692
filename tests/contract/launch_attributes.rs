//! Tests of launch attributes, and of events that a launch records.

use std::ptr;

use cuda_driver::sys::*;

use crate::common::gpu::{Gpu, Hold};
use crate::common::{Codes, driver_version};
use crate::{arguments, call, is, ok};

/// Returns an attribute with `number` in the first four bytes of its value.
fn attribute(id: u32, number: i32) -> CUlaunchAttribute {
    let mut attribute = CUlaunchAttribute {
        id: CUlaunchAttributeID(id),
        ..Default::default()
    };
    attribute.value.cooperative = number;
    attribute
}

/// Launches four blocks of 32 threads, which all write `value`, with one attribute. Returns the result code.
fn launch(
    write: CUfunction,
    stream: CUstream,
    address: CUdeviceptr,
    value: u32,
    mut attribute: CUlaunchAttribute,
) -> u32 {
    let config = CUlaunchConfig {
        gridDimX: 4,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 32,
        blockDimY: 1,
        blockDimZ: 1,
        hStream: stream,
        attrs: &raw mut attribute,
        numAttrs: 1,
        ..Default::default()
    };
    let mut arguments = arguments![address, value];
    let mut pointers = arguments.pointers();
    let pointers = pointers.as_mut_ptr();
    call!(cuLaunchKernelEx(&raw const config, write, pointers, ptr::null_mut())).0
}

#[test]
fn accepted_attributes() {
    if driver_version() < 13000 {
        crate::common::needs("a driver of CUDA 13");
        return;
    }
    let gpu = Gpu::new();
    let write = gpu.kernel("faults.ptx", "fault_write");
    let mut c = Codes::new();
    let (memory, mut stream) = (gpu.alloc(4), ptr::null_mut());
    ok!(cuStreamCreate(&raw mut stream, 1));
    // Attribute number, then the codes for the values 0, 1 and 2.
    for (id, codes) in [
        (0, [0, 0, 0]),
        (1, [0, 0, 0]),
        (3, [1, 1, 1]),
        (5, [0, 0, 0]),
        (6, [0, 0, 0]),
        (8, [0, 0, 0]),
        (9, [0, 0, 0]),
        (10, [0, 0, 1]),
        (11, [0, 912, 912]),
        (13, [801, 801, 801]),
        (14, [0, 0, 0]),
        (16, [0, 0, 1]),
    ] {
        for (number, code) in codes.into_iter().enumerate() {
            let asked = attribute(id, number as i32);
            let got = launch(write, stream, memory, 1, asked);
            c.that(got == code, || format!("attribute {id}, {number}: {got}"));
        }
    }
    // These attributes name an event, which is null here.
    for id in [7, 12] {
        let got = launch(write, stream, memory, 1, attribute(id, 0));
        c.that(got == 400, || format!("attribute {id}: {got}"));
    }
    ok!(cuStreamSynchronize(stream));
    ok!(cuStreamDestroy(stream));
}

/// A launch and a kernel node check an access policy window as a stream does.
#[test]
fn access_policy_windows_of_launches() {
    let gpu = Gpu::new();
    let write = gpu.kernel("faults.ptx", "fault_write");
    let mut c = Codes::new();
    let (memory, mut stream, mut graph) = (gpu.alloc(4), ptr::null_mut(), ptr::null_mut());
    ok!(cuStreamCreate(&raw mut stream, 1));
    ok!(cuGraphCreate(&raw mut graph, 0));
    let mut arguments = arguments![memory, 1_u32];
    let mut pointers = arguments.pointers();
    let parameters = CUDA_KERNEL_NODE_PARAMS {
        func: write,
        gridDimX: 1,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 1,
        blockDimY: 1,
        blockDimZ: 1,
        kernelParams: pointers.as_mut_ptr(),
        ..Default::default()
    };
    let mut node = ptr::null_mut();
    ok!(cuGraphAddKernelNode(
        &raw mut node,
        graph,
        ptr::null(),
        0,
        &raw const parameters
    ));
    let mut longest = 0;
    let attribute = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE;
    ok!(cuDeviceGetAttribute(&raw mut longest, attribute, 0));
    let longest = longest as usize;
    let persisting = CUaccessProperty::CU_ACCESS_PROPERTY_PERSISTING;
    let streaming = CUaccessProperty::CU_ACCESS_PROPERTY_STREAMING;
    let id = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW;
    for (code, bytes, ratio, hits, misses) in [
        (0, 4096, 0.5, persisting, streaming),
        (1, 4096, 1.5, persisting, streaming),
        (1, 4096, -0.5, persisting, streaming),
        (1, 4096, 0.5, persisting, persisting),
        (0, 0, 0.5, persisting, streaming),
        (0, longest, 0.5, persisting, streaming),
        (1, longest + 1, 0.5, persisting, streaming),
        (0, 4096, 0.5, CUaccessProperty(7), streaming),
        (0, 4096, 0.5, persisting, CUaccessProperty(7)),
    ] {
        let mut asked = CUlaunchAttribute {
            id,
            ..Default::default()
        };
        asked.value.accessPolicyWindow = CUaccessPolicyWindow {
            base_ptr: ptr::without_provenance_mut(memory as usize),
            num_bytes: bytes,
            hitRatio: ratio,
            hitProp: hits,
            missProp: misses,
        };
        let label = format!("{bytes} bytes, {ratio}, {}, {}", hits.0, misses.0);
        c.is(
            code,
            &format!("launch, {label}"),
            launch(write, stream, memory, 1, asked),
        );
        let set = call!(cuGraphKernelNodeSetAttribute(node, id, &raw const asked.value)).0;
        c.is(code, &format!("node, {label}"), set);
        let set = call!(cuStreamSetAttribute(stream, id, &raw const asked.value)).0;
        c.is(code, &format!("stream, {label}"), set);
    }
    ok!(cuStreamSynchronize(stream));
    ok!(cuGraphDestroy(graph));
    ok!(cuStreamDestroy(stream));
}

/// Returns an attribute with this event: `CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT` (7) or
/// `CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT` (12).
fn with_event(id: u32, event: CUevent) -> CUlaunchAttribute {
    let mut asked = attribute(id, 0);
    if id == 7 {
        asked.value.programmaticEvent.event = event;
    } else {
        asked.value.launchCompletionEvent.event = event;
    }
    asked
}

#[test]
fn a_launch_records_an_event() {
    if driver_version() < 12030 {
        crate::common::needs("a driver of CUDA 12.3");
        return;
    }
    let gpu = Gpu::new();
    // Loading a kernel and its first launch may have to wait for all streams, so both come before the stream is held.
    let write = gpu.kernel("faults.ptx", "fault_write");
    let (memory, mut stream, hold) = (gpu.upload(&[0_u32; 4]), ptr::null_mut(), Hold::new());
    ok!(cuStreamCreate(&raw mut stream, 1));
    assert_eq!(launch(write, stream, memory, 1, attribute(0, 0)), 0);
    ok!(cuStreamSynchronize(stream));
    for (turn, id) in [7, 12].into_iter().enumerate() {
        let mut event = ptr::null_mut();
        ok!(cuEventCreate(&raw mut event, 2));
        hold.hold(stream);
        let asked = with_event(id, event);
        let value = turn as u32 + 5;
        assert_eq!(launch(write, stream, memory, value, asked), 0, "{id}");
        assert_eq!(call!(cuEventQuery(event)).0, 600, "{id}");
        hold.release();
        ok!(cuEventSynchronize(event));
        ok!(cuStreamSynchronize(stream));
        assert_eq!(gpu.read::<u32>(memory, 1), [value]);
        ok!(cuEventDestroy(event));
    }
    let mut c = Codes::new();

    // A launch with an event of another context is refused and does not run.
    let (mut other, mut event) = (ptr::null_mut(), ptr::null_mut());
    ok!(cuCtxCreate(&raw mut other, 0, 0));
    ok!(cuEventCreate(&raw mut event, 2));
    let mut left = ptr::null_mut();
    ok!(cuCtxPopCurrent(&raw mut left));
    gpu.write(memory, &[1_u32]);
    for id in [7, 12] {
        for event in [event, ptr::null_mut()] {
            let asked = with_event(id, event);
            c.is(
                400,
                &format!("attribute {id}, event {event:?}"),
                launch(write, stream, memory, 9, asked),
            );
        }
    }
    is!(c, 0, cuCtxSynchronize());
    assert_eq!(gpu.read::<u32>(memory, 1), [1]);
    ok!(cuCtxDestroy(other));
    ok!(cuStreamDestroy(stream));
}
