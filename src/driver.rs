//! The driver as a whole: found, initialised, asked for its version.

use crate::sys::{self, library::LoadError};
use crate::{Result, Version, checked};

/// Finds and loads the driver without calling anything in it. Every other call does this by itself; this one tells why
/// it did not work.
///
/// ```no_run
/// match cuda_driver::load() {
///     Ok(library) => println!("served by {:?}", library.path()),
///     Err(error) => println!("no CUDA here: {error}"),
/// }
/// ```
///
/// # Errors
/// Every place that was tried, with the system's words.
#[inline]
pub fn load() -> core::result::Result<&'static sys::Library, &'static LoadError> {
    match sys::DEFAULT.load_error() {
        None => Ok(&sys::DEFAULT),
        Some(error) => Err(error),
    }
}

/// Initialises the driver ([`cuInit`](checked::init)). Every call but [`version`] needs it first; more often does no
/// harm.
///
/// # Errors
/// 100 where there is no device, 3 in a process forked from one that was initialised; no driver, with the places that
/// were tried.
#[inline]
#[doc(alias = "cuInit")]
#[track_caller]
pub fn init() -> Result<()> {
    // SAFETY: the only flags that there are.
    unsafe { checked::init(0) }
}

/// The highest CUDA version that the driver supports ([`cuDriverGetVersion`](checked::driver_get_version)). It needs no
/// [`init`].
///
/// # Errors
/// No driver could be loaded.
#[inline]
#[doc(alias = "cuDriverGetVersion")]
#[track_caller]
pub fn version() -> Result<Version> {
    // SAFETY: it takes nothing.
    let version = unsafe { checked::driver_get_version() }?;
    Ok(Version::from_raw(version.unsigned_abs()))
}
