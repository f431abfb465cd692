//! The places in compiled code of the instructions that all groups of a warp run together, and of barriers.

use super::assembler::Label;
use ptx::ir::Reg;

/// An instruction at which groups meet.
pub(super) struct Site {
    /// The instruction in the interpreter's code.
    pub(super) at: u32,
    /// The code that writes all lanes of scalars to their rows, and leaves.
    pub(super) part: Label,
    /// The code at which all groups continue.
    pub(super) resume: Label,
    /// The registers that are live before the instruction.
    pub(super) live: Vec<Reg>,
    /// Number of instructions of the piece from this one on.
    pub(super) rest: i32,
}

/// The code that all such instructions share.
#[derive(Clone, Copy)]
pub(super) struct Shared {
    /// Continues with the next group. `AX` has the number of the site, `CX` the number of the group.
    pub(super) switch: Label,
    /// Leaves with `Exit::Part`. `AX` has the number of the site.
    pub(super) part: Label,
    /// Begins the next stretch with the first group, at the address in `DX`.
    pub(super) restart: Label,
}

/// A barrier that the code passes by itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passage {
    /// The barrier in the interpreter's code.
    pub(super) at: u32,
    /// The entry after the barrier.
    pub(super) behind: Label,
}
