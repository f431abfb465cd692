//! Shows the progress of long kernels on a terminal.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use crate::queue::work::{Divisible, Fault};
use engine::Execution;
use host::console;

/// The duration after which the progress of a kernel is shown.
const LONG: Duration = Duration::from_secs(2);

/// The minimum time between two changes of the line.
const PAUSE: Duration = Duration::from_millis(200);

/// Moves the terminal's cursor to the start of the line and erases the line.
const ERASE: &str = "\r\x1b[K";

/// Returns the kernel of an execution, wrapped so that it shows its progress if standard error is a terminal and
/// `CUDA_SOFT_PROGRESS` is not `0`.
pub(super) fn shown(kernel: Arc<dyn Divisible>, execution: &Arc<Execution>) -> Arc<dyn Divisible> {
    static SHOWN: OnceLock<bool> = OnceLock::new();
    if !*SHOWN.get_or_init(|| host::environment::progress() && console::is_terminal(console::Stream::Error)) {
        return kernel;
    }
    let execution = execution.clone();
    Arc::new(Shown {
        kernel,
        text: Box::new(move |elapsed| {
            let (done, blocks) = execution.blocks_done();
            text(execution.launch().kernel.name(), elapsed, done, blocks)
        }),
        write: |text| console::write(console::Stream::Error, text.as_bytes()),
        begin: Instant::now(),
        line: Line::default(),
    })
}

/// A kernel that shows its progress.
struct Shown {
    kernel: Arc<dyn Divisible>,
    /// Returns the text of the line.
    text: Box<dyn Fn(Duration) -> String + Send + Sync>,
    write: fn(&str),
    begin: Instant,
    line: Line,
}

/// The time of the last change of the line in milliseconds after the start of the kernel; 0 if there is no line.
#[derive(Default)]
struct Line(AtomicU64);

impl Line {
    /// Returns true, to one thread only, if the line is to be written now, `elapsed` after the start of the kernel.
    fn is_due(&self, elapsed: Duration) -> bool {
        let (last, now) = (self.0.load(Relaxed), elapsed.as_millis() as u64);
        let due = elapsed >= LONG && now >= last + PAUSE.as_millis() as u64;
        due && self.0.compare_exchange(last, now, Relaxed, Relaxed).is_ok()
    }

    /// Returns true if there is a line, which the caller erases.
    fn take(&self) -> bool {
        self.0.swap(0, Relaxed) > 0
    }
}

/// Returns the text of the line.
fn text(kernel: &str, elapsed: Duration, done: u64, blocks: u64) -> String {
    format!("{ERASE}{kernel}: {done} of {blocks} blocks, {} s", elapsed.as_secs())
}

impl Shown {
    fn erase(&self) {
        if self.line.take() {
            (self.write)(ERASE);
        }
    }
}

/// Erases the line of a kernel that the scheduler abandons after a fault of other work.
impl Drop for Shown {
    fn drop(&mut self) {
        self.erase();
    }
}

impl Divisible for Shown {
    fn piece(&self) -> bool {
        let progress = self.kernel.piece();
        let elapsed = self.begin.elapsed();
        if elapsed >= LONG && !self.kernel.finished() && self.line.is_due(elapsed) {
            (self.write)(&(self.text)(elapsed));
        }
        progress
    }

    fn finished(&self) -> bool {
        self.kernel.finished()
    }

    /// Also erases the line: the scheduler calls this when the kernel is finished.
    fn fault(&self) -> Option<Fault> {
        self.erase();
        self.kernel.fault()
    }

    fn take_text(&self, at_least: usize) -> Vec<u8> {
        self.kernel.take_text(at_least)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::state::error::Error;

    #[test]
    fn a_line_appears_after_two_seconds() {
        let line = Line::default();
        let at = |milliseconds| line.is_due(Duration::from_millis(milliseconds));
        assert!(!at(0) && !at(1999));
        assert!(!line.take());
        assert!(at(2000));
        assert!(!at(2000) && !at(2199));
        assert!(at(2200));
        assert!(line.take());
        assert!(!line.take());
        let shown = text("saxpy", Duration::from_millis(2700), 3, 64);
        assert_eq!(shown, "\r\u{1b}[Ksaxpy: 3 of 64 blocks, 2 s");
    }

    /// Text that the kernel of `any_kernel_shows_its_progress_and_keeps_its_fault` wrote.
    static WRITTEN: Mutex<String> = Mutex::new(String::new());
    /// Text that the kernel of `an_abandoned_kernel_leaves_no_line` wrote.
    static ABANDONED: Mutex<String> = Mutex::new(String::new());

    /// A kernel of several pieces that fails. [`Shown`] wraps any kernel, so this is not an [`Execution`].
    struct Failing(AtomicU64);

    impl Divisible for Failing {
        fn piece(&self) -> bool {
            self.0.fetch_sub(1, Relaxed) > 0
        }

        fn finished(&self) -> bool {
            self.0.load(Relaxed) == 0
        }

        fn fault(&self) -> Option<Fault> {
            Some(Fault {
                code: Error::CUDA_ERROR_ILLEGAL_ADDRESS,
                message: "found".into(),
                details: Vec::new(),
                stderr: None,
            })
        }
    }

    fn failing(write: fn(&str)) -> Shown {
        Shown {
            kernel: Arc::new(Failing(AtomicU64::new(3))),
            text: Box::new(|elapsed| format!("{} s", elapsed.as_secs())),
            write,
            begin: Instant::now().checked_sub(LONG).unwrap(),
            line: Line::default(),
        }
    }

    #[test]
    fn an_abandoned_kernel_leaves_no_line() {
        let shown = failing(|text| ABANDONED.lock().unwrap().push_str(text));
        shown.piece();
        assert!(ABANDONED.lock().unwrap().ends_with(" s"));
        drop(shown);
        assert!(ABANDONED.lock().unwrap().ends_with(ERASE));
    }

    #[test]
    fn any_kernel_shows_its_progress_and_keeps_its_fault() {
        let shown = failing(|text| WRITTEN.lock().unwrap().push_str(text));
        shown.piece();
        assert!(WRITTEN.lock().unwrap().ends_with(" s"));
        while !shown.finished() {
            shown.piece();
        }
        assert_eq!(shown.fault().map(|fault| fault.message).as_deref(), Some("found"));
        assert!(WRITTEN.lock().unwrap().ends_with(ERASE));
    }
}
