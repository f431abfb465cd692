//! Frees and unregisters memory after all work of its context and all queued copies and fills that use it, and removes
//! it from the objects that refer to it.

use crate::call::lookup::current_context;
use crate::object::graph_memory::{self, GraphMemory};
use crate::object::{freed, mappings, memory, pool};
use crate::queue::capture;
use crate::queue::scheduler::observe_fault;
use crate::state::error::{Error, Result};
use engine::memory::{AllocationKind, address_space};

/// Frees memory of a kind that `ours` accepts, imported memory of a pool or mapped external memory, after all work that
/// uses it.
fn free_after_work(address: u64, ours: impl Fn(AllocationKind) -> bool) -> Result<()> {
    check_context()?;
    let allocation = memory::find(address)
        .filter(|a| a.base == address && (ours(a.kind) || mappings::is_pooled(a) || mappings::is_external(a)))
        .ok_or_else(|| {
            host::log!("cannot free {address:#x}: it is not the start of an allocation that this function frees");
            Error::CUDA_ERROR_INVALID_VALUE
        })?;
    memory::drain_users(&allocation);
    observe_fault()?;
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

/// `cuMemFree`: waits for the work of the memory's context. Ignores NULL.
pub(crate) fn free(address: u64) -> Result<()> {
    capture::check_unsafe()?;
    if address == 0 {
        return check_context();
    }
    free_after_work(address, |kind| {
        matches!(kind, AllocationKind::Device | AllocationKind::Managed)
    })
}

/// `cuMemFreeHost`: waits for the work of the memory's context. Ignores NULL.
pub(crate) fn free_host(address: u64) -> Result<()> {
    capture::check_unsafe()?;
    if address == 0 {
        return check_context();
    }
    free_after_work(address, |kind| kind == AllocationKind::Pinned)
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
    memory::host_flags().remove(&allocation.id);
    Ok(())
}
