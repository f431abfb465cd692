//! What an instruction does: one variant per operation, every modifier a field.
//!
//! Operand order is the manual's. `d`, `a`, `b`, `c` below are its names for destination and sources. Types are those
//! written in the instruction; registers may be wider where the manual allows it (`ld`, `st`, `cvt`).

use super::types::*;
use super::{BarOp, CallSlot, Callee, InstId};

/// An operation with all its modifiers.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    // --- data movement -------------------------------------------------------------------------------------------
    /// `mov.type d, a`: also of an address or a special register. Only the width of the type counts.
    Mov {
        ty: Type,
    },
    /// `mov.b64 d, {a, b}`: sources from the least significant part up.
    Pack {
        ty: Type,
    },
    /// `mov.b64 {d, e}, a`
    Unpack {
        ty: Type,
    },
    /// `cvt`. `fp` is what the modifiers say.
    Cvt(Cvt),
    /// `cvt.pack.sat.convertType.abType{.cType} d, a, b{, c}`
    CvtPack {
        to: Type,
        from: Type,
        c: Option<Type>,
    },
    /// `cvta.space d, a` (to generic) and `cvta.to.space d, a`; `ty` is u32 or u64.
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
    /// `add{.sat}.type` for integers, u16x2 and s16x2 too
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

    // --- comparison ----------------------------------------------------------------------------------------------
    /// `setp.cmp{.ftz}.type p{|q}, a, b` and `setp.cmp.bool… p{|q}, a, b, {!}c`. For f16x2, bf16x2: `p|q` are the halves.
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
    /// `ld` and `ldu`: source 0 is the address, one destination per element.
    Ld(MemMods),
    /// `st`: source 0 is the address, then one source per element.
    St(MemMods),

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
    Exit,
    Trap,
    /// `bar{.cta}` and `barrier{.cta}`: source 0 the barrier, source 1 the thread count if given, then the predicate.
    Bar {
        op: BarOp,
        aligned: bool,
    },
    /// An instruction that does nothing here: `prefetch`, `applypriority`, `discard`, `pmevent`, `brkpt` without debugger.
    Nop,

    /// An instruction that this driver knows but cannot run yet: launching a kernel that reaches it is refused, by name.
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
    /// `.rni`, `.rzi`, `.rmi`, `.rpi`: round to an integral value
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

/// Modifiers of `ld` and `st`. Cache and eviction hints change nothing and are not kept.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemMods {
    pub space: Space,
    /// Type of one element.
    pub ty: Type,
    /// Number of elements: 1, 2, 4 or 8.
    pub vec: u8,
    pub order: Order,
    /// Added to the address.
    pub offset: i64,
}
