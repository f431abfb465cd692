//! What there is to say when a library or a function of it is missing.

use core::fmt;
use std::path::PathBuf;

use crate::Function;

/// No driver could be loaded: every place that was tried, and why it would not do.
#[derive(Clone, PartialEq, Eq)]
pub struct LoadError {
    kind: LoadErrorKind,
    attempts: Vec<Attempt>,
    variable: Variable,
}

/// What `CUDA_DRIVER_LIBRARY` has to do with a failure to load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(dead_code)] // Without the feature `loader` nobody asks for it.
pub(crate) enum Variable {
    /// Nothing: it was not asked for.
    NotAsked,
    /// It names what was tried.
    Names,
    /// It could name the driver.
    NotSet,
    /// It is set, and the process may not believe it.
    Ignored,
    /// It is not set, and the process would not believe it.
    NotBelieved,
}

/// What kind of failure a [`LoadError`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LoadErrorKind {
    /// No driver is installed where the system's is looked for, or none of those there can be loaded.
    NotFound,
    /// Only a stub library of a CUDA toolkit was found: there is a toolkit, and no driver.
    StubOnly,
    /// What was named is no driver: a file, by the program or by `CUDA_DRIVER_LIBRARY`, a resolver, or what the program is
    /// linked against.
    Named,
    /// NVIDIA has no driver for this system, or for programs of this one's kind.
    Unsupported,
    /// Nothing was chosen, and without the feature `loader` nothing is searched.
    NotChosen,
    /// The library was called while it was being opened, by its own resolver.
    Reentrant,
    /// The resolver panicked.
    Panicked,
    /// As many libraries were made as there are numbers.
    TooMany,
}

/// One place where a driver was looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attempt {
    /// A path, a file name that the system's loader looked for, or a resolver's name.
    pub place: PathBuf,
    /// Why it would not do, in the system's words where the system said it.
    pub reason: String,
}

/// What a re-entrant call is told.
pub(crate) static REENTRANT: LoadError = LoadError {
    kind: LoadErrorKind::Reentrant,
    attempts: Vec::new(),
    variable: Variable::NotAsked,
};

impl LoadError {
    #[inline]
    pub(crate) const fn of(kind: LoadErrorKind, attempts: Vec<Attempt>) -> Self {
        Self {
            kind,
            attempts,
            variable: Variable::NotAsked,
        }
    }

    /// The failure of a search that may heed the variable.
    #[inline]
    #[cfg(feature = "loader")]
    pub(crate) const fn with(mut self, variable: Variable) -> Self {
        self.variable = variable;
        self
    }

    #[inline]
    pub(crate) fn one(place: impl Into<PathBuf>, reason: impl Into<String>) -> Self {
        let attempt = Attempt {
            place: place.into(),
            reason: reason.into(),
        };
        Self::of(LoadErrorKind::Named, vec![attempt])
    }

    #[inline]
    #[cfg(not(feature = "loader"))]
    pub(crate) const fn nowhere() -> Self {
        Self::of(LoadErrorKind::NotChosen, Vec::new())
    }

    #[inline]
    #[allow(dead_code)] // What is used where depends on system and features.
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

    /// What kind of failure it is.
    #[inline]
    #[must_use]
    pub const fn kind(&self) -> LoadErrorKind {
        self.kind
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
        match self.kind {
            LoadErrorKind::NotFound | LoadErrorKind::StubOnly | LoadErrorKind::Named => {
                f.write_str("no CUDA driver could be loaded")?;
                for (index, attempt) in self.attempts.iter().enumerate() {
                    f.write_str(if index == 0 { ": " } else { "; " })?;
                    if self.variable == Variable::Names {
                        f.write_str("CUDA_DRIVER_LIBRARY names ")?;
                    }
                    // dlopen's own words begin with the name.
                    let place = attempt.place.display().to_string();
                    if attempt.reason.starts_with(&place) {
                        f.write_str(&attempt.reason)?;
                    } else {
                        write!(f, "{place}: {}", attempt.reason)?;
                    }
                }
                f.write_str(match self.variable {
                    Variable::NotAsked | Variable::Names => "",
                    Variable::NotSet => ". Install NVIDIA's driver, or name its library in CUDA_DRIVER_LIBRARY",
                    Variable::NotBelieved => ". Install NVIDIA's driver",
                    Variable::Ignored => {
                        ". Install NVIDIA's driver: CUDA_DRIVER_LIBRARY is set, and ignored, because this program has \
                         more rights than who started it"
                    }
                })
            }
            LoadErrorKind::Unsupported if cfg!(not(target_pointer_width = "64")) => {
                f.write_str("unsupported here: CUDA drivers are for 64-bit programs")
            }
            LoadErrorKind::Unsupported => f.write_str("unsupported here: there is no CUDA driver for this operating system"),
            LoadErrorKind::NotChosen => f.write_str(
                "nobody said where the CUDA driver is, and the feature `loader`, which would look for it, is off: call \
                 set_default first, for instance with Source::linked()",
            ),
            LoadErrorKind::Reentrant => f.write_str(
                "the library was called while it was being opened, by its own resolver, or its source is itself: neither \
                 may need the library that it is for",
            ),
            LoadErrorKind::Panicked => f.write_str("the resolver panicked while the library was being opened"),
            LoadErrorKind::TooMany => f.write_str("65,535 libraries were made already: make one and pass it on"),
        }
    }
}

impl fmt::Debug for LoadError {
    /// As [`Display`](fmt::Display), since this is what `main` prints of an error that it returns.
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

impl fmt::Debug for MissingSymbol {
    /// As [`Display`](fmt::Display), since this is what `main` prints of an error that it returns.
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl core::error::Error for MissingSymbol {}
