//! The library that the free functions call.

use core::fmt;
use core::panic::Location;

use super::claim::ClaimedBy;
use super::slots::{self, Library};
use super::source::{Options, Source};

/// The library that the free functions call.
///
/// Unless [`set_default`] was called before, the first use loads the system's driver as [`Source::search`] does.
/// Without the feature `loader`, `set_default` must be called first. Without a driver, every call returns
/// [`CUDA_ERROR_SHARED_OBJECT_INIT_FAILED`](crate::CUresult::CUDA_ERROR_SHARED_OBJECT_INIT_FAILED), and
/// [`Library::load_error`] gives the reason.
pub static DEFAULT: Library = Library::unopened(0);

impl Library {
    /// Returns the library with a number that [`number`](Self::number) returned; `None` for any other number.
    #[inline]
    #[must_use]
    pub fn by_number(number: u16) -> Option<&'static Self> {
        match number {
            0 => Some(&DEFAULT),
            number => slots::by_number(number),
        }
    }
}

/// Returns a reference to [`DEFAULT`].
#[inline]
#[must_use]
pub fn default_library() -> &'static Library {
    &DEFAULT
}

/// Sets the source of [`DEFAULT`]. This must happen before the first use, and only once.
///
/// The source is opened at the first use; if that fails, [`Library::load_error`] gives the reason.
///
/// # Errors
/// Returns an error if the default was set or used before; it names the earlier call.
#[inline]
#[track_caller]
pub fn set_default(source: Source) -> Result<(), AlreadySet> {
    set_default_with(source, Options::new())
}

/// Sets the source of [`DEFAULT`] like [`set_default`], with options.
///
/// # Errors
/// Returns an error if the default was set or used before; it names the earlier call.
#[inline]
#[track_caller]
pub fn set_default_with(source: Source, options: Options) -> Result<(), AlreadySet> {
    let claim = ClaimedBy::Set {
        source: source.to_string(),
        location: Location::caller(),
    };
    DEFAULT
        .state
        .configure((source, options), claim)
        .map_err(|by| AlreadySet { by })
}

/// The error of [`set_default`] and [`set_default_with`]: the default library was set or used before.
#[derive(Clone, PartialEq, Eq)]
pub struct AlreadySet {
    by: ClaimedBy,
}

impl AlreadySet {
    /// Returns the earlier call.
    #[inline]
    #[must_use]
    pub const fn by(&self) -> &ClaimedBy {
        &self.by
    }
}

impl fmt::Display for AlreadySet {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the default CUDA library can no longer be set: ")?;
        match &self.by {
            ClaimedBy::FirstUse(Some(function)) => {
                write!(f, "it was first used by a call to {function}")
            }
            ClaimedBy::FirstUse(None) => f.write_str("it was opened by a query, for instance of its path"),
            ClaimedBy::Set { source, location } => {
                write!(f, "it was set to {source} at {location}")
            }
        }
    }
}

impl fmt::Debug for AlreadySet {
    /// Prints the message of [`Display`](fmt::Display), because `main` prints errors with `Debug`.
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl core::error::Error for AlreadySet {}
