//! What queued work still uses.

use core::mem::ManuallyDrop;

use crate::error::dropping;
use crate::{Event, Result, Stream};

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
    pub(crate) fn after(value: T, event: Event, stream: &Stream) -> Result<Self> {
        let mut pending = Self {
            value: ManuallyDrop::new(value),
            event,
            // Until the event is recorded it would say that the work is done, also to a drop while a hook's panic passes.
            settled: true,
        };
        if let Err(error) = pending.event.record(stream) {
            // The work is queued and no event tells when it is done: the stream itself can. If that fails too, the value
            // stays where it is for good.
            if stream.wait().is_ok() {
                // SAFETY: the work is done, and the value is not used again.
                unsafe { ManuallyDrop::drop(&mut pending.value) };
            }
            return Err(error);
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
    /// A fault of earlier work.
    ///
    /// # Panics
    /// As [`Event::query`].
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
