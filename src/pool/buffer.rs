//! Buffers that are allocated in stream order.

use core::marker::PhantomData;
use core::{fmt, mem};

use super::MemPool;
use crate::error::{Error, dropping};
use crate::memory::{device_values, device_views};
use crate::refusal::Refusal;
use crate::sys::{self, CUresult, Function};
use crate::{Context, Result, Stream, checked};

/// A buffer of a fixed number of values that a stream allocated from a [memory pool](MemPool): work that is queued in
/// that stream afterwards may use it. Allocating does not wait for the device.
///
/// ```
/// # use cuda_driver::{Context, Device, Stream, StreamBuffer};
/// # cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software).unwrap().install().unwrap();
/// # cuda_driver::init()?;
/// # let context = Context::create(Device::first()?)?;
/// let stream = Stream::new(&context)?;
/// let mut buffer = StreamBuffer::<f32>::alloc(&context, &stream, 4)?;
/// buffer.as_mut_slice().copy_from(&[1.0, 2.0, 3.0, 4.0])?;
/// // … launches in `stream` that use `buffer.ptr()` …
/// assert_eq!(buffer.as_slice().to_vec()?, [1.0, 2.0, 3.0, 4.0]);
/// // SAFETY: no other stream has work with the buffer.
/// unsafe { buffer.free_async(&stream) }?;
/// # Ok::<(), cuda_driver::Error>(())
/// ```
///
/// Work in other streams must wait for the allocation, for instance with an [`Event`](crate::Event) recorded after it.
/// The views' copies without a stream argument wait for the work in [blocking](Stream::new) streams only.
///
/// [`free_async`](Self::free_async) frees in stream order, too. It is `unsafe`, because the driver does not know which
/// work of other streams still uses the memory. Dropping waits for all work of the context and then frees. While a
/// stream of the context is being captured, the wait fails: it invalidates the capture, and the memory is leaked.
pub struct StreamBuffer<T> {
    raw: sys::CUdeviceptr,
    len: usize,
    context: Context,
    /// Marks the type of the values. They are on the device, so their type does not restrict the threads that use the
    /// buffer.
    values: PhantomData<fn() -> T>,
}

impl<T> StreamBuffer<T> {
    /// Allocates `len` values with undefined contents from the current pool of the stream's device
    /// ([`cuMemAllocAsync`](checked::mem_alloc_async)). If the size is 0 bytes, nothing is allocated.
    ///
    /// The copies and fills of the buffer's views run in `context`, and [`free`](Self::free) and dropping wait for the
    /// work of this context: it must be the stream's. A default stream is the one of `context`.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_OUT_OF_MEMORY` if there is not enough memory, `CUDA_ERROR_NOT_SUPPORTED` if the device has
    /// no memory pools, `CUDA_ERROR_INVALID_CONTEXT` for a stream of another context, and
    /// `CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED` if the stream is being captured, because the memory would belong to the
    /// graph.
    #[inline]
    #[doc(alias = "cuMemAllocAsync")]
    #[track_caller]
    pub fn alloc(context: &Context, stream: &Stream, len: usize) -> Result<Self> {
        Self::alloc_with(context, stream, len, None)
    }

    /// Allocates `len` values with undefined contents from a pool
    /// ([`cuMemAllocFromPoolAsync`](checked::mem_alloc_from_pool_async)).
    ///
    /// # Errors
    /// Same as [`alloc`](Self::alloc), and `CUDA_ERROR_INVALID_VALUE` for an imported pool.
    #[inline]
    #[doc(alias = "cuMemAllocFromPoolAsync")]
    #[track_caller]
    pub fn alloc_from(pool: &MemPool, context: &Context, stream: &Stream, len: usize) -> Result<Self> {
        Self::alloc_with(context, stream, len, Some(pool))
    }

    #[inline]
    #[track_caller]
    fn alloc_with(context: &Context, stream: &Stream, len: usize, pool: Option<&MemPool>) -> Result<Self> {
        let bytes = len.saturating_mul(size_of::<T>());
        let mut raw = 0;
        if bytes > 0 {
            let _current = context.enter()?;
            let function = match pool {
                Some(_) => Function::cuMemAllocFromPoolAsync,
                None => Function::cuMemAllocAsync,
            };
            stream.require_uncaptured(function, Refusal::CapturedMemory)?;
            let of_stream = match stream.context() {
                Some(context) => context.as_raw(),
                // SAFETY: the stream is live, or a default one.
                None => unsafe { checked::stream_get_ctx(stream.as_raw()) }?,
            };
            if of_stream != context.as_raw() {
                let code = CUresult::CUDA_ERROR_INVALID_CONTEXT;
                return Err(Error::refused(code, function, Refusal::OtherContext));
            }
            raw = match pool {
                // SAFETY: both handles are live, and the driver checks the size.
                Some(pool) => unsafe { checked::mem_alloc_from_pool_async(bytes, pool.as_raw(), stream.as_raw()) }?,
                // SAFETY: the stream is live, and the driver checks the size.
                None => unsafe { checked::mem_alloc_async(bytes, stream.as_raw()) }?,
            };
        }
        Ok(Self {
            raw,
            len,
            context: context.clone(),
            values: PhantomData,
        })
    }

    /// Frees the memory in stream order, without waiting ([`cuMemFreeAsync`](checked::mem_free_async)): earlier work in
    /// the stream may still use it.
    ///
    /// # Safety
    /// All other work that uses the memory must be done, or be work that the stream waits for; this includes copies and
    /// fills of the buffer's views in the null stream, for which [non-blocking](Stream::non_blocking) streams do not
    /// wait.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_CONTEXT` on the null stream if no context is current. After any error, the memory is
    /// leaked.
    #[inline]
    #[doc(alias = "cuMemFreeAsync")]
    #[track_caller]
    pub unsafe fn free_async(mut self, stream: &Stream) -> Result<()> {
        if self.raw == 0 {
            return Ok(());
        }
        // SAFETY: the allocation is owned, and replaced by 0 so that `drop` does not use it; the rest is upheld by the
        // caller.
        unsafe { checked::mem_free_async(mem::take(&mut self.raw), stream.as_raw()) }
    }

    /// Waits for all work of the context, and frees the memory ([`cuMemFree`](checked::mem_free)). Dropping does the
    /// same.
    ///
    /// # Errors
    /// Returns an error from the work that was waited for. After any error, the memory is leaked.
    #[inline]
    #[doc(alias = "cuMemFree")]
    #[track_caller]
    pub fn free(mut self) -> Result<()> {
        // SAFETY: the allocation is owned, and replaced by 0 so that `drop` does not use it.
        unsafe { free_after_work(&self.context, mem::take(&mut self.raw)) }
    }

    /// Takes ownership of memory of a pool. The copies and fills of the buffer's views run in `context`.
    ///
    /// # Safety
    /// The address must be the start of an allocation of at least `len` values, and no other code may free it. When the
    /// buffer is freed or dropped, work of other contexts must no longer use the memory.
    #[inline]
    #[must_use]
    pub unsafe fn from_raw(raw: sys::CUdeviceptr, len: usize, context: &Context) -> Self {
        Self {
            raw,
            len,
            context: context.clone(),
            values: PhantomData,
        }
    }

    /// Releases ownership of the memory. The reference to the context is leaked, so the context stays alive.
    #[inline]
    #[must_use]
    pub fn into_raw(self) -> sys::CUdeviceptr {
        let raw = self.raw;
        mem::forget(self);
        raw
    }
}

device_values!(StreamBuffer);
device_views!(StreamBuffer);

impl<T> fmt::Debug for StreamBuffer<T> {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamBuffer")
            .field("ptr", &self.ptr())
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

impl<T> Drop for StreamBuffer<T> {
    #[inline]
    fn drop(&mut self) {
        let Some(dropping) = dropping() else { return };
        // SAFETY: the allocation is owned, and this is its last use.
        dropping.done(unsafe { free_after_work(&self.context, self.raw) });
    }
}

/// Waits for all work of a context, and frees memory of a pool, for which `cuMemFree` does not wait. Does nothing for
/// 0.
///
/// # Safety
/// The address must be 0 or an allocation that the caller owns, and this must be its last use.
#[inline]
#[track_caller]
unsafe fn free_after_work(context: &Context, raw: sys::CUdeviceptr) -> Result<()> {
    if raw == 0 {
        return Ok(());
    }
    let _current = context.enter()?;
    // SAFETY: the current context is live.
    unsafe { checked::ctx_synchronize() }?;
    // SAFETY: upheld by the caller.
    unsafe { checked::mem_free(raw) }
}
