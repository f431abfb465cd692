//! Table rows of integer arithmetic, logic, shifts, comparison and selection.

use crate::forms::mods::Mods;
use crate::forms::row::{Lowering, Reject, Row, bad_types, op, row};
use crate::ir::{Compare, Op, Part, Type};

#[rustfmt::skip] // one row per line
pub(super) const ROWS: &[Row] = &[
    // --- arithmetic
    row("add<int> d, a, b", 10, 0, |m| op(Op::Add { ty: m.ty(0), sat: false })),
    row("add.sat.s32 d, a, b", 10, 0, |m| op(Op::Add { ty: m.ty(0), sat: true })),
    row("add(.u16x2|.s16x2) d, a, b", 80, 90, |m| op(Op::Add { ty: m.ty(0), sat: false })),
    row("sub<int> d, a, b", 10, 0, |m| op(Op::Sub { ty: m.ty(0), sat: false })),
    row("sub.sat.s32 d, a, b", 10, 0, |m| op(Op::Sub { ty: m.ty(0), sat: true })),
    row("mul(.lo|.hi)<int> d, a, b", 10, 0, |m| op(Op::Mul { ty: m.ty(0), part: m.part() })),
    row("mul.wide(.u16|.u32|.s16|.s32) d:w, a, b", 10, 0, |m| op(Op::Mul { ty: m.ty(0), part: Part::Wide })),
    row("mad(.lo|.hi)<int> d, a, b, c", 10, 0, |m| op(Op::Mad { ty: m.ty(0), part: m.part(), sat: false })),
    row("mad.hi.sat.s32 d, a, b, c", 10, 0, |m| op(Op::Mad { ty: m.ty(0), part: Part::Hi, sat: true })),
    row("mad.wide(.u16|.u32|.s16|.s32) d:w, a, b, c:w", 10, 0, |m| op(Op::Mad { ty: m.ty(0), part: Part::Wide, sat: false })),
    row("mul24(.lo|.hi)<int32> d, a, b", 10, 0, |m| op(Op::Mul24 { ty: m.ty(0), hi: m.has(".hi") })),
    row("mad24(.lo|.hi)<int32> d, a, b, c", 10, 0, |m| op(Op::Mad24 { ty: m.ty(0), hi: m.has(".hi"), sat: false })),
    row("mad24.hi.sat.s32 d, a, b, c", 10, 0, |m| op(Op::Mad24 { ty: m.ty(0), hi: true, sat: true })),
    row("div<int> d, a, b", 10, 0, |m| op(Op::Div { ty: m.ty(0) })),
    row("rem<int> d, a, b", 10, 0, |m| op(Op::Rem { ty: m.ty(0) })),
    row("abs<signed> d, a", 10, 0, |m| op(Op::Abs { ty: m.ty(0) })),
    row("neg<signed> d, a", 10, 0, |m| op(Op::Neg { ty: m.ty(0) })),
    row("min<int> d, a, b", 10, 0, |m| op(Op::Min { ty: m.ty(0), relu: false })),
    row("max<int> d, a, b", 10, 0, |m| op(Op::Max { ty: m.ty(0), relu: false })),
    row("min(.u16x2|.s16x2) d, a, b", 80, 90, |m| op(Op::Min { ty: m.ty(0), relu: false })),
    row("max(.u16x2|.s16x2) d, a, b", 80, 90, |m| op(Op::Max { ty: m.ty(0), relu: false })),
    row("min.relu(.s16x2|.s32) d, a, b", 80, 90, |m| op(Op::Min { ty: m.ty(0), relu: true })),
    row("max.relu(.s16x2|.s32) d, a, b", 80, 90, |m| op(Op::Max { ty: m.ty(0), relu: true })),
    // --- logic and shift
    row("and(.pred|.b16|.b32|.b64) d, !a, !b", 10, 0, |m| op(Op::And { ty: m.ty(0) })),
    row("or(.pred|.b16|.b32|.b64) d, !a, !b", 10, 0, |m| op(Op::Or { ty: m.ty(0) })),
    row("xor(.pred|.b16|.b32|.b64) d, !a, !b", 10, 0, |m| op(Op::Xor { ty: m.ty(0) })),
    row("not(.pred|.b16|.b32|.b64) d, !a", 10, 0, |m| op(Op::Not { ty: m.ty(0) })),
    row("cnot<bits> d, a", 10, 0, |m| op(Op::Cnot { ty: m.ty(0) })),
    row("shl<bits> d, a, b:u32", 10, 0, |m| op(Op::Shl { ty: m.ty(0) })),
    row("shr(.b16|.b32|.b64|.u16|.u32|.u64|.s16|.s32|.s64) d, a, b:u32", 10, 0, |m| op(Op::Shr { ty: m.ty(0) })),
    // --- comparison and selection
    row("setp<cmp>{.ftz}<plain> p|q, a, b", 10, 0, setp),
    row("setp<cmp><bool>{.ftz}<plain> p|q, a, b, !c", 10, 0, setp),
    row("setp<cmp>{.ftz}.f16 p, a, b", 42, 53, setp),
    row("setp<cmp><bool>{.ftz}.f16 p, a, b, !c", 42, 53, setp),
    row("setp<cmp>{.ftz}.f16x2 p|q, a, b", 42, 53, setp),
    row("setp<cmp><bool>{.ftz}.f16x2 p|q, a, b, !c", 42, 53, setp),
    row("setp<cmp>.bf16 p, a, b", 78, 90, setp),
    row("setp<cmp><bool>.bf16 p, a, b, !c", 78, 90, setp),
    row("setp<cmp>.bf16x2 p|q, a, b", 78, 90, setp),
    row("setp<cmp><bool>.bf16x2 p|q, a, b, !c", 78, 90, setp),
    row("set<cmp>{.ftz}(.u32|.s32|.f32)<plain> d:1, a, b", 10, 0, set),
    row("set<cmp><bool>{.ftz}(.u32|.s32|.f32)<plain> d:1, a, b, !c", 10, 0, set),
    row("set<cmp>{.ftz}.f16(<plain>|.f16) d:1, a, b", 42, 53, set),
    row("set<cmp><bool>{.ftz}.f16(<plain>|.f16) d:1, a, b, !c", 42, 53, set),
    row("set<cmp>.bf16(<plain>|.f16|.bf16) d:1, a, b", 78, 90, set),
    row("set<cmp><bool>.bf16(<plain>|.f16|.bf16) d:1, a, b, !c", 78, 90, set),
    row("set<cmp>{.ftz}(.u16|.s16|.u32|.s32).f16 d:1, a, b", 65, 53, set),
    row("set<cmp><bool>{.ftz}(.u16|.s16|.u32|.s32).f16 d:1, a, b, !c", 65, 53, set),
    row("set<cmp>{.ftz}(.u32|.s32).f16x2 d:1, a, b", 65, 53, set),
    row("set<cmp><bool>{.ftz}(.u32|.s32).f16x2 d:1, a, b, !c", 65, 53, set),
    row("set<cmp>{.ftz}.f16x2.f16x2 d:1, a, b", 42, 53, set),
    row("set<cmp><bool>{.ftz}.f16x2.f16x2 d:1, a, b, !c", 42, 53, set),
    row("set<cmp>(.u16|.s16|.u32|.s32).bf16 d:1, a, b", 78, 90, set),
    row("set<cmp><bool>(.u16|.s16|.u32|.s32).bf16 d:1, a, b, !c", 78, 90, set),
    row("set<cmp>(.u32|.s32|.bf16x2).bf16x2 d:1, a, b", 78, 90, set),
    row("set<cmp><bool>(.u32|.s32|.bf16x2).bf16x2 d:1, a, b, !c", 78, 90, set),
    row("selp<plain> d, a, b, !c", 10, 0, |m| op(Op::Selp { ty: m.ty(0) })),
    row("slct<plain>.s32 d:1, a:1, b:1, c:s32", 10, 0, slct),
    row("slct{.ftz}<plain>.f32 d:1, a:1, b:1, c:f32", 10, 0, slct),
];

/// Returns true if the comparison operator exists for the type.
fn compares(cmp: Compare, ty: Type) -> bool {
    use Compare::*;
    match cmp {
        Eq | Ne => true,
        Lt | Le | Gt | Ge => !matches!(ty, Type::B16 | Type::B32 | Type::B64),
        Lo | Ls | Hi | Hs => matches!(ty, Type::U16 | Type::U32 | Type::U64),
        Equ | Neu | Ltu | Leu | Gtu | Geu | Num | Nan => ty.is_float(),
    }
}

fn mismatch() -> Result<Lowering, Reject> {
    Err(Reject(
        "Mismatch between instruction type and comparison qualifier".to_owned(),
    ))
}

/// Returns true if there is no `.ftz`, or if the type allows it.
fn ftz_fits(m: &Mods, ty: Type) -> bool {
    !m.has(".ftz") || matches!(ty, Type::F32 | Type::F16 | Type::F16x2)
}

fn setp(m: &Mods) -> Result<Lowering, Reject> {
    let (cmp, ty) = (m.compare(), m.ty(0));
    if !compares(cmp, ty) {
        return mismatch();
    }
    if !ftz_fits(m, ty) {
        return bad_types("setp");
    }
    op(Op::Setp {
        cmp,
        ty,
        ftz: m.has(".ftz"),
        bool_op: m.bool_op(),
    })
}

fn set(m: &Mods) -> Result<Lowering, Reject> {
    let (cmp, ty) = (m.compare(), m.ty(1));
    if !compares(cmp, ty) {
        return mismatch();
    }
    if !ftz_fits(m, ty) {
        return bad_types("set");
    }
    op(Op::Set {
        cmp,
        dty: m.ty(0),
        ty,
        ftz: m.has(".ftz"),
        bool_op: m.bool_op(),
    })
}

fn slct(m: &Mods) -> Result<Lowering, Reject> {
    op(Op::Slct {
        ty: m.ty(0),
        cty: m.ty(1),
        ftz: m.has(".ftz"),
    })
}
