//! Recording events in streams.

use super::Stream;
use crate::{Event, Result, checked, sys};

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

    /// Records the work that is currently queued in a stream, with flags
    /// ([`cuEventRecordWithFlags`](checked::event_record_with_flags)). In a capture, `CU_EVENT_RECORD_EXTERNAL` adds a
    /// node that records the event in each launch of the graph.
    ///
    /// # Safety
    /// If a node was added, the event must stay alive as long as the graph and everything made from it: pass an `Arc`
    /// of it to [`Graph::keep`](crate::Graph::keep).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_HANDLE` for a stream of another context, and `CUDA_ERROR_INVALID_VALUE` for unknown
    /// flags.
    #[inline]
    #[doc(alias = "cuEventRecordWithFlags")]
    #[track_caller]
    pub unsafe fn record_with_flags(&self, stream: &Stream, flags: sys::CUevent_record_flags) -> Result<()> {
        // SAFETY: both handles are live; the rest is upheld by the caller.
        unsafe { checked::event_record_with_flags(self.as_raw(), stream.as_raw(), flags.0) }?;
        self.set_stream(stream.as_raw());
        Ok(())
    }
}
