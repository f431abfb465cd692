//! A launch that is checked: the state that its workers share, and the states of its blocks and warps.

use super::Checker;
use super::copies::Copies;
use super::finding::{Finding, Place};
use super::init::{BlockWritten, WrittenByOthers};
use super::lines::Patterns;
use super::order::BlockOrder;
use super::plan::Plan;
use super::race::Races;
use crate::code::watch::{BarrierArrival, BlockAt};
use crate::lanes::{Mask, thread_of};
use crate::program::kernel::Kernel;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The state of a launch, kept here while no worker uses it.
#[derive(Default)]
pub(super) struct LaunchState {
    pub(super) races: Option<Box<Races>>,
    pub(super) patterns: Option<Box<Patterns>>,
    pub(super) blocks: HashMap<u64, Box<BlockState>>,
    pub(super) findings: HashMap<Key, (Rank, Finding)>,
}

/// Identifies a finding: the number of its kind (a read of uninitialised memory, a race, a wrong mask, a barrier), and
/// the lines of its two places, or the line and the function of its only place.
pub(super) type Key = (u32, [u32; 2]);

/// The order of findings with the same key, of which the first is kept: block and thread.
pub(super) type Rank = (u64, u32);

/// A launch that is checked. Clones, one for each worker, share the state.
#[derive(Clone)]
pub(super) struct CheckedLaunch {
    pub(super) checker: Checker,
    pub(super) kernel: Arc<Kernel>,
    /// The checkers' view of the instructions, by function and decoded instruction.
    pub(super) plans: Arc<Vec<Vec<Plan>>>,
    /// For each function, the number in the launch of its first decoded instruction.
    pub(super) first_sites: Arc<Vec<u32>>,
    /// For each function, the PTX lines of instructions that are checked.
    pub(super) lines: Arc<Vec<HashSet<u32>>>,
    /// Number of blocks of the grid in each dimension.
    pub(super) grid: [u32; 3],
    /// Number of threads of a block in each dimension.
    pub(super) block: [u32; 3],
    /// Number of blocks of a cluster in each dimension.
    pub(super) cluster: [u32; 3],
    /// Bytes of a block's shared memory.
    pub(super) shared_bytes: u64,
    /// The part of shared memory that the system reserves.
    pub(super) reserved_shared: Option<Range<u64>>,
    pub(super) written_by_others: Arc<WrittenByOthers>,
    pub(super) state: Arc<Mutex<LaunchState>>,
}

impl CheckedLaunch {
    pub(super) fn state(&self) -> MutexGuard<'_, LaunchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of the block with this rank in the cluster that contains `block`.
    pub(super) fn block_of_rank(&self, block: [u32; 3], rank: u32) -> u64 {
        let [x, y, _] = self.cluster;
        let inside = [rank % x, rank / x % y, rank / x / y];
        self.number(std::array::from_fn(|i| {
            block[i] / self.cluster[i] * self.cluster[i] + inside[i]
        }))
    }

    /// Records that a block has written the shared memory of all blocks of its cluster.
    pub(super) fn written_in_cluster(&self, block: &BlockAt, range: Range<u64>) {
        for rank in 0..self.cluster.iter().product() {
            self.written_by_others
                .add(self.block_of_rank(block.index, rank), range.clone());
        }
    }

    /// Returns the number in the grid of the block at these coordinates.
    pub(super) fn number(&self, [x, y, z]: [u32; 3]) -> u64 {
        let [width, height, _] = self.grid.map(u64::from);
        u64::from(x) + width * (u64::from(y) + height * u64::from(z))
    }

    /// Returns the coordinates of the block with this number.
    pub(super) fn index(&self, number: u64) -> [u32; 3] {
        let [x, y, _] = self.grid.map(|n| u64::from(n.max(1)));
        [(number % x) as u32, (number / x % y) as u32, (number / x / y) as u32]
    }

    /// Returns the function and the decoded instruction with this number in the launch.
    pub(super) fn site(&self, number: u32) -> (u32, u32) {
        // Functions without code have the number of the next function.
        let function = self.first_sites.partition_point(|first| *first <= number) - 1;
        (function as u32, number - self.first_sites[function])
    }

    /// Returns the coordinates in the block of a lane of a warp.
    pub(super) fn thread(&self, warp: u32, lane: usize) -> [u32; 3] {
        thread_of(self.block, warp * 32 + lane as u32)
    }

    /// Returns the place of a decoded instruction, by function and instruction.
    pub(super) fn place(
        &self,
        (function, pc): (u32, u32),
        action: String,
        block: u64,
        (warp, lane): (u32, usize),
    ) -> Place {
        let line = self.plans[function as usize].get(pc as usize).map_or(0, |p| p.line);
        self.place_of_line(function, line, action, block, (warp, lane))
    }

    /// Returns the place of a PTX line of a function.
    pub(super) fn place_of_line(
        &self,
        function: u32,
        line: u32,
        action: String,
        block: u64,
        (warp, lane): (u32, usize),
    ) -> Place {
        let function = self.kernel.loaded().module.functions.get(function as usize);
        Place::new(function, action, line, self.index(block), self.thread(warp, lane))
    }
}

/// The state of a block that has started and not ended.
pub(super) struct BlockState {
    pub(super) at: BlockAt,
    /// `None` without the check for races.
    pub(super) order: Option<BlockOrder>,
    /// `None` without the check for uninitialised reads.
    pub(super) written: Option<BlockWritten>,
    pub(super) warps: Vec<WarpState>,
    pub(super) copies: Copies,
    /// For each barrier, the arrivals since it last opened.
    pub(super) arrivals: HashMap<u32, Vec<(u32, BarrierArrival)>>,
}

/// A warp, for the checkers of synchronisation and races.
#[derive(Clone, Default)]
pub(super) struct WarpState {
    /// Lanes that are threads of the block.
    pub(super) lanes: Mask,
    /// True if the next arrival at the cluster's barrier is relaxed.
    pub(super) relaxed: bool,
    /// For each warp-level instruction that waits for lanes: the lanes that have arrived, their mask of members, and
    /// the function and number of the instruction.
    pub(super) across: Vec<(Mask, Mask, (u32, u32))>,
}
