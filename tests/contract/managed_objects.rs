//! Tests of managed memory as objects: `ManagedBuffer`, and the functions of `managed` for several ranges.

use cuda_driver::sys::{
    self, CU_DEVICE_CPU, CUdevice_attribute, CUmem_advise, CUmem_range_attribute, CUmemAttach_flags, CUmemLocation,
    CUresult, Function,
};
use cuda_driver::{Context, DeviceBuffer, DevicePtr, ManagedBuffer, Stream, checked, managed};

use crate::common::{context, driver_version, needs};

/// Returns a context on a device whose managed memory the host can access at any time, and the location of the device.
/// Returns `None` if the device is of another kind, and reports that.
fn concurrent() -> Option<(Context, CUmemLocation)> {
    let context = context();
    let device = context.device().expect("a device");
    let attribute = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS;
    if device.attribute(attribute).expect("an attribute") == 0 {
        needs("a device with concurrent managed access");
        return None;
    }
    Some((context, CUmemLocation::device(device.as_raw())))
}

#[test]
fn the_host_and_the_device_share_values() {
    let Some((context, _)) = concurrent() else { return };
    let mut buffer = ManagedBuffer::from_slice(&context, &[1_u32, 2, 3]).expect("memory");
    assert_eq!((buffer.len(), buffer.size_bytes(), buffer.is_empty()), (3, 12, false));
    assert_eq!(buffer.host().expect("the values"), [1, 2, 3]);
    buffer.host_mut().expect("the values")[1] = 20;
    let mut device = DeviceBuffer::<u32>::alloc(&context, 3).expect("memory");
    device.copy_from_device(&buffer).expect("a copy");
    assert_eq!(device.to_vec().expect("a copy"), [1, 20, 3]);
    // The fill may still be queued when the host asks for the values: `host` waits for it.
    buffer.as_mut_slice().fill_u32(7).expect("a fill");
    assert_eq!(buffer.host().expect("the values"), [7; 3]);
    let address = buffer.host().expect("the values").as_ptr().addr() as u64;
    assert_eq!(DevicePtr::from_raw(address), buffer.ptr());
    drop(context);
    std::thread::spawn(move || buffer.free().expect("a free"))
        .join()
        .expect("no panic");
}

#[test]
fn values_through_views_only() {
    let context = context();
    let mut buffer =
        ManagedBuffer::<u16>::with_flags(&context, 100, CUmemAttach_flags::CU_MEM_ATTACH_GLOBAL).expect("memory");
    buffer.as_mut_slice().fill_u16(4).expect("a fill");
    assert_eq!(buffer.as_slice().to_vec().expect("a copy"), [4; 100]);
    let raw = buffer.into_raw();
    // SAFETY: type, length and context are those of the buffer that owned the address.
    let buffer = unsafe { ManagedBuffer::<u16>::from_raw(raw, 100, &context) }.expect("a buffer");
    assert_eq!(DevicePtr::from_raw(buffer.as_raw()), buffer.ptr());
    assert_eq!(buffer.as_slice().to_vec().expect("a copy"), [4; 100]);
    assert!(format!("{buffer:?}").contains("ManagedBuffer"));
}

#[test]
fn wrong_sizes_flags_and_ranges() {
    let Some((context, here)) = concurrent() else { return };
    let mut nothing = ManagedBuffer::<u32>::alloc(&context, 0).expect("no memory at all");
    assert!(nothing.host().expect("no values").is_empty());
    assert!(nothing.host_mut().expect("no values").is_empty());
    nothing
        .advise(.., CUmem_advise::CU_MEM_ADVISE_SET_READ_MOSTLY, here)
        .expect("nothing");
    assert!(nothing.attributes(..).is_err());
    for flags in [0, 3, 4, 99] {
        let error = ManagedBuffer::<u32>::with_flags(&context, 4, CUmemAttach_flags(flags)).expect_err("wrong flags");
        assert_eq!(error.code(), CUresult::CUDA_ERROR_INVALID_VALUE);
    }
    let stream = Stream::new(&context).expect("a stream");
    let buffer = ManagedBuffer::<u32>::alloc(&context, 100).expect("memory");
    assert!(buffer.prefetch(50..101, here, &stream).is_err());
    assert!(buffer.prefetch(.., CUmemLocation::device(99), &stream).is_err());
    assert!(buffer.advise(.., CUmem_advise(99), here).is_err());
    for flags in [0, 3, 99] {
        // SAFETY: the call fails and changes nothing.
        let error = unsafe { buffer.attach(&stream, CUmemAttach_flags(flags)) }.expect_err("wrong flags");
        assert_eq!(error.code(), CUresult::CUDA_ERROR_INVALID_VALUE);
    }
}

#[test]
fn advice_prefetches_and_queries() {
    let Some((context, here)) = concurrent() else { return };
    let stream = Stream::new(&context).expect("a stream");
    // 64 KiB, a multiple of every system's page size.
    let half = (64 << 10) / 4;
    let buffer = ManagedBuffer::<u32>::alloc(&context, 2 * half).expect("memory");
    let device = context.device().expect("a device").as_raw();
    buffer
        .advise(.., CUmem_advise::CU_MEM_ADVISE_SET_READ_MOSTLY, here)
        .expect("advice");
    buffer
        .advise(
            ..,
            CUmem_advise::CU_MEM_ADVISE_SET_PREFERRED_LOCATION,
            CUmemLocation::host(),
        )
        .expect("advice");
    buffer
        .advise(..half, CUmem_advise::CU_MEM_ADVISE_SET_ACCESSED_BY, here)
        .expect("advice");
    buffer.prefetch(.., here, &stream).expect("a prefetch");
    stream.synchronize().expect("its end");
    let attributes = buffer.attributes(..).expect("the attributes");
    assert!(attributes.read_mostly);
    assert_eq!(attributes.preferred_location, CU_DEVICE_CPU);
    assert_eq!(attributes.last_prefetch_location, device);
    assert_eq!(buffer.accessed_by(..half).expect("the devices"), [device]);
    assert_eq!(buffer.accessed_by(..).expect("the devices"), [0; 0]);
    let preferred = CUmem_range_attribute::CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION;
    assert_eq!(buffer.attribute(half.., preferred).expect("a location"), CU_DEVICE_CPU);
    buffer.free().expect("a free");
}

#[test]
fn wrong_locations() {
    let Some((context, here)) = concurrent() else { return };
    if !sys::DEFAULT.supports(Function::cuMemAdvise_v2) {
        return needs("a driver of CUDA 12.2");
    }
    let stream = Stream::new(&context).expect("a stream");
    let buffer = ManagedBuffer::<u32>::alloc(&context, 64 << 10).expect("memory");
    let (preferred, accessed, not_accessed) = (
        CUmem_advise::CU_MEM_ADVISE_SET_PREFERRED_LOCATION,
        CUmem_advise::CU_MEM_ADVISE_SET_ACCESSED_BY,
        CUmem_advise::CU_MEM_ADVISE_UNSET_ACCESSED_BY,
    );
    for (advice, location) in [
        (preferred, CUmemLocation::device(99)),
        (preferred, CUmemLocation::host_numa(99)),
        (accessed, CUmemLocation::device(99)),
        (accessed, CUmemLocation::host_numa(1)),
        (not_accessed, CUmemLocation::host_numa(1)),
    ] {
        let error = buffer.advise(.., advice, location).expect_err("a wrong location");
        assert_eq!(error.code(), CUresult::CUDA_ERROR_INVALID_VALUE, "{advice:?}");
    }
    let nowhere = CUmemLocation::host_numa(99);
    let error = buffer.prefetch(.., nowhere, &stream).expect_err("no such node");
    assert_eq!(error.code(), CUresult::CUDA_ERROR_INVALID_VALUE);
    buffer.advise(.., accessed, here).expect("advice");
}

#[test]
fn attached_to_a_default_stream() {
    let Some((context, _)) = concurrent() else { return };
    let buffer = ManagedBuffer::<u32>::with_flags(&context, 64, CUmemAttach_flags::CU_MEM_ATTACH_HOST).expect("memory");
    let _current = context.push().expect("a context");
    let single = CUmemAttach_flags::CU_MEM_ATTACH_SINGLE.0;
    for (stream, code) in [
        (std::ptr::null_mut(), Err(CUresult::CUDA_ERROR_INVALID_VALUE)),
        (sys::CU_STREAM_LEGACY, Ok(())),
        (sys::CU_STREAM_PER_THREAD, Ok(())),
    ] {
        // SAFETY: the memory is live, and no work uses it.
        let attached = unsafe { checked::stream_attach_mem_async(stream, buffer.ptr().as_raw(), 0, single) };
        assert_eq!(attached.map_err(|error| error.code()), code, "{stream:?}");
    }
}

#[test]
fn attached_to_a_stream_and_back() {
    let Some((context, _)) = concurrent() else { return };
    let stream = Stream::new(&context).expect("a stream");
    let mut buffer =
        ManagedBuffer::<u32>::with_flags(&context, 64, CUmemAttach_flags::CU_MEM_ATTACH_HOST).expect("memory");
    buffer.host_mut().expect("the values").fill(1);
    // SAFETY: only this stream uses the memory while it is attached to it.
    unsafe {
        buffer
            .attach(&stream, CUmemAttach_flags::CU_MEM_ATTACH_SINGLE)
            .expect("an attachment");
        buffer.as_mut_slice().fill_u32_async(2, &stream).expect("a fill");
        buffer
            .attach(&stream, CUmemAttach_flags::CU_MEM_ATTACH_GLOBAL)
            .expect("its end");
    }
    stream.synchronize().expect("the work");
    assert_eq!(buffer.host().expect("the values"), [2; 64]);
}

#[test]
fn several_ranges_in_one_call() {
    let Some((context, here)) = concurrent() else { return };
    if driver_version() < 13000 {
        needs("a driver of CUDA 13");
        return;
    }
    let stream = Stream::new(&context).expect("a stream");
    let mut first = ManagedBuffer::<u32>::alloc(&context, 1 << 14).expect("memory");
    let mut second = ManagedBuffer::<u32>::alloc(&context, 1 << 14).expect("memory");
    first.host_mut().expect("the values").fill(1);
    second.host_mut().expect("the values").fill(2);
    // SAFETY: both ranges are managed memory, which lives longer than the work; only the second one is discarded.
    unsafe {
        managed::prefetch(&[first.as_slice(), second.as_slice()], here, &stream).expect("prefetches");
        managed::discard(&[second.as_slice()], &stream).expect("a discard");
        managed::discard_and_prefetch(&[second.as_slice()], here, &stream).expect("both");
    }
    stream.synchronize().expect("the work");
    assert!(first.host().expect("the values").iter().all(|value| *value == 1));
    second.host_mut().expect("the values").fill(3);
    let values = second.as_slice().to_vec().expect("a copy");
    assert!(values.iter().all(|value| *value == 3));
}
