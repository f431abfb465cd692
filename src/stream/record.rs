//! Recording events in streams.

use super::Stream;
use crate::{Event, Result, checked};

impl Event {
    /// Records the work that is currently queued in a stream: the event is done when that work is. Replaces an earlier
    /// recording ([`cuEventRecord`](checked::event_record)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_HANDLE` for a stream of another context.
    #[inline]
    #[doc(alias = "cuEventRecord")]
    #[track_caller]
    pub fn record(&self, stream: &Stream) -> Result<()> {
        // SAFETY: both handles are live.
        unsafe { checked::event_record(self.as_raw(), stream.as_raw()) }?;
        self.set_stream(stream.as_raw());
        Ok(())
    }
}
