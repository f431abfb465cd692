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
/// [`Function::check_args`](crate::Function::check_args) and [`Kernel::check_args`](crate::Kernel::check_args).
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ArgumentError {
    /// Fewer arguments were given than the kernel has parameters.
    TooFew {
        /// Number of arguments.
        given: usize,
    },
    /// The packed arguments end before the kernel's last parameter does.
    TooShort {
        /// Bytes of the arguments.
        given: usize,
        /// Bytes of the parameters.
        expected: usize,
    },
    /// More arguments were given than the kernel has parameters.
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

/// Returns the ending of a noun after a number.
#[inline]
const fn plural(number: usize) -> &'static str {
    if number == 1 { "" } else { "s" }
}

impl fmt::Display for ArgumentError {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFew { given } => write!(
                f,
                "too few arguments: {given} given, but the kernel has more parameters"
            ),
            Self::TooShort { given, expected } => write!(
                f,
                "the packed arguments have {given} byte{}, but the kernel's parameters have {expected}",
                plural(*given)
            ),
            Self::TooMany { expected } => {
                write!(
                    f,
                    "too many arguments: the kernel has {expected} parameter{}",
                    plural(*expected)
                )
            }
            Self::Mismatch { index, expected, given } if expected.size != given.size => write!(
                f,
                "argument {index} has {} byte{}, but the kernel's parameter has {}",
                given.size,
                plural(given.size),
                expected.size
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

#[cfg(test)]
mod tests {
    use super::{ArgumentError, ParamInfo};

    #[test]
    fn one_is_singular() {
        let message = |error: ArgumentError| error.to_string();
        let many = |expected| message(ArgumentError::TooMany { expected });
        assert_eq!(many(1), "too many arguments: the kernel has 1 parameter");
        assert_eq!(many(2), "too many arguments: the kernel has 2 parameters");
        let size = |size| {
            message(ArgumentError::Mismatch {
                index: 0,
                expected: ParamInfo { offset: 0, size: 4 },
                given: ParamInfo { offset: 0, size },
            })
        };
        assert_eq!(size(1), "argument 0 has 1 byte, but the kernel's parameter has 4");
        assert_eq!(size(8), "argument 0 has 8 bytes, but the kernel's parameter has 4");
    }
}
