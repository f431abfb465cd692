//! The messages of the log that the program can read: the last hundred, and callbacks for new ones.
//!
//! A callback may call the driver, and a message may be written while the driver holds locks. So messages are delivered
//! later, when a call of the thread that wrote them has failed: see [`deliver`].

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
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
    /// The numbers of the callbacks that run now, each with the thread that runs it.
    running: Vec<(usize, u64)>,
    /// The threads that run a callback and wait in [`unregister`], each with the number of the callback that it
    /// unregisters.
    waiting: Vec<(u64, usize)>,
}

impl Messages {
    const NONE: Messages = Messages {
        lines: VecDeque::new(),
        count: 0,
        callbacks: Vec::new(),
        last_callback: 0,
        running: Vec::new(),
        waiting: Vec::new(),
    };

    /// Returns true if a thread waits in [`unregister`], also through others, for a callback that `other` runs.
    fn is_waiting_for(&self, thread: u64, other: u64) -> bool {
        let mut threads = vec![thread];
        let mut next = 0;
        while let Some(&thread) = threads.get(next) {
            next += 1;
            for &(_, awaited) in self.waiting.iter().filter(|(waiting, _)| *waiting == thread) {
                for &(_, runs_it) in self.running.iter().filter(|(number, _)| *number == awaited) {
                    if !threads.contains(&runs_it) {
                        threads.push(runs_it);
                    }
                }
            }
        }
        threads[1..].contains(&other)
    }
}

static MESSAGES: Mutex<Messages> = Mutex::new(Messages::NONE);

/// The log of a forked child that cannot use its copy of the parent's log.
static OF_CHILD: Mutex<Messages> = Mutex::new(Messages::NONE);
/// True in a forked child if another thread of the parent held the lock of [`MESSAGES`] at the fork: that thread does
/// not exist in the child.
static LOST: AtomicBool = AtomicBool::new(false);

/// Signalled when a callback returns, and when a thread that runs one begins to wait in [`unregister`].
static RETURNED: Condvar = Condvar::new();

/// Chooses the log of a forked child: its copy of the parent's log, or an empty one if the lock was held at the fork.
/// Does not wait for a lock.
pub fn mark_forked() {
    let log = match MESSAGES.try_lock() {
        Ok(log) => Some(log),
        Err(TryLockError::Poisoned(log)) => Some(log.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    };
    LOST.store(log.is_none(), Relaxed);
    if let Some(mut log) = log {
        // The other threads do not exist in the child, so their callbacks never return.
        log.running.retain(|(_, thread)| *thread == this_thread());
        log.waiting.clear();
    }
}

thread_local! {
    /// Messages of this thread's calls that have not reached the callbacks.
    static UNDELIVERED: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    /// Its address identifies the thread: each live thread has its own. Without a destructor, it is there until the
    /// thread has ended.
    static HERE: Cell<u8> = const { Cell::new(0) };
}

/// Returns a number that no other live thread has.
fn this_thread() -> u64 {
    HERE.with(|here| std::ptr::from_ref(here).addr() as u64)
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
    let numbers: Vec<usize> = messages().callbacks.iter().map(|(number, _)| *number).collect();
    for message in written {
        for number in &numbers {
            // A callback that was unregistered meanwhile receives no more messages.
            if let Some(running) = Running::begin(*number) {
                (running.call)(&message);
            }
        }
    }
}

/// A callback that this thread runs.
struct Running {
    number: usize,
    call: Callback,
}

impl Running {
    /// Begins to run a callback; returns `None` if it is not registered.
    fn begin(number: usize) -> Option<Running> {
        let mut messages = messages();
        let (_, call) = messages.callbacks.iter().find(|(n, _)| *n == number)?;
        let call = call.clone();
        messages.running.push((number, this_thread()));
        Some(Running { number, call })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut messages = messages();
        let ours = (self.number, this_thread());
        if let Some(at) = messages.running.iter().rposition(|running| *running == ours) {
            messages.running.swap_remove(at);
        }
        RETURNED.notify_all();
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

/// Unregisters a callback, and waits until no other thread runs it any more. From inside a callback, does not wait for
/// threads that wait here, also through others, for a callback of this thread: two callbacks that unregister each other
/// would wait without end. Returns false if no callback has this number. The caller must hold no lock.
pub fn unregister(number: usize) -> bool {
    let mut messages = messages();
    let Some(at) = messages.callbacks.iter().position(|(n, _)| *n == number) else {
        return false;
    };
    let removed = messages.callbacks.remove(at);
    let here = this_thread();
    if messages.running.iter().any(|(_, thread)| *thread == here) {
        messages.waiting.push((here, number));
        RETURNED.notify_all();
    }
    messages = RETURNED
        .wait_while(messages, |log| {
            let mut running = log.running.iter();
            running.any(|&(n, thread)| n == number && thread != here && !log.is_waiting_for(thread, here))
        })
        .unwrap_or_else(PoisonError::into_inner);
    messages.waiting.retain(|(thread, _)| *thread != here);
    drop(messages);
    drop(removed);
    true
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
        Stamp {
            milliseconds: since.as_millis() as u64 % 86_400_000,
            thread: this_thread(),
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

    #[test]
    fn no_callback_runs_after_it_is_unregistered() {
        use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
        use std::sync::mpsc;
        use std::time::Duration;

        let ended = Arc::new(AtomicBool::new(false));
        let (started, starts) = mpsc::channel();
        let sets_ended = ended.clone();
        let number = register(Arc::new(move |text| {
            if text == "slow" {
                started.send(()).unwrap();
                // Gives the other thread time to return too early.
                std::thread::sleep(Duration::from_millis(100));
                sets_ended.store(true, SeqCst);
            }
        }));
        let writer = std::thread::spawn(|| {
            add("slow");
            deliver();
        });
        starts.recv().unwrap();
        assert!(unregister(number) && ended.load(SeqCst));
        writer.join().unwrap();

        // From within the callback, the call does not wait, and the second message is not delivered.
        let calls = Arc::new(AtomicUsize::new(0));
        let own = Arc::new(AtomicUsize::new(0));
        let (count, of) = (calls.clone(), own.clone());
        let number = register(Arc::new(move |text| {
            if text == "twice" {
                assert_eq!(unregister(of.load(SeqCst)), count.fetch_add(1, SeqCst) == 0);
            }
        }));
        own.store(number, SeqCst);
        add("twice");
        add("twice");
        deliver();
        assert_eq!(calls.load(SeqCst), 1);
        assert!(!unregister(number));
    }

    #[test]
    fn a_callback_waits_for_other_threads_that_run_it() {
        use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
        use std::sync::mpsc;
        use std::time::Duration;

        let (ended, own) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let (started, starts) = mpsc::channel();
        let (done, results) = mpsc::channel();
        let (of, is_ended) = (own.clone(), ended.clone());
        let number = register(Arc::new(move |text| match text {
            "a slow call" => {
                started.send(()).unwrap();
                // Gives the other thread time to return too early.
                std::thread::sleep(Duration::from_millis(100));
                is_ended.store(true, SeqCst);
            }
            "a call that unregisters" => {
                done.send(unregister(of.load(SeqCst)) && is_ended.load(SeqCst)).unwrap();
            }
            _ => {}
        }));
        own.store(number, SeqCst);
        let slow = std::thread::spawn(|| {
            add("a slow call");
            deliver();
        });
        starts.recv().unwrap();
        add("a call that unregisters");
        deliver();
        assert!(results.recv().unwrap());
        slow.join().unwrap();
    }

    #[test]
    fn only_a_cycle_of_waits_is_not_waited_for() {
        let mut log = Messages::NONE;
        log.running = vec![(10, 1), (20, 2), (30, 3)];
        log.waiting = vec![(2, 30)];
        assert!(!log.is_waiting_for(2, 1) && log.is_waiting_for(2, 3));
        log.waiting = vec![(2, 30), (3, 10)];
        assert!(log.is_waiting_for(2, 1) && log.is_waiting_for(3, 1));
        log.waiting = vec![(2, 30), (3, 20)];
        assert!(!log.is_waiting_for(2, 1));
    }

    #[test]
    fn callbacks_that_unregister_each_other_return() {
        use std::sync::{Barrier, OnceLock, mpsc};
        use std::time::Duration;

        let (both_run, numbers) = (Arc::new(Barrier::new(2)), Arc::new(OnceLock::<[usize; 2]>::new()));
        let (done, results) = mpsc::channel();
        let texts = ["the first of two", "the second of two"];
        let registered = [0, 1].map(|i| {
            let (both_run, numbers, done) = (both_run.clone(), numbers.clone(), done.clone());
            register(Arc::new(move |text| {
                if text == texts[i] {
                    both_run.wait();
                    done.send(unregister(numbers.get().unwrap()[1 - i])).unwrap();
                }
            }))
        });
        numbers.set(registered).unwrap();
        for text in texts {
            std::thread::spawn(move || {
                add(text);
                deliver();
            });
        }
        for _ in texts {
            assert_eq!(results.recv_timeout(Duration::from_secs(60)), Ok(true));
        }
    }
}
