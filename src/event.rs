//! Events: points in streams.

use core::mem;
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::error::{Error, dropping};
use crate::sys::{self, CUresult};
use crate::{Borrowed, Context, Result, checked, host_fn};

/// An event: a point in a stream that can be waited for, by the host or by other streams, and whose time can be taken.
///
/// ```no_run
/// # use cuda_driver::{Context, Device, Event, Stream};
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
    /// The stream that it was last recorded in, as a number; [`NO_STREAM`] at first.
    stream: AtomicUsize,
}

/// No stream's handle.
const NO_STREAM: usize = usize::MAX;

// SAFETY: the driver takes an event's handle on every thread.
unsafe impl Send for Event {}
// SAFETY: as above; the driver locks what it shares.
unsafe impl Sync for Event {}

impl Event {
    #[inline]
    const fn of(raw: sys::CUevent, context: Option<Context>) -> Self {
        Self {
            raw,
            context,
            stream: AtomicUsize::new(NO_STREAM),
        }
    }

    /// Makes an event with timing ([`cuEventCreate`](checked::event_create)).
    ///
    /// # Errors
    /// 2 without memory for it.
    #[inline]
    #[doc(alias = "cuEventCreate")]
    #[track_caller]
    pub fn new(context: &Context) -> Result<Self> {
        Self::with_flags(context, sys::CUevent_flags::CU_EVENT_DEFAULT)
    }

    /// The same with flags: an event with `CU_EVENT_DISABLE_TIMING` is cheaper ([`cuEventCreate`](checked::event_create)).
    ///
    /// # Errors
    /// 1 for flags that do not go together.
    #[inline]
    #[doc(alias = "cuEventCreate")]
    #[track_caller]
    pub fn with_flags(context: &Context, flags: sys::CUevent_flags) -> Result<Self> {
        let _current = context.enter()?;
        // SAFETY: the driver checks the flags.
        let raw = unsafe { checked::event_create(flags.0) }?;
        Ok(Self::of(raw, Some(context.clone())))
    }

    /// Notes the stream that the event was recorded in.
    #[inline]
    pub(crate) fn set_stream(&self, stream: sys::CUstream) {
        self.stream.store(stream.addr(), Ordering::Relaxed);
    }

    /// Whether what was recorded is done; also if nothing was recorded ([`cuEventQuery`](checked::event_query)).
    ///
    /// # Errors
    /// A fault of earlier work.
    #[inline]
    #[doc(alias = "cuEventQuery")]
    #[track_caller]
    pub fn query(&self) -> Result<bool> {
        // SAFETY: the handle is live.
        done(unsafe { checked::event_query(self.raw) })
    }

    /// Waits until what was recorded is done ([`cuEventSynchronize`](checked::event_synchronize)).
    ///
    /// # Errors
    /// A fault of the work that was waited for.
    ///
    /// # Panics
    /// With what a [host function](crate::Stream::launch_host_fn) of the stream panicked with.
    #[inline]
    #[doc(alias = "cuEventSynchronize")]
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
        unsafe { checked::event_synchronize(self.raw) }
    }

    /// Panics with what a host function of the recorded stream panicked with.
    #[inline]
    pub(crate) fn resume(&self) {
        let stream = self.stream.load(Ordering::Relaxed);
        if stream != NO_STREAM {
            host_fn::resume_of_stream(stream, self.context.as_ref().map(Context::as_raw));
        }
    }

    /// The time from this event to a later one, in milliseconds, to about half a microsecond
    /// ([`cuEventElapsedTime`](checked::event_elapsed_time)).
    ///
    /// # Errors
    /// 400 if one of them was not recorded or was made without timing, 600 if one is not done yet.
    #[inline]
    #[doc(alias = "cuEventElapsedTime")]
    #[track_caller]
    pub fn elapsed_ms(&self, end: &Self) -> Result<f32> {
        // SAFETY: both handles are live.
        unsafe { checked::event_elapsed_time(self.raw, end.raw) }
    }

    /// Destroys the event ([`cuEventDestroy`](checked::event_destroy)); dropping does the same.
    ///
    /// # Errors
    /// A fault of earlier work.
    #[inline]
    #[doc(alias = "cuEventDestroy")]
    #[track_caller]
    pub fn destroy(mut self) -> Result<()> {
        // SAFETY: the handle is live, and null from here on.
        unsafe { checked::event_destroy(mem::replace(&mut self.raw, core::ptr::null_mut())) }
    }

    /// C's handle, live as long as `self`.
    #[inline]
    #[must_use]
    pub const fn as_raw(&self) -> sys::CUevent {
        self.raw
    }

    /// Takes over an event that C made in `context`.
    ///
    /// # Safety
    /// The handle is live, of that context, and nobody else destroys it.
    #[inline]
    #[must_use]
    pub unsafe fn from_raw(raw: sys::CUevent, context: &Context) -> Self {
        Self::of(raw, Some(context.clone()))
    }

    /// An event that belongs to someone else.
    ///
    /// # Safety
    /// The handle stays live as long as the value.
    #[inline]
    #[must_use]
    pub const unsafe fn borrow_raw<'a>(raw: sys::CUevent) -> Borrowed<'a, Self> {
        Borrowed::new(Self::of(raw, None))
    }

    /// Gives the event away; the context that it needs is kept alive for good.
    #[inline]
    #[must_use]
    pub fn into_raw(self) -> sys::CUevent {
        let raw = self.raw;
        mem::forget(self);
        raw
    }

    /// The context that the event was made in, if it is known.
    #[inline]
    #[must_use]
    pub const fn context(&self) -> Option<&Context> {
        self.context.as_ref()
    }
}

impl Drop for Event {
    #[inline]
    fn drop(&mut self) {
        if !self.raw.is_null() {
            // SAFETY: the handle is live, and this is its last use.
            dropping().done(unsafe { checked::event_destroy(self.raw) });
        }
    }
}

/// What a query says: 600 is an answer, not a failure.
#[inline]
pub(crate) fn done(result: Result<(), Error>) -> Result<bool> {
    match result {
        Ok(()) => Ok(true),
        Err(error) if error.code() == CUresult::CUDA_ERROR_NOT_READY => Ok(false),
        Err(error) => Err(error),
    }
}
