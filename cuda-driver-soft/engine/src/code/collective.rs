//! Operations across the lanes of a warp (`shfl`, `vote`, `match`, `redux`, `elect`, `bar.warp.sync`), and the
//! locations of their operands.

#![forbid(unsafe_code)]

use super::registers::Slot;
use ptx::ir::{AtomOp, Op, RegClass, ShflMode, Type, VoteMode};

/// An operation across the lanes of a warp, with its modifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Collective {
    /// `shfl`
    Shuffle(ShflMode),
    /// `vote`
    Vote(VoteMode),
    /// `match.any`, of 64 bits if `wide`, else of 32
    MatchAny { wide: bool },
    /// `match.all`, of 64 bits if `wide`, else of 32
    MatchAll { wide: bool },
    /// `redux`, of signed integers if `signed`
    Reduce { op: AtomOp, signed: bool },
    /// `elect`
    Elect,
    /// `bar.warp.sync`
    Barrier,
}

/// The operands of a collective instruction. A slot that the operation does not use is slot 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CollectiveOperands {
    /// The lane's value: a predicate for `vote`, else a row of 32 or 64 bits; unused by `elect` and `bar.warp.sync`.
    pub(crate) a: Slot,
    /// True if the predicate is negated.
    pub(crate) negated: bool,
    /// Lane, distance or lane mask of `shfl`; unused by other operations.
    pub(crate) b: Slot,
    /// Segment and limit of `shfl`; unused by other operations.
    pub(crate) c: Slot,
    /// Member mask; `None` for the active lanes.
    pub(crate) members: Option<Slot>,
    /// The result: a predicate for `vote` without `.ballot`, else a row; unused by `bar.warp.sync`.
    pub(crate) d: Slot,
    /// The second result, a predicate; the sink if there is none.
    pub(crate) p: Slot,
}

impl Collective {
    /// Returns the operation of an instruction, and true if it has a member mask. Returns `None` for instructions that
    /// are not collective, and for a `redux` whose type does not fit its operation.
    pub(crate) fn of(op: &Op) -> Option<(Self, bool)> {
        Some(match *op {
            Op::Shfl { mode, sync } => (Collective::Shuffle(mode), sync),
            Op::Vote { mode, sync } => (Collective::Vote(mode), sync),
            Op::Match { all: false, ty } => (Collective::MatchAny { wide: ty.size() == 8 }, true),
            Op::Match { all: true, ty } => (Collective::MatchAll { wide: ty.size() == 8 }, true),
            Op::Redux { op, ty } => {
                let fits = match op {
                    AtomOp::Add | AtomOp::Min | AtomOp::Max => matches!(ty, Type::U32 | Type::S32),
                    AtomOp::And | AtomOp::Or | AtomOp::Xor => ty == Type::B32,
                    _ => false,
                };
                if !fits {
                    return None;
                }
                (
                    Collective::Reduce {
                        op,
                        signed: ty.is_signed(),
                    },
                    true,
                )
            }
            Op::Elect => (Collective::Elect, true),
            Op::BarWarpSync => (Collective::Barrier, true),
            _ => return None,
        })
    }

    /// Returns the register class of [`CollectiveOperands::a`]; `None` if the operation does not read it.
    pub(crate) fn source(self) -> Option<RegClass> {
        match self {
            Collective::Vote(_) => Some(RegClass::Pred),
            Collective::MatchAny { wide: true } | Collective::MatchAll { wide: true } => Some(RegClass::B64),
            Collective::Elect | Collective::Barrier => None,
            _ => Some(RegClass::B32),
        }
    }

    /// Returns the register class of [`CollectiveOperands::d`]; `None` if the operation does not write it.
    pub(crate) fn result(self) -> Option<RegClass> {
        match self {
            Collective::Vote(VoteMode::Ballot) => Some(RegClass::B32),
            Collective::Vote(_) => Some(RegClass::Pred),
            Collective::Barrier => None,
            _ => Some(RegClass::B32),
        }
    }

    /// Returns the name of the PTX instruction, for reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Collective::Shuffle(_) => "shfl",
            Collective::Vote(_) => "vote",
            Collective::MatchAny { .. } => "match.any",
            Collective::MatchAll { .. } => "match.all",
            Collective::Reduce { .. } => "redux",
            Collective::Elect => "elect",
            Collective::Barrier => "bar.warp.sync",
        }
    }
}
