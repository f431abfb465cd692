//! Regions that a group may run under a mask: both sides of a branch up to the point where its lanes meet again.

use super::class::{Class, is_scheduled};
use super::flow::Flow;
use super::liveness::Liveness;
use super::steps::{Layout, Step};
use ptx::ir::Reg;

/// The blocks between a conditional branch and its immediate post-dominator, without loops and without instructions
/// that the warp's scheduler runs.
#[derive(Debug)]
pub(crate) struct Region {
    /// The block that ends with the branch.
    pub(crate) block: usize,
    /// The branch's predicate.
    pub(crate) predicate: Reg,
    /// The blocks of the side to which the branch jumps, in order; empty if it jumps to the join.
    pub(crate) taken: Vec<usize>,
    /// The blocks of the other side, in order; empty if it falls through to the join.
    pub(crate) not_taken: Vec<usize>,
    /// The block in which both sides meet.
    pub(crate) join: usize,
    /// Number of steps in both sides.
    pub(crate) steps: usize,
    /// Number of steps in both sides that are loads and stores, or that only a handler runs.
    pub(crate) memory_steps: usize,
}

impl Region {
    /// Returns the blocks of both sides.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = usize> + '_ {
        self.taken.iter().chain(&self.not_taken).copied()
    }

    /// Returns true if a write of the register in the region must keep the values of the lanes that do not run it:
    /// something outside of the side reads the register.
    pub(crate) fn is_visible(&self, live: &Liveness, reg: Reg) -> bool {
        let starts = [&self.taken, &self.not_taken]
            .into_iter()
            .filter_map(|side| side.first());
        live.is_live_at_begin(self.join, reg) || starts.into_iter().any(|block| live.is_live_at_begin(*block, reg))
    }
}

/// Returns the regions, in the order of their branches.
pub(super) fn regions(layout: &Layout<'_>, flow: &Flow) -> Vec<Region> {
    let regions = layout.order.iter().filter_map(|block| region(layout, flow, *block));
    regions.collect()
}

fn region(layout: &Layout<'_>, flow: &Flow, block: usize) -> Option<Region> {
    let join = flow.post_dominator[block]?;
    let Some(Step::Branch {
        to,
        guard: Some((predicate, _)),
        ..
    }) = layout.steps[layout.steps_of(block)].last()
    else {
        return None;
    };
    let taken = layout.block_of[*to];
    let not_taken = layout.blocks[block]
        .successors
        .iter()
        .copied()
        .find(|next| *next != taken)?;
    let side = |start| side(layout, flow, block, start, join);
    let (taken, not_taken) = (side(taken)?, side(not_taken)?);
    let steps: Vec<usize> = taken
        .iter()
        .chain(&not_taken)
        .flat_map(|block| layout.steps_of(*block))
        .collect();
    let memory = |step: &&usize| match layout.steps[**step] {
        Step::Plain(inst) => matches!(Class::of_inst(inst), Class::Load | Class::Store | Class::Handled),
        Step::Branch { .. } => false,
    };
    Some(Region {
        block,
        predicate: *predicate,
        join,
        memory_steps: steps.iter().filter(memory).count(),
        steps: steps.len(),
        taken,
        not_taken,
    })
}

/// Returns the blocks from `start` up to `join`. Returns `None` if there is a loop, another entry, or an instruction
/// that the scheduler runs.
fn side(layout: &Layout<'_>, flow: &Flow, from: usize, start: usize, join: usize) -> Option<Vec<usize>> {
    let mut blocks = Vec::new();
    let mut next = vec![start];
    while let Some(block) = next.pop() {
        if block == join || blocks.contains(&block) {
            continue;
        }
        let only_entry = block != start || flow.predecessors[block] == [from];
        let ends = layout.blocks[block].successors.is_empty();
        if !only_entry || ends || flow.loop_of[block] != flow.loop_of[from] || !flow.is_dominated(block, start) {
            return None;
        }
        let scheduled = |step: &Step<'_>| matches!(step, Step::Plain(inst) if is_scheduled(&inst.op));
        if layout.steps[layout.steps_of(block)].iter().any(scheduled) {
            return None;
        }
        let backward = |to: &usize| flow.is_backward(block, *to);
        if layout.blocks[block].successors.iter().any(backward) {
            return None;
        }
        blocks.push(block);
        next.extend(&layout.blocks[block].successors);
    }
    blocks.sort_unstable_by_key(|block| flow.place[*block]);
    Some(blocks)
}
