//! Instructions on matrices that a warp holds together (`mma`, `wmma`, `wgmma`, `ldmatrix` and similar).

#![forbid(unsafe_code)]

use super::registers::Slot;
use ptx::ir::{Mma, Op, Type, Wgmma};

/// An instruction on matrices: the operation and its operands.
#[derive(Clone, Debug)]
pub(crate) struct MatrixInst {
    /// The operation.
    pub(crate) op: Op,
    /// The address, and true if it has 64 bits.
    pub(crate) address: Option<(Slot, bool)>,
    /// Distance in elements between two rows (or columns) of `wmma.load` and `wmma.store`.
    pub(crate) stride: Option<Slot>,
    /// Results: 64 bits for f64, 32 bits for all other types.
    pub(crate) dsts: Vec<Slot>,
    /// Values: A, B and C of `mma`; C of `wgmma`, then A if it is in registers; then the metadata of a sparse A.
    pub(crate) srcs: Vec<Slot>,
    /// Further operands of `wgmma`, with their bytes per lane: the descriptor of A (if A is in shared memory), the
    /// descriptor of B, and the predicate `scale-d`.
    pub(crate) more: Vec<(Slot, u8)>,
}

/// Returns the bytes per lane of a register that holds elements of this type.
pub(crate) fn width(ty: Type) -> u8 {
    if ty == Type::F64 { 8 } else { 4 }
}

impl MatrixInst {
    /// Returns the instruction's name, for reports.
    pub(crate) fn name(&self) -> &'static str {
        match self.op {
            Op::Mma(Mma { wmma: true, .. }) => "wmma.mma",
            Op::Mma(_) => "mma",
            Op::Wgmma(_) => "wgmma",
            Op::Ldmatrix { .. } => "ldmatrix",
            Op::Stmatrix { .. } => "stmatrix",
            Op::Movmatrix => "movmatrix",
            Op::WmmaLd { .. } => "wmma.load",
            _ => "wmma.store",
        }
    }

    /// Returns the rows that the instruction reads, with their bytes per lane.
    pub(crate) fn reads(&self) -> impl Iterator<Item = (Slot, u8)> {
        let value = match self.op {
            Op::Mma(Mma { a, .. }) => width(a),
            Op::WmmaSt { ty, .. } => width(ty),
            _ => 4,
        };
        let address = self.address.map(|(slot, wide)| (slot, if wide { 8 } else { 4 }));
        let stride = self.stride.map(|slot| (slot, 4));
        let values = self.srcs.iter().map(move |slot| (*slot, value));
        values.chain(address).chain(stride).chain(self.more.iter().copied())
    }

    /// Returns the rows that the instruction writes, with their bytes per lane.
    pub(crate) fn writes(&self) -> impl Iterator<Item = (Slot, u8)> {
        let value = match self.op {
            Op::Mma(Mma { d, .. }) => width(d),
            Op::WmmaLd { ty, .. } => width(ty),
            _ => 4,
        };
        self.dsts.iter().map(move |slot| (*slot, value))
    }

    /// Returns the number of steps that the instruction counts as: about that many plain instructions take as long.
    pub(crate) fn steps(&self) -> u64 {
        match self.op {
            Op::Mma(Mma { shape, .. }) => shape.map(u64::from).iter().product::<u64>() / 8,
            // Each warp computes a quarter of the 64 rows.
            Op::Wgmma(Wgmma {
                mma: Mma { shape, .. }, ..
            }) => shape.map(u64::from).iter().product::<u64>() / 32,
            _ => 8 * self.dsts.len().max(self.srcs.len()) as u64,
        }
    }
}
