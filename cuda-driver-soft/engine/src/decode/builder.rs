//! Assigns slots to registers and constants, and collects the instructions of a function.

use super::constants;
use crate::code::action::{Action, ValueLocation};
use crate::code::compiled::CompiledSlots;
use crate::code::constant::{Constant, Lifetime};
use crate::code::function::{Code, SourceMap};
use crate::code::handlers::Handlers;
use crate::code::inst::Inst;
use crate::code::isa::Isa;
use crate::code::registers::{PREDICATE_BYTES, Slot, WIDEST_ROW, bytes_of, lane_bytes};
use crate::code::site::{Site, SiteAccess};
use crate::ops::{Form, control};
use crate::plan::defined::Use;
use crate::plan::source::SourceFunction;
use ptx::ir::{self, Formal, Reg, RegClass};
use std::collections::HashMap;

/// The purpose of a scratch row, which holds an intermediate value of one instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Scratch {
    /// The negation of a source predicate, by operand.
    Negated(u32),
    /// The low bits of a wider register. Each register has its own row, because an instruction may read several.
    LowBits(Reg),
    /// The value of a special register that changes while a kernel runs, by its number among such registers.
    Special(u32),
    /// The result of `lop3` if only its predicate is used.
    Lop3,
    /// A pair of halves, before it is widened to 64 bits.
    Pair,
    /// The lower (0) or upper (1) half of a register that is packed from four parts.
    PackedHalf(u32),
    /// A copy of an element of a vector, by its number.
    Element(u32),
    /// A copy of an address.
    Address,
}

/// Builds the code of one function.
pub(super) struct Builder<'b> {
    pub(super) source: SourceFunction<'b>,
    isa: Isa,
    insts: Vec<Inst>,
    lines: Vec<u32>,
    /// The sites of the instructions, if they are decoded for observation.
    sites: Option<Vec<Site>>,
    /// The site of the next instruction.
    next_site: Site,
    actions: Vec<Action>,
    registers: Vec<Slot>,
    /// By register: the constant that it is an alias of.
    aliases: Vec<Option<Constant>>,
    constants: HashMap<(Constant, RegClass), Slot>,
    /// Number of access caches so far.
    caches: u32,
    /// Constant slots: slot, bytes per lane (0 for a predicate), value.
    filled: Vec<(Slot, u8, Constant)>,
    /// Part of the registers that must be zero when a frame begins: start and length in bytes.
    cleared: (u32, u32),
    /// Offset of the next row to be allocated.
    next_row: u32,
    /// The sink `_` for all other classes, once there is one.
    sink_row: Option<Slot>,
    /// Scratch rows by class and purpose.
    scratch: HashMap<(RegClass, Scratch), Slot>,
}

/// The sink `_` for predicates: the first predicate of a frame.
const SINK_PREDICATE: Slot = Slot(0);

/// Space after the last slot, because any slot may be read as the widest row.
const PADDING: u32 = WIDEST_ROW;

/// Number of predicates reserved for constants.
const PREDICATE_CONSTANTS: u32 = 4;

impl<'b> Builder<'b> {
    /// Returns a builder with a slot for every register that the function uses.
    pub(super) fn new(source: SourceFunction<'b>, isa: Isa, uses: &[Use], observed: bool) -> Self {
        let aliases = constants::aliases(&source, uses);
        let mut builder = Builder {
            source,
            isa,
            aliases,
            insts: Vec::new(),
            lines: Vec::new(),
            sites: observed.then(Vec::new),
            next_site: Site::default(),
            actions: Vec::new(),
            registers: vec![Slot(0); source.body.registers.len()],
            constants: HashMap::new(),
            caches: 0,
            filled: Vec::new(),
            cleared: (0, 0),
            next_row: 0,
            sink_row: None,
            scratch: HashMap::new(),
        };
        builder.place_registers(uses);
        for i in 0..builder.aliases.len() {
            if let Some(constant) = builder.aliases[i] {
                builder.registers[i] = builder.constant(constant, source.body.registers[i]);
            }
        }
        builder
    }

    /// Assigns a slot to every register that is used and not an alias.
    fn place_registers(&mut self, uses: &[Use]) {
        let mut placed: Vec<(usize, Slot)> = Vec::new();
        let chosen = |wanted: &dyn Fn(Use, RegClass) -> bool| -> Vec<usize> {
            let all = self.source.body.registers.iter().zip(uses).enumerate();
            all.filter(|(i, (class, of))| self.aliases[*i].is_none() && wanted(**of, **class))
                .map(|(i, _)| i)
                .collect()
        };
        // Predicates come first, then rows. Registers that must be zero at the start are last among the predicates and
        // first among the rows, so that they are one range.
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
                next_row += bytes_of(self.source.body.registers[i]).next_multiple_of(64);
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

    /// Returns true if an instruction only copies a constant to an alias, so that nothing has to run.
    pub(super) fn defines_alias(&self, inst: &ir::Inst) -> bool {
        matches!(inst.dsts.as_slice(), [Some(reg)] if self.aliases[reg.0 as usize].is_some())
    }

    /// Returns true if the function is decoded for observation.
    pub(super) fn observed(&self) -> bool {
        self.sites.is_some()
    }

    /// Sets the site of the next decoded instructions. Only the first of them keeps `first` and `effect`.
    pub(super) fn begin_site(&mut self, site: Site) {
        self.next_site = site;
    }

    /// Sets a property of the site of the last decoded instruction.
    pub(super) fn set_site(&mut self, set: impl FnOnce(&mut Site)) {
        if let Some(site) = self.sites.as_mut().and_then(|sites| sites.last_mut()) {
            set(site);
        }
    }

    /// Adds an access to the site of the last decoded instruction.
    pub(super) fn note_access(&mut self, access: SiteAccess) {
        self.set_site(|site| site.accesses.push(access));
    }

    /// Returns the index of the next instruction.
    pub(super) fn here(&self) -> u32 {
        self.insts.len() as u32
    }

    /// Returns the class of a register.
    pub(super) fn class(&self, reg: Reg) -> RegClass {
        self.source.class(reg)
    }

    /// Returns the slot of a register.
    pub(super) fn register(&self, reg: Reg) -> Slot {
        self.registers[reg.0 as usize]
    }

    /// Returns the slot of a destination; the sink if there is none.
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

    /// Allocates a row.
    fn row(&mut self, class: RegClass) -> Slot {
        let slot = Slot(self.next_row);
        self.next_row += bytes_of(class).next_multiple_of(64);
        slot
    }

    /// Returns a row for an intermediate value of one instruction.
    pub(super) fn scratch(&mut self, class: RegClass, purpose: Scratch) -> Slot {
        if let Some(slot) = self.scratch.get(&(class, purpose)) {
            return *slot;
        }
        let slot = self.row(class);
        self.scratch.insert((class, purpose), slot);
        slot
    }

    /// Returns the slot of a constant.
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
            // There are only three predicate constants: false, true and `%is_explicit_cluster`.
            let number = self.filled.iter().filter(|(_, width, _)| *width == 0).count() as u32;
            Slot(PREDICATE_BYTES * (1 + number))
        } else {
            self.row(class)
        };
        self.filled.push((slot, lane_bytes(class), constant));
        self.constants.insert((constant, class), slot);
        slot
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
        if let Some(sites) = &mut self.sites {
            sites.push(Site {
                line,
                ..self.next_site.clone()
            });
            (self.next_site.first, self.next_site.effect) = (false, false);
        }
    }

    /// Adds an instruction of a form. The slots are of the form's classes.
    pub(super) fn push_form(&mut self, form: &Form, dsts: [Slot; 2], srcs: &[Slot], line: u32) {
        let (swap, mods) = form.mods.take_swap();
        let source = |i: usize| srcs.get(i).copied().unwrap_or(Slot(0));
        self.push(form.handlers, line, |inst| {
            (inst.d, inst.e) = (dsts[0], if form.dsts[1].is_some() { dsts[1] } else { source(3) });
            (inst.a, inst.b, inst.c) = (source(0), source(1), source(2));
            if swap {
                (inst.a, inst.b) = (inst.b, inst.a);
            }
            inst.mods = mods.0;
        });
    }

    /// Adds a branch or jump whose target is set later, or the guard of an instruction.
    pub(super) fn push_control(&mut self, handlers: Handlers, guard: Option<(Slot, bool)>, line: u32) {
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
            Action::Return if self.source.is_kernel() => (control::end(), 0),
            Action::Barrier(barrier) => match barrier.plain() {
                Some(id) => (control::barrier(), id),
                None => (control::act(), 0),
            },
            _ => (control::act(), 0),
        };
        self.actions.push(action);
        self.push(handlers, line, |inst| (inst.aux, inst.mods) = (index, mods));
    }

    /// Adds an instruction that the scheduler runs if its handler cannot.
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
        self.set_site(|site| site.syncs = true);
    }

    /// Inserts a guard before each instruction from `start` on.
    pub(super) fn guard_from(&mut self, start: u32, guard: (Slot, bool), line: u32) {
        let guarded = self.insts.split_off(start as usize);
        let lines = self.lines.split_off(start as usize);
        let sites = self.sites.as_mut().map(|sites| sites.split_off(start as usize));
        let mut sites = sites.into_iter().flatten();
        for (inst, its_line) in guarded.into_iter().zip(lines) {
            self.push_control(control::guard(), Some(guard), line);
            self.insts.push(inst);
            self.lines.push(its_line);
            if let Some(mut site) = sites.next() {
                let first = std::mem::take(&mut site.first);
                let inst = site.inst;
                self.set_site(|guard| (guard.inst, guard.first, guard.guard) = (inst, first, true));
                self.sites.get_or_insert_default().push(site);
            }
        }
    }

    /// Allocates an access cache for a memory instruction, and returns its index.
    pub(super) fn new_cache(&mut self) -> u32 {
        self.caches += 1;
        self.caches - 1
    }

    /// Sets the target of a branch.
    pub(super) fn set_target(&mut self, inst: usize, target: u32) {
        self.insts[inst].aux = target;
    }

    /// Returns the location of a formal parameter or result.
    fn formal(&self, formal: &Formal) -> ValueLocation {
        match *formal {
            Formal::Reg(reg) => self.location(reg),
            Formal::Frame { offset, size } => ValueLocation::Frame { offset, size },
        }
    }

    /// Returns the location of a register.
    pub(super) fn location(&self, reg: Reg) -> ValueLocation {
        match self.class(reg) {
            RegClass::Pred => ValueLocation::Mask(self.register(reg)),
            class => ValueLocation::Row(self.register(reg), bytes_of(class) / 32),
        }
    }

    /// Returns the code.
    pub(super) fn finish(self, steps: Vec<(u32, u32)>, end: u32) -> Code {
        let mut constants = self.filled.clone();
        constants.sort_by_key(|(_, _, constant)| constant.lifetime());
        let for_block = |c: &&(Slot, u8, Constant)| c.2.lifetime() >= Lifetime::Block;
        let block_constants: Vec<_> = constants.iter().filter(for_block).copied().collect();
        let kernel = self.source.is_kernel();
        let map = kernel.then(|| SourceMap {
            slots: self.registers.clone(),
            aliases: self.aliases.clone(),
            steps,
            end,
        });
        Code {
            map,
            compiled: CompiledSlots::default(),
            block_constants,
            id: self.source.id,
            params: self.source.body.params.iter().map(|p| self.formal(p)).collect(),
            returns: self.source.body.returns.iter().map(|p| self.formal(p)).collect(),
            insts: self.insts,
            lines: self.lines,
            actions: self.actions,
            caches: self.caches,
            frame_bytes: self.next_row + PADDING,
            constants,
            cleared: self.cleared,
            registers: self.registers,
            local_bytes: self.source.body.frame_size,
            local_align: self.source.body.frame_align.max(1),
            sites: self.sites.unwrap_or_default(),
        }
    }
}
