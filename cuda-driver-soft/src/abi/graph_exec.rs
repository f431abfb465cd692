//! Exports of executable graphs: instantiate, launch, update and destroy them, and manage the memory that graphs
//! allocate.

use std::ffi::{c_char, c_uint, c_ulonglong, c_void};

use cuda_driver_sys::{
    CUDA_BATCH_MEM_OP_NODE_PARAMS, CUDA_GRAPH_INSTANTIATE_PARAMS, CUDA_HOST_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS,
    CUDA_KERNEL_NODE_PARAMS_v1, CUDA_MEMCPY3D, CUDA_MEMSET_NODE_PARAMS, CUcontext, CUdevice, CUevent, CUgraph,
    CUgraphExec, CUgraphExecUpdateResult, CUgraphExecUpdateResultInfo, CUgraphInstantiateResult, CUgraphMem_attribute,
    CUgraphNode, CUgraphNodeParams, CUgraphNodeType, CUstream, cuuint64_t,
};

use super::args::{Caller, set};
use super::exports;
use super::node_params::{operation_of, read_params};
use super::node_structures::{KernelParams, check_context, copy, event_node, fill, kernel, kernel_params, operations};
use super::stream::host_node;
use crate::call::lookup::graph_exec;
use crate::call::{graph, stream};
use crate::graph::exec::UPLOAD;
use crate::graph::update::Refusal;
use crate::object::graph_memory;
use crate::object::stream::NullStream;
use crate::operation::Operation;
use crate::operation::kernel::Attributes;
use crate::state::error::{Error, Result};
use crate::state::gate;

/// Instantiates a graph. Writes an empty text to the log buffer and NULL to the error node, even if the call fails.
fn instantiate_with_log(
    c: Caller,
    out: *mut CUgraphExec,
    graph: CUgraph,
    error_node: *mut CUgraphNode,
    log: *mut c_char,
    size: usize,
) -> Result<()> {
    gate::healthy()?;
    let out = c.out(out)?;
    set(c.out_or_null(error_node), std::ptr::null_mut());
    c.set_text(log, size, b"");
    out.set(graph::instantiate(graph as usize, 0)? as CUgraphExec);
    Ok(())
}

fn instantiate_with_params(
    c: Caller,
    out: *mut CUgraphExec,
    graph: CUgraph,
    params: *mut CUDA_GRAPH_INSTANTIATE_PARAMS,
    mode: NullStream,
) -> Result<()> {
    gate::healthy()?;
    let (out, mut asked) = (c.out(out)?, c.read(params.cast_const())?);
    let instantiated = graph::instantiate(graph as usize, asked.flags);
    let made = instantiated.and_then(|made| {
        if asked.flags & UPLOAD == 0 {
            return Ok(made);
        }
        // Uploading has no effect here, but the stream must be valid.
        stream::for_work(asked.hUploadStream as usize, mode)
            .map(|_| made)
            .inspect_err(|_| graph::discard_exec(made))
    });
    let (result, node) = match (instantiated, made) {
        (_, Ok(_)) => (CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_SUCCESS, 0),
        (Ok(_), Err(_)) => (CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_ERROR, 0),
        (Err(_), _) => graph::why_refused(graph as usize),
    };
    asked.hErrNode_out = node as CUgraphNode;
    asked.result_out = result;
    c.out(params)?.set(asked);
    out.set(made? as CUgraphExec);
    Ok(())
}

/// Changes the operation of a node of an executable graph to one of the same type.
pub(super) fn change(exec: CUgraphExec, node: CUgraphNode, make: impl FnOnce() -> Result<Operation>) -> Result<()> {
    graph_exec(exec as usize)?.set_operation(node as usize, make()?)
}

/// Changes the kernel of a node, and keeps the attributes that the node has in the executable graph.
fn change_kernel(c: Caller, graph: CUgraphExec, node: CUgraphNode, params: &KernelParams) -> Result<()> {
    let attributes = attributes_in(graph, node)?;
    change(graph, node, || kernel(c, params, attributes))
}

fn attributes_in(graph: CUgraphExec, node: CUgraphNode) -> Result<Attributes> {
    graph_exec(graph as usize)?.with_step(node as usize, |step| match &step.operation {
        Operation::Kernel(kernel) => Ok(kernel.attributes.clone()),
        _ => Err(Error::CUDA_ERROR_INVALID_VALUE),
    })
}

/// Returns the result structure of an update.
fn update_info(refused: Option<Refusal>) -> CUgraphExecUpdateResultInfo {
    let success = CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_SUCCESS;
    CUgraphExecUpdateResultInfo {
        result: refused.map_or(success, |r| r.difference),
        errorNode: refused.map_or(0, |r| r.node) as CUgraphNode,
        errorFromNode: refused.map_or(0, |r| r.from) as CUgraphNode,
    }
}

exports! {
    fn cuGraphInstantiate = cuGraphInstantiate_v2 [c] (
        out: *mut CUgraphExec,
        graph: CUgraph,
        error_node: *mut CUgraphNode,
        log: *mut c_char,
        size: usize,
    ) {
        instantiate_with_log(c, out, graph, error_node, log, size)
    }

    healthy fn cuGraphInstantiateWithFlags [c] (
        out: *mut CUgraphExec,
        graph: CUgraph,
        flags: c_ulonglong,
    ) {
        let out = c.out(out)?;
        // Driver 580 returns `CUDA_ERROR_INVALID_VALUE` for this flag, because the call has no stream to upload on.
        if flags & UPLOAD != 0 {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        out.set(graph::instantiate(graph as usize, flags)? as CUgraphExec);
        Ok(())
    }

    fn cuGraphInstantiateWithParams | cuGraphInstantiateWithParams_ptsz [c, mode] (
        out: *mut CUgraphExec,
        graph: CUgraph,
        params: *mut CUDA_GRAPH_INSTANTIATE_PARAMS,
    ) {
        instantiate_with_params(c, out, graph, params, mode)
    }

    fn cuGraphLaunch | cuGraphLaunch_ptsz [_c, mode] (graph: CUgraphExec, hstream: CUstream) {
        let graph = graph_exec(graph as usize)?;
        // Driver 580 does not capture this call.
        graph.launch(&stream::for_work(hstream as usize, mode)?)
    }

    fn cuGraphUpload | cuGraphUpload_ptsz [_c, mode] (graph: CUgraphExec, hstream: CUstream) {
        graph_exec(graph as usize)?;
        stream::for_work(hstream as usize, mode).map(drop)
    }

    fn cuGraphExecDestroy [_c] (graph: CUgraphExec) {
        graph::destroy_exec(graph as usize)
    }

    fn cuGraphExecGetFlags [c] (graph: CUgraphExec, out: *mut cuuint64_t) {
        let graph = graph_exec(graph as usize)?;
        c.out(out)?.set(graph.flags);
        Ok(())
    }

    fn cuGraphExecGetId [c] (graph: CUgraphExec, out: *mut c_uint) {
        let graph = graph_exec(graph as usize)?;
        c.out(out)?.set(graph.id);
        Ok(())
    }

    fn cuGraphExecKernelNodeSetParams [c] (
        graph: CUgraphExec,
        node: CUgraphNode,
        params: *const CUDA_KERNEL_NODE_PARAMS_v1,
    ) {
        let p = c.read(params)?;
        change_kernel(
            c,
            graph,
            node,
            &kernel_params!(p, std::ptr::null_mut(), std::ptr::null_mut()),
        )
    }

    fn cuGraphExecKernelNodeSetParams_v2 [c] (
        graph: CUgraphExec,
        node: CUgraphNode,
        params: *const CUDA_KERNEL_NODE_PARAMS,
    ) {
        let p = c.read(params)?;
        change_kernel(c, graph, node, &kernel_params!(p, p.kern, p.ctx))
    }

    fn cuGraphExecMemcpyNodeSetParams [c] (
        graph: CUgraphExec,
        node: CUgraphNode,
        params: *const CUDA_MEMCPY3D,
        ctx: CUcontext,
    ) {
        change(graph, node, || {
            check_context(ctx)?;
            copy(c, params)
        })
    }

    fn cuGraphExecMemsetNodeSetParams [c] (
        graph: CUgraphExec,
        node: CUgraphNode,
        params: *const CUDA_MEMSET_NODE_PARAMS,
        ctx: CUcontext,
    ) {
        change(graph, node, || {
            check_context(ctx)?;
            fill(&c.read(params)?)
        })
    }

    fn cuGraphExecHostNodeSetParams [c] (
        graph: CUgraphExec,
        node: CUgraphNode,
        params: *const CUDA_HOST_NODE_PARAMS,
    ) {
        change(graph, node, || {
            let params = c.read(params)?;
            host_node(params.fn_, params.userData, 0).map(Operation::Host)
        })
    }

    fn cuGraphExecBatchMemOpNodeSetParams [c] (
        graph: CUgraphExec,
        node: CUgraphNode,
        params: *const CUDA_BATCH_MEM_OP_NODE_PARAMS,
    ) {
        change(graph, node, || operations(c, params))
    }

    fn cuGraphExecEventRecordNodeSetEvent [_c] (
        graph: CUgraphExec,
        node: CUgraphNode,
        event: CUevent,
    ) {
        change(graph, node, || event_node(event).map(Operation::Record))
    }

    fn cuGraphExecEventWaitNodeSetEvent [_c] (
        graph: CUgraphExec,
        node: CUgraphNode,
        event: CUevent,
    ) {
        change(graph, node, || event_node(event).map(Operation::Wait))
    }

    fn cuGraphExecChildGraphNodeSetParams [_c] (
        graph: CUgraphExec,
        node: CUgraphNode,
        child: CUgraph,
    ) {
        graph::set_child(graph as usize, node as usize, child as usize)
    }

    fn cuGraphExecNodeSetParams [c] (
        graph: CUgraphExec,
        node: CUgraphNode,
        params: *mut CUgraphNodeParams,
    ) {
        let params = read_params(c, params.cast_const())?;
        if params.type_ == CUgraphNodeType::CU_GRAPH_NODE_TYPE_GRAPH {
            // SAFETY: the type selects this member; a pointer is valid for any bits.
            let child = unsafe { params.anonymous1.graph.graph };
            return graph::set_child(graph as usize, node as usize, child as usize);
        }
        let kind = graph_exec(graph as usize)?
            .with_step(node as usize, |step| Ok(step.operation.kind()))?;
        if params.type_ != kind {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        let attributes = attributes_in(graph, node).unwrap_or_default();
        change(graph, node, || operation_of(c, &params, attributes))
    }

    fn cuGraphExecUpdate [c] (
        graph: CUgraphExec,
        with: CUgraph,
        error_node: *mut CUgraphNode,
        result: *mut CUgraphExecUpdateResult,
    ) {
        let refused = graph::update(graph as usize, with as usize)?.err();
        let info = update_info(refused);
        set(c.out_or_null(error_node), info.errorNode);
        set(c.out_or_null(result), info.result);
        refused.map_or(Ok(()), |_| Err(Error::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE))
    }

    fn cuGraphExecUpdate_v2 [c] (
        graph: CUgraphExec,
        with: CUgraph,
        info: *mut CUgraphExecUpdateResultInfo,
    ) {
        let refused = graph::update(graph as usize, with as usize)?.err();
        set(c.out_or_null(info), update_info(refused));
        refused.map_or(Ok(()), |_| Err(Error::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE))
    }

    fn cuGraphNodeSetEnabled [_c] (graph: CUgraphExec, node: CUgraphNode, enabled: c_uint) {
        graph_exec(graph as usize)?.with_step(node as usize, |step| {
            step.check_switch()?;
            step.enabled = enabled != 0;
            Ok(())
        })
    }

    fn cuGraphNodeGetEnabled [c] (graph: CUgraphExec, node: CUgraphNode, out: *mut c_uint) {
        let graph = graph_exec(graph as usize)?;
        let out = c.out(out)?;
        let enabled = graph.with_step(node as usize, |step| {
            step.check_switch()?;
            Ok(step.enabled)
        })?;
        out.set(enabled.into());
        Ok(())
    }

    healthy fn cuDeviceGraphMemTrim [_c] (device: CUdevice) {
        graph_memory::trim(device)
    }

    healthy fn cuDeviceGetGraphMemAttribute [c] (
        device: CUdevice,
        attribute: CUgraphMem_attribute,
        value: *mut c_void,
    ) {
        let bytes = graph_memory::attribute(device, attribute)?;
        c.out(value.cast::<cuuint64_t>())?.set(bytes);
        Ok(())
    }

    healthy fn cuDeviceSetGraphMemAttribute [c] (
        device: CUdevice,
        attribute: CUgraphMem_attribute,
        value: *mut c_void,
    ) {
        let value = c.read(value.cast_const().cast::<cuuint64_t>())?;
        graph_memory::reset_attribute(device, attribute, value)
    }
}
