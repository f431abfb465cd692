//! The threads of a block: their coordinates, and how warps divide them.

#![forbid(unsafe_code)]

use crate::semantics::affine::Rows;

/// Returns the coordinates of a thread in its block.
pub(crate) fn thread_of(block: [u32; 3], number: u32) -> [u32; 3] {
    let [x, y, _] = block.map(|n| n.max(1));
    [number % x, number / x % y, number / x / y]
}

/// Returns the arrangement of the lanes of each warp in a block of this shape, if the lanes form whole rows along x
/// that follow one another in y and have the same z. Returns `None` for other block shapes.
pub(crate) fn lane_rows(block: [u32; 3]) -> Option<Rows> {
    let [x, y, z] = block;
    if x.is_multiple_of(32) || (y <= 1 && z <= 1) {
        return Some(Rows::ONE);
    }
    Rows::of(x).filter(|rows| z <= 1 || y.is_multiple_of(rows.count()))
}
