//! Memory: allocates it, checks it before it is registered, and looks up addresses.

use std::sync::Arc;

use cuda_driver_sys::{
    CU_MEMHOSTALLOC_DEVICEMAP, CU_MEMHOSTALLOC_PORTABLE, CU_MEMHOSTALLOC_WRITECOMBINED, CU_MEMHOSTREGISTER_DEVICEMAP,
    CU_MEMHOSTREGISTER_PORTABLE, CU_MEMHOSTREGISTER_READ_ONLY, CUmemAttach_flags,
};

use crate::call::lookup::current_context;
use crate::object::context::{self, Context};
use crate::object::memory::{allocate, find, host_flags, note_flags, owners_on};
use crate::object::virtual_memory;
use crate::queue::capture;
use crate::state::error::{Error, Result};
use engine::memory::{Access, Allocation, AllocationKind, address_space};
use host::Mapping;

/// Rows of `cuMemAllocPitch` begin at multiples of this many bytes.
const PITCH: u64 = 512;
const HOST_ALLOC_FLAGS: u32 = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
/// `CU_MEMHOSTREGISTER_IOMEMORY` is left out: there are no other devices whose memory could be registered.
const HOST_REGISTER_FLAGS: u32 =
    CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_READ_ONLY;

/// Returns the free and total bytes of the current context's device.
pub(crate) fn info() -> Result<(u64, u64)> {
    let device = current_context()?.device;
    let total = device.total_memory();
    let used = address_space().device_bytes(&owners_on(device));
    Ok((total.saturating_sub(used), total))
}

/// `cuMemAlloc`
pub(crate) fn alloc(context: &Context, bytes: u64) -> Result<u64> {
    capture::check_unsafe()?;
    if bytes == 0 {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    allocate(context, AllocationKind::Device, bytes)
}

/// `cuMemAllocPitch`: returns the address and the pitch.
pub(crate) fn alloc_pitch(context: &Context, width: u64, height: u64, element: u32) -> Result<(u64, u64)> {
    capture::check_unsafe()?;
    if width == 0 || height == 0 || !matches!(element, 4 | 8 | 16) {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    let pitch = width.checked_next_multiple_of(PITCH);
    let size = pitch.and_then(|pitch| Some((pitch, pitch.checked_mul(height)?)));
    let (pitch, bytes) = size.ok_or(Error::CUDA_ERROR_INVALID_VALUE)?;
    Ok((allocate(context, AllocationKind::Device, bytes)?, pitch))
}

/// `cuMemAllocManaged`
pub(crate) fn alloc_managed(bytes: u64, flags: u32) -> Result<u64> {
    const GLOBAL: u32 = CUmemAttach_flags::CU_MEM_ATTACH_GLOBAL.0;
    const HOST: u32 = CUmemAttach_flags::CU_MEM_ATTACH_HOST.0;
    if bytes == 0 || !matches!(flags, GLOBAL | HOST) {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    let context = context::current()?;
    capture::check_unsafe()?;
    allocate(&context, AllocationKind::Managed, bytes)
}

/// `cuMemHostAlloc` and `cuMemAllocHost`: return NULL for 0 bytes.
pub(crate) fn alloc_host(context: &Context, bytes: u64, flags: u32) -> Result<u64> {
    capture::check_unsafe()?;
    if flags & !HOST_ALLOC_FLAGS != 0 {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    if bytes == 0 {
        return Ok(0);
    }
    let address = allocate(context, AllocationKind::Pinned, bytes)?;
    note_flags(address, flags);
    Ok(address)
}

/// Checks a call of `cuMemHostRegister`. Returns the context, and true if the memory is to be registered as read-only.
pub(crate) fn check_register(address: u64, bytes: u64, flags: u32) -> Result<(Arc<Context>, bool)> {
    let context = current_context()?;
    capture::check_unsafe()?;
    if address == 0 || bytes == 0 || flags & !HOST_REGISTER_FLAGS != 0 {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    // Driver 580 returns `CUDA_ERROR_NOT_SUPPORTED` for addresses in the operating system's half of the address space.
    if address >= 1 << 63 {
        return Err(Error::CUDA_ERROR_NOT_SUPPORTED);
    }
    if address.checked_add(bytes).is_none() {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    let refuse = |why: &str| {
        host::log!("cannot register {bytes} bytes at {address:#x}: {why}");
        Err(Error::CUDA_ERROR_INVALID_VALUE)
    };
    let known = address_space().find(address);
    if address_space().reserves(address) || known.is_some_and(|a| a.kind != AllocationKind::Registered) {
        return refuse("the address belongs to memory of the driver");
    }
    // On a GPU, registered memory cannot be swapped out, so it must fit into the machine's memory. Here, the page table
    // of the address space grows with the registered memory, so the size of that memory needs a limit.
    if host::memory().is_some_and(|most| bytes > most) {
        host::log!("cannot register {bytes} bytes: the process cannot have that much memory");
        return Err(Error::CUDA_ERROR_OUT_OF_MEMORY);
    }
    let read_only = flags & CU_MEMHOSTREGISTER_READ_ONLY != 0;
    // Kernels access registered memory directly: an inaccessible page would crash the process.
    match host::mapping(address, bytes) {
        Mapping::Inaccessible => refuse("part of it is not readable"),
        Mapping::ReadOnly if !read_only => refuse("part of it is read-only: set CU_MEMHOSTREGISTER_READ_ONLY"),
        _ => Ok((context, read_only)),
    }
}

/// Returns true for a mapping of memory on the host.
fn is_on_host(allocation: &Allocation) -> bool {
    allocation.kind == AllocationKind::Mapped && virtual_memory::is_on_host(allocation.base)
}

/// Returns the page-locked allocation, or the mapping of host memory, that contains an address.
fn page_locked(address: u64) -> Result<Allocation> {
    context::current()?;
    let found = address_space()
        .find(address)
        .filter(|a| matches!(a.kind, AllocationKind::Pinned | AllocationKind::Registered) || is_on_host(a));
    found.ok_or(Error::CUDA_ERROR_INVALID_VALUE)
}

/// `cuMemHostGetDevicePointer`: returns the same address.
pub(crate) fn host_device_pointer(address: u64, flags: u32) -> Result<u64> {
    page_locked(address)?;
    if flags == 0 {
        Ok(address)
    } else {
        Err(Error::CUDA_ERROR_INVALID_VALUE)
    }
}

/// `cuMemHostGetFlags`
pub(crate) fn host_flags_of(address: u64) -> Result<u32> {
    current_context()?;
    let found = find(address).filter(|a| a.kind.is_host_accessible() || is_on_host(a));
    let id = found.ok_or(Error::CUDA_ERROR_INVALID_VALUE)?.id;
    let flags = host_flags().get(&id).copied().unwrap_or(0);
    // With unified addressing, all page-locked memory is mapped.
    Ok(flags & HOST_ALLOC_FLAGS | CU_MEMHOSTALLOC_DEVICEMAP)
}

/// `cuMemGetAddressRange`: returns the base and the size in bytes that was requested.
pub(crate) fn address_range(address: u64) -> Result<(u64, u64)> {
    current_context()?;
    let found = find(address).filter(|a| a.access != Access::None);
    let allocation = found.ok_or(Error::CUDA_ERROR_NOT_FOUND)?;
    Ok((allocation.base, allocation.bytes))
}
