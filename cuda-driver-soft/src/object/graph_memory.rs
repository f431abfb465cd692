//! Memory that is allocated by graph nodes.
//!
//! The address is fixed when the node is created. The bytes are accessible from the launch of a graph that allocates
//! them until they are freed by a node of that or another graph, or by a call.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use cuda_driver_sys::CUgraphMem_attribute as Id;

use crate::object::memory::Owner;
use crate::object::{device, freed, memory};
use crate::state::error::{Error, Result};
use engine::memory::{Allocation, AllocationKind, address_space};

/// Driver 580 counts the memory of graphs in multiples of this many bytes and keeps it in use until it is trimmed.
const CHUNK: u64 = 32 << 20;

/// Memory of an allocation node. It lives as long as a node or an executable graph refers to it, and while it is
/// allocated.
#[derive(Debug)]
pub(crate) struct GraphMemory {
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    ordinal: i32,
    /// The allocation's ID.
    id: u64,
    state: Mutex<GraphMemoryState>,
}

#[derive(Debug, Default)]
struct GraphMemoryState {
    /// True if an executable graph has the allocation. No other executable graph can have it.
    claimed: bool,
    /// Number of launches that allocated the memory, minus the number of times that it was freed.
    open: u64,
    /// True from the call that launches an allocation to the call that frees it or launches its free node.
    allocated: bool,
    /// True once the memory was freed with its context: the address may belong to other memory.
    gone: bool,
}

/// Graph memory of a device, in bytes.
#[derive(Clone, Copy, Debug, Default)]
struct GraphMemoryUsage {
    /// Bytes that launches allocated and that are not freed.
    allocated: u64,
    /// The largest value of `allocated` since the last trim, rounded up to a multiple of [`CHUNK`].
    used: u64,
    /// The largest value of `used` since the program reset this mark.
    most_used: u64,
    /// Like `most_used`, but reset separately.
    most_reserved: u64,
}

#[derive(Default)]
struct GraphMemories {
    /// Allocated memory by allocation ID. Keeps the memory alive when its graphs are destroyed.
    allocated: HashMap<u64, Arc<GraphMemory>>,
    /// Memory of all nodes by address, allocated or not.
    all: BTreeMap<u64, Weak<GraphMemory>>,
    /// By device ordinal.
    devices: HashMap<i32, GraphMemoryUsage>,
}

fn known() -> MutexGuard<'static, GraphMemories> {
    static KNOWN: OnceLock<Mutex<GraphMemories>> = OnceLock::new();
    let known = KNOWN.get_or_init(Mutex::default);
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

impl GraphMemoryUsage {
    fn use_more(&mut self, bytes: u64) {
        self.allocated += bytes;
        self.used = self.used.max(self.allocated.next_multiple_of(CHUNK));
        self.most_used = self.most_used.max(self.used);
        self.most_reserved = self.most_reserved.max(self.used);
    }
}

impl GraphMemories {
    /// Counts memory as no longer allocated. The caller drops the result without the locks: it may be the last
    /// reference, whose `Drop` takes this lock.
    fn end(&mut self, memory: &GraphMemory) -> Option<Arc<GraphMemory>> {
        let last = self.allocated.remove(&memory.id)?;
        let device = self.devices.entry(memory.ordinal).or_default();
        device.allocated = device.allocated.saturating_sub(memory.bytes);
        Some(last)
    }
}

impl GraphMemory {
    /// Creates the memory of a new node. Until a launch allocates it, it is not accessible.
    pub(crate) fn new<'c>(owner: impl Into<Owner<'c>>, bytes: u64) -> Result<Arc<Self>> {
        if bytes == 0 {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        let owner = owner.into();
        let address = memory::allocate(owner, AllocationKind::Device, bytes)?;
        let found = address_space().find(address).ok_or(Error::CUDA_ERROR_UNKNOWN)?;
        address_space().set_reachable(address, false);
        let memory = Arc::new(GraphMemory {
            address,
            bytes,
            ordinal: owner.device.ordinal,
            id: found.id,
            state: Mutex::default(),
        });
        known().all.insert(address, Arc::downgrade(&memory));
        Ok(memory)
    }

    fn state(&self) -> MutexGuard<'_, GraphMemoryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Claims the memory for an executable graph. Returns false if another executable graph has it.
    pub(crate) fn claim(&self) -> bool {
        !std::mem::replace(&mut self.state().claimed, true)
    }

    pub(crate) fn unclaim(&self) {
        self.state().claimed = false;
    }

    /// Returns true from the call that launches an allocation to the call that frees it or launches its free node.
    pub(crate) fn is_allocated(&self) -> bool {
        self.state().allocated
    }

    /// Starts a use by a launch that will allocate the memory, and makes the memory accessible.
    pub(crate) fn begin_use(self: &Arc<Self>) {
        // Locked to the end: another use that ends at the same time must not remove what this one records.
        let mut state = self.state();
        state.open += 1;
        state.allocated = true;
        if state.gone {
            return;
        }
        address_space().set_reachable(self.address, true);
        let mut known = known();
        if known.allocated.insert(self.id, self.clone()).is_none() {
            let bytes = self.bytes;
            known.devices.entry(self.ordinal).or_default().use_more(bytes);
        }
    }

    /// Marks the memory as freed for other calls, before the work that frees it has run. Returns false if it is not
    /// allocated.
    pub(crate) fn mark_freed(&self) -> bool {
        std::mem::take(&mut self.state().allocated)
    }

    /// Ends one use, when the work that frees the memory runs.
    pub(crate) fn end_use(&self) {
        let mut state = self.state();
        state.open = state.open.saturating_sub(1);
        if state.open > 0 || state.gone {
            return;
        }
        address_space().set_reachable(self.address, false);
        let last = known().end(self);
        drop(state);
        drop(last);
    }
}

impl Drop for GraphMemory {
    fn drop(&mut self) {
        let id = self.id;
        let mut known = known();
        // The address may have been reused for live memory in the meantime.
        if known.all.get(&self.address).is_some_and(|m| m.strong_count() == 0) {
            known.all.remove(&self.address);
        }
        drop(known);
        if let Ok(freed) = address_space().free_if(self.address, |a| a.id == id) {
            freed::forget(&freed);
        }
    }
}

/// Removes the records about memory of a node that was freed with its context. The node keeps the address, which may
/// belong to other memory from now on.
pub(crate) fn forget(freed: &Allocation) {
    let Some(memory) = of(freed) else {
        return;
    };
    memory.state().gone = true;
    let mut known = known();
    let is_same = |found: &Weak<GraphMemory>| std::ptr::eq(found.as_ptr(), Arc::as_ptr(&memory));
    if known.all.get(&freed.base).is_some_and(is_same) {
        known.all.remove(&freed.base);
    }
    let last = known.end(&memory);
    drop(known);
    drop(last);
}

/// Returns the graph memory behind an allocation, allocated or not.
pub(crate) fn of(allocation: &Allocation) -> Option<Arc<GraphMemory>> {
    at(allocation.base).filter(|memory| memory.id == allocation.id)
}

/// Returns true if the whole range belongs to one node's memory, allocated or not.
pub(crate) fn contains(address: u64, bytes: u64) -> bool {
    let known = known();
    let below = known.all.range(..=address).next_back();
    let found = below.and_then(|(_, memory)| memory.upgrade());
    drop(known);
    found.is_some_and(|m| {
        let offset = address - m.address;
        offset <= m.bytes && bytes <= m.bytes - offset
    })
}

/// Returns the memory of the node that allocates at this address, allocated or not.
pub(crate) fn at(address: u64) -> Option<Arc<GraphMemory>> {
    known().all.get(&address).and_then(Weak::upgrade)
}

/// `cuDeviceGetGraphMemAttribute`: returns the used or reserved bytes, current or peak. The current
/// reserved bytes are the current used bytes.
pub(crate) fn attribute(ordinal: i32, attribute: Id) -> Result<u64> {
    device::get(ordinal)?;
    let bytes = known().devices.get(&ordinal).copied().unwrap_or_default();
    match attribute {
        Id::CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT => Ok(bytes.used),
        Id::CU_GRAPH_MEM_ATTR_USED_MEM_HIGH => Ok(bytes.most_used),
        Id::CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT => Ok(bytes.used),
        Id::CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH => Ok(bytes.most_reserved),
        _ => Err(Error::CUDA_ERROR_INVALID_VALUE),
    }
}

/// `cuDeviceSetGraphMemAttribute`: resets a high-water mark. `value` must be 0.
pub(crate) fn reset_attribute(ordinal: i32, attribute: Id, value: u64) -> Result<()> {
    device::get(ordinal)?;
    let mut known = known();
    let bytes = known.devices.entry(ordinal).or_default();
    match attribute {
        Id::CU_GRAPH_MEM_ATTR_USED_MEM_HIGH if value == 0 => bytes.most_used = bytes.used,
        Id::CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH if value == 0 => bytes.most_reserved = bytes.used,
        _ => return Err(Error::CUDA_ERROR_INVALID_VALUE),
    }
    Ok(())
}

/// `cuDeviceGraphMemTrim`: reduces the used and reserved bytes to the allocated ones, rounded up. The memory itself
/// stays reserved for its node.
pub(crate) fn trim(ordinal: i32) -> Result<()> {
    device::get(ordinal)?;
    let mut known = known();
    let bytes = known.devices.entry(ordinal).or_default();
    bytes.used = bytes.allocated.next_multiple_of(CHUNK);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::context;

    fn is_kept(memory: &GraphMemory) -> bool {
        known().allocated.contains_key(&memory.id)
    }

    #[test]
    fn a_use_that_begins_while_another_ends_is_recorded() {
        let memory = GraphMemory::new(&context::for_test(), 64).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..50_000 {
                        memory.begin_use();
                        assert!(is_kept(&memory));
                        memory.end_use();
                    }
                });
            }
        });
        assert!(!is_kept(&memory));
    }

    #[test]
    fn memory_of_an_ended_context_leaves_its_address() {
        let context = context::for_test();
        let memory = GraphMemory::new(&context, 64).unwrap();
        let has_address = || at(memory.address).is_some_and(|found| Arc::ptr_eq(&found, &memory));
        memory.begin_use();
        assert!(has_address() && is_kept(&memory));
        for freed in address_space().free_owned(context.id()) {
            freed::forget(&freed);
            forget(&freed);
        }
        assert!(!has_address() && !is_kept(&memory));
        // Another launch of the graph does not bring it back.
        memory.begin_use();
        assert!(!has_address() && !is_kept(&memory));
        // The end of the uses does not hide memory that was given the address meanwhile.
        let other = context::for_test();
        let others = [(); 64].map(|()| memory::allocate(&other, AllocationKind::Device, 64).unwrap());
        memory.end_use();
        memory.end_use();
        assert!(others.iter().all(|address| address_space().find(*address).is_some()));
        for address in others {
            address_space().free_if(address, |a| a.owner == other.id()).unwrap();
        }
    }
}
