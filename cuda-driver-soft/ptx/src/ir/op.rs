//! Operations: one variant per operation, with every modifier that has an effect as a field.
//!
//! Operands are in the manual's order unless a variant gives another. `d`, `a`, `b`, `c` below are the manual's names
//! for destination and sources. Types are those written in the instruction; registers may be wider where the manual
//! allows it, as in `ld`, `st` and `cvt`.

use super::ids::InstId;
use super::operand::{CallSlot, Callee};
use super::tensor::{TensorCopy, TensorMapReplace};
use super::texture::{Opaque, Query, Surface, Tex};
use super::types::{
    AtomOp, BarOp, BoolOp, Compare, CopyGroup, CopyPart, FloatTest, MatrixPart, MbarrierOp, Mma, Order, Part,
    Precision, PrmtMode, Rounding, Scope, ShflMode, Space, Type, VoteMode, Wgmma,
};
use super::video::VideoInst;

/// An operation with all its modifiers.
#[allow(missing_docs)]
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    // --- data movement -------------------------------------------------------------------------------------------
    /// `mov.type d, a`; `a` may also be an address or a special register. Only the width of the type matters.
    Mov {
        ty: Type,
    },
    /// `mov.b64 d, {a, b}`: the first source is the least significant part.
    Pack {
        ty: Type,
    },
    /// `mov.b64 {d, e}, a`
    Unpack {
        ty: Type,
    },
    /// `cvt`
    Cvt(Cvt),
    /// `cvt.pack.sat.convertType.abType{.cType} d, a, b{, c}`
    CvtPack {
        to: Type,
        from: Type,
        c: Option<Type>,
    },
    /// `cvta.space d, a`, which makes a generic address, or `cvta.to.space d, a` if `to` is true; `ty` is u32 or u64.
    Cvta {
        space: Space,
        to: bool,
        ty: Type,
    },
    /// `isspacep.space p, a`
    Isspacep {
        space: Space,
    },
    /// `selp.type d, a, b, p`
    Selp {
        ty: Type,
    },
    /// `slct.type.ctype d, a, b, c`
    Slct {
        ty: Type,
        cty: Type,
        ftz: bool,
    },

    // --- integer arithmetic --------------------------------------------------------------------------------------
    /// `add{.sat}.type` for integers, including u16x2 and s16x2
    Add {
        ty: Type,
        sat: bool,
    },
    Sub {
        ty: Type,
        sat: bool,
    },
    Mul {
        ty: Type,
        part: Part,
    },
    Mad {
        ty: Type,
        part: Part,
        sat: bool,
    },
    Mul24 {
        ty: Type,
        hi: bool,
    },
    Mad24 {
        ty: Type,
        hi: bool,
        sat: bool,
    },
    Div {
        ty: Type,
    },
    Rem {
        ty: Type,
    },
    Abs {
        ty: Type,
    },
    Neg {
        ty: Type,
    },
    Min {
        ty: Type,
        relu: bool,
    },
    Max {
        ty: Type,
        relu: bool,
    },

    // --- logic and shift -----------------------------------------------------------------------------------------
    And {
        ty: Type,
    },
    Or {
        ty: Type,
    },
    Xor {
        ty: Type,
    },
    Not {
        ty: Type,
    },
    Cnot {
        ty: Type,
    },
    Shl {
        ty: Type,
    },
    Shr {
        ty: Type,
    },

    // --- carries and sums ----------------------------------------------------------------------------------------
    /// `add.cc`, `addc{.cc}`, `sub.cc`, `subc{.cc}`. The condition code is a predicate register: the last source if
    /// `carry_in` is true, and the second destination if `carry_out` is true. After a subtraction, it is true if
    /// nothing was borrowed.
    AddC {
        ty: Type,
        sub: bool,
        carry_in: bool,
        carry_out: bool,
    },
    /// `mad.lo.cc`, `madc.hi{.cc}` and so on. The condition code is an operand as in `AddC`.
    MadC {
        ty: Type,
        hi: bool,
        carry_in: bool,
        carry_out: bool,
    },
    /// `sad.type d, a, b, c`
    Sad {
        ty: Type,
    },
    /// `dp4a.atype.btype d, a, b, c`
    Dp4a {
        aty: Type,
        bty: Type,
    },
    /// `dp2a.mode.atype.btype d, a, b, c`
    Dp2a {
        aty: Type,
        bty: Type,
        hi: bool,
    },

    // --- bits ----------------------------------------------------------------------------------------------------
    /// `bfe.type d, a, b, c`
    Bfe {
        ty: Type,
    },
    /// `bfi.type f, a, b, c, d`
    Bfi {
        ty: Type,
    },
    /// `bfind{.shiftamt}.type d, a`
    Bfind {
        ty: Type,
        shiftamt: bool,
    },
    /// `bmsk.mode.b32 d, a, b`
    Bmsk {
        clamp: bool,
    },
    /// `szext.mode.type d, a, b`
    Szext {
        ty: Type,
        clamp: bool,
    },
    Brev {
        ty: Type,
    },
    Clz {
        ty: Type,
    },
    Popc {
        ty: Type,
    },
    /// `fns.b32 d, mask, base, offset`
    Fns,
    /// `lop3.b32 d, a, b, c, lut`, or `lop3.op.b32 d|p, a, b, c, lut, q` if there is a `bool_op`. The lookup table is
    /// not a source.
    Lop3 {
        lut: u8,
        bool_op: Option<BoolOp>,
    },
    /// `prmt.b32{.mode} d, a, b, c`
    Prmt {
        mode: PrmtMode,
    },
    /// `shf.l.mode.b32 d, a, b, c` and `shf.r.mode.b32 d, a, b, c`
    Shf {
        left: bool,
        clamp: bool,
    },

    // --- video ---------------------------------------------------------------------------------------------------
    /// `vadd` to `vset4`
    Video(VideoInst),

    // --- floating point (f16, f16x2, bf16, bf16x2, f32, f64) -----------------------------------------------------
    FAdd(FloatMods),
    FSub(FloatMods),
    FMul(FloatMods),
    /// `fma`, and `mad` of floating-point types
    Fma(FloatMods),
    FNeg {
        ty: Type,
        ftz: bool,
    },
    FAbs {
        ty: Type,
        ftz: bool,
    },
    FMin {
        ty: Type,
        ftz: bool,
        nan: bool,
        xorsign_abs: bool,
    },
    FMax {
        ty: Type,
        ftz: bool,
        nan: bool,
        xorsign_abs: bool,
    },
    FDiv {
        ty: Type,
        precision: Precision,
        ftz: bool,
    },
    Sqrt {
        ty: Type,
        precision: Precision,
        ftz: bool,
    },
    Rcp {
        ty: Type,
        precision: Precision,
        ftz: bool,
    },
    /// `rsqrt.approx`
    Rsqrt {
        ty: Type,
        ftz: bool,
    },
    Sin {
        ftz: bool,
    },
    Cos {
        ftz: bool,
    },
    Lg2 {
        ftz: bool,
    },
    Ex2 {
        ty: Type,
        ftz: bool,
    },
    Tanh {
        ty: Type,
    },
    /// `copysign.type d, a, b`
    Copysign {
        ty: Type,
    },
    /// `testp.op.type p, a`
    Testp {
        test: FloatTest,
        ty: Type,
    },

    // --- comparison ----------------------------------------------------------------------------------------------
    /// `setp.cmp{.ftz}.type p{|q}, a, b` and `setp.cmp.bool{.ftz}.type p{|q}, a, b, {!}c`. For f16x2 and bf16x2, `p` is
    /// the result of the lower half and `q` the result of the upper half.
    Setp {
        cmp: Compare,
        ty: Type,
        ftz: bool,
        bool_op: Option<BoolOp>,
    },
    /// `set.cmp{.bool}{.ftz}.dtype.stype d, a, b{, {!}c}`
    Set {
        cmp: Compare,
        dty: Type,
        ty: Type,
        ftz: bool,
        bool_op: Option<BoolOp>,
    },

    // --- memory --------------------------------------------------------------------------------------------------
    /// `ld`, `ldu` and `multimem.ld_reduce`: source 0 is the address. One destination per element.
    Ld(MemMods),
    /// `st`, `st.async` and `multimem.st`: source 0 is the address, then one source per element.
    St(MemMods),
    /// `atom`: source 0 is the address, then `b` with one source per element, and `c` for `cas`. One destination per
    /// element.
    Atom {
        op: AtomOp,
        mem: MemMods,
    },
    /// `red`, `red.async`, `multimem.red`, and `atom` with the result `_`, except `atom.exch` and `atom.cas`. Sources
    /// as for `Atom`.
    Red {
        op: AtomOp,
        mem: MemMods,
    },
    /// `fence`, `membar`
    Fence {
        scope: Scope,
    },

    // --- across the lanes of a warp ------------------------------------------------------------------------------
    /// `shfl{.sync}.mode.b32 d{|p}, a, b, c{, membermask}`
    Shfl {
        mode: ShflMode,
        sync: bool,
    },
    /// `vote{.sync}.mode d, {!}a{, membermask}`
    Vote {
        mode: VoteMode,
        sync: bool,
    },
    /// `match.any.sync.type d, a, membermask`, `match.all.sync.type d{|p}, a, membermask`
    Match {
        all: bool,
        ty: Type,
    },
    /// `redux.sync.op.type d, a, membermask`
    Redux {
        op: AtomOp,
        ty: Type,
    },
    /// `activemask.b32 d`
    Activemask,
    /// `elect.sync d|p, membermask`
    Elect,
    /// `bar.warp.sync membermask`
    BarWarpSync,

    // --- control -------------------------------------------------------------------------------------------------
    /// `bra{.uni} label`
    Bra {
        target: InstId,
        uni: bool,
    },
    /// `brx.idx{.uni} a, list`
    Brx {
        targets: Vec<InstId>,
        uni: bool,
    },
    /// `call{.uni} (rets), callee, (args)`; an indirect callee's address is source 0.
    Call {
        callee: Callee,
        args: Vec<CallSlot>,
        rets: Vec<CallSlot>,
        uni: bool,
    },
    Ret {
        uni: bool,
    },
    /// `alloca d, size{, align}`: allocates bytes of the thread's stack until the function returns.
    Alloca,
    /// `stacksave d`: the current end of the stack.
    Stacksave,
    /// `stackrestore a`: frees everything that was allocated after the matching `stacksave`.
    Stackrestore,
    Exit,
    Trap,
    /// `bar{.cta}` and `barrier{.cta}`: source 0 is the barrier, then the thread count if given, then the predicate if
    /// any.
    Bar {
        op: BarOp,
        aligned: bool,
    },

    // --- clusters ------------------------------------------------------------------------------------------------
    /// `mapa{.shared::cluster}.type d, a, b`: the address in block `b` of the cluster that corresponds to `a` in this
    /// block.
    Mapa {
        ty: Type,
    },
    /// `getctarank{.shared::cluster}.type d, a`: the rank of the block that owns the shared memory at the address.
    Getctarank {
        ty: Type,
    },
    /// Faults if the launch has no clusters. Lowering adds this operation before `st.async`, and before `red.async` if
    /// `reduce` is true.
    WantsCluster {
        reduce: bool,
    },
    /// `barrier.cluster.arrive` and `barrier.cluster.wait`.
    ClusterBarrier {
        arrive: bool,
        relaxed: bool,
        aligned: bool,
    },

    // --- asynchronous copies and their barriers ------------------------------------------------------------------
    /// `cp.async.commit_group`, `cp.async.wait_group` and `cp.async.wait_all`. They change no result, because copies
    /// complete with their instruction, but the engine's checkers use them.
    CopyGroup(CopyGroup),
    /// `cp.async`: source 0 is the address in shared memory, source 1 the address in global memory. `part` determines
    /// source 2.
    CpAsync {
        bytes: u8,
        part: CopyPart,
    },
    /// `cp.async.bulk`, `cp.reduce.async.bulk` and `tensormap.cp_fenceproxy`: the sources are the destination address,
    /// the source address and the number of bytes. With `.multicast::cluster`, sources 3 and 4 are the mask of blocks
    /// and the barrier. Without it, an `Mbarrier` that follows signals the barrier, if there is one.
    Bulk {
        to: Space,
        from: Space,
        reduce: Option<(AtomOp, Type)>,
        multicast: bool,
    },
    /// `cp.async.bulk.tensor`, `cp.reduce.async.bulk.tensor`
    TensorCopy(TensorCopy),
    /// `tensormap.replace`
    TensorMapReplace(TensorMapReplace),
    /// `mbarrier`: source 0 is the address (for `.pending_count`, the state), source 1 the count, the transaction
    /// count, the state or the parity. The destination is the state, a predicate that is true if the phase has
    /// completed, or the pending count.
    Mbarrier {
        op: MbarrierOp,
        space: Space,
    },

    // --- matrices ------------------------------------------------------------------------------------------------
    /// `mma` and `wmma.mma`: the sources are the registers of A, of B and of C, and with `.sp` the metadata.
    Mma(Mma),
    /// `wgmma.mma_async`: the sources are the registers of the accumulator, the registers of A or its descriptor, the
    /// descriptor of B, and the predicate `scale-d`, which is false if the accumulator is to count as zero. With `.sp`,
    /// the metadata is the source before the first descriptor.
    Wgmma(Wgmma),
    /// `ldmatrix`: source 0 is the address.
    Ldmatrix {
        count: u8,
        trans: bool,
        space: Space,
    },
    /// `stmatrix`: source 0 is the address, then the registers.
    Stmatrix {
        count: u8,
        trans: bool,
        space: Space,
    },
    /// `movmatrix.sync.aligned.m8n8.trans.b16 d, a`
    Movmatrix,
    /// `wmma.load`: source 0 is the address, source 1 the stride if there is one.
    WmmaLd {
        shape: [u16; 3],
        part: MatrixPart,
        ty: Type,
        column: bool,
        space: Space,
    },
    /// `wmma.store`: source 0 is the address, then the registers, then the stride if there is one.
    WmmaSt {
        shape: [u16; 3],
        ty: Type,
        column: bool,
        space: Space,
    },

    // --- textures and surfaces -----------------------------------------------------------------------------------
    /// `tex`, `tld4`
    Tex(Tex),
    /// `suld`, `sust`, `sured`
    Surface(Surface),
    /// `txq`, or `suq` if `surface` is true: source 0 is the handle, source 1 the level if there is one.
    Query {
        query: Query,
        surface: bool,
    },
    /// `istypep p, a`
    Istypep(Opaque),

    // --- others --------------------------------------------------------------------------------------------------
    /// `nanosleep.u32 t`
    Nanosleep,
    /// An instruction without effect in this driver, such as `prefetch`, `pmevent`, `brkpt` and `wgmma.fence`.
    Nop,

    /// An instruction that is known but not implemented. A module that contains it loads, but a kernel cannot be
    /// launched if it, or a function that it can call, contains the instruction.
    Unsupported {
        opcode: String,
    },
}

/// `cvt{.rnd}{.relu}{.satfinite}{.ftz}{.sat}.to.from d, a{, b}`
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cvt {
    pub to: Type,
    pub from: Type,
    /// `.rn`, `.rz`, `.rm`, `.rp`, `.rna` for a floating-point result
    pub rnd: Option<Rounding>,
    /// `.rni`, `.rzi`, `.rmi`, `.rpi`: rounds to an integral value
    pub int_rnd: Option<Rounding>,
    pub ftz: bool,
    pub sat: bool,
    pub relu: bool,
    pub satfinite: bool,
}

/// Modifiers of a floating-point operation.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FloatMods {
    pub ty: Type,
    pub rnd: Rounding,
    pub ftz: bool,
    pub sat: bool,
    pub relu: bool,
    /// `.oob` of `fma`
    pub oob: bool,
}

/// Modifiers of `ld`, `ldu`, `st`, `atom` and `red`. Cache and eviction hints have no effect and are not kept, except
/// `.cv`, which becomes [`Order::Volatile`].
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemMods {
    pub space: Space,
    /// Type of one element.
    pub ty: Type,
    /// Number of elements: 1, 2, 4 or 8.
    pub vec: u8,
    pub order: Order,
    /// Bytes added to the address.
    pub offset: i64,
}
