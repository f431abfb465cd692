//! The registers that are needed at each step.

use super::emitter::Emitter;
use crate::plan::defined;
use ptx::ir::Reg;
use std::ops::Range;

impl Emitter<'_> {
    /// Returns the registers that are live before a step of a block, without the aliases of constants.
    pub(super) fn live_at(&self, block: usize, step: usize) -> Vec<Reg> {
        let start = self.input.plan.layout.steps_of(block).start;
        if step == start {
            let live = self.input.plan.live.at_begin(block);
            return live.filter(|reg| !self.is_alias(*reg)).collect();
        }
        self.live_inside(block).swap_remove(step - start)
    }

    /// Returns the registers that are live before each step of a block and at its end, in ascending order, without the
    /// aliases of constants.
    pub(super) fn live_inside(&self, block: usize) -> Vec<Vec<Reg>> {
        let layout = &self.input.plan.layout;
        let live = self.input.plan.live.at_end(block);
        let mut live: Vec<Reg> = live.filter(|reg| !self.is_alias(*reg)).collect();
        let mut found = vec![live.clone()];
        for step in layout.steps_of(block).rev() {
            defined::writes(&layout.steps[step], |reg| {
                if let Ok(at) = live.binary_search(&reg) {
                    live.remove(at);
                }
            });
            defined::reads(&layout.steps[step], |reg| {
                if let Err(at) = live.binary_search(&reg)
                    && !self.is_alias(reg)
                {
                    live.insert(at, reg);
                }
            });
            found.push(live.clone());
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
            defined::reads(&layout.steps[step], |reg| self.uses.push((reg, step)));
        }
        self.uses.sort_unstable();
    }

    /// Begins a step of the current block. Returns the registers that are live before it.
    pub(super) fn begin_step(&mut self, step: usize) -> Vec<Reg> {
        let layout = &self.input.plan.layout;
        self.step = step;
        self.pinned.clear();
        defined::reads(&layout.steps[step], |reg| self.pinned.push(reg));
        defined::writes(&layout.steps[step], |reg| self.pinned.push(reg));
        self.alive[step - layout.steps_of(self.block).start].clone()
    }

    /// Ends a step of the current block: frees the machine registers of values that are not needed after it.
    pub(super) fn end_step(&mut self, step: usize) {
        let layout = &self.input.plan.layout;
        self.forget_checked(&layout.steps[step]);
        let alive = &self.alive[step + 1 - layout.steps_of(self.block).start];
        self.state.cached.retain(|reg| alive.binary_search(&reg).is_ok());
    }

    /// Returns true if a step after the current one may read a register.
    pub(super) fn is_read_later(&self, reg: Reg) -> bool {
        let first = self.input.plan.layout.steps_of(self.block).start;
        self.alive[self.step + 1 - first].binary_search(&reg).is_ok()
    }
}
