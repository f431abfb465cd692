//! Instructions that the warp's scheduler runs: calls, barriers, and everything that needs the whole warp or its
//! frames.

#![forbid(unsafe_code)]

use super::collective::{Collective, CollectiveOperands};
use super::matrix::MatrixInst;
use super::registers::Slot;
use super::tensor::TensorInst;
use super::texture::TextureInst;
use ptx::ir::{BarOp, FuncId};

/// An instruction for the scheduler; [`Inst::aux`](super::inst::Inst::aux) is its index in
/// [`Code::actions`](super::function::Code::actions).
#[derive(Clone, Debug)]
pub(crate) enum Action {
    /// `ret`, or the end of a function.
    Return,
    /// `exit`
    Exit,
    /// `brx.idx`
    Branch {
        /// Row of 32 bits with the index of each lane.
        index: Slot,
        /// Targets by index.
        targets: Vec<u32>,
    },
    /// `call`
    Call(Box<CallSite>),
    /// `bar`, `barrier`
    Barrier(BarrierInst),
    /// `shfl`, `vote` and similar, when some of the lanes that take part have not arrived.
    Collective(Collective, CollectiveOperands),
    /// `mma` and similar: all lanes of a warp run them together.
    Matrix(Box<MatrixInst>),
    /// `tex`, `suld` and similar.
    Texture(Box<TextureInst>),
    /// `cp.async.bulk.tensor`, `tensormap.replace` and similar.
    Tensor(Box<TensorInst>),
    /// `alloca`, `stacksave`, `stackrestore`
    Stack(StackOp),
}

/// An operation on the threads' stacks. Addresses are in a row of 4 or 8 bytes per lane.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StackOp {
    /// `alloca`
    Alloca {
        /// Row of the address, and its bytes per lane.
        to: (Slot, u8),
        /// Row of the size, of the same width.
        size: Slot,
        /// Alignment, a power of two.
        align: u64,
    },
    /// `stacksave`
    Save((Slot, u8)),
    /// `stackrestore`
    Restore((Slot, u8)),
}

/// A call instruction.
#[derive(Clone, Debug)]
pub(crate) struct CallSite {
    /// The called function.
    pub(crate) callee: CallTarget,
    /// Locations of the arguments in the caller's frame.
    pub(crate) args: Vec<ValueLocation>,
    /// Locations of the results in the caller's frame.
    pub(crate) rets: Vec<ValueLocation>,
}

/// The callee of a call.
#[derive(Clone, Debug)]
pub(crate) enum CallTarget {
    /// A function of the module.
    Function(FuncId),
    /// A function that the driver provides.
    Builtin(Builtin),
    /// The function whose address is in this register of 64 bits.
    Indirect(Slot),
}

/// A function that PTX declares and the driver provides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Builtin {
    /// `vprintf`
    Vprintf,
    /// `__assertfail`
    Assertfail,
    /// `malloc`
    Malloc,
    /// `free`
    Free,
    /// `cudaGraphSetConditional`
    SetConditional,
}

/// The location of an argument or result in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueLocation {
    /// A predicate.
    Mask(Slot),
    /// A row with this many bytes per lane: 2, 4, 8, or 16 (two rows).
    Row(Slot, u32),
    /// A part of the frame's local memory.
    Frame {
        /// Offset from the frame's start.
        offset: u32,
        /// Size in bytes.
        size: u32,
    },
}

/// A barrier instruction of a block or cluster.
#[derive(Clone, Debug)]
pub(crate) struct BarrierInst {
    /// The operation.
    pub(crate) op: BarOp,
    /// `.aligned`: all lanes of a warp must be at the same instruction.
    pub(crate) aligned: bool,
    /// Barrier number in the block; `None` for the cluster's barrier.
    pub(crate) id: Option<BarrierOperand>,
    /// Number of threads that take part; `None` for all threads of the block.
    pub(crate) count: Option<BarrierOperand>,
    /// Input predicate of `.red`, and true if it is negated.
    pub(crate) predicate: Option<(Slot, bool)>,
    /// Result of `.red`: a predicate, or a row of 32 bits.
    pub(crate) result: Option<Slot>,
}

impl BarrierInst {
    /// Returns the number of a plain barrier: a `bar.sync` with a constant number, for all threads of the block.
    /// Returns `None` for other barriers.
    #[inline]
    pub(crate) fn plain(&self) -> Option<u32> {
        match (self.op, self.id, &self.count, &self.predicate) {
            (BarOp::Sync, Some(BarrierOperand::Constant(id)), None, None) => Some(id),
            _ => None,
        }
    }
}

/// The number of a barrier, or of its threads.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BarrierOperand {
    /// A constant.
    Constant(u32),
    /// A register of 32 bits.
    Register(Slot),
}
