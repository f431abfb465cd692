//! Instructions that all groups of a warp run together. When a group arrives at one, the code continues with the next
//! group. When the last group has arrived, the instruction runs for the whole warp: as machine code, in the
//! interpreter, or in the scheduler, for which the code ends with `Exit::Action`.
//!
//! A *stretch* is the code from one such instruction to the next. All groups begin it at `CompiledContext::resume`,
//! one after another. If they do not end it at the same instruction, the code ends with `Exit::Part`, and the
//! scheduler lets each of them leave.
//!
//! If the lanes of a warp must run in the interpreter's order, all groups also meet at each instruction that keeps the
//! order of threads, and at each branch at which they could take different sides.

use super::assembler::{Alu, Gpr, Label, Mem, Shift, When, Width, Word};
use super::collective::Together;
use super::emitter::Emitter;
use super::registers::{State, field};
use super::sites::{Shared, Site};
use crate::code::collective::Collective;
use crate::code::compiled::{CompiledContext, Exit};
use crate::code::share::RunBy;
use crate::lanes::{FULL, LANES};
use crate::plan::class::{Class, Scheduled};
use crate::plan::ordered;
use crate::plan::shape::Shape;
use ptx::ir::{Inst, Op, Reg};
use std::mem::offset_of;

/// The counters of the running group in the context, and the fields that keep them for each group.
const COUNTERS: [(usize, usize); 2] = [
    (
        offset_of!(CompiledContext, steps),
        offset_of!(CompiledContext, group_steps),
    ),
    (
        offset_of!(CompiledContext, quantum),
        offset_of!(CompiledContext, group_quanta),
    ),
];

/// Returns the place in the context of one group's element in an array of numbers of 8 bytes, which begins at `offset`.
/// `CX` has the index of the group times 8.
fn of_group(offset: usize) -> Mem {
    Mem {
        index: Some(Gpr::CX),
        ..field(offset)
    }
}

impl Emitter<'_> {
    /// Returns true for instructions that all groups of a warp run together.
    pub(super) fn meets(&self, inst: &Inst) -> bool {
        match (&inst.op, Class::of_inst(inst)) {
            _ if self.is_in_group(inst) => false,
            (Op::Activemask, _) => inst.guard.is_none(),
            (op, Class::Scheduled(Scheduled::Collective)) => Collective::of(op).is_some(),
            (_, Class::Scheduled(Scheduled::Matrix)) => true,
            (_, Class::Scheduled(_)) => false,
            _ => {
                let plan = self.input.plan;
                self.input.of_warp.is_some() && ordered::keeps_order(plan.source.module, inst, &plan.order_facts)
            }
        }
    }

    /// Returns true if groups must meet at a branch, because they could take different sides of it, and the order in
    /// which lanes run matters.
    pub(super) fn meets_at_branch(&self, predicate: Reg) -> bool {
        let of_warp = self.input.of_warp;
        of_warp.is_some_and(|shapes| shapes.of_register(predicate) != Shape::Uniform) && !self.is_alias(predicate)
    }

    /// Returns the number of groups in a warp.
    pub(super) fn groups(&self) -> u32 {
        LANES as u32 / self.lanes
    }

    /// Ends a piece with an instruction that all groups run together. `live` and `rest` are as for other exits.
    pub(super) fn meet(&mut self, number: usize, step: usize, inst: &Inst, live: &[Reg], rest: u32) {
        let together = self.together(inst);
        let native = !matches!(together, Together::Interpreted | Together::Scheduled);
        self.count_share(step, if native { RunBy::MachineCode } else { RunBy::Together });
        let insts = self.insts(step);
        let state = std::mem::take(&mut self.state);
        let resume = self.behind(number, step);
        let site = self.arrive(state, insts.0, live, rest, resume, &self.scalar_sources(inst));
        let Shared { restart, .. } = *self.shared_code();
        match together {
            Together::Scheduled => {
                self.asm.constant(Gpr::AX, site | (Exit::Action as u64) << 32);
                let end = self.epilogue;
                return self.asm.jump(end);
            }
            Together::Interpreted => {
                self.asm.constant(Gpr::AX, u64::from(FULL));
                let mask = field(offset_of!(CompiledContext, mask));
                self.asm.store(4, mask, Gpr::AX);
                self.asm.constant(Gpr::AX, 0);
                let missing = self.asm.label();
                self.call_interpreter(insts, u32::MAX, Some(missing));
                self.missing.push((missing, site));
            }
            native => self.run_together(&native, inst),
        }
        self.asm.address_of(Gpr::DX, resume);
        self.asm.jump(restart);
    }

    /// Ends a piece with a branch at which groups meet. The arguments are those of a plain branch.
    pub(super) fn meet_at_branch(
        &mut self,
        step: usize,
        (predicate, negated): (Reg, bool),
        to: usize,
        live: &[Reg],
        rest: u32,
    ) {
        let layout = &self.input.plan.layout;
        let insts = self.insts(step);
        let state = std::mem::take(&mut self.state);
        let taken = self.edge_stub(self.block, to);
        let other = match layout.block_of.get(layout.steps_of(self.block).end) {
            Some(next) => self.edge_stub(self.block, *next),
            None => self.exit_stub(&[], insts.1, Exit::End, 0),
        };
        self.arrive(state, insts.0, live, rest, other, &[]);
        let Shared { part, restart, .. } = *self.shared_code();
        let home = self.lanes_of_all_groups(predicate);
        let (all, none) = if negated { (0, -1) } else { (-1, 0) };
        let goes = self.asm.label();
        self.asm.alu(Alu::Mov, Width::Bits32, Gpr::CX, Word::Mem(home));
        self.asm.address_of(Gpr::DX, taken);
        self.asm.alu(Alu::Cmp, Width::Bits32, Gpr::CX, Word::Imm(all));
        self.asm.jump_when(When::Equal, goes);
        self.asm.address_of(Gpr::DX, other);
        self.asm.alu(Alu::Cmp, Width::Bits32, Gpr::CX, Word::Imm(none));
        // `AX` still has the number of the site.
        self.asm.jump_when(When::NotEqual, part);
        self.asm.bind(goes);
        self.asm.jump(restart);
    }

    /// Writes the code with which a group arrives at an instruction, and which continues only after all groups have
    /// arrived. Returns the number of the site, which is then in `AX`. Completes the rows of `sources`.
    fn arrive(&mut self, state: State, at: u32, live: &[Reg], rest: u32, resume: Label, sources: &[Reg]) -> u64 {
        let mut kept = state;
        kept.cached.retain(|reg| live.contains(&reg));
        self.flush(&kept);
        for reg in sources {
            self.spread(*reg, &kept);
        }
        let leaves = self.asm.label();
        self.sites.push(Site {
            at,
            part: leaves,
            resume,
            live: live.to_vec(),
            rest: rest as i32,
        });
        // 0 means that a group has not arrived.
        let site = self.sites.len() as u64;
        let Shared { switch, part, .. } = *self.shared_code();
        let wide = Width::Bits64;
        let last = self.groups() as i32 - 1;
        self.asm.constant(Gpr::AX, site);
        let group = Word::Mem(field(offset_of!(CompiledContext, group)));
        self.asm.alu(Alu::Mov, wide, Gpr::CX, group);
        self.asm.alu(Alu::Cmp, wide, Gpr::CX, Word::Imm(last));
        self.asm.jump_when(When::NotEqual, switch);
        for other in 0..last {
            let arrived = field(offset_of!(CompiledContext, arrived)).plus(8 * other);
            self.asm.alu(Alu::Cmp, wide, Gpr::AX, Word::Mem(arrived));
            self.asm.jump_when(When::NotEqual, part);
        }
        site
    }

    /// Returns the code after a step at the end of a piece, which begins with empty registers.
    fn behind(&mut self, number: usize, step: usize) -> Label {
        let layout = &self.input.plan.layout;
        let end = layout.steps_of(self.block).end;
        if step + 1 < end {
            return self.label_of_piece(number + 1);
        }
        match layout.block_of.get(end) {
            Some(next) => self.edge_stub(self.block, *next),
            None => self.exit_stub(&[], self.insts(step).1, Exit::End, 0),
        }
    }

    /// Returns the code that all meetings share.
    fn shared_code(&mut self) -> &Shared {
        let asm = &mut self.asm;
        self.meeting.get_or_insert_with(|| Shared {
            switch: asm.label(),
            part: asm.label(),
            restart: asm.label(),
        })
    }

    /// Writes the code that all meetings share, and the exits of each.
    pub(super) fn finish_meetings(&mut self) {
        let Some(Shared { switch, part, restart }) = self.meeting.take() else {
            return;
        };
        self.switch(switch);
        self.restart(restart);
        for (missing, site) in std::mem::take(&mut self.missing) {
            self.asm.bind(missing);
            self.asm.constant(Gpr::AX, site);
            self.asm.jump(part);
        }
        self.asm.bind(part);
        self.way_out(part);
        self.asm.constant(Gpr::CX, (Exit::Part as u64) << 32);
        self.asm.alu(Alu::Or, Width::Bits64, Gpr::AX, Word::Gpr(Gpr::CX));
        let end = self.epilogue;
        self.asm.jump(end);
        for number in 0..self.sites.len() {
            let site = &mut self.sites[number];
            let (at, part, rest) = (site.at, site.part, site.rest);
            let live = std::mem::take(&mut site.live);
            self.asm.bind(part);
            self.leave(&State::default(), &live, &live, at, Exit::Leave, rest);
        }
    }

    /// Records how far the group in `CX` has come, and begins the stretch with the next one.
    fn switch(&mut self, label: Label) {
        let wide = Width::Bits64;
        let (lanes, bases) = (self.lanes as i32, self.bases());
        let asm = &mut self.asm;
        asm.bind(label);
        asm.shift(Shift::Left, wide, Gpr::CX, 3);
        asm.store(8, of_group(offset_of!(CompiledContext, arrived)), Gpr::AX);
        for (running, of_groups) in COUNTERS {
            asm.alu(Alu::Mov, wide, Gpr::DX, Word::Mem(field(running)));
            asm.store(8, of_group(of_groups), Gpr::DX);
            asm.alu(Alu::Mov, wide, Gpr::DX, Word::Mem(of_group(of_groups).plus(8)));
            asm.store(8, field(running), Gpr::DX);
        }
        asm.add_to(field(offset_of!(CompiledContext, group)), 1);
        asm.add_to(field(offset_of!(CompiledContext, halves)), 2 * lanes);
        let local = field(offset_of!(CompiledContext, local));
        let per_group = Word::Mem(field(offset_of!(CompiledContext, group_local)));
        asm.alu(Alu::Mov, wide, Gpr::DX, per_group);
        asm.alu(Alu::Add, wide, Gpr::DX, Word::Mem(local));
        asm.store(8, local, Gpr::DX);
        let mask = field(offset_of!(CompiledContext, mask));
        asm.alu(Alu::Mov, Width::Bits32, Gpr::DX, Word::Mem(mask));
        asm.shift(Shift::Left, Width::Bits32, Gpr::DX, self.lanes);
        asm.store(4, mask, Gpr::DX);
        for (base, bytes) in bases {
            asm.alu(Alu::Add, wide, base, Word::Imm(bytes));
        }
        asm.jump_to_place(field(offset_of!(CompiledContext, resume)));
    }

    /// Begins a stretch with the first group.
    fn restart(&mut self, label: Label) {
        let wide = Width::Bits64;
        let others = self.groups() as i32 - 1;
        let (lanes, bases) = (self.lanes as i32, self.bases());
        let full = self.full();
        let asm = &mut self.asm;
        asm.bind(label);
        asm.store(8, field(offset_of!(CompiledContext, resume)), Gpr::DX);
        for (running, of_groups) in COUNTERS {
            asm.alu(Alu::Mov, wide, Gpr::AX, Word::Mem(field(running)));
            asm.store(8, field(of_groups).plus(8 * others), Gpr::AX);
            asm.alu(Alu::Mov, wide, Gpr::AX, Word::Mem(field(of_groups)));
            asm.store(8, field(running), Gpr::AX);
        }
        asm.constant(Gpr::AX, 0);
        asm.store(8, field(offset_of!(CompiledContext, group)), Gpr::AX);
        asm.add_to(field(offset_of!(CompiledContext, halves)), -2 * lanes * others);
        let local = field(offset_of!(CompiledContext, local));
        let per_group = Word::Mem(field(offset_of!(CompiledContext, group_local)));
        asm.multiply(wide, Gpr::AX, per_group, -others);
        asm.alu(Alu::Add, wide, Gpr::AX, Word::Mem(local));
        asm.store(8, local, Gpr::AX);
        asm.constant(Gpr::AX, u64::from(full.cast_unsigned()));
        asm.store(4, field(offset_of!(CompiledContext, mask)), Gpr::AX);
        for (base, bytes) in bases {
            asm.alu(Alu::Sub, wide, base, Word::Imm(others * bytes));
        }
        asm.jump_to_address(Gpr::DX);
    }
}
