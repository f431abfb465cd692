//! Graphs: nodes with operations and dependencies, made by calls or by capturing a stream.
//!
//! All graphs and their nodes are in one [`GraphStore`] under one lock, because an edge, a clone and a child graph each
//! concern several of them. An executable graph ([`exec`](crate::graph::exec)) is a copy with a lock of its own.

use engine::id_map::IdMap;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use cuda_driver_sys::{CUgraphConditionalNodeType, CUgraphInstantiateResult as Reason};

use crate::object::{leak, user_object};
use crate::operation::Operation;
use crate::operation::conditional::{ConditionalHandle, ConditionalNode, check_bodies};
use crate::queue::capture::Captures;
use crate::queue::edge::{Edge, EdgeData};
use crate::state::error::{Error, Result};
use crate::state::handle::{HandleKind, encode};

/// A node of a graph.
pub(crate) struct Node {
    pub(crate) graph: usize,
    /// The number of the node in its graph.
    pub(crate) local: u32,
    pub(crate) operation: Operation,
    /// The dependencies of the node, in the order in which they were added.
    pub(crate) after: Vec<Edge>,
    /// The nodes that depend on this node, in the order of their creation.
    dependents: BTreeMap<usize, EdgeData>,
}

/// A graph: one of the program, a child graph, or a body of a conditional node.
pub(crate) struct Graph {
    /// A number that is unique among all graphs and executable graphs of the process.
    pub(crate) id: u32,
    /// The nodes in the order of their creation.
    pub(crate) nodes: Vec<usize>,
    next_local: u32,
    /// The addresses that free nodes free. Entries stay, because such nodes cannot be removed.
    freed: HashSet<u64>,
    /// The node that owns the graph, if it is a child graph or a body.
    pub(crate) owner: Option<usize>,
    /// In a clone: the nodes, by the nodes that they were copied from.
    clones: HashMap<usize, usize>,
    /// User objects by handle, with the number of references that the graph holds.
    pub(crate) objects: BTreeMap<usize, u32>,
    /// The conditional handles that were created for this graph.
    pub(crate) conditionals: Vec<GraphConditional>,
}

/// A conditional handle of a graph, and the node that has it, if any.
pub(crate) struct GraphConditional {
    pub(crate) handle: Arc<ConditionalHandle>,
    pub(crate) node: Option<usize>,
}

/// Limit on graphs inside each other. On driver 580, 2,000 work and 20,000 crash.
const MOST_DEPTH: usize = 2000;

/// Handles that no graph and no node has.
const NO_GRAPH: usize = 0;
const NO_NODE: usize = 0;

/// The nodes that lead from a graph to a graph inside it.
enum Path {
    /// All are child graph nodes.
    ChildGraphs,
    /// At least one is a conditional node.
    Bodies,
}

/// All graphs.
#[derive(Default)]
pub(crate) struct GraphStore {
    graphs: IdMap<usize, Graph>,
    nodes: IdMap<usize, Node>,
    last_graph: u64,
    last_node: u64,
}

/// Locks the graphs of the process.
pub(crate) fn store() -> MutexGuard<'static, GraphStore> {
    static STORE: OnceLock<Mutex<GraphStore>> = OnceLock::new();
    let store = STORE.get_or_init(Mutex::default);
    store.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Records a graph that the program owns, for the check of leaks. The caller must not hold the lock of the store.
pub(crate) fn note(graph: usize) {
    leak::note_unless_gone("graph", graph, None, move || {
        // The graph may become a child of a node.
        store().graphs.get(&graph).is_some_and(|graph| graph.owner.is_none())
    });
}

/// Returns a new number for a graph or an executable graph.
pub(crate) fn next_id() -> u32 {
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
    static LAST: AtomicU32 = AtomicU32::new(0);
    LAST.fetch_add(1, Relaxed) + 1
}

impl GraphStore {
    /// `cuGraphCreate`
    pub(crate) fn create(&mut self) -> usize {
        self.create_owned(None)
    }

    fn create_owned(&mut self, owner: Option<usize>) -> usize {
        self.last_graph += 1;
        let handle = encode(HandleKind::Graph, self.last_graph);
        let graph = Graph {
            id: next_id(),
            nodes: Vec::new(),
            next_local: 0,
            freed: HashSet::new(),
            owner,
            clones: HashMap::new(),
            objects: BTreeMap::new(),
            conditionals: Vec::new(),
        };
        self.graphs.insert(handle, graph);
        handle
    }

    /// Returns the live graph with this handle.
    pub(crate) fn graph(&self, handle: usize) -> Result<&Graph> {
        self.graphs.get(&handle).ok_or_else(|| {
            host::log!("{handle:#x} is not a live graph handle; the NVIDIA driver may crash here");
            Error::CUDA_ERROR_INVALID_VALUE
        })
    }

    pub(crate) fn graph_mut(&mut self, handle: usize) -> Result<&mut Graph> {
        self.graphs.get_mut(&handle).ok_or(Error::CUDA_ERROR_INVALID_VALUE)
    }

    /// Returns the live node with this handle.
    pub(crate) fn node(&self, handle: usize) -> Result<&Node> {
        self.nodes.get(&handle).ok_or_else(|| {
            host::log!("{handle:#x} is not a live node handle; the NVIDIA driver may crash here");
            Error::CUDA_ERROR_INVALID_VALUE
        })
    }

    pub(crate) fn node_mut(&mut self, handle: usize) -> Result<&mut Node> {
        self.nodes.get_mut(&handle).ok_or(Error::CUDA_ERROR_INVALID_VALUE)
    }

    /// Returns a node, which must belong to `graph`.
    fn node_of(&self, handle: usize, graph: usize) -> Result<&Node> {
        self.node(handle).and_then(|node| {
            let ours = node.graph == graph;
            ours.then_some(node).ok_or(Error::CUDA_ERROR_INVALID_VALUE)
        })
    }

    /// Checks the dependencies of a new node: they must be nodes of its graph, each named once, with valid edges.
    pub(crate) fn check_dependencies(&self, graph: usize, after: &[Edge]) -> Result<()> {
        self.graph(graph)?;
        let mut seen = HashSet::new();
        for edge in after {
            self.node_of(edge.node, graph)?;
            self.check_edge(edge)?;
            if !seen.insert(edge.node) {
                return Err(Error::CUDA_ERROR_INVALID_VALUE);
            }
        }
        Ok(())
    }

    /// Checks an edge: it must be a plain dependency or, from a kernel node, a dependency of type 1 (programmatic) that
    /// starts at port 1 (programmatic) or 2 (launch order).
    fn check_edge(&self, edge: &Edge) -> Result<()> {
        let EdgeData {
            from_port,
            to_port,
            kind,
        } = edge.data;
        let from_kernel = matches!(self.node(edge.node)?.operation, Operation::Kernel(_));
        let known = kind == 1 && matches!(from_port, 1 | 2) && to_port == 0;
        if edge.data == EdgeData::default() || (known && from_kernel) {
            Ok(())
        } else {
            Err(Error::CUDA_ERROR_INVALID_VALUE)
        }
    }

    /// Adds a node.
    pub(crate) fn add(&mut self, graph: usize, after: Vec<Edge>, operation: Operation) -> Result<usize> {
        self.check_dependencies(graph, &after)?;
        // A graph can have only one free node for each allocation.
        if let Operation::Free(memory) = &operation
            && !self.graph_mut(graph)?.freed.insert(memory.address)
        {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        self.last_node += 1;
        let handle = encode(HandleKind::Node, self.last_node);
        let of = self.graph_mut(graph)?;
        let local = of.next_local;
        of.next_local += 1;
        of.nodes.push(handle);
        let node = Node {
            graph,
            local,
            operation,
            after: Vec::new(),
            dependents: BTreeMap::new(),
        };
        self.nodes.insert(handle, node);
        for edge in after {
            self.connect(edge, handle)?;
        }
        Ok(handle)
    }

    /// Makes the node `to` depend on another one. Returns `CUDA_ERROR_INVALID_VALUE` if it already does.
    fn connect(&mut self, from: Edge, to: usize) -> Result<()> {
        let dependents = &mut self.node_mut(from.node)?.dependents;
        if dependents.contains_key(&to) {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        dependents.insert(to, from.data);
        self.node_mut(to)?.after.push(from);
        Ok(())
    }

    /// Changes the operation of a node to one of the same type; returns the old one.
    pub(crate) fn replace(&mut self, node: usize, operation: Operation) -> Result<Operation> {
        let node = self.node_mut(node)?;
        if node.operation.kind() != operation.kind() {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        let operation = match (operation, &node.operation) {
            (Operation::Kernel(new), Operation::Kernel(old)) => match Arc::try_unwrap(new) {
                Ok(new) => Operation::Kernel(Arc::new(new.replace(old))),
                Err(shared) => Operation::Kernel(shared),
            },
            (operation, _) => operation,
        };
        Ok(std::mem::replace(&mut node.operation, operation))
    }

    /// `cuGraphAddChildGraphNode`: adds a node with a copy of the graph.
    pub(crate) fn add_child(&mut self, graph: usize, after: Vec<Edge>, child: usize) -> Result<usize> {
        self.check_dependencies(graph, &after)?;
        self.check_depth(graph, child)?;
        self.check_can_be_copied(child)?;
        let copy = self.clone_graph(child)?;
        self.add_owned(graph, after, copy)
    }

    /// Adds a child graph node with the graph `child` itself, which must not have an owner.
    pub(crate) fn move_child(
        &mut self,
        graph: usize,
        after: Vec<Edge>,
        child: usize,
        captures: &Captures,
    ) -> Result<usize> {
        if self.graph(child)?.owner.is_some() {
            return Err(Error::CUDA_ERROR_NOT_SUPPORTED);
        }
        if captures.captures_to(child) {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        match self.path(child, graph)? {
            None => {
                self.check_depth(graph, child)?;
                self.add_owned(graph, after, child)
            }
            // As on driver 580, the node is added, and neither graph can be instantiated or destroyed any more. The
            // node's child is `NO_GRAPH` and the owner of `child` is `NO_NODE`, so that no graph contains itself.
            Some(Path::ChildGraphs) => {
                host::log!("the graph is moved into itself or into its own child graph: it cannot be used any more");
                let node = self.add(graph, after, Operation::Child(NO_GRAPH))?;
                self.graph_mut(child)?.owner = Some(NO_NODE);
                Ok(node)
            }
            Some(Path::Bodies) => {
                host::log!("cannot move a graph into the body of its own conditional node");
                Err(Error::CUDA_ERROR_NOT_SUPPORTED)
            }
        }
    }

    /// Returns the path from `outer` to `inner`; `None` if `inner` is neither `outer` nor in it at any depth.
    fn path(&self, outer: usize, inner: usize) -> Result<Option<Path>> {
        let (mut next, mut path) = (inner, Path::ChildGraphs);
        while next != outer {
            let Some(owner) = self.graph(next)?.owner else {
                return Ok(None);
            };
            // The owner is `NO_NODE` after a graph was moved into itself.
            let Some(node) = self.nodes.get(&owner) else {
                return Ok(None);
            };
            if matches!(node.operation, Operation::Conditional(_)) {
                path = Path::Bodies;
            }
            next = node.graph;
        }
        Ok(Some(path))
    }

    /// Checks that at most [`MOST_DEPTH`] graphs are inside each other once `graph` contains `child`.
    fn check_depth(&self, graph: usize, child: usize) -> Result<()> {
        let mut depth = 0;
        let mut next = Some(graph);
        while let Some(outer) = next.and_then(|graph| self.graphs.get(&graph)) {
            depth += 1;
            next = outer.owner.and_then(|node| Some(self.nodes.get(&node)?.graph));
        }
        let mut level = vec![child];
        while !level.is_empty() {
            depth += 1;
            if depth > MOST_DEPTH {
                host::log!("more than {MOST_DEPTH} graphs inside each other are not supported");
                return Err(Error::CUDA_ERROR_INVALID_VALUE);
            }
            let graphs = level.iter().filter_map(|graph| self.graphs.get(graph));
            let nodes = graphs.flat_map(|graph| &graph.nodes);
            let nodes = nodes.filter_map(|node| self.nodes.get(node));
            level = nodes.flat_map(|node| node.operation.graphs()).copied().collect();
        }
        Ok(())
    }

    fn add_owned(&mut self, graph: usize, after: Vec<Edge>, child: usize) -> Result<usize> {
        let node = self.add(graph, after, Operation::Child(child))?;
        self.graph_mut(child)?.owner = Some(node);
        Ok(node)
    }

    /// `cuGraphConditionalHandleCreate`: returns the number that the program gets as the handle.
    pub(crate) fn add_handle(&mut self, graph: usize, handle: Arc<ConditionalHandle>) -> Result<u64> {
        let number = handle.value.handle();
        let conditional = GraphConditional { handle, node: None };
        self.graph_mut(graph)?.conditionals.push(conditional);
        Ok(number)
    }

    /// Finds the conditional handle with this number in the graph or in a graph that contains it, and checks that no
    /// node has it yet. Returns the graph that has the handle, the index of the handle in that graph, and the handle.
    fn free_handle(&self, graph: usize, number: u64) -> Result<(usize, usize, Arc<ConditionalHandle>)> {
        let mut next = Some(graph);
        while let Some(graph) = next {
            let of = self.graph(graph)?;
            let mut all = of.conditionals.iter();
            if let Some(index) = all.position(|c| c.handle.value.handle() == number) {
                let found = &of.conditionals[index];
                if found.node.is_some() {
                    host::log!("another node has the conditional handle {number:#x}: create a handle for each node");
                    return Err(Error::CUDA_ERROR_INVALID_VALUE);
                }
                return Ok((graph, index, found.handle.clone()));
            }
            next = match of.owner {
                Some(owner) => Some(self.node(owner)?.graph),
                None => None,
            };
        }
        host::log!("{number:#x} is not a conditional handle of the graph");
        Err(Error::CUDA_ERROR_INVALID_VALUE)
    }

    /// Returns true if the graph has a handle that no node has.
    pub(crate) fn has_unused_handle(&self, graph: usize) -> Result<bool> {
        Ok(self.graph(graph)?.conditionals.iter().any(|c| c.node.is_none()))
    }

    /// Adds a conditional node with `count` empty bodies and the conditional handle `number`.
    pub(crate) fn add_conditional(
        &mut self,
        graph: usize,
        after: Vec<Edge>,
        (number, kind, count): (u64, CUgraphConditionalNodeType, u32),
        context: usize,
    ) -> Result<(usize, Arc<ConditionalNode>)> {
        self.check_dependencies(graph, &after)?;
        check_bodies(kind, count)?;
        self.check_depth(graph, NO_GRAPH)?;
        let (of, index, handle) = self.free_handle(graph, number)?;
        // Driver 580 returns `CUDA_ERROR_INVALID_CONTEXT` for NULL.
        if context == 0 {
            return Err(Error::CUDA_ERROR_INVALID_CONTEXT);
        }
        if handle.context != context {
            host::log!("the node and its handle must have the same context");
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        let bodies: Box<[usize]> = (0..count).map(|_| self.create()).collect();
        let conditional = Arc::new(ConditionalNode { handle, kind, bodies });
        let node = self.add(graph, after, Operation::Conditional(conditional.clone()))?;
        for body in &conditional.bodies {
            self.graph_mut(*body)?.owner = Some(node);
        }
        self.graph_mut(of)?.conditionals[index].node = Some(node);
        Ok((node, conditional))
    }

    /// Returns the first node that is in the body of a conditional node and is not supported there, with the reason
    /// that driver 580 gives. `inside` is true if the graph itself is in a body.
    pub(crate) fn unsupported_in_bodies(&self, graph: usize, inside: bool) -> Result<Option<(Reason, usize)>> {
        const UNSUPPORTED: Reason = Reason::CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED;
        // The graphs that are not finished, each with the index of its next node, and true if it is in a body. The last
        // one continues first.
        let mut graphs = vec![(graph, 0, inside)];
        while let Some((graph, number, inside)) = graphs.pop() {
            let Some(&handle) = self.graph(graph)?.nodes.get(number) else {
                continue;
            };
            graphs.push((graph, number + 1, inside));
            let (inner, inside): (&[usize], bool) = match &self.node(handle)?.operation {
                Operation::Child(child) => (std::slice::from_ref(child), inside),
                Operation::Conditional(conditional) => (&conditional.bodies, true),
                Operation::Copy(copy) if inside && copy.uses_array() => return Ok(Some((UNSUPPORTED, handle))),
                Operation::Copy(copy) if inside && copy.are_pageable()?.contains(&true) => {
                    return Ok(Some((
                        Reason::CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED,
                        handle,
                    )));
                }
                Operation::Kernel(_) | Operation::Copy(_) | Operation::Fill(_) | Operation::Empty => continue,
                _ if inside => return Ok(Some((UNSUPPORTED, handle))),
                _ => continue,
            };
            graphs.extend(inner.iter().rev().map(|graph| (*graph, 0, inside)));
        }
        Ok(None)
    }

    /// Returns `CUDA_ERROR_NOT_SUPPORTED` if a node of the graph itself allocates or frees memory: nothing can be
    /// removed from such a graph.
    fn check_no_own_memory(&self, graph: usize) -> Result<()> {
        for handle in &self.graph(graph)?.nodes {
            if self.node(*handle)?.operation.is_memory() {
                host::log!("cannot remove nodes or dependencies of a graph that allocates or frees memory");
                return Err(Error::CUDA_ERROR_NOT_SUPPORTED);
            }
        }
        Ok(())
    }

    /// Returns `CUDA_ERROR_NOT_SUPPORTED` if the graph or a child graph allocates or frees memory or has conditional
    /// handles, or if the graph is the body of a conditional node: such a graph cannot be copied.
    pub(crate) fn check_can_be_copied(&self, graph: usize) -> Result<()> {
        if let Some(owner) = self.graph(graph)?.owner
            && matches!(self.node(owner)?.operation, Operation::Conditional(_))
        {
            host::log!("cannot copy the body of a conditional node");
            return Err(Error::CUDA_ERROR_NOT_SUPPORTED);
        }
        let mut graphs = vec![graph];
        while let Some(graph) = graphs.pop() {
            let graph = self.graph(graph)?;
            if !graph.conditionals.is_empty() {
                host::log!("cannot copy a graph with conditional handles");
                return Err(Error::CUDA_ERROR_NOT_SUPPORTED);
            }
            for handle in &graph.nodes {
                match &self.node(*handle)?.operation {
                    operation if operation.is_memory() => {
                        host::log!("cannot copy a graph that allocates or frees memory");
                        return Err(Error::CUDA_ERROR_NOT_SUPPORTED);
                    }
                    Operation::Child(child) => graphs.push(*child),
                    Operation::Conditional(_) => {
                        host::log!("cannot copy a graph with conditional nodes");
                        return Err(Error::CUDA_ERROR_NOT_SUPPORTED);
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// `cuGraphClone`: copies the graph and its child graphs. Each copy adds references to the user objects of its
    /// original.
    pub(crate) fn clone_graph(&mut self, graph: usize) -> Result<usize> {
        self.check_can_be_copied(graph)?;
        let copy = self.create();
        if let Err(error) = self.copy_levels(graph, copy) {
            // The originals keep their nodes and references, so this drops nothing that must be dropped without the
            // lock.
            let mut partial = Destroyed::default();
            let nodes = self.take_graph(copy, &mut partial);
            self.take_nodes(nodes, &mut partial);
            let _ = partial.end();
            return Err(error);
        }
        Ok(copy)
    }

    /// Copies a graph and its child graphs to `copy`, which is empty.
    fn copy_levels(&mut self, graph: usize, copy: usize) -> Result<()> {
        // Nodes of the copy, and the child graphs whose copies they get.
        let mut children = Vec::new();
        self.copy_level(graph, copy, &mut children)?;
        while let Some((node, child)) = children.pop() {
            let copy = self.create();
            self.node_mut(node)?.operation = Operation::Child(copy);
            self.graph_mut(copy)?.owner = Some(node);
            self.copy_level(child, copy, &mut children)?;
        }
        Ok(())
    }

    /// Copies a graph without its child graphs to `copy`, which is empty. Adds the nodes that need copies of child
    /// graphs to `children`.
    fn copy_level(&mut self, graph: usize, copy: usize, children: &mut Vec<(usize, usize)>) -> Result<()> {
        let objects = self.graph(graph)?.objects.clone();
        user_object::retain_all(&objects)?;
        self.graph_mut(copy)?.objects = objects;
        let nodes = self.graph(graph)?.nodes.clone();
        // A node may depend on a node that was created later, so the dependencies are copied after all nodes.
        let mut clones = HashMap::new();
        for &node in &nodes {
            let mut child = None;
            let operation = match self.node(node)?.operation.clone() {
                Operation::Child(graph) => {
                    child = Some(graph);
                    Operation::Child(NO_GRAPH)
                }
                // Each node has its own copy of the arguments: programs get pointers into it.
                Operation::Kernel(kernel) => {
                    let own = kernel.with_attributes(kernel.attributes.clone())?;
                    Operation::Kernel(Arc::new(own))
                }
                other => other,
            };
            let new = self.add(copy, Vec::new(), operation)?;
            children.extend(child.map(|child| (new, child)));
            let local = self.node(node)?.local;
            self.node_mut(new)?.local = local;
            clones.insert(node, new);
        }
        for old in &nodes {
            for edge in self.node(*old)?.after.clone() {
                let node = clones[&edge.node];
                self.connect(Edge { node, ..edge }, clones[old])?;
            }
        }
        let next_local = self.graph(graph)?.next_local;
        let made = self.graph_mut(copy)?;
        (made.clones, made.next_local) = (clones, next_local);
        Ok(())
    }

    /// `cuGraphDestroy`: destroys a graph that has no owner and that no stream captures to. The caller drops the
    /// returned parts without the lock.
    pub(crate) fn destroy(&mut self, graph: usize, captures: &Captures) -> Result<Destroyed> {
        if self.graph(graph)?.owner.is_some() {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        if captures.captures_to(graph) {
            return Err(Error::CUDA_ERROR_ILLEGAL_STATE);
        }
        let mut destroyed = Destroyed::default();
        let nodes = self.take_graph(graph, &mut destroyed);
        self.take_nodes(nodes, &mut destroyed);
        Ok(destroyed)
    }

    /// Removes a graph and returns its nodes, which still have to be removed.
    fn take_graph(&mut self, graph: usize, into: &mut Destroyed) -> Vec<usize> {
        let Some(graph) = self.graphs.remove(&graph) else {
            return Vec::new();
        };
        into.objects.push(graph.objects);
        graph.nodes
    }

    /// Removes nodes and the graphs that they own.
    fn take_nodes(&mut self, mut nodes: Vec<usize>, into: &mut Destroyed) {
        while let Some(node) = nodes.pop() {
            let Some(node) = self.nodes.remove(&node) else {
                continue;
            };
            for graph in node.operation.graphs() {
                nodes.append(&mut self.take_graph(*graph, into));
            }
            into.nodes.push(node);
        }
    }

    /// `cuGraphDestroyNode`: destroys a node with its dependencies and the dependencies on it.
    pub(crate) fn destroy_node(&mut self, handle: usize) -> Result<Destroyed> {
        let graph = self.node(handle)?.graph;
        self.check_no_own_memory(graph)?;
        let mut destroyed = Destroyed::default();
        self.take_nodes(vec![handle], &mut destroyed);
        // The node's bodies may contain nodes that have handles of this graph or of graphs around it.
        for conditional in self.graphs.values_mut().flat_map(|of| &mut of.conditionals) {
            conditional.node = conditional.node.filter(|node| self.nodes.contains_key(node));
        }
        self.graph_mut(graph)?.nodes.retain(|n| *n != handle);
        // The node itself is the first of those that were taken.
        if let Some(node) = destroyed.nodes.first() {
            for before in &node.after {
                self.node_mut(before.node)?.dependents.remove(&handle);
            }
            for after in node.dependents.keys() {
                self.node_mut(*after)?.after.retain(|edge| edge.node != handle);
            }
        }
        Ok(destroyed)
    }

    /// `cuGraphAddDependencies`. Like driver 580, adds the edges before one that occurs twice in the call.
    pub(crate) fn add_dependencies(&mut self, graph: usize, edges: &[(Edge, usize)]) -> Result<()> {
        self.graph(graph)?;
        for (from, to) in edges {
            let dependents = &self.node_of(from.node, graph)?.dependents;
            self.node_of(*to, graph)?;
            self.check_edge(from)?;
            if dependents.contains_key(to) || from.node == *to {
                return Err(Error::CUDA_ERROR_INVALID_VALUE);
            }
        }
        // On driver 580, a cycle is an error only when the graph is instantiated.
        for (from, to) in edges {
            self.connect(*from, *to)?;
        }
        Ok(())
    }

    /// `cuGraphRemoveDependencies`: all of the dependencies must exist.
    pub(crate) fn remove_dependencies(&mut self, graph: usize, edges: &[(Edge, usize)]) -> Result<()> {
        self.graph(graph)?;
        self.check_no_own_memory(graph)?;
        for (from, to) in edges {
            let dependents = &self.node_of(from.node, graph)?.dependents;
            self.node_of(*to, graph)?;
            if dependents.get(to) != Some(&from.data) {
                return Err(Error::CUDA_ERROR_INVALID_VALUE);
            }
        }
        for (from, to) in edges {
            self.node_mut(from.node)?.dependents.remove(to);
        }
        // Each node once, because a node may have many of the dependencies.
        let changed: BTreeSet<usize> = edges.iter().map(|(_, to)| *to).collect();
        for to in changed {
            let mut after = std::mem::take(&mut self.node_mut(to)?.after);
            after.retain(|edge| self.nodes[&edge.node].dependents.contains_key(&to));
            self.node_mut(to)?.after = after;
        }
        Ok(())
    }

    /// Returns the nodes of a graph: first those without dependencies, in the order of their creation, then each of the
    /// others after its dependencies. Returns `CUDA_ERROR_INVALID_VALUE` if the dependencies form a cycle.
    pub(crate) fn order(&self, graph: usize) -> Result<Vec<usize>> {
        let nodes = &self.graph(graph)?.nodes;
        let mut open: HashMap<usize, usize> = HashMap::new();
        for &node in nodes {
            open.insert(node, self.node(node)?.after.len());
        }
        let mut order: Vec<usize> = Vec::new();
        order.extend(nodes.iter().filter(|node| open.get(*node) == Some(&0)));
        let mut next = 0;
        while let Some(node) = order.get(next).copied() {
            next += 1;
            for dependent in self.node(node)?.dependents.keys() {
                if let Some(open) = open.get_mut(dependent) {
                    *open -= 1;
                    if *open == 0 {
                        order.push(*dependent);
                    }
                }
            }
        }
        if order.len() < nodes.len() {
            host::log!("the dependencies of the graph form a cycle: remove one of them");
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        Ok(order)
    }

    /// Returns the last node of a graph that is in a cycle or between two cycles; `None` if there is no cycle. Driver
    /// 580 reports this node if the nodes are empty nodes, and the first such node if they are kernel nodes.
    pub(crate) fn node_of_cycle(&self, graph: usize) -> Result<Option<usize>> {
        let nodes = &self.graph(graph)?.nodes;
        let edges = self.edges(graph)?;
        let mut left: HashSet<usize> = nodes.iter().copied().collect();
        // Removes nodes without predecessors until all others have one, then nodes without successors.
        for forward in [true, false] {
            let ends = edges
                .iter()
                .map(|(from, to)| if forward { (from.node, *to) } else { (*to, from.node) });
            let mut open: HashMap<usize, usize> = HashMap::new();
            let mut next: HashMap<usize, Vec<usize>> = HashMap::new();
            for (from, to) in ends.filter(|(from, to)| left.contains(from) && left.contains(to)) {
                *open.entry(to).or_default() += 1;
                next.entry(from).or_default().push(to);
            }
            let mut free: Vec<usize> = left.iter().copied().filter(|node| !open.contains_key(node)).collect();
            while let Some(node) = free.pop() {
                left.remove(&node);
                for to in next.remove(&node).unwrap_or_default() {
                    if let Some(count) = open.get_mut(&to) {
                        *count -= 1;
                        if *count == 0 {
                            free.push(to);
                        }
                    }
                }
            }
        }
        Ok(nodes.iter().rev().copied().find(|node| left.contains(node)))
    }

    /// `cuGraphGetEdges`: returns pairs of an edge and the dependent node, in the order of the nodes that the edges
    /// start from.
    pub(crate) fn edges(&self, graph: usize) -> Result<Vec<(Edge, usize)>> {
        let mut edges = Vec::new();
        for &node in &self.graph(graph)?.nodes {
            let dependents = &self.node(node)?.dependents;
            edges.extend(dependents.iter().map(|(&to, &data)| (Edge { node, data }, to)));
        }
        Ok(edges)
    }

    /// `cuGraphNodeGetDependentNodes`: returns edges whose `node` is the dependent node.
    pub(crate) fn dependents(&self, node: usize) -> Result<Vec<Edge>> {
        let dependents = self.node(node)?.dependents.iter();
        Ok(dependents.map(|(&node, &data)| Edge { node, data }).collect())
    }

    /// `cuGraphGetRootNodes`
    pub(crate) fn roots(&self, graph: usize) -> Result<Vec<usize>> {
        let nodes = self.graph(graph)?.nodes.iter().copied();
        let root = |node: &usize| self.node(*node).is_ok_and(|n| n.after.is_empty());
        Ok(nodes.filter(root).collect())
    }

    /// `cuGraphNodeFindInClone`: returns the node of `clone` that was copied from `node`.
    pub(crate) fn find_in_clone(&self, node: usize, clone: usize) -> Result<usize> {
        self.node(node)?;
        let found = self.graph(clone)?.clones.get(&node).copied();
        let found = found.filter(|n| self.nodes.contains_key(n));
        found.ok_or(Error::CUDA_ERROR_INVALID_VALUE)
    }

    /// Returns the nodes in `from` and their direct and indirect dependencies.
    pub(crate) fn reached(&self, from: &[Edge]) -> HashSet<usize> {
        let mut seen = HashSet::new();
        let mut todo: Vec<usize> = from.iter().map(|e| e.node).collect();
        while let Some(node) = todo.pop() {
            if seen.insert(node)
                && let Ok(node) = self.node(node)
            {
                todo.extend(node.after.iter().map(|e| e.node));
            }
        }
        seen
    }
}

/// The parts of destroyed graphs and nodes, to be dropped without the lock.
#[derive(Default)]
#[must_use]
pub(crate) struct Destroyed {
    nodes: Vec<Node>,
    objects: Vec<BTreeMap<usize, u32>>,
}

impl Destroyed {
    /// Releases the user objects of the graphs.
    pub(crate) fn end(self) -> Result<()> {
        user_object::release_all(self.objects.into_iter().flatten(), &[])
    }
}

#[cfg(test)]
mod tests;
