//! Sites: the origin of each decoded instruction of an observed function, and the memory that it accesses.

#![forbid(unsafe_code)]

use super::registers::Slot;
use ptx::ir::Space;

/// The origin of a decoded instruction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Site {
    /// Index in the function's body of the PTX instruction; `None` for a jump or return that the decoder added.
    pub(crate) inst: Option<u32>,
    /// True for the first decoded instruction of the PTX instruction. It runs once each time a warp issues the PTX
    /// instruction.
    pub(crate) first: bool,
    /// True for a decoded instruction that evaluates the PTX instruction's guard for the next decoded instruction. A
    /// branch evaluates its guard itself.
    pub(crate) guard: bool,
    /// True for the first decoded instruction after the guard, or the first one if there is no guard. It runs for the
    /// lanes whose guard is true.
    pub(crate) effect: bool,
    /// True for a branch whose guard the decoder has inverted: its taken lanes are those that the PTX branch does not
    /// take.
    pub(crate) inverted: bool,
    /// True for a warp-level instruction whose handler runs it if all lanes that take part have arrived.
    pub(crate) syncs: bool,
    /// Line in the PTX source.
    pub(crate) line: u32,
    /// The memory accesses of the whole PTX instruction, in the site of one of its decoded instructions.
    pub(crate) accesses: Vec<SiteAccess>,
}

/// An access to memory by an instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SiteAccess {
    /// The space as in the instruction; may be `Generic`.
    pub(crate) space: Space,
    /// Row of the address.
    pub(crate) address: Slot,
    /// True if the address has 64 bits rather than 32.
    pub(crate) wide: bool,
    /// Offset added to the address.
    pub(crate) offset: u64,
    /// Bytes that each lane accesses.
    pub(crate) bytes: AccessBytes,
    /// The effect on the memory.
    pub(crate) kind: AccessKind,
    /// Number of lanes, from lane 0 on, whose addresses are used: 32 except for `ldmatrix` and `stmatrix`.
    pub(crate) lanes: u8,
}

/// The number of bytes that each lane accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccessBytes {
    /// A constant number.
    Constant(u32),
    /// The value of a row of 32 bits.
    Register(Slot),
    /// A constant number where the predicate in the slot has the given value; 0 elsewhere.
    If(Slot, bool, u32),
    /// The lanes access a matrix together, which starts at the address of the first lane.
    Matrix(MatrixExtent),
    /// Not known before the instruction runs, as in copies of tensors.
    Unknown,
}

/// The memory of a matrix: rows, or columns of a column-major matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MatrixExtent {
    /// Number of rows; at most the lanes of a warp.
    pub(crate) rows: u8,
    /// Bytes of a row.
    pub(crate) bytes: u32,
    /// Row with the distance between two rows in elements; `None` if they follow each other.
    pub(crate) stride: Option<Slot>,
    /// Bits of an element.
    pub(crate) element_bits: u32,
}

/// The effect of an access on memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccessKind {
    /// A read.
    Read,
    /// A write.
    Write,
    /// An atomic read and write, as of `atom`, `red` and `mbarrier`.
    Atomic,
}
