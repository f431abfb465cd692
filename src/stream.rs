//! Streams: queues of work.

mod attributes;
mod null;
mod record;

use core::{mem, ptr};

use crate::borrowed::handle;
use crate::error::dropping;
use crate::event::done;
use crate::refusal::Refusal;
use crate::sys::{self, CUresult, CUstreamCaptureStatus, Function};
use crate::{Borrowed, Context, Error, Event, Result, checked, host_fn};

pub(crate) use null::synchronize_null;

/// A stream: a queue whose work runs in order.
///
/// ```
/// # use cuda_driver::{Context, Device, DeviceBuffer, Event, HostBuffer, Stream};
/// # cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software).unwrap().install().unwrap();
/// # cuda_driver::init()?;
/// # let context = Context::create(Device::first()?)?;
/// let (copies, work) = (Stream::new(&context)?, Stream::new(&context)?);
/// let host = HostBuffer::from_slice(&context, &[1.0f32; 1000])?;
/// let device = DeviceBuffer::alloc(&context, 1000)?;
/// let values = device.ptr();
/// let pending = copies.upload(host, device)?;
///
/// let copied = Event::new(&context)?;
/// copied.record(&copies)?;
/// work.wait_event(&copied)?;
/// // … launches in `work` that use `values`: they run after the copy …
/// work.synchronize()?;
/// let (host, device) = pending.wait()?;
/// # Ok::<(), cuda_driver::Error>(())
/// ```
#[derive(Debug)]
pub struct Stream {
    raw: sys::CUstream,
    context: Option<Context>,
}

// SAFETY: a stream handle may be used on any thread.
unsafe impl Send for Stream {}
// SAFETY: as above; the driver synchronises access to its objects.
unsafe impl Sync for Stream {}

impl Stream {
    #[inline]
    const fn of(raw: sys::CUstream, context: Option<Context>) -> Self {
        Self { raw, context }
    }

    /// Wraps the handle of a stream that was just created in a context.
    #[inline]
    pub(crate) fn created(raw: sys::CUstream, context: &Context) -> Self {
        // The driver may have reused the handle of a destroyed stream, whose panics must not resume in the new stream.
        host_fn::stream_destroyed(raw, Some(context.as_raw()));
        Self::of(raw, Some(context.clone()))
    }

    /// Creates a blocking stream, which synchronises with the legacy default stream
    /// ([`cuStreamCreate`](checked::stream_create)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_OUT_OF_MEMORY` if there is not enough memory.
    #[inline]
    #[doc(alias = "cuStreamCreate")]
    #[track_caller]
    pub fn new(context: &Context) -> Result<Self> {
        Self::with_flags(context, sys::CUstream_flags::CU_STREAM_DEFAULT)
    }

    /// Creates a non-blocking stream, which does not synchronise with the legacy default stream
    /// ([`cuStreamCreate`](checked::stream_create)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_OUT_OF_MEMORY` if there is not enough memory.
    #[inline]
    #[doc(alias = "cuStreamCreate")]
    #[doc(alias = "CU_STREAM_NON_BLOCKING")]
    #[track_caller]
    pub fn non_blocking(context: &Context) -> Result<Self> {
        Self::with_flags(context, sys::CUstream_flags::CU_STREAM_NON_BLOCKING)
    }

    /// Creates a stream with flags ([`cuStreamCreate`](checked::stream_create)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for unknown flags.
    #[inline]
    #[doc(alias = "cuStreamCreate")]
    #[track_caller]
    pub fn with_flags(context: &Context, flags: sys::CUstream_flags) -> Result<Self> {
        let _current = context.enter()?;
        // SAFETY: the driver checks the flags.
        let raw = unsafe { checked::stream_create(flags.0) }?;
        Ok(Self::created(raw, context))
    }

    /// Creates a stream with a priority; a lower number is a higher priority
    /// ([`cuStreamCreateWithPriority`](checked::stream_create_with_priority)). A number outside of
    /// [`Context::stream_priority_range`] is clamped to that range.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for unknown flags.
    #[inline]
    #[doc(alias = "cuStreamCreateWithPriority")]
    #[track_caller]
    pub fn with_priority(context: &Context, flags: sys::CUstream_flags, priority: i32) -> Result<Self> {
        let _current = context.enter()?;
        // SAFETY: the driver checks flags and priority.
        let raw = unsafe { checked::stream_create_with_priority(flags.0, priority) }?;
        Ok(Self::created(raw, context))
    }

    /// Returns the null stream, which belongs to the context that is current when it is used; without a current
    /// context, each use fails with `CUDA_ERROR_INVALID_CONTEXT`. It is the legacy default stream, or the calling
    /// thread's default stream in a library with [that option](sys::library::Options::per_thread_default_stream).
    #[inline]
    #[must_use]
    pub const fn null() -> Borrowed<'static, Self> {
        Borrowed::new(Self::of(ptr::null_mut(), None))
    }

    /// Returns the legacy default stream, which belongs to the context that is current when it is used.
    #[inline]
    #[doc(alias = "CU_STREAM_LEGACY")]
    #[must_use]
    pub const fn legacy() -> Borrowed<'static, Self> {
        Borrowed::new(Self::of(sys::CU_STREAM_LEGACY, None))
    }

    /// Returns the calling thread's default stream, which belongs to the context that is current when it is used.
    #[inline]
    #[doc(alias = "CU_STREAM_PER_THREAD")]
    #[must_use]
    pub const fn per_thread() -> Borrowed<'static, Self> {
        Borrowed::new(Self::of(sys::CU_STREAM_PER_THREAD, None))
    }

    /// Waits until all work in the stream is done ([`cuStreamSynchronize`](checked::stream_synchronize)).
    ///
    /// # Errors
    /// Returns an error from the work that was waited for.
    ///
    /// # Panics
    /// Resumes the panic of a [host function](Self::launch_host_fn) in this stream.
    #[inline]
    #[doc(alias = "cuStreamSynchronize")]
    #[track_caller]
    pub fn synchronize(&self) -> Result<()> {
        let result = self.wait();
        self.resume();
        result
    }

    /// Waits without resuming panics of host functions.
    #[inline]
    #[track_caller]
    pub(crate) fn wait(&self) -> Result<()> {
        // SAFETY: the handle is live.
        unsafe { checked::stream_synchronize(self.raw) }
    }

    /// Resumes the panic of a host function.
    #[inline]
    fn resume(&self) {
        host_fn::resume_of_stream(self.raw.addr(), self.context_raw());
    }

    /// Returns true if all work in the stream is done ([`cuStreamQuery`](checked::stream_query)).
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuStreamQuery")]
    #[track_caller]
    pub fn query(&self) -> Result<bool> {
        // SAFETY: the handle is live.
        done(unsafe { checked::stream_query(self.raw) })
    }

    /// Makes future work in the stream wait for an event ([`cuStreamWaitEvent`](checked::stream_wait_event)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_STREAM_CAPTURE_ISOLATION` if the stream is being captured and the event is not part of the
    /// capture.
    #[inline]
    #[doc(alias = "cuStreamWaitEvent")]
    #[track_caller]
    pub fn wait_event(&self, event: &Event) -> Result<()> {
        // SAFETY: both handles are live.
        unsafe { checked::stream_wait_event(self.raw, event.as_raw(), 0) }
    }

    /// Returns the stream's priority ([`cuStreamGetPriority`](checked::stream_get_priority)).
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuStreamGetPriority")]
    #[track_caller]
    pub fn priority(&self) -> Result<i32> {
        // SAFETY: the handle is live.
        unsafe { checked::stream_get_priority(self.raw) }
    }

    /// Returns the flags that the stream was created with ([`cuStreamGetFlags`](checked::stream_get_flags)).
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuStreamGetFlags")]
    #[track_caller]
    pub fn flags(&self) -> Result<sys::CUstream_flags> {
        // SAFETY: the handle is live.
        let flags = unsafe { checked::stream_get_flags(self.raw) }?;
        Ok(sys::CUstream_flags(flags))
    }

    /// Queues a call of a host function, which later work in the stream waits for
    /// ([`cuLaunchHostFunc`](checked::launch_host_func)). The function runs at most once. If earlier work in the stream
    /// faults, it does not run and is leaked. If another thread begins to capture the stream at the same time, the
    /// function runs in the first launch of the graph.
    ///
    /// In a host function, nearly every driver call returns `CUDA_ERROR_NOT_PERMITTED`, even calls that return a
    /// property of the device or release a resource: an object of this crate that is dropped there is leaked.
    ///
    /// A panic in the function does not unwind through the driver. It resumes in the next of these calls:
    /// [`Stream::synchronize`](Self::synchronize), [`Event::synchronize`] of an event recorded later in the stream,
    /// [`Context::synchronize`], a method that calls it (its *Panics* section says so), or
    /// [`Pending::wait`](crate::Pending::wait) of a copy in the stream. Queries and synchronous copies do not resume
    /// it. After the stream is destroyed, only [`Context::synchronize`] and the methods that call it do.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_CONTEXT` on the null stream if no context is current, and
    /// `CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED` if the stream is being captured, because a graph may run more than once.
    /// [`Graph::add_host_fn`](crate::Graph::add_host_fn) adds a function to a graph.
    #[inline]
    #[doc(alias = "cuLaunchHostFunc")]
    #[track_caller]
    pub fn launch_host_fn(&self, function: impl FnOnce() + Send + 'static) -> Result<()> {
        // Each launch of the graph would make a captured call, but the function can only run once.
        self.require_uncaptured(Function::cuLaunchHostFunc, Refusal::Captured)?;
        host_fn::launch(self.raw, self.context_raw(), None, function)
    }

    /// Same as [`launch_host_fn`](Self::launch_host_fn), with a mode: the thread that runs the functions waits for work
    /// by blocking, or by spinning, which starts the function earlier
    /// ([`cuLaunchHostFunc_v2`](checked::launch_host_func_v2)).
    ///
    /// # Errors
    /// Returns a [missing-function error](crate::Error::is_missing_function) if the driver is older than CUDA 13.1,
    /// `CUDA_ERROR_INVALID_VALUE` for an unknown mode, and the errors of [`launch_host_fn`](Self::launch_host_fn).
    #[inline]
    #[doc(alias = "cuLaunchHostFunc_v2")]
    #[track_caller]
    pub fn launch_host_fn_with(
        &self,
        mode: sys::CUhostTaskSyncMode,
        function: impl FnOnce() + Send + 'static,
    ) -> Result<()> {
        // As in `launch_host_fn`.
        self.require_uncaptured(Function::cuLaunchHostFunc, Refusal::Captured)?;
        host_fn::launch(self.raw, self.context_raw(), Some(mode), function)
    }

    /// Returns `CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED` as an error of `called` if the stream is being captured.
    #[inline]
    #[track_caller]
    pub(crate) fn require_uncaptured(&self, called: Function, reason: Refusal) -> Result<()> {
        // SAFETY: the stream is live, or a default one.
        let capture = unsafe { checked::stream_is_capturing(self.raw) }?;
        if capture == CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE {
            return Ok(());
        }
        let code = CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        Err(Error::refused(code, called, reason))
    }

    /// Destroys the stream without waiting; queued work still runs
    /// ([`cuStreamDestroy`](checked::stream_destroy)). Dropping does the same.
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuStreamDestroy")]
    #[track_caller]
    pub fn destroy(mut self) -> Result<()> {
        host_fn::stream_destroyed(self.raw, self.context_raw());
        // SAFETY: the handle is live, and replaced by null so that `drop` does not use it.
        unsafe { checked::stream_destroy(mem::replace(&mut self.raw, ptr::null_mut())) }
    }

    /// Takes ownership of a stream in `context`.
    ///
    /// # Safety
    /// The handle must be live and belong to that context, and no other code may destroy it.
    #[inline]
    #[must_use]
    pub unsafe fn from_raw(raw: sys::CUstream, context: &Context) -> Self {
        Self::of(raw, Some(context.clone()))
    }

    /// Borrows a stream.
    ///
    /// # Safety
    /// The handle must stay valid as long as the returned value.
    #[inline]
    #[must_use]
    pub const unsafe fn borrow_raw<'a>(raw: sys::CUstream) -> Borrowed<'a, Self> {
        Borrowed::new(Self::of(raw, None))
    }

    #[inline]
    fn context_raw(&self) -> Option<sys::CUcontext> {
        self.context.as_ref().map(Context::as_raw)
    }
}

handle! {
    [Stream] CUstream,
    leaked: "The reference to the context is leaked, so the context stays alive.",
    context: "of the stream; `None` for a borrowed stream."
}

impl Drop for Stream {
    #[inline]
    fn drop(&mut self) {
        if !self.raw.is_null() {
            if let Some(dropping) = dropping() {
                host_fn::stream_destroyed(self.raw, self.context_raw());
                // SAFETY: the handle is live, and this is its last use.
                dropping.done(unsafe { checked::stream_destroy(self.raw) });
            }
        }
    }
}
