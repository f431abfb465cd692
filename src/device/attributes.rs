//! Attributes of devices, by name and with their types.

use super::Device;
use crate::sys::{
    CUGPUDirectRDMAWritesOrdering, CUcomputemode, CUdevice_attribute, CUdeviceNumaConfig,
    CUflushGPUDirectRDMAWritesOptions, CUmemAllocationHandleType,
};
use crate::{Result, checked};

/// The attributes of a device: one method for each, which queries the driver. See [`Device::attributes`].
///
/// Each method returns `CUDA_ERROR_INVALID_VALUE` if the driver does not know the attribute, and
/// `CUDA_ERROR_INVALID_DEVICE` if there is no such device. The methods have the names of C, without
/// `CU_DEVICE_ATTRIBUTE_`; [`Device::attribute`] returns any attribute as a number. Sizes of textures and surfaces are
/// in texels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Attributes(pub(super) Device);

/// The type of an attribute's value.
trait Value {
    /// Converts the driver's number.
    fn of(number: i32) -> Self;
}

impl Value for u32 {
    #[inline]
    fn of(number: i32) -> Self {
        number as u32
    }
}

impl Value for i32 {
    #[inline]
    fn of(number: i32) -> Self {
        number
    }
}

impl Value for bool {
    #[inline]
    fn of(number: i32) -> Self {
        number != 0
    }
}

macro_rules! enumerations {
    ($($ty:ident)*) => {
        $(
            impl Value for $ty {
                #[inline]
                fn of(number: i32) -> Self {
                    Self(number as _)
                }
            }
        )*
    };
}
enumerations!(CUGPUDirectRDMAWritesOrdering CUcomputemode CUdeviceNumaConfig CUflushGPUDirectRDMAWritesOptions CUmemAllocationHandleType);

impl Attributes {
    #[inline]
    #[track_caller]
    fn get<T: Value>(self, attribute: CUdevice_attribute) -> Result<T> {
        // SAFETY: the driver checks both arguments.
        unsafe { checked::device_get_attribute(attribute, self.0.as_raw()) }.map(T::of)
    }
}

macro_rules! attributes {
    ($($doc:literal $name:ident: $ty:ty = $attribute:ident;)*) => {
        impl Attributes {
            $(
                #[doc = concat!("Returns ", $doc, ".")]
                ///
                /// # Errors
                /// See [`Attributes`].
                #[inline]
                #[track_caller]
                pub fn $name(self) -> Result<$ty> {
                    self.get(CUdevice_attribute::$attribute)
                }
            )*
        }
    };
}

attributes! {
    "the largest number of threads in a block" max_threads_per_block: u32 = CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK;
    "the largest number of threads of a block in the first dimension" max_block_dim_x: u32 = CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X;
    "the largest number of threads of a block in the second dimension" max_block_dim_y: u32 = CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y;
    "the largest number of threads of a block in the third dimension" max_block_dim_z: u32 = CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z;
    "the largest number of blocks of a grid in the first dimension" max_grid_dim_x: u32 = CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X;
    "the largest number of blocks of a grid in the second dimension" max_grid_dim_y: u32 = CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y;
    "the largest number of blocks of a grid in the third dimension" max_grid_dim_z: u32 = CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z;
    "the shared memory that a block can have without [opting in](crate::Function::set_max_dynamic_shared_bytes), in bytes" max_shared_memory_per_block: u32 = CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK;
    "the size of constant memory in bytes" total_constant_memory: u32 = CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY;
    "the number of lanes of a warp" warp_size: u32 = CU_DEVICE_ATTRIBUTE_WARP_SIZE;
    "the largest pitch of a copy in bytes" max_pitch: u32 = CU_DEVICE_ATTRIBUTE_MAX_PITCH;
    "the number of 32-bit registers that a block can have" max_registers_per_block: u32 = CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK;
    "the clock rate in kHz" clock_rate: u32 = CU_DEVICE_ATTRIBUTE_CLOCK_RATE;
    "the alignment of texture memory in bytes" texture_alignment: u32 = CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT;
    "true if copies and kernels can run at once" gpu_overlap: bool = CU_DEVICE_ATTRIBUTE_GPU_OVERLAP;
    "the number of multiprocessors" multiprocessor_count: u32 = CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
    "true if kernels that run for too long are ended" kernel_exec_timeout: bool = CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT;
    "true if the device uses the host's memory" integrated: bool = CU_DEVICE_ATTRIBUTE_INTEGRATED;
    "true if host memory can be mapped into the device's address space" can_map_host_memory: bool = CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY;
    "the compute mode, which restricts the creation of contexts" compute_mode: CUcomputemode = CU_DEVICE_ATTRIBUTE_COMPUTE_MODE;
    "the largest width of a 1D texture" maximum_texture1d_width: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH;
    "the largest width of a 2D texture" maximum_texture2d_width: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH;
    "the largest height of a 2D texture" maximum_texture2d_height: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT;
    "the largest width of a 3D texture" maximum_texture3d_width: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH;
    "the largest height of a 3D texture" maximum_texture3d_height: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT;
    "the largest depth of a 3D texture" maximum_texture3d_depth: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH;
    "the largest width of a layered 2D texture" maximum_texture2d_layered_width: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_WIDTH;
    "the largest height of a layered 2D texture" maximum_texture2d_layered_height: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_HEIGHT;
    "the largest number of layers of a layered 2D texture" maximum_texture2d_layered_layers: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS;
    "the alignment of surface memory in bytes" surface_alignment: u32 = CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT;
    "true if kernels of one context can run at once" concurrent_kernels: bool = CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS;
    "true if error correction of memory is enabled" ecc_enabled: bool = CU_DEVICE_ATTRIBUTE_ECC_ENABLED;
    "the number of the PCI bus" pci_bus_id: u32 = CU_DEVICE_ATTRIBUTE_PCI_BUS_ID;
    "the number of the device on the PCI bus" pci_device_id: u32 = CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID;
    "true if the device uses the TCC driver of Windows" tcc_driver: bool = CU_DEVICE_ATTRIBUTE_TCC_DRIVER;
    "the clock rate of memory in kHz" memory_clock_rate: u32 = CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE;
    "the width of the memory bus in bits" global_memory_bus_width: u32 = CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH;
    "the size of the L2 cache in bytes" l2_cache_size: u32 = CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE;
    "the number of threads that a multiprocessor can run at once" max_threads_per_multiprocessor: u32 = CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR;
    "the number of copies that can run at once with kernels" async_engine_count: u32 = CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT;
    "true if devices and host share one address space" unified_addressing: bool = CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING;
    "the largest width of a layered 1D texture" maximum_texture1d_layered_width: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_WIDTH;
    "the largest number of layers of a layered 1D texture" maximum_texture1d_layered_layers: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_LAYERS;
    "the largest width of a 2D texture for gather operations" maximum_texture2d_gather_width: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_WIDTH;
    "the largest height of a 2D texture for gather operations" maximum_texture2d_gather_height: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_HEIGHT;
    "the alternative largest width of a 3D texture; 0 if there is none" maximum_texture3d_width_alternate: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE;
    "the alternative largest height of a 3D texture; 0 if there is none" maximum_texture3d_height_alternate: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE;
    "the alternative largest depth of a 3D texture; 0 if there is none" maximum_texture3d_depth_alternate: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE;
    "the number of the PCI domain" pci_domain_id: u32 = CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID;
    "the alignment of the pitch of 2D textures in linear memory, in bytes" texture_pitch_alignment: u32 = CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT;
    "the largest width of a cubemap texture" maximum_texturecubemap_width: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_WIDTH;
    "the largest width of a layered cubemap texture" maximum_texturecubemap_layered_width: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH;
    "the largest number of layers of a layered cubemap texture" maximum_texturecubemap_layered_layers: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS;
    "the largest width of a 1D surface" maximum_surface1d_width: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_WIDTH;
    "the largest width of a 2D surface" maximum_surface2d_width: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_WIDTH;
    "the largest height of a 2D surface" maximum_surface2d_height: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_HEIGHT;
    "the largest width of a 3D surface" maximum_surface3d_width: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_WIDTH;
    "the largest height of a 3D surface" maximum_surface3d_height: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_HEIGHT;
    "the largest depth of a 3D surface" maximum_surface3d_depth: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_DEPTH;
    "the largest width of a layered 1D surface" maximum_surface1d_layered_width: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_WIDTH;
    "the largest number of layers of a layered 1D surface" maximum_surface1d_layered_layers: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_LAYERS;
    "the largest width of a layered 2D surface" maximum_surface2d_layered_width: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_WIDTH;
    "the largest height of a layered 2D surface" maximum_surface2d_layered_height: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_HEIGHT;
    "the largest number of layers of a layered 2D surface" maximum_surface2d_layered_layers: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_LAYERS;
    "the largest width of a cubemap surface" maximum_surfacecubemap_width: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_WIDTH;
    "the largest width of a layered cubemap surface" maximum_surfacecubemap_layered_width: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH;
    "the largest number of layers of a layered cubemap surface" maximum_surfacecubemap_layered_layers: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS;
    "the largest width of a 2D texture in linear memory" maximum_texture2d_linear_width: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH;
    "the largest height of a 2D texture in linear memory" maximum_texture2d_linear_height: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT;
    "the largest pitch of a 2D texture in linear memory, in bytes" maximum_texture2d_linear_pitch: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH;
    "the largest width of a mipmapped 2D texture" maximum_texture2d_mipmapped_width: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH;
    "the largest height of a mipmapped 2D texture" maximum_texture2d_mipmapped_height: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT;
    "the major compute capability: 9 for `sm_90`" compute_capability_major: u32 = CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR;
    "the minor compute capability: 0 for `sm_90`" compute_capability_minor: u32 = CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR;
    "the largest width of a mipmapped 1D texture" maximum_texture1d_mipmapped_width: u32 = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH;
    "true if streams have priorities" stream_priorities_supported: bool = CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED;
    "true if the L1 cache caches global memory" global_l1_cache_supported: bool = CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED;
    "true if the L1 cache caches local memory" local_l1_cache_supported: bool = CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED;
    "the shared memory of a multiprocessor in bytes" max_shared_memory_per_multiprocessor: u32 = CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR;
    "the number of 32-bit registers of a multiprocessor" max_registers_per_multiprocessor: u32 = CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR;
    "true if managed memory can be allocated" managed_memory: bool = CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY;
    "true if the device is on a board with several GPUs" multi_gpu_board: bool = CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD;
    "a number that the devices of one board share" multi_gpu_board_group_id: u32 = CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD_GROUP_ID;
    "true if atomic operations between the device and the host are native" host_native_atomic_supported: bool = CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED;
    "the ratio of single-precision to double-precision speed" single_to_double_precision_perf_ratio: u32 = CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO;
    "true if kernels can access pageable host memory that was not registered" pageable_memory_access: bool = CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS;
    "true if the host and the device can access managed memory at once" concurrent_managed_access: bool = CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS;
    "true if kernels can be preempted" compute_preemption_supported: bool = CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED;
    "true if kernels can access registered host memory at its host address" can_use_host_pointer_for_registered_mem: bool = CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM;
    "true if [cooperative launches](crate::Function::launch_cooperative) are supported" cooperative_launch: bool = CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH;
    "the shared memory that a block can have after [opting in](crate::Function::set_max_dynamic_shared_bytes), in bytes" max_shared_memory_per_block_optin: u32 = CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN;
    "true if streams can flush writes of other devices" can_flush_remote_writes: bool = CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES;
    "true if host memory can be registered" host_register_supported: bool = CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED;
    "true if the device accesses pageable memory through the host's page tables" pageable_memory_access_uses_host_page_tables: bool = CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES;
    "true if the host accesses managed memory on the device without migration" direct_managed_mem_access_from_host: bool = CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST;
    "true if physical memory can be mapped into reserved addresses" virtual_memory_management_supported: bool = CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED;
    "true if memory can be exported as a file descriptor" handle_type_posix_file_descriptor_supported: bool = CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED;
    "true if memory can be exported as a Win32 NT handle" handle_type_win32_handle_supported: bool = CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_WIN32_HANDLE_SUPPORTED;
    "true if memory can be exported as a Win32 KMT handle" handle_type_win32_kmt_handle_supported: bool = CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_WIN32_KMT_HANDLE_SUPPORTED;
    "the number of blocks that a multiprocessor can run at once" max_blocks_per_multiprocessor: u32 = CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR;
    "true if memory can be compressed" generic_compression_supported: bool = CU_DEVICE_ATTRIBUTE_GENERIC_COMPRESSION_SUPPORTED;
    "the part of the L2 cache that can be reserved for persisting accesses, in bytes" max_persisting_l2_cache_size: u32 = CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE;
    "the largest size of an [access policy window](crate::AccessPolicyWindow) in bytes" max_access_policy_window_size: u32 = CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE;
    "true if mapped physical memory can be used for GPUDirect RDMA" gpu_direct_rdma_with_cuda_vmm_supported: bool = CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED;
    "the shared memory of each block that the driver uses, in bytes" reserved_shared_memory_per_block: u32 = CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK;
    "true if sparse arrays are supported" sparse_cuda_array_supported: bool = CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED;
    "true if host memory can be registered as read-only" read_only_host_register_supported: bool = CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED;
    "true if external timeline semaphores are supported" timeline_semaphore_interop_supported: bool = CU_DEVICE_ATTRIBUTE_TIMELINE_SEMAPHORE_INTEROP_SUPPORTED;
    "true if memory pools are supported" memory_pools_supported: bool = CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED;
    "true if GPUDirect RDMA is supported" gpu_direct_rdma_supported: bool = CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED;
    "the supported ways to flush GPUDirect RDMA writes" gpu_direct_rdma_flush_writes_options: CUflushGPUDirectRDMAWritesOptions = CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS;
    "the observers that see GPUDirect RDMA writes in order without a flush" gpu_direct_rdma_writes_ordering: CUGPUDirectRDMAWritesOrdering = CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING;
    "the kinds of handles that a memory pool can be exported as" mempool_supported_handle_types: CUmemAllocationHandleType = CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES;
    "true if launches can have [clusters](crate::LaunchAttribute::cluster)" cluster_launch: bool = CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH;
    "true if arrays can be created without memory" deferred_mapping_cuda_array_supported: bool = CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED;
    "true if streams can wait for and write 64-bit values" can_use_64_bit_stream_mem_ops: bool = CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS;
    "true if streams can wait with `CU_STREAM_WAIT_VALUE_NOR`" can_use_stream_wait_value_nor: bool = CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR;
    "true if memory can be exported as a dma-buf" dma_buf_supported: bool = CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED;
    "true if events can be shared between processes" ipc_event_supported: bool = CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED;
    "the number of memory synchronisation domains" mem_sync_domain_count: u32 = CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT;
    "true if tensor maps are supported" tensor_map_access_supported: bool = CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED;
    "true if memory can be exported as a fabric handle" handle_type_fabric_supported: bool = CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED;
    "true if pointers to functions are the same on all devices" unified_function_pointers: bool = CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS;
    "the kind of NUMA configuration" numa_config: CUdeviceNumaConfig = CU_DEVICE_ATTRIBUTE_NUMA_CONFIG;
    "the NUMA node of the device's memory" numa_id: i32 = CU_DEVICE_ATTRIBUTE_NUMA_ID;
    "true if multicast objects are supported" multicast_supported: bool = CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED;
    "true if contexts run under the Multi-Process Service" mps_enabled: bool = CU_DEVICE_ATTRIBUTE_MPS_ENABLED;
    "the nearest NUMA node of the host; -1 if there is none" host_numa_id: i32 = CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID;
    "true if contexts can share a D3D12 command queue" d3d12_cig_supported: bool = CU_DEVICE_ATTRIBUTE_D3D12_CIG_SUPPORTED;
    "the algorithms of hardware decompression, as bits" mem_decompress_algorithm_mask: u32 = CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK;
    "the largest size of a hardware decompression in bytes" mem_decompress_maximum_length: u32 = CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_MAXIMUM_LENGTH;
    "true if contexts can share a Vulkan queue" vulkan_cig_supported: bool = CU_DEVICE_ATTRIBUTE_VULKAN_CIG_SUPPORTED;
    "the PCI device and vendor number: the upper and the lower 16 bits" gpu_pci_device_id: u32 = CU_DEVICE_ATTRIBUTE_GPU_PCI_DEVICE_ID;
    "the PCI subsystem and its vendor number: the upper and the lower 16 bits" gpu_pci_subsystem_id: u32 = CU_DEVICE_ATTRIBUTE_GPU_PCI_SUBSYSTEM_ID;
    "true if physical memory can be on a NUMA node of the host" host_numa_virtual_memory_management_supported: bool = CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED;
    "true if memory pools can be on a NUMA node of the host" host_numa_memory_pools_supported: bool = CU_DEVICE_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS_SUPPORTED;
    "true if memory on a NUMA node of the host can be shared between machines" host_numa_multinode_ipc_supported: bool = CU_DEVICE_ATTRIBUTE_HOST_NUMA_MULTINODE_IPC_SUPPORTED;
    "true if memory pools can be on the host" host_memory_pools_supported: bool = CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED;
    "true if physical memory can be on the host" host_virtual_memory_management_supported: bool = CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED;
    "true if page-locked host memory can be exported as a dma-buf" host_alloc_dma_buf_supported: bool = CU_DEVICE_ATTRIBUTE_HOST_ALLOC_DMA_BUF_SUPPORTED;
    "true if only some atomic operations between the device and the host are native" only_partial_host_native_atomic_supported: bool = CU_DEVICE_ATTRIBUTE_ONLY_PARTIAL_HOST_NATIVE_ATOMIC_SUPPORTED;
    "true if streams can do atomic reductions" atomic_reduction_supported: bool = CU_DEVICE_ATTRIBUTE_ATOMIC_REDUCTION_SUPPORTED;
    "the number of locality domains" locality_domain_count: u32 = CU_DEVICE_ATTRIBUTE_LOCALITY_DOMAIN_COUNT;
    "the largest shared memory of a block with an oversized [mode](crate::LaunchAttribute::shared_memory_mode), in bytes" max_oversized_shared_memory_per_block: u32 = CU_DEVICE_ATTRIBUTE_MAX_OVERSIZED_SHARED_MEMORY_PER_BLOCK;
    "true if streams can share a D3D12 command queue" d3d12_cig_streams_supported: bool = CU_DEVICE_ATTRIBUTE_D3D12_CIG_STREAMS_SUPPORTED;
    "true if an exported dma-buf can be mapped" dma_buf_mmap_supported: bool = CU_DEVICE_ATTRIBUTE_DMA_BUF_MMAP_SUPPORTED;
    "true if unicast logical endpoints are supported" logical_endpoint_unicast_supported: bool = CU_DEVICE_ATTRIBUTE_LOGICAL_ENDPOINT_UNICAST_SUPPORTED;
    "true if multicast logical endpoints are supported" logical_endpoint_multicast_supported: bool = CU_DEVICE_ATTRIBUTE_LOGICAL_ENDPOINT_MULTICAST_SUPPORTED;
    "true if logical endpoints support counted operations" logical_endpoint_counted_ops_supported: bool = CU_DEVICE_ATTRIBUTE_LOGICAL_ENDPOINT_COUNTED_OPS_SUPPORTED;
    "true if the owner of a unicast logical endpoint can access it" logical_endpoint_unicast_access_on_owner_device_supported: bool = CU_DEVICE_ATTRIBUTE_LOGICAL_ENDPOINT_UNICAST_ACCESS_ON_OWNER_DEVICE_SUPPORTED;
    "the number of multiprocessors in a locality domain" locality_domain_multiprocessor_count: u32 = CU_DEVICE_ATTRIBUTE_LOCALITY_DOMAIN_MULTIPROCESSOR_COUNT;
    "the kinds of handles that a logical endpoint can be exported as, as bits" logical_endpoint_supported_handle_types: u32 = CU_DEVICE_ATTRIBUTE_LOGICAL_ENDPOINT_SUPPORTED_HANDLE_TYPES;
    "true if streams can share a Vulkan queue" vulkan_cig_streams_supported: bool = CU_DEVICE_ATTRIBUTE_VULKAN_CIG_STREAMS_SUPPORTED;
    "the smallest size of a large tensor of a tensor map" tensor_map_large_tensor_min_size: u32 = CU_DEVICE_ATTRIBUTE_TENSOR_MAP_LARGE_TENSOR_MIN_SIZE;
    "true if memory in a locality domain can be used for GPUDirect RDMA" gpu_direct_rdma_with_localized_memory_supported: bool = CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_LOCALIZED_MEMORY_SUPPORTED;
}
