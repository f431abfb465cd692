//! The program's standard output and standard error, written to directly.
//!
//! Not through `std::io::stdout()` and `stderr()`: where this driver is part of a Rust program their locks are the
//! program's too, and a thread that holds one while it waits for the device would wait for ever.

use std::fs::File;
use std::io::Write;
use std::mem::ManuallyDrop;

/// Which of the two.
#[derive(Clone, Copy)]
pub(crate) enum Stream {
    Output,
    Error,
}

/// Writes all of the text. Nobody can be told that the stream is closed, so nobody is.
pub(crate) fn write(stream: Stream, text: &[u8]) {
    if let Some(mut file) = file(stream) {
        let _ = file.write_all(text);
    }
}

#[cfg(unix)]
fn file(stream: Stream) -> Option<ManuallyDrop<File>> {
    use std::os::fd::FromRawFd;
    let descriptor = match stream {
        Stream::Output => libc::STDOUT_FILENO,
        Stream::Error => libc::STDERR_FILENO,
    };
    // SAFETY: the number is the process's for this purpose, and it is not closed here.
    Some(ManuallyDrop::new(unsafe { File::from_raw_fd(descriptor) }))
}

#[cfg(windows)]
fn file(stream: Stream) -> Option<ManuallyDrop<File>> {
    use std::os::windows::io::{AsRawHandle, FromRawHandle};
    let handle = match stream {
        Stream::Output => std::io::stdout().as_raw_handle(),
        Stream::Error => std::io::stderr().as_raw_handle(),
    };
    // SAFETY: the handle is the process's for this purpose, and it is not closed here.
    (!handle.is_null()).then(|| ManuallyDrop::new(unsafe { File::from_raw_handle(handle) }))
}
