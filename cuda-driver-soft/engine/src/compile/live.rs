//! The registers that are needed at each step.

use super::emitter::Emitter;
use crate::plan::defined;
use ptx::ir::Reg;
use std::collections::BTreeSet;
use std::ops::Range;

impl Emitter<'_> {
    /// Returns the registers that are live before a step of a block, without the aliases of constants.
    pub(super) fn live_at(&self, block: usize, step: usize) -> Vec<Reg> {
        let mut live: Vec<Reg> = self.input.plan.live.at_begin(block).collect();
        if step != self.input.plan.layout.steps_of(block).start {
            live = self
                .live_inside(block)
                .swap_remove(step - self.input.plan.layout.steps_of(block).start);
        }
        live.retain(|reg| !self.is_alias(*reg));
        live
    }

    /// Returns the registers that are live before each step of a block and at its end, in ascending order.
    pub(super) fn live_inside(&self, block: usize) -> Vec<Vec<Reg>> {
        let layout = &self.input.plan.layout;
        let mut live: BTreeSet<Reg> = self.input.plan.live.at_end(block).collect();
        let mut found = vec![live.iter().copied().collect()];
        for step in layout.steps_of(block).rev() {
            defined::writes(&layout.steps[step], |reg| {
                live.remove(&reg);
            });
            defined::reads(&layout.steps[step], |reg| {
                live.insert(reg);
            });
            found.push(live.iter().copied().collect());
        }
        found.reverse();
        found
    }

    /// Prepares the steps of a piece of a block.
    pub(super) fn begin_steps(&mut self, block: usize, steps: Range<usize>) {
        let layout = &self.input.plan.layout;
        self.alive = self.live_inside(block);
        (self.block, self.piece_end) = (block, steps.end);
        self.uses.clear();
        for step in steps {
            defined::reads(&layout.steps[step], |reg| self.uses.entry(reg).or_default().push(step));
        }
    }

    /// Begins a step of the current block. Returns the registers that are live before it, without the aliases of
    /// constants.
    pub(super) fn begin_step(&mut self, step: usize) -> Vec<Reg> {
        let layout = &self.input.plan.layout;
        self.step = step;
        self.pinned.clear();
        defined::reads(&layout.steps[step], |reg| self.pinned.push(reg));
        defined::writes(&layout.steps[step], |reg| self.pinned.push(reg));
        let live = self.alive[step - layout.steps_of(self.block).start].iter();
        live.copied().filter(|reg| !self.is_alias(*reg)).collect()
    }

    /// Ends a step of the current block: removes what is not needed after it from the machine registers.
    pub(super) fn end_step(&mut self, step: usize) {
        let layout = &self.input.plan.layout;
        self.forget_checked(&layout.steps[step]);
        let alive = &self.alive[step + 1 - layout.steps_of(self.block).start];
        let cached = self.state.cached.keys().copied();
        let dead: Vec<Reg> = cached.filter(|reg| alive.binary_search(reg).is_err()).collect();
        dead.into_iter().for_each(|reg| self.forget(reg));
    }

    /// Returns true if something behind the current step may read a register.
    pub(super) fn is_read_behind(&self, reg: Reg) -> bool {
        let first = self.input.plan.layout.steps_of(self.block).start;
        self.alive[self.step + 1 - first].binary_search(&reg).is_ok()
    }
}
