//! Batches of copies, decompressions and mappings, and copies between addresses of any kind.

use crate::sys::{self, CUmemcpyAttributes, CUmemcpySrcAccessOrder};
use crate::{Context, DevicePtr, Result, Stream, checked};

/// A copy for [`Stream::copy_batch`] or [`Stream::copy_with_attributes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchCopy {
    /// The destination: device memory, or the address of host memory.
    pub to: DevicePtr,
    /// The source: device memory, or the address of host memory.
    pub from: DevicePtr,
    /// The size in bytes, which must not be 0.
    pub bytes: usize,
}

impl Stream {
    /// Queues several copies with one call ([`cuMemcpyBatchAsync_v2`](checked::memcpy_batch_async_v2)). They run in any
    /// order. The parameter `order` sets when the driver may read the sources.
    ///
    /// ```
    /// # use cuda_driver::{Context, Device, DeviceBuffer, Stream, version};
    /// use cuda_driver::batch::BatchCopy;
    /// use cuda_driver::sys::CUmemcpySrcAccessOrder;
    /// # cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software).unwrap().install().unwrap();
    /// # cuda_driver::init()?;
    /// # let context = Context::create(Device::first()?)?;
    ///
    /// let stream = Stream::new(&context)?;
    /// let from = DeviceBuffer::from_slice(&context, &[1u32, 2, 3, 4])?;
    /// let to = DeviceBuffer::<u32>::zeroed(&context, 4)?;
    /// let (first, second) = (to.ptr(), to.ptr().byte_add(8));
    /// let copies = [
    ///     BatchCopy { to: first, from: from.ptr().byte_add(8), bytes: 8 },
    ///     BatchCopy { to: second, from: from.ptr(), bytes: 8 },
    /// ];
    /// # context.synchronize()?;
    /// // SAFETY: both buffers live until the stream is done, and no copy reads memory that the other one writes.
    /// unsafe { stream.copy_batch(&copies, CUmemcpySrcAccessOrder::CU_MEMCPY_SRC_ACCESS_ORDER_STREAM) }?;
    /// stream.synchronize()?;
    /// assert_eq!(to.to_vec()?, [3, 4, 1, 2]);
    /// # Ok::<(), cuda_driver::Error>(())
    /// ```
    ///
    /// # Safety
    /// All ranges must stay allocated until the copies are done, and must not be used by the host, or by work that does
    /// not wait for the copies. No copy may depend on another copy of the batch.
    ///
    /// With `CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL`, sources in host memory may be freed once the call has
    /// returned. With this order and with `CU_MEMCPY_SRC_ACCESS_ORDER_ANY`, earlier work in the stream must not write
    /// to the sources, because the driver may read them before that work is done.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for a copy of 0 bytes, an unknown order, the legacy default stream, or a
    /// borrowed stream without a current context, and a
    /// [missing-function error](crate::Error::is_missing_function) if the driver is older than CUDA 13.0.
    #[inline]
    #[doc(alias = "cuMemcpyBatchAsync_v2")]
    #[track_caller]
    pub unsafe fn copy_batch(&self, copies: &[BatchCopy], order: CUmemcpySrcAccessOrder) -> Result<()> {
        if copies.is_empty() {
            return Ok(());
        }
        let to: Vec<_> = copies.iter().map(|copy| copy.to.as_raw()).collect();
        let from: Vec<_> = copies.iter().map(|copy| copy.from.as_raw()).collect();
        let sizes: Vec<_> = copies.iter().map(|copy| copy.bytes).collect();
        let attributes = CUmemcpyAttributes {
            srcAccessOrder: order,
            ..CUmemcpyAttributes::default()
        };
        let _current = self.context().map(Context::enter).transpose()?;
        // `&[0]`: the attributes apply from copy 0 on, that is, to all copies.
        // SAFETY: the stream is live; the rest is upheld by the caller.
        unsafe { checked::memcpy_batch_async_v2(&to, &from, &sizes, &[attributes], &[0], self.as_raw()) }
    }

    /// Queues several copies of boxes with one call ([`cuMemcpy3DBatchAsync_v2`](checked::memcpy_3d_batch_async_v2)).
    /// They run in any order.
    ///
    /// # Safety
    /// Same as [`copy_batch`](Self::copy_batch). In addition, arrays must be live, and each box must be inside the
    /// memory or array on both sides.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for an invalid operand, the legacy default stream, or a borrowed stream
    /// without a current context, and a [missing-function error](crate::Error::is_missing_function) if the driver is
    /// older than CUDA 13.0.
    #[inline]
    #[doc(alias = "cuMemcpy3DBatchAsync_v2")]
    #[track_caller]
    pub unsafe fn copy_3d_batch(&self, copies: &[sys::CUDA_MEMCPY3D_BATCH_OP]) -> Result<()> {
        if copies.is_empty() {
            return Ok(());
        }
        let _current = self.context().map(Context::enter).transpose()?;
        // SAFETY: the stream is live; the rest is upheld by the caller.
        unsafe { checked::memcpy_3d_batch_async_v2(copies, 0, self.as_raw()) }
    }

    /// Queues a copy with attributes ([`cuMemcpyWithAttributesAsync`](checked::memcpy_with_attributes_async)).
    ///
    /// # Safety
    /// Same as [`copy_batch`](Self::copy_batch).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for a copy of 0 bytes or invalid attributes, and a
    /// [missing-function error](crate::Error::is_missing_function) if the driver is older than CUDA 13.2.
    #[inline]
    #[doc(alias = "cuMemcpyWithAttributesAsync")]
    #[track_caller]
    pub unsafe fn copy_with_attributes(&self, copy: BatchCopy, attributes: &CUmemcpyAttributes) -> Result<()> {
        let (to, from) = (copy.to.as_raw(), copy.from.as_raw());
        // SAFETY: the stream is live; the rest is upheld by the caller.
        unsafe { checked::memcpy_with_attributes_async(to, from, copy.bytes, attributes, self.as_raw()) }
    }

    /// Queues a copy of a box with attributes
    /// ([`cuMemcpy3DWithAttributesAsync`](checked::memcpy_3d_with_attributes_async)).
    ///
    /// # Safety
    /// Same as [`copy_3d_batch`](Self::copy_3d_batch).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for an invalid operand, and a
    /// [missing-function error](crate::Error::is_missing_function) if the driver is older than CUDA 13.2.
    #[inline]
    #[doc(alias = "cuMemcpy3DWithAttributesAsync")]
    #[track_caller]
    pub unsafe fn copy_3d_with_attributes(&self, copy: &sys::CUDA_MEMCPY3D_BATCH_OP) -> Result<()> {
        // SAFETY: the stream is live; the rest is upheld by the caller.
        unsafe { checked::memcpy_3d_with_attributes_async(copy, 0, self.as_raw()) }
    }

    /// Queues a copy between addresses of device or host memory ([`cuMemcpyAsync`](checked::memcpy_async)).
    ///
    /// # Safety
    /// Both ranges must stay allocated until the copy is done, and must not be used by the host, or by work that does
    /// not wait for the copy.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for a device address that is not allocated.
    #[inline]
    #[doc(alias = "cuMemcpyAsync")]
    #[track_caller]
    pub unsafe fn copy_bytes(&self, to: DevicePtr, from: DevicePtr, bytes: usize) -> Result<()> {
        // SAFETY: the stream is live; the rest is upheld by the caller.
        unsafe { checked::memcpy_async(to.as_raw(), from.as_raw(), bytes, self.as_raw()) }
    }

    /// Queues decompressions of device memory ([`cuMemBatchDecompressAsync`](checked::mem_batch_decompress_async)). The
    /// device's attribute `CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK` lists the algorithms of its hardware.
    ///
    /// # Safety
    /// All ranges must stay allocated until the work is done, and must not be used by work that does not wait for it.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_NOT_SUPPORTED` if the device has no hardware for it, `CUDA_ERROR_INVALID_VALUE` for an
    /// operation with an invalid range or algorithm, and a [missing-function error](crate::Error::is_missing_function)
    /// if the driver is older than CUDA 12.6.
    #[inline]
    #[doc(alias = "cuMemBatchDecompressAsync")]
    #[track_caller]
    pub unsafe fn decompress(&self, operations: &[sys::CUmemDecompressParams]) -> Result<()> {
        // SAFETY: the stream is live; the rest is upheld by the caller.
        unsafe { checked::mem_batch_decompress_async(operations, 0, None, self.as_raw()) }
    }

    /// Queues operations that map memory to tiles of [sparse arrays](crate::array::ArrayShape::sparse) and to arrays
    /// that were created [without memory](crate::Array::unmapped), or that unmap it
    /// ([`cuMemMapArrayAsync`](checked::mem_map_array_async)).
    ///
    /// # Safety
    /// Arrays and memory must be live until the work is done, and no other work may access a tile whose mapping
    /// changes.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for an invalid tile, or for memory without `CU_MEM_CREATE_USAGE_TILE_POOL`.
    #[inline]
    #[doc(alias = "cuMemMapArrayAsync")]
    #[track_caller]
    pub unsafe fn map_arrays(&self, mappings: &[sys::CUarrayMapInfo]) -> Result<()> {
        // SAFETY: the stream is live; the rest is upheld by the caller.
        unsafe { checked::mem_map_array_async(mappings, self.as_raw()) }
    }
}

impl Context {
    /// Copies between addresses of device or host memory ([`cuMemcpy`](checked::memcpy)). Like all copies without a
    /// stream, it may still run when the call returns, if the destination is device memory, and the source is device
    /// memory or host memory that is not page-locked.
    ///
    /// # Safety
    /// Both ranges must stay allocated until the copy is done. Until then, no other work may write to them or read the
    /// destination.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for a device address that is not allocated.
    #[inline]
    #[doc(alias = "cuMemcpy")]
    #[track_caller]
    pub unsafe fn copy_bytes(&self, to: DevicePtr, from: DevicePtr, bytes: usize) -> Result<()> {
        let _current = self.enter()?;
        // SAFETY: upheld by the caller.
        unsafe { checked::memcpy(to.as_raw(), from.as_raw(), bytes) }
    }
}
