//! Starts child processes and waits for their results.

use std::fmt;
use std::io::{self, BufRead as _, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;

use super::progress::{Progress, parse};
use super::task::Task;
use crate::findings::Ending;

/// The maximum time to wait for the end of a process that was killed, because a process that waits inside a broken
/// kernel module never ends; and the minimum time for one that has reported its results or closed its standard output.
const GRACE: Duration = Duration::from_secs(2);

/// The time between two looks at whether a process has ended.
const SLICE: Duration = Duration::from_millis(100);

/// The maximum number of bytes that are kept of the end of a child's standard error.
const KEPT: usize = 2000;

/// The maximum number of bytes of a line of standard output. No message is as long.
const LINE: u64 = 16 << 20;

/// Returns the command that performs a task.
type MakeCommand = dyn Fn(&Task) -> io::Result<Command>;

/// Runs tasks in child processes.
pub struct Prober {
    timeout: Duration,
    command: Box<MakeCommand>,
}

impl Prober {
    /// Makes a prober whose tasks may take `timeout` each. `command` returns the command that performs a task with
    /// [`examine`](super::examine).
    pub fn new(timeout: Duration, command: impl Fn(&Task) -> io::Result<Command> + 'static) -> Self {
        Self {
            timeout,
            command: Box::new(command),
        }
    }

    /// Runs a task; returns its last results, complete or not, and the end of the process.
    pub(crate) fn run<T: DeserializeOwned + Default + Send + 'static>(&self, task: &Task) -> (T, Ending) {
        let mut results = T::default();
        let ending = self.watch(task, &mut results);
        let not_started = |error: io::Error| Ending::NotStarted {
            message: error.to_string(),
        };
        (results, ending.unwrap_or_else(not_started))
    }

    fn watch<T: DeserializeOwned + Send + 'static>(&self, task: &Task, results: &mut T) -> io::Result<Ending> {
        let mut command = (self.command)(task)?;
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let messages = messages_of(child.stdout.take());
        let errors = Tail::of(child.stderr.take());

        let deadline = Instant::now() + self.timeout;
        let mut step = "its start".to_owned();
        let mut is_complete = false;
        let mut has_ended = false;
        // Standard output may stay open after the last message, and after the end of the process: a process that the
        // driver started may have inherited it.
        while !is_complete {
            let left = deadline.saturating_duration_since(Instant::now());
            match messages.recv_timeout(left.min(SLICE)) {
                Ok(progress) => {
                    (step, *results, is_complete) = (progress.step, progress.results, progress.is_complete);
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) if has_ended => break,
                Err(RecvTimeoutError::Timeout) if !left.is_zero() => {
                    has_ended = matches!(child.try_wait(), Ok(Some(_)));
                }
                Err(RecvTimeoutError::Timeout) => {
                    end(&mut child);
                    return Ok(Ending::TimedOut {
                        step,
                        seconds: self.timeout.as_secs(),
                    });
                }
            }
        }
        // The process is ending.
        Ok(match wait(&mut child, deadline.max(Instant::now() + GRACE)) {
            // The system does not report the ends of processes to one that was started with SIGCHLD ignored.
            Err(_) if is_complete => Ending::Completed,
            Err(error) => Ending::Crashed {
                step,
                status: format!("an unknown status ({error})"),
                output: errors.text(),
            },
            Ok(Some(status)) if status.success() && is_complete => Ending::Completed,
            Ok(Some(status)) => Ending::Crashed {
                step,
                status: describe(status),
                output: errors.text(),
            },
            Ok(None) => {
                end(&mut child);
                Ending::TimedOut {
                    step,
                    seconds: self.timeout.as_secs(),
                }
            }
        })
    }
}

impl fmt::Debug for Prober {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prober")
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// Reads messages on a separate thread, so that the receiver can wait for them with a time limit. Drops all other
/// output.
fn messages_of<T: DeserializeOwned + Send + 'static>(
    stream: Option<impl Read + Send + 'static>,
) -> Receiver<Progress<T>> {
    let (sender, receiver) = channel();
    if let Some(stream) = stream {
        thread::spawn(move || {
            let mut stream = BufReader::new(stream);
            let mut line = Vec::new();
            while stream
                .by_ref()
                .take(LINE)
                .read_until(b'\n', &mut line)
                .is_ok_and(|length| length > 0)
            {
                if let Some(progress) = parse(&String::from_utf8_lossy(&line)) {
                    // The receiver may be gone, but the process must not wait for space in the pipe.
                    _ = sender.send(progress);
                }
                line.clear();
            }
        });
    }
    receiver
}

/// The end of a stream, which a separate thread reads.
struct Tail {
    /// At most [`KEPT`] bytes.
    bytes: Arc<Mutex<Vec<u8>>>,
    /// Disconnected at the end of the stream.
    end: Receiver<()>,
}

impl Tail {
    fn of(stream: Option<impl Read + Send + 'static>) -> Self {
        let (sender, end) = channel();
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&bytes);
        if let Some(mut stream) = stream {
            thread::spawn(move || {
                let _sender = sender;
                let mut buffer = [0; KEPT];
                while let Ok(length @ 1..) = stream.read(&mut buffer) {
                    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                    kept.extend_from_slice(&buffer[..length]);
                    let excess = kept.len().saturating_sub(KEPT);
                    kept.drain(..excess);
                }
            });
        }
        Self { bytes, end }
    }

    /// Returns the text, trimmed, after the process has ended. Another process may keep the stream open, so this waits
    /// for its end only for a while.
    fn text(&self) -> String {
        _ = self.end.recv_timeout(GRACE);
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        // The first character may be incomplete.
        let start = bytes.iter().position(|byte| byte & 0xc0 != 0x80).unwrap_or_default();
        String::from_utf8_lossy(&bytes[start..]).trim().to_owned()
    }
}

/// Kills a process, and waits a while for its end.
fn end(child: &mut Child) {
    // An error means that the process has ended, or that nothing more can be done about it.
    _ = child.kill();
    _ = wait(child, Instant::now() + GRACE);
}

/// Waits until a process has ended; `None` if it has not by the deadline.
fn wait(child: &mut Child, deadline: Instant) -> io::Result<Option<ExitStatus>> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= deadline {
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(5));
    }
}

fn describe(status: ExitStatus) -> String {
    #[cfg(unix)]
    {
        use std::os::unix::process::ExitStatusExt as _;
        if let Some(signal) = status.signal() {
            return match signal_name(signal) {
                Some(name) => format!("signal {signal} ({name})"),
                None => format!("signal {signal}"),
            };
        }
    }
    status
        .code()
        .map_or_else(|| status.to_string(), |code| format!("exit code {code}"))
}

/// Returns the name of a signal that ends crashing programs; `None` for other signals. The numbers are those of Linux
/// on all processors that CUDA supports.
#[cfg(unix)]
fn signal_name(signal: i32) -> Option<&'static str> {
    match signal {
        4 => Some("illegal instruction"),
        6 => Some("abort"),
        7 => Some("bus error"),
        8 => Some("arithmetic error"),
        9 => Some("killed"),
        11 => Some("segmentation fault"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{KEPT, Tail};

    #[test]
    fn only_the_end_of_a_stream_is_kept() {
        assert_eq!(Tail::of(Some(&b" all of it \n"[..])).text(), "all of it");
        let tail = Tail::of(Some(std::io::Cursor::new("ä".repeat(KEPT) + "\n")));
        let text = tail.text();
        assert_eq!(text, "ä".repeat(KEPT / 2 - 1));
        assert!(tail.bytes.lock().is_ok_and(|bytes| bytes.len() == KEPT));
        assert_eq!(Tail::of(None::<std::io::Empty>).text(), "");
    }
}
