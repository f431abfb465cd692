//! Work of the device: what tasks of the scheduler do, and why they fail.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use crate::state::error::Error;

/// A task's sequence number, from 1; never reused. 0 is a task that is always done.
pub(crate) type TaskId = u64;

/// Work that several threads may do at once, in pieces: a kernel.
pub(crate) trait Divisible: Send + Sync {
    /// Does a bounded piece; false if there was nothing to take.
    fn piece(&self) -> bool;
    /// All of it is done, or it has failed; no thread is at work on it any more. Once it is, it stays so.
    fn finished(&self) -> bool;
    /// Its fault, once finished.
    fn fault(&self) -> Option<Fault>;
    /// Takes what it has printed, if that is at least so many bytes.
    fn take_text(&self, at_least: usize) -> Vec<u8> {
        let _ = at_least;
        Vec::new()
    }
}

/// Why work failed.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    /// The code that calls answer from now on.
    pub(crate) code: Error,
    /// What the log says.
    pub(crate) message: String,
    /// What goes to standard error whether or not there is a log: a failed assertion.
    pub(crate) stderr: Option<String>,
}

/// What a task of the scheduler does.
pub(crate) enum Work {
    /// Nothing: it joins what it waits for.
    Join,
    /// Notes the time at which all that it waits for is done.
    Stamp(Arc<OnceLock<Instant>>),
    /// A copy or a fill: one thread runs it, without waiting for anything. Dropped after a fault.
    Run(Box<dyn FnOnce() -> Result<(), Fault> + Send>),
    /// A kernel, started by the thread that takes it.
    Kernel(Box<dyn FnOnce() -> Arc<dyn Divisible> + Send>),
    /// A host function. It is told the code of the fault that happened before, 0 if none.
    Host(Box<dyn FnOnce(u32) + Send>),
    /// Nothing, once a condition holds that the host, or any other work, may make true without a word.
    Until(Condition),
}

/// What is asked until it says yes.
pub(crate) type Condition = Box<dyn FnMut() -> Result<bool, Fault> + Send>;

/// Work that takes longer than waking a sleeping thread, in nanoseconds.
pub(crate) const WORTH_WAKING: u64 = 50_000;
