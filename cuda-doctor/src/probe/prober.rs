//! Starts child processes and waits for their results.

use std::fmt;
use std::io::{self, BufRead as _, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;

use super::progress::{Progress, parse};
use super::task::Task;
use crate::findings::Ending;

/// The maximum time to wait for the end of a process that was killed, because a process that waits inside a broken
/// kernel module never ends; and the minimum time for one that has closed its standard output.
const GRACE: Duration = Duration::from_secs(2);

/// The maximum number of bytes that are kept of the end of a child's standard error.
const KEPT: usize = 2000;

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
    pub(crate) fn run<T: DeserializeOwned + Default>(&self, task: &Task) -> (T, Ending) {
        let mut results = T::default();
        let ending = self.watch(task, &mut results);
        let not_started = |error: io::Error| Ending::NotStarted {
            message: error.to_string(),
        };
        (results, ending.unwrap_or_else(not_started))
    }

    fn watch<T: DeserializeOwned>(&self, task: &Task, results: &mut T) -> io::Result<Ending> {
        let mut command = (self.command)(task)?;
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let lines = lines_of(child.stdout.take());
        let errors = lines_of(child.stderr.take());

        let deadline = Instant::now() + self.timeout;
        let mut step = "its start".to_owned();
        let mut is_complete = false;
        loop {
            match lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    if let Some(progress) = parse::<T>(&line) {
                        let Progress {
                            step: next,
                            results: latest,
                            is_complete: is_last,
                        } = progress;
                        (step, *results, is_complete) = (next, latest, is_last);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    end(&mut child);
                    return Ok(Ending::TimedOut {
                        step,
                        seconds: self.timeout.as_secs(),
                    });
                }
            }
        }
        // Standard output is closed, so the process is ending.
        Ok(match wait(&mut child, deadline.max(Instant::now() + GRACE)) {
            // The system does not report the ends of processes to one that was started with SIGCHLD ignored.
            Err(_) if is_complete => Ending::Completed,
            Err(error) => Ending::Crashed {
                step,
                status: format!("an unknown status ({error})"),
                output: end_of(&errors),
            },
            Ok(Some(status)) if status.success() && is_complete => Ending::Completed,
            Ok(Some(status)) => Ending::Crashed {
                step,
                status: describe(status),
                output: end_of(&errors),
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

/// Reads lines on a separate thread, so that the receiver can wait for them with a time limit.
fn lines_of(stream: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (sender, receiver) = channel();
    if let Some(stream) = stream {
        thread::spawn(move || {
            let mut stream = BufReader::new(stream);
            let mut line = Vec::new();
            while stream.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
                let text = String::from_utf8_lossy(&line).into_owned();
                line.clear();
                if sender.send(text).is_err() {
                    return;
                }
            }
        });
    }
    receiver
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

/// Returns the end of the output of a process that has ended: at most [`KEPT`] bytes, trimmed.
fn end_of(lines: &Receiver<String>) -> String {
    let mut text = String::new();
    while let Ok(line) = lines.recv_timeout(Duration::from_millis(100)) {
        text.push_str(&line);
    }
    let start = text.len().saturating_sub(KEPT);
    let start = (start..=text.len())
        .find(|start| text.is_char_boundary(*start))
        .unwrap_or_default();
    text[start..].trim().to_owned()
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
