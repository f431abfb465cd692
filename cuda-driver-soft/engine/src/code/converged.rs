//! Code for converged warps: all 32 lanes run and take the same branches.

#![forbid(unsafe_code)]

use super::constant::Constant;
use super::registers::Slot;
use ptx::ir::RegClass;
use std::ops::Range;

/// Code for a warp whose 32 lanes all run and take the same branches. It follows the code for any lanes in
/// [`Code::insts`](super::function::Code::insts). Registers that are uniform or affine over the lanes are computed once
/// per warp. At a divergent branch, or if an assumption fails, the warp continues at the same instruction of the code
/// for any lanes.
pub(crate) struct Converged {
    /// Entry for a warp with new registers. The instructions before `entry` give the same result for all thread
    /// blocks that the warp runs.
    pub(crate) first: u32,
    /// Entry for a warp whose registers come from an earlier block.
    pub(crate) entry: u32,
    /// True if the code treats `%tid` as affine. It is affine only if the lanes of a warp form whole
    /// [rows](crate::semantics::affine::Rows) of their thread block.
    pub(crate) needs_rows: bool,
    /// Affine constants, sorted by lifetime: slot, class of the registers, value.
    pub(crate) constants: Vec<(Slot, RegClass, Constant)>,
    /// Number of constants that live longer than a block.
    pub(crate) kept_constants: usize,
    /// True if an instruction reads one of the [block constants](super::function::Code::block_constants). If not, a
    /// warp that continues to another thread block fills them only when it leaves this code.
    pub(crate) reads_block_constants: bool,
    /// Instructions at which a warp may leave, sorted by [`Leave::at`].
    pub(crate) leaves: Vec<Leave>,
    /// Instructions at which a warp may return to this code, sorted by [`Resume::at`].
    pub(crate) resumes: Vec<Resume>,
    /// Entries for [`Leave::spread`] and [`Resume::gathered`]: slot of the row of 32 values, bytes per lane, slot of
    /// the affine value.
    pub(crate) kept: Vec<(Slot, u8, Slot)>,
}

/// An instruction at which a warp may leave the code for converged warps.
pub(crate) struct Leave {
    /// The instruction in the code for converged warps.
    pub(crate) at: u32,
    /// The same instruction in the code for any lanes.
    pub(crate) to: u32,
    /// Registers that are read there and are not yet written as rows: a range of [`Converged::kept`].
    pub(crate) spread: Range<usize>,
}

/// An instruction at which a warp may return to the code for converged warps, if all lanes are there.
pub(crate) struct Resume {
    /// The instruction in the code for any lanes.
    pub(crate) at: u32,
    /// The same instruction in the code for converged warps.
    pub(crate) to: u32,
    /// Registers that are read from there on and must be affine: a range of [`Converged::kept`].
    pub(crate) gathered: Range<usize>,
}

impl Converged {
    /// Returns the [`Leave`] of an instruction.
    pub(crate) fn leave(&self, at: u32) -> Option<&Leave> {
        let index = self.leaves.binary_search_by_key(&at, |leave| leave.at);
        index.ok().map(|index| &self.leaves[index])
    }

    /// Returns the [`Resume`] of an instruction.
    pub(crate) fn resume(&self, at: u32) -> Option<&Resume> {
        let index = self.resumes.binary_search_by_key(&at, |resume| resume.at);
        index.ok().map(|index| &self.resumes[index])
    }
}
