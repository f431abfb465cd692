//! Host functions in streams: closures that C calls, and what becomes of their panics.
//!
//! A panic must not unwind through the driver. It is kept until a call of this crate waits for the stream, or for the
//! context, and comes out there.

use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, PoisonError};

use crate::refusal::Refusal;
use crate::sys::{self, CUresult, CUstreamCaptureStatus};
use crate::{Error, Result, checked};

/// Where a host function runs: handles, as numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    stream: usize,
    context: usize,
}

/// A panic that waits for someone to tell.
struct Waiting {
    place: Place,
    payload: Box<dyn Any + Send>,
}

/// The stream of a panic whose own stream is gone.
const GONE: usize = usize::MAX;

/// Panics of host functions that nobody was told of yet.
static WAITING: Mutex<Vec<Waiting>> = Mutex::new(Vec::new());

/// How many there are: nearly always none, and then no lock is taken.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// A function and where it runs.
struct Task {
    number: usize,
    place: Place,
    function: Box<dyn FnOnce() + Send>,
}

/// Functions that were queued and did not run yet, in the order of their numbers. The driver is given the number, and no
/// pointer: however often it calls, and whatever a call answered that queued it, there is nothing to be freed twice.
static TASKS: Mutex<Vec<Task>> = Mutex::new(Vec::new());

/// The last number that was given away. It changes under the lock of [`TASKS`].
static LAST: AtomicUsize = AtomicUsize::new(0);

/// Keeps a task, and gives its number.
fn put(place: Place, function: Box<dyn FnOnce() + Send>) -> usize {
    let mut tasks = TASKS.lock().unwrap_or_else(PoisonError::into_inner);
    let number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
    tasks.push(Task {
        number,
        place,
        function,
    });
    number
}

/// Takes a task; `None` if somebody else did.
fn take(number: usize) -> Option<Task> {
    // In a statement of its own: what the task drops may ask for the lock.
    let mut tasks = TASKS.lock().unwrap_or_else(PoisonError::into_inner);
    let at = tasks
        .binary_search_by_key(&number, |task| task.number)
        .ok()?;
    Some(tasks.remove(at))
}

/// Runs a task, if it did not run yet. The driver calls it with the task's number.
unsafe extern "system" fn run(number: *mut c_void) {
    let Some(Task {
        place, function, ..
    }) = take(number.addr())
    else {
        return;
    };
    // Nothing of ours is seen half done afterwards: the function is gone.
    if let Err(payload) = catch_unwind(AssertUnwindSafe(function)) {
        with_waiting(|waiting| waiting.push(Waiting { place, payload }));
    }
}

/// Queues a function in a stream of a context; `None` is one that the driver knows.
#[track_caller]
pub(crate) fn launch<F: FnOnce() + Send + 'static>(
    stream: sys::CUstream,
    context: Option<sys::CUcontext>,
    function: F,
) -> Result<()> {
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
    let context = match context {
        Some(context) => context,
        // Where the driver does not tell, only the stream will.
        // SAFETY: as above.
        None => unsafe { checked::stream_get_ctx(stream) }.unwrap_or(ptr::null_mut()),
    };
    let place = Place {
        stream: stream.addr(),
        context: context.addr(),
    };
    let number = put(place, Box::new(function));
    let data = ptr::without_provenance_mut(number);
    // SAFETY: `run` takes any number, on any thread, and as often as it is called: the function is `Send`, and is taken
    // out of the table by whoever is first.
    let result = unsafe { checked::launch_host_func(stream, Some(run), data) };
    if result.is_err() {
        // An error may be of earlier work, and the call queued all the same: it finds nothing then.
        drop(take(number));
    }
    result
}

/// After a wait for a stream, or for an event of it: panics with what a host function of it panicked with, if one did.
#[track_caller]
pub(crate) fn resume_of_stream(stream: usize, context: Option<sys::CUcontext>) {
    if COUNT.load(Ordering::Acquire) == 0 {
        return;
    }
    let context = match context {
        Some(context) => Some(context),
        // Every context has default streams; the handles of the others say enough.
        // SAFETY: no preconditions.
        None if stream <= sys::CU_STREAM_PER_THREAD.addr() => {
            unsafe { checked::ctx_get_current() }.ok()
        }
        None => None,
    };
    resume(|place| {
        place.stream == stream && context.is_none_or(|context| place.context == context.addr())
    });
}

/// After a wait for a context: panics with what a host function of any of its streams panicked with, if one did.
#[track_caller]
pub(crate) fn resume_of_context(context: sys::CUcontext) {
    if COUNT.load(Ordering::Acquire) == 0 {
        return;
    }
    resume(|waiting| waiting.context == context.addr());
}

#[track_caller]
fn resume(matches: impl Fn(Place) -> bool) {
    // A second panic would end the process, and the first is being told.
    if std::thread::panicking() {
        return;
    }
    let found = with_waiting(|waiting| {
        let at = waiting.iter().position(|waiting| matches(waiting.place))?;
        Some(waiting.remove(at).payload)
    });
    if let Some(payload) = found {
        resume_unwind(payload);
    }
}

/// The stream ends, or ended before its handle was given to another: its panics are told by its context from now on.
pub(crate) fn stream_is_gone(stream: sys::CUstream, context: Option<sys::CUcontext>) {
    if COUNT.load(Ordering::Acquire) == 0 {
        return;
    }
    with_waiting(|waiting| {
        for waiting in waiting {
            let is_of = context.is_none_or(|context| waiting.place.context == context.addr());
            if is_of && waiting.place.stream == stream.addr() {
                waiting.place.stream = GONE;
            }
        }
    });
}

/// The context ends: nobody is left to tell.
pub(crate) fn context_is_gone(context: sys::CUcontext) {
    if COUNT.load(Ordering::Acquire) == 0 {
        return;
    }
    // Dropped when the lock is free: a payload may own anything.
    let _ = with_waiting(|waiting| {
        let (gone, kept) = waiting
            .drain(..)
            .partition(|waiting| waiting.place.context == context.addr());
        *waiting = kept;
        let gone: Vec<Waiting> = gone;
        gone
    });
}

fn with_waiting<T>(change: impl FnOnce(&mut Vec<Waiting>) -> T) -> T {
    let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
    let result = change(&mut waiting);
    COUNT.store(waiting.len(), Ordering::Release);
    result
}
