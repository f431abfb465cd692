//! Device profiles: the value of every `CUdevice_attribute`, by architecture.
//!
//! Limits and sizes are those of a well-known GPU of the architecture; sm_90 is an H200, and its numbers were read off one.
//! What this driver does not do is 0, though an H200 has it, so that programs that ask take their other way:
//! cooperative launches on several devices, tensor maps, access policy windows and what they persist in L2, compression,
//! sparse arrays, semaphores, RDMA, DMA buffers. Nor does it claim to correct errors in memory (ECC) or to be a PCI device
//! that NVIDIA made. A capability becomes 1 in the change that brings it.

/// A kind of device.
#[derive(Debug)]
pub(crate) struct Profile {
    /// Compute capability: 90 for 9.0.
    pub(crate) sm: u32,
    multiprocessors: i32,
    threads_per_multiprocessor: i32,
    blocks_per_multiprocessor: i32,
    /// Shared memory in KiB: per multiprocessor, and the most that a block can have when it asks.
    shared_kib: i32,
    shared_optin_kib: i32,
    l2_bytes: i32,
    clock_khz: i32,
    memory_khz: i32,
    bus_bits: i32,
    /// Throughput of f32 over that of f64.
    double_ratio: i32,
}

const fn profile(
    sm: u32,
    multiprocessors: i32,
    per_multiprocessor: (i32, i32, i32, i32),
    memory: (i32, i32, i32),
    clock_khz: i32,
    double_ratio: i32,
) -> Profile {
    let (threads_per_multiprocessor, blocks_per_multiprocessor, shared_kib, shared_optin_kib) =
        per_multiprocessor;
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
    profile(
        52,
        24,
        (2048, 32, 96, 48),
        (3 << 20, 3_505_000, 384),
        1_114_000,
        32,
    ),
    profile(
        60,
        56,
        (2048, 32, 64, 48),
        (4 << 20, 715_000, 4096),
        1_328_500,
        2,
    ),
    profile(
        61,
        28,
        (2048, 32, 96, 48),
        (2816 << 10, 5_505_000, 352),
        1_582_000,
        32,
    ),
    profile(
        70,
        80,
        (2048, 32, 96, 96),
        (6 << 20, 877_000, 4096),
        1_530_000,
        2,
    ),
    profile(
        75,
        40,
        (1024, 16, 64, 64),
        (4 << 20, 5_001_000, 256),
        1_590_000,
        32,
    ),
    profile(
        80,
        108,
        (2048, 32, 164, 163),
        (40 << 20, 1_215_000, 5120),
        1_410_000,
        2,
    ),
    profile(
        86,
        84,
        (1536, 16, 100, 99),
        (6 << 20, 7_251_000, 384),
        1_695_000,
        64,
    ),
    profile(
        87,
        16,
        (1536, 16, 164, 163),
        (4 << 20, 1_300_000, 128),
        1_300_000,
        32,
    ),
    profile(
        89,
        142,
        (1536, 24, 100, 99),
        (96 << 20, 9_001_000, 384),
        2_490_000,
        64,
    ),
    profile(
        90,
        132,
        (2048, 32, 228, 227),
        (60 << 20, 3_201_000, 6016),
        1_980_000,
        2,
    ),
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
    profile(
        110,
        20,
        (1536, 24, 228, 227),
        (32 << 20, 4_266_000, 256),
        1_575_000,
        64,
    ),
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
    /// The profile of an architecture, by its name `sm_90`.
    pub(crate) fn of(name: &str) -> Option<&'static Profile> {
        let sm = name.strip_prefix("sm_")?.parse().ok()?;
        PROFILES.iter().find(|p| p.sm == sm)
    }

    /// The names that [`Profile::of`] knows.
    pub(crate) fn names() -> String {
        PROFILES
            .iter()
            .map(|p| format!("sm_{}", p.sm))
            .collect::<Vec<_>>()
            .join(", ")
    }

    /// The value of an attribute; `None` for a number that is no attribute.
    pub(crate) fn attribute(&self, attribute: u32) -> Option<i32> {
        Some(match attribute {
            MULTIPROCESSOR_COUNT => self.multiprocessors,
            MAX_THREADS_PER_MULTIPROCESSOR => self.threads_per_multiprocessor,
            MAX_BLOCKS_PER_MULTIPROCESSOR => self.blocks_per_multiprocessor,
            MAX_SHARED_MEMORY_PER_MULTIPROCESSOR => self.shared_kib << 10,
            MAX_SHARED_MEMORY_PER_BLOCK_OPTIN => self.shared_optin_kib << 10,
            RESERVED_SHARED_MEMORY_PER_BLOCK if self.sm < 80 => 0,
            L2_CACHE_SIZE => self.l2_bytes,
            CLOCK_RATE => self.clock_khz,
            MEMORY_CLOCK_RATE => self.memory_khz,
            GLOBAL_MEMORY_BUS_WIDTH => self.bus_bits,
            SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO => self.double_ratio,
            CLUSTER_LAUNCH => i32::from(self.sm >= 90),
            COMPUTE_CAPABILITY_MAJOR => (self.sm / 10) as i32,
            COMPUTE_CAPABILITY_MINOR => (self.sm % 10) as i32,
            _ => return COMMON.iter().find(|c| c.0 == attribute).map(|c| c.1),
        })
    }
}

macro_rules! attributes {
    ($($name:ident = $number:literal => $value:expr;)*) => {
        $(#[allow(dead_code)] pub(crate) const $name: u32 = $number;)*
        /// (attribute, value) where all profiles agree.
        static COMMON: &[(u32, i32)] = &[$(($number, $value)),*];
    };
}

/// The CUDA version that brought an attribute, as far as it is newer than 13.0: before it, the number is no attribute.
pub(crate) fn since(attribute: u32) -> u32 {
    match attribute {
        ATOMIC_REDUCTION_SUPPORTED => 13010,
        D3D12_CIG_STREAMS_SUPPORTED..=LOGICAL_ENDPOINT_UNICAST_ACCESS_ON_OWNER_DEVICE_SUPPORTED => {
            13030
        }
        VULKAN_CIG_STREAMS_SUPPORTED | TENSOR_MAP_LARGE_TENSOR_MIN_SIZE => 13050,
        LOCALITY_DOMAIN_COUNT.. => 13040,
        _ => 0,
    }
}

/// In place of the value that a [`Profile`] has.
const OWN: i32 = 0;

attributes! {
    MAX_THREADS_PER_BLOCK = 1 => 1024;
    MAX_BLOCK_DIM_X = 2 => 1024;
    MAX_BLOCK_DIM_Y = 3 => 1024;
    MAX_BLOCK_DIM_Z = 4 => 64;
    MAX_GRID_DIM_X = 5 => i32::MAX;
    MAX_GRID_DIM_Y = 6 => 65535;
    MAX_GRID_DIM_Z = 7 => 65535;
    MAX_SHARED_MEMORY_PER_BLOCK = 8 => 48 << 10;
    TOTAL_CONSTANT_MEMORY = 9 => 64 << 10;
    WARP_SIZE = 10 => 32;
    MAX_PITCH = 11 => i32::MAX;
    MAX_REGISTERS_PER_BLOCK = 12 => 65536;
    CLOCK_RATE = 13 => OWN;
    TEXTURE_ALIGNMENT = 14 => 512;
    GPU_OVERLAP = 15 => 1;
    MULTIPROCESSOR_COUNT = 16 => OWN;
    KERNEL_EXEC_TIMEOUT = 17 => 0;
    INTEGRATED = 18 => 0;
    CAN_MAP_HOST_MEMORY = 19 => 1;
    COMPUTE_MODE = 20 => 0;
    MAXIMUM_TEXTURE1D_WIDTH = 21 => 131_072;
    MAXIMUM_TEXTURE2D_WIDTH = 22 => 131_072;
    MAXIMUM_TEXTURE2D_HEIGHT = 23 => 65536;
    MAXIMUM_TEXTURE3D_WIDTH = 24 => 16384;
    MAXIMUM_TEXTURE3D_HEIGHT = 25 => 16384;
    MAXIMUM_TEXTURE3D_DEPTH = 26 => 16384;
    MAXIMUM_TEXTURE2D_LAYERED_WIDTH = 27 => 32768;
    MAXIMUM_TEXTURE2D_LAYERED_HEIGHT = 28 => 32768;
    MAXIMUM_TEXTURE2D_LAYERED_LAYERS = 29 => 2048;
    SURFACE_ALIGNMENT = 30 => 512;
    CONCURRENT_KERNELS = 31 => 1;
    ECC_ENABLED = 32 => 0;
    PCI_BUS_ID = 33 => OWN; // of the device: see `Device::attribute`
    PCI_DEVICE_ID = 34 => 0;
    TCC_DRIVER = 35 => 0;
    MEMORY_CLOCK_RATE = 36 => OWN;
    GLOBAL_MEMORY_BUS_WIDTH = 37 => OWN;
    L2_CACHE_SIZE = 38 => OWN;
    MAX_THREADS_PER_MULTIPROCESSOR = 39 => OWN;
    ASYNC_ENGINE_COUNT = 40 => 3;
    UNIFIED_ADDRESSING = 41 => 1;
    MAXIMUM_TEXTURE1D_LAYERED_WIDTH = 42 => 32768;
    MAXIMUM_TEXTURE1D_LAYERED_LAYERS = 43 => 2048;
    CAN_TEX2D_GATHER = 44 => 1;
    MAXIMUM_TEXTURE2D_GATHER_WIDTH = 45 => 32768;
    MAXIMUM_TEXTURE2D_GATHER_HEIGHT = 46 => 32768;
    MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE = 47 => 8192;
    MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE = 48 => 8192;
    MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE = 49 => 32768;
    PCI_DOMAIN_ID = 50 => 0;
    TEXTURE_PITCH_ALIGNMENT = 51 => 32;
    MAXIMUM_TEXTURECUBEMAP_WIDTH = 52 => 32768;
    MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH = 53 => 32768;
    MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS = 54 => 2046;
    MAXIMUM_SURFACE1D_WIDTH = 55 => 32768;
    MAXIMUM_SURFACE2D_WIDTH = 56 => 131_072;
    MAXIMUM_SURFACE2D_HEIGHT = 57 => 65536;
    MAXIMUM_SURFACE3D_WIDTH = 58 => 16384;
    MAXIMUM_SURFACE3D_HEIGHT = 59 => 16384;
    MAXIMUM_SURFACE3D_DEPTH = 60 => 16384;
    MAXIMUM_SURFACE1D_LAYERED_WIDTH = 61 => 32768;
    MAXIMUM_SURFACE1D_LAYERED_LAYERS = 62 => 2048;
    MAXIMUM_SURFACE2D_LAYERED_WIDTH = 63 => 32768;
    MAXIMUM_SURFACE2D_LAYERED_HEIGHT = 64 => 32768;
    MAXIMUM_SURFACE2D_LAYERED_LAYERS = 65 => 2048;
    MAXIMUM_SURFACECUBEMAP_WIDTH = 66 => 32768;
    MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH = 67 => 32768;
    MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS = 68 => 2046;
    MAXIMUM_TEXTURE1D_LINEAR_WIDTH = 69 => 268_435_456;
    MAXIMUM_TEXTURE2D_LINEAR_WIDTH = 70 => 131_072;
    MAXIMUM_TEXTURE2D_LINEAR_HEIGHT = 71 => 65000;
    MAXIMUM_TEXTURE2D_LINEAR_PITCH = 72 => 2_097_120;
    MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH = 73 => 32768;
    MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT = 74 => 32768;
    COMPUTE_CAPABILITY_MAJOR = 75 => OWN;
    COMPUTE_CAPABILITY_MINOR = 76 => OWN;
    MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH = 77 => 32768;
    STREAM_PRIORITIES_SUPPORTED = 78 => 1;
    GLOBAL_L1_CACHE_SUPPORTED = 79 => 1;
    LOCAL_L1_CACHE_SUPPORTED = 80 => 1;
    MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 81 => OWN;
    MAX_REGISTERS_PER_MULTIPROCESSOR = 82 => 65536;
    MANAGED_MEMORY = 83 => 1;
    MULTI_GPU_BOARD = 84 => 0;
    MULTI_GPU_BOARD_GROUP_ID = 85 => 0;
    HOST_NATIVE_ATOMIC_SUPPORTED = 86 => 0;
    SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO = 87 => OWN;
    PAGEABLE_MEMORY_ACCESS = 88 => 0;
    CONCURRENT_MANAGED_ACCESS = 89 => 1;
    COMPUTE_PREEMPTION_SUPPORTED = 90 => 1;
    CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM = 91 => 1;
    CAN_USE_STREAM_MEM_OPS_V1 = 92 => 0;
    CAN_USE_64_BIT_STREAM_MEM_OPS_V1 = 93 => 0;
    CAN_USE_STREAM_WAIT_VALUE_NOR_V1 = 94 => 0;
    COOPERATIVE_LAUNCH = 95 => 1;
    COOPERATIVE_MULTI_DEVICE_LAUNCH = 96 => 0;
    MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97 => OWN;
    CAN_FLUSH_REMOTE_WRITES = 98 => 0;
    HOST_REGISTER_SUPPORTED = 99 => 1;
    PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES = 100 => 0;
    DIRECT_MANAGED_MEM_ACCESS_FROM_HOST = 101 => 0;
    VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 102 => 1;
    HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED = 103 => cfg!(target_os = "linux") as i32;
    HANDLE_TYPE_WIN32_HANDLE_SUPPORTED = 104 => 0;
    HANDLE_TYPE_WIN32_KMT_HANDLE_SUPPORTED = 105 => 0;
    MAX_BLOCKS_PER_MULTIPROCESSOR = 106 => OWN;
    GENERIC_COMPRESSION_SUPPORTED = 107 => 0;
    MAX_PERSISTING_L2_CACHE_SIZE = 108 => 0;
    MAX_ACCESS_POLICY_WINDOW_SIZE = 109 => 0;
    GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED = 110 => 0;
    RESERVED_SHARED_MEMORY_PER_BLOCK = 111 => 1024;
    SPARSE_CUDA_ARRAY_SUPPORTED = 112 => 0;
    READ_ONLY_HOST_REGISTER_SUPPORTED = 113 => 1;
    TIMELINE_SEMAPHORE_INTEROP_SUPPORTED = 114 => 0;
    MEMORY_POOLS_SUPPORTED = 115 => 1;
    GPU_DIRECT_RDMA_SUPPORTED = 116 => 0;
    GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS = 117 => 0;
    GPU_DIRECT_RDMA_WRITES_ORDERING = 118 => 0;
    MEMPOOL_SUPPORTED_HANDLE_TYPES = 119 => cfg!(target_os = "linux") as i32;
    CLUSTER_LAUNCH = 120 => OWN;
    DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED = 121 => 0;
    CAN_USE_64_BIT_STREAM_MEM_OPS = 122 => 1;
    CAN_USE_STREAM_WAIT_VALUE_NOR = 123 => 1;
    DMA_BUF_SUPPORTED = 124 => 0;
    IPC_EVENT_SUPPORTED = 125 => cfg!(target_os = "linux") as i32;
    MEM_SYNC_DOMAIN_COUNT = 126 => 4; // all alike here
    TENSOR_MAP_ACCESS_SUPPORTED = 127 => 0;
    HANDLE_TYPE_FABRIC_SUPPORTED = 128 => 0;
    UNIFIED_FUNCTION_POINTERS = 129 => 1;
    NUMA_CONFIG = 130 => 0;
    NUMA_ID = 131 => -1;
    MULTICAST_SUPPORTED = 132 => 0;
    MPS_ENABLED = 133 => 0;
    HOST_NUMA_ID = 134 => 0;
    D3D12_CIG_SUPPORTED = 135 => 0;
    MEM_DECOMPRESS_ALGORITHM_MASK = 136 => 0;
    MEM_DECOMPRESS_MAXIMUM_LENGTH = 137 => 0;
    VULKAN_CIG_SUPPORTED = 138 => 0;
    GPU_PCI_DEVICE_ID = 139 => 0;
    GPU_PCI_SUBSYSTEM_ID = 140 => 0;
    HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 141 => 0;
    HOST_NUMA_MEMORY_POOLS_SUPPORTED = 142 => 1;
    HOST_NUMA_MULTINODE_IPC_SUPPORTED = 143 => 0;
    HOST_MEMORY_POOLS_SUPPORTED = 144 => 1;
    HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 145 => 0;
    HOST_ALLOC_DMA_BUF_SUPPORTED = 146 => 0;
    ONLY_PARTIAL_HOST_NATIVE_ATOMIC_SUPPORTED = 147 => 0;
    ATOMIC_REDUCTION_SUPPORTED = 148 => 0;
    LOCALITY_DOMAIN_COUNT = 149 => 0;
    MAX_OVERSIZED_SHARED_MEMORY_PER_BLOCK = 150 => 0;
    D3D12_CIG_STREAMS_SUPPORTED = 151 => 0;
    DMA_BUF_MMAP_SUPPORTED = 152 => 0;
    LOGICAL_ENDPOINT_UNICAST_SUPPORTED = 153 => 0;
    LOGICAL_ENDPOINT_MULTICAST_SUPPORTED = 154 => 0;
    LOGICAL_ENDPOINT_COUNTED_OPS_SUPPORTED = 155 => 0;
    LOGICAL_ENDPOINT_UNICAST_ACCESS_ON_OWNER_DEVICE_SUPPORTED = 156 => 0;
    LOCALITY_DOMAIN_MULTIPROCESSOR_COUNT = 157 => 0;
    LOGICAL_ENDPOINT_SUPPORTED_HANDLE_TYPES = 158 => 0;
    VULKAN_CIG_STREAMS_SUPPORTED = 159 => 0;
    TENSOR_MAP_LARGE_TENSOR_MIN_SIZE = 160 => 0;
    GPU_DIRECT_RDMA_WITH_LOCALIZED_MEMORY_SUPPORTED = 161 => 0;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_attribute_of_every_profile_has_a_value_and_own_ones_are_not_zero() {
        for profile in &PROFILES {
            for n in 1..=161 {
                let value = profile.attribute(n);
                assert!(value.is_some(), "attribute {n} of sm_{}", profile.sm);
            }
            for own in [
                CLOCK_RATE,
                MULTIPROCESSOR_COUNT,
                MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
                COMPUTE_CAPABILITY_MAJOR,
                L2_CACHE_SIZE,
            ] {
                assert_ne!(
                    profile.attribute(own),
                    Some(0),
                    "attribute {own} of sm_{}",
                    profile.sm
                );
            }
            assert_eq!(profile.attribute(0), None);
            assert_eq!(profile.attribute(162), None);
        }
    }
}
