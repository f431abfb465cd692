//! The coordinates of the threads of a block.

#![forbid(unsafe_code)]

/// Returns the coordinates of a thread in its block.
pub(crate) fn thread_of(block: [u32; 3], number: u32) -> [u32; 3] {
    let [x, y, _] = block.map(|n| n.max(1));
    [number % x, number / x % y, number / x / y]
}
