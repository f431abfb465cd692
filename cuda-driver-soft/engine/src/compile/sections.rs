//! The sections of the code of a kernel.

use super::assembler::Label;

/// A section of the code: the whole kernel for some groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Section {
    /// The code with which each group begins.
    First,
    /// The code with which a group begins again if an assumption of the first section does not hold for it.
    Second,
}

/// Labels of the code with which groups begin again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Restart {
    /// The beginning of the first section, for groups that enter the code at the first instruction.
    pub(super) entry: Label,
    /// The code that all lanes of a group run to begin again.
    pub(super) together: Label,
    /// The same for groups of which only some lanes run.
    pub(super) parted: Label,
}
