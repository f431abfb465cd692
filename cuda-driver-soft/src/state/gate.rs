//! The gate: checks that the driver is initialised and may be called by this thread in this process.
//!
//! An export passes the gate once, before its body runs. An export that may be called at any time, such as
//! `cuGetErrorName`, does not pass it; of these, `cuInit` and `cuDriverGetVersion` check the process themselves. A call
//! that needs a context also passes [`healthy`], which returns the process's sticky fault.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::sync::{Mutex, PoisonError};

use crate::state::error::{Error, Result};

static INITIALISED: AtomicBool = AtomicBool::new(false);
static FORKED: AtomicBool = AtomicBool::new(false);
static EXITING: AtomicBool = AtomicBool::new(false);
/// The fault that a call has reported, which every later call that needs a context returns; 0 if there is no fault, and
/// [`UNSEEN`] if no call has reported it yet.
static REPORTED: AtomicU32 = AtomicU32::new(0);
/// The value of [`REPORTED`] between a fault and the call that reports it.
const UNSEEN: u32 = u32::MAX;
/// The first fault, for the call that reports it: meaningful while [`REPORTED`] is [`UNSEEN`].
static FAULT: AtomicU32 = AtomicU32::new(0);
/// Number of calls that need a context since that fault.
static BEHIND: AtomicU32 = AtomicU32::new(0);
/// The number of calls that need a context and succeed after a fault before one of them reports it. An H200 reports a
/// fault about 350 ms later in any such call, after some 300 calls 1 ms apart. A number of calls does not depend on the
/// machine's load, as a time would.
const MOST_BEHIND: u32 = 300;

thread_local! {
    static IN_HOST_FUNCTION: Cell<bool> = const { Cell::new(false) };
}

/// Marks this process as a child forked from an initialised one.
#[cfg(unix)]
pub(crate) fn mark_forked() {
    FORKED.store(true, Relaxed);
}

/// Returns true in a child forked from an initialised process.
#[cfg(unix)]
pub(crate) fn is_forked() -> bool {
    FORKED.load(Relaxed)
}

/// Marks this process as running its exit handlers.
#[cfg(unix)]
pub(crate) fn mark_exiting() {
    EXITING.store(true, Relaxed);
}

/// Returns `CUDA_ERROR_DEINITIALIZED` once the process has begun to exit.
pub(crate) fn not_exiting() -> Result<()> {
    if EXITING.load(Relaxed) {
        Err(Error::CUDA_ERROR_DEINITIALIZED)
    } else {
        Ok(())
    }
}

/// Refuses calls in a process that is exiting, and in a forked child of an initialised process.
pub(crate) fn usable_process() -> Result<()> {
    not_exiting()?;
    if FORKED.load(Relaxed) {
        Err(Error::CUDA_ERROR_NOT_INITIALIZED)
    } else {
        Ok(())
    }
}

/// Runs `make` unless the driver is initialised, and marks the driver as initialised if `make` succeeds.
pub(crate) fn initialise(make: impl FnOnce() -> Result<()>) -> Result<()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    if !INITIALISED.load(Acquire) {
        make()?;
        INITIALISED.store(true, Release);
    }
    Ok(())
}

/// Accepts a call that host functions may make, if the driver is initialised.
pub(crate) fn initialised() -> Result<()> {
    usable_process()?;
    if INITIALISED.load(Acquire) {
        Ok(())
    } else {
        Err(Error::CUDA_ERROR_NOT_INITIALIZED)
    }
}

/// Accepts a call that host functions must not make, if the driver is initialised and the calling thread does not run a
/// host function.
pub(crate) fn outside_host_functions() -> Result<()> {
    initialised()?;
    if in_host_function() {
        Err(Error::CUDA_ERROR_NOT_PERMITTED)
    } else {
        Ok(())
    }
}

/// Accepts a call that needs a context, unless a fault was reported: then returns the fault.
pub(crate) fn healthy() -> Result<()> {
    match REPORTED.load(Acquire) {
        0 => Ok(()),
        UNSEEN => behind_a_fault(),
        code => Err(Error(code)),
    }
}

/// Accepts a call after a fault that no call has reported, unless there were [`MOST_BEHIND`] such calls: then reports
/// the fault.
#[cold]
fn behind_a_fault() -> Result<()> {
    if BEHIND.fetch_add(1, Relaxed) < MOST_BEHIND {
        return Ok(());
    }
    let fault = Error(FAULT.load(Relaxed));
    report(fault);
    Err(fault)
}

/// Notes the first fault, which queries and synchronisations report, and other calls once there were many of them.
pub(crate) fn note_fault(fault: Error) {
    FAULT.store(fault.0, Relaxed);
    // A fault that was reported stays. The `Release` order makes `FAULT` visible to threads that read the new value.
    let _ = REPORTED.compare_exchange(0, UNSEEN, Release, Relaxed);
}

/// Makes this fault the result of later calls.
pub(crate) fn report(fault: Error) {
    REPORTED.store(fault.0, Relaxed);
}

/// Returns true if the calling thread is running a host function, in which most calls are not permitted.
pub(crate) fn in_host_function() -> bool {
    IN_HOST_FUNCTION.get()
}

/// Marks the calling thread permanently as the thread that runs host functions.
pub(crate) fn enter_host_functions() {
    IN_HOST_FUNCTION.set(true);
}

/// Runs a host function on a thread that also does other work.
pub(crate) fn as_host_function(function: impl FnOnce()) {
    let before = IN_HOST_FUNCTION.replace(true);
    function();
    IN_HOST_FUNCTION.set(before);
}
