//! `shfl`: the lanes that values come from.

use ptx::ir::ShflMode;

/// Returns the lane from which `lane` gets its value in `shfl`, and true if the lane that the operands select is inside
/// the segment of `lane`. If it is not, `lane` keeps its own value.
#[inline(always)]
pub fn source_lane(mode: ShflMode, lane: u32, b: u32, c: u32) -> (u32, bool) {
    let (b, clamp, segment) = (b & 31, c & 31, c >> 8 & 31);
    // The last lane that may be selected, or for `.up` the first one.
    let limit = lane & segment | clamp & !segment;
    let first = lane & segment;
    let (from, inside) = match mode {
        ShflMode::Up => (lane.wrapping_sub(b), lane as i32 - b as i32 >= limit as i32),
        ShflMode::Down => (lane + b, lane + b <= limit),
        ShflMode::Bfly => (lane ^ b, lane ^ b <= limit),
        ShflMode::Idx => (first | b & !segment, (first | b & !segment) <= limit),
    };
    (if inside { from & 31 } else { lane }, inside)
}
