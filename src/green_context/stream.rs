//! Streams of green contexts, and the contexts that any stream belongs to.

use super::GreenContext;
use crate::{Result, Stream, checked, sys};

impl GreenContext {
    /// Creates a non-blocking stream whose work runs on the green context's multiprocessors
    /// ([`cuGreenCtxStreamCreate`](checked::green_ctx_stream_create)). A lower number is a higher priority: the device
    /// prefers work of a higher priority, but does not guarantee an order.
    ///
    /// # Errors
    /// Returns a [missing-function error](crate::Error::is_missing_function) if the driver is older than CUDA 12.5.
    #[inline]
    #[doc(alias = "cuGreenCtxStreamCreate")]
    #[track_caller]
    pub fn stream(&self, priority: i32) -> Result<Stream> {
        // The only flag that the driver accepts here, and it is required.
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING;
        // SAFETY: the handle is live, and the driver accepts every priority.
        let raw = unsafe { checked::green_ctx_stream_create(self.as_raw_green(), flags.0, priority) }?;
        Ok(Stream::created(raw, self))
    }
}

impl Stream {
    /// Asks the driver for the handle of the context that the stream was created in
    /// ([`cuStreamGetCtx`](checked::stream_get_ctx)). For a stream of a green context, it is the green context as a
    /// `CUcontext`; for a default stream, the current context.
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work. Drivers before CUDA 13.0 may return
    /// `CUDA_ERROR_NOT_SUPPORTED` for a stream of a green context.
    #[inline]
    #[doc(alias = "cuStreamGetCtx")]
    #[track_caller]
    pub fn query_context_raw(&self) -> Result<sys::CUcontext> {
        // SAFETY: the handle is live.
        unsafe { checked::stream_get_ctx(self.as_raw()) }
    }

    /// Asks the driver for two handles: the stream's context and its green context
    /// ([`cuStreamGetCtx_v2`](checked::stream_get_ctx_v2)). For a stream of a green context, the first is the device's
    /// primary context; for any other stream, the second is null.
    ///
    /// # Errors
    /// Returns a [missing-function error](crate::Error::is_missing_function) if the driver is older than CUDA 12.5.
    #[inline]
    #[doc(alias = "cuStreamGetCtx_v2")]
    #[track_caller]
    pub fn query_contexts_raw(&self) -> Result<checked::StreamGetCtxV2> {
        // SAFETY: the handle is live.
        unsafe { checked::stream_get_ctx_v2(self.as_raw()) }
    }

    /// Returns the handle of the green context that the stream was created in; `None` if that context is not a green
    /// context ([`cuStreamGetGreenCtx`](checked::stream_get_green_ctx)).
    ///
    /// # Errors
    /// Returns a [missing-function error](crate::Error::is_missing_function) if the driver is older than CUDA 12.4.
    #[inline]
    #[doc(alias = "cuStreamGetGreenCtx")]
    #[track_caller]
    pub fn green_context_raw(&self) -> Result<Option<sys::CUgreenCtx>> {
        // SAFETY: the handle is live.
        let raw = unsafe { checked::stream_get_green_ctx(self.as_raw()) }?;
        Ok((!raw.is_null()).then_some(raw))
    }
}
