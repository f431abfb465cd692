//! Virtual memory management.

use std::ffi::{c_int, c_ulonglong, c_void};

use cuda_driver_sys::{
    CUdeviceptr, CUmemAccessDesc, CUmemAllocationGranularity_flags, CUmemAllocationHandleType,
    CUmemAllocationProp, CUmemAllocationType, CUmemGenericAllocationHandle, CUmemLocation,
    CUmemLocationType,
};

use super::exports;
use crate::driver::device;
use crate::driver::error::{Error, Result};
use crate::driver::process::{driver, driver_without_fault};
use crate::driver::virtual_memory::{self as vmm, GRANULE};

/// A flag word that there are no flags for.
fn no_flags(flags: c_ulonglong) -> Result<()> {
    if flags == 0 {
        Ok(())
    } else {
        Err(Error::INVALID_VALUE)
    }
}

/// The device of a location; memory of the host's is not supported.
fn ordinal(location: &CUmemLocation) -> Result<i32> {
    // SAFETY: all members of the union are integers, of which any bits are a value.
    let id = unsafe { location.anonymous1.id };
    match location.type_ {
        CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE => Ok(device::get(id)?.ordinal),
        CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST
        | CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST_NUMA => Err(Error::NOT_SUPPORTED),
        _ => Err(Error::INVALID_VALUE),
    }
}

/// Whether memory is to be exportable.
fn is_shareable(types: CUmemAllocationHandleType) -> Result<bool> {
    match types {
        CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE => Ok(false),
        CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR => {
            if cfg!(target_os = "linux") {
                Ok(true)
            } else {
                Err(Error::NOT_SUPPORTED)
            }
        }
        // As recorded, where no channel of the fabric is open.
        CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_FABRIC => Err(Error::NOT_PERMITTED),
        _ => Err(Error::INVALID_VALUE),
    }
}

exports! {
    fn cuMemGetAllocationGranularity [c] (
        out: *mut usize, props: *const CUmemAllocationProp, option: CUmemAllocationGranularity_flags,
    ) {
        driver()?;
        // As recorded: the same for memory of any kind, even of none.
        let out = c.out(out)?;
        c.read(props)?;
        if option.0 > CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_RECOMMENDED.0 {
            return Err(Error::INVALID_VALUE);
        }
        out.set(GRANULE as usize);
        Ok(())
    }

    fn cuMemAddressReserve [c] (out: *mut CUdeviceptr, bytes: usize, align: usize, wish: CUdeviceptr, flags: c_ulonglong) {
        let out = c.out(out)?;
        no_flags(flags)?;
        out.set(vmm::reserve(bytes as u64, align as u64, wish)?);
        Ok(())
    }

    fn cuMemAddressFree [_c] (base: CUdeviceptr, bytes: usize) {
        vmm::free_addresses(base, bytes as u64)
    }

    fn cuMemCreate [c] (out: *mut CUmemGenericAllocationHandle, bytes: usize, props: *const CUmemAllocationProp, flags: c_ulonglong) {
        driver_without_fault()?;
        let (out, props) = (c.out(out)?, c.read(props)?);
        no_flags(flags)?;
        if props.type_ != CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED {
            return Err(Error::INVALID_VALUE);
        }
        let shareable = is_shareable(props.requestedHandleTypes)?;
        out.set(vmm::create(ordinal(&props.location)?, bytes as u64, shareable)? as u64);
        Ok(())
    }

    fn cuMemRelease [_c] (handle: CUmemGenericAllocationHandle) {
        vmm::release(handle as usize)
    }

    fn cuMemMap [_c] (base: CUdeviceptr, bytes: usize, offset: usize, handle: CUmemGenericAllocationHandle, flags: c_ulonglong) {
        driver_without_fault()?;
        no_flags(flags)?;
        vmm::map_memory(base, bytes as u64, offset as u64, handle as usize)
    }

    fn cuMemUnmap [_c] (base: CUdeviceptr, bytes: usize) {
        vmm::unmap(base, bytes as u64)
    }

    fn cuMemSetAccess [c] (base: CUdeviceptr, bytes: usize, wishes: *const CUmemAccessDesc, count: usize) {
        driver_without_fault()?;
        if count == 0 {
            return Err(Error::INVALID_VALUE);
        }
        let wishes = c.array(wishes, count)?.into_iter().map(|wish| match wish.flags.0 {
            // As recorded: a device that is not there is an invalid value here.
            flags @ (0 | 1 | 3) => match ordinal(&wish.location) {
                Err(Error::INVALID_DEVICE) => Err(Error::INVALID_VALUE),
                found => Ok((found?, flags)),
            },
            _ => Err(Error::INVALID_VALUE),
        });
        vmm::set_access(base, bytes as u64, &wishes.collect::<Result<Vec<_>>>()?)
    }

    fn cuMemGetAccess [c] (out: *mut c_ulonglong, location: *const CUmemLocation, address: CUdeviceptr) {
        driver_without_fault()?;
        let (out, location) = (c.out(out)?, c.read(location)?);
        // SAFETY: all members of the union are integers, of which any bits are a value.
        let id = unsafe { location.anonymous1.id };
        // As recorded: the kind of location does not matter, and there is a value where there is an error.
        let found = vmm::access(address, device::get(id)?.ordinal);
        out.set(found.unwrap_or(0).into());
        found.map(|_| ())
    }

    fn cuMemRetainAllocationHandle [c] (out: *mut CUmemGenericAllocationHandle, address: *mut c_void) {
        let out = c.out(out)?;
        out.set(vmm::retain(address as u64)? as u64);
        Ok(())
    }

    fn cuMemGetAllocationPropertiesFromHandle [c] (out: *mut CUmemAllocationProp, handle: CUmemGenericAllocationHandle) {
        let out = c.out(out)?;
        let memory = vmm::get(handle as usize)?;
        let mut props = CUmemAllocationProp {
            type_: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
            ..CUmemAllocationProp::default()
        };
        props.location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
        props.location.anonymous1.id = memory.ordinal;
        if memory.is_shareable {
            props.requestedHandleTypes = CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        }
        out.set(props);
        Ok(())
    }

    fn cuMemExportToShareableHandle [c] (
        out: *mut c_void, handle: CUmemGenericAllocationHandle, kind: CUmemAllocationHandleType, flags: c_ulonglong,
    ) {
        driver_without_fault()?;
        let out = c.out(out.cast::<c_int>())?;
        no_flags(flags)?;
        if kind != CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR {
            return Err(Error::INVALID_VALUE);
        }
        out.set(vmm::export(handle as usize)?);
        Ok(())
    }

    fn cuMemImportFromShareableHandle [c] (out: *mut CUmemGenericAllocationHandle, descriptor: *mut c_void, kind: CUmemAllocationHandleType) {
        driver_without_fault()?;
        let out = c.out(out)?;
        match kind.0 {
            0 => return Err(Error::INVALID_VALUE),
            1 => {}
            _ => return Err(Error::NOT_SUPPORTED),
        }
        let descriptor = c_int::try_from(descriptor as isize).map_err(|_| Error::INVALID_VALUE)?;
        out.set(vmm::import(descriptor)? as u64);
        Ok(())
    }
}
