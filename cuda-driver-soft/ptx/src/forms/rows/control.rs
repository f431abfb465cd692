//! Table rows of branches, calls, the thread's stack, barriers, and operations across the lanes of a warp.

use crate::forms::mods::Mods;
use crate::forms::row::{Lowering, Reject, Row, op, row};
use crate::ir::{BarOp, BoolOp, Op, Space};

#[rustfmt::skip] // one row per line
pub(super) const ROWS: &[Row] = &[
    row("bra{.uni} #a", 10, 0, |m| Ok(Lowering::Bra { uni: m.has(".uni") })),
    row("brx.idx{.uni} a:u32, #b", 60, 30, |m| Ok(Lowering::Brx { uni: m.has(".uni") })),
    row("call{.uni} #a", 10, 0, |m| Ok(Lowering::Call { uni: m.has(".uni") })),
    row("ret{.uni}", 10, 0, |m| op(Op::Ret { uni: m.has(".uni") })),
    row("exit", 10, 0, |_| op(Op::Exit)),
    row("trap", 10, 0, |_| op(Op::Trap)),
    row("brkpt", 10, 0, |_| op(Op::Nop)),
    row("pmevent{.mask} #a:u32", 14, 0, |_| Ok(Lowering::Hint(Space::Generic))),
    row("nanosleep.u32 a", 62, 70, |_| op(Op::Nanosleep)),
    // --- the thread's stack
    row("alloca<size> d, a{, #i:u32}", 73, 52, |_| op(Op::Alloca)),
    row("stacksave<size> d", 73, 52, |_| op(Op::Stacksave)),
    row("stackrestore<size> a", 73, 52, |_| op(Op::Stackrestore)),
    // --- barriers of a block
    row("bar{.cta}.sync a:u32{, b:u32}", 10, 0, |_| bar(BarOp::Sync)),
    row("bar{.cta}.arrive a:u32, b:u32", 20, 20, |_| bar(BarOp::Arrive)),
    row("bar{.cta}.red.popc.u32 d, a:u32, !c", 20, 20, |_| bar(BarOp::Popc)),
    row("bar{.cta}.red.popc.u32 d, a:u32, b:u32, !c", 20, 20, |_| bar(BarOp::Popc)),
    row("bar{.cta}.red(.and|.or).pred p, a:u32, !c", 20, 20, |m| bar(red(m))),
    row("bar{.cta}.red(.and|.or).pred p, a:u32, b:u32, !c", 20, 20, |m| bar(red(m))),
    row("barrier{.cta}.sync{.aligned} a:u32{, b:u32}", 60, 30, |m| barrier(m, BarOp::Sync)),
    row("barrier{.cta}.arrive{.aligned} a:u32, b:u32", 60, 30, |m| barrier(m, BarOp::Arrive)),
    row("barrier{.cta}.red.popc{.aligned}.u32 d, a:u32, !c", 60, 30, |m| barrier(m, BarOp::Popc)),
    row("barrier{.cta}.red.popc{.aligned}.u32 d, a:u32, b:u32, !c", 60, 30, |m| barrier(m, BarOp::Popc)),
    row("barrier{.cta}.red(.and|.or){.aligned}.pred p, a:u32, !c", 60, 30, |m| barrier(m, red(m))),
    row("barrier{.cta}.red(.and|.or){.aligned}.pred p, a:u32, b:u32, !c", 60, 30, |m| barrier(m, red(m))),
    // --- across the lanes of a warp
    row("bar.warp.sync a:u32", 60, 30, |_| op(Op::BarWarpSync)),
    row("shfl(.up|.down|.bfly|.idx).b32 d|p, a, b:b32, c:b32", 30, 30, |m| shfl(m, false)),
    row("shfl.sync(.up|.down|.bfly|.idx).b32 d|p, a, b:b32, c:b32, f:u32", 60, 30, |m| shfl(m, true)),
    row("vote(.all|.any|.uni).pred p, !c", 12, 0, |m| vote(m, false)),
    row("vote.ballot.b32 d, !c", 20, 20, |m| vote(m, false)),
    row("vote.sync(.all|.any|.uni).pred p, !c, a:u32", 60, 30, |m| vote(m, true)),
    row("vote.sync.ballot.b32 d, !c, a:u32", 60, 30, |m| vote(m, true)),
    row("match.any.sync.b32 d:u32, a, b:u32", 60, 70, |m| op(Op::Match { all: false, ty: m.ty(0) })),
    row("match.any.sync.b64 d:u32, a, b:u32", 60, 70, |m| op(Op::Match { all: false, ty: m.ty(0) })),
    row("match.all.sync.b32 d|p:u32?, a, b:u32", 60, 70, |m| op(Op::Match { all: true, ty: m.ty(0) })),
    row("match.all.sync.b64 d|p:u32?, a, b:u32", 60, 70, |m| op(Op::Match { all: true, ty: m.ty(0) })),
    row("redux.sync(.add|.min|.max)<int32> d, a, b:u32", 70, 80, redux),
    row("redux.sync(.and|.or|.xor).b32 d:u32, a:u32, b:u32", 70, 80, redux),
    row("activemask.b32 d", 62, 30, |_| op(Op::Activemask)),
    row("elect.sync d|p:b32?&, a:u32", 80, 90, |_| op(Op::Elect)),
];

/// Lowers `bar`, which is the same as `barrier` with `.aligned`.
fn bar(bar_op: BarOp) -> Result<Lowering, Reject> {
    op(Op::Bar {
        op: bar_op,
        aligned: true,
    })
}

fn barrier(m: &Mods, bar_op: BarOp) -> Result<Lowering, Reject> {
    op(Op::Bar {
        op: bar_op,
        aligned: m.has(".aligned"),
    })
}

fn red(m: &Mods) -> BarOp {
    BarOp::Red(m.bool_op().unwrap_or(BoolOp::And))
}

fn shfl(m: &Mods, sync: bool) -> Result<Lowering, Reject> {
    op(Op::Shfl {
        mode: m.shfl_mode(),
        sync,
    })
}

fn vote(m: &Mods, sync: bool) -> Result<Lowering, Reject> {
    op(Op::Vote {
        mode: m.vote_mode(),
        sync,
    })
}

fn redux(m: &Mods) -> Result<Lowering, Reject> {
    op(Op::Redux {
        op: m.atom_op(),
        ty: m.ty(0),
    })
}
