//! Graph nodes that signal external semaphores or wait for them.

use super::exec::GraphExec;
use super::node::{Node, handles};
use super::owner::Graph;
use crate::sys::{CUDA_EXT_SEM_SIGNAL_NODE_PARAMS, CUDA_EXT_SEM_WAIT_NODE_PARAMS};
use crate::{Result, checked};

impl Graph {
    /// Adds a node that signals external semaphores
    /// ([`cuGraphAddExternalSemaphoresSignalNode`](checked::graph_add_external_semaphores_signal_node)). The record and
    /// its arrays are copied.
    ///
    /// # Safety
    /// Each pointer in the record must point to `numExtSems` values, and the semaphores must be live as long as the
    /// graph and everything made from it.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for a dependency of another graph.
    #[inline]
    #[doc(alias = "cuGraphAddExternalSemaphoresSignalNode")]
    #[track_caller]
    pub unsafe fn add_semaphore_signal(
        &self,
        after: &[Node<'_>],
        params: &CUDA_EXT_SEM_SIGNAL_NODE_PARAMS,
    ) -> Result<Node<'_>> {
        let _current = self.enter()?;
        // SAFETY: the handles are live; the rest is upheld by the caller.
        let raw =
            unsafe { checked::graph_add_external_semaphores_signal_node(self.as_raw(), &handles(after), params) }?;
        Ok(Node::of(raw, self))
    }

    /// Adds a node that waits for external semaphores
    /// ([`cuGraphAddExternalSemaphoresWaitNode`](checked::graph_add_external_semaphores_wait_node)). The record and its
    /// arrays are copied.
    ///
    /// # Safety
    /// Each pointer in the record must point to `numExtSems` values, and the semaphores must be live as long as the
    /// graph and everything made from it.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for a dependency of another graph.
    #[inline]
    #[doc(alias = "cuGraphAddExternalSemaphoresWaitNode")]
    #[track_caller]
    pub unsafe fn add_semaphore_wait(
        &self,
        after: &[Node<'_>],
        params: &CUDA_EXT_SEM_WAIT_NODE_PARAMS,
    ) -> Result<Node<'_>> {
        let _current = self.enter()?;
        // SAFETY: the handles are live; the rest is upheld by the caller.
        let raw = unsafe { checked::graph_add_external_semaphores_wait_node(self.as_raw(), &handles(after), params) }?;
        Ok(Node::of(raw, self))
    }
}

impl Node<'_> {
    /// Returns the parameters of a node that signals external semaphores
    /// ([`cuGraphExternalSemaphoresSignalNodeGetParams`](checked::graph_external_semaphores_signal_node_get_params)).
    /// The driver owns the arrays until the node is changed or destroyed.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for a node of another kind.
    #[inline]
    #[doc(alias = "cuGraphExternalSemaphoresSignalNodeGetParams")]
    #[track_caller]
    pub fn semaphore_signal_params(&self) -> Result<CUDA_EXT_SEM_SIGNAL_NODE_PARAMS> {
        // SAFETY: the node is in the graph, which is live.
        unsafe { checked::graph_external_semaphores_signal_node_get_params(self.as_raw()) }
    }

    /// Replaces the parameters of a node that signals external semaphores
    /// ([`cuGraphExternalSemaphoresSignalNodeSetParams`](checked::graph_external_semaphores_signal_node_set_params)).
    /// Executable graphs do not change.
    ///
    /// # Safety
    /// Same as [`Graph::add_semaphore_signal`].
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for a node of another kind.
    #[inline]
    #[doc(alias = "cuGraphExternalSemaphoresSignalNodeSetParams")]
    #[track_caller]
    pub unsafe fn set_semaphore_signal(&self, params: &CUDA_EXT_SEM_SIGNAL_NODE_PARAMS) -> Result<()> {
        // SAFETY: the node is in the graph, which is live; the rest is upheld by the caller.
        unsafe { checked::graph_external_semaphores_signal_node_set_params(self.as_raw(), params) }
    }

    /// Returns the parameters of a node that waits for external semaphores
    /// ([`cuGraphExternalSemaphoresWaitNodeGetParams`](checked::graph_external_semaphores_wait_node_get_params)). The
    /// driver owns the arrays until the node is changed or destroyed.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for a node of another kind.
    #[inline]
    #[doc(alias = "cuGraphExternalSemaphoresWaitNodeGetParams")]
    #[track_caller]
    pub fn semaphore_wait_params(&self) -> Result<CUDA_EXT_SEM_WAIT_NODE_PARAMS> {
        // SAFETY: the node is in the graph, which is live.
        unsafe { checked::graph_external_semaphores_wait_node_get_params(self.as_raw()) }
    }

    /// Replaces the parameters of a node that waits for external semaphores
    /// ([`cuGraphExternalSemaphoresWaitNodeSetParams`](checked::graph_external_semaphores_wait_node_set_params)).
    /// Executable graphs do not change.
    ///
    /// # Safety
    /// Same as [`Graph::add_semaphore_wait`].
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for a node of another kind.
    #[inline]
    #[doc(alias = "cuGraphExternalSemaphoresWaitNodeSetParams")]
    #[track_caller]
    pub unsafe fn set_semaphore_wait(&self, params: &CUDA_EXT_SEM_WAIT_NODE_PARAMS) -> Result<()> {
        // SAFETY: the node is in the graph, which is live; the rest is upheld by the caller.
        unsafe { checked::graph_external_semaphores_wait_node_set_params(self.as_raw(), params) }
    }
}

impl GraphExec {
    /// Replaces the parameters of a node that signals external semaphores
    /// ([`cuGraphExecExternalSemaphoresSignalNodeSetParams`](checked::graph_exec_external_semaphores_signal_node_set_params)).
    ///
    /// # Safety
    /// Same as [`Graph::add_semaphore_signal`].
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for another number of semaphores, and a node of another kind or graph.
    #[inline]
    #[doc(alias = "cuGraphExecExternalSemaphoresSignalNodeSetParams")]
    #[track_caller]
    pub unsafe fn set_semaphore_signal(&self, node: Node<'_>, params: &CUDA_EXT_SEM_SIGNAL_NODE_PARAMS) -> Result<()> {
        // SAFETY: both handles are live; the rest is upheld by the caller.
        unsafe { checked::graph_exec_external_semaphores_signal_node_set_params(self.as_raw(), node.as_raw(), params) }
    }

    /// Replaces the parameters of a node that waits for external semaphores
    /// ([`cuGraphExecExternalSemaphoresWaitNodeSetParams`](checked::graph_exec_external_semaphores_wait_node_set_params)).
    ///
    /// # Safety
    /// Same as [`Graph::add_semaphore_wait`].
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for another number of semaphores, and a node of another kind or graph.
    #[inline]
    #[doc(alias = "cuGraphExecExternalSemaphoresWaitNodeSetParams")]
    #[track_caller]
    pub unsafe fn set_semaphore_wait(&self, node: Node<'_>, params: &CUDA_EXT_SEM_WAIT_NODE_PARAMS) -> Result<()> {
        // SAFETY: both handles are live; the rest is upheld by the caller.
        unsafe { checked::graph_exec_external_semaphores_wait_node_set_params(self.as_raw(), node.as_raw(), params) }
    }
}
