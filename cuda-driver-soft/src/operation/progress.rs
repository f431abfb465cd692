//! The progress of long kernels, on a terminal.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use crate::queue::work::{Divisible, Fault};
use engine::Execution;
use host::console;

/// The duration after which the progress of a kernel is shown.
const LONG: Duration = Duration::from_secs(2);

/// The time between two changes of the line.
const PAUSE: Duration = Duration::from_millis(200);

/// Moves to the start of the line and erases it.
const ERASE: &str = "\r\x1b[K";

/// Returns the kernel, which shows its progress if standard error is a terminal.
pub(super) fn shown(execution: Arc<Execution>) -> Arc<dyn Divisible> {
    static SHOWN: OnceLock<bool> = OnceLock::new();
    if !*SHOWN.get_or_init(|| host::environment::progress() && console::is_terminal(console::Stream::Error)) {
        return execution;
    }
    Arc::new(Shown {
        execution,
        begin: Instant::now(),
        line: Line::default(),
    })
}

/// A kernel that shows its progress.
struct Shown {
    execution: Arc<Execution>,
    begin: Instant,
    line: Line,
}

/// The time of the last change of the line in milliseconds after the begin of the kernel; 0 if there is no line.
#[derive(Default)]
struct Line(AtomicU64);

impl Line {
    /// Returns true if the line is to be written now, `elapsed` after the begin of the kernel. One thread gets true.
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

impl Divisible for Shown {
    fn piece(&self) -> bool {
        let progress = self.execution.piece();
        let elapsed = self.begin.elapsed();
        if elapsed >= LONG && !self.execution.finished() && self.line.is_due(elapsed) {
            let (done, blocks) = self.execution.blocks_done();
            let line = text(self.execution.launch().kernel.name(), elapsed, done, blocks);
            console::write(console::Stream::Error, line.as_bytes());
        }
        progress
    }

    fn finished(&self) -> bool {
        self.execution.finished()
    }

    fn fault(&self) -> Option<Fault> {
        if self.line.take() {
            console::write(console::Stream::Error, ERASE.as_bytes());
        }
        Divisible::fault(&*self.execution)
    }

    fn take_text(&self, at_least: usize) -> Vec<u8> {
        self.execution.take_text(at_least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
