//! `shfl`: the lanes that values come from.

use ptx::ir::ShflMode;

/// Returns the lane from which a lane of `shfl` gets its value, and true if that is inside its segment.
#[inline(always)]
pub fn source_lane(mode: ShflMode, lane: u32, b: u32, c: u32) -> (u32, bool) {
    let (b, clamp, segment) = (b & 31, c & 31, c >> 8 & 31);
    let last = lane & segment | clamp & !segment;
    let first = lane & segment;
    let (from, inside) = match mode {
        ShflMode::Up => (lane.wrapping_sub(b), lane as i32 - b as i32 >= last as i32),
        ShflMode::Down => (lane + b, lane + b <= last),
        ShflMode::Bfly => (lane ^ b, lane ^ b <= last),
        ShflMode::Idx => (first | b & !segment, (first | b & !segment) <= last),
    };
    (if inside { from & 31 } else { lane }, inside)
}
