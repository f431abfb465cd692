//! CUDA versions.
#![forbid(unsafe_code)]

use core::fmt;

/// A CUDA version, displayed as `12.5`.
///
/// C and [`sys`](crate::sys) write versions as one number, 12050 for CUDA 12.5:
/// [`Library::version`](crate::sys::Library::version), [`Function::since`](crate::sys::Function::since),
/// [`CUDA_VERSION`](crate::sys::CUDA_VERSION).
///
/// ```
/// use cuda_driver::{Version, sys};
///
/// let needed = Version::from_raw(sys::Function::cuCtxCreate_v4.since());
/// assert!(needed > Version::new(12, 2));
/// assert_eq!(needed.to_string(), "12.5");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(u32);

impl Version {
    /// Returns the version with these numbers: `new(12, 5)` is CUDA 12.5.
    #[inline]
    #[must_use]
    pub const fn new(major: u32, minor: u32) -> Self {
        Self(1000 * major + 10 * minor)
    }

    /// Returns the version for C's number, for instance 12050.
    #[inline]
    #[must_use]
    pub const fn from_raw(version: u32) -> Self {
        Self(version)
    }

    /// Returns C's number: 1000 × major + 10 × minor.
    #[inline]
    #[must_use]
    pub const fn as_raw(self) -> u32 {
        self.0
    }

    /// Returns the major version: 12 for CUDA 12.5.
    #[inline]
    #[must_use]
    pub const fn major(self) -> u32 {
        self.0 / 1000
    }

    /// Returns the minor version: 5 for CUDA 12.5.
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
