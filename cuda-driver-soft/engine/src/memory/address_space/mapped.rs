//! Addresses without memory and memory without addresses: reserved ranges, physical memory, and the mappings between
//! them.

use super::AddressSpace;
use crate::memory::access;
use crate::memory::allocation::{Access, Allocation, AllocationKind};
use crate::memory::errors::OutOfMemory;
use crate::memory::pages::PAGE;
use crate::memory::physical::{Memory, Physical};
use crate::memory::record::{Backing, Record};
use crate::memory::shared::{Label, SharedFile};
use crate::memory::usage::Quota;
use crate::memory::zeroed::Zeroed;
use std::sync::Arc;

impl AddressSpace {
    /// Creates zeroed memory without an address. With a label, other processes can open it.
    ///
    /// # Errors
    /// Returns an error if no memory is left, or if more than `quota` would be in use.
    pub fn create(
        &self,
        bytes: u64,
        owner: u64,
        quota: Quota<'_>,
        label: Option<Label>,
    ) -> Result<Arc<Physical>, OutOfMemory> {
        self.usage.charge(AllocationKind::Device, owner, bytes, Some(quota))?;
        let memory = match label {
            Some(label) => SharedFile::new(bytes, label).map(Memory::Shared),
            None => Zeroed::new(bytes, PAGE).map(Memory::Private),
        };
        match memory {
            Some(memory) => Ok(Physical::new(memory, bytes, Arc::clone(&self.usage), owner)),
            None => {
                self.usage.refund(AllocationKind::Device, owner, bytes);
                Err(OutOfMemory { bytes, limit: None })
            }
        }
    }

    /// Opens memory that another process, or this one, has created. Its bytes count as used only in the process that
    /// created it.
    pub fn open(&self, file: SharedFile) -> Arc<Physical> {
        Physical::opened(file)
    }

    /// Reserves addresses and returns the first of them, a multiple of `align`: `wish` if that is such a multiple, is
    /// not 0, and the addresses there are free. Returns `None` if no such addresses are free.
    pub fn reserve_addresses(&self, bytes: u64, align: u64, wish: u64) -> Option<u64> {
        let bytes = bytes.checked_next_multiple_of(PAGE)?;
        let mut index = self.index();
        if wish != 0 && wish.is_multiple_of(align.max(PAGE)) && index.free.take_at(wish, bytes) {
            return Some(wish);
        }
        let align = align.max(PAGE);
        let room = bytes.checked_add(align - PAGE)?;
        let start = index.free.take(room)?;
        let base = start.next_multiple_of(align);
        if start < base {
            index.free.give(start, base - start);
        }
        if base + bytes < start + room {
            index.free.give(base + bytes, start + room - (base + bytes));
        }
        Some(base)
    }

    /// Releases reserved addresses. Nothing may be mapped there.
    pub fn release_addresses(&self, base: u64, bytes: u64) {
        self.index().free.give(base, bytes.next_multiple_of(PAGE));
    }

    /// Maps the first bytes of physical memory to reserved addresses that have no mapping. Returns false if no device
    /// address can be that high.
    pub fn map(&self, base: u64, bytes: u64, physical: &Arc<Physical>, owner: u64, access: Access) -> bool {
        self.map_from(0, base, bytes, physical, owner, access)
    }

    /// Does the same as [`map`](Self::map) with the bytes of physical memory from `offset` on. Also returns false if
    /// `offset` is past the end of the memory.
    pub fn map_from(
        &self,
        offset: u64,
        base: u64,
        bytes: u64,
        physical: &Arc<Physical>,
        owner: u64,
        access: Access,
    ) -> bool {
        let Some(rest) = physical.bytes().checked_sub(offset) else {
            return false;
        };
        let bytes = bytes.min(rest);
        let mut index = self.index();
        let info = Allocation {
            access,
            copies: access,
            ..index.describe(base, bytes, AllocationKind::Mapped, owner)
        };
        let record = Record::mapped(info, physical, offset);
        let covered = self.pages.insert(base, bytes, Arc::as_ptr(&record));
        if covered {
            index.records.insert(base, record);
        }
        covered
    }

    /// Sets the accesses that the mapping at `base` permits to kernels and fills, and to copies. Work in flight
    /// continues with the new permission.
    pub fn set_access(&self, base: u64, access: Access, copies: Access) {
        let mut index = self.index();
        let Some(old) = index.records.get(&base).cloned() else {
            return;
        };
        let info = *old.info();
        let changes = (info.access, info.copies) != (access, copies);
        let Some(physical) = old.physical().filter(|_| changes) else {
            return;
        };
        let offset = base.wrapping_add(old.delta()).wrapping_sub(physical.host());
        let new = Record::mapped(Allocation { access, copies, ..info }, physical, offset);
        // Work in flight looks up the address again when the old record has no length left, so the new record has to be
        // in the table before that.
        self.pages.replace(base, info.bytes, Arc::as_ptr(&new));
        index.records.insert(base, new);
        old.set_accessible(false);
        drop(index);
        self.epochs.retire(old);
    }

    /// Moves the bytes of an allocation to a file that other processes can map, and returns that memory. If they are in
    /// physical memory already, returns that memory. Returns `None` if the allocation was freed, or if the system
    /// refuses the file.
    ///
    /// Work must not be writing to the allocation: its writes could be lost.
    pub fn share(&self, allocation: &Allocation, label: Label) -> Option<Arc<Physical>> {
        let mut index = self.index();
        let same = |r: &&Arc<Record>| r.info().id == allocation.id;
        let old = index.records.get(&allocation.base).filter(same).cloned()?;
        if let Some(physical) = old.physical() {
            return Some(Arc::clone(physical));
        }
        let (base, length) = (old.base(), old.length());
        let physical = self.open(SharedFile::new(length, label)?);
        let from = base.wrapping_add(old.delta());
        // SAFETY: both are valid for `length` bytes: the source by its record, which `old` keeps alive, and the target
        // because it was created with that length.
        unsafe {
            access::copy(
                physical.host() as usize as *mut u8,
                from as usize as *const u8,
                length as usize,
            );
        }
        let backing = Backing::Physical(Arc::clone(&physical));
        let new = Record::new(*old.info(), physical.host(), length, backing);
        self.pages.replace(base, length, Arc::as_ptr(&new));
        index.records.insert(base, new);
        old.set_accessible(false);
        drop(index);
        self.epochs.retire(old);
        Some(physical)
    }

    /// Returns the allocation that contains `address`. If it is a mapping, joins it with the mappings that follow it
    /// without a gap, up to `bytes` bytes after `address`; its access is then what all of them permit. Returns `None`
    /// if no allocation contains `address`.
    pub fn mapped(&self, address: u64, bytes: u64) -> Option<Allocation> {
        let index = self.index();
        let mut all = *index.containing(address)?.info();
        let end = address.saturating_add(bytes);
        while all.kind == AllocationKind::Mapped && all.base + all.bytes < end {
            let next = index.records.get(&(all.base + all.bytes));
            let Some(next) = next.filter(|next| next.info().kind == AllocationKind::Mapped) else {
                break;
            };
            all.bytes += next.info().bytes;
            all.access = all.access.min(next.info().access);
            all.copies = all.copies.min(next.info().copies);
        }
        Some(all)
    }
}
