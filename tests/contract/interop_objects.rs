//! Tests of objects for memory operations, stream attributes, tensor maps, external memory, core dumps, the driver's
//! log, views of foreign memory, and the profiler.

use cuda_driver::coredump::Settings;
use cuda_driver::driver_log::{self, LogCallback, LogPosition};
#[cfg(target_os = "linux")]
use cuda_driver::external::{ExternalMemory, ExternalSemaphore};
use cuda_driver::memory_operations::MemoryOperation;
use cuda_driver::sys::{self, CUresult, CUstreamWaitValue_flags, CUstreamWriteValue_flags, Function};
use cuda_driver::tensor_map::{Layout, TensorMap, Tiles};
use cuda_driver::{Device, DeviceBuffer, DevicePtr, Stream};

use crate::child;
use crate::common::{context, driver, has_version, is_software, needs};

const WRITE: CUstreamWriteValue_flags = CUstreamWriteValue_flags::CU_STREAM_WRITE_VALUE_DEFAULT;
const EQUAL: CUstreamWaitValue_flags = CUstreamWaitValue_flags::CU_STREAM_WAIT_VALUE_EQ;
const INVALID: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;

#[test]
fn streams_write_and_wait_for_values() {
    let context = context();
    let (one, other) = (
        Stream::non_blocking(&context).expect("a stream"),
        Stream::non_blocking(&context).expect("a stream"),
    );
    let memory = DeviceBuffer::from_slice(&context, &[0_u64; 4]).expect("memory");
    context.synchronize().expect("the end");
    let at = |index: u64| memory.ptr().byte_add(8 * index);
    // SAFETY: the memory lives until both streams are done, and the addresses are multiples of 8.
    unsafe {
        one.wait_value32(at(0), 5, EQUAL).expect("a wait");
        // Nothing may fail before the write that ends the wait, because destroying the context waits for the stream.
        let written = one.write_value64(at(1), 1 << 40, WRITE);
        let done = one.query();
        other.write_value32(at(0), 5, WRITE).expect("a write");
        written.expect("a write");
        assert_eq!(done, Ok(false));
        other.wait_value64(at(1), 1 << 40, EQUAL).expect("a wait");
        let operations = [
            MemoryOperation::wait_value64(at(1), 1 << 40, EQUAL),
            MemoryOperation::write_value32(at(2), 7, WRITE),
            MemoryOperation::wait_value32(at(2), 7, EQUAL),
            MemoryOperation::write_value64(at(3), u64::MAX, WRITE),
        ];
        other.memory_operations(&operations).expect("a batch");
        other.memory_operations(&[]).expect("no operations");
        let many = vec![operations[3]; 256];
        assert_eq!(other.memory_operations(&many).map_err(|e| e.code()), Err(INVALID));
        let bad = other.write_value32(at(0).byte_add(2), 1, WRITE);
        assert_eq!(bad.map_err(|e| e.code()), Err(INVALID));
    }
    one.synchronize().expect("the end");
    other.synchronize().expect("the end");
    assert_eq!(memory.to_vec().expect("a copy"), [5, 1 << 40, 7, u64::MAX]);
}

#[test]
fn stream_attributes_are_typed() {
    let context = context();
    let (one, other) = (
        Stream::new(&context).expect("a stream"),
        Stream::new(&context).expect("a stream"),
    );
    let spin = sys::CUsynchronizationPolicy::CU_SYNC_POLICY_SPIN;
    one.set_synchronization_policy(spin).expect("a policy");
    assert_eq!(one.synchronization_policy(), Ok(spin));
    let bad = one.set_synchronization_policy(sys::CUsynchronizationPolicy(99));
    assert_eq!(bad.map_err(|e| e.code()), Err(INVALID));
    let least = context.stream_priority_range().expect("a range").least_priority;
    one.set_priority(least + 100).expect("a clamped priority");
    assert_eq!(one.priority(), Ok(least));
    let remote = sys::CUlaunchMemSyncDomain::CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
    one.set_mem_sync_domain(remote).expect("a domain");
    assert_eq!(one.mem_sync_domain(), Ok(remote));
    let map = one.mem_sync_domain_map().expect("a map");
    one.set_mem_sync_domain_map(map).expect("the same map");
    assert_eq!(one.access_policy_window().expect("a window").num_bytes, 0);
    other.copy_attributes_from(&one).expect("a copy");
    assert_eq!(other.synchronization_policy(), Ok(spin));
    let launch = sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    assert_eq!(one.attribute(launch).map(drop).map_err(|e| e.code()), Err(INVALID));
    if has_version(12000) {
        assert_ne!(one.id(), other.id());
    }
    if has_version(12080) {
        assert_eq!(one.device(), context.device());
    }
}

#[test]
fn tensor_maps_describe_tensors() {
    driver();
    if !sys::DEFAULT.supports(Function::cuTensorMapEncodeTiled) {
        needs("a driver of CUDA 12");
        return;
    }
    let context = context();
    let matrix = DeviceBuffer::<f32>::zeroed(&context, 64 * 128).expect("memory");
    let float = sys::CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    let layout = Layout::new(float, matrix.ptr(), &[128, 64], &[512]);
    let tiles = Tiles {
        size: &[32, 16],
        element_strides: &[1, 1],
    };
    let mut map = TensorMap::tiled(&context, &layout, &tiles).expect("a map");
    let same = TensorMap::tiled(&context, &layout, &tiles).expect("the same map");
    assert_eq!(map.as_raw().opaque, same.as_raw().opaque);
    map.replace_address(&context, matrix.ptr().byte_add(16))
        .expect("another address");
    assert_ne!(map.as_raw().opaque, same.as_raw().opaque);
    map.replace_address(&context, matrix.ptr()).expect("the first address");
    assert_eq!(map.as_raw().opaque, same.as_raw().opaque);
    let odd = Layout {
        address: matrix.ptr().byte_add(4),
        ..layout
    };
    // Lists of different lengths are rejected before the driver is called.
    let strides = Layout { strides: &[], ..layout };
    let large = Tiles {
        size: &[512, 16],
        ..tiles
    };
    let flat = Layout {
        sizes: &[],
        strides: &[],
        ..layout
    };
    for (layout, tiles) in [(odd, tiles), (strides, tiles), (layout, large), (flat, tiles)] {
        let code = TensorMap::tiled(&context, &layout, &tiles)
            .map(drop)
            .map_err(|e| e.code());
        assert_eq!(code, Err(INVALID), "{layout:?}, {tiles:?}");
    }
}

#[test]
fn tensor_maps_describe_tensors_of_one_dimension() {
    driver();
    if !sys::DEFAULT.supports(Function::cuTensorMapEncodeTiled) {
        needs("a driver of CUDA 12");
        return;
    }
    let context = context();
    let values = DeviceBuffer::<f32>::zeroed(&context, 128).expect("memory");
    let float = sys::CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    let layout = Layout::new(float, values.ptr(), &[128], &[]);
    let tiles = Tiles {
        size: &[32],
        element_strides: &[1],
    };
    TensorMap::tiled(&context, &layout, &tiles).expect("a map");
}

/// Returns true for the codes with which drivers reject a descriptor of the wrong kind.
#[cfg(target_os = "linux")]
fn is_rejection(error: &cuda_driver::Error) -> bool {
    [1, 304, 400, 801, 999].contains(&error.code().0)
}

#[test]
#[cfg(target_os = "linux")]
fn imports_of_other_descriptors_fail() {
    use std::fs::File;
    use std::os::fd::OwnedFd;

    let context = context();
    let file = || OwnedFd::from(File::open("/dev/null").expect("a file"));
    let kind = sys::CUexternalSemaphoreHandleType::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD;
    // SAFETY: the descriptor is open; the driver rejects it.
    let memory = unsafe { ExternalMemory::import_fd(&context, file(), 4096) }.expect_err("no memory");
    assert!(is_rejection(&memory), "{memory}");
    // SAFETY: as above.
    let semaphore = unsafe { ExternalSemaphore::import_fd(&context, file(), kind) }.expect_err("no semaphore");
    assert!(is_rejection(&semaphore), "{semaphore}");
    assert!(!context.is_current().expect("an answer"));
}

#[test]
fn core_dumps_can_be_configured() {
    child!("core_dumps_can_be_configured", {
        driver();
        let settings = Settings::global();
        if let Err(error) = settings.enabled_on_exception() {
            assert!(is_software() || error.is_missing_function(), "{error}");
            needs("a driver that writes core dumps");
            return;
        }
        settings.set_file(c"core-of-a-test").expect("a name");
        assert_eq!(settings.file().expect("a name"), "core-of-a-test");
        settings.set_enabled_on_exception(false).expect("a setting");
        assert_eq!(settings.enabled_on_exception(), Ok(false));
        let unknown = settings.get(sys::CUcoredumpSettings(99));
        assert_eq!(unknown.map_err(|e| e.code()), Err(INVALID));
        // The driver accepts names of up to 1,024 bytes, with the NUL.
        for setting in [
            sys::CUcoredumpSettings::CU_COREDUMP_FILE,
            sys::CUcoredumpSettings::CU_COREDUMP_PIPE,
        ] {
            for (mut bytes, code) in [(2, 0), (1024, 0), (1025, 1), (4096, 1)] {
                let mut name = vec![b'a'; bytes];
                name[bytes - 1] = 0;
                // SAFETY: the name has that many bytes and ends with a NUL.
                let set =
                    unsafe { sys::cuCoredumpSetAttributeGlobal(setting, name.as_mut_ptr().cast(), &raw mut bytes) };
                assert_eq!(set.0, code, "{setting:?}, {} bytes", name.len());
            }
        }
    });
}

#[test]
fn errors_contain_the_drivers_log_messages() {
    child!("errors_contain_the_drivers_log_messages", {
        let context = context();
        if let Err(error) = driver_log::attach() {
            assert!(error.is_missing_function(), "{error}");
            needs("a driver with a log (CUDA 12.9)");
            return;
        }
        let mut position = LogPosition::end().expect("a position");
        let (sender, receiver) = std::sync::mpsc::channel();
        let callback = LogCallback::new(move |_, message| _ = sender.send(message.to_owned())).expect("a callback");
        // SAFETY: the driver rejects the address, which it did not allocate.
        let error = unsafe { DeviceBuffer::<u8>::from_raw(0x10, 1, &context) }
            .free()
            .expect_err("no memory");
        assert_eq!(error.code(), INVALID);
        callback.unregister().expect("no more messages");
        let messages: Vec<String> = receiver.into_iter().collect();
        assert!(!messages.is_empty());
        // The message that begins with `Returning` repeats code and function, so `Error` leaves it out.
        let reasons: Vec<&str> = messages
            .iter()
            .map(String::as_str)
            .filter(|m| !m.starts_with("Returning "))
            .collect();
        assert_eq!(error.log().unwrap_or_default(), reasons.join("\n"));
        let log = position.read().expect("the log");
        for message in &messages {
            assert!(log.contains(message), "{log:?}, {message:?}");
        }
        assert_eq!(position.read().expect("the rest"), "");
        let device = Device::get(9999).expect_err("no device");
        assert!(device.to_string().starts_with("cuDeviceGet failed"), "{device}");
    });
}

#[test]
fn views_of_foreign_memory_name_their_context() {
    use cuda_driver::DeviceSliceMut;

    let context = context();
    let memory = DeviceBuffer::<u32>::zeroed(&context, 8).expect("memory").into_raw();
    {
        // SAFETY: this test owns the memory, which has 8 values of this context.
        let mut view = unsafe { DeviceSliceMut::<u32>::from_raw_parts(DevicePtr::from_raw(memory), 8, Some(&context)) };
        // No context is current; the view makes its own current.
        view.copy_from(&[3; 8]).expect("a copy");
        view.slice_mut(2..4).expect("a part").fill_u32(4).expect("a fill");
        assert_eq!(view.to_vec().expect("a copy"), [3, 3, 4, 4, 3, 3, 3, 3]);
    }
    // SAFETY: `into_raw` gave up this memory.
    drop(unsafe { DeviceBuffer::<u32>::from_raw(memory, 8, &context) });
}

#[test]
fn the_profiler_needs_a_context() {
    let context = context();
    let switch = || {
        // SAFETY: the current context, if there is one, is live.
        unsafe { [sys::cuProfilerStart(), sys::cuProfilerStop()] }
    };
    assert_eq!(switch(), [CUresult::CUDA_ERROR_INVALID_CONTEXT; 2]);
    let current = context.push().expect("a push");
    assert_eq!(switch(), [CUresult::CUDA_SUCCESS; 2]);
    current.pop().expect("a pop");
    // The guard makes its context current for the calls.
    let profiling = context.profile().expect("the start");
    drop(context.profile().expect("a second start"));
    profiling.stop().expect("the end");
    assert_eq!(switch(), [CUresult::CUDA_ERROR_INVALID_CONTEXT; 2]);
}
