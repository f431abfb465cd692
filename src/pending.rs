//! Values that queued work still uses.

use core::fmt;
use core::mem::{self, ManuallyDrop};

use crate::error::dropping;
use crate::{Error, Event, Result, Stream};

/// A value that queued work still uses. [`wait`](Self::wait) returns it when the work is done.
///
/// Dropping waits for the work and drops the value; if the wait fails, it leaks the value. `mem::forget` leaks the
/// value, too, so that the work never accesses freed memory.
#[derive(Debug)]
#[must_use = "dropping a pending value waits for the work"]
pub struct Pending<T> {
    value: ManuallyDrop<T>,
    event: Event,
    /// True if `drop` must neither wait nor drop the value, because the value was moved out or leaked, or the event was
    /// not recorded.
    settled: bool,
}

impl<T> Pending<T> {
    /// Wraps a value that queued work in `stream` uses, and records `event` after that work.
    #[inline]
    #[track_caller]
    pub(crate) fn after(value: T, event: Event, stream: &Stream) -> Result<Self, QueueError<T>> {
        let mut pending = Self {
            value: ManuallyDrop::new(value),
            event,
            // An event that was not recorded counts as done, so `drop` must not use it, even if an interposer panics.
            settled: true,
        };
        let work = Unfinished(&pending.event);
        if let Err(error) = pending.event.record(stream) {
            // The work is queued, but no event marks its end: wait for the stream instead. If that fails, leak the
            // value.
            let value = stream.wait().is_ok().then(|| {
                mem::forget(work);
                // SAFETY: the work is done, and `settled` keeps `drop` from using the value again.
                unsafe { ManuallyDrop::take(&mut pending.value) }
            });
            return Err(QueueError { error, value });
        }
        mem::forget(work);
        pending.settled = false;
        Ok(pending)
    }

    /// Waits for the work and returns the value ([`cuEventSynchronize`](crate::checked::event_synchronize)).
    ///
    /// # Errors
    /// Returns an error from the work that was waited for. The value is then leaked, because the work may still use it.
    ///
    /// # Panics
    /// Same as [`Event::synchronize`].
    #[inline]
    #[doc(alias = "cuEventSynchronize")]
    #[track_caller]
    pub fn wait(mut self) -> Result<T> {
        self.settled = true;
        let work = Unfinished(&self.event);
        self.event.wait()?;
        mem::forget(work);
        // SAFETY: `settled` keeps `drop` from using the value again.
        let value = unsafe { ManuallyDrop::take(&mut self.value) };
        self.event.resume();
        Ok(value)
    }

    /// Returns true if the work is done ([`cuEventQuery`](crate::checked::event_query)).
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuEventQuery")]
    #[track_caller]
    pub fn is_done(&self) -> Result<bool> {
        self.event.query()
    }
}

/// Guard: work before the event may never end, so dropping the guard keeps the event's context alive forever.
struct Unfinished<'a>(&'a Event);

impl Drop for Unfinished<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.leak_context();
    }
}

impl<T> Drop for Pending<T> {
    #[inline]
    fn drop(&mut self) {
        if self.settled {
            return;
        }
        let Some(dropping) = dropping() else { return };
        let work = Unfinished(&self.event);
        let waited = self.event.wait();
        let is_done = waited.is_ok();
        if is_done {
            mem::forget(work);
        }
        dropping.done(waited);
        if is_done {
            // SAFETY: the work is done, and the value is not used again.
            unsafe { ManuallyDrop::drop(&mut self.value) };
        }
    }
}

/// The error of a call that queues work or records its end, with the value that the work uses, such as the buffers of a
/// copy. If the error has a value, the work was not queued or is done.
///
/// `?` converts it to an [`Error`] and drops the value.
///
/// ```
/// use cuda_driver::{DeviceBuffer, HostBuffer, Stream};
///
/// fn copy(stream: &Stream, host: HostBuffer<f32>, device: DeviceBuffer<f32>) -> HostBuffer<f32> {
///     match stream.upload(host, device) {
///         Ok(pending) => pending.wait().expect("no fault").0,
///         Err(error) => {
///             eprintln!("{error}");
///             error.into_value().expect("no fault").0
///         }
///     }
/// }
/// # use cuda_driver::{Context, Device};
/// # cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software).unwrap().install().unwrap();
/// # cuda_driver::init()?;
/// # let context = Context::create(Device::first()?)?;
/// # let stream = Stream::new(&context)?;
/// # for len in [2, 3] {
/// #     let host = HostBuffer::from_slice(&context, &[1.0, 2.0])?;
/// #     assert_eq!(copy(&stream, host, DeviceBuffer::alloc(&context, len)?)[..], [1.0, 2.0]);
/// # }
/// # Ok::<(), cuda_driver::Error>(())
/// ```
#[must_use]
pub struct QueueError<T> {
    error: Error,
    value: Option<T>,
}

impl<T> QueueError<T> {
    /// Returns the error for work that was not queued.
    #[inline]
    pub(crate) const fn before(error: Error, value: T) -> Self {
        Self {
            error,
            value: Some(value),
        }
    }

    /// Returns the error of the call that queues the work, whose end `event` would have marked. If the code may be from
    /// earlier work, the work may be queued even so, and the value is leaked.
    #[inline]
    pub(crate) fn of_call(error: Error, value: T, event: &Event) -> Self {
        let mut value = Some(value);
        if !error.is_refusal() {
            mem::forget(value.take());
            event.leak_context();
        }
        Self { error, value }
    }

    /// Returns the error of the call that failed.
    #[inline]
    pub const fn error(&self) -> Error {
        self.error
    }

    /// Returns the value; `None` if the work may still use it, because the error may be from earlier work or the wait
    /// for the work failed. In that case the value is leaked.
    #[inline]
    #[must_use]
    pub fn into_value(self) -> Option<T> {
        self.value
    }
}

impl<T> From<QueueError<T>> for Error {
    #[inline]
    fn from(error: QueueError<T>) -> Self {
        error.error
    }
}

impl<T> fmt::Display for QueueError<T> {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.error, f)
    }
}

impl<T> fmt::Debug for QueueError<T> {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `unwrap` prints errors with `Debug`.
        fmt::Display::fmt(&self.error, f)
    }
}

impl<T> core::error::Error for QueueError<T> {}
