//! Frees and unregisters memory after all work of its context and all queued copies and fills that use it, and removes
//! the records that other modules keep about it.

use crate::call::lookup::current_context;
use crate::object::graph_memory::{self, GraphMemory};
use crate::object::{freed, mappings, memory, pool};
use crate::queue::capture;
use crate::queue::scheduler::observe_fault;
use crate::state::error::{Error, Result};
use engine::memory::{Allocation, AllocationKind, address_space};

/// Frees memory that `ours` accepts, after all work that uses it.
fn free_after_work(address: u64, ours: impl Fn(&Allocation) -> bool) -> Result<()> {
    check_context()?;
    let allocation = memory::find(address)
        .filter(|a| a.base == address && ours(a))
        .ok_or_else(|| {
            host::log!("cannot free {address:#x}: it is not the start of an allocation that this function frees");
            Error::CUDA_ERROR_INVALID_VALUE
        })?;
    memory::drain_users(&allocation);
    observe_fault()?;
    // A node may have freed the memory during the wait. The graph keeps the address, and may allocate it again.
    if let Some(memory) = graph_memory::of(&allocation) {
        return free_of_graph(&memory);
    }
    // Another thread may have freed the memory in the meantime, and the address may belong to another allocation.
    address_space()
        .free_if(address, |a| a.id == allocation.id)
        .map_err(|_| Error::CUDA_ERROR_INVALID_VALUE)?;
    freed::forget(&allocation);
    // As on driver 580, pools release their unused memory immediately.
    pool::settle();
    Ok(())
}

/// Frees memory that a node of a graph has allocated; the graph may allocate it again.
fn free_of_graph(memory: &GraphMemory) -> Result<()> {
    if !memory.mark_freed() {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    memory.end_use();
    Ok(())
}

/// Checks that the current context, if there is one, is live, and that no fault was reported. Freeing memory needs no
/// current context.
fn check_context() -> Result<()> {
    match current_context() {
        Err(Error::CUDA_ERROR_INVALID_CONTEXT) => Ok(()),
        other => other.map(drop),
    }
}

/// `cuMemFree`: waits for the work of the memory's context. Also frees imported memory of a pool and mapped external
/// memory. Ignores NULL.
pub(crate) fn free(address: u64) -> Result<()> {
    capture::check_unsafe()?;
    if address == 0 {
        return check_context();
    }
    free_after_work(address, |a| {
        let is_ours = matches!(a.kind, AllocationKind::Device | AllocationKind::Managed);
        is_ours || mappings::is_pooled(a) || mappings::is_external(a)
    })
}

/// `cuMemFreeHost`: waits for the work of the memory's context. Ignores NULL.
pub(crate) fn free_host(address: u64) -> Result<()> {
    capture::check_unsafe()?;
    if address == 0 {
        return check_context();
    }
    free_after_work(address, |a| a.kind == AllocationKind::Pinned)
}

/// `cuMemHostUnregister`: waits for the work of the context that registered the memory.
pub(crate) fn unregister(address: u64) -> Result<()> {
    check_context()?;
    capture::check_unsafe()?;
    if address == 0 {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    // Driver 580 returns `CUDA_ERROR_INVALID_VALUE` for its own memory, which is page-locked without registration.
    if address_space().reserves(address) {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    let not_registered = Error::CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    let allocation = memory::find(address).ok_or(not_registered)?;
    if allocation.base != address || allocation.kind != AllocationKind::Registered {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    memory::drain_users(&allocation);
    address_space()
        .free_if(address, |a| a.id == allocation.id)
        .map_err(|_| not_registered)?;
    freed::forget(&allocation);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::time::Duration;

    use super::*;
    use crate::object::context;
    use crate::object::stream::StreamRef;
    use crate::queue::streams::QueueId;
    use crate::queue::work::Work;

    #[test]
    fn memory_that_a_node_frees_during_the_wait_stays_the_graphs() {
        static RELEASED: AtomicBool = AtomicBool::new(false);
        let stream = StreamRef::of_default(context::for_test(), QueueId::Legacy);
        let memory = GraphMemory::new(&stream.context, 64).unwrap();
        memory.begin_use();
        // A launch of a free node: the memory is freed for other calls at once, and its bytes when the work runs.
        assert!(memory.mark_freed());
        let of_node = Arc::clone(&memory);
        let end = move || {
            of_node.end_use();
            Ok(())
        };
        stream.submit(&[], Work::Until(Box::new(|| Ok(RELEASED.load(Relaxed)))), 0);
        stream.submit(&[], Work::Run(Box::new(end)), 0);
        let release = std::thread::spawn(|| {
            // Gives the call time to find the memory. The call then waits for the work.
            std::thread::sleep(Duration::from_millis(100));
            RELEASED.store(true, Relaxed);
        });
        assert_eq!(free(memory.address), Err(Error::CUDA_ERROR_INVALID_VALUE));
        release.join().unwrap();
        // The graph can allocate the memory again.
        memory.begin_use();
        assert!(address_space().find(memory.address).is_some());
        assert_eq!(free(memory.address), Ok(()));
        assert!(address_space().find(memory.address).is_none());
    }
}
