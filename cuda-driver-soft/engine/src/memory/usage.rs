//! Counts the bytes that each owner has in use, and enforces quotas on them.

#![forbid(unsafe_code)]

use super::allocation::{AllocationKind, HEAP_ALIGN};
use super::errors::OutOfMemory;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

/// A limit on the bytes in use after an allocation: of device memory or, for [`AllocationKind::Heap`], of the heap.
#[derive(Clone, Copy, Debug)]
pub struct Quota<'a> {
    /// The owners whose allocations count.
    pub owners: &'a [u64],
    /// The bytes that these owners may have together.
    pub most: u64,
}

/// A limited kind of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Pool {
    /// The device's memory.
    Device,
    /// The memory that a context has set aside for kernels that allocate.
    Heap,
}

/// Bytes in use, by owner and pool.
#[derive(Debug, Default)]
pub(super) struct Usage {
    bytes: Mutex<BTreeMap<(u64, Pool), u64>>,
}

impl Usage {
    /// Returns the number of bytes of device memory that these owners have in use.
    pub(super) fn device_bytes(&self, owners: &[u64]) -> u64 {
        used(&self.lock(), Pool::Device, owners)
    }

    /// Counts an allocation that is about to be made.
    ///
    /// # Errors
    /// Returns an error if more than `quota` would be in use.
    pub(super) fn charge(
        &self,
        kind: AllocationKind,
        owner: u64,
        bytes: u64,
        quota: Option<Quota<'_>>,
    ) -> Result<(), OutOfMemory> {
        let Some(pool) = pool(kind) else {
            return Ok(());
        };
        let counted = counted(kind, bytes);
        let mut usage = self.lock();
        if let Some(Quota { owners, most }) = quota {
            let used = used(&usage, pool, owners);
            if counted > most.saturating_sub(used) {
                let limit = Some((used, most));
                return Err(OutOfMemory { bytes, limit });
            }
        }
        let used = usage.entry((owner, pool)).or_insert(0);
        *used = used.wrapping_add(counted);
        Ok(())
    }

    /// Reverses [`charge`](Self::charge).
    pub(super) fn refund(&self, kind: AllocationKind, owner: u64, bytes: u64) {
        let Some(pool) = pool(kind) else { return };
        let mut usage = self.lock();
        if let Some(used) = usage.get_mut(&(owner, pool)) {
            *used = used.wrapping_sub(counted(kind, bytes));
            if *used == 0 {
                usage.remove(&(owner, pool));
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(u64, Pool), u64>> {
        self.bytes.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

fn used(usage: &BTreeMap<(u64, Pool), u64>, pool: Pool, owners: &[u64]) -> u64 {
    let each = owners.iter().filter_map(|owner| usage.get(&(*owner, pool)));
    each.fold(0, |sum, bytes| sum.saturating_add(*bytes))
}

/// Returns the pool that allocations of this kind are taken from, if it is a limited one.
fn pool(kind: AllocationKind) -> Option<Pool> {
    match kind {
        AllocationKind::Device
        | AllocationKind::Managed
        | AllocationKind::Global
        | AllocationKind::Constant
        | AllocationKind::Array => Some(Pool::Device),
        AllocationKind::Heap => Some(Pool::Heap),
        // Physical memory is counted when it is created, so its mappings are not.
        AllocationKind::Pinned | AllocationKind::Registered | AllocationKind::Mapped => None,
    }
}

/// Returns the bytes that an allocation takes from its pool.
fn counted(kind: AllocationKind, bytes: u64) -> u64 {
    match kind {
        AllocationKind::Heap => bytes.checked_next_multiple_of(HEAP_ALIGN).unwrap_or(u64::MAX),
        _ => bytes,
    }
}
