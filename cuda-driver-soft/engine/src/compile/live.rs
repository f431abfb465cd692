//! The registers that are needed at each step.

use super::emitter::Emitter;
use crate::plan::defined;
use ptx::ir::Reg;
use std::collections::BTreeSet;

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

    /// Returns true if something behind the current step may read a register.
    pub(super) fn is_read_behind(&self, reg: Reg) -> bool {
        let first = self.input.plan.layout.steps_of(self.block).start;
        self.alive[self.step + 1 - first].binary_search(&reg).is_ok()
    }
}
