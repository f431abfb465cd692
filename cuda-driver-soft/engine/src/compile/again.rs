//! Groups that begin again in other code because an assumption does not hold for them. An example is a group at the
//! edge of an image: an index that is limited by a minimum or maximum has a constant step from lane to lane in all
//! other groups.
//!
//! The code of such a kernel has two sections. The shapes of the second one depend on no assumptions. A group goes
//! there only if everything that it has done so far is [repeatable](crate::plan::repeatable). It begins with the first
//! instruction, where no values are live, so that no value is converted from one shape to another, and no check of the
//! first section counts in the second one. The counters of the group are set back to their values at the beginning.
//!
//! Other groups, and those that have entered the code elsewhere, leave.

use super::assembler::{Alu, Gpr, Label, When, Width, Word};
use super::emitter::Emitter;
use super::masks::Masks;
use super::registers::field;
use super::sections::{Restart, Section};
use crate::code::compiled::{CompiledContext, Exit};
use ptx::ir::Reg;
use std::mem::offset_of;

impl Emitter<'_> {
    /// Adds code for groups for which the assumption of a step does not hold, and returns its label. `live` and `rest`
    /// are as for other exits.
    pub(super) fn assumption_stub(&mut self, step: usize, live: &[Reg], rest: u32) -> Label {
        let at = self.insts(step).0;
        let first = self.section == Section::First;
        if !first || self.input.second.is_none() || !self.input.plan.is_repeatable(step) {
            return self.exit_stub(live, at, Exit::Leave, rest as i32);
        }
        let asm = &mut self.asm;
        let restart = *self.restart.get_or_insert_with(|| Restart {
            entry: asm.label(),
            together: asm.label(),
            parted: asm.label(),
        });
        self.exit_or_restart(live, at, Exit::Leave, rest as i32, Some(restart))
    }

    /// Adds the jump with which a group begins again if it has entered the code at the first instruction. Uses `AX`.
    pub(super) fn begin_again(&mut self, restart: Restart) {
        let entry = Word::Mem(field(offset_of!(CompiledContext, entry)));
        self.asm.address_of(Gpr::AX, restart.entry);
        self.asm.alu(Alu::Cmp, Width::Bits64, Gpr::AX, entry);
        let to = if self.masked { restart.parted } else { restart.together };
        self.asm.jump_when(When::Equal, to);
    }

    /// Begins the second section with the code that sets back the state of a group. The section follows.
    pub(super) fn begin_second(&mut self, restart: Restart) {
        let Some(shapes) = self.input.second else { return };
        let waits = self.masks.blocks.len();
        self.asm.bind(restart.parted);
        self.asm.constant(Gpr::AX, 0);
        for number in 0..waits {
            let place = self.waiting(number);
            self.asm.store(4, place, Gpr::AX);
        }
        self.asm.constant(Gpr::AX, u64::from(u32::MAX));
        self.asm.store(4, field(offset_of!(CompiledContext, active)), Gpr::AX);
        self.asm.bind(restart.together);
        self.begin_counters_again();
        self.clear();
        (self.section, self.shapes) = (Section::Second, shapes);
        self.masks = Masks {
            first: waits,
            ..Masks::default()
        };
    }

    /// Sets the counters of a group back to their values at the first instruction. Uses `AX` and `CX`.
    fn begin_counters_again(&mut self) {
        if self.is_whole_warp() {
            let total = Word::Mem(field(offset_of!(CompiledContext, total)));
            self.asm.alu(Alu::Mov, Width::Bits64, Gpr::AX, total);
        } else {
            self.asm.constant(Gpr::AX, 0);
        }
        self.asm.store(8, field(offset_of!(CompiledContext, steps)), Gpr::AX);
        let share = Word::Mem(field(offset_of!(CompiledContext, share)));
        self.asm.alu(Alu::Mov, Width::Bits64, Gpr::AX, share);
        self.asm.store(8, field(offset_of!(CompiledContext, quantum)), Gpr::AX);
        self.begin_counts_of_group();
    }

    /// Returns the exit at a step of the current block that ends the code. After a barrier, groups continue in the
    /// first section. A group of the second section can do so only if its values have the shapes that are expected
    /// there.
    pub(super) fn exit_of_section(&self, exit: Exit, step: usize) -> Exit {
        if self.section == Section::First || exit != Exit::Barrier {
            return exit;
        }
        let first = self.input.plan.layout.steps_of(self.block).start;
        let mut behind = self.alive[step + 1 - first].iter();
        let same = |reg: &Reg| self.shapes.is_same(self.input.shapes, *reg);
        if behind.all(same) { exit } else { Exit::Leave }
    }
}
