//! Memory: owners, quotas, and flags of allocations.

use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::check;
use crate::object::context::{self, Context};
use crate::object::device::{self, Device};
use crate::object::{foreign_use, pending_free};
use crate::state::error::{Error, Result};
use engine::memory::shared::{Purpose, SharedFile};
use engine::memory::{Allocation, AllocationKind, Quota, address_space};

/// Flags of page-locked memory, by allocation ID.
pub(crate) fn host_flags() -> MutexGuard<'static, HashMap<u64, u32>> {
    static FLAGS: OnceLock<Mutex<HashMap<u64, u32>>> = OnceLock::new();
    FLAGS
        .get_or_init(Mutex::default)
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
}

/// IDs of the allocations with `CU_POINTER_ATTRIBUTE_SYNC_MEMOPS`.
fn synchronous() -> MutexGuard<'static, HashSet<u64>> {
    static SYNCHRONOUS: OnceLock<Mutex<HashSet<u64>>> = OnceLock::new();
    SYNCHRONOUS
        .get_or_init(Mutex::default)
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
}

/// `CU_POINTER_ATTRIBUTE_SYNC_MEMOPS`: synchronous copies and fills of the memory always wait.
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

/// Returns the allocation that contains an address, if calls can access it by address.
pub(crate) fn find(address: u64) -> Option<Allocation> {
    address_space().find(address).filter(is_for_calls)
}

/// Returns true if calls can access the allocation by address. Kernel heap memory belongs to kernels, arrays have
/// handles, and memory with a pending free is visible only to work queued earlier.
pub(crate) fn is_for_calls(allocation: &Allocation) -> bool {
    !matches!(allocation.kind, AllocationKind::Heap | AllocationKind::Array) && !pending_free::contains(allocation)
}

/// Returns the owner ID of device memory that belongs to no context. No context has this ID.
pub(crate) fn owner_of(device: &Device) -> u64 {
    u64::MAX - device.ordinal as u64
}

/// Returns the owner IDs of a device's memory: its contexts, and the device itself.
pub(crate) fn owners_on(device: &Device) -> Vec<u64> {
    let contexts = context::table().all();
    let on_device = contexts.iter().filter(|c| c.device.ordinal == device.ordinal);
    let contexts = on_device.map(|c| c.id());
    contexts.chain([owner_of(device)]).collect()
}

/// Returns the ordinal of the device that memory belongs to.
pub(crate) fn device_of(allocation: &Allocation) -> Result<i32> {
    if let Ok(context) = context::table().get(allocation.owner as usize) {
        return Ok(context.device.ordinal);
    }
    let mut devices = device::all().iter();
    let found = devices.find(|device| owner_of(device) == allocation.owner);
    let device = found.ok_or(Error::CUDA_ERROR_INVALID_VALUE)?;
    Ok(device.ordinal)
}

/// Returns the quota that these owners of a device share.
pub(crate) fn quota<'a>(device: &Device, owners: &'a [u64]) -> Quota<'a> {
    Quota {
        owners,
        most: device.total_memory(),
    }
}

/// The owner of new memory: a context, or a device for memory on another device than that of the context.
#[derive(Clone, Copy)]
pub(crate) struct Owner<'c> {
    context: &'c Context,
    pub(crate) device: &'static Device,
}

impl<'c> Owner<'c> {
    /// Returns the owner of memory on a device that is allocated in a context.
    pub(crate) fn on(context: &'c Context, ordinal: i32) -> Result<Self> {
        let device = device::get(ordinal)?;
        Ok(Owner { context, device })
    }

    /// Returns true if the memory belongs to the context.
    fn is_context(self) -> bool {
        self.context.device.ordinal == self.device.ordinal
    }

    /// Returns the owner's ID.
    fn id(self) -> u64 {
        match self.is_context() {
            true => self.context.id(),
            false => owner_of(self.device),
        }
    }
}

impl<'c> From<&'c Context> for Owner<'c> {
    fn from(context: &'c Context) -> Self {
        let device = context.device;
        Owner { context, device }
    }
}

impl<'c> From<&'c Arc<Context>> for Owner<'c> {
    fn from(context: &'c Arc<Context>) -> Self {
        Owner::from(&**context)
    }
}

/// Allocates memory of an owner, if its device has enough memory left, and returns the address.
pub(crate) fn allocate<'c>(owner: impl Into<Owner<'c>>, kind: AllocationKind, bytes: u64) -> Result<u64> {
    allocate_excluding(owner.into(), kind, bytes, 0)
}

/// Allocates like [`allocate`], but as if `uncounted` bytes of the memory in use were free. Returns
/// `CUDA_ERROR_CONTEXT_IS_DESTROYED` if another thread has ended the context in the meantime.
pub(crate) fn allocate_excluding(owner: Owner<'_>, kind: AllocationKind, bytes: u64, uncounted: u64) -> Result<u64> {
    let owners = owners_on(owner.device);
    let mut quota = quota(owner.device, &owners);
    quota.most = quota.most.saturating_add(uncounted);
    let allocated = address_space().alloc_within(kind, owner.id(), bytes, quota);
    let address = allocated.map_err(|error| out_of_memory(&error))?;
    // Checked after the allocation: the end of a context first marks it, and then frees its memory.
    if owner.is_context() && !owner.context.is_alive() {
        let _ = address_space().free_if(address, |a| a.owner == owner.id());
        return Err(Error::CUDA_ERROR_CONTEXT_IS_DESTROYED);
    }
    check::note_allocation(address);
    Ok(address)
}

/// Logs why device memory could not be allocated and returns the error.
pub(crate) fn out_of_memory(error: &dyn Display) -> Error {
    host::log!("{error} (set CUDA_SOFT_MEMORY to change the size of device memory)");
    Error::CUDA_ERROR_OUT_OF_MEMORY
}

/// Sets the flags of page-locked memory that was just allocated.
pub(crate) fn note_flags(address: u64, flags: u32) {
    if let Some(allocation) = address_space().find(address) {
        host_flags().insert(allocation.id, flags);
    }
}

/// Removes the flags of freed memory and its `CU_POINTER_ATTRIBUTE_SYNC_MEMOPS`.
pub(crate) fn forget_notes(freed: &Allocation) {
    if freed.kind.is_host_accessible() {
        host_flags().remove(&freed.id);
    }
    synchronous().remove(&freed.id);
}

/// Waits for all work of the context that owns memory, if it is live, and for copies and fills of other contexts that
/// use the memory. Kernels of any context may use memory of a pool that belongs to a device.
pub(crate) fn drain_users(allocation: &Allocation) {
    if let Ok(context) = context::table().get(allocation.owner as usize) {
        context.drain();
    } else if allocation.kind == AllocationKind::Device {
        context::table().all().iter().for_each(|context| context.drain());
    }
    foreign_use::drain(allocation);
}

/// Returns driver 580's error for a file descriptor that cannot be imported: `CUDA_ERROR_NOT_SUPPORTED` if the driver
/// made the descriptor for the `other` purpose, else `CUDA_ERROR_UNKNOWN`.
pub(crate) fn not_importable(descriptor: i32, other: Purpose) -> Error {
    match SharedFile::open(descriptor, other) {
        Some(_) => Error::CUDA_ERROR_NOT_SUPPORTED,
        None => Error::CUDA_ERROR_UNKNOWN,
    }
}
