//! Tests, on the fake driver, of this crate's objects: the driver calls that they make and the order of these calls,
//! checks of lengths and ranges, and arguments of kernels.

use super::fake;
use crate::sys::{self, CUresult};
use crate::{
    Context, Device, DeviceBuffer, DevicePtr, DeviceSlice, DeviceSliceMut, Event, HostBuffer, KernelArgs, LaunchConfig,
    Module, ParamBuffer, PrimaryContext, Stream, checked,
};

pub(super) fn context() -> Context {
    fake::install();
    let context = Context::create(Device::from_raw(3)).unwrap();
    assert_eq!(fake::calls(), ["cuCtxCreate_v2(0, 3)", "cuCtxPopCurrent_v2"]);
    context
}

#[test]
fn a_context_is_current_only_for_the_call() {
    let context = context();
    assert!(!context.is_current().unwrap());
    let buffer = DeviceBuffer::<u32>::alloc(&context, 5).unwrap();
    assert_eq!(
        fake::calls(),
        ["cuCtxPushCurrent_v2", "cuMemAlloc_v2(20)", "cuCtxPopCurrent_v2"]
    );

    let current = context.push().unwrap();
    assert!(context.is_current().unwrap());
    assert_eq!(buffer.to_vec().unwrap(), [0x0101_0101; 5]);
    assert_eq!(fake::calls(), ["cuCtxPushCurrent_v2", "cuMemcpyDtoH_v2(20)"]);
    current.pop().unwrap();
    assert!(!context.is_current().unwrap());

    // The context is also popped if the call fails.
    fake::fail("cuMemAlloc_v2", 2);
    assert!(DeviceBuffer::<u32>::alloc(&context, 5).is_err());
    assert!(!context.is_current().unwrap());
}

#[test]
fn a_guard_out_of_order_keeps_its_context() {
    let (first, second) = (context(), context());
    let (one, two) = (first.push().unwrap(), second.push().unwrap());
    let error = one.pop().unwrap_err();
    assert_eq!(error.code(), CUresult::CUDA_ERROR_INVALID_CONTEXT);
    drop(two);
    assert!(first.is_current().unwrap());
    fake::calls();
    // The context is still on the stack, so it must not be destroyed.
    drop(first);
    assert_eq!(fake::calls(), [""; 0]);
}

/// An interposer may leave another context on the stack. That context is not popped in place of the crate's own, and a
/// context that stays on the stack is not destroyed.
#[test]
fn only_the_crates_own_context_is_popped() {
    let context = context();
    let foreign = fake::push_in("cuMemAlloc_v2");
    let buffer = DeviceBuffer::<u32>::alloc(&context, 5).unwrap();
    assert_eq!(Context::current_raw().unwrap(), foreign);
    assert_eq!(fake::calls(), ["cuCtxPushCurrent_v2", "cuMemAlloc_v2(20)"]);
    drop((buffer, context));
    assert_eq!(fake::calls(), ["cuMemFree_v2"]);

    fake::push_in("cuCtxCreate_v2");
    let error = Context::create(Device::from_raw(3)).unwrap_err();
    assert_eq!(error.function(), sys::Function::cuCtxPopCurrent);
    assert_eq!(Context::current_raw().unwrap(), foreign);
    assert_eq!(fake::calls(), ["cuCtxCreate_v2(0, 3)"]);
    fake::clear_stack();
}

#[test]
fn objects_may_be_dropped_in_any_order() {
    let context = context();
    let buffer = DeviceBuffer::<u8>::alloc(&context, 1).unwrap();
    let stream = Stream::new(&context).unwrap();
    let event = Event::new(&context).unwrap();
    let module = Module::from_ptx(&context, "").unwrap();
    let function = module.function("f").unwrap();
    fake::calls();
    context.destroy().unwrap();
    drop(module);
    assert_eq!(fake::calls(), [""; 0]);
    drop((buffer, stream, event));
    assert_eq!(
        fake::calls(),
        ["cuMemFree_v2", "cuStreamDestroy_v2", "cuEventDestroy_v2"]
    );
    // The function holds the last reference to the module, and the module holds the last one to the context.
    let thread = std::thread::spawn(move || {
        drop(function);
        fake::calls()
    });
    assert_eq!(thread.join().unwrap(), ["cuModuleUnload", "cuCtxDestroy_v2"]);
}

#[test]
fn destroying_reports_and_dropping_does_not() {
    let context = context();
    let stream = Stream::new(&context).unwrap();
    fake::fail("cuStreamDestroy_v2", 709);
    assert_eq!(
        stream.destroy().unwrap_err().code(),
        CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED
    );
    fake::calls();
    for code in [3, 4, 201, 709, 400, 12345] {
        let event = Event::new(&context).unwrap();
        fake::fail("cuEventDestroy_v2", code);
        drop(event);
    }
    fake::calls();
    fake::fail("cuCtxDestroy_v2", 4);
    assert_eq!(
        context.destroy().unwrap_err().code(),
        CUresult::CUDA_ERROR_DEINITIALIZED
    );
    // The context is not destroyed again when the value is dropped, although the first attempt failed.
    assert_eq!(fake::calls(), ["cuCtxDestroy_v2"]);
}

#[test]
fn released_handles_are_not_destroyed() {
    let context = context();
    let stream = Stream::new(&context).unwrap().into_raw();
    let event = Event::new(&context).unwrap().into_raw();
    let buffer = DeviceBuffer::<u8>::alloc(&context, 1).unwrap().into_raw();
    fake::calls();
    // SAFETY: the handles are the fake driver's.
    unsafe {
        {
            let _stream = Stream::borrow_raw(stream);
            let _event = Event::borrow_raw(event);
            let _view = DeviceSlice::<u8>::from_raw_parts(DevicePtr::from_raw(buffer), 1, None);
        }
        drop(Context::borrow_raw(context.as_raw()));
        assert_eq!(fake::calls(), [""; 0]);
        drop((Stream::from_raw(stream, &context), Event::from_raw(event, &context)));
        drop(DeviceBuffer::<u8>::from_raw(buffer, 1, &context));
    }
    assert_eq!(
        fake::calls(),
        ["cuStreamDestroy_v2", "cuEventDestroy_v2", "cuMemFree_v2"]
    );
    let _ = context.into_raw();
    assert_eq!(fake::calls(), [""; 0]);
}

#[test]
fn primary_contexts_and_attachments_are_counted() {
    fake::install();
    let primary = PrimaryContext::retain(Device::from_raw(2)).unwrap();
    let attachment = primary.attach().unwrap();
    let stream = Stream::non_blocking(&primary).unwrap();
    primary.release().unwrap();
    attachment.detach().unwrap();
    drop(stream);
    assert_eq!(
        fake::calls(),
        [
            "cuDevicePrimaryCtxRetain(2)",
            "cuCtxPushCurrent_v2",
            "cuCtxAttach(0)",
            "cuCtxPopCurrent_v2",
            "cuCtxPushCurrent_v2",
            "cuStreamCreate(1)",
            "cuCtxPopCurrent_v2",
            "cuCtxPushCurrent_v2",
            "cuCtxDetach",
            "cuCtxPopCurrent_v2",
            "cuStreamDestroy_v2",
            "cuDevicePrimaryCtxRelease_v2(2)",
        ]
    );
}

#[test]
fn lengths_are_checked_before_the_driver_is_asked() {
    let context = context();
    let mut buffer = DeviceBuffer::<u16>::alloc(&context, 3).unwrap();
    fake::calls();
    for result in [
        buffer.copy_from(&[0; 4]),
        buffer.copy_to(&mut [0; 4]),
        buffer.copy_from_at(2, &[0; 2]),
        buffer.copy_from_at(4, &[]),
        buffer.copy_to_at(usize::MAX, &mut [0]),
        buffer.fill_u32(0),
    ] {
        assert_eq!(result.unwrap_err().code(), CUresult::CUDA_ERROR_INVALID_VALUE);
    }
    // SAFETY: nothing is copied.
    let error = unsafe { checked::memcpy_batch_async_v2(&[1, 2], &[3], &[4, 5], &[], &[], core::ptr::null_mut()) };
    assert_eq!(error.unwrap_err().code(), CUresult::CUDA_ERROR_INVALID_VALUE);
    assert_eq!(fake::calls(), [""; 0]);

    buffer.copy_from_at(2, &[1]).unwrap();
    let mut wide = DeviceBuffer::<u64>::alloc(&context, 3).unwrap();
    fake::calls();
    wide.fill_u32(7).unwrap();
    assert_eq!(fake::calls()[1], "cuMemsetD32_v2(7, 6)");
}

#[test]
fn a_size_that_overflows_is_passed_as_the_largest_size() {
    let context = context();
    drop(DeviceBuffer::<u64>::alloc(&context, usize::MAX));
    assert_eq!(fake::calls()[1], format!("cuMemAlloc_v2({})", usize::MAX));
}

#[test]
fn launches_pass_pointers_or_one_buffer() {
    let context = context();
    let stream = Stream::new(&context).unwrap();
    let function = Module::from_ptx(&context, "").unwrap().function("f").unwrap();
    let config = LaunchConfig {
        grid: (2, 3).into(),
        block: 64.into(),
        dynamic_shared_bytes: 16,
    };
    let mut buffer = ParamBuffer::new();
    buffer.push(9u32).push(1.0f64);
    let mut value = 11u32;
    let pointers = [(&raw mut value).cast()];
    fake::calls();
    // SAFETY: the fake driver reads the first argument as a `u32`.
    unsafe {
        function.launch(&stream, config, ()).unwrap();
        function.launch(&stream, config, (7u32, 2.0f32, 3u8)).unwrap();
        function.launch(&Stream::null(), config, &buffer).unwrap();
        function
            .launch(&stream, LaunchConfig::default(), &pointers[..])
            .unwrap();
    }
    assert_eq!(
        fake::calls(),
        [
            "cuLaunchKernel(2 3 1, 64 1 1, 16, none)",
            "cuLaunchKernel(2 3 1, 64 1 1, 16, params 7)",
            "cuLaunchKernel(2 3 1, 64 1 1, 16, extra 9 of 16 bytes)",
            "cuLaunchKernel(1 1 1, 1 1 1, 0, params 11)",
        ]
    );
    // The fake driver does not export `cuFuncGetParamInfo`.
    assert_eq!(function.check_args(&(7u32,)), Ok(false));
}

#[test]
fn empty_buffers_allocate_nothing() {
    let context = context();
    let mut empty = DeviceBuffer::<u32>::zeroed(&context, 0).unwrap();
    let mut sizeless = DeviceBuffer::<[u8; 0]>::from_slice(&context, &[[]; 3]).unwrap();
    let stream = Stream::new(&context).unwrap();
    fake::calls();
    assert_eq!(empty.ptr().as_raw(), 0);
    assert_eq!(empty.to_vec().unwrap(), [0; 0]);
    assert_eq!(sizeless.to_vec().unwrap(), [[0u8; 0]; 3]);
    empty.copy_from(&[]).unwrap();
    empty.copy_to(&mut []).unwrap();
    sizeless.copy_from_at(1, &[[]; 2]).unwrap();
    for fill in [
        empty.fill_u8(1),
        empty.fill_u16(1),
        empty.fill_u32(1),
        sizeless.fill_u8(1),
    ] {
        fill.unwrap();
    }
    let other = DeviceBuffer::<u32>::alloc(&context, 0).unwrap();
    empty.copy_from_device(&other).unwrap();
    // SAFETY: nothing is queued.
    unsafe {
        empty.copy_from_async(&[], &stream).unwrap();
        empty.copy_to_async(&mut [], &stream).unwrap();
        empty.copy_from_device_async(&other, &stream).unwrap();
        empty.fill_u8_async(1, &stream).unwrap();
        empty.fill_u16_async(1, &stream).unwrap();
        empty.fill_u32_async(1, &stream).unwrap();
    }
    assert!(empty.copy_from(&[1]).is_err());
    assert!(HostBuffer::<u32>::zeroed(&context, 0).unwrap().is_empty());
    drop(sizeless);
    empty.free().unwrap();
    assert_eq!(fake::calls(), [""; 0]);
}

#[test]
fn borrowed_memory_is_written_and_not_freed() {
    let context = context();
    fake::calls();
    {
        // SAFETY: the fake driver takes any address.
        let mut borrowed = unsafe { DeviceSliceMut::<u32>::from_raw_parts(DevicePtr::from_raw(0x5000), 2, None) };
        borrowed.copy_from(&[1, 2]).unwrap();
        borrowed.fill_u32(7).unwrap();
        assert!(borrowed.copy_from(&[1, 2, 3]).is_err());
    }
    drop(context);
    assert_eq!(
        fake::calls(),
        ["cuMemcpyHtoD_v2(8)", "cuMemsetD32_v2(7, 2)", "cuCtxDestroy_v2"]
    );
}

#[test]
fn a_view_makes_its_context_current_and_starts_where_it_says() {
    let context = context();
    let mut buffer = DeviceBuffer::<u32>::alloc(&context, 8).unwrap();
    let start = buffer.ptr();
    fake::calls();
    let mut view = buffer.slice_mut(2..6).unwrap();
    assert_eq!(view.ptr(), start.byte_add(8));
    view.fill_u32(7).unwrap();
    let (first, second) = view.split_at(1).unwrap();
    assert_eq!((first.len(), second.len()), (1, 3));
    assert_eq!(second.ptr(), start.byte_add(12));
    second.to_vec().unwrap();
    assert_eq!(
        fake::calls(),
        [
            "cuCtxPushCurrent_v2",
            "cuMemsetD32_v2(7, 4)",
            "cuCtxPopCurrent_v2",
            "cuCtxPushCurrent_v2",
            "cuMemcpyDtoH_v2(12)",
            "cuCtxPopCurrent_v2",
        ]
    );
}

#[test]
fn parts_and_casts_that_are_not_possible() {
    let context = context();
    let mut buffer = DeviceBuffer::<u16>::alloc(&context, 7).unwrap();
    fake::calls();
    let (from, to) = (5, 3);
    let parts = [
        buffer.slice(..8).map(drop),
        buffer.slice(8..).map(drop),
        buffer.slice(from..to).map(drop),
        buffer.slice(0..=usize::MAX).map(drop),
        buffer.slice(usize::MAX..).map(drop),
        buffer.slice_mut(3..=7).map(drop),
        buffer.split_at(8).map(drop),
        buffer.split_at_mut(8).map(drop),
        buffer.as_slice().cast::<u32>().map(drop),
        buffer.slice(1..3).unwrap().cast::<u32>().map(drop),
        buffer.as_slice().cast::<()>().map(drop),
        buffer.slice_mut(1..3).unwrap().fill_u32(0),
    ];
    for part in parts {
        assert_eq!(part.unwrap_err().code(), CUresult::CUDA_ERROR_INVALID_VALUE);
    }
    let error = buffer.slice(from..to).unwrap_err();
    let line = line!() - 1;
    assert_eq!(
        error.to_string(),
        format!(
            "a view of device memory failed: CUDA_ERROR_INVALID_VALUE (1): the range is not inside the buffer or view: \
             pass a start that is at most the end, and an end that is at most the length ({}:{line})",
            file!()
        )
    );
    assert!(buffer.slice(7..).unwrap().is_empty());
    assert!(buffer.slice(7..).unwrap().cast::<()>().unwrap().is_empty());
    assert_eq!(buffer.slice(2..6).unwrap().cast::<u32>().unwrap().len(), 2);
    assert_eq!(fake::calls(), [""; 0]);
}

#[test]
fn a_view_is_passed_to_a_kernel_as_its_address() {
    let context = context();
    let mut buffer = DeviceBuffer::<u32>::alloc(&context, 4).unwrap();
    let address = buffer.ptr().as_raw();
    let mut packed = ParamBuffer::new();
    packed.push(1u8).push(buffer.slice(1..).unwrap());
    assert_eq!((packed.parameters()[1].offset, packed.len()), (8, 16));
    let view = buffer.slice(2..).unwrap();
    let arguments = (1u8, view);
    let layout = arguments.layout().unwrap();
    assert_eq!((layout[1].offset, layout[1].size), (8, 8));
    let mut storage = arguments.storage();
    let (params, extra) = arguments.pointers(&mut storage);
    assert!(extra.is_null());
    // SAFETY: the second argument is an address.
    assert_eq!(unsafe { **params.add(1).cast::<*const u64>() }, address + 8);
    let arguments = (buffer.slice_mut(3..).unwrap(),);
    let mut storage = arguments.storage();
    let (params, _) = arguments.pointers(&mut storage);
    // SAFETY: as above.
    assert_eq!(unsafe { **params.cast::<*const u64>() }, address + 12);
}

#[test]
fn packed_arguments_have_a_possible_alignment() {
    let mut buffer = ParamBuffer::new();
    buffer.push(1u8).push_bytes(&[2; 8], usize::MAX).push_bytes(&[3], 0);
    let places: Vec<_> = buffer.parameters().iter().map(|at| at.offset).collect();
    assert_eq!((places, buffer.len()), (vec![0, 4096, 4104], 4105));
}

#[test]
fn queued_buffers_are_returned_or_leaked() {
    let context = context();
    let stream = Stream::new(&context).unwrap();
    let buffers = || {
        (
            HostBuffer::from_slice(&context, &[1u32, 2]).unwrap(),
            DeviceBuffer::<u32>::alloc(&context, 2).unwrap(),
        )
    };
    let (host, device) = buffers();
    let pending = stream.upload(host, device).unwrap();
    let (host, _device) = pending.wait().unwrap();
    assert_eq!(*host, [1, 2]);

    let (host, device) = buffers();
    fake::calls();
    drop(stream.upload(host, device).unwrap());
    let calls = fake::calls();
    let order = [
        "cuMemcpyHtoDAsync_v2(8)",
        "cuEventRecord",
        "cuEventSynchronize",
        "cuMemFreeHost",
        "cuMemFree_v2",
    ];
    let found: Vec<_> = calls.iter().filter(|call| order.contains(&call.as_str())).collect();
    assert_eq!(found, order);

    // The copy may still run, so the memory is leaked.
    let (host, device) = buffers();
    let pending = stream.upload(host, device).unwrap();
    fake::calls();
    fake::fail("cuEventSynchronize", 999);
    assert!(pending.wait().is_err());
    assert_eq!(fake::calls(), ["cuEventSynchronize", "cuEventDestroy_v2"]);
}

/// The end of a copy may stay unknown because another thread captured it: a graph then has a node in the stream's
/// context, which may be another one than that of the buffers.
#[test]
fn a_copy_without_a_known_end_keeps_the_context_of_its_stream() {
    let of_buffers = context();
    for (function, code) in [
        ("", 0),
        ("cuMemcpyHtoDAsync_v2", 999),
        ("cuEventRecord", 900),
        ("cuEventSynchronize", 900),
    ] {
        for is_dropped in [false, true] {
            let context = context();
            let stream = Stream::new(&context).unwrap();
            let host = HostBuffer::from_slice(&of_buffers, &[1u32, 2]).unwrap();
            let device = DeviceBuffer::<u32>::alloc(&of_buffers, 2).unwrap();
            fake::fail(function, code);
            fake::fail_waits(function == "cuEventRecord");
            match stream.upload(host, device) {
                Ok(pending) if is_dropped => drop(pending),
                Ok(pending) => drop(pending.wait()),
                Err(error) => assert!(error.into_value().is_none()),
            }
            fake::fail_waits(false);
            fake::calls();
            drop((stream, context));
            let is_destroyed = fake::calls().contains(&"cuCtxDestroy_v2".to_owned());
            assert_eq!(is_destroyed, code == 0, "{function}, {is_dropped}");
        }
    }
}

#[test]
fn rejected_copies_return_their_buffers() {
    let context = context();
    let stream = Stream::new(&context).unwrap();
    let host = HostBuffer::from_slice(&context, &[1u32, 2, 3]).unwrap();
    let device = DeviceBuffer::<u32>::alloc(&context, 2).unwrap();
    fake::calls();
    let error = stream.upload(host, device).unwrap_err();
    assert!(error.to_string().contains("is not inside the buffer"));
    let (host, device) = error.into_value().unwrap();
    assert_eq!((&*host, device.len()), (&[1, 2, 3][..], 2));

    fake::fail("cuEventCreate", 2);
    let error = stream.download(device, host).unwrap_err();
    let (device, host) = error.into_value().unwrap();

    fake::captured(true);
    fake::calls();
    let error = stream.download(device, host).unwrap_err();
    assert_eq!(error.error().function(), sys::Function::cuMemcpyDtoHAsync);
    let (device, host) = error.into_value().unwrap();
    let error = stream.upload(host, device).unwrap_err();
    assert_eq!(error.error().code(), CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    let (host, device) = error.into_value().unwrap();
    assert_eq!(fake::calls(), ["cuStreamIsCapturing"; 2]);
    fake::captured(false);
    drop(host);
    let host = HostBuffer::from_slice(&context, &[1u32]).unwrap();
    fake::fail("cuMemcpyDtoHAsync_v2", 1);
    let error = stream.download(device, host).unwrap_err();
    let (device, host) = error.into_value().unwrap();

    // An error from earlier work does not tell whether the copy is queued, so the memory is leaked. (The crate keeps
    // the first fault of a process, so tests that check its message run in processes of their own.)
    fake::fail("cuMemcpyDtoHAsync_v2", 700);
    fake::calls();
    let error = stream.download(device, host).unwrap_err();
    assert!(error.into_value().is_none());
    let host = HostBuffer::from_slice(&context, &[1u32; 2]).unwrap();
    let device = DeviceBuffer::<u32>::alloc(&context, 2).unwrap();
    fake::fail("cuMemcpyDtoHAsync_v2", 999);
    let error = stream.download(device, host).unwrap_err();
    assert!(error.into_value().is_none());
    assert!(!fake::calls().iter().any(|call| call.contains("Free")));
    let host = HostBuffer::from_slice(&context, &[1u32; 3]).unwrap();
    let device = DeviceBuffer::<u32>::alloc(&context, 2).unwrap();
    // `?` drops the returned buffers, which frees them.
    let through = || -> crate::Result<()> {
        stream.upload(host, device)?.wait()?;
        Ok(())
    };
    fake::calls();
    assert_eq!(through().unwrap_err().code(), CUresult::CUDA_ERROR_INVALID_VALUE);
    assert!(fake::calls().contains(&"cuMemFreeHost".to_owned()));
}

#[test]
fn asynchronous_copies_may_begin_inside_a_buffer() {
    let context = context();
    let stream = Stream::new(&context).unwrap();
    let mut buffer = DeviceBuffer::<u32>::alloc(&context, 4).unwrap();
    fake::calls();
    // SAFETY: the fake driver copies nothing.
    unsafe {
        buffer.copy_from_at_async(1, &[0; 3], &stream).unwrap();
        buffer.copy_to_at_async(3, &mut [0], &stream).unwrap();
        assert!(buffer.copy_from_at_async(2, &[0; 3], &stream).is_err());
        assert!(buffer.copy_to_at_async(5, &mut [], &stream).is_err());
    }
    assert_eq!(fake::calls(), ["cuMemcpyHtoDAsync_v2(12)", "cuMemcpyDtoHAsync_v2(4)"]);
}

/// An event in the buffers' context does not wait for a copy in another context.
#[test]
fn default_streams_copy_where_the_buffers_are() {
    let (context, other) = (context(), context());
    let buffers = || {
        (
            HostBuffer::from_slice(&context, &[1u32, 2]).unwrap(),
            DeviceBuffer::<u32>::alloc(&context, 2).unwrap(),
        )
    };
    let (host, device) = buffers();
    let current = context.push().unwrap();
    Stream::null().upload(host, device).unwrap().wait().unwrap();
    current.pop().unwrap();

    let (host, device) = buffers();
    let current = other.push().unwrap();
    fake::calls();
    let error = Stream::null().upload(host, device).unwrap_err();
    let calls = fake::calls();
    current.pop().unwrap();
    assert_eq!(error.error().code(), CUresult::CUDA_ERROR_INVALID_HANDLE);
    assert!(!calls.iter().any(|call| call.contains("Async")), "{calls:?}");

    // The copy is accepted if one of the buffers belongs to the current context.
    let (host, _) = buffers();
    let device = DeviceBuffer::<u32>::alloc(&other, 2).unwrap();
    let current = other.push().unwrap();
    let pending = Stream::null().upload(host, device).unwrap();
    current.pop().unwrap();
    assert_eq!(*pending.wait().unwrap().0, [1, 2]);
}

#[test]
fn queries_answer_with_a_bool() {
    let context = context();
    let stream = Stream::new(&context).unwrap();
    assert!(stream.query().unwrap());
    fake::fail("cuStreamQuery", 600);
    assert!(!stream.query().unwrap());
    fake::fail("cuStreamQuery", 999);
    assert!(stream.query().is_err());
}

#[test]
fn devices_and_sizes_are_read() {
    fake::install();
    let device = Device::get(2).unwrap();
    assert_eq!(device.as_raw(), 42);
    assert_eq!(device.name().unwrap(), "Fake");
    assert_eq!(
        device.uuid().unwrap().to_string(),
        "00112233-4455-6677-8899-aabbccddeeff"
    );
    assert_eq!(crate::version().unwrap().to_string(), "12.2");
    let version = crate::Version::from_raw(12050);
    assert_eq!((version.major(), version.minor()), (12, 5));
    // SAFETY: no preconditions.
    let info = unsafe { checked::mem_get_info() }.unwrap();
    assert_eq!((info.free, info.total), (10, 20));
}
