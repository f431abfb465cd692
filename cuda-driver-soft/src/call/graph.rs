//! Graphs: changes, instantiates, updates and destroys them.

use std::sync::Arc;

use cuda_driver_sys::{CUgraphConditionalNodeType, CUgraphInstantiateResult as Refused};

use crate::call::lookup::{graph_exec, graphs};
use crate::graph::exec::{self, Plan};
use crate::graph::store::store;
use crate::graph::update::Refusal;
use crate::object::context;
use crate::operation::Operation;
use crate::operation::conditional::{ConditionalHandle, ConditionalNode};
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
    if let Some((_, node)) = store.unsupported_in_bodies(graph, false)? {
        let kind = store.node(node)?.operation.kind();
        host::log!(
            "cannot instantiate the graph: a node of type {kind:?} is not allowed in the body of a conditional node \
             (copies are allowed, except for copies of arrays and of pageable memory)"
        );
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    let plan = Plan::of(&store, graph)?;
    let objects = store.graph(graph)?.objects.clone();
    drop(store);
    exec::create(plan, flags, objects)
}

/// Returns the reason why a graph cannot be instantiated, as `cuGraphInstantiateWithParams` reports it, and a node that
/// it concerns, or 0.
pub(crate) fn why_refused(graph: usize) -> (Refused, usize) {
    let store = store();
    let error = (Refused::CUDA_GRAPH_INSTANTIATE_ERROR, 0);
    match store.node_of_cycle(graph) {
        Ok(Some(node)) => return (Refused::CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE, node),
        Ok(None) => {}
        Err(_) => return error,
    }
    match store.unsupported_in_bodies(graph, false) {
        Ok(Some(reason)) => reason,
        _ if store.has_unused_handle(graph) == Ok(true) => {
            (Refused::CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED, 0)
        }
        _ => error,
    }
}

/// `cuGraphConditionalHandleCreate`
pub(crate) fn create_conditional(graph: usize, context: usize, value: u32, flags: u32) -> Result<u64> {
    const ASSIGN: u32 = cuda_driver_sys::CU_GRAPH_COND_ASSIGN_DEFAULT;
    let mut store = graphs()?;
    store.graph(graph)?;
    if flags & !ASSIGN != 0 {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    // Driver 580 returns `CUDA_ERROR_INVALID_CONTEXT` for NULL.
    if context == 0 {
        return Err(Error::CUDA_ERROR_INVALID_CONTEXT);
    }
    context::by_handle(context)?;
    let launch_value = (flags & ASSIGN != 0).then_some(value);
    store.add_handle(graph, ConditionalHandle::new(launch_value, context))
}

/// Adds a conditional node with empty bodies. `params` are its handle, its type and the number of bodies.
pub(crate) fn add_conditional(
    graph: usize,
    after: Vec<Edge>,
    params: (u64, CUgraphConditionalNodeType, u32),
    context: usize,
) -> Result<(usize, Arc<ConditionalNode>)> {
    let (node, conditional) = store().add_conditional(graph, after, params, context)?;
    Ok((node, conditional))
}

/// `cuGraphExecDestroy`: returns immediately; pending launches still run.
pub(crate) fn destroy_exec(handle: usize) -> Result<()> {
    capture::check_unsafe()?;
    exec::destroy(&*graph_exec(handle)?)
}

/// Destroys an executable graph that no caller has seen.
pub(crate) fn discard_exec(handle: usize) {
    if let Ok(exec) = exec::get(handle) {
        let _ = exec::destroy(&exec);
    }
}

/// `cuGraphDestroy`
pub(crate) fn destroy(graph: usize) -> Result<()> {
    let captures = captures();
    let destroyed = store().destroy(graph, &captures);
    drop(captures);
    destroyed?.end()
}

/// Adds a child graph node that takes over the graph, which must not belong to a node already.
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

/// Changes the operation of a node to the result of `make`, which is called after the node is found. Returns
/// `CUDA_ERROR_INVALID_VALUE` if the new operation has another type.
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
