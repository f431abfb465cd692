//! Allocations with a pending free on a stream: calls can no longer use them, but work queued earlier can.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use crate::queue::work::TaskId;
use engine::memory::Allocation;

/// An allocation with a pending free on a stream.
#[derive(Clone, Copy)]
pub(crate) struct PendingFree {
    pub(crate) bytes: u64,
    owner: u64,
    /// The task that frees the allocation; 0 until the task is submitted.
    pub(crate) task: TaskId,
}

/// All pending frees by allocation ID.
#[derive(Default)]
pub(crate) struct PendingFrees(HashMap<u64, PendingFree>);

/// The number of pending frees. Usually 0; then lookups take no lock.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Locks the pending frees. Code that also locks the pools locks this first.
pub(crate) fn all() -> MutexGuard<'static, PendingFrees> {
    static ALL: LazyLock<Mutex<PendingFrees>> = LazyLock::new(Mutex::default);
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns true if a stream will free the allocation.
pub(crate) fn contains(allocation: &Allocation) -> bool {
    COUNT.load(Relaxed) != 0 && all().contains(allocation)
}

impl PendingFrees {
    pub(crate) fn contains(&self, allocation: &Allocation) -> bool {
        self.0.contains_key(&allocation.id)
    }

    pub(crate) fn insert(&mut self, allocation: &Allocation) {
        let pending = PendingFree {
            bytes: allocation.bytes,
            owner: allocation.owner,
            task: 0,
        };
        self.0.insert(allocation.id, pending);
        COUNT.store(self.0.len(), Relaxed);
    }

    /// Sets the task that frees the allocation.
    pub(crate) fn set_task(&mut self, allocation: &Allocation, task: TaskId) {
        if let Some(pending) = self.0.get_mut(&allocation.id) {
            pending.task = task;
        }
    }

    /// Removes an allocation that was freed. Returns false if it was not pending.
    pub(crate) fn remove(&mut self, allocation: &Allocation) -> bool {
        let removed = self.0.remove(&allocation.id).is_some();
        COUNT.store(self.0.len(), Relaxed);
        removed
    }

    /// Returns the pending frees of memory of these owners.
    pub(crate) fn of(&self, owners: &[u64]) -> Vec<PendingFree> {
        let all = self.0.values();
        all.filter(|l| owners.contains(&l.owner)).copied().collect()
    }
}
