//! The address space: allocations, and checked access to them from the host's side.

use super::epochs::Epochs;
use super::errors::{AlreadyRegistered, BadRange, NotAnAllocation, OutOfMemory};
use super::pages::{PAGE, Page, PageTable};
use super::reserve;
use super::zeroed::Zeroed;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Bound, Range};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

/// Alignment in bytes of every backing: what vector accesses and `.align` of variables need.
const BACKING_ALIGN: u64 = 512;
/// The same for what kernels allocate: that of `malloc`. Its sizes are counted in these units.
const HEAP_ALIGN: u64 = 16;

/// What an allocation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Device memory: `cuMemAlloc` and its like.
    Device,
    /// Managed memory: one address for host and device.
    Managed,
    /// Page-locked host memory that the driver allocated.
    Pinned,
    /// Host memory of the program that was registered.
    Registered,
    /// A `.global` variable of a loaded module.
    Global,
    /// A `.const` variable of a loaded module.
    Constant,
    /// What a kernel got from `malloc`.
    Heap,
    /// Texels of an array.
    Array,
    /// A mapping of [`Physical`] memory.
    Mapped,
}

/// What an allocation may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// Nothing.
    None,
    /// To be read.
    Read,
    /// To be read and written.
    ReadWrite,
}

impl Kind {
    /// The host may dereference addresses of this kind: they are the addresses of the backing.
    pub fn is_host_accessible(self) -> bool {
        matches!(self, Kind::Managed | Kind::Pinned | Kind::Registered)
    }

    /// What an allocation of this kind is taken from, and counted in.
    fn pool(self) -> Option<Pool> {
        match self {
            Kind::Device | Kind::Managed | Kind::Global | Kind::Constant | Kind::Array => {
                Some(Pool::Device)
            }
            Kind::Heap => Some(Pool::Heap),
            // What is mapped was counted when it was made.
            Kind::Pinned | Kind::Registered | Kind::Mapped => None,
        }
    }

    fn align(self) -> u64 {
        match self {
            Kind::Heap => HEAP_ALIGN,
            _ if self.is_host_accessible() => PAGE,
            _ => BACKING_ALIGN,
        }
    }
}

/// Memory of which there is only so much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Pool {
    /// The device's memory.
    Device,
    /// What a context has set aside for kernels that allocate.
    Heap,
}

/// How much may be in use once an allocation is made: device memory, or for [`Kind::Heap`] memory of the heap.
#[derive(Clone, Copy, Debug)]
pub struct Quota<'a> {
    /// Whose allocations count.
    pub owners: &'a [u64],
    /// Bytes that they may have together.
    pub most: u64,
}

/// What is known of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// First address.
    pub base: u64,
    /// Length in bytes, as asked for.
    pub bytes: u64,
    /// Different for each allocation of the process.
    pub id: u64,
    /// What it is.
    pub kind: Kind,
    /// The context that it belongs to, as given to [`AddressSpace::alloc`].
    pub owner: u64,
    /// What kernels and copies may do there.
    pub access: Access,
}

/// An allocation that was freed.
pub type Freed = Allocation;

/// An allocation, as those who access it see it.
#[derive(Debug)]
pub struct Record {
    info: Allocation,
    /// Backing address minus device address, wrapping.
    delta: u64,
    /// Bytes that may be accessed; 0 once freed, and while the allocation is out of reach.
    length: AtomicU64,
    /// What [`length`](Self::length) is when it is not 0.
    whole: u64,
    backing: Backing,
}

/// Memory that goes when its record goes.
#[derive(Debug)]
enum Backing {
    Own {
        _memory: Zeroed,
    },
    /// That of other mappings, too.
    Physical(Arc<Physical>),
    /// Registered memory is the program's own.
    Program,
}

impl Record {
    fn new(info: Allocation, host: u64, length: u64, backing: Backing) -> Arc<Self> {
        Arc::new(Record {
            info,
            delta: host.wrapping_sub(info.base),
            length: AtomicU64::new(length),
            whole: length,
            backing,
        })
    }

    /// A mapping; what nobody may access has no bytes for them.
    fn mapped(info: Allocation, host: u64, physical: &Arc<Physical>) -> Arc<Self> {
        let backing = Backing::Physical(Arc::clone(physical));
        let record = Self::new(info, host, info.bytes, backing);
        if info.access == Access::None {
            record.length.store(0, Ordering::Relaxed);
        }
        record
    }

    /// Whether it is as if it were freed; see [`AddressSpace::set_reachable`].
    fn is_out_of_reach(&self) -> bool {
        self.length() == 0 && self.whole > 0 && self.info.kind != Kind::Mapped
    }

    fn physical(&self) -> Option<&Arc<Physical>> {
        match &self.backing {
            Backing::Physical(physical) => Some(physical),
            Backing::Own { .. } | Backing::Program => None,
        }
    }

    /// What is known of the allocation.
    pub fn info(&self) -> &Allocation {
        &self.info
    }

    /// First address.
    #[inline]
    pub fn base(&self) -> u64 {
        self.info.base
    }

    /// Bytes that may be accessed from [`base`](Self::base) on; 0 once freed.
    #[inline]
    pub fn length(&self) -> u64 {
        self.length.load(Ordering::Relaxed)
    }

    /// Whether kernels may write to it.
    #[inline]
    pub fn is_writable(&self) -> bool {
        self.info.access == Access::ReadWrite
    }

    /// What to add to an address of the allocation, wrapping, to get the address of its byte on the host.
    #[inline]
    pub fn delta(&self) -> u64 {
        self.delta
    }
}

/// The address space of the process.
pub struct AddressSpace {
    /// Where device memory comes from.
    range: Range<u64>,
    index: Mutex<Index>,
    pages: PageTable,
    epochs: Epochs<Arc<Record>>,
    /// Bytes past the end of an allocation that kernels may touch unpunished.
    slack: u64,
}

struct Index {
    /// By first address.
    records: BTreeMap<u64, Arc<Record>>,
    /// Free parts of the reserved range: start → end.
    free: BTreeMap<u64, u64>,
    /// Where the next search in `free` starts: freed addresses come back late.
    cursor: u64,
    next_id: u64,
    /// Bytes in use, by owner.
    usage: BTreeMap<(u64, Pool), u64>,
}

/// The address space of the process, made when first asked for.
///
/// `CUDA_SOFT_SLACK=BYTES` lets kernels touch that many bytes past the end of each allocation, for programs that
/// over-read where a GPU does not notice.
pub fn space() -> &'static AddressSpace {
    static SPACE: OnceLock<AddressSpace> = OnceLock::new();
    SPACE.get_or_init(|| AddressSpace::new(host::environment::slack()))
}

impl AddressSpace {
    fn new(slack: u64) -> Self {
        let range = reserve::reserve();
        AddressSpace {
            range: range.clone(),
            index: Mutex::new(Index {
                records: BTreeMap::new(),
                free: BTreeMap::from([(range.start, range.end)]),
                cursor: range.start,
                next_id: 1,
                usage: BTreeMap::new(),
            }),
            pages: PageTable::new(),
            epochs: Epochs::new(),
            slack: slack.min(PAGE),
        }
    }

    /// Whether device memory could lie at `address`: the host cannot dereference such an address, living or freed.
    pub fn reserves(&self, address: u64) -> bool {
        self.range.contains(&address)
    }

    fn index(&self) -> MutexGuard<'_, Index> {
        self.index
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Allocates `bytes` bytes, zeroed, at an address that is a multiple of 512. The host provides the memory as it is
    /// touched.
    ///
    /// # Errors
    /// No memory, or no addresses, left. Registered memory is not allocated here: [`register_host`](Self::register_host).
    pub fn alloc(&self, kind: Kind, owner: u64, bytes: u64) -> Result<u64, OutOfMemory> {
        self.allocate(kind, owner, bytes, None)
    }

    /// [`alloc`](Self::alloc), unless more than `quota` would then be in use.
    ///
    /// # Errors
    /// As [`alloc`](Self::alloc), and that.
    pub fn alloc_within(
        &self,
        kind: Kind,
        owner: u64,
        bytes: u64,
        quota: Quota<'_>,
    ) -> Result<u64, OutOfMemory> {
        self.allocate(kind, owner, bytes, Some(quota))
    }

    fn allocate(
        &self,
        kind: Kind,
        owner: u64,
        bytes: u64,
        quota: Option<Quota<'_>>,
    ) -> Result<u64, OutOfMemory> {
        self.index().charge(kind, owner, bytes, quota)?;
        self.place(kind, owner, bytes).ok_or_else(|| {
            self.index().refund(kind, owner, bytes);
            OutOfMemory { bytes, limit: None }
        })
    }

    fn place(&self, kind: Kind, owner: u64, bytes: u64) -> Option<u64> {
        let mut length = bytes.checked_add(self.slack)?;
        if kind.is_host_accessible() {
            // Whole pages of the system's: see `adopt`.
            length = length.checked_next_multiple_of(PAGE)?;
        }
        let backing = Zeroed::new(length, kind.align())?;
        self.adopt(kind, owner, bytes, backing)
    }

    /// Makes an allocation of memory that the host gave out just now: `bytes` bytes, and those of the slack.
    fn adopt(&self, kind: Kind, owner: u64, bytes: u64, backing: Zeroed) -> Option<u64> {
        let length = bytes + self.slack;
        let host = backing.address() as u64;
        let mut index = self.index();
        let base = if kind.is_host_accessible() {
            host
        } else {
            index.take(length)?
        };
        // Where the address is the host's, the host gave out whole pages that are registered: the program has freed what it
        // registered there. Other backings prove nothing: programs register the pages around a block of the heap, and its
        // neighbours there come and go.
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
        let known = self.pages.insert(base, length, Arc::as_ptr(&record));
        if known {
            index.records.insert(base, record);
        } else if !kind.is_host_accessible() {
            index.give(base, length);
        }
        drop(index);
        for record in stale {
            let Allocation { base, bytes, .. } = record.info;
            host::log!(
                "{bytes} bytes at {base:#x} are registered, but the program has freed them: the registration ends"
            );
            self.epochs.retire(record);
        }
        known.then_some(base)
    }

    /// Frees the allocation that starts at `address`. Its memory is given back when no work is in flight that might
    /// still touch it; from now on such work finds nothing here.
    ///
    /// # Errors
    /// `address` is not the first address of something that [`alloc`](Self::alloc) made and nobody freed.
    pub fn free(&self, address: u64) -> Result<Freed, NotAnAllocation> {
        self.free_if(address, |a| a.kind != Kind::Registered)
    }

    /// Frees the allocation that starts at `address`, or ends the registration, if it is the one that is meant: another
    /// thread may have freed it, and got the address for something else.
    ///
    /// # Errors
    /// No allocation starts at `address`, or `is_meant` says no.
    pub fn free_if(
        &self,
        address: u64,
        is_meant: impl Fn(&Allocation) -> bool,
    ) -> Result<Freed, NotAnAllocation> {
        let mut index = self.index();
        let record = match index.records.get(&address) {
            Some(record) if is_meant(&record.info) => Arc::clone(record),
            _ => {
                return Err(NotAnAllocation {
                    address,
                    inside: index.containing(address).map(|r| r.info),
                });
            }
        };
        self.take_off(&mut index, &record);
        drop(index);
        let info = record.info;
        let epoch = self.epochs.retire(record);
        if info.kind == Kind::Registered {
            // The memory is the program's: once this returns it may be gone.
            self.epochs.wait(epoch);
        }
        Ok(info)
    }

    /// Takes an allocation off the index and the pages. It is still to be retired.
    fn take_off(&self, index: &mut Index, record: &Arc<Record>) {
        let Allocation {
            base,
            bytes,
            kind,
            owner,
            ..
        } = record.info;
        index.records.remove(&base);
        record.length.store(0, Ordering::SeqCst);
        let length = record.whole;
        self.pages.remove(base, length, Arc::as_ptr(record));
        index.refund(kind, owner, bytes);
        // The addresses of mappings stay reserved.
        if !kind.is_host_accessible() && kind != Kind::Mapped {
            index.give(base, length);
        }
    }

    /// Frees all allocations of one owner, registrations included, and says which.
    pub fn free_owned(&self, owner: u64) -> Vec<Freed> {
        let owned: Vec<Allocation> = {
            let index = self.index();
            let all = index.records.values().map(|r| r.info);
            all.filter(|a| a.owner == owner).collect()
        };
        owned
            .into_iter()
            .filter_map(|a| self.free_if(a.base, |found| found.id == a.id).ok())
            .collect()
    }

    /// Lets kernels use `bytes` bytes of the program's own memory at `address`, under the same address; with `read_only`
    /// they may only read it.
    ///
    /// # Safety
    /// The memory must stay valid for reads, and unless `read_only` for writes, until [`unregister`](Self::unregister)
    /// returned.
    ///
    /// # Errors
    /// Part of the range is known here already.
    pub unsafe fn register_host(
        &self,
        address: *mut u8,
        bytes: u64,
        owner: u64,
        read_only: bool,
    ) -> Result<u64, AlreadyRegistered> {
        let base = address as u64;
        let refused = AlreadyRegistered {
            address: base,
            bytes,
        };
        let mut index = self.index();
        let end = base.checked_add(bytes).ok_or(refused)?;
        if bytes == 0 || !index.overlapping(base, end).is_empty() {
            return Err(refused);
        }
        let info = Allocation {
            access: if read_only {
                Access::Read
            } else {
                Access::ReadWrite
            },
            ..index.describe(base, bytes, Kind::Registered, owner)
        };
        let record = Record::new(info, base, bytes, Backing::Program);
        if !self.pages.insert(base, bytes, Arc::as_ptr(&record)) {
            return Err(refused);
        }
        index.records.insert(base, record);
        Ok(base)
    }

    /// Ends a registration. Work in flight that may still access the memory is waited for.
    ///
    /// # Errors
    /// `address` is not the start of a registered range.
    pub fn unregister(&self, address: *mut u8) -> Result<Freed, NotAnAllocation> {
        self.free_if(address as u64, |a| a.kind == Kind::Registered)
    }

    /// The allocation that `address` lies in, if it can be reached.
    pub fn find(&self, address: u64) -> Option<Allocation> {
        let index = self.index();
        let found = index.containing(address);
        let found = found.filter(|record| !record.is_out_of_reach());
        found.map(|r| r.info)
    }

    /// Puts the allocation that starts at `address` out of reach, as if it were freed but for its address and its bytes,
    /// or back into reach. Nothing happens if there is none.
    pub fn set_reachable(&self, address: u64, reachable: bool) {
        if let Some(record) = self.index().records.get(&address) {
            let length = if reachable { record.whole } else { 0 };
            record.length.store(length, Ordering::SeqCst);
        }
    }

    /// The allocation that ends nearest below `address`, or contains it: for messages.
    pub fn nearest(&self, address: u64) -> Option<Allocation> {
        self.index()
            .records
            .range(..=address)
            .next_back()
            .map(|(_, r)| r.info)
    }

    /// Bytes of device memory that these owners have.
    pub fn device_bytes(&self, owners: &[u64]) -> u64 {
        self.index().used(Pool::Device, owners)
    }

    /// Marks the beginning of work that accesses device memory. What is freed while it lasts stays readable (and is
    /// found no more).
    pub fn enter(&'static self) -> InFlight {
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

impl Index {
    fn containing(&self, address: u64) -> Option<&Arc<Record>> {
        let (base, record) = self
            .records
            .range((Bound::Unbounded, Bound::Included(address)))
            .next_back()?;
        (address - base < record.info.bytes).then_some(record)
    }

    /// Records that have a byte of `start..end`.
    fn overlapping(&self, start: u64, end: u64) -> Vec<Arc<Record>> {
        let below = self.records.range(..end).rev();
        below
            .map(|(_, record)| record)
            // One without bytes says nothing of those below it.
            .filter(|r| r.info.bytes > 0)
            .take_while(|r| r.info.base + r.info.bytes > start)
            .cloned()
            .collect()
    }

    /// An allocation with a number of its own.
    fn describe(&mut self, base: u64, bytes: u64, kind: Kind, owner: u64) -> Allocation {
        let id = self.next_id;
        self.next_id += 1;
        Allocation {
            base,
            bytes,
            id,
            kind,
            owner,
            access: Access::ReadWrite,
        }
    }

    fn used(&self, pool: Pool, owners: &[u64]) -> u64 {
        let each = owners
            .iter()
            .filter_map(|owner| self.usage.get(&(*owner, pool)));
        each.fold(0, |sum, bytes| sum.saturating_add(*bytes))
    }

    /// Counts an allocation that is about to be made.
    fn charge(
        &mut self,
        kind: Kind,
        owner: u64,
        bytes: u64,
        quota: Option<Quota<'_>>,
    ) -> Result<(), OutOfMemory> {
        let Some(pool) = kind.pool() else {
            return Ok(());
        };
        let counted = counted(kind, bytes);
        if let Some(Quota { owners, most }) = quota {
            let used = self.used(pool, owners);
            if counted > most.saturating_sub(used) {
                let limit = Some((used, most));
                return Err(OutOfMemory { bytes, limit });
            }
        }
        let used = self.usage.entry((owner, pool)).or_insert(0);
        *used = used.wrapping_add(counted);
        Ok(())
    }

    /// Takes back what [`charge`](Self::charge) counted.
    fn refund(&mut self, kind: Kind, owner: u64, bytes: u64) {
        let Some(pool) = kind.pool() else { return };
        if let Some(used) = self.usage.get_mut(&(owner, pool)) {
            *used = used.wrapping_sub(counted(kind, bytes));
            if *used == 0 {
                self.usage.remove(&(owner, pool));
            }
        }
    }

    /// Addresses for `bytes` bytes: whole pages, behind those that were taken last, so that freed ones come back late.
    fn take(&mut self, bytes: u64) -> Option<u64> {
        let size = bytes.max(1).checked_next_multiple_of(PAGE)?;
        let cursor = self.cursor;
        let fits = |(start, end): (&u64, &u64)| (end - start >= size).then_some((*start, *end));
        // What was freed just before the cursor is joined with what is free behind it.
        let around = self.free.range(..cursor).next_back();
        let behind = around.filter(|(_, end)| **end >= cursor.saturating_add(size));
        let (range, start) = match behind {
            Some((&first, &end)) => ((first, end), cursor),
            None => {
                let range = self
                    .free
                    .range(cursor..)
                    .find_map(fits)
                    .or_else(|| self.free.range(..cursor).find_map(fits))?;
                (range, range.0)
            }
        };
        let (first, end) = range;
        self.free.remove(&first);
        if first < start {
            self.free.insert(first, start);
        }
        if start + size < end {
            self.free.insert(start + size, end);
        }
        self.cursor = start + size;
        Some(start)
    }

    /// Takes these addresses, if all of them are free.
    fn take_at(&mut self, start: u64, bytes: u64) -> bool {
        let Some(end) = start.checked_add(bytes) else {
            return false;
        };
        let around = self.free.range(..=start).next_back();
        let Some((&first, &last)) = around.filter(|(_, last)| **last >= end) else {
            return false;
        };
        self.free.remove(&first);
        if first < start {
            self.free.insert(first, start);
        }
        if end < last {
            self.free.insert(end, last);
        }
        true
    }

    /// Gives addresses back, joined with their free neighbours.
    fn give(&mut self, start: u64, bytes: u64) {
        let mut start = start;
        let mut end = start + bytes.max(1).next_multiple_of(PAGE);
        if let Some((&before, &before_end)) = self.free.range(..start).next_back()
            && before_end == start
        {
            self.free.remove(&before);
            start = before;
        }
        if let Some(after_end) = self.free.remove(&end) {
            end = after_end;
        }
        self.free.insert(start, end);
    }
}

/// What an allocation takes of its pool.
fn counted(kind: Kind, bytes: u64) -> u64 {
    match kind {
        Kind::Heap => bytes
            .checked_next_multiple_of(HEAP_ALIGN)
            .unwrap_or(u64::MAX),
        _ => bytes,
    }
}

/// Work in flight: see [`AddressSpace::enter`].
pub struct InFlight {
    space: &'static AddressSpace,
    epoch: u64,
}

impl InFlight {
    /// The allocation that `address` lies in. It may be freed at any time: then its length is 0.
    #[inline]
    pub fn lookup(&self, address: u64) -> Option<&Record> {
        match self.space.pages.get(address) {
            Page::Empty => None,
            // SAFETY: a record in the table is retired no earlier than it is taken off the table, and what is retired
            // while `self` lives is kept until `self` goes.
            Page::One(record) => Some(unsafe { &*record }),
            Page::Mixed => self.lookup_mixed(address),
        }
    }

    #[cold]
    fn lookup_mixed(&self, address: u64) -> Option<&Record> {
        let record = Arc::as_ptr(self.space.index().containing(address)?);
        // SAFETY: it was in the index just now, so it is retired, if at all, while `self` lives.
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

mod mapped;
mod transfer;

pub use mapped::Physical;

#[cfg(test)]
mod tests;
