//! Constructors of `CUmemLocation`, whose `id` is a member of an unnamed union.
#![forbid(unsafe_code)]

use core::ffi::c_int;

use crate::{CUmemLocation, CUmemLocationType};

impl CUmemLocation {
    /// Returns the location of a device's memory.
    #[inline]
    #[must_use]
    pub fn device(ordinal: c_int) -> Self {
        Self::at(CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, ordinal)
    }

    /// Returns the location of host memory.
    #[inline]
    #[must_use]
    pub fn host() -> Self {
        Self::at(CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST, 0)
    }

    /// Returns the location of the memory of a NUMA node of the host.
    #[inline]
    #[must_use]
    pub fn host_numa(node: c_int) -> Self {
        Self::at(CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST_NUMA, node)
    }

    /// Returns the location of the memory of the NUMA node closest to the calling thread.
    #[inline]
    #[must_use]
    pub fn host_numa_current() -> Self {
        Self::at(CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, 0)
    }

    #[inline]
    fn at(kind: CUmemLocationType, id: c_int) -> Self {
        Self {
            type_: kind,
            ..Self::default()
        }
        .with_id(id)
    }
}
