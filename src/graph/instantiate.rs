//! Instantiation: making executable graphs.

use core::ptr;

use super::error::GraphError;
use super::exec::GraphExec;
use super::owner::Graph;
use crate::sys::{self, CUDA_GRAPH_INSTANTIATE_PARAMS, CUgraphInstantiate_flags};
use crate::{Error, Result, Stream, checked};

impl Graph {
    /// Makes an executable graph ([`cuGraphInstantiateWithParams`](checked::graph_instantiate_with_params)). Later
    /// changes of the graph do not change it.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE`, for example, if the edges form a cycle, the memory of a copy or a fill is
    /// not allocated, a conditional handle belongs to no node, or the body of a conditional node has a node that is not
    /// allowed there. Returns `CUDA_ERROR_NOT_SUPPORTED` if this is the graph of a node
    /// ([`ChildGraph`](super::ChildGraph); instantiate the outer graph), and for a graph that allocates memory or has
    /// conditional nodes while another executable graph of it exists. The error names the node, if the driver does.
    #[inline]
    #[doc(alias = "cuGraphInstantiate")]
    #[doc(alias = "cuGraphInstantiateWithParams")]
    #[track_caller]
    pub fn instantiate(&self) -> Result<GraphExec, GraphError> {
        self.instantiate_with(CUgraphInstantiate_flags(0), None)
    }

    /// Makes an executable graph with flags, and with `CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD` queues its
    /// [upload](GraphExec::upload) in a stream
    /// ([`cuGraphInstantiateWithParams`](checked::graph_instantiate_with_params); on a driver older than CUDA 12.0
    /// [`cuGraphInstantiateWithFlags`](checked::graph_instantiate_with_flags), which names no node). If `upload` is
    /// `None`, that stream is the default stream. Without this flag, `upload` has no effect.
    ///
    /// # Errors
    /// Returns the errors of [`instantiate`](Self::instantiate), and `CUDA_ERROR_INVALID_VALUE` for unknown flags, for
    /// a flag that is newer than the driver, and for `CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH` with
    /// `CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH`. With the latter, a driver may also refuse graphs that cannot be
    /// launched from the device.
    #[inline]
    #[doc(alias = "cuGraphInstantiateWithParams")]
    #[doc(alias = "cuGraphInstantiateWithFlags")]
    #[track_caller]
    pub fn instantiate_with(
        &self,
        flags: CUgraphInstantiate_flags,
        upload: Option<&Stream>,
    ) -> Result<GraphExec, GraphError> {
        let mut params = CUDA_GRAPH_INSTANTIATE_PARAMS {
            flags: u64::from(flags.0),
            hUploadStream: upload.map_or(ptr::null_mut(), Stream::as_raw),
            ..Default::default()
        };
        let plain = |error| GraphError::of_instantiate(error, None, ptr::null_mut(), self);
        let _current = self.enter().map_err(plain)?;
        // SAFETY: the handles are live; functions, events and host functions of the nodes are kept alive by the graph,
        // or by the caller who captured it.
        let made = match unsafe { checked::graph_instantiate_with_params(self.as_raw(), &mut params) } {
            Err(error) if error.is_missing_function() => {
                // SAFETY: as above.
                unsafe { checked::graph_instantiate_with_flags(self.as_raw(), params.flags) }.map_err(plain)
            }
            made => made.map_err(|error: Error| {
                GraphError::of_instantiate(error, Some(params.result_out), params.hErrNode_out, self)
            }),
        };
        Ok(self.exec(made?))
    }

    #[inline]
    fn exec(&self, raw: sys::CUgraphExec) -> GraphExec {
        GraphExec::of(raw, self.context().cloned(), self.kept().copy())
    }
}
