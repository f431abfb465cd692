//! Ranges of memory that compiled code has checked, so that other accesses inside them need no check.

use super::assembler::{Gpr, Width};
use ptx::ir::{Reg, Space};

/// The memory that an access is checked against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Memory {
    /// An allocation in global memory.
    Global,
    /// The block's shared memory.
    Shared,
    /// The local memory of each lane.
    Local,
}

impl Memory {
    /// Returns the memory of a space; `None` if there is no machine code for accesses to it.
    pub(super) fn of(space: Space) -> Option<Memory> {
        match space {
            // A generic address of shared or local memory is in no window, so that its check fails.
            Space::Global | Space::Const | Space::Generic => Some(Memory::Global),
            Space::Shared => Some(Memory::Shared),
            Space::Local => Some(Memory::Local),
            Space::SharedCluster | Space::Param => None,
        }
    }
}

/// A range of memory that has been checked, and the accesses that it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Checked {
    /// The register with the addresses.
    pub(super) base: Reg,
    pub(super) width: Width,
    pub(super) memory: Memory,
    pub(super) write: bool,
    /// The first byte and the end of the range, relative to the address of the first lane.
    pub(super) low: i32,
    pub(super) high: i32,
    /// The alignment of the address of the first lane, in bytes.
    pub(super) align: u32,
    /// The general register with the host address of the first lane.
    pub(super) host: Gpr,
    /// The step that last used the range.
    pub(super) used: usize,
}
