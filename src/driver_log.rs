//! The driver's log: messages that explain failed calls. Drivers from CUDA 12.9 on have it.
//!
//! After [`attach`], each [`Error`] of a driver call contains the messages that the driver logged on the same thread:
//!
//! ```
//! # use cuda_driver::{Context, Device, DeviceBuffer};
//! # cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software).unwrap().install().unwrap();
//! cuda_driver::init()?;
//! // Older drivers have no log: their errors contain no messages.
//! let _ = cuda_driver::driver_log::attach();
//! # let context = Context::create(Device::first()?)?;
//! let error = DeviceBuffer::<f32>::alloc(&context, usize::MAX).unwrap_err();
//! println!("{error}");
//! # Ok::<(), cuda_driver::Error>(())
//! ```
//!
//! A [`LogCallback`] passes every message of the process to a closure, and a [`LogPosition`] reads the messages after
//! it that the driver still keeps.
//!
//! The functions return a [missing-function error](crate::Error::is_missing_function) if the driver is too old.

use core::ffi::{CStr, c_char, c_void};
use core::mem::{self, ManuallyDrop};
use core::{fmt, ptr, slice};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::{Error, dropping};
use crate::receivers::Receivers;
use crate::sys::CUlogLevel;
use crate::{Result, checked, error_log, sys};

/// A closure that gets messages.
type Receiver = dyn Fn(CUlogLevel, &str) + Send + Sync;

// Statics are never dropped. With `ManuallyDrop`, this crate does not contain the unused code to drop the closures.
static RECEIVERS: ManuallyDrop<Receivers<Receiver>> = ManuallyDrop::new(Receivers::new());

/// The number for messages that belong to errors.
const ERRORS: usize = 0;

/// True after [`attach`] succeeded.
static ATTACHED: Mutex<bool> = Mutex::new(false);

/// Adds the driver's messages to the errors of this crate, until the process ends
/// ([`cuLogsRegisterCallback`](checked::logs_register_callback)). Later calls have no effect.
///
/// The driver calls this crate only for messages, so successful calls cost nothing. A failed call costs a copy of its
/// messages, which [`Error::log`](crate::Error::log) returns and which are printed with the error. They are the
/// messages that the driver logged on the calling thread since the previous error, including those of raw calls that
/// failed in between. A message that only repeats code and function is left out, and earlier messages are dropped if
/// the messages have more than 4096 bytes in total. A longer message is dropped, too.
///
/// # Errors
/// Returns a [missing-function error](crate::Error::is_missing_function) if the driver is older than CUDA 12.9.
#[inline]
#[doc(alias = "cuLogsRegisterCallback")]
#[track_caller]
pub fn attach() -> Result<()> {
    let mut attached = ATTACHED.lock().unwrap_or_else(PoisonError::into_inner);
    if !*attached {
        // SAFETY: `receive` does not unwind, and takes any number.
        unsafe { checked::logs_register_callback(Some(receive), ptr::without_provenance_mut(ERRORS)) }?;
        Error::attach_driver_log();
        *attached = true;
    }
    Ok(())
}

/// Returns true for the message `Returning 1 (CUDA_ERROR_INVALID_VALUE) from cuMemFree_v2`, which drivers log after the
/// reason of every failed call. The error names the same code and function.
#[inline]
fn repeats_the_error(message: &str) -> bool {
    message.starts_with("Returning ") && message.contains(") from cu")
}

/// Passes a message to the receiver that is registered as `number`. The driver calls this function.
#[inline]
unsafe extern "system" fn receive(number: *mut c_void, level: CUlogLevel, message: *mut c_char, length: usize) {
    if message.is_null() {
        return;
    }
    // SAFETY: the driver passes a message of this length.
    let bytes = unsafe { slice::from_raw_parts(message.cast::<u8>(), length) };
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_end_matches(['\0', '\n']);
    if number.addr() == ERRORS {
        if !repeats_the_error(text) {
            error_log::note(text);
        }
        return;
    }
    RECEIVERS.with(number.addr(), |receiver| receiver(level, text));
}

/// The registration of a closure that gets all messages that the driver logs in this process. Dropping it unregisters
/// the closure.
///
/// ```
/// # cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software).unwrap().install().unwrap();
/// # cuda_driver::init()?;
/// use cuda_driver::driver_log::LogCallback;
///
/// let callback = LogCallback::new(|level, message| eprintln!("{level:?}: {message}"))?;
/// // … calls that fail …
/// callback.unregister()?;
/// # Ok::<(), cuda_driver::Error>(())
/// ```
pub struct LogCallback {
    raw: sys::CUlogsCallbackHandle,
    number: usize,
}

// SAFETY: the handle may be used on any thread.
unsafe impl Send for LogCallback {}
// SAFETY: as above; no method uses the handle by reference.
unsafe impl Sync for LogCallback {}

impl LogCallback {
    /// Registers a closure, which the driver calls on the thread of the call that failed
    /// ([`cuLogsRegisterCallback`](checked::logs_register_callback)).
    ///
    /// The closure must not call the driver, which may deadlock. A panic in it is ignored.
    ///
    /// # Errors
    /// Returns a [missing-function error](crate::Error::is_missing_function) if the driver is older than CUDA 12.9.
    #[inline]
    #[doc(alias = "cuLogsRegisterCallback")]
    #[track_caller]
    pub fn new(receiver: impl Fn(CUlogLevel, &str) + Send + Sync + 'static) -> Result<Self> {
        let number = RECEIVERS.add(Arc::new(receiver));
        // SAFETY: `receive` does not unwind, and takes any number.
        let raw = unsafe { checked::logs_register_callback(Some(receive), ptr::without_provenance_mut(number)) };
        match raw {
            Ok(raw) => Ok(Self { raw, number }),
            Err(error) => {
                RECEIVERS.remove(number);
                Err(error)
            }
        }
    }

    /// Unregisters the closure ([`cuLogsUnregisterCallback`](checked::logs_unregister_callback)). Dropping does the
    /// same.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_DEINITIALIZED` while the process exits.
    #[inline]
    #[doc(alias = "cuLogsUnregisterCallback")]
    #[track_caller]
    pub fn unregister(mut self) -> Result<()> {
        // SAFETY: the handle is live, and replaced by null so that `drop` does not use it.
        unsafe { checked::logs_unregister_callback(mem::replace(&mut self.raw, ptr::null_mut())) }
    }

    /// Returns the raw handle, which is valid as long as `self`.
    #[inline]
    #[must_use]
    pub const fn as_raw(&self) -> sys::CUlogsCallbackHandle {
        self.raw
    }
}

impl Drop for LogCallback {
    #[inline]
    fn drop(&mut self) {
        if !self.raw.is_null() {
            if let Some(dropping) = dropping() {
                // SAFETY: the handle is live, and this is its last use.
                dropping.done(unsafe { checked::logs_unregister_callback(self.raw) });
            }
        }
        RECEIVERS.remove(self.number);
    }
}

impl fmt::Debug for LogCallback {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogCallback")
            .field("raw", &self.raw)
            .finish_non_exhaustive()
    }
}

/// The size of a buffer for all messages that the driver keeps, which are at most 25,600 bytes.
const BUFFER: usize = 32 << 10;

/// A position in the driver's log. Reading moves it to the end.
///
/// ```
/// # cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software).unwrap().install().unwrap();
/// # cuda_driver::init()?;
/// use cuda_driver::driver_log::LogPosition;
///
/// let mut position = LogPosition::end()?;
/// // … calls that fail …
/// print!("{}", position.read()?);
/// # Ok::<(), cuda_driver::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct LogPosition {
    raw: sys::CUlogIterator,
}

impl LogPosition {
    /// Returns the position of the next message ([`cuLogsCurrent`](checked::logs_current)).
    ///
    /// # Errors
    /// Returns a [missing-function error](crate::Error::is_missing_function) if the driver is older than CUDA 12.9.
    #[inline]
    #[doc(alias = "cuLogsCurrent")]
    #[track_caller]
    pub fn end() -> Result<Self> {
        // SAFETY: 0 is the only valid value for the flags.
        let raw = unsafe { checked::logs_current(0) }?;
        Ok(Self { raw })
    }

    /// Returns the messages from this position on, one a line, and moves the position to the end
    /// ([`cuLogsDumpToMemory`](checked::logs_dump_to_memory)). The driver keeps at most 25,600 bytes; if older messages
    /// were lost, a line in the text says so.
    ///
    /// # Errors
    /// Returns a [missing-function error](crate::Error::is_missing_function) if the driver is older than CUDA 12.9.
    #[inline]
    #[doc(alias = "cuLogsDumpToMemory")]
    #[track_caller]
    pub fn read(&mut self) -> Result<String> {
        let mut buffer = vec![0u8; BUFFER];
        // SAFETY: 0 is the only valid value for the flags.
        let length = unsafe { checked::logs_dump_to_memory(Some(&mut self.raw), &mut buffer, 0) }?;
        let text = &buffer[..length.min(BUFFER)];
        Ok(String::from_utf8_lossy(text).into_owned())
    }

    /// Writes the messages from this position on to a file, and moves the position to the end
    /// ([`cuLogsDumpToFile`](checked::logs_dump_to_file)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the driver cannot write the file, and a
    /// [missing-function error](crate::Error::is_missing_function) if the driver is older than CUDA 12.9.
    #[inline]
    #[doc(alias = "cuLogsDumpToFile")]
    #[track_caller]
    pub fn write_to_file(&mut self, path: &CStr) -> Result<()> {
        // SAFETY: the path is a C string, and 0 is the only valid value for the flags.
        unsafe { checked::logs_dump_to_file(Some(&mut self.raw), path, 0) }
    }
}
