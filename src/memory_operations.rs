//! Memory operations of streams: writes to memory, waits for values in memory, barriers, and flushes of remote writes.

use crate::sys::{self, CUstreamBatchMemOpParams, CUstreamWaitValue_flags, CUstreamWriteValue_flags};
use crate::{DevicePtr, Result, Stream, checked};

/// A memory operation for [`Stream::memory_operations`].
///
/// ```
/// # use cuda_driver::{Context, Device, DeviceBuffer, Stream};
/// # cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software).unwrap().install().unwrap();
/// # cuda_driver::init()?;
/// # let context = Context::create(Device::first()?)?;
/// use cuda_driver::memory_operations::MemoryOperation;
/// use cuda_driver::sys::{CUstreamWaitValue_flags, CUstreamWriteValue_flags};
///
/// let stream = Stream::new(&context)?;
/// let flags = DeviceBuffer::from_slice(&context, &[0u32; 2])?;
/// let (first, second) = (flags.ptr(), flags.ptr().byte_add(4));
/// let operations = [
///     MemoryOperation::write_value32(first, 7, CUstreamWriteValue_flags::CU_STREAM_WRITE_VALUE_DEFAULT),
///     MemoryOperation::wait_value32(first, 5, CUstreamWaitValue_flags::CU_STREAM_WAIT_VALUE_GEQ),
///     MemoryOperation::write_value32(second, 8, CUstreamWriteValue_flags::CU_STREAM_WRITE_VALUE_DEFAULT),
/// ];
/// // SAFETY: the addresses are in `flags`, which lives until the stream is done.
/// unsafe { stream.memory_operations(&operations) }?;
/// stream.synchronize()?;
/// assert_eq!(flags.to_vec()?, [7, 8]);
/// # Ok::<(), cuda_driver::Error>(())
/// ```
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct MemoryOperation(CUstreamBatchMemOpParams);

impl core::fmt::Debug for MemoryOperation {
    #[inline]
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        // SAFETY: every variant starts with the operation.
        let operation = unsafe { self.0.operation };
        f.debug_tuple("MemoryOperation").field(&operation).finish()
    }
}

macro_rules! operation {
    ($variant:ident: $record:ident, $operation:ident, $($field:ident = $value:expr),*; $(.$setter:ident($number:expr))?) => {{
        let mut params = sys::$record::default();
        params.operation = sys::CUstreamBatchMemOpType::$operation;
        $(params.$field = $value;)*
        $(let params = params.$setter($number);)?
        // The union is larger than this variant, and its other bytes are zero.
        let mut raw = CUstreamBatchMemOpParams::default();
        raw.$variant = params;
        MemoryOperation(raw)
    }};
}

impl MemoryOperation {
    /// Returns a write of a 32-bit number. Without `CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER`, earlier writes of the
    /// stream become visible before it.
    #[inline]
    #[must_use]
    pub fn write_value32(address: DevicePtr, value: u32, flags: CUstreamWriteValue_flags) -> Self {
        operation!(
            writeValue: CUstreamBatchMemOpParams_union_CUstreamMemOpWriteValueParams_st, CU_STREAM_MEM_OP_WRITE_VALUE_32,
            address = address.as_raw(), flags = flags.0; .with_value(value)
        )
    }

    /// Returns a write of a 64-bit number. Without `CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER`, earlier writes of the
    /// stream become visible before it.
    #[inline]
    #[must_use]
    pub fn write_value64(address: DevicePtr, value: u64, flags: CUstreamWriteValue_flags) -> Self {
        operation!(
            writeValue: CUstreamBatchMemOpParams_union_CUstreamMemOpWriteValueParams_st, CU_STREAM_MEM_OP_WRITE_VALUE_64,
            address = address.as_raw(), flags = flags.0; .with_value64(value)
        )
    }

    /// Returns a wait until a comparison of a 32-bit number in memory with `value` is true. The flags choose the
    /// comparison.
    #[inline]
    #[must_use]
    pub fn wait_value32(address: DevicePtr, value: u32, flags: CUstreamWaitValue_flags) -> Self {
        operation!(
            waitValue: CUstreamBatchMemOpParams_union_CUstreamMemOpWaitValueParams_st, CU_STREAM_MEM_OP_WAIT_VALUE_32,
            address = address.as_raw(), flags = flags.0; .with_value(value)
        )
    }

    /// Returns a wait until a comparison of a 64-bit number in memory with `value` is true. The flags choose the
    /// comparison.
    #[inline]
    #[must_use]
    pub fn wait_value64(address: DevicePtr, value: u64, flags: CUstreamWaitValue_flags) -> Self {
        operation!(
            waitValue: CUstreamBatchMemOpParams_union_CUstreamMemOpWaitValueParams_st, CU_STREAM_MEM_OP_WAIT_VALUE_64,
            address = address.as_raw(), flags = flags.0; .with_value64(value)
        )
    }

    /// Returns a barrier between the memory accesses before and after it.
    #[inline]
    #[must_use]
    pub fn memory_barrier(flags: sys::CUstreamMemoryBarrier_flags) -> Self {
        operation!(
            memoryBarrier: CUstreamBatchMemOpParams_union_CUstreamMemOpMemoryBarrierParams_st, CU_STREAM_MEM_OP_BARRIER,
            flags = flags.0;
        )
    }

    /// Returns an operation that makes the writes of other devices that arrived before it visible to later work.
    #[inline]
    #[must_use]
    pub fn flush_remote_writes() -> Self {
        operation!(
            flushRemoteWrites: CUstreamBatchMemOpParams_union_CUstreamMemOpFlushRemoteWritesParams_st,
            CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES,
            flags = 0;
        )
    }

    /// Returns C's representation.
    #[inline]
    #[must_use]
    pub const fn as_raw(&self) -> &CUstreamBatchMemOpParams {
        &self.0
    }

    /// Converts C's representation to an operation.
    #[inline]
    #[must_use]
    pub const fn from_raw(raw: CUstreamBatchMemOpParams) -> Self {
        Self(raw)
    }
}

impl Stream {
    /// Queues a write of a 32-bit number ([`cuStreamWriteValue32`](checked::stream_write_value32)).
    ///
    /// # Safety
    /// The address must be a multiple of 4, in device memory or page-locked host memory that stays allocated until the
    /// write is done. Until then, host code may access it only with atomic operations.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for an address that is not a multiple of 4 or invalid flags.
    #[inline]
    #[doc(alias = "cuStreamWriteValue32")]
    #[track_caller]
    pub unsafe fn write_value32(&self, address: DevicePtr, value: u32, flags: CUstreamWriteValue_flags) -> Result<()> {
        // SAFETY: the stream is live; the rest is upheld by the caller.
        unsafe { checked::stream_write_value32(self.as_raw(), address.as_raw(), value, flags.0) }
    }

    /// Queues a write of a 64-bit number ([`cuStreamWriteValue64`](checked::stream_write_value64)).
    ///
    /// # Safety
    /// Same as [`write_value32`](Self::write_value32), but the address must be a multiple of 8.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for an address that is not a multiple of 8 or invalid flags, and
    /// `CUDA_ERROR_NOT_SUPPORTED` if the device lacks
    /// [the feature](sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS).
    #[inline]
    #[doc(alias = "cuStreamWriteValue64")]
    #[track_caller]
    pub unsafe fn write_value64(&self, address: DevicePtr, value: u64, flags: CUstreamWriteValue_flags) -> Result<()> {
        // SAFETY: the stream is live; the rest is upheld by the caller.
        unsafe { checked::stream_write_value64(self.as_raw(), address.as_raw(), value, flags.0) }
    }

    /// Makes later work in the stream wait until a comparison of a 32-bit number in memory with `value` is true
    /// ([`cuStreamWaitValue32`](checked::stream_wait_value32)). The flags choose the comparison.
    ///
    /// # Safety
    /// The address must be a multiple of 4, in device memory or page-locked host memory that stays allocated until
    /// the wait is over.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for an address that is not a multiple of 4 or invalid flags.
    #[inline]
    #[doc(alias = "cuStreamWaitValue32")]
    #[track_caller]
    pub unsafe fn wait_value32(&self, address: DevicePtr, value: u32, flags: CUstreamWaitValue_flags) -> Result<()> {
        // SAFETY: the stream is live; the rest is upheld by the caller.
        unsafe { checked::stream_wait_value32(self.as_raw(), address.as_raw(), value, flags.0) }
    }

    /// Makes later work in the stream wait until a comparison of a 64-bit number in memory with `value` is true
    /// ([`cuStreamWaitValue64`](checked::stream_wait_value64)). The flags choose the comparison.
    ///
    /// # Safety
    /// Same as [`wait_value32`](Self::wait_value32), but the address must be a multiple of 8.
    ///
    /// # Errors
    /// Same as [`write_value64`](Self::write_value64).
    #[inline]
    #[doc(alias = "cuStreamWaitValue64")]
    #[track_caller]
    pub unsafe fn wait_value64(&self, address: DevicePtr, value: u64, flags: CUstreamWaitValue_flags) -> Result<()> {
        // SAFETY: the stream is live; the rest is upheld by the caller.
        unsafe { checked::stream_wait_value64(self.as_raw(), address.as_raw(), value, flags.0) }
    }

    /// Queues several memory operations, which run in order ([`cuStreamBatchMemOp`](checked::stream_batch_mem_op)).
    ///
    /// # Safety
    /// Each write and each wait must fulfil the conditions of the method of the same name.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for more than 255 operations, and if one of them has an invalid address or
    /// flags, and `CUDA_ERROR_NOT_SUPPORTED` if the device lacks one of them.
    #[inline]
    #[doc(alias = "cuStreamBatchMemOp")]
    #[track_caller]
    pub unsafe fn memory_operations(&self, operations: &[MemoryOperation]) -> Result<()> {
        if operations.is_empty() {
            return Ok(());
        }
        // A copy, because the driver writes to the operations.
        let mut raw: Vec<CUstreamBatchMemOpParams> = operations.iter().map(|operation| operation.0).collect();
        // SAFETY: the stream is live; the rest is upheld by the caller.
        unsafe { checked::stream_batch_mem_op(self.as_raw(), &mut raw, 0) }
    }
}
