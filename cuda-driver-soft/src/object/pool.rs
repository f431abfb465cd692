//! Memory pools: accounting for stream-ordered allocations.
//!
//! Allocated memory is available when the call returns. Memory is freed in two steps: the call makes it unavailable to
//! other calls and reduces the used bytes, and the work on the stream frees it. Pools cache no memory, since allocation
//! is cheap here; the reserved size is only a number. It shrinks when the program synchronises or calls `cuMemFree`,
//! `cuMemFreeHost` or `cuMemPoolTrimTo`.

use std::collections::HashMap;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use cuda_driver_sys::CUmemPool_attribute as Id;

use crate::object::managed::Location;
use crate::object::{device, leak, mappings, memory, pending_free};
use crate::state::error::{Error, Result};
use crate::state::handle::{HandleKind, Table};
use crate::state::settings;
use engine::memory::shared::{Label, Purpose, SharedFile};
use engine::memory::{Allocation, AllocationKind, address_space};

static TABLE: Table<Pool> = Table::new(HandleKind::Pool);

/// Allocations grow the reserved size to a multiple of this many bytes. Trimming does not round the requested size.
const CHUNK: u64 = 32 << 20;

/// A memory pool.
#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) handle: usize,
    pub(crate) home: PoolHome,
    /// True for the default pool of a device or location.
    is_default: bool,
    /// The shared file that represents an exportable or imported pool.
    shared: Option<SharedFile>,
    /// True for an imported pool: nothing can be allocated from it.
    pub(crate) is_imported: bool,
    /// True after the pool was exported. Until then, driver 580 exports no pointers to its memory.
    was_exported: AtomicBool,
    /// Maximum size in bytes; 0 for no limit.
    pub(crate) most: u64,
    state: Mutex<PoolState>,
}

/// Location and kind of a pool's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PoolHome {
    /// `None` for managed memory without a preferred location.
    pub(crate) location: Option<Location>,
    pub(crate) is_managed: bool,
}

impl PoolHome {
    /// Returns the home of plain device memory.
    fn of_device(ordinal: i32) -> Self {
        PoolHome {
            location: Some(Location::Device(ordinal)),
            is_managed: false,
        }
    }

    /// Returns the ordinal of the device, if the memory is on one.
    pub(crate) fn ordinal(self) -> Option<i32> {
        match self.location {
            Some(Location::Device(ordinal)) => Some(ordinal),
            _ => None,
        }
    }

    pub(crate) fn kind(self) -> AllocationKind {
        match (self.is_managed, self.ordinal()) {
            (true, _) => AllocationKind::Managed,
            (false, Some(_)) => AllocationKind::Device,
            (false, None) => AllocationKind::Pinned,
        }
    }

    /// Returns the initial access from a device, or from the host (`None`), as `CUmemAccess_flags`.
    fn first_access(self, from: Option<i32>) -> u32 {
        if !self.is_managed && self.ordinal() == from {
            3
        } else {
            0
        }
    }
}

/// The mutable part of a pool.
#[derive(Debug)]
struct PoolState {
    /// Values of the reuse attributes, in the order of [`reuse_index`]. They have no effect here but can be queried.
    reuse: [i32; 3],
    /// The release threshold in bytes.
    threshold: u64,
    /// Bytes allocated by calls and not yet freed by calls.
    used: Usage,
    /// Bytes whose memory is not yet freed.
    unfreed: u64,
    /// The reserved size in bytes.
    reserved: Usage,
    /// Access set by `cuMemPoolSetAccess`, by device; `None` is the host.
    access: HashMap<Option<i32>, u32>,
}

/// A number of bytes and its high-water mark.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    now: u64,
    high: u64,
}

impl Usage {
    fn set(&mut self, now: u64) {
        self.now = now;
        self.high = self.high.max(now);
    }
}

/// The value of a pool attribute.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PoolAttributeValue {
    Int(i32),
    Bytes(u64),
}

/// Returns the index of an attribute in [`PoolState::reuse`].
fn reuse_index(attribute: Id) -> Option<usize> {
    match attribute {
        Id::CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES => Some(0),
        Id::CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC => Some(1),
        Id::CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES => Some(2),
        _ => None,
    }
}

impl Pool {
    fn state(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn new(handle: usize, home: PoolHome, is_default: bool, most: u64) -> Self {
        Pool {
            handle,
            home,
            is_default,
            shared: None,
            is_imported: false,
            was_exported: AtomicBool::new(false),
            most,
            state: Mutex::new(PoolState {
                reuse: [1; 3],
                threshold: 0,
                used: Usage::default(),
                unfreed: 0,
                reserved: Usage::default(),
                access: HashMap::new(),
            }),
        }
    }

    /// Counts an allocation, or returns `CUDA_ERROR_OUT_OF_MEMORY` if the used bytes would exceed the pool's maximum
    /// size.
    pub(crate) fn take(&self, bytes: u64) -> Result<()> {
        let mut state = self.state();
        let used = state.used.now.checked_add(bytes);
        let used = used.filter(|&used| self.most == 0 || used <= self.most);
        let used = used.ok_or_else(|| {
            host::log!(
                "memory pool of at most {} bytes has no room for {bytes} bytes",
                self.most
            );
            Error::CUDA_ERROR_OUT_OF_MEMORY
        })?;
        state.used.set(used);
        state.unfreed += bytes;
        let reserved = state.reserved.now.max(used.next_multiple_of(CHUNK));
        state.reserved.set(reserved);
        Ok(())
    }

    /// Counts a call that frees memory, before the memory is freed.
    fn count_free_call(&self, bytes: u64) {
        let mut state = self.state();
        state.used.now = state.used.now.saturating_sub(bytes);
    }

    /// Counts memory that was freed, on a stream or by a call that waits.
    fn count_freed(&self, bytes: u64) {
        let mut state = self.state();
        state.unfreed = state.unfreed.saturating_sub(bytes);
        UNSETTLED.fetch_add(1, Release);
    }

    /// `cuMemPoolTrimTo`
    pub(crate) fn trim(&self, keep: u64) {
        self.state().trim(keep);
    }

    /// `cuMemPoolGetAttribute`
    pub(crate) fn attribute(&self, attribute: Id) -> Result<PoolAttributeValue> {
        use PoolAttributeValue::{Bytes, Int};
        let state = self.state();
        Ok(match attribute {
            Id::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD => Bytes(state.threshold),
            Id::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT => Bytes(state.reserved.now),
            Id::CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH => Bytes(state.reserved.high),
            Id::CU_MEMPOOL_ATTR_USED_MEM_CURRENT => Bytes(state.used.now),
            Id::CU_MEMPOOL_ATTR_USED_MEM_HIGH => Bytes(state.used.high),
            _ => {
                if let Some(index) = reuse_index(attribute) {
                    return Ok(Int(state.reuse[index]));
                }
                return self.newer_attribute(attribute);
            }
        })
    }

    /// Returns an attribute that CUDA 13.2 added.
    fn newer_attribute(&self, attribute: Id) -> Result<PoolAttributeValue> {
        use PoolAttributeValue::{Bytes, Int};
        if settings::version() < 13020 {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        // A pool without a location has CU_DEVICE_INVALID and CU_MEM_LOCATION_TYPE_INVALID.
        Ok(match attribute {
            // CU_MEM_ALLOCATION_TYPE_PINNED or _MANAGED
            Id::CU_MEMPOOL_ATTR_ALLOCATION_TYPE => Int(1 + i32::from(self.home.is_managed)),
            Id::CU_MEMPOOL_ATTR_EXPORT_HANDLE_TYPES => Int(self.is_shareable().into()),
            Id::CU_MEMPOOL_ATTR_LOCATION_ID => Int(self.home.location.map_or(-2, Location::id)),
            Id::CU_MEMPOOL_ATTR_LOCATION_TYPE => Int(self.home.location.map_or(0, Location::kind)),
            Id::CU_MEMPOOL_ATTR_MAX_POOL_SIZE => Bytes(self.most),
            Id::CU_MEMPOOL_ATTR_HW_DECOMPRESS_ENABLED => Int(0),
            _ => return Err(Error::CUDA_ERROR_INVALID_VALUE),
        })
    }

    /// `cuMemPoolSetAttribute`; `int` and `bytes` read the caller's value with the attribute's type.
    pub(crate) fn set_attribute(
        &self,
        attribute: Id,
        int: impl FnOnce() -> Result<i32>,
        bytes: impl FnOnce() -> Result<u64>,
    ) -> Result<()> {
        // 0 is the only accepted value of a high-water mark; it resets the mark to the current value.
        let require_zero = |bytes: u64| (bytes == 0).then_some(()).ok_or(Error::CUDA_ERROR_INVALID_VALUE);
        match attribute {
            Id::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD => {
                let value = bytes()?;
                self.state().threshold = value;
                UNSETTLED.fetch_add(1, Release);
            }
            Id::CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH => {
                require_zero(bytes()?)?;
                let mut state = self.state();
                state.reserved.high = state.reserved.now;
            }
            Id::CU_MEMPOOL_ATTR_USED_MEM_HIGH => {
                require_zero(bytes()?)?;
                let mut state = self.state();
                state.used.high = state.used.now;
            }
            _ => {
                let index = reuse_index(attribute).ok_or(Error::CUDA_ERROR_INVALID_VALUE)?;
                let value = int()?;
                self.state().reuse[index] = (value != 0).into();
            }
        }
        Ok(())
    }

    /// Returns true if other processes can import the pool.
    pub(crate) fn is_shareable(&self) -> bool {
        self.shared.is_some() && !self.is_imported
    }

    /// `cuMemPoolExportToShareableHandle`: returns a file descriptor that the caller owns.
    pub(crate) fn export(&self) -> Result<i32> {
        let shared = self.shared.as_ref().filter(|_| !self.is_imported);
        let shared = shared.ok_or_else(|| {
            host::log!("this pool cannot be exported: it is imported or has no shareable handle type");
            Error::CUDA_ERROR_INVALID_VALUE
        })?;
        let descriptor = shared.export().ok_or(Error::CUDA_ERROR_OPERATING_SYSTEM)?;
        self.was_exported.store(true, Release);
        Ok(descriptor)
    }

    /// Returns the identity of an imported pool's file.
    pub(crate) fn imported_identity(&self) -> Result<(u64, u64)> {
        let file = self.shared.as_ref().filter(|_| self.is_imported);
        file.map(SharedFile::identity).ok_or_else(|| {
            host::log!("the pool is not imported: pass a pool of cuMemPoolImportFromShareableHandle");
            Error::CUDA_ERROR_INVALID_VALUE
        })
    }

    /// `cuMemPoolSetAccess`: sets all of these accesses or, if one is invalid, none. A request is a device, or `None`
    /// for the host, and flags: 0 (no access) or 3 (read and write).
    pub(crate) fn set_access(&self, requests: &[(Option<i32>, u32)]) -> Result<()> {
        for &(from, flags) in requests {
            if let Some(ordinal) = from {
                device::get(ordinal)?;
            }
            let own = self.home.first_access(from) != 0;
            // The errors are those of driver 580.
            match flags {
                0 if own && from.is_some() => return Err(Error::CUDA_ERROR_INVALID_DEVICE),
                0 if own => return Err(Error::CUDA_ERROR_NOT_SUPPORTED),
                1 => return Err(Error::CUDA_ERROR_NOT_SUPPORTED),
                0 | 3 => {}
                _ => return Err(Error::CUDA_ERROR_INVALID_VALUE),
            }
        }
        self.state().access.extend(requests.iter().copied());
        Ok(())
    }

    /// `cuMemPoolGetAccess`
    pub(crate) fn access(&self, from: Option<i32>) -> Result<u32> {
        if let Some(ordinal) = from {
            device::get(ordinal)?;
        }
        let first = self.home.first_access(from);
        Ok(self.state().access.get(&from).copied().unwrap_or(first))
    }
}

impl PoolState {
    fn trim(&mut self, keep: u64) {
        let least = self.unfreed.next_multiple_of(CHUNK);
        self.reserved.now = self.reserved.now.min(keep.max(least));
    }
}

/// Number of frees and changes of thresholds so far. Pools may shrink after each.
static UNSETTLED: AtomicU64 = AtomicU64::new(0);
/// The value of [`UNSETTLED`] that [`settle`] has handled.
static SETTLED: AtomicU64 = AtomicU64::new(0);

/// Shrinks the reserved size of all pools to their release thresholds, after the program synchronised or freed memory.
/// When it returns, all frees before the call are taken into account, even if several threads call it at once.
pub(crate) fn settle() {
    let unsettled = UNSETTLED.load(Acquire);
    if SETTLED.load(Acquire) >= unsettled {
        return;
    }
    for pool in TABLE.all() {
        let mut state = pool.state();
        let keep = state.threshold;
        state.trim(keep);
    }
    SETTLED.fetch_max(unsettled, AcqRel);
}

/// The default and the current pool of a device or location.
#[derive(Clone, Copy, Debug)]
struct HomePools {
    default: usize,
    current: usize,
}

/// The pool that an allocation is counted for.
struct PooledAllocation {
    pool: Arc<Pool>,
    bytes: u64,
}

#[derive(Default)]
struct Pools {
    homes: HashMap<PoolHome, HomePools>,
    /// By allocation ID.
    allocations: HashMap<u64, PooledAllocation>,
}

fn pools() -> MutexGuard<'static, Pools> {
    static POOLS: OnceLock<Mutex<Pools>> = OnceLock::new();
    POOLS
        .get_or_init(Mutex::default)
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
}

fn pools_of(home: PoolHome) -> HomePools {
    let mut pools = pools();
    *pools.homes.entry(home).or_insert_with(|| {
        let made = TABLE.insert_with(|handle| Pool::new(handle, home, true, 0));
        HomePools {
            default: made.handle,
            current: made.handle,
        }
    })
}

/// Returns the pool with this handle.
pub(crate) fn get(handle: usize) -> Result<Arc<Pool>> {
    let found = TABLE.get(handle);
    found.map_err(|_| Error::CUDA_ERROR_INVALID_VALUE)
}

/// `cuDeviceGetDefaultMemPool`
pub(crate) fn default_of_device(ordinal: i32) -> Result<usize> {
    let home = PoolHome::of_device(device::get(ordinal)?.ordinal);
    Ok(default_of(home))
}

/// `cuDeviceGetMemPool`
pub(crate) fn current_of_device(ordinal: i32) -> Result<usize> {
    let home = PoolHome::of_device(device::get(ordinal)?.ordinal);
    Ok(current_of(home))
}

/// `cuDeviceSetMemPool`
pub(crate) fn set_current_of_device(ordinal: i32, handle: usize) -> Result<()> {
    set_current(PoolHome::of_device(device::get(ordinal)?.ordinal), handle)
}

/// `cuMemGetDefaultMemPool`
pub(crate) fn default_of(home: PoolHome) -> usize {
    pools_of(home).default
}

/// `cuMemGetMemPool`
pub(crate) fn current_of(home: PoolHome) -> usize {
    pools_of(home).current
}

/// `cuMemSetMemPool`
pub(crate) fn set_current(home: PoolHome, handle: usize) -> Result<()> {
    pools_of(home);
    // Locked, so that the pool is not destroyed in the meantime.
    let mut pools = pools();
    if get(handle)?.home != home {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    if let Some(of_this_home) = pools.homes.get_mut(&home) {
        of_this_home.current = handle;
    }
    Ok(())
}

/// `cuMemPoolCreate`; with `shareable`, other processes can import the pool.
pub(crate) fn create(home: PoolHome, most: u64, shareable: bool) -> Result<usize> {
    let shared = if shareable {
        let label = Label {
            purpose: Purpose::Pool,
            number: home.ordinal().unwrap_or(0) as u32,
        };
        Some(SharedFile::new(1, label).ok_or(Error::CUDA_ERROR_OUT_OF_MEMORY)?)
    } else {
        None
    };
    let made = TABLE.insert_with(|handle| Pool {
        shared,
        ..Pool::new(handle, home, false, most)
    });
    leak::note("memory pool", &TABLE, made.handle, None);
    Ok(made.handle)
}

/// `cuMemPoolImportFromShareableHandle`
pub(crate) fn import(descriptor: i32) -> Result<usize> {
    let file = SharedFile::open(descriptor, Purpose::Pool).ok_or_else(|| {
        host::log!("file descriptor {descriptor} is not an exported memory pool");
        memory::not_importable(descriptor, Purpose::Physical)
    })?;
    // If this process does not have the device of the exporting process, the pool is on device 0.
    let ordinal = i32::try_from(file.label().number).unwrap_or(0);
    let ordinal = device::get(ordinal).map_or(0, |device| device.ordinal);
    let made = TABLE.insert_with(|handle| Pool {
        shared: Some(file),
        is_imported: true,
        was_exported: AtomicBool::new(false),
        ..Pool::new(handle, PoolHome::of_device(ordinal), false, 0)
    });
    leak::note("memory pool", &TABLE, made.handle, None);
    Ok(made.handle)
}

/// `cuMemPoolExportPointer`: returns the allocation, which must belong to a pool that was exported, and the identity of
/// the pool's file.
pub(crate) fn exportable(address: u64) -> Result<(Allocation, (u64, u64))> {
    let allocation = memory::find(address).ok_or(Error::CUDA_ERROR_INVALID_VALUE)?;
    let pools = pools();
    let pooled = pools.allocations.get(&allocation.id);
    let pool = pooled.filter(|pooled| pooled.pool.was_exported.load(Acquire));
    let file = pool.and_then(|pooled| pooled.pool.shared.as_ref());
    let file = file.ok_or_else(|| {
        host::log!("{address:#x} does not belong to a memory pool that was exported: export the pool first");
        Error::CUDA_ERROR_INVALID_VALUE
    })?;
    Ok((allocation, file.identity()))
}

/// `cuMemPoolDestroy`: refuses a default pool. The pool's allocations stay valid until they are freed.
pub(crate) fn destroy(handle: usize) -> Result<()> {
    let pool = get(handle)?;
    if pool.is_default {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    let mut pools = pools();
    if let Some(of_this_home) = pools.homes.get_mut(&pool.home)
        && of_this_home.current == handle
    {
        of_this_home.current = of_this_home.default;
    }
    let removed = TABLE.remove(handle);
    removed.map(drop).map_err(|_| Error::CUDA_ERROR_INVALID_VALUE)
}

/// Records the pool of an allocation, and the bytes that were counted for it.
pub(crate) fn add(allocation: &Allocation, pool: Arc<Pool>, bytes: u64) {
    let pooled = PooledAllocation { pool, bytes };
    pools().allocations.insert(allocation.id, pooled);
}

/// Makes an allocation unavailable to other calls, as the first step of freeing it.
pub(crate) fn begin_free(address: u64) -> Result<Allocation> {
    // Locked from the lookup to the insertion, so that `forget` of a concurrent `cuMemFree` cannot run in between: that
    // would leave a record of freed memory.
    let mut pending = pending_free::all();
    let pools = pools();
    let found = address_space().find(address).filter(|a| {
        let ours = match a.kind {
            AllocationKind::Device | AllocationKind::Managed => true,
            AllocationKind::Pinned => pools.allocations.contains_key(&a.id),
            AllocationKind::Mapped => mappings::is_pooled(a),
            _ => false,
        };
        ours && a.base == address && !pending.contains(a)
    });
    let own = found.is_some_and(|a| pools.allocations.contains_key(&a.id));
    if !own && found.is_some_and(|a| a.kind == AllocationKind::Managed) {
        host::log!("{address:#x} is managed memory; use cuMemFree");
        return Err(Error::CUDA_ERROR_NOT_SUPPORTED);
    }
    let allocation = found.ok_or_else(|| {
        host::log!("{address:#x} is not the start of a live allocation that cuMemFreeAsync can free");
        Error::CUDA_ERROR_INVALID_VALUE
    })?;
    pending.insert(&allocation);
    if let Some(PooledAllocation { pool, bytes }) = pools.allocations.get(&allocation.id) {
        pool.count_free_call(*bytes);
    }
    Ok(allocation)
}

/// Removes freed memory from its pool.
pub(crate) fn forget(freed: &Allocation) {
    let mut pending = pending_free::all();
    let mut pools = pools();
    let was_pending = pending.remove(freed);
    if let Some(PooledAllocation { pool, bytes }) = pools.allocations.remove(&freed.id) {
        if !was_pending {
            pool.count_free_call(bytes);
        }
        pool.count_freed(bytes);
    }
}

/// Returns the handle of the pool that memory came from; 0 for none.
pub(crate) fn pool_of(allocation: &Allocation) -> usize {
    let pools = pools();
    let pooled = pools.allocations.get(&allocation.id);
    pooled.map_or(0, |pooled| pooled.pool.handle)
}
