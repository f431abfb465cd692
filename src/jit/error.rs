//! Errors from compiling, linking and loading device code, with the compiler's messages.
#![forbid(unsafe_code)]

use core::fmt;
use std::borrow::Cow;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::Error;
use crate::error_log::ErrorLog;
use crate::sys::{CUresult, Function};

/// An error of compiling, linking or loading device code, with the compiler's messages.
///
/// ```text
/// cuModuleLoadDataEx failed: CUDA_ERROR_INVALID_PTX (218): the PTX does not compile for this device (src/main.rs:9)
///   ptxas application ptx input, line 6; error   : Unknown symbol '%r1'
/// ```
#[derive(Clone)]
pub struct JitError {
    error: Error,
    path: Option<PathBuf>,
    error_log: String,
    info_log: String,
}

/// Reads a file. Errors name `function`.
#[inline]
#[track_caller]
pub(crate) fn read(path: &Path, function: Function) -> Result<Vec<u8>, JitError> {
    match fs::read(path) {
        Ok(content) => Ok(content),
        Err(error) => {
            let code = match error.kind() {
                ErrorKind::OutOfMemory => CUresult::CUDA_ERROR_OUT_OF_MEMORY,
                _ => CUresult::CUDA_ERROR_FILE_NOT_FOUND,
            };
            Err(JitError::refused(Error::unasked(code, function), error.to_string()))
        }
    }
}

/// Returns the error for an image that is rejected without calling the driver.
#[inline]
#[track_caller]
pub(crate) fn refused(reason: String, function: Function) -> JitError {
    JitError::refused(Error::unasked(CUresult::CUDA_ERROR_INVALID_IMAGE, function), reason)
}

impl JitError {
    #[inline]
    pub(crate) const fn new(error: Error) -> Self {
        Self {
            error,
            path: None,
            error_log: String::new(),
            info_log: String::new(),
        }
    }

    /// Returns the error of a call that was not made, with the reason in place of the compiler's messages.
    #[inline]
    pub(crate) fn refused(error: Error, reason: String) -> Self {
        Self {
            error_log: reason,
            ..Self::new(error)
        }
    }

    #[inline]
    pub(crate) fn with_logs(error: Error, error_log: String, info_log: String) -> Self {
        Self {
            error_log,
            info_log,
            ..Self::new(error)
        }
    }

    #[inline]
    pub(crate) fn at(mut self, path: &Path) -> Self {
        self.path = Some(path.to_owned());
        self
    }

    /// Returns the path as text; empty without a path.
    #[inline]
    fn path_text(&self) -> Cow<'_, str> {
        self.path.as_deref().unwrap_or(Path::new("")).to_string_lossy()
    }

    /// Returns the messages that are printed with the error.
    #[inline]
    fn log<'a>(&'a self, path: &'a str) -> ErrorLog<'a> {
        ErrorLog {
            path,
            log: &self.error_log,
        }
    }

    /// Returns the error of the call, without the compiler's messages.
    #[inline]
    pub const fn error(&self) -> Error {
        self.error
    }

    /// Returns the file's path, if the code came from a file.
    #[inline]
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Returns the compiler's error messages, or the reason why the driver was not called. May be empty.
    #[inline]
    #[must_use]
    pub fn error_log(&self) -> &str {
        &self.error_log
    }

    /// Returns the compiler's other messages. May be empty.
    #[inline]
    #[must_use]
    pub fn info_log(&self) -> &str {
        &self.info_log
    }
}

impl fmt::Display for JitError {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path_text();
        self.log(&path).show(f, &self.error)
    }
}

impl fmt::Debug for JitError {
    /// Prints the message of [`Display`](fmt::Display), because `main` prints errors with `Debug`.
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Returns the error of the call. The compiler's [messages](Error::log) and the path are still printed with it.
impl From<JitError> for Error {
    #[inline]
    fn from(error: JitError) -> Self {
        error.error.with_log(error.log(&error.path_text()))
    }
}

/// Returns the error of a call that compiles no device code, such as making a context current.
impl From<Error> for JitError {
    #[inline]
    fn from(error: Error) -> Self {
        Self::new(error)
    }
}

/// Has no source, because its message already contains the message of [`error`](JitError::error).
impl core::error::Error for JitError {}
