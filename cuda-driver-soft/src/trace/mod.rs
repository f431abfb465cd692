//! Traces: events of calls, kernels, copies, fills, host functions and log lines in the Trace Event Format, which
//! <https://ui.perfetto.dev> and `chrome://tracing` open; and totals of calls, kernels, copies and fills.
//!
//! Each event is written when it happens, so the file of a program that was killed is complete up to that point. It
//! then lacks the `]` at its end, which the format allows. A process that exits normally writes the `]`. Each thread
//! has a track for its calls, and each stream has a track for its work, with further tracks for the branches of graphs.

mod call;
mod generated;
mod job;
mod recorder;
mod summary;

use std::cell::RefCell;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::json::Object;
use host::{console, environment};
use recorder::{Recorder, event, now};

pub(crate) use call::Call;
pub(crate) use job::{Job, JobKind, Span};
pub(crate) use recorder::StreamTrack;
pub use summary::{CallTotal, CopyTotal, KernelTotal, NotSupported, Summary};

/// [`STATE`] before the environment was read.
const UNKNOWN: u8 = 0;
const OFF: u8 = 1;
const ON: u8 = 2;

static STATE: AtomicU8 = AtomicU8::new(UNKNOWN);

static RECORDER: Mutex<Option<Recorder>> = Mutex::new(None);

thread_local! {
    /// The last line that the thread wrote to the log in its current call.
    static LAST_LINE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Returns true if events are recorded.
#[inline]
pub(crate) fn on() -> bool {
    match STATE.load(Relaxed) {
        OFF => false,
        UNKNOWN => begin_by_environment(),
        _ => true,
    }
}

fn recorder() -> MutexGuard<'static, Option<Recorder>> {
    RECORDER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a function with the recorder, if events are recorded.
fn with<R>(record: impl FnOnce(&mut Recorder) -> R) -> Option<R> {
    recorder().as_mut().map(record)
}

/// Runs a function with the recorder of the recording with this number, if it has not ended.
fn with_same<R>(number: u64, record: impl FnOnce(&mut Recorder) -> R) -> Option<R> {
    let mut recorder = recorder();
    recorder
        .as_mut()
        .filter(|recorder| recorder.number == number)
        .map(record)
}

/// Starts to record if `CUDA_SOFT_TRACE` or `CUDA_SOFT_SUMMARY` is set.
#[cold]
fn begin_by_environment() -> bool {
    let mut recorder = recorder();
    if STATE.load(Relaxed) == UNKNOWN {
        let traced = environment::trace().and_then(|path| {
            let made = Recorder::new(Some(Path::new(&path)), false).map_err(|error| {
                let line = format!("cuda-driver-soft: {}: {error}\n", environment::TRACE);
                console::write(console::Stream::Error, line.as_bytes());
            });
            made.ok()
        });
        match traced.or_else(|| environment::summary().then(Recorder::default)) {
            Some(made) => begin(&mut recorder, made),
            None => STATE.store(OFF, Relaxed),
        }
    }
    STATE.load(Relaxed) == ON
}

fn begin(recorder: &mut Option<Recorder>, mut made: Recorder) {
    static LAST: AtomicU64 = AtomicU64::new(0);
    made.number = LAST.fetch_add(1, Relaxed) + 1;
    *recorder = Some(made);
    host::observe(logged);
    STATE.store(ON, Relaxed);
}

/// Stops recording in a forked child, where a thread that no longer exists may hold the lock. Only stores to an atomic.
#[cfg(unix)]
pub(crate) fn mark_forked() {
    STATE.store(OFF, Relaxed);
}

/// Ends the trace of a process that exits, and prints the summary if `CUDA_SOFT_SUMMARY` requests it.
#[cfg(unix)]
pub(crate) fn at_exit() {
    if !on() {
        return;
    }
    with(Recorder::end);
    if environment::summary() {
        let text = with(|recorder| recorder.summary.to_string()).unwrap_or_default();
        console::write(console::Stream::Error, text.as_bytes());
    }
}

/// Records a line of the log.
fn logged(line: &str) {
    if STATE.load(Relaxed) != ON {
        return;
    }
    let _ = LAST_LINE.try_with(|last| {
        if let Ok(mut last) = last.try_borrow_mut() {
            line.clone_into(&mut last);
        }
    });
    with(|recorder| {
        let track = recorder.thread();
        let event = event("log", "log", "i", now(), track).text("s", "t");
        recorder.write(event.object("args", Object::new().text("message", line)));
    });
}

/// Takes the last line that the calling thread wrote to the log since its call began.
fn take_last_line() -> String {
    let taken = LAST_LINE.try_with(|last| last.try_borrow_mut().map(|mut last| std::mem::take(&mut *last)));
    taken.ok().and_then(Result::ok).unwrap_or_default()
}

/// A trace that is being recorded. It ends when it is dropped.
#[must_use = "the trace ends when this is dropped"]
#[derive(Debug)]
pub struct Trace(());

/// Records all later calls and work of this process into a file, in the Trace Event Format: <https://ui.perfetto.dev>
/// and `chrome://tracing` open it. An existing file is replaced.
///
/// ```
/// let path = std::env::temp_dir().join(format!("trace-{}.json", std::process::id()));
/// let trace = cuda_driver_soft::trace(&path)?;
/// let mut version = 0;
/// let _ = unsafe { cuda_driver_soft::library().cuDriverGetVersion(&mut version) };
/// let summary = trace.finish();
/// assert!(summary.calls["cuDriverGetVersion"].count > 0);
/// assert!(std::fs::read_to_string(&path)?.contains("cuDriverGetVersion"));
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// Returns an error that names the file if it cannot be written, and [`io::ErrorKind::ResourceBusy`] if a trace or a
/// summary is being recorded already: there is one for the whole process, which includes calls of all threads.
pub fn trace(path: impl AsRef<Path>) -> io::Result<Trace> {
    // Starts what `CUDA_SOFT_TRACE` or `CUDA_SOFT_SUMMARY` requests, so that this trace does not replace it.
    on();
    let mut recorder = recorder();
    if recorder.is_some() {
        return Err(io::Error::new(
            io::ErrorKind::ResourceBusy,
            "a trace or a summary of this process is being recorded already: finish it first, or unset CUDA_SOFT_TRACE \
             and CUDA_SOFT_SUMMARY",
        ));
    }
    let made = Recorder::new(Some(path.as_ref()), true)?;
    begin(&mut recorder, made);
    Ok(Trace(()))
}

impl Trace {
    /// Ends the trace and returns its totals. Synchronise first: the trace lacks the end of work that still runs, and
    /// the totals lack that work.
    #[must_use]
    pub fn finish(self) -> Summary {
        let summary = end();
        std::mem::forget(self);
        summary
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        end();
    }
}

/// Ends the trace that a guard began.
fn end() -> Summary {
    let mut recorder = recorder();
    STATE.store(OFF, Relaxed);
    let Some(mut ended) = recorder.take() else {
        return Summary::default();
    };
    ended.end();
    ended.summary
}
