//! The blocks at which some lanes of a group can wait while others run.

use super::assembler::{Assembler, Label};
use crate::plan::Plan;
use crate::plan::regions::Region;
use crate::plan::shape::{Shape, Shapes};

/// The blocks at which lanes can wait.
#[derive(Default)]
pub(super) struct Masks {
    /// The blocks, in order, each with its label, and the label for jumps backwards.
    pub(super) blocks: Vec<(usize, [Label; 2])>,
    /// The place of the first of them in [`Compiled::waits`](crate::code::compiled::Compiled::waits).
    pub(super) first: usize,
    /// By block: its number, and true if some lanes can run it. At other blocks, lanes only meet.
    pub(super) numbers: Vec<Option<(usize, bool)>>,
    /// By block: true if it ends with a branch at which lanes can diverge.
    pub(super) parts: Vec<bool>,
    /// The code that leaves while no lanes run.
    pub(super) over: Option<Label>,
}

impl Masks {
    /// Returns the blocks of those regions at whose branches lanes of a group can diverge.
    pub(super) fn of(plan: &Plan<'_>, shapes: &Shapes, regions: &[&Region], asm: &mut Assembler) -> Self {
        let count = plan.layout.blocks.len();
        let mut masks = Masks {
            numbers: vec![None; count],
            parts: vec![false; count],
            ..Masks::default()
        };
        let mixed = |region: &&&Region| shapes.of_register(region.predicate) != Shape::Uniform;
        for region in regions.iter().filter(mixed) {
            masks.parts[region.block] = true;
            for block in &region.blocks {
                masks.numbers[*block] = Some((0, true));
            }
            masks.numbers[region.join].get_or_insert((0, false));
        }
        for block in &plan.layout.order {
            if let Some((number, _)) = &mut masks.numbers[*block] {
                *number = masks.blocks.len();
                masks.blocks.push((*block, [asm.label(), asm.label()]));
            }
        }
        masks
    }
}
