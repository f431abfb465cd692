//! Tests of memory and events that another process opens.
#![cfg(target_os = "linux")]

use std::env;
use std::fmt::Write;
use std::panic::{catch_unwind, resume_unwind};
use std::ptr;

use cuda_driver::sys::*;

use crate::common::gpu::Gpu;
use crate::common::{CHILD, Codes, in_child};
use crate::{call, is, ok, test_path};

/// `CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS`
const SHARED_EVENT: u32 = 6;
/// `CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS`
const LAZY: u32 = 1;

fn stream() -> CUstream {
    let mut stream = ptr::null_mut();
    ok!(cuStreamCreate(&raw mut stream, 1));
    stream
}

fn shared_event() -> CUevent {
    let mut event = ptr::null_mut();
    ok!(cuEventCreate(&raw mut event, SHARED_EVENT));
    event
}

/// Encodes a handle as text for a process's environment.
fn text<T: Copy>(handle: &T) -> String {
    assert_eq!(size_of::<T>(), 64);
    // SAFETY: handles have 64 bytes.
    let bytes = unsafe { &*ptr::from_ref(handle).cast::<[u8; 64]>() };
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Decodes the handle in an environment variable.
fn handle<T: Copy>(variable: &str) -> T {
    assert_eq!(size_of::<T>(), 64);
    let text = env::var(variable).unwrap_or_default();
    let byte = |i: usize| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap_or(0);
    let bytes: [u8; 64] = std::array::from_fn(byte);
    // SAFETY: handles have 64 bytes, for which any bits are a valid value.
    unsafe { bytes.as_ptr().cast::<T>().read_unaligned() }
}

#[test]
fn memory_and_events_with_handles() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let mut handle = CUipcMemHandle::default();
    let out = &raw mut handle;
    let memory = gpu.upload(&[1_u32; 4096]);
    is!(c, 0, cuIpcGetMemHandle(out, memory));
    is!(c, 0, cuIpcGetMemHandle(out, memory + 4096));
    assert_eq!(gpu.read::<u32>(memory, 4096), [1; 4096]);
    is!(c, 1, cuIpcGetMemHandle(ptr::null_mut(), memory));
    is!(c, 1, cuIpcGetMemHandle(out, 0));
    let (mut managed, mut pooled, mut host) = (0, 0, ptr::null_mut());
    ok!(cuMemAllocManaged(&raw mut managed, 4096, 1));
    ok!(cuMemAllocAsync(&raw mut pooled, 4096, ptr::null_mut()));
    ok!(cuMemHostAlloc(&raw mut host, 4096, 0));
    for address in [managed, pooled, host as CUdeviceptr] {
        is!(c, 1, cuIpcGetMemHandle(out, address));
    }
    // The process that made a handle cannot open it.
    let mut opened = 0;
    ok!(cuIpcGetMemHandle(out, memory));
    is!(c, 201, cuIpcOpenMemHandle(&raw mut opened, handle, LAZY));
    for flags in [0, 2] {
        is!(c, 1, cuIpcOpenMemHandle(&raw mut opened, handle, flags));
    }
    is!(c, 1, cuIpcOpenMemHandle(ptr::null_mut(), handle, LAZY));
    let junk = CUipcMemHandle::default();
    is!(c, 1, cuIpcOpenMemHandle(&raw mut opened, junk, LAZY));
    for address in [0, 0x1000, memory] {
        is!(c, 1, cuIpcCloseMemHandle(address));
    }
    let (mut event, mut plain) = (ptr::null_mut(), ptr::null_mut());
    is!(c, 1, cuEventCreate(&raw mut event, 4));
    ok!(cuEventCreate(&raw mut plain, 2));
    let event = shared_event();
    let mut handle = CUipcEventHandle::default();
    let out = &raw mut handle;
    is!(c, 400, cuIpcGetEventHandle(out, plain));
    is!(c, 1, cuIpcGetEventHandle(ptr::null_mut(), event));
    is!(c, 0, cuIpcGetEventHandle(out, event));
    let mut opened = ptr::null_mut();
    is!(c, 201, cuIpcOpenEventHandle(&raw mut opened, handle));
    let junk = CUipcEventHandle::default();
    is!(c, 205, cuIpcOpenEventHandle(&raw mut opened, junk));
    ok!(cuEventDestroy(event));
    ok!(cuEventDestroy(plain));
    ok!(cuMemFree(managed));
    ok!(cuMemFree(pooled));
    ok!(cuMemFreeHost(host));
}

/// The part of the test in the other process: opens the memory and the event, waits for the event, and writes. The
/// first process's work ends when this process has written 1 to the start of the memory.
fn other_process() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let (memory_handle, event_handle) = (handle("TEST_MEMORY"), handle("TEST_EVENT"));
    let (mut memory, mut again, mut event) = (0, 0, ptr::null_mut());
    ok!(cuIpcOpenMemHandle(&raw mut memory, memory_handle, LAZY));
    ok!(cuIpcOpenMemHandle(&raw mut again, memory_handle, LAZY));
    assert_eq!(memory, again);
    ok!(cuIpcOpenEventHandle(&raw mut event, event_handle));
    // The stream waits for work that the first process has not finished.
    let (stream, mut copy) = (stream(), ptr::null_mut());
    ok!(cuMemHostAlloc(&raw mut copy, 4, 0));
    ok!(cuStreamWaitEvent(stream, event, 0));
    ok!(cuMemcpyDtoHAsync(copy, memory + 4096, 4, stream));
    let waiting = [call!(cuEventQuery(event)).0, call!(cuStreamQuery(stream)).0];
    gpu.write(memory, &[1_u32]);
    assert_eq!(waiting, [600; 2]);
    ok!(cuEventSynchronize(event));
    ok!(cuStreamSynchronize(stream));
    // SAFETY: page-locked memory of this size; the copy is done.
    assert_eq!(unsafe { copy.cast::<u32>().read() }, 77);
    let (mut base, mut size) = (0, 0);
    ok!(cuMemGetAddressRange(&raw mut base, &raw mut size, memory + 99));
    assert_eq!((base, size), (memory, 1 << 20));
    is!(c, 1, cuMemFree(memory));
    let mut exported = CUipcMemHandle::default();
    is!(c, 1, cuIpcGetMemHandle(&raw mut exported, memory));
    gpu.write(memory + 4096, &[78_u32]);
    ok!(cuEventRecord(event, stream));
    ok!(cuEventSynchronize(event));
    is!(c, 0, cuEventDestroy(event));
    is!(c, 0, cuIpcCloseMemHandle(memory));
    assert_eq!(gpu.read::<u32>(memory + 4096, 1), [78]);
    is!(c, 0, cuIpcCloseMemHandle(memory));
    is!(c, 1, cuIpcCloseMemHandle(memory));
    is!(c, 1, cuMemcpyDtoH(copy, memory, 4));
    ok!(cuMemFreeHost(copy));
}

#[test]
fn another_process_opens_memory_and_events() {
    let name = test_path!("another_process_opens_memory_and_events");
    if env::var(CHILD).as_deref() == Ok(&*name) {
        in_child(&name, &[], other_process);
        return;
    }
    let gpu = Gpu::new();
    let memory = gpu.upload(&vec![0_u8; 1 << 20]);
    gpu.write(memory + 4096, &[76_u32]);
    let mut memory_handle = CUipcMemHandle::default();
    ok!(cuIpcGetMemHandle(&raw mut memory_handle, memory));
    let event = shared_event();
    let mut event_handle = CUipcEventHandle::default();
    ok!(cuIpcGetEventHandle(&raw mut event_handle, event));
    // The work waits for a number that the other process writes when its own work waits for the event.
    let stream = stream();
    ok!(cuStreamWaitValue32(stream, memory, 1, 1));
    ok!(cuMemsetD32Async(memory + 4096, 77, 1, stream));
    ok!(cuEventRecord(event, stream));
    let child = catch_unwind(|| {
        in_child(
            &name,
            &[
                ("TEST_MEMORY", &text(&memory_handle)),
                ("TEST_EVENT", &text(&event_handle)),
            ],
            other_process,
        )
    });
    // A child that failed may not have written the number, and destroying the context waits for the work.
    gpu.write(memory, &[1_u32]);
    if let Err(panic) = child {
        resume_unwind(panic);
    }
    assert_eq!(gpu.read::<u32>(memory + 4096, 1), [78]);
    ok!(cuEventSynchronize(event));
    ok!(cuEventDestroy(event));
    ok!(cuStreamDestroy(stream));
    ok!(cuMemFree(memory));
}
