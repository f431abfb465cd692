//! Checks of kernels, and of memory and objects that are not freed: for each thread that holds a [`Checking`], and for
//! the whole process if `CUDA_SOFT_CHECK` is set.

mod leaks;
mod origin;
mod report;

use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use engine::check::{Checker, Checks, Finding};
use engine::memory::address_space;
use host::environment;

/// Number of threads whose [`Session`] checks for races.
static RACE_SESSIONS: AtomicUsize = AtomicUsize::new(0);
/// Number of threads that have a [`Session`].
static SESSIONS: AtomicUsize = AtomicUsize::new(0);
/// Number of threads whose [`Session`] checks for reads of uninitialised memory.
static INIT_SESSIONS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The session of this thread.
    static SESSION: RefCell<Option<Session>> = const { RefCell::new(None) };
}

/// The checks of a thread, from the call of [`check()`] to the end of its [`Checking`].
struct Session {
    checker: Checker,
    /// Allocations and objects that the thread has created since the session began.
    created: leaks::Created,
}

/// Returns the checker of the process; `None` unless `CUDA_SOFT_CHECK` is a valid list of checks. The first call
/// reports an invalid list.
fn of_process() -> Option<&'static Checker> {
    static PROCESS: OnceLock<Option<Checker>> = OnceLock::new();
    PROCESS
        .get_or_init(|| {
            let names = environment::check()?;
            match Checks::parse(&names) {
                Ok(checks) => Some(Checker::reporting(checks, report::write)),
                Err(error) => {
                    report::write_line(&format!("CUDA_SOFT_CHECK: {error}"));
                    None
                }
            }
        })
        .as_ref()
}

/// Returns the checkers for work that this thread submits.
pub(crate) fn of_work() -> Vec<Checker> {
    let process = of_process();
    if SESSIONS.load(Relaxed) == 0 {
        return process.into_iter().cloned().collect();
    }
    let of_thread = SESSION.try_with(|session| session.borrow().as_ref().map(|s| s.checker.clone()));
    let mut checkers: Vec<Checker> = process.into_iter().cloned().chain(of_thread.ok().flatten()).collect();
    let has_init = checkers.iter().any(|checker| checker.checks().contains(Checks::INIT));
    if !has_init && INIT_SESSIONS.load(Relaxed) > 0 {
        // The findings of this checker are not read: it records the memory that the kernel writes, for the sessions of
        // other threads.
        checkers.push(Checker::new(Checks::INIT));
    }
    checkers
}

/// Returns true if the process or a thread checks for races.
pub(crate) fn finds_races() -> bool {
    RACE_SESSIONS.load(Relaxed) > 0 || of_process().is_some_and(|checker| checker.checks().contains(Checks::RACE))
}

/// Records an allocation that a call of this thread has created, and the line of the program that made the call, for
/// the session of the thread and the checker of the process. Does nothing if there is neither. The allocation becomes a
/// possible leak of the process only if the process checks for leaks.
pub(crate) fn note_allocation(address: u64) {
    let process = of_process();
    if SESSIONS.load(Relaxed) == 0 && process.is_none() {
        return;
    }
    let Some(allocation) = address_space().find(address) else {
        return;
    };
    let noted = SESSION.try_with(|session| match session.borrow_mut().as_mut() {
        Some(session) => {
            session.created.add(&allocation);
            true
        }
        None => false,
    });
    if let Some(checker) = process
        && checker.checks().contains(Checks::LEAKS)
    {
        leaks::of_process().add(&allocation);
    }
    if (noted.unwrap_or(false) || process.is_some())
        && let Some(origin) = origin::of_call()
    {
        address_space().set_origin(allocation.base, origin);
    }
}

/// Returns true if the process or the session of this thread checks for leaks.
pub(crate) fn finds_leaks() -> bool {
    finds_leaks_of_process() || SESSIONS.load(Relaxed) > 0 && with_leak_session(|_| ()).is_some()
}

fn finds_leaks_of_process() -> bool {
    of_process().is_some_and(|checker| checker.checks().contains(Checks::LEAKS))
}

/// Runs a function with the session of this thread, if it checks for leaks.
fn with_leak_session<R>(run: impl FnOnce(&mut Session) -> R) -> Option<R> {
    let found = SESSION.try_with(|session| {
        let mut session = session.borrow_mut();
        let session = session.as_mut()?;
        session.checker.checks().contains(Checks::LEAKS).then(|| run(session))
    });
    found.ok().flatten()
}

/// Records an object that a call of this thread created, for the process and for the thread's session, as far as they
/// check for leaks. `is_live` returns true until the object is destroyed. The caller must not hold a lock that
/// `is_live` takes.
pub(crate) fn note_object(kind: &'static str, handle: usize, is_live: impl Fn() -> bool + Send + Sync + 'static) {
    // A backtrace takes milliseconds, and the first one loads the program's debug information, so none is made unless a
    // leak would be reported.
    if !finds_leaks() {
        return;
    }
    let created = leaks::CreatedObject {
        kind,
        handle,
        origin: origin::of_call(),
        is_live: Arc::new(is_live),
    };
    with_leak_session(|session| session.created.add_object(created.clone()));
    if finds_leaks_of_process() {
        leaks::of_process().add_object(created);
    }
}

/// Records an object for the process, if it checks for leaks. A thread's session does not report the object.
pub(crate) fn note_object_of_process(
    kind: &'static str,
    handle: usize,
    is_live: impl Fn() -> bool + Send + Sync + 'static,
) {
    if finds_leaks_of_process() {
        leaks::of_process().add_object(leaks::CreatedObject {
            kind,
            handle,
            origin: origin::of_call(),
            is_live: Arc::new(is_live),
        });
    }
}

/// Reports the leaks of the process when it exits, if `CUDA_SOFT_CHECK` requests the check.
#[cfg(unix)]
pub(crate) fn at_exit() {
    if let Some(checker) = of_process()
        && checker.checks().contains(Checks::LEAKS)
    {
        let found = leaks::of_process().findings();
        found.into_iter().for_each(|finding| checker.add(finding));
    }
}

/// The checks of a thread, which end when this guard is dropped or [finished](Checking::finish).
///
/// See [`check()`].
#[must_use = "the checks end when this is dropped"]
pub struct Checking {
    /// Makes the guard neither `Send` nor `Sync`, because its thread owns the session.
    _thread: PhantomData<*const ()>,
}

impl fmt::Debug for Checking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checking").finish_non_exhaustive()
    }
}

/// The error of [`check()`] on a thread that already holds a [`Checking`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlreadyChecking;

impl fmt::Display for AlreadyChecking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this thread is being checked already: finish the other `Checking` first")
    }
}

impl std::error::Error for AlreadyChecking {}

/// Checks the kernels that this thread launches on the software driver from now on and, with [`Checks::RACE`], its
/// copies and fills; with [`Checks::LEAKS`], the memory and objects that it creates.
///
/// The checks concern the calling thread only, so several tests of one process can use them at the same time. Begin
/// before the memory is allocated: memory that is allocated while nothing in the process checks for uninitialised reads
/// counts as written. Checked kernels run slower, as the table below says; [`Checks::RACE`] also runs their blocks one
/// after the other.
///
/// ```
/// use cuda_driver_soft::{Checks, check};
///
/// let checks = check(Checks::RACE | Checks::INIT | Checks::SYNC)?;
/// // … launch kernels, and wait for them …
/// let findings = checks.finish();
/// assert!(findings.is_empty(), "{}", findings[0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
#[doc = include_str!("checks.md")]
///
/// # Errors
/// Returns [`AlreadyChecking`] if this thread is being checked already.
pub fn check(checks: Checks) -> Result<Checking, AlreadyChecking> {
    SESSION.with(|session| {
        let mut session = session.borrow_mut();
        if session.is_some() {
            return Err(AlreadyChecking);
        }
        SESSIONS.fetch_add(1, Relaxed);
        if checks.contains(Checks::INIT) {
            INIT_SESSIONS.fetch_add(1, Relaxed);
        }
        if checks.contains(Checks::RACE) {
            RACE_SESSIONS.fetch_add(1, Relaxed);
        }
        *session = Some(Session {
            checker: Checker::new(checks),
            created: leaks::Created::new(),
        });
        Ok(Checking { _thread: PhantomData })
    })
}

impl Checking {
    /// Ends the checks and returns their findings. Those of kernels that still run are not included: synchronise first.
    #[must_use]
    pub fn finish(self) -> Vec<Finding> {
        let findings = end();
        std::mem::forget(self);
        findings
    }
}

impl Drop for Checking {
    fn drop(&mut self) {
        end();
    }
}

fn end() -> Vec<Finding> {
    let ended = SESSION.try_with(|session| session.borrow_mut().take());
    let Ok(Some(session)) = ended else {
        return Vec::new();
    };
    SESSIONS.fetch_sub(1, Relaxed);
    let checks = session.checker.checks();
    if checks.contains(Checks::INIT) {
        INIT_SESSIONS.fetch_sub(1, Relaxed);
    }
    if checks.contains(Checks::RACE) {
        RACE_SESSIONS.fetch_sub(1, Relaxed);
    }
    let mut findings = session.checker.findings();
    if checks.contains(Checks::LEAKS) {
        findings.extend(session.created.findings());
    }
    findings
}
