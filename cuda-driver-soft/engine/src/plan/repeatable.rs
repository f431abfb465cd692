//! The beginning of a function that lanes can run again, because nothing in it has an effect.

use super::class::{Class, Scheduled};
use super::flow::Flow;
use super::liveness::Liveness;
use super::steps::{Layout, Step};

/// The steps before which lanes have done nothing that they cannot do again from the function's first step on: they
/// have only computed and loaded, and no value from before the first step is needed.
///
/// This also holds if lanes have diverged. Of the blocks at which lanes wait, the first one in order runs next, so that
/// only repeatable blocks have run before any lane is in a later block.
pub(super) struct Repeatable {
    /// Number of blocks, in order, whose steps are all repeatable.
    blocks: usize,
    /// In the next block, the steps before this one are repeatable. 0 if none are.
    end: usize,
}

impl Repeatable {
    /// Finds the steps.
    pub(super) fn of(layout: &Layout<'_>, flow: &Flow, live: &Liveness) -> Self {
        let first = layout.order.first().copied();
        if first.is_none_or(|first| live.at_begin(first).next().is_some()) {
            return Repeatable { blocks: 0, end: 0 };
        }
        let effect = |block: usize| layout.steps_of(block).find(|step| has_effect(&layout.steps[*step]));
        let found = layout.order.iter().enumerate();
        let found = found.filter_map(|(place, block)| Some((place, effect(*block)?))).next();
        let (mut blocks, mut end) = found.unwrap_or((layout.order.len(), 0));
        // A block to which control goes back from the block with the effect, or from a later one, may run after the
        // effect.
        let edges = || {
            layout.order.iter().flat_map(|from| {
                let successors = layout.blocks[*from].successors.iter();
                successors.map(|to| (flow.place[*from], flow.place[*to]))
            })
        };
        while let Some((_, to)) =
            edges().find(|(from, to)| *from >= blocks && (*to < blocks || *to == blocks && end > 0))
        {
            (blocks, end) = (to, 0);
        }
        Repeatable { blocks, end }
    }

    /// Returns true if a step is repeatable.
    pub(super) fn has(&self, layout: &Layout<'_>, flow: &Flow, step: usize) -> bool {
        let place = flow.place[layout.block_of[step]];
        place < self.blocks || place == self.blocks && step < self.end
    }
}

/// Returns true if a step does more than compute or load values for the lanes that run it, or end them.
fn has_effect(step: &Step<'_>) -> bool {
    let Step::Plain(inst) = step else { return false };
    match Class::of_inst(inst) {
        // Lanes that have ended never run again.
        Class::Computed | Class::Load | Class::Nothing | Class::Branch | Class::Scheduled(Scheduled::End) => false,
        Class::Store | Class::Handled | Class::Scheduled(_) => true,
    }
}
