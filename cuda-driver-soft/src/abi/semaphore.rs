//! Exports of external semaphores, and of the graph nodes that signal them and wait for them.
//!
//! External semaphores come from other APIs, none of which works with this driver. So each import fails: for a file
//! descriptor, with the error that driver 580 returns for one that it does not know. Nodes can only be added with an
//! empty list of semaphores, and do nothing. The parameters of signals and waits are therefore never read. This
//! includes the keys of keyed mutexes, a type of handle that exists only on Windows.

use std::ffi::c_uint;

use cuda_driver_sys::{
    CUDA_EXT_SEM_SIGNAL_NODE_PARAMS, CUDA_EXT_SEM_WAIT_NODE_PARAMS, CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC,
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS, CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS, CUexternalSemaphore,
    CUexternalSemaphoreHandleType as Type, CUgraph, CUgraphExec, CUgraphNode, CUstream,
};

use super::args::Caller;
use super::graph_nodes::{add, change, operation_if};
use super::node_structures::{check_semaphores, semaphores};
use super::{exports, graph_exec};
use crate::call::lookup::current_context;
use crate::call::stream;
use crate::operation::{Operation, SemaphoreUse};
use crate::state::error::{Error, Result};

/// Returns the error of a call that signals semaphores or waits for them: `CUDA_ERROR_INVALID_VALUE` for an empty list
/// (as on driver 580) or if a pointer is NULL, else `CUDA_ERROR_INVALID_HANDLE`.
fn check_call(c: Caller, semaphores: *const CUexternalSemaphore, has_params: bool, count: c_uint) -> Result<()> {
    if count == 0 || !has_params {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    check_semaphores(c, semaphores, count)
}

/// Returns `CUDA_ERROR_INVALID_VALUE` unless the node uses semaphores in this way.
fn check_use(node: CUgraphNode, kind: SemaphoreUse) -> Result<()> {
    operation_if(node, |operation| match operation {
        Operation::Semaphores(known) if *known == kind => Some(()),
        _ => None,
    })
}

exports! {
    healthy fn cuImportExternalSemaphore [c] (
        out: *mut CUexternalSemaphore,
        desc: *const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC,
    ) {
        current_context()?;
        c.out(out)?;
        let desc = c.read(desc)?;
        if desc.flags != 0 {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        // SAFETY: the type selects this member where it is used, and it is valid for any bits.
        let descriptor = unsafe { desc.handle.fd };
        match desc.type_ {
            Type::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD if cfg!(target_os = "linux") => {
                host::log!("file descriptor {descriptor} is not a semaphore of the driver");
                Err(Error::CUDA_ERROR_UNKNOWN)
            }
            Type::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD if cfg!(target_os = "linux") => {
                host::log!("file descriptor {descriptor} is not a timeline semaphore of the driver");
                // Driver 580 checks the number of the descriptor for this type only.
                Err(if descriptor < 0 { Error::CUDA_ERROR_INVALID_VALUE } else { Error::CUDA_ERROR_UNKNOWN })
            }
            Type(1..=10) => Err(Error::CUDA_ERROR_NOT_SUPPORTED),
            _ => Err(Error::CUDA_ERROR_INVALID_VALUE),
        }
    }

    healthy fn cuDestroyExternalSemaphore [c] (semaphore: CUexternalSemaphore) {
        if semaphore.is_null() {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        check_semaphores(c, &raw const semaphore, 1)
    }

    fn cuSignalExternalSemaphoresAsync | cuSignalExternalSemaphoresAsync_ptsz [c, mode] (
        semaphores: *const CUexternalSemaphore,
        params: *const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS,
        count: c_uint,
        hstream: CUstream,
    ) {
        stream::for_capture(hstream as usize, mode)?;
        check_call(c, semaphores, !params.is_null(), count)
    }

    fn cuWaitExternalSemaphoresAsync | cuWaitExternalSemaphoresAsync_ptsz [c, mode] (
        semaphores: *const CUexternalSemaphore,
        params: *const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS,
        count: c_uint,
        hstream: CUstream,
    ) {
        stream::for_capture(hstream as usize, mode)?;
        check_call(c, semaphores, !params.is_null(), count)
    }

    fn cuGraphAddExternalSemaphoresSignalNode [c] (
        out: *mut CUgraphNode,
        graph: CUgraph,
        nodes: *const CUgraphNode,
        count: usize,
        params: *const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS,
    ) {
        add(c, out, graph, nodes, count, || {
            let p = c.read(params)?;
            semaphores(c, SemaphoreUse::Signal, p.extSemArray, p.numExtSems)
        })
    }

    fn cuGraphAddExternalSemaphoresWaitNode [c] (
        out: *mut CUgraphNode,
        graph: CUgraph,
        nodes: *const CUgraphNode,
        count: usize,
        params: *const CUDA_EXT_SEM_WAIT_NODE_PARAMS,
    ) {
        add(c, out, graph, nodes, count, || {
            let p = c.read(params)?;
            semaphores(c, SemaphoreUse::Wait, p.extSemArray, p.numExtSems)
        })
    }

    fn cuGraphExternalSemaphoresSignalNodeGetParams [c] (
        node: CUgraphNode,
        out: *mut CUDA_EXT_SEM_SIGNAL_NODE_PARAMS,
    ) {
        check_use(node, SemaphoreUse::Signal)?;
        c.out(out)?.set(CUDA_EXT_SEM_SIGNAL_NODE_PARAMS::default());
        Ok(())
    }

    fn cuGraphExternalSemaphoresWaitNodeGetParams [c] (
        node: CUgraphNode,
        out: *mut CUDA_EXT_SEM_WAIT_NODE_PARAMS,
    ) {
        check_use(node, SemaphoreUse::Wait)?;
        c.out(out)?.set(CUDA_EXT_SEM_WAIT_NODE_PARAMS::default());
        Ok(())
    }

    fn cuGraphExternalSemaphoresSignalNodeSetParams [c] (
        node: CUgraphNode,
        params: *const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS,
    ) {
        let p = c.read(params)?;
        check_use(node, SemaphoreUse::Signal)?;
        change(node, || semaphores(c, SemaphoreUse::Signal, p.extSemArray, p.numExtSems))
    }

    fn cuGraphExternalSemaphoresWaitNodeSetParams [c] (
        node: CUgraphNode,
        params: *const CUDA_EXT_SEM_WAIT_NODE_PARAMS,
    ) {
        let p = c.read(params)?;
        check_use(node, SemaphoreUse::Wait)?;
        change(node, || semaphores(c, SemaphoreUse::Wait, p.extSemArray, p.numExtSems))
    }

    fn cuGraphExecExternalSemaphoresSignalNodeSetParams [c] (
        graph: CUgraphExec,
        node: CUgraphNode,
        params: *const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS,
    ) {
        let p = c.read(params)?;
        graph_exec::change(graph, node, || semaphores(c, SemaphoreUse::Signal, p.extSemArray, p.numExtSems))
    }

    fn cuGraphExecExternalSemaphoresWaitNodeSetParams [c] (
        graph: CUgraphExec,
        node: CUgraphNode,
        params: *const CUDA_EXT_SEM_WAIT_NODE_PARAMS,
    ) {
        let p = c.read(params)?;
        graph_exec::change(graph, node, || semaphores(c, SemaphoreUse::Wait, p.extSemArray, p.numExtSems))
    }
}
