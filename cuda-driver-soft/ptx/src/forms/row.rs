//! A row of the instruction table, and the ways in which its instructions are lowered.

use crate::ir::{BoolOp, Mma, Op, Space, TensorCopy, Type, VideoInst, Wgmma};

use super::mods::Mods;

/// A row of the instruction table.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    /// The instruction in the notation of the [table](super).
    pub(crate) syntax: &'static str,
    /// PTX version that introduced the instruction, times ten.
    pub(crate) ptx: u32,
    /// Lowest architecture that has the instruction; 0 for all.
    pub(crate) sm: u32,
    /// Returns the lowering of the instruction with these modifiers, or the reason why they cannot be combined.
    pub(crate) lowering: fn(&Mods) -> Result<Lowering, Reject>,
}

/// Makes a row.
pub(super) const fn row(
    syntax: &'static str,
    ptx: u32,
    sm: u32,
    lowering: fn(&Mods) -> Result<Lowering, Reject>,
) -> Row {
    Row {
        syntax,
        ptx,
        sm,
        lowering,
    }
}

/// The way in which an instruction is lowered.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Lowering {
    /// To an operation with the operands as written.
    Op(Op),
    /// `ld`, `st`, `atom`, `red`: the address becomes the first source. Its state space and its offset from a register
    /// become part of the operation.
    Memory(Op),
    /// `cp.async`, `mbarrier`, `ldmatrix` and others: the addresses become the first sources.
    Pointers(Op),
    /// A tensor copy, one of whose address operands is a tensor map with coordinates.
    Tensor(TensorCopy),
    /// A prefetch with the operands of a tensor copy. It has no effect.
    TensorHint(TensorCopy),
    /// `st.async`, `red.async`: the operation, then an `mbarrier.complete_tx` with its number of bytes.
    StoreThenSignal(Op),
    /// `mapa`, or `getctarank` if `rank` is true. The address can be a variable.
    Mapa { rank: bool },
    /// No effect. The operands are checked; an address must be in this state space.
    Hint(Space),
    /// `createpolicy`: the operands are checked, and the result is this constant.
    Policy(u64),
    /// `mov` of registers, addresses and special registers, including packing and unpacking.
    Mov { ty: Type, vec: u8 },
    /// `lop3`, whose lookup table is a constant operand.
    Lop3(Option<BoolOp>),
    /// `cvta`, whose source can be a variable.
    Cvta(Op),
    /// `tex`, `suld` and other instructions whose address operand is a handle, with or without coordinates.
    Texture(Op),
    /// A video instruction, whose operands can have selectors.
    Video(VideoInst),
    /// `wgmma.mma_async`: the accumulator is also a source, and constants become part of the operation.
    Wgmma(Wgmma),
    /// `mma.sp`: the sparsity selector, a constant operand, becomes part of the operation.
    SparseMma(Mma),
    /// `bra`
    Bra { uni: bool },
    /// `brx.idx`
    Brx { uni: bool },
    /// `call`
    Call { uni: bool },
    /// An instruction that reads or writes the condition code, such as `add.cc`.
    Carry { op: Op, reads: bool, writes: bool },
    /// Known, but not implemented.
    Unsupported,
}

impl Lowering {
    /// Returns true if the operands are checked against the table. Lowering then also accepts a variable as the source
    /// of `cvta`.
    pub(crate) fn is_by_table(&self) -> bool {
        !matches!(
            self,
            Lowering::Bra { .. }
                | Lowering::Brx { .. }
                | Lowering::Call { .. }
                | Lowering::Mov { .. }
                | Lowering::Mapa { .. }
                | Lowering::Video(_)
        )
    }
}

/// The reason, in ptxas's words, why modifiers that are all known cannot be combined.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reject(pub(crate) String);

/// Lowers to an operation with the operands as written.
pub(super) fn op(op: Op) -> Result<Lowering, Reject> {
    Ok(Lowering::Op(op))
}

/// Refuses types that cannot be combined with the other modifiers.
pub(super) fn bad_types(root: &str) -> Result<Lowering, Reject> {
    Err(Reject(format!("Unexpected instruction types specified for '{root}'")))
}
