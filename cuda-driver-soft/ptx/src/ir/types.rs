//! Types, state spaces and modifiers, by the PTX manual's names.

/// A PTX type: the fundamental types, the packed ones, and the alternate floating-point formats.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    Pred,
    B8,
    B16,
    B32,
    B64,
    B128,
    U8,
    U16,
    U32,
    U64,
    S8,
    S16,
    S32,
    S64,
    F16,
    F16x2,
    F32,
    F64,
    BF16,
    BF16x2,
    TF32,
    U16x2,
    S16x2,
    E4M3,
    E5M2,
    E4M3x2,
    E5M2x2,
    /// Less than a byte: elements of matrices, and of `cvt.pack`
    S4,
    U4,
    S2,
    U2,
    B1,
}

impl Type {
    /// Size in bytes of a value of this type; a predicate counts as 1.
    pub const fn size(self) -> u32 {
        use Type::*;
        match self {
            Pred | B8 | U8 | S8 | E4M3 | E5M2 | S4 | U4 | S2 | U2 | B1 => 1,
            B16 | U16 | S16 | F16 | BF16 | E4M3x2 | E5M2x2 => 2,
            B32 | U32 | S32 | F32 | F16x2 | BF16x2 | TF32 | U16x2 | S16x2 => 4,
            B64 | U64 | S64 | F64 => 8,
            B128 => 16,
        }
    }

    /// A signed integer type.
    pub const fn is_signed(self) -> bool {
        matches!(
            self,
            Type::S8 | Type::S16 | Type::S32 | Type::S64 | Type::S16x2
        )
    }

    /// A floating-point type.
    pub const fn is_float(self) -> bool {
        use Type::*;
        matches!(
            self,
            F16 | F16x2 | F32 | F64 | BF16 | BF16x2 | TF32 | E4M3 | E5M2 | E4M3x2 | E5M2x2
        )
    }
}

/// A state space. `.param` of a device function and of a call is in the frame ([`Space::Local`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// No space given: a generic address.
    Generic,
    /// `.global`
    Global,
    /// `.shared`, `.shared::cta`
    Shared,
    /// `.shared::cluster`
    SharedCluster,
    /// `.local`, and the frame: an offset into the thread's local memory
    Local,
    /// `.const`
    Const,
    /// `.param` of a kernel: an offset into the launch's parameter buffer
    Param,
}

/// Rounding modifiers of floating-point results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rounding {
    /// `.rn`: to nearest even
    Rn,
    /// `.rz`: towards zero
    Rz,
    /// `.rm`: towards negative infinity
    Rm,
    /// `.rp`: towards positive infinity
    Rp,
    /// `.rna`: to nearest, ties away from zero
    Rna,
    /// `.rs`: stochastic
    Rs,
}

/// How `div`, `sqrt`, `rcp` and the like are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Precision {
    /// `.rn`, `.rz`, `.rm`, `.rp`: IEEE 754 correct
    Ieee(Rounding),
    /// `.full`
    Full,
    /// `.approx`
    Approx,
}

/// Comparison operators of `setp` and `set`.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compare {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    /// `.lo`: unsigned less than
    Lo,
    Ls,
    Hi,
    Hs,
    /// `.equ`: equal or unordered
    Equ,
    Neu,
    Ltu,
    Leu,
    Gtu,
    Geu,
    /// `.num`: both are numbers
    Num,
    /// `.nan`: one is a NaN
    Nan,
}

/// Boolean operators of `setp`, `set`, `red`.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BoolOp {
    And,
    Or,
    Xor,
}

/// Which part of a product `mul` and `mad` keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// `.lo`
    Lo,
    /// `.hi`
    Hi,
    /// `.wide`: all of it, in twice the width
    Wide,
}

/// Scope of a memory operation.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    Cta,
    Cluster,
    Gpu,
    Sys,
}

/// Memory ordering of a load, store or atomic operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// no modifier, or `.weak`
    Weak,
    /// `.volatile`
    Volatile,
    /// `.relaxed.scope`
    Relaxed(Scope),
    /// `.acquire.scope`
    Acquire(Scope),
    /// `.release.scope`
    Release(Scope),
    /// `.acq_rel.scope`
    AcqRel(Scope),
    /// `.mmio.relaxed.sys`
    Mmio,
}

/// What a block barrier does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BarOp {
    /// `.sync`
    Sync,
    /// `.arrive`
    Arrive,
    /// `.red.and`, `.red.or`: the destination is a predicate
    Red(BoolOp),
    /// `.red.popc`: the destination is a u32
    Popc,
}

/// Modes of `prmt`.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PrmtMode {
    /// no mode: four selectors of four bits
    Index,
    F4e,
    B4e,
    Rc8,
    Ecl,
    Ecr,
    Rc16,
}

/// What `testp` asks.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FloatTest {
    Finite,
    Infinite,
    Number,
    NotANumber,
    Normal,
    Subnormal,
}

/// What `atom`, `red` and `redux` do.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AtomOp {
    And,
    Or,
    Xor,
    Add,
    Inc,
    Dec,
    Min,
    Max,
    Exch,
    Cas,
}

/// Where `shfl` takes its values from.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ShflMode {
    Up,
    Down,
    Bfly,
    Idx,
}

/// What `vote` answers.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VoteMode {
    All,
    Any,
    /// `.uni`: the same in all lanes
    Uni,
    Ballot,
}

/// How much `cp.async` reads; the rest of what it writes is zero.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyPart {
    /// All of it.
    All,
    /// As many bytes as the operand says.
    Bytes,
    /// Nothing where the predicate holds.
    Unless,
}

/// What an `mbarrier` instruction does.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MbarrierOp {
    Init,
    Inval,
    ExpectTx,
    CompleteTx,
    Arrive,
    /// `.arrive.expect_tx`
    ArriveExpectTx,
    ArriveDrop,
    /// `.arrive_drop.expect_tx`
    ArriveDropExpectTx,
    /// `.test_wait` and `.try_wait`, by a state
    Wait,
    /// The same, by a parity
    WaitParity,
    PendingCount,
}

/// A multiplication of matrices: `m x k` by `k x n`, added to `m x n`.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mma {
    /// m, n, k
    pub shape: [u16; 3],
    pub d: Type,
    pub a: Type,
    pub b: Type,
    pub c: Type,
    pub satfinite: bool,
    /// `.and.popc`, `.xor.popc` of bits
    pub bits: Option<BoolOp>,
    /// `wmma.mma`, whose fragments are laid out otherwise
    pub wmma: bool,
}

/// A multiplication of matrices by four warps: `m` is 64, of which each warp has 16 rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wgmma {
    /// Shape and types.
    pub mma: Mma,
    /// A is in registers, else in shared memory, as B always is.
    pub a_in_registers: bool,
    /// The elements of A, or of B, count with the other sign.
    pub negated: [bool; 2],
    /// A, or B, is in memory column by column along k.
    pub transposed: [bool; 2],
}

/// Which of the matrices; `C` is that of the accumulator and of the result.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatrixPart {
    A,
    B,
    C,
}
