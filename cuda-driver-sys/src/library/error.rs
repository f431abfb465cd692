//! Errors for missing libraries and missing functions.
#![forbid(unsafe_code)]

use core::fmt;
use std::path::PathBuf;

use crate::Function;

/// No driver could be loaded. Holds every place that was tried, with the reason why it failed.
#[derive(Clone, PartialEq, Eq)]
pub struct LoadError {
    kind: LoadErrorKind,
    attempts: Vec<Attempt>,
    variable: Variable,
}

/// The role of `CUDA_DRIVER_LIBRARY` in a failure to load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(dead_code)] // The variable is not read without the feature `loader`.
pub(crate) enum Variable {
    /// It was not read.
    NotRead,
    /// It named the file that was tried.
    Named,
    /// It is not set, but could be.
    NotSet,
    /// It is set, but ignored because the process is privileged.
    Ignored,
    /// It is not set, and would be ignored because the process is privileged.
    Useless,
}

/// The kind of a [`LoadError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LoadErrorKind {
    /// No driver is installed in the places that were searched, or none of those found can be loaded.
    NotFound,
    /// Only the stub library of a CUDA toolkit was found: a toolkit is installed, but no driver.
    StubOnly,
    /// The chosen source cannot be loaded or is not a driver. The source is a file named by the program or by
    /// `CUDA_DRIVER_LIBRARY`, a resolver, or the library that the program is linked against.
    Named,
    /// NVIDIA has no driver for this operating system, or for 32-bit programs.
    Unsupported,
    /// No source was chosen, and without the feature `loader` there is no search.
    NotChosen,
    /// The library was used while it was being opened: by its own resolver, or because it is its own source.
    Reentrant,
    /// The resolver panicked while the library was being opened.
    Panicked,
    /// The process made the maximum number of libraries.
    TooMany,
}

/// One attempt to load a driver.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attempt {
    /// A path, a file name that the system's loader searched for, or the name of another source, such as a resolver.
    pub place: PathBuf,
    /// The reason why it failed: the system's message where there is one.
    pub reason: String,
}

/// The error of a re-entrant call.
pub(crate) static REENTRANT: LoadError = LoadError {
    kind: LoadErrorKind::Reentrant,
    attempts: Vec::new(),
    variable: Variable::NotRead,
};

impl LoadError {
    #[inline]
    pub(crate) const fn of(kind: LoadErrorKind, attempts: Vec<Attempt>) -> Self {
        Self {
            kind,
            attempts,
            variable: Variable::NotRead,
        }
    }

    /// Adds the role of the environment variable.
    #[inline]
    #[cfg(feature = "loader")]
    pub(crate) const fn with(mut self, variable: Variable) -> Self {
        self.variable = variable;
        self
    }

    #[inline]
    pub(crate) fn named(place: impl Into<PathBuf>, reason: impl Into<String>) -> Self {
        let attempt = Attempt {
            place: place.into(),
            reason: reason.into(),
        };
        Self::of(LoadErrorKind::Named, vec![attempt])
    }

    #[inline]
    #[cfg(not(feature = "loader"))]
    pub(crate) const fn not_chosen() -> Self {
        Self::of(LoadErrorKind::NotChosen, Vec::new())
    }

    #[inline]
    #[allow(dead_code)] // Not used on every system and with every feature.
    pub(crate) const fn unsupported() -> Self {
        Self::of(LoadErrorKind::Unsupported, Vec::new())
    }

    #[inline]
    pub(crate) const fn panicked() -> Self {
        Self::of(LoadErrorKind::Panicked, Vec::new())
    }

    #[inline]
    pub(crate) const fn too_many() -> Self {
        Self::of(LoadErrorKind::TooMany, Vec::new())
    }

    /// Returns the kind of failure.
    #[inline]
    #[must_use]
    pub const fn kind(&self) -> LoadErrorKind {
        self.kind
    }

    /// Returns the places that were tried, in order.
    #[inline]
    #[must_use]
    pub fn attempts(&self) -> &[Attempt] {
        &self.attempts
    }
}

impl fmt::Display for LoadError {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            LoadErrorKind::NotFound | LoadErrorKind::StubOnly | LoadErrorKind::Named => {
                f.write_str("no CUDA driver could be loaded")?;
                for (index, attempt) in self.attempts.iter().enumerate() {
                    f.write_str(if index == 0 { ": " } else { "; " })?;
                    if self.variable == Variable::Named {
                        f.write_str("CUDA_DRIVER_LIBRARY names ")?;
                    }
                    // dlopen's messages begin with the file's name.
                    let place = attempt.place.display().to_string();
                    if attempt.reason.starts_with(&place) {
                        f.write_str(&attempt.reason)?;
                    } else {
                        write!(f, "{place}: {}", attempt.reason)?;
                    }
                }
                f.write_str(match self.variable {
                    Variable::NotRead | Variable::Named => "",
                    Variable::NotSet => ". Install NVIDIA's driver, or name its library in CUDA_DRIVER_LIBRARY",
                    Variable::Useless => ". Install NVIDIA's driver",
                    Variable::Ignored => {
                        ". Install NVIDIA's driver; CUDA_DRIVER_LIBRARY is ignored because this process is privileged"
                    }
                })
            }
            LoadErrorKind::Unsupported if cfg!(not(target_pointer_width = "64")) => {
                f.write_str("unsupported: CUDA drivers exist for 64-bit programs only")
            }
            LoadErrorKind::Unsupported => f.write_str("unsupported: there is no CUDA driver for this operating system"),
            LoadErrorKind::NotChosen => f.write_str(
                "no CUDA driver was chosen, and the feature `loader`, which searches for one, is off: call set_default \
                 first, for instance with Source::linked()",
            ),
            LoadErrorKind::Reentrant => f.write_str(
                "the library was called while it was being opened: its resolver must not call it, and it must not be its \
                 own source",
            ),
            LoadErrorKind::Panicked => f.write_str("the resolver panicked while the library was being opened"),
            LoadErrorKind::TooMany => f.write_str("the process has made 65,535 libraries, the maximum: make one and share it"),
        }
    }
}

impl fmt::Debug for LoadError {
    /// Prints the message of [`Display`](fmt::Display), because `main` prints errors with `Debug`.
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl core::error::Error for LoadError {}

/// The driver does not export a function.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MissingSymbol {
    /// The missing function.
    pub function: Function,
    /// The CUDA version that the driver supports, for instance 12020 for CUDA 12.2; `None` if it is not known.
    pub driver_version: Option<u32>,
    /// The library's path or name.
    pub library: Option<String>,
}

/// A version, printed as "12.5" for 12050.
struct Version(u32);

impl fmt::Display for Version {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0 / 1000, self.0 % 1000 / 10)
    }
}

impl MissingSymbol {
    /// Returns the message without the names of the function and the library: "needs CUDA 12.5, this driver supports
    /// 12.2".
    #[inline]
    #[must_use]
    pub const fn reason(&self) -> impl fmt::Display + use<> {
        Reason {
            since: self.function.since(),
            driver_version: self.driver_version,
        }
    }
}

/// Displays [`MissingSymbol::reason`].
struct Reason {
    since: u32,
    driver_version: Option<u32>,
}

impl fmt::Display for Reason {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "needs CUDA {}, ", Version(self.since))?;
        match self.driver_version {
            Some(version) if version < self.since => {
                write!(f, "this driver supports {}", Version(version))
            }
            Some(version) => write!(f, "but this driver (CUDA {}) does not export it", Version(version)),
            None => f.write_str("but this driver does not export it"),
        }
    }
}

impl fmt::Display for MissingSymbol {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.function, self.reason())?;
        match &self.library {
            Some(library) => write!(f, " ({library})"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for MissingSymbol {
    /// Prints the message of [`Display`](fmt::Display), because `main` prints errors with `Debug`.
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl core::error::Error for MissingSymbol {}
