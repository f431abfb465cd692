//! Stream-ordered allocation and memory pools.

use std::ffi::{c_int, c_void};

use cuda_driver_sys::{
    CUDA_MEM_ALLOC_NODE_PARAMS, CUdevice, CUdeviceptr, CUmemAccess_flags, CUmemAccessDesc,
    CUmemAllocationHandleType, CUmemAllocationType, CUmemLocation, CUmemLocationType,
    CUmemPool_attribute, CUmemPoolProps, CUmemoryPool, CUstream,
};

use super::args::Caller;
use super::exports;
use crate::driver::capture;
use crate::driver::context;
use crate::driver::device;
use crate::driver::error::{Error, Result};
use crate::driver::graph::memory::GraphMemory;
use crate::driver::graph::node::AllocNode;
use crate::driver::pool::{self, Value};
use crate::driver::process::{driver, driver_without_fault};
use crate::driver::stream::{self, Mode};

fn alloc(
    c: Caller,
    out: *mut CUdeviceptr,
    bytes: usize,
    pool: Option<CUmemoryPool>,
    hstream: CUstream,
    mode: Mode,
) -> Result<()> {
    let stream = stream::for_capture(hstream as usize, mode)?;
    let out = c.out(out)?;
    out.set(pool::alloc(
        bytes as u64,
        pool.map(|p| p as usize),
        &stream,
    )?);
    Ok(())
}

/// The device of a location; pools of the host's memory are not supported.
fn ordinal(location: &CUmemLocation) -> Result<i32> {
    match location.type_ {
        // SAFETY: all members of the union are integers, of which any bits are a value.
        CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE => Ok(unsafe { location.anonymous1.id }),
        CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST
        | CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST_NUMA
        | CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT => Err(Error::NOT_SUPPORTED),
        _ => Err(Error::INVALID_VALUE),
    }
}

/// Memory of a device, and no other kind.
fn check_type(kind: CUmemAllocationType) -> Result<()> {
    match kind {
        CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED => Ok(()),
        CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_MANAGED => Err(Error::NOT_SUPPORTED),
        _ => Err(Error::INVALID_VALUE),
    }
}

/// Memory that a node of a graph is to allocate.
pub(super) fn alloc_node(
    c: Caller,
    props: &CUmemPoolProps,
    access: *const CUmemAccessDesc,
    count: usize,
    bytes: usize,
) -> Result<AllocNode> {
    driver_without_fault()?;
    check_type(props.allocType)?;
    let ordinal = ordinal(&props.location)?;
    device::get(ordinal)?;
    // What other devices may do with it changes nothing, since all memory is in one address space.
    for wish in c.array(access, count)? {
        device::get(self::ordinal(&wish.location)?)?;
    }
    let context = context::current()?;
    Ok(AllocNode {
        memory: GraphMemory::new(&context, bytes as u64)?,
        ordinal,
    })
}

/// What a node is asked to allocate.
pub(super) fn alloc_params(node: &AllocNode) -> CUDA_MEM_ALLOC_NODE_PARAMS {
    let mut params = CUDA_MEM_ALLOC_NODE_PARAMS::default();
    params.poolProps.allocType = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
    params.poolProps.location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
    params.poolProps.location.anonymous1.id = node.ordinal;
    params.bytesize = node.memory.bytes as usize;
    params.dptr = node.memory.address;
    params
}

exports! {
    fn cuMemAllocAsync | cuMemAllocAsync_ptsz [c, mode] (out: *mut CUdeviceptr, bytes: usize, hstream: CUstream) {
        alloc(c, out, bytes, None, hstream, mode)
    }

    fn cuMemAllocFromPoolAsync | cuMemAllocFromPoolAsync_ptsz [c, mode] (out: *mut CUdeviceptr, bytes: usize, pool: CUmemoryPool, hstream: CUstream) {
        alloc(c, out, bytes, Some(pool), hstream, mode)
    }

    fn cuMemFreeAsync | cuMemFreeAsync_ptsz [_c, mode] (address: CUdeviceptr, hstream: CUstream) {
        pool::free(address, &stream::for_capture(hstream as usize, mode)?)
    }

    fn cuDeviceGetDefaultMemPool [c] (out: *mut CUmemoryPool, device: CUdevice) {
        let out = c.out(out)?;
        out.set(pool::default_of(device)? as CUmemoryPool);
        Ok(())
    }

    fn cuDeviceGetMemPool [c] (out: *mut CUmemoryPool, device: CUdevice) {
        let out = c.out(out)?;
        out.set(pool::current_of(device)? as CUmemoryPool);
        Ok(())
    }

    fn cuDeviceSetMemPool [_c] (device: CUdevice, pool: CUmemoryPool) {
        pool::set_current(device, pool as usize)
    }

    fn cuMemGetDefaultMemPool [c] (out: *mut CUmemoryPool, location: *mut CUmemLocation, kind: CUmemAllocationType) {
        let (out, location) = (c.out(out)?, c.read(location.cast_const())?);
        check_type(kind)?;
        out.set(pool::default_of(ordinal(&location)?)? as CUmemoryPool);
        Ok(())
    }

    fn cuMemGetMemPool [c] (out: *mut CUmemoryPool, location: *mut CUmemLocation, kind: CUmemAllocationType) {
        let (out, location) = (c.out(out)?, c.read(location.cast_const())?);
        check_type(kind)?;
        out.set(pool::current_of(ordinal(&location)?)? as CUmemoryPool);
        Ok(())
    }

    fn cuMemSetMemPool [c] (location: *mut CUmemLocation, kind: CUmemAllocationType, pool: CUmemoryPool) {
        let location = c.read(location.cast_const())?;
        check_type(kind)?;
        pool::set_current(ordinal(&location)?, pool as usize)
    }

    fn cuMemPoolCreate [c] (out: *mut CUmemoryPool, props: *const CUmemPoolProps) {
        driver_without_fault()?;
        capture::check_unsafe()?;
        let (out, props) = (c.out(out)?, c.read(props)?);
        check_type(props.allocType)?;
        if props.handleTypes != CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE {
            crate::log!("pools whose memory is handed to other processes are not supported");
            return Err(Error::NOT_SUPPORTED);
        }
        out.set(pool::create(ordinal(&props.location)?, props.maxSize as u64)? as CUmemoryPool);
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

    fn cuMemPoolGetAttribute [c] (pool: CUmemoryPool, attribute: CUmemPool_attribute, value: *mut c_void) {
        match pool::get(pool as usize)?.attribute(attribute.0)? {
            Value::Int(n) => c.out(value.cast::<c_int>())?.set(n),
            Value::Bytes(n) => c.out(value.cast::<u64>())?.set(n),
        }
        Ok(())
    }

    fn cuMemPoolSetAttribute [c] (pool: CUmemoryPool, attribute: CUmemPool_attribute, value: *mut c_void) {
        let value = value.cast_const();
        pool::get(pool as usize)?.set_attribute(
            attribute.0,
            || c.read(value.cast::<c_int>()),
            || c.read(value.cast::<u64>()),
        )
    }

    fn cuMemPoolSetAccess [c] (pool: CUmemoryPool, map: *const CUmemAccessDesc, count: usize) {
        let pool = pool::get(pool as usize)?;
        let wishes = c.array(map, count)?.into_iter();
        let wishes = wishes.map(|wish| Ok((ordinal(&wish.location)?, wish.flags.0)));
        pool.set_access(&wishes.collect::<Result<Vec<_>>>()?)
    }

    fn cuMemPoolGetAccess [c] (flags: *mut CUmemAccess_flags, pool: CUmemoryPool, location: *mut CUmemLocation) {
        driver()?;
        let (flags, location) = (c.out(flags)?, c.read(location.cast_const())?);
        let pool = pool::get(pool as usize)?;
        flags.set(CUmemAccess_flags(pool.access(ordinal(&location)?)?));
        Ok(())
    }
}
