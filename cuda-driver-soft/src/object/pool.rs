//! Memory pools: who allocations in the order of a stream are counted for.
//!
//! The memory is there when the call returns. To free it takes two steps: from the call on it is gone for other calls, and
//! no longer used; when its stream has come so far, it is gone for work, too. A pool keeps nothing for later, since getting
//! memory costs nothing here; what it says that it reserves is what a GPU's would, which goes back to the device when
//! somebody synchronises.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use cuda_driver_sys::CUmemPool_attribute as Id;

use crate::object::managed::Location;
use crate::object::{device, ipc, leaving, memory};
use crate::state::error::{Error, Result};
use crate::state::handle::{HandleKind, Table};
use crate::state::settings;
use engine::memory::shared::{Label, Purpose, SharedFile};
use engine::memory::{Allocation, Kind, space};

static TABLE: Table<Pool> = Table::new(HandleKind::Pool);

/// What a pool takes from the device at a time, in bytes.
const CHUNK: u64 = 32 << 20;

/// A pool.
#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) handle: usize,
    pub(crate) home: Home,
    /// The one that was there from the start.
    is_default: bool,
    /// What other processes have it by: that it was made to be exported.
    shared: Option<SharedFile>,
    /// Another process's: it hands nothing out here.
    pub(crate) is_imported: bool,
    /// Bytes that it may hand out; 0 for no limit.
    pub(crate) most: u64,
    state: Mutex<PoolState>,
}

/// Where a pool's memory is, and of what kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Home {
    /// `None`: of managed memory, anywhere.
    pub(crate) location: Option<Location>,
    pub(crate) is_managed: bool,
}

impl Home {
    /// That of plain memory of a device.
    fn of_device(ordinal: i32) -> Self {
        Home {
            location: Some(Location::Device(ordinal)),
            is_managed: false,
        }
    }

    /// The device that the memory is of.
    fn ordinal(self) -> Option<i32> {
        match self.location {
            Some(Location::Device(ordinal)) => Some(ordinal),
            _ => None,
        }
    }

    pub(crate) fn kind(self) -> Kind {
        match (self.is_managed, self.ordinal()) {
            (true, _) => Kind::Managed,
            (false, Some(_)) => Kind::Device,
            (false, None) => Kind::Pinned,
        }
    }

    /// What may be done from a place before anybody has said so, as `CUmemAccess_flags`; `None` is the host.
    fn first_access(self, from: Option<i32>) -> u32 {
        if !self.is_managed && self.ordinal() == from {
            3
        } else {
            0
        }
    }
}

/// What of a pool changes.
#[derive(Debug)]
struct PoolState {
    /// Whether memory may be handed out again after an event, by luck, and with dependencies of the pool's own making. Kept
    /// only to be asked for: memory is always there.
    reuse: [i32; 3],
    threshold: u64,
    /// What was asked for, and not yet asked to be freed.
    used: Level,
    /// Bytes that no stream has freed yet.
    held: u64,
    reserved: Level,
    /// What devices may do with it, and under `None` the host.
    access: HashMap<Option<i32>, u32>,
}

/// Bytes now, and at most so far.
#[derive(Clone, Copy, Debug, Default)]
struct Level {
    now: u64,
    high: u64,
}

impl Level {
    fn set(&mut self, now: u64) {
        self.now = now;
        self.high = self.high.max(now);
    }
}

/// A number that an attribute of a pool has, with its size.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AttributeValue {
    Int(i32),
    Bytes(u64),
}

/// The place of an attribute in [`PoolState::reuse`].
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

    fn new(handle: usize, home: Home, is_default: bool, most: u64) -> Self {
        Pool {
            handle,
            home,
            is_default,
            shared: None,
            is_imported: false,
            most,
            state: Mutex::new(PoolState {
                reuse: [1; 3],
                threshold: 0,
                used: Level::default(),
                held: 0,
                reserved: Level::default(),
                access: HashMap::new(),
            }),
        }
    }

    /// Counts an allocation, if there is room for it.
    pub(crate) fn take(&self, bytes: u64) -> Result<()> {
        let mut state = self.state();
        let used = state.used.now.checked_add(bytes);
        let used = used.filter(|&used| self.most == 0 || used <= self.most);
        let used = used.ok_or_else(|| {
            host::log!("a pool of {} bytes has no room for {bytes}", self.most);
            Error::CUDA_ERROR_OUT_OF_MEMORY
        })?;
        state.used.set(used);
        state.held += bytes;
        let reserved = state.reserved.now.max(used.next_multiple_of(CHUNK));
        state.reserved.set(reserved);
        Ok(())
    }

    /// Memory that is used no more.
    fn leave(&self, bytes: u64) {
        let mut state = self.state();
        state.used.now = state.used.now.saturating_sub(bytes);
    }

    /// Memory that is free.
    fn give(&self, bytes: u64) {
        let mut state = self.state();
        state.held = state.held.saturating_sub(bytes);
        UNSETTLED.fetch_add(1, Release);
    }

    /// `cuMemPoolTrimTo`
    pub(crate) fn trim(&self, keep: u64) {
        self.state().trim(keep);
    }

    /// `cuMemPoolGetAttribute`
    pub(crate) fn attribute(&self, attribute: Id) -> Result<AttributeValue> {
        use AttributeValue::{Bytes, Int};
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

    /// Attributes since CUDA 13.2.
    fn newer_attribute(&self, attribute: Id) -> Result<AttributeValue> {
        use AttributeValue::{Bytes, Int};
        if settings::version() < 13020 {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
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

    /// `cuMemPoolSetAttribute`; `int` and `bytes` read the caller's value, of the attribute's type.
    pub(crate) fn set_attribute(
        &self,
        attribute: Id,
        int: impl FnOnce() -> Result<i32>,
        bytes: impl FnOnce() -> Result<u64>,
    ) -> Result<()> {
        // A high-water mark can only begin anew.
        let nothing = |bytes: u64| {
            (bytes == 0)
                .then_some(())
                .ok_or(Error::CUDA_ERROR_INVALID_VALUE)
        };
        match attribute {
            Id::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD => {
                let value = bytes()?;
                self.state().threshold = value;
                UNSETTLED.fetch_add(1, Release);
            }
            Id::CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH => {
                nothing(bytes()?)?;
                let mut state = self.state();
                state.reserved.high = state.reserved.now;
            }
            Id::CU_MEMPOOL_ATTR_USED_MEM_HIGH => {
                nothing(bytes()?)?;
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

    /// Whether other processes can have its memory.
    pub(crate) fn is_shareable(&self) -> bool {
        self.shared.is_some() && !self.is_imported
    }

    /// `cuMemPoolExportToShareableHandle`: a file descriptor, which is the caller's.
    pub(crate) fn export(&self) -> Result<i32> {
        let shared = self.shared.as_ref().filter(|_| !self.is_imported);
        let shared = shared.ok_or_else(|| {
            host::log!("this pool was not made to be exported");
            Error::CUDA_ERROR_INVALID_VALUE
        })?;
        shared.export().ok_or(Error::CUDA_ERROR_OPERATING_SYSTEM)
    }

    /// `cuMemPoolSetAccess`: by device, 0 for nothing, 3 for reading and writing. All or none.
    pub(crate) fn set_access(&self, wishes: &[(Option<i32>, u32)]) -> Result<()> {
        for &(from, flags) in wishes {
            if let Some(ordinal) = from {
                device::get(ordinal)?;
            }
            let own = self.home.first_access(from) != 0;
            if !matches!(flags, 0 | 3) || (own && flags == 0) {
                return Err(Error::CUDA_ERROR_INVALID_VALUE);
            }
        }
        self.state().access.extend(wishes.iter().copied());
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
        let least = self.held.next_multiple_of(CHUNK);
        self.reserved.now = self.reserved.now.min(keep.max(least));
    }
}

/// How often a pool came to reserve more than it may have to keep, and up to which of these times pools were looked after.
static UNSETTLED: AtomicU64 = AtomicU64::new(0);
static SETTLED: AtomicU64 = AtomicU64::new(0);

/// Somebody has synchronised: pools give back what is free, beyond what they are to keep. What was free before the call is
/// given back when it returns, also if several threads synchronise at once.
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

/// The pools of a device, or of another place.
#[derive(Clone, Copy, Debug)]
struct OfHome {
    default: usize,
    current: usize,
}

/// Whose an allocation is.
struct Pooled {
    pool: Arc<Pool>,
    bytes: u64,
}

#[derive(Default)]
struct Pools {
    homes: HashMap<Home, OfHome>,
    /// By the allocation's number.
    allocations: HashMap<u64, Pooled>,
}

fn pools() -> MutexGuard<'static, Pools> {
    static POOLS: OnceLock<Mutex<Pools>> = OnceLock::new();
    POOLS
        .get_or_init(Mutex::default)
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
}

fn of_home(home: Home) -> OfHome {
    let mut pools = pools();
    *pools.homes.entry(home).or_insert_with(|| {
        let made = TABLE.insert_with(|handle| Pool::new(handle, home, true, 0));
        OfHome {
            default: made.handle,
            current: made.handle,
        }
    })
}

/// The living pool of this handle.
pub(crate) fn get(handle: usize) -> Result<Arc<Pool>> {
    let found = TABLE.get(handle);
    found.map_err(|_| Error::CUDA_ERROR_INVALID_VALUE)
}

/// `cuDeviceGetDefaultMemPool`
pub(crate) fn default_of_device(ordinal: i32) -> Result<usize> {
    let home = Home::of_device(device::get(ordinal)?.ordinal);
    Ok(default_of(home))
}

/// `cuDeviceGetMemPool`
pub(crate) fn current_of_device(ordinal: i32) -> Result<usize> {
    let home = Home::of_device(device::get(ordinal)?.ordinal);
    Ok(current_of(home))
}

/// `cuDeviceSetMemPool`
pub(crate) fn set_current_of_device(ordinal: i32, handle: usize) -> Result<()> {
    set_current(Home::of_device(device::get(ordinal)?.ordinal), handle)
}

/// `cuMemGetDefaultMemPool`
pub(crate) fn default_of(home: Home) -> usize {
    of_home(home).default
}

/// `cuMemGetMemPool`
pub(crate) fn current_of(home: Home) -> usize {
    of_home(home).current
}

/// `cuMemSetMemPool`
pub(crate) fn set_current(home: Home, handle: usize) -> Result<()> {
    of_home(home);
    // Held, so that the pool is not destroyed meanwhile.
    let mut pools = pools();
    if get(handle)?.home != home {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    if let Some(of_home) = pools.homes.get_mut(&home) {
        of_home.current = handle;
    }
    Ok(())
}

/// `cuMemPoolCreate`; with `shareable`, other processes can have the memory.
pub(crate) fn create(home: Home, most: u64, shareable: bool) -> Result<usize> {
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
    Ok(made.handle)
}

/// `cuMemPoolImportFromShareableHandle`
pub(crate) fn import(descriptor: i32) -> Result<usize> {
    let file = SharedFile::open(descriptor, Purpose::Pool).ok_or_else(|| {
        host::log!("{descriptor} is no descriptor of a pool");
        Error::CUDA_ERROR_INVALID_VALUE
    })?;
    let ordinal = i32::try_from(file.label().number).unwrap_or(0);
    let ordinal = device::get(ordinal).map_or(0, |device| device.ordinal);
    let made = TABLE.insert_with(|handle| Pool {
        shared: Some(file),
        is_imported: true,
        ..Pool::new(handle, Home::of_device(ordinal), false, 0)
    });
    Ok(made.handle)
}

/// `cuMemPoolExportPointer`: the allocation that the pointer is of must be one of a pool that can be exported.
pub(crate) fn exportable(address: u64) -> Result<Allocation> {
    let allocation = memory::find(address).ok_or(Error::CUDA_ERROR_INVALID_VALUE)?;
    let pools = pools();
    let pooled = pools.allocations.get(&allocation.id);
    if pooled.is_some_and(|pooled| pooled.pool.is_shareable()) {
        Ok(allocation)
    } else {
        host::log!("{address:#x} is not of a pool that was made to be exported");
        Err(Error::CUDA_ERROR_INVALID_VALUE)
    }
}

/// `cuMemPoolDestroy`: what it handed out stays until it is freed.
pub(crate) fn destroy(handle: usize) -> Result<()> {
    let pool = get(handle)?;
    if pool.is_default {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    let mut pools = pools();
    if let Some(of_home) = pools.homes.get_mut(&pool.home)
        && of_home.current == handle
    {
        of_home.current = of_home.default;
    }
    let removed = TABLE.remove(handle);
    removed
        .map(drop)
        .map_err(|_| Error::CUDA_ERROR_INVALID_VALUE)
}

/// Notes that an allocation is counted for a pool.
pub(crate) fn add(allocation: &Allocation, pool: Arc<Pool>, bytes: u64) {
    let pooled = Pooled { pool, bytes };
    pools().allocations.insert(allocation.id, pooled);
}

/// From here on memory is gone for other calls.
pub(crate) fn begin_free(address: u64) -> Result<Allocation> {
    // Held from the look to the note: whoever frees it meanwhile forgets it after that.
    let mut leaving = leaving::all();
    let pools = pools();
    let found = space().find(address).filter(|a| {
        let ours = match a.kind {
            Kind::Device | Kind::Managed => true,
            Kind::Pinned => pools.allocations.contains_key(&a.id),
            Kind::Mapped => ipc::is_pooled(a),
            _ => false,
        };
        ours && a.base == address && !leaving.contains(a)
    });
    let own = found.is_some_and(|a| pools.allocations.contains_key(&a.id));
    if !own && found.is_some_and(|a| a.kind == Kind::Managed) {
        host::log!("{address:#x} is managed memory, which cuMemFree frees");
        return Err(Error::CUDA_ERROR_NOT_SUPPORTED);
    }
    let allocation = found.ok_or_else(|| {
        host::log!("{address:#x} is not the start of memory that this call can free");
        Error::CUDA_ERROR_INVALID_VALUE
    })?;
    leaving.insert(&allocation);
    if let Some(Pooled { pool, bytes }) = pools.allocations.get(&allocation.id) {
        pool.leave(*bytes);
    }
    Ok(allocation)
}

/// Memory that is freed is not its pool's any more.
pub(crate) fn forget(freed: &Allocation) {
    let mut leaving = leaving::all();
    let mut pools = pools();
    let left = leaving.remove(freed);
    if let Some(Pooled { pool, bytes }) = pools.allocations.remove(&freed.id) {
        if !left {
            pool.leave(bytes);
        }
        pool.give(bytes);
    }
}

/// The pool that memory came from; 0 for none.
pub(crate) fn pool_of(allocation: &Allocation) -> usize {
    let pools = pools();
    let pooled = pools.allocations.get(&allocation.id);
    pooled.map_or(0, |pooled| pooled.pool.handle)
}
