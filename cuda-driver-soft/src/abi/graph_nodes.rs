//! Exports for graph nodes: they add nodes, and query and change the operations of nodes.

use std::sync::Arc;

use cuda_driver_sys::{
    CUDA_BATCH_MEM_OP_NODE_PARAMS, CUDA_HOST_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS_v1,
    CUDA_MEM_ALLOC_NODE_PARAMS, CUDA_MEMCPY3D, CUDA_MEMSET_NODE_PARAMS, CUcontext, CUdeviceptr, CUevent, CUgraph,
    CUgraphChildGraphNodeOwnership, CUgraphEdgeData, CUgraphNode, CUgraphNodeParams, CUgraphNodeType,
    CUkernelNodeAttrValue, CUlaunchAttribute, CUlaunchAttributeID as Id,
};

use super::args::Caller;
use super::exports;
use super::graph::edges_from;
use super::launch::{AttributeEffect, check_attribute, words};
use super::node_params::{operation_of, read_params, write_params};
use super::node_structures::{
    batch_params, check_context, copy, copy_params, event_node, fill, fill_params, free, host, host_params, kernel,
    kernel_node_params, kernel_params_v1, kernel_params_v2, operations,
};
use super::pool::alloc_node;
use crate::call::graph as call;
use crate::call::lookup::graphs;
use crate::operation::kernel::Attributes;
use crate::operation::{GraphAllocation, Operation};
use crate::queue::edge::Edge;
use crate::state::error::{Error, Result};

/// Returns the attributes of a kernel node; `CUDA_ERROR_INVALID_VALUE` for a node of another type.
pub(super) fn attributes_of(node: usize) -> Result<Attributes> {
    match &graphs()?.node(node)?.operation {
        Operation::Kernel(kernel) => Ok(kernel.attributes.clone()),
        _ => Err(Error::CUDA_ERROR_INVALID_VALUE),
    }
}

/// Adds a node with the operation that `make` returns. The other arguments are checked before `make` is called.
pub(super) fn add(
    c: Caller,
    out: *mut CUgraphNode,
    graph: CUgraph,
    nodes: *const CUgraphNode,
    count: usize,
    make: impl FnOnce() -> Result<Operation>,
) -> Result<()> {
    add_with(c, out, graph, nodes, std::ptr::null(), count, |graph, after| {
        call::add(graph, after, make()?)
    })
}

/// Calls `add` with the graph and the dependencies of a new node, and writes the handle that it returns. The graph, the
/// dependencies and `out` are checked before `add` is called.
fn add_with(
    c: Caller,
    out: *mut CUgraphNode,
    graph: CUgraph,
    nodes: *const CUgraphNode,
    data: *const CUgraphEdgeData,
    count: usize,
    add: impl FnOnce(usize, Vec<Edge>) -> Result<usize>,
) -> Result<()> {
    let graph = graph as usize;
    let after = edges_from(c, nodes, data, count)?;
    graphs()?.check_dependencies(graph, &after)?;
    let out = c.out(out)?;
    out.set(add(graph, after)? as CUgraphNode);
    Ok(())
}

/// Changes the operation of a node. Returns `CUDA_ERROR_INVALID_VALUE` if the new operation has another type.
pub(super) fn change(node: CUgraphNode, make: impl FnOnce() -> Result<Operation>) -> Result<()> {
    call::set_operation(node as usize, make)
}

/// Returns the result of `pick` for the operation of a node; `CUDA_ERROR_INVALID_VALUE` if it is `None`.
pub(super) fn operation_if<R>(node: CUgraphNode, pick: impl FnOnce(&Operation) -> Option<R>) -> Result<R> {
    let store = graphs()?;
    pick(&store.node(node as usize)?.operation).ok_or(Error::CUDA_ERROR_INVALID_VALUE)
}

macro_rules! pick {
    ($node:expr, $kind:ident) => {
        operation_if($node, |operation| match operation {
            Operation::$kind(of) => Some(of.clone()),
            _ => None,
        })
    };
}

/// Returns the offsets of the bytes that a query of a kernel node's attribute writes; `None` if the attribute cannot be
/// queried.
fn attribute_bytes(id: Id) -> Option<Vec<usize>> {
    Some(match id {
        Id::CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW => (0..28).collect(),
        Id::CU_LAUNCH_ATTRIBUTE_COOPERATIVE
        | Id::CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE
        | Id::CU_LAUNCH_ATTRIBUTE_PRIORITY
        | Id::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN
        | Id::CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT => (0..4).collect(),
        Id::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION => (0..12).collect(),
        Id::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP => (0..2).collect(),
        Id::CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE => (0..4).chain(8..16).collect(),
        _ => return None,
    })
}

/// Returns true if this attribute of a kernel node can be set.
fn can_be_set(id: Id) -> bool {
    matches!(
        id,
        Id::CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW
            | Id::CU_LAUNCH_ATTRIBUTE_COOPERATIVE
            | Id::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
            | Id::CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE
            | Id::CU_LAUNCH_ATTRIBUTE_PRIORITY
            | Id::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP
            | Id::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN
            | Id::CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE
            | Id::CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT
            | Id::CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING
    )
}

/// Returns the value of an attribute that was never set.
fn default_attribute(id: Id) -> [u64; 8] {
    let mut value = [0; 8];
    value[0] = match id {
        // Byte 0 is the default domain (0), byte 1 the remote domain (1).
        Id::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP => 0x0100,
        _ => 0,
    };
    value
}

exports! {
    fn cuGraphAddKernelNode [c] (
        out: *mut CUgraphNode,
        graph: CUgraph,
        nodes: *const CUgraphNode,
        count: usize,
        params: *const CUDA_KERNEL_NODE_PARAMS_v1,
    ) {
        add(c, out, graph, nodes, count, || {
            kernel(c, &kernel_params_v1(c, params)?, Attributes::new())
        })
    }

    fn cuGraphAddKernelNode_v2 [c] (
        out: *mut CUgraphNode,
        graph: CUgraph,
        nodes: *const CUgraphNode,
        count: usize,
        params: *const CUDA_KERNEL_NODE_PARAMS,
    ) {
        add(c, out, graph, nodes, count, || {
            kernel(c, &kernel_params_v2(c, params)?, Attributes::new())
        })
    }

    fn cuGraphAddMemcpyNode [c] (
        out: *mut CUgraphNode,
        graph: CUgraph,
        nodes: *const CUgraphNode,
        count: usize,
        params: *const CUDA_MEMCPY3D,
        ctx: CUcontext,
    ) {
        add(c, out, graph, nodes, count, || {
            check_context(ctx)?;
            copy(c, params)
        })
    }

    fn cuGraphAddMemsetNode [c] (
        out: *mut CUgraphNode,
        graph: CUgraph,
        nodes: *const CUgraphNode,
        count: usize,
        params: *const CUDA_MEMSET_NODE_PARAMS,
        ctx: CUcontext,
    ) {
        add(c, out, graph, nodes, count, || {
            check_context(ctx)?;
            fill(&c.read(params)?)
        })
    }

    fn cuGraphAddHostNode [c] (
        out: *mut CUgraphNode,
        graph: CUgraph,
        nodes: *const CUgraphNode,
        count: usize,
        params: *const CUDA_HOST_NODE_PARAMS,
    ) {
        add(c, out, graph, nodes, count, || host(c, params))
    }

    fn cuGraphAddEmptyNode [c] (
        out: *mut CUgraphNode,
        graph: CUgraph,
        nodes: *const CUgraphNode,
        count: usize,
    ) {
        add(c, out, graph, nodes, count, || Ok(Operation::Empty))
    }

    fn cuGraphAddEventRecordNode [c] (
        out: *mut CUgraphNode,
        graph: CUgraph,
        nodes: *const CUgraphNode,
        count: usize,
        event: CUevent,
    ) {
        add(c, out, graph, nodes, count, || {
            event_node(event).map(Operation::Record)
        })
    }

    fn cuGraphAddEventWaitNode [c] (
        out: *mut CUgraphNode,
        graph: CUgraph,
        nodes: *const CUgraphNode,
        count: usize,
        event: CUevent,
    ) {
        add(c, out, graph, nodes, count, || {
            event_node(event).map(Operation::Wait)
        })
    }

    fn cuGraphAddChildGraphNode [c] (
        out: *mut CUgraphNode,
        graph: CUgraph,
        nodes: *const CUgraphNode,
        count: usize,
        child: CUgraph,
    ) {
        let child = child as usize;
        add_with(
            c,
            out,
            graph,
            nodes,
            std::ptr::null(),
            count,
            |graph, after| call::add_child(graph, after, child),
        )
    }

    fn cuGraphAddMemAllocNode [c] (
        out: *mut CUgraphNode,
        graph: CUgraph,
        nodes: *const CUgraphNode,
        count: usize,
        params: *mut CUDA_MEM_ALLOC_NODE_PARAMS,
    ) {
        let mut asked = c.read(params.cast_const())?;
        let mut address = 0;
        add(c, out, graph, nodes, count, || {
            let node = alloc_node(
                c,
                &asked.poolProps,
                asked.accessDescs,
                asked.accessDescCount,
                asked.bytesize,
            )?;
            address = node.memory.address;
            Ok(Operation::Alloc(node))
        })?;
        asked.dptr = address;
        c.out(params)?.set(asked);
        Ok(())
    }

    fn cuGraphAddMemFreeNode [c] (
        out: *mut CUgraphNode,
        graph: CUgraph,
        nodes: *const CUgraphNode,
        count: usize,
        address: CUdeviceptr,
    ) {
        add(c, out, graph, nodes, count, || free(address))
    }

    fn cuGraphAddBatchMemOpNode [c] (
        out: *mut CUgraphNode,
        graph: CUgraph,
        nodes: *const CUgraphNode,
        count: usize,
        params: *const CUDA_BATCH_MEM_OP_NODE_PARAMS,
    ) {
        add(c, out, graph, nodes, count, || operations(c, params))
    }

    fn cuGraphBatchMemOpNodeGetParams [c] (
        node: CUgraphNode,
        out: *mut CUDA_BATCH_MEM_OP_NODE_PARAMS,
    ) {
        let batch = pick!(node, Operations)?;
        c.out(out)?.set(batch_params(&batch));
        Ok(())
    }

    fn cuGraphBatchMemOpNodeSetParams [c] (
        node: CUgraphNode,
        params: *const CUDA_BATCH_MEM_OP_NODE_PARAMS,
    ) {
        change(node, || operations(c, params))
    }

    fn cuGraphAddNode [c] (
        out: *mut CUgraphNode,
        graph: CUgraph,
        nodes: *const CUgraphNode,
        count: usize,
        params: *mut CUgraphNodeParams,
    ) {
        add_any(c, out, graph, nodes, std::ptr::null(), count, params)
    }

    fn cuGraphAddNode_v2 [c] (
        out: *mut CUgraphNode,
        graph: CUgraph,
        nodes: *const CUgraphNode,
        data: *const CUgraphEdgeData,
        count: usize,
        params: *mut CUgraphNodeParams,
    ) {
        add_any(c, out, graph, nodes, data, count, params)
    }

    fn cuGraphAddNode_v3 [c] (
        out: *mut CUgraphNode,
        graph: CUgraph,
        nodes: *const CUgraphNode,
        data: *const CUgraphEdgeData,
        count: usize,
        params: *mut CUgraphNodeParams,
    ) {
        add_any(c, out, graph, nodes, data, count, params)
    }

    fn cuGraphKernelNodeGetParams [c] (node: CUgraphNode, out: *mut CUDA_KERNEL_NODE_PARAMS_v1) {
        let kernel = pick!(node, Kernel)?;
        let p = kernel_node_params(&kernel);
        c.out(out)?.set(CUDA_KERNEL_NODE_PARAMS_v1 {
            func: p.func,
            gridDimX: p.gridDimX,
            gridDimY: p.gridDimY,
            gridDimZ: p.gridDimZ,
            blockDimX: p.blockDimX,
            blockDimY: p.blockDimY,
            blockDimZ: p.blockDimZ,
            sharedMemBytes: p.sharedMemBytes,
            kernelParams: p.kernelParams,
            extra: p.extra,
        });
        Ok(())
    }

    fn cuGraphKernelNodeGetParams_v2 [c] (node: CUgraphNode, out: *mut CUDA_KERNEL_NODE_PARAMS) {
        let kernel = pick!(node, Kernel)?;
        c.out(out)?.set(kernel_node_params(&kernel));
        Ok(())
    }

    fn cuGraphKernelNodeSetParams [c] (
        node: CUgraphNode,
        params: *const CUDA_KERNEL_NODE_PARAMS_v1,
    ) {
        change(node, || {
            kernel(c, &kernel_params_v1(c, params)?, attributes_of(node as usize)?)
        })
    }

    fn cuGraphKernelNodeSetParams_v2 [c] (
        node: CUgraphNode,
        params: *const CUDA_KERNEL_NODE_PARAMS,
    ) {
        change(node, || {
            kernel(c, &kernel_params_v2(c, params)?, attributes_of(node as usize)?)
        })
    }

    fn cuGraphMemcpyNodeGetParams [c] (node: CUgraphNode, out: *mut CUDA_MEMCPY3D) {
        let copy = pick!(node, Copy)?;
        c.out(out)?.set(copy_params(&copy));
        Ok(())
    }

    fn cuGraphMemcpyNodeSetParams [c] (node: CUgraphNode, params: *const CUDA_MEMCPY3D) {
        change(node, || copy(c, params))
    }

    fn cuGraphMemsetNodeGetParams [c] (node: CUgraphNode, out: *mut CUDA_MEMSET_NODE_PARAMS) {
        let fill = pick!(node, Fill)?;
        c.out(out)?.set(fill_params(&fill));
        Ok(())
    }

    fn cuGraphMemsetNodeSetParams [c] (node: CUgraphNode, params: *const CUDA_MEMSET_NODE_PARAMS) {
        change(node, || fill(&c.read(params)?))
    }

    fn cuGraphHostNodeGetParams [c] (node: CUgraphNode, out: *mut CUDA_HOST_NODE_PARAMS) {
        let host = pick!(node, Host)?;
        c.out(out)?.set(host_params(&host));
        Ok(())
    }

    fn cuGraphHostNodeSetParams [c] (node: CUgraphNode, params: *const CUDA_HOST_NODE_PARAMS) {
        change(node, || host(c, params))
    }

    fn cuGraphEventRecordNodeGetEvent [c] (node: CUgraphNode, out: *mut CUevent) {
        let event = pick!(node, Record)?;
        c.out(out)?.set(event.handle as CUevent);
        Ok(())
    }

    fn cuGraphEventRecordNodeSetEvent [_c] (node: CUgraphNode, event: CUevent) {
        change(node, || event_node(event).map(Operation::Record))
    }

    fn cuGraphEventWaitNodeGetEvent [c] (node: CUgraphNode, out: *mut CUevent) {
        let event = pick!(node, Wait)?;
        c.out(out)?.set(event.handle as CUevent);
        Ok(())
    }

    fn cuGraphEventWaitNodeSetEvent [_c] (node: CUgraphNode, event: CUevent) {
        change(node, || event_node(event).map(Operation::Wait))
    }

    fn cuGraphChildGraphNodeGetGraph [c] (node: CUgraphNode, out: *mut CUgraph) {
        let child = pick!(node, Child)?;
        c.out(out)?.set(child as CUgraph);
        Ok(())
    }

    fn cuGraphMemAllocNodeGetParams [c] (node: CUgraphNode, out: *mut CUDA_MEM_ALLOC_NODE_PARAMS) {
        let alloc: GraphAllocation = pick!(node, Alloc)?;
        c.out(out)?.set(super::pool::alloc_params(&alloc));
        Ok(())
    }

    fn cuGraphMemFreeNodeGetParams [c] (node: CUgraphNode, out: *mut CUdeviceptr) {
        let memory = pick!(node, Free)?;
        c.out(out)?.set(memory.address);
        Ok(())
    }

    fn cuGraphKernelNodeGetAttribute [c] (
        node: CUgraphNode,
        id: Id,
        out: *mut CUkernelNodeAttrValue,
    ) {
        let kernel = pick!(node, Kernel)?;
        c.out(out)?;
        let bytes = attribute_bytes(id).ok_or(Error::CUDA_ERROR_INVALID_VALUE)?;
        let value = kernel.attributes.get(&id.0).copied();
        let value = value.unwrap_or_else(|| default_attribute(id));
        for at in bytes {
            c.set_at(out.cast::<u8>(), at, value[at / 8].to_ne_bytes()[at % 8]);
        }
        Ok(())
    }

    fn cuGraphKernelNodeSetAttribute [c] (
        node: CUgraphNode,
        id: Id,
        value: *const CUkernelNodeAttrValue,
    ) {
        let kernel = pick!(node, Kernel)?;
        let value = c.read(value)?;
        if !can_be_set(id) {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        // SAFETY: the member is a number, for which any bits are a valid value.
        let updatable = unsafe { value.deviceUpdatableKernelNode.deviceUpdatable };
        // Nodes are never updatable from the device, so there is nothing to change.
        if id == Id::CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE && updatable == 0 {
            return Ok(());
        }
        let asked = check_attribute(&CUlaunchAttribute {
            id,
            value,
            ..CUlaunchAttribute::default()
        })?;
        if let AttributeEffect::Event(_) = asked {
            return Err(Error::CUDA_ERROR_NOT_SUPPORTED);
        }
        let mut attributes = kernel.attributes.clone();
        attributes.insert(id.0, words(&value));
        change(node, || {
            Ok(Operation::Kernel(Arc::new(
                kernel.with_attributes(attributes)?,
            )))
        })
    }

    fn cuGraphKernelNodeCopyAttributes [_c] (to: CUgraphNode, from: CUgraphNode) {
        let kernel = pick!(to, Kernel)?;
        let attributes = attributes_of(from as usize)?;
        change(to, || {
            Ok(Operation::Kernel(Arc::new(
                kernel.with_attributes(attributes)?,
            )))
        })
    }

    fn cuGraphNodeSetParams [c] (node: CUgraphNode, params: *mut CUgraphNodeParams) {
        set_any(c, node, params)
    }

    fn cuGraphNodeSetParams_v2 [c] (node: CUgraphNode, params: *mut CUgraphNodeParams) {
        set_any(c, node, params)
    }

    fn cuGraphNodeGetParams [c] (node: CUgraphNode, out: *mut CUgraphNodeParams) {
        let operation = operation_if(node, |operation| Some(operation.clone()))?;
        write_params(c, &operation, out)
    }
}

/// Changes the operation of a node to the one that the structure describes. Returns `CUDA_ERROR_INVALID_VALUE` if the
/// structure describes a node of another type.
fn set_any(c: Caller, node: CUgraphNode, params: *const CUgraphNodeParams) -> Result<()> {
    change(node, || {
        let params = read_params(c, params)?;
        if params.type_ != operation_if(node, |operation| Some(operation.kind()))? {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        let attributes = attributes_of(node as usize).unwrap_or_default();
        operation_of(c, &params, attributes)
    })
}

/// Adds a node of the type that the structure names. For an allocation node, also writes the memory's address to the
/// structure; for a conditional node, the address of the array of its bodies.
fn add_any(
    c: Caller,
    out: *mut CUgraphNode,
    graph: CUgraph,
    nodes: *const CUgraphNode,
    data: *const CUgraphEdgeData,
    count: usize,
    params: *mut CUgraphNodeParams,
) -> Result<()> {
    let asked = read_params(c, params.cast_const())?;
    if asked.type_ == CUgraphNodeType::CU_GRAPH_NODE_TYPE_GRAPH {
        use CUgraphChildGraphNodeOwnership as Ownership;
        // SAFETY: the type selects this member; a pointer and a C enumeration, which is an integer, are valid for any bits.
        let child = unsafe { asked.anonymous1.graph };
        let graph_of = child.graph as usize;
        return add_with(c, out, graph, nodes, data, count, |graph, after| {
            match child.ownership {
                Ownership::CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE => call::add_child(graph, after, graph_of),
                Ownership::CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE => call::move_child(graph, after, graph_of),
                _ => Err(Error::CUDA_ERROR_NOT_SUPPORTED),
            }
        });
    }
    if asked.type_ == CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL {
        // SAFETY: the type selects this member; numbers and pointers are valid for any bits.
        let p = unsafe { asked.anonymous1.conditional };
        let mut bodies = std::ptr::null_mut();
        add_with(c, out, graph, nodes, data, count, |graph, after| {
            let context = p.ctx as usize;
            let (node, made) = call::add_conditional(graph, after, (p.handle, p.type_, p.size), context)?;
            bodies = made.bodies.as_ptr().cast_mut().cast::<CUgraph>();
            Ok(node)
        })?;
        let mut result = asked;
        result.anonymous1.conditional.phGraph_out = bodies;
        c.out(params)?.set(result);
        return Ok(());
    }
    let mut address = 0;
    add_with(c, out, graph, nodes, data, count, |graph, after| {
        let operation = operation_of(c, &asked, Attributes::new())?;
        if let Operation::Alloc(alloc) = &operation {
            address = alloc.memory.address;
        }
        call::add(graph, after, operation)
    })?;
    if asked.type_ == CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEM_ALLOC {
        let mut result = asked;
        result.anonymous1.alloc.dptr = address;
        c.out(params)?.set(result);
    }
    Ok(())
}
