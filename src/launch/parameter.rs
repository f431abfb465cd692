//! Parameters of kernels, and the error of arguments that do not fit them.
#![forbid(unsafe_code)]

use core::fmt;

use crate::Error;

/// Offset and size of a kernel's parameter, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParamInfo {
    /// Offset from the start of all parameters.
    pub offset: usize,
    /// Size of the parameter.
    pub size: usize,
}

/// The error of arguments that do not fit a kernel's parameters, from
/// [`Function::check_args`](crate::Function::check_args).
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ArgumentError {
    /// The kernel has more parameters than were given.
    TooFew {
        /// Number of arguments.
        given: usize,
    },
    /// The kernel has fewer parameters than were given.
    TooMany {
        /// Number of parameters.
        expected: usize,
    },
    /// An argument has another size, or another offset in a packed buffer.
    Mismatch {
        /// Index of the argument, counted from 0.
        index: usize,
        /// Offset and size of the kernel's parameter.
        expected: ParamInfo,
        /// Offset and size of the argument.
        given: ParamInfo,
    },
    /// The query of the parameters failed.
    Driver(Error),
}

impl fmt::Display for ArgumentError {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFew { given } => write!(
                f,
                "too few arguments: {given} given, but the kernel has more parameters"
            ),
            Self::TooMany { expected } => write!(f, "too many arguments: the kernel has {expected} parameters"),
            Self::Mismatch { index, expected, given } if expected.size != given.size => write!(
                f,
                "argument {index} has {} bytes, but the kernel's parameter has {}",
                given.size, expected.size
            ),
            Self::Mismatch { index, expected, given } => write!(
                f,
                "argument {index} is at byte {}, but the kernel's parameter is at byte {}",
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
