//! Tests of pitched buffers, page-locked and registered host memory, and attributes of addresses as objects.

use cuda_driver::sys::{
    CU_MEMHOSTALLOC_PORTABLE, CU_MEMHOSTALLOC_WRITECOMBINED, CUmemorytype, CUpointer_attribute as Attribute, CUresult,
};
use cuda_driver::{DeviceBuffer, DevicePtr, HostBuffer, PitchedBuffer, Stream};

use crate::common::context;
use crate::common::gpu::Pages;

#[test]
fn rows() {
    let context = context();
    let mut picture = PitchedBuffer::<u16>::alloc(&context, 5, 3).expect("memory");
    assert_eq!((picture.width(), picture.height()), (5, 3));
    assert!(picture.pitch() >= 10 && picture.pitch() % 16 == 0);
    let values: Vec<u16> = (0..15).collect();
    picture.copy_from(&values).expect("a copy");
    assert_eq!(picture.to_vec().expect("a copy"), values);
    for row in 0..3 {
        let view = picture.row(row).expect("a row");
        assert_eq!(view.ptr(), picture.ptr().byte_add((row * picture.pitch()) as u64));
        assert_eq!(view.to_vec().expect("a copy"), values[5 * row..5 * row + 5]);
    }
    picture
        .row_mut(1)
        .expect("a row")
        .copy_from(&[9; 5])
        .expect("a copy of a row");
    assert_eq!(picture.to_vec().expect("a copy")[4..11], [4, 9, 9, 9, 9, 9, 10]);
    picture.fill_u8(1).expect("a fill");
    assert_eq!(picture.to_vec().expect("a copy"), [0x0101; 15]);
    picture.fill_u16(77).expect("a fill");
    assert_eq!(picture.to_vec().expect("a copy"), [77; 15]);
    let error = picture.fill_u32(1).expect_err("rows of 10 bytes");
    assert_eq!(error.code(), CUresult::CUDA_ERROR_INVALID_VALUE);
    assert!(picture.row(3).is_err() && picture.row_mut(usize::MAX).is_err());
    for len in [0, 14, 16] {
        let error = picture.copy_from(&vec![0; len]).expect_err("a wrong length");
        assert_eq!(error.code(), CUresult::CUDA_ERROR_INVALID_VALUE);
        assert!(error.to_string().contains("as many values as all rows"), "{error}");
    }
    picture.free().expect("a free");
}

#[test]
fn pitched_buffers_of_no_and_other_sizes() {
    let context = context();
    for (width, height) in [(0, 3), (3, 0), (0, 0)] {
        let mut nothing = PitchedBuffer::<u32>::alloc(&context, width, height).expect("no memory at all");
        assert_eq!((nothing.ptr(), nothing.pitch()), (DevicePtr::null(), 0));
        nothing.copy_from(&[]).expect("a copy of nothing");
        nothing.fill_u32(1).expect("a fill of nothing");
        assert_eq!(nothing.to_vec().expect("a copy of nothing"), [0; 0]);
    }
    for height in [0, 1] {
        let error = PitchedBuffer::<u64>::alloc(&context, usize::MAX, height).expect_err("too wide");
        assert_eq!(error.code(), CUresult::CUDA_ERROR_INVALID_VALUE);
    }
    // Driver 580 allocates rows whose size wraps around at 2^64.
    for width in [1, 128, 1024] {
        let error = PitchedBuffer::<u32>::alloc(&context, width, (1 << 55) + 1).expect_err("too high");
        let code = error.code();
        let refused = code == CUresult::CUDA_ERROR_INVALID_VALUE || code == CUresult::CUDA_ERROR_OUT_OF_MEMORY;
        assert!(refused, "{error}");
    }
    // Values of size zero need no memory, but their number must not overflow.
    let error = PitchedBuffer::<()>::alloc(&context, usize::MAX, 2).expect_err("too many values");
    assert_eq!(error.code(), CUresult::CUDA_ERROR_INVALID_VALUE);
    let mut wide = PitchedBuffer::<[u32; 4]>::alloc(&context, 3, 2).expect("memory");
    wide.fill_u32(5).expect("a fill");
    assert_eq!(wide.to_vec().expect("a copy"), [[5; 4]; 6]);
    let (pitch, raw) = (wide.pitch(), wide.into_raw());
    // SAFETY: the memory was owned by the buffer above, which had this pitch and these sizes.
    let wide = unsafe { PitchedBuffer::<[u32; 4]>::from_raw(raw, pitch, 3, 2, &context) };
    drop(context);
    std::thread::spawn(move || assert_eq!(wide.to_vec().expect("a copy"), [[5; 4]; 6]))
        .join()
        .expect("no panic");
}

#[test]
fn host_memory_with_flags() {
    let context = context();
    let host = HostBuffer::<u32>::zeroed_with_flags(&context, 100, CU_MEMHOSTALLOC_PORTABLE).expect("memory");
    assert_eq!(host[99], 0);
    assert!(!host.is_registered());
    let flags = host.flags().expect("flags");
    assert_eq!(flags & CU_MEMHOSTALLOC_PORTABLE, CU_MEMHOSTALLOC_PORTABLE);
    assert_eq!(flags & CU_MEMHOSTALLOC_WRITECOMBINED, 0);
    let attributes = host.device_ptr().expect("an address").attributes().expect("attributes");
    assert_eq!(attributes.memory_type, Some(CUmemorytype::CU_MEMORYTYPE_HOST));
    assert_eq!(attributes.host_ptr.cast_const(), host.as_ptr().cast());
    assert_eq!(host.into_vec().expect("a copy"), [0; 100]);
    let error = HostBuffer::<u32>::zeroed_with_flags(&context, 4, 1 << 20).expect_err("wrong flags");
    assert_eq!(error.code(), CUresult::CUDA_ERROR_INVALID_VALUE);
    let nothing = HostBuffer::<u32>::zeroed(&context, 0).expect("no memory at all");
    assert!(nothing.flags().is_err() && nothing.device_ptr().is_err());
}

#[test]
fn work_ends_before_a_vec_of_its_memory_is_made() {
    let context = context();
    let stream = Stream::non_blocking(&context).expect("a stream");
    let device = DeviceBuffer::from_slice(&context, &[7_u32; 1000]).expect("memory");
    let mut host = HostBuffer::<u32>::zeroed(&context, 1000).expect("memory");
    stream
        .launch_host_fn(|| std::thread::sleep(std::time::Duration::from_millis(50)))
        .expect("a host function");
    // SAFETY: nothing else uses the memory until the copy is done: `into_vec` waits for the copy.
    unsafe { device.as_slice().copy_to_async(&mut host, &stream) }.expect("a copy");
    assert_eq!(host.into_vec().expect("a copy"), [7; 1000]);
}

#[test]
fn a_registered_vec() {
    let context = context();
    let stream = Stream::non_blocking(&context).expect("a stream");
    let values: Vec<u32> = (0..50_000).collect();
    let address = values.as_ptr();
    let mut host = HostBuffer::register(&context, values, 0).expect("page-locked memory");
    assert!(host.is_registered() && host.as_ptr() == address);
    host.flags().expect("flags");
    host[0] = 4711;
    let device = DeviceBuffer::alloc(&context, 50_000).expect("memory");
    let (mut host, device) = stream.upload(host, device).expect("a copy").wait().expect("its end");
    host.fill(0);
    let (_, host) = stream
        .download(device, host)
        .expect("a copy back")
        .wait()
        .expect("its end");
    let values = host.into_vec().expect("the memory");
    assert!(values.as_ptr() == address && values[..3] == [4711, 1, 2] && values[49_999] == 49_999);
    // The memory can be registered again, and dropping the buffer unregisters it.
    drop(HostBuffer::register(&context, values, 0).expect("page-locked memory"));
    let nothing = HostBuffer::<u32>::register(&context, Vec::with_capacity(10), 0).expect("no memory at all");
    assert!(nothing.is_empty());
    assert!(nothing.into_vec().expect("the memory").capacity() >= 10);
    let error = HostBuffer::register(&context, vec![Pages([1_u8; 4096])], 1 << 20).expect_err("wrong flags");
    assert_eq!(error.code(), CUresult::CUDA_ERROR_INVALID_VALUE);
    let host = HostBuffer::register(&context, vec![Pages([1_u8; 4096])], 0).expect("page-locked memory");
    drop(context);
    std::thread::spawn(move || host.free().expect("a free"))
        .join()
        .expect("no panic");
}

#[test]
fn attributes_of_addresses() {
    let context = context();
    let buffer = DeviceBuffer::<u32>::alloc(&context, 100).expect("memory");
    let inside = buffer.ptr().byte_add(40);
    // The driver reports the device address only while a context is current.
    let current = context.push().expect("the context");
    let attributes = inside.attributes().expect("attributes");
    drop(current);
    assert_eq!(attributes.memory_type, Some(CUmemorytype::CU_MEMORYTYPE_DEVICE));
    assert_eq!(attributes.context, context.as_raw());
    assert_eq!(attributes.device, Some(context.device().expect("a device")));
    assert_eq!((attributes.device_ptr, attributes.is_managed), (inside, false));
    assert_eq!(attributes.allocation, (buffer.ptr(), 400));
    let range = inside.address_range(&context).expect("the allocation");
    assert_eq!(range, buffer.ptr()..buffer.ptr().byte_add(400));
    let size = inside.attribute(Attribute::CU_POINTER_ATTRIBUTE_RANGE_SIZE);
    assert_eq!(size.expect("an attribute"), 400);
    let sync = || inside.attribute(Attribute::CU_POINTER_ATTRIBUTE_SYNC_MEMOPS);
    buffer.ptr().set_sync_memops(true).expect("an attribute");
    assert_eq!(sync().expect("an attribute"), 1);
    buffer.ptr().set_sync_memops(false).expect("an attribute");
    assert_eq!(sync().expect("an attribute"), 0);
    for attribute in [0, 5, 23, 99, u32::MAX] {
        let error = inside.attribute(Attribute(attribute)).expect_err("no number");
        assert_eq!(error.code(), CUresult::CUDA_ERROR_INVALID_VALUE);
    }
    // Memory that the driver does not know.
    let value = 5_u32;
    let unknown = DevicePtr::from_raw((&raw const value).addr() as u64);
    let attributes = unknown.attributes().expect("attributes");
    assert_eq!((attributes.memory_type, attributes.device), (None, None));
    assert!(attributes.context.is_null() && attributes.allocation.1 == 0);
    assert!(unknown.attribute(Attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE).is_err());
    let error = unknown.address_range(&context).expect_err("no allocation");
    assert_eq!(error.code(), CUresult::CUDA_ERROR_NOT_FOUND);
}
