//! Launches: how many threads, and with which arguments.

mod arguments;
mod buffer;

use core::fmt;

pub use arguments::{KernelArg, KernelArgs};
pub use buffer::ParamBuffer;

use crate::{Error, ParamInfo};

/// A size in three dimensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Dim3 {
    /// The first dimension, in which neighbouring threads differ.
    pub x: u32,
    /// The second dimension.
    pub y: u32,
    /// The third dimension.
    pub z: u32,
}

impl Dim3 {
    /// So many blocks as it takes to have a thread for each of `threads`: the quotient in each dimension, rounded up. A
    /// dimension of `block` that is 0 counts as 1.
    #[inline]
    #[must_use]
    pub fn covering(threads: impl Into<Self>, block: impl Into<Self>) -> Self {
        let (threads, block) = (threads.into(), block.into());
        Self {
            x: threads.x.div_ceil(block.x.max(1)),
            y: threads.y.div_ceil(block.y.max(1)),
            z: threads.z.div_ceil(block.z.max(1)),
        }
    }
}

impl Default for Dim3 {
    /// One in each dimension.
    #[inline]
    fn default() -> Self {
        Self { x: 1, y: 1, z: 1 }
    }
}

impl From<u32> for Dim3 {
    #[inline]
    fn from(x: u32) -> Self {
        Self { x, y: 1, z: 1 }
    }
}

impl From<(u32, u32)> for Dim3 {
    #[inline]
    fn from((x, y): (u32, u32)) -> Self {
        Self { x, y, z: 1 }
    }
}

impl From<(u32, u32, u32)> for Dim3 {
    #[inline]
    fn from((x, y, z): (u32, u32, u32)) -> Self {
        Self { x, y, z }
    }
}

/// How many threads run a kernel. By default one block of one thread.
///
/// Later versions may add fields: a literal ends in `..Default::default()`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct LaunchConfig {
    /// Blocks.
    pub grid: Dim3,
    /// Threads of a block.
    pub block: Dim3,
    /// Dynamic shared memory of a block, in bytes.
    pub dynamic_shared_bytes: u32,
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
    /// As [`Display`](fmt::Display), since this is what `main` prints of an error that it returns.
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
