//! The work of the scheduler's tasks, and its faults.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use crate::state::error::Error;

/// A task's sequence number, from 1; never reused. 0 is a task that is always done.
pub(crate) type TaskId = u64;

/// Work that several threads may do at once, in pieces: a kernel.
pub(crate) trait Divisible: Send + Sync {
    /// Does a bounded piece. Returns false if there was nothing to do; may also return false after some work, if other
    /// threads have all the work that is left.
    fn piece(&self) -> bool;
    /// Returns true once all of the work is done or has failed. Threads may still be about to return from a piece.
    /// Never becomes false again.
    fn finished(&self) -> bool;
    /// Returns the fault of the work, if the work is finished and has failed.
    fn fault(&self) -> Option<Fault>;
    /// Takes the text that the work has printed, if there are at least `at_least` bytes of it.
    fn take_text(&self, at_least: usize) -> Vec<u8> {
        let _ = at_least;
        Vec::new()
    }
}

/// The error of failed work.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    /// The result code that calls return from now on.
    pub(crate) code: Error,
    /// The text for the log.
    pub(crate) message: String,
    /// Lines that explain the text in the log: the state of the thread.
    pub(crate) details: Vec<String>,
    /// Text for standard error, written even if the log is off: a failed assertion.
    pub(crate) stderr: Option<String>,
}

/// The work of a task.
pub(crate) enum Work {
    /// Does nothing; done when its dependencies are done.
    Join,
    /// Stores the time at which its dependencies are done.
    Stamp(Arc<OnceLock<Instant>>),
    /// A copy, a fill or other short work. One thread runs it, without waiting for anything. After a fault, it is
    /// dropped without running.
    Run(Box<dyn FnOnce() -> Result<(), Fault> + Send>),
    /// A kernel. The thread that takes it starts it. After a fault, it is dropped without starting.
    Kernel(Box<dyn FnOnce() -> Arc<dyn Divisible> + Send>),
    /// A host function. Its argument is the result code of an earlier fault, 0 if there is none.
    Host(Box<dyn FnOnce(u32) + Send>),
    /// Decides which work follows: it submits tasks, and is done when they and more work after them are done. One
    /// thread runs it, without waiting for anything. After a fault, it is dropped without running.
    Then(Box<dyn FnOnce() -> Result<Continuation, Fault> + Send>),
    /// Does nothing; done once a condition holds, which is polled, or after a fault. The host or other work may make
    /// the condition true without a notification.
    Until(Condition),
}

/// The rest of a task whose work decides what follows.
pub(crate) struct Continuation {
    /// Tasks to wait for.
    pub(crate) after: Vec<TaskId>,
    /// The work after them.
    pub(crate) work: Work,
}

/// A condition that is polled until it returns true.
pub(crate) type Condition = Box<dyn FnMut() -> Result<bool, Fault> + Send>;

/// The duration, in nanoseconds, from which waking a sleeping thread pays off.
pub(crate) const WORTH_WAKING: u64 = 50_000;
