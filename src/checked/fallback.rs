//! Fallbacks for drivers that lack the export that a function's plain name means: they call the older export, and
//! convert arguments and results between the two.

use core::ffi::CStr;
use core::ptr;

use super::generated::{GetProcAddress, legacy};
use crate::refusal::Refusal;
use crate::sys::{
    self, CUDA_KERNEL_NODE_PARAMS, CUDA_KERNEL_NODE_PARAMS_v1, CUdriverProcAddressQueryResult, CUresult, Function,
};
use crate::{Error, Result};

/// Calls `cuGetProcAddress` of CUDA 11.3, which returns no status, and derives the status from the driver's exports.
#[cold]
#[inline]
#[track_caller]
pub(super) unsafe fn get_proc_address(symbol: &CStr, cuda_version: i32, flags: u64) -> Result<GetProcAddress> {
    // SAFETY: upheld by the caller.
    let pfn = match unsafe { legacy::get_proc_address(symbol, cuda_version, flags) } {
        Ok(pfn) => pfn,
        // Returned for an unknown name. The newer function returns null and a status instead.
        Err(error) if error.code() == CUresult::CUDA_ERROR_NOT_FOUND => ptr::null_mut(),
        Err(error) => return Err(error),
    };
    let symbol_status = if pfn.is_null() {
        status(symbol)
    } else {
        CUdriverProcAddressQueryResult::CU_GET_PROC_ADDRESS_SUCCESS
    };
    Ok(GetProcAddress { pfn, symbol_status })
}

/// Returns the reason why a function was not found: the driver has no such name, or the requested version is too old
/// for it.
#[inline]
fn status(symbol: &CStr) -> CUdriverProcAddressQueryResult {
    let known = Function::ALL
        .iter()
        .filter(|function| function.base().as_bytes() == symbol.to_bytes())
        .any(|function| sys::DEFAULT.supports(*function));
    if known {
        CUdriverProcAddressQueryResult::CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
    } else {
        CUdriverProcAddressQueryResult::CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND
    }
}

/// Converts the parameters of a kernel node to the record of CUDA 10.0, which has neither `kern` nor `ctx`.
#[inline]
#[track_caller]
fn older(params: &CUDA_KERNEL_NODE_PARAMS, function: Function) -> Result<CUDA_KERNEL_NODE_PARAMS_v1> {
    if !params.kern.is_null() || !params.ctx.is_null() {
        return Err(Error::refused(
            CUresult::CUDA_ERROR_NOT_SUPPORTED,
            function,
            Refusal::KernelNode,
        ));
    }
    Ok(CUDA_KERNEL_NODE_PARAMS_v1 {
        func: params.func,
        gridDimX: params.gridDimX,
        gridDimY: params.gridDimY,
        gridDimZ: params.gridDimZ,
        blockDimX: params.blockDimX,
        blockDimY: params.blockDimY,
        blockDimZ: params.blockDimZ,
        sharedMemBytes: params.sharedMemBytes,
        kernelParams: params.kernelParams,
        extra: params.extra,
    })
}

#[cold]
#[inline]
#[track_caller]
pub(super) unsafe fn graph_add_kernel_node(
    graph: sys::CUgraph,
    dependencies: &[sys::CUgraphNode],
    node_params: &CUDA_KERNEL_NODE_PARAMS,
) -> Result<sys::CUgraphNode> {
    let params = older(node_params, sys::legacy::function::cuGraphAddKernelNode)?;
    // SAFETY: upheld by the caller.
    unsafe { legacy::graph_add_kernel_node(graph, dependencies, &params) }
}

#[cold]
#[inline]
#[track_caller]
pub(super) unsafe fn graph_kernel_node_get_params(node: sys::CUgraphNode) -> Result<CUDA_KERNEL_NODE_PARAMS> {
    // SAFETY: upheld by the caller.
    let params = unsafe { legacy::graph_kernel_node_get_params(node) }?;
    Ok(CUDA_KERNEL_NODE_PARAMS {
        func: params.func,
        gridDimX: params.gridDimX,
        gridDimY: params.gridDimY,
        gridDimZ: params.gridDimZ,
        blockDimX: params.blockDimX,
        blockDimY: params.blockDimY,
        blockDimZ: params.blockDimZ,
        sharedMemBytes: params.sharedMemBytes,
        kernelParams: params.kernelParams,
        extra: params.extra,
        kern: ptr::null_mut(),
        ctx: ptr::null_mut(),
    })
}

#[cold]
#[inline]
#[track_caller]
pub(super) unsafe fn graph_kernel_node_set_params(
    node: sys::CUgraphNode,
    node_params: &CUDA_KERNEL_NODE_PARAMS,
) -> Result<()> {
    let params = older(node_params, sys::legacy::function::cuGraphKernelNodeSetParams)?;
    // SAFETY: upheld by the caller.
    unsafe { legacy::graph_kernel_node_set_params(node, &params) }
}

#[cold]
#[inline]
#[track_caller]
pub(super) unsafe fn graph_exec_kernel_node_set_params(
    graph_exec: sys::CUgraphExec,
    node: sys::CUgraphNode,
    node_params: &CUDA_KERNEL_NODE_PARAMS,
) -> Result<()> {
    let params = older(node_params, sys::legacy::function::cuGraphExecKernelNodeSetParams)?;
    // SAFETY: upheld by the caller.
    unsafe { legacy::graph_exec_kernel_node_set_params(graph_exec, node, &params) }
}

/// Calls the older `cuGraphExecUpdate`, which does not return `errorFromNode`.
#[cold]
#[inline]
#[track_caller]
pub(super) unsafe fn graph_exec_update(
    graph_exec: sys::CUgraphExec,
    graph: sys::CUgraph,
    result_info: &mut sys::CUgraphExecUpdateResultInfo,
) -> Result<()> {
    let mut node = ptr::null_mut();
    // Stays if the driver fails without a result.
    let mut result = sys::CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR;
    // SAFETY: upheld by the caller.
    let outcome = unsafe { legacy::graph_exec_update(graph_exec, graph, &mut node, &mut result) };
    *result_info = sys::CUgraphExecUpdateResultInfo {
        result,
        errorNode: node,
        errorFromNode: ptr::null_mut(),
    };
    outcome
}
