//! The driver as a whole: found, initialised, asked for its version.

use core::fmt;

use crate::sys::{self, library::LoadError};
use crate::{Result, checked};

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
    Ok(Version(version.unsigned_abs()))
}

/// A CUDA version, displayed as `12.5`.
///
/// C writes it as 12050, and so does [`sys`]: [`Library::version`](sys::Library::version),
/// [`Function::since`](sys::Function::since), [`CUDA_VERSION`](sys::CUDA_VERSION).
///
/// ```
/// use cuda_driver::{Version, sys};
///
/// let needed = Version::from_raw(sys::Function::cuCtxCreate_v4.since());
/// assert!(needed > Version::from_raw(12020));
/// assert_eq!(needed.to_string(), "12.5");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(u32);

impl Version {
    /// A version from C's number, for instance 12050.
    #[inline]
    #[must_use]
    pub const fn from_raw(version: u32) -> Self {
        Self(version)
    }

    /// C's number: 1000 × major + 10 × minor.
    #[inline]
    #[must_use]
    pub const fn as_raw(self) -> u32 {
        self.0
    }

    /// 12 of 12.5.
    #[inline]
    #[must_use]
    pub const fn major(self) -> u32 {
        self.0 / 1000
    }

    /// 5 of 12.5.
    #[inline]
    #[must_use]
    pub const fn minor(self) -> u32 {
        self.0 % 1000 / 10
    }
}

impl fmt::Display for Version {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major(), self.minor())
    }
}
