//! Stores messages that do not fit into an [`Error`](crate::Error): the messages of larger errors that were converted
//! to one, reasons why launches reject their arguments, and messages that the driver logs.
#![forbid(unsafe_code)]

use core::cell::RefCell;
use core::fmt;
use core::mem::{self, ManuallyDrop};
use std::sync::{Mutex, PoisonError};

/// The messages that belong to an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ErrorLog<'a> {
    /// The file that the device code came from; empty if it came from memory, or if the error is not about device code.
    pub(crate) path: &'a str,
    /// The messages, in one or several lines.
    pub(crate) log: &'a str,
}

/// The kept messages. They are kept as long as the process runs: an error is `Copy`, so its copies are not counted.
///
/// Statics are never dropped. With `ManuallyDrop`, this crate does not contain the unused code to drop the messages.
static KEPT: Mutex<ManuallyDrop<Kept>> = Mutex::new(ManuallyDrop::new(Kept::new()));

struct Kept {
    logs: Vec<ErrorLog<'static>>,
    /// The total size of the messages and of their entries in `logs`, in bytes.
    bytes: usize,
}

/// The largest value of [`Kept::bytes`]. Equal messages are kept once, so a program that repeats the same errors does
/// not reach it.
const MAX_BYTES: usize = 1 << 20;

/// Takes the place of a number for messages that were not kept.
const NOT_KEPT: u16 = u16::MAX;

impl Kept {
    #[inline]
    const fn new() -> Self {
        Self {
            logs: Vec::new(),
            bytes: 0,
        }
    }

    #[inline]
    fn keep(&mut self, log: ErrorLog<'_>) -> u16 {
        if let Some(number) = self.logs.iter().position(|kept| *kept == log) {
            return u16::try_from(number).unwrap_or(NOT_KEPT);
        }
        let size = size_of::<ErrorLog<'_>>() + log.path.len() + log.log.len();
        match u16::try_from(self.logs.len()) {
            Ok(number) if number != NOT_KEPT && size <= MAX_BYTES - self.bytes => {
                self.bytes += size;
                self.logs.push(ErrorLog {
                    path: log.path.to_owned().leak(),
                    log: log.log.to_owned().leak(),
                });
                number
            }
            _ => NOT_KEPT,
        }
    }

    #[inline]
    fn by_number(&self, number: u16) -> ErrorLog<'static> {
        self.logs.get(usize::from(number)).copied().unwrap_or(ErrorLog {
            path: "",
            log: "the messages were not kept, because kept messages take at most 1 MiB: print a `JitError` or `GraphError` before `?` converts it",
        })
    }
}

impl ErrorLog<'static> {
    /// Returns the messages with a number that [`keep`](ErrorLog::keep) returned.
    #[inline]
    pub(crate) fn by_number(number: u16) -> Self {
        let kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        kept.by_number(number)
    }
}

impl ErrorLog<'_> {
    /// Keeps the messages, and returns their number.
    #[inline]
    pub(crate) fn keep(self) -> u16 {
        let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        kept.keep(self)
    }

    /// Prints an error with its messages.
    #[inline]
    pub(crate) fn show(self, f: &mut fmt::Formatter<'_>, error: &dyn fmt::Display) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        write!(f, "{error}")?;
        for line in self.log.lines() {
            write!(f, "\n  {line}")?;
        }
        Ok(())
    }
}

thread_local! {
    /// The messages that the driver logged on this thread since [`take_noted`] was last called.
    static NOTED: RefCell<String> = const { RefCell::new(String::new()) };
}

/// The largest size of the noted messages of one thread, in bytes. A thread whose raw calls fail reaches it if no error
/// of this crate takes the messages.
const MAX_NOTED: usize = 4096;

/// Records a message that the driver logged on this thread. If it does not fit, drops all earlier messages; if it does
/// not fit alone, drops it, too.
#[inline]
pub(crate) fn note(message: &str) {
    let message = message.trim_end();
    // The borrow fails if the allocator makes a driver call that fails; the access fails while the thread exits.
    let _ = NOTED.try_with(|noted| {
        let Ok(mut noted) = noted.try_borrow_mut() else {
            return;
        };
        if noted.len() + 1 + message.len() > MAX_NOTED {
            noted.clear();
        }
        if message.len() <= MAX_NOTED {
            if !noted.is_empty() {
                noted.push('\n');
            }
            noted.push_str(message);
        }
    });
}

/// Returns the messages that were noted on this thread since the previous call.
#[inline]
pub(crate) fn take_noted() -> String {
    let taken = NOTED.try_with(|noted| noted.try_borrow_mut().map(|mut noted| mem::take(&mut *noted)));
    taken.ok().and_then(Result::ok).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{ErrorLog, Kept, MAX_BYTES, MAX_NOTED, note, take_noted};

    #[test]
    fn noted_messages_are_taken_once_and_bounded() {
        note("one\n");
        note("two");
        assert_eq!(take_noted(), "one\ntwo");
        assert_eq!(take_noted(), "");
        let half = "x".repeat(MAX_NOTED / 2);
        for _ in 0..4 {
            note(&half);
        }
        assert_eq!(take_noted(), half, "two halves and a newline do not fit");
        note(&"x".repeat(MAX_NOTED + 1));
        assert_eq!(take_noted(), "");
        note("of this thread");
        assert_eq!(std::thread::spawn(take_noted).join().unwrap(), "");
        assert_eq!(take_noted(), "of this thread");
    }

    #[test]
    fn equal_messages_are_kept_once_and_too_many_are_not() {
        let mut kept = Kept::new();
        let log = |log| ErrorLog { path: "a.ptx", log };
        assert_eq!(
            [log("one"), log("two"), log("one")].map(|log| kept.keep(log)),
            [0, 1, 0]
        );
        assert_eq!(kept.by_number(1), log("two"));
        let long = "x".repeat(MAX_BYTES);
        let number = kept.keep(log(&long));
        assert!(kept.by_number(number).log.contains("not kept"));
        let half = &long[..MAX_BYTES / 2];
        assert_eq!([log(half), log(&half[1..])].map(|log| kept.keep(log)), [2, u16::MAX]);
        assert_eq!(kept.keep(log("three")), 3);
    }
}
