//! Table rows of `mov`, address conversion, and `cvt`.

use crate::forms::mods::Mods;
use crate::forms::row::{Lowering, Reject, Row, bad_types, op, row};
use crate::ir::{Cvt, Op, Type};

#[rustfmt::skip] // one row per line
pub(super) const ROWS: &[Row] = &[
    row("mov(.pred|.b16|.b32|.b64|.b128|.u16|.u32|.u64|.s16|.s32|.s64|.f32|.f64) d, a", 10, 0, mov),
    row("mov(.v2|.v4)<plain> d*, a*", 10, 0, mov),
    row("cvta(.global|.local|.const|.param|.param::entry|<shared>)<size> d, a", 20, 20, cvta),
    row("cvta.to(.global|.local|.const|.param|.param::entry|<shared>)<size> d, a", 20, 20, cvta),
    row("isspacep(.global|.local|.const|.param|.param::entry|<shared>) p, a:u64", 20, 20, isspacep),
    row("isspacep(.global|.local|.const|.param|.param::entry|<shared>) p, a:u32", 20, 20, isspacep),
    // --- integer to integer
    row("cvt{.sat}<int8><int8> d:1~, a:2~", 10, 0, cvt),
    // --- float to integer
    row("cvt<irnd>{.ftz}{.sat}<int8>.f32 d:1~, a:2~", 10, 0, cvt),
    row("cvt<irnd>{.sat}<int8>(.f16|.f64) d:1~, a:2~", 10, 0, cvt),
    row("cvt<irnd><int8>.bf16 d:1, a:2", 78, 90, cvt),
    // --- integer to float
    row("cvt<rnd>{.ftz}{.sat}.f32<int8> d:1~, a:2~", 10, 0, cvt),
    row("cvt<rnd>{.sat}(.f16|.f64)<int8> d:1~, a:2~", 10, 0, cvt),
    row("cvt<rnd>.bf16<int8> d:1, a:2", 78, 90, cvt),
    // --- float to float
    row("cvt{<irnd>}{.ftz}{.sat}.f32.f32 d:1~, a:2~", 10, 0, cvt),
    row("cvt{<irnd>}{.sat}.f16.f16 d:1~, a:2~", 10, 0, cvt),
    row("cvt{<irnd>}{.sat}.f64.f64 d:1~, a:2~", 10, 0, cvt),
    row("cvt{<irnd>}.bf16.bf16 d:1, a:2", 78, 90, cvt),
    row("cvt<rnd>{.ftz}{.sat}(.f16|.f32)(.f32|.f64) d:1~, a:2~", 10, 0, cvt),
    row("cvt{.ftz}{.sat}(.f32|.f64)(.f16|.f32) d:1~, a:2~", 10, 0, cvt),
    row("cvt(.rn|.rz){.satfinite}.f16.f32 d:1~, a:2~", 81, 70, cvt),
    row("cvt(.rn|.rz).relu.f16.f32 d:1~, a:2~", 70, 80, cvt),
    row("cvt(.rn|.rz).relu.satfinite.f16.f32 d:1~, a:2~", 81, 80, cvt),
    row("cvt(.rn|.rz).relu.bf16.f32 d:1, a:2", 70, 80, cvt),
    row("cvt(.rn|.rz){.relu}.satfinite.bf16.f32 d:1, a:2", 81, 80, cvt),
    row("cvt<rnd>{.ftz}.bf16.f32 d:1, a:2", 70, 80, cvt),
    row("cvt<rnd>.bf16(.f16|.f64) d:1, a:2", 78, 90, cvt),
    row("cvt{<rnd>}.f32.bf16 d:1, a:2", 71, 80, cvt),
    row("cvt{<rnd>}.ftz.f32.bf16 d:1, a:2", 78, 90, cvt),
    row("cvt{<rnd>}(.f16|.f64).bf16 d:1, a:2", 78, 90, cvt),
    row("cvt.bf16.f16 d:1, a:2", 78, 90, cvt),
    row("cvt(.rn|.rz){.relu}.f16x2.f32 d:1~, a:2~, b:2~", 70, 80, cvt),
    row("cvt(.rn|.rz){.relu}.bf16x2.f32 d:1, a:2, b:2", 70, 80, cvt),
    row("cvt(.rn|.rz){.relu}.satfinite.f16x2.f32 d:1~, a:2~, b:2~", 81, 80, cvt),
    row("cvt(.rn|.rz){.relu}.satfinite.bf16x2.f32 d:1, a:2, b:2", 81, 80, cvt),
    row("cvt.rna.tf32.f32 d:1, a:2", 70, 80, cvt),
    row("cvt.rna.satfinite.tf32.f32 d:1, a:2", 81, 80, cvt),
    row("cvt(.rn|.rz){.relu}.tf32.f32 d:1, a:2", 78, 90, cvt),
    row("cvt.rn.satfinite{.relu}<f8x2>.f32 d:1, a:2, b:2", 78, 90, cvt),
    row("cvt.rn.satfinite{.relu}<f8x2>.f32 d:1, a:2, b:2", 81, 89, cvt),
    row("cvt.rn.satfinite{.relu}<f8x2>.f16x2 d:1, a:2", 78, 90, cvt),
    row("cvt.rn.satfinite{.relu}<f8x2>.f16x2 d:1, a:2", 81, 89, cvt),
    row("cvt.rn{.relu}.f16x2<f8x2> d:1, a:2", 78, 90, cvt),
    row("cvt.rn{.relu}.f16x2<f8x2> d:1, a:2", 81, 89, cvt),
    // --- two integers to one register
    row("cvt.pack.sat(.u16|.s16).s32 d:u32, a:s32, b:s32", 65, 72, cvt_pack),
    row("cvt.pack.sat(.u8|.s8).s32.b32 d:u32, a:s32, b:s32, c:u32", 65, 72, cvt_pack),
    row("cvt.pack.sat(.u2|.s2|.u4|.s4).s32.b32 d:u32, a:s32, b:s32, c:u32", 65, 75, cvt_pack_small),
];

fn mov(m: &Mods) -> Result<Lowering, Reject> {
    if m.vec() > 1 && u32::from(m.vec()) * m.ty(0).size() > 16 {
        return bad_types("mov");
    }
    Ok(Lowering::Mov {
        ty: m.ty(0),
        vec: m.vec(),
    })
}

fn cvta(m: &Mods) -> Result<Lowering, Reject> {
    Ok(Lowering::Cvta(Op::Cvta {
        space: m.space(),
        to: m.has(".to"),
        ty: m.ty(0),
    }))
}

fn isspacep(m: &Mods) -> Result<Lowering, Reject> {
    op(Op::Isspacep { space: m.space() })
}

/// Returns true if the integer type `from` has values outside of the range of `to`.
fn clamps(to: Type, from: Type) -> bool {
    let (wider, signed) = (from.size() > to.size(), from.is_signed());
    wider || (signed && !to.is_signed()) || (from.size() == to.size() && signed != to.is_signed())
}

fn cvt(m: &Mods) -> Result<Lowering, Reject> {
    let (to, from) = (m.ty(0), m.ty(1));
    let (rnd, int_rnd) = (m.rounding(), m.int_rounding());
    let integers = !to.is_float() && !from.is_float();
    if integers && m.has(".sat") && !clamps(to, from) {
        return bad_types("cvt");
    }
    let narrows = to.size() < from.size();
    let widens = to.size() > from.size();
    let plain = |ty| matches!(ty, Type::F16 | Type::F32 | Type::F64);
    // Between IEEE formats, a modifier such as `.rn` is required if the result is narrower, and not allowed otherwise.
    // The rows with a choice of formats also match combinations that do not exist, such as `cvt.rn.f32.f32`.
    if plain(to) && plain(from) && (narrows != rnd.is_some() || (widens && int_rnd.is_some())) {
        return bad_types("cvt");
    }
    // `.ftz` requires that one of the types is f32.
    if m.has(".ftz") && to != Type::F32 && from != Type::F32 {
        return bad_types("cvt");
    }
    op(Op::Cvt(Cvt {
        to,
        from,
        rnd,
        int_rnd,
        ftz: m.has(".ftz"),
        sat: m.has(".sat"),
        relu: m.has(".relu"),
        satfinite: m.has(".satfinite"),
    }))
}

fn cvt_pack_small(m: &Mods) -> Result<Lowering, Reject> {
    op(Op::CvtPack {
        to: m.small_types().first().copied().unwrap_or(Type::U4),
        from: m.ty(0),
        c: m.types().get(1).copied(),
    })
}

fn cvt_pack(m: &Mods) -> Result<Lowering, Reject> {
    op(Op::CvtPack {
        to: m.ty(0),
        from: m.ty(1),
        c: m.types().get(2).copied(),
    })
}
