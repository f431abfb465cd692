//! Claims of an executable graph: the memory and the conditional handles that no other executable graph can have.

use std::sync::Arc;

use super::Plan;
use crate::object::graph_memory::GraphMemory;
use crate::operation::Operation;
use crate::operation::conditional::ConditionalHandle;
use crate::state::error::{Error, Result};

/// The claimed memory and handles, which are released when the value is dropped.
#[derive(Default)]
pub(super) struct Claims {
    memory: Vec<Arc<GraphMemory>>,
    handles: Vec<Arc<ConditionalHandle>>,
}

impl Claims {
    /// Claims everything that the nodes of a plan need, or nothing. Returns `CUDA_ERROR_NOT_SUPPORTED` if another
    /// executable graph has a part of it.
    pub(super) fn of(plan: &Plan) -> Result<Self> {
        let mut claims = Claims::default();
        let mut refused = None;
        plan.each(&mut |operation| match operation {
            Operation::Alloc(alloc) if alloc.memory.claim() => claims.memory.push(alloc.memory.clone()),
            Operation::Alloc(_) => refused = Some("allocation"),
            Operation::Conditional(node) if node.handle.claim() => claims.handles.push(node.handle.clone()),
            Operation::Conditional(_) => refused = Some("conditional"),
            _ => {}
        });
        match refused {
            None => Ok(claims),
            Some(kind) => {
                host::log!("a graph with {kind} nodes can have only one executable graph: destroy the other one first");
                Err(Error::CUDA_ERROR_NOT_SUPPORTED)
            }
        }
    }
}

impl Drop for Claims {
    fn drop(&mut self) {
        self.memory.iter().for_each(|memory| memory.unclaim());
        self.handles.iter().for_each(|handle| handle.unclaim());
    }
}
