//! Classes of instructions, by the way in which they run.

use crate::code::collective::Collective;
use crate::ops::mov;
use ptx::ir::{Inst, Op, Operand, Order, Space};

/// The way in which an instruction runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Computes its destinations from its sources, for each lane alone. Has no other effect and never faults.
    Computed,
    /// A load whose order relative to other threads does not matter (`.weak`), except from `.shared::cluster`.
    Load,
    /// A store whose order relative to other threads does not matter (`.weak`), except to `.shared::cluster`.
    Store,
    /// Any other instruction that a handler runs for each lane, such as an atomic operation, an access with an order, a
    /// fence or a trap.
    Handled,
    /// An instruction without effect in this driver, such as `prefetch`.
    Nothing,
    /// `bra`
    Branch,
    /// The warp's scheduler runs the instruction. Straight-line code ends before it.
    Scheduled(Scheduled),
}

/// The kind of an instruction that the warp's scheduler runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheduled {
    /// `bar`, `barrier`: all threads of the block may wait there.
    BlockBarrier,
    /// `barrier.cluster`: all threads of the cluster may wait there.
    ClusterBarrier,
    /// An operation across the lanes of a warp, such as `shfl`.
    Collective,
    /// An instruction on matrices whose elements are spread over the lanes of a warp.
    Matrix,
    /// An instruction on tensors or tensor maps.
    Tensor,
    /// An instruction on textures or surfaces.
    Texture,
    /// `alloca`, `stacksave`, `stackrestore`
    Stack,
    /// `call`
    Call,
    /// `brx.idx`
    Table,
    /// `ret`, `exit`
    End,
}

impl Class {
    /// Returns the class of an instruction.
    pub(crate) fn of_inst(inst: &Inst) -> Class {
        match Class::of(&inst.op) {
            Class::Computed if reads_timer(inst) => Class::Handled,
            class => class,
        }
    }

    /// Returns the class of an operation whose operands are not timers.
    pub(crate) fn of(op: &Op) -> Class {
        use Class::{Branch, Computed, Handled, Load, Store};
        let scheduled = Class::Scheduled;
        match op {
            Op::Mov { .. }
            | Op::Pack { .. }
            | Op::Unpack { .. }
            | Op::Cvt(_)
            | Op::CvtPack { .. }
            | Op::Cvta { .. }
            | Op::Isspacep { .. }
            | Op::Selp { .. }
            | Op::Slct { .. }
            | Op::Add { .. }
            | Op::Sub { .. }
            | Op::Mul { .. }
            | Op::Mad { .. }
            | Op::Mul24 { .. }
            | Op::Mad24 { .. }
            | Op::Div { .. }
            | Op::Rem { .. }
            | Op::Abs { .. }
            | Op::Neg { .. }
            | Op::Min { .. }
            | Op::Max { .. }
            | Op::And { .. }
            | Op::Or { .. }
            | Op::Xor { .. }
            | Op::Not { .. }
            | Op::Cnot { .. }
            | Op::Shl { .. }
            | Op::Shr { .. }
            | Op::AddC { .. }
            | Op::MadC { .. }
            | Op::Sad { .. }
            | Op::Dp4a { .. }
            | Op::Dp2a { .. }
            | Op::Bfe { .. }
            | Op::Bfi { .. }
            | Op::Bfind { .. }
            | Op::Bmsk { .. }
            | Op::Szext { .. }
            | Op::Brev { .. }
            | Op::Clz { .. }
            | Op::Popc { .. }
            | Op::Fns
            | Op::Lop3 { .. }
            | Op::Prmt { .. }
            | Op::Shf { .. }
            | Op::Video(_)
            | Op::FAdd(_)
            | Op::FSub(_)
            | Op::FMul(_)
            | Op::Fma(_)
            | Op::FNeg { .. }
            | Op::FAbs { .. }
            | Op::FMin { .. }
            | Op::FMax { .. }
            | Op::FDiv { .. }
            | Op::Sqrt { .. }
            | Op::Rcp { .. }
            | Op::Rsqrt { .. }
            | Op::Sin { .. }
            | Op::Cos { .. }
            | Op::Lg2 { .. }
            | Op::Ex2 { .. }
            | Op::Tanh { .. }
            | Op::Copysign { .. }
            | Op::Testp { .. }
            | Op::Setp { .. }
            | Op::Set { .. } => Computed,
            Op::Ld(m) if m.order == Order::Weak && m.space != Space::SharedCluster => Load,
            Op::St(m) if m.order == Order::Weak && m.space != Space::SharedCluster => Store,
            // `mapa` and `getctarank` have no effect besides their results, but are too rare to be compiled.
            Op::Ld(_)
            | Op::St(_)
            | Op::Atom { .. }
            | Op::Red { .. }
            | Op::Fence { .. }
            | Op::Activemask
            | Op::Trap
            | Op::Mapa { .. }
            | Op::Getctarank { .. }
            | Op::WantsCluster { .. }
            | Op::CpAsync { .. }
            | Op::Bulk { .. }
            | Op::Mbarrier { .. }
            | Op::Unsupported { .. } => Handled,
            Op::Nanosleep | Op::CopyGroup(_) | Op::Nop => Class::Nothing,
            Op::Shfl { .. } | Op::Vote { .. } | Op::Match { .. } | Op::Redux { .. } | Op::Elect | Op::BarWarpSync => {
                match Collective::of(op) {
                    Some(_) => scheduled(Scheduled::Collective),
                    None => Handled,
                }
            }
            Op::Bra { .. } => Branch,
            Op::Brx { .. } => scheduled(Scheduled::Table),
            Op::Call { .. } => scheduled(Scheduled::Call),
            Op::Ret { .. } | Op::Exit => scheduled(Scheduled::End),
            Op::Alloca | Op::Stacksave | Op::Stackrestore => scheduled(Scheduled::Stack),
            Op::Bar { .. } => scheduled(Scheduled::BlockBarrier),
            Op::ClusterBarrier { .. } => scheduled(Scheduled::ClusterBarrier),
            Op::TensorCopy(_) | Op::TensorMapReplace(_) => scheduled(Scheduled::Tensor),
            Op::Mma(_)
            | Op::Wgmma(_)
            | Op::Ldmatrix { .. }
            | Op::Stmatrix { .. }
            | Op::Movmatrix
            | Op::WmmaLd { .. }
            | Op::WmmaSt { .. } => scheduled(Scheduled::Matrix),
            Op::Tex(_) | Op::Surface(_) | Op::Query { .. } | Op::Istypep(_) => scheduled(Scheduled::Texture),
        }
    }
}

/// Returns true for instructions that read a clock or a timer.
pub(crate) fn reads_timer(inst: &Inst) -> bool {
    let timer = |operand: &Operand| matches!(operand, Operand::Special(special) if mov::changing(*special).is_some());
    inst.srcs.iter().any(timer)
}

/// Returns true for instructions that the scheduler runs. If one has a guard, a branch skips it.
pub(crate) fn is_scheduled(op: &Op) -> bool {
    matches!(Class::of(op), Class::Scheduled(_))
}

/// Returns true for instructions on matrices whose elements are spread over the lanes of a warp.
pub(crate) fn is_matrix(op: &Op) -> bool {
    Class::of(op) == Class::Scheduled(Scheduled::Matrix)
}

/// Returns true for instructions on tensors and tensor maps.
pub(crate) fn is_tensor(op: &Op) -> bool {
    Class::of(op) == Class::Scheduled(Scheduled::Tensor)
}

/// Returns true for instructions on textures and surfaces.
pub(crate) fn is_texture(op: &Op) -> bool {
    Class::of(op) == Class::Scheduled(Scheduled::Texture)
}
