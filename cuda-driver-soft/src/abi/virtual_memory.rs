//! Exports of virtual memory management: reserve addresses, create and share memory, map it, and set access to it.

use std::ffi::{c_int, c_ulonglong, c_void};

use cuda_driver_sys::{
    CU_MEM_CREATE_USAGE_TILE_POOL, CUdeviceptr, CUmemAccessDesc, CUmemAllocationGranularity_flags,
    CUmemAllocationHandleType, CUmemAllocationProp, CUmemAllocationType, CUmemGenericAllocationHandle, CUmemLocation,
    CUmemLocationType,
};

use super::exports;
use super::managed::parts;
use crate::call::lookup;
use crate::object::device;
use crate::object::managed::{CPU, Location};
use crate::object::virtual_memory::{self as vmm, GRANULE};
use crate::state::error::{Error, Result};
use crate::state::gate;

/// Returns an error unless the flags are 0.
fn no_flags(flags: c_ulonglong) -> Result<()> {
    if flags == 0 {
        Ok(())
    } else {
        Err(Error::CUDA_ERROR_INVALID_VALUE)
    }
}

/// Returns the location of new memory. As on driver 580, memory of the host is on a NUMA node, and can be exported only
/// if the program has named the node.
fn location_of(location: &CUmemLocation, is_shareable: bool) -> Result<Location> {
    match parts(location) {
        (CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, id) => Ok(Location::Device(device::get(id)?.ordinal)),
        (CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST, _) if !is_shareable => Ok(Location::HostNuma(0)),
        (CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST_NUMA, 0) => Ok(Location::HostNuma(0)),
        _ => Err(Error::CUDA_ERROR_INVALID_VALUE),
    }
}

/// Returns the device of a location, or [`CPU`].
fn ordinal(location: &CUmemLocation) -> Result<i32> {
    match parts(location) {
        (CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, id) => Ok(device::get(id)?.ordinal),
        (CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST | CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST_NUMA, _) => {
            Ok(CPU)
        }
        _ => Err(Error::CUDA_ERROR_INVALID_VALUE),
    }
}

/// Returns true if memory must be exportable, and an error for a type of handle that cannot be used for that.
fn is_shareable(types: CUmemAllocationHandleType) -> Result<bool> {
    match types {
        CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE => Ok(false),
        CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR => {
            if cfg!(target_os = "linux") {
                Ok(true)
            } else {
                Err(Error::CUDA_ERROR_NOT_SUPPORTED)
            }
        }
        // Driver 580 returns `CUDA_ERROR_NOT_PERMITTED` if no fabric channel is open.
        CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_FABRIC => Err(Error::CUDA_ERROR_NOT_PERMITTED),
        _ => Err(Error::CUDA_ERROR_INVALID_VALUE),
    }
}

exports! {
    fn cuMemGetAllocationGranularity [c] (
        out: *mut usize,
        props: *const CUmemAllocationProp,
        option: CUmemAllocationGranularity_flags,
    ) {
        // Driver 580 returns the same value for all properties, even invalid ones.
        let out = c.out(out)?;
        c.read(props)?;
        if option.0 > CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_RECOMMENDED.0 {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        out.set(GRANULE as usize);
        Ok(())
    }

    fn cuMemAddressReserve [c] (
        out: *mut CUdeviceptr,
        bytes: usize,
        align: usize,
        requested: CUdeviceptr,
        flags: c_ulonglong,
    ) {
        let out = c.out(out)?;
        no_flags(flags)?;
        gate::healthy()?;
        out.set(vmm::reserve(bytes as u64, align as u64, requested)?);
        Ok(())
    }

    healthy fn cuMemAddressFree [_c] (base: CUdeviceptr, bytes: usize) {
        vmm::free_addresses(base, bytes as u64)
    }

    healthy fn cuMemCreate [c] (
        out: *mut CUmemGenericAllocationHandle,
        bytes: usize,
        props: *const CUmemAllocationProp,
        flags: c_ulonglong,
    ) {
        let (out, props) = (c.out(out)?, c.read(props)?);
        no_flags(flags)?;
        if props.type_ != CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        let shareable = is_shareable(props.requestedHandleTypes)?;
        let location = location_of(&props.location, shareable)?;
        let is_tile_pool = u32::from(props.allocFlags.usage) & CU_MEM_CREATE_USAGE_TILE_POOL != 0;
        if is_tile_pool && shareable {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        out.set(vmm::create(location, bytes as u64, shareable, is_tile_pool)? as u64);
        Ok(())
    }

    healthy fn cuMemRelease [_c] (handle: CUmemGenericAllocationHandle) {
        vmm::release(handle as usize)
    }

    healthy fn cuMemMap [_c] (
        base: CUdeviceptr,
        bytes: usize,
        offset: usize,
        handle: CUmemGenericAllocationHandle,
        flags: c_ulonglong,
    ) {
        no_flags(flags)?;
        vmm::map_memory(base, bytes as u64, offset as u64, handle as usize)
    }

    healthy fn cuMemUnmap [_c] (base: CUdeviceptr, bytes: usize) {
        vmm::unmap(base, bytes as u64)
    }

    healthy fn cuMemSetAccess [c] (
        base: CUdeviceptr,
        bytes: usize,
        requests: *const CUmemAccessDesc,
        count: usize,
    ) {
        if count == 0 {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        let requests = c
            .items(requests, count)?
            .map(|request| match request.flags.0 {
                // The known flags, from `CU_MEM_ACCESS_FLAGS_PROT_NONE` to `…_READWRITE`. Driver 580 returns
                // `CUDA_ERROR_INVALID_VALUE` for an unknown device here.
                flags @ (0 | 1 | 3) => match ordinal(&request.location) {
                    Err(Error::CUDA_ERROR_INVALID_DEVICE) => Err(Error::CUDA_ERROR_INVALID_VALUE),
                    found => Ok((found?, flags)),
                },
                _ => Err(Error::CUDA_ERROR_INVALID_VALUE),
            });
        vmm::set_access(base, bytes as u64, &requests.collect::<Result<Vec<_>>>()?)
    }

    healthy fn cuMemGetAccess [c] (
        out: *mut c_ulonglong,
        location: *const CUmemLocation,
        address: CUdeviceptr,
    ) {
        let (out, location) = (c.out(out)?, c.read(location)?);
        // For `CU_MEM_LOCATION_TYPE_HOST`, driver 580 returns the access of the device with the location's number. It
        // writes 0 if no memory is mapped at the address.
        let accessor = match parts(&location) {
            (CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST_NUMA, _) => CPU,
            (CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE | CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST, id) => {
                device::get(id)?.ordinal
            }
            _ => return Err(Error::CUDA_ERROR_INVALID_DEVICE),
        };
        let found = vmm::access(address, accessor);
        out.set(found.unwrap_or(0).into());
        found.map(|_| ())
    }

    fn cuMemRetainAllocationHandle [c] (
        out: *mut CUmemGenericAllocationHandle,
        address: *mut c_void,
    ) {
        let out = c.out(out)?;
        gate::healthy()?;
        out.set(vmm::retain(address as u64)? as u64);
        Ok(())
    }

    fn cuMemGetAllocationPropertiesFromHandle [c] (
        out: *mut CUmemAllocationProp,
        handle: CUmemGenericAllocationHandle,
    ) {
        let out = c.out(out)?;
        let memory = lookup::generic_memory(handle as usize)?;
        let mut props = CUmemAllocationProp {
            type_: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
            ..CUmemAllocationProp::default()
        };
        props.location.type_ = CUmemLocationType(memory.location.kind().cast_unsigned());
        props.location.anonymous1.id = memory.location.id();
        if memory.is_shareable {
            props.requestedHandleTypes =
                CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        }
        out.set(props);
        Ok(())
    }

    healthy fn cuMemExportToShareableHandle [c] (
        out: *mut c_void,
        handle: CUmemGenericAllocationHandle,
        kind: CUmemAllocationHandleType,
        flags: c_ulonglong,
    ) {
        let out = c.out(out.cast::<c_int>())?;
        no_flags(flags)?;
        if kind != CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        out.set(vmm::export(handle as usize)?);
        Ok(())
    }

    healthy fn cuMemImportFromShareableHandle [c] (
        out: *mut CUmemGenericAllocationHandle,
        descriptor: *mut c_void,
        kind: CUmemAllocationHandleType,
    ) {
        let out = c.out(out)?;
        // 0 is `CU_MEM_HANDLE_TYPE_NONE`, 1 is `CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR`.
        match kind.0 {
            0 => return Err(Error::CUDA_ERROR_INVALID_VALUE),
            1 => {}
            _ => return Err(Error::CUDA_ERROR_NOT_SUPPORTED),
        }
        // Descriptor 0 arrives as a null pointer, which driver 580 treats as a missing handle.
        if descriptor.is_null() {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        let descriptor =
            c_int::try_from(descriptor as isize).map_err(|_| Error::CUDA_ERROR_INVALID_VALUE)?;
        out.set(vmm::import(descriptor)? as u64);
        Ok(())
    }
}
