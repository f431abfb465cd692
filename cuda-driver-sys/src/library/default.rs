//! The library that the free functions call.

use core::fmt;
use core::panic::Location;

use super::Library;
use super::source::{Options, Source};
use crate::Function;

/// The library that the free functions call. Unless [`set_default`] said otherwise, its first use finds the system's
/// driver as [`Source::search`] does (with the feature `loader`; without it, `set_default` must say something); without
/// a driver every call answers 303 and [`Library::load_error`] says why.
pub static DEFAULT: Library = Library::unopened(0);

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
    let claim = Beaten::Set {
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
    by: Beaten,
}

/// What came first.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Beaten {
    /// The library was used: by a call to this function, or by a question that has to open it.
    FirstUse(Option<Function>),
    /// An earlier [`set_default`].
    Set {
        /// What it chose.
        source: String,
        /// Where it was called.
        location: &'static Location<'static>,
    },
}

impl AlreadySet {
    /// What came first.
    #[inline]
    #[must_use]
    pub const fn by(&self) -> &Beaten {
        &self.by
    }
}

impl fmt::Display for AlreadySet {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the default CUDA library is fixed already: ")?;
        match &self.by {
            Beaten::FirstUse(Some(function)) => {
                write!(f, "it was first used by a call to {function}")
            }
            Beaten::FirstUse(None) => {
                f.write_str("it was opened by a question about it (its path, version or error)")
            }
            Beaten::Set { source, location } => write!(f, "set to {source} at {location}"),
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
