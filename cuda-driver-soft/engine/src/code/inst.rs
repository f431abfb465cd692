//! One decoded instruction, and the type of the functions that run it.

use super::machine::Machine;
use super::registers::{Regs, Slot};
use crate::lanes::Mask;

/// A function that runs one decoded instruction for the lanes of a mask.
///
/// # Safety
/// `Regs` are the registers of a frame of the code that the instruction belongs to, and the CPU has the instruction set
/// that the handler is compiled for.
pub(crate) type Handler = unsafe fn(&mut Machine<'_>, Regs<'_>, &Inst, Mask) -> Flow;

/// One decoded instruction. The handler defines the meaning of the fields.
#[derive(Clone, Copy)]
pub(crate) struct Inst {
    /// The handler for all 32 lanes.
    pub(crate) full: Handler,
    /// The handler for any set of lanes.
    pub(crate) masked: Handler,
    /// Destination.
    pub(crate) d: Slot,
    /// First source; the address in a memory instruction.
    pub(crate) a: Slot,
    /// Second source.
    pub(crate) b: Slot,
    /// Third source.
    pub(crate) c: Slot,
    /// Fourth operand, or second destination.
    pub(crate) e: Slot,
    /// Fifth operand, or another destination: a carry.
    pub(crate) f: Slot,
    /// Index of the [`AccessCache`](crate::memory::warp::AccessCache) of a memory instruction, target of a branch, or
    /// index of the [`Action`](super::action::Action) of an instruction that the scheduler runs.
    pub(crate) aux: u32,
    /// Modifiers that are not compiled into the handler.
    pub(crate) mods: u32,
    /// Address offset, or other constant.
    pub(crate) imm: u64,
}

impl Inst {
    /// Returns the slots that the instruction may read or write.
    pub(crate) fn slots(&self) -> [Slot; 6] {
        [self.d, self.a, self.b, self.c, self.e, self.f]
    }
}

/// The interpreter's next step after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Flow {
    /// Continue with the next instruction.
    Next,
    /// Continue at [`Machine::target`].
    Jump,
    /// The lanes of [`Machine::taken`] continue at the target, the others with the next instruction.
    Diverge,
    /// Skip the next instruction.
    Skip,
    /// Run the next instruction for the lanes of [`Machine::taken`] only.
    Narrow,
    /// The warp's scheduler runs this instruction: see [`Action`](super::action::Action).
    Act,
    /// As [`Act`](Self::Act), for barrier number [`Machine::target`] of all threads of the block.
    Barrier,
    /// As [`Act`](Self::Act), for the end of a kernel.
    End,
    /// End the execution; [`Machine::fault`] holds the reason.
    Fault,
}
