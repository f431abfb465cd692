//! Events: points in streams that the host and other streams can wait for.

use core::mem;
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::borrowed::handle;
use crate::error::{Error, dropping};
use crate::sys::{self, CUresult};
use crate::{Borrowed, Context, Result, checked, host_fn};

/// An event: a point in a stream that the host and other streams can wait for, and whose time can be measured.
///
/// ```
/// # use cuda_driver::{Context, Device, Event, Stream};
/// # cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software).unwrap().install().unwrap();
/// # cuda_driver::init()?;
/// # let context = Context::create(Device::first()?)?;
/// let stream = Stream::new(&context)?;
/// let (start, end) = (Event::new(&context)?, Event::new(&context)?);
/// start.record(&stream)?;
/// // … work …
/// end.record(&stream)?;
/// end.synchronize()?;
/// println!("{} ms", start.elapsed_ms(&end)?);
/// # Ok::<(), cuda_driver::Error>(())
/// ```
#[derive(Debug)]
pub struct Event {
    raw: sys::CUevent,
    context: Option<Context>,
    /// The handle of the stream in which the event was last recorded, as a number, or [`NO_STREAM`].
    stream: AtomicUsize,
    /// The number of the newest host function when the event was recorded. The event does not wait for later functions,
    /// which may be in another stream with the same handle.
    last: AtomicUsize,
}

/// A value that is not the handle of any stream.
const NO_STREAM: usize = usize::MAX;

// SAFETY: an event handle may be used on any thread.
unsafe impl Send for Event {}
// SAFETY: as above; the driver synchronises access to its objects.
unsafe impl Sync for Event {}

impl Event {
    #[inline]
    const fn of(raw: sys::CUevent, context: Option<Context>) -> Self {
        Self {
            raw,
            context,
            stream: AtomicUsize::new(NO_STREAM),
            last: AtomicUsize::new(0),
        }
    }

    /// Creates an event with timing ([`cuEventCreate`](checked::event_create)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_OUT_OF_MEMORY` if there is not enough memory.
    #[inline]
    #[doc(alias = "cuEventCreate")]
    #[track_caller]
    pub fn new(context: &Context) -> Result<Self> {
        Self::with_flags(context, sys::CUevent_flags::CU_EVENT_DEFAULT)
    }

    /// Creates an event with flags ([`cuEventCreate`](checked::event_create)). Events with `CU_EVENT_DISABLE_TIMING`
    /// are faster.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for an invalid combination of flags, and the errors of [`new`](Self::new).
    #[inline]
    #[doc(alias = "cuEventCreate")]
    #[track_caller]
    pub fn with_flags(context: &Context, flags: sys::CUevent_flags) -> Result<Self> {
        let _current = context.enter()?;
        // SAFETY: the driver checks the flags.
        let raw = unsafe { checked::event_create(flags.0) }?;
        Ok(Self::of(raw, Some(context.clone())))
    }

    /// Stores the stream in which the event was recorded, and the number of the newest host function.
    #[inline]
    pub(crate) fn set_stream(&self, stream: sys::CUstream) {
        self.last.store(host_fn::last_number(), Ordering::Relaxed);
        self.stream.store(stream.addr(), Ordering::Relaxed);
    }

    /// Keeps the context alive forever, because work before the event may never end: another thread may have begun to
    /// capture the stream, and the work is then in a graph.
    #[cold]
    #[inline]
    pub(crate) fn leak_context(&self) {
        mem::forget(self.context.clone());
    }

    /// Forgets the stream, because the event was recorded in a context.
    #[inline]
    pub(crate) fn forget_stream(&self) {
        self.stream.store(NO_STREAM, Ordering::Relaxed);
    }

    /// Returns true if the recorded work is done, or if the event was never recorded
    /// ([`cuEventQuery`](checked::event_query)).
    ///
    /// # Errors
    /// If the event was last recorded in a captured stream, returns `CUDA_ERROR_CAPTURED_EVENT` during the capture, and
    /// `CUDA_ERROR_INVALID_VALUE` after it. May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuEventQuery")]
    #[track_caller]
    pub fn query(&self) -> Result<bool> {
        // SAFETY: the handle is live.
        done(unsafe { checked::event_query(self.raw) })
    }

    /// Waits until the recorded work is done ([`cuEventSynchronize`](checked::event_synchronize)).
    ///
    /// # Errors
    /// Returns an error from the work that was waited for, and the errors of [`query`](Self::query) for an event that
    /// was last recorded in a captured stream.
    ///
    /// # Panics
    /// Resumes the panic of a [host function](crate::Stream::launch_host_fn) that was queued in the stream before the
    /// event was recorded.
    #[inline]
    #[doc(alias = "cuEventSynchronize")]
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
        unsafe { checked::event_synchronize(self.raw) }
    }

    /// Resumes the panic of a host function in the recorded stream.
    #[inline]
    pub(crate) fn resume(&self) {
        let stream = self.stream.load(Ordering::Relaxed);
        if stream != NO_STREAM {
            let last = self.last.load(Ordering::Relaxed);
            host_fn::resume_up_to(last, stream, self.context.as_ref().map(Context::as_raw));
        }
    }

    /// Returns the time from this event to a later one in milliseconds, with a resolution of about half a microsecond
    /// ([`cuEventElapsedTime`](checked::event_elapsed_time)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_HANDLE` if one of the events was not recorded or was created without timing,
    /// `CUDA_ERROR_NOT_READY` if the work before one of them is not done, and the errors of [`query`](Self::query) if
    /// one of them was last recorded in a captured stream.
    #[inline]
    #[doc(alias = "cuEventElapsedTime")]
    #[doc(alias = "cuEventElapsedTime_v2")]
    #[track_caller]
    pub fn elapsed_ms(&self, end: &Self) -> Result<f32> {
        // SAFETY: both handles are live.
        unsafe { checked::event_elapsed_time(self.raw, end.raw) }
    }

    /// Destroys the event ([`cuEventDestroy`](checked::event_destroy)). Dropping does the same.
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuEventDestroy")]
    #[track_caller]
    pub fn destroy(mut self) -> Result<()> {
        // SAFETY: the handle is live, and replaced by null so that `drop` does not use it.
        unsafe { checked::event_destroy(mem::replace(&mut self.raw, core::ptr::null_mut())) }
    }

    /// Takes ownership of an event in `context`.
    ///
    /// # Safety
    /// The handle must be live and belong to that context, and no other code may destroy it.
    #[inline]
    #[must_use]
    pub unsafe fn from_raw(raw: sys::CUevent, context: &Context) -> Self {
        Self::of(raw, Some(context.clone()))
    }

    /// Borrows an event.
    ///
    /// # Safety
    /// The handle must stay valid as long as the returned value.
    #[inline]
    #[must_use]
    pub const unsafe fn borrow_raw<'a>(raw: sys::CUevent) -> Borrowed<'a, Self> {
        Borrowed::new(Self::of(raw, None))
    }
}

handle! {
    [Event] CUevent,
    leaked: "The reference to the context is leaked, so the context stays alive.",
    context: "of the event; `None` for a borrowed event."
}

impl Drop for Event {
    #[inline]
    fn drop(&mut self) {
        if !self.raw.is_null() {
            if let Some(dropping) = dropping() {
                // SAFETY: the handle is live, and this is its last use.
                dropping.done(unsafe { checked::event_destroy(self.raw) });
            }
        }
    }
}

impl Context {
    /// Records the work that is currently queued in all streams of the context: the event is done when that work is
    /// ([`cuCtxRecordEvent`](checked::ctx_record_event)). A wait for the event resumes no panics of host functions.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_HANDLE` for an event of another context, and a
    /// [missing-function error](Error::is_missing_function) if the driver is older than CUDA 12.5.
    #[inline]
    #[doc(alias = "cuCtxRecordEvent")]
    #[track_caller]
    pub fn record_event(&self, event: &Event) -> Result<()> {
        // SAFETY: both handles are live.
        unsafe { checked::ctx_record_event(self.as_raw(), event.raw) }?;
        event.forget_stream();
        Ok(())
    }

    /// Makes future work in all streams of the context wait for an event, which may be of another context
    /// ([`cuCtxWaitEvent`](checked::ctx_wait_event)).
    ///
    /// # Errors
    /// Returns a [missing-function error](Error::is_missing_function) if the driver is older than CUDA 12.5.
    #[inline]
    #[doc(alias = "cuCtxWaitEvent")]
    #[track_caller]
    pub fn wait_event(&self, event: &Event) -> Result<()> {
        // SAFETY: both handles are live.
        unsafe { checked::ctx_wait_event(self.as_raw(), event.raw) }
    }
}

/// Converts the result of a query: `CUDA_ERROR_NOT_READY` means false.
#[inline]
pub(crate) fn done(result: Result<(), Error>) -> Result<bool> {
    match result {
        Ok(()) => Ok(true),
        Err(error) if error.code() == CUresult::CUDA_ERROR_NOT_READY => Ok(false),
        Err(error) => Err(error),
    }
}
