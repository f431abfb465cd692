//! Graph nodes that copy memory.

use core::ffi::c_void;

use super::exec::GraphExec;
use super::node::{Node, handles};
use super::owner::Graph;
use crate::refusal::Refusal;
use crate::sys::{self, CUDA_MEMCPY3D, CUmemorytype, CUresult};
use crate::{DeviceSlice, DeviceSliceMut, Download, Error, Result, Upload, checked};

/// The parameters of a copy node: addresses, not buffers. The memory must stay allocated while the graph runs.
#[derive(Debug, Clone, Copy)]
pub struct CopyParams {
    raw: CUDA_MEMCPY3D,
}

impl CopyParams {
    /// Returns the record of a copy of one row of `bytes` bytes, without source and target.
    #[inline]
    fn row(bytes: usize) -> CUDA_MEMCPY3D {
        CUDA_MEMCPY3D {
            WidthInBytes: bytes,
            Height: 1,
            Depth: 1,
            ..Default::default()
        }
    }

    /// Returns the parameters of a copy of all values of `src` to the start of `dst`.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if `dst` is shorter.
    #[inline]
    #[track_caller]
    pub fn device_to_device<'b, T: 'b>(dst: DeviceSliceMut<'_, T>, src: impl Into<DeviceSlice<'b, T>>) -> Result<Self> {
        let src = src.into();
        if src.len() > dst.len() {
            return Err(Error::refused(
                CUresult::CUDA_ERROR_INVALID_VALUE,
                sys::Function::cuGraphAddMemcpyNode,
                Refusal::Range,
            ));
        }
        Ok(Self {
            raw: CUDA_MEMCPY3D {
                srcMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
                srcDevice: src.ptr().as_raw(),
                dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
                dstDevice: dst.ptr().as_raw(),
                ..Self::row(src.size_bytes())
            },
        })
    }

    /// Returns the parameters of a copy from host memory to all of `dst`. A launch reads as many values from `src` as
    /// `dst` has.
    #[inline]
    #[must_use]
    pub fn host_to_device<T: Upload>(dst: DeviceSliceMut<'_, T>, src: *const T) -> Self {
        Self {
            raw: CUDA_MEMCPY3D {
                srcMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
                srcHost: src.cast::<c_void>(),
                dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
                dstDevice: dst.ptr().as_raw(),
                ..Self::row(dst.size_bytes())
            },
        }
    }

    /// Returns the parameters of a copy of all values of `src` to host memory. A launch writes that many values to
    /// `dst`.
    #[inline]
    #[must_use]
    pub fn device_to_host<'b, T: Download + 'b>(dst: *mut T, src: impl Into<DeviceSlice<'b, T>>) -> Self {
        let src = src.into();
        Self {
            raw: CUDA_MEMCPY3D {
                srcMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
                srcDevice: src.ptr().as_raw(),
                dstMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
                dstHost: dst.cast::<c_void>(),
                ..Self::row(src.size_bytes())
            },
        }
    }

    /// Returns the parameters of any copy.
    ///
    /// # Safety
    /// Array handles must be valid as long as this value, its copies, all graphs with a node of it, and everything made
    /// from these graphs.
    #[inline]
    #[must_use]
    pub const unsafe fn from_raw(raw: CUDA_MEMCPY3D) -> Self {
        Self { raw }
    }

    /// Returns the driver's record.
    #[inline]
    #[must_use]
    pub const fn as_raw(&self) -> &CUDA_MEMCPY3D {
        &self.raw
    }
}

impl Graph {
    /// Adds a node that copies memory ([`cuGraphAddMemcpyNode`](checked::graph_add_memcpy_node)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for an empty copy, device memory that is not allocated, or a dependency of
    /// another graph, and `CUDA_ERROR_INVALID_CONTEXT` if the graph was [captured](crate::Stream::capture) and its
    /// context is not known.
    #[inline]
    #[doc(alias = "cuGraphAddMemcpyNode")]
    #[track_caller]
    pub fn add_copy(&self, after: &[Node<'_>], params: CopyParams) -> Result<Node<'_>> {
        let _current = self.enter()?;
        let context = self.node_context(sys::Function::cuGraphAddMemcpyNode)?;
        // SAFETY: the handles are live. The driver checks device memory; memory is accessed by launches, which are
        // `unsafe`.
        let raw = unsafe { checked::graph_add_memcpy_node(self.as_raw(), &handles(after), &params.raw, context) }?;
        Ok(Node::of(raw, self))
    }
}

impl Node<'_> {
    /// Returns the parameters of a copy node ([`cuGraphMemcpyNodeGetParams`](checked::graph_memcpy_node_get_params)).
    /// Nothing keeps arrays in them: [`CopyParams::from_raw`], which makes a copy of the record, is `unsafe`.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for a node of another kind.
    #[inline]
    #[doc(alias = "cuGraphMemcpyNodeGetParams")]
    #[track_caller]
    pub fn copy_params(&self) -> Result<CUDA_MEMCPY3D> {
        // SAFETY: the node is in the graph, which is live.
        unsafe { checked::graph_memcpy_node_get_params(self.as_raw()) }
    }

    /// Replaces the copy of a node ([`cuGraphMemcpyNodeSetParams`](checked::graph_memcpy_node_set_params)). Executable
    /// graphs do not change.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for an empty copy, device memory that is not allocated, or a node of another
    /// kind, and `CUDA_ERROR_INVALID_CONTEXT` as in [`Graph::add_copy`].
    #[inline]
    #[doc(alias = "cuGraphMemcpyNodeSetParams")]
    #[track_caller]
    pub fn set_copy(&self, params: CopyParams) -> Result<()> {
        let _current = self.graph().enter()?;
        // The driver may put the current context into the node.
        self.graph().node_context(sys::Function::cuGraphMemcpyNodeSetParams)?;
        // SAFETY: as in `Graph::add_copy`.
        unsafe { checked::graph_memcpy_node_set_params(self.as_raw(), &params.raw) }
    }
}

impl GraphExec {
    /// Replaces the copy of a node ([`cuGraphExecMemcpyNodeSetParams`](checked::graph_exec_memcpy_node_set_params)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for a copy between other kinds of memory than before, a copy of several rows,
    /// device memory that is not allocated, and a node of another kind or graph, and `CUDA_ERROR_INVALID_CONTEXT` as in
    /// [`Graph::add_copy`].
    #[inline]
    #[doc(alias = "cuGraphExecMemcpyNodeSetParams")]
    #[track_caller]
    pub fn set_copy(&self, node: Node<'_>, params: CopyParams) -> Result<()> {
        let _current = self.enter()?;
        let context = self.node_context(sys::Function::cuGraphExecMemcpyNodeSetParams)?;
        // SAFETY: as in `Graph::add_copy`.
        unsafe { checked::graph_exec_memcpy_node_set_params(self.as_raw(), node.as_raw(), &params.raw, context) }
    }
}
