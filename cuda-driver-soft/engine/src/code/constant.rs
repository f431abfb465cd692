//! Constants of a function: slots of a frame that no instruction writes.

#![forbid(unsafe_code)]

use ptx::ir::{Special, VarId};

/// The content of a slot that no instruction writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Constant {
    /// A number, given by its bits.
    Bits(u64),
    /// A special register that does not change while a block runs.
    Special(Special),
    /// A value of the launch's parameters: offset, size in bytes, true if it is sign-extended.
    Param(u32, u8, bool),
    /// Address of a variable in its own space, plus an offset.
    Variable(VarId, i64),
    /// Address in local space of an offset into the frame.
    Frame(i64),
}

impl Constant {
    /// Returns the time for which the slot keeps its value.
    pub(crate) fn lifetime(&self) -> Lifetime {
        match self {
            Constant::Special(Special::Tid(_) | Special::Warpid) => Lifetime::Warp,
            Constant::Special(
                Special::Ctaid(_)
                | Special::Smid
                | Special::Clusterid(_)
                | Special::ClusterCtaid(_)
                | Special::ClusterCtarank,
            ) => Lifetime::Block,
            Constant::Frame(_) => Lifetime::Frame,
            _ => Lifetime::Launch,
        }
    }
}

/// The time for which a constant keeps its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lifetime {
    /// The value (or row of values) is the same for each warp of a launch.
    Launch,
    /// The value is the same for one warp in all blocks.
    Warp,
    /// The value is the same for a block.
    Block,
    /// The value is the same for one invocation of the function.
    Frame,
}

/// Returns true if a special register differs between lanes of a warp.
pub(crate) fn differs_by_lane(special: Special) -> bool {
    matches!(
        special,
        Special::Tid(_)
            | Special::Laneid
            | Special::LanemaskEq
            | Special::LanemaskLt
            | Special::LanemaskLe
            | Special::LanemaskGt
            | Special::LanemaskGe
    )
}
