//! The layout of matrix fragments: the position of each element in the lanes and registers of a warp.
//!
//! A fragment is the part of a matrix that one lane holds: registers with one or more elements each. The manual
//! defines the layout of the fragments of `mma`. It leaves the layout for `wmma` open; here each lane holds consecutive
//! elements.

#![forbid(unsafe_code)]

use crate::code::matrix::width;
use crate::code::registers::{RegFile, Slot};
use crate::lanes::{self, Mask};
use ptx::ir::{MatrixPart, Type};

/// The dimensions m, n and k of a matrix product.
pub(crate) type ShapeOf = [u16; 3];

/// Returns the number of rows and columns of A, B or C in a product of this shape.
pub(crate) fn extent([m, n, k]: ShapeOf, part: MatrixPart) -> (usize, usize) {
    let (rows, columns) = match part {
        MatrixPart::A => (m, k),
        MatrixPart::B => (k, n),
        MatrixPart::C => (m, n),
    };
    (usize::from(rows), usize::from(columns))
}

/// Returns the number of elements in a register.
pub(super) fn per_register(ty: Type) -> usize {
    match ty {
        Type::F16 | Type::BF16 => 2,
        Type::U8 | Type::S8 | Type::E4M3 | Type::E5M2 => 4,
        Type::U4 | Type::S4 => 8,
        Type::B1 => 32,
        _ => 1,
    }
}

/// Returns true for `mma` of shape `.m8n8k4` of a type other than f64, which [`quads`](super::quads) runs.
pub(super) fn is_of_quads(shape: ShapeOf, ty: Type) -> bool {
    shape == [8, 8, 4] && ty != Type::F64
}

/// Returns the number of registers of a fragment.
pub(crate) fn registers(shape: ShapeOf, part: MatrixPart, ty: Type, wmma: bool) -> usize {
    let (rows, columns) = extent(shape, part);
    // `mma.m8n8k4` computes four products at once, each with eight lanes.
    if is_of_quads(shape, ty) {
        return match (part, ty) {
            (MatrixPart::C, Type::F32) => 8,
            (MatrixPart::C, _) => 4,
            _ => 2,
        };
    }
    // Together, these fragments hold each element once, twice or four times, depending on the shape.
    if wmma && ty == Type::F16 && part != MatrixPart::C {
        return 8;
    }
    rows * columns / 32 / per_register(ty)
}

/// Returns the row and column of an element: the `e`-th element in register `r` of a lane.
#[inline]
pub(super) fn position(
    shape: ShapeOf,
    part: MatrixPart,
    ty: Type,
    wmma: bool,
    lane: usize,
    (r, e): (usize, usize),
) -> (usize, usize) {
    let (rows, columns) = extent(shape, part);
    let per = per_register(ty);
    if wmma {
        let number = lane * registers(shape, part, ty, wmma) * per + r * per + e;
        let number = number % (rows * columns);
        return (number / columns, number % columns);
    }
    // Each group of four lanes holds a row of A and C, or two rows eight apart, or a column of B.
    let (group, thread) = (lane / 4, lane % 4);
    match part {
        MatrixPart::A if rows == 8 => (group, thread * per + e + r * 4 * per),
        MatrixPart::A => (group + 8 * (r % 2), thread * per + e + r / 2 * 4 * per),
        MatrixPart::B => (thread * per + e + r * 4 * per, group),
        // Two adjacent elements come first (in one register or in two), then those eight rows below, then those in the
        // next eight columns.
        MatrixPart::C if per == 2 => (group + 8 * (r % 2), thread * 2 + e + r / 2 * 8),
        MatrixPart::C => (group + 8 * (r / 2 % 2), thread * 2 + r % 2 + r / 4 * 8),
    }
}

/// Returns the size of an element in bits.
pub(crate) fn element_bits(ty: Type) -> u32 {
    match ty {
        Type::F64 => 64,
        ty => 32 / per_register(ty) as u32,
    }
}

/// Collects a whole matrix from the fragments of all lanes, by rows, as bits.
pub(super) fn gather(
    file: &mut RegFile,
    slots: &[Slot],
    shape: ShapeOf,
    part: MatrixPart,
    ty: Type,
    wmma: bool,
) -> Vec<u64> {
    let (rows, columns) = extent(shape, part);
    let bits = element_bits(ty);
    let mut all = vec![0; rows * columns];
    for lane in 0..lanes::LANES {
        for (r, slot) in slots.iter().enumerate() {
            let value = file.get(*slot, width(ty), lane);
            for e in 0..per_register(ty) {
                let (row, column) = position(shape, part, ty, wmma, lane, (r, e));
                let element = value >> (e as u32 * bits) & (u64::MAX >> (64 - bits));
                if let Some(place) = all.get_mut(row * columns + column) {
                    *place = element;
                }
            }
        }
    }
    all
}

/// Writes the fragments of a matrix to the lanes of the mask.
pub(super) fn scatter(
    file: &mut RegFile,
    slots: &[Slot],
    (shape, part, ty, wmma): (ShapeOf, MatrixPart, Type, bool),
    mask: Mask,
    all: &[u64],
) {
    let (_, columns) = extent(shape, part);
    let bits = element_bits(ty);
    for (r, slot) in slots.iter().enumerate() {
        file.set(*slot, width(ty), mask, |lane| {
            (0..per_register(ty)).fold(0, |value, e| {
                let (row, column) = position(shape, part, ty, wmma, lane, (r, e));
                let element = all.get(row * columns + column).copied().unwrap_or(0);
                value | element << (e as u32 * bits)
            })
        });
    }
}
