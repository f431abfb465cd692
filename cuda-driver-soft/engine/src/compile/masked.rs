//! Code for some lanes of a group. Divergent lanes wait at the beginning of blocks. The code always runs the first
//! block, in order, at which lanes wait, so that lanes meet again where the sides of a branch do. When all lanes are at
//! one block, the code for whole groups continues.
//!
//! Between blocks, all values are in the rows of the frame. An instruction keeps the values of lanes that do not run if
//! such lanes may need them.

use super::assembler::{Alu, Gpr, Label, Mem, Shift, Source, When, Width, Word, Ymm};
use super::emitter::Emitter;
use super::lanes::Places;
use super::registers::{Kind, SOURCES, State, TEMP, field};
use super::stubs::Stub;
use super::value::Value;
use crate::code::compiled::{CompiledContext, CompiledWait, Exit};
use crate::plan::class::Class;
use crate::plan::defined;
use crate::plan::shape::Shape;
use crate::plan::steps::Step;
use iced_x86::Code;
use ptx::ir::{Inst, Op, Reg};
use std::mem::offset_of;
use std::ops::Range;

/// The field of the context with the mask of the lanes that run.
pub(super) const ACTIVE: Word = Word::Mem(Mem {
    base: super::registers::CONTEXT,
    index: None,
    offset: offset_of!(CompiledContext, active) as i32,
});

impl Emitter<'_> {
    /// Returns the field of the context with the mask of the lanes that wait at the block with this number.
    pub(super) fn waiting(&self, number: usize) -> Mem {
        let place = self.masks.first + number;
        field(offset_of!(CompiledContext, waiting) + 4 * place)
    }

    /// Returns true if lanes can diverge at the end of a block.
    pub(super) fn parts_behind(&self, block: usize) -> bool {
        self.masks.parts[block]
    }

    /// Returns the places at which lanes can wait.
    pub(super) fn waits(&self) -> Vec<CompiledWait> {
        let wait = |block: usize| {
            let steps = self.input.plan.layout.steps_of(block);
            let at = if steps.is_empty() {
                self.input.map.end
            } else {
                self.insts(steps.start).0
            };
            let scalars = self.scalars_of(&self.live_at(block, steps.start));
            CompiledWait { at, scalars }
        };
        self.masks.blocks.iter().map(|(block, _)| wait(*block)).collect()
    }

    /// Returns the label of the code that leaves while no lanes run.
    fn over(&mut self) -> Label {
        let asm = &mut self.asm;
        *self.masks.over.get_or_insert_with(|| asm.label())
    }

    /// Adds code for a branch at which the lanes of a whole group diverge, and returns its label. The predicate is in
    /// `mask`.
    pub(super) fn part_stub(&mut self, from: usize, mask: Gpr, to: [usize; 2]) -> Label {
        let label = self.asm.label();
        let state = self.state.clone();
        self.push_stub(Stub::Part {
            label,
            state,
            mask,
            from,
            to,
        });
        label
    }

    /// Lets the lanes in a register wait at the first of two blocks, and all others at the second, and continues with
    /// the block that comes first in order.
    pub(super) fn part_lanes(&mut self, state: &State, mask: Gpr, from: usize, to: [usize; 2]) {
        let full = Word::Imm(self.full());
        if mask != Gpr::AX {
            self.asm.alu(Alu::Mov, Width::Bits32, Gpr::AX, Word::Gpr(mask));
        }
        self.flush(state);
        self.asm.alu(Alu::Mov, Width::Bits32, Gpr::CX, Word::Gpr(Gpr::AX));
        self.asm.alu(Alu::Xor, Width::Bits32, Gpr::CX, full);
        self.park(to, [Gpr::AX, Gpr::CX]);
        self.go_masked(from, &to);
        let numbers = to.iter().filter_map(|block| self.masks.numbers[*block]);
        if let Some(first) = numbers.map(|(number, _)| number).min() {
            let [label, _] = self.masks.blocks[first].1;
            self.asm.jump(label);
        }
    }

    /// Adds lanes to those that wait at blocks. Uses `DX`.
    fn park<const N: usize>(&mut self, to: [usize; N], lanes: [Gpr; N]) {
        for (block, lanes) in to.into_iter().zip(lanes) {
            let Some((number, _)) = self.masks.numbers[block] else {
                continue;
            };
            let at = self.waiting(number);
            self.asm.alu(Alu::Mov, Width::Bits32, Gpr::DX, Word::Mem(at));
            self.asm.alu(Alu::Or, Width::Bits32, Gpr::DX, Word::Gpr(lanes));
            self.asm.store(4, at, Gpr::DX);
        }
    }

    /// Adds the jumps of edges that go backward: if lanes wait at the target of one, counts a round of its loop, and
    /// jumps to it. The first such block in order comes first, because no lanes may wait before the block that runs. If
    /// an edge that goes forward ends at the head of a loop, the code of the head begins the count.
    fn go_masked(&mut self, from: usize, to: &[usize]) {
        let mut to = to.to_vec();
        to.sort_unstable_by_key(|to| self.input.plan.flow.place[*to]);
        for to in to {
            if !self.input.plan.flow.is_backward(from, to) {
                self.wait_for_loop(to);
                continue;
            }
            let Some((number, _)) = self.masks.numbers[to] else {
                continue;
            };
            let none = self.asm.label();
            self.asm.constant(Gpr::AX, 0);
            self.asm
                .alu(Alu::Cmp, Width::Bits32, Gpr::AX, Word::Mem(self.waiting(number)));
            self.asm.jump_when(When::Equal, none);
            self.count_round(from, to);
            self.asm.subtract_from(field(offset_of!(CompiledContext, quantum)), 1);
            let over = self.over();
            self.asm.jump_when(When::LessOrEqual, over);
            let [_, label] = self.masks.blocks[number].1;
            self.asm.jump(label);
            self.asm.bind(none);
        }
    }

    /// Writes the code for some lanes.
    pub(super) fn masked_blocks(&mut self) {
        for number in 0..self.masks.blocks.len() {
            self.masked_block(number);
        }
        if !self.masks.blocks.is_empty() {
            let over = self.over();
            self.asm.jump(over);
        }
        self.masked = false;
    }

    /// Writes the code that leaves while no lanes run.
    pub(super) fn finish_masks(&mut self) {
        if let Some(over) = self.masks.over {
            self.asm.bind(over);
            self.way_out(over);
            self.asm.constant(Gpr::AX, 0);
            self.asm.store(4, field(offset_of!(CompiledContext, active)), Gpr::AX);
            self.asm.constant(Gpr::AX, (Exit::Parted as u64) << 32);
            self.asm.jump(self.epilogue);
        }
    }

    /// Writes the code that runs a block if lanes wait there, and then continues with the next one.
    fn masked_block(&mut self, number: usize) {
        let (block, [label, back]) = self.masks.blocks[number];
        let runs = matches!(self.masks.numbers[block], Some((_, true)));
        let narrow = Width::Bits32;
        let active = field(offset_of!(CompiledContext, active));
        let next = self.asm.label();
        let over = self.over();
        let some = if runs { self.asm.label() } else { over };
        self.masked = true;
        self.asm.bind(label);
        if self.rounds.index(block).is_some() {
            // Lanes that come from a block before this one begin the loop.
            self.asm.alu(Alu::Mov, narrow, Gpr::AX, Word::Mem(self.waiting(number)));
            self.asm.alu(Alu::Test, narrow, Gpr::AX, Word::Gpr(Gpr::AX));
            self.asm.jump_when(When::Equal, next);
            self.begin_loop(block);
        }
        self.asm.bind(back);
        self.asm.alu(Alu::Mov, narrow, Gpr::AX, Word::Mem(self.waiting(number)));
        self.asm.alu(Alu::Test, narrow, Gpr::AX, Word::Gpr(Gpr::AX));
        self.asm.jump_when(When::Equal, next);
        self.asm.alu(Alu::Cmp, narrow, Gpr::AX, Word::Imm(self.full()));
        self.asm.jump_when(When::NotEqual, some);
        self.asm.constant(Gpr::CX, 0);
        self.asm.store(4, self.waiting(number), Gpr::CX);
        self.asm.constant(Gpr::CX, u64::from(u32::MAX));
        self.asm.store(4, active, Gpr::CX);
        self.enter_block(block);
        if runs {
            self.asm.bind(some);
            self.asm.constant(Gpr::CX, 0);
            self.asm.store(4, self.waiting(number), Gpr::CX);
            self.asm.store(4, active, Gpr::AX);
            let again = self.is_tight(block).then(|| {
                let state = self.registers_of(block);
                self.reload(&state);
                (self.asm.here(), state)
            });
            self.run_masked(block, number, again);
        }
        self.asm.bind(next);
    }

    /// Returns true if a block is a loop by itself whose lanes leave for a block that begins no counted loop.
    fn is_tight(&self, block: usize) -> bool {
        let layout = &self.input.plan.layout;
        let steps = layout.steps_of(block);
        let behind = layout.block_of.get(steps.end);
        matches!(layout.steps[steps].last(), Some(Step::Branch { to, guard: Some(_), .. }) if layout.block_of[*to] == block)
            && behind.is_some_and(|behind| {
                !self.input.plan.flow.is_backward(block, *behind) && self.rounds.index(*behind).is_none()
            })
    }

    /// Ends a round of a loop that is one block: the lanes in `AX` begin the next one, and those in `CX` wait after the
    /// loop. The values are in their rows, and stay in machine registers.
    fn go_again(&mut self, block: usize, number: usize, behind: usize, (again, state): &(Label, State)) {
        let [over, none] = [(); 2].map(|()| self.asm.label());
        if let Some((behind, _)) = self.masks.numbers[behind] {
            self.asm
                .update(Alu::Or, Width::Bits32, self.waiting(behind), Gpr::CX, false);
        }
        self.asm.alu(Alu::Test, Width::Bits32, Gpr::AX, Word::Gpr(Gpr::AX));
        self.asm.jump_when(When::Equal, none);
        self.count_round(block, block);
        self.asm.subtract_from(field(offset_of!(CompiledContext, quantum)), 1);
        self.asm.jump_when(When::LessOrEqual, over);
        self.asm.store(4, field(offset_of!(CompiledContext, active)), Gpr::AX);
        self.state.cached.clean();
        self.become_state(state, |_| true);
        self.asm.jump(*again);
        self.asm.bind(over);
        self.way_out(over);
        self.asm.store(4, self.waiting(number), Gpr::AX);
        let leave = self.over();
        self.asm.jump(leave);
        self.asm.bind(none);
    }

    /// Runs the steps of a block for the active lanes, and lets them wait at the blocks that follow. If `again` has the
    /// beginning of a loop and the registers there, the loop is this block alone.
    fn run_masked(&mut self, block: usize, number: usize, again: Option<(Label, State)>) {
        let layout = &self.input.plan.layout;
        let steps = layout.steps_of(block);
        self.begin_steps(block, steps.clone());
        self.state = again.as_ref().map(|(_, state)| state.clone()).unwrap_or_default();
        let count: u32 = steps.clone().map(|step| self.counted(step)).sum();
        self.asm.add_to(field(offset_of!(CompiledContext, steps)), count as i32);
        let mut rest = count;
        for step in steps.clone() {
            let live = self.begin_step(step);
            match &layout.steps[step] {
                Step::Plain(inst) => self.instruction(step, inst, &live, rest),
                Step::Branch { to, guard, .. } => {
                    let to = layout.block_of[*to];
                    match guard {
                        None => {
                            let state = std::mem::take(&mut self.state);
                            self.flush(&state);
                            self.park_active(block, to);
                        }
                        Some((predicate, negated)) => {
                            self.copy_mask(*predicate, Gpr::AX);
                            if *negated {
                                let full = Word::Imm(self.full());
                                self.asm.alu(Alu::Xor, Width::Bits32, Gpr::AX, full);
                            }
                            self.asm.alu(Alu::And, Width::Bits32, Gpr::AX, ACTIVE);
                            let state = self.state.clone();
                            self.flush(&state);
                            self.asm.alu(Alu::Mov, Width::Bits32, Gpr::CX, ACTIVE);
                            self.asm.alu(Alu::Xor, Width::Bits32, Gpr::CX, Word::Gpr(Gpr::AX));
                            let Some(other) = layout.block_of.get(steps.end).copied() else {
                                return;
                            };
                            if let Some(again) = &again {
                                self.go_again(block, number, other, again);
                                return;
                            }
                            self.park([to, other], [Gpr::AX, Gpr::CX]);
                            self.go_masked(block, &[to, other]);
                        }
                    }
                    return;
                }
            }
            rest -= self.counted(step);
            self.end_step(step);
        }
        let state = std::mem::take(&mut self.state);
        self.flush(&state);
        if let Some(next) = layout.block_of.get(steps.end).copied() {
            self.park_active(block, next);
        }
    }

    /// Lets the active lanes wait at another block.
    fn park_active(&mut self, from: usize, to: usize) {
        self.asm.alu(Alu::Mov, Width::Bits32, Gpr::AX, ACTIVE);
        self.park([to], [Gpr::AX]);
        self.go_masked(from, &[to]);
    }

    /// Sets the highest bit of each element of a part to the bit of its lane in a vector with the same mask in all
    /// elements of 32 bits. The other bits of `d` are arbitrary.
    fn signs_of_lanes(&mut self, width: Width, part: usize, d: Ymm, mask: Ymm) {
        self.signs_of_swapped(width, part, 0, d, mask);
    }

    /// As [`signs_of_lanes`](Self::signs_of_lanes), for elements of 32 bits in another order: `swap` is combined with
    /// the number of each of them by exclusive or. Elements of 64 bits have no other order.
    fn signs_of_swapped(&mut self, width: Width, part: usize, swap: usize, d: Ymm, mask: Ymm) {
        let distances = self.constant_vector(std::array::from_fn(|i| match width {
            Width::Bits32 => 31 - (8 * part + (i ^ swap)) as u32,
            Width::Bits64 => 31 - (4 * part + i / 2) as u32,
        }));
        let code = Code::VEX_Vpsllvd_ymm_ymm_ymmm256;
        self.asm.vector(code, d, mask, Source::Mem(distances));
    }

    /// Sets the highest bit of each element of `SOURCES[0]` to 1 if its lane of a part is active, else to 0. The other
    /// bits are arbitrary.
    fn load_active(&mut self, width: Width, part: usize) {
        let active = field(offset_of!(CompiledContext, active));
        self.asm.broadcast(Width::Bits32, SOURCES[0], active);
        self.signs_of_lanes(width, part, SOURCES[0], SOURCES[0]);
    }

    /// Stores a part of a vector for the lanes that run. Uses `SOURCES[0]`, and also `TEMP`, or `SOURCES[1]` if the
    /// vector is in `TEMP`.
    pub(super) fn store_active(&mut self, width: Width, part: usize, places: &Places, to: Mem, from: Ymm) {
        if !self.masked {
            return self.asm.store_vector(to, from);
        }
        self.load_active(width, part);
        if places.are_of_block() {
            self.store_by_signs(width, to, from);
        } else {
            self.asm.store_masked(width, to, SOURCES[0], from);
        }
    }

    /// Stores the elements of a vector whose highest bit is set in `SOURCES[0]`, and writes back the old values of the
    /// others. Uses `TEMP`, or `SOURCES[1]` if the vector is in `TEMP`. Some CPUs take longer for one masked store than
    /// for these three instructions.
    fn store_by_signs(&mut self, width: Width, to: Mem, from: Ymm) {
        let whole = if from == TEMP { SOURCES[1] } else { TEMP };
        self.asm.load(whole, Source::Mem(to));
        self.asm.blend_by(width, whole, whole, Source::Ymm(from), SOURCES[0]);
        self.asm.store_vector(to, whole);
    }

    /// Stores elements of 32 bits of a part in another order, for the lanes that run. The elements are in `from` if
    /// `swap` is 0, else in `SOURCES[1]`, which has them in the new order. Uses `SOURCES[0]`, `SOURCES[1]` and `TEMP`.
    pub(super) fn store_swapped(&mut self, part: usize, swap: usize, to: Mem, from: Ymm) {
        let [signs, swapped, _] = SOURCES;
        let from = if swap == 0 { from } else { swapped };
        if !self.masked {
            return self.asm.store_vector(to, from);
        }
        let active = field(offset_of!(CompiledContext, active));
        self.asm.broadcast(Width::Bits32, signs, active);
        self.signs_of_swapped(Width::Bits32, part, swap, signs, signs);
        self.store_by_signs(Width::Bits32, to, from);
    }

    /// Adds a jump over the store of a lane that does not run, and returns its target.
    pub(super) fn skip_inactive(&mut self, lane: u32) -> Option<Label> {
        if !self.masked {
            return None;
        }
        let label = self.asm.label();
        self.asm.test_bit(field(offset_of!(CompiledContext, active)), lane);
        self.asm.jump_when(When::AboveOrEqual, label);
        Some(label)
    }

    /// Binds the target of a jump over a store.
    pub(super) fn end_skip(&mut self, label: Option<Label>) {
        if let Some(label) = label {
            self.asm.bind(label);
        }
    }

    /// Prepares stores of lanes one after another, by [`lane_to_store`](Self::lane_to_store). Sets `DX`, which these
    /// stores need. Uses `SOURCES[0]` and `SOURCES[1]`.
    pub(super) fn begin_stores(&mut self, places: &Places, lanes: Range<u32>) {
        if !self.masked {
            return;
        }
        let unread = field(offset_of!(CompiledContext, unread));
        match places.indexed() {
            // Relative to the places.
            Some(first) => {
                self.asm.lea(Width::Bits64, Gpr::DX, unread.plus(-first.offset));
                self.asm.alu(Alu::Sub, Width::Bits64, Gpr::DX, Word::Gpr(first.base));
                if let Some(indexes) = places.own_indexes() {
                    self.move_inactive(lanes, indexes);
                }
            }
            None => self.asm.lea(Width::Bits64, Gpr::DX, unread),
        }
    }

    /// Replaces the indexes of 64 bits of lanes that do not run by that in `DX`. Nothing else may read these indexes.
    fn move_inactive(&mut self, lanes: Range<u32>, indexes: Mem) {
        let (wide, [active, unread, _]) = (Width::Bits64, SOURCES);
        self.asm.broadcast_gpr(wide, unread, Gpr::DX);
        for part in lanes.start as usize / 4..lanes.end as usize / 4 {
            let at = indexes.plus(32 * part as i32);
            self.load_active(wide, part);
            self.asm.blend_by(wide, active, unread, Source::Mem(at), active);
            self.asm.store_vector(at, active);
        }
    }

    /// Returns the place of a lane for a store; for a lane that does not run, a place that nothing reads. Branches
    /// would be mispredicted often, because lanes usually diverge by their data. Uses `CX`.
    pub(super) fn lane_to_store(&mut self, places: &Places, lane: u32) -> Mem {
        let at = self.lane(places, lane);
        if !self.masked || places.own_indexes().is_some() {
            return at;
        }
        let is_indexed = places.indexed().is_some();
        if !is_indexed {
            self.asm.lea(Width::Bits64, Gpr::CX, at);
        }
        self.asm.test_bit(field(offset_of!(CompiledContext, active)), lane);
        self.asm.move_when(When::AboveOrEqual, Width::Bits64, Gpr::CX, Gpr::DX);
        if is_indexed { at } else { Mem::at(Gpr::CX, 0) }
    }

    /// Returns the place of addresses in which the lanes that do not run have the address of one that runs. Uses `CX`.
    pub(super) fn active_addresses(&mut self, width: Width, from: Mem) -> Mem {
        if !self.masked {
            return from;
        }
        let to = field(offset_of!(CompiledContext, addresses));
        self.first_active(Gpr::CX);
        let shift = width.bytes().trailing_zeros();
        self.asm.shift(Shift::Left, Width::Bits64, Gpr::CX, shift);
        let first = Mem {
            index: Some(Gpr::CX),
            ..from
        };
        self.asm.broadcast(width, TEMP, first);
        for part in 0..self.parts(width) {
            self.load_active(width, part);
            let addresses = Source::Mem(from.plus(32 * part as i32));
            self.asm.blend_by(width, SOURCES[0], TEMP, addresses, SOURCES[0]);
            self.asm.store_vector(to.plus(32 * part as i32), SOURCES[0]);
        }
        to
    }

    /// Sets `AX` to the value of the first active lane in a row, and `CX` to the number of the lane. Uses `DX`.
    pub(super) fn load_first_active(&mut self, width: Width, row: Mem) {
        self.first_active(Gpr::CX);
        self.asm.alu(Alu::Mov, Width::Bits64, Gpr::DX, Word::Gpr(Gpr::CX));
        let shift = width.bytes().trailing_zeros();
        self.asm.shift(Shift::Left, Width::Bits64, Gpr::DX, shift);
        let at = Mem {
            index: Some(Gpr::DX),
            ..row
        };
        self.asm.alu(Alu::Mov, width, Gpr::AX, Word::Mem(at));
    }

    /// Sets a register to the number of the first active lane of the group.
    fn first_active(&mut self, to: Gpr) {
        let active = field(offset_of!(CompiledContext, active));
        self.asm.first_bit(to, active);
    }

    /// Changes `AX` from the lowest address of a range of lanes to the address of the first active one. `lowest` is the
    /// distance of the lowest address from that of the first lane. Uses `CX`.
    pub(super) fn move_to_active(&mut self, step: i32, lowest: i32) {
        self.first_active(Gpr::CX);
        self.asm.multiply(Width::Bits64, Gpr::CX, Word::Gpr(Gpr::CX), step);
        self.asm.alu(Alu::Add, Width::Bits64, Gpr::AX, Word::Gpr(Gpr::CX));
        self.asm.alu(Alu::Sub, Width::Bits64, Gpr::AX, Word::Imm(lowest));
    }

    /// Stores an element of the last active lane. `row` has the values of all lanes if they are not a scalar. Uses `CX`
    /// and `DX`.
    pub(super) fn store_last_active(&mut self, element: u32, at: Mem, value: Value, row: Option<Mem>) {
        let (width, wide) = (value.width, Width::Bits64);
        self.asm.last_bit(Gpr::DX, field(offset_of!(CompiledContext, active)));
        match (row, value.shape) {
            (Some(row), _) => {
                self.asm
                    .shift(Shift::Left, wide, Gpr::DX, width.bytes().trailing_zeros());
                let last = Mem {
                    index: Some(Gpr::DX),
                    ..row
                };
                self.asm.alu(Alu::Mov, width, Gpr::CX, Word::Mem(last));
            }
            (None, Shape::Affine(step)) => {
                self.asm.constant(Gpr::CX, step.cast_unsigned());
                self.asm.alu(Alu::Imul, wide, Gpr::DX, Word::Gpr(Gpr::CX));
                self.copy_first_lane(value, Gpr::CX);
                self.asm.alu(Alu::Add, width, Gpr::CX, Word::Gpr(Gpr::DX));
            }
            (None, _) => self.copy_first_lane(value, Gpr::CX),
        }
        self.asm.store(element, at, Gpr::CX);
    }

    /// Returns true if machine code can run an instruction for the lanes that the current code runs.
    pub(super) fn can_be_masked(&self, inst: &Inst) -> bool {
        if !self.masked {
            return true;
        }
        let kept = |reg: &Reg| self.shapes.is_kept(*reg);
        let several = inst.dsts.len() > 1 && inst.dsts.iter().flatten().any(kept);
        let class = matches!(Class::of_inst(inst), Class::Computed | Class::Load | Class::Store);
        (class || matches!(inst.op, Op::Atom { .. } | Op::Red { .. }))
            && (!several || matches!(inst.op, Op::Setp { .. }))
    }

    /// Returns the registers that an instruction writes in machine registers and that other lanes need.
    fn kept_results(&self, inst: &Inst) -> Vec<Reg> {
        let mut found = Vec::new();
        if self.masked {
            defined::writes_of(inst, |reg| found.push(reg));
        }
        found.retain(|reg| self.shapes.is_kept(*reg) && self.kind(*reg) != Kind::Row && !self.is_alias(*reg));
        found
    }

    /// Prepares an instruction in code for some lanes: the rows of its results get the values of the other lanes.
    pub(super) fn before_masked(&mut self, inst: &Inst) {
        for reg in self.kept_results(inst) {
            self.write_row(reg);
        }
    }

    /// Completes the results of an instruction with the values of the lanes that do not run.
    pub(super) fn after_masked(&mut self, inst: &Inst) {
        for reg in self.kept_results(inst) {
            let Some(cached) = self.state.get(reg).copied() else {
                continue;
            };
            let home = self.home(reg);
            match (self.kind(reg), cached.gpr) {
                (Kind::Vector(width), _) => {
                    let [lanes, inactive, _] = SOURCES;
                    let ones = self.same_constant(Width::Bits32, u64::from(u32::MAX));
                    let active = field(offset_of!(CompiledContext, active));
                    self.asm.broadcast(Width::Bits32, inactive, active);
                    let xor = Code::VEX_Vpxor_ymm_ymm_ymmm256;
                    self.asm.vector(xor, inactive, inactive, Source::Mem(ones));
                    for (part, ymm) in cached.parts().iter().enumerate() {
                        self.signs_of_lanes(width, part, lanes, inactive);
                        let old = Source::Mem(home.plus(32 * part as i32));
                        self.asm.blend_by(width, *ymm, *ymm, old, lanes);
                    }
                }
                (Kind::Half, _) => {
                    for (part, ymm) in cached.parts().iter().enumerate() {
                        self.load_half_part(reg, part, TEMP);
                        self.load_active(Width::Bits32, part);
                        self.asm.blend(*ymm, TEMP, Source::Ymm(*ymm), SOURCES[0]);
                    }
                }
                (Kind::Mask, Some(gpr)) => {
                    self.asm.load_narrow(self.lanes / 8, false, Gpr::AX, home);
                    self.asm.alu(Alu::Xor, Width::Bits32, gpr, Word::Gpr(Gpr::AX));
                    self.asm.alu(Alu::And, Width::Bits32, gpr, ACTIVE);
                    self.asm.alu(Alu::Xor, Width::Bits32, gpr, Word::Gpr(Gpr::AX));
                }
                _ => {}
            }
        }
    }

    /// Returns the scalars and uniform predicates that an instruction writes, in code for some lanes; none in other
    /// code.
    pub(super) fn scalar_results(&self, inst: &Inst) -> Vec<Reg> {
        let mut found = Vec::new();
        if self.masked {
            defined::writes_of(inst, |reg| found.push(reg));
        }
        found.retain(|reg| match self.kind(*reg) {
            _ if self.is_alias(*reg) => false,
            Kind::Scalar(..) => true,
            Kind::Mask => self.shape(*reg) == Shape::Uniform,
            Kind::Vector(_) | Kind::Half | Kind::Row => false,
        });
        found
    }

    /// Computes the first lanes of scalars, and all lanes of uniform predicates, whose rows the interpreter has written
    /// for the active lanes. Uses `AX`, `CX` and `DX`.
    pub(super) fn restore_scalars(&mut self, scalars: &[Reg]) {
        for reg in scalars {
            let home = self.home(*reg);
            let Kind::Scalar(width, step) = self.kind(*reg) else {
                let (narrow, full) = (Width::Bits32, self.full());
                self.asm.load_narrow(self.lanes / 8, false, Gpr::AX, home);
                self.asm.alu(Alu::And, narrow, Gpr::AX, ACTIVE);
                self.asm.alu(Alu::Cmp, narrow, Gpr::AX, Word::Imm(0));
                self.asm.all_when(When::NotEqual, Gpr::AX);
                self.asm.alu(Alu::And, narrow, Gpr::AX, Word::Imm(full));
                self.asm.store(self.lanes / 8, home, Gpr::AX);
                continue;
            };
            self.load_first_active(width, home);
            if step != 0 {
                self.asm.constant(Gpr::DX, step.cast_unsigned());
                self.asm.alu(Alu::Imul, Width::Bits64, Gpr::CX, Word::Gpr(Gpr::DX));
                self.asm.alu(Alu::Sub, width, Gpr::AX, Word::Gpr(Gpr::CX));
            }
            self.asm.store(width.bytes(), home, Gpr::AX);
        }
    }
}
