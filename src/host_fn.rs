//! Host functions in streams: closures that C calls, and what becomes of their panics.

use core::ffi::c_void;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, PoisonError};

use crate::refusal::Refusal;
use crate::sys::{self, CUresult, CUstreamCaptureStatus};
use crate::{Error, Result, checked};

/// A panic that waits for someone to tell, and the stream that it happened in.
struct Waiting {
    stream: usize,
    payload: Box<dyn Any + Send>,
}

/// Panics of host functions that nobody was told of yet.
static WAITING: Mutex<Vec<Waiting>> = Mutex::new(Vec::new());

/// How many there are: nearly always none, and then no lock is taken.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Queues a function in a stream.
#[track_caller]
pub(crate) fn launch<F: FnOnce() + Send + 'static>(
    stream: sys::CUstream,
    function: F,
) -> Result<()> {
    /// A function and the stream that it runs in.
    struct Task<F> {
        stream: usize,
        function: F,
    }

    /// Runs and frees a task.
    ///
    /// # Safety
    /// `task` is a `Box<Task<F>>` that nobody else uses.
    unsafe extern "system" fn run<F: FnOnce()>(task: *mut c_void) {
        // SAFETY: the caller's.
        let Task { stream, function } = *unsafe { Box::from_raw(task.cast::<Task<F>>()) };
        // Nothing of ours is seen half done afterwards: the function is gone.
        if let Err(payload) = catch_unwind(AssertUnwindSafe(function)) {
            let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.push(Waiting { stream, payload });
            COUNT.store(waiting.len(), Ordering::Release);
        }
    }

    // A captured call would run as often as its graph, and the function can run once.
    // SAFETY: the stream is live, or a default one.
    let capture = unsafe { checked::stream_is_capturing(stream) }?;
    if capture != CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE {
        return Err(Error::refused(
            CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
            sys::Function::cuLaunchHostFunc,
            Refusal::Captured,
        ));
    }
    let task = Box::into_raw(Box::new(Task {
        stream: stream.addr(),
        function,
    }));
    // SAFETY: `run` is of this task's type and, as nothing is captured, is called at most once, on some thread: the
    // function is `Send`.
    let result =
        unsafe { checked::launch_host_func(stream, Some(run::<F>), task.cast::<c_void>()) };
    if result.is_err() {
        // SAFETY: a call that failed queued nothing.
        drop(unsafe { Box::from_raw(task) });
    }
    result
}

/// Panics with what a host function of a stream panicked with, if one did.
#[track_caller]
pub(crate) fn resume(stream: sys::CUstream) {
    if let Some(payload) = take(stream) {
        resume_unwind(payload);
    }
}

/// Forgets the panics of a stream that ends, or of one that ended before its handle was given to another.
pub(crate) fn forget(stream: sys::CUstream) {
    while take(stream).is_some() {}
}

fn take(stream: sys::CUstream) -> Option<Box<dyn Any + Send>> {
    if COUNT.load(Ordering::Acquire) == 0 {
        return None;
    }
    let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
    let at = waiting
        .iter()
        .position(|waiting| waiting.stream == stream.addr())?;
    let taken = waiting.remove(at);
    COUNT.store(waiting.len(), Ordering::Release);
    Some(taken.payload)
}
