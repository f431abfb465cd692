//! Nodes and edges of graphs.

use core::{fmt, hash, ptr};

use super::owner::Graph;
use crate::{Result, checked, sys};

/// A node of a graph. It borrows the graph, and can be copied.
///
/// Calls that take a node and an [executable graph](crate::GraphExec) act on the node's counterpart there. They return
/// `CUDA_ERROR_INVALID_VALUE` if the executable graph was made from another graph, or before the node was added.
#[derive(Clone, Copy)]
pub struct Node<'g> {
    raw: sys::CUgraphNode,
    graph: &'g Graph,
}

impl<'g> Node<'g> {
    #[inline]
    pub(super) const fn of(raw: sys::CUgraphNode, graph: &'g Graph) -> Self {
        Self { raw, graph }
    }

    /// Returns the graph of the node.
    #[inline]
    #[must_use]
    pub const fn graph(&self) -> &'g Graph {
        self.graph
    }

    /// Returns the raw handle, which is valid as long as the node is in the graph.
    #[inline]
    #[must_use]
    pub const fn as_raw(&self) -> sys::CUgraphNode {
        self.raw
    }

    /// Returns a node of a graph by its handle.
    ///
    /// # Safety
    /// The handle must belong to a node of the graph.
    #[inline]
    #[must_use]
    pub const unsafe fn from_raw(raw: sys::CUgraphNode, graph: &'g Graph) -> Self {
        Self::of(raw, graph)
    }

    /// Returns the kind of the node ([`cuGraphNodeGetType`](checked::graph_node_get_type)).
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuGraphNodeGetType")]
    #[track_caller]
    pub fn kind(&self) -> Result<sys::CUgraphNodeType> {
        // SAFETY: the node is in the graph, which is live.
        unsafe { checked::graph_node_get_type(self.raw) }
    }

    /// Returns the edges that end at the node
    /// ([`cuGraphNodeGetDependencies_v2`](checked::graph_node_get_dependencies_v2); a driver older than CUDA 12.3 has
    /// [`cuGraphNodeGetDependencies`](checked::graph_node_get_dependencies) and no edge data).
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuGraphNodeGetDependencies")]
    #[doc(alias = "cuGraphNodeGetDependencies_v2")]
    #[track_caller]
    pub fn dependencies(&self) -> Result<Vec<Edge<'g>>> {
        // SAFETY: the node is in the graph, which is live.
        let (from, data) = match unsafe { checked::graph_node_get_dependencies_v2(self.raw) } {
            Ok(found) => (found.dependencies, found.edge_data),
            Err(error) if error.is_missing_function() => {
                // SAFETY: as above.
                (unsafe { checked::graph_node_get_dependencies(self.raw) }?, Vec::new())
            }
            Err(error) => return Err(error),
        };
        let edge = |(from, data)| Edge::with_data(Self::of(from, self.graph), *self, data);
        Ok(from.into_iter().zip(or_plain(data)).map(edge).collect())
    }

    /// Returns the edges that start at the node
    /// ([`cuGraphNodeGetDependentNodes_v2`](checked::graph_node_get_dependent_nodes_v2); a driver older than CUDA 12.3
    /// has [`cuGraphNodeGetDependentNodes`](checked::graph_node_get_dependent_nodes) and no edge data).
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuGraphNodeGetDependentNodes")]
    #[doc(alias = "cuGraphNodeGetDependentNodes_v2")]
    #[track_caller]
    pub fn dependents(&self) -> Result<Vec<Edge<'g>>> {
        // SAFETY: the node is in the graph, which is live.
        let (to, data) = match unsafe { checked::graph_node_get_dependent_nodes_v2(self.raw) } {
            Ok(found) => (found.dependent_nodes, found.edge_data),
            Err(error) if error.is_missing_function() => {
                // SAFETY: as above.
                (
                    unsafe { checked::graph_node_get_dependent_nodes(self.raw) }?,
                    Vec::new(),
                )
            }
            Err(error) => return Err(error),
        };
        let edge = |(to, data)| Edge::with_data(*self, Self::of(to, self.graph), data);
        Ok(to.into_iter().zip(or_plain(data)).map(edge).collect())
    }

    /// Returns a number that no other node of the graph has
    /// ([`cuGraphNodeGetLocalId`](checked::graph_node_get_local_id)).
    ///
    /// # Errors
    /// Returns a [missing-function error](crate::Error::is_missing_function) if the driver is older than CUDA 13.1.
    #[inline]
    #[doc(alias = "cuGraphNodeGetLocalId")]
    #[track_caller]
    pub fn id(&self) -> Result<u32> {
        // SAFETY: the node is in the graph, which is live.
        unsafe { checked::graph_node_get_local_id(self.raw) }
    }

    /// Returns the number under which profilers list the node
    /// ([`cuGraphNodeGetToolsId`](checked::graph_node_get_tools_id)).
    ///
    /// # Errors
    /// Returns a [missing-function error](crate::Error::is_missing_function) if the driver is older than CUDA 13.1.
    #[inline]
    #[doc(alias = "cuGraphNodeGetToolsId")]
    #[track_caller]
    pub fn tools_id(&self) -> Result<u64> {
        // SAFETY: the node is in the graph, which is live.
        unsafe { checked::graph_node_get_tools_id(self.raw) }
    }

    /// Returns the handle of the graph that contains the node
    /// ([`cuGraphNodeGetContainingGraph`](checked::graph_node_get_containing_graph)), which is also the handle of
    /// [`graph`](Self::graph).
    ///
    /// # Errors
    /// Returns a [missing-function error](crate::Error::is_missing_function) if the driver is older than CUDA 13.1.
    #[inline]
    #[doc(alias = "cuGraphNodeGetContainingGraph")]
    #[track_caller]
    pub fn containing_graph_raw(&self) -> Result<sys::CUgraph> {
        // SAFETY: the node is in the graph, which is live.
        unsafe { checked::graph_node_get_containing_graph(self.raw) }
    }

    /// Returns the parameters of a node of any kind ([`cuGraphNodeGetParams`](checked::graph_node_get_params)). Arrays
    /// that the driver returns in them, such as a kernel's arguments, are the driver's, and are valid until the node is
    /// changed or destroyed.
    ///
    /// # Errors
    /// Returns a [missing-function error](crate::Error::is_missing_function) if the driver is older than CUDA 13.2.
    #[inline]
    #[doc(alias = "cuGraphNodeGetParams")]
    #[track_caller]
    pub fn params(&self) -> Result<sys::CUgraphNodeParams> {
        // SAFETY: the node is in the graph, which is live.
        unsafe { checked::graph_node_get_params(self.raw) }
    }

    /// Changes the parameters of a node of any kind ([`cuGraphNodeSetParams`](checked::graph_node_set_params)).
    ///
    /// # Safety
    /// Same as [`Graph::add_node`].
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for parameters of another kind, and a
    /// [missing-function error](crate::Error::is_missing_function) if the driver is older than CUDA 12.2.
    #[inline]
    #[doc(alias = "cuGraphNodeSetParams")]
    #[track_caller]
    pub unsafe fn set_params(&self, params: &mut sys::CUgraphNodeParams) -> Result<()> {
        let _current = self.graph.enter()?;
        // SAFETY: the node is in the graph, which is live; the rest is upheld by the caller.
        unsafe { checked::graph_node_set_params(self.raw, params) }
    }

    /// Removes the node and its edges from the graph ([`cuGraphDestroyNode`](checked::graph_destroy_node)). Executable
    /// graphs do not change.
    ///
    /// # Safety
    /// Afterwards, copies of the node, also those in an [`Edge`], and graphs that were inside the node must not be used:
    /// their handles are dangling, and the driver may crash.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_NOT_SUPPORTED` for a graph that allocates or frees memory.
    #[inline]
    #[doc(alias = "cuGraphDestroyNode")]
    #[track_caller]
    pub unsafe fn destroy(self) -> Result<()> {
        // SAFETY: the node is in the graph, which is live; the rest is upheld by the caller.
        unsafe { checked::graph_destroy_node(self.raw) }
    }
}

impl fmt::Debug for Node<'_> {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Node").field(&self.raw).finish()
    }
}

impl PartialEq for Node<'_> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        ptr::eq(self.raw, other.raw)
    }
}

impl Eq for Node<'_> {}

impl hash::Hash for Node<'_> {
    #[inline]
    fn hash<H: hash::Hasher>(&self, state: &mut H) {
        self.raw.hash(state);
    }
}

/// An edge of a graph: `to` depends on `from`.
#[derive(Debug, Clone, Copy)]
pub struct Edge<'g> {
    /// The node that runs first.
    pub from: Node<'g>,
    /// The node that waits for `from`.
    pub to: Node<'g>,
    /// The ports and the type of the edge; all zero for a plain edge.
    pub data: sys::CUgraphEdgeData,
}

impl<'g> Edge<'g> {
    /// Returns a plain edge: `to` starts when `from` is done.
    #[inline]
    #[must_use]
    pub fn new(from: Node<'g>, to: Node<'g>) -> Self {
        Self::with_data(from, to, sys::CUgraphEdgeData::default())
    }

    /// Returns an edge with data, for instance for a programmatic launch: `to` may then start before `from` is done.
    #[inline]
    #[must_use]
    pub const fn with_data(from: Node<'g>, to: Node<'g>, data: sys::CUgraphEdgeData) -> Self {
        Self { from, to, data }
    }
}

impl PartialEq for Edge<'_> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.from == other.from && self.to == other.to && fields(&self.data) == fields(&other.data)
    }
}

impl Eq for Edge<'_> {}

/// Returns all fields; the reserved ones may get a meaning.
#[inline]
const fn fields(data: &sys::CUgraphEdgeData) -> ([u8; 3], [u8; 5]) {
    ([data.from_port, data.to_port, data.type_], data.reserved)
}

/// Extends the list endlessly with the data of plain edges, because an old driver returns no data.
#[inline]
fn or_plain(data: Vec<sys::CUgraphEdgeData>) -> impl Iterator<Item = sys::CUgraphEdgeData> {
    data.into_iter().chain(core::iter::repeat_with(Default::default))
}

/// Returns the handles of nodes.
#[inline]
pub(super) fn handles(nodes: &[Node<'_>]) -> Vec<sys::CUgraphNode> {
    nodes.iter().map(Node::as_raw).collect()
}

/// The handles and the data of edges.
struct Lists {
    from: Vec<sys::CUgraphNode>,
    to: Vec<sys::CUgraphNode>,
    data: Vec<sys::CUgraphEdgeData>,
}

impl Lists {
    #[inline]
    fn of(edges: &[Edge<'_>]) -> Self {
        Self {
            from: edges.iter().map(|edge| edge.from.raw).collect(),
            to: edges.iter().map(|edge| edge.to.raw).collect(),
            data: edges.iter().map(|edge| edge.data).collect(),
        }
    }

    /// Returns true if all edges are plain, so that the functions of older drivers can be used.
    #[inline]
    fn is_plain(&self) -> bool {
        self.data.iter().all(|data| fields(data) == ([0; 3], [0; 5]))
    }
}

impl Graph {
    /// Returns the nodes, in the order in which they were added ([`cuGraphGetNodes`](checked::graph_get_nodes)).
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuGraphGetNodes")]
    #[track_caller]
    pub fn nodes(&self) -> Result<Vec<Node<'_>>> {
        // SAFETY: the handle is live.
        let nodes = unsafe { checked::graph_get_nodes(self.as_raw()) }?;
        Ok(nodes.into_iter().map(|raw| Node::of(raw, self)).collect())
    }

    /// Returns the nodes without dependencies ([`cuGraphGetRootNodes`](checked::graph_get_root_nodes)).
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuGraphGetRootNodes")]
    #[track_caller]
    pub fn root_nodes(&self) -> Result<Vec<Node<'_>>> {
        // SAFETY: the handle is live.
        let nodes = unsafe { checked::graph_get_root_nodes(self.as_raw()) }?;
        Ok(nodes.into_iter().map(|raw| Node::of(raw, self)).collect())
    }

    /// Returns the edges ([`cuGraphGetEdges_v2`](checked::graph_get_edges_v2); a driver older than CUDA 12.3 has
    /// [`cuGraphGetEdges`](checked::graph_get_edges) and no edge data).
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuGraphGetEdges")]
    #[doc(alias = "cuGraphGetEdges_v2")]
    #[track_caller]
    pub fn edges(&self) -> Result<Vec<Edge<'_>>> {
        // SAFETY: the handle is live.
        let (from, to, data) = match unsafe { checked::graph_get_edges_v2(self.as_raw()) } {
            Ok(found) => (found.from, found.to, found.edge_data),
            Err(error) if error.is_missing_function() => {
                // SAFETY: as above.
                let found = unsafe { checked::graph_get_edges(self.as_raw()) }?;
                (found.from, found.to, Vec::new())
            }
            Err(error) => return Err(error),
        };
        let edge = |((from, to), data)| Edge::with_data(Node::of(from, self), Node::of(to, self), data);
        Ok(from.into_iter().zip(to).zip(or_plain(data)).map(edge).collect())
    }

    /// Adds edges ([`cuGraphAddDependencies_v2`](checked::graph_add_dependencies_v2), or for plain edges
    /// [`cuGraphAddDependencies`](checked::graph_add_dependencies)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for nodes of another graph, an edge from a node to itself, and an edge that
    /// exists. A cycle is an error of [`instantiate`](Self::instantiate). Returns a
    /// [missing-function error](crate::Error::is_missing_function) for an edge with data if the driver is older than
    /// CUDA 12.3.
    #[inline]
    #[doc(alias = "cuGraphAddDependencies")]
    #[doc(alias = "cuGraphAddDependencies_v2")]
    #[track_caller]
    pub fn add_edges(&self, edges: &[Edge<'_>]) -> Result<()> {
        let lists = Lists::of(edges);
        if lists.is_plain() {
            // SAFETY: all handles are live.
            return unsafe { checked::graph_add_dependencies(self.as_raw(), &lists.from, &lists.to) };
        }
        // SAFETY: as above.
        unsafe { checked::graph_add_dependencies_v2(self.as_raw(), &lists.from, &lists.to, Some(&lists.data)) }
    }

    /// Removes edges ([`cuGraphRemoveDependencies_v2`](checked::graph_remove_dependencies_v2), or for plain edges
    /// [`cuGraphRemoveDependencies`](checked::graph_remove_dependencies)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for an edge that is not in the graph, or has other data there,
    /// `CUDA_ERROR_NOT_SUPPORTED` for a graph that allocates or frees memory, and a
    /// [missing-function error](crate::Error::is_missing_function) for an edge with data if the driver is older than
    /// CUDA 12.3.
    #[inline]
    #[doc(alias = "cuGraphRemoveDependencies")]
    #[doc(alias = "cuGraphRemoveDependencies_v2")]
    #[track_caller]
    pub fn remove_edges(&self, edges: &[Edge<'_>]) -> Result<()> {
        let lists = Lists::of(edges);
        if lists.is_plain() {
            // SAFETY: all handles are live.
            return unsafe { checked::graph_remove_dependencies(self.as_raw(), &lists.from, &lists.to) };
        }
        // SAFETY: as above.
        unsafe { checked::graph_remove_dependencies_v2(self.as_raw(), &lists.from, &lists.to, Some(&lists.data)) }
    }

    /// Adds a node that does nothing, to join or fork many edges
    /// ([`cuGraphAddEmptyNode`](checked::graph_add_empty_node)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if a dependency is of another graph, or is listed twice.
    #[inline]
    #[doc(alias = "cuGraphAddEmptyNode")]
    #[track_caller]
    pub fn add_empty(&self, after: &[Node<'_>]) -> Result<Node<'_>> {
        let _current = self.enter()?;
        // SAFETY: all handles are live.
        let raw = unsafe { checked::graph_add_empty_node(self.as_raw(), &handles(after)) }?;
        Ok(Node::of(raw, self))
    }

    /// Adds a node of any kind, with data for its edges ([`cuGraphAddNode_v2`](checked::graph_add_node_v2), or without
    /// data [`cuGraphAddNode`](checked::graph_add_node)). Use it for kinds that have no method of their own.
    ///
    /// # Safety
    /// Addresses and handles in the parameters must be valid now and whenever the graph runs. A null context means the
    /// graph's context, or the current one if the graph's is not known; the node's context must live as long as the
    /// graph and everything made from it. A kernel's arguments must match its parameters.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for an unknown kind, invalid parameters, or `data` of another length than
    /// `after`, and a [missing-function error](crate::Error::is_missing_function) if the driver is older than CUDA 12.2
    /// or, for a call with data, CUDA 12.3.
    #[inline]
    #[doc(alias = "cuGraphAddNode")]
    #[doc(alias = "cuGraphAddNode_v2")]
    #[track_caller]
    pub unsafe fn add_node(
        &self,
        after: &[Node<'_>],
        data: Option<&[sys::CUgraphEdgeData]>,
        params: &mut sys::CUgraphNodeParams,
    ) -> Result<Node<'_>> {
        let _current = self.enter()?;
        let raw = match data {
            // SAFETY: graph and dependencies are live; the rest is upheld by the caller.
            Some(data) => unsafe { checked::graph_add_node_v2(self.as_raw(), &handles(after), Some(data), params) },
            // SAFETY: as above.
            None => unsafe { checked::graph_add_node(self.as_raw(), &handles(after), params) },
        }?;
        Ok(Node::of(raw, self))
    }

    /// Returns the node of this graph that is the copy of `node`. This graph must be a [clone](Self::try_clone) of the
    /// graph of `node` ([`cuGraphNodeFindInClone`](checked::graph_node_find_in_clone)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if this graph is not a clone of the node's graph, or has no such node.
    #[inline]
    #[doc(alias = "cuGraphNodeFindInClone")]
    #[track_caller]
    pub fn find_in_clone(&self, node: Node<'_>) -> Result<Node<'_>> {
        // SAFETY: both handles are live.
        let raw = unsafe { checked::graph_node_find_in_clone(node.raw, self.as_raw()) }?;
        Ok(Node::of(raw, self))
    }
}
