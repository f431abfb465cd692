//! Operations: copies, fills, launches and other requests as values, which are queued on a stream, captured, or added
//! to a graph.
//!
//! An operation is checked as far as possible when it is created. The scheduler runs its work.
#![forbid(unsafe_code)]

pub use host_access::HostAccesses;
use std::sync::Arc;

use cuda_driver_sys::CUgraphNodeType as NodeType;

use crate::object::event::Event;
use crate::object::graph_memory::GraphMemory;
use crate::operation::conditional::ConditionalNode;
use crate::operation::copy::CopyOperation;
use crate::operation::fill::Fill;
use crate::operation::kernel::KernelLaunch;
use crate::operation::memory_operation::Batch;
use crate::operation::ordered::Ordered;
use crate::queue::work::Work;
use crate::state::error::Result;

pub(crate) mod conditional;
pub(crate) mod copy;
pub(crate) mod fill;
mod host_access;
pub(crate) mod kernel;
pub(crate) mod launch;
pub(crate) mod memory_operation;
pub(crate) mod ordered;
pub(crate) mod outcome;
mod progress;
pub(crate) mod region;
pub(crate) mod staged;
pub(crate) mod timeline;

/// An operation of a stream or a graph node.
#[derive(Clone)]
pub(crate) enum Operation {
    Kernel(Arc<KernelLaunch>),
    Copy(Arc<CopyOperation>),
    Fill(Fill),
    Host(HostFunction),
    /// A child graph, by handle; the node owns it.
    Child(usize),
    /// Runs one of its graphs once or repeatedly, or none, depending on a value. The node owns the graphs.
    Conditional(Arc<ConditionalNode>),
    Empty,
    Record(EventUse),
    Wait(EventUse),
    Alloc(GraphAllocation),
    /// Frees memory that a graph node allocates.
    Free(Arc<GraphMemory>),
    /// A batch of memory operations, which run in order.
    Operations(Arc<Batch>),
    /// Signals external semaphores or waits for them. This driver has none, so a node's list is empty.
    Semaphores(SemaphoreUse),
}

impl Operation {
    /// Returns the type of a graph node with this operation.
    pub(crate) fn kind(&self) -> NodeType {
        match self {
            Operation::Kernel(_) => NodeType::CU_GRAPH_NODE_TYPE_KERNEL,
            Operation::Copy(_) => NodeType::CU_GRAPH_NODE_TYPE_MEMCPY,
            Operation::Fill(_) => NodeType::CU_GRAPH_NODE_TYPE_MEMSET,
            Operation::Host(_) => NodeType::CU_GRAPH_NODE_TYPE_HOST,
            Operation::Child(_) => NodeType::CU_GRAPH_NODE_TYPE_GRAPH,
            Operation::Conditional(_) => NodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL,
            Operation::Empty => NodeType::CU_GRAPH_NODE_TYPE_EMPTY,
            Operation::Wait(_) => NodeType::CU_GRAPH_NODE_TYPE_WAIT_EVENT,
            Operation::Record(_) => NodeType::CU_GRAPH_NODE_TYPE_EVENT_RECORD,
            Operation::Alloc(_) => NodeType::CU_GRAPH_NODE_TYPE_MEM_ALLOC,
            Operation::Free(_) => NodeType::CU_GRAPH_NODE_TYPE_MEM_FREE,
            Operation::Operations(_) => NodeType::CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
            Operation::Semaphores(SemaphoreUse::Signal) => NodeType::CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL,
            Operation::Semaphores(SemaphoreUse::Wait) => NodeType::CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT,
        }
    }

    /// Returns the graphs that a node with this operation owns.
    pub(crate) fn graphs(&self) -> &[usize] {
        match self {
            Operation::Child(child) => std::slice::from_ref(child),
            Operation::Conditional(conditional) => &conditional.bodies,
            _ => &[],
        }
    }

    /// Returns true if a node with this operation can be disabled in an executable graph.
    pub(crate) fn can_be_disabled(&self) -> bool {
        matches!(self, Operation::Kernel(_) | Operation::Copy(_) | Operation::Fill(_))
    }

    /// Returns true if the operation allocates or frees graph memory.
    pub(crate) fn is_memory(&self) -> bool {
        matches!(self, Operation::Alloc(_) | Operation::Free(_))
    }
}

/// A host function with its data.
#[derive(Clone)]
pub(crate) struct HostFunction {
    /// Calls the function with its data.
    pub(crate) call: Arc<dyn Fn() + Send + Sync>,
    /// Addresses of the function and its data.
    pub(crate) function: usize,
    pub(crate) data: usize,
    /// `CUhostTaskSyncMode`, which has no effect here.
    pub(crate) sync_mode: u32,
}

impl HostFunction {
    /// Returns the work that calls the function. After a fault, the function is not called.
    pub(crate) fn work(&self) -> Work {
        let call = self.call.clone();
        Work::Host(Box::new(move |fault| {
            if fault == 0 {
                call();
            }
        }))
    }
}

/// The use of external semaphores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SemaphoreUse {
    Signal,
    Wait,
}

/// An event to record or to wait for.
#[derive(Clone)]
pub(crate) struct EventUse {
    pub(crate) handle: usize,
    pub(crate) event: Arc<Event>,
}

/// Graph memory that the node allocates, and the number of its device.
#[derive(Clone)]
pub(crate) struct GraphAllocation {
    pub(crate) memory: Arc<GraphMemory>,
    pub(crate) ordinal: i32,
}

/// Returns the work of a node and an estimate of its duration in nanoseconds, or `None` if the node has no work of its
/// own.
pub(crate) fn work(operation: &Operation) -> Result<Option<(Work, u64)>> {
    Ok(Some(match operation {
        Operation::Kernel(kernel) => kernel.work()?,
        Operation::Copy(copy) => {
            let (cost, copy) = (outcome::cost(copy.extent.bytes()), copy.clone());
            let ordered = Ordered::copy(copy.extent.bytes());
            let task = move || {
                let spans = ordered.as_ref().map(|_| copy.spans());
                copy.run().map_err(outcome::freed_fault)?;
                if let (Some(ordered), Some(spans)) = (ordered, spans) {
                    ordered.used_by_task(&spans);
                }
                Ok(())
            };
            (Work::Run(Box::new(task)), cost)
        }
        Operation::Fill(fill) => {
            let (cost, fill) = (outcome::cost(fill.reach()?), *fill);
            let ordered = Ordered::fill(fill.bytes());
            let task = move || {
                let spans = ordered.as_ref().map(|_| fill.spans());
                fill.find_and_run().map_err(outcome::freed_fault)?;
                if let (Some(ordered), Some(spans)) = (ordered, spans) {
                    ordered.used_by_task(&spans);
                }
                Ok(())
            };
            (Work::Run(Box::new(task)), cost)
        }
        Operation::Host(host) => (host.work(), 0),
        Operation::Free(memory) => {
            let memory = memory.clone();
            let task = move || {
                memory.end_use();
                Ok(())
            };
            (Work::Run(Box::new(task)), 0)
        }
        // The launch of a graph submits the operations of a batch and the nodes of child graphs one by one, and treats
        // conditional nodes and events itself. The others have no work.
        Operation::Operations(_)
        | Operation::Child(_)
        | Operation::Conditional(_)
        | Operation::Empty
        | Operation::Record(_)
        | Operation::Wait(_)
        | Operation::Alloc(_)
        | Operation::Semaphores(_) => return Ok(None),
    }))
}
