//! Device profiles: the value of each `CUdevice_attribute` by architecture.
//!
//! Limits and sizes are those of a well-known GPU of the architecture; sm_90 is an H200 with measured values. Features
//! that this driver does not implement are 0 even if the H200 has them, so that programs that query them choose another
//! way. Examples are cooperative launches on several devices, access policy windows and persisting L2, compression,
//! semaphores, RDMA and DMA buffers. ECC and the PCI device ID are 0, too. A change that implements a feature must also
//! set its attribute.

use cuda_driver_sys::CUdevice_attribute as Attribute;

/// The properties of a device architecture.
#[derive(Debug)]
pub(crate) struct Profile {
    /// Compute capability: 90 for 9.0.
    pub(crate) sm: u32,
    multiprocessors: i32,
    threads_per_multiprocessor: i32,
    blocks_per_multiprocessor: i32,
    /// Shared memory per multiprocessor in KiB.
    shared_kib: i32,
    /// Opt-in maximum of shared memory per block in KiB.
    shared_optin_kib: i32,
    l2_bytes: i32,
    clock_khz: i32,
    memory_khz: i32,
    bus_bits: i32,
    /// Ratio of f32 to f64 throughput.
    double_ratio: i32,
}

/// Creates a profile from a row of [`PROFILES`].
const fn profile(
    sm: u32,
    multiprocessors: i32,
    per_multiprocessor: (i32, i32, i32, i32),
    memory: (i32, i32, i32),
    clock_khz: i32,
    double_ratio: i32,
) -> Profile {
    let (threads_per_multiprocessor, blocks_per_multiprocessor, shared_kib, shared_optin_kib) = per_multiprocessor;
    let (l2_bytes, memory_khz, bus_bits) = memory;
    Profile {
        sm,
        multiprocessors,
        threads_per_multiprocessor,
        blocks_per_multiprocessor,
        shared_kib,
        shared_optin_kib,
        l2_bytes,
        clock_khz,
        memory_khz,
        bus_bits,
        double_ratio,
    }
}

static PROFILES: [Profile; 14] = [
    profile(52, 24, (2048, 32, 96, 48), (3 << 20, 3_505_000, 384), 1_114_000, 32),
    profile(60, 56, (2048, 32, 64, 48), (4 << 20, 715_000, 4096), 1_328_500, 2),
    profile(61, 28, (2048, 32, 96, 48), (2816 << 10, 5_505_000, 352), 1_582_000, 32),
    profile(70, 80, (2048, 32, 96, 96), (6 << 20, 877_000, 4096), 1_530_000, 2),
    profile(75, 40, (1024, 16, 64, 64), (4 << 20, 5_001_000, 256), 1_590_000, 32),
    profile(80, 108, (2048, 32, 164, 163), (40 << 20, 1_215_000, 5120), 1_410_000, 2),
    profile(86, 84, (1536, 16, 100, 99), (6 << 20, 7_251_000, 384), 1_695_000, 64),
    profile(87, 16, (1536, 16, 164, 163), (4 << 20, 1_300_000, 128), 1_300_000, 32),
    profile(89, 142, (1536, 24, 100, 99), (96 << 20, 9_001_000, 384), 2_490_000, 64),
    profile(90, 132, (2048, 32, 228, 227), (60 << 20, 3_201_000, 6016), 1_980_000, 2),
    profile(
        100,
        148,
        (2048, 32, 228, 227),
        (126 << 20, 3_996_000, 8192),
        1_965_000,
        2,
    ),
    profile(
        103,
        148,
        (2048, 32, 228, 227),
        (126 << 20, 3_996_000, 8192),
        1_920_000,
        64,
    ),
    profile(110, 20, (1536, 24, 228, 227), (32 << 20, 4_266_000, 256), 1_575_000, 64),
    profile(
        120,
        188,
        (1536, 24, 100, 99),
        (128 << 20, 14_001_000, 512),
        2_617_000,
        64,
    ),
];

impl Profile {
    /// Returns the profile of an architecture by its name, such as `sm_90`.
    pub(crate) fn of(name: &str) -> Option<&'static Profile> {
        let sm = name.strip_prefix("sm_")?.parse().ok()?;
        PROFILES.iter().find(|p| p.sm == sm)
    }

    /// Returns the names that [`Profile::of`] accepts.
    pub(crate) fn names() -> String {
        PROFILES
            .iter()
            .map(|p| format!("sm_{}", p.sm))
            .collect::<Vec<_>>()
            .join(", ")
    }

    /// Returns the value of an attribute, or `None` if the number is not an attribute.
    pub(crate) fn attribute(&self, attribute: Attribute) -> Option<i32> {
        Some(match attribute {
            Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT => self.multiprocessors,
            Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR => self.threads_per_multiprocessor,
            Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR => self.blocks_per_multiprocessor,
            Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR => self.shared_kib << 10,
            Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN => self.shared_optin_kib << 10,
            Attribute::CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK if self.sm < 80 => 0,
            Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE => self.l2_bytes,
            Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE => self.clock_khz,
            Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE => self.memory_khz,
            Attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH => self.bus_bits,
            Attribute::CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO => self.double_ratio,
            Attribute::CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH
            | Attribute::CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED => i32::from(self.sm >= 90),
            Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR => (self.sm / 10) as i32,
            Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR => (self.sm % 10) as i32,
            _ => return COMMON.iter().find(|c| c.0 == attribute).map(|c| c.1),
        })
    }
}

/// Returns the CUDA version that introduced an attribute, or 0 for those up to 13.0. Older drivers reject the
/// attribute.
pub(crate) fn since(attribute: Attribute) -> u32 {
    const FIRST_OF_13_3: u32 = Attribute::CU_DEVICE_ATTRIBUTE_D3D12_CIG_STREAMS_SUPPORTED.0;
    const LAST_OF_13_3: u32 =
        Attribute::CU_DEVICE_ATTRIBUTE_LOGICAL_ENDPOINT_UNICAST_ACCESS_ON_OWNER_DEVICE_SUPPORTED.0;
    const FIRST_OF_13_4: u32 = Attribute::CU_DEVICE_ATTRIBUTE_LOCALITY_DOMAIN_COUNT.0;
    match attribute {
        Attribute::CU_DEVICE_ATTRIBUTE_ATOMIC_REDUCTION_SUPPORTED => 13010,
        Attribute::CU_DEVICE_ATTRIBUTE_VULKAN_CIG_STREAMS_SUPPORTED
        | Attribute::CU_DEVICE_ATTRIBUTE_TENSOR_MAP_LARGE_TENSOR_MIN_SIZE => 13050,
        Attribute(FIRST_OF_13_3..=LAST_OF_13_3) => 13030,
        Attribute(FIRST_OF_13_4..) => 13040,
        _ => 0,
    }
}

/// Placeholder in [`COMMON`] for a value that [`Profile::attribute`] takes from the profile.
const OWN: i32 = i32::MIN;

/// All attributes, with the values that the profiles share.
#[rustfmt::skip]
static COMMON: [(Attribute, i32); 161] = [
    (Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024),
    (Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024),
    (Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024),
    (Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64),
    (Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, i32::MAX),
    (Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535),
    (Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535),
    (Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 48 << 10),
    (Attribute::CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 64 << 10),
    (Attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32),
    (Attribute::CU_DEVICE_ATTRIBUTE_MAX_PITCH, i32::MAX),
    (Attribute::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536),
    (Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE, OWN),
    (Attribute::CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512),
    (Attribute::CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, 1),
    (Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, OWN),
    (Attribute::CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT, 0),
    (Attribute::CU_DEVICE_ATTRIBUTE_INTEGRATED, 0),
    (Attribute::CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1),
    (Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, 0),
    (Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH, 131_072),
    (Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH, 131_072),
    (Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT, 65536),
    (Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH, 16384),
    (Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT, 16384),
    (Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH, 16384),
    (Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_WIDTH, 32768),
    (Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_HEIGHT, 32768),
    (Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS, 2048),
    (Attribute::CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT, 512),
    (Attribute::CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1),
    (Attribute::CU_DEVICE_ATTRIBUTE_ECC_ENABLED, 0),
    (Attribute::CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 0), // set by `Device::attribute`
    (Attribute::CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, 0),
    (Attribute::CU_DEVICE_ATTRIBUTE_TCC_DRIVER, 0),
    (Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, OWN),
    (Attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, OWN),
    (Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, OWN),
    (Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, OWN),
    (Attribute::CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 3),
    (Attribute::CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1),
    (Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_WIDTH, 32768),
    (Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_LAYERS, 2048),
    (Attribute::CU_DEVICE_ATTRIBUTE_CAN_TEX2D_GATHER, 1),
    (Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_WIDTH, 32768),
    (Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_HEIGHT, 32768),
    (Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE, 8192),
    (Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE, 8192),
    (Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE, 32768),
    (Attribute::CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 0),
    (Attribute::CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, 32),
    (Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_WIDTH, 32768),
    (Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH, 32768),
    (Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS, 2046),
    (Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_WIDTH, 32768),
    (Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_WIDTH, 131_072),
    (Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_HEIGHT, 65536),
    (Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_WIDTH, 16384),
    (Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_HEIGHT, 16384),
    (Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_DEPTH, 16384),
    (Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_WIDTH, 32768),
    (Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_LAYERS, 2048),
    (Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_WIDTH, 32768),
    (Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_HEIGHT, 32768),
    (Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_LAYERS, 2048),
    (Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_WIDTH, 32768),
    (Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH, 32768),
    (Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS, 2046),
    (Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH, 268_435_456),
    (Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH, 131_072),
    (Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT, 65000),
    (Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH, 2_097_120),
    (Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH, 32768),
    (Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT, 32768),
    (Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, OWN),
    (Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, OWN),
    (Attribute::CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH, 32768),
    (Attribute::CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1),
    (Attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED, 1),
    (Attribute::CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED, 1),
    (Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, OWN),
    (Attribute::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536),
    (Attribute::CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1),
    (Attribute::CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD, 0),
    (Attribute::CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD_GROUP_ID, 0),
    (Attribute::CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED, 0),
    (Attribute::CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, OWN),
    (Attribute::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, 0),
    (Attribute::CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 1),
    (Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED, 1),
    (Attribute::CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1),
    (Attribute::CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1, 0),
    (Attribute::CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V1, 0),
    (Attribute::CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR_V1, 0),
    (Attribute::CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1),
    (Attribute::CU_DEVICE_ATTRIBUTE_COOPERATIVE_MULTI_DEVICE_LAUNCH, 1),
    (Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, OWN),
    (Attribute::CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES, 0),
    (Attribute::CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1),
    (Attribute::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES, 0),
    (Attribute::CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST, 0),
    (Attribute::CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1),
    (Attribute::CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, cfg!(target_os = "linux") as i32),
    (Attribute::CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_WIN32_HANDLE_SUPPORTED, 0),
    (Attribute::CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_WIN32_KMT_HANDLE_SUPPORTED, 0),
    (Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, OWN),
    (Attribute::CU_DEVICE_ATTRIBUTE_GENERIC_COMPRESSION_SUPPORTED, 0),
    (Attribute::CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, 0),
    (Attribute::CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE, 128 << 20),
    (Attribute::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, 0),
    (Attribute::CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1024),
    (Attribute::CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED, 1),
    (Attribute::CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED, 1),
    (Attribute::CU_DEVICE_ATTRIBUTE_TIMELINE_SEMAPHORE_INTEROP_SUPPORTED, 0),
    (Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1),
    (Attribute::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED, 0),
    (Attribute::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS, 0),
    (Attribute::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING, 0),
    (Attribute::CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES, cfg!(target_os = "linux") as i32),
    (Attribute::CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, OWN),
    (Attribute::CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED, 1),
    (Attribute::CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, 1),
    (Attribute::CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR, 1),
    (Attribute::CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, 0),
    (Attribute::CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED, cfg!(target_os = "linux") as i32),
    (Attribute::CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT, 4), // all behave alike here
    (Attribute::CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED, OWN),
    (Attribute::CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED, 0),
    (Attribute::CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS, 1),
    (Attribute::CU_DEVICE_ATTRIBUTE_NUMA_CONFIG, 0),
    (Attribute::CU_DEVICE_ATTRIBUTE_NUMA_ID, -1),
    (Attribute::CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, 0),
    (Attribute::CU_DEVICE_ATTRIBUTE_MPS_ENABLED, 0),
    (Attribute::CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, 0),
    (Attribute::CU_DEVICE_ATTRIBUTE_D3D12_CIG_SUPPORTED, 0),
    (Attribute::CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK, 0),
    (Attribute::CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_MAXIMUM_LENGTH, 0),
    (Attribute::CU_DEVICE_ATTRIBUTE_VULKAN_CIG_SUPPORTED, 0),
    (Attribute::CU_DEVICE_ATTRIBUTE_GPU_PCI_DEVICE_ID, 0),
    (Attribute::CU_DEVICE_ATTRIBUTE_GPU_PCI_SUBSYSTEM_ID, 0),
    (Attribute::CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, cfg!(target_os = "linux") as i32),
    (Attribute::CU_DEVICE_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS_SUPPORTED, 1),
    (Attribute::CU_DEVICE_ATTRIBUTE_HOST_NUMA_MULTINODE_IPC_SUPPORTED, 0),
    (Attribute::CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED, 1),
    (Attribute::CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, cfg!(target_os = "linux") as i32),
    (Attribute::CU_DEVICE_ATTRIBUTE_HOST_ALLOC_DMA_BUF_SUPPORTED, 0),
    (Attribute::CU_DEVICE_ATTRIBUTE_ONLY_PARTIAL_HOST_NATIVE_ATOMIC_SUPPORTED, 0),
    (Attribute::CU_DEVICE_ATTRIBUTE_ATOMIC_REDUCTION_SUPPORTED, 0),
    (Attribute::CU_DEVICE_ATTRIBUTE_LOCALITY_DOMAIN_COUNT, 0),
    (Attribute::CU_DEVICE_ATTRIBUTE_MAX_OVERSIZED_SHARED_MEMORY_PER_BLOCK, 0),
    (Attribute::CU_DEVICE_ATTRIBUTE_D3D12_CIG_STREAMS_SUPPORTED, 0),
    (Attribute::CU_DEVICE_ATTRIBUTE_DMA_BUF_MMAP_SUPPORTED, 0),
    (Attribute::CU_DEVICE_ATTRIBUTE_LOGICAL_ENDPOINT_UNICAST_SUPPORTED, 0),
    (Attribute::CU_DEVICE_ATTRIBUTE_LOGICAL_ENDPOINT_MULTICAST_SUPPORTED, 0),
    (Attribute::CU_DEVICE_ATTRIBUTE_LOGICAL_ENDPOINT_COUNTED_OPS_SUPPORTED, 0),
    (Attribute::CU_DEVICE_ATTRIBUTE_LOGICAL_ENDPOINT_UNICAST_ACCESS_ON_OWNER_DEVICE_SUPPORTED, 0),
    (Attribute::CU_DEVICE_ATTRIBUTE_LOCALITY_DOMAIN_MULTIPROCESSOR_COUNT, 0),
    (Attribute::CU_DEVICE_ATTRIBUTE_LOGICAL_ENDPOINT_SUPPORTED_HANDLE_TYPES, 0),
    (Attribute::CU_DEVICE_ATTRIBUTE_VULKAN_CIG_STREAMS_SUPPORTED, 0),
    (Attribute::CU_DEVICE_ATTRIBUTE_TENSOR_MAP_LARGE_TENSOR_MIN_SIZE, 0),
    (Attribute::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_LOCALIZED_MEMORY_SUPPORTED, 0),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_has_a_value_for_every_attribute() {
        for profile in &PROFILES {
            for n in 1..=161 {
                let value = profile.attribute(Attribute(n));
                assert!(
                    value.is_some_and(|value| value != OWN),
                    "attribute {n} of sm_{}: {value:?}",
                    profile.sm
                );
            }
            assert_eq!(profile.attribute(Attribute(0)), None);
            assert_eq!(profile.attribute(Attribute(162)), None);
        }
    }
}
