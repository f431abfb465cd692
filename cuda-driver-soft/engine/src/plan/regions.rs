//! Regions that a group (the neighbouring lanes that compiled code runs together) may run under a mask of active lanes:
//! the blocks between a branch and the point where its lanes meet again.
//!
//! While some lanes run a block, others wait at the beginning of a later one. A register that the running lanes write,
//! and that the waiting ones still need, must have one value per lane.

use super::class::{Class, is_scheduled};
use super::flow::Flow;
use super::liveness::Liveness;
use super::set::Set;
use super::steps::{Layout, Step};
use crate::code::compiled::MOST_WAITS;
use ptx::ir::{Op, Reg};

/// The blocks between a conditional branch and its immediate post-dominator. They may be a loop. They contain no
/// instructions that the warp's scheduler runs, such as barriers, calls and ends, and no `activemask`.
#[derive(Debug)]
pub(crate) struct Region {
    /// The block that ends with the branch.
    pub(crate) block: usize,
    /// The branch's predicate.
    pub(crate) predicate: Reg,
    /// The blocks that lanes may run, in order.
    pub(crate) blocks: Vec<usize>,
    /// The block in which all lanes meet. It comes after the others.
    pub(crate) join: usize,
    /// The registers that some lanes write while others need them.
    pub(crate) kept: Vec<Reg>,
    /// Number of steps of the blocks.
    pub(crate) steps: usize,
    /// Among these steps, the number of loads, stores and instructions that are run by handlers ([`Class::Handled`]).
    pub(crate) memory_steps: usize,
}

/// Returns the regions, in the order of their branches.
pub(super) fn regions(layout: &Layout<'_>, flow: &Flow, live: &Liveness) -> Vec<Region> {
    let blocks = 0..layout.blocks.len();
    let finder = Finder {
        layout,
        flow,
        live,
        written: blocks.map(|block| live.written_in(layout, block)).collect(),
    };
    let found = layout.order.iter().filter_map(|block| finder.region(*block));
    let mut found: Vec<Region> = found.collect();
    // Lanes that diverge again inside a region must meet at its join or before: each branch inside must begin a region
    // of its own.
    let parts = |block: &usize| layout.blocks[*block].successors.len() > 1;
    loop {
        let mut begins = vec![false; layout.blocks.len()];
        found.iter().for_each(|region| begins[region.block] = true);
        let count = found.len();
        found.retain(|region| {
            let mut inner = region.blocks.iter().filter(|block| parts(block));
            inner.all(|block| begins[*block])
        });
        if found.len() == count {
            return found;
        }
    }
}

struct Finder<'a, 'b> {
    layout: &'a Layout<'b>,
    flow: &'a Flow,
    live: &'a Liveness,
    /// For each block, the registers that it may write, as [`Liveness`] numbers them.
    written: Vec<Set>,
}

impl Finder<'_, '_> {
    fn region(&self, block: usize) -> Option<Region> {
        let (layout, flow) = (self.layout, self.flow);
        let join = flow.post_dominator[block]?;
        let last = layout.steps[layout.steps_of(block)].last();
        let Some(Step::Branch {
            guard: Some((predicate, _)),
            ..
        }) = last
        else {
            return None;
        };
        let [first, second] = *layout.blocks[block].successors.as_slice() else {
            return None;
        };
        let sides = [self.reached(first, join)?, self.reached(second, join)?];
        let mut blocks = sides.concat();
        blocks.sort_unstable_by_key(|block| flow.place[*block]);
        blocks.dedup();
        let comes_before_join = |block: &usize| flow.place[*block] < flow.place[join];
        if first == second || !blocks.iter().all(comes_before_join) {
            return None;
        }
        let mut kept = self.live.none();
        for (waiting, running) in [(&sides[0], &sides[1]), (&sides[1], &sides[0])] {
            let mut of_both = self.live.none();
            let needed = waiting.iter().chain([&join]);
            needed.for_each(|block| of_both.union(self.live.set_at_begin(*block)));
            let mut written = self.live.none();
            running.iter().for_each(|block| written.union(&self.written[*block]));
            of_both.intersect(&written);
            kept.union(&of_both);
        }
        let steps: Vec<usize> = blocks.iter().flat_map(|block| layout.steps_of(*block)).collect();
        let memory = |step: &&usize| match layout.steps[**step] {
            Step::Plain(inst) => matches!(Class::of_inst(inst), Class::Load | Class::Store | Class::Handled),
            Step::Branch { .. } => false,
        };
        Some(Region {
            block,
            predicate: *predicate,
            join,
            kept: self.live.registers(&kept).collect(),
            memory_steps: steps.iter().filter(memory).count(),
            steps: steps.len(),
            blocks,
        })
    }

    /// Returns the blocks that lanes reach from `start` before `join`. Returns `None` if there are more than
    /// [`MOST_WAITS`], if one of them ends the function, or if one contains an instruction that the warp's scheduler
    /// runs, or `activemask`.
    fn reached(&self, start: usize, join: usize) -> Option<Vec<usize>> {
        let layout = self.layout;
        let mut blocks = Vec::new();
        let mut seen = Set::empty(layout.blocks.len());
        let mut next = vec![start];
        while let Some(block) = next.pop() {
            let number = Reg(block as u32);
            if block == join || seen.has(number) {
                continue;
            }
            seen.insert(number);
            let whole_warp = |step: &Step<'_>| matches!(step, Step::Plain(inst) if is_scheduled(&inst.op) || matches!(inst.op, Op::Activemask));
            let steps = &layout.steps[layout.steps_of(block)];
            if layout.blocks[block].successors.is_empty() || steps.iter().any(whole_warp) {
                return None;
            }
            if blocks.len() >= MOST_WAITS {
                return None;
            }
            blocks.push(block);
            next.extend(&layout.blocks[block].successors);
        }
        Some(blocks)
    }
}
