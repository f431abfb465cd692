//! The metadata of a sparse matrix A: the columns of its stored elements.
//!
//! The columns of A form groups, and in each row half of the columns of a group are zero. Four bits of metadata select
//! the other half: two indices of two bits, each of a quarter of the group. Every four lanes hold two rows of A; the
//! sparsity selector chooses which of these lanes supply the metadata of both rows.

#![forbid(unsafe_code)]

use crate::code::registers::{RegFile, Slot};
use ptx::ir::{Mma, Type};

/// Rows of A.
const ROWS: usize = 16;

/// Returns the columns of a group that four bits of metadata select.
fn selected(ty: Type, bits: u32) -> Vec<usize> {
    let quarters = [(bits & 3) as usize, (bits >> 2 & 3) as usize];
    match ty {
        // A group is two columns, so an element is two quarters of it. The manual allows only indices of whole
        // elements.
        Type::TF32 => vec![quarters[0] / 2],
        // A group is eight columns, and a quarter of it two.
        Type::S4 | Type::U4 => quarters.iter().flat_map(|q| [2 * q, 2 * q + 1]).collect(),
        _ => quarters.to_vec(),
    }
}

/// Returns the number of columns of a group.
fn group(ty: Type) -> usize {
    match ty {
        Type::TF32 => 2,
        Type::S4 | Type::U4 => 8,
        _ => 4,
    }
}

/// Returns the lane (0 to 3) of the metadata for a group of a row if the selector is 0, and the shift of the metadata.
fn position(ty: Type, row: usize, group: usize) -> (usize, usize) {
    let lower = row / 8;
    match ty {
        // A lane has all or half of the columns for both rows.
        Type::F16 | Type::BF16 | Type::TF32 => (group / 4, group % 4 * 4 + lower * 16),
        // A lane has all or half of the columns for one row.
        _ => (group / 8 * 2 + lower, group % 8 * 4),
    }
}

/// Returns for each row of A the columns of its elements, in their order.
pub(super) fn places(file: &mut RegFile, metadata: Slot, mma: &Mma) -> Vec<Vec<usize>> {
    let columns = group(mma.a);
    let groups = usize::from(mma.shape[2]) / columns;
    // The number of lanes, of each four, that supply metadata: four lanes hold two rows of A, and one lane has the
    // metadata of eight groups, with 4 bits for each.
    let lanes = (2 * groups).div_ceil(8);
    let first = usize::from(mma.sparse.unwrap_or(0)) * lanes;
    let mut row = |row: usize| -> Vec<usize> {
        let mut all = Vec::new();
        for number in 0..groups {
            let (lane, shift) = position(mma.a, row, number);
            let lane = row % 8 * 4 + (first + lane) % 4;
            let bits = file.get(metadata, 4, lane) as u32 >> shift & 15;
            all.extend(selected(mma.a, bits).into_iter().map(|at| number * columns + at));
        }
        all
    };
    (0..ROWS).map(&mut row).collect()
}
