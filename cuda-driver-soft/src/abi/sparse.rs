//! Exports of sparse arrays and arrays with deferred mapping: query their properties and the memory that they need, and
//! map memory to them.

use std::ffi::c_uint;
use std::sync::Arc;

use cuda_driver_sys::{
    CU_ARRAY_SPARSE_PROPERTIES_SINGLE_MIPTAIL, CUDA_ARRAY_MEMORY_REQUIREMENTS, CUDA_ARRAY_SPARSE_PROPERTIES, CUarray,
    CUarrayMapInfo, CUarraySparseSubresourceType, CUdevice, CUmemHandleType, CUmemOperationType, CUmipmappedArray,
    CUresourcetype, CUstream,
};

use super::exports;
use crate::call::lookup::current_context;
use crate::call::{stream, submit};
use crate::object::sparse::{MapChanges, MapTarget, TILE, Unbacked};
use crate::object::{array, device};
use crate::state::error::{Error, Result};

/// Returns the memory that an array with deferred mapping needs, which is the same on each device. For other arrays,
/// returns the error of driver 580: `CUDA_ERROR_INVALID_DEVICE` if the device is unknown, else
/// `CUDA_ERROR_INVALID_VALUE`.
fn requirements(array: Result<Arc<Unbacked>>, device: CUdevice) -> Result<CUDA_ARRAY_MEMORY_REQUIREMENTS> {
    let needed = array.and_then(|array| array.needed()).map_err(|error| {
        let known = device::get(device);
        known.err().unwrap_or(error)
    })?;
    Ok(CUDA_ARRAY_MEMORY_REQUIREMENTS {
        size: needed as usize,
        alignment: TILE as usize,
        ..CUDA_ARRAY_MEMORY_REQUIREMENTS::default()
    })
}

fn properties(array: &Unbacked) -> Result<CUDA_ARRAY_SPARSE_PROPERTIES> {
    let found = array.properties()?;
    let mut out = CUDA_ARRAY_SPARSE_PROPERTIES {
        miptailFirstLevel: found.first_tail,
        miptailSize: found.tail_bytes,
        flags: if found.has_single_tail {
            CU_ARRAY_SPARSE_PROPERTIES_SINGLE_MIPTAIL
        } else {
            0
        },
        ..CUDA_ARRAY_SPARSE_PROPERTIES::default()
    };
    [out.tileExtent.width, out.tileExtent.height, out.tileExtent.depth] = found.tile;
    Ok(out)
}

/// Returns the array or mipmapped array of a mapping.
fn array_of(info: &CUarrayMapInfo) -> Result<Arc<Unbacked>> {
    // SAFETY: all members of the union are pointers, and the type says which one the caller has set.
    let handle = unsafe { info.resource.array } as usize;
    if handle == 0 {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    match info.resourceType {
        CUresourcetype::CU_RESOURCE_TYPE_ARRAY => array::get(handle)?.unbacked(),
        CUresourcetype::CU_RESOURCE_TYPE_MIPMAPPED_ARRAY => array::mipmap(handle)?.unbacked(),
        _ => Err(Error::CUDA_ERROR_INVALID_VALUE),
    }
}

/// Returns the part of the array that a mapping names.
fn target_of(info: &CUarrayMapInfo) -> Result<MapTarget> {
    // SAFETY: all members of the union are records of integers, which are valid for any bits.
    let (level, tail) = unsafe { (info.subresource.sparseLevel, info.subresource.miptail) };
    Ok(match info.subresourceType {
        CUarraySparseSubresourceType::CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL => MapTarget::Level {
            level: level.level,
            layer: level.layer,
            offset: [level.offsetX, level.offsetY, level.offsetZ],
            extent: [level.extentWidth, level.extentHeight, level.extentDepth],
        },
        CUarraySparseSubresourceType::CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL => MapTarget::Tail {
            layer: tail.layer,
            offset: tail.offset,
            size: tail.size,
        },
        _ => return Err(Error::CUDA_ERROR_INVALID_VALUE),
    })
}

/// Returns the changes that a mapping requests.
fn changes_of(info: &CUarrayMapInfo, device: CUdevice) -> Result<MapChanges> {
    let is_valid = info.memHandleType == CUmemHandleType::CU_MEM_HANDLE_TYPE_GENERIC
        && info.flags == 0
        && info.reserved == [0; 2]
        && 1_u32.checked_shl(device as u32) == Some(info.deviceBitMask);
    if !is_valid {
        host::log!(
            "cuMemMapArrayAsync: memHandleType must be CU_MEM_HANDLE_TYPE_GENERIC, flags and reserved must be 0, and \
             deviceBitMask must be 1 << {device}, for the stream's device"
        );
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    // SAFETY: the union has one member, a number.
    let handle = unsafe { info.memHandle.memHandle } as usize;
    let memory = match info.memOperationType {
        CUmemOperationType::CU_MEM_OPERATION_TYPE_MAP => Some((handle, info.offset)),
        CUmemOperationType::CU_MEM_OPERATION_TYPE_UNMAP => None,
        _ => return Err(Error::CUDA_ERROR_INVALID_VALUE),
    };
    array_of(info)?.map(target_of(info)?, memory)
}

exports! {
    fn cuArrayGetMemoryRequirements [c] (
        out: *mut CUDA_ARRAY_MEMORY_REQUIREMENTS,
        array: CUarray,
        device: CUdevice,
    ) {
        let out = c.out(out)?;
        current_context()?;
        let found = array::get(array as usize);
        out.set(requirements(found.and_then(|array| array.unbacked()), device)?);
        Ok(())
    }

    fn cuMipmappedArrayGetMemoryRequirements [c] (
        out: *mut CUDA_ARRAY_MEMORY_REQUIREMENTS,
        mipmap: CUmipmappedArray,
        device: CUdevice,
    ) {
        let out = c.out(out)?;
        current_context()?;
        let found = array::mipmap(mipmap as usize);
        out.set(requirements(found.and_then(|array| array.unbacked()), device)?);
        Ok(())
    }

    fn cuArrayGetSparseProperties [c] (out: *mut CUDA_ARRAY_SPARSE_PROPERTIES, array: CUarray) {
        current_context()?;
        let out = c.out(out)?;
        out.set(properties(&*array::get(array as usize)?.unbacked()?)?);
        Ok(())
    }

    fn cuMipmappedArrayGetSparseProperties [c] (
        out: *mut CUDA_ARRAY_SPARSE_PROPERTIES,
        mipmap: CUmipmappedArray,
    ) {
        current_context()?;
        let out = c.out(out)?;
        out.set(properties(&*array::mipmap(mipmap as usize)?.unbacked()?)?);
        Ok(())
    }

    fn cuMemMapArrayAsync | cuMemMapArrayAsync_ptsz [c, mode] (
        list: *mut CUarrayMapInfo,
        count: c_uint,
        hstream: CUstream,
    ) {
        let stream = stream::for_work(hstream as usize, mode)?;
        if count == 0 {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        let ordinal = stream.context.device.ordinal;
        let changes = c.items(list.cast_const(), count as usize)?.map(|info| changes_of(&info, ordinal));
        submit::map_arrays(changes.collect::<Result<Vec<_>>>()?, &stream);
        Ok(())
    }
}
