//! Slots of registers and constants, and the instructions as they are made.

use super::constants;
use super::defined::Use;
use crate::code::isa::{Handlers, Isa};
use crate::code::registers::{AFFINE_BYTES, PREDICATE_BYTES, Slot, WIDEST_ROW, bytes_of};
use crate::code::{Action, Code, Constant, Converged, Inst, Lifetime};
use crate::ops::{Form, control};
use crate::program::Image;
use crate::window;
use ptx::ir::{self, Address, Body, FuncId, Operand, Reg, RegClass};
use std::collections::HashMap;

/// Makes the code of one function.
pub(super) struct Builder<'b> {
    pub(super) image: &'b Image,
    pub(super) body: &'b Body,
    id: FuncId,
    isa: Isa,
    insts: Vec<Inst>,
    lines: Vec<u32>,
    actions: Vec<Action>,
    registers: Vec<Slot>,
    /// By register: the constant that it is a name of.
    named: Vec<Option<Constant>>,
    constants: HashMap<(Constant, RegClass), Slot>,
    /// Memory instructions so far.
    caches: u32,
    filled: Vec<(Slot, u8, Constant)>,
    cleared: (u32, u32),
    next_row: u32,
    sink_row: Option<Slot>,
    /// Where the next affine row goes, and how many more go there.
    next_affine: u32,
    affine_left: u32,
    /// Scratch rows, by class.
    scratch: HashMap<(RegClass, u32), Slot>,
}

/// The first predicate of a frame takes what is written to the sink `_`.
const SINK_PREDICATE: Slot = Slot(0);

/// Any slot may be read as the widest row, so the last one needs room behind it.
const PADDING: u32 = WIDEST_ROW;

/// Predicates that constants may take, beside those of the function.
const PREDICATE_CONSTANTS: u32 = 4;

impl<'b> Builder<'b> {
    pub(super) fn new(
        image: &'b Image,
        id: FuncId,
        body: &'b Body,
        isa: Isa,
        uses: &[Use],
    ) -> Self {
        let mut builder = Builder {
            image,
            body,
            id,
            isa,
            named: Vec::new(),
            insts: Vec::new(),
            lines: Vec::new(),
            actions: Vec::new(),
            registers: vec![Slot(0); body.registers.len()],
            constants: HashMap::new(),
            caches: 0,
            filled: Vec::new(),
            cleared: (0, 0),
            next_row: 0,
            sink_row: None,
            next_affine: 0,
            affine_left: 0,
            scratch: HashMap::new(),
        };
        builder.named = constants::named(&builder, uses);
        builder.place_registers(uses);
        for i in 0..builder.named.len() {
            if let Some(constant) = builder.named[i] {
                builder.registers[i] = builder.constant(constant, body.registers[i]);
            }
        }
        builder
    }

    /// Gives every register that is no name its slot.
    fn place_registers(&mut self, uses: &[Use]) {
        let mut placed: Vec<(usize, Slot)> = Vec::new();
        let chosen = |wanted: &dyn Fn(Use, RegClass) -> bool| -> Vec<usize> {
            let all = self.body.registers.iter().zip(uses).enumerate();
            all.filter(|(i, (class, of))| self.named[*i].is_none() && wanted(**of, **class))
                .map(|(i, _)| i)
                .collect()
        };
        // Predicates come first, then the rows; in between what must be zero at the start.
        let mut next = PREDICATE_BYTES * (1 + PREDICATE_CONSTANTS);
        let mut cleared_from = next;
        for wanted in [Use::Defined, Use::PerhapsUndefined] {
            cleared_from = next;
            for i in chosen(&|of, class| of == wanted && class == RegClass::Pred) {
                placed.push((i, Slot(next)));
                next += PREDICATE_BYTES;
            }
        }
        let mut next_row = next.next_multiple_of(64);
        let rows_from = next_row;
        let mut cleared = (cleared_from, next - cleared_from);
        for wanted in [Use::PerhapsUndefined, Use::Defined] {
            for i in chosen(&|of, class| of == wanted && class != RegClass::Pred) {
                placed.push((i, Slot(next_row)));
                next_row += bytes_of(self.body.registers[i]).next_multiple_of(64);
            }
            if wanted == Use::PerhapsUndefined && next_row > rows_from {
                cleared.1 = next_row - cleared_from;
            }
        }
        for (i, slot) in placed {
            self.registers[i] = slot;
        }
        (self.cleared, self.next_row) = (cleared, next_row);
    }

    /// The constant that a register is a name of.
    pub(super) fn named(&self, reg: Reg) -> Option<Constant> {
        self.named[reg.0 as usize]
    }

    /// Whether an instruction only gives a constant a name, so that nothing has to be run.
    pub(super) fn names_constant(&self, inst: &ir::Inst) -> bool {
        matches!(inst.dsts.as_slice(), [Some(reg)] if self.named[reg.0 as usize].is_some())
    }

    /// The number of the next instruction.
    pub(super) fn here(&self) -> u32 {
        self.insts.len() as u32
    }

    pub(super) fn class(&self, reg: Reg) -> RegClass {
        self.body.registers[reg.0 as usize]
    }

    pub(super) fn register(&self, reg: Reg) -> Slot {
        self.registers[reg.0 as usize]
    }

    /// The slot of a destination; the sink's if there is none.
    pub(super) fn destination(&mut self, reg: Option<Reg>, class: RegClass) -> Slot {
        match reg {
            Some(reg) => self.register(reg),
            None if class == RegClass::Pred => SINK_PREDICATE,
            None => match self.sink_row {
                Some(slot) => slot,
                None => {
                    let slot = self.row(RegClass::B128);
                    self.sink_row = Some(slot);
                    slot
                }
            },
        }
    }

    fn row(&mut self, class: RegClass) -> Slot {
        let slot = Slot(self.next_row);
        self.next_row += bytes_of(class).next_multiple_of(64);
        slot
    }

    /// Room for a row that is kept as an affine one.
    pub(super) fn affine(&mut self) -> Slot {
        if self.affine_left == 0 {
            self.next_affine = self.row(RegClass::B64).0;
            self.affine_left = bytes_of(RegClass::B64) / AFFINE_BYTES;
        }
        self.affine_left -= 1;
        self.next_affine += AFFINE_BYTES;
        Slot(self.next_affine - AFFINE_BYTES)
    }

    /// A row to work with inside one instruction.
    pub(super) fn scratch(&mut self, class: RegClass, number: u32) -> Slot {
        if let Some(slot) = self.scratch.get(&(class, number)) {
            return *slot;
        }
        let slot = self.row(class);
        self.scratch.insert((class, number), slot);
        slot
    }

    /// A slot that holds a constant.
    pub(super) fn constant(&mut self, constant: Constant, class: RegClass) -> Slot {
        let constant = match constant {
            Constant::Bits(bits) => Constant::Bits(match class {
                RegClass::Pred => bits & 1,
                RegClass::B16 => bits & 0xffff,
                RegClass::B32 => bits & 0xffff_ffff,
                RegClass::B64 | RegClass::B128 => bits,
            }),
            other => other,
        };
        if let Some(slot) = self.constants.get(&(constant, class)) {
            return *slot;
        }
        let slot = if class == RegClass::Pred {
            // Only false and true.
            let number = self
                .filled
                .iter()
                .filter(|(_, width, _)| *width == 0)
                .count() as u32;
            Slot(PREDICATE_BYTES * (1 + number))
        } else {
            self.row(class)
        };
        let width = match class {
            RegClass::Pred => 0,
            RegClass::B16 => 2,
            RegClass::B32 => 4,
            RegClass::B64 | RegClass::B128 => 8,
        };
        self.filled.push((slot, width, constant));
        self.constants.insert((constant, class), slot);
        slot
    }

    /// What a source operand that is no register stands for. `None` for registers, and for what changes.
    pub(super) fn constant_of(&self, operand: &Operand) -> Option<Constant> {
        Some(match *operand {
            Operand::Reg(_) | Operand::NotReg(_) => return None,
            Operand::Imm(bits) => Constant::Bits(bits),
            Operand::Special(special) => Constant::Special(special),
            Operand::Address(Address::Variable { var, offset }) => Constant::Variable(var, offset),
            Operand::Address(Address::Frame { offset }) => Constant::Frame(offset),
            Operand::Address(Address::Param { offset }) => Constant::Bits(offset as u64),
            Operand::Address(Address::Function(id)) => {
                Constant::Bits(window::function_address(id.0))
            }
        })
    }

    /// Adds an instruction.
    pub(super) fn push(&mut self, handlers: Handlers, line: u32, set: impl FnOnce(&mut Inst)) {
        let entry = handlers.entry(self.isa);
        let none = Slot(0);
        let mut inst = Inst {
            full: entry.full,
            masked: entry.masked,
            d: none,
            a: none,
            b: none,
            c: none,
            e: none,
            f: none,
            aux: 0,
            mods: 0,
            imm: 0,
        };
        set(&mut inst);
        self.insts.push(inst);
        self.lines.push(line);
    }

    /// Adds an instruction of a form, from slots of the classes that it wants.
    pub(super) fn push_form(&mut self, form: &Form, dsts: [Slot; 2], srcs: &[Slot], line: u32) {
        let (swap, mods) = form.mods.take_swap();
        let source = |i: usize| srcs.get(i).copied().unwrap_or(Slot(0));
        self.push(form.handlers, line, |inst| {
            (inst.d, inst.e) = (
                dsts[0],
                if form.dsts[1].is_some() {
                    dsts[1]
                } else {
                    source(3)
                },
            );
            (inst.a, inst.b, inst.c) = (source(0), source(1), source(2));
            if swap {
                (inst.a, inst.b) = (inst.b, inst.a);
            }
            inst.mods = mods.0;
        });
    }

    /// Adds a branch or jump, whose target is set later, or the guard of an instruction.
    pub(super) fn push_control(
        &mut self,
        handlers: Handlers,
        guard: Option<(Slot, bool)>,
        line: u32,
    ) {
        self.push(handlers, line, |inst| {
            if let Some((slot, negated)) = guard {
                inst.a = slot;
                inst.mods = u32::from(negated);
            }
        });
    }

    /// Adds an instruction that the scheduler runs.
    pub(super) fn push_action(&mut self, action: Action, line: u32) {
        let index = self.actions.len() as u32;
        let (handlers, mods) = match &action {
            Action::Return if self.is_kernel() => (control::end(), 0),
            Action::Barrier(barrier) => match barrier.plain() {
                Some(id) => (control::barrier(), id),
                None => (control::act(), 0),
            },
            _ => (control::act(), 0),
        };
        self.actions.push(action);
        self.push(handlers, line, |inst| (inst.aux, inst.mods) = (index, mods));
    }

    /// Adds an instruction that its handler runs if it can, else the scheduler.
    pub(super) fn push_with_action(
        &mut self,
        handlers: Handlers,
        action: Action,
        line: u32,
        set: impl FnOnce(&mut Inst),
    ) {
        let index = self.actions.len() as u32;
        self.actions.push(action);
        self.push(handlers, line, |inst| {
            set(inst);
            inst.aux = index;
        });
    }

    /// Puts a guard before each instruction from `start` on.
    pub(super) fn guard_from(&mut self, start: u32, guard: (Slot, bool), line: u32) {
        let guarded = self.insts.split_off(start as usize);
        let lines = self.lines.split_off(start as usize);
        for (inst, its_line) in guarded.into_iter().zip(lines) {
            self.push_control(control::guard(), Some(guard), line);
            self.insts.push(inst);
            self.lines.push(its_line);
        }
    }

    /// Whether the function is a kernel.
    pub(super) fn is_kernel(&self) -> bool {
        self.image.module.functions[self.id.0 as usize].kind == ir::FunctionKind::Entry
    }

    /// Bytes of the parameter buffer of the kernel, if this is one.
    pub(super) fn param_bytes(&self) -> u32 {
        let function = &self.image.module.functions[self.id.0 as usize];
        let bytes = function
            .params
            .iter()
            .map(|p| p.offset + p.size)
            .max()
            .filter(|_| self.is_kernel());
        bytes.and_then(|b| u32::try_from(b).ok()).unwrap_or(0)
    }

    /// A number for a memory instruction, by which it finds what it remembers.
    pub(super) fn new_cache(&mut self) -> u32 {
        self.caches += 1;
        self.caches - 1
    }

    pub(super) fn set_target(&mut self, inst: usize, target: u32) {
        self.insts[inst].aux = target;
    }

    /// The place in which a formal parameter or result is.
    pub(super) fn formal(&self, formal: &ir::Formal) -> crate::code::Place {
        use crate::code::Place;
        match *formal {
            ir::Formal::Reg(reg) => self.place(reg),
            ir::Formal::Frame { offset, size } => Place::Frame { offset, size },
        }
    }

    /// The place of a register.
    pub(super) fn place(&self, reg: Reg) -> crate::code::Place {
        use crate::code::Place;
        match self.class(reg) {
            RegClass::Pred => Place::Mask(self.register(reg)),
            class => Place::Row(self.register(reg), bytes_of(class) / 32),
        }
    }

    /// Gives an instruction other handlers.
    pub(super) fn set_handlers(&mut self, inst: u32, handlers: Handlers) {
        let entry = handlers.entry(self.isa);
        let inst = &mut self.insts[inst as usize];
        (inst.full, inst.masked) = (entry.full, entry.masked);
    }

    /// Makes an instruction do the branch behind it too, which stays for those that come to it in other ways.
    pub(super) fn add_branch(&mut self, inst: u32, handlers: Handlers) {
        self.set_handlers(inst, handlers);
        let at = inst as usize;
        let branch = self.insts[at + 1];
        let inst = &mut self.insts[at];
        (inst.aux, inst.mods) = (branch.aux, branch.mods);
    }

    pub(super) fn finish(self, converged: Option<Converged>) -> Code {
        let mut constants = self.filled.clone();
        constants.sort_by_key(|(_, _, constant)| constant.lifetime());
        let for_block = |c: &&(Slot, u8, Constant)| c.2.lifetime() >= Lifetime::Block;
        let block_constants: Vec<_> = constants.iter().filter(for_block).copied().collect();
        let converged = converged.map(|converged| {
            let insts = &self.insts[converged.first as usize..];
            let mut slots = insts.iter().flat_map(Inst::slots);
            let read = slots.any(|slot| block_constants.iter().any(|c| c.0 == slot));
            Converged {
                // Actions have slots of their own.
                reads_block_constants: read || self.actions.iter().any(Action::has_operands),
                ..converged
            }
        });
        Code {
            block_constants,
            id: self.id,
            params: self.body.params.iter().map(|p| self.formal(p)).collect(),
            returns: self.body.returns.iter().map(|p| self.formal(p)).collect(),
            insts: self.insts,
            lines: self.lines,
            actions: self.actions,
            caches: self.caches,
            frame_bytes: self.next_row + PADDING,
            constants,
            cleared: self.cleared,
            local_bytes: self.body.frame_size,
            local_align: self.body.frame_align.max(1),
            converged,
        }
    }
}
