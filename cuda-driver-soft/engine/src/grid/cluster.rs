//! A cluster: blocks that run on one thread of the host, see the shared memory of one another and have a barrier. Mostly it is
//! one block.

use super::block::{Block, Outcome, Shape};
use crate::code::machine::Machine;
use crate::memory::warp::RANK_SHIFT;
use crate::warp::frame::Frames;

/// Instructions that a block runs before the next one of the cluster has its turn.
const SLICE: u64 = 1 << 12;

/// A cluster in progress, or one that is over and can be used again.
pub(crate) struct Cluster {
    number: u64,
    /// By rank, also when it is used again: what a warp knows of its rank stays.
    blocks: Vec<Block>,
    states: Vec<State>,
    /// The block whose turn it is.
    turn: usize,
    /// When it has run so many instructions, another cluster may begin before it goes on.
    gives_way_at: u64,
}

/// What a block does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Running,
    /// It waits for the other blocks.
    Blocked,
    Done,
}

impl Cluster {
    /// A cluster at its start. `None` if the host has no memory for it.
    pub(crate) fn new(frames: &mut Frames<'_>, shape: &Shape, number: u64) -> Option<Self> {
        let count = shape.cluster.iter().map(|n| u64::from(*n)).product();
        let blocks =
            (0..count).map(|rank| Block::new(frames, shape, shape.index(number, rank), count == 1));
        let blocks: Vec<Block> = blocks.collect::<Option<_>>()?;
        Some(Cluster {
            number,
            states: vec![State::Running; blocks.len()],
            blocks,
            turn: 0,
            gives_way_at: shape.patience,
        })
    }

    /// Makes a cluster that is over another one of the same launch.
    pub(crate) fn reuse(
        &mut self,
        frames: &mut Frames<'_>,
        shape: &Shape,
        number: u64,
    ) -> Option<()> {
        for (rank, block) in (0..).zip(&mut self.blocks) {
            block.reuse(frames, shape, shape.index(number, rank))?;
        }
        self.states.fill(State::Running);
        (self.number, self.turn) = (number, 0);
        self.gives_way_at = shape.patience;
        Some(())
    }

    /// The cluster's number in the grid.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Whether it has run for so long that another one should begin before it goes on; true once for each such span.
    pub(crate) fn gives_way(&mut self, patience: u64) -> bool {
        let steps = self.steps();
        let now = steps >= self.gives_way_at;
        if now {
            self.gives_way_at = steps + patience;
        }
        now
    }

    /// Instructions of a warp that it has run.
    pub(crate) fn steps(&self) -> u64 {
        self.blocks.iter().map(Block::steps).sum()
    }

    /// Runs the blocks in turn until all are done, or until they have run about `share` instructions.
    pub(crate) fn run(
        &mut self,
        m: &mut Machine<'_>,
        frames: &mut Frames<'_>,
        shape: &Shape,
        share: u64,
    ) -> Outcome {
        if let [block] = self.blocks.as_mut_slice() {
            return block.run(m, frames, shape, share);
        }
        let memories = self
            .blocks
            .iter_mut()
            .map(|b| std::mem::take(&mut b.shared));
        m.spaces.cluster = memories.collect();
        let outcome = self.run_blocks(m, frames, shape, share);
        for (block, memory) in self.blocks.iter_mut().zip(m.spaces.cluster.drain(..)) {
            block.shared = memory;
        }
        m.spaces.shared_base = 0;
        outcome
    }

    fn run_blocks(
        &mut self,
        m: &mut Machine<'_>,
        frames: &mut Frames<'_>,
        shape: &Shape,
        share: u64,
    ) -> Outcome {
        let end = m.steps.saturating_add(share);
        loop {
            let count = self.blocks.len();
            let mut order = (0..count).map(|i| (self.turn + i) % count);
            let Some(rank) = order.find(|rank| self.states[*rank] == State::Running) else {
                let blocked = self.states.iter().position(|s| *s == State::Blocked);
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
                Outcome::Blocked => self.states[rank] = State::Blocked,
                Outcome::Done => self.states[rank] = State::Done,
                fault @ Outcome::Fault(_) => return fault,
            }
            let all = self.blocks.iter().all(Block::is_at_cluster);
            if all && self.blocks.iter().any(Block::has_arrived) {
                for (block, state) in self.blocks.iter_mut().zip(&mut self.states) {
                    if *state != State::Done {
                        block.leave_cluster(frames);
                        *state = State::Running;
                    }
                }
            }
            if m.steps >= end {
                return Outcome::Share;
            }
        }
    }
}
