//! Table rows of tensor copies and of `tensormap`. Forms for sm_100 and later are listed in `unimplemented`.

use crate::forms::mods::Mods;
use crate::forms::row::{Lowering, Reject, Row, row};
use crate::ir::{AtomOp, Op, Space, TensorCopy, TensorDirection, TensorMapField, TensorMapReplace, TensorMode};

#[rustfmt::skip] // one row per line
pub(super) const ROWS: &[Row] = &[
    // --- from global to shared memory; a copy is complete when its instruction has run
    row("cp.async.bulk.tensor<tdim>.shared::cluster.global{.tile}.mbarrier::complete_tx::bytes{.L2::cache_hint} [d], [t], [b]{, policy}", 80, 90, load),
    row("cp.async.bulk.tensor<tdim>.shared::cluster.global{.tile}.mbarrier::complete_tx::bytes.multicast::cluster{.L2::cache_hint} [d], [t], [b], c:u16{, policy}", 80, 90, load),
    row("cp.async.bulk.tensor<tdim>.shared::cta.global{.tile}.mbarrier::complete_tx::bytes{.L2::cache_hint} [d], [t], [b]{, policy}", 86, 90, load),
    row("cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes{.L2::cache_hint} [d], [t], [b], a:u16^1{, policy}", 80, 90, load),
    row("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes{.L2::cache_hint} [d], [t], [b], a:u16^2{, policy}", 80, 90, load),
    row("cp.async.bulk.tensor.5d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes{.L2::cache_hint} [d], [t], [b], a:u16^3{, policy}", 80, 90, load),
    row("cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes.multicast::cluster{.L2::cache_hint} [d], [t], [b], a:u16^1, c:u16{, policy}", 80, 90, load),
    row("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes.multicast::cluster{.L2::cache_hint} [d], [t], [b], a:u16^2, c:u16{, policy}", 80, 90, load),
    row("cp.async.bulk.tensor.5d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes.multicast::cluster{.L2::cache_hint} [d], [t], [b], a:u16^3, c:u16{, policy}", 80, 90, load),
    row("cp.async.bulk.tensor.3d.shared::cta.global.im2col.mbarrier::complete_tx::bytes{.L2::cache_hint} [d], [t], [b], a:u16^1{, policy}", 86, 90, load),
    row("cp.async.bulk.tensor.4d.shared::cta.global.im2col.mbarrier::complete_tx::bytes{.L2::cache_hint} [d], [t], [b], a:u16^2{, policy}", 86, 90, load),
    row("cp.async.bulk.tensor.5d.shared::cta.global.im2col.mbarrier::complete_tx::bytes{.L2::cache_hint} [d], [t], [b], a:u16^3{, policy}", 86, 90, load),
    // --- from shared to global memory
    row("cp.async.bulk.tensor<tdim>.global.shared::cta{.tile}.bulk_group{.L2::cache_hint} [t], [a]{, policy}", 80, 90, |m| store(m, None)),
    row("cp.async.bulk.tensor(.3d|.4d|.5d).global.shared::cta.im2col_no_offs.bulk_group{.L2::cache_hint} [t], [a]{, policy}", 80, 90, |m| store(m, None)),
    row("cp.reduce.async.bulk.tensor<tdim>.global.shared::cta(.add|.min|.max|.inc|.dec|.and|.or|.xor){.tile}.bulk_group{.L2::cache_hint} [t], [a]{, policy}", 80, 90, |m| store(m, Some(m.atom_op()))),
    row("cp.reduce.async.bulk.tensor(.3d|.4d|.5d).global.shared::cta(.add|.min|.max|.inc|.dec|.and|.or|.xor).im2col_no_offs.bulk_group{.L2::cache_hint} [t], [a]{, policy}", 80, 90, |m| store(m, Some(m.atom_op()))),
    // --- hints
    row("cp.async.bulk.prefetch.tensor<tdim>.L2.global{.tile}{.L2::cache_hint} [t]{, policy}", 80, 90, prefetch),
    row("cp.async.bulk.prefetch.tensor.3d.L2.global.im2col{.L2::cache_hint} [t], a:u16^1{, policy}", 80, 90, prefetch),
    row("cp.async.bulk.prefetch.tensor.4d.L2.global.im2col{.L2::cache_hint} [t], a:u16^2{, policy}", 80, 90, prefetch),
    row("cp.async.bulk.prefetch.tensor.5d.L2.global.im2col{.L2::cache_hint} [t], a:u16^3{, policy}", 80, 90, prefetch),
    // --- tensor maps
    row("tensormap.replace.tile.global_address{.global|.shared::cta}.b1024.b64 [a], b", 83, 90, replace),
    row("tensormap.replace.tile.rank{.global|.shared::cta}.b1024.b32 [a], b", 83, 90, replace),
    row("tensormap.replace.tile(.box_dim|.global_dim|.element_stride){.global|.shared::cta}.b1024.b32 [a], #i:u32, b", 83, 90, replace),
    row("tensormap.replace.tile.global_stride{.global|.shared::cta}.b1024.b64 [a], #i:u32, b", 83, 90, replace),
    row("tensormap.replace.tile(.elemtype|.interleave_layout|.swizzle_mode|.fill_mode){.global|.shared::cta}.b1024.b32 [a], #b", 83, 90, replace),
    row("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release<scope>.sync.aligned [d], [a], #n:u32", 83, 90, |_| Ok(Lowering::Pointers(Op::Bulk { to: Space::Global, from: Space::Shared, reduce: None, multicast: false }))),
];

fn copy(m: &Mods, direction: TensorDirection) -> TensorCopy {
    let dims = m.find(|m| match m {
        ".1d" => Some(1),
        ".2d" => Some(2),
        ".3d" => Some(3),
        ".4d" => Some(4),
        ".5d" => Some(5),
        _ => None,
    });
    let mode = match () {
        () if m.has(".im2col") => TensorMode::Im2col,
        () if m.has(".im2col_no_offs") => TensorMode::Im2colNoOffsets,
        () => TensorMode::Tile,
    };
    TensorCopy {
        dims: dims.unwrap_or(1),
        mode,
        direction,
    }
}

fn load(m: &Mods) -> Result<Lowering, Reject> {
    let to = match m.has(".shared::cluster") {
        true => Space::SharedCluster,
        false => Space::Shared,
    };
    let multicast = m.has(".multicast::cluster");
    Ok(Lowering::Tensor(copy(m, TensorDirection::Load { to, multicast })))
}

fn store(m: &Mods, reduce: Option<AtomOp>) -> Result<Lowering, Reject> {
    Ok(Lowering::Tensor(copy(m, TensorDirection::Store { reduce })))
}

/// Lowers a prefetch, which is checked like a copy. The direction is `Store` because a prefetch has no barrier.
fn prefetch(m: &Mods) -> Result<Lowering, Reject> {
    Ok(Lowering::TensorHint(copy(m, TensorDirection::Store { reduce: None })))
}

fn replace(m: &Mods) -> Result<Lowering, Reject> {
    use TensorMapField::*;
    let field = m.find(|m| match m {
        ".global_address" => Some(GlobalAddress),
        ".rank" => Some(Rank),
        ".box_dim" => Some(BoxDim),
        ".global_dim" => Some(GlobalDim),
        ".global_stride" => Some(GlobalStride),
        ".element_stride" => Some(ElementStride),
        ".elemtype" => Some(ElemType),
        ".interleave_layout" => Some(InterleaveLayout),
        ".swizzle_mode" => Some(SwizzleMode),
        ".fill_mode" => Some(FillMode),
        _ => None,
    });
    Ok(Lowering::Pointers(Op::TensorMapReplace(TensorMapReplace {
        field: field.unwrap_or(GlobalAddress),
        dimension: 0,
        space: m.space(),
    })))
}
