//! Loads, stores, barriers.

use super::mods::{bad_types, op};
use super::{Made, Mods, Reject, Row, row};
use crate::ir::*;

/// Spaces of loads and stores.
pub(super) const ROWS: &[Row] = &[
    row(
        "ld{.weak}{.global|.shared|.local|.const|.param}{<vec>}<mem> d*~?, [a]",
        10,
        0,
        ld,
    ),
    row(
        "ld.global{.ca|.cg|.cs}.nc{<vec>}<mem> d*~?, [a]",
        31,
        32,
        ld,
    ),
    row(
        "ld.volatile{.global|.shared|.local|.const|.param}{<vec>}<mem> d*~?, [a]",
        10,
        0,
        ld,
    ),
    row("ldu{.global}{.v2|.v4}<mem> d*~?, [a]", 20, 0, ld),
    row(
        "st{.weak}{.global|.shared|.local|.param}{<vec>}<mem> [a], b*~",
        10,
        0,
        st,
    ),
    row(
        "st.volatile{.global|.shared|.local|.param}{<vec>}<mem> [a], b*~",
        10,
        0,
        st,
    ),
    row("bar{.cta}.sync a:u32{, b:u32}", 10, 0, |_| {
        op(Op::Bar {
            op: BarOp::Sync,
            aligned: true,
        })
    }),
    row("barrier{.cta}.sync{.aligned} a:u32{, b:u32}", 60, 30, |m| {
        op(Op::Bar {
            op: BarOp::Sync,
            aligned: m.has(".aligned"),
        })
    }),
];

fn order(m: &Mods) -> Order {
    if m.has(".volatile") {
        Order::Volatile
    } else if m.has(".mmio") {
        Order::Mmio
    } else if m.has(".relaxed") {
        Order::Relaxed(m.scope())
    } else if m.has(".acquire") {
        Order::Acquire(m.scope())
    } else if m.has(".release") {
        Order::Release(m.scope())
    } else {
        Order::Weak
    }
}

fn mem(m: &Mods) -> MemMods {
    MemMods {
        space: m.space(),
        ty: m.ty(0),
        vec: m.vec(),
        order: order(m),
        offset: 0,
    }
}

fn ld(m: &Mods) -> Result<Made, Reject> {
    if u32::from(m.vec()) * m.ty(0).size() > 16 {
        return bad_types("ld");
    }
    Ok(Made::Memory(Op::Ld(mem(m))))
}

fn st(m: &Mods) -> Result<Made, Reject> {
    if u32::from(m.vec()) * m.ty(0).size() > 16 {
        return bad_types("st");
    }
    Ok(Made::Memory(Op::St(mem(m))))
}
