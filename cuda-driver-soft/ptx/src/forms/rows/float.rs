//! Table rows of floating-point arithmetic.

use crate::forms::mods::Mods;
use crate::forms::row::{Lowering, Reject, Row, op, row};
use crate::ir::Op;

#[rustfmt::skip] // one row per line
pub(super) const ROWS: &[Row] = &[
    row("add{<rnd>}{.ftz}{.sat}.f32 d, a, b", 10, 0, |m| op(Op::FAdd(m.float()))),
    row("add{<rnd>}.f64 d, a, b", 10, 0, |m| op(Op::FAdd(m.float()))),
    row("add{.rn}{.ftz}{.sat}<half> d, a, b", 42, 53, |m| op(Op::FAdd(m.float()))),
    row("add{.rn}<bhalf> d, a, b", 78, 90, |m| op(Op::FAdd(m.float()))),
    row("sub{<rnd>}{.ftz}{.sat}.f32 d, a, b", 10, 0, |m| op(Op::FSub(m.float()))),
    row("sub{<rnd>}.f64 d, a, b", 10, 0, |m| op(Op::FSub(m.float()))),
    row("sub{.rn}{.ftz}{.sat}<half> d, a, b", 42, 53, |m| op(Op::FSub(m.float()))),
    row("sub{.rn}<bhalf> d, a, b", 78, 90, |m| op(Op::FSub(m.float()))),
    row("mul{<rnd>}{.ftz}{.sat}.f32 d, a, b", 10, 0, |m| op(Op::FMul(m.float()))),
    row("mul{<rnd>}.f64 d, a, b", 10, 0, |m| op(Op::FMul(m.float()))),
    row("mul{.rn}{.ftz}{.sat}<half> d, a, b", 42, 53, |m| op(Op::FMul(m.float()))),
    row("mul{.rn}<bhalf> d, a, b", 78, 90, |m| op(Op::FMul(m.float()))),
    row("fma<rnd>{.ftz}{.sat}.f32 d, a, b, c", 20, 20, |m| op(Op::Fma(m.float()))),
    row("fma<rnd>.f64 d, a, b, c", 14, 0, |m| op(Op::Fma(m.float()))),
    row("fma.rn{.ftz}{.sat}<half> d, a, b, c", 42, 53, |m| op(Op::Fma(m.float()))),
    row("fma.rn{.ftz}.relu<half> d, a, b, c", 70, 80, |m| op(Op::Fma(m.float()))),
    row("fma<rnd>{.relu}<bhalf> d, a, b, c", 70, 80, |m| op(Op::Fma(m.float()))),
    row("fma<rnd>.oob{.relu}<bhalf> d, a, b, c", 81, 90, |m| op(Op::Fma(m.float()))),
    row("fma.rn.oob{.relu|.sat}<half> d, a, b, c", 81, 90, |m| op(Op::Fma(m.float()))),
    row("mad<rnd>{.ftz}{.sat}.f32 d, a, b, c", 20, 20, |m| op(Op::Fma(m.float()))),
    row("mad<rnd>.f64 d, a, b, c", 14, 0, |m| op(Op::Fma(m.float()))),
    row("neg{.ftz}.f32 d, a", 10, 0, neg),
    row("neg.f64 d, a", 10, 0, neg),
    row("neg{.ftz}<half> d, a", 60, 53, neg),
    row("neg<bhalf> d, a", 70, 80, neg),
    row("abs{.ftz}.f32 d, a", 10, 0, abs),
    row("abs.f64 d, a", 10, 0, abs),
    row("abs{.ftz}<half> d, a", 65, 53, abs),
    row("abs<bhalf> d, a", 70, 80, abs),
    row("min{.ftz}.f32 d, a, b", 10, 0, min),
    row("min{.ftz}.NaN.f32 d, a, b", 70, 80, min),
    row("min{.ftz}{.NaN}.xorsign.abs.f32 d, a, b", 72, 86, min),
    row("min.f64 d, a, b", 10, 0, min),
    row("min{.ftz}{.NaN}<half> d, a, b", 70, 80, min),
    row("min{.ftz}{.NaN}.xorsign.abs<half> d, a, b", 72, 86, min),
    row("min{.NaN}<bhalf> d, a, b", 70, 80, min),
    row("min{.NaN}.xorsign.abs<bhalf> d, a, b", 72, 86, min),
    row("max{.ftz}.f32 d, a, b", 10, 0, max),
    row("max{.ftz}.NaN.f32 d, a, b", 70, 80, max),
    row("max{.ftz}{.NaN}.xorsign.abs.f32 d, a, b", 72, 86, max),
    row("max.f64 d, a, b", 10, 0, max),
    row("max{.ftz}{.NaN}<half> d, a, b", 70, 80, max),
    row("max{.ftz}{.NaN}.xorsign.abs<half> d, a, b", 72, 86, max),
    row("max{.NaN}<bhalf> d, a, b", 70, 80, max),
    row("max{.NaN}.xorsign.abs<bhalf> d, a, b", 72, 86, max),
    row("div.approx{.ftz}.f32 d, a, b", 10, 0, div),
    row("div(.full){.ftz}.f32 d, a, b", 10, 0, div),
    row("div<rnd>{.ftz}.f32 d, a, b", 20, 20, div),
    row("div<rnd>.f64 d, a, b", 14, 0, div),
    row("sqrt.approx{.ftz}.f32 d, a", 10, 0, sqrt),
    row("sqrt<rnd>{.ftz}.f32 d, a", 20, 20, sqrt),
    row("sqrt<rnd>.f64 d, a", 14, 0, sqrt),
    row("rcp.approx{.ftz}.f32 d, a", 10, 0, rcp),
    row("rcp<rnd>{.ftz}.f32 d, a", 20, 20, rcp),
    row("rcp<rnd>{.ftz}.f64 d, a", 14, 0, rcp),
    row("rcp.approx.ftz.f64 d, a", 21, 20, rcp),
    row("rsqrt.approx{.ftz}.f32 d, a", 10, 0, rsqrt),
    row("rsqrt.approx.f64 d, a", 10, 0, rsqrt),
    row("rsqrt.approx.ftz.f64 d, a", 40, 20, rsqrt),
    row("sin.approx{.ftz}.f32 d, a", 10, 0, |m| op(Op::Sin { ftz: m.has(".ftz") })),
    row("cos.approx{.ftz}.f32 d, a", 10, 0, |m| op(Op::Cos { ftz: m.has(".ftz") })),
    row("lg2.approx{.ftz}.f32 d, a", 10, 0, |m| op(Op::Lg2 { ftz: m.has(".ftz") })),
    row("ex2.approx{.ftz}.f32 d, a", 10, 0, ex2),
    row("ex2.approx<half> d, a", 70, 75, ex2),
    row("ex2.approx.ftz<bhalf> d, a", 78, 90, ex2),
    row("tanh.approx.f32 d, a", 70, 75, tanh),
    row("tanh.approx<half> d, a", 70, 75, tanh),
    row("tanh.approx<bhalf> d, a", 78, 90, tanh),
];

fn neg(m: &Mods) -> Result<Lowering, Reject> {
    op(Op::FNeg {
        ty: m.ty(0),
        ftz: m.has(".ftz"),
    })
}

fn abs(m: &Mods) -> Result<Lowering, Reject> {
    op(Op::FAbs {
        ty: m.ty(0),
        ftz: m.has(".ftz"),
    })
}

fn min(m: &Mods) -> Result<Lowering, Reject> {
    op(Op::FMin {
        ty: m.ty(0),
        ftz: m.has(".ftz"),
        nan: m.has(".NaN"),
        xorsign_abs: m.has(".xorsign"),
    })
}

fn max(m: &Mods) -> Result<Lowering, Reject> {
    op(Op::FMax {
        ty: m.ty(0),
        ftz: m.has(".ftz"),
        nan: m.has(".NaN"),
        xorsign_abs: m.has(".xorsign"),
    })
}

fn div(m: &Mods) -> Result<Lowering, Reject> {
    op(Op::FDiv {
        ty: m.ty(0),
        precision: m.precision(),
        ftz: m.has(".ftz"),
    })
}

fn sqrt(m: &Mods) -> Result<Lowering, Reject> {
    op(Op::Sqrt {
        ty: m.ty(0),
        precision: m.precision(),
        ftz: m.has(".ftz"),
    })
}

fn rcp(m: &Mods) -> Result<Lowering, Reject> {
    op(Op::Rcp {
        ty: m.ty(0),
        precision: m.precision(),
        ftz: m.has(".ftz"),
    })
}

fn rsqrt(m: &Mods) -> Result<Lowering, Reject> {
    op(Op::Rsqrt {
        ty: m.ty(0),
        ftz: m.has(".ftz"),
    })
}

fn ex2(m: &Mods) -> Result<Lowering, Reject> {
    op(Op::Ex2 {
        ty: m.ty(0),
        ftz: m.has(".ftz"),
    })
}

fn tanh(m: &Mods) -> Result<Lowering, Reject> {
    op(Op::Tanh { ty: m.ty(0) })
}
