//! The address space: allocations, and checked access to them from the host's side.

use super::epochs::Epochs;
use super::pages::{PAGE, Page, PageTable};
use super::{access, reserve};
use std::alloc::Layout;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Bound, Range};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

/// Alignment in bytes of every backing: what vector accesses and `.align` of variables need.
const BACKING_ALIGN: u64 = 512;

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
}

impl Kind {
    /// The host may dereference addresses of this kind: they are the addresses of the backing.
    pub fn is_host_accessible(self) -> bool {
        matches!(self, Kind::Managed | Kind::Pinned | Kind::Registered)
    }
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
}

/// An allocation that was freed.
pub type Freed = Allocation;

/// An allocation, as those who access it see it.
#[derive(Debug)]
pub struct Record {
    info: Allocation,
    /// Backing address minus device address, wrapping.
    delta: u64,
    /// Bytes that may be accessed; 0 once freed.
    length: AtomicU64,
    /// Memory that goes when the record goes; `None` for registered memory, which is the program's own.
    _backing: Option<Backing>,
}

impl Record {
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

    /// What to add to an address of the allocation, wrapping, to get the address of its byte on the host.
    #[inline]
    pub fn delta(&self) -> u64 {
        self.delta
    }
}

/// Zeroed memory of the host.
#[derive(Debug)]
struct Backing {
    address: *mut u8,
    layout: Layout,
}

// SAFETY: plain memory; who may access it when is decided by the address space, and every access goes through `access`.
unsafe impl Send for Backing {}
// SAFETY: as above.
unsafe impl Sync for Backing {}

impl Backing {
    fn new(bytes: u64, align: u64) -> Option<Self> {
        let layout =
            Layout::from_size_align(usize::try_from(bytes.max(1)).ok()?, align as usize).ok()?;
        // SAFETY: the layout's size is not zero.
        let address = unsafe { std::alloc::alloc_zeroed(layout) };
        (!address.is_null()).then_some(Backing { address, layout })
    }
}

impl Drop for Backing {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout; the epochs saw the last work that knew of it end.
        unsafe { std::alloc::dealloc(self.address, self.layout) }
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
}

/// The address space of the process, made when first asked for.
///
/// `CUDA_SOFT_SLACK=BYTES` lets kernels touch that many bytes past the end of each allocation, for programs that
/// over-read where a GPU does not notice.
pub fn space() -> &'static AddressSpace {
    static SPACE: OnceLock<AddressSpace> = OnceLock::new();
    SPACE.get_or_init(|| {
        let slack = std::env::var("CUDA_SOFT_SLACK")
            .ok()
            .and_then(|v| v.parse().ok())
            .unwrap_or(0);
        AddressSpace::new(slack)
    })
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

    /// Allocates `bytes` bytes, zeroed, at an address that is a multiple of 512.
    ///
    /// # Errors
    /// No memory, or no addresses, left. Registered memory is not allocated here: [`register_host`](Self::register_host).
    pub fn alloc(&self, kind: Kind, owner: u64, bytes: u64) -> Result<u64, OutOfMemory> {
        let full = || OutOfMemory { bytes };
        let length = bytes.checked_add(self.slack).ok_or(OutOfMemory { bytes })?;
        let align = if kind.is_host_accessible() {
            PAGE
        } else {
            BACKING_ALIGN
        };
        let backing = Backing::new(length, align).ok_or_else(full)?;
        let host = backing.address as u64;
        let mut index = self.index();
        let base = if kind.is_host_accessible() {
            host
        } else {
            index.take(length).ok_or_else(full)?
        };
        let record = index.record(base, bytes, length, kind, owner, host, Some(backing));
        if !self.pages.insert(base, length, Arc::as_ptr(&record)) {
            return Err(full());
        }
        index.records.insert(base, record);
        Ok(base)
    }

    /// Frees the allocation that starts at `address`. Its memory is given back when no work is in flight that might
    /// still touch it; from now on such work finds nothing here.
    ///
    /// # Errors
    /// `address` is not the first address of something that [`alloc`](Self::alloc) made and nobody freed.
    pub fn free(&self, address: u64) -> Result<Freed, NotAnAllocation> {
        self.remove(address, |kind| kind != Kind::Registered)
    }

    /// Frees all allocations of one owner, registrations included, and says which.
    pub fn free_owned(&self, owner: u64) -> Vec<Freed> {
        let owned: Vec<u64> = {
            let index = self.index();
            index
                .records
                .values()
                .filter(|r| r.info.owner == owner)
                .map(|r| r.info.base)
                .collect()
        };
        owned
            .into_iter()
            .filter_map(|base| self.remove(base, |_| true).ok())
            .collect()
    }

    /// Lets kernels use `bytes` bytes of the program's own memory at `address`, under the same address.
    ///
    /// # Safety
    /// The memory must stay valid for reads and writes until [`unregister`](Self::unregister) returned and all work
    /// that was in flight then has ended.
    ///
    /// # Errors
    /// Part of the range is known here already.
    pub unsafe fn register_host(
        &self,
        address: *mut u8,
        bytes: u64,
        owner: u64,
    ) -> Result<u64, AlreadyRegistered> {
        let base = address as u64;
        let mut index = self.index();
        let end = base.saturating_add(bytes);
        let overlaps = index
            .records
            .range(..end)
            .next_back()
            .is_some_and(|(start, r)| start + r.info.bytes > base);
        if overlaps || bytes == 0 {
            return Err(AlreadyRegistered {
                address: base,
                bytes,
            });
        }
        let record = index.record(base, bytes, bytes, Kind::Registered, owner, base, None);
        if !self.pages.insert(base, bytes, Arc::as_ptr(&record)) {
            return Err(AlreadyRegistered {
                address: base,
                bytes,
            });
        }
        index.records.insert(base, record);
        Ok(base)
    }

    /// Ends a registration.
    ///
    /// # Errors
    /// `address` is not the start of a registered range.
    pub fn unregister(&self, address: *mut u8) -> Result<Freed, NotAnAllocation> {
        self.remove(address as u64, |kind| kind == Kind::Registered)
    }

    fn remove(
        &self,
        address: u64,
        of_kind: impl Fn(Kind) -> bool,
    ) -> Result<Freed, NotAnAllocation> {
        let mut index = self.index();
        let record = match index.records.get(&address) {
            Some(record) if of_kind(record.info.kind) => Arc::clone(record),
            _ => {
                return Err(NotAnAllocation {
                    address,
                    inside: index.containing(address).map(|r| r.info),
                });
            }
        };
        index.records.remove(&address);
        let length = record.length.swap(0, Ordering::SeqCst);
        self.pages.remove(address, length, Arc::as_ptr(&record));
        let info = record.info;
        if !info.kind.is_host_accessible() {
            index.give(address, length);
        }
        drop(index);
        self.epochs.retire(record);
        Ok(info)
    }

    /// The allocation that `address` lies in.
    pub fn find(&self, address: u64) -> Option<Allocation> {
        self.index().containing(address).map(|r| r.info)
    }

    /// The allocation that ends nearest below `address`, or contains it: for messages.
    pub fn nearest(&self, address: u64) -> Option<Allocation> {
        self.index()
            .records
            .range(..=address)
            .next_back()
            .map(|(_, r)| r.info)
    }

    /// Bytes that are allocated, by kinds that `counts` says yes to.
    pub fn in_use(&self, counts: impl Fn(&Allocation) -> bool) -> u64 {
        self.index()
            .records
            .values()
            .filter(|r| counts(&r.info))
            .map(|r| r.info.bytes)
            .sum()
    }

    /// Marks the beginning of work that accesses device memory. What is freed while it lasts stays readable (and is
    /// found no more).
    pub fn enter(&'static self) -> InFlight {
        InFlight {
            space: self,
            epoch: self.epochs.enter(),
        }
    }

    /// The record and host address of a range that one allocation holds.
    fn resolve(&self, address: u64, bytes: u64) -> Result<(Arc<Record>, *mut u8), BadRange> {
        let index = self.index();
        let record = index
            .containing(address)
            .or_else(|| index.records.get(&address))
            .or_else(|| match bytes {
                // Nothing, at the end of an allocation.
                0 => index.containing(address.wrapping_sub(1)),
                _ => None,
            });
        match record {
            Some(r)
                if address - r.info.base <= r.info.bytes
                    && bytes <= r.info.bytes - (address - r.info.base) =>
            {
                Ok((
                    Arc::clone(r),
                    address.wrapping_add(r.delta) as usize as *mut u8,
                ))
            }
            other => Err(BadRange {
                address,
                bytes,
                inside: other.map(|r| r.info),
            }),
        }
    }

    /// Copies device memory to the host.
    ///
    /// # Errors
    /// The range does not lie in one allocation.
    pub fn read(&self, address: u64, into: &mut [u8]) -> Result<(), BadRange> {
        let (_alive, host) = self.resolve(address, into.len() as u64)?;
        // SAFETY: `host` is valid for the range, which `resolve` checked; `_alive` keeps the backing.
        unsafe { access::copy(into.as_mut_ptr(), host, into.len()) };
        Ok(())
    }

    /// Copies host memory to the device.
    ///
    /// # Errors
    /// The range does not lie in one allocation.
    pub fn write(&self, address: u64, from: &[u8]) -> Result<(), BadRange> {
        let (_alive, host) = self.resolve(address, from.len() as u64)?;
        // SAFETY: as in `read`.
        unsafe { access::copy(host, from.as_ptr(), from.len()) };
        Ok(())
    }

    /// [`read`](Self::read) into memory of the host that may be uninitialised, or raced for.
    ///
    /// # Safety
    /// `into` must be valid for writes of `bytes` bytes.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub unsafe fn read_to(&self, address: u64, into: *mut u8, bytes: u64) -> Result<(), BadRange> {
        let (_alive, host) = self.resolve(address, bytes)?;
        // SAFETY: the source as in `read`, the destination as promised by the caller.
        unsafe { access::copy(into, host, bytes as usize) };
        Ok(())
    }

    /// [`write`](Self::write) from memory of the host that may be uninitialised, or raced for.
    ///
    /// # Safety
    /// `from` must be valid for reads of `bytes` bytes.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub unsafe fn write_from(
        &self,
        address: u64,
        from: *const u8,
        bytes: u64,
    ) -> Result<(), BadRange> {
        let (_alive, host) = self.resolve(address, bytes)?;
        // SAFETY: the destination as in `read`, the source as promised by the caller.
        unsafe { access::copy(host, from, bytes as usize) };
        Ok(())
    }

    /// Copies `bytes` bytes from device memory to device memory; the ranges may overlap.
    ///
    /// # Errors
    /// One of the ranges does not lie in one allocation.
    pub fn copy(&self, to: u64, from: u64, bytes: u64) -> Result<(), BadRange> {
        let (_alive_from, source) = self.resolve(from, bytes)?;
        let (_alive_to, target) = self.resolve(to, bytes)?;
        // SAFETY: both are valid for the range, which `resolve` checked.
        unsafe { access::copy(target, source, bytes as usize) };
        Ok(())
    }

    /// Sets `count` bytes.
    ///
    /// # Errors
    /// The range does not lie in one allocation.
    pub fn fill8(&self, address: u64, value: u8, count: u64) -> Result<(), BadRange> {
        let (_alive, host) = self.resolve(address, count)?;
        // SAFETY: `resolve` checked the range.
        unsafe { access::fill8(host, value, count as usize) };
        Ok(())
    }

    /// Sets `count` values of 16 bits. The address must be a multiple of 2, which the caller checks.
    ///
    /// # Errors
    /// The range does not lie in one allocation.
    pub fn fill16(&self, address: u64, value: u16, count: u64) -> Result<(), BadRange> {
        let (_alive, host) = self.resolve(address, count.saturating_mul(2))?;
        // SAFETY: `resolve` checked the range.
        unsafe { access::fill16(host, value, count as usize) };
        Ok(())
    }

    /// Sets `count` values of 32 bits. The address must be a multiple of 4, which the caller checks.
    ///
    /// # Errors
    /// The range does not lie in one allocation.
    pub fn fill32(&self, address: u64, value: u32, count: u64) -> Result<(), BadRange> {
        let (_alive, host) = self.resolve(address, count.saturating_mul(4))?;
        // SAFETY: `resolve` checked the range.
        unsafe { access::fill32(host, value, count as usize) };
        Ok(())
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

    #[allow(clippy::too_many_arguments)]
    fn record(
        &mut self,
        base: u64,
        bytes: u64,
        length: u64,
        kind: Kind,
        owner: u64,
        host: u64,
        backing: Option<Backing>,
    ) -> Arc<Record> {
        let id = self.next_id;
        self.next_id += 1;
        Arc::new(Record {
            info: Allocation {
                base,
                bytes,
                id,
                kind,
                owner,
            },
            delta: host.wrapping_sub(base),
            length: AtomicU64::new(length),
            _backing: backing,
        })
    }

    /// Addresses for `bytes` bytes: whole pages.
    fn take(&mut self, bytes: u64) -> Option<u64> {
        let size = bytes.max(1).checked_next_multiple_of(PAGE)?;
        let fits = |(start, end): (&u64, &u64)| (end - start >= size).then_some((*start, *end));
        let (start, end) = self
            .free
            .range(self.cursor..)
            .find_map(fits)
            .or_else(|| self.free.range(..self.cursor).find_map(fits))?;
        self.free.remove(&start);
        if start + size < end {
            self.free.insert(start + size, end);
        }
        self.cursor = start + size;
        Some(start)
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

/// No memory, or no addresses, left for an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    /// How much was asked for.
    pub bytes: u64,
}

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no memory left for {} bytes", self.bytes)
    }
}

impl std::error::Error for OutOfMemory {}

/// An address that is not the start of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAnAllocation {
    /// The address.
    pub address: u64,
    /// The allocation that it lies in, if any.
    pub inside: Option<Allocation>,
}

impl fmt::Display for NotAnAllocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x} is not the start of an allocation", self.address)?;
        match self.inside {
            Some(a) if a.base == self.address => {
                write!(f, " of the right kind (it is {:?} memory)", a.kind)
            }
            Some(a) => write!(
                f,
                ": it lies {} bytes inside that at {:#x}",
                self.address - a.base,
                a.base
            ),
            None => Ok(()),
        }
    }
}

impl std::error::Error for NotAnAllocation {}

/// A range that cannot be registered: empty, or known already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlreadyRegistered {
    /// Start of the range.
    pub address: u64,
    /// Its length.
    pub bytes: u64,
}

impl fmt::Display for AlreadyRegistered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} bytes at {:#x} are empty, or overlap a registered range",
            self.bytes, self.address
        )
    }
}

impl std::error::Error for AlreadyRegistered {}

/// A range that does not lie in one allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadRange {
    /// Start of the range.
    pub address: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// The allocation that its start lies in, if any.
    pub inside: Option<Allocation>,
}

impl fmt::Display for BadRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes at {:#x} ", self.bytes, self.address)?;
        match self.inside {
            Some(a) => write!(
                f,
                "run past the end of the {} bytes at {:#x}",
                a.bytes, a.base
            ),
            None => write!(f, "lie in no allocation"),
        }
    }
}

impl std::error::Error for BadRange {}

#[cfg(test)]
mod tests;
