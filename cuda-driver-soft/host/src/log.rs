//! The driver's log: lines on standard error if `CUDA_SOFT_LOG` is on, and messages that the program can read with
//! `cuLogs*`.

use std::fmt;
use std::sync::OnceLock;

use crate::console::{self, Stream};
use crate::{environment, messages};

/// Writes one line to the log.
#[macro_export]
macro_rules! log {
    ($($arg:tt)*) => {
        $crate::write_log(format_args!($($arg)*))
    };
}

static OBSERVER: OnceLock<fn(&str)> = OnceLock::new();

/// Passes each later line of the log, except the results of failed calls, to a function. It runs on the thread that
/// writes the line, which may hold locks of the driver. Only the first function that is set is called.
pub fn observe(observer: fn(&str)) {
    let _ = OBSERVER.set(observer);
}

fn tell(line: &str) {
    if let Some(observer) = OBSERVER.get() {
        observer(line);
    }
}

/// Writes one line to the log; the macro [`log!`] calls this.
#[cold]
pub fn write_log(line: fmt::Arguments<'_>) {
    if environment::log() {
        write_line(line);
    }
    let line = line.to_string();
    tell(&line);
    messages::add(&line);
}

/// Writes a line for asynchronous work, which belongs to no call of this thread. The program's callbacks receive it
/// when a call returns the error: see [`messages::report`].
#[cold]
pub fn write_log_of_work(line: &str) {
    if environment::log() {
        write_line(format_args!("{line}"));
    }
    tell(line);
    messages::keep(line);
}

/// Writes a line that explains the line before it. Programs cannot read it with `cuLogs*`.
#[cold]
pub fn write_detail(line: &str) {
    if environment::log() {
        write_line(format_args!("  {line}"));
    }
    tell(line);
}

/// Logs the result of a failed call.
#[cold]
pub fn write_result(function: &str, code: u32, name: &str) {
    if environment::log() {
        write_line(format_args!("{function}: {name} ({code})"));
    }
    messages::add(&format!("Returning {code} ({name}) from {function}"));
}

fn write_line(line: fmt::Arguments<'_>) {
    console::write(Stream::Error, format!("cuda-driver-soft: {line}\n").as_bytes());
}
