//! Asynchronous copies, `mbarrier`, clusters, and other instructions of sm_80 and later that need no tensors.

use super::mods::{bad_types, op};
use super::{Made, Mods, Reject, Row, row};
use crate::ir::*;

#[rustfmt::skip] // a row is a line
pub(super) const ROWS: &[Row] = &[
    // --- copies from global to shared memory
    row("cp.async.ca<sharedcta>.global{<pf>} [d], [a], #n:u32", 70, 80, |m| copy(m, CopyPart::All)),
    row("cp.async.ca<sharedcta>.global{<pf>} [d], [a], #n:u32, b:u32", 70, 80, |m| copy(m, CopyPart::Bytes)),
    row("cp.async.ca<sharedcta>.global{<pf>} [d], [a], #n:u32, !c", 75, 80, |m| copy(m, CopyPart::Unless)),
    row("cp.async.ca<sharedcta>.global.L2::cache_hint{<pf>} [d], [a], #n:u32, policy", 74, 80, |m| copy(m, CopyPart::All)),
    row("cp.async.ca<sharedcta>.global.L2::cache_hint{<pf>} [d], [a], #n:u32, b:u32, policy", 74, 80, |m| copy(m, CopyPart::Bytes)),
    row("cp.async.ca<sharedcta>.global.L2::cache_hint{<pf>} [d], [a], #n:u32, !c, policy", 75, 80, |m| copy(m, CopyPart::Unless)),
    row("cp.async.cg<sharedcta>.global{<pf>} [d], [a], #n:u32", 70, 80, |m| copy(m, CopyPart::All)),
    row("cp.async.cg<sharedcta>.global{<pf>} [d], [a], #n:u32, b:u32", 70, 80, |m| copy(m, CopyPart::Bytes)),
    row("cp.async.cg<sharedcta>.global{<pf>} [d], [a], #n:u32, !c", 75, 80, |m| copy(m, CopyPart::Unless)),
    row("cp.async.cg<sharedcta>.global.L2::cache_hint{<pf>} [d], [a], #n:u32, policy", 74, 80, |m| copy(m, CopyPart::All)),
    row("cp.async.cg<sharedcta>.global.L2::cache_hint{<pf>} [d], [a], #n:u32, b:u32, policy", 74, 80, |m| copy(m, CopyPart::Bytes)),
    row("cp.async.cg<sharedcta>.global.L2::cache_hint{<pf>} [d], [a], #n:u32, !c, policy", 75, 80, |m| copy(m, CopyPart::Unless)),
    row("cp.async.commit_group", 70, 80, |_| op(Op::Nop)),
    row("cp.async.wait_group #n:u32", 70, 80, |_| Ok(Made::Hint(Space::Generic))),
    row("cp.async.wait_all", 70, 80, |_| op(Op::Nop)),
    // A copy is done when the instruction is: it adds one arrival and makes it, or only makes it.
    row("cp.async.mbarrier.arrive{<sharedcta>}.b64 [a]", 70, 80, |m| Ok(Made::Hint(m.space()))),
    row("cp.async.mbarrier.arrive.noinc{<sharedcta>}.b64 [a]", 70, 80, |m| barrier(m, MbarrierOp::Arrive)),
    // --- barriers in memory
    row("mbarrier.init{<sharedcta>}.b64 [a], b:u32", 70, 80, |m| barrier(m, MbarrierOp::Init)),
    row("mbarrier.inval{<sharedcta>}.b64 [a]", 70, 80, |m| barrier(m, MbarrierOp::Inval)),
    row("mbarrier.expect_tx{.relaxed}{.cta|.cluster}{<shared>}.b64 [a], b:u32", 80, 90, |m| barrier(m, MbarrierOp::ExpectTx)),
    row("mbarrier.complete_tx{.relaxed}{.cta|.cluster}{<shared>}.b64 [a], b:u32", 80, 90, |m| barrier(m, MbarrierOp::CompleteTx)),
    row("mbarrier.arrive{.release|.relaxed}{.cta|.cluster}{<shared>}.b64 d?, [a]{, b:u32}", 70, 80, |m| barrier(m, MbarrierOp::Arrive)),
    row("mbarrier.arrive.noComplete{.release}{.cta}{<sharedcta>}.b64 d?, [a], b:u32", 70, 80, |m| barrier(m, MbarrierOp::Arrive)),
    row("mbarrier.arrive.expect_tx{.release|.relaxed}{.cta|.cluster}{<shared>}.b64 d?, [a], b:u32", 80, 90, |m| barrier(m, MbarrierOp::ArriveExpectTx)),
    row("mbarrier.arrive_drop{.release|.relaxed}{.cta|.cluster}{<shared>}.b64 d?, [a]{, b:u32}", 70, 80, |m| barrier(m, MbarrierOp::ArriveDrop)),
    row("mbarrier.arrive_drop.noComplete{.release}{.cta}{<sharedcta>}.b64 d?, [a], b:u32", 70, 80, |m| barrier(m, MbarrierOp::ArriveDrop)),
    row("mbarrier.arrive_drop.expect_tx{.release|.relaxed}{.cta|.cluster}{<shared>}.b64 d?, [a], b:u32", 80, 90, |m| barrier(m, MbarrierOp::ArriveDropExpectTx)),
    row("mbarrier.test_wait{.acquire|.relaxed}{.cta|.cluster}{<sharedcta>}.b64 p, [a], b", 70, 80, |m| barrier(m, MbarrierOp::Wait)),
    row("mbarrier.test_wait.parity{.acquire|.relaxed}{.cta|.cluster}{<sharedcta>}.b64 p, [a], b:u32", 71, 80, |m| barrier(m, MbarrierOp::WaitParity)),
    row("mbarrier.try_wait{.acquire|.relaxed}{.cta|.cluster}{<sharedcta>}.b64 p, [a], b{, c:u32}", 78, 90, |m| barrier(m, MbarrierOp::Wait)),
    row("mbarrier.try_wait.parity{.acquire|.relaxed}{.cta|.cluster}{<sharedcta>}.b64 p, [a], b:u32{, c:u32}", 78, 90, |m| barrier(m, MbarrierOp::WaitParity)),
    row("mbarrier.pending_count.b64 d:u32, a", 70, 80, |_| op(Op::Mbarrier { op: MbarrierOp::PendingCount, space: Space::Generic })),
    // --- clusters: each block is one
    row("barrier.cluster.arrive{.release|.relaxed}{.aligned}", 78, 90, |_| op(Op::Fence { scope: Scope::Cluster })),
    row("barrier.cluster.wait{.acquire}{.aligned}", 78, 90, |m| op(Op::ClusterWait { aligned: m.has(".aligned") })),
    row("mapa{.shared::cluster}<int3264> d, a, b:u32", 78, 90, |_| Ok(Made::Mapa { rank: false })),
    row("getctarank{.shared::cluster}<int3264> d:u32, a", 78, 90, |_| Ok(Made::Mapa { rank: true })),
    // --- kernels that follow one another begin when the one before has ended
    row("griddepcontrol(.launch_dependents|.wait)", 78, 90, |_| op(Op::Nop)),
    row("setmaxnreg(.inc|.dec).sync.aligned.u32 #n:u32", 80, 90, |_| Ok(Made::Hint(Space::Generic))),
];

/// Asynchronous for the program, done at once here.
fn copy(m: &Mods, part: CopyPart) -> Result<Made, Reject> {
    // The number of bytes is an operand.
    Ok(Made::Pointers(Op::CpAsync {
        bytes: if m.has(".cg") { 16 } else { 0 },
        part,
    }))
}

fn barrier(m: &Mods, what: MbarrierOp) -> Result<Made, Reject> {
    // An order is written with its scope, or neither.
    let ordered = [".acquire", ".release", ".relaxed"]
        .iter()
        .any(|o| m.has(o));
    if ordered != (m.has(".cta") || m.has(".cluster")) {
        return bad_types("mbarrier");
    }
    Ok(Made::Pointers(Op::Mbarrier {
        op: what,
        space: m.space(),
    }))
}
