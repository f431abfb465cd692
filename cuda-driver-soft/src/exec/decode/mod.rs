//! From the typed IR of a function to the code that the engine runs.
//!
//! * `order` numbers the blocks as the scheduler wants them;
//! * `defined` finds the registers that must be zero at the start;
//! * `constants` finds those that are another name of a constant;
//! * `builder` gives every register and constant its slot;
//! * `lower` turns each instruction into one with handlers, or several;
//! * here, branches and blocks are put together.

mod asynchronous;
mod builder;
mod constants;
mod defined;
mod lower;
mod matrix;
mod order;

use super::code::Code;
use super::isa::Isa;
use super::ops::collective::Collective;
use super::ops::control;
use super::program::Image;
use crate::ir::{Body, FuncId, Inst, Op, Reg};
use builder::Builder;
use std::fmt;

/// An instruction that cannot be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CannotRun {
    /// The instruction.
    pub(crate) opcode: String,
    /// Its line in the PTX source, from 1.
    pub(crate) line: u32,
}

impl fmt::Display for CannotRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (PTX line {})", self.opcode, self.line)
    }
}

/// A step of the function: an instruction, or one of the branches that go around or after it.
#[derive(Clone, Copy)]
enum Step<'b> {
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
struct Block {
    start: usize,
    end: usize,
    successors: Vec<usize>,
}

/// Decodes a function for an instruction set.
pub(super) fn decode(image: &Image, id: FuncId, body: &Body, isa: Isa) -> Result<Code, CannotRun> {
    let (steps, first_step) = steps(body);
    let (blocks, block_of) = blocks(&steps, &first_step);
    let order = order::order(
        &blocks
            .iter()
            .map(|b| b.successors.clone())
            .collect::<Vec<_>>(),
    );
    let mut builder = Builder::new(
        image,
        id,
        body,
        isa,
        &defined::uses(body, &steps, &blocks, &order),
    );
    // Where each block begins, and which instructions must be told.
    let mut begins = vec![u32::MAX; blocks.len()];
    let mut fixups: Vec<(usize, usize)> = Vec::new();
    for (place, block) in order.iter().enumerate() {
        begins[*block] = builder.here();
        let Block { start, end, .. } = blocks[*block];
        let next = order.get(place + 1).copied();
        // Where control goes from the end of the last step; no block: the function ends.
        let mut falls_to = block_of.get(end).copied();
        for step in &steps[start..end] {
            match *step {
                Step::Plain(inst) => {
                    lower::lower(&mut builder, inst)?;
                    if matches!(inst.op, Op::Ret { .. } | Op::Exit | Op::Brx { .. }) {
                        falls_to = Some(usize::MAX);
                    }
                }
                Step::Branch {
                    to,
                    guard: None,
                    line,
                } => {
                    let target = block_of[to];
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
                    let mut target = block_of[to];
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
                    builder.push_control(control::branch(), Some((predicate, negated)), line);
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
            None => lower::lower_return(&mut builder),
        }
    }
    for (inst, block) in fixups {
        builder.set_target(inst, begins[block]);
    }
    let mut code = builder.finish();
    for action in &mut code.actions {
        if let super::code::Action::Branch { targets, .. } = action {
            for target in targets {
                *target = begins[block_of[first_step[*target as usize]]];
            }
        }
    }
    Ok(code.check())
}

/// What the scheduler runs: with a guard, a branch goes around it.
fn is_control(op: &Op) -> bool {
    matches!(
        op,
        Op::Brx { .. }
            | Op::Call { .. }
            | Op::Ret { .. }
            | Op::Exit
            | Op::Bar { .. }
            | Op::ClusterWait { .. }
    ) || matrix::is(op)
        || Collective::of(op).is_some()
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
