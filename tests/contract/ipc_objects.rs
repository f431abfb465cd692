//! Tests of memory and events of another process as objects.
#![cfg(target_os = "linux")]

use std::env;
use std::fmt::Write;

use cuda_driver::ipc::{EventHandle, HANDLE_BYTES, MemoryHandle};
use cuda_driver::sys::CUresult;
use cuda_driver::{DeviceBuffer, Event, IpcBuffer, Stream};

use crate::common::{CHILD, context, in_child};
use crate::test_path;

/// Encodes a handle as text for a process's environment.
fn text(bytes: [u8; HANDLE_BYTES]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Decodes the handle in an environment variable.
fn bytes(variable: &str) -> [u8; HANDLE_BYTES] {
    let text = env::var(variable).expect("a handle");
    std::array::from_fn(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).expect("a byte"))
}

#[test]
fn handles_of_this_process_and_of_none() {
    let context = context();
    let buffer = DeviceBuffer::<u32>::zeroed(&context, 1024).expect("memory");
    let event = Event::interprocess(&context).expect("an event");
    let (memory, shared) = (
        buffer.ipc_handle().expect("a handle"),
        event.ipc_handle().expect("a handle"),
    );
    assert_eq!(
        memory.to_bytes(),
        MemoryHandle::from_bytes(memory.to_bytes()).to_bytes()
    );
    // The process that made a handle cannot open it.
    let invalid_context = CUresult::CUDA_ERROR_INVALID_CONTEXT;
    // SAFETY: this process keeps the memory and the event until the test ends.
    let opened = unsafe { IpcBuffer::<u32>::open(&context, memory) };
    assert_eq!(opened.map(drop).map_err(|e| e.code()), Err(invalid_context));
    // SAFETY: as above.
    let opened = unsafe { Event::open_ipc(&context, shared) };
    assert_eq!(opened.map(drop).map_err(|e| e.code()), Err(invalid_context));

    let invalid = CUresult::CUDA_ERROR_INVALID_VALUE;
    // SAFETY: the driver rejects a handle of zeros.
    let opened = unsafe { IpcBuffer::<u32>::open(&context, MemoryHandle::from_bytes([0; HANDLE_BYTES])) };
    assert_eq!(opened.map(drop).map_err(|e| e.code()), Err(invalid));
    // SAFETY: as above.
    let opened = unsafe { Event::open_ipc(&context, EventHandle::from_bytes([0; HANDLE_BYTES])) };
    assert_eq!(
        opened.map(drop).map_err(|e| e.code()),
        Err(CUresult::CUDA_ERROR_MAP_FAILED)
    );
    let plain = Event::new(&context).expect("an event");
    assert_eq!(
        plain.ipc_handle().map(drop).map_err(|e| e.code()),
        Err(CUresult::CUDA_ERROR_INVALID_HANDLE)
    );
    let empty = DeviceBuffer::<u32>::alloc(&context, 0).expect("no memory");
    assert_eq!(empty.ipc_handle().map(drop).map_err(|e| e.code()), Err(invalid));
    assert!(!context.is_current().expect("an answer"));
}

/// The part of the test in the other process: opens the memory and the event, waits for the event, and writes.
fn other_process() {
    let context = context();
    let handle = MemoryHandle::from_bytes(bytes("TEST_MEMORY"));
    // SAFETY: the first process keeps both until this one ends.
    let (mut buffer, again, event) = unsafe {
        (
            IpcBuffer::<u32>::open(&context, handle).expect("memory"),
            IpcBuffer::<u32>::open(&context, handle).expect("the same memory"),
            Event::open_ipc(&context, EventHandle::from_bytes(bytes("TEST_EVENT"))).expect("an event"),
        )
    };
    assert_eq!((buffer.ptr(), buffer.len()), (again.ptr(), 1 << 18));
    again.close().expect("closed once");
    let stream = Stream::new(&context).expect("a stream");
    stream.wait_event(&event).expect("a wait");
    stream.synchronize().expect("the end");
    assert_eq!(
        buffer.as_slice().slice(1..4).expect("a part").to_vec().expect("a copy"),
        [0, 77, 0]
    );
    buffer
        .as_mut_slice()
        .slice_mut(2..3)
        .expect("a part")
        .copy_from(&[78])
        .expect("a copy");
    event.record(&stream).expect("a record");
    // The handle is given to another owner, which is dropped after the context's other references.
    let (len, raw) = (buffer.len(), buffer.into_raw());
    // SAFETY: `into_raw` gave up this memory.
    let buffer = unsafe { IpcBuffer::<u32>::from_raw(raw, len, &context) };
    stream.synchronize().expect("the end");
    drop((stream, context));
    std::thread::spawn(move || drop((event, buffer)))
        .join()
        .expect("no panic");
}

#[test]
fn another_process_opens_objects() {
    let name = test_path!("another_process_opens_objects");
    if env::var(CHILD).as_deref() == Ok(&*name) {
        in_child(&name, &[], other_process);
        return;
    }
    let context = context();
    let mut buffer = DeviceBuffer::<u32>::zeroed(&context, 1 << 18).expect("memory");
    let event = Event::interprocess(&context).expect("an event");
    let stream = Stream::new(&context).expect("a stream");
    buffer.copy_from_at(2, &[77]).expect("a copy");
    context.synchronize().expect("the end");
    event.record(&stream).expect("a record");
    let handles = [
        ("TEST_MEMORY", text(buffer.ipc_handle().expect("a handle").to_bytes())),
        ("TEST_EVENT", text(event.ipc_handle().expect("a handle").to_bytes())),
    ];
    let environment = handles.each_ref().map(|(name, handle)| (*name, handle.as_str()));
    in_child(&name, &environment, other_process);
    event.synchronize().expect("the end");
    assert_eq!(
        buffer.slice(1..4).expect("a part").to_vec().expect("a copy"),
        [0, 78, 0]
    );
}
