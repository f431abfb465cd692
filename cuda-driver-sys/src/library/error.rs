//! What there is to say when a library or a function of it is missing.

use core::fmt;
use std::path::PathBuf;

use crate::Function;

/// No driver could be loaded: every place that was tried, and why it would not do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadError {
    reason: Reason,
    attempts: Vec<Attempt>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reason {
    /// See the attempts.
    NotFound,
    /// NVIDIA has no driver for this system.
    Unsupported,
    /// Nothing was chosen, and nothing can be searched.
    #[cfg(not(feature = "loader"))]
    Nowhere,
    /// The resolver called the library that it resolves for, before there was one.
    Reentrant,
    /// The resolver panicked.
    Panicked,
    /// As many libraries were made as there are numbers.
    TooMany,
}

/// One place where a driver was looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// A path, a file name that the system's loader looked for, or a resolver's name.
    pub place: PathBuf,
    /// Why it would not do, in the system's words where the system said it.
    pub reason: String,
}

/// What a re-entrant call is told.
pub(crate) static REENTRANT: LoadError = LoadError {
    reason: Reason::Reentrant,
    attempts: Vec::new(),
};

impl LoadError {
    #[inline]
    pub(crate) const fn not_found(attempts: Vec<Attempt>) -> Self {
        Self {
            reason: Reason::NotFound,
            attempts,
        }
    }

    #[inline]
    pub(crate) fn one(place: impl Into<PathBuf>, reason: impl Into<String>) -> Self {
        Self::not_found(vec![Attempt {
            place: place.into(),
            reason: reason.into(),
        }])
    }

    #[inline]
    #[cfg(not(feature = "loader"))]
    pub(crate) const fn nowhere() -> Self {
        Self {
            reason: Reason::Nowhere,
            attempts: Vec::new(),
        }
    }

    #[inline]
    #[allow(dead_code)] // What is used where depends on system and features.
    pub(crate) const fn unsupported() -> Self {
        Self {
            reason: Reason::Unsupported,
            attempts: Vec::new(),
        }
    }

    #[inline]
    pub(crate) const fn panicked() -> Self {
        Self {
            reason: Reason::Panicked,
            attempts: Vec::new(),
        }
    }

    #[inline]
    pub(crate) const fn too_many() -> Self {
        Self {
            reason: Reason::TooMany,
            attempts: Vec::new(),
        }
    }

    /// The places that were tried, in order.
    #[inline]
    #[must_use]
    pub fn attempts(&self) -> &[Attempt] {
        &self.attempts
    }
}

impl fmt::Display for LoadError {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason {
            Reason::NotFound => {
                f.write_str("no CUDA driver could be loaded")?;
                for (index, attempt) in self.attempts.iter().enumerate() {
                    f.write_str(if index == 0 { ": " } else { "; " })?;
                    // dlopen's own words begin with the name.
                    let place = attempt.place.display().to_string();
                    if attempt.reason.starts_with(&place) {
                        f.write_str(&attempt.reason)?;
                    } else {
                        write!(f, "{place}: {}", attempt.reason)?;
                    }
                }
                Ok(())
            }
            Reason::Unsupported if cfg!(not(target_pointer_width = "64")) => {
                f.write_str("unsupported here: CUDA drivers are for 64-bit programs")
            }
            Reason::Unsupported => f.write_str("unsupported here: there is no CUDA driver for this operating system"),
            #[cfg(not(feature = "loader"))]
            Reason::Nowhere => f.write_str(
                "nobody said where the CUDA driver is, and the feature `loader`, which would look for it, is off: call \
                 set_default first, for instance with Source::linked()",
            ),
            Reason::Reentrant => f.write_str(
                "the library was called while it was being opened, by its own resolver, or its source is itself: neither \
                 may need the library that it is for",
            ),
            Reason::Panicked => f.write_str("the resolver panicked while the library was being opened"),
            Reason::TooMany => f.write_str("65,535 libraries were made already: make one and pass it on"),
        }
    }
}

impl core::error::Error for LoadError {}

/// The driver does not export a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingSymbol {
    /// The function that is missing.
    pub function: Function,
    /// The CUDA version that the driver supports, 12020 for 12.2, where it tells.
    pub driver_version: Option<u32>,
    /// Path or name of the library.
    pub library: Option<String>,
}

/// 12050 as "12.5".
struct Version(u32);

impl fmt::Display for Version {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0 / 1000, self.0 % 1000 / 10)
    }
}

impl fmt::Display for MissingSymbol {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} needs CUDA {}",
            self.function,
            Version(self.function.since())
        )?;
        match self.driver_version {
            Some(version) if version < self.function.since() => {
                write!(f, ", this driver supports {}", Version(version))?;
            }
            Some(version) => write!(
                f,
                "; this driver supports {} and lacks it all the same",
                Version(version)
            )?,
            None => f.write_str(" and is not exported by this driver")?,
        }
        match &self.library {
            Some(library) => write!(f, " ({library})"),
            None => Ok(()),
        }
    }
}

impl core::error::Error for MissingSymbol {}
