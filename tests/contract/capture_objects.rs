//! Tests of captures and conditional nodes as objects.

use cuda_driver::graph::{CopyParams, FillParams, exchange_capture_mode};
use cuda_driver::sys::{CUresult, CUstreamCaptureMode, CUstreamCaptureStatus, CUstreamUpdateCaptureDependencies_flags};
use cuda_driver::{Device, DeviceBuffer, Event, Graph, GraphExec, HostBuffer, LaunchConfig, Module, Stream};

use crate::common::{code, context, driver, driver_version, needs, needs_but_not_in_software};
use crate::graph_tools::PTX;

/// The mode that does not forbid calls of other tests in other threads.
const RELAXED: CUstreamCaptureMode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;

/// Launches, waits, and returns the buffer's values.
fn run(exec: &GraphExec, stream: &Stream, data: &DeviceBuffer<u32>) -> Vec<u32> {
    // SAFETY: the nodes use only the buffer, and nothing else does at the same time.
    unsafe { exec.launch(stream) }.expect("a launch");
    stream.synchronize().expect("its end");
    data.to_vec().expect("a copy")
}

#[test]
fn work_of_two_streams() {
    let context = context();
    let module = Module::from_ptx(&context, PTX).expect("a module");
    let step = module.function("step").expect("a kernel");
    let stream = Stream::non_blocking(&context).expect("a stream");
    let other = Stream::non_blocking(&context).expect("a stream");
    let (fork, join) = (
        Event::new(&context).expect("an event"),
        Event::new(&context).expect("an event"),
    );
    let data = DeviceBuffer::<u32>::zeroed(&context, 2).expect("memory");
    context.synchronize().expect("zeroes");
    let second = data.ptr().byte_add(4);
    let config = LaunchConfig::default();
    let active = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE;
    let graph = stream
        .capture(RELAXED, |stream| {
            assert_eq!(stream.capture_status()?, active);
            // SAFETY: no other thread uses the streams.
            assert_eq!(unsafe { stream.capture_info() }?.dependencies.len(), 0);
            // SAFETY: the kernel takes an address and a number; the buffer outlives the graph.
            unsafe { step.launch(stream, config, (data.ptr(), 1_u32)) }?;
            fork.record(stream)?;
            other.wait_event(&fork)?;
            // SAFETY: as above.
            unsafe { step.launch(&other, config, (second, 3_u32)) }?;
            // SAFETY: as above.
            unsafe { step.launch(stream, config, (data.ptr(), 2_u32)) }?;
            // SAFETY: as above.
            assert_eq!(unsafe { stream.capture_info() }?.dependencies.len(), 1);
            join.record(&other)?;
            stream.wait_event(&join)
        })
        .expect("a graph");
    graph.keep(module);
    drop(step);
    let none = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
    assert_eq!(stream.capture_status().expect("a state"), none);
    assert_eq!(
        (graph.nodes().expect("nodes").len(), graph.edges().expect("edges").len()),
        (3, 2)
    );
    let exec = graph.instantiate().expect("an executable graph");
    drop(graph);
    assert_eq!(data.to_vec().expect("a copy"), [0, 0], "the capture ran nothing");
    assert_eq!(run(&exec, &stream, &data), [12, 3]);
}

#[test]
fn captures_that_fail() {
    let context = context();
    let stream = Stream::non_blocking(&context).expect("a stream");
    // A call that is forbidden during a capture invalidates the capture.
    let failed = stream.capture(RELAXED, Stream::synchronize);
    let unsupported = CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    assert_eq!(failed.map(drop).map_err(|error| error.code()), Err(unsupported));
    let failed = stream.capture(RELAXED, |stream| {
        assert!(stream.query().is_err());
        Ok(())
    });
    let invalidated = CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    assert_eq!(failed.map(drop).map_err(|error| error.code()), Err(invalidated));
    // `launch_host_fn` takes a function that can run only once, and a graph may be launched several times.
    let failed = stream.capture(RELAXED, |stream| stream.launch_host_fn(|| ()));
    assert!(failed.expect_err("an error").to_string().contains("add_host_fn"));
    // The function's error is returned, and the capture is over.
    let failed = stream.capture(RELAXED, |_| Device::get(u32::MAX).map(drop));
    assert_eq!(code(failed), CUresult::CUDA_ERROR_INVALID_DEVICE);
    // Captures cannot be nested.
    let nested = stream.capture(RELAXED, |stream| stream.capture(RELAXED, |_| Ok(())).map(drop));
    assert_eq!(code(nested), CUresult::CUDA_ERROR_ILLEGAL_STATE);
    // A panic also ends the capture.
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        stream.capture(RELAXED, |_| panic!("in a capture"))
    }));
    assert!(caught.is_err());
    stream.synchronize().expect("no capture");
    // The legacy default stream cannot be captured.
    let _current = context.push().expect("a push");
    assert_eq!(code(Stream::null().capture(RELAXED, |_| Ok(()))), unsupported);
}

/// Nothing would keep the current context, so it must not become the context of a node.
#[test]
fn a_graph_of_a_default_stream_has_no_context() {
    let context = context();
    let mut data = DeviceBuffer::<u32>::zeroed(&context, 2).expect("memory");
    let _current = context.push().expect("a push");
    let capture = || Stream::per_thread().capture(RELAXED, |_| Ok(())).expect("a graph");
    let fill = FillParams::u32(data.as_mut_slice(), 1).expect("a fill");
    let (to, from) = data.split_at_mut(1).expect("two parts");
    let copy = CopyParams::device_to_device(to, &from).expect("a copy");
    let unknown = CUresult::CUDA_ERROR_INVALID_CONTEXT;
    let graph = capture();
    assert_eq!(code(graph.add_fill(&[], fill)), unknown);
    assert_eq!(code(graph.add_copy(&[], copy)), unknown);
    assert_eq!(code(graph.conditional_handle(None)), unknown);
    // SAFETY: no operations.
    assert_eq!(code(unsafe { graph.add_memory_operations(&[], &[]) }), unknown);
    assert!(graph.nodes().expect("nodes").is_empty());
    // SAFETY: the graph has no other owner.
    let graph = unsafe { Graph::from_raw(graph.into_raw(), &context) };
    graph.add_fill(&[], fill).expect("a node");
    graph.add_copy(&[], copy).expect("a node");
    let of_stream = Stream::per_thread().capture(RELAXED, |stream| {
        // SAFETY: the buffer outlives the graph.
        unsafe { data.fill_u32_async(1, stream) }
    });
    let graph = of_stream.expect("a graph");
    let node = graph.nodes().expect("nodes")[0];
    assert_eq!(code(node.set_fill(fill)), unknown);
    assert_eq!(code(node.set_copy(copy)), unknown);
    let exec = graph.instantiate().expect("an executable graph");
    assert_eq!(code(exec.set_fill(node, fill)), unknown);
    assert_eq!(code(exec.set_copy(node, copy)), unknown);
    // SAFETY: the executable graph has no other owner.
    let exec = unsafe { GraphExec::from_raw(exec.into_raw(), &context) };
    exec.set_fill(node, fill).expect("a change");
}

#[test]
fn captured_copies_return_their_buffers() {
    let context = context();
    let stream = Stream::non_blocking(&context).expect("a stream");
    let device = DeviceBuffer::<u32>::zeroed(&context, 2).expect("memory");
    let host = HostBuffer::from_slice(&context, &[1, 2]).expect("memory");
    let graph = stream.capture(RELAXED, |stream| {
        let error = stream.upload(host, device).expect_err("a capture");
        assert_eq!(error.error().code().0, 900);
        let (host, device) = error.into_value().expect("the buffers");
        let error = stream.download(device, host).expect_err("a capture");
        assert_eq!(error.error().code().0, 900);
        let (device, host) = error.into_value().expect("the buffers");
        assert_eq!((device.len(), &host[..]), (2, &[1, 2][..]));
        Ok(())
    });
    assert!(graph.expect("a graph").nodes().expect("nodes").is_empty());
}

#[test]
fn captures_into_a_graph() {
    if driver_version() < 12030 {
        return needs("a driver of CUDA 12.3");
    }
    let context = context();
    let stream = Stream::non_blocking(&context).expect("a stream");
    let mut data = DeviceBuffer::<u32>::zeroed(&context, 2).expect("memory");
    let graph = Graph::new(&context).expect("a graph");
    let fill = FillParams::u32(data.as_mut_slice(), 1).expect("a fill");
    graph.add_fill(&[], fill).expect("a node");
    let graph = stream
        .capture_to(graph, &[0], RELAXED, |stream| {
            // SAFETY: the buffer outlives the graph.
            unsafe { data.slice_mut(1..)?.fill_u32_async(2, stream) }
        })
        .expect("a graph");
    assert_eq!(graph.edges().expect("edges").len(), 1);
    let exec = graph.instantiate().expect("an executable graph");
    assert_eq!(run(&exec, &stream, &data), [1, 2]);
    // There is no node at this position.
    assert_eq!(code(stream.capture_to(graph, &[2], RELAXED, |_| Ok(()))).0, 1);
    // A capture that fails destroys the graph.
    let graph = Graph::new(&context).expect("a graph");
    assert_eq!(code(stream.capture_to(graph, &[], RELAXED, Stream::synchronize)).0, 900);
    stream.synchronize().expect("no capture");
}

#[test]
fn dependencies_of_a_capture() {
    let context = context();
    let stream = Stream::non_blocking(&context).expect("a stream");
    let mut data = DeviceBuffer::<u32>::zeroed(&context, 1).expect("memory");
    let replace = CUstreamUpdateCaptureDependencies_flags::CU_STREAM_SET_CAPTURE_DEPENDENCIES;
    let graph = stream
        .capture(RELAXED, |stream| {
            // SAFETY: the buffer outlives the graph.
            unsafe { data.fill_u32_async(1, stream) }?;
            // SAFETY: the list is empty; the next work waits for nothing.
            unsafe { stream.update_capture_dependencies(&[], replace) }?;
            // SAFETY: as above.
            unsafe { data.fill_u32_async(1, stream) }
        })
        .expect("a graph");
    assert_eq!(
        (graph.nodes().expect("nodes").len(), graph.edges().expect("edges").len()),
        (2, 0)
    );
    // SAFETY: an empty list.
    let outside = unsafe { stream.update_capture_dependencies(&[], replace) };
    assert_eq!(code(outside), CUresult::CUDA_ERROR_ILLEGAL_STATE);
}

#[test]
fn the_mode_of_a_thread() {
    driver();
    // In a new thread, because the mode belongs to the thread.
    let modes = std::thread::spawn(|| {
        let before = exchange_capture_mode(RELAXED).expect("a mode");
        (before, exchange_capture_mode(before).expect("a mode"))
    });
    let global = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
    assert_eq!(modes.join().expect("no panic"), (global, RELAXED));
}

#[test]
fn conditional_nodes() {
    let context = context();
    let stream = Stream::non_blocking(&context).expect("a stream");
    for (value, expected) in [(1, 7), (0, 0)] {
        let mut data = DeviceBuffer::<u32>::zeroed(&context, 1).expect("memory");
        context.synchronize().expect("zeroes");
        let graph = Graph::new(&context).expect("a graph");
        let handle = match graph.conditional_handle(Some(value)) {
            Ok(handle) => handle,
            Err(error) => {
                let unsupported = error.code() == CUresult::CUDA_ERROR_NOT_SUPPORTED;
                assert!(unsupported || error.is_missing_function(), "{error}");
                return needs_but_not_in_software(&format!("conditional nodes: {error}"));
            }
        };
        let other = Graph::new(&context).expect("a graph");
        assert_eq!(code(other.add_if(&[], handle).map(drop)).0, 1);
        let conditional = graph.add_if(&[], handle).expect("a node");
        let [body] = &conditional.bodies[..] else {
            panic!("{} bodies", conditional.bodies.len());
        };
        let fill = FillParams::u32(data.as_mut_slice(), 7).expect("a fill");
        body.add_fill(&[], fill).expect("a node");
        let exec = graph.instantiate().expect("an executable graph");
        assert_eq!(run(&exec, &stream, &data), [expected]);
    }
}
