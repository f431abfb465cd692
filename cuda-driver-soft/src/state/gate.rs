//! The gate that every call passes: whether the driver may be called, by this thread, in this process.
//!
//! An export asks it once, before its body runs, and the rooms below it do not ask again. A call that works in a context
//! asks [`healthy`] besides: after a fault was reported, the fault is its answer.

use std::cell::Cell;
use std::sync::atomic::{
    AtomicBool, AtomicU32, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};
use std::sync::{Mutex, PoisonError};

use crate::state::error::{Error, Result};

static INITIALISED: AtomicBool = AtomicBool::new(false);
static FORKED: AtomicBool = AtomicBool::new(false);
static EXITING: AtomicBool = AtomicBool::new(false);
/// The fault that a call has reported, 0 if none has: from then on it is the answer to every call that works in a context.
static REPORTED: AtomicU32 = AtomicU32::new(0);

thread_local! {
    static IN_HOST_FUNCTION: Cell<bool> = const { Cell::new(false) };
}

/// Marks this process as the child of an initialised one.
#[cfg(unix)]
pub(crate) fn mark_forked() {
    FORKED.store(true, Relaxed);
}

/// Marks this process as one that runs its exit handlers.
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

/// Refuses a process that exits, and the child of an initialised process.
pub(crate) fn usable_process() -> Result<()> {
    not_exiting()?;
    if FORKED.load(Relaxed) {
        Err(Error::CUDA_ERROR_NOT_INITIALIZED)
    } else {
        Ok(())
    }
}

/// Runs `make` if the driver is not initialised yet; if it succeeds, the driver is.
pub(crate) fn initialise(make: impl FnOnce() -> Result<()>) -> Result<()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    if !INITIALISED.load(Acquire) {
        make()?;
        INITIALISED.store(true, Release);
    }
    Ok(())
}

/// Lets a call pass that is permitted in host functions too.
pub(crate) fn initialised() -> Result<()> {
    usable_process()?;
    if INITIALISED.load(Acquire) {
        Ok(())
    } else {
        Err(Error::CUDA_ERROR_NOT_INITIALIZED)
    }
}

/// Lets a call pass that is not permitted in host functions.
pub(crate) fn outside_host_functions() -> Result<()> {
    initialised()?;
    if in_host_function() {
        Err(Error::CUDA_ERROR_NOT_PERMITTED)
    } else {
        Ok(())
    }
}

/// Lets a call pass that works in a context: the answer is the fault, once one was reported.
pub(crate) fn healthy() -> Result<()> {
    match REPORTED.load(Relaxed) {
        0 => Ok(()),
        code => Err(Error(code)),
    }
}

/// Notes that a call reports this fault.
pub(crate) fn report(fault: Error) {
    REPORTED.store(fault.0, Relaxed);
}

/// Returns true if the calling thread is inside a host function, where most calls are not permitted.
pub(crate) fn in_host_function() -> bool {
    IN_HOST_FUNCTION.get()
}

/// Makes the calling thread the one that runs host functions, for good.
pub(crate) fn enter_host_functions() {
    IN_HOST_FUNCTION.set(true);
}

/// Runs a host function in a thread that does other work as well.
pub(crate) fn as_host_function(function: impl FnOnce()) {
    let before = IN_HOST_FUNCTION.replace(true);
    function();
    IN_HOST_FUNCTION.set(before);
}
