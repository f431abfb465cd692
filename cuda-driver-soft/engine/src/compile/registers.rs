//! Allocates machine registers to registers of the kernel, and moves values between them and the rows of the frame.

use super::assembler::{Alu, Gpr, Mem, Source, Width, Word, Ymm};
use super::cache::{Cache, Cached, MOST_PARTS};
use super::emitter::Emitter;
use super::ranges::Checked;
use crate::plan::defined;
use crate::plan::shape::Shape;
use crate::plan::steps::Step;
use ptx::ir::{Inst, Reg, RegClass};

/// The frame from the group's first lane on, for registers of 32 bits.
pub(super) const ROWS32: Gpr = Gpr::BX;
/// The frame from the group's first lane on, for registers of 64 bits.
pub(super) const ROWS64: Gpr = Gpr(12);
/// The frame from the group's first lane on, for predicates.
pub(super) const MASKS: Gpr = Gpr(13);
/// In code for groups of 32 lanes, where [`ROWS32`] is the frame of all registers: the place of the warp's frame among
/// the frames of the call.
pub(super) const FRAMES: Gpr = MASKS;
/// The constants.
pub(super) const POOL: Gpr = Gpr(14);
/// The context.
pub(super) const CONTEXT: Gpr = Gpr(15);
/// The windows of the memory instructions.
pub(super) const WINDOWS: Gpr = Gpr::BP;

/// General registers that hold values.
const GPRS: [Gpr; 6] = [Gpr::SI, Gpr::DI, Gpr(8), Gpr(9), Gpr(10), Gpr(11)];
/// Number of vector registers that hold values: the first ones.
const YMMS: u8 = 12;

/// A vector register for intermediate values of one instruction.
pub(super) const TEMP: Ymm = Ymm(12);
/// Vector registers for the sources of one instruction.
pub(super) const SOURCES: [Ymm; 3] = [Ymm(13), Ymm(14), Ymm(15)];

/// Returns a field of the context.
pub(super) fn field(offset: usize) -> Mem {
    Mem::at(CONTEXT, offset as i32)
}

/// The way in which a register of the kernel is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A predicate: a mask of the group's lanes.
    Mask,
    /// The value of the first lane. Each further lane has the value of the lane before plus this step.
    Scalar(Width, i64),
    /// One value per lane.
    Vector(Width),
    /// One value of 16 bits per lane: a vector of 32-bit elements whose upper halves are zero.
    Half,
    /// Always in its row.
    Row,
}

/// The contents of the machine registers.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    pub(super) cached: Cache,
    /// The vector registers for intermediate values of the current instruction, one bit each.
    pub(super) reserved: u16,
    /// The ranges of memory that have been checked in this piece.
    pub(super) checked: Vec<Checked>,
}

impl State {
    pub(super) fn get(&self, reg: Reg) -> Option<&Cached> {
        self.cached.get(reg)
    }

    pub(super) fn free_gpr(&self) -> Option<Gpr> {
        let used = |gpr: &Gpr| {
            self.cached.values().any(|c| c.gpr == Some(*gpr)) || self.checked.iter().any(|c| c.host == *gpr)
        };
        GPRS.into_iter().find(|gpr| !used(gpr))
    }

    fn used_ymms(&self) -> u16 {
        let all = self.cached.values().flat_map(|c| c.parts());
        all.fold(self.reserved, |used, ymm| used | 1 << ymm.0)
    }

    fn free_ymms(&self) -> u32 {
        u32::from(YMMS) - self.used_ymms().count_ones()
    }
}

impl Emitter<'_> {
    /// Returns how a register is kept.
    pub(super) fn kind(&self, reg: Reg) -> Kind {
        let width = match self.class(reg) {
            RegClass::Pred => return Kind::Mask,
            RegClass::B32 => Width::Bits32,
            RegClass::B64 => Width::Bits64,
            RegClass::B16 => return Kind::Half,
            RegClass::B128 => return Kind::Row,
        };
        match self.shape(reg) {
            Shape::Uniform => Kind::Scalar(width, 0),
            Shape::Affine(step) => Kind::Scalar(width, step),
            Shape::Any => Kind::Vector(width),
        }
    }

    /// Returns the number of vector registers that hold a vector.
    pub(super) fn parts(&self, width: Width) -> usize {
        let of_32 = self.lanes as usize / 8;
        match width {
            Width::Bits32 => of_32,
            Width::Bits64 => 2 * of_32,
        }
    }

    /// Returns the place of a slot in the frame, from the group's first lane on.
    pub(super) fn row(&self, slot: u32, width: Width) -> Mem {
        let base = match width {
            Width::Bits64 if !self.is_whole_warp() => ROWS64,
            _ => ROWS32,
        };
        Mem::at(base, slot as i32)
    }

    /// Returns the place of a predicate's slot in the frame, from the group's first lane on.
    pub(super) fn mask_row(&self, slot: u32) -> Mem {
        Mem::at(if self.is_whole_warp() { ROWS32 } else { MASKS }, slot as i32)
    }

    /// Returns the place of a register in the frame.
    pub(super) fn home(&self, reg: Reg) -> Mem {
        let slot = self.slot(reg);
        match self.kind(reg) {
            Kind::Mask => self.mask_row(slot),
            Kind::Scalar(width, _) | Kind::Vector(width) => self.row(slot, width),
            Kind::Half | Kind::Row => self.row(slot, Width::Bits32),
        }
    }

    /// Writes a register to its row; for a scalar, only the first lane.
    fn store_home(&mut self, reg: Reg, cached: &Cached) {
        let home = self.home(reg);
        match (self.kind(reg), cached.gpr) {
            (Kind::Mask, Some(gpr)) => self.asm.store(self.lanes / 8, home, gpr),
            (Kind::Scalar(width, _), Some(gpr)) => self.asm.store(width.bytes(), home, gpr),
            (Kind::Scalar(width, _), None) => {
                if let [first] = cached.parts() {
                    self.asm.store_first(width, home, *first);
                }
            }
            (Kind::Vector(_), _) => {
                for (part, ymm) in (0..).zip(cached.parts()) {
                    self.asm.store_vector(home.plus(32 * part), *ymm);
                }
            }
            (Kind::Half, _) => self.store_half(reg, cached.parts()),
            (Kind::Mask, None) | (Kind::Row, _) => {}
        }
    }

    /// Reads a register from its row into these machine registers.
    fn load_home(&mut self, reg: Reg, cached: &Cached) {
        let home = self.home(reg);
        match self.kind(reg) {
            Kind::Mask => {
                if let Some(gpr) = cached.gpr {
                    self.load_mask(gpr, home);
                }
            }
            Kind::Scalar(width, _) => {
                if let Some(gpr) = cached.gpr {
                    self.asm.alu(Alu::Mov, width, gpr, Word::Mem(home));
                }
                if let [first] = cached.parts() {
                    self.asm.broadcast(width, *first, home);
                }
            }
            Kind::Vector(_) => {
                for (part, ymm) in (0..).zip(cached.parts()) {
                    self.asm.load(*ymm, Source::Mem(home.plus(32 * part)));
                }
            }
            Kind::Half => self.load_half(reg, cached.parts()),
            Kind::Row => {}
        }
    }

    fn load_mask(&mut self, gpr: Gpr, home: Mem) {
        self.asm.load_narrow(self.lanes / 8, false, gpr, home);
    }

    /// Writes all lanes of a scalar to its row.
    pub(super) fn spread(&mut self, reg: Reg, state: &State) {
        let Kind::Scalar(width, step) = self.kind(reg) else {
            return;
        };
        let home = self.home(reg);
        let from = match state.get(reg) {
            Some(cached) => match (cached.parts(), cached.gpr) {
                ([first], _) => *first,
                (_, Some(gpr)) => {
                    self.asm.broadcast_gpr(width, TEMP, gpr);
                    TEMP
                }
                _ => TEMP,
            },
            None => {
                self.asm.broadcast(width, TEMP, home);
                TEMP
            }
        };
        for part in 0..self.parts(width) {
            let ymm = if step == 0 {
                from
            } else {
                let steps = self.steps(width, step, part);
                self.asm
                    .vector(Self::add_code(width), SOURCES[0], from, Source::Mem(steps));
                SOURCES[0]
            };
            self.asm.store_vector(home.plus(32 * part as i32), ymm);
        }
    }

    /// Returns the scalars whose rows must be complete before the interpreter runs an instruction: the sources and,
    /// with a guard, also the results.
    pub(super) fn scalar_sources(&self, inst: &Inst) -> Vec<Reg> {
        let step = Step::Plain(inst);
        let mut found = Vec::new();
        defined::reads(&step, |reg| found.push(reg));
        if inst.guard.is_some() {
            found.extend(inst.dsts.iter().flatten());
        }
        found.retain(|reg| matches!(self.kind(*reg), Kind::Scalar(..)) && !self.is_alias(*reg));
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Writes each register whose row is out of date to its row.
    pub(super) fn flush(&mut self, state: &State) {
        for (reg, cached) in state.cached.iter() {
            if cached.dirty {
                self.store_home(reg, cached);
            }
        }
    }

    /// Reads all registers from their rows, and those of checked ranges from their copies.
    pub(super) fn reload(&mut self, state: &State) {
        self.reload_checked(&state.checked);
        for (reg, cached) in state.cached.iter() {
            self.load_home(reg, cached);
        }
    }

    /// Writes a register to its row if the row is out of date.
    pub(super) fn write_row(&mut self, reg: Reg) {
        if let Some(cached) = self.state.cached.get_mut(reg)
            && cached.dirty
        {
            cached.dirty = false;
            let cached = *cached;
            self.store_home(reg, &cached);
        }
    }

    /// Removes a register that is no longer needed.
    pub(super) fn forget(&mut self, reg: Reg) {
        self.state.cached.remove(reg);
    }

    /// Writes a register to its row if the row is out of date, and frees its machine registers.
    fn evict(&mut self, reg: Reg) {
        if let Some(cached) = self.state.cached.remove(reg)
            && cached.dirty
        {
            self.store_home(reg, &cached);
        }
    }

    /// Returns the cached register whose next use is furthest away, of those that `of` selects. A register of the
    /// current instruction is returned only if there is no other.
    fn victim(&self, of: impl Fn(&Cached) -> bool) -> Option<Reg> {
        let candidates = self.state.cached.iter().filter(|(_, cached)| of(cached));
        let order = |reg: &Reg| (!self.pinned.contains(reg), self.next_use(*reg));
        candidates.map(|(reg, _)| reg).max_by_key(order)
    }

    pub(super) fn take_gpr(&mut self) -> Gpr {
        loop {
            if let Some(gpr) = self.state.free_gpr() {
                return gpr;
            }
            // Give up a checked range: it can be checked again.
            let others = self
                .state
                .checked
                .iter()
                .enumerate()
                .filter(|(_, c)| c.used != self.step);
            if let Some((oldest, _)) = others.min_by_key(|(_, c)| c.used) {
                self.state.checked.swap_remove(oldest);
                continue;
            }
            match self.victim(|cached| cached.gpr.is_some()) {
                Some(reg) => self.evict(reg),
                None => {
                    self.asm.run_short();
                    return GPRS[0];
                }
            }
        }
    }

    fn take_ymm(&mut self, taken: u16) -> Ymm {
        loop {
            let used = self.state.used_ymms() | taken;
            if let Some(free) = (0..YMMS).find(|n| used >> n & 1 == 0) {
                return Ymm(free);
            }
            match self.victim(|cached| cached.parts > 0) {
                Some(reg) => self.evict(reg),
                None => {
                    self.asm.run_short();
                    return Ymm(0);
                }
            }
        }
    }

    /// Returns vector registers that are not in `taken`.
    fn take_ymms(&mut self, count: usize, mut taken: u16) -> [Ymm; MOST_PARTS] {
        let mut found = [Ymm(0); MOST_PARTS];
        for ymm in found.iter_mut().take(count) {
            *ymm = self.take_ymm(taken);
            taken |= 1 << ymm.0;
        }
        found
    }

    /// Reserves vector registers for intermediate values, but leaves at least four to other values.
    pub(super) fn reserve(&mut self, count: usize) -> Vec<Ymm> {
        let mut found = Vec::new();
        for _ in 0..count.min(usize::from(YMMS) - 4) {
            let ymm = self.take_ymm(0);
            self.state.reserved |= 1 << ymm.0;
            found.push(ymm);
        }
        found
    }

    /// Returns vector registers for intermediate values, until the next register is taken.
    pub(super) fn spare(&mut self, count: usize) -> Vec<Ymm> {
        self.take_ymms(count, 0)[..count].to_vec()
    }

    /// Returns the general register for a new value of a mask or scalar.
    pub(super) fn define_gpr(&mut self, reg: Reg) -> Gpr {
        let old = self.state.cached.remove(reg).and_then(|cached| cached.gpr);
        let gpr = old.unwrap_or_else(|| self.take_gpr());
        let cached = Cached {
            gpr: Some(gpr),
            dirty: true,
            ..Cached::NONE
        };
        self.state.cached.insert(reg, cached);
        gpr
    }

    /// Returns the vector registers for a new value of a vector, or one for a uniform scalar.
    pub(super) fn define_vector(&mut self, reg: Reg) -> Vec<Ymm> {
        self.define_vectors(&[reg]).swap_remove(0)
    }

    /// Returns the vector registers of a source for a new value. The source keeps them, too, until it is
    /// [forgotten](Self::forget).
    pub(super) fn take_over(&mut self, source: Reg, reg: Reg) -> Vec<Ymm> {
        let Some(old) = self.state.get(source).copied() else {
            return self.define_vector(reg);
        };
        let cached = Cached {
            gpr: None,
            dirty: true,
            ..old
        };
        self.state.cached.insert(reg, cached);
        cached.parts().to_vec()
    }

    /// As [`define_vector`](Self::define_vector), for several registers. They get different vector registers.
    pub(super) fn define_vectors(&mut self, regs: &[Reg]) -> Vec<Vec<Ymm>> {
        let old: Vec<Option<Cached>> = regs.iter().map(|reg| self.state.cached.remove(*reg)).collect();
        let fits = |reg: &Reg, old: &Option<Cached>| {
            let old = (*old)?;
            (usize::from(old.parts) == self.defined_parts(*reg)).then_some(old.ymm)
        };
        // Registers that keep their vector registers come first.
        let mut found: Vec<Option<[Ymm; MOST_PARTS]>> =
            regs.iter().zip(&old).map(|(reg, old)| fits(reg, old)).collect();
        let mut taken = 0;
        for (reg, ymm) in regs.iter().zip(&found) {
            for ymm in ymm.iter().flat_map(|ymm| &ymm[..self.defined_parts(*reg)]) {
                taken |= 1 << ymm.0;
            }
        }
        for (reg, found) in regs.iter().zip(&mut found) {
            if found.is_none() {
                let count = self.defined_parts(*reg);
                let ymm = self.take_ymms(count, taken);
                taken |= ymm[..count].iter().fold(0, |taken, ymm| taken | 1 << ymm.0);
                *found = Some(ymm);
            }
        }
        let mut all = Vec::with_capacity(regs.len());
        for (reg, ymm) in regs.iter().zip(found) {
            let (count, ymm) = (self.defined_parts(*reg), ymm.unwrap_or([Ymm(0); MOST_PARTS]));
            let cached = Cached {
                gpr: None,
                ymm,
                parts: count as u8,
                dirty: true,
            };
            self.state.cached.insert(*reg, cached);
            all.push(ymm[..count].to_vec());
        }
        all
    }

    /// Returns the number of vector registers for a new value.
    pub(super) fn defined_parts(&self, reg: Reg) -> usize {
        match self.kind(reg) {
            Kind::Vector(width) => self.parts(width),
            Kind::Half => self.parts(Width::Bits32),
            _ => 1,
        }
    }

    /// Loads a vector, or a uniform scalar as one, into vector registers if there is room, and if it is in a general
    /// register or something uses it again.
    pub(super) fn prepare_vector(&mut self, reg: Reg) {
        let Some((width, count)) = self.vector_parts(reg) else {
            return;
        };
        let old = self.state.get(reg).copied();
        if old.is_some_and(|cached| cached.parts > 0) || self.state.free_ymms() < count as u32 {
            return;
        }
        if old.is_none() && !self.is_used_again(reg) {
            return;
        }
        self.load_vector(reg, old, (width, count));
    }

    /// Loads a register that an instruction both reads and writes, so that the result can replace it.
    pub(super) fn load_before_write(&mut self, reg: Reg) {
        let Some((width, count)) = self.vector_parts(reg) else {
            return;
        };
        let old = self.state.get(reg).copied();
        if old.is_none_or(|cached| cached.parts == 0) {
            self.load_vector(reg, old, (width, count));
        }
    }

    /// Returns the width of a register's elements and the number of vector registers that hold it, or
    /// `None` if the register is kept in another way.
    fn vector_parts(&self, reg: Reg) -> Option<(Width, usize)> {
        match self.kind(reg) {
            Kind::Vector(width) => Some((width, self.parts(width))),
            Kind::Half => Some((Width::Bits32, self.parts(Width::Bits32))),
            Kind::Scalar(width, 0) => Some((width, 1)),
            _ => None,
        }
    }

    fn load_vector(&mut self, reg: Reg, old: Option<Cached>, (width, count): (Width, usize)) {
        let ymm = self.take_ymms(count, 0);
        let mut cached = old.unwrap_or(Cached::NONE);
        (cached.ymm, cached.parts) = (ymm, count as u8);
        match cached.gpr {
            Some(gpr) => self.asm.broadcast_gpr(width, ymm[0], gpr),
            None => self.load_home(reg, &cached),
        }
        self.state.cached.insert(reg, cached);
    }

    /// Returns a scalar's first lane, in a general register or in memory, or a mask, always in a general register. Uses
    /// `temp` if no other register has the value or is free for it.
    pub(super) fn word(&mut self, reg: Reg, temp: Gpr) -> Word {
        let kind = self.kind(reg);
        match self.state.get(reg).copied() {
            Some(Cached { gpr: Some(gpr), .. }) => return Word::Gpr(gpr),
            Some(cached) => {
                if let (Kind::Scalar(width, _), [first]) = (kind, cached.parts()) {
                    self.asm.first_element(width, temp, *first);
                    return Word::Gpr(temp);
                }
            }
            None => {}
        }
        if kind != Kind::Mask && (!self.is_used_again(reg) || self.state.free_gpr().is_none()) {
            return Word::Mem(self.home(reg));
        }
        let gpr = if self.state.free_gpr().is_some() {
            self.take_gpr()
        } else {
            temp
        };
        let cached = Cached {
            gpr: Some(gpr),
            ..Cached::NONE
        };
        self.load_home(reg, &cached);
        if gpr != temp {
            self.state.cached.insert(reg, cached);
        }
        Word::Gpr(gpr)
    }

    /// Copies a mask into `to`.
    pub(super) fn copy_mask(&mut self, reg: Reg, to: Gpr) {
        match self.state.get(reg).and_then(|cached| cached.gpr) {
            Some(gpr) => self.asm.alu(Alu::Mov, Width::Bits32, to, Word::Gpr(gpr)),
            None => {
                let home = self.home(reg);
                self.load_mask(to, home);
            }
        }
    }

    /// Loads the machine registers with the values that the code at a label expects. Before that, writes the rows that
    /// are out of date, of registers that are `live` there, except rows that this code need not have up to date.
    pub(super) fn become_state(&mut self, target: &State, live: impl Fn(Reg) -> bool) {
        let now = std::mem::take(&mut self.state);
        let mut loads = Vec::new();
        for (reg, cached) in now.cached.iter() {
            let kept = target
                .get(reg)
                .is_some_and(|t| same_place(cached, t) && (t.dirty || !cached.dirty));
            if cached.dirty && !kept && live(reg) {
                self.store_home(reg, cached);
            }
        }
        for (reg, wanted) in target.cached.iter() {
            match now.get(reg) {
                Some(cached) if same_place(cached, wanted) => {}
                _ => loads.push((reg, *wanted)),
            }
        }
        for (reg, wanted) in loads {
            self.load_home(reg, &wanted);
        }
        self.state = target.clone();
    }
}

/// Returns true if everything that `wanted` holds is in the same registers in `now`.
fn same_place(now: &Cached, wanted: &Cached) -> bool {
    (wanted.gpr.is_none() || wanted.gpr == now.gpr) && (wanted.parts == 0 || wanted.parts() == now.parts())
}
