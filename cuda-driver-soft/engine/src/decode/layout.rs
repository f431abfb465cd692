//! A function as blocks of steps in the order in which the scheduler wants them, and how they become instructions.

use super::builder::Builder;
use super::{CannotRun, is_control, lower, order};
use crate::code::isa::Handlers;
use crate::ops::control;
use ptx::ir::{Body, Inst, Op, Reg};

/// A step of the function: an instruction, or one of the branches that go around or after it.
#[derive(Clone, Copy)]
pub(super) enum Step<'b> {
    /// An instruction that goes on to the next step, or ends its lanes.
    Plain(&'b Inst),
    /// A branch to a step, if the predicate (negated) holds.
    Branch {
        to: usize,
        guard: Option<(Reg, bool)>,
        line: u32,
    },
}

/// A run of steps with one entry.
pub(super) struct Block {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) successors: Vec<usize>,
}

/// A function in blocks.
pub(super) struct Layout<'b> {
    pub(super) steps: Vec<Step<'b>>,
    pub(super) blocks: Vec<Block>,
    /// The blocks that can be reached, in order.
    pub(super) order: Vec<usize>,
    /// By step: its block.
    block_of: Vec<usize>,
    /// By instruction of the body: the step that it begins with.
    first_step: Vec<usize>,
}

impl<'b> Layout<'b> {
    pub(super) fn of(body: &'b Body) -> Self {
        let (steps, first_step) = steps(body);
        let (blocks, block_of) = blocks(&steps, &first_step);
        let successors: Vec<Vec<usize>> = blocks.iter().map(|b| b.successors.clone()).collect();
        Layout {
            order: order::order(&successors),
            steps,
            blocks,
            block_of,
            first_step,
        }
    }

    /// The numbers of a block's steps.
    pub(super) fn steps_of(&self, block: usize) -> std::ops::Range<usize> {
        self.blocks[block].start..self.blocks[block].end
    }

    /// All steps that can be reached.
    pub(super) fn reached(&self) -> impl Iterator<Item = &Step<'b>> {
        let blocks = self.order.iter();
        blocks.flat_map(|block| &self.steps[self.steps_of(*block)])
    }

    /// The block that an instruction of the body is in.
    pub(super) fn block_at(&self, inst: u32) -> usize {
        self.block_of[self.first_step[inst as usize]]
    }

    /// Adds the code: `step` is called before each step, and adds what is no branch; `branch` are the handlers of a branch
    /// under a guard. Gives where each block begins.
    pub(super) fn emit(
        &self,
        builder: &mut Builder<'_>,
        branch: Handlers,
        mut step: impl FnMut(&mut Builder<'_>, usize, &Step<'b>) -> Result<(), CannotRun>,
    ) -> Result<Vec<u32>, CannotRun> {
        // Where each block begins, and which instructions must be told.
        let mut begins = vec![u32::MAX; self.blocks.len()];
        let mut fixups: Vec<(usize, usize)> = Vec::new();
        for (place, block) in self.order.iter().enumerate() {
            begins[*block] = builder.here();
            let Block { start, end, .. } = self.blocks[*block];
            let next = self.order.get(place + 1).copied();
            // Where control goes from the end of the last step; no block: the function ends.
            let mut falls_to = self.block_of.get(end).copied();
            for number in start..end {
                step(builder, number, &self.steps[number])?;
                match self.steps[number] {
                    Step::Plain(inst) => {
                        if matches!(inst.op, Op::Ret { .. } | Op::Exit | Op::Brx { .. }) {
                            falls_to = Some(usize::MAX);
                        }
                    }
                    Step::Branch {
                        to,
                        guard: None,
                        line,
                    } => {
                        let target = self.block_of[to];
                        if next != Some(target) {
                            fixups.push((builder.here() as usize, target));
                            builder.push_control(control::jump(), None, line);
                        }
                        falls_to = Some(usize::MAX);
                    }
                    Step::Branch {
                        to,
                        guard: Some((reg, negated)),
                        line,
                    } => {
                        let mut target = self.block_of[to];
                        let mut negated = negated;
                        if let Some(after) = falls_to
                            && next == Some(target)
                            && target != after
                        {
                            // Rather branch away from the block that comes next anyway.
                            (target, falls_to, negated) = (after, Some(target), !negated);
                        }
                        fixups.push((builder.here() as usize, target));
                        let predicate = builder.register(reg);
                        builder.push_control(branch, Some((predicate, negated)), line);
                    }
                }
            }
            match falls_to {
                Some(usize::MAX) => {}
                Some(block) if next == Some(block) => {}
                Some(block) => {
                    fixups.push((builder.here() as usize, block));
                    builder.push_control(control::jump(), None, 0);
                }
                None => lower::lower_return(builder),
            }
        }
        for (inst, block) in fixups {
            builder.set_target(inst, begins[block]);
        }
        Ok(begins)
    }
}

/// The steps of a body, and for each instruction the step that it begins with (one more for the end).
fn steps(body: &Body) -> (Vec<Step<'_>>, Vec<usize>) {
    let mut first = Vec::with_capacity(body.insts.len() + 1);
    let mut count = 0;
    let goes_around = |inst: &Inst| inst.guard.is_some() && is_control(&inst.op);
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

/// The blocks, and for each step its block.
fn blocks(steps: &[Step<'_>], first_step: &[usize]) -> (Vec<Block>, Vec<usize>) {
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
                    targets
                        .iter()
                        .for_each(|t| leads[first_step[t.0 as usize]] = true);
                    leads[i + 1] = true;
                }
                Op::Ret { .. } | Op::Exit => leads[i + 1] = true,
                _ => {}
            },
        }
    }
    let mut starts: Vec<usize> = (0..steps.len()).filter(|i| leads[*i]).collect();
    // A branch to the end goes to an empty block there, which returns.
    let to_the_end = |step: &Step<'_>| match step {
        Step::Branch { to, .. } => *to == steps.len(),
        Step::Plain(inst) => match &inst.op {
            Op::Brx { targets, .. } => targets
                .iter()
                .any(|t| first_step[t.0 as usize] == steps.len()),
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
    // Without an empty block at the end, there is no step there.
    block_of.truncate(if starts.last() == Some(&steps.len()) {
        steps.len() + 1
    } else {
        steps.len()
    });
    let blocks = starts.iter().enumerate().map(|(block, start)| {
        let end = starts.get(block + 1).copied().unwrap_or(steps.len());
        let after = block_of.get(end).copied().filter(|_| end > *start);
        let successors = match steps[*start..end].last() {
            Some(Step::Branch {
                to, guard: None, ..
            }) => vec![block_of[*to]],
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
