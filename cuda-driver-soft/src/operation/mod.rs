//! Operations as values: what a call asks for, whether it is queued on a stream, captured, or put into a graph.
//!
//! A value has been checked as far as it can be before its turn comes; its work is for the scheduler.
#![forbid(unsafe_code)]

use std::sync::Arc;

use cuda_driver_sys::CUgraphNodeType as NodeType;

use crate::object::event::Event;
use crate::object::graph_memory::GraphMemory;
use crate::operation::copy::CopyOperation;
use crate::operation::fill::Fill;
use crate::operation::kernel::KernelLaunch;
use crate::operation::memory_operation::Batch;
use crate::queue::work::Work;
use crate::state::error::Result;

pub(crate) mod copy;
pub(crate) mod fill;
pub(crate) mod kernel;
pub(crate) mod launch;
pub(crate) mod memory_operation;
pub(crate) mod outcome;
pub(crate) mod region;

/// An operation.
#[derive(Clone)]
pub(crate) enum Operation {
    Kernel(Arc<KernelLaunch>),
    Copy(Arc<CopyOperation>),
    Fill(Fill),
    Host(HostFunction),
    /// The graph of this handle, which the node owns.
    Child(usize),
    Empty,
    Record(EventUse),
    Wait(EventUse),
    Alloc(GraphAllocation),
    /// Frees memory that a node of some graph allocates.
    Free(Arc<GraphMemory>),
    /// Memory operations, one after the other.
    Operations(Arc<Batch>),
}

impl Operation {
    /// The type of a node that does it.
    pub(crate) fn kind(&self) -> NodeType {
        match self {
            Operation::Kernel(_) => NodeType::CU_GRAPH_NODE_TYPE_KERNEL,
            Operation::Copy(_) => NodeType::CU_GRAPH_NODE_TYPE_MEMCPY,
            Operation::Fill(_) => NodeType::CU_GRAPH_NODE_TYPE_MEMSET,
            Operation::Host(_) => NodeType::CU_GRAPH_NODE_TYPE_HOST,
            Operation::Child(_) => NodeType::CU_GRAPH_NODE_TYPE_GRAPH,
            Operation::Empty => NodeType::CU_GRAPH_NODE_TYPE_EMPTY,
            Operation::Wait(_) => NodeType::CU_GRAPH_NODE_TYPE_WAIT_EVENT,
            Operation::Record(_) => NodeType::CU_GRAPH_NODE_TYPE_EVENT_RECORD,
            Operation::Alloc(_) => NodeType::CU_GRAPH_NODE_TYPE_MEM_ALLOC,
            Operation::Free(_) => NodeType::CU_GRAPH_NODE_TYPE_MEM_FREE,
            Operation::Operations(_) => NodeType::CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
        }
    }

    /// Whether it can be switched off in an executable graph.
    pub(crate) fn can_be_disabled(&self) -> bool {
        matches!(
            self,
            Operation::Kernel(_) | Operation::Copy(_) | Operation::Fill(_)
        )
    }

    /// Whether it allocates or frees memory of a graph.
    pub(crate) fn is_memory(&self) -> bool {
        matches!(self, Operation::Alloc(_) | Operation::Free(_))
    }
}

/// A host function.
#[derive(Clone)]
pub(crate) struct HostFunction {
    /// Calls the function with the data.
    pub(crate) call: Arc<dyn Fn() + Send + Sync>,
    /// Addresses of the function and of its data.
    pub(crate) function: usize,
    pub(crate) data: usize,
    pub(crate) sync_mode: u32,
}

impl HostFunction {
    /// The work of calling it; it is not called after a fault.
    pub(crate) fn work(&self) -> Work {
        let call = self.call.clone();
        Work::Host(Box::new(move |fault| {
            if fault == 0 {
                call();
            }
        }))
    }
}

/// An event that is recorded or waited for.
#[derive(Clone)]
pub(crate) struct EventUse {
    pub(crate) handle: usize,
    pub(crate) event: Arc<Event>,
}

/// Memory that is there once the node has run.
#[derive(Clone)]
pub(crate) struct GraphAllocation {
    pub(crate) memory: Arc<GraphMemory>,
    pub(crate) ordinal: i32,
}

/// The work of a node when its turn comes, and a guess of its duration in nanoseconds; `None` for what only joins.
pub(crate) fn work(action: &Operation) -> Result<Option<(Work, u64)>> {
    Ok(Some(match action {
        Operation::Kernel(kernel) => kernel.ready.work()?,
        Operation::Copy(copy) => {
            let (cost, copy) = (outcome::cost(copy.extent.bytes()), copy.clone());
            let task = move || copy.run().map_err(outcome::gone);
            (Work::Run(Box::new(task)), cost)
        }
        Operation::Fill(fill) => {
            let (cost, fill) = (outcome::cost(fill.reach()?), *fill);
            let task = move || fill.find_and_run().map_err(outcome::gone);
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
        // A launch takes them one by one.
        Operation::Operations(_)
        | Operation::Child(_)
        | Operation::Empty
        | Operation::Record(_)
        | Operation::Wait(_)
        | Operation::Alloc(_) => return Ok(None),
    }))
}
