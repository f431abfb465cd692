//! Mappings of memory to arrays with `cuMemMapArrayAsync`, for the tests of sparse and of deferred arrays.

use cuda_driver::sys::*;

use crate::{call, ok};

/// Bytes per tile of an array, and the alignment of its memory.
pub(super) const TILE: usize = 64 << 10;

/// Creates memory on the device, with flags like `CU_MEM_CREATE_USAGE_TILE_POOL`.
pub(super) fn memory(bytes: usize, usage: u32) -> CUmemGenericAllocationHandle {
    let mut props = CUmemAllocationProp {
        type_: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        ..Default::default()
    };
    props.location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
    props.allocFlags.usage = u16::try_from(usage).expect("16 bits");
    let mut handle = 0;
    ok!(cuMemCreate(&raw mut handle, bytes, &raw const props, 0));
    handle
}

/// Returns the operation that maps memory, from an offset on, to an array, or unmaps the array if `memory` is 0.
pub(super) fn mapping(array: CUarray, memory: CUmemGenericAllocationHandle, at: usize) -> CUarrayMapInfo {
    let mut info = CUarrayMapInfo {
        resourceType: CUresourcetype::CU_RESOURCE_TYPE_ARRAY,
        memOperationType: if memory == 0 {
            CUmemOperationType::CU_MEM_OPERATION_TYPE_UNMAP
        } else {
            CUmemOperationType::CU_MEM_OPERATION_TYPE_MAP
        },
        offset: at as u64,
        deviceBitMask: 1,
        ..Default::default()
    };
    info.resource.array = array;
    info.memHandle.memHandle = memory;
    info
}

/// Copies a square of texels of 4 bytes to an array, or from it, and returns the results of the copy and of waiting.
pub(super) fn copy_square(array: CUarray, edge: usize, texels: &mut [u32], write: bool) -> [u32; 2] {
    let mut copy = CUDA_MEMCPY2D {
        WidthInBytes: edge * 4,
        Height: edge,
        ..Default::default()
    };
    if write {
        copy.srcMemoryType = CUmemorytype::CU_MEMORYTYPE_HOST;
        copy.srcHost = texels.as_ptr().cast();
        copy.dstMemoryType = CUmemorytype::CU_MEMORYTYPE_ARRAY;
        copy.dstArray = array;
    } else {
        copy.dstMemoryType = CUmemorytype::CU_MEMORYTYPE_HOST;
        copy.dstHost = texels.as_mut_ptr().cast();
        copy.srcMemoryType = CUmemorytype::CU_MEMORYTYPE_ARRAY;
        copy.srcArray = array;
    }
    [call!(cuMemcpy2D(&raw const copy)).0, call!(cuCtxSynchronize()).0]
}
