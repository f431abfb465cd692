//! The index of all allocations, ordered by address, with the free address ranges.

#![forbid(unsafe_code)]

use super::addresses::FreeAddresses;
use super::allocation::{Access, Allocation, AllocationKind};
use super::record::Record;
use std::collections::BTreeMap;
use std::ops::{Bound, Range};
use std::sync::Arc;

/// The allocations by address, and the free addresses between them. The address space keeps it behind its lock.
pub(super) struct Index {
    /// By first address.
    pub(super) records: BTreeMap<u64, Arc<Record>>,
    /// The addresses of the reserved range that are free.
    pub(super) free: FreeAddresses,
    next_id: u64,
}

impl Index {
    /// Creates an index without allocations.
    pub(super) fn new(range: Range<u64>) -> Self {
        Index {
            records: BTreeMap::new(),
            free: FreeAddresses::new(range),
            next_id: 1,
        }
    }

    /// Returns the record that has a byte at this address.
    pub(super) fn containing(&self, address: u64) -> Option<&Arc<Record>> {
        let (base, record) = self
            .records
            .range((Bound::Unbounded, Bound::Included(address)))
            .next_back()?;
        (address - base < record.info().bytes).then_some(record)
    }

    /// Returns the records that have a byte of `start..end`.
    pub(super) fn overlapping(&self, start: u64, end: u64) -> Vec<Arc<Record>> {
        let below = self.records.range(..end).rev();
        below
            .map(|(_, record)| record)
            // Skip empty allocations: one of them at `start` must not end the search for those below it.
            .filter(|r| r.info().bytes > 0)
            .take_while(|r| r.base() + r.info().bytes > start)
            .cloned()
            .collect()
    }

    /// Describes a new allocation, with a number of its own and access to read and write.
    pub(super) fn describe(&mut self, base: u64, bytes: u64, kind: AllocationKind, owner: u64) -> Allocation {
        let id = self.next_id;
        self.next_id += 1;
        Allocation {
            base,
            bytes,
            id,
            kind,
            owner,
            access: Access::ReadWrite,
            copies: Access::ReadWrite,
        }
    }
}
