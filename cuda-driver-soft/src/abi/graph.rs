//! Exports of graphs: create, clone, print and destroy them, query and change their nodes' dependencies, and create the
//! conditional handles and user objects that graphs use.

use std::ffi::{c_char, c_uint, c_ulonglong, c_void};
use std::sync::Arc;

use cuda_driver_sys::{
    CUcontext, CUgraph, CUgraphConditionalHandle, CUgraphEdgeData, CUgraphNode, CUgraphNodeType, CUhostFn,
    CUuserObject, CUuserObject_flags, CUuserObjectRetain_flags,
};

use super::args::Caller;
use super::exports;
use crate::call::graph;
use crate::call::lookup::{graphs, healthy_if_current};
use crate::graph::dot;
use crate::graph::store::{note, store};
use crate::object::user_object;
use crate::queue::edge::{Edge, EdgeData};
use crate::state::error::{Error, Result};
use crate::state::handle::HandleKind;

fn data_of(data: &CUgraphEdgeData) -> Result<EdgeData> {
    if data.reserved != [0; 5] {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    Ok(EdgeData {
        from_port: data.from_port,
        to_port: data.to_port,
        kind: data.type_,
    })
}

/// Returns the handle of a node, or an error for a value that cannot be one. If a caller passes too large a length
/// for a list, reading stops at the first such value after the list.
fn node_handle(node: CUgraphNode) -> Result<usize> {
    let handle = node as usize;
    HandleKind::Node.may_have(handle).then_some(handle).ok_or_else(|| {
        host::log!(
            "{handle:#x} is not a node handle: check the list of nodes and its length; the NVIDIA driver may crash here"
        );
        Error::CUDA_ERROR_INVALID_VALUE
    })
}

/// Reads the dependencies of a node; plain dependencies if `data` is NULL.
pub(super) fn edges_from(
    c: Caller,
    nodes: *const CUgraphNode,
    data: *const CUgraphEdgeData,
    count: usize,
) -> Result<Vec<Edge>> {
    let edges = c.items(nodes, count)?.enumerate().map(|(index, node)| {
        Ok(Edge {
            node: node_handle(node)?,
            data: match data.is_null() {
                true => EdgeData::default(),
                false => data_of(&c.read(data.wrapping_add(index))?)?,
            },
        })
    });
    edges.collect()
}

/// Reads edges: each is its first node with the data of the edge, and its second node.
fn pairs(
    c: Caller,
    from: *const CUgraphNode,
    to: *const CUgraphNode,
    data: *const CUgraphEdgeData,
    count: usize,
) -> Result<Vec<(Edge, usize)>> {
    let from = edges_from(c, from, data, count)?;
    let to = c.items(to, count)?.map(node_handle);
    from.into_iter().zip(to).map(|(from, to)| Ok((from, to?))).collect()
}

/// The caller's parallel arrays for a list of edges, any of which may be NULL, and the pointer to their length.
struct EdgeOutputs {
    nodes: *mut CUgraphNode,
    others: *mut CUgraphNode,
    data: *mut CUgraphEdgeData,
    count: *mut usize,
}

/// Writes a list: only its length if all arrays are NULL, else as many entries as there is room for, then zeros.
/// Returns `CUDA_ERROR_LOSSY_QUERY` if the array for the edges' data is NULL, but an edge has data.
fn write_edges(c: Caller, list: &[(Edge, usize)], to: &EdgeOutputs) -> Result<()> {
    let count = c.out(to.count)?;
    if to.nodes.is_null() && to.others.is_null() && to.data.is_null() {
        count.set(list.len());
        return Ok(());
    }
    if to.data.is_null() && list.iter().any(|(edge, _)| edge.data != EdgeData::default()) {
        return Err(Error::CUDA_ERROR_LOSSY_QUERY);
    }
    let room = c.read(to.count.cast_const())?;
    for (index, &(edge, other)) in list.iter().take(room).enumerate() {
        let data = CUgraphEdgeData {
            from_port: edge.data.from_port,
            to_port: edge.data.to_port,
            type_: edge.data.kind,
            reserved: [0; 5],
        };
        c.set_at(to.nodes, index, edge.node as CUgraphNode);
        c.set_at(to.others, index, other as CUgraphNode);
        c.set_at(to.data, index, data);
    }
    // As documented, the entries beyond the list are NULL, and the count is the number of valid entries.
    for index in list.len()..room {
        c.set_at(to.nodes, index, std::ptr::null_mut());
        c.set_at(to.others, index, std::ptr::null_mut());
        c.set_at(to.data, index, CUgraphEdgeData::default());
    }
    count.set(room.min(list.len()));
    Ok(())
}

/// Writes nodes without edge data.
fn write_nodes(c: Caller, nodes: Vec<usize>, to: *mut CUgraphNode, count: *mut usize) -> Result<()> {
    let list: Vec<_> = nodes.into_iter().map(|n| (Edge::plain(n), 0)).collect();
    let others = std::ptr::null_mut();
    let data = std::ptr::null_mut();
    write_edges(
        c,
        &list,
        &EdgeOutputs {
            nodes: to,
            others,
            data,
            count,
        },
    )
}

/// Writes nodes with the data of their edges.
fn give_edges(
    c: Caller,
    edges: Vec<Edge>,
    nodes: *mut CUgraphNode,
    data: *mut CUgraphEdgeData,
    count: *mut usize,
) -> Result<()> {
    let list: Vec<_> = edges.into_iter().map(|edge| (edge, 0)).collect();
    let others = std::ptr::null_mut();
    write_edges(
        c,
        &list,
        &EdgeOutputs {
            nodes,
            others,
            data,
            count,
        },
    )
}

exports! {
    fn cuGraphCreate [c] (out: *mut CUgraph, flags: c_uint) {
        healthy_if_current()?;
        let out = c.out(out)?;
        if flags != 0 {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        let graph = store().create();
        note(graph);
        out.set(graph as CUgraph);
        Ok(())
    }

    healthy fn cuGraphDestroy [_c] (graph: CUgraph) {
        graph::destroy(graph as usize)
    }

    fn cuGraphClone [c] (out: *mut CUgraph, graph: CUgraph) {
        let mut store = graphs()?;
        let out = c.out(out)?;
        let copy = store.clone_graph(graph as usize)?;
        drop(store);
        note(copy);
        out.set(copy as CUgraph);
        Ok(())
    }

    fn cuGraphNodeFindInClone [c] (out: *mut CUgraphNode, node: CUgraphNode, clone: CUgraph) {
        let store = graphs()?;
        let out = c.out(out)?;
        out.set(store.find_in_clone(node as usize, clone as usize)? as CUgraphNode);
        Ok(())
    }

    fn cuGraphGetNodes [c] (graph: CUgraph, nodes: *mut CUgraphNode, count: *mut usize) {
        let list = graphs()?.graph(graph as usize)?.nodes.clone();
        // Driver 580 refuses an array of length 0, also for a graph without nodes.
        if !nodes.is_null() && c.read(count.cast_const())? == 0 {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        write_nodes(c, list, nodes, count)
    }

    fn cuGraphGetRootNodes [c] (graph: CUgraph, nodes: *mut CUgraphNode, count: *mut usize) {
        let list = graphs()?.roots(graph as usize)?;
        write_nodes(c, list, nodes, count)
    }

    fn cuGraphGetEdges [c] (
        graph: CUgraph,
        from: *mut CUgraphNode,
        to: *mut CUgraphNode,
        count: *mut usize,
    ) {
        let list = graphs()?.edges(graph as usize)?;
        write_edges(
            c,
            &list,
            &EdgeOutputs {
                nodes: from,
                others: to,
                data: std::ptr::null_mut(),
                count,
            },
        )
    }

    fn cuGraphGetEdges_v2 [c] (
        graph: CUgraph,
        from: *mut CUgraphNode,
        to: *mut CUgraphNode,
        data: *mut CUgraphEdgeData,
        count: *mut usize,
    ) {
        let list = graphs()?.edges(graph as usize)?;
        write_edges(
            c,
            &list,
            &EdgeOutputs {
                nodes: from,
                others: to,
                data,
                count,
            },
        )
    }

    fn cuGraphNodeGetDependencies [c] (
        node: CUgraphNode,
        nodes: *mut CUgraphNode,
        count: *mut usize,
    ) {
        let list = graphs()?.node(node as usize)?.after.clone();
        give_edges(c, list, nodes, std::ptr::null_mut(), count)
    }

    fn cuGraphNodeGetDependencies_v2 [c] (
        node: CUgraphNode,
        nodes: *mut CUgraphNode,
        data: *mut CUgraphEdgeData,
        count: *mut usize,
    ) {
        let list = graphs()?.node(node as usize)?.after.clone();
        give_edges(c, list, nodes, data, count)
    }

    fn cuGraphNodeGetDependentNodes [c] (
        node: CUgraphNode,
        nodes: *mut CUgraphNode,
        count: *mut usize,
    ) {
        let list = graphs()?.dependents(node as usize)?;
        give_edges(c, list, nodes, std::ptr::null_mut(), count)
    }

    fn cuGraphNodeGetDependentNodes_v2 [c] (
        node: CUgraphNode,
        nodes: *mut CUgraphNode,
        data: *mut CUgraphEdgeData,
        count: *mut usize,
    ) {
        let list = graphs()?.dependents(node as usize)?;
        give_edges(c, list, nodes, data, count)
    }

    fn cuGraphAddDependencies [c] (
        graph: CUgraph,
        from: *const CUgraphNode,
        to: *const CUgraphNode,
        count: usize,
    ) {
        let mut store = graphs()?;
        store.add_dependencies(
            graph as usize,
            &pairs(c, from, to, std::ptr::null(), count)?,
        )
    }

    fn cuGraphAddDependencies_v2 [c] (
        graph: CUgraph,
        from: *const CUgraphNode,
        to: *const CUgraphNode,
        data: *const CUgraphEdgeData,
        count: usize,
    ) {
        let mut store = graphs()?;
        store.add_dependencies(graph as usize, &pairs(c, from, to, data, count)?)
    }

    fn cuGraphRemoveDependencies [c] (
        graph: CUgraph,
        from: *const CUgraphNode,
        to: *const CUgraphNode,
        count: usize,
    ) {
        let mut store = graphs()?;
        store.remove_dependencies(
            graph as usize,
            &pairs(c, from, to, std::ptr::null(), count)?,
        )
    }

    fn cuGraphRemoveDependencies_v2 [c] (
        graph: CUgraph,
        from: *const CUgraphNode,
        to: *const CUgraphNode,
        data: *const CUgraphEdgeData,
        count: usize,
    ) {
        let mut store = graphs()?;
        store.remove_dependencies(graph as usize, &pairs(c, from, to, data, count)?)
    }

    fn cuGraphDestroyNode [_c] (node: CUgraphNode) {
        let destroyed = graphs()?.destroy_node(node as usize)?;
        destroyed.end()
    }

    fn cuGraphNodeGetType [c] (node: CUgraphNode, out: *mut CUgraphNodeType) {
        let store = graphs()?;
        let out = c.out(out)?;
        out.set(store.node(node as usize)?.operation.kind());
        Ok(())
    }

    fn cuGraphGetId [c] (graph: CUgraph, out: *mut c_uint) {
        let store = graphs()?;
        let out = c.out(out)?;
        out.set(store.graph(graph as usize)?.id);
        Ok(())
    }

    fn cuGraphNodeGetContainingGraph [c] (node: CUgraphNode, out: *mut CUgraph) {
        let store = graphs()?;
        let out = c.out(out)?;
        out.set(store.node(node as usize)?.graph as CUgraph);
        Ok(())
    }

    fn cuGraphNodeGetLocalId [c] (node: CUgraphNode, out: *mut c_uint) {
        let store = graphs()?;
        let out = c.out(out)?;
        out.set(store.node(node as usize)?.local);
        Ok(())
    }

    fn cuGraphNodeGetToolsId [c] (node: CUgraphNode, out: *mut c_ulonglong) {
        let store = graphs()?;
        let out = c.out(out)?;
        let node = store.node(node as usize)?;
        let graph = store.graph(node.graph)?.id;
        out.set(u64::from(graph) << 32 | u64::from(node.local));
        Ok(())
    }

    fn cuGraphDebugDotPrint [c] (graph: CUgraph, path: *const c_char, flags: c_uint) {
        let text = dot::print(&*graphs()?, graph as usize, flags)?;
        let path = c.path(path)?;
        std::fs::write(&path, text).map_err(|error| {
            host::log!("cannot write {}: {error}", path.display());
            Error::CUDA_ERROR_OPERATING_SYSTEM
        })
    }

    fn cuGraphConditionalHandleCreate [c] (
        out: *mut CUgraphConditionalHandle,
        graph: CUgraph,
        context: CUcontext,
        launch_value: c_uint,
        flags: c_uint,
    ) {
        let out = c.out(out)?;
        out.set(graph::create_conditional(graph as usize, context as usize, launch_value, flags)?);
        Ok(())
    }

    healthy fn cuUserObjectCreate [c] (
        out: *mut CUuserObject,
        pointer: *mut c_void,
        destroy: CUhostFn,
        count: c_uint,
        flags: c_uint,
    ) {
        const NO_DESTRUCTOR_SYNC: c_uint = CUuserObject_flags::CU_USER_OBJECT_NO_DESTRUCTOR_SYNC.0;
        let out = c.out(out)?;
        let destroy = destroy.ok_or(Error::CUDA_ERROR_INVALID_VALUE)?;
        if flags != NO_DESTRUCTOR_SYNC {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        let pointer = pointer as usize;
        // SAFETY: the caller keeps the destructor and its data valid until the destructor has run. It runs once.
        let destroy = Arc::new(move || unsafe { destroy(pointer as *mut c_void) });
        out.set(user_object::create(destroy, count)? as CUuserObject);
        Ok(())
    }

    fn cuUserObjectRetain [_c] (object: CUuserObject, count: c_uint) {
        user_object::retain(object as usize, count)
    }

    fn cuUserObjectRelease [_c] (object: CUuserObject, count: c_uint) {
        user_object::release(object as usize, count, &[])
    }

    fn cuGraphRetainUserObject [_c] (
        graph: CUgraph,
        object: CUuserObject,
        count: c_uint,
        flags: c_uint,
    ) {
        const MOVE: c_uint = CUuserObjectRetain_flags::CU_GRAPH_USER_OBJECT_MOVE.0;
        let mut store = graphs()?;
        let of = store.graph_mut(graph as usize)?;
        if count == 0 || flags & !MOVE != 0 {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        let held = of.objects.get(&(object as usize)).copied().unwrap_or(0);
        let sum = held.checked_add(count).ok_or(Error::CUDA_ERROR_INVALID_VALUE)?;
        if flags & MOVE == 0 {
            user_object::retain(object as usize, count)?;
        } else {
            user_object::check(object as usize)?;
        }
        of.objects.insert(object as usize, sum);
        Ok(())
    }

    fn cuGraphReleaseUserObject [_c] (graph: CUgraph, object: CUuserObject, count: c_uint) {
        let mut store = graphs()?;
        let of = store.graph_mut(graph as usize)?;
        let held = of.objects.get(&(object as usize)).copied().unwrap_or(0);
        if count == 0 {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        // Driver 580 returns success and releases nothing for more references than the graph has.
        let Some(left) = held.checked_sub(count) else {
            return Ok(());
        };
        if left == 0 {
            of.objects.remove(&(object as usize));
        } else {
            of.objects.insert(object as usize, left);
        }
        drop(store);
        user_object::release(object as usize, count, &[])
    }
}
