//! Ranges of memory that compiled code has checked, so that other accesses inside them need no check.

use super::assembler::{Gpr, Label, Width};
use super::registers::State;
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
            // Addresses of other spaces are in no window.
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
    /// The alignment of the address of the first lane.
    pub(super) align: u32,
    /// The general register with the host address of the first lane.
    pub(super) host: Gpr,
    /// The step that last used the range.
    pub(super) used: usize,
}

/// The state of a check when it fails.
#[derive(Debug)]
pub(super) struct Failure {
    /// The label to which the check jumps, and the registers there.
    pub(super) label: Label,
    pub(super) before: State,
    /// The number of the window.
    pub(super) window: u32,
    /// The distance in bytes from the address of the first lane to the first byte that the first access needs.
    pub(super) first: i32,
}

/// A failed check of a range, and the data for the code that tries the access again.
pub(super) struct Retry {
    pub(super) failure: Failure,
    pub(super) back: Label,
    pub(super) after: State,
    pub(super) scalars: Vec<Reg>,
    pub(super) insts: (u32, u32),
    pub(super) checked: Checked,
    pub(super) aligned: bool,
    /// The registers that are needed after the access, and the number of instructions of the piece that follow it.
    pub(super) live: Vec<Reg>,
    pub(super) rest: i32,
}
