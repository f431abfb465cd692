//! Child graph nodes: graphs inside nodes of other graphs.

use core::marker::PhantomData;
use core::ops::Deref;

use super::exec::GraphExec;
use super::node::{Node, handles};
use super::owner::Graph;
use crate::refusal::Refusal;
use crate::sys::{self, CUgraphNodeParams, CUgraphNodeType};
use crate::{Error, Result, checked};

/// A graph inside a node of another graph: a child graph, or the body of a conditional node. It can be used like a
/// [`Graph`], but cannot be instantiated on its own. The node owns it.
#[derive(Debug)]
pub struct ChildGraph<'g> {
    graph: Graph,
    owner: PhantomData<&'g Graph>,
}

impl<'g> ChildGraph<'g> {
    /// Returns the graph with this handle, which a node of `owner` destroys.
    #[inline]
    pub(super) fn of(raw: sys::CUgraph, owner: &'g Graph) -> Self {
        Self {
            graph: owner.inner(raw),
            owner: PhantomData,
        }
    }
}

impl Deref for ChildGraph<'_> {
    type Target = Graph;

    #[inline]
    fn deref(&self) -> &Graph {
        &self.graph
    }
}

impl Graph {
    /// Adds a node that runs a copy of another graph
    /// ([`cuGraphAddChildGraphNode`](checked::graph_add_child_graph_node)). [`Node::child_graph`] returns the copy;
    /// later changes of `child` do not change it.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if `child` is this graph, if one of the two contains the other, or if a third
    /// graph contains both, and `CUDA_ERROR_NOT_SUPPORTED` if `child` allocates or frees memory, has conditional nodes,
    /// or is the body of a conditional node.
    #[inline]
    #[doc(alias = "cuGraphAddChildGraphNode")]
    #[track_caller]
    pub fn add_child(&self, after: &[Node<'_>], child: &Graph) -> Result<Node<'_>> {
        // The driver crashes if a graph would contain itself.
        if self.outermost() == child.outermost() {
            return Err(Error::refused(
                sys::CUresult::CUDA_ERROR_INVALID_VALUE,
                sys::Function::cuGraphAddChildGraphNode,
                Refusal::OwnChild,
            ));
        }
        let _current = self.enter()?;
        child.kept_by(self.kept());
        // SAFETY: all handles are live, and neither graph contains the other: their outermost graphs differ.
        let raw = unsafe { checked::graph_add_child_graph_node(self.as_raw(), &handles(after), child.as_raw()) }?;
        Ok(Node::of(raw, self))
    }

    /// Adds a node that runs another graph and owns it, without copying it ([`cuGraphAddNode`](checked::graph_add_node)
    /// with `CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE`).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_NOT_SUPPORTED` if the driver is older than CUDA 12.9, and the errors of
    /// [`add_node`](Self::add_node). If the call fails, `child` is destroyed.
    #[inline]
    #[doc(alias = "cuGraphAddNode")]
    #[doc(alias = "CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE")]
    #[track_caller]
    pub fn add_owned_child(&self, after: &[Node<'_>], child: Graph) -> Result<Node<'_>> {
        // An older driver does not read `ownership`, and copies the graph.
        if sys::DEFAULT.version().is_some_and(|version| version < OWNERSHIP_SINCE) {
            return Err(Error::refused(
                sys::CUresult::CUDA_ERROR_NOT_SUPPORTED,
                sys::Function::cuGraphAddNode,
                Refusal::Ownership,
            ));
        }
        let _current = self.enter()?;
        child.kept_by(self.kept());
        let mut params = CUgraphNodeParams {
            type_: CUgraphNodeType::CU_GRAPH_NODE_TYPE_GRAPH,
            ..Default::default()
        };
        params.anonymous1.graph = sys::CUDA_CHILD_GRAPH_NODE_PARAMS {
            graph: child.as_raw(),
            ownership: sys::CUgraphChildGraphNodeOwnership::CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE,
        };
        // SAFETY: all handles are live. No node owns the child, and this graph is borrowed, so the child is not this
        // graph and does not contain it.
        let raw = unsafe { checked::graph_add_node(self.as_raw(), &handles(after), &mut params) }?;
        child.disown();
        Ok(Node::of(raw, self))
    }
}

/// The version of CUDA from which on `CUDA_CHILD_GRAPH_NODE_PARAMS` has the field `ownership`.
const OWNERSHIP_SINCE: u32 = 12090;

impl<'g> Node<'g> {
    /// Returns the graph of a child graph node
    /// ([`cuGraphChildGraphNodeGetGraph`](checked::graph_child_graph_node_get_graph)). Changing it does not change
    /// executable graphs.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for a node of another kind.
    #[inline]
    #[doc(alias = "cuGraphChildGraphNodeGetGraph")]
    #[track_caller]
    pub fn child_graph(&self) -> Result<ChildGraph<'g>> {
        // SAFETY: the node is in the graph, which is live.
        let raw = unsafe { checked::graph_child_graph_node_get_graph(self.as_raw()) }?;
        Ok(ChildGraph::of(raw, self.graph()))
    }
}

impl GraphExec {
    /// Replaces the parameters of all nodes of a child graph with those of a graph that has the same nodes and edges
    /// ([`cuGraphExecChildGraphNodeSetParams`](checked::graph_exec_child_graph_node_set_params)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE` if the graphs differ, and `CUDA_ERROR_INVALID_VALUE` for a node
    /// of another kind or graph.
    #[inline]
    #[doc(alias = "cuGraphExecChildGraphNodeSetParams")]
    #[track_caller]
    pub fn set_child(&self, node: Node<'_>, child: &Graph) -> Result<()> {
        let _current = self.enter()?;
        child.kept_by(self.kept());
        // SAFETY: all handles are live.
        unsafe { checked::graph_exec_child_graph_node_set_params(self.as_raw(), node.as_raw(), child.as_raw()) }
    }
}
