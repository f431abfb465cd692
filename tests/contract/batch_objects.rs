//! Tests of batches of copies, of copies between addresses, and of other methods of contexts, streams, events,
//! functions, devices and memory.

use cuda_driver::batch::BatchCopy;
use cuda_driver::sys::{
    CUdevice_attribute, CUevent_record_flags, CUgraphEdgeData, CUmemDecompressParams, CUmemcpySrcAccessOrder, CUresult,
    CUstreamCaptureMode, CUstreamUpdateCaptureDependencies_flags,
};
use cuda_driver::{Context, Device, DeviceBuffer, DevicePtr, Event, Module, PitchedBuffer, Stream};

use crate::common::{code, context, driver, driver_version, has_version, needs, needs_but_not_in_software};

const IN_ORDER: CUmemcpySrcAccessOrder = CUmemcpySrcAccessOrder::CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;

#[test]
fn batches_of_copies() {
    if driver_version() < 13000 {
        needs("a driver of CUDA 13");
        return;
    }
    let context = context();
    let stream = Stream::new(&context).expect("a stream");
    let values: Vec<u32> = (0..64).collect();
    let from = DeviceBuffer::from_slice(&context, &values).expect("memory");
    let to = DeviceBuffer::<u32>::zeroed(&context, 64).expect("memory");
    context.synchronize().expect("the copies");
    let copy = |at: u64, from_at: u64| BatchCopy {
        to: to.ptr().byte_add(at),
        from: from.ptr().byte_add(from_at),
        bytes: 64,
    };
    // SAFETY: the ranges are inside the buffers, which live until the stream is done.
    unsafe {
        stream.copy_batch(&[], IN_ORDER).expect("nothing");
        stream
            .copy_batch(&[copy(0, 128), copy(192, 64)], IN_ORDER)
            .expect("copies");
    }
    stream.synchronize().expect("their end");
    let got = to.to_vec().expect("a copy");
    assert_eq!((&got[..16], &got[48..]), (&values[32..48], &values[16..32]));
    assert_eq!(got[16..48], [0; 32]);

    let empty = BatchCopy { bytes: 0, ..copy(0, 0) };
    let order = CUmemcpySrcAccessOrder::CU_MEMCPY_SRC_ACCESS_ORDER_INVALID;
    let _current = context.push().expect("a push");
    // SAFETY: the driver rejects these copies.
    let wrong = unsafe {
        [
            stream.copy_batch(&[empty], IN_ORDER),
            stream.copy_batch(&[copy(0, 0)], order),
            Stream::null().copy_batch(&[copy(0, 0)], IN_ORDER),
        ]
    };
    assert_eq!(wrong.map(code), [CUresult::CUDA_ERROR_INVALID_VALUE; 3]);
}

#[test]
fn copies_between_addresses() {
    let context = context();
    let stream = Stream::new(&context).expect("a stream");
    let from = DeviceBuffer::from_slice(&context, &[1_u32, 2, 3, 4]).expect("memory");
    let to = DeviceBuffer::<u32>::zeroed(&context, 4).expect("memory");
    let mut host = [0_u32; 2];
    context.synchronize().expect("the copies");
    // SAFETY: all ranges are allocated, and live until the copies are done.
    unsafe {
        context.copy_bytes(to.ptr(), from.ptr(), 8).expect("a copy");
        context.synchronize().expect("its end");
        stream.copy_bytes(to.ptr().byte_add(8), from.ptr(), 8).expect("a copy");
        stream.synchronize().expect("its end");
        let address = DevicePtr::from_raw(host.as_mut_ptr().expose_provenance() as u64);
        context.copy_bytes(address, from.ptr().byte_add(8), 8).expect("a copy");
    }
    assert_eq!(to.to_vec().expect("a copy"), [1, 2, 1, 2]);
    assert_eq!(host, [3, 4]);
}

#[test]
fn decompression_needs_hardware() {
    if driver_version() < 12060 {
        needs("a driver of CUDA 12.6");
        return;
    }
    let context = context();
    let algorithms = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK;
    if context.device().and_then(|device| device.attribute(algorithms)) != Ok(0) {
        needs_but_not_in_software("a device without hardware for decompression");
        return;
    }
    let stream = Stream::new(&context).expect("a stream");
    // SAFETY: the driver rejects the operation.
    let result = unsafe { stream.decompress(&[CUmemDecompressParams::default()]) };
    assert_eq!(code(result), CUresult::CUDA_ERROR_NOT_SUPPORTED);
}

#[test]
fn fills_of_rows_in_a_stream() {
    let context = context();
    let stream = Stream::new(&context).expect("a stream");
    let mut rows = PitchedBuffer::<u32>::alloc(&context, 3, 2).expect("memory");
    // SAFETY: the buffer lives until the stream is done.
    unsafe { rows.fill_u32_async(0x0102_0304, &stream) }.expect("a fill");
    stream.synchronize().expect("its end");
    assert_eq!(rows.to_vec().expect("a copy"), [0x0102_0304; 6]);
    // SAFETY: as above.
    unsafe { rows.fill_u16_async(0x0506, &stream) }.expect("a fill");
    stream.synchronize().expect("its end");
    assert_eq!(rows.to_vec().expect("a copy"), [0x0506_0506; 6]);
    // SAFETY: as above.
    unsafe { rows.fill_u8_async(7, &stream) }.expect("a fill");
    stream.synchronize().expect("its end");
    assert_eq!(rows.to_vec().expect("a copy"), [0x0707_0707; 6]);
    let mut bytes = PitchedBuffer::<u8>::alloc(&context, 3, 2).expect("memory");
    // SAFETY: the fill is rejected.
    let wrong = unsafe { bytes.fill_u16_async(0, &stream) };
    assert_eq!(code(wrong), CUresult::CUDA_ERROR_INVALID_VALUE);
}

#[test]
fn a_context_stays_current_on_a_thread() {
    let context = context();
    let thread = std::thread::spawn(move || {
        context.set_current().expect("a change");
        assert!(context.is_current().expect("the current context"));
        let raw = context.as_raw();
        drop(context);
        // The drop does not destroy the context, because it stays current.
        assert_eq!(Context::current_raw(), Ok(raw));
        // SAFETY: the current context is live.
        let context = unsafe { Context::current() }.expect("the current context");
        context.expect("a context").synchronize().expect("its end");
    });
    thread.join().expect("no panic");
}

#[test]
fn contexts_of_streams() {
    let context = context();
    let stream = Stream::new(&context).expect("a stream");
    assert_eq!(stream.query_context_raw(), Ok(context.as_raw()));
    match stream.query_contexts_raw() {
        Ok(contexts) => assert_eq!((contexts.ctx, contexts.green_ctx.is_null()), (context.as_raw(), true)),
        Err(error) => {
            assert!(error.is_missing_function(), "{error}");
            needs("a driver of CUDA 12.5");
        }
    }
}

#[test]
fn kernels_are_loaded_on_request() {
    const PTX: &str = ".version 6.4\n.target sm_52\n.address_size 64\n.visible .entry nothing() { ret; }\n";
    if driver_version() < 12040 {
        needs("a driver of CUDA 12.4");
        return;
    }
    let module = Module::from_ptx(&context(), PTX).expect("a module");
    let function = module.function("nothing").expect("a function");
    function.load().expect("the code");
    assert_eq!(function.is_loaded(), Ok(true));
}

#[test]
fn events_and_edges_of_captures() {
    let context = context();
    let (stream, event) = (
        Stream::new(&context).expect("a stream"),
        Event::new(&context).expect("an event"),
    );
    let default = CUevent_record_flags::CU_EVENT_RECORD_DEFAULT;
    // SAFETY: the event outlives the graph below.
    let record = |stream: &Stream, flags| unsafe { event.record_with_flags(stream, flags) };
    record(&stream, default).expect("a recording");
    event.synchronize().expect("its end");
    let wrong = record(&stream, CUevent_record_flags(0x80));
    assert_eq!(code(wrong), CUresult::CUDA_ERROR_INVALID_VALUE);

    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    let graph = stream.capture(mode, |stream| {
        record(stream, CUevent_record_flags::CU_EVENT_RECORD_EXTERNAL)?;
        if !has_version(12030) {
            return Ok(());
        }
        // SAFETY: only this thread uses the capture.
        let info = unsafe { stream.capture_info_with_edges() }?;
        assert_eq!(info.dependencies.len(), 1);
        let set = CUstreamUpdateCaptureDependencies_flags::CU_STREAM_SET_CAPTURE_DEPENDENCIES;
        // SAFETY: the nodes are of the capture.
        unsafe {
            stream.update_capture_edges(&info.dependencies, &[CUgraphEdgeData::default()], set)?;
            let wrong = stream.update_capture_edges(&info.dependencies, &[], set);
            assert_eq!(code(wrong), CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        Ok(())
    });
    assert_eq!(graph.expect("a graph").nodes().expect("the nodes").len(), 1);
}

#[test]
fn cliques_need_a_newer_driver_or_a_fabric() {
    driver();
    let device = Device::first().expect("a device");
    for error in [device.cliques().err(), device.fabric_cluster_uuid().err()]
        .into_iter()
        .flatten()
    {
        let code = error.code();
        assert!(
            error.is_missing_function() || code == CUresult::CUDA_ERROR_NOT_SUPPORTED,
            "{error}"
        );
    }
}

#[cfg(unix)]
#[test]
fn memory_for_other_devices_is_a_descriptor() {
    let context = context();
    let memory = DeviceBuffer::<u8>::zeroed(&context, 1 << 21).expect("memory");
    let supported = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED;
    if context
        .device()
        .expect("a device")
        .attribute(supported)
        .expect("an attribute")
        == 0
    {
        return needs("a device with dma-buf");
    }
    // SAFETY: no device uses the descriptor.
    drop(unsafe { memory.as_slice().dma_buf() }.expect("a descriptor"));
    // SAFETY: the driver rejects this range.
    let wrong = unsafe { memory.slice(1..3).expect("a view").dma_buf() };
    assert!(wrong.is_err());
}
