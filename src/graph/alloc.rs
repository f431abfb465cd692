//! Graph nodes that allocate and free memory.

use super::node::{Node, handles};
use super::owner::Graph;
use crate::sys::{self, CUDA_MEM_ALLOC_NODE_PARAMS, CUmemAllocationType, CUmemLocation};
use crate::{Device, DevicePtr, Result, checked};

impl Graph {
    /// Adds a node that allocates memory on a device ([`cuGraphAddMemAllocNode`](checked::graph_add_mem_alloc_node)).
    /// The address is the same in all launches.
    ///
    /// The memory is valid from this node on, until a node that [frees](Self::add_free) it, or until the address is
    /// freed by other means, in stream order or with `cuMemFree`. Without a free node, the memory must be freed by
    /// such means before each launch but the first, or the graph needs the flag
    /// `CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH`.
    ///
    /// ```
    /// # use cuda_driver::{Context, Device, DeviceSliceMut, Graph, Stream};
    /// use cuda_driver::graph::FillParams;
    /// # cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software).unwrap().install().unwrap();
    /// # cuda_driver::init()?;
    /// # let device = Device::first()?;
    /// # let context = Context::create(device)?;
    /// # let stream = Stream::new(&context)?;
    ///
    /// let graph = Graph::new(&context)?;
    /// let (alloc, memory) = graph.add_alloc(&[], device, 4096)?;
    /// // SAFETY: the view is used for its address and its length only.
    /// let view = unsafe { DeviceSliceMut::<u32>::from_raw_parts(memory, 1024, None) };
    /// let fill = graph.add_fill(&[alloc], FillParams::u32(view, 7)?)?;
    /// graph.add_free(&[fill], memory)?;
    /// let exec = graph.instantiate()?;
    /// // SAFETY: only memory of the graph is accessed, between its allocation and its release.
    /// unsafe { exec.launch(&stream) }?;
    /// stream.synchronize()?;
    /// # Ok::<(), cuda_driver::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for 0 bytes, and `CUDA_ERROR_OUT_OF_MEMORY` if there is not enough memory.
    #[inline]
    #[doc(alias = "cuGraphAddMemAllocNode")]
    #[track_caller]
    pub fn add_alloc(&self, after: &[Node<'_>], device: Device, bytes: usize) -> Result<(Node<'_>, DevicePtr)> {
        let mut params = CUDA_MEM_ALLOC_NODE_PARAMS {
            bytesize: bytes,
            ..Default::default()
        };
        params.poolProps.allocType = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
        params.poolProps.location = CUmemLocation::device(device.as_raw());
        // SAFETY: the parameters contain no pointers.
        unsafe { self.add_alloc_with(after, &mut params) }
    }

    /// Adds a memory allocation node with all parameters, for instance with access for other devices
    /// ([`cuGraphAddMemAllocNode`](checked::graph_add_mem_alloc_node)).
    ///
    /// # Safety
    /// `accessDescs` must point to `accessDescCount` descriptors.
    ///
    /// # Errors
    /// Same as [`add_alloc`](Self::add_alloc).
    #[inline]
    #[doc(alias = "cuGraphAddMemAllocNode")]
    #[track_caller]
    pub unsafe fn add_alloc_with(
        &self,
        after: &[Node<'_>],
        params: &mut CUDA_MEM_ALLOC_NODE_PARAMS,
    ) -> Result<(Node<'_>, DevicePtr)> {
        let _current = self.enter()?;
        // SAFETY: the handles are live; the rest is upheld by the caller.
        let raw = unsafe { checked::graph_add_mem_alloc_node(self.as_raw(), &handles(after), params) }?;
        Ok((Node::of(raw, self), DevicePtr::from_raw(params.dptr)))
    }

    /// Adds a node that frees memory that a node of this or another graph allocates
    /// ([`cuGraphAddMemFreeNode`](checked::graph_add_mem_free_node)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for an address that no node allocates or that another node frees.
    #[inline]
    #[doc(alias = "cuGraphAddMemFreeNode")]
    #[track_caller]
    pub fn add_free(&self, after: &[Node<'_>], memory: DevicePtr) -> Result<Node<'_>> {
        let _current = self.enter()?;
        // SAFETY: the handles are live. The driver checks the address, and launches, which free the memory, are
        // `unsafe`.
        let raw = unsafe { checked::graph_add_mem_free_node(self.as_raw(), &handles(after), memory.as_raw()) }?;
        Ok(Node::of(raw, self))
    }
}

impl Node<'_> {
    /// Returns the parameters of an allocation, with its address
    /// ([`cuGraphMemAllocNodeGetParams`](checked::graph_mem_alloc_node_get_params)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for a node of another kind.
    #[inline]
    #[doc(alias = "cuGraphMemAllocNodeGetParams")]
    #[track_caller]
    pub fn alloc_params(&self) -> Result<CUDA_MEM_ALLOC_NODE_PARAMS> {
        // SAFETY: the node is in the graph, which is live.
        unsafe { checked::graph_mem_alloc_node_get_params(self.as_raw()) }
    }

    /// Returns the address that a node frees
    /// ([`cuGraphMemFreeNodeGetParams`](checked::graph_mem_free_node_get_params)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for a node of another kind.
    #[inline]
    #[doc(alias = "cuGraphMemFreeNodeGetParams")]
    #[track_caller]
    pub fn freed_memory(&self) -> Result<DevicePtr> {
        // SAFETY: the node is in the graph, which is live.
        let address: sys::CUdeviceptr = unsafe { checked::graph_mem_free_node_get_params(self.as_raw()) }?;
        Ok(DevicePtr::from_raw(address))
    }
}
