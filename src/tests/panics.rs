//! Tests, on the fake driver, of panics in host functions: which call resumes them, and when they end.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::fake;
use super::objects::context;
use crate::sys::{self, CUresult};
use crate::{Context, Device, DeviceBuffer, Event, HostBuffer, Stream};

/// Returns the payload of a call's panic.
fn panic_of<T>(call: impl FnOnce() -> T) -> Option<&'static str> {
    let panic = catch_unwind(AssertUnwindSafe(call)).err()?;
    panic.downcast_ref::<&str>().copied()
}

#[test]
fn a_panic_in_a_host_function_reaches_the_next_call_that_waits() {
    let context = context();
    let (stream, other) = (Stream::new(&context).unwrap(), Stream::new(&context).unwrap());
    let (before, event) = (Event::new(&context).unwrap(), Event::new(&context).unwrap());
    let buffer = DeviceBuffer::<u8>::alloc(&context, 1).unwrap();
    let query_and_copy = || {
        assert!(stream.query().unwrap() && event.query().unwrap());
        buffer.copy_to(&mut [0]).unwrap();
        buffer.to_vec().unwrap();
    };
    let foreign = self::context();
    before.record(&other).unwrap();
    type Wait<'a> = (&'static str, Box<dyn Fn() + 'a>);
    let waits: [Wait<'_>; 3] = [
        ("stream", Box::new(|| stream.synchronize().unwrap())),
        ("event", Box::new(|| event.synchronize().unwrap())),
        ("context", Box::new(|| context.synchronize().unwrap())),
    ];
    for (name, wait) in waits {
        stream.launch_host_fn(|| panic!("from the host function")).unwrap();
        event.record(&stream).unwrap();
        // These calls wait for other work, so they do not resume the panic.
        other.synchronize().unwrap();
        before.synchronize().unwrap();
        foreign.synchronize().unwrap();
        // Queries and synchronous copies do not resume the panic.
        query_and_copy();
        assert_eq!(panic_of(&wait), Some("from the host function"), "{name}");
        // The panic resumes once.
        assert_eq!(panic_of(wait), None, "{name}");
    }
}

#[test]
fn a_panic_outlives_its_stream_and_ends_with_its_context() {
    let context = context();
    let stream = Stream::new(&context).unwrap();
    let event = Event::new(&context).unwrap();
    stream.launch_host_fn(|| panic!("of a destroyed stream")).unwrap();
    event.record(&stream).unwrap();
    drop(stream);
    event.synchronize().unwrap();
    assert_eq!(panic_of(|| context.synchronize()), Some("of a destroyed stream"));

    // The null stream belongs to the current context.
    let (first, second) = (self::context(), self::context());
    {
        let _current = first.push().unwrap();
        Stream::null().launch_host_fn(|| panic!("null")).unwrap();
    }
    {
        let _current = second.push().unwrap();
        Stream::null().synchronize().unwrap();
    }
    let current = first.push().unwrap();
    assert_eq!(panic_of(|| Stream::null().synchronize()), Some("null"));
    current.pop().unwrap();

    let stream = Stream::new(&first).unwrap();
    stream.launch_host_fn(|| panic!("not resumed")).unwrap();
    let raw = first.as_raw();
    drop(stream);
    drop(first);
    // SAFETY: the fake driver takes any handle.
    let again = unsafe { Context::borrow_raw(raw) };
    again.synchronize().unwrap();

    // A function may panic while the driver destroys the context, so that its panic is stored afterwards.
    // SAFETY: as above.
    let stream = unsafe { Stream::from_raw(core::ptr::without_provenance_mut(0x90), &again) };
    stream.launch_host_fn(|| panic!("of a destroyed context")).unwrap();
    fake::reuse_handle(raw.addr());
    let later = Context::create(Device::from_raw(3)).unwrap();
    assert_eq!(later.as_raw(), raw);
    later.synchronize().unwrap();
}

/// A panic is forgotten before its context is destroyed: afterwards, another thread may already have a panic in a new
/// context with the same handle.
#[test]
fn panics_end_before_their_context() {
    struct Payload;
    impl Drop for Payload {
        fn drop(&mut self) {
            fake::note_drop();
        }
    }
    let context = context();
    let stream = Stream::new(&context).unwrap();
    stream.launch_host_fn(|| std::panic::panic_any(Payload)).unwrap();
    drop(stream);
    fake::calls();
    drop(context);
    assert_eq!(fake::calls(), ["a drop", "cuCtxDestroy_v2"]);
}

/// An event waits for the functions that were queued before it was recorded. A later stream may have the address of the
/// stream that the event was recorded in.
#[test]
fn an_event_resumes_no_panic_of_later_functions() {
    let context = context();
    let stream = Stream::new(&context).unwrap();
    let event = Event::new(&context).unwrap();
    event.record(&stream).unwrap();
    let address = stream.as_raw().addr();
    drop(stream);
    fake::reuse_handle(address);
    let later = Stream::new(&context).unwrap();
    assert_eq!(later.as_raw().addr(), address);
    later.launch_host_fn(|| panic!("of the later stream")).unwrap();
    event.synchronize().unwrap();
    assert_eq!(panic_of(|| later.synchronize()), Some("of the later stream"));

    let (host, device) = (
        HostBuffer::from_slice(&context, &[1u32, 2]).unwrap(),
        DeviceBuffer::<u32>::alloc(&context, 2).unwrap(),
    );
    let pending = later.upload(host, device).unwrap();
    drop(later);
    fake::reuse_handle(address);
    let last = Stream::new(&context).unwrap();
    last.launch_host_fn(|| panic!("of the last stream")).unwrap();
    pending.wait().unwrap();
    assert_eq!(panic_of(|| last.synchronize()), Some("of the last stream"));
}

/// A payload whose drop panics.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        // The payload of this panic is a `Bomb`, too.
        std::panic::panic_any(Self);
    }
}

#[test]
fn a_payload_that_panics_does_not_reach_the_drop_of_a_context() {
    let context = context();
    let stream = Stream::new(&context).unwrap();
    for _ in 0..2 {
        stream.launch_host_fn(|| std::panic::panic_any(Bomb)).unwrap();
    }
    drop(stream);
    let dropped = catch_unwind(AssertUnwindSafe(|| drop(context)));
    // A `Bomb` in the result would panic again.
    assert!(dropped.map_err(std::mem::forget).is_ok());
}

#[test]
fn host_functions_run_once() {
    let context = context();
    let stream = Stream::new(&context).unwrap();

    // If the call fails, the function is dropped, once.
    let token = std::sync::Arc::new(());
    let inside = std::sync::Arc::clone(&token);
    fake::fail("cuLaunchHostFunc", 201);
    assert!(stream.launch_host_fn(move || drop(inside)).is_err());
    assert_eq!(std::sync::Arc::strong_count(&token), 1);
    // If the error is from earlier work, the function may be queued nevertheless. It then does nothing when the driver
    // calls it.
    fake::call_host_func();

    // Another thread may begin a capture after the crate checked that there is none. The graph then calls the function
    // repeatedly.
    let runs = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
    let inside = std::sync::Arc::clone(&runs);
    let count = move || _ = inside.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    stream.launch_host_fn(count).unwrap();
    fake::call_host_func();
    fake::call_host_func();
    assert_eq!(runs.load(std::sync::atomic::Ordering::Relaxed), 1);
    assert_eq!(std::sync::Arc::strong_count(&runs), 1);

    // A graph could run the function more than once.
    fake::captured(true);
    fake::calls();
    let error = stream.launch_host_fn(|| ()).unwrap_err();
    fake::captured(false);
    assert_eq!(error.code(), CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    assert_eq!(fake::calls(), ["cuStreamIsCapturing"]);
}

#[test]
fn a_stored_panic_does_not_resume_in_a_drop() {
    let context = context();
    let stream = Stream::new(&context).unwrap();
    let buffers = || {
        (
            HostBuffer::from_slice(&context, &[1u32, 2]).unwrap(),
            DeviceBuffer::<u32>::alloc(&context, 2).unwrap(),
        )
    };
    stream.launch_host_fn(|| panic!("first")).unwrap();
    let (host, device) = buffers();
    fake::fail("cuEventRecord", 400);
    // The event was not recorded, so the crate waits for the stream before it returns the buffers.
    fake::calls();
    let error = stream.upload(host, device).unwrap_err();
    assert_eq!(error.error().function(), sys::Function::cuEventRecord);
    drop(error);
    let calls = fake::calls();
    let end = [
        "cuEventRecord",
        "cuStreamSynchronize",
        "cuEventDestroy_v2",
        "cuMemFreeHost",
        "cuMemFree_v2",
    ];
    assert!(calls.ends_with(&end.map(str::to_owned)), "{calls:?}");

    let (host, device) = buffers();
    drop(stream.upload(host, device).unwrap());
    let (host, device) = buffers();
    let pending = stream.upload(host, device).unwrap();
    fake::calls();
    assert_eq!(panic_of(|| pending.wait()), Some("first"));
    // The work is done, so the buffers are freed and not leaked.
    assert_eq!(
        fake::calls(),
        [
            "cuEventSynchronize",
            "cuMemFreeHost",
            "cuMemFree_v2",
            "cuEventDestroy_v2"
        ]
    );
}
