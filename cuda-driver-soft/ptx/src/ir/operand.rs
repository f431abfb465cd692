//! Operands of instructions and calls: registers, constants, addresses and special registers.

use super::ids::{FuncId, Reg, VarId};

/// A source operand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Operand {
    /// A register.
    Reg(Reg),
    /// `!p`: a negated predicate.
    NotReg(Reg),
    /// An immediate: the bits of an integer or floating-point value, right-aligned. Instructions ignore the bits above
    /// the operand's width.
    Imm(u64),
    /// A special register.
    Special(Special),
    /// The address of a variable, a parameter or a function, in its own state space.
    Address(Address),
}

/// An address that an instruction names: a variable, a function, or an offset into the frame or the parameter buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address {
    /// A variable of the module, in its own space.
    Variable {
        /// The variable.
        var: VarId,
        /// Bytes added to the variable's address.
        offset: i64,
    },
    /// An offset into the current frame (local space).
    Frame {
        /// Bytes from the start of the frame.
        offset: i64,
    },
    /// An offset into the parameter buffer of the launch. Only kernels have one.
    Param {
        /// Bytes from the start of the buffer.
        offset: i64,
    },
    /// A function, for indirect calls.
    Function(FuncId),
}

/// Special registers. Dimensions 0, 1 and 2 are x, y and z; `.w` is lowered to an immediate 0.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Special {
    Tid(u8),
    Ntid(u8),
    Ctaid(u8),
    Nctaid(u8),
    Laneid,
    Warpid,
    Nwarpid,
    Smid,
    Nsmid,
    Gridid,
    IsExplicitCluster,
    Clusterid(u8),
    Nclusterid(u8),
    ClusterCtaid(u8),
    ClusterNctaid(u8),
    ClusterCtarank,
    ClusterNctarank,
    LanemaskEq,
    LanemaskLe,
    LanemaskLt,
    LanemaskGe,
    LanemaskGt,
    Clock,
    ClockHi,
    Clock64,
    Globaltimer,
    GlobaltimerLo,
    GlobaltimerHi,
    /// `%pm0` to `%pm7`
    Pm(u8),
    /// `%pm0_64` to `%pm7_64`
    Pm64(u8),
    /// `%envreg0` to `%envreg31`
    Envreg(u8),
    TotalSmemSize,
    AggrSmemSize,
    DynamicSmemSize,
    /// `%reserved_smem_offset_begin`, `_end`, `_cap`, `_0`, `_1` as 0 to 4
    ReservedSmemOffset(u8),
    CurrentGraphExec,
}

/// The target of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Callee {
    /// A function of this module. If the module only declares it, the driver provides it (it is one of
    /// [`PROVIDED_FUNCTIONS`](crate::PROVIDED_FUNCTIONS)), or a module to link with defines it.
    Direct(FuncId),
    /// A function whose address is the instruction's source 0.
    Indirect {
        /// The functions of `.calltargets`. `None` for `.callprototype`: the call can reach any function of the module
        /// whose address is taken.
        targets: Option<Vec<FuncId>>,
    },
}

/// An argument or result at a call site.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CallSlot {
    /// A register or immediate.
    Value(Operand),
    /// A `.param` variable: bytes of the caller's frame.
    Frame {
        /// Offset from the start of the caller's frame.
        offset: u32,
        /// Size in bytes.
        size: u32,
    },
}
