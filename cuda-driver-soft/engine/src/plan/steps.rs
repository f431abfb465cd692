//! Divides a function into basic blocks of steps, in the order that the scheduler prefers.

use super::class::is_scheduled;
use super::order::order;
use ptx::ir::{Body, Inst, Op, Reg};

/// A step of a function: an instruction, or a branch (of the source, or around a guarded instruction that the scheduler
/// runs).
#[derive(Clone, Copy)]
pub(crate) enum Step<'b> {
    /// Any instruction but `bra`. Lanes continue with the next step after it, unless it is `brx.idx`, `ret` or `exit`.
    Plain(&'b Inst),
    /// A branch to a step. The guard is a predicate, and a flag that is true if it is negated.
    Branch {
        to: usize,
        guard: Option<(Reg, bool)>,
        line: u32,
    },
}

/// A basic block: steps with a single entry.
pub(crate) struct Block {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) successors: Vec<usize>,
}

/// A function as basic blocks.
pub(crate) struct Layout<'b> {
    pub(crate) steps: Vec<Step<'b>>,
    pub(crate) blocks: Vec<Block>,
    /// The reachable blocks, in order.
    pub(crate) order: Vec<usize>,
    /// The block of each step.
    pub(crate) block_of: Vec<usize>,
    /// The first step of each instruction of the body.
    first_step: Vec<usize>,
}

impl<'b> Layout<'b> {
    /// Returns the blocks of a function. A block ends at branches, `ret` and `exit`.
    pub(crate) fn of(body: &'b Body) -> Self {
        Self::divided(body, |_| false)
    }

    /// As [`of`](Self::of), but a block also ends after each instruction that the warp's scheduler runs.
    pub(crate) fn split(body: &'b Body) -> Self {
        Self::divided(body, is_scheduled)
    }

    fn divided(body: &'b Body, ends_block: fn(&Op) -> bool) -> Self {
        let (steps, first_step) = steps(body);
        let (blocks, block_of) = blocks(&steps, &first_step, ends_block);
        let successors: Vec<Vec<usize>> = blocks.iter().map(|b| b.successors.clone()).collect();
        Layout {
            order: order(&successors),
            steps,
            blocks,
            block_of,
            first_step,
        }
    }

    /// Returns the instruction of the body that a step belongs to, and true if an earlier step is its guard.
    pub(crate) fn origin(&self, step: usize) -> (u32, bool) {
        let after = self.first_step.partition_point(|first| *first <= step);
        let inst = after.saturating_sub(1);
        (inst as u32, self.first_step[inst] < step)
    }

    /// Returns the numbers of a block's steps.
    pub(crate) fn steps_of(&self, block: usize) -> std::ops::Range<usize> {
        self.blocks[block].start..self.blocks[block].end
    }

    /// Returns the block of an instruction of the body.
    pub(crate) fn block_at(&self, inst: u32) -> usize {
        self.block_of[self.first_step[inst as usize]]
    }
}

/// Returns the steps of a body, and the first step of each instruction, with one more entry for the end.
fn steps(body: &Body) -> (Vec<Step<'_>>, Vec<usize>) {
    let mut first = Vec::with_capacity(body.insts.len() + 1);
    let mut count = 0;
    let goes_around = |inst: &Inst| inst.guard.is_some() && is_scheduled(&inst.op);
    for inst in &body.insts {
        first.push(count);
        count += if goes_around(inst) { 2 } else { 1 };
    }
    first.push(count);
    let mut steps = Vec::with_capacity(count);
    for (i, inst) in body.insts.iter().enumerate() {
        match (&inst.op, inst.guard) {
            (Op::Bra { target, .. }, guard) => {
                let to = first.get(target.0 as usize).copied().unwrap_or(count);
                steps.push(Step::Branch {
                    to,
                    guard,
                    line: inst.line,
                });
            }
            (_, Some((reg, negated))) if goes_around(inst) => {
                steps.push(Step::Branch {
                    to: first[i + 1],
                    guard: Some((reg, !negated)),
                    line: inst.line,
                });
                steps.push(Step::Plain(inst));
            }
            _ => steps.push(Step::Plain(inst)),
        }
    }
    (steps, first)
}

/// Returns the blocks, and the block of each step.
fn blocks(steps: &[Step<'_>], first_step: &[usize], ends_block: fn(&Op) -> bool) -> (Vec<Block>, Vec<usize>) {
    let mut leads = vec![false; steps.len() + 1];
    leads[0] = true;
    for (i, step) in steps.iter().enumerate() {
        match step {
            Step::Branch { to, .. } => {
                leads[*to] = true;
                leads[i + 1] = true;
            }
            Step::Plain(inst) => match &inst.op {
                Op::Brx { targets, .. } => {
                    targets.iter().for_each(|t| leads[first_step[t.0 as usize]] = true);
                    leads[i + 1] = true;
                }
                op => leads[i + 1] |= matches!(op, Op::Ret { .. } | Op::Exit) || ends_block(op),
            },
        }
    }
    let mut starts: Vec<usize> = (0..steps.len()).filter(|i| leads[*i]).collect();
    // A branch to the end of the function needs an empty block there, which returns.
    let to_the_end = |step: &Step<'_>| match step {
        Step::Branch { to, .. } => *to == steps.len(),
        Step::Plain(inst) => match &inst.op {
            Op::Brx { targets, .. } => targets.iter().any(|t| first_step[t.0 as usize] == steps.len()),
            _ => false,
        },
    };
    if steps.is_empty() || steps.iter().any(to_the_end) {
        starts.push(steps.len());
    }
    let mut block_of = Vec::with_capacity(steps.len() + 1);
    for (block, start) in starts.iter().enumerate() {
        let end = starts.get(block + 1).copied().unwrap_or(steps.len() + 1);
        block_of.resize(end.max(*start), block);
    }
    // Without an empty block at the end, no step has the number of the end.
    block_of.truncate(if starts.last() == Some(&steps.len()) {
        steps.len() + 1
    } else {
        steps.len()
    });
    let blocks = starts.iter().enumerate().map(|(block, start)| {
        let end = starts.get(block + 1).copied().unwrap_or(steps.len());
        let after = block_of.get(end).copied().filter(|_| end > *start);
        let successors = match steps[*start..end].last() {
            Some(Step::Branch { to, guard: None, .. }) => vec![block_of[*to]],
            Some(Step::Branch { to, .. }) => std::iter::once(block_of[*to]).chain(after).collect(),
            Some(Step::Plain(inst)) => match &inst.op {
                Op::Brx { targets, .. } => targets
                    .iter()
                    .rev()
                    .map(|t| block_of[first_step[t.0 as usize]])
                    .collect(),
                Op::Ret { .. } | Op::Exit => Vec::new(),
                _ => after.into_iter().collect(),
            },
            None => Vec::new(),
        };
        Block {
            start: *start,
            end,
            successors,
        }
    });
    (blocks.collect(), block_of)
}
