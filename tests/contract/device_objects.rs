//! Tests of devices and contexts as objects: finding devices, attributes, peers, options and events of contexts, the
//! primary context's state, green contexts.

use std::sync::mpsc;
use std::time::Duration;

use cuda_driver::sys::{
    CUatomicOperation, CUctx_flags, CUdevResourceType, CUdevice_P2PAttribute, CUdevice_attribute, CUevent_flags,
    CUfunc_cache, CUresult,
};
use cuda_driver::{
    Context, ContextOptions, Device, DeviceBuffer, Event, GreenContext, LaunchConfig, Module, PrimaryContext, Stream,
    Uuid,
};

use crate::common::{
    context, device, driver, driver_version, has_version, in_child, needs, needs_but_not_in_software, ptx_path,
};
use crate::{child, test_path};

#[test]
fn devices_are_found() {
    let device = device();
    let address = device.pci_bus_id().expect("an address");
    assert_eq!(Device::by_pci_bus_id(&address), Ok(device));
    for (wrong, code) in [
        ("junk", CUresult::CUDA_ERROR_INVALID_VALUE),
        ("a\0b", CUresult::CUDA_ERROR_INVALID_VALUE),
        ("0000:FE:00.0", CUresult::CUDA_ERROR_INVALID_DEVICE),
    ] {
        assert_eq!(
            Device::by_pci_bus_id(wrong).map_err(|e| e.code()),
            Err(code),
            "{wrong:?}"
        );
    }
    let uuid = device.uuid().expect("a UUID");
    assert_eq!(Device::by_uuid(uuid), Ok(device));
    assert_eq!(
        Device::by_uuid(Uuid([0x5a; 16])).map_err(|e| e.code()),
        Err(CUresult::CUDA_ERROR_INVALID_DEVICE)
    );
    device.gpu_uuid().expect("a UUID");
    match device.luid() {
        Ok(found) => assert_eq!(Device::by_luid(found.luid), Ok(device)),
        Err(error) => {
            assert_eq!(error.code(), CUresult::CUDA_ERROR_NOT_SUPPORTED);
            assert!(Device::by_luid([0; 8]).is_err());
        }
    }
}

#[test]
fn attributes_have_names_and_types() {
    let device = device();
    let attributes = device.attributes();
    assert_eq!(attributes.warp_size(), Ok(32));
    assert_eq!(attributes.unified_addressing(), Ok(true));
    let (major, minor) = device.compute_capability().expect("a capability");
    let named = (
        attributes.compute_capability_major(),
        attributes.compute_capability_minor(),
    );
    assert_eq!(named, (Ok(major.unsigned_abs()), Ok(minor.unsigned_abs())));
    let threads = device.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    assert_eq!(
        attributes.max_threads_per_block().map(i64::from),
        threads.map(i64::from)
    );
    let _ = attributes.compute_mode().expect("an attribute");
    assert!(attributes.host_numa_id().is_ok_and(|node| node >= -1) || driver_version() < 12020);
    if driver_version() < 13050 {
        // CUDA 13.5 added this attribute.
        let later = attributes.vulkan_cig_streams_supported();
        assert_eq!(later.map_err(|e| e.code()), Err(CUresult::CUDA_ERROR_INVALID_VALUE));
    }
    let missing = Device::from_raw(1000).attributes().warp_size();
    assert_eq!(missing.map_err(|e| e.code()), Err(CUresult::CUDA_ERROR_INVALID_DEVICE));
    if has_version(13000) {
        let operations = [
            CUatomicOperation::CU_ATOMIC_OPERATION_INTEGER_ADD,
            CUatomicOperation::CU_ATOMIC_OPERATION_CAS,
        ];
        let found = device.host_atomic_capabilities(&operations).expect("capabilities");
        assert_eq!(found.len(), 2);
    }
}

/// Fills memory in the first stream, makes the second stream wait for the first one with `order`, and then copies the
/// memory in the second stream. The fill begins when all of this is submitted, so only the order makes the copy right.
fn fill_then_copy(contexts: [&Context; 2], streams: [&Stream; 2], order: impl FnOnce()) {
    let [mut from, to] = contexts.map(|context| DeviceBuffer::<u32>::zeroed(context, 16).expect("memory"));
    for context in contexts {
        context.synchronize().expect("zeros");
    }
    let (open, opened) = mpsc::channel::<()>();
    // Returns when the sender is dropped, so a test that fails does not leave the stream blocked.
    let hold = move || _ = opened.recv_timeout(Duration::from_secs(60));
    streams[0].launch_host_fn(hold).expect("a host function");
    // SAFETY: the memory outlives the work.
    unsafe { from.fill_u32_async(7, streams[0]) }.expect("a fill");
    order();
    // SAFETY: as above; both ranges have this size.
    unsafe { streams[1].copy_bytes(to.ptr(), from.ptr(), 64) }.expect("a copy");
    drop(open);
    for stream in streams {
        stream.synchronize().expect("no fault");
    }
    assert_eq!(to.to_vec().expect("a copy"), [7; 16]);
}

/// Runs a test that needs two devices: in a child process, in which the software driver has two.
fn with_two_devices(name: &str, body: impl FnOnce(Device, Device)) {
    in_child(name, &[("CUDA_SOFT_DEVICES", "2")], || {
        driver();
        match Device::all().expect("the devices")[..] {
            [first, second, ..] => body(first, second),
            _ => needs("two devices"),
        }
    });
}

#[test]
fn peers() {
    with_two_devices(&test_path!("peers"), |first, second| {
        assert_ne!(
            first.pci_bus_id().expect("an address"),
            second.pci_bus_id().expect("an address")
        );
        assert_eq!(Device::by_uuid(second.uuid().expect("a UUID")), Ok(second));
        assert_eq!(first.can_access_peer(first), Ok(false));
        let supported = first.p2p_attribute(CUdevice_P2PAttribute::CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, second);
        let can = first.can_access_peer(second).expect("an answer");
        assert_eq!(supported.expect("an attribute") != 0, can);
        if has_version(13000) {
            let operations = [CUatomicOperation::CU_ATOMIC_OPERATION_INTEGER_ADD];
            let found = first
                .p2p_atomic_capabilities(&operations, second)
                .expect("capabilities");
            assert_eq!(found.len(), 1);
        }
        let (here, there) = (
            Context::create(first).expect("a context"),
            Context::create(second).expect("a context"),
        );
        // A stream of one device can wait for an event of the other.
        let (filling, copying) = (
            Stream::non_blocking(&there).expect("a stream"),
            Stream::non_blocking(&here).expect("a stream"),
        );
        let event = Event::with_flags(&there, CUevent_flags::CU_EVENT_DISABLE_TIMING).expect("an event");
        fill_then_copy([&there, &here], [&filling, &copying], || {
            event.record(&filling).expect("a record");
            copying.wait_event(&event).expect("a wait");
        });
    });
}

#[test]
fn options_of_contexts() {
    let device = device();
    let flags = CUctx_flags::CU_CTX_SCHED_YIELD;
    let context = Context::create_with(
        device,
        &ContextOptions {
            flags,
            ..Default::default()
        },
    )
    .expect("a context");
    assert!(context.flags().expect("flags").contains(flags));
    assert!(Context::current_raw().expect("the current context").is_null());
    if has_version(12010) {
        context
            .set_flags(CUctx_flags::CU_CTX_SCHED_BLOCKING_SYNC)
            .expect("flags");
        assert_eq!(context.flags(), Ok(CUctx_flags::CU_CTX_SCHED_BLOCKING_SYNC));
        assert_eq!(
            context.set_flags(CUctx_flags(3)).map_err(|e| e.code()),
            Err(CUresult::CUDA_ERROR_INVALID_VALUE)
        );
    }
    let other = self::context();
    if has_version(12000) {
        assert_ne!(context.id().expect("a number"), other.id().expect("a number"));
    }
    context
        .set_cache_config(CUfunc_cache::CU_FUNC_CACHE_PREFER_L1)
        .expect("a preference");
    let _ = context.shared_mem_config().expect("an answer");
    context.reset_persisting_l2_cache().expect("an effect");
    // Contexts limited to some multiprocessors need execution affinity, which devices support only under the
    // Multi-Process Service.
    let limited = Context::create_with(
        device,
        &ContextOptions {
            sm_count: Some(1),
            ..Default::default()
        },
    );
    match device.supports_sm_affinity().expect("an answer") {
        true => assert!(limited.expect("a context").sm_affinity().expect("a number") >= 1),
        false => assert_eq!(
            limited.map(drop).map_err(|e| e.code()),
            Err(CUresult::CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY)
        ),
    }
    assert!(Context::current_raw().expect("the current context").is_null());
    let all = device.attributes().multiprocessor_count().expect("a number");
    assert_eq!(other.sm_affinity(), Ok(all));
}

#[test]
fn events_of_contexts() {
    let context = context();
    if driver_version() < 12050 {
        return needs("a driver of CUDA 12.5");
    }
    let streams = [(); 2].map(|()| Stream::non_blocking(&context).expect("a stream"));
    let event = Event::with_flags(&context, CUevent_flags::CU_EVENT_DISABLE_TIMING).expect("an event");
    fill_then_copy([&context; 2], streams.each_ref(), || {
        context.record_event(&event).expect("a record");
        context.wait_event(&event).expect("a wait");
    });
    // The event belongs to another context.
    let other = self::context();
    assert!(other.record_event(&event).is_err());
}

#[test]
fn the_state_of_the_primary_context() {
    child!("the_state_of_the_primary_context", {
        let device = device();
        let flags = CUctx_flags::CU_CTX_SCHED_BLOCKING_SYNC;
        PrimaryContext::set_flags(device, flags).expect("flags");
        let state = PrimaryContext::state(device).expect("a state");
        assert_eq!((state.flags, state.active), (flags, false));
        let primary = PrimaryContext::retain(device).expect("the primary context");
        assert!(PrimaryContext::state(device).expect("a state").active);
        assert!(primary.flags().expect("flags").contains(flags));
        assert_eq!(
            PrimaryContext::set_flags(device, CUctx_flags(3)).map_err(|e| e.code()),
            Err(CUresult::CUDA_ERROR_INVALID_VALUE)
        );
        // SAFETY: nothing in the context is used again.
        unsafe { PrimaryContext::reset(device) }.expect("a reset");
        assert!(!PrimaryContext::state(device).expect("a state").active);
        primary.release().expect("a release after the reset");
    });
}

#[test]
fn green_contexts() {
    child!("green_contexts", {
        let device = device();
        let kind = CUdevResourceType::CU_DEV_RESOURCE_TYPE_SM;
        let all = match device.resource(kind) {
            Ok(all) => all,
            Err(error) if error.is_missing_function() || error.code() == CUresult::CUDA_ERROR_NOT_SUPPORTED => {
                return needs_but_not_in_software("a driver with green contexts");
            }
            Err(error) => panic!("{error}"),
        };
        let count = all.sm_count().expect("multiprocessors");
        assert_eq!(
            (all.kind(), Ok(count)),
            (kind, device.attributes().multiprocessor_count())
        );
        assert!(device.resource(CUdevResourceType(7)).is_err());
        assert!(all.split_by_count(1, count + 1, 0).is_err());
        let error = all.split_by_count(0, 8.min(count), 0).expect_err("no groups");
        assert_eq!(error.code(), CUresult::CUDA_ERROR_INVALID_VALUE);
        let split = all.split_by_count(1, 8.min(count), 0).expect("a split");
        assert_eq!(split.groups.len(), 1);
        let part = split.groups[0].sm_count().expect("multiprocessors");
        let rest = split.remainder.and_then(|rest| rest.sm_count()).unwrap_or(0);
        assert!(
            (1..=count).contains(&part) && part + rest <= count,
            "{part} and {rest} of {count}"
        );

        assert_eq!(
            GreenContext::create(device, &[]).map(drop).map_err(|e| e.code()),
            Err(CUresult::CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION)
        );
        let green = GreenContext::create(device, &split.groups).expect("a green context");
        assert!(PrimaryContext::state(device).expect("a state").active);
        assert!(Context::current_raw().expect("the current context").is_null());
        assert_eq!(green.resource(kind).expect("a resource").sm_count(), Some(part));
        let stream = green.stream(0).expect("a stream");
        assert_eq!(
            stream.green_context_raw().expect("an answer"),
            Some(green.as_raw_green())
        );
        let event = Event::with_flags(&green, CUevent_flags::CU_EVENT_DISABLE_TIMING).expect("an event");
        let module = Module::load_ptx(&green, ptx_path("faults.ptx")).expect("a module");
        let write = module.function("fault_write").expect("a kernel");
        let memory = DeviceBuffer::<u32>::zeroed(&green, 4).expect("memory");
        green.synchronize().expect("the fill is done");
        // SAFETY: the kernel takes an address and a value, and writes to the first element.
        unsafe { write.launch(&stream, LaunchConfig::default(), (memory.ptr(), 7_u32)) }.expect("a launch");
        GreenContext::record_event(&green, &event).expect("a record");
        GreenContext::wait_event(&green, &event).expect("a wait");
        event.synchronize().expect("no fault");
        assert_eq!(memory.to_vec().expect("a copy"), [7, 0, 0, 0]);

        // Every object keeps the green context alive.
        drop(green);
        stream.synchronize().expect("the green context lives");
        drop((write, module, event, memory));
        std::thread::spawn(move || drop(stream))
            .join()
            .expect("a drop on another thread");
        assert!(!PrimaryContext::state(device).expect("a state").active);

        let green = GreenContext::create(device, &split.groups).expect("a green context");
        let raw = green.into_raw();
        // SAFETY: the handle is live, and has no owner since `into_raw`.
        let borrowed = unsafe { GreenContext::borrow_raw(raw) }.expect("a green context");
        drop(borrowed);
        // SAFETY: as above.
        let again = unsafe { GreenContext::from_raw(raw) }.expect("a green context");
        again.destroy().expect("the last reference");
    });
}
