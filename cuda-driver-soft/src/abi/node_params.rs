//! `CUgraphNodeParams`: the operation of a node of any type, in one structure.

use cuda_driver_sys::{
    CUDA_CHILD_GRAPH_NODE_PARAMS, CUDA_CONDITIONAL_NODE_PARAMS, CUDA_EVENT_WAIT_NODE_PARAMS,
    CUDA_KERNEL_NODE_PARAMS_v3, CUDA_MEM_FREE_NODE_PARAMS, CUDA_MEMCPY_NODE_PARAMS, CUDA_MEMSET_NODE_PARAMS, CUcontext,
    CUevent, CUgraph, CUgraphNodeParams, CUgraphNodeType,
};

use super::args::Caller;
use super::memory_operation::batch;
use super::node_structures::{
    KernelParams, batch_params, check_context, copy, copy_params, event_node, fill, fill_params, free, host_params,
    kernel, kernel_node_params, kernel_params, semaphores,
};
use super::pool::{alloc_node, alloc_params};
use super::stream::host_node;
use crate::operation::kernel::Attributes;
use crate::operation::memory_operation::Batch;
use crate::operation::{Operation, SemaphoreUse};
use crate::state::error::{Error, Result};

/// Reads the structure. Returns `CUDA_ERROR_INVALID_VALUE` if reserved fields outside of its members are not 0.
pub(super) fn read_params(c: Caller, params: *const CUgraphNodeParams) -> Result<CUgraphNodeParams> {
    let params = c.read(params)?;
    if params.reserved0 != [0; 3] || params.reserved2 != 0 {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    Ok(params)
}

/// Makes the operation that the structure describes. Returns `CUDA_ERROR_NOT_SUPPORTED` for child graphs and
/// conditional nodes, which have graphs of their own: callers that support them handle them without this function.
pub(super) fn operation_of(c: Caller, params: &CUgraphNodeParams, attributes: Attributes) -> Result<Operation> {
    use CUgraphNodeType as Type;
    let of = &params.anonymous1;
    match params.type_ {
        Type::CU_GRAPH_NODE_TYPE_KERNEL => {
            // SAFETY: the type selects this member; numbers and pointers are valid for any bits.
            let p = unsafe { of.kernel };
            kernel(c, &kernel_params!(p, p.kern, p.ctx), attributes)
        }
        Type::CU_GRAPH_NODE_TYPE_MEMCPY => {
            // SAFETY: as above.
            let p = unsafe { of.memcpy };
            check_context(p.copyCtx)?;
            copy(c, &raw const p.copyParams)
        }
        Type::CU_GRAPH_NODE_TYPE_MEMSET => {
            // SAFETY: as above.
            let p = unsafe { of.memset };
            check_context(p.ctx)?;
            fill(&CUDA_MEMSET_NODE_PARAMS {
                dst: p.dst,
                pitch: p.pitch,
                value: p.value,
                elementSize: p.elementSize,
                width: p.width,
                height: p.height,
            })
        }
        Type::CU_GRAPH_NODE_TYPE_HOST => {
            // SAFETY: as above; the function is an optional pointer, and the caller promises that it is NULL or valid.
            let p = unsafe { of.host };
            host_node(p.fn_, p.userData, p.syncMode).map(Operation::Host)
        }
        Type::CU_GRAPH_NODE_TYPE_EMPTY => Ok(Operation::Empty),
        Type::CU_GRAPH_NODE_TYPE_WAIT_EVENT => {
            // SAFETY: as above.
            event_node(unsafe { of.eventWait.event }).map(Operation::Wait)
        }
        Type::CU_GRAPH_NODE_TYPE_EVENT_RECORD => {
            // SAFETY: as above.
            event_node(unsafe { of.eventRecord.event }).map(Operation::Record)
        }
        Type::CU_GRAPH_NODE_TYPE_MEM_ALLOC => {
            // SAFETY: as above.
            let p = unsafe { of.alloc };
            alloc_node(c, &p.poolProps, p.accessDescs, p.accessDescCount, p.bytesize).map(Operation::Alloc)
        }
        Type::CU_GRAPH_NODE_TYPE_BATCH_MEM_OP => {
            // SAFETY: as above.
            let p = unsafe { of.memOp };
            check_context(p.ctx)?;
            let all = batch(c, p.count, p.paramArray.cast_const(), p.flags)?;
            Ok(Operation::Operations(Batch::new(all)))
        }
        Type::CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL => {
            // SAFETY: as above.
            let p = unsafe { of.extSemSignal };
            semaphores(c, SemaphoreUse::Signal, p.extSemArray, p.numExtSems)
        }
        Type::CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT => {
            // SAFETY: as above.
            let p = unsafe { of.extSemWait };
            semaphores(c, SemaphoreUse::Wait, p.extSemArray, p.numExtSems)
        }
        // SAFETY: as above.
        Type::CU_GRAPH_NODE_TYPE_MEM_FREE => free(unsafe { of.free.dptr }),
        known if known.name().is_some() => {
            host::log!("this call does not support nodes of type {known:?}");
            Err(Error::CUDA_ERROR_NOT_SUPPORTED)
        }
        _ => Err(Error::CUDA_ERROR_INVALID_VALUE),
    }
}

/// Writes the parameters of a node with this operation, for `cuGraphNodeGetParams`.
pub(super) fn write_params(c: Caller, operation: &Operation, out: *mut CUgraphNodeParams) -> Result<()> {
    let out = c.out(out)?;
    let mut params = CUgraphNodeParams {
        type_: operation.kind(),
        ..CUgraphNodeParams::default()
    };
    let of = &mut params.anonymous1;
    match operation {
        Operation::Kernel(kernel) => {
            let p = kernel_node_params(kernel);
            of.kernel = CUDA_KERNEL_NODE_PARAMS_v3 {
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
                kern: p.kern,
                ctx: p.ctx,
            };
        }
        Operation::Copy(copy) => {
            of.memcpy = CUDA_MEMCPY_NODE_PARAMS {
                copyParams: copy_params(copy),
                ..CUDA_MEMCPY_NODE_PARAMS::default()
            };
        }
        Operation::Fill(fill) => {
            let p = fill_params(fill);
            of.memset = cuda_driver_sys::CUDA_MEMSET_NODE_PARAMS_v2 {
                dst: p.dst,
                pitch: p.pitch,
                value: p.value,
                elementSize: p.elementSize,
                width: p.width,
                height: p.height,
                ctx: std::ptr::null_mut::<std::ffi::c_void>() as CUcontext,
            };
        }
        Operation::Host(host) => {
            let p = host_params(host);
            of.host.fn_ = p.fn_;
            of.host.userData = p.userData;
            of.host.syncMode = host.sync_mode;
        }
        Operation::Child(child) => {
            of.graph = CUDA_CHILD_GRAPH_NODE_PARAMS {
                graph: *child as CUgraph,
                ..CUDA_CHILD_GRAPH_NODE_PARAMS::default()
            };
        }
        Operation::Conditional(node) => {
            of.conditional = CUDA_CONDITIONAL_NODE_PARAMS {
                handle: node.handle.value.handle(),
                type_: node.kind,
                size: node.bodies.len() as u32,
                phGraph_out: node.bodies.as_ptr().cast_mut().cast::<CUgraph>(),
                ctx: node.handle.context as CUcontext,
            };
        }
        // Empty nodes have no parameters, and semaphore nodes have no semaphores in this driver.
        Operation::Empty | Operation::Semaphores(_) => {}
        Operation::Record(event) => of.eventRecord.event = event.handle as CUevent,
        Operation::Wait(event) => {
            of.eventWait = CUDA_EVENT_WAIT_NODE_PARAMS {
                event: event.handle as CUevent,
            };
        }
        Operation::Alloc(alloc) => {
            let p = alloc_params(alloc);
            of.alloc.poolProps = p.poolProps;
            of.alloc.bytesize = p.bytesize;
            of.alloc.dptr = p.dptr;
        }
        Operation::Operations(batch) => {
            let p = batch_params(batch);
            of.memOp.count = p.count;
            of.memOp.paramArray = p.paramArray;
        }
        Operation::Free(memory) => {
            of.free = CUDA_MEM_FREE_NODE_PARAMS { dptr: memory.address };
        }
    }
    out.set(params);
    Ok(())
}
