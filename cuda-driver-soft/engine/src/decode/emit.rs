//! Turns the basic blocks of a function into decoded instructions, and sets the targets of branches.

use super::builder::Builder;
use super::unsupported::UnsupportedInst;
use crate::code::action::Action;
use crate::code::site::Site;
use crate::ops::control;
use crate::plan::steps::{Block, Layout, Step};
use ptx::ir::Op;

/// Adds the instructions of all reachable blocks, and returns the index of the first instruction of each, `u32::MAX`
/// for other blocks. `step` is called for each step, and adds its instructions unless it is a branch.
pub(super) fn emit(
    layout: &Layout<'_>,
    builder: &mut Builder<'_>,
    mut step: impl FnMut(&mut Builder<'_>, usize, &Step<'_>) -> Result<(), UnsupportedInst>,
) -> Result<Vec<u32>, UnsupportedInst> {
    // The first instruction of each block, and the branches whose targets are set at the end.
    let mut begins = vec![u32::MAX; layout.blocks.len()];
    let mut fixups: Vec<(usize, usize)> = Vec::new();
    for (place, block) in layout.order.iter().enumerate() {
        begins[*block] = builder.here();
        let Block { start, end, .. } = layout.blocks[*block];
        let next = layout.order.get(place + 1).copied();
        // The block after the last step; `None` for the end of the function, `usize::MAX` if no lane continues there.
        let mut falls_to = layout.block_of.get(end).copied();
        for number in start..end {
            step(builder, number, &layout.steps[number])?;
            match layout.steps[number] {
                Step::Plain(inst) => {
                    if matches!(inst.op, Op::Ret { .. } | Op::Exit | Op::Brx { .. }) {
                        falls_to = Some(usize::MAX);
                    }
                }
                Step::Branch { to, guard: None, line } => {
                    let target = layout.block_of[to];
                    if next != Some(target) {
                        fixups.push((builder.here() as usize, target));
                        builder.push_control(control::jump(), None, line);
                    } else if builder.observed() {
                        builder.push(control::nop(), line, |_| {});
                    }
                    falls_to = Some(usize::MAX);
                }
                Step::Branch {
                    to,
                    guard: Some((reg, negated)),
                    line,
                } => {
                    let mut target = layout.block_of[to];
                    let mut negated = negated;
                    if let Some(after) = falls_to
                        && next == Some(target)
                        && target != after
                    {
                        // Invert the branch, so that control falls through to the next block.
                        (target, falls_to, negated) = (after, Some(target), !negated);
                    }
                    fixups.push((builder.here() as usize, target));
                    let predicate = builder.register(reg);
                    builder.push_control(control::branch(), Some((predicate, negated)), line);
                    let inverted = target != layout.block_of[to];
                    builder.set_site(|site| site.inverted = inverted);
                }
            }
        }
        builder.begin_site(Site::default());
        match falls_to {
            Some(usize::MAX) => {}
            Some(block) if next == Some(block) => {}
            Some(block) => {
                fixups.push((builder.here() as usize, block));
                builder.push_control(control::jump(), None, 0);
            }
            None => builder.push_action(Action::Return, 0),
        }
    }
    for (inst, block) in fixups {
        builder.set_target(inst, begins[block]);
    }
    Ok(begins)
}
