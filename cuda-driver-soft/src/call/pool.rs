//! Stream-ordered allocation: `cuMemAllocAsync`, `cuMemAllocFromPoolAsync` and `cuMemFreeAsync`.

use crate::call::capture as capturing;
use crate::object::graph_memory::{self, GraphMemory};
use crate::object::memory::Owner;
use crate::object::pending_free::{self, PendingFree};
use crate::object::pool::PoolHome;
use crate::object::stream::StreamRef;
use crate::object::{freed, memory, pool};
use crate::operation::{GraphAllocation, Operation};
use crate::queue::capture;
use crate::queue::scheduler::scheduler;
use crate::queue::work::Work;
use crate::state::error::{Error, Result};
use engine::memory::{AllocationKind, address_space};

/// `cuMemAllocAsync` from the current pool of the stream's device, or `cuMemAllocFromPoolAsync` from `pool`. Returns
/// NULL for 0 bytes.
pub(crate) fn alloc(bytes: u64, pool: Option<usize>, stream: &StreamRef) -> Result<u64> {
    let context = &stream.context;
    let pool = match pool {
        Some(handle) => pool::get(handle)?,
        None => pool::get(pool::current_of_device(context.device.ordinal)?)?,
    };
    if pool.is_imported {
        host::log!("cannot allocate from an imported pool: allocate in the process that created it");
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    let is_capturing = stream.is_capturing();
    if !is_capturing {
        capture::check_unsafe()?;
    }
    if bytes == 0 {
        return Ok(0);
    }
    let kind = pool.home.kind();
    if is_capturing {
        return captured(bytes, pool.home, stream);
    }
    let owner = Owner::on(context, pool.home.ordinal().unwrap_or(context.device.ordinal))?;
    let allocated = memory::allocate(owner, kind, bytes);
    let address = allocated.or_else(|error| match (error, kind) {
        (Error::CUDA_ERROR_OUT_OF_MEMORY, AllocationKind::Device) => alloc_after_frees(owner, bytes),
        _ => Err(error),
    })?;
    let allocation = address_space().find(address).ok_or(Error::CUDA_ERROR_UNKNOWN)?;
    if let Err(error) = pool.take(bytes) {
        // No other thread has the address yet.
        let _ = address_space().free_if(address, |a| a.id == allocation.id);
        return Err(error);
    }
    pool::add(&allocation, pool, bytes);
    Ok(address)
}

/// Adds an allocation node to the capture.
fn captured(bytes: u64, home: PoolHome, stream: &StreamRef) -> Result<u64> {
    let (AllocationKind::Device, Some(ordinal)) = (home.kind(), home.ordinal()) else {
        host::log!("allocation nodes support only device memory: capture allocations from a pool of device memory");
        return Err(Error::CUDA_ERROR_NOT_SUPPORTED);
    };
    let memory = GraphMemory::new(Owner::on(&stream.context, ordinal)?, bytes)?;
    let address = memory.address;
    let allocation = GraphAllocation { memory, ordinal };
    capturing::add(stream, Operation::Alloc(allocation))?;
    Ok(address)
}

/// Allocates memory for which there is room only after pending frees on streams. Waits for these frees one after the
/// other until the allocation succeeds, except for frees queued after a host function or a wait for a value in memory:
/// the function or the value may depend on the calling thread. The memory of those frees counts as free, as on a GPU,
/// which reuses it in stream order.
fn alloc_after_frees(owner: Owner<'_>, bytes: u64) -> Result<u64> {
    let sum = |pending: &[PendingFree]| pending.iter().map(|free| free.bytes).sum::<u64>();
    let owners = memory::owners_on(owner.device);
    let mut pending = pending_free::all().of(&owners);
    let stays = address_space().device_bytes(&owners).saturating_sub(sum(&pending));
    let room = owner.device.total_memory().saturating_sub(stays);
    if pending.is_empty() || bytes > room {
        return Err(Error::CUDA_ERROR_OUT_OF_MEMORY);
    }
    pending.sort_unstable_by_key(|free| free.task);
    let held_up = scheduler().behind_host_functions();
    for freed in pending.iter().filter(|free| !held_up.contains(&free.task)) {
        scheduler().wait(freed.task);
        let allocated = memory::allocate(owner, AllocationKind::Device, bytes);
        if allocated != Err(Error::CUDA_ERROR_OUT_OF_MEMORY) {
            return allocated;
        }
    }
    let still = sum(&pending_free::all().of(&owners));
    memory::allocate_excluding(owner, AllocationKind::Device, bytes, still)
}

/// `cuMemFreeAsync`: also frees memory of `cuMemAlloc` and of allocation nodes, but, like driver 580, not memory of
/// `cuMemAllocManaged`. Ignores NULL. While the stream captures, adds a free node, and accepts only memory of
/// allocation nodes.
pub(crate) fn free(address: u64, stream: &StreamRef) -> Result<()> {
    let is_capturing = stream.is_capturing();
    if !is_capturing {
        capture::check_unsafe()?;
    }
    if address == 0 {
        return Ok(());
    }
    let of_graph = graph_memory::at(address);
    if is_capturing {
        let memory = of_graph.ok_or(Error::CUDA_ERROR_INVALID_VALUE)?;
        return capturing::add(stream, Operation::Free(memory));
    }
    if let Some(memory) = of_graph {
        if !memory.mark_freed() {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        let task = move || {
            memory.end_use();
            Ok(())
        };
        stream.submit(&[], Work::Run(Box::new(task)), 0);
        return Ok(());
    }
    let allocation = pool::begin_free(address)?;
    let task = move || {
        if let Ok(freed) = address_space().free_if(address, |a| a.id == allocation.id) {
            freed::forget(&freed);
        }
        Ok(())
    };
    let task = stream.submit(&[], Work::Run(Box::new(task)), 0);
    pending_free::all().set_task(&allocation, task);
    Ok(())
}
