//! Names of earlier headers that CUDA 13.5's `cuda.h` no longer has, for programs that use them.
#![forbid(unsafe_code)]

use crate::{
    CU_COMPUTE_ACCELERATED_TARGET_BASE, CU_COMPUTE_FAMILY_TARGET_BASE, CUdevSmResourceSplitByCount_flags,
    CUdevice_attribute, CUjit_target,
};

/// The type's name before CUDA 13.1.
#[allow(non_camel_case_types)]
pub type CUdevSmResourceSplit_flags = CUdevSmResourceSplitByCount_flags;

impl CUdevice_attribute {
    /// The name in CUDA 11 and earlier; now with the suffix `_V1`.
    pub const CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS: Self = Self::CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1;
    /// The name in CUDA 11; now without the suffix `_V2`.
    pub const CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V2: Self =
        Self::CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS;
    /// The name in CUDA 11; now without the suffix `_V2`.
    pub const CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR_V2: Self =
        Self::CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR;
}

impl CUjit_target {
    /// Compute capability 2.0, in headers up to CUDA 11.8.
    pub const CU_TARGET_COMPUTE_20: Self = Self(20);
    /// Compute capability 2.1, in headers up to CUDA 11.8.
    pub const CU_TARGET_COMPUTE_21: Self = Self(21);
    /// Compute capability 10.1, in CUDA 12.8 and 12.9; 13.0 renamed it to 11.0.
    pub const CU_TARGET_COMPUTE_101: Self = Self(101);
    /// Compute capability 10.1 with its accelerated features, in CUDA 12.8 and 12.9.
    pub const CU_TARGET_COMPUTE_101A: Self = Self(CU_COMPUTE_ACCELERATED_TARGET_BASE + 101);
    /// Compute capability 10.1 with its family's features, in CUDA 12.9.
    pub const CU_TARGET_COMPUTE_101F: Self = Self(CU_COMPUTE_FAMILY_TARGET_BASE + 101);
}
