//! The code of one function: registers, operands, instructions.

use super::{FuncId, Op, VarId};

/// A virtual register: an index into [`Body::registers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reg(pub u32);

/// Width of a register. PTX registers of 8 bits are kept in 16.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RegClass {
    Pred,
    B16,
    B32,
    B64,
    B128,
}

/// Index of an instruction in [`Body::insts`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InstId(pub u32);

/// The code of one function.
#[derive(Clone, Debug, Default)]
pub struct Body {
    /// Width of each register.
    pub registers: Vec<RegClass>,
    /// Where the formal parameters of a device function arrive, in order (empty for an entry).
    pub params: Vec<Formal>,
    /// Where the results of a device function are when it returns.
    pub returns: Vec<Formal>,
    /// Bytes of local memory that one invocation needs: `.local` variables, `.param` variables, formal parameters.
    pub frame_size: u32,
    /// Alignment of the frame, a power of two.
    pub frame_align: u32,
    /// The instructions. Falling off the end is `ret`.
    pub insts: Vec<Inst>,
    /// `.loc` information, for messages.
    pub locs: LocTable,
}

/// Where a formal parameter or result lives in its own function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Formal {
    /// `.reg` parameter.
    Reg(Reg),
    /// `.param` parameter: bytes of the frame.
    Frame {
        /// Offset from the start of the frame.
        offset: u32,
        /// Size in bytes.
        size: u32,
    },
}

/// One instruction.
#[derive(Clone, Debug)]
pub struct Inst {
    /// `@p` or `@!p`: the predicate register, and whether it is negated.
    pub guard: Option<(Reg, bool)>,
    /// What it does, all modifiers included.
    pub op: Op,
    /// Destination registers; `None` is the sink `_`. `setp p|q` has two, a vector load one per element.
    pub dsts: Vec<Option<Reg>>,
    /// Source operands in the manual's order (see each [`Op`]).
    pub srcs: Vec<Operand>,
    /// Line in the PTX source, from 1.
    pub line: u32,
}

/// A source operand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Operand {
    /// A register.
    Reg(Reg),
    /// `!p`: a negated predicate, where the instruction takes one.
    NotReg(Reg),
    /// An immediate: the bits of a value of the operand's width (floats as their bits, integers truncated), right-aligned.
    Imm(u64),
    /// A special register.
    Special(Special),
    /// The address of something, in its own state space.
    Address(Address),
}

/// An address that is known when the module is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address {
    /// A variable of the module, in its own space.
    Variable {
        /// Which.
        var: VarId,
        /// Added to its address.
        offset: i64,
    },
    /// An offset into the current frame (local space).
    Frame {
        /// From the start of the frame.
        offset: i64,
    },
    /// An offset into the parameter buffer of the launch (entry functions).
    Param {
        /// From the start of the buffer.
        offset: i64,
    },
    /// A function, for indirect calls.
    Function(FuncId),
}

/// Special registers. Dimension 0, 1, 2 is x, y, z; `.w` is lowered to an immediate 0.
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

/// What a call calls.
#[derive(Clone, Debug, PartialEq)]
pub enum Callee {
    /// A function of this module (perhaps a declaration: `vprintf`, `malloc`, `free`, `__assertfail`).
    Direct(FuncId),
    /// Through a register: the callee's address is the instruction's source 0. Candidates: those of `.calltargets`,
    /// or any function of the module that has this prototype.
    Indirect {
        /// `.calltargets`, if given.
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

/// `.loc` information: from which instruction on, which file and line. Sorted by instruction.
#[derive(Clone, Debug, Default)]
pub struct LocTable {
    /// (first instruction, file number, line, column)
    pub rows: Vec<(InstId, u32, u32, u32)>,
}
