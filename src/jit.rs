//! The driver's PTX compiler and linker: their options, logs and errors.
//!
//! [`Module`](crate::Module), [`Library`](crate::Library) and [`Linker`](crate::Linker) take [`JitOptions`]; a
//! [`JitError`] contains the compiler's messages.

mod buffer;
mod error;
mod image;
mod options;
mod request;

pub use error::JitError;
pub use options::{HostSymbol, JitOptions, JitTarget, LtoOptions};

pub(crate) use error::{read, refused};
pub(crate) use image::{Format, recognise};
pub(crate) use request::Request;

use std::ffi::CString;
use std::path::Path;

use crate::sys::Function;

/// Returns PTX as a C string. Errors name `function`.
#[inline]
#[track_caller]
pub(crate) fn ptx(ptx: &str, function: Function) -> Result<CString, JitError> {
    match image::text(ptx.trim_end_matches('\0').as_bytes()) {
        Ok(text) => Ok(text),
        Err(reason) => Err(refused(reason, function)),
    }
}

/// Reads a PTX file. Errors of reading name the function `reading`, and errors about the text name `function`. For a
/// binary, the error advises to use `instead`.
#[inline]
#[track_caller]
pub(crate) fn read_ptx(path: &Path, reading: Function, function: Function, instead: &str) -> Result<CString, JitError> {
    match recognise(&read(path, reading)?) {
        Ok(Format::Text(text)) => Ok(text),
        Ok(Format::Binary) => Err(refused(
            format!("the file is a binary, not PTX: use `{instead}`"),
            function,
        )),
        Err(reason) => Err(refused(reason, function)),
    }
}
