//! Graph nodes that run batches of memory operations.

use super::exec::GraphExec;
use super::node::{Node, handles};
use super::owner::Graph;
use crate::sys::{CUDA_BATCH_MEM_OP_NODE_PARAMS, CUcontext, CUstreamBatchMemOpParams, Function};
use crate::{Result, checked};

/// Returns the parameters of a node. The driver only reads the array.
#[inline]
#[allow(clippy::cast_possible_truncation)] // The driver accepts at most 255 operations.
fn params(operations: &[CUstreamBatchMemOpParams], context: CUcontext) -> CUDA_BATCH_MEM_OP_NODE_PARAMS {
    CUDA_BATCH_MEM_OP_NODE_PARAMS {
        ctx: context,
        count: operations.len().min(u32::MAX as usize) as u32,
        paramArray: operations.as_ptr().cast_mut(),
        flags: 0,
    }
}

impl Graph {
    /// Adds a node with memory operations, which run in order: writes of values, waits for values, barriers
    /// ([`cuGraphAddBatchMemOpNode`](checked::graph_add_batch_mem_op_node)). The operations are copied.
    ///
    /// # Safety
    /// Each operation must be valid for its kind. Addresses must be of device memory, or of page-locked host memory.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for more than 255 operations, `CUDA_ERROR_NOT_SUPPORTED` if the device does
    /// not support them, and `CUDA_ERROR_INVALID_CONTEXT` for a [captured](crate::Stream::capture) graph whose context
    /// is not known.
    #[inline]
    #[doc(alias = "cuGraphAddBatchMemOpNode")]
    #[track_caller]
    pub unsafe fn add_memory_operations(
        &self,
        after: &[Node<'_>],
        operations: &[CUstreamBatchMemOpParams],
    ) -> Result<Node<'_>> {
        let _current = self.enter()?;
        let params = params(operations, self.node_context(Function::cuGraphAddBatchMemOpNode)?);
        // SAFETY: the handles are live, and the array has that many operations; the rest is upheld by the caller.
        let raw = unsafe { checked::graph_add_batch_mem_op_node(self.as_raw(), &handles(after), &params) }?;
        Ok(Node::of(raw, self))
    }
}

impl Node<'_> {
    /// Returns the memory operations of a node
    /// ([`cuGraphBatchMemOpNodeGetParams`](checked::graph_batch_mem_op_node_get_params)). The driver owns the array
    /// until the node is changed or destroyed.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for a node of another kind.
    #[inline]
    #[doc(alias = "cuGraphBatchMemOpNodeGetParams")]
    #[track_caller]
    pub fn memory_operations(&self) -> Result<CUDA_BATCH_MEM_OP_NODE_PARAMS> {
        // SAFETY: the node is in the graph, which is live.
        unsafe { checked::graph_batch_mem_op_node_get_params(self.as_raw()) }
    }

    /// Replaces the memory operations of a node
    /// ([`cuGraphBatchMemOpNodeSetParams`](checked::graph_batch_mem_op_node_set_params)). Executable graphs do not
    /// change.
    ///
    /// # Safety
    /// Same as [`Graph::add_memory_operations`].
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for more than 255 operations, or a node of another kind, and
    /// `CUDA_ERROR_INVALID_CONTEXT` for a [captured](crate::Stream::capture) graph whose context is not known.
    #[inline]
    #[doc(alias = "cuGraphBatchMemOpNodeSetParams")]
    #[track_caller]
    pub unsafe fn set_memory_operations(&self, operations: &[CUstreamBatchMemOpParams]) -> Result<()> {
        let params = params(
            operations,
            self.graph().node_context(Function::cuGraphBatchMemOpNodeSetParams)?,
        );
        // SAFETY: as in `Graph::add_memory_operations`.
        unsafe { checked::graph_batch_mem_op_node_set_params(self.as_raw(), &params) }
    }
}

impl GraphExec {
    /// Replaces the memory operations of a node
    /// ([`cuGraphExecBatchMemOpNodeSetParams`](checked::graph_exec_batch_mem_op_node_set_params)).
    ///
    /// # Safety
    /// Same as [`Graph::add_memory_operations`].
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for another number of operations, operations of other kinds, and a node of
    /// another kind or graph, and `CUDA_ERROR_INVALID_CONTEXT` for a [captured](crate::Stream::capture) graph whose
    /// context is not known.
    #[inline]
    #[doc(alias = "cuGraphExecBatchMemOpNodeSetParams")]
    #[track_caller]
    pub unsafe fn set_memory_operations(&self, node: Node<'_>, operations: &[CUstreamBatchMemOpParams]) -> Result<()> {
        let params = params(
            operations,
            self.node_context(Function::cuGraphExecBatchMemOpNodeSetParams)?,
        );
        // SAFETY: as in `Graph::add_memory_operations`.
        unsafe { checked::graph_exec_batch_mem_op_node_set_params(self.as_raw(), node.as_raw(), &params) }
    }
}
