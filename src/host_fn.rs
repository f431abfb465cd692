//! Host functions in streams: closures that the driver calls, and their panics.
//!
//! A panic must not unwind through the driver. It is stored, and resumes when this crate next synchronises with the
//! stream, with an event that was recorded in it afterwards, or with the context.

use core::ffi::c_void;
use core::mem::{self, ManuallyDrop};
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, PoisonError};

use crate::{Result, checked, sys};

/// The addresses of the stream and the context in which a host function runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct StreamId {
    stream: usize,
    context: usize,
}

/// A panic that was not resumed yet.
struct StoredPanic {
    id: StreamId,
    /// The number of the task that panicked; 0 for a graph's host function.
    number: usize,
    payload: Box<dyn Any + Send>,
}

/// Replaces the address of a destroyed stream in a [`StreamId`]: only waits for the context still resume the panic.
const DESTROYED: usize = usize::MAX;

/// Replaces the address of the stream in the [`StreamId`] of a graph's host function. The stream of the launch is not
/// known, so a wait for any stream of the context resumes the panic.
const GRAPH: usize = usize::MAX - 1;

/// Panics of host functions that were not resumed yet.
///
/// Statics are never dropped. With `ManuallyDrop`, here and below, this crate does not contain the unused code to drop
/// the panics and the functions.
static PANICS: Mutex<ManuallyDrop<Vec<StoredPanic>>> = Mutex::new(ManuallyDrop::new(Vec::new()));

/// The length of [`PANICS`]. It is nearly always 0, and then the lock is not taken.
static PANIC_COUNT: AtomicUsize = AtomicUsize::new(0);

/// A queued host function.
struct Task {
    number: usize,
    id: StreamId,
    function: Box<dyn FnOnce() + Send>,
}

/// Functions that were queued and did not run yet, in the order of their numbers. The driver gets the number instead of
/// a pointer: even if it calls a function twice, or calls one although queueing failed, nothing is freed twice.
static TASKS: Mutex<ManuallyDrop<VecDeque<Task>>> = Mutex::new(ManuallyDrop::new(VecDeque::new()));

/// The number of the newest task. It changes under the lock of [`TASKS`].
static LAST_NUMBER: AtomicUsize = AtomicUsize::new(0);

/// Stores a task and returns its number.
#[inline]
fn store_task(id: StreamId, function: Box<dyn FnOnce() + Send>) -> usize {
    let mut tasks = TASKS.lock().unwrap_or_else(PoisonError::into_inner);
    let number = LAST_NUMBER.fetch_add(1, Ordering::Relaxed) + 1;
    tasks.push_back(Task { number, id, function });
    number
}

/// Removes and returns a task; `None` if it was removed before.
#[inline]
fn take_task(number: usize) -> Option<Task> {
    // The caller drops the task after the lock is released, because dropping it may take the lock.
    let mut tasks = TASKS.lock().unwrap_or_else(PoisonError::into_inner);
    let at = tasks.binary_search_by_key(&number, |task| task.number).ok()?;
    tasks.remove(at)
}

/// Runs a task if it did not run yet. The driver calls this function with the task's number.
#[inline]
unsafe extern "system" fn run(number: *mut c_void) {
    let Some(Task { number, id, function }) = take_task(number.addr()) else {
        return;
    };
    // Unwind safe, because the function is consumed.
    if let Err(payload) = catch_unwind(AssertUnwindSafe(function)) {
        with_panics(|panics| panics.push(StoredPanic { id, number, payload }));
    }
}

/// Queues a function in a stream of a context, which is not being captured. Without a context, the driver is queried for it. Without a mode, the
/// function is queued with `cuLaunchHostFunc`, which every driver has.
#[inline]
#[track_caller]
pub(crate) fn launch<F: FnOnce() + Send + 'static>(
    stream: sys::CUstream,
    context: Option<sys::CUcontext>,
    mode: Option<sys::CUhostTaskSyncMode>,
    function: F,
) -> Result<()> {
    let context = match context {
        Some(context) => context,
        // If the driver does not return the context, a panic is identified by its stream only.
        // SAFETY: the stream is live, or a default one.
        None => unsafe { checked::stream_get_ctx(stream) }.unwrap_or(ptr::null_mut()),
    };
    let id = StreamId {
        stream: stream.addr(),
        context: context.addr(),
    };
    let number = store_task(id, Box::new(function));
    let data = ptr::without_provenance_mut(number);
    // SAFETY: `run` may be called with any number, on any thread and any number of times: the function is `Send`, and
    // the first call removes it from the table.
    let result = unsafe {
        match mode {
            None => checked::launch_host_func(stream, Some(run), data),
            Some(mode) => checked::launch_host_func_v2(stream, Some(run), data, mode.0),
        }
    };
    if result.is_err() {
        // The function may be queued despite an error from earlier work. Its call then finds no task.
        drop(take_task(number));
    }
    result
}

/// Stores the panic of a host function in a graph, whose context has this address.
#[inline]
pub(crate) fn panicked_in_graph(context: usize, payload: Box<dyn Any + Send>) {
    let id = StreamId { stream: GRAPH, context };
    // A wait for any event that was recorded in a stream of the context resumes it, so it counts as older than all
    // events.
    let number = 0;
    with_panics(|panics| panics.push(StoredPanic { id, number, payload }));
}

/// Returns the number of the newest host function. Later ones have greater numbers.
#[inline]
pub(crate) fn last_number() -> usize {
    LAST_NUMBER.load(Ordering::Relaxed)
}

/// Resumes a panic of a host function in a stream. Called after waits for the stream.
#[inline]
#[track_caller]
pub(crate) fn resume_of_stream(stream: usize, context: Option<sys::CUcontext>) {
    resume_up_to(usize::MAX, stream, context);
}

/// Resumes a panic of a host function in a stream if the function's number is at most `last`. Called after waits for an
/// event that was recorded when `last` was the newest function: a later one may be in another stream with the same
/// handle.
#[inline]
#[track_caller]
pub(crate) fn resume_up_to(last: usize, stream: usize, context: Option<sys::CUcontext>) {
    if PANIC_COUNT.load(Ordering::Acquire) == 0 {
        return;
    }
    let context = match context {
        Some(context) => Some(context),
        // The handles of default streams are the same in every context.
        None if stream <= sys::CU_STREAM_PER_THREAD.addr() => {
            // SAFETY: no preconditions.
            unsafe { checked::ctx_get_current() }.ok()
        }
        None => None,
    };
    resume(|panic| {
        let StreamId {
            stream: of,
            context: within,
        } = panic.id;
        (of == stream || of == GRAPH) && panic.number <= last && context.is_none_or(|context| within == context.addr())
    });
}

/// Resumes a panic of a host function in any stream of a context. Called after waits for the context.
#[inline]
#[track_caller]
pub(crate) fn resume_of_context(context: sys::CUcontext) {
    if PANIC_COUNT.load(Ordering::Acquire) == 0 {
        return;
    }
    resume(|panic| panic.id.context == context.addr());
}

#[inline]
#[track_caller]
fn resume(matches: impl Fn(&StoredPanic) -> bool) {
    // A second panic while unwinding would abort the process.
    if std::thread::panicking() {
        return;
    }
    let found = with_panics(|panics| {
        let at = panics.iter().position(matches)?;
        Some(panics.remove(at).payload)
    });
    if let Some(payload) = found {
        resume_unwind(payload);
    }
}

/// Moves the panics of a stream to its context, because the stream is destroyed or its handle was reused by a new
/// stream.
#[inline]
pub(crate) fn stream_destroyed(stream: sys::CUstream, context: Option<sys::CUcontext>) {
    if PANIC_COUNT.load(Ordering::Acquire) == 0 {
        return;
    }
    with_panics(|panics| {
        for StoredPanic { id, .. } in panics {
            let is_in_context = context.is_none_or(|context| id.context == context.addr());
            if is_in_context && id.stream == stream.addr() {
                id.stream = DESTROYED;
            }
        }
    });
}

/// Drops the panics of a context that is about to be destroyed, or of an earlier one whose handle a new context has:
/// host functions may run, and panic, while the driver destroys a context.
///
/// Not called after the destruction, because another thread may already use a new context with the same handle.
#[inline]
pub(crate) fn forget_context(context: sys::CUcontext) {
    if PANIC_COUNT.load(Ordering::Acquire) == 0 {
        return;
    }
    // The payloads are dropped after the lock is released, because they may run any code.
    let dropped = with_panics(|panics| {
        let (dropped, kept): (Vec<StoredPanic>, _) =
            panics.drain(..).partition(|panic| panic.id.context == context.addr());
        *panics = kept;
        dropped
    });
    for StoredPanic { payload, .. } in dropped {
        discard(payload);
    }
}

/// Drops a payload. If that panics, the payload of the new panic is leaked, because the caller may be a `Drop`, and
/// dropping that payload may panic, too.
#[inline]
fn discard(payload: Box<dyn Any + Send>) {
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        mem::forget(again);
    }
}

#[inline]
fn with_panics<T>(change: impl FnOnce(&mut Vec<StoredPanic>) -> T) -> T {
    let mut panics = PANICS.lock().unwrap_or_else(PoisonError::into_inner);
    let result = change(&mut panics);
    PANIC_COUNT.store(panics.len(), Ordering::Release);
    result
}
