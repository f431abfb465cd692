//! Exports that allocate, free, register and query memory.

use std::ffi::{c_int, c_uint, c_void};

use cuda_driver_sys::{CUdeviceptr, CUdeviceptr_v1, CUmemAccess_flags, CUmemorytype, CUpointer_attribute};

use super::args::{Caller, set};
use super::exports;
use crate::call::lookup::{current_context, healthy_if_current};
use crate::call::{free, memory as call};
use crate::object::{context, memory, pool, virtual_memory};
use crate::state::error::{Error, Result};
use crate::state::{gate, settings};
use engine::memory::{Access, Allocation, AllocationKind, address_space};

/// Converts an address for the functions from before CUDA 3.2, which return only 32 bits. Returns
/// `CUDA_ERROR_OUT_OF_MEMORY` if the address needs more.
fn to_32_bits(address: u64) -> Result<CUdeviceptr_v1> {
    CUdeviceptr_v1::try_from(address).map_err(|_| Error::CUDA_ERROR_OUT_OF_MEMORY)
}

fn alloc_host(c: Caller, out: *mut *mut c_void, bytes: usize, flags: c_uint) -> Result<()> {
    let context = current_context()?;
    let out = c.out(out)?;
    out.set(call::alloc_host(&context, bytes as u64, flags)? as *mut c_void);
    Ok(())
}

fn register(c: Caller, pointer: *mut c_void, bytes: usize, flags: c_uint) -> Result<()> {
    let (context, read_only) = call::check_register(pointer as u64, bytes as u64, flags)?;
    let _ = c;
    // SAFETY: the caller of cuMemHostRegister keeps the memory mapped until it is unregistered, as the manual requires.
    let registered = unsafe { address_space().register_host(pointer.cast(), bytes as u64, context.id(), read_only) };
    registered.map_err(|_| Error::CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED)?;
    memory::note_flags(pointer as u64, flags);
    Ok(())
}

/// Returns the base and the length in bytes of the range that contains an allocation: for a mapping, the whole
/// reservation; else the allocation itself.
fn range(allocation: &Allocation) -> (u64, u64) {
    let own = (allocation.base, allocation.bytes);
    match allocation.kind {
        AllocationKind::Mapped => virtual_memory::reservation(allocation.base).unwrap_or(own),
        _ => own,
    }
}

/// Returns true if a driver of the version in use knows the attribute.
fn is_known(attribute: CUpointer_attribute) -> bool {
    match attribute {
        // Added in CUDA 13.4.
        CUpointer_attribute::CU_POINTER_ATTRIBUTE_LOCALITY_DOMAIN_ORDINAL => settings::version() >= 13040,
        _ => attribute.name().is_some(),
    }
}

/// Writes one pointer attribute to `data`; returns an error if the attribute has no value for this memory.
fn pointer_attribute(
    c: Caller,
    data: *mut c_void,
    attribute: CUpointer_attribute,
    address: u64,
    allocation: Option<&Allocation>,
) -> Result<()> {
    let known = allocation.ok_or(Error::CUDA_ERROR_INVALID_VALUE);
    let on_host = |a: &Allocation| matches!(a.kind, AllocationKind::Pinned | AllocationKind::Registered);
    match attribute {
        CUpointer_attribute::CU_POINTER_ATTRIBUTE_CONTEXT => {
            // Driver 580 returns no context for mapped memory and for memory of a pool.
            let allocation = known?;
            let context = context::table().get(allocation.owner as usize);
            let of_context = context.is_ok() && pool::pool_of(allocation) == 0;
            let owner = if of_context { allocation.owner } else { 0 };
            c.out(data.cast::<u64>())?.set(owner)
        }
        CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE => {
            let kind = if on_host(known?) || virtual_memory::is_on_host(address) {
                CUmemorytype::CU_MEMORYTYPE_HOST
            } else {
                CUmemorytype::CU_MEMORYTYPE_DEVICE
            };
            c.out(data.cast::<c_uint>())?.set(kind.0);
        }
        CUpointer_attribute::CU_POINTER_ATTRIBUTE_DEVICE_POINTER => {
            // Driver 580 returns no address for memory that no device may access.
            let usable = known?.access != Access::None;
            c.out(data.cast::<u64>())?.set(if usable { address } else { 0 });
            if !usable {
                return Err(Error::CUDA_ERROR_INVALID_VALUE);
            }
        }
        CUpointer_attribute::CU_POINTER_ATTRIBUTE_HOST_POINTER => {
            let accessible = known?.kind.is_host_accessible() || virtual_memory::is_on_host(address);
            c.out(data.cast::<u64>())?.set(if accessible { address } else { 0 });
            if !accessible {
                return Err(Error::CUDA_ERROR_INVALID_VALUE);
            }
        }
        CUpointer_attribute::CU_POINTER_ATTRIBUTE_SYNC_MEMOPS => {
            // Driver 580 returns 1 for managed memory.
            let allocation = known?;
            let synchronous = allocation.kind == AllocationKind::Managed || memory::is_synchronous(allocation);
            c.out(data.cast::<c_uint>())?.set(synchronous.into());
        }
        CUpointer_attribute::CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE => {
            let allocation = known?;
            let plain = allocation.kind == AllocationKind::Device && pool::pool_of(allocation) == 0;
            let capable = plain && cfg!(target_os = "linux");
            c.out(data.cast::<c_uint>())?.set(capable.into());
        }
        CUpointer_attribute::CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE
        | CUpointer_attribute::CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE => {
            known?;
            c.out(data.cast::<c_uint>())?.set(0);
        }
        CUpointer_attribute::CU_POINTER_ATTRIBUTE_BUFFER_ID
        | CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID => {
            c.out(data.cast::<u64>())?.set(known?.id);
        }
        CUpointer_attribute::CU_POINTER_ATTRIBUTE_IS_MANAGED => {
            c.out(data.cast::<c_uint>())?
                .set((known?.kind == AllocationKind::Managed).into());
        }
        CUpointer_attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL => {
            let ordinal = memory::device_of(known?)?;
            c.out(data.cast::<c_int>())?.set(ordinal);
        }
        CUpointer_attribute::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR => {
            c.out(data.cast::<u64>())?.set(range(known?).0);
        }
        CUpointer_attribute::CU_POINTER_ATTRIBUTE_RANGE_SIZE => {
            c.out(data.cast::<usize>())?.set(range(known?).1 as usize);
        }
        CUpointer_attribute::CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR => {
            c.out(data.cast::<u64>())?.set(known?.base);
        }
        CUpointer_attribute::CU_POINTER_ATTRIBUTE_MAPPING_SIZE => {
            c.out(data.cast::<usize>())?.set(known?.bytes as usize);
        }
        CUpointer_attribute::CU_POINTER_ATTRIBUTE_MAPPED => {
            known?;
            c.out(data.cast::<c_uint>())?.set(1);
        }
        CUpointer_attribute::CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES => {
            // CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR if the memory can be exported.
            let pool = pool::get(pool::pool_of(known?)).ok();
            let mapped = virtual_memory::mapped_at(address);
            let types = (mapped.is_some_and(|memory| memory.is_shareable)
                || pool.is_some_and(|pool| pool.is_shareable()))
            .into();
            c.out(data.cast::<u64>())?.set(types);
        }
        CUpointer_attribute::CU_POINTER_ATTRIBUTE_ACCESS_FLAGS => {
            let flags = match known?.access {
                Access::None => CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_NONE,
                Access::Read => CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READ,
                Access::ReadWrite => CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
            };
            c.out(data.cast::<c_uint>())?.set(flags.0);
        }
        CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE => {
            c.out(data.cast::<u64>())?.set(pool::pool_of(known?) as u64);
        }
        CUpointer_attribute::CU_POINTER_ATTRIBUTE_LOCALITY_DOMAIN_ORDINAL => {
            if !is_known(attribute) {
                return Err(Error::CUDA_ERROR_INVALID_VALUE);
            }
            known?;
            c.out(data.cast::<c_int>())?.set(-1);
        }
        _ => return Err(Error::CUDA_ERROR_INVALID_VALUE),
    }
    Ok(())
}

/// Writes the value that `cuPointerGetAttributes` returns for memory without a value for the attribute.
fn no_value(
    c: Caller,
    data: *mut c_void,
    attribute: CUpointer_attribute,
    address: u64,
    allocation: Option<&Allocation>,
) -> Result<()> {
    /// `CU_DEVICE_INVALID`
    const NO_DEVICE: c_int = -2;
    use CUpointer_attribute as Id;
    match attribute {
        Id::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL => c.out(data.cast::<c_int>())?.set(NO_DEVICE),
        Id::CU_POINTER_ATTRIBUTE_MEMORY_TYPE
        | Id::CU_POINTER_ATTRIBUTE_SYNC_MEMOPS
        | Id::CU_POINTER_ATTRIBUTE_IS_MANAGED
        | Id::CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE
        | Id::CU_POINTER_ATTRIBUTE_MAPPED
        | Id::CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE
        | Id::CU_POINTER_ATTRIBUTE_ACCESS_FLAGS
        | Id::CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE
        | Id::CU_POINTER_ATTRIBUTE_LOCALITY_DOMAIN_ORDINAL => c.out(data.cast::<c_uint>())?.set(0),
        // Memory that the driver does not know is memory of the program, which has the same address on the host. An
        // allocation without a value has no address there.
        Id::CU_POINTER_ATTRIBUTE_HOST_POINTER => {
            let of_program = allocation.is_none();
            c.out(data.cast::<u64>())?.set(if of_program { address } else { 0 });
        }
        // Driver 580 leaves these results unchanged.
        Id::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR | Id::CU_POINTER_ATTRIBUTE_RANGE_SIZE => {}
        _ => c.out(data.cast::<u64>())?.set(0),
    }
    Ok(())
}

exports! {
    fn cuMemGetInfo_v2 [c] (free: *mut usize, total: *mut usize) {
        let (found_free, found_total) = call::info()?;
        set(c.out_or_null(free), found_free as usize);
        set(c.out_or_null(total), found_total as usize);
        Ok(())
    }

    fn cuMemAlloc_v2 [c] (out: *mut CUdeviceptr, bytes: usize) {
        let context = current_context()?;
        let out = c.out(out)?;
        out.set(call::alloc(&context, bytes as u64)?);
        Ok(())
    }

    fn cuMemAllocPitch_v2 [c] (
        out: *mut CUdeviceptr,
        pitch: *mut usize,
        width: usize,
        height: usize,
        element: c_uint,
    ) {
        let context = current_context()?;
        let (out, pitch) = (c.out(out)?, c.out(pitch)?);
        let (address, bytes) = call::alloc_pitch(&context, width as u64, height as u64, element)?;
        out.set(address);
        pitch.set(bytes as usize);
        Ok(())
    }

    fn cuMemAllocManaged [c] (out: *mut CUdeviceptr, bytes: usize, flags: c_uint) {
        healthy_if_current()?;
        let out = c.out(out)?;
        out.set(call::alloc_managed(bytes as u64, flags)?);
        Ok(())
    }

    fn cuMemFree_v2 [c] (address: CUdeviceptr) {
        free::free(address)
    }

    fn cuMemGetAddressRange_v2 [c] (
        base: *mut CUdeviceptr,
        size: *mut usize,
        address: CUdeviceptr,
    ) {
        // Driver 580 returns success if neither result is requested.
        if base.is_null() && size.is_null() {
            return gate::healthy();
        }
        let (found_base, found_size) = call::address_range(address)?;
        set(c.out_or_null(base), found_base);
        set(c.out_or_null(size), found_size as usize);
        Ok(())
    }

    fn cuMemAllocHost_v2 [c] (out: *mut *mut c_void, bytes: usize) {
        alloc_host(c, out, bytes, 0)
    }

    fn cuMemAllocHost [c] (out: *mut *mut c_void, bytes: c_uint) {
        alloc_host(c, out, bytes as usize, 0)
    }

    fn cuMemHostAlloc [c] (out: *mut *mut c_void, bytes: usize, flags: c_uint) {
        alloc_host(c, out, bytes, flags)
    }

    fn cuMemFreeHost [c] (pointer: *mut c_void) {
        free::free_host(pointer as u64)
    }

    fn cuMemHostRegister_v2 = cuMemHostRegister [c] (
        pointer: *mut c_void,
        bytes: usize,
        flags: c_uint,
    ) {
        register(c, pointer, bytes, flags)
    }

    fn cuMemHostUnregister [c] (pointer: *mut c_void) {
        free::unregister(pointer as u64)
    }

    fn cuMemHostGetDevicePointer_v2 [c] (
        out: *mut CUdeviceptr,
        pointer: *mut c_void,
        flags: c_uint,
    ) {
        current_context()?;
        let out = c.out(out)?;
        let found = call::host_device_pointer(pointer as u64, flags);
        // Driver 580 writes NULL on an error.
        out.set(found.unwrap_or(0));
        found.map(|_| ())
    }

    fn cuMemHostGetDevicePointer [c] (
        out: *mut CUdeviceptr_v1,
        pointer: *mut c_void,
        flags: c_uint,
    ) {
        current_context()?;
        let out = c.out(out)?;
        out.set(to_32_bits(call::host_device_pointer(pointer as u64, flags)?)?);
        Ok(())
    }

    fn cuMemHostGetFlags [c] (out: *mut c_uint, pointer: *mut c_void) {
        let out = c.out(out)?;
        out.set(call::host_flags_of(pointer as u64)?);
        Ok(())
    }

    fn cuPointerGetAttribute [c] (
        data: *mut c_void,
        attribute: CUpointer_attribute,
        address: CUdeviceptr,
    ) {
        pointer_attribute(c, data, attribute, address, memory::find(address).as_ref())
    }

    fn cuPointerGetAttributes [c] (
        count: c_uint,
        attributes: *mut CUpointer_attribute,
        data: *mut *mut c_void,
        address: CUdeviceptr,
    ) {
        if count == 0 {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        let attributes = || c.items(attributes.cast_const(), count as usize);
        let data = || c.items(data.cast_const(), count as usize);
        // Driver 580 returns the tokens only alone.
        let refused = |a| !is_known(a) || a == CUpointer_attribute::CU_POINTER_ATTRIBUTE_P2P_TOKENS;
        if attributes()?.any(refused) || data()?.any(|data| data.is_null()) {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        let allocation = memory::find(address);
        for (attribute, data) in attributes()?.zip(data()?) {
            // Driver 580 returns no device address if no context is current.
            let hidden = attribute == CUpointer_attribute::CU_POINTER_ATTRIBUTE_DEVICE_POINTER && current_context().is_err();
            if hidden || pointer_attribute(c, data, attribute, address, allocation.as_ref()).is_err() {
                no_value(c, data, attribute, address, allocation.as_ref())?;
            }
        }
        Ok(())
    }

    healthy fn cuPointerSetAttribute [c] (
        value: *const c_void,
        attribute: CUpointer_attribute,
        address: CUdeviceptr,
    ) {
        let allocation = memory::find(address).ok_or(Error::CUDA_ERROR_INVALID_VALUE)?;
        if attribute != CUpointer_attribute::CU_POINTER_ATTRIBUTE_SYNC_MEMOPS {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        if virtual_memory::mapped_at(address).is_some() {
            // Driver 580 returns this error for mapped memory.
            return Err(Error::CUDA_ERROR_NOT_SUPPORTED);
        }
        memory::set_synchronous(&allocation, c.read(value.cast::<c_int>())? != 0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::foreign_use;
    use crate::object::stream::StreamRef;
    use crate::queue::streams::QueueId;
    use crate::queue::work::Work;

    #[test]
    fn unregistered_memory_leaves_no_record_of_its_uses() {
        let (owner, mut block) = (context::for_test(), vec![0_u8; 4096]);
        let stream = StreamRef::of_default(context::for_test(), QueueId::Legacy);
        // SAFETY: the block lives until the end of the test, which unregisters it.
        unsafe { address_space().register_host(block.as_mut_ptr(), 4096, owner.id(), false) }.unwrap();
        let address = block.as_ptr() as u64;
        let allocation = address_space().find(address).unwrap();
        foreign_use::note(&allocation, &stream, stream.submit(&[], Work::Join, 0));
        assert!(foreign_use::has_record(&allocation));
        free::unregister(address).unwrap();
        assert!(!foreign_use::has_record(&allocation));
    }
}
