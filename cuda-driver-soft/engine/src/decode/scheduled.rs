//! Lists the instructions that the warp's scheduler runs instead of a handler.

use crate::code::collective::Collective;
use ptx::ir::Op;

/// Returns true for instructions that the scheduler runs. If one has a guard, a branch skips it.
pub(super) fn is_scheduled(op: &Op) -> bool {
    matches!(
        op,
        Op::Brx { .. }
            | Op::Call { .. }
            | Op::Ret { .. }
            | Op::Exit
            | Op::Bar { .. }
            | Op::ClusterBarrier { .. }
            | Op::Alloca
            | Op::Stacksave
            | Op::Stackrestore
    ) || is_matrix(op)
        || is_texture(op)
        || is_tensor(op)
        || Collective::of(op).is_some()
}

/// Returns true for instructions on matrices that a warp holds together.
pub(super) fn is_matrix(op: &Op) -> bool {
    matches!(
        op,
        Op::Mma(_)
            | Op::Wgmma(_)
            | Op::Ldmatrix { .. }
            | Op::Stmatrix { .. }
            | Op::Movmatrix
            | Op::WmmaLd { .. }
            | Op::WmmaSt { .. }
    )
}

/// Returns true for instructions on tensors and tensor maps.
pub(super) fn is_tensor(op: &Op) -> bool {
    matches!(op, Op::TensorCopy(_) | Op::TensorMapReplace(_))
}

/// Returns true for instructions on textures and surfaces.
pub(super) fn is_texture(op: &Op) -> bool {
    matches!(op, Op::Tex(_) | Op::Surface(_) | Op::Query { .. } | Op::Istypep(_))
}
