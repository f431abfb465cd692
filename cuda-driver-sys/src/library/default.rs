//! The library that the free functions call.

use core::fmt;
use core::panic::Location;

use super::claim::ClaimedBy;
use super::slots::{self, Library};
use super::source::{Options, Source};

/// The library that the free functions call. Unless [`set_default`] said otherwise, its first use finds the system's
/// driver as [`Source::search`] does (with the feature `loader`; without it, `set_default` must say something); without
/// a driver every call answers 303 and [`Library::load_error`] says why.
pub static DEFAULT: Library = Library::unopened(0);

impl Library {
    /// The library with a number that [`number`](Self::number) gave.
    #[inline]
    #[must_use]
    pub fn by_number(number: u16) -> Option<&'static Self> {
        match number {
            0 => Some(&DEFAULT),
            number => slots::made(number),
        }
    }
}

/// [`DEFAULT`], as a reference like any other library's.
#[inline]
#[must_use]
pub fn default_library() -> &'static Library {
    &DEFAULT
}

/// Says where [`DEFAULT`] comes from: once, and before its first use.
///
/// The source is opened at the first use; [`Library::load_error`] then tells whether that worked.
///
/// # Errors
/// The default was set or used before; the error says by whom.
#[inline]
#[track_caller]
pub fn set_default(source: Source) -> Result<(), AlreadySet> {
    set_default_with(source, Options::new())
}

/// [`set_default`] with options.
///
/// # Errors
/// The default was set or used before; the error says by whom.
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

/// The default library was chosen already.
#[derive(Clone, PartialEq, Eq)]
pub struct AlreadySet {
    by: ClaimedBy,
}

impl AlreadySet {
    /// What came first.
    #[inline]
    #[must_use]
    pub const fn by(&self) -> &ClaimedBy {
        &self.by
    }
}

impl fmt::Display for AlreadySet {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the default CUDA library is fixed already: ")?;
        match &self.by {
            ClaimedBy::FirstUse(Some(function)) => {
                write!(f, "it was first used by a call to {function}")
            }
            ClaimedBy::FirstUse(None) => {
                f.write_str("it was opened by a question about it (its path, version or error)")
            }
            ClaimedBy::Set { source, location } => write!(f, "set to {source} at {location}"),
        }
    }
}

impl fmt::Debug for AlreadySet {
    /// As [`Display`](fmt::Display), since this is what `main` prints of an error that it returns.
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl core::error::Error for AlreadySet {}
