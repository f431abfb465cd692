//! The address space of the process, which makes, finds and frees allocations.

use super::allocation::{Access, Allocation, AllocationKind, BACKING_ALIGN, Freed, HEAP_ALIGN};
use super::epochs::Epochs;
use super::errors::{AlreadyRegistered, NotAnAllocation, OutOfMemory};
use super::index::Index;
use super::pages::{PAGE, Page, PageTable};
use super::record::{Backing, Record};
use super::reserve;
use super::usage::{Quota, Usage};
use super::written::{Written, WrittenMap};
use super::zeroed::Zeroed;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

mod host_view;
mod mapped;
#[cfg(test)]
mod tests;
mod transfer;

/// The address space of the process.
pub struct AddressSpace {
    /// The reserved range that device addresses come from.
    range: Range<u64>,
    /// True if the system has reserved the range, so that nothing else can be mapped there.
    is_reserved: bool,
    index: Mutex<Index>,
    pages: PageTable,
    epochs: Epochs<Arc<Record>>,
    /// Lock order: `index` before `usage`.
    usage: Arc<Usage>,
    /// Bytes past the end of an allocation that kernels may access without a fault; mappings and registered memory have
    /// none.
    slack: u64,
    written: Written,
}

/// Returns the address space of the process. The first call creates it.
///
/// `CUDA_SOFT_SLACK=BYTES` lets kernels access that many bytes, at most 64 KiB, past the end of each allocation except
/// mappings and registered memory, for programs that read past the end where a GPU does not notice.
pub fn address_space() -> &'static AddressSpace {
    static SPACE: OnceLock<AddressSpace> = OnceLock::new();
    SPACE.get_or_init(|| AddressSpace::new(host::environment::slack()))
}

impl AddressSpace {
    fn new(slack: u64) -> Self {
        let (range, is_reserved) = reserve::reserve();
        AddressSpace {
            range: range.clone(),
            is_reserved,
            index: Mutex::new(Index::new(range)),
            pages: PageTable::new(),
            epochs: Epochs::new(),
            usage: Arc::default(),
            slack: slack.min(PAGE),
            written: Written::default(),
        }
    }

    /// Returns true if `address` is in the range that device addresses come from. The host can dereference such an
    /// address only while [`show_to_host`](Self::show_to_host) lets it.
    pub fn reserves(&self, address: u64) -> bool {
        self.range.contains(&address)
    }

    fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Allocates `bytes` zeroed bytes and returns their first address, a multiple of 512. The host provides the memory
    /// as it is touched.
    ///
    /// Registered memory comes from [`register_host`](Self::register_host) instead.
    ///
    /// # Errors
    /// Returns [`OutOfMemory`] if no memory or no addresses are left.
    pub fn alloc(&self, kind: AllocationKind, owner: u64, bytes: u64) -> Result<u64, OutOfMemory> {
        self.allocate(kind, owner, bytes, None)
    }

    /// Allocates like [`alloc`](Self::alloc), within a quota.
    ///
    /// # Errors
    /// As [`alloc`](Self::alloc), and if more than `quota` would be in use.
    pub fn alloc_within(
        &self,
        kind: AllocationKind,
        owner: u64,
        bytes: u64,
        quota: Quota<'_>,
    ) -> Result<u64, OutOfMemory> {
        self.allocate(kind, owner, bytes, Some(quota))
    }

    fn allocate(
        &self,
        kind: AllocationKind,
        owner: u64,
        bytes: u64,
        quota: Option<Quota<'_>>,
    ) -> Result<u64, OutOfMemory> {
        self.usage.charge(kind, owner, bytes, quota)?;
        self.place(kind, owner, bytes).ok_or_else(|| {
            self.usage.refund(kind, owner, bytes);
            OutOfMemory { bytes, limit: None }
        })
    }

    fn place(&self, kind: AllocationKind, owner: u64, bytes: u64) -> Option<u64> {
        let mut length = bytes.checked_add(self.slack)?;
        let align = match kind {
            AllocationKind::Heap => HEAP_ALIGN,
            _ if kind.is_host_accessible() => PAGE,
            _ => BACKING_ALIGN,
        };
        if kind.is_host_accessible() {
            // `adopt` relies on whole pages.
            length = length.checked_next_multiple_of(PAGE)?;
        }
        let backing = Zeroed::new(length, align)?;
        self.adopt(kind, owner, bytes, backing)
    }

    /// Makes an allocation of new host memory, which has at least `bytes` bytes plus the slack.
    fn adopt(&self, kind: AllocationKind, owner: u64, bytes: u64, backing: Zeroed) -> Option<u64> {
        let length = bytes + self.slack;
        let host = backing.address() as u64;
        let bits = self.written.bits_for(kind, bytes);
        let mut index = self.index();
        let base = if kind.is_host_accessible() {
            host
        } else {
            index.free.take(length)?
        };
        // A host-accessible backing is whole pages. If some of them are registered, the program has freed the memory
        // that it registered there, and the registration is stale. Other backings do not prove this: programs register
        // the pages around a block of the host's heap, where other blocks are allocated and freed.
        let stale = if kind.is_host_accessible() {
            index.overlapping(host, host + length)
        } else {
            Vec::new()
        };
        for record in &stale {
            self.take_off(&mut index, record);
        }
        let info = index.describe(base, bytes, kind, owner);
        let backing = Backing::Own { _memory: backing };
        let record = Record::new(info, host, length, backing);
        let covered = self.pages.insert(base, length, Arc::as_ptr(&record));
        if covered {
            index.records.insert(base, record);
            if let Some(bits) = bits {
                self.written.track(base, bytes, bits);
            }
        } else if !kind.is_host_accessible() {
            index.free.give(base, length);
        }
        drop(index);
        for record in stale {
            let Allocation { base, bytes, .. } = *record.info();
            host::log!(
                "the program freed the {bytes} bytes of host memory at {base:#x} while they were registered: the \
                 registration ends; call cuMemHostUnregister before freeing the memory"
            );
            self.epochs.retire(record);
        }
        covered.then_some(base)
    }

    /// Frees the allocation that starts at `address`. New accesses no longer find it. The backing is released when no
    /// work that might access it is in flight.
    ///
    /// # Errors
    /// Returns an error if `address` is not the first address of a live allocation or mapping, or if it is registered.
    pub fn free(&self, address: u64) -> Result<Freed, NotAnAllocation> {
        self.free_if(address, |a| a.kind != AllocationKind::Registered)
    }

    /// Frees the allocation that starts at `address`, or ends the registration, if `is_meant` accepts it. The check
    /// matters because another thread may have freed the intended allocation, and a new one may have got its address.
    ///
    /// # Errors
    /// Returns an error if no allocation starts at `address`, or if `is_meant` returned false.
    pub fn free_if(&self, address: u64, is_meant: impl Fn(&Allocation) -> bool) -> Result<Freed, NotAnAllocation> {
        let mut index = self.index();
        let record = match index.records.get(&address) {
            Some(record) if is_meant(record.info()) => Arc::clone(record),
            _ => {
                return Err(NotAnAllocation {
                    address,
                    inside: index.containing(address).map(|r| *r.info()),
                });
            }
        };
        self.take_off(&mut index, &record);
        drop(index);
        let info = *record.info();
        let epoch = self.epochs.retire(record);
        if info.kind == AllocationKind::Registered {
            // The program may free the memory as soon as this call returns.
            self.epochs.wait(epoch);
        }
        Ok(info)
    }

    /// Removes an allocation from the index and the pages. The caller still has to retire its record.
    fn take_off(&self, index: &mut Index, record: &Arc<Record>) {
        let Allocation {
            base,
            bytes,
            kind,
            owner,
            ..
        } = *record.info();
        index.records.remove(&base);
        self.written.forget(base);
        record.set_accessible(false);
        let length = record.full_length();
        self.pages.remove(base, length, Arc::as_ptr(record));
        self.usage.refund(kind, owner, bytes);
        // The addresses of mappings stay reserved.
        if !kind.is_host_accessible() && kind != AllocationKind::Mapped {
            index.free.give(base, length);
        }
    }

    /// Frees all allocations of one owner, registrations included, and returns them.
    pub fn free_owned(&self, owner: u64) -> Vec<Freed> {
        let owned: Vec<Allocation> = {
            let index = self.index();
            let all = index.records.values().map(|r| *r.info());
            all.filter(|a| a.owner == owner).collect()
        };
        owned
            .into_iter()
            .filter_map(|a| self.free_if(a.base, |found| found.id == a.id).ok())
            .collect()
    }

    /// Lets kernels use `bytes` bytes of the program's own memory at `address`, under the same address; with
    /// `read_only` they may only read it.
    ///
    /// # Safety
    /// The memory must stay valid for reads, and unless `read_only` for writes, until [`unregister`](Self::unregister)
    /// has returned.
    ///
    /// # Errors
    /// Returns an error if the range is empty, overlaps an allocation or a registered range, or has addresses that no
    /// device address can have.
    pub unsafe fn register_host(
        &self,
        address: *mut u8,
        bytes: u64,
        owner: u64,
        read_only: bool,
    ) -> Result<u64, AlreadyRegistered> {
        let base = address as u64;
        let refused = AlreadyRegistered { address: base, bytes };
        let mut index = self.index();
        let end = base.checked_add(bytes).ok_or(refused)?;
        if bytes == 0 || !index.overlapping(base, end).is_empty() {
            return Err(refused);
        }
        let info = Allocation {
            access: if read_only { Access::Read } else { Access::ReadWrite },
            ..index.describe(base, bytes, AllocationKind::Registered, owner)
        };
        let record = Record::new(info, base, bytes, Backing::Program);
        if !self.pages.insert(base, bytes, Arc::as_ptr(&record)) {
            return Err(refused);
        }
        index.records.insert(base, record);
        Ok(base)
    }

    /// Ends a registration. Waits for work in flight that may access the memory.
    ///
    /// # Errors
    /// Returns an error if `address` is not the start of a registered range.
    pub fn unregister(&self, address: *mut u8) -> Result<Freed, NotAnAllocation> {
        self.free_if(address as u64, |a| a.kind == AllocationKind::Registered)
    }

    /// Returns the reachable allocation that contains `address`.
    pub fn find(&self, address: u64) -> Option<Allocation> {
        let index = self.index();
        let found = index.containing(address);
        let found = found.filter(|record| !record.is_unreachable());
        found.map(|r| *r.info())
    }

    /// Makes the allocation that starts at `address` unreachable, or reachable again. An unreachable allocation behaves
    /// as if it were freed, but keeps its address and its bytes. Does nothing if no allocation starts there.
    pub fn set_reachable(&self, address: u64, reachable: bool) {
        if let Some(record) = self.index().records.get(&address) {
            record.set_accessible(reachable);
        }
    }

    /// Returns the allocation that contains `address`, or the last one below it: for messages.
    pub fn nearest(&self, address: u64) -> Option<Allocation> {
        self.index()
            .records
            .range(..=address)
            .next_back()
            .map(|(_, r)| *r.info())
    }

    /// Returns the number of bytes of device memory that these owners have in use.
    pub fn device_bytes(&self, owners: &[u64]) -> u64 {
        self.usage.device_bytes(owners)
    }

    /// Tracks which bytes of new allocations are written, until the returned value is dropped.
    pub(crate) fn track_writes(&'static self) -> TrackedWrites {
        self.written.begin();
        TrackedWrites(self)
    }

    /// Returns the tracked allocation that contains an address, or `None` if the memory counts as written.
    pub(crate) fn written_map(&self, address: u64) -> Option<Arc<WrittenMap>> {
        self.written.find(address)
    }

    /// Returns the parts of a range that do not count as written, as offsets from its start. They are known only while
    /// a checker needs them.
    pub fn unwritten(&self, address: u64, bytes: u64) -> Vec<Range<u64>> {
        self.written.gaps(address, bytes)
    }

    /// Records that a range does not count as written: a copy wrote bytes to it that did not.
    pub fn mark_unwritten(&self, address: u64, bytes: u64) {
        self.written.unmark(address, bytes);
    }

    /// Records the place in the program that made an allocation, for reports.
    pub fn set_origin(&self, base: u64, origin: String) {
        self.written.set_origin(base, origin);
    }

    /// Returns the place in the program that made the allocation with this first address, if it was recorded.
    pub(crate) fn origin(&self, base: u64) -> Option<String> {
        self.written.origin(base)
    }

    /// Marks the start of work that accesses device memory; dropping the returned value marks its end. Memory that is
    /// freed in between cannot be looked up any more, but records that the work has already stay valid.
    pub(crate) fn enter(&'static self) -> InFlight {
        InFlight {
            space: self,
            epoch: self.epochs.enter(),
        }
    }
}

impl fmt::Debug for AddressSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AddressSpace")
            .field("allocations", &self.index().records.len())
            .finish_non_exhaustive()
    }
}

/// The tracking of writes: see [`AddressSpace::track_writes`].
#[derive(Debug)]
pub(crate) struct TrackedWrites(&'static AddressSpace);

impl Drop for TrackedWrites {
    fn drop(&mut self) {
        self.0.written.end();
    }
}

/// Work in flight that accesses device memory: see [`AddressSpace::enter`].
pub(crate) struct InFlight {
    space: &'static AddressSpace,
    epoch: u64,
}

impl InFlight {
    /// Returns the allocation that contains `address`. Without one, returns `None` or an allocation on the same page.
    /// Another thread may free the allocation at any time; then its length is 0.
    #[inline]
    pub(crate) fn lookup(&self, address: u64) -> Option<&Record> {
        match self.space.pages.get(address) {
            Page::Empty => None,
            // SAFETY: a record is taken off the table before it is retired, and a record that is retired while `self`
            // lives is kept until `self` is dropped.
            Page::One(record) => Some(unsafe { &*record }),
            Page::Mixed => self.lookup_mixed(address),
        }
    }

    #[cold]
    fn lookup_mixed(&self, address: u64) -> Option<&Record> {
        let record = Arc::as_ptr(self.space.index().containing(address)?);
        // SAFETY: the record was in the index, so it was not retired before `self` was created. If it is retired now,
        // it is kept until `self` is dropped.
        Some(unsafe { &*record })
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.space.epochs.leave(self.epoch);
    }
}

impl fmt::Debug for InFlight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InFlight")
            .field("epoch", &self.epoch)
            .finish_non_exhaustive()
    }
}
