//! Parameters of kernels.
#![forbid(unsafe_code)]

use core::fmt;

use crate::Error;

/// Where a parameter of a kernel lies, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParamInfo {
    /// Bytes from the start of all parameters.
    pub offset: usize,
    /// Size in bytes.
    pub size: usize,
}

/// Arguments are not what a kernel was compiled for; see [`Function::check_args`](crate::Function::check_args).
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ArgumentError {
    /// The kernel has more parameters than were given.
    TooFew {
        /// How many arguments there are.
        given: usize,
    },
    /// The kernel has fewer parameters than were given.
    TooMany {
        /// How many parameters there are.
        expected: usize,
    },
    /// An argument has another size, or in a packed buffer another place.
    Mismatch {
        /// Which argument, counted from 0.
        index: usize,
        /// What the kernel was compiled with.
        expected: ParamInfo,
        /// What was given.
        given: ParamInfo,
    },
    /// The driver could not be asked.
    Driver(Error),
}

impl fmt::Display for ArgumentError {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFew { given } => write!(
                f,
                "the kernel has more than {given} parameters, and {given} were given"
            ),
            Self::TooMany { expected } => write!(
                f,
                "the kernel has {expected} parameters, and more were given"
            ),
            Self::Mismatch {
                index,
                expected,
                given,
            } if expected.size != given.size => write!(
                f,
                "argument {index} has {} bytes, and the kernel's parameter {}",
                given.size, expected.size
            ),
            Self::Mismatch {
                index,
                expected,
                given,
            } => write!(
                f,
                "argument {index} lies at byte {}, and the kernel's parameter at {}",
                given.offset, expected.offset
            ),
            Self::Driver(error) => fmt::Display::fmt(error, f),
        }
    }
}

impl fmt::Debug for ArgumentError {
    /// Prints the message of [`Display`](fmt::Display), because `main` prints errors with `Debug`.
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl core::error::Error for ArgumentError {}

impl From<Error> for ArgumentError {
    #[inline]
    fn from(error: Error) -> Self {
        Self::Driver(error)
    }
}
