//! Tests, on the fake driver, of objects that tests on a device use in part or not at all: multicast objects, access to
//! peers, splits of resources, owned child graphs, checkpoints, graphics resources, external memory and semaphores, and
//! core dumps.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::fake;
use crate::checkpoint::Process;
use crate::coredump::{CoredumpCallback, Settings};
use crate::external::{ExternalMemory, ExternalSemaphore};
use crate::graph::Graph;
use crate::graphics::GraphicsResource;
use crate::multicast::Multicast;
use crate::sys::{
    self, CUCoredumpGenerationFlags, CUDA_EXTERNAL_MEMORY_HANDLE_DESC, CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC,
    CUgraphicsMapResourceFlags, CUmulticastGranularity_flags, CUmulticastObjectProp, CUresult,
};
use crate::{Context, Device, DevicePtr, Stream};

fn context() -> Context {
    fake::install();
    let context = Context::create(Device::from_raw(3)).unwrap();
    fake::calls();
    context
}

#[test]
fn multicast_objects_are_released_once() {
    fake::install();
    let properties = CUmulticastObjectProp {
        numDevices: 2,
        size: 4096,
        ..Default::default()
    };
    let minimum = CUmulticastGranularity_flags::CU_MULTICAST_GRANULARITY_MINIMUM;
    assert_eq!(Multicast::granularity(&properties, minimum), Ok(512));
    let object = Multicast::create(&properties).unwrap();
    object.add_device(Device::from_raw(3)).unwrap();
    // SAFETY: the fake driver takes any handle and address.
    unsafe {
        object.bind_memory(512, 9, 1024, 2048).unwrap();
        object.bind_address(0, DevicePtr::from_raw(7), 512).unwrap();
        // The fake driver does not export `cuMulticastBindMem_v2`.
        let error = object.bind_memory_of(Device::from_raw(3), 0, 9, 0, 512).unwrap_err();
        assert!(error.is_missing_function());
    }
    object.unbind(Device::from_raw(3), 512, 2048).unwrap();
    drop(object);
    Multicast::create(&properties).unwrap().release().unwrap();
    let raw = Multicast::create(&properties).unwrap().into_raw();
    // SAFETY: the handle was released from its owner.
    drop(unsafe { Multicast::from_raw(raw) });
    let create = "cuMulticastCreate(2, 4096)";
    assert_eq!(
        fake::calls(),
        [
            "cuMulticastGetGranularity(2, 0)",
            create,
            "cuMulticastAddDevice(3)",
            "cuMulticastBindMem(512, 9, 1024, 2048, 0)",
            "cuMulticastBindAddr(0, 7, 512, 0)",
            "cuMulticastUnbind(3, 512, 2048)",
            "cuMemRelease",
            create,
            "cuMemRelease",
            create,
            "cuMemRelease",
        ]
    );
}

/// Access ends only after the context's work is done, because a running kernel could still use the peer's memory.
#[test]
fn peer_access_ends_after_the_work() {
    let (context, peer) = (context(), context());
    let access = context.enable_peer_access(&peer).unwrap();
    fake::calls();
    let [push, pop] = ["cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2"];
    let end = [push, "cuCtxSynchronize", "cuCtxDisablePeerAccess", pop];
    drop(access);
    assert_eq!(fake::calls(), end);
    // Access also ends if the wait returns a fault.
    let access = context.enable_peer_access(&peer).unwrap();
    fake::calls();
    fake::fail("cuCtxSynchronize", 719);
    let error = access.disable().unwrap_err();
    assert_eq!(error.code(), sys::CUresult::CUDA_ERROR_LAUNCH_FAILED);
    assert_eq!(fake::calls(), end);
}

#[test]
fn checkpoints_are_of_a_process() {
    fake::install();
    let process = Process::with_id(77);
    assert_eq!(process.state(), Ok(sys::CUprocessState::CU_PROCESS_STATE_LOCKED));
    assert_eq!(process.restore_thread(), Ok(12));
    process.lock(500).unwrap();
    process.checkpoint().unwrap();
    process.restore(&[]).unwrap();
    process.restore(&[sys::CUcheckpointGpuPair::default(); 2]).unwrap();
    process.unlock().unwrap();
    assert_eq!(
        fake::calls(),
        [
            "cuCheckpointProcessGetState(77)",
            "cuCheckpointProcessGetRestoreThreadId(77)",
            "cuCheckpointProcessLock(77, 500)",
            "cuCheckpointProcessCheckpoint(77, 0x0)",
            "cuCheckpointProcessRestore(77, 0)",
            "cuCheckpointProcessRestore(77, 2)",
            "cuCheckpointProcessUnlock(77, 0x0)",
        ]
    );
}

#[test]
fn graphics_resources_are_unregistered_in_their_context() {
    let context = context();
    let stream = Stream::new(&context).unwrap();
    let raw = core::ptr::without_provenance_mut(0x50);
    // SAFETY: the fake driver takes any handle.
    let (resource, borrowed) = unsafe {
        (
            GraphicsResource::from_raw(raw, &context),
            GraphicsResource::borrow_raw(raw),
        )
    };
    fake::calls();
    borrowed
        .set_map_flags(CUgraphicsMapResourceFlags::CU_GRAPHICS_MAP_RESOURCE_FLAGS_READ_ONLY)
        .unwrap();
    // SAFETY: as above.
    unsafe {
        GraphicsResource::map(&[&resource, &borrowed], &stream).unwrap();
        assert_eq!(resource.mapped_pointer().unwrap().size, 64);
        assert!(!resource.mapped_array(1, 2).unwrap().is_null());
        assert!(resource.mapped_mipmapped_array().unwrap_err().is_missing_function());
        GraphicsResource::unmap(&[&resource], &stream).unwrap();
    }
    drop((borrowed, resource));
    assert_eq!(
        fake::calls(),
        [
            "cuGraphicsResourceSetMapFlags_v2(1)",
            "cuGraphicsMapResources(2, 0x50)",
            "cuGraphicsResourceGetMappedPointer_v2",
            "cuGraphicsSubResourceGetMappedArray(1, 2)",
            "cuGraphicsUnmapResources(1, 0x50)",
            "cuCtxPushCurrent_v2",
            "cuGraphicsUnregisterResource",
            "cuCtxPopCurrent_v2",
        ]
    );
    // SAFETY: as above.
    let resource = unsafe { GraphicsResource::from_raw(raw, &context) };
    fake::fail("cuGraphicsUnregisterResource", 999);
    assert!(resource.unregister().is_err());
}

#[test]
fn external_memory_outlives_its_buffers() {
    let context = context();
    let description = CUDA_EXTERNAL_MEMORY_HANDLE_DESC {
        type_: sys::CUexternalMemoryHandleType::CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD,
        size: 4096,
        ..Default::default()
    };
    // SAFETY: the fake driver takes any handle.
    let memory = unsafe { ExternalMemory::import(&context, &description) }.unwrap();
    let buffer = memory.buffer::<u32>(16, 10).unwrap();
    assert_eq!((buffer.len(), buffer.as_slice().len()), (10, 10));
    drop(context);
    memory.destroy().unwrap();
    let mut calls = fake::calls();
    calls.retain(|call| !call.contains("Current"));
    assert_eq!(
        calls,
        [
            "cuImportExternalMemory(1, 4096)",
            "cuExternalMemoryGetMappedBuffer(16, 40)"
        ]
    );
    drop(buffer);
    assert_eq!(
        fake::calls(),
        [
            "cuMemFree_v2",
            "cuCtxPushCurrent_v2",
            "cuDestroyExternalMemory",
            "cuCtxPopCurrent_v2",
            "cuCtxDestroy_v2"
        ]
    );
}

#[test]
#[cfg(unix)]
fn an_import_owns_the_descriptor_only_if_it_succeeds() {
    use std::fs::File;
    use std::io::Read;
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
    use std::os::unix::net::UnixStream;

    let context = context();
    let exe = std::env::current_exe().unwrap();
    let fd = OwnedFd::from(File::open(&exe).unwrap());
    let number = fd.as_raw_fd();
    // SAFETY: the fake driver takes any descriptor.
    let memory = unsafe { ExternalMemory::import_fd(&context, fd, 4096) }.unwrap();
    // The fake driver does not close the descriptor, so it can still be read.
    // SAFETY: `import_fd` released the descriptor.
    let mut file = unsafe { File::from_raw_fd(number) };
    assert_eq!(file.read(&mut [0]).unwrap(), 1);
    drop(memory);
    let kind = sys::CUexternalSemaphoreHandleType::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD;
    fake::fail("cuImportExternalSemaphore", 801);
    let (sent, mut other_end) = UnixStream::pair().unwrap();
    // SAFETY: as above.
    assert!(unsafe { ExternalSemaphore::import_fd(&context, sent.into(), kind) }.is_err());
    // The failed import closed `sent`, so the read returns 0. If `sent` were open, the read would fail, because there
    // is nothing to read.
    other_end.set_nonblocking(true).unwrap();
    assert_eq!(other_end.read(&mut [0]).unwrap(), 0);
}

#[test]
fn semaphores_are_signalled_and_waited_for() {
    let context = context();
    let stream = Stream::new(&context).unwrap();
    let description = CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC {
        type_: sys::CUexternalSemaphoreHandleType::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD,
        ..Default::default()
    };
    // SAFETY: the fake driver takes any handle.
    unsafe {
        let semaphore = ExternalSemaphore::import(&context, &description).unwrap();
        semaphore.wait(&stream, 4).unwrap();
        semaphore.signal(&stream, 5).unwrap();
        drop(ExternalSemaphore::borrow_raw(semaphore.as_raw()));
        semaphore.destroy().unwrap();
    }
    let mut calls = fake::calls();
    calls.retain(|call| call.contains("Semaphore"));
    assert_eq!(
        calls,
        [
            "cuImportExternalSemaphore(9)",
            "cuWaitExternalSemaphoresAsync(1, 4)",
            "cuSignalExternalSemaphoresAsync(1, 5)",
            "cuDestroyExternalSemaphore",
        ]
    );
}

#[test]
fn core_dumps_have_typed_settings() {
    let context = context();
    let settings = Settings::global();
    assert_eq!(settings.file().unwrap(), "core");
    settings.set_file(c"/tmp/core").unwrap();
    settings.set_enabled_by_user(true).unwrap();
    context
        .coredump()
        .set_generation_flags(CUCoredumpGenerationFlags::CU_COREDUMP_SKIP_GLOBAL_MEMORY)
        .unwrap();
    assert_eq!(
        fake::calls(),
        [
            "cuCoredumpGetAttributeGlobal(5, false)",
            "cuCoredumpGetAttributeGlobal(5, true)",
            "cuCoredumpSetAttributeGlobal(5, 47 of 10)",
            "cuCoredumpSetAttributeGlobal(4, 1 of 1)",
            "cuCtxPushCurrent_v2",
            "cuCoredumpSetAttribute(7, 2 of 4)",
            "cuCtxPopCurrent_v2",
        ]
    );
    let seen = Arc::new(AtomicU32::new(0));
    let inside = Arc::clone(&seen);
    // The fake driver calls the closure when it is registered.
    let callback = CoredumpCallback::on_start(move |process, device| {
        assert_eq!((process, device.as_raw()), (77, 3));
        inside.fetch_add(1, Ordering::Relaxed);
    })
    .unwrap();
    assert_eq!(seen.load(Ordering::Relaxed), 1);
    drop(callback);
    assert_eq!(Arc::strong_count(&seen), 1);
    let calls = fake::calls();
    assert_eq!(
        calls,
        ["cuCoredumpRegisterStartCallback", "cuCoredumpDeregisterStartCallback"]
    );
    let inside = Arc::clone(&seen);
    assert!(
        CoredumpCallback::on_complete(move |_, _| _ = &inside)
            .unwrap_err()
            .is_missing_function()
    );
    assert_eq!(Arc::strong_count(&seen), 1);
}

#[test]
fn a_split_passes_a_copy_of_the_resource() {
    fake::install();
    let all = Device::from_raw(0)
        .resource(sys::CUdevResourceType::CU_DEV_RESOURCE_TYPE_SM)
        .unwrap();
    fake::calls();
    assert!(all.split_by_count(0, 8, 0).is_err());
    assert!(all.split(&mut []).is_err());
    assert_eq!(fake::calls(), [""; 0]);
    all.split_by_count(1, 8, 0).unwrap();
    all.split(&mut [sys::CU_DEV_SM_RESOURCE_GROUP_PARAMS::default()])
        .unwrap();
    // The driver writes to the padding, and other threads may read the resource.
    let own = format!("({:p})", all.as_raw());
    let calls = fake::calls();
    assert_eq!(calls.len(), 2);
    assert!(calls.iter().all(|call| !call.ends_with(&own)), "{calls:?}, {own}");
}

#[test]
fn a_driver_without_owned_child_graphs_is_not_asked() {
    let context = context();
    let (graph, child) = (Graph::new(&context).unwrap(), Graph::new(&context).unwrap());
    fake::calls();
    let error = graph.add_owned_child(&[], child).map(drop).unwrap_err();
    assert_eq!(error.code(), CUresult::CUDA_ERROR_NOT_SUPPORTED);
    assert!(error.to_string().contains("older than CUDA 12.9"), "{error}");
    // The child is destroyed.
    let calls = fake::calls();
    assert!(calls.contains(&"cuGraphDestroy".to_owned()), "{calls:?}");
    assert!(
        !calls.iter().any(|call| call.starts_with("cuGraphAddNode")),
        "{calls:?}"
    );
}
