//! Why device code could not be loaded, in the compiler's words.

use core::fmt;
use std::path::{Path, PathBuf};

use crate::Error;

/// Device code could not be loaded.
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

impl JitError {
    #[inline]
    pub(super) const fn new(error: Error) -> Self {
        Self {
            error,
            path: None,
            error_log: String::new(),
            info_log: String::new(),
        }
    }

    /// An image that the driver was not asked about.
    #[inline]
    pub(super) fn refused(error: Error, reason: String) -> Self {
        Self {
            error_log: reason,
            ..Self::new(error)
        }
    }

    #[inline]
    pub(super) fn with_logs(error: Error, error_log: String, info_log: String) -> Self {
        Self {
            error,
            path: None,
            error_log,
            info_log,
        }
    }

    #[inline]
    pub(super) fn at(mut self, path: &Path) -> Self {
        self.path = Some(path.to_owned());
        self
    }

    /// The call that failed, without the compiler's words.
    #[inline]
    pub const fn error(&self) -> Error {
        self.error
    }

    /// The file, if the code came from one.
    #[inline]
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// What the compiler complained of, or why the image was refused; empty if there is nothing to say.
    #[inline]
    #[must_use]
    pub fn error_log(&self) -> &str {
        &self.error_log
    }

    /// What else the compiler said; empty if nothing.
    #[inline]
    #[must_use]
    pub fn info_log(&self) -> &str {
        &self.info_log
    }
}

impl fmt::Display for JitError {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = &self.path {
            write!(f, "{}: ", path.display())?;
        }
        fmt::Display::fmt(&self.error, f)?;
        for line in self.error_log.lines() {
            write!(f, "\n  {line}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for JitError {
    /// Prints the message of [`Display`](fmt::Display), because `main` prints errors with `Debug`.
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The call that failed; the compiler's words are lost.
impl From<JitError> for Error {
    #[inline]
    fn from(error: JitError) -> Self {
        error.error
    }
}

/// Without a source: the text begins with [`error`](JitError::error)'s, which would be printed twice.
impl core::error::Error for JitError {}
