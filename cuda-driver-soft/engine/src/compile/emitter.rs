//! Turns a kernel into machine code: pieces of basic blocks, the edges between them, and the exits.

use super::assembler::{Assembler, Gpr, Label, Mem, When, Width};
use super::masks::Masks;
use super::registers::{CONTEXT, Kind, State};
use super::rounds::Rounds;
use super::sections::{Restart, Section};
use super::sites::{Passage, Shared, Site};
use super::stubs::Stub;
use super::uniforms::uniforms_of;
use crate::code::compiled::{CompiledContext, CompiledLoop, CompiledWait, Exit};
use crate::code::constant::Constant;
use crate::code::function::{Code, SourceMap};
use crate::code::registers::Slot;
use crate::code::share::{RunBy, Share};
use crate::id_map::IdMap;
use crate::plan::Plan;
use crate::plan::class::{Class, Scheduled};
use crate::plan::regions::Region;
use crate::plan::shape::{Shape, Shapes};
use crate::plan::steps::Step;
use ptx::ir::{Inst, Op, Reg, RegClass};
use std::collections::HashMap;
use std::mem::offset_of;

/// The properties of the kernel that the code is made from.
pub(super) struct Input<'a> {
    pub(super) plan: &'a Plan<'a>,
    pub(super) shapes: &'a Shapes,
    pub(super) code: &'a Code,
    pub(super) map: &'a SourceMap,
    pub(super) lanes: u32,
    /// The shapes of the second section of the code, which depend on no assumptions; `None` if there is no such
    /// section.
    pub(super) second: Option<&'a Shapes>,
    /// See [`Variant::leaving`](crate::code::compiled::Variant::leaving).
    pub(super) leaving: bool,
    /// The shapes of registers in whole warps; `None` if the order in which lanes run does not matter, or if a group is
    /// a whole warp.
    pub(super) of_warp: Option<&'a Shapes>,
    /// The regions in which the code runs some lanes of a group.
    pub(super) masked: &'a [&'a Region],
}

/// A part of a basic block. A block is divided after instructions at which the code ends, or at which groups meet.
struct Piece {
    block: usize,
    steps: std::ops::Range<usize>,
    label: Label,
    /// The machine registers at the beginning, once the first edge to the piece, or its code, has decided them.
    entry: Option<State>,
}

/// A place at which the code can begin: see [`CompiledEntry`](crate::code::compiled::CompiledEntry).
pub(super) struct Way {
    pub(super) at: u32,
    pub(super) label: Label,
    pub(super) scalars: Vec<(Slot, u8, i64)>,
    pub(super) of_warp: Vec<(Slot, u8, i64)>,
}

/// Writes the machine code of one kernel.
pub(super) struct Emitter<'a> {
    pub(super) asm: Assembler,
    pub(super) input: &'a Input<'a>,
    /// The section that is being written, and its shapes.
    pub(super) section: Section,
    pub(super) shapes: &'a Shapes,
    /// The places at which groups begin again, if any can.
    pub(super) restart: Option<Restart>,
    pub(super) lanes: u32,
    pub(super) state: State,
    /// The registers that the current instruction names.
    pub(super) pinned: Vec<Reg>,
    pub(super) constants: HashMap<(Constant, u8), Slot>,
    /// Reads in the current piece in ascending order, each with the number of its step.
    pub(super) uses: Vec<(Reg, usize)>,
    /// The registers that are live before each step of the current block, and at its end, without the aliases of
    /// constants.
    pub(super) alive: Vec<Vec<Reg>>,
    /// The current step.
    pub(super) step: usize,
    /// The end of the current piece.
    pub(super) piece_end: usize,
    /// True while the machine code of an instruction with a guard is written.
    pub(super) guarded: bool,
    /// The block of the current piece.
    pub(super) block: usize,
    pieces: Vec<Piece>,
    first_piece: Vec<usize>,
    /// Each with true if it belongs to code for some lanes.
    pub(super) stubs: Vec<(Stub, bool)>,
    /// True for code that runs some lanes of a group.
    pub(super) masked: bool,
    pub(super) masks: Masks,
    pub(super) pool: Vec<[u32; 8]>,
    pub(super) pooled: IdMap<[u32; 8], usize>,
    pub(super) epilogue: Label,
    /// The code that continues with the next group.
    pub(super) next: Label,
    /// The code that runs when all warps of the call have ended at the same place, in code for groups of 32 lanes.
    pub(super) over: Label,
    pub(super) passages: Vec<Passage>,
    /// The constants that are in the context, by their index in [`CompiledContext::uniforms`].
    pub(super) uniforms: Vec<(Constant, u8)>,
    windows: u32,
    pub(super) rounds: Rounds,
    share: Share,
    /// The instructions that all groups of a warp run together, and the code that they share.
    pub(super) sites: Vec<Site>,
    pub(super) meeting: Option<Shared>,
    /// For each site whose instruction the interpreter runs: the code that runs if lanes are missing, and the number of
    /// the site, from 1 on.
    pub(super) missing: Vec<(Label, u64)>,
    /// The steps that [`count_share`](Self::count_share) has counted, each with the way in which it runs, in the order
    /// of the code.
    ran_by: Vec<(usize, RunBy)>,
}

/// The result of [`Emitter::finish`].
pub(super) struct Output {
    pub(super) bytes: Vec<u8>,
    pub(super) labels: Vec<usize>,
    pub(super) ways: Vec<Way>,
    pub(super) pool: Vec<[u32; 8]>,
    pub(super) windows: usize,
    pub(super) loops: Vec<CompiledLoop>,
    pub(super) uniforms: Vec<(Constant, u8)>,
    pub(super) share: Share,
    pub(super) sites: Vec<Site>,
    pub(super) waits: Vec<CompiledWait>,
    pub(super) ran_by: Vec<(usize, RunBy)>,
}

/// Bytes of machine code that a kernel may have for each of its instructions, in addition to [`ANY_BYTES`]. Test
/// kernels have at most 751. Each exit writes all live registers, so that a kernel with many of both has far more.
const MOST_BYTES_EACH: usize = 2_048;
/// Bytes of machine code that every kernel may have.
const ANY_BYTES: usize = 256 << 10;

/// The step of the next read of a register that the rest of the current piece does not read.
const LATER: usize = usize::MAX - 1;

impl<'a> Emitter<'a> {
    pub(super) fn new(input: &'a Input<'a>) -> Self {
        let mut asm = Assembler::new();
        let [epilogue, next, over] = [(); 3].map(|()| asm.label());
        let constants = input.code.constants.iter();
        Emitter {
            asm,
            input,
            section: Section::First,
            shapes: input.shapes,
            restart: None,
            lanes: input.lanes,
            state: State::default(),
            pinned: Vec::new(),
            constants: constants
                .map(|(slot, width, constant)| ((*constant, *width), *slot))
                .collect(),
            uses: Vec::new(),
            alive: Vec::new(),
            step: 0,
            piece_end: 0,
            guarded: false,
            block: 0,
            pieces: Vec::new(),
            first_piece: vec![usize::MAX; input.plan.layout.blocks.len()],
            stubs: Vec::new(),
            masked: false,
            masks: Masks::default(),
            pool: Vec::new(),
            pooled: IdMap::default(),
            epilogue,
            next,
            over,
            passages: Vec::new(),
            uniforms: uniforms_of(input.code),
            windows: 0,
            rounds: Rounds::of(input.plan, input.map, !input.masked.is_empty()),
            share: Share::default(),
            sites: Vec::new(),
            meeting: None,
            missing: Vec::new(),
            ran_by: Vec::new(),
        }
    }

    pub(super) fn class(&self, reg: Reg) -> RegClass {
        self.input.plan.source.class(reg)
    }

    pub(super) fn shape(&self, reg: Reg) -> Shape {
        self.shapes.of_register(reg)
    }

    pub(super) fn slot(&self, reg: Reg) -> u32 {
        self.input.map.slots[reg.0 as usize].0
    }

    /// Returns the mask of all lanes of a group.
    pub(super) fn full(&self) -> i32 {
        (u32::MAX >> (32 - self.lanes)).cast_signed()
    }

    /// Returns the step of the next read of a register in the current piece, or [`LATER`].
    pub(super) fn next_use(&self, reg: Reg) -> usize {
        let later = self.uses.partition_point(|used| *used <= (reg, self.step));
        match self.uses.get(later) {
            Some((of, step)) if *of == reg => *step,
            _ => LATER,
        }
    }

    pub(super) fn is_used_again(&self, reg: Reg) -> bool {
        self.next_use(reg) != LATER
    }

    /// Returns the number of a new window.
    pub(super) fn new_window(&mut self) -> u32 {
        self.windows += 1;
        self.windows - 1
    }

    /// Returns the range of interpreter instructions of a step.
    pub(super) fn insts(&self, step: usize) -> (u32, u32) {
        self.input.map.steps[step]
    }

    pub(super) fn is_live_at_begin(&self, block: usize, reg: Reg) -> bool {
        self.input.plan.live.is_live_at_begin(block, reg)
    }

    /// Returns true if the code is longer than it may be. Then the rest of it is not written.
    fn is_too_long(&self) -> bool {
        let insts = self.input.plan.source.body.insts.len();
        self.asm.length() > ANY_BYTES + MOST_BYTES_EACH * insts
    }

    /// Writes all code. Returns `None` if it would be too long, or if a jump in it is too far.
    pub(super) fn finish(mut self) -> Option<Output> {
        self.prologue();
        self.section();
        if self.is_too_long() {
            return None;
        }
        self.finish_meetings();
        self.finish_barriers();
        let ways = self.ways();
        let mut waits = self.waits();
        if let Some(restart) = self.restart {
            self.begin_second(restart);
            self.section();
            waits.extend(self.waits());
        }
        if self.is_too_long() {
            return None;
        }
        let (bytes, labels) = self.asm.finish()?;
        Some(Output {
            bytes,
            labels,
            ways,
            pool: self.pool,
            windows: self.windows as usize,
            loops: self.rounds.loops,
            uniforms: self.uniforms,
            share: self.share,
            sites: self.sites,
            waits,
            ran_by: self.ran_by,
        })
    }

    /// Writes the code of a section.
    fn section(&mut self) {
        let Input { plan, masked, .. } = *self.input;
        let first = self.masks.first;
        self.masks = Masks {
            first,
            ..Masks::of(plan, self.shapes, masked, &mut self.asm)
        };
        self.divide();
        for number in 0..self.pieces.len() {
            if self.is_too_long() {
                return;
            }
            self.piece(number);
        }
        self.masked_blocks();
        let mut next = 0;
        while next < self.stubs.len() && !self.is_too_long() {
            let none = Stub::Edge {
                label: self.epilogue,
                state: State::default(),
                from: 0,
                to: 0,
            };
            let (stub, masked) = std::mem::replace(&mut self.stubs[next], (none, false));
            self.masked = masked;
            self.stub(stub);
            next += 1;
        }
        self.masked = false;
        self.finish_masks();
    }

    /// Forgets the pieces, stubs and machine registers of the first section.
    pub(super) fn clear(&mut self) {
        self.pieces.clear();
        self.stubs.clear();
        self.first_piece.fill(usize::MAX);
        self.state = State::default();
    }

    fn divide(&mut self) {
        let layout = &self.input.plan.layout;
        for block in &layout.order {
            self.first_piece[*block] = self.pieces.len();
            let steps = layout.steps_of(*block);
            let mut start = steps.start;
            for step in steps.clone() {
                let ends =
                    matches!(&layout.steps[step], Step::Plain(inst) if self.stops(inst).is_some() || self.meets(inst));
                if ends || step + 1 == steps.end {
                    self.add_piece(*block, start..step + 1);
                    start = step + 1;
                }
            }
            if steps.is_empty() {
                self.add_piece(*block, steps);
            }
        }
    }

    fn add_piece(&mut self, block: usize, steps: std::ops::Range<usize>) {
        let label = self.asm.label();
        self.pieces.push(Piece {
            block,
            steps,
            label,
            entry: None,
        });
    }

    /// Returns the first interpreter instruction of a piece.
    fn begin_of(&self, piece: &Piece) -> u32 {
        if piece.steps.is_empty() {
            // Only the block at the end of the function has no instructions.
            return self.input.map.end;
        }
        self.insts(piece.steps.start).0
    }

    /// Writes the entries of the code, and returns them: one for each piece that does not leave at once.
    fn ways(&mut self) -> Vec<Way> {
        let mut ways = Vec::new();
        for number in 0..self.pieces.len() {
            let piece = &self.pieces[number];
            let (at, label, block) = (self.begin_of(piece), piece.label, piece.block);
            let state = piece.entry.clone().unwrap_or_default();
            // A piece whose code ends at once is no entry: it would be entered again and again.
            if self.is_left_at_once(piece) {
                continue;
            }
            let live: Vec<Reg> = self.live_at(block, piece.steps.start);
            let entry = self.asm.here();
            let length = self.asm.length();
            self.reload(&state);
            if self.asm.length() == length {
                self.asm.bind_to(entry, label);
            } else {
                self.asm.jump(label);
            }
            self.bind_passage(at, entry);
            if let Some(restart) = self.restart.filter(|_| number == 0) {
                self.asm.bind_to(restart.entry, entry);
            }
            let of_warp = live.iter().filter(|reg| self.is_same_in_warp(**reg));
            let of_warp = of_warp.map(|reg| {
                let bytes = match self.class(*reg) {
                    RegClass::Pred => 0,
                    RegClass::B16 => 2,
                    RegClass::B32 => 4,
                    RegClass::B64 => 8,
                    RegClass::B128 => 16,
                };
                (Slot(self.slot(*reg)), bytes, 0)
            });
            let of_warp = of_warp.collect();
            ways.push(Way {
                at,
                label: entry,
                scalars: self.scalars_of(&live),
                of_warp,
            });
        }
        ways.sort_by_key(|way| way.at);
        ways.dedup_by_key(|way| way.at);
        ways
    }

    /// Returns true for registers that must have the same value in the whole warp.
    fn is_same_in_warp(&self, reg: Reg) -> bool {
        let of_warp = self.input.of_warp;
        of_warp.is_some_and(|shapes| shapes.of_register(reg) == Shape::Uniform)
    }

    /// Returns those of `live` that are uniform or affine, in the form of
    /// [`CompiledEntry::scalars`](crate::code::compiled::CompiledEntry::scalars).
    pub(super) fn scalars_of(&self, live: &[Reg]) -> Vec<(Slot, u8, i64)> {
        let scalars = live.iter().filter_map(|reg| {
            let uniform = self.shape(*reg) == Shape::Uniform;
            let (bytes, step) = match self.kind(*reg) {
                Kind::Scalar(Width::Bits32, step) => (4, step),
                Kind::Scalar(Width::Bits64, step) => (8, step),
                Kind::Mask if uniform => (0, 0),
                Kind::Half if uniform => (2, 0),
                Kind::Row if uniform => (16, 0),
                Kind::Vector(_) | Kind::Mask | Kind::Half | Kind::Row => return None,
            };
            Some((Slot(self.slot(*reg)), bytes, step))
        });
        scalars.collect()
    }

    /// Loads the registers that a block expects, and continues with it.
    pub(super) fn enter_block(&mut self, block: usize) {
        let piece = &self.pieces[self.first_piece[block]];
        let (label, state) = (piece.label, piece.entry.clone().unwrap_or_default());
        self.reload(&state);
        self.asm.jump(label);
    }

    pub(super) fn is_alias(&self, reg: Reg) -> bool {
        self.input.map.aliases[reg.0 as usize].is_some()
    }

    fn piece(&mut self, number: usize) {
        let Piece { block, label, .. } = self.pieces[number];
        let steps = self.pieces[number].steps.clone();
        self.state = self.pieces[number].entry.get_or_insert_default().clone();
        self.asm.bind(label);
        let layout = &self.input.plan.layout;
        self.begin_steps(block, steps.clone());
        // The scheduler counts the instruction that ends a piece.
        let runs = |step: &usize| match &layout.steps[*step] {
            Step::Plain(inst) => self.stops(inst).is_none() || self.meets(inst),
            Step::Branch { .. } => true,
        };
        let count: u32 = steps.clone().filter(runs).map(|step| self.counted(step)).sum();
        if count > 0 {
            let counter = Mem::at(CONTEXT, offset_of!(CompiledContext, steps) as i32);
            self.asm.add_to(counter, count as i32);
        }
        let mut rest = count;
        for step in steps.clone() {
            let live = self.begin_step(step);
            match &layout.steps[step] {
                Step::Plain(inst) if self.meets(inst) => return self.meet(number, step, inst, &live, rest),
                Step::Plain(inst) => match self.stops(inst) {
                    Some(exit) => {
                        let at = self.insts(step).0;
                        let exit = self.exit_of_section(exit, step);
                        self.count_share(
                            step,
                            if exit == Exit::Leave {
                                RunBy::Interpreter
                            } else {
                                RunBy::MachineCode
                            },
                        );
                        let has_entry = self.has_entry_behind(number, at);
                        if exit == Exit::Barrier {
                            self.record_passage(at, has_entry);
                        }
                        let kept = self.kept_behind(number, exit, at);
                        let spread: Vec<Reg> = live.iter().copied().filter(|reg| !kept.contains(reg)).collect();
                        self.exit_now(&live, &spread, at, exit, rest);
                        // The next piece begins with empty registers.
                        self.state = State::default();
                        return;
                    }
                    None => {
                        if let Some(comparison) = self.comparison_for_branch(step, inst) {
                            return self.compare_and_branch(block, number, step, comparison, rest);
                        }
                        self.instruction(step, inst, &live, rest);
                    }
                },
                Step::Branch { to, guard: None, .. } => {
                    self.edge(block, layout.block_of[*to], number);
                    return;
                }
                Step::Branch {
                    to,
                    guard: Some((reg, negated)),
                    ..
                } => {
                    self.count_share(step, RunBy::MachineCode);
                    if self.meets_at_branch(*reg) {
                        return self.meet_at_branch(step, (*reg, *negated), layout.block_of[*to], &live, rest);
                    }
                    self.branch(block, number, step, (*reg, *negated), layout.block_of[*to], &live, rest);
                    return;
                }
            }
            rest -= self.counted(step);
            self.end_step(step);
        }
        self.falls_through(block, number);
    }

    /// Counts the interpreter instructions of a step of the current piece, by the way in which they run. Each step
    /// counts once: not again in code for some lanes, or in the second section.
    pub(super) fn count_share(&mut self, step: usize, by: RunBy) {
        if self.masked || self.section == Section::Second {
            return;
        }
        let nesting = self.input.plan.flow.nesting(self.block);
        self.share.count(nesting, self.counted(step), by);
        self.ran_by.push((step, by));
    }

    /// Returns the number of interpreter instructions of a step.
    pub(super) fn counted(&self, step: usize) -> u32 {
        let (first, end) = self.insts(step);
        end - first
    }

    /// Ends a piece that continues with the next block.
    fn falls_through(&mut self, block: usize, number: usize) {
        let layout = &self.input.plan.layout;
        let end = layout.steps_of(block).end;
        match layout.block_of.get(end) {
            Some(next) => self.edge(block, *next, number),
            None => {
                let at = match layout.steps_of(block).next_back() {
                    Some(step) => self.insts(step).1,
                    None => self.input.map.end,
                };
                self.exit_now(&[], &[], at, Exit::End, 0);
            }
        }
    }

    /// Continues with another block: falls through if that comes next.
    pub(super) fn edge(&mut self, from: usize, to: usize, number: usize) {
        self.decide(to);
        let target = self.first_piece[to];
        self.go(from, to);
        if target != number + 1 {
            let label = self.pieces[target].label;
            self.asm.jump(label);
        }
    }

    /// Makes the present machine registers those that a block expects, unless an earlier edge has decided that.
    pub(super) fn decide(&mut self, to: usize) {
        let target = self.first_piece[to];
        if self.pieces[target].entry.is_none() {
            let mut cached = self.state.cached.clone();
            cached.retain(|reg| self.is_live_at_begin(to, reg));
            self.pieces[target].entry = Some(State {
                cached,
                ..State::default()
            });
        }
    }

    /// Prepares the machine registers for another block, and counts backward jumps.
    pub(super) fn go(&mut self, from: usize, to: usize) {
        let target = self.first_piece[to];
        self.count_round(from, to);
        if self.input.plan.flow.is_backward(from, to) {
            let live: Vec<Reg> = self.live_at(to, self.input.plan.layout.steps_of(to).start);
            let at = self.begin_of(&self.pieces[target]);
            let quantum = Mem::at(CONTEXT, offset_of!(CompiledContext, quantum) as i32);
            self.asm.subtract_from(quantum, 1);
            let over = self.exit_stub(&live, at, Exit::Leave, 0);
            self.asm.jump_when(When::LessOrEqual, over);
        }
        let entry = self.pieces[target].entry.clone().unwrap_or_default();
        let live = &self.input.plan.live;
        self.become_state(&entry, |reg| live.is_live_at_begin(to, reg));
    }

    /// Returns the beginning of a block.
    pub(super) fn label_of_block(&self, block: usize) -> Label {
        self.pieces[self.first_piece[block]].label
    }

    /// Returns the machine registers that the code of a block expects, with rows that are up to date.
    pub(super) fn registers_of(&self, block: usize) -> State {
        let entry = self.pieces[self.first_piece[block]].entry.as_ref();
        let mut cached = entry.map(|entry| entry.cached.clone()).unwrap_or_default();
        cached.clean();
        State {
            cached,
            ..State::default()
        }
    }

    /// Returns the beginning of a piece inside a block, where all registers are empty.
    pub(super) fn label_of_piece(&self, number: usize) -> Label {
        self.pieces[number].label
    }

    /// Adds code that leaves at this place.
    pub(super) fn exit_now(&mut self, live: &[Reg], spread: &[Reg], at: u32, exit: Exit, rest: u32) {
        let state = std::mem::take(&mut self.state);
        self.leave(&state, live, spread, at, exit, rest as i32);
    }

    /// Returns the scalars whose rows need only the first lanes at a barrier that ends a piece. They are the scalars of
    /// the entry after the barrier, where the code usually continues: see
    /// [`Compiled`](crate::code::compiled::Compiled).
    fn kept_behind(&self, number: usize, exit: Exit, at: u32) -> Vec<Reg> {
        if exit != Exit::Barrier || !self.has_entry_behind(number, at) {
            return Vec::new();
        }
        let next = &self.pieces[number + 1];
        let mut live = self.live_at(next.block, next.steps.start);
        live.retain(|reg| matches!(self.kind(*reg), Kind::Scalar(..)));
        live
    }

    /// Returns true if the code can be entered after the instruction `at`, which ends this piece.
    fn has_entry_behind(&self, number: usize, at: u32) -> bool {
        let next = self.pieces.get(number + 1);
        next.is_some_and(|next| !self.is_left_at_once(next) && self.begin_of(next) == at + 1)
    }

    /// Returns true if a piece begins with an instruction at which the code ends, and at which groups do not meet.
    fn is_left_at_once(&self, piece: &Piece) -> bool {
        piece.steps.clone().next().is_some_and(
            |step| matches!(self.input.plan.layout.steps[step], Step::Plain(inst) if self.stops(inst).is_some() && !self.meets(inst)),
        )
    }

    /// Adds code that leaves. `live` are the registers that are needed, `spread` those whose rows must be complete.
    pub(super) fn leave(&mut self, state: &State, live: &[Reg], spread: &[Reg], at: u32, exit: Exit, rest: i32) {
        let mut kept = state.clone();
        kept.cached.retain(|reg| live.contains(&reg));
        self.flush(&kept);
        for reg in spread {
            self.spread(*reg, &kept);
        }
        if rest != 0 {
            let counter = Mem::at(CONTEXT, offset_of!(CompiledContext, steps) as i32);
            self.asm.add_to(counter, -rest);
        }
        let exit = if self.masked { Exit::Parted } else { exit };
        self.asm.constant(Gpr::AX, u64::from(at) | (exit as u64) << 32);
        if exit == Exit::Barrier && self.is_whole_warp() {
            self.name_passage(at);
        }
        // After such an exit, the code may continue with the next group.
        self.asm.jump(match exit {
            Exit::Barrier | Exit::End => self.next,
            _ => self.epilogue,
        });
    }

    /// Marks a label as an exit: with [`Variant::leaving`](crate::code::compiled::Variant::leaving), the code always
    /// jumps there.
    pub(super) fn way_out(&mut self, label: Label) {
        if self.input.leaving {
            self.asm.jump_always(label);
        }
    }

    pub(super) fn instruction(&mut self, step: usize, inst: &Inst, live: &[Reg], rest: u32) {
        let insts = self.insts(step);
        if insts.0 == insts.1 {
            return;
        }
        self.before_masked(inst);
        let native = self.can_be_masked(inst) && self.native(step, inst, live, rest);
        self.count_share(step, if native { RunBy::MachineCode } else { RunBy::Call });
        if native {
            return self.after_masked(inst);
        }
        if self.shapes.assumption(step).is_some() {
            // The interpreter's result may not be affine.
            let out = self.assumption_stub(step, live, rest);
            return self.asm.jump(out);
        }
        let before = std::mem::take(&mut self.state);
        self.flush(&before);
        for reg in self.scalar_sources(inst) {
            self.spread(reg, &before);
        }
        self.call_interpreter(insts, u32::MAX, None);
        self.restore_scalars(&self.scalar_results(inst));
    }

    /// Returns the exit with which the code ends at an instruction; `None` if it does not end there.
    fn stops(&self, inst: &Inst) -> Option<Exit> {
        match (&inst.op, Class::of_inst(inst)) {
            // The result depends on the lanes of the whole warp.
            (Op::Activemask, _) => Some(Exit::Leave),
            (Op::Bar { .. }, Class::Scheduled(Scheduled::BlockBarrier)) => Some(Exit::Barrier),
            (Op::Ret { .. }, _) => Some(Exit::End),
            (_, Class::Scheduled(_)) if !self.is_in_group(inst) => Some(Exit::Leave),
            _ => None,
        }
    }
}
