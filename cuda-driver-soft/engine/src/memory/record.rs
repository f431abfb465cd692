//! The record of an allocation: its description, its backing, and the length that may be accessed now.

#![forbid(unsafe_code)]

use super::allocation::{Access, Allocation, AllocationKind};
use super::physical::Physical;
use super::zeroed::Zeroed;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// An allocation as kernels and copies see it.
#[derive(Debug)]
pub(crate) struct Record {
    info: Allocation,
    /// Backing address minus device address, wrapping.
    delta: u64,
    /// Bytes that may be accessed; 0 once freed or replaced by another record, while the allocation is unreachable, and
    /// for a mapping that permits kernels no access.
    length: AtomicU64,
    /// The value of `length` in all other cases.
    full_length: u64,
    backing: Backing,
}

/// The memory of an allocation. It is released with the last record of it.
#[derive(Debug)]
pub(super) enum Backing {
    /// Memory that belongs to this allocation alone.
    Own {
        /// Kept for its destructor.
        _memory: Zeroed,
    },
    /// Memory that other mappings may share.
    Physical(Arc<Physical>),
    /// Registered memory, which the program owns.
    Program,
}

impl Record {
    /// Creates a record of memory that starts at `host` on the host. Its first `length` bytes may be accessed.
    pub(super) fn new(info: Allocation, host: u64, length: u64, backing: Backing) -> Arc<Self> {
        Arc::new(Record {
            info,
            delta: host.wrapping_sub(info.base),
            length: AtomicU64::new(length),
            full_length: length,
            backing,
        })
    }

    /// Creates the record of a mapping of physical memory from `offset` on. Its length is 0 if it permits kernels no
    /// access.
    pub(super) fn mapped(info: Allocation, physical: &Arc<Physical>, offset: u64) -> Arc<Self> {
        let backing = Backing::Physical(Arc::clone(physical));
        let record = Self::new(info, physical.host() + offset, info.bytes, backing);
        if info.access == Access::None {
            record.set_accessible(false);
        }
        record
    }

    /// Makes the whole allocation accessible, or makes it inaccessible.
    pub(super) fn set_accessible(&self, accessible: bool) {
        let length = if accessible { self.full_length } else { 0 };
        self.length.store(length, Ordering::SeqCst);
    }

    /// Returns true if the allocation is live but hidden by
    /// [`AddressSpace::set_reachable`](super::AddressSpace::set_reachable).
    pub(super) fn is_unreachable(&self) -> bool {
        self.length() == 0 && self.full_length > 0 && self.info.kind != AllocationKind::Mapped
    }

    /// Returns the number of bytes that may be accessed while the allocation is live and reachable.
    pub(super) fn full_length(&self) -> u64 {
        self.full_length
    }

    /// Returns the physical memory that backs this allocation, if it has such a backing.
    pub(super) fn physical(&self) -> Option<&Arc<Physical>> {
        match &self.backing {
            Backing::Physical(physical) => Some(physical),
            Backing::Own { .. } | Backing::Program => None,
        }
    }

    /// Returns the description of the allocation.
    pub(crate) fn info(&self) -> &Allocation {
        &self.info
    }

    /// Returns the first address.
    #[inline]
    pub(crate) fn base(&self) -> u64 {
        self.info.base
    }

    /// Returns the number of bytes that may be accessed now, from [`base`](Self::base) on; 0 once freed.
    #[inline]
    pub(crate) fn length(&self) -> u64 {
        self.length.load(Ordering::Relaxed)
    }

    /// Returns the variable that holds [`length`](Self::length), for compiled code.
    #[inline]
    pub(crate) fn length_variable(&self) -> &AtomicU64 {
        &self.length
    }

    /// Returns true if kernels may write to the allocation.
    #[inline]
    pub(crate) fn is_writable(&self) -> bool {
        self.info.access == Access::ReadWrite
    }

    /// Returns the number that, added to an address of the allocation with wrapping, gives the address of its byte on
    /// the host.
    #[inline]
    pub(crate) fn delta(&self) -> u64 {
        self.delta
    }
}
