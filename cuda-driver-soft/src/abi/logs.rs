//! Exports of the driver's log.

use std::ffi::{c_char, c_uint, c_void};
use std::fs;
use std::sync::Arc;

use cuda_driver_sys::{CUlogIterator, CUlogLevel, CUlogsCallback, CUlogsCallbackHandle};
use host::messages::{self, Dump};

use super::args::{Caller, set};
use super::exports;
use crate::state::error::{Error, Result};

const MISSING: &str = "The provided buffer is not large enough to hold all messages. Some messages will be missing\n";
const ROLLED_OVER: &str = "Log buffer has rolled over since the previous dump. The oldest messages will be missing\n";

/// A callback of the program with its argument.
struct Listener {
    function: unsafe extern "system" fn(*mut c_void, CUlogLevel, *mut c_char, usize),
    data: usize,
}

impl Listener {
    fn call(&self, message: &str) {
        let mut text: Vec<u8> = message.bytes().chain([0]).collect();
        // SAFETY: the program registered the function for such calls; the text is NUL-terminated and lives until the
        // function returns.
        unsafe {
            (self.function)(
                self.data as *mut c_void,
                CUlogLevel::CU_LOG_LEVEL_ERROR,
                text.as_mut_ptr().cast(),
                message.len(),
            );
        };
    }
}

/// Returns the messages after the position that `iterator` points to, or all messages that are kept if it is NULL.
fn dump(c: Caller, iterator: *mut CUlogIterator) -> Result<Dump> {
    let start = if iterator.is_null() {
        None
    } else {
        Some(c.read(iterator)? as usize)
    };
    messages::dump(start).ok_or_else(|| {
        host::log!("the iterator is beyond the end of the log: use one that a cuLogs function returned");
        Error::CUDA_ERROR_INVALID_VALUE
    })
}

/// Returns as many of the newest lines as fit into `capacity` bytes with a NUL byte. If lines are missing, a note comes
/// first and takes a part of the space. Returns `None` if the note and one line do not fit, or if `capacity` is 0.
fn fit(dump: &Dump, capacity: usize) -> Option<String> {
    let note = if dump.rolled_over { ROLLED_OVER } else { "" };
    let whole: usize = dump.lines.iter().map(String::len).sum();
    if note.len() + whole < capacity {
        return Some(note.to_owned() + &dump.lines.concat());
    }
    let mut first = dump.lines.len();
    let mut length = MISSING.len();
    while first > 0 && length + dump.lines[first - 1].len() < capacity {
        first -= 1;
        length += dump.lines[first].len();
    }
    (first < dump.lines.len()).then(|| MISSING.to_owned() + &dump.lines[first..].concat())
}

exports! {
    anytime fn cuLogsRegisterCallback [c] (
        function: CUlogsCallback,
        data: *mut c_void,
        out: *mut CUlogsCallbackHandle,
    ) {
        let Some(function) = function else {
            host::log!("callbackFunc cannot be NULL");
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        };
        let listener = Listener { function, data: data as usize };
        let number = messages::register(Arc::new(move |message: &str| listener.call(message)));
        set(c.out_or_null(out), number as CUlogsCallbackHandle);
        Ok(())
    }

    anytime fn cuLogsUnregisterCallback [c] (callback: CUlogsCallbackHandle) {
        if messages::unregister(callback as usize) {
            Ok(())
        } else {
            host::log!("{callback:p} is not a registered callback: pass a handle that cuLogsRegisterCallback returned");
            Err(Error::CUDA_ERROR_INVALID_VALUE)
        }
    }

    anytime fn cuLogsCurrent [c] (out: *mut CUlogIterator, flags: c_uint) {
        // Driver 580 accepts any flags.
        let _ = flags;
        c.out(out)?.set(messages::count() as CUlogIterator);
        Ok(())
    }

    anytime fn cuLogsDumpToMemory [c] (
        iterator: *mut CUlogIterator,
        buffer: *mut c_char,
        size: *mut usize,
        flags: c_uint,
    ) {
        let _ = flags;
        let capacity = c.read(size)?;
        if buffer.is_null() {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        let dump = dump(c, iterator)?;
        let Some(text) = fit(&dump, capacity) else {
            host::log!("the buffer of {capacity} bytes is too small: pass one for a message and a note about missing ones");
            c.out(size)?.set(0);
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        };
        c.set_text(buffer, capacity, text.as_bytes());
        c.out(size)?.set(text.len());
        set(c.out_or_null(iterator), dump.end as CUlogIterator);
        Ok(())
    }

    anytime fn cuLogsDumpToFile [c] (iterator: *mut CUlogIterator, path: *const c_char, flags: c_uint) {
        let _ = flags;
        let path = c.path(path)?;
        let dump = dump(c, iterator)?;
        fs::write(&path, dump.lines.concat()).map_err(|error| {
            host::log!("cannot write the log to {}: {error}", path.display());
            Error::CUDA_ERROR_INVALID_VALUE
        })?;
        set(c.out_or_null(iterator), dump.end as CUlogIterator);
        Ok(())
    }
}
