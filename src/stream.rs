//! Streams: queues of work.

mod record;
mod transfer;

use core::{mem, ptr};

use crate::error::dropping;
use crate::event::done;
use crate::{Borrowed, Context, Event, Result, checked, host_fn, sys};

/// A stream: work that is queued in it is done in order.
///
/// ```no_run
/// # use cuda_driver::{Context, Device, DeviceBuffer, Event, HostBuffer, Stream};
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
/// // … launches in `work` that take `values`: they come after the copy …
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

    /// Makes a blocking stream: its work and that of the legacy default stream wait for each other
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

    /// Makes a non-blocking stream, which does not wait for the legacy default stream, nor that for it
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

    /// Makes a stream with flags ([`cuStreamCreate`](checked::stream_create)).
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
        host_fn::stream_is_gone(raw, Some(context.as_raw()));
        Ok(Self::of(raw, Some(context.clone())))
    }

    /// Makes a stream with a priority, a smaller number running first
    /// ([`cuStreamCreateWithPriority`](checked::stream_create_with_priority)). A number outside
    /// [`Context::stream_priority_range`] is taken as the nearest inside.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for unknown flags.
    #[inline]
    #[doc(alias = "cuStreamCreateWithPriority")]
    #[track_caller]
    pub fn with_priority(
        context: &Context,
        flags: sys::CUstream_flags,
        priority: i32,
    ) -> Result<Self> {
        let _current = context.enter()?;
        // SAFETY: the driver checks flags and priority.
        let raw = unsafe { checked::stream_create_with_priority(flags.0, priority) }?;
        host_fn::stream_is_gone(raw, Some(context.as_raw()));
        Ok(Self::of(raw, Some(context.clone())))
    }

    /// The null stream of whichever context is current when it is used. With none current every use is a 201. It is the
    /// legacy default stream, or the thread's own if the library was made so.
    #[inline]
    #[must_use]
    pub const fn null() -> Borrowed<'static, Self> {
        Borrowed::new(Self::of(ptr::null_mut(), None))
    }

    /// The legacy default stream of whichever context is current when it is used.
    #[inline]
    #[doc(alias = "CU_STREAM_LEGACY")]
    #[must_use]
    pub const fn legacy() -> Borrowed<'static, Self> {
        Borrowed::new(Self::of(sys::CU_STREAM_LEGACY, None))
    }

    /// The calling thread's default stream of whichever context is current when it is used.
    #[inline]
    #[doc(alias = "CU_STREAM_PER_THREAD")]
    #[must_use]
    pub const fn per_thread() -> Borrowed<'static, Self> {
        Borrowed::new(Self::of(sys::CU_STREAM_PER_THREAD, None))
    }

    /// Waits until all work of the stream is done ([`cuStreamSynchronize`](checked::stream_synchronize)).
    ///
    /// # Errors
    /// Returns an error from the work that was waited for.
    ///
    /// # Panics
    /// With what a [host function](Self::launch_host_fn) of this stream panicked with.
    #[inline]
    #[doc(alias = "cuStreamSynchronize")]
    #[track_caller]
    pub fn synchronize(&self) -> Result<()> {
        let result = self.wait();
        self.resume();
        result
    }

    /// The same, with panics left to the next call that tells them.
    #[inline]
    #[track_caller]
    pub(crate) fn wait(&self) -> Result<()> {
        // SAFETY: the handle is live.
        unsafe { checked::stream_synchronize(self.raw) }
    }

    /// Panics with what a host function panicked with.
    #[inline]
    fn resume(&self) {
        host_fn::resume_of_stream(self.raw.addr(), self.context_raw());
    }

    /// Whether all work of the stream is done ([`cuStreamQuery`](checked::stream_query)).
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

    /// Makes the stream's future work wait for an event ([`cuStreamWaitEvent`](checked::stream_wait_event)).
    ///
    /// # Errors
    /// 905 if the stream is captured and the event is not part of the capture.
    #[inline]
    #[doc(alias = "cuStreamWaitEvent")]
    #[track_caller]
    pub fn wait_event(&self, event: &Event) -> Result<()> {
        // SAFETY: both handles are live.
        unsafe { checked::stream_wait_event(self.raw, event.as_raw(), 0) }
    }

    /// The stream's priority ([`cuStreamGetPriority`](checked::stream_get_priority)).
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

    /// The flags that the stream was made with ([`cuStreamGetFlags`](checked::stream_get_flags)).
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

    /// Queues a call of a function on the host: the work that comes after it in the stream waits for it
    /// ([`cuLaunchHostFunc`](checked::launch_host_func)). If earlier work of the stream faults it does not run, and is
    /// leaked. It runs once at most: where another thread begins to capture the stream at the same moment, with the first
    /// launch of the graph.
    ///
    /// In it nearly every call into the driver answers 800, also those that only ask or release something: an object of
    /// this crate that is dropped there is leaked.
    ///
    /// A panic in it does not reach the driver. The next call that is there to wait for it panics with it: the stream's
    /// [`synchronize`](Self::synchronize), that of an [event](Event::synchronize) recorded in the stream, that of the
    /// [context](Context::synchronize), or [`Pending::wait`] of a copy in the stream. Queries and copies that wait do not:
    /// they may be those of a library that knows nothing of the function. Once the stream is gone, only waiting for the
    /// context tells it.
    ///
    /// # Errors
    /// 201 on the null stream with no context current; 900 if the stream is captured, for a graph can run more than
    /// once: [`checked::graph_add_host_node`] and [`checked::launch_host_func`] are for that.
    #[inline]
    #[doc(alias = "cuLaunchHostFunc")]
    #[track_caller]
    pub fn launch_host_fn(&self, function: impl FnOnce() + Send + 'static) -> Result<()> {
        host_fn::launch(self.raw, self.context_raw(), function)
    }

    /// Destroys the stream; work that it still has is finished, without waiting here
    /// ([`cuStreamDestroy`](checked::stream_destroy)). Dropping does the same.
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuStreamDestroy")]
    #[track_caller]
    pub fn destroy(mut self) -> Result<()> {
        host_fn::stream_is_gone(self.raw, self.context_raw());
        // SAFETY: the handle is live, and null from here on.
        unsafe { checked::stream_destroy(mem::replace(&mut self.raw, ptr::null_mut())) }
    }

    /// Returns the raw handle, which is valid as long as `self`.
    #[inline]
    #[must_use]
    pub const fn as_raw(&self) -> sys::CUstream {
        self.raw
    }

    /// Takes over a stream that C made in `context`.
    ///
    /// # Safety
    /// The handle is live, of that context, and nobody else destroys it.
    #[inline]
    #[must_use]
    pub unsafe fn from_raw(raw: sys::CUstream, context: &Context) -> Self {
        Self::of(raw, Some(context.clone()))
    }

    /// A stream that belongs to someone else.
    ///
    /// # Safety
    /// The handle must stay valid as long as the returned value.
    #[inline]
    #[must_use]
    pub const unsafe fn borrow_raw<'a>(raw: sys::CUstream) -> Borrowed<'a, Self> {
        Borrowed::new(Self::of(raw, None))
    }

    /// Gives the stream away; the context that it needs is kept alive for good.
    #[inline]
    #[must_use]
    pub fn into_raw(self) -> sys::CUstream {
        let raw = self.raw;
        mem::forget(self);
        raw
    }

    #[inline]
    fn context_raw(&self) -> Option<sys::CUcontext> {
        self.context.as_ref().map(Context::as_raw)
    }

    /// The context that the stream was made in, if it is known.
    #[inline]
    #[must_use]
    pub const fn context(&self) -> Option<&Context> {
        self.context.as_ref()
    }
}

impl Drop for Stream {
    #[inline]
    fn drop(&mut self) {
        if !self.raw.is_null() {
            host_fn::stream_is_gone(self.raw, self.context_raw());
            // SAFETY: the handle is live, and this is its last use.
            dropping().done(unsafe { checked::stream_destroy(self.raw) });
        }
    }
}
