//! Table rows of asynchronous copies, `mbarrier`, clusters, and other instructions of sm_80 and later.

use crate::forms::mods::Mods;
use crate::forms::row::{Lowering, Reject, Row, bad_types, op, row};
use crate::ir::{AtomOp, CopyGroup, CopyPart, MbarrierOp, MemMods, Op, Order, Space, Type};

#[rustfmt::skip] // one row per line
pub(super) const ROWS: &[Row] = &[
    // --- `cp.async`: copies from global to shared memory, and groups of them
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
    row("cp.async.commit_group", 70, 80, |_| op(Op::CopyGroup(CopyGroup::Commit))),
    row("cp.async.wait_group #n:u32", 70, 80, |_| op(Op::CopyGroup(CopyGroup::Wait))),
    row("cp.async.wait_all", 70, 80, |_| op(Op::CopyGroup(CopyGroup::WaitAll))),
    // Copies complete with their instruction, so the arrival happens immediately. Without `.noinc`, the pending count
    // is incremented before the arrival decrements it, so it does not change.
    row("cp.async.mbarrier.arrive{<sharedcta>}.b64 [a]", 70, 80, |m| barrier(m, MbarrierOp::CopiesArrive)),
    row("cp.async.mbarrier.arrive.noinc{<sharedcta>}.b64 [a]", 70, 80, |m| barrier(m, MbarrierOp::CopiesArriveNoInc)),
    // --- bulk copies, which also complete with their instruction, so that waiting for them has no effect
    row("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes{.L2::cache_hint} [d], [a], n:u32, [b]{, policy}", 80, 90, |m| bulk(m, None)),
    row("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster{.L2::cache_hint} [d], [a], n:u32, [b], c:u16{, policy}", 80, 90, |m| bulk(m, None)),
    row("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes{.L2::cache_hint} [d], [a], n:u32, [b]{, policy}", 86, 90, |m| bulk(m, None)),
    row("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [d], [a], n:u32, [b]", 80, 90, |m| bulk(m, None)),
    row("cp.async.bulk.global.shared::cta.bulk_group{.L2::cache_hint} [d], [a], n:u32{, policy}", 80, 90, |m| bulk(m, None)),
    row("cp.async.bulk.prefetch.L2.global{.L2::cache_hint} [a], n:u32{, policy}", 80, 90, |_| Ok(Lowering::Hint(Space::Global))),
    row("cp.async.bulk.commit_group", 80, 90, |_| op(Op::Nop)),
    row("cp.async.bulk.wait_group{.read} #n:u32", 80, 90, |_| Ok(Lowering::Hint(Space::Generic))),
    row("cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes<bool>.b32 [d], [a], n:u32, [b]", 80, 90, reduce),
    row("cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add(.u32|.s32|.u64) [d], [a], n:u32, [b]", 80, 90, reduce),
    row("cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes(.inc|.dec).u32 [d], [a], n:u32, [b]", 80, 90, reduce),
    row("cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes(.min|.max)<int32> [d], [a], n:u32, [b]", 80, 90, reduce),
    row("cp.reduce.async.bulk.global.shared::cta.bulk_group{.L2::cache_hint}<bool><bits3264> [d], [a], n:u32{, policy}", 80, 90, reduce),
    row("cp.reduce.async.bulk.global.shared::cta.bulk_group{.L2::cache_hint}.add(.u32|.s32|.u64|.f32|.f64) [d], [a], n:u32{, policy}", 80, 90, reduce),
    row("cp.reduce.async.bulk.global.shared::cta.bulk_group{.L2::cache_hint}.add.noftz.f32 [d], [a], n:u32{, policy}", 94, 90, reduce),
    row("cp.reduce.async.bulk.global.shared::cta.bulk_group{.L2::cache_hint}.add.noftz(.f16|.bf16) [d], [a], n:u32{, policy}", 80, 90, reduce),
    row("cp.reduce.async.bulk.global.shared::cta.bulk_group{.L2::cache_hint}(.inc|.dec).u32 [d], [a], n:u32{, policy}", 80, 90, reduce),
    row("cp.reduce.async.bulk.global.shared::cta.bulk_group{.L2::cache_hint}(.min|.max)(.u32|.s32|.u64|.s64|.f16|.bf16) [d], [a], n:u32{, policy}", 80, 90, reduce),
    // --- stores and reductions that signal a barrier
    row("st.async{.weak}{<shared>}.mbarrier::complete_tx::bytes(.b32|.b64|.u32|.u64|.s32|.s64|.f32|.f64) [a], b, [c]", 81, 90, store),
    row("st.async{.weak}{<shared>}.mbarrier::complete_tx::bytes.b128 [a], b, [c]", 92, 90, store),
    row("st.async{.weak}{<shared>}.mbarrier::complete_tx::bytes(.v2|.v4)(.b32|.b64|.u32|.u64|.s32|.s64|.f32|.f64) [a], b*, [c]", 81, 90, store),
    row("red.async.relaxed.cluster{.shared::cluster}.mbarrier::complete_tx::bytes.add(.u32|.s32|.u64|.s64) [a], b, [c]", 81, 90, reduce_async),
    row("red.async.relaxed.cluster{.shared::cluster}.mbarrier::complete_tx::bytes<bool>.b32 [a], b, [c]", 81, 90, reduce_async),
    row("red.async.relaxed.cluster{.shared::cluster}.mbarrier::complete_tx::bytes(.inc|.dec).u32 [a], b, [c]", 81, 90, reduce_async),
    row("red.async.relaxed.cluster{.shared::cluster}.mbarrier::complete_tx::bytes(.min|.max)<int32> [a], b, [c]", 81, 90, reduce_async),
    // --- barriers in memory
    row("mbarrier.init{<sharedcta>}.b64 [a], b:u32", 70, 80, |m| barrier(m, MbarrierOp::Init)),
    row("mbarrier.inval{<sharedcta>}.b64 [a]", 70, 80, |m| barrier(m, MbarrierOp::Inval)),
    row("mbarrier.expect_tx{.relaxed}{.cta|.cluster}{<shared>}.b64 [a], b:u32", 80, 90, |m| barrier(m, MbarrierOp::ExpectTx)),
    row("mbarrier.complete_tx{.relaxed}{.cta|.cluster}{<shared>}.b64 [a], b:u32", 80, 90, |m| barrier(m, MbarrierOp::CompleteTx)),
    row("mbarrier.arrive{.release|.relaxed}{.cta|.cluster}{<shared>}.b64 d?, [a]", 70, 80, |m| barrier(m, MbarrierOp::Arrive)),
    row("mbarrier.arrive{.release|.relaxed}{.cta|.cluster}{<shared>}.b64 d?, [a], b:u32", 78, 90, |m| barrier(m, MbarrierOp::Arrive)),
    row("mbarrier.arrive.noComplete{.release}{.cta}{<sharedcta>}.b64 d?, [a], b:u32", 70, 80, |m| barrier(m, MbarrierOp::Arrive)),
    row("mbarrier.arrive.expect_tx{.release|.relaxed}{.cta|.cluster}{<shared>}.b64 d?, [a], b:u32", 80, 90, |m| barrier(m, MbarrierOp::ArriveExpectTx)),
    row("mbarrier.arrive_drop{.release|.relaxed}{.cta|.cluster}{<shared>}.b64 d?, [a]", 70, 80, |m| barrier(m, MbarrierOp::ArriveDrop)),
    row("mbarrier.arrive_drop{.release|.relaxed}{.cta|.cluster}{<shared>}.b64 d?, [a], b:u32", 78, 90, |m| barrier(m, MbarrierOp::ArriveDrop)),
    row("mbarrier.arrive_drop.noComplete{.release}{.cta}{<sharedcta>}.b64 d?, [a], b:u32", 70, 80, |m| barrier(m, MbarrierOp::ArriveDrop)),
    row("mbarrier.arrive_drop.expect_tx{.release|.relaxed}{.cta|.cluster}{<shared>}.b64 d?, [a], b:u32", 80, 90, |m| barrier(m, MbarrierOp::ArriveDropExpectTx)),
    row("mbarrier.test_wait{.acquire|.relaxed}{.cta|.cluster}{<sharedcta>}.b64 p, [a], b", 70, 80, |m| barrier(m, MbarrierOp::Wait)),
    row("mbarrier.test_wait.parity{.acquire|.relaxed}{.cta|.cluster}{<sharedcta>}.b64 p, [a], b:u32", 71, 80, |m| barrier(m, MbarrierOp::WaitParity)),
    row("mbarrier.try_wait{.acquire|.relaxed}{.cta|.cluster}{<sharedcta>}.b64 p, [a], b{, c:u32}", 78, 90, |m| barrier(m, MbarrierOp::Wait)),
    row("mbarrier.try_wait.parity{.acquire|.relaxed}{.cta|.cluster}{<sharedcta>}.b64 p, [a], b:u32{, c:u32}", 78, 90, |m| barrier(m, MbarrierOp::WaitParity)),
    row("mbarrier.pending_count.b64 d:u32, a", 70, 80, |_| op(Op::Mbarrier { op: MbarrierOp::PendingCount, space: Space::Generic })),
    // --- clusters
    row("barrier.cluster.arrive{.release|.relaxed}{.aligned}", 78, 90, |m| cluster(m, true)),
    row("barrier.cluster.wait{.acquire}{.aligned}", 78, 90, |m| cluster(m, false)),
    row("mapa{.shared::cluster}<int3264> d, a, b:u32", 78, 90, |_| Ok(Lowering::Mapa { rank: false })),
    row("getctarank{.shared::cluster}<int3264> d:u32, a", 78, 90, |_| Ok(Lowering::Mapa { rank: true })),
    // --- dependent launches: a kernel starts when the previous one has ended, so these have no effect
    row("griddepcontrol(.launch_dependents|.wait)", 78, 90, |_| op(Op::Nop)),
    // --- the limit of registers per thread, which has no effect here
    row("setmaxnreg(.inc|.dec).sync.aligned.u32 #n:u32", 80, 90, |_| Ok(Lowering::Hint(Space::Generic))),
];

/// Lowers `cp.async`, which completes with its instruction in this driver.
fn copy(m: &Mods, part: CopyPart) -> Result<Lowering, Reject> {
    // `.cg` copies 16 bytes. For `.ca`, lowering takes the number from the operand.
    Ok(Lowering::Pointers(Op::CpAsync {
        bytes: if m.has(".cg") { 16 } else { 0 },
        part,
    }))
}

fn bulk(m: &Mods, reduce: Option<(AtomOp, Type)>) -> Result<Lowering, Reject> {
    // The first state space is the destination's.
    let to_global = m.find(|m| match m {
        ".global" => Some(true),
        _ => m.starts_with(".shared").then_some(false),
    });
    if m.has(".bulk_group") != (to_global == Some(true)) {
        return Err(Reject(
            "State space incorrect for instruction 'cp.async.bulk'".to_owned(),
        ));
    }
    let (to, from) = match (m.has(".bulk_group"), m.has(".global")) {
        (true, _) => (Space::Global, Space::Shared),
        (_, true) if m.has(".shared::cta") => (Space::Shared, Space::Global),
        (_, true) => (Space::SharedCluster, Space::Global),
        _ => (Space::SharedCluster, Space::Shared),
    };
    Ok(Lowering::Pointers(Op::Bulk {
        to,
        from,
        reduce,
        multicast: m.has(".multicast::cluster"),
    }))
}

fn reduce(m: &Mods) -> Result<Lowering, Reject> {
    bulk(m, Some((m.atom_op(), m.ty(0))))
}

fn mem(m: &Mods) -> MemMods {
    MemMods {
        space: m.space(),
        ty: m.ty(0),
        vec: m.vec(),
        order: Order::Weak,
        offset: 0,
    }
}

fn store(m: &Mods) -> Result<Lowering, Reject> {
    let mem = mem(m);
    if u32::from(mem.vec) * mem.ty.size() > 16 {
        return Err(Reject("Vector type too large, exceeds 128 bit limit".to_owned()));
    }
    Ok(Lowering::StoreThenSignal(Op::St(mem)))
}

fn reduce_async(m: &Mods) -> Result<Lowering, Reject> {
    Ok(Lowering::StoreThenSignal(Op::Red {
        op: m.atom_op(),
        mem: mem(m),
    }))
}

fn cluster(m: &Mods, arrive: bool) -> Result<Lowering, Reject> {
    op(Op::ClusterBarrier {
        arrive,
        relaxed: m.has(".relaxed"),
        aligned: m.has(".aligned"),
    })
}

fn barrier(m: &Mods, operation: MbarrierOp) -> Result<Lowering, Reject> {
    // An order requires a scope, and a scope requires an order.
    let ordered = [".acquire", ".release", ".relaxed"].iter().any(|o| m.has(o));
    if ordered != (m.has(".cta") || m.has(".cluster")) {
        return bad_types("mbarrier");
    }
    Ok(Lowering::Pointers(Op::Mbarrier {
        op: operation,
        space: m.space(),
    }))
}
