//! Conditional graph nodes: bodies that run depending on a value that kernels set.

use core::{ptr, slice};

use super::child::ChildGraph;
use super::node::{Node, handles};
use super::owner::Graph;
use crate::refusal::Refusal;
use crate::sys::{self, CUgraphConditionalNodeType, CUgraphNodeParams, CUgraphNodeType};
use crate::{Context, Error, Result, checked};

/// The handle of the value that a conditional node of a graph tests. Kernels set the value with
/// `cudaGraphSetConditional`, to which they pass the number that [`as_raw`](Self::as_raw) returns.
#[derive(Debug, Clone, Copy)]
pub struct ConditionalHandle<'g> {
    raw: sys::CUgraphConditionalHandle,
    graph: &'g Graph,
}

impl<'g> ConditionalHandle<'g> {
    /// Returns the number, which is passed to kernels as a `u64`.
    #[inline]
    #[must_use]
    pub const fn as_raw(&self) -> sys::CUgraphConditionalHandle {
        self.raw
    }

    /// Returns the handle with this number.
    ///
    /// # Safety
    /// The number must come from a handle that was created for the graph.
    #[inline]
    #[must_use]
    pub const unsafe fn from_raw(raw: sys::CUgraphConditionalHandle, graph: &'g Graph) -> Self {
        Self { raw, graph }
    }
}

/// A conditional node and the graphs that it runs.
#[derive(Debug)]
#[non_exhaustive]
pub struct Conditional<'g> {
    /// The node.
    pub node: Node<'g>,
    /// The bodies, which are empty at first. Add nodes to them before the graph is instantiated.
    pub bodies: Vec<ChildGraph<'g>>,
}

impl Graph {
    /// Same as [`node_context`](Self::node_context), for a call that does not accept null. Returns
    /// `CUDA_ERROR_INVALID_CONTEXT` if there is no current context either.
    #[inline]
    #[track_caller]
    fn context_or_current(&self, called: sys::Function) -> Result<sys::CUcontext> {
        let context = self.node_context(called)?;
        if context.is_null() {
            return Context::required_raw(called);
        }
        Ok(context)
    }

    /// Creates a handle for one conditional node of this graph
    /// ([`cuGraphConditionalHandleCreate`](checked::graph_conditional_handle_create)). With `launch_value`, each launch
    /// starts with that value; without one, a kernel must set it before the node runs.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_NOT_SUPPORTED` if the driver does not support conditional nodes,
    /// `CUDA_ERROR_INVALID_CONTEXT` for a borrowed graph if no context is current and for a
    /// [captured](crate::Stream::capture) graph whose context is not known, and a
    /// [missing-function error](Error::is_missing_function) if the driver is older than CUDA 12.3.
    #[inline]
    #[doc(alias = "cuGraphConditionalHandleCreate")]
    #[track_caller]
    pub fn conditional_handle(&self, launch_value: Option<u32>) -> Result<ConditionalHandle<'_>> {
        let _current = self.enter()?;
        let context = self.context_or_current(sys::Function::cuGraphConditionalHandleCreate)?;
        let flags = if launch_value.is_some() {
            sys::CU_GRAPH_COND_ASSIGN_DEFAULT
        } else {
            0
        };
        let value = launch_value.unwrap_or(0);
        // SAFETY: both handles are live: the context is the graph's or the current one.
        let raw = unsafe { checked::graph_conditional_handle_create(self.as_raw(), context, value, flags) }?;
        Ok(ConditionalHandle { raw, graph: self })
    }

    /// Adds a node that runs its body if the value is not 0 ([`cuGraphAddNode`](checked::graph_add_node)).
    ///
    /// # Errors
    /// Same as [`add_conditional`](Self::add_conditional).
    #[inline]
    #[doc(alias = "CU_GRAPH_COND_TYPE_IF")]
    #[doc(alias = "cuGraphAddNode")]
    #[track_caller]
    pub fn add_if(&self, after: &[Node<'_>], handle: ConditionalHandle<'_>) -> Result<Conditional<'_>> {
        self.add_conditional(after, handle, CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_IF, 1)
    }

    /// Adds a node that runs its first body if the value is not 0, and its second body if the value is 0
    /// ([`cuGraphAddNode`](checked::graph_add_node)). The driver must support CUDA 12.8.
    ///
    /// # Errors
    /// Same as [`add_conditional`](Self::add_conditional).
    #[inline]
    #[doc(alias = "CU_GRAPH_COND_TYPE_IF")]
    #[doc(alias = "cuGraphAddNode")]
    #[track_caller]
    pub fn add_if_else(&self, after: &[Node<'_>], handle: ConditionalHandle<'_>) -> Result<Conditional<'_>> {
        self.add_conditional(after, handle, CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_IF, 2)
    }

    /// Adds a node that runs its body as long as the value is not 0 ([`cuGraphAddNode`](checked::graph_add_node)). A
    /// kernel in the body must set the value to 0, or a launch never ends.
    ///
    /// # Errors
    /// Same as [`add_conditional`](Self::add_conditional).
    #[inline]
    #[doc(alias = "CU_GRAPH_COND_TYPE_WHILE")]
    #[doc(alias = "cuGraphAddNode")]
    #[track_caller]
    pub fn add_while(&self, after: &[Node<'_>], handle: ConditionalHandle<'_>) -> Result<Conditional<'_>> {
        self.add_conditional(after, handle, CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_WHILE, 1)
    }

    /// Adds a node that runs the body whose index is the value, or no body if the value is not less than `bodies`
    /// ([`cuGraphAddNode`](checked::graph_add_node)). The driver must support CUDA 12.8.
    ///
    /// # Errors
    /// Same as [`add_conditional`](Self::add_conditional).
    #[inline]
    #[doc(alias = "CU_GRAPH_COND_TYPE_SWITCH")]
    #[doc(alias = "cuGraphAddNode")]
    #[track_caller]
    pub fn add_switch(
        &self,
        after: &[Node<'_>],
        handle: ConditionalHandle<'_>,
        bodies: u32,
    ) -> Result<Conditional<'_>> {
        self.add_conditional(
            after,
            handle,
            CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_SWITCH,
            bodies,
        )
    }

    /// Adds a conditional node of any kind, with this number of bodies ([`cuGraphAddNode`](checked::graph_add_node)).
    ///
    /// A graph with conditional nodes cannot be cloned, and has at most one executable graph at a time. A body may have
    /// kernels, copies and fills of device memory, empty nodes, child graphs, and conditional nodes.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for a handle of another graph, a handle that another node uses, no bodies, or
    /// more than the kind can have, `CUDA_ERROR_INVALID_CONTEXT` for a borrowed graph if no context is current and for a
    /// [captured](crate::Stream::capture) graph whose context is not known, and a
    /// [missing-function error](Error::is_missing_function) if the driver is older than CUDA 12.3.
    #[inline]
    #[doc(alias = "cuGraphAddNode")]
    #[track_caller]
    pub fn add_conditional(
        &self,
        after: &[Node<'_>],
        handle: ConditionalHandle<'_>,
        kind: CUgraphConditionalNodeType,
        bodies: u32,
    ) -> Result<Conditional<'_>> {
        if handle.graph.as_raw() != self.as_raw() {
            return Err(Error::refused(
                sys::CUresult::CUDA_ERROR_INVALID_VALUE,
                sys::Function::cuGraphAddNode,
                Refusal::OtherGraph,
            ));
        }
        let _current = self.enter()?;
        let mut params = CUgraphNodeParams {
            type_: CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL,
            ..Default::default()
        };
        params.anonymous1.conditional = sys::CUDA_CONDITIONAL_NODE_PARAMS {
            handle: handle.raw,
            type_: kind,
            size: bodies,
            phGraph_out: ptr::null_mut(),
            ctx: self.context_or_current(sys::Function::cuGraphAddNode)?,
        };
        // SAFETY: the handles are live, and belong to this graph.
        let raw = unsafe { checked::graph_add_node(self.as_raw(), &handles(after), &mut params) }?;
        // SAFETY: the member was written above, and the driver writes the pointer.
        let found = unsafe { params.anonymous1.conditional.phGraph_out };
        let graphs: &[sys::CUgraph] = if found.is_null() {
            &[]
        } else {
            // SAFETY: the driver's array has as many handles as there are bodies, and lives as long as the node.
            unsafe { slice::from_raw_parts(found, bodies as usize) }
        };
        let bodies = graphs.iter().map(|raw| ChildGraph::of(*raw, self)).collect();
        Ok(Conditional {
            node: Node::of(raw, self),
            bodies,
        })
    }
}
