//! Tests of constants, enumerations and records: known difficulties of the generator, and items that are written by
//! hand.

use core::ffi::c_int;

use cuda_driver_sys::*;

#[test]
fn macros_that_bindgen_drops_or_types_wrongly() {
    assert_eq!(CU_STREAM_LEGACY.addr(), 1);
    assert_eq!(CU_STREAM_PER_THREAD.addr(), 2);
    assert_eq!(CU_LAUNCH_PARAM_END.addr(), 0);
    assert_eq!(CU_LAUNCH_PARAM_BUFFER_POINTER.addr(), 1);
    assert_eq!(CU_LAUNCH_PARAM_BUFFER_SIZE.addr(), 2);
    assert_eq!((CU_DEVICE_CPU, CU_DEVICE_INVALID), (-1, -2));
    assert_eq!(CU_DEV_SM_RESOURCE_GROUP_LOCALITY_DOMAIN_ID_ANY, u32::MAX);
    assert_eq!(CU_PARAM_TR_DEFAULT, -1);
    assert_eq!(
        CU_KERNEL_NODE_ATTRIBUTE_PRIORITY,
        CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PRIORITY
    );
    assert_eq!(CU_STREAM_ATTRIBUTE_PRIORITY, CU_KERNEL_NODE_ATTRIBUTE_PRIORITY);
    let release = format!("+{}.{}", CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10);
    assert!(env!("CARGO_PKG_VERSION").ends_with(&release));
}

#[test]
fn enumerations_keep_unknown_values() {
    let code = CUresult(12345);
    assert_eq!(code.name(), None);
    assert_eq!(format!("{code:?}"), "CUresult(12345)");
    assert_eq!(
        format!("{:?}", CUresult::CUDA_ERROR_OUT_OF_MEMORY),
        "CUDA_ERROR_OUT_OF_MEMORY"
    );
    // Tag and typedef are one type.
    let tagged: cudaError_enum = CUresult::CUDA_SUCCESS;
    assert_eq!(tagged.name(), Some("CUDA_SUCCESS"));
    // If several names share a value, `name` returns the first one in the header.
    assert_eq!(
        CUctx_flags::CU_CTX_BLOCKING_SYNC.name(),
        Some("CU_CTX_SCHED_BLOCKING_SYNC")
    );
}

#[test]
fn every_enumeration_has_one_representation() {
    // C's type is signed, because a value is negative; the bits are the same.
    assert_eq!(
        CUshared_carveout::CU_SHAREDMEM_CARVEOUT_DEFAULT,
        CUshared_carveout(0xffff_ffff)
    );
    // C's type of the first is signed from CUDA 13.2 on, that of the second from CUDA 13.3 on. Both were unsigned
    // before.
    assert_eq!(
        CUgraphChildGraphNodeOwnership::CU_GRAPH_CHILD_GRAPH_OWNERSHIP_INVALID.0,
        0xffff_ffff
    );
    assert_eq!(CUCoredumpGenerationFlags::CU_COREDUMP_LOG_ONLY.0, 0x8000_0000);
    assert_eq!(size_of::<CUresult>(), 4);
}

#[test]
fn values_that_moved_between_releases_are_those_of_all_supported_drivers() {
    type A = CUdevice_attribute;
    assert_eq!(A::CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS.0, 122);
    assert_eq!(A::CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR.0, 123);
    assert_eq!(A::CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS.0, 92);
    assert_eq!(A::CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V1.0, 93);
    assert_eq!(CUjit_target::CU_TARGET_COMPUTE_101A.0, 0x10000 + 101);
    assert_eq!(CUjit_target::CU_TARGET_COMPUTE_101F.0, 0x20000 + 101);
}

#[test]
fn flag_sets_are_ored_together() {
    let mut flags = CUctx_flags::CU_CTX_SCHED_SPIN | CUctx_flags::CU_CTX_MAP_HOST;
    assert_eq!(flags.0, 9);
    assert!(flags.contains(CUctx_flags::CU_CTX_MAP_HOST));
    flags |= CUctx_flags::CU_CTX_LMEM_RESIZE_TO_MAX;
    assert_eq!(flags & !CUctx_flags::CU_CTX_MAP_HOST, CUctx_flags(17));
    assert_eq!(format!("{flags:?}"), "CUctx_flags(25)");
}

#[test]
fn records_begin_as_zeros() {
    let properties = CUmemAllocationProp::default();
    assert_eq!(
        (properties.type_, properties.location.type_),
        (CUmemAllocationType(0), CUmemLocationType(0))
    );
    let copy = CUDA_MEMCPY3D::default();
    assert!(copy.srcHost.is_null() && copy.Depth == 0);
    assert_eq!(align_of::<CUtensorMap>(), 128);
}

#[test]
fn members_of_unions_without_a_name_are_reached_by_their_own() {
    let place = CUmemLocation::device(3);
    assert_eq!(place.type_, CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE);
    // SAFETY: the location was created with a device's number.
    let id: c_int = unsafe { place.id() };
    assert_eq!(id, 3);
    assert_eq!(
        CUmemLocation::host_numa(1).type_,
        CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST_NUMA
    );

    let kernel = CUDA_KERNEL_NODE_PARAMS_v3 {
        gridDimX: 7,
        ..Default::default()
    };
    let node = CUgraphNodeParams {
        type_: CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL,
        ..Default::default()
    };
    let node = node.with_kernel(kernel);
    // SAFETY: the kernel was written above.
    let kernel = unsafe { node.kernel() };
    assert_eq!(kernel.gridDimX, 7);
    assert_eq!(size_of_val(&node), 256);
}
