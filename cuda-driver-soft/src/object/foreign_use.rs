//! Queued copies and fills that use memory of another context. The calls that free memory, destroy arrays and end
//! contexts wait for them, as they wait for the work of the memory's own context. Of launched graphs, only copies are
//! recorded.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use crate::object::stream::StreamRef;
use crate::queue::scheduler::scheduler;
use crate::queue::streams::QueueId;
use crate::queue::work::TaskId;
use engine::memory::{Allocation, address_space};

/// The last use by a stream. A stream runs its work in order, so earlier uses are done before it.
#[derive(Clone, Copy)]
struct LastUse {
    context: u64,
    queue: QueueId,
    task: TaskId,
}

/// The last uses of an allocation.
#[derive(Default)]
struct Uses {
    /// The context that the allocation belongs to.
    owner: u64,
    last: Vec<LastUse>,
}

type AllUses = HashMap<u64, Uses>;

/// Number of allocations with recorded uses. It is usually 0; then freeing memory does not lock the record.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Locks the recorded uses, which have the allocation ID as their key.
fn all() -> MutexGuard<'static, AllUses> {
    static ALL: LazyLock<Mutex<AllUses>> = LazyLock::new(Mutex::default);
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Records that a task of a stream uses an allocation, if the allocation belongs to another context.
pub(crate) fn note(allocation: &Allocation, stream: &StreamRef, task: TaskId) {
    let context = stream.context.id();
    if allocation.owner == context {
        return;
    }
    let mut all = all();
    let uses = all.entry(allocation.id).or_default();
    uses.owner = allocation.owner;
    let others = |last: &LastUse| (last.context, last.queue) != (context, stream.queue);
    uses.last.retain(|last| others(last) && !scheduler().is_done(last.task));
    uses.last.push(LastUse {
        context,
        queue: stream.queue,
        task,
    });
    COUNT.store(all.len(), Relaxed);
    drop(all);
    // If another thread has freed the memory before the use was recorded, nothing else removes the record.
    let found = address_space().find(allocation.base);
    if found.is_none_or(|found| found.id != allocation.id) {
        forget(allocation);
    }
}

/// Waits for the recorded uses of an allocation that is about to be freed. The record stays until then, so that other
/// threads that free the memory or end its context wait, too.
pub(crate) fn drain(allocation: &Allocation) {
    if COUNT.load(Relaxed) == 0 {
        return;
    }
    let tasks = all().get(&allocation.id).map_or_else(Vec::new, |uses| tasks_of([uses]));
    scheduler().wait_all(&tasks);
}

/// As [`drain`], for the recorded uses of all memory of a context that is about to end.
pub(crate) fn drain_all_of(context: u64) {
    if COUNT.load(Relaxed) == 0 {
        return;
    }
    let tasks = tasks_of(all().values().filter(|uses| uses.owner == context));
    scheduler().wait_all(&tasks);
}

fn tasks_of<'u>(all: impl IntoIterator<Item = &'u Uses>) -> Vec<TaskId> {
    let last = all.into_iter().flat_map(|uses| &uses.last);
    last.map(|last| last.task).collect()
}

/// Returns true if a recorded use of memory of a context is pending.
pub(crate) fn uses_any_of(context: u64) -> bool {
    let is_pending = |uses: &Uses| uses.last.iter().any(|last| !scheduler().is_done(last.task));
    COUNT.load(Relaxed) != 0 && all().values().any(|uses| uses.owner == context && is_pending(uses))
}

/// Removes the record of freed memory.
pub(crate) fn forget(freed: &Allocation) {
    if COUNT.load(Relaxed) == 0 {
        return;
    }
    let mut all = all();
    all.remove(&freed.id);
    COUNT.store(all.len(), Relaxed);
}

/// Returns true if uses of an allocation are recorded.
#[cfg(test)]
pub(crate) fn has_record(allocation: &Allocation) -> bool {
    all().contains_key(&allocation.id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::managed::Location;
    use crate::object::{context, memory, virtual_memory as vmm};
    use crate::queue::work::Work;
    use engine::memory::AllocationKind;

    /// Another thread may free the memory between the submission of the work and the record.
    #[test]
    fn a_use_of_freed_memory_leaves_no_record() {
        let (owner, user) = (context::for_test(), context::for_test());
        let address = memory::allocate(&owner, AllocationKind::Device, 64).unwrap();
        let allocation = address_space().find(address).unwrap();
        let freed = address_space().free_if(address, |a| a.id == allocation.id).unwrap();
        forget(&freed);
        let stream = StreamRef::of_default(user, QueueId::Legacy);
        note(&allocation, &stream, stream.submit(&[], Work::Join, 0));
        assert!(!has_record(&allocation));
    }

    #[test]
    fn an_unmapped_range_leaves_no_record() {
        let context = context::for_test();
        let base = vmm::reserve(vmm::GRANULE, 0, 0).unwrap();
        let handle = vmm::create(Location::Device(0), vmm::GRANULE, false, false).unwrap();
        vmm::map_memory(base, vmm::GRANULE, 0, handle).unwrap();
        let allocation = address_space().find(base).unwrap();
        // No context owns mapped memory, so each use of it is recorded.
        let stream = StreamRef::of_default(context, QueueId::Legacy);
        note(&allocation, &stream, stream.submit(&[], Work::Join, 0));
        assert!(has_record(&allocation));
        vmm::unmap(base, vmm::GRANULE).unwrap();
        assert!(!has_record(&allocation));
        vmm::release(handle).unwrap();
        vmm::free_addresses(base, vmm::GRANULE).unwrap();
    }
}
