//! Direct writes to the program's standard output and standard error.
//!
//! `std::io::stdout()` and `stderr()` take locks that the program shares. A thread of the program that holds such a
//! lock while it waits for the device would deadlock with a kernel that prints.

use std::fs::File;
use std::io::{IsTerminal, Write};
use std::mem::ManuallyDrop;

/// A standard stream of the process.
#[derive(Clone, Copy, Debug)]
pub enum Stream {
    /// Standard output.
    Output,
    /// Standard error.
    Error,
}

/// Writes all of the text. Ignores errors, because the program may have closed the stream.
pub fn write(stream: Stream, text: &[u8]) {
    if let Some(mut file) = file(stream) {
        let _ = file.write_all(text);
    }
}

/// Returns the stream as a file that must not be closed.
#[cfg(unix)]
fn file(stream: Stream) -> Option<ManuallyDrop<File>> {
    use std::os::fd::FromRawFd;
    let descriptor = match stream {
        Stream::Output => libc::STDOUT_FILENO,
        Stream::Error => libc::STDERR_FILENO,
    };
    // SAFETY: the descriptor belongs to the process, and `ManuallyDrop` never closes it. If the program has closed it,
    // writes fail.
    Some(ManuallyDrop::new(unsafe { File::from_raw_fd(descriptor) }))
}

/// Returns the stream as a file that must not be closed; `None` if the process has no such stream.
#[cfg(windows)]
fn file(stream: Stream) -> Option<ManuallyDrop<File>> {
    use std::os::windows::io::{AsRawHandle, FromRawHandle};
    let handle = match stream {
        Stream::Output => std::io::stdout().as_raw_handle(),
        Stream::Error => std::io::stderr().as_raw_handle(),
    };
    // SAFETY: the handle is not null and belongs to the process, and `ManuallyDrop` never closes it.
    (!handle.is_null()).then(|| ManuallyDrop::new(unsafe { File::from_raw_handle(handle) }))
}

/// Returns true if the stream is a terminal.
pub fn is_terminal(stream: Stream) -> bool {
    file(stream).is_some_and(|file| file.is_terminal())
}
