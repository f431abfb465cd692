//! Instructions on tensors (`cp.async.bulk.tensor` and similar) and on tensor maps.

#![forbid(unsafe_code)]

use super::registers::Slot;
use ptx::ir::Op;

/// An instruction on a tensor or a tensor map: the operation and its operands.
#[derive(Clone, Debug)]
pub(crate) struct TensorInst {
    /// The operation.
    pub(crate) op: Op,
    /// The sources, with the bytes per lane of each.
    pub(crate) srcs: Vec<(Slot, u8)>,
}
