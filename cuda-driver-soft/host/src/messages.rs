//! The messages of the log that the program can read: the last hundred, and callbacks for new ones.
//!
//! A callback may call the driver, and a message may be written while the driver holds locks. So messages are delivered
//! later, when a call of the thread that wrote them has failed: see [`deliver`].

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{SystemTime, UNIX_EPOCH};

/// The number of messages that the log keeps. A thread also queues at most so many for the callbacks.
const KEPT: usize = 100;

/// Receives the text of a message.
pub type Callback = Arc<dyn Fn(&str) + Send + Sync>;

/// The log of the process.
struct Messages {
    /// The last messages, each a line with its time and thread.
    lines: VecDeque<String>,
    /// The number of messages since the process started.
    count: usize,
    callbacks: Vec<(usize, Callback)>,
    last_callback: usize,
}

impl Messages {
    const NONE: Messages = Messages {
        lines: VecDeque::new(),
        count: 0,
        callbacks: Vec::new(),
        last_callback: 0,
    };
}

static MESSAGES: Mutex<Messages> = Mutex::new(Messages::NONE);

/// The log of a forked child that cannot use its copy of the parent's log.
static OF_CHILD: Mutex<Messages> = Mutex::new(Messages::NONE);
/// True in a forked child if another thread of the parent held the lock of [`MESSAGES`] at the fork: that thread does
/// not exist in the child.
static LOST: AtomicBool = AtomicBool::new(false);

/// Chooses the log of a forked child: its copy of the parent's log, or an empty one if the lock was held at the fork.
/// Does not wait for a lock.
pub fn mark_forked() {
    let held = matches!(MESSAGES.try_lock(), Err(TryLockError::WouldBlock));
    LOST.store(held, Relaxed);
}

thread_local! {
    /// Messages of this thread's calls that have not reached the callbacks.
    static UNDELIVERED: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

fn messages() -> MutexGuard<'static, Messages> {
    let log = if LOST.load(Relaxed) { &OF_CHILD } else { &MESSAGES };
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds a message. The callbacks receive it when a call of the thread fails.
pub(crate) fn add(text: &str) {
    keep(text);
    report(text);
}

/// Adds a message that no callback receives.
pub(crate) fn keep(text: &str) {
    let line = format!("{}[CUDA][E] {}\n", Stamp::now(), text.trim_end());
    let mut messages = messages();
    if messages.lines.len() == KEPT {
        messages.lines.pop_front();
    }
    messages.lines.push_back(line);
    messages.count += 1;
}

/// Queues a message for the callbacks without adding it to the log. They receive it when a call of the thread fails.
/// Drops the message if a hundred messages of the thread are queued already.
pub fn report(text: &str) {
    if messages().callbacks.is_empty() {
        return;
    }
    // A thread that is ending no longer has this list: its messages reach no callback.
    let _ = UNDELIVERED.try_with(|list| {
        if let Ok(mut list) = list.try_borrow_mut()
            && list.len() < KEPT
        {
            list.push(text.trim_end().to_owned());
        }
    });
}

/// Passes the queued messages of the calling thread to the callbacks. The caller must hold no lock.
pub fn deliver() {
    let written = UNDELIVERED.try_with(|list| list.try_borrow_mut().map(|mut list| std::mem::take(&mut *list)));
    let Ok(Ok(written)) = written else { return };
    if written.is_empty() {
        return;
    }
    let callbacks: Vec<Callback> = messages().callbacks.iter().map(|(_, call)| call.clone()).collect();
    for message in written {
        for call in &callbacks {
            call(&message);
        }
    }
}

/// Registers a callback for new messages and returns its number, which is not 0.
pub fn register(callback: Callback) -> usize {
    let mut messages = messages();
    messages.last_callback += 1;
    let number = messages.last_callback;
    messages.callbacks.push((number, callback));
    number
}

/// Unregisters a callback. Returns false if no callback has this number.
pub fn unregister(number: usize) -> bool {
    let mut messages = messages();
    let before = messages.callbacks.len();
    messages.callbacks.retain(|(n, _)| *n != number);
    messages.callbacks.len() < before
}

/// Returns the number of messages since the process started.
pub fn count() -> usize {
    messages().count
}

/// The messages after an iterator. An iterator of `cuLogs*` is a position in the log: the number of messages before it.
#[derive(Debug)]
pub struct Dump {
    /// One line for each message.
    pub lines: Vec<String>,
    /// True if some messages after the iterator are no longer kept.
    pub rolled_over: bool,
    /// The iterator at the end of the log.
    pub end: usize,
}

/// Returns the messages after the iterator `start`, or all that are kept if there is no iterator. Returns `None` if it
/// is beyond the end of the log.
pub fn dump(start: Option<usize>) -> Option<Dump> {
    let messages = messages();
    let oldest = messages.count - messages.lines.len();
    let from = start.unwrap_or(oldest);
    if from > messages.count {
        return None;
    }
    Some(Dump {
        lines: messages
            .lines
            .iter()
            .skip(from.saturating_sub(oldest))
            .cloned()
            .collect(),
        rolled_over: from < oldest,
        end: messages.count,
    })
}

/// The time of day in UTC and the thread of a message.
struct Stamp {
    milliseconds: u64,
    thread: u64,
}

impl Stamp {
    fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        // The address identifies the thread: each live thread has this thread-local at another address.
        let thread = UNDELIVERED.try_with(|list| std::ptr::from_ref(list).addr() as u64);
        Stamp {
            milliseconds: since.as_millis() as u64 % 86_400_000,
            thread: thread.unwrap_or(0),
        }
    }
}

impl std::fmt::Display for Stamp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (seconds, milliseconds) = (self.milliseconds / 1000, self.milliseconds % 1000);
        let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        let thread = self.thread;
        write!(f, "[{hours:02}:{minutes:02}:{seconds:02}.{milliseconds:03}][{thread}]")
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// Forks, and returns the exit status of the child, which runs `body`.
    #[allow(unsafe_code)]
    fn in_fork(body: impl FnOnce() -> bool) -> i32 {
        // SAFETY: the child ends with `_exit`, and takes no lock but the allocator's, which the C library keeps usable,
        // and those of the log.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: the alarm ends a child that waits for a lock; `_exit` runs no exit handlers.
            unsafe {
                libc::alarm(60);
                libc::_exit(if body() { 42 } else { 1 });
            }
        }
        let mut status = 0;
        // SAFETY: the child is ours, and the pointer is valid for the write.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert!(libc::WIFEXITED(status), "{status:#x}");
        libc::WEXITSTATUS(status)
    }

    #[test]
    fn a_forked_child_does_not_wait_for_the_lock() {
        add("a message of the parent");
        let has = |text: &str| dump(None).is_some_and(|dump| dump.lines.iter().any(|line| line.contains(text)));
        let write = |text: &str| {
            mark_forked();
            add(text);
            deliver();
            has(text)
        };
        let held = MESSAGES.lock().unwrap_or_else(PoisonError::into_inner);
        assert_eq!(in_fork(|| write("held") && !has("a message of the parent")), 42);
        drop(held);
        assert!(has("a message of the parent") && !has("held"));
    }

    #[test]
    fn a_forked_child_keeps_the_log() {
        add("a message before the fork");
        // Held by this thread, so that no other thread holds it during the fork; the child releases it.
        let held = MESSAGES.lock().unwrap_or_else(PoisonError::into_inner);
        let has = |text: &str| dump(None).is_some_and(|dump| dump.lines.iter().any(|line| line.contains(text)));
        let status = in_fork(|| {
            drop(held);
            mark_forked();
            add("a message of the child");
            has("a message before the fork") && has("a message of the child")
        });
        assert_eq!(status, 42);
    }
}
