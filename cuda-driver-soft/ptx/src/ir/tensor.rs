//! Modifiers of instructions on tensors: `cp.async.bulk.tensor`, `cp.reduce.async.bulk.tensor`, `tensormap.replace`.

use super::types::{AtomOp, Space};
use std::fmt::{Display, Formatter, Result};

/// The way in which a tensor copy addresses the tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TensorMode {
    /// `.tile`: a box of the tensor.
    Tile,
    /// `.im2col`: columns of pixels, with an offset for each dimension between the first and the last.
    Im2col,
    /// `.im2col_no_offs`: columns of pixels, without offsets.
    Im2colNoOffsets,
}

/// The direction of a tensor copy, with its options.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TensorDirection {
    /// From global to shared memory: of this block, or of any block of the cluster if `to` is [`Space::SharedCluster`].
    Load { to: Space, multicast: bool },
    /// From shared to global memory; with `reduce`, a `cp.reduce.async.bulk.tensor`.
    Store { reduce: Option<AtomOp> },
}

/// A tensor copy. Sources: the address in shared memory, the address of the tensor map, the barrier of a load, the
/// coordinates, the offsets of [`TensorMode::Im2col`], the mask of blocks of a multicast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorCopy {
    /// Number of dimensions, 1 to 5.
    pub dims: u8,
    /// The way in which the tensor is addressed.
    pub mode: TensorMode,
    /// The direction.
    pub direction: TensorDirection,
}

impl TensorCopy {
    /// Returns the number of sources that are offsets.
    pub const fn offsets(self) -> usize {
        match self.mode {
            TensorMode::Im2col => (self.dims as usize).saturating_sub(2),
            _ => 0,
        }
    }

    /// Returns true for a load into several blocks of the cluster.
    pub const fn is_multicast(self) -> bool {
        matches!(self.direction, TensorDirection::Load { multicast: true, .. })
    }
}

/// A field of a tensor map that `tensormap.replace` changes.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TensorMapField {
    GlobalAddress,
    /// The number of dimensions, less 1.
    Rank,
    BoxDim,
    GlobalDim,
    GlobalStride,
    ElementStride,
    ElemType,
    InterleaveLayout,
    SwizzleMode,
    FillMode,
}

/// `tensormap.replace`. Sources: the address of the tensor map, the new value.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorMapReplace {
    pub field: TensorMapField,
    /// The dimension, for a field that each dimension has; otherwise 0.
    pub dimension: u8,
    pub space: Space,
}

impl Display for TensorCopy {
    /// Prints the opcode.
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let (name, spaces) = match self.direction {
            TensorDirection::Load { to: Space::Shared, .. } => ("cp.async", ".shared::cta.global"),
            TensorDirection::Load { .. } => ("cp.async", ".shared::cluster.global"),
            TensorDirection::Store { reduce: None } => ("cp.async", ".global.shared::cta"),
            TensorDirection::Store { .. } => ("cp.reduce.async", ".global.shared::cta"),
        };
        write!(f, "{name}.bulk.tensor.{}d{spaces}", self.dims)?;
        if let TensorDirection::Store { reduce: Some(op) } = self.direction {
            write!(f, ".{}", format!("{op:?}").to_lowercase())?;
        }
        f.write_str(match self.mode {
            TensorMode::Tile => ".tile",
            TensorMode::Im2col => ".im2col",
            TensorMode::Im2colNoOffsets => ".im2col_no_offs",
        })?;
        f.write_str(match self.direction {
            TensorDirection::Load { multicast: true, .. } => ".mbarrier::complete_tx::bytes.multicast::cluster",
            TensorDirection::Load { .. } => ".mbarrier::complete_tx::bytes",
            TensorDirection::Store { .. } => ".bulk_group",
        })
    }
}

impl Display for TensorMapReplace {
    /// Prints the opcode.
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let (field, ty) = match self.field {
            TensorMapField::GlobalAddress => ("global_address", "b64"),
            TensorMapField::Rank => ("rank", "b32"),
            TensorMapField::BoxDim => ("box_dim", "b32"),
            TensorMapField::GlobalDim => ("global_dim", "b32"),
            TensorMapField::GlobalStride => ("global_stride", "b64"),
            TensorMapField::ElementStride => ("element_stride", "b32"),
            TensorMapField::ElemType => ("elemtype", "b32"),
            TensorMapField::InterleaveLayout => ("interleave_layout", "b32"),
            TensorMapField::SwizzleMode => ("swizzle_mode", "b32"),
            TensorMapField::FillMode => ("fill_mode", "b32"),
        };
        let space = match self.space {
            Space::Shared => ".shared::cta",
            Space::Global => ".global",
            _ => "",
        };
        write!(f, "tensormap.replace.tile.{field}{space}.b1024.{ty}")
    }
}
