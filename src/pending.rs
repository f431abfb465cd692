//! What queued work still uses.

use core::fmt;
use core::mem::{self, ManuallyDrop};

use crate::error::dropping;
use crate::{Error, Event, Result, Stream};

/// A value that queued work still uses; it comes back when the work is done.
///
/// Dropping it waits. Forgetting it leaks the value, so that the work never meets memory that is gone.
#[derive(Debug)]
#[must_use = "dropping it at once waits for the work"]
pub struct Pending<T> {
    value: ManuallyDrop<T>,
    event: Event,
    /// Whether the value may be used, or is gone.
    settled: bool,
}

impl<T> Pending<T> {
    /// The value that work in `stream` uses; `event` is recorded behind that work.
    #[track_caller]
    pub(crate) fn after(value: T, event: Event, stream: &Stream) -> Result<Self, QueueError<T>> {
        let mut pending = Self {
            value: ManuallyDrop::new(value),
            event,
            // Until the event is recorded it would say that the work is done, also to a drop while a hook's panic passes.
            settled: true,
        };
        if let Err(error) = pending.event.record(stream) {
            // The work is queued and no event tells when it is done: the stream itself can. If that fails too, the value
            // stays where it is for good.
            let is_done = stream.wait().is_ok();
            // SAFETY: the work is done, and `settled` keeps `drop` from using the value again.
            let value = is_done.then(|| unsafe { ManuallyDrop::take(&mut pending.value) });
            return Err(QueueError { error, value });
        }
        pending.settled = false;
        Ok(pending)
    }

    /// Waits for the work and gives the value back ([`cuEventSynchronize`](crate::checked::event_synchronize)).
    ///
    /// # Errors
    /// A fault of the work that was waited for. The value is then leaked: nobody knows what still uses it.
    ///
    /// # Panics
    /// As [`Event::synchronize`].
    #[doc(alias = "cuEventSynchronize")]
    #[track_caller]
    pub fn wait(mut self) -> Result<T> {
        self.settled = true;
        self.event.wait()?;
        // SAFETY: `settled` keeps `drop` from using it again.
        let value = unsafe { ManuallyDrop::take(&mut self.value) };
        self.event.resume();
        Ok(value)
    }

    /// Whether the work is done ([`cuEventQuery`](crate::checked::event_query)).
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[doc(alias = "cuEventQuery")]
    #[track_caller]
    pub fn is_done(&self) -> Result<bool> {
        self.event.query()
    }
}

impl<T> Drop for Pending<T> {
    fn drop(&mut self) {
        if self.settled {
            return;
        }
        let dropping = dropping();
        let waited = self.event.wait();
        let is_done = waited.is_ok();
        dropping.done(waited);
        if is_done {
            // SAFETY: the work is done, and the value is not used again.
            unsafe { ManuallyDrop::drop(&mut self.value) };
        }
    }
}

/// Work that could not be queued, with the value that it was to use: the buffers of a copy that was refused.
///
/// `?` makes an [`Error`] of it, and frees the value.
///
/// ```no_run
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
/// ```
#[must_use]
pub struct QueueError<T> {
    error: Error,
    value: Option<T>,
}

impl<T> QueueError<T> {
    /// Nothing was queued.
    pub(crate) const fn before(error: Error, value: T) -> Self {
        Self {
            error,
            value: Some(value),
        }
    }

    /// The call that queues failed. Where the code does not refuse the call itself, it may be of earlier work, and nobody
    /// knows whether this was queued all the same.
    pub(crate) fn of_call(error: Error, value: T) -> Self {
        let mut value = Some(value);
        if !error.is_refusal() {
            mem::forget(value.take());
        }
        Self { error, value }
    }

    /// The call that failed.
    pub const fn error(&self) -> Error {
        self.error
    }

    /// The value back; `None` if the work may be under way all the same, after a code that may be of earlier work. The value is
    /// then leaked.
    #[must_use]
    pub fn into_value(self) -> Option<T> {
        self.value
    }
}

impl<T> From<QueueError<T>> for Error {
    fn from(error: QueueError<T>) -> Self {
        error.error
    }
}

impl<T> fmt::Display for QueueError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.error, f)
    }
}

impl<T> fmt::Debug for QueueError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // As with `Error`: `unwrap` prints it.
        fmt::Display::fmt(&self.error, f)
    }
}

impl<T> core::error::Error for QueueError<T> {}
