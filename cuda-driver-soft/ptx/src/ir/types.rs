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
    /// This variant and those after it have less than a byte. They are the types of matrix elements (`S4`, `U4`, `B1`)
    /// and of the parts of a `cvt.pack` result (all but `B1`).
    S4,
    U4,
    S2,
    U2,
    B1,
}

impl Type {
    /// Returns the size in bytes of a value of this type. Predicates and types of less than a byte count as 1.
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

    /// Returns true for a signed integer type whose elements have a byte or more.
    pub const fn is_signed(self) -> bool {
        matches!(self, Type::S8 | Type::S16 | Type::S32 | Type::S64 | Type::S16x2)
    }

    /// Returns true for a floating-point type.
    pub const fn is_float(self) -> bool {
        use Type::*;
        matches!(
            self,
            F16 | F16x2 | F32 | F64 | BF16 | BF16x2 | TF32 | E4M3 | E5M2 | E4M3x2 | E5M2x2
        )
    }
}

/// A PTX state space. The `.param` variables of a device function and of a call are in the frame ([`Space::Local`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// No space in the instruction: a generic address
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

/// Rounding modes. The documentation of each names the modifier for floating-point results; for integral results, PTX
/// adds an `i`: `.rni`.
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

/// Precision of `div`, `sqrt` and `rcp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Precision {
    /// `.rn`, `.rz`, `.rm`, `.rp`: correctly rounded as in IEEE 754
    Ieee(Rounding),
    /// `.full`
    Full,
    /// `.approx`
    Approx,
}

/// Comparison operators of `setp`, `set`, `vset`, `vset2` and `vset4`.
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
    /// `.nan`: at least one is a NaN
    Nan,
}

/// Boolean operators of `setp`, `set`, `lop3`, reductions at barriers, and products of single-bit matrices.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BoolOp {
    And,
    Or,
    Xor,
}

/// The part of a product that `mul` and `mad` keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// `.lo`
    Lo,
    /// `.hi`
    Hi,
    /// `.wide`: the whole product, of twice the width
    Wide,
}

/// Scope of a memory operation or fence.
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
    /// `.weak`, or no modifier of a load or store
    Weak,
    /// `.volatile`, or `.cv` of `ld`
    Volatile,
    /// `.relaxed.scope`, or no modifier of an atomic operation
    Relaxed(Scope),
    /// `.acquire.scope`
    Acquire(Scope),
    /// `.release.scope`
    Release(Scope),
    /// `.acq_rel.scope`
    AcqRel(Scope),
    /// `.mmio`, always with the scope `.sys`
    Mmio(MmioOrder),
}

/// The order of an access with `.mmio`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MmioOrder {
    /// `.mmio.relaxed.sys`
    Relaxed,
    /// `.mmio.acquire.sys`
    Acquire,
    /// `.mmio.release.sys`
    Release,
}

impl Order {
    /// Returns the order that an access to memory has: `.mmio` adds rules for memory of other devices only.
    #[must_use]
    pub fn of_memory(self) -> Order {
        match self {
            Order::Mmio(MmioOrder::Relaxed) => Order::Relaxed(Scope::Sys),
            Order::Mmio(MmioOrder::Acquire) => Order::Acquire(Scope::Sys),
            Order::Mmio(MmioOrder::Release) => Order::Release(Scope::Sys),
            order => order,
        }
    }
}

/// The operation of a block barrier.
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

/// Operations on the groups of a thread's `cp.async` copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CopyGroup {
    /// `cp.async.commit_group`
    Commit,
    /// `cp.async.wait_group`: source 0 is the number of the latest groups that may be pending
    Wait,
    /// `cp.async.wait_all`
    WaitAll,
}

/// Modes of `prmt`.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PrmtMode {
    /// No mode: four selectors of four bits
    Index,
    F4e,
    B4e,
    Rc8,
    Ecl,
    Ecr,
    Rc16,
}

/// The property that `testp` tests.
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

/// The operation of `atom`, `red`, `redux` and other reductions.
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

/// The way in which `shfl` selects the lane from which it takes its value.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ShflMode {
    Up,
    Down,
    Bfly,
    Idx,
}

/// The mode of `vote`.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VoteMode {
    All,
    Any,
    /// `.uni`: true if the predicate is the same in all lanes
    Uni,
    Ballot,
}

/// The bytes that `cp.async` reads. The other bytes of the destination are set to zero.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyPart {
    /// All bytes.
    All,
    /// The number of bytes in the operand `src-size`.
    Bytes,
    /// All bytes, or none if the predicate `ignore-src` is true.
    Unless,
}

/// The operation of an `mbarrier` instruction.
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
    /// `.test_wait` and `.try_wait` with a state, which names a phase
    Wait,
    /// `.test_wait.parity` and `.try_wait.parity`
    WaitParity,
    PendingCount,
    /// `cp.async.mbarrier.arrive`, which does not change the pending count
    CopiesArrive,
    /// `cp.async.mbarrier.arrive.noinc`
    CopiesArriveNoInc,
}

/// A matrix multiply-accumulate: A of `m x k` times B of `k x n`, plus C of `m x n`.
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
    /// `.and.popc` or `.xor.popc` of single-bit elements
    pub bits: Option<BoolOp>,
    /// True for `wmma.mma`, which has another layout of fragments than `mma`
    pub wmma: bool,
    /// True for `.col` of A, and for `.row` of B: the opposite of the usual `.row.col`. Only `mma` of shape `.m8n8k4`
    /// with f16 elements has them
    pub swapped: [bool; 2],
    /// The sparsity selector of `.sp`. A then holds half of the elements of each row, and a register of metadata holds
    /// their positions
    pub sparse: Option<u8>,
}

impl Mma {
    /// Returns the shape with the number of columns of A that registers or memory hold: with `.sp`, half of `k`.
    #[must_use]
    pub fn stored_shape(&self) -> [u16; 3] {
        let [m, n, k] = self.shape;
        [m, n, if self.sparse.is_some() { k / 2 } else { k }]
    }
}

/// A matrix multiply-accumulate by a warpgroup of four warps: `m` is 64, and each warp has 16 of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wgmma {
    /// Shape and types.
    pub mma: Mma,
    /// True if A is in registers; otherwise it is in shared memory. B is always in shared memory.
    pub a_in_registers: bool,
    /// `imm-scale-a` and `imm-scale-b`: true if the elements of A, or of B, are negated.
    pub negated: [bool; 2],
    /// `imm-trans-a` and `imm-trans-b`: true if neighbouring elements in memory differ in `m` (for A) or `n` (for B).
    /// Otherwise they differ in `k`.
    pub transposed: [bool; 2],
}

/// A matrix of a `wmma` operation. `C` stands for the accumulator and for the result.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatrixPart {
    A,
    B,
    C,
}
