//! Memory: allocation, page-locked and managed memory, and what can be asked of an address.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::capture;
use super::context::{self, Context};
use super::device::Device;
use super::error::{Error, Result};
use super::graph::{self, memory::GraphMemory};
use super::ipc;
use super::managed;
use super::pool;
use super::process::{check_sticky, driver, driver_without_fault, observe_fault};
use engine::memory::host::HostRange;
use engine::memory::{Access, Allocation, BadRange, Kind, Quota, space};
use host::Mapping;

/// Rows of `cuMemAllocPitch` begin at multiples of this many bytes.
const PITCH: u64 = 512;
/// `CU_MEMHOSTALLOC_PORTABLE | _DEVICEMAP | _WRITECOMBINED`
const HOST_ALLOC_FLAGS: u32 = 7;
/// `CU_MEMHOSTREGISTER_PORTABLE | _DEVICEMAP | _READ_ONLY`: there is no memory of other devices.
const HOST_REGISTER_FLAGS: u32 = 0xB;
/// `CU_MEMHOSTREGISTER_READ_ONLY`
const READ_ONLY: u32 = 8;
/// `CU_MEMHOSTALLOC_DEVICEMAP`: with unified addressing all page-locked memory is mapped.
const DEVICE_MAP: u32 = 2;

/// Flags of page-locked memory, by the allocation's number.
fn host_flags() -> MutexGuard<'static, HashMap<u64, u32>> {
    static FLAGS: OnceLock<Mutex<HashMap<u64, u32>>> = OnceLock::new();
    FLAGS
        .get_or_init(Mutex::default)
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
}

/// Numbers of the allocations whose synchronous operations are to be synchronous: kept to be asked for.
fn synchronous() -> MutexGuard<'static, HashSet<u64>> {
    static SYNCHRONOUS: OnceLock<Mutex<HashSet<u64>>> = OnceLock::new();
    SYNCHRONOUS
        .get_or_init(Mutex::default)
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
}

/// `CU_POINTER_ATTRIBUTE_SYNC_MEMOPS`
pub(crate) fn is_synchronous(allocation: &Allocation) -> bool {
    synchronous().contains(&allocation.id)
}

/// Sets `CU_POINTER_ATTRIBUTE_SYNC_MEMOPS`.
pub(crate) fn set_synchronous(allocation: &Allocation, is_so: bool) {
    let mut all = synchronous();
    if is_so {
        all.insert(allocation.id);
    } else {
        all.remove(&allocation.id);
    }
}

/// The allocation that an address lies in, for calls of the host.
pub(crate) fn find(address: u64) -> Option<Allocation> {
    space().find(address).filter(is_for_calls)
}

/// What kernels allocate is theirs, and arrays have handles: the host has no access to either by an address. And what a stream is to free is gone for every call from
/// then on, as recorded, though work that was queued before still finds it.
fn is_for_calls(allocation: &Allocation) -> bool {
    !matches!(allocation.kind, Kind::Heap | Kind::Array) && !pool::is_leaving(allocation)
}

/// Who owns memory of a device that is no context's. No context has this number.
pub(crate) fn owner_of(device: &Device) -> u64 {
    u64::MAX - device.ordinal as u64
}

/// The contexts of a device, and the device itself: those whose memory is the device's.
pub(crate) fn owners_on(device: &Device) -> Result<Vec<u64>> {
    let contexts = driver()?.contexts.all();
    let on_device = contexts
        .iter()
        .filter(|c| c.device.ordinal == device.ordinal);
    let contexts = on_device.map(|c| c.id());
    Ok(contexts.chain([owner_of(device)]).collect())
}

/// The device that memory is of.
pub(crate) fn device_of(allocation: &Allocation) -> Result<i32> {
    let driver = driver()?;
    if let Ok(context) = driver.contexts.get(allocation.owner as usize) {
        return Ok(context.device.ordinal);
    }
    let own = driver.devices.iter();
    let found = own
        .map(|d| d.ordinal)
        .find(|&n| u64::MAX - n as u64 == allocation.owner);
    found.ok_or(Error::INVALID_VALUE)
}

/// What these contexts of a device may have together.
pub(crate) fn quota<'a>(device: &Device, owners: &'a [u64]) -> Quota<'a> {
    Quota {
        owners,
        most: device.total_memory(),
    }
}

/// Free and total bytes of the current context's device.
pub(crate) fn info() -> Result<(u64, u64)> {
    let device = context::current()?.device;
    let total = device.total_memory();
    let used = space().device_bytes(&owners_on(device)?);
    Ok((total.saturating_sub(used), total))
}

pub(crate) fn allocate(context: &Context, kind: Kind, bytes: u64) -> Result<u64> {
    allocate_beside(context, kind, bytes, 0)
}

/// Allocates where so many bytes of what is in use do not count.
pub(crate) fn allocate_beside(
    context: &Context,
    kind: Kind,
    bytes: u64,
    uncounted: u64,
) -> Result<u64> {
    let owners = owners_on(context.device)?;
    let mut quota = quota(context.device, &owners);
    quota.most = quota.most.saturating_add(uncounted);
    let allocated = space().alloc_within(kind, context.id(), bytes, quota);
    allocated.map_err(|error| {
        host::log!("{error} (CUDA_SOFT_MEMORY sets how much a device has)");
        Error::OUT_OF_MEMORY
    })
}

/// `cuMemAlloc`
pub(crate) fn alloc(bytes: u64) -> Result<u64> {
    let context = context::current()?;
    capture::check_unsafe()?;
    if bytes == 0 {
        return Err(Error::INVALID_VALUE);
    }
    allocate(&context, Kind::Device, bytes)
}

/// `cuMemAllocPitch`: address and pitch.
pub(crate) fn alloc_pitch(width: u64, height: u64, element: u32) -> Result<(u64, u64)> {
    let context = context::current()?;
    capture::check_unsafe()?;
    if width == 0 || height == 0 || !matches!(element, 4 | 8 | 16) {
        return Err(Error::INVALID_VALUE);
    }
    let pitch = width
        .checked_next_multiple_of(PITCH)
        .ok_or(Error::INVALID_VALUE)?;
    let bytes = pitch.checked_mul(height).ok_or(Error::OUT_OF_MEMORY)?;
    Ok((allocate(&context, Kind::Device, bytes)?, pitch))
}

/// `cuMemAllocManaged`
pub(crate) fn alloc_managed(bytes: u64, flags: u32) -> Result<u64> {
    if bytes == 0 || !matches!(flags, 1 | 2) {
        return Err(Error::INVALID_VALUE);
    }
    let context = context::current()?;
    capture::check_unsafe()?;
    allocate(&context, Kind::Managed, bytes)
}

/// `cuMemHostAlloc` and `cuMemAllocHost`: NULL for 0 bytes.
pub(crate) fn alloc_host(bytes: u64, flags: u32) -> Result<u64> {
    let context = context::current()?;
    capture::check_unsafe()?;
    if flags & !HOST_ALLOC_FLAGS != 0 {
        return Err(Error::INVALID_VALUE);
    }
    if bytes == 0 {
        return Ok(0);
    }
    let address = allocate(&context, Kind::Pinned, bytes)?;
    note_flags(address, flags);
    Ok(address)
}

/// Notes the flags of page-locked memory that was made just now.
pub(crate) fn note_flags(address: u64, flags: u32) {
    if let Some(allocation) = space().find(address) {
        host_flags().insert(allocation.id, flags);
    }
}

/// Frees what `ours` says yes to, after all work of the context that owns it.
fn free_after_work(address: u64, ours: impl Fn(Kind) -> bool) -> Result<()> {
    let driver = driver_without_fault()?;
    free_nothing()?;
    let allocation = find(address)
        .filter(|a| a.base == address && (ours(a.kind) || ipc::is_pooled(a)))
        .ok_or_else(|| {
            host::log!("{address:#x} is not the start of memory that this call can free");
            Error::INVALID_VALUE
        })?;
    if let Ok(context) = driver.contexts.get(allocation.owner as usize) {
        context.drain();
    }
    observe_fault()?;
    if let Some(memory) = graph::memory::of(&allocation) {
        return free_of_graph(&memory);
    }
    // Another thread may have freed it meanwhile, and got the address for something else.
    space()
        .free_if(address, |a| a.id == allocation.id)
        .map_err(|_| Error::INVALID_VALUE)?;
    forget(&allocation);
    // As recorded: its pool gives back at once.
    pool::settle();
    Ok(())
}

/// Frees what a node of a graph has allocated; the graph may allocate it again.
fn free_of_graph(memory: &GraphMemory) -> Result<()> {
    if !memory.leave() {
        return Err(Error::INVALID_VALUE);
    }
    memory.end_use();
    Ok(())
}

/// What was noted of memory that is freed.
pub(crate) fn forget(freed: &Allocation) {
    if freed.kind.is_host_accessible() {
        host_flags().remove(&freed.id);
    }
    synchronous().remove(&freed.id);
    managed::forget(freed);
    pool::forget(freed);
    ipc::forget(freed);
}

/// Freeing NULL: done without a context, but not under one that is destroyed.
fn free_nothing() -> Result<()> {
    match context::current() {
        Err(Error::INVALID_CONTEXT) => Ok(()),
        other => other.map(|_| ()),
    }
}

/// `cuMemFree`: waits for the work of its context. 0 is freed by doing nothing.
pub(crate) fn free(address: u64) -> Result<()> {
    capture::check_unsafe()?;
    if address == 0 {
        return free_nothing();
    }
    free_after_work(address, |kind| matches!(kind, Kind::Device | Kind::Managed))
}

/// `cuMemFreeHost`
pub(crate) fn free_host(address: u64) -> Result<()> {
    capture::check_unsafe()?;
    if address == 0 {
        return free_nothing();
    }
    free_after_work(address, |kind| kind == Kind::Pinned)
}

/// Frees all that a context owns; its work is done.
pub(crate) fn release_all_of(context: &Context) {
    for freed in space().free_owned(context.id()) {
        forget(&freed);
    }
}

/// What `cuMemHostRegister` is asked to do, checked: the context, and whether the memory is only for reading.
pub(crate) fn check_register(address: u64, bytes: u64, flags: u32) -> Result<(Arc<Context>, bool)> {
    let context = context::current()?;
    capture::check_unsafe()?;
    if address == 0 || bytes == 0 || flags & !HOST_REGISTER_FLAGS != 0 {
        return Err(Error::INVALID_VALUE);
    }
    // As recorded: addresses of the operating system's own.
    if address >= 1 << 63 {
        return Err(Error::NOT_SUPPORTED);
    }
    if address.checked_add(bytes).is_none() {
        return Err(Error::INVALID_VALUE);
    }
    let refuse = |why: &str| {
        host::log!("{bytes} bytes at {address:#x}: {why}");
        Err(Error::INVALID_VALUE)
    };
    let known = space().find(address);
    if space().reserves(address) || known.is_some_and(|a| a.kind != Kind::Registered) {
        return refuse("this is memory of the driver");
    }
    // Registered memory is memory that stays in place; and the page table would take room for all of it.
    if host::memory().is_some_and(|most| bytes > most) {
        host::log!("the machine does not have {bytes} bytes to register");
        return Err(Error::OUT_OF_MEMORY);
    }
    let read_only = flags & READ_ONLY != 0;
    // Kernels access it as the program does: what is not there would end the program.
    match host::mapping(address, bytes) {
        Mapping::Inaccessible => refuse("part of it is not the program's to read"),
        Mapping::ReadOnly if !read_only => {
            refuse("part of it cannot be written, and CU_MEMHOSTREGISTER_READ_ONLY is not set")
        }
        _ => Ok((context, read_only)),
    }
}

/// `cuMemHostUnregister`: waits for the work of its context.
pub(crate) fn unregister(address: u64) -> Result<()> {
    free_nothing()?;
    capture::check_unsafe()?;
    if address == 0 {
        return Err(Error::INVALID_VALUE);
    }
    // As recorded: memory of the driver's own cannot be unregistered, and needs no registration.
    if space().reserves(address) {
        return Err(Error::INVALID_VALUE);
    }
    let allocation = find(address).ok_or(Error::HOST_MEMORY_NOT_REGISTERED)?;
    if allocation.base != address || allocation.kind != Kind::Registered {
        return Err(Error::INVALID_VALUE);
    }
    if let Ok(context) = driver()?.contexts.get(allocation.owner as usize) {
        context.drain();
    }
    space()
        .free_if(address, |a| a.id == allocation.id)
        .map_err(|_| Error::HOST_MEMORY_NOT_REGISTERED)?;
    host_flags().remove(&allocation.id);
    Ok(())
}

/// The page-locked memory that an address lies in.
fn page_locked(address: u64) -> Result<Allocation> {
    context::current()?;
    let found = space()
        .find(address)
        .filter(|a| matches!(a.kind, Kind::Pinned | Kind::Registered));
    found.ok_or(Error::INVALID_VALUE)
}

/// `cuMemHostGetDevicePointer`: the same address.
pub(crate) fn host_device_pointer(address: u64, flags: u32) -> Result<u64> {
    page_locked(address)?;
    if flags == 0 {
        Ok(address)
    } else {
        Err(Error::INVALID_VALUE)
    }
}

/// `cuMemHostGetFlags`
pub(crate) fn host_flags_of(address: u64) -> Result<u32> {
    context::current()?;
    let found = find(address).filter(|a| a.kind.is_host_accessible());
    let id = found.ok_or(Error::INVALID_VALUE)?.id;
    let flags = host_flags().get(&id).copied().unwrap_or(0);
    Ok(flags & HOST_ALLOC_FLAGS | DEVICE_MAP)
}

/// `cuMemGetAddressRange`: base and size in bytes, as they were asked for.
pub(crate) fn address_range(address: u64) -> Result<(u64, u64)> {
    context::current()?;
    let found = find(address).filter(|a| a.access != Access::None);
    let allocation = found.ok_or(Error::NOT_FOUND)?;
    Ok((allocation.base, allocation.bytes))
}

/// Memory that a call names by an address: the device's, or the program's own.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    /// In this allocation, at this address.
    Device(Allocation, u64),
    /// Memory that the driver does not know.
    Host(HostRange),
}

impl Place {
    /// What lies at an address of which nothing is known yet. The range must lie in one allocation; a freed or unknown
    /// address of device memory is an error.
    pub(crate) fn of(range: HostRange, bytes: u64) -> Result<Place> {
        let address = range.address();
        match space().find(address) {
            Some(known) if is_for_calls(&known) => Place::device(address, bytes),
            // What calls do not see is not the program's own, either.
            Some(_) => Err(Error::INVALID_VALUE),
            None if space().reserves(address) || address == 0 => Err(Error::INVALID_VALUE),
            None => Ok(Place::Host(range)),
        }
    }

    /// Device memory: checked against the allocation that the address lies in.
    pub(crate) fn device(address: u64, bytes: u64) -> Result<Place> {
        check_sticky()?;
        let mut allocation = find(address).ok_or(Error::INVALID_VALUE)?;
        if allocation.kind == Kind::Mapped {
            // A range may lie in several mappings.
            let mapped = space().mapped(address, bytes);
            allocation = mapped.unwrap_or(allocation);
            if allocation.access == Access::None {
                host::log!("nobody has access to the memory at {address:#x} (cuMemSetAccess)");
                return Err(Error::INVALID_VALUE);
            }
        }
        let left = allocation.bytes - (address - allocation.base);
        if bytes > left {
            host::log!(
                "{bytes} bytes at {address:#x}: only {left} of the allocation at {:#x} are left",
                allocation.base
            );
            return Err(Error::INVALID_VALUE);
        }
        Ok(Place::Device(allocation, address))
    }

    /// Refuses memory that was registered for reading only.
    pub(crate) fn check_writable(&self) -> Result<()> {
        match self {
            Place::Device(allocation, _) if allocation.access != Access::ReadWrite => {
                host::log!("the memory at {:#x} is for reading only", allocation.base);
                Err(Error::INVALID_VALUE)
            }
            _ => Ok(()),
        }
    }

    /// Whether the memory is still what it was when the call named it: it may have been freed, and its address may be
    /// another allocation's.
    pub(crate) fn check_still_there(&self) -> std::result::Result<(), BadRange> {
        let Place::Device(allocation, address) = *self else {
            return Ok(());
        };
        let now = space().find(address).map(|a| a.id);
        if now == Some(allocation.id) {
            return Ok(());
        }
        Err(BadRange {
            address,
            bytes: allocation.bytes - (address - allocation.base),
            inside: None,
        })
    }

    /// Pageable memory of the program: a copy to or from it cannot wait for the device's convenience.
    pub(crate) fn is_pageable(&self) -> bool {
        matches!(self, Place::Host(_))
    }
}
