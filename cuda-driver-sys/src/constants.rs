//! Macros of `cuda.h` that bindgen drops or gives the wrong type.
#![forbid(unsafe_code)]

use core::ffi::{c_int, c_uint, c_void};
use core::ptr;

use crate::{CUdevice, CUlaunchAttributeID, CUstream};

/// The legacy default stream, which synchronises with the blocking streams of the context.
pub const CU_STREAM_LEGACY: CUstream = ptr::without_provenance_mut(1);

/// The calling thread's default stream.
pub const CU_STREAM_PER_THREAD: CUstream = ptr::without_provenance_mut(2);

/// Ends the `extra` list of a launch.
pub const CU_LAUNCH_PARAM_END: *mut c_void = ptr::null_mut();

/// In the `extra` list of a launch, the next entry points to the packed arguments.
pub const CU_LAUNCH_PARAM_BUFFER_POINTER: *mut c_void = ptr::without_provenance_mut(1);

/// In the `extra` list of a launch, the next entry points to a `size_t` with the length of the packed arguments.
pub const CU_LAUNCH_PARAM_BUFFER_SIZE: *mut c_void = ptr::without_provenance_mut(2);

/// The CPU, as a device.
pub const CU_DEVICE_CPU: CUdevice = -1 as c_int;

/// No device.
pub const CU_DEVICE_INVALID: CUdevice = -2 as c_int;

/// Any locality domain, in the group parameters of a resource of multiprocessors.
pub const CU_DEV_SM_RESOURCE_GROUP_LOCALITY_DOMAIN_ID_ANY: c_uint = !0;

/// Defines the names under which kernel nodes and streams use launch attributes.
macro_rules! attribute_aliases {
    ($($name:ident = $attribute:ident;)*) => {
        $(
            #[doc = concat!("[`CUlaunchAttributeID::", stringify!($attribute), "`]")]
            pub const $name: CUlaunchAttributeID = CUlaunchAttributeID::$attribute;
        )*
    };
}

attribute_aliases! {
    CU_KERNEL_NODE_ATTRIBUTE_ACCESS_POLICY_WINDOW = CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW;
    CU_KERNEL_NODE_ATTRIBUTE_COOPERATIVE = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    CU_KERNEL_NODE_ATTRIBUTE_CLUSTER_DIMENSION = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    CU_KERNEL_NODE_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE = CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE;
    CU_KERNEL_NODE_ATTRIBUTE_PRIORITY = CU_LAUNCH_ATTRIBUTE_PRIORITY;
    CU_KERNEL_NODE_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP;
    CU_KERNEL_NODE_ATTRIBUTE_MEM_SYNC_DOMAIN = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN;
    CU_KERNEL_NODE_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION = CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION;
    CU_KERNEL_NODE_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE = CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE;
    CU_KERNEL_NODE_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT = CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
    CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW = CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW;
    CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY = CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY;
    CU_STREAM_ATTRIBUTE_PRIORITY = CU_LAUNCH_ATTRIBUTE_PRIORITY;
    CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP;
    CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN;
}
