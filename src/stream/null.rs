//! Waits for the null stream.

use core::ptr;

use crate::error::dropping;
use crate::sys::CUstreamCaptureMode;
use crate::{Result, checked};

/// Waits for the null stream of the current context after a synchronous copy between contexts.
///
/// While the thread captures another stream, the copy is not captured, but the capture's mode may forbid the wait, which
/// would invalidate the capture and return before the copy is done. The wait is therefore made in relaxed mode.
#[inline]
#[track_caller]
pub(crate) fn synchronize_null() -> Result<()> {
    let _relaxed = Relaxed::new();
    // SAFETY: the null stream of the context that is current.
    unsafe { checked::stream_synchronize(ptr::null_mut()) }
}

/// Guard: the thread's capture mode is relaxed until the guard is dropped.
struct Relaxed {
    /// The previous mode; `None` if it could not be changed.
    before: Option<CUstreamCaptureMode>,
}

impl Relaxed {
    #[inline]
    #[track_caller]
    fn new() -> Self {
        let mut mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: no preconditions.
        let changed = unsafe { checked::thread_exchange_stream_capture_mode(&mut mode) };
        Self {
            before: changed.ok().map(|()| mode),
        }
    }
}

impl Drop for Relaxed {
    #[inline]
    fn drop(&mut self) {
        if let (Some(mut mode), Some(dropping)) = (self.before, dropping()) {
            // SAFETY: no preconditions.
            dropping.done(unsafe { checked::thread_exchange_stream_capture_mode(&mut mode) });
        }
    }
}
