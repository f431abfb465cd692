//! Allocations that a stream is to free: from the call on they are gone for other calls, until then they are there for work.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use crate::queue::work::TaskId;
use engine::memory::Allocation;

/// An allocation that a stream is to free.
#[derive(Clone, Copy)]
pub(crate) struct Leaving {
    pub(crate) bytes: u64,
    owner: u64,
    /// The task that frees it; 0 until that is known.
    pub(crate) task: TaskId,
}

/// All of them, by the allocation's number.
#[derive(Default)]
pub(crate) struct LeavingSet(HashMap<u64, Leaving>);

/// How many there are: mostly none, and then nobody has to look which.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// The allocations that streams are to free. Whoever holds the lock of the pools as well takes this one first.
pub(crate) fn all() -> MutexGuard<'static, LeavingSet> {
    static ALL: LazyLock<Mutex<LeavingSet>> = LazyLock::new(Mutex::default);
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns true if a stream is to free it.
pub(crate) fn contains(allocation: &Allocation) -> bool {
    COUNT.load(Relaxed) != 0 && all().contains(allocation)
}

impl LeavingSet {
    pub(crate) fn contains(&self, allocation: &Allocation) -> bool {
        self.0.contains_key(&allocation.id)
    }

    pub(crate) fn insert(&mut self, allocation: &Allocation) {
        let leaving = Leaving {
            bytes: allocation.bytes,
            owner: allocation.owner,
            task: 0,
        };
        self.0.insert(allocation.id, leaving);
        COUNT.store(self.0.len(), Relaxed);
    }

    /// Notes the task that frees it.
    pub(crate) fn set_task(&mut self, allocation: &Allocation, task: TaskId) {
        if let Some(leaving) = self.0.get_mut(&allocation.id) {
            leaving.task = task;
        }
    }

    /// Takes one out that is free; false if it is not here.
    pub(crate) fn remove(&mut self, allocation: &Allocation) -> bool {
        let removed = self.0.remove(&allocation.id).is_some();
        COUNT.store(self.0.len(), Relaxed);
        removed
    }

    /// Those of the memory of these owners.
    pub(crate) fn of(&self, owners: &[u64]) -> Vec<Leaving> {
        let all = self.0.values();
        all.filter(|l| owners.contains(&l.owner)).copied().collect()
    }
}
