//! Streams of green contexts.

use super::GreenContext;
use crate::{Result, Stream, checked, sys};

impl GreenContext {
    /// Creates a non-blocking stream whose work runs on the green context's multiprocessors
    /// ([`cuGreenCtxStreamCreate`](checked::green_ctx_stream_create)). Streams with smaller priorities run first.
    ///
    /// # Errors
    /// Returns a [missing function](crate::Error::is_missing_function) if the driver is older than CUDA 12.5.
    #[inline]
    #[doc(alias = "cuGreenCtxStreamCreate")]
    #[track_caller]
    pub fn stream(&self, priority: i32) -> Result<Stream> {
        // The only kind of stream that a green context has.
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING;
        // SAFETY: the handle is live, and the driver checks the priority.
        let raw = unsafe { checked::green_ctx_stream_create(self.as_raw_green(), flags.0, priority) }?;
        Ok(Stream::created(raw, self))
    }
}

impl Stream {
    /// Asks the driver for the handle of the context that the stream was created in
    /// ([`cuStreamGetCtx`](checked::stream_get_ctx)). For a stream of a green context, it is the context of that green
    /// context; for a default stream, the current context.
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuStreamGetCtx")]
    #[track_caller]
    pub fn query_context_raw(&self) -> Result<sys::CUcontext> {
        // SAFETY: the handle is live.
        unsafe { checked::stream_get_ctx(self.as_raw()) }
    }

    /// Asks the driver for the handles of the stream's context, which is the primary context for a stream of a green
    /// context, and of its green context, which may be null ([`cuStreamGetCtx_v2`](checked::stream_get_ctx_v2)).
    ///
    /// # Errors
    /// Returns a [missing function](crate::Error::is_missing_function) if the driver is older than CUDA 12.5.
    #[inline]
    #[doc(alias = "cuStreamGetCtx_v2")]
    #[track_caller]
    pub fn query_contexts_raw(&self) -> Result<checked::StreamGetCtxV2> {
        // SAFETY: the handle is live.
        unsafe { checked::stream_get_ctx_v2(self.as_raw()) }
    }

    /// Returns the handle of the green context that the stream was created in; `None` for another context
    /// ([`cuStreamGetGreenCtx`](checked::stream_get_green_ctx)).
    ///
    /// # Errors
    /// Returns a [missing function](crate::Error::is_missing_function) if the driver is older than CUDA 12.4.
    #[inline]
    #[doc(alias = "cuStreamGetGreenCtx")]
    #[track_caller]
    pub fn green_context_raw(&self) -> Result<Option<sys::CUgreenCtx>> {
        // SAFETY: the handle is live.
        let raw = unsafe { checked::stream_get_green_ctx(self.as_raw()) }?;
        Ok((!raw.is_null()).then_some(raw))
    }
}
