//! Addresses and memory apart: ranges of addresses that are reserved, blocks of memory that have none, and mappings of the
//! one to the other.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{
    Access, AddressSpace, Allocation, Backing, Kind, OutOfMemory, PAGE, Quota, Record, Zeroed,
};
use crate::memory::access;
use crate::memory::shared::{Label, SharedFile};

/// Memory without an address. It counts as device memory of its owner until the last mapping of it, and the last value that
/// names it, are gone.
pub struct Physical {
    space: &'static AddressSpace,
    memory: Memory,
    bytes: u64,
    owner: u64,
}

/// Where its bytes are.
enum Memory {
    Own(Zeroed),
    Shared(SharedFile),
}

impl Physical {
    pub(super) fn host(&self) -> u64 {
        match &self.memory {
            Memory::Own(memory) => memory.address() as u64,
            Memory::Shared(file) => file.address() as u64,
        }
    }

    /// Length in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The file that it is in, if others may have it.
    pub fn file(&self) -> Option<&SharedFile> {
        match &self.memory {
            Memory::Own(_) => None,
            Memory::Shared(file) => Some(file),
        }
    }
}

impl std::fmt::Debug for Physical {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Physical");
        shown.field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl Drop for Physical {
    fn drop(&mut self) {
        let mut index = self.space.index();
        index.refund(Kind::Device, self.owner, self.bytes);
    }
}

impl AddressSpace {
    /// Makes memory without an address, zeroed, unless more than `quota` would then be in use; with a label, memory that
    /// other processes can have.
    ///
    /// # Errors
    /// No memory left.
    pub fn create(
        &'static self,
        bytes: u64,
        owner: u64,
        quota: Quota<'_>,
        label: Option<Label>,
    ) -> Result<Arc<Physical>, OutOfMemory> {
        self.index()
            .charge(Kind::Device, owner, bytes, Some(quota))?;
        let memory = match label {
            Some(label) => SharedFile::new(bytes, label).map(Memory::Shared),
            None => Zeroed::new(bytes, PAGE).map(Memory::Own),
        };
        match memory {
            Some(memory) => Ok(Arc::new(Physical {
                space: self,
                memory,
                bytes,
                owner,
            })),
            None => {
                self.index().refund(Kind::Device, owner, bytes);
                Err(OutOfMemory { bytes, limit: None })
            }
        }
    }

    /// Memory that another process, or this one, has made. It is counted where it was made.
    pub fn open(&'static self, file: SharedFile) -> Arc<Physical> {
        Arc::new(Physical {
            space: self,
            bytes: file.bytes(),
            memory: Memory::Shared(file),
            // Refunded to nobody.
            owner: 0,
        })
    }

    /// Takes addresses for nothing else to get: a multiple of `align`, at `wish` if that is free. `None`: there are none.
    pub fn reserve_addresses(&self, bytes: u64, align: u64, wish: u64) -> Option<u64> {
        let bytes = bytes.checked_next_multiple_of(PAGE)?;
        let mut index = self.index();
        if wish != 0 && wish.is_multiple_of(align.max(PAGE)) && index.take_at(wish, bytes) {
            return Some(wish);
        }
        let align = align.max(PAGE);
        let room = bytes.checked_add(align - PAGE)?;
        let start = index.take(room)?;
        let base = start.next_multiple_of(align);
        if start < base {
            index.give(start, base - start);
        }
        if base + bytes < start + room {
            index.give(base + bytes, start + room - (base + bytes));
        }
        Some(base)
    }

    /// Gives reserved addresses back. Nothing is mapped there.
    pub fn release_addresses(&self, base: u64, bytes: u64) {
        self.index().give(base, bytes.next_multiple_of(PAGE));
    }

    /// Maps the first bytes of memory to reserved addresses where nothing is mapped. False if the addresses are beyond what
    /// can be device memory.
    pub fn map(
        &self,
        base: u64,
        bytes: u64,
        physical: &Arc<Physical>,
        owner: u64,
        access: Access,
    ) -> bool {
        let bytes = bytes.min(physical.bytes);
        let mut index = self.index();
        let info = Allocation {
            access,
            ..index.describe(base, bytes, Kind::Mapped, owner)
        };
        let record = Record::mapped(info, physical.host(), physical);
        let known = self.pages.insert(base, bytes, Arc::as_ptr(&record));
        if known {
            index.records.insert(base, record);
        }
        known
    }

    /// Says who may access what is mapped at `base`. Work that is in flight goes on with what it may do then.
    pub fn set_access(&self, base: u64, access: Access) {
        let mut index = self.index();
        let Some(old) = index.records.get(&base).cloned() else {
            return;
        };
        let Some(physical) = old.physical().filter(|_| old.info.access != access) else {
            return;
        };
        let info = Allocation { access, ..old.info };
        let host = base.wrapping_add(old.delta);
        let new = Record::mapped(info, host, physical);
        // The new one is found before the old one says that it is gone: work that is in flight looks again then.
        self.pages.replace(base, info.bytes, Arc::as_ptr(&new));
        index.records.insert(base, new);
        old.length.store(0, Ordering::SeqCst);
        drop(index);
        self.epochs.retire(old);
    }

    /// Puts the bytes of an allocation where other processes can have them, and gives the file. Work must not be writing to
    /// it: what it wrote meanwhile could be lost.
    pub fn share(&'static self, allocation: &Allocation, label: Label) -> Option<Arc<Physical>> {
        let mut index = self.index();
        let same = |r: &&Arc<Record>| r.info.id == allocation.id;
        let old = index.records.get(&allocation.base).filter(same).cloned()?;
        if let Some(physical) = old.physical() {
            return Some(Arc::clone(physical));
        }
        let length = old.length();
        let physical = self.open(SharedFile::new(length, label)?);
        let from = old.info.base.wrapping_add(old.delta);
        // SAFETY: both have `length` bytes: the one as its record says, which `old` keeps, the other as it was made.
        unsafe {
            access::copy(
                physical.host() as usize as *mut u8,
                from as usize as *const u8,
                length as usize,
            );
        }
        let backing = Backing::Physical(Arc::clone(&physical));
        let new = Record::new(old.info, physical.host(), length, backing);
        self.pages.replace(old.info.base, length, Arc::as_ptr(&new));
        index.records.insert(old.info.base, new);
        old.length.store(0, Ordering::SeqCst);
        drop(index);
        self.epochs.retire(old);
        Some(physical)
    }

    /// What is mapped without a gap from `address` on, as one: up to `bytes` bytes, what all of it may be used for. `None`:
    /// nothing is mapped at `address`.
    pub fn mapped(&self, address: u64, bytes: u64) -> Option<Allocation> {
        let index = self.index();
        let first = index.containing(address)?;
        let mut all = first.info;
        let end = address.saturating_add(bytes);
        while all.kind == Kind::Mapped && all.base + all.bytes < end {
            let next = index.records.get(&(all.base + all.bytes));
            let Some(next) = next.filter(|next| next.info.kind == Kind::Mapped) else {
                break;
            };
            all.bytes += next.info.bytes;
            all.access = all.access.min(next.info.access);
        }
        Some(all)
    }
}
