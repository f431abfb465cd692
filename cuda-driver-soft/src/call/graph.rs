//! Graphs: instantiates, destroys and changes them.

use crate::call::lookup::{graph_exec, graphs};
use crate::graph::exec::{self, Plan};
use crate::graph::store::store;
use crate::graph::update::Refusal;
use crate::object::context;
use crate::operation::Operation;
use crate::queue::capture::{self, captures};
use crate::queue::edge::Edge;
use crate::state::error::{Error, Result};

/// `cuGraphInstantiate`
pub(crate) fn instantiate(graph: usize, flags: u64) -> Result<usize> {
    capture::check_unsafe()?;
    let store = graphs()?;
    if store.graph(graph)?.owner.is_some() {
        host::log!("cannot instantiate the graph of a node alone: instantiate the graph that contains the node");
        return Err(Error::CUDA_ERROR_NOT_SUPPORTED);
    }
    exec::check_flags(flags)?;
    context::current()?;
    let plan = Plan::of(&store, graph)?;
    let objects = store.graph(graph)?.objects.clone();
    drop(store);
    exec::create(plan, flags, objects)
}

/// Returns a node of a cycle in a graph, if there is one.
pub(crate) fn node_of_cycle(graph: usize) -> Option<usize> {
    store().node_of_cycle(graph).ok().flatten()
}

/// `cuGraphExecDestroy`: returns at once; pending launches still run.
pub(crate) fn destroy_exec(handle: usize) -> Result<()> {
    capture::check_unsafe()?;
    exec::destroy(&*graph_exec(handle)?)
}

/// `cuGraphDestroy`
pub(crate) fn destroy(graph: usize) -> Result<()> {
    let captures = captures();
    let destroyed = store().destroy(graph, &captures);
    drop(captures);
    destroyed?.end()
}

/// Adds a child graph node with the graph itself, which must not have an owner.
pub(crate) fn move_child(graph: usize, after: Vec<Edge>, child: usize) -> Result<usize> {
    let captures = captures();
    store().move_child(graph, after, child, &captures)
}

/// Adds a child graph node with a copy of a graph.
pub(crate) fn add_child(graph: usize, after: Vec<Edge>, child: usize) -> Result<usize> {
    store().add_child(graph, after, child)
}

/// Adds a node.
pub(crate) fn add(graph: usize, after: Vec<Edge>, operation: Operation) -> Result<usize> {
    store().add(graph, after, operation)
}

/// Changes the operation of a node to one of the same type; `make` is called once the node is found.
pub(crate) fn set_operation(node: usize, make: impl FnOnce() -> Result<Operation>) -> Result<()> {
    graphs()?.node(node)?;
    let operation = make()?;
    let old = store().replace(node, operation)?;
    // Dropped without the lock: the old operation may hold the last reference to its memory.
    drop(old);
    Ok(())
}

/// `cuGraphExecUpdate`
pub(crate) fn update(exec: usize, graph: usize) -> Result<std::result::Result<(), Refusal>> {
    let exec = graph_exec(exec)?;
    let store = store();
    let plan = Plan::of(&store, graph)?;
    let objects = store.graph(graph)?.objects.clone();
    drop(store);
    exec.update(&plan, objects)
}

/// `cuGraphExecChildGraphNodeSetParams`: takes the operations of a graph with the same topology.
pub(crate) fn set_child(exec: usize, node: usize, graph: usize) -> Result<()> {
    let exec = graph_exec(exec)?;
    let plan = Plan::of(&store(), graph)?;
    exec.set_child(node, &plan)
}
