//! The driver's log: lines on standard error if `CUDA_SOFT_LOG` is on, and messages that the program can read with
//! `cuLogs*`.

use std::fmt;

use crate::console::{self, Stream};
use crate::{environment, messages};

/// Writes one line to the log.
#[macro_export]
macro_rules! log {
    ($($arg:tt)*) => {
        $crate::write_log(format_args!($($arg)*))
    };
}

/// Writes one line to the log; the macro [`log!`] calls this.
#[cold]
pub fn write_log(line: fmt::Arguments<'_>) {
    if environment::log() {
        write_line(line);
    }
    messages::add(&line.to_string());
}

/// Writes a line for asynchronous work, which belongs to no call of this thread. Callbacks get it when a call reports
/// the error: see [`messages::report`].
#[cold]
pub fn write_log_of_work(line: &str) {
    if environment::log() {
        write_line(format_args!("{line}"));
    }
    messages::keep(line);
}

/// Writes the result of a call that failed to the log.
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
