//! Tests of memory pools and stream-ordered buffers as objects.

use cuda_driver::pool::PoolOptions;
use cuda_driver::sys::{
    CUmemAccess_flags, CUmemAccessDesc, CUmemLocation, CUmemPool_attribute as Attribute, CUresult, CUstreamCaptureMode,
    Function,
};
use cuda_driver::virtual_memory::read_write;
use cuda_driver::{DeviceBuffer, DevicePtr, Event, MemPool, Stream, StreamBuffer, checked};

use crate::child;
use crate::common::{context, device, driver_version, needs};

#[test]
fn buffers_in_stream_order() {
    let context = context();
    let stream = Stream::new(&context).expect("a stream");
    let values: Vec<u32> = (0..1000).collect();
    let mut buffer = StreamBuffer::<u32>::alloc(&context, &stream, 1000).expect("memory");
    assert_eq!(
        (buffer.len(), buffer.size_bytes(), buffer.is_empty()),
        (1000, 4000, false)
    );
    // The null stream waits for the blocking stream that allocates.
    buffer.as_mut_slice().copy_from(&values).expect("a copy");
    let mut other = DeviceBuffer::<u32>::zeroed(&context, 1000).expect("memory");
    other.copy_from_device(&buffer).expect("a copy between buffers");
    assert_eq!(other.to_vec().expect("a copy"), values);
    // SAFETY: the second stream waits for the fill, and frees the buffer after the copy.
    unsafe {
        let second = Stream::non_blocking(&context).expect("a stream");
        let filled = Event::new(&context).expect("an event");
        buffer.as_mut_slice().fill_u32_async(7, &stream).expect("a fill");
        filled.record(&stream).expect("a record");
        second.wait_event(&filled).expect("a wait");
        other.copy_from_device_async(&buffer, &second).expect("a copy");
        buffer.free_async(&second).expect("a free");
        second.synchronize().expect("the end of the work");
    }
    assert_eq!(other.to_vec().expect("a copy"), [7; 1000]);
}

#[test]
fn buffers_of_no_bytes_and_of_too_many() {
    let context = context();
    let stream = Stream::new(&context).expect("a stream");
    let nothing = StreamBuffer::<u32>::alloc(&context, &stream, 0).expect("no memory at all");
    assert!(nothing.is_empty() && nothing.ptr() == DevicePtr::null());
    assert_eq!(nothing.as_slice().to_vec().expect("a copy"), [0; 0]);
    // SAFETY: the buffer has no memory, so no work uses it.
    unsafe { nothing.free_async(&stream) }.expect("a free of nothing");
    let error = StreamBuffer::<u64>::alloc(&context, &stream, 1 << 50).expect_err("too much");
    assert_eq!(error.code(), CUresult::CUDA_ERROR_OUT_OF_MEMORY);
    assert!(StreamBuffer::<u64>::alloc(&context, &stream, usize::MAX).is_err());
}

#[test]
fn a_buffer_outlives_its_stream_and_its_pool() {
    let context = context();
    let pool = MemPool::new(device()).expect("a pool");
    let stream = Stream::non_blocking(&context).expect("a stream");
    let mut buffer = StreamBuffer::<u32>::alloc_from(&pool, &context, &stream, 64).expect("memory");
    stream.synchronize().expect("the allocation");
    drop(stream);
    pool.destroy().expect("its end");
    buffer.as_mut_slice().fill_u32(5).expect("a fill");
    assert_eq!(buffer.as_slice().to_vec().expect("a copy"), [5; 64]);
    drop(context);
    std::thread::spawn(move || buffer.free().expect("a free"))
        .join()
        .expect("no panic");
}

#[test]
fn raw_handles_of_pools_and_buffers() {
    let context = context();
    let pool = MemPool::new(device()).expect("a pool");
    let raw = pool.into_raw();
    // SAFETY: the handle was owned by the pool above.
    let pool = unsafe { MemPool::from_raw(raw) };
    // SAFETY: the pool lives longer.
    let borrowed = unsafe { MemPool::borrow_raw(pool.as_raw()) };
    let stream = Stream::new(&context).expect("a stream");
    let buffer = StreamBuffer::<u16>::alloc_from(&borrowed, &context, &stream, 3).expect("memory");
    assert_eq!(DevicePtr::from_raw(buffer.as_raw()), buffer.ptr());
    let raw = buffer.into_raw();
    // SAFETY: type, length and context are those of the buffer that owned the address.
    let mut buffer = unsafe { StreamBuffer::<u16>::from_raw(raw, 3, &context) };
    buffer.as_mut_slice().copy_from(&[1, 2, 3]).expect("a copy");
    assert_eq!(buffer.as_slice().to_vec().expect("a copy"), [1, 2, 3]);
    assert!(format!("{buffer:?} {pool:?}").contains("StreamBuffer"));
}

#[test]
fn attributes_of_a_pool() {
    let context = context();
    let stream = Stream::new(&context).expect("a stream");
    let pool = MemPool::new(device()).expect("a pool");
    let get = |attribute| pool.attribute(attribute).expect("an attribute");
    assert_eq!(get(Attribute::CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC), 1);
    pool.set_attribute(Attribute::CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, 0)
        .expect("a flag");
    assert_eq!(get(Attribute::CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC), 0);
    pool.set_attribute(Attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, u64::MAX)
        .expect("a threshold");
    assert_eq!(get(Attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD), u64::MAX);

    let buffer = StreamBuffer::<u8>::alloc_from(&pool, &context, &stream, 1000).expect("memory");
    assert_eq!(get(Attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 1000);
    buffer.free().expect("a free");
    stream.synchronize().expect("all work");
    // Driver 580 counts memory that `cuMemFree` has freed as used for some time.
    assert!([0, 1000].contains(&get(Attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT)));
    assert_eq!(get(Attribute::CU_MEMPOOL_ATTR_USED_MEM_HIGH), 1000);
    assert!(get(Attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) > 0);
    pool.trim_to(0).expect("a trim");
    assert_eq!(get(Attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0);

    let used = Attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT;
    let error = pool.set_attribute(used, 0).expect_err("a read-only attribute");
    assert_eq!(error.code(), CUresult::CUDA_ERROR_INVALID_VALUE);
    for invented in [0, 99, u32::MAX] {
        let error = pool.attribute(Attribute(invented)).expect_err("no attribute");
        assert_eq!(error.code(), CUresult::CUDA_ERROR_INVALID_VALUE, "{error}");
        assert!(pool.set_attribute(Attribute(invented), 1).is_err());
    }
}

#[test]
fn the_current_pool_of_a_device() {
    // In a process of its own, because other tests allocate from the current pool.
    child!("the_current_pool_of_a_device", {
        let (device, context) = (device(), context());
        let default = MemPool::default_of(device).expect("the default pool");
        let pool = MemPool::new(device).expect("a pool");
        pool.make_current(device).expect("a current pool");
        // SAFETY: the pool is destroyed after the last use of `current`.
        let current = unsafe { MemPool::current_of(device) }.expect("the current pool");
        assert_eq!(current.as_raw(), pool.as_raw());
        let stream = Stream::new(&context).expect("a stream");
        let buffer = StreamBuffer::<u8>::alloc(&context, &stream, 512).expect("memory");
        let used = pool.attribute(Attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
        assert_eq!(used.expect("an attribute"), 512);
        drop((buffer, pool));
        // SAFETY: the default pool is never destroyed.
        let current = unsafe { MemPool::current_of(device) }.expect("the current pool");
        assert_eq!(current.as_raw(), default.as_raw());
    });
}

#[test]
fn pools_of_locations() {
    let device = device();
    if driver_version() < 13000 {
        needs("a driver of CUDA 13.0 or later");
        return;
    }
    let here = CUmemLocation::device(device.as_raw());
    let kind = PoolOptions::on_device(device).allocation_type;
    let default = MemPool::default_at(&here, kind).expect("the default pool");
    assert_eq!(
        default.as_raw(),
        MemPool::default_of(device).expect("the default pool").as_raw()
    );
    let nowhere = CUmemLocation::default();
    assert!(MemPool::default_at(&nowhere, kind).is_err());
    let mut options = PoolOptions::on_device(device);
    options.location = nowhere;
    let error = MemPool::with_options(&options).expect_err("no location");
    assert_eq!(error.code(), CUresult::CUDA_ERROR_INVALID_VALUE);
}

#[test]
fn access_to_a_pool() {
    let device = device();
    let here = CUmemLocation::device(device.as_raw());
    let pool = MemPool::new(device).expect("a pool");
    let all = CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    assert_eq!(pool.access(&here).expect("rights"), all);
    pool.set_access(&[read_write(here)]).expect("the same rights");
    let set = |location, flags| {
        let access = CUmemAccessDesc {
            location,
            flags: CUmemAccess_flags(flags),
        };
        pool.set_access(&[access]).expect_err("wrong rights").code()
    };
    assert_eq!(set(here, 0), CUresult::CUDA_ERROR_INVALID_DEVICE);
    assert_eq!(set(here, 1), CUresult::CUDA_ERROR_NOT_SUPPORTED);
    assert_eq!(set(CUmemLocation::device(99), 3), CUresult::CUDA_ERROR_INVALID_DEVICE);
    assert!(pool.access(&CUmemLocation::default()).is_err());
}

#[test]
fn a_captured_stream_allocates_no_buffer() {
    let context = context();
    let stream = Stream::non_blocking(&context).expect("a stream");
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    // SAFETY: the stream is live.
    unsafe { checked::stream_begin_capture(stream.as_raw(), mode) }.expect("a capture");
    let pool = MemPool::new(device()).expect("a pool");
    for (error, function) in [
        (
            StreamBuffer::<u32>::alloc(&context, &stream, 10),
            Function::cuMemAllocAsync,
        ),
        (
            StreamBuffer::<u32>::alloc_from(&pool, &context, &stream, 10),
            Function::cuMemAllocFromPoolAsync,
        ),
    ] {
        let error = error.expect_err("a capture");
        assert_eq!(error.code(), CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        assert_eq!(error.function(), function);
    }
    // SAFETY: the stream is being captured, and the graph is destroyed once.
    unsafe { checked::stream_end_capture(stream.as_raw()).and_then(|graph| checked::graph_destroy(graph)) }
        .expect("the end of the capture");
}

/// Freeing waits for the work of the buffer's context only, so it must be the stream's.
#[test]
fn a_stream_of_another_context_allocates_no_buffer() {
    let (own, other) = (context(), context());
    let stream = Stream::new(&own).expect("a stream");
    // SAFETY: the stream lives longer.
    let borrowed = unsafe { Stream::borrow_raw(stream.as_raw()) };
    let pool = MemPool::new(device()).expect("a pool");
    for stream in [&stream, &*borrowed] {
        for buffer in [
            StreamBuffer::<u32>::alloc(&other, stream, 10),
            StreamBuffer::<u32>::alloc_from(&pool, &other, stream, 10),
        ] {
            let error = buffer.expect_err("another context");
            assert_eq!(error.code(), CUresult::CUDA_ERROR_INVALID_CONTEXT);
        }
        StreamBuffer::<u32>::alloc(&own, stream, 10).expect("memory");
    }
    // A default stream is the one of the buffer's context, not of the current one.
    let _current = own.push().expect("a push");
    for stream in [Stream::null(), Stream::legacy(), Stream::per_thread()] {
        StreamBuffer::<u32>::alloc(&other, &stream, 10).expect("memory");
    }
}

#[cfg(target_os = "linux")]
mod shared {
    use std::env;
    use std::os::fd::{AsFd, AsRawFd};

    use cuda_driver::pool::SharedPointer;
    use cuda_driver::sys::CUmemAllocationHandleType as HandleType;

    use super::*;
    use crate::common::{CHILD, in_child, in_child_with_input};
    use crate::test_path;

    fn shared_pool() -> MemPool {
        let mut options = PoolOptions::on_device(device());
        options.handle_types = HandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        MemPool::with_options(&options).expect("a pool that can be shared")
    }

    #[test]
    fn exported_and_imported() {
        let context = context();
        let stream = Stream::new(&context).expect("a stream");
        let pool = shared_pool();
        let fd = pool.export_fd().expect("a descriptor");
        assert!(fd.as_raw_fd() > 2);
        let imported = MemPool::import_fd(fd.as_fd()).expect("the pool again");
        let error = StreamBuffer::<u32>::alloc_from(&imported, &context, &stream, 4).expect_err("an imported pool");
        assert_eq!(error.code(), CUresult::CUDA_ERROR_INVALID_VALUE);

        let buffer = StreamBuffer::<u32>::alloc_from(&pool, &context, &stream, 4).expect("memory");
        buffer.export().expect("the bytes for another process");
        let private = StreamBuffer::<u32>::alloc(&context, &stream, 4).expect("memory");
        assert!(private.export().is_err());
        let empty = StreamBuffer::<u32>::alloc_from(&pool, &context, &stream, 0).expect("no memory");
        let error = empty.export().expect_err("no memory to export");
        assert_eq!(error.code(), CUresult::CUDA_ERROR_INVALID_VALUE);
        assert!(MemPool::new(device()).expect("a pool").export_fd().is_err());
    }

    /// Runs in the other process, whose standard input is the descriptor.
    fn importer() {
        let context = context();
        let bytes = env::var("TEST_POINTER").expect("the bytes of the pointer");
        let bytes: Vec<u8> = bytes.split(',').map(|byte| byte.parse().expect("a byte")).collect();
        let shared = SharedPointer(bytes.try_into().expect("64 bytes"));
        let pool = MemPool::import_fd(std::io::stdin().as_fd()).expect("the pool");
        // SAFETY: the buffer has 1000 values, and the other process keeps it.
        let mut buffer = unsafe { pool.import::<u32>(&shared, 1000, &context) }.expect("the buffer");
        assert_eq!(buffer.as_slice().to_vec().expect("a copy"), [41; 1000]);
        buffer.as_mut_slice().fill_u32(42).expect("a fill");
        buffer.free().expect("a free");
    }

    #[test]
    fn by_another_process() {
        let name = test_path!("by_another_process");
        if env::var(CHILD).as_deref() == Ok(&*name) {
            in_child(&name, &[], importer);
            return;
        }
        let context = context();
        let stream = Stream::new(&context).expect("a stream");
        let pool = shared_pool();
        let mut buffer = StreamBuffer::<u32>::alloc_from(&pool, &context, &stream, 1000).expect("memory");
        buffer.as_mut_slice().fill_u32(41).expect("a fill");
        context.synchronize().expect("the fill");
        // The pool must be exported first: until then, driver 580 refuses to export an address of its memory.
        let descriptor = pool.export_fd().expect("a descriptor");
        let bytes = buffer.export().expect("the bytes for another process").0;
        let bytes: Vec<String> = bytes.iter().map(u8::to_string).collect();
        let environment = [("TEST_POINTER", &*bytes.join(","))];
        let _ = in_child_with_input(&name, &environment, descriptor.into(), importer);
        assert_eq!(buffer.as_slice().to_vec().expect("a copy"), [42; 1000]);
    }
}
