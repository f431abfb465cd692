//! Tests of launch attributes, attributes of kernels and occupancy, as methods of objects.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use cuda_driver::sys::{
    CUaccessProperty, CUclusterSchedulingPolicy, CUevent_flags, CUlaunchAttributePortableClusterMode,
    CUlaunchMemSyncDomain, CUoccupancy_flags, CUresult,
};
use cuda_driver::{
    AccessPolicyWindow, BlockSize, Context, DeviceBuffer, Event, Function, LaunchAttribute, LaunchConfig, Module,
    ParamBuffer, Stream,
};

use crate::common::{architecture, context, driver_version, has_architecture, has_version, in_child, needs, ptx_path};
use crate::test_path;

const CLUSTERS: &str = ".version 8.0\n.target sm_90\n.address_size 64\n\
    .visible .entry plain() { ret; }\n\
    .visible .entry pairs() .reqnctapercluster 2,1,1 { ret; }\n\
    .visible .entry explicit() .explicitcluster { ret; }\n";

fn kernel(context: &Context, file: &str, name: &str) -> Function {
    let module = Module::load_ptx(context, ptx_path(file)).expect("a module");
    module.function(name).expect("a kernel")
}

/// Returns the kernels of [`CLUSTERS`], if the device has clusters; otherwise reports that it has none.
fn clusters(context: &Context) -> Option<[Function; 3]> {
    if architecture() < 90 {
        needs("a device of sm_90 or later, which has clusters");
        return None;
    }
    let module = Module::from_ptx(context, CLUSTERS).expect("a module");
    Some(["plain", "pairs", "explicit"].map(|name| module.function(name).expect("a kernel")))
}

#[test]
fn launches_with_attributes() {
    let context = context();
    let write = kernel(&context, "faults.ptx", "fault_write");
    let stream = Stream::new(&context).expect("a stream");
    let memory = DeviceBuffer::<u32>::zeroed(&context, 64).expect("memory");
    let window = AccessPolicyWindow::persisting(memory.ptr(), memory.size_bytes());
    let mut cases = vec![
        vec![],
        vec![LaunchAttribute::cooperative()],
        vec![LaunchAttribute::priority(-1)],
        vec![LaunchAttribute::programmatic_serialization()],
        vec![LaunchAttribute::access_policy(window), LaunchAttribute::priority(0)],
    ];
    if has_version(12000) {
        cases.push(vec![LaunchAttribute::mem_sync_domain(
            CUlaunchMemSyncDomain::CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE,
        )]);
    }
    if has_version(12050) {
        cases.push(vec![LaunchAttribute::shared_memory_carveout(50)]);
    }
    for (value, attributes) in (5_u32..).zip(&cases) {
        let config = LaunchConfig::default();
        // SAFETY: the kernel takes an address and a value, and writes to the first element.
        let launched = unsafe { write.launch_with(&stream, config, attributes, (memory.ptr(), value)) };
        launched.unwrap_or_else(|error| panic!("{attributes:?}: {error}"));
        stream.synchronize().expect("no fault");
        assert_eq!(memory.to_vec().expect("a copy")[0], value, "{attributes:?}");
    }
    let mut packed = ParamBuffer::new();
    packed.push(memory.ptr()).push(99_u32);
    let attributes = [LaunchAttribute::priority(0)];
    // SAFETY: as above.
    unsafe { write.launch_with(&stream, LaunchConfig::default(), &attributes, &packed) }.expect("a launch");
    stream.synchronize().expect("no fault");
    assert_eq!(memory.to_vec().expect("a copy")[0], 99);
}

#[test]
fn invalid_attributes() {
    let context = context();
    let write = kernel(&context, "faults.ptx", "fault_write");
    let stream = Stream::new(&context).expect("a stream");
    let memory = DeviceBuffer::<u32>::zeroed(&context, 64).expect("memory");
    let launch = |attribute| {
        let arguments = (memory.ptr(), 1_u32);
        // SAFETY: the kernel takes an address and a value, and writes to the first element.
        unsafe { write.launch_with(&stream, LaunchConfig::default(), &[attribute], arguments) }
    };
    if has_architecture(90) {
        // The grid has one block.
        let error = launch(LaunchAttribute::cluster(2)).expect_err("the cluster does not divide the grid");
        assert_eq!(error.code(), CUresult::CUDA_ERROR_INVALID_CLUSTER_SIZE);
    }
    let too_many = LaunchConfig {
        grid: 1_000_000.into(),
        block: 256.into(),
        ..LaunchConfig::default()
    };
    let attributes = [LaunchAttribute::cooperative()];
    // SAFETY: the launch is refused; the arguments would fit.
    let result = unsafe { write.launch_with(&stream, too_many, &attributes, (memory.ptr(), 1_u32)) };
    assert_eq!(
        result.map_err(|error| error.code()),
        Err(CUresult::CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE)
    );
    stream.synchronize().expect("nothing was launched");
    assert_eq!(memory.to_vec().expect("a copy")[0], 0);
}

/// On a driver that is older than an attribute, nothing is launched, and the message names the cause. The test runs in
/// a child process, in which the software driver reports CUDA 12.4.
#[test]
fn attributes_of_a_newer_driver() {
    let name = test_path!("attributes_of_a_newer_driver");
    let _ = in_child(&name, &[("CUDA_SOFT_VERSION", "12.4")], || {
        let context = context();
        if driver_version() >= 12050 {
            return needs("a driver before CUDA 12.5");
        }
        let write = kernel(&context, "faults.ptx", "fault_write");
        let stream = Stream::new(&context).expect("a stream");
        let memory = DeviceBuffer::<u32>::zeroed(&context, 64).expect("memory");
        let (config, arguments) = (LaunchConfig::default(), (memory.ptr(), 1_u32));
        let mode = CUlaunchAttributePortableClusterMode::CU_LAUNCH_PORTABLE_CLUSTER_MODE_DEFAULT;
        for newer in [
            LaunchAttribute::shared_memory_carveout(50),
            LaunchAttribute::portable_cluster_size(mode),
        ] {
            let attributes = [LaunchAttribute::priority(0), newer];
            // SAFETY: the kernel takes an address and a value, and writes to the first element.
            let launched = unsafe { write.launch_with(&stream, config, &attributes, arguments) };
            let error = launched.expect_err("the driver is too old");
            assert_eq!(error.code(), CUresult::CUDA_ERROR_NOT_SUPPORTED);
            assert!(error.to_string().contains("older than a launch attribute"), "{error}");
            assert!(write.max_active_clusters(config, &attributes).is_err());
        }
        stream.synchronize().expect("nothing was launched");
        assert_eq!(memory.to_vec().expect("a copy")[0], 0);
    });
}

/// With debug assertions, an argument of the wrong size is an error before the launch.
#[test]
fn arguments_are_compared() {
    let context = context();
    if driver_version() < 12040 || !cfg!(debug_assertions) {
        return needs("debug assertions, and a driver of CUDA 12.4 or later");
    }
    let write = kernel(&context, "faults.ptx", "fault_write");
    let stream = Stream::new(&context).expect("a stream");
    let memory = DeviceBuffer::<u32>::zeroed(&context, 64).expect("memory");
    let arguments = (memory.ptr(), 1_u64);
    // SAFETY: the launch is refused.
    let launched = unsafe { write.launch_with(&stream, LaunchConfig::default(), &[], arguments) };
    assert_eq!(
        launched.map_err(|error| error.code()),
        Err(CUresult::CUDA_ERROR_INVALID_VALUE)
    );
}

#[test]
fn events_of_a_launch() {
    let context = context();
    let write = kernel(&context, "faults.ptx", "fault_write");
    let stream = Stream::new(&context).expect("a stream");
    let memory = DeviceBuffer::<u32>::zeroed(&context, 64).expect("memory");
    let event = || Event::with_flags(&context, CUevent_flags::CU_EVENT_DISABLE_TIMING).expect("an event");
    let (first, second, third) = (event(), event(), event());
    let mut cases = vec![
        (LaunchAttribute::programmatic_event(&first, false), &first),
        (LaunchAttribute::programmatic_event(&second, true), &second),
    ];
    if driver_version() >= 12030 {
        cases.push((LaunchAttribute::completion_event(&third), &third));
    }
    for (value, (attribute, event)) in (1_u32..).zip(cases) {
        let arguments = (memory.ptr(), value);
        // SAFETY: the kernel takes an address and a value, and writes to the first element.
        unsafe { write.launch_with(&stream, LaunchConfig::default(), &[attribute], arguments) }.expect("a launch");
        event.synchronize().expect("no fault");
        assert!(event.query().expect("an answer"));
        stream.synchronize().expect("no fault");
        assert_eq!(memory.to_vec().expect("a copy")[0], value);
    }
}

#[test]
fn launches_in_clusters() {
    let context = context();
    let Some([plain, pairs, explicit]) = clusters(&context) else {
        return;
    };
    let stream = Stream::new(&context).expect("a stream");
    let config = LaunchConfig {
        grid: 16.into(),
        block: 32.into(),
        ..LaunchConfig::default()
    };
    let launch = |kernel: &Function, size: u32| {
        let attributes = [
            LaunchAttribute::cluster(size),
            LaunchAttribute::cluster_scheduling(CUclusterSchedulingPolicy::CU_CLUSTER_SCHEDULING_POLICY_SPREAD),
        ];
        // SAFETY: the kernels have no parameters.
        unsafe { kernel.launch_with(&stream, config, &attributes, ()) }.map_err(|error| error.code())
    };
    let wrong = Err(CUresult::CUDA_ERROR_INVALID_CLUSTER_SIZE);
    assert_eq!(launch(&plain, 4), Ok(()));
    assert_eq!(launch(&plain, 16), wrong);
    assert_eq!(launch(&pairs, 2), Ok(()));
    assert_eq!(launch(&pairs, 4), wrong);
    assert_eq!(launch(&explicit, 8), Ok(()));
    // SAFETY: as above.
    let without = unsafe { explicit.launch(&stream, config, ()) };
    assert_eq!(without.map_err(|error| error.code()), wrong);
    stream.synchronize().expect("no fault");

    assert!(explicit.needs_cluster().expect("an attribute") && !plain.needs_cluster().expect("an attribute"));
    assert_eq!(pairs.required_cluster().expect("an attribute"), Some(2.into()));
    assert_eq!(plain.required_cluster().expect("an attribute"), None);
    assert!(
        pairs.set_required_cluster(4).is_err(),
        "the cluster size that the kernel's text requires was changed"
    );
    plain.set_required_cluster((2, 1, 1)).expect("an attribute");
    assert_eq!(plain.required_cluster().expect("an attribute"), Some(2.into()));
    assert_eq!(launch(&plain, 4), wrong);
    let spread = CUclusterSchedulingPolicy::CU_CLUSTER_SCHEDULING_POLICY_SPREAD;
    explicit.set_cluster_scheduling(spread).expect("an attribute");
    assert_eq!(explicit.cluster_scheduling().expect("an attribute"), spread);
}

#[test]
fn occupancy_of_clusters() {
    let context = context();
    let Some([plain, ..]) = clusters(&context) else {
        return;
    };
    let config = LaunchConfig {
        grid: 64.into(),
        block: 1024.into(),
        ..LaunchConfig::default()
    };
    let processors = context.device().expect("a device").attributes().multiprocessor_count();
    let blocks = plain.max_active_blocks_per_multiprocessor(1024, 0).expect("a number");
    let all = processors.expect("a number") * blocks;
    let active = |size: u32| plain.max_active_clusters(config, &[LaunchAttribute::cluster(size)]);
    assert_eq!(active(2).expect("a number"), all / 2);
    assert!((1..=all / 8).contains(&active(8).expect("a number")));
    assert_eq!(
        active(16).map_err(|error| error.code()),
        Err(CUresult::CUDA_ERROR_INVALID_CLUSTER_SIZE)
    );
    assert_eq!(plain.max_potential_cluster_size(config, &[]).expect("a number"), 8);
    assert!(!plain.allows_non_portable_cluster().expect("an attribute"));
    plain.set_non_portable_cluster(true).expect("an attribute");
    assert!(plain.allows_non_portable_cluster().expect("an attribute"));
    assert_eq!(plain.max_potential_cluster_size(config, &[]).expect("a number"), 16);
}

#[test]
fn block_sizes() {
    let context = context();
    let kernel = kernel(&context, "my_kernel.ptx", "my_kernel");
    let best = kernel.max_potential_block_size(0, 0).expect("a size");
    assert!(best.threads >= 32 && best.min_grid >= 1, "{best:?}");
    assert_eq!(kernel.max_potential_block_size(0, 128).expect("a size").threads, 128);
    // More dynamic shared memory than the default limit, 48 KiB.
    let none = kernel.max_potential_block_size(100_000, 0).expect("a size");
    assert_eq!((none.threads, none.min_grid), (0, 0));

    // The shared memory is a function of the block size.
    let calls = Cell::new(0);
    let counted = |threads: u32| {
        assert!((1..=1024).contains(&threads));
        calls.set(calls.get() + 1);
        0
    };
    assert_eq!(kernel.max_potential_block_size_with(counted, 0).expect("a size"), best);
    assert!(calls.get() > 0);
    // Blocks of more than 256 threads would need too much shared memory.
    let limited = |threads: u32| if threads > 256 { 1 << 20 } else { 0 };
    let found = kernel.max_potential_block_size_with(limited, 0).expect("a size");
    assert!((1..=256).contains(&found.threads), "{found:?}");

    let payload = catch_unwind(AssertUnwindSafe(|| {
        kernel.max_potential_block_size_with(|_| panic!("in the closure"), 0)
    }));
    let payload = payload.expect_err("the panic resumes");
    assert_eq!(payload.downcast_ref::<&str>(), Some(&"in the closure"));
    assert!(Context::current_raw().expect("the current context").is_null());
    assert_eq!(kernel.max_potential_block_size_with(|_| 0, 0).expect("a size"), best);
}

#[test]
fn shared_memory_and_blocks() {
    let context = context();
    let kernel = kernel(&context, "my_kernel.ptx", "my_kernel");
    let bytes = kernel.available_dynamic_shared(2, 32).expect("a size");
    assert!(bytes >= 16 << 10, "{bytes}");
    for (blocks, threads) in [(0, 32), (u32::MAX, 32), (1, 0)] {
        let result = kernel.available_dynamic_shared(blocks, threads);
        assert_eq!(
            result.map_err(|error| error.code()),
            Err(CUresult::CUDA_ERROR_INVALID_VALUE)
        );
    }
    let plain = kernel.max_active_blocks_per_multiprocessor(128, 0).expect("a number");
    let flags = CUoccupancy_flags::CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE;
    let flagged = kernel.max_active_blocks_per_multiprocessor_with_flags(128, 0, flags);
    assert_eq!(flagged.expect("a number"), plain);
    assert_eq!(
        kernel
            .max_active_blocks_per_multiprocessor(u32::MAX, 0)
            .expect("a number"),
        0
    );
    let unknown = kernel.max_active_blocks_per_multiprocessor_with_flags(128, 0, CUoccupancy_flags(2));
    assert_eq!(
        unknown.map_err(|error| error.code()),
        Err(CUresult::CUDA_ERROR_INVALID_VALUE)
    );

    let BlockSize { threads, .. } = kernel.max_potential_block_size(0, 0).expect("a size");
    assert!(threads <= kernel.max_threads_per_block().expect("an attribute"));
    assert_eq!(kernel.static_shared_bytes().expect("an attribute"), 0);
    assert!(kernel.registers().expect("an attribute") > 0);
    assert!(kernel.ptx_version().expect("an attribute") >= 50);
    assert!(kernel.binary_version().expect("an attribute") >= 50);
    kernel.local_bytes().expect("an attribute");
    kernel.const_bytes().expect("an attribute");
    kernel.is_cached_in_l1().expect("an attribute");
    kernel.set_max_dynamic_shared_bytes(1024).expect("an attribute");
    assert_eq!(kernel.max_dynamic_shared_bytes().expect("an attribute"), 1024);
    assert!(kernel.set_max_dynamic_shared_bytes(u32::MAX).is_err());
    kernel.set_shared_memory_carveout(Some(50)).expect("an attribute");
    assert_eq!(kernel.shared_memory_carveout().expect("an attribute"), Some(50));
    kernel.set_shared_memory_carveout(None).expect("an attribute");
    assert!(kernel.set_shared_memory_carveout(Some(101)).is_err());
}

#[test]
fn windows_have_a_ratio_and_two_kinds() {
    let context = context();
    let memory = DeviceBuffer::<u8>::zeroed(&context, 16).expect("memory");
    let raw = AccessPolicyWindow {
        hit_ratio: 0.5,
        miss: CUaccessProperty::CU_ACCESS_PROPERTY_NORMAL,
        ..AccessPolicyWindow::persisting(memory.ptr(), memory.size_bytes())
    }
    .raw();
    assert_eq!((raw.base_ptr as u64, raw.num_bytes), (memory.ptr().as_raw(), 16));
    assert_eq!(raw.hitProp, CUaccessProperty::CU_ACCESS_PROPERTY_PERSISTING);
    assert_eq!(raw.missProp, CUaccessProperty::CU_ACCESS_PROPERTY_NORMAL);
    assert_eq!(raw.hitRatio.to_bits(), 0.5_f32.to_bits());
}
