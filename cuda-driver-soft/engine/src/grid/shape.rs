//! The size of a grid, its clusters and its blocks.

#![forbid(unsafe_code)]

use ptx::ir::FuncId;

/// The size of a grid, its clusters and its blocks, and the other properties that all blocks of a launch share.
#[derive(Clone, Copy, Debug)]
pub(super) struct GridShape {
    /// Blocks of the grid.
    pub(super) grid: [u32; 3],
    /// Threads of a block.
    pub(super) block: [u32; 3],
    /// Blocks of a cluster.
    pub(super) cluster: [u32; 3],
    /// Bytes of a block's shared memory, including the bytes past its end that threads may access.
    pub(super) shared_bytes: u64,
    /// The kernel's function.
    pub(super) function: FuncId,
    /// Instructions that a cluster runs before another one may start, because it may be waiting for that one.
    pub(super) patience: u64,
    /// Instructions that a cluster runs when it continues, before the next one continues.
    pub(super) slice: u64,
    /// Backward jumps that a warp may take before the next warp of its block runs.
    pub(super) warp_share: i64,
    /// [`warp_share`](Self::warp_share) of a warp that is interpreted.
    pub(super) interpreted_share: i64,
}

impl GridShape {
    /// Returns the number of clusters in each dimension.
    fn clusters(&self) -> [u32; 3] {
        std::array::from_fn(|i| self.grid[i] / self.cluster[i].max(1))
    }

    /// Returns the coordinates in the grid of the block with this rank in this cluster.
    pub(super) fn index(&self, cluster: u64, rank: u64) -> [u32; 3] {
        let [cluster, inside] = [coordinates(self.clusters(), cluster), coordinates(self.cluster, rank)];
        std::array::from_fn(|i| cluster[i] * self.cluster[i] + inside[i])
    }

    /// Returns the number of a block in the grid.
    pub(super) fn number(&self, [x, y, z]: [u32; 3]) -> u64 {
        let [width, height, _] = self.grid.map(u64::from);
        u64::from(x) + width * (u64::from(y) + height * u64::from(z))
    }
}

/// Returns the coordinates of the element with this number in an array of this size, in which x changes fastest.
fn coordinates(size: [u32; 3], number: u64) -> [u32; 3] {
    let [x, y, _] = size.map(|n| u64::from(n.max(1)));
    [(number % x) as u32, (number / x % y) as u32, (number / x / y) as u32]
}
