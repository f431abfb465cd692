//! Recording events in streams.

use super::Stream;
use crate::{Event, Result, checked};

impl Event {
    /// Records the work that a stream has at this moment: the event is done when that is. What was recorded before is
    /// forgotten ([`cuEventRecord`](checked::event_record)).
    ///
    /// # Errors
    /// 400 for a stream of another context.
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
