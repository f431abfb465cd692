//! Exports of stream-ordered allocation and memory pools. Also the allocation nodes of graphs.

use std::ffi::{c_int, c_ulonglong, c_void};

use cuda_driver_sys::{
    CUDA_MEM_ALLOC_NODE_PARAMS, CUdevice, CUdeviceptr, CUmemAccess_flags, CUmemAccessDesc, CUmemAllocationHandleType,
    CUmemAllocationType, CUmemLocation, CUmemLocationType, CUmemPool_attribute, CUmemPoolProps, CUmemPoolPtrExportData,
    CUmemoryPool, CUstream,
};

use super::args::Caller;
use super::exports;
use super::managed::parts;
use crate::call::ipc::export_pooled;
use crate::call::lookup::current_context;
use crate::call::{pool as call, stream};
use crate::object::graph_memory::GraphMemory;
use crate::object::managed::Location;
use crate::object::memory::Owner;
use crate::object::pool::{self, PoolAttributeValue, PoolHome};
use crate::object::stream::NullStream;
use crate::object::{context, device, ipc};
use crate::operation::GraphAllocation;
use crate::queue::capture;
use crate::state::error::{Error, Result};
use crate::state::gate;

fn alloc(
    c: Caller,
    out: *mut CUdeviceptr,
    bytes: usize,
    pool: Option<CUmemoryPool>,
    hstream: CUstream,
    mode: NullStream,
) -> Result<()> {
    let stream = stream::for_capture(hstream as usize, mode)?;
    let out = c.out(out)?;
    out.set(call::alloc(bytes as u64, pool.map(|p| p as usize), &stream)?);
    Ok(())
}

/// Returns the device of a location from which memory is accessed; `None` for the host.
fn accessor(location: &CUmemLocation) -> Result<Option<i32>> {
    match parts(location) {
        (CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, id) => Ok(Some(id)),
        (CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST | CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST_NUMA, _) => {
            Ok(None)
        }
        _ => Err(Error::CUDA_ERROR_INVALID_VALUE),
    }
}

/// Checks the location and the type of memory of a pool, and returns both. `current` is the result for the location
/// `CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT`.
fn home(location: &CUmemLocation, kind: CUmemAllocationType, current: Result<Option<Location>>) -> Result<PoolHome> {
    let (place, id) = parts(location);
    let here = place == CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
    // Driver 580 checks this location before the type of memory.
    let here = if here { Some(current?) } else { None };
    let is_managed = match kind {
        CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED => false,
        CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_MANAGED => true,
        _ => return Err(Error::CUDA_ERROR_INVALID_VALUE),
    };
    let location = match place {
        CUmemLocationType::CU_MEM_LOCATION_TYPE_INVALID if is_managed => None,
        _ if here.is_some() => here.flatten(),
        CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE
        | CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST
        | CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST_NUMA => Some(Location::of_type(place.0, id)?),
        // Driver 580 returns `CUDA_ERROR_NOT_SUPPORTED` for other locations of managed memory.
        _ if is_managed => return Err(Error::CUDA_ERROR_NOT_SUPPORTED),
        _ => return Err(Error::CUDA_ERROR_INVALID_VALUE),
    };
    Ok(PoolHome { location, is_managed })
}

/// Returns the location and the type of memory that name a default or current pool. Driver 580 returns
/// `CUDA_ERROR_NOT_SUPPORTED` for `CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT`.
fn home_of(location: &CUmemLocation, kind: CUmemAllocationType) -> Result<PoolHome> {
    home(location, kind, Err(Error::CUDA_ERROR_NOT_SUPPORTED))
}

/// Returns the location and the type of memory of a new pool. Driver 580 returns `CUDA_ERROR_INVALID_VALUE` for an
/// unknown device.
fn new_home(props: &CUmemPoolProps) -> Result<PoolHome> {
    let current = match props.allocType {
        CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_MANAGED => Ok(Some(Location::HostNuma(0))),
        _ => Err(Error::CUDA_ERROR_INVALID_VALUE),
    };
    let home = home(&props.location, props.allocType, current);
    home.map_err(|error| match error {
        Error::CUDA_ERROR_INVALID_DEVICE => Error::CUDA_ERROR_INVALID_VALUE,
        error => error,
    })
}

/// Returns true if a pool's memory must be exportable, and an error if memory of this kind cannot be.
fn is_shareable(types: CUmemAllocationHandleType, home: PoolHome) -> Result<bool> {
    match types {
        CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE => Ok(false),
        CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR => {
            let on_device = matches!(home.location, Some(Location::Device(_)));
            if on_device && !home.is_managed && cfg!(target_os = "linux") {
                return Ok(true);
            }
            host::log!(
                "only pools of pinned device memory can be exported, and only on Linux: set handleTypes to \
                 CU_MEM_HANDLE_TYPE_NONE"
            );
            Err(Error::CUDA_ERROR_NOT_SUPPORTED)
        }
        CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_FABRIC => Err(Error::CUDA_ERROR_NOT_PERMITTED),
        _ => Err(Error::CUDA_ERROR_INVALID_VALUE),
    }
}

/// Checks that a pool is exported or imported as a file descriptor, the only supported type of handle, and that there
/// are no flags.
fn check_handle(kind: CUmemAllocationHandleType, flags: c_ulonglong) -> Result<()> {
    let descriptor = CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    if kind == descriptor && flags == 0 {
        Ok(())
    } else {
        Err(Error::CUDA_ERROR_INVALID_VALUE)
    }
}

/// Makes the operation of an allocation node.
pub(super) fn alloc_node(
    c: Caller,
    props: &CUmemPoolProps,
    access: *const CUmemAccessDesc,
    count: usize,
    bytes: usize,
) -> Result<GraphAllocation> {
    gate::healthy()?;
    let home = home_of(&props.location, props.allocType)?;
    let (Some(Location::Device(ordinal)), false) = (home.location, home.is_managed) else {
        host::log!("allocation nodes support only pinned memory on a device: set allocType and location in poolProps");
        return Err(Error::CUDA_ERROR_NOT_SUPPORTED);
    };
    // Access of other devices changes nothing, because all memory is in one address space.
    for request in c.items(access, count)? {
        if let Some(ordinal) = accessor(&request.location)? {
            device::get(ordinal)?;
        }
    }
    let context = current_context()?;
    Ok(GraphAllocation {
        memory: GraphMemory::new(Owner::on(&context, ordinal)?, bytes as u64)?,
        ordinal,
    })
}

/// Returns the parameters of an allocation node.
pub(super) fn alloc_params(node: &GraphAllocation) -> CUDA_MEM_ALLOC_NODE_PARAMS {
    let mut params = CUDA_MEM_ALLOC_NODE_PARAMS::default();
    params.poolProps.allocType = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
    params.poolProps.location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
    params.poolProps.location.anonymous1.id = node.ordinal;
    params.bytesize = node.memory.bytes as usize;
    params.dptr = node.memory.address;
    params
}

exports! {
    fn cuMemAllocAsync | cuMemAllocAsync_ptsz [c, mode] (
        out: *mut CUdeviceptr,
        bytes: usize,
        hstream: CUstream,
    ) {
        alloc(c, out, bytes, None, hstream, mode)
    }

    fn cuMemAllocFromPoolAsync | cuMemAllocFromPoolAsync_ptsz [c, mode] (
        out: *mut CUdeviceptr,
        bytes: usize,
        pool: CUmemoryPool,
        hstream: CUstream,
    ) {
        alloc(c, out, bytes, Some(pool), hstream, mode)
    }

    fn cuMemFreeAsync | cuMemFreeAsync_ptsz [_c, mode] (address: CUdeviceptr, hstream: CUstream) {
        call::free(address, &stream::for_capture(hstream as usize, mode)?)
    }

    fn cuDeviceGetDefaultMemPool [c] (out: *mut CUmemoryPool, device: CUdevice) {
        let out = c.out(out)?;
        out.set(pool::default_of_device(device)? as CUmemoryPool);
        Ok(())
    }

    fn cuDeviceGetMemPool [c] (out: *mut CUmemoryPool, device: CUdevice) {
        let out = c.out(out)?;
        out.set(pool::current_of_device(device)? as CUmemoryPool);
        Ok(())
    }

    fn cuDeviceSetMemPool [_c] (device: CUdevice, pool: CUmemoryPool) {
        pool::set_current_of_device(device, pool as usize)
    }

    fn cuMemGetDefaultMemPool [c] (
        out: *mut CUmemoryPool,
        location: *mut CUmemLocation,
        kind: CUmemAllocationType,
    ) {
        let (out, location) = (c.out(out)?, c.read(location.cast_const())?);
        out.set(pool::default_of(home_of(&location, kind)?) as CUmemoryPool);
        Ok(())
    }

    fn cuMemGetMemPool [c] (
        out: *mut CUmemoryPool,
        location: *mut CUmemLocation,
        kind: CUmemAllocationType,
    ) {
        let (out, location) = (c.out(out)?, c.read(location.cast_const())?);
        out.set(pool::current_of(home_of(&location, kind)?) as CUmemoryPool);
        Ok(())
    }

    fn cuMemSetMemPool [c] (
        location: *mut CUmemLocation,
        kind: CUmemAllocationType,
        pool: CUmemoryPool,
    ) {
        let location = c.read(location.cast_const())?;
        pool::set_current(home_of(&location, kind)?, pool as usize)
    }

    healthy fn cuMemPoolCreate [c] (out: *mut CUmemoryPool, props: *const CUmemPoolProps) {
        capture::check_unsafe()?;
        let (out, props) = (c.out(out)?, c.read(props)?);
        let home = new_home(&props)?;
        let shareable = is_shareable(props.handleTypes, home)?;
        out.set(pool::create(home, props.maxSize as u64, shareable)? as CUmemoryPool);
        Ok(())
    }

    fn cuMemPoolDestroy [_c] (pool: CUmemoryPool) {
        capture::check_unsafe()?;
        pool::destroy(pool as usize)
    }

    fn cuMemPoolTrimTo [_c] (pool: CUmemoryPool, keep: usize) {
        capture::check_unsafe()?;
        pool::get(pool as usize)?.trim(keep as u64);
        Ok(())
    }

    fn cuMemPoolGetAttribute [c] (
        pool: CUmemoryPool,
        attribute: CUmemPool_attribute,
        value: *mut c_void,
    ) {
        match pool::get(pool as usize)?.attribute(attribute)? {
            PoolAttributeValue::Int(n) => c.out(value.cast::<c_int>())?.set(n),
            PoolAttributeValue::Bytes(n) => c.out(value.cast::<u64>())?.set(n),
        }
        Ok(())
    }

    fn cuMemPoolSetAttribute [c] (
        pool: CUmemoryPool,
        attribute: CUmemPool_attribute,
        value: *mut c_void,
    ) {
        let value = value.cast_const();
        pool::get(pool as usize)?.set_attribute(
            attribute,
            || c.read(value.cast::<c_int>()),
            || c.read(value.cast::<u64>()),
        )
    }

    fn cuMemPoolSetAccess [c] (pool: CUmemoryPool, map: *const CUmemAccessDesc, count: usize) {
        let pool = pool::get(pool as usize)?;
        if map.is_null() {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        let requests = c.items(map, count)?;
        let requests = requests.map(|request| Ok((accessor(&request.location)?, request.flags.0)));
        pool.set_access(&requests.collect::<Result<Vec<_>>>()?)
    }

    fn cuMemPoolGetAccess [c] (
        flags: *mut CUmemAccess_flags,
        pool: CUmemoryPool,
        location: *mut CUmemLocation,
    ) {
        let (flags, location) = (c.out(flags)?, c.read(location.cast_const())?);
        let pool = pool::get(pool as usize)?;
        flags.set(CUmemAccess_flags(pool.access(accessor(&location)?)?));
        Ok(())
    }

    healthy fn cuMemPoolExportToShareableHandle [c] (
        out: *mut c_void,
        pool: CUmemoryPool,
        kind: CUmemAllocationHandleType,
        flags: c_ulonglong,
    ) {
        let out = c.out(out.cast::<c_int>())?;
        check_handle(kind, flags)?;
        out.set(pool::get(pool as usize)?.export()?);
        Ok(())
    }

    healthy fn cuMemPoolImportFromShareableHandle [c] (
        out: *mut CUmemoryPool,
        descriptor: *mut c_void,
        kind: CUmemAllocationHandleType,
        flags: c_ulonglong,
    ) {
        let out = c.out(out)?;
        check_handle(kind, flags)?;
        // Descriptor 0 arrives as a null pointer, which driver 580 treats as a missing handle.
        if descriptor.is_null() {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        let descriptor =
            c_int::try_from(descriptor as isize).map_err(|_| Error::CUDA_ERROR_INVALID_VALUE)?;
        out.set(pool::import(descriptor)? as CUmemoryPool);
        Ok(())
    }

    fn cuMemPoolExportPointer [c] (out: *mut CUmemPoolPtrExportData, address: CUdeviceptr) {
        let out = c.out(out.cast::<[u8; ipc::BYTES]>())?;
        out.set(export_pooled(address)?);
        Ok(())
    }

    healthy fn cuMemPoolImportPointer [c] (
        out: *mut CUdeviceptr,
        pool: CUmemoryPool,
        data: *mut CUmemPoolPtrExportData,
    ) {
        let out = c.out(out)?;
        let data = c.read(data.cast_const().cast::<[u8; ipc::BYTES]>())?;
        let pool = pool::get(pool as usize)?.imported_identity()?;
        let context = context::current()?;
        out.set(ipc::import_pooled(&context, &data, pool)?);
        Ok(())
    }
}
