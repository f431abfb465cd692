//! Loading and initialising the driver, and its version.

use crate::error::note_process;
use crate::sys::{self, library::LoadError};
use crate::{Result, Version, checked};

/// Finds and loads the driver without calling it. All driver calls load it if necessary; this function returns the
/// details if that fails.
///
/// ```
/// # cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software).unwrap().install().unwrap();
/// match cuda_driver::load() {
///     Ok(library) => println!("the driver is {:?}", library.path()),
///     Err(error) => println!("no CUDA here: {error}"),
/// }
/// ```
///
/// # Errors
/// Returns an error with every place that was tried, and the system's message for each.
#[inline]
pub fn load() -> core::result::Result<&'static sys::Library, &'static LoadError> {
    match sys::DEFAULT.load_error() {
        None => Ok(&sys::DEFAULT),
        Some(error) => Err(error),
    }
}

/// Initialises the driver ([`cuInit`](checked::init)). Nearly all calls require this; [`version`] does not. Later calls
/// have no effect.
///
/// # Errors
/// Returns `CUDA_ERROR_NO_DEVICE` if there is no device, `CUDA_ERROR_NOT_INITIALIZED` in a process that was forked
/// after the driver was initialised, or an error with every place that was tried if no driver was found.
#[inline]
#[doc(alias = "cuInit")]
#[track_caller]
pub fn init() -> Result<()> {
    // SAFETY: 0 is the only valid value for the flags.
    unsafe { checked::init(0) }?;
    note_process();
    Ok(())
}

/// Returns the highest CUDA version that the driver supports ([`cuDriverGetVersion`](checked::driver_get_version)).
/// [`init`] is not needed.
///
/// # Errors
/// Returns an error if no driver could be loaded.
#[inline]
#[doc(alias = "cuDriverGetVersion")]
#[track_caller]
pub fn version() -> Result<Version> {
    // SAFETY: no preconditions.
    let version = unsafe { checked::driver_get_version() }?;
    Ok(Version::from_raw(version.unsigned_abs()))
}
