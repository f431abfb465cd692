//! Graph nodes that fill memory.

use super::exec::GraphExec;
use super::node::{Node, handles};
use super::owner::Graph;
use crate::refusal::Refusal;
use crate::sys::{self, CUDA_MEMSET_NODE_PARAMS, CUresult};
use crate::{DeviceSliceMut, Error, Result, checked};

/// The parameters of a fill node: an address, not a buffer. The memory must stay allocated while the graph runs.
#[derive(Debug, Clone, Copy)]
pub struct FillParams {
    raw: CUDA_MEMSET_NODE_PARAMS,
}

impl FillParams {
    #[inline]
    #[track_caller]
    fn new<T>(dst: &DeviceSliceMut<'_, T>, value: u32, size: u32) -> Result<Self> {
        if dst.size_bytes() % size as usize != 0 {
            return Err(Error::refused(
                CUresult::CUDA_ERROR_INVALID_VALUE,
                sys::Function::cuGraphAddMemsetNode,
                Refusal::Unit,
            ));
        }
        Ok(Self::of_units(dst, value, size))
    }

    #[inline]
    const fn of_units<T>(dst: &DeviceSliceMut<'_, T>, value: u32, size: u32) -> Self {
        Self {
            raw: CUDA_MEMSET_NODE_PARAMS {
                dst: dst.ptr().as_raw(),
                pitch: 0,
                value,
                elementSize: size,
                width: dst.size_bytes() / size as usize,
                height: 1,
            },
        }
    }

    /// Returns the parameters of a fill that sets every byte.
    #[inline]
    #[must_use]
    pub fn u8<T>(dst: DeviceSliceMut<'_, T>, value: u8) -> Self {
        Self::of_units(&dst, value.into(), 1)
    }

    /// Returns the parameters of a fill that sets every 16-bit value.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the size is not a multiple of 2 bytes.
    #[inline]
    #[track_caller]
    pub fn u16<T>(dst: DeviceSliceMut<'_, T>, value: u16) -> Result<Self> {
        Self::new(&dst, value.into(), 2)
    }

    /// Returns the parameters of a fill that sets every 32-bit value.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the size is not a multiple of 4 bytes.
    #[inline]
    #[track_caller]
    pub fn u32<T>(dst: DeviceSliceMut<'_, T>, value: u32) -> Result<Self> {
        Self::new(&dst, value, 4)
    }

    /// Returns the parameters of any fill, for instance of several rows.
    #[inline]
    #[must_use]
    pub const fn from_raw(raw: CUDA_MEMSET_NODE_PARAMS) -> Self {
        Self { raw }
    }

    /// Returns the driver's record.
    #[inline]
    #[must_use]
    pub const fn as_raw(&self) -> &CUDA_MEMSET_NODE_PARAMS {
        &self.raw
    }
}

impl Graph {
    /// Adds a node that fills memory ([`cuGraphAddMemsetNode`](checked::graph_add_memset_node)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for an empty fill, memory that is not allocated or not aligned to the value,
    /// or a dependency of another graph, and `CUDA_ERROR_INVALID_CONTEXT` if the graph was
    /// [captured](crate::Stream::capture) and its context is not known.
    #[inline]
    #[doc(alias = "cuGraphAddMemsetNode")]
    #[track_caller]
    pub fn add_fill(&self, after: &[Node<'_>], params: FillParams) -> Result<Node<'_>> {
        let _current = self.enter()?;
        let context = self.node_context(sys::Function::cuGraphAddMemsetNode)?;
        // SAFETY: the handles are live. The driver checks the address; memory is accessed by launches, which are
        // `unsafe`.
        let raw = unsafe { checked::graph_add_memset_node(self.as_raw(), &handles(after), &params.raw, context) }?;
        Ok(Node::of(raw, self))
    }
}

impl Node<'_> {
    /// Returns the parameters of a fill node ([`cuGraphMemsetNodeGetParams`](checked::graph_memset_node_get_params)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for a node of another kind.
    #[inline]
    #[doc(alias = "cuGraphMemsetNodeGetParams")]
    #[track_caller]
    pub fn fill_params(&self) -> Result<FillParams> {
        // SAFETY: the node is in the graph, which is live.
        let raw = unsafe { checked::graph_memset_node_get_params(self.as_raw()) }?;
        Ok(FillParams { raw })
    }

    /// Replaces the fill of a node ([`cuGraphMemsetNodeSetParams`](checked::graph_memset_node_set_params)). Executable
    /// graphs do not change.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for an empty fill, memory that is not allocated or not aligned to the value,
    /// or a node of another kind, and `CUDA_ERROR_INVALID_CONTEXT` as in [`Graph::add_fill`].
    #[inline]
    #[doc(alias = "cuGraphMemsetNodeSetParams")]
    #[track_caller]
    pub fn set_fill(&self, params: FillParams) -> Result<()> {
        let _current = self.graph().enter()?;
        // The driver may put the current context into the node.
        self.graph().node_context(sys::Function::cuGraphMemsetNodeSetParams)?;
        // SAFETY: as in `Graph::add_fill`.
        unsafe { checked::graph_memset_node_set_params(self.as_raw(), &params.raw) }
    }
}

impl GraphExec {
    /// Replaces the fill of a node ([`cuGraphExecMemsetNodeSetParams`](checked::graph_exec_memset_node_set_params)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for a fill of several rows, memory that is not allocated or not aligned to
    /// the value, and a node of another kind or graph, and `CUDA_ERROR_INVALID_CONTEXT` as in [`Graph::add_fill`].
    #[inline]
    #[doc(alias = "cuGraphExecMemsetNodeSetParams")]
    #[track_caller]
    pub fn set_fill(&self, node: Node<'_>, params: FillParams) -> Result<()> {
        let _current = self.enter()?;
        let context = self.node_context(sys::Function::cuGraphExecMemsetNodeSetParams)?;
        // SAFETY: as in `Graph::add_fill`.
        unsafe { checked::graph_exec_memset_node_set_params(self.as_raw(), node.as_raw(), &params.raw, context) }
    }
}
