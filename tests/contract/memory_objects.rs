//! Tests of device memory, page-locked memory, streams and events as objects.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use cuda_driver::sys::{CUevent_flags, CUhostTaskSyncMode, CUresult, CUstream_flags};
use cuda_driver::{DeviceBuffer, DevicePtr, Event, HostBuffer, Stream};

use crate::common::{context, driver_version};

#[test]
fn copies_and_fills() {
    let context = context();
    let values: Vec<u32> = (0..1000).collect();
    let mut a = DeviceBuffer::from_slice(&context, &values).expect("memory");
    assert_eq!((a.len(), a.size_bytes()), (1000, 4000));
    assert_eq!(a.to_vec().expect("a copy"), values);
    a.copy_from_at(10, &[99, 98]).expect("a copy into the middle");
    let mut part = [0; 4];
    a.copy_to_at(9, &mut part).expect("a copy from the middle");
    assert_eq!(part, [9, 99, 98, 12]);
    let mut b = DeviceBuffer::<u32>::zeroed(&context, 1000).expect("memory");
    assert_eq!(b.to_vec().expect("a copy"), [0; 1000]);
    b.copy_from_device(&a).expect("a copy between buffers");
    assert_eq!(b.to_vec().expect("a copy"), a.to_vec().expect("a copy"));
    b.fill_u8(0x12).expect("a fill");
    assert_eq!(b.to_vec().expect("a copy"), [0x1212_1212; 1000]);
    b.fill_u16(0x3456).expect("a fill");
    assert_eq!(b.to_vec().expect("a copy"), [0x3456_3456; 1000]);
    b.fill_u32(7).expect("a fill");
    assert_eq!(b.to_vec().expect("a copy"), [7; 1000]);
    a.free().expect("free");
}

#[test]
fn copies_of_other_lengths() {
    let context = context();
    let mut a = DeviceBuffer::<u32>::zeroed(&context, 10).expect("memory");
    assert!(a.copy_from_at(9, &[1, 2]).is_err());
    assert!(a.copy_from_at(11, &[]).is_err());
    assert!(a.copy_from_at(usize::MAX, &[1]).is_err());
    assert!(a.copy_to_at(usize::MAX / 4, &mut [0; 8]).is_err());
    assert!(a.copy_from(&[0; 11]).is_err());
    let mut nothing = DeviceBuffer::<u32>::zeroed(&context, 0).expect("no memory at all");
    assert!(nothing.is_empty() && nothing.ptr() == DevicePtr::null());
    nothing.copy_from(&[]).expect("a copy of nothing");
    nothing.fill_u16(1).expect("a fill of nothing");
    assert_eq!(nothing.to_vec().expect("a copy of nothing"), [0; 0]);
    assert!(nothing.copy_from(&[1]).is_err());
    nothing.free().expect("free");
    let huge = DeviceBuffer::<u64>::alloc(&context, usize::MAX)
        .map(drop)
        .map_err(|e| e.code());
    assert_eq!(huge, Err(CUresult::CUDA_ERROR_OUT_OF_MEMORY));
    assert_eq!(a.to_vec().expect("a copy"), [0; 10]);
}

#[test]
fn raw_handles() {
    let context = context();
    let a = DeviceBuffer::from_slice(&context, &[1_u16, 2, 3]).expect("memory");
    assert_eq!(DevicePtr::from_raw(a.as_raw()), a.ptr());
    let raw = a.into_raw();
    // SAFETY: type, length and context are those of the buffer that owned the address.
    let again = unsafe { DeviceBuffer::<u16>::from_raw(raw, 3, &context) };
    assert_eq!(again.to_vec().expect("a copy"), [1, 2, 3]);
}

#[test]
fn owned_buffers_through_a_stream() {
    let context = context();
    let stream = Stream::non_blocking(&context).expect("a stream");
    let mut host = HostBuffer::<u32>::zeroed(&context, 4096).expect("page-locked memory");
    for (i, value) in host.iter_mut().enumerate() {
        *value = i as u32 * 3;
    }
    let device = DeviceBuffer::<u32>::zeroed(&context, 4096).expect("memory");
    let (mut host, device) = stream.upload(host, device).expect("a copy").wait().expect("its end");
    host.fill(0);
    let pending = stream.download(device, host).expect("a copy back");
    let (device, host) = pending.wait().expect("its end");
    assert!(host.iter().enumerate().all(|(i, value)| *value == i as u32 * 3));
    // Dropping a pending copy waits for it.
    drop(stream.upload(host, device).expect("a copy"));
    stream.synchronize().expect("nothing left");
}

#[test]
fn streams_and_events() {
    let context = context();
    let stream = Stream::new(&context).expect("a stream");
    let non_blocking = Stream::with_flags(&context, CUstream_flags::CU_STREAM_NON_BLOCKING).expect("a stream");
    assert_eq!(
        non_blocking.flags().expect("flags"),
        CUstream_flags::CU_STREAM_NON_BLOCKING
    );
    assert!(stream.query().expect("an answer"));
    let (start, end) = (
        Event::new(&context).expect("an event"),
        Event::new(&context).expect("an event"),
    );
    assert_eq!(
        start.elapsed_ms(&end).map_err(|e| e.code()),
        Err(CUresult::CUDA_ERROR_INVALID_HANDLE)
    );
    start.record(&stream).expect("a record");
    let sum = Arc::new(AtomicU32::new(0));
    for i in 1..=4 {
        let sum = Arc::clone(&sum);
        stream
            .launch_host_fn(move || {
                sum.fetch_add(i, Ordering::SeqCst);
            })
            .expect("a host function");
    }
    end.record(&stream).expect("a record");
    non_blocking.wait_event(&end).expect("a wait");
    non_blocking.synchronize().expect("the end of the work");
    assert_eq!(sum.load(Ordering::SeqCst), 10);
    assert!(end.query().expect("an answer"));
    assert!(start.elapsed_ms(&end).expect("a time") >= 0.0);
    let untimed = Event::with_flags(&context, CUevent_flags::CU_EVENT_DISABLE_TIMING).expect("an event");
    untimed.record(&stream).expect("a record");
    assert!(start.elapsed_ms(&untimed).is_err());
    untimed.destroy().expect("its end");
    stream.destroy().expect("its end");
}

#[test]
fn a_panic_in_a_host_function_stays_in_rust() {
    let context = context();
    let stream = Stream::new(&context).expect("a stream");
    stream.launch_host_fn(|| panic!("on purpose")).expect("a host function");
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| stream.synchronize()));
    let payload = caught.expect_err("synchronize resumes the panic");
    assert_eq!(payload.downcast_ref::<&str>(), Some(&"on purpose"));
    stream.synchronize().expect("only once");
}

#[test]
fn host_functions_with_a_mode() {
    let context = context();
    let stream = Stream::new(&context).expect("a stream");
    let runs = Arc::new(AtomicU32::new(0));
    let count = || {
        let runs = Arc::clone(&runs);
        move || _ = runs.fetch_add(1, Ordering::Relaxed)
    };
    for mode in [
        CUhostTaskSyncMode::CU_HOST_TASK_BLOCKING,
        CUhostTaskSyncMode::CU_HOST_TASK_SPINWAIT,
    ] {
        let before = runs.load(Ordering::Relaxed);
        match stream.launch_host_fn_with(mode, count()) {
            Ok(()) => {
                stream.synchronize().expect("no fault");
                assert_eq!(runs.load(Ordering::Relaxed), before + 1);
            }
            Err(error) => assert!(error.is_missing_function() && driver_version() < 13010, "{error}"),
        }
    }
    // A function that was not queued is dropped.
    assert!(stream.launch_host_fn_with(CUhostTaskSyncMode(7), count()).is_err());
    assert_eq!(Arc::strong_count(&runs), 1);
}

#[test]
fn the_null_stream_needs_a_context() {
    let context = context();
    let null = Stream::null();
    assert_eq!(
        null.synchronize().map_err(|e| e.code()),
        Err(CUresult::CUDA_ERROR_INVALID_CONTEXT)
    );
    let _current = context.push().expect("a push");
    null.synchronize().expect("nothing to wait for");
}
