//! What can be wrong with an allocation or an address.

use super::Allocation;
use std::fmt;

/// No memory, or no addresses, left for an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    /// How much was asked for.
    pub bytes: u64,
    /// Bytes in use and the most that there may be, if it was this limit that stood in the way; `None` if the host has
    /// no more.
    pub limit: Option<(u64, u64)>,
}

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.bytes;
        match self.limit {
            Some((used, most)) => write!(
                f,
                "no memory left for {bytes} bytes: {used} of {most} are in use"
            ),
            None => write!(f, "the host has no memory left for {bytes} bytes"),
        }
    }
}

impl std::error::Error for OutOfMemory {}

/// An address that is not the start of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAnAllocation {
    /// The address.
    pub address: u64,
    /// The allocation that it lies in, if any.
    pub inside: Option<Allocation>,
}

impl fmt::Display for NotAnAllocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x} is not the start of an allocation", self.address)?;
        match self.inside {
            Some(a) if a.base == self.address => {
                write!(f, " of the right kind (it is {:?} memory)", a.kind)
            }
            Some(a) => write!(
                f,
                ": it lies {} bytes inside that at {:#x}",
                self.address - a.base,
                a.base
            ),
            None => Ok(()),
        }
    }
}

impl std::error::Error for NotAnAllocation {}

/// A range that cannot be registered: empty, or known already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlreadyRegistered {
    /// Start of the range.
    pub address: u64,
    /// Its length.
    pub bytes: u64,
}

impl fmt::Display for AlreadyRegistered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} bytes at {:#x} are empty, or overlap a registered range",
            self.bytes, self.address
        )
    }
}

impl std::error::Error for AlreadyRegistered {}

/// A range that does not lie in one allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadRange {
    /// Start of the range.
    pub address: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// The allocation that its start lies in, if any.
    pub inside: Option<Allocation>,
}

impl fmt::Display for BadRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes at {:#x} ", self.bytes, self.address)?;
        match self.inside {
            Some(a) => write!(
                f,
                "run past the end of the {} bytes at {:#x}",
                a.bytes, a.base
            ),
            None => write!(f, "lie in no allocation"),
        }
    }
}

impl std::error::Error for BadRange {}
