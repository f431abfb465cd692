//! Phases: the parts of a function between instructions that the warp's scheduler runs.

use super::class::{Class, Scheduled};
use super::liveness::Liveness;
use super::pure::Pure;
use super::steps::{Layout, Step};
use ptx::ir::Reg;

/// A part of a function that begins at its entry or after an instruction that the warp's scheduler runs, and reaches up
/// to the next such instructions. A block may belong to several phases.
#[derive(Debug)]
pub(crate) struct Phase {
    /// The block with which the phase begins.
    pub(crate) entry: usize,
    /// The scheduled instruction before the phase, or the first one of several; `None` for the function's entry.
    pub(crate) after: Option<Scheduled>,
    /// The blocks, in order. The last step of a block may be an instruction that ends the phase.
    pub(crate) blocks: Vec<usize>,
    /// The registers that are live at the beginning and that have to be kept.
    pub(crate) kept: Vec<Reg>,
    /// The registers that are live at the beginning and that can be computed again.
    pub(crate) computed: Vec<Reg>,
}

/// Returns the kind of the instruction at the end of a block if the warp's scheduler runs it.
pub(crate) fn end_of(layout: &Layout<'_>, block: usize) -> Option<Scheduled> {
    match layout.steps[layout.steps_of(block)].last() {
        Some(Step::Plain(inst)) => match Class::of(&inst.op) {
            Class::Scheduled(kind) => Some(kind),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the phases: the one of the function's entry, then the others in the order of the instructions before them.
pub(super) fn phases(layout: &Layout<'_>, place: &[usize], live: &Liveness, pure: &Pure) -> Vec<Phase> {
    let mut entries = vec![(0, None)];
    let mut known = vec![false; layout.blocks.len()];
    known[0] = true;
    for block in &layout.order {
        if let Some(kind) = end_of(layout, *block) {
            for next in &layout.blocks[*block].successors {
                if !std::mem::replace(&mut known[*next], true) {
                    entries.push((*next, Some(kind)));
                }
            }
        }
    }
    // For each block, the entry of the last phase that it was found in.
    let mut found_in = vec![usize::MAX; layout.blocks.len()];
    let phase = |(entry, after)| {
        let mut blocks = vec![entry];
        found_in[entry] = entry;
        let mut at = 0;
        while let Some(block) = blocks.get(at).copied() {
            at += 1;
            if end_of(layout, block).is_some() {
                continue;
            }
            for next in &layout.blocks[block].successors {
                if std::mem::replace(&mut found_in[*next], entry) != entry {
                    blocks.push(*next);
                }
            }
        }
        blocks.sort_unstable_by_key(|block| place[*block]);
        let (computed, kept) = live.at_begin(entry).partition(|reg| pure.depends_on(*reg).is_some());
        Phase {
            entry,
            after,
            blocks,
            kept,
            computed,
        }
    };
    entries.into_iter().map(phase).collect()
}
