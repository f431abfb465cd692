//! The errors of allocations and addresses.

#![forbid(unsafe_code)]

use super::allocation::Allocation;
use std::fmt;

/// No memory or no addresses are left for an allocation, or it would exceed a quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    /// The bytes that were requested.
    pub bytes: u64,
    /// The bytes in use and the limit on them, if the limit is the reason; `None` if the host has no memory or no
    /// addresses left.
    pub limit: Option<(u64, u64)>,
}

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.bytes;
        match self.limit {
            Some((used, most)) => write!(
                f,
                "cannot allocate {bytes} bytes: {used} of {most} bytes are in use; free some first"
            ),
            None => write!(
                f,
                "cannot allocate {bytes} bytes: the host has no memory or no addresses left"
            ),
        }
    }
}

impl std::error::Error for OutOfMemory {}

/// An address that is not the start of an allocation of the kind that a call needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAnAllocation {
    /// The address.
    pub address: u64,
    /// The allocation that contains it, if any.
    pub inside: Option<Allocation>,
}

impl fmt::Display for NotAnAllocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = self.address;
        match self.inside {
            Some(a) if a.base == address => write!(
                f,
                "{address:#x} is {}, which this call does not accept",
                a.kind.description()
            ),
            Some(a) => write!(
                f,
                "{address:#x} is {} bytes past the start of an allocation; pass its start, {:#x}",
                address - a.base,
                a.base
            ),
            None => write!(f, "{address:#x} is not the start of a live allocation or registration"),
        }
    }
}

impl std::error::Error for NotAnAllocation {}

/// A range that cannot be registered: it is empty, overlaps an allocation or a registered range, or is not addressable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlreadyRegistered {
    /// Start of the range.
    pub address: u64,
    /// The length in bytes.
    pub bytes: u64,
}

impl fmt::Display for AlreadyRegistered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "cannot register {} bytes at {:#x}: the range is empty, overlaps memory that is already registered or \
             allocated, or exceeds 48-bit addresses",
            self.bytes, self.address
        )
    }
}

impl std::error::Error for AlreadyRegistered {}

/// A range that is not inside one allocation or adjacent mappings, or whose memory does not permit the access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadRange {
    /// Start of the range.
    pub address: u64,
    /// The length in bytes.
    pub bytes: u64,
    /// The allocation that contains the start of the range, if any. For an empty range, also one that ends there. If
    /// adjacent mappings contain the range and some do not permit the access, the length is that of all of them.
    pub inside: Option<Allocation>,
}

impl BadRange {
    fn is_inside(&self, allocation: &Allocation) -> bool {
        let offset = self.address.checked_sub(allocation.base);
        let last = allocation.bytes.checked_sub(self.bytes);
        offset.is_some_and(|offset| last.is_some_and(|last| offset <= last))
    }
}

impl fmt::Display for BadRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes at {:#x} ", self.bytes, self.address)?;
        match self.inside {
            Some(a) if self.is_inside(&a) => {
                write!(f, "are in memory that does not permit this access")
            }
            Some(a) => write!(
                f,
                "run past the end of the allocation of {} bytes at {:#x}",
                a.bytes, a.base
            ),
            None => write!(f, "are not inside a live allocation"),
        }
    }
}

impl std::error::Error for BadRange {}
