//! Errors of instantiating graphs and of updating executable graphs, which name the node that caused them.

use core::fmt;

use super::owner::Graph;
use crate::error_log::ErrorLog;
use crate::sys::{self, CUgraphExecUpdateResult, CUgraphInstantiateResult, CUgraphNodeType};
use crate::{Error, checked};

/// An error of instantiating a graph or of updating an executable graph.
///
/// ```text
/// cuGraphExecUpdate_v2 failed: CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE (910): … (src/main.rs:12)
///   CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED: a node has another kind: instantiate the new graph instead
///   node 1 of the graph, a fill
/// ```
#[derive(Clone)]
pub struct GraphError {
    error: Error,
    instantiate_result: Option<CUgraphInstantiateResult>,
    update_result: Option<CUgraphExecUpdateResult>,
    node_index: Option<usize>,
    /// The lines of the message after the line of `error`.
    details: String,
}

impl GraphError {
    #[cold]
    #[inline]
    pub(super) fn of_instantiate(
        error: Error,
        result: Option<CUgraphInstantiateResult>,
        node: sys::CUgraphNode,
        graph: &Graph,
    ) -> Self {
        let text = result.and_then(instantiate_text);
        Self {
            instantiate_result: result,
            ..Self::new(error, text, node, graph)
        }
    }

    #[cold]
    #[inline]
    pub(super) fn of_update(
        error: Error,
        result: CUgraphExecUpdateResult,
        node: sys::CUgraphNode,
        graph: &Graph,
    ) -> Self {
        Self {
            update_result: Some(result),
            ..Self::new(error, update_text(result), node, graph)
        }
    }

    #[inline]
    fn new(error: Error, text: Option<&str>, node: sys::CUgraphNode, graph: &Graph) -> Self {
        let mut details = text.unwrap_or_default().to_owned();
        let mut node_index = None;
        if !node.is_null() {
            node_index = index_of(node, graph);
            if !details.is_empty() {
                details.push('\n');
            }
            details.push_str(&label(node, node_index));
        }
        Self {
            error,
            instantiate_result: None,
            update_result: None,
            node_index,
            details,
        }
    }

    /// Returns the error of the call, without the details.
    #[inline]
    pub const fn error(&self) -> Error {
        self.error
    }

    /// Returns the driver's reason for a failed instantiation; `None` if the driver is older than CUDA 12.0, if the
    /// graph's context could not be made current, and for a failed update.
    #[inline]
    #[must_use]
    pub const fn instantiate_result(&self) -> Option<CUgraphInstantiateResult> {
        self.instantiate_result
    }

    /// Returns the driver's reason for a failed update; `None` for a failed instantiation.
    #[inline]
    #[must_use]
    pub const fn update_result(&self) -> Option<CUgraphExecUpdateResult> {
        self.update_result
    }

    /// Returns the position in [`Graph::nodes`] of the node that the driver names as the cause; `None` if it does not
    /// name a node, or names one of a graph inside a node ([`ChildGraph`](super::ChildGraph)). For an update, the graph
    /// is the new one.
    #[inline]
    #[must_use]
    pub const fn node_index(&self) -> Option<usize> {
        self.node_index
    }

    #[inline]
    fn log(&self) -> ErrorLog<'_> {
        ErrorLog {
            path: "",
            log: &self.details,
        }
    }
}

/// Returns the position of a node in a graph.
#[inline]
fn index_of(node: sys::CUgraphNode, graph: &Graph) -> Option<usize> {
    // SAFETY: the handle is live.
    let nodes = unsafe { checked::graph_get_nodes(graph.as_raw()) }.ok()?;
    nodes.iter().position(|other| *other == node)
}

/// Describes a node: its position, its kind, and for a kernel the kernel's name.
#[inline]
fn label(node: sys::CUgraphNode, index: Option<usize>) -> String {
    let place = match index {
        Some(index) => format!("node {index} of the graph"),
        None => "a node of a child graph or of a conditional node's body".to_owned(),
    };
    // SAFETY: the driver returned the node for a graph that is live.
    let Ok(kind) = (unsafe { checked::graph_node_get_type(node) }) else {
        return place;
    };
    if kind == CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL {
        // SAFETY: as above. The node's function is live: the graph keeps its module, or the caller who captured the
        // graph does.
        if let Ok(params) = unsafe { checked::graph_kernel_node_get_params(node) } {
            // SAFETY: as above. A null function, as for a kernel of a library, is an error.
            if let Ok(name) = unsafe { checked::func_get_name(params.func) } {
                return format!("{place}, the kernel `{name}`");
            }
        }
    }
    match kind_name(kind) {
        Some(name) => format!("{place}, {name}"),
        None => format!("{place}, of kind {}", kind.0),
    }
}

#[inline]
const fn kind_name(kind: CUgraphNodeType) -> Option<&'static str> {
    Some(match kind {
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL => "a kernel",
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMCPY => "a copy",
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMSET => "a fill",
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_HOST => "a host function",
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_GRAPH => "a child graph",
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_EMPTY => "an empty node",
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_WAIT_EVENT => "a wait for an event",
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_EVENT_RECORD => "a record of an event",
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL => "a signal of external semaphores",
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT => "a wait for external semaphores",
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEM_ALLOC => "an allocation",
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEM_FREE => "a release of memory",
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_BATCH_MEM_OP => "a batch of memory operations",
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL => "a conditional node",
        _ => return None,
    })
}

/// Returns name, cause and fix; `None` if the result adds nothing to the error's code.
#[inline]
const fn instantiate_text(result: CUgraphInstantiateResult) -> Option<&'static str> {
    Some(match result {
        CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE => {
            "CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE: the structure of the graph is invalid: if the edges form a \
             cycle, remove one of them"
        }
        CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED => {
            "CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED: a graph for launches from the device may only have \
             kernels, copies, fills and child graphs: remove the other nodes or the flag"
        }
        CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED => {
            "CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED: a graph for launches from the device may only use one \
             context: move the nodes to one context or remove the flag"
        }
        CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED => {
            "CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED: a conditional handle belongs to no conditional node: add \
             the node"
        }
        _ => return None,
    })
}

/// Returns name, cause and fix; `None` if the result adds nothing to the error's code.
#[inline]
const fn update_text(result: CUgraphExecUpdateResult) -> Option<&'static str> {
    Some(match result {
        CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED => {
            "CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED: the graph has other nodes or edges: instantiate the new \
             graph instead"
        }
        CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED => {
            "CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED: a node has another kind: instantiate the new graph instead"
        }
        CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED => {
            "CU_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED: this driver cannot change a node's kernel: instantiate the new \
             graph instead"
        }
        CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED => {
            "CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED: a parameter that cannot be changed is different, such as the \
             direction or the dimensions of a copy: instantiate the new graph instead"
        }
        CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED => {
            "CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED: the node cannot be updated: instantiate the new graph instead"
        }
        CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE => {
            "CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE: the new kernel is of another context or uses launches \
             from the device: instantiate the new graph instead"
        }
        CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED => {
            "CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED: an attribute that cannot be changed is different, such as that of \
             a cooperative launch: instantiate the new graph instead"
        }
        _ => return None,
    })
}

impl fmt::Display for GraphError {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.log().show(f, &self.error)
    }
}

impl fmt::Debug for GraphError {
    /// Prints the message of [`Display`](fmt::Display), because `main` prints errors with `Debug`.
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Returns the error of the call. The [details](Error::log) are still printed with it.
impl From<GraphError> for Error {
    #[inline]
    fn from(error: GraphError) -> Self {
        error.error.with_log(error.log())
    }
}

/// Has no source, because its message already contains the message of [`error`](GraphError::error).
impl core::error::Error for GraphError {}
