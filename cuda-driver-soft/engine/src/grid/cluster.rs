//! A cluster: blocks that run in turn on one host thread at a time, can access each other's shared memory, and have a
//! common barrier. Most clusters are a single block.

#![forbid(unsafe_code)]

use super::block::{Block, Outcome};
use super::shape::GridShape;
use crate::code::machine::Machine;
use crate::memory::warp::RANK_SHIFT;
use crate::warp::frame::Frames;

/// Instructions that a block runs before the next block of the cluster runs.
const SLICE: u64 = 1 << 12;

/// A cluster in progress, or a finished one that can be reused.
pub(crate) struct Cluster {
    number: u64,
    /// Blocks by rank. A reused cluster keeps their order, because registers hold the rank.
    blocks: Vec<Block>,
    states: Vec<BlockState>,
    /// The block to run next.
    turn: usize,
    /// Number of instructions after which another cluster may start before this one continues.
    gives_way_at: u64,
}

/// The state of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockState {
    Running,
    /// The block waits for the other blocks.
    Blocked,
    Done,
}

impl Cluster {
    /// Returns a cluster at its start, or `None` if the host is out of memory.
    pub(super) fn new(frames: &mut Frames<'_>, shape: &GridShape, number: u64) -> Option<Self> {
        let count = shape.cluster.iter().map(|n| u64::from(*n)).product();
        let mut blocks = Vec::with_capacity(count as usize);
        for rank in 0..count {
            blocks.push(Block::new(frames, shape, shape.index(number, rank), count == 1)?);
        }
        Some(Cluster {
            number,
            states: vec![BlockState::Running; blocks.len()],
            blocks,
            turn: 0,
            gives_way_at: shape.patience,
        })
    }

    /// Restarts a finished cluster as another one of the same launch. Returns `None` if the host is out of memory.
    pub(super) fn reuse(&mut self, frames: &mut Frames<'_>, shape: &GridShape, number: u64) -> Option<()> {
        for (rank, block) in (0..).zip(&mut self.blocks) {
            block.reuse(frames, shape, shape.index(number, rank))?;
        }
        self.states.fill(BlockState::Running);
        (self.number, self.turn) = (number, 0);
        self.gives_way_at = shape.patience;
        Some(())
    }

    /// Returns the cluster's number in the grid.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Returns true if another cluster should start before this one continues; true once per `patience` instructions.
    pub(super) fn gives_way(&mut self, patience: u64) -> bool {
        let steps = self.steps();
        let now = steps >= self.gives_way_at;
        if now {
            self.gives_way_at = steps + patience;
        }
        now
    }

    /// Returns the number of instructions run so far.
    pub(super) fn steps(&self) -> u64 {
        self.blocks.iter().map(Block::steps).sum()
    }

    /// Runs the blocks in turn until all have finished, until they have run about `share` instructions, until the
    /// worker should end to release freed memory, or until a fault or a deadlock.
    pub(super) fn run(
        &mut self,
        m: &mut Machine<'_>,
        frames: &mut Frames<'_>,
        shape: &GridShape,
        share: u64,
    ) -> Outcome {
        if let [block] = self.blocks.as_mut_slice() {
            return block.run(m, frames, shape, share);
        }
        let memories = self.blocks.iter_mut().map(|b| std::mem::take(&mut b.shared));
        m.spaces.cluster = memories.collect();
        let outcome = self.run_blocks(m, frames, shape, share);
        for (block, memory) in self.blocks.iter_mut().zip(m.spaces.cluster.drain(..)) {
            block.shared = memory;
        }
        m.spaces.shared_base = 0;
        outcome
    }

    fn run_blocks(&mut self, m: &mut Machine<'_>, frames: &mut Frames<'_>, shape: &GridShape, share: u64) -> Outcome {
        let end = m.steps.saturating_add(share);
        loop {
            let count = self.blocks.len();
            let mut order = (0..count).map(|i| (self.turn + i) % count);
            let Some(rank) = order.find(|rank| self.states[*rank] == BlockState::Running) else {
                let blocked = self.states.iter().position(|s| *s == BlockState::Blocked);
                return match blocked {
                    Some(rank) => self.blocks[rank].deadlock(frames, shape),
                    None => Outcome::Done,
                };
            };
            self.turn = (rank + 1) % count;
            let block = &mut self.blocks[rank];
            m.spaces.shared_base = (rank as u64) << RANK_SHIFT;
            std::mem::swap(&mut block.shared, &mut m.spaces.cluster[rank]);
            let outcome = block.run(m, frames, shape, SLICE);
            std::mem::swap(&mut block.shared, &mut m.spaces.cluster[rank]);
            match outcome {
                Outcome::Share => {}
                Outcome::Blocked => self.states[rank] = BlockState::Blocked,
                Outcome::Done => self.states[rank] = BlockState::Done,
                fault @ Outcome::Fault(_) => return fault,
            }
            let all = self.blocks.iter().all(Block::is_at_cluster);
            if all && self.blocks.iter().any(Block::has_arrived) {
                for (block, state) in self.blocks.iter_mut().zip(&mut self.states) {
                    if *state != BlockState::Done {
                        block.leave_cluster(m, frames, shape);
                        *state = BlockState::Running;
                    }
                }
            }
            if m.steps >= end || m.has_freed_much() {
                return Outcome::Share;
            }
        }
    }
}
