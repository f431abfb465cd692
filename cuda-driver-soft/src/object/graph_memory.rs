//! Memory that nodes of graphs allocate.
//!
//! Its address is known from the making of the node on and stays the same. The bytes can be reached from the launch of a
//! graph that allocates it until something has freed it: a node of the graph, of another one, or a call.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use cuda_driver_sys::CUgraphMem_attribute as Id;

use crate::object::context::Context;
use crate::object::{device, freed, memory};
use crate::state::error::{Error, Result};
use engine::memory::{Allocation, Kind, space};

/// As recorded, what graphs use is counted in multiples of so many bytes, and stays in use until it is trimmed.
const CHUNK: u64 = 32 << 20;

/// Memory of a graph, as long as a node, an executable graph or its own bytes are there.
#[derive(Debug)]
pub(crate) struct GraphMemory {
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    ordinal: i32,
    /// The allocation's number.
    id: u64,
    use_: Mutex<Use>,
}

#[derive(Debug, Default)]
struct Use {
    /// An executable graph allocates it.
    claimed: bool,
    /// There is, or was, a node that frees it.
    has_free_node: bool,
    /// Launches that allocate it, less what has freed it.
    open: u64,
    /// It is allocated as far as calls know: a launch has allocated it, and no call or launch has freed it.
    allocated: bool,
}

/// Bytes of graphs on a device.
#[derive(Clone, Copy, Debug, Default)]
struct Bytes {
    allocated: u64,
    used: u64,
    most_used: u64,
    most_reserved: u64,
}

#[derive(Default)]
struct GraphMemories {
    /// What is allocated, by the allocation's number: it stays, whatever becomes of the graphs.
    allocated: HashMap<u64, Arc<GraphMemory>>,
    /// What nodes allocate, allocated or not, by address.
    all: BTreeMap<u64, Weak<GraphMemory>>,
    /// By the device's ordinal.
    devices: HashMap<i32, Bytes>,
}

fn known() -> MutexGuard<'static, GraphMemories> {
    static KNOWN: OnceLock<Mutex<GraphMemories>> = OnceLock::new();
    let known = KNOWN.get_or_init(Mutex::default);
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Bytes {
    fn use_more(&mut self, bytes: u64) {
        self.allocated += bytes;
        self.used = self.used.max(self.allocated.next_multiple_of(CHUNK));
        self.most_used = self.most_used.max(self.used);
        self.most_reserved = self.most_reserved.max(self.used);
    }
}

impl GraphMemory {
    pub(crate) fn new(context: &Context, bytes: u64) -> Result<Arc<Self>> {
        if bytes == 0 {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        let address = memory::allocate(context, Kind::Device, bytes)?;
        let found = space().find(address).ok_or(Error::CUDA_ERROR_UNKNOWN)?;
        space().set_reachable(address, false);
        let memory = Arc::new(GraphMemory {
            address,
            bytes,
            ordinal: context.device.ordinal,
            id: found.id,
            use_: Mutex::default(),
        });
        known().all.insert(address, Arc::downgrade(&memory));
        Ok(memory)
    }

    fn state(&self) -> MutexGuard<'_, Use> {
        self.use_.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that there is a node that frees it; false if there was one already.
    pub(crate) fn set_free_node(&self) -> bool {
        !std::mem::replace(&mut self.state().has_free_node, true)
    }

    /// Makes it an executable graph's; false if it is one's already.
    pub(crate) fn claim(&self) -> bool {
        !std::mem::replace(&mut self.state().claimed, true)
    }

    pub(crate) fn unclaim(&self) {
        self.state().claimed = false;
    }

    /// Whether a launch has allocated it and nothing freed it, as far as calls know.
    pub(crate) fn is_allocated(&self) -> bool {
        self.state().allocated
    }

    /// A launch will allocate it: from now on it can be reached.
    pub(crate) fn begin_use(self: &Arc<Self>) {
        let mut state = self.state();
        state.open += 1;
        state.allocated = true;
        space().set_reachable(self.address, true);
        drop(state);
        let mut known = known();
        if known.allocated.insert(self.id, self.clone()).is_none() {
            let bytes = self.bytes;
            known
                .devices
                .entry(self.ordinal)
                .or_default()
                .use_more(bytes);
        }
    }

    /// A call or a launch will free it: it is gone for other calls. False if it is not allocated.
    pub(crate) fn leave(&self) -> bool {
        std::mem::take(&mut self.state().allocated)
    }

    /// What was to free it has come so far.
    pub(crate) fn end_use(&self) {
        let mut state = self.state();
        state.open = state.open.saturating_sub(1);
        if state.open > 0 {
            return;
        }
        space().set_reachable(self.address, false);
        drop(state);
        let mut known = known();
        let last = known.allocated.remove(&self.id);
        if last.is_some() {
            let device = known.devices.entry(self.ordinal).or_default();
            device.allocated = device.allocated.saturating_sub(self.bytes);
        }
        drop(known);
        // It may be the last that knows of this memory.
        drop(last);
    }
}

impl Drop for GraphMemory {
    fn drop(&mut self) {
        let id = self.id;
        let mut known = known();
        // Another may have got the address meanwhile, and it lives.
        if known
            .all
            .get(&self.address)
            .is_some_and(|m| m.strong_count() == 0)
        {
            known.all.remove(&self.address);
        }
        drop(known);
        if let Ok(freed) = space().free_if(self.address, |a| a.id == id) {
            freed::forget(&freed);
        }
    }
}

/// The graph's memory that an allocation is, while it is allocated.
pub(crate) fn of(allocation: &Allocation) -> Option<Arc<GraphMemory>> {
    known().allocated.get(&allocation.id).cloned()
}

/// Whether nodes allocate all of this memory, allocated or not.
pub(crate) fn contain(address: u64, bytes: u64) -> bool {
    let known = known();
    let below = known.all.range(..=address).next_back();
    let found = below.and_then(|(_, memory)| memory.upgrade());
    drop(known);
    found.is_some_and(|m| {
        let offset = address - m.address;
        offset <= m.bytes && bytes <= m.bytes - offset
    })
}

/// The memory that some node allocates at this address, whether or not it is allocated now.
pub(crate) fn at(address: u64) -> Option<Arc<GraphMemory>> {
    known().all.get(&address).and_then(Weak::upgrade)
}

/// `cuDeviceGetGraphMemAttribute`: bytes in use, at most in use, reserved, at most reserved.
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

/// `cuDeviceSetGraphMemAttribute`: what was at most so far can begin anew.
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

/// `cuDeviceGraphMemTrim`: what is not allocated goes back to the device.
pub(crate) fn trim(ordinal: i32) -> Result<()> {
    device::get(ordinal)?;
    let mut known = known();
    let bytes = known.devices.entry(ordinal).or_default();
    bytes.used = bytes.allocated.next_multiple_of(CHUNK);
    Ok(())
}
