//! Places of memory by name, because `CUmemLocation` keeps the number in a union without one.

use core::ffi::c_int;

use crate::{CUmemLocation, CUmemLocationType};

impl CUmemLocation {
    /// The memory of a device.
    #[must_use]
    pub fn device(ordinal: c_int) -> Self {
        Self::at(CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, ordinal)
    }

    /// The host's memory.
    #[must_use]
    pub fn host() -> Self {
        Self::at(CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST, 0)
    }

    /// The memory of one of the host's NUMA nodes.
    #[must_use]
    pub fn host_numa(node: c_int) -> Self {
        Self::at(CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST_NUMA, node)
    }

    /// The memory of the NUMA node that is nearest to the calling thread.
    #[must_use]
    pub fn host_numa_current() -> Self {
        Self::at(CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, 0)
    }

    fn at(kind: CUmemLocationType, id: c_int) -> Self {
        Self {
            type_: kind,
            ..Self::default()
        }
        .with_id(id)
    }
}
