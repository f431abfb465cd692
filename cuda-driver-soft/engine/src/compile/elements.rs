//! Machine code of loads and stores of one to four elements per lane.

use super::assembler::{Alu, Gpr, Mem, Source, Width, Word, Ymm};
use super::emitter::Emitter;
use super::lanes::{Addresses, Places};
use super::ranges::Memory;
use super::registers::{Kind, SOURCES, TEMP};
use super::value::Value;
use crate::plan::shape::Shape;
use iced_x86::Code;
use ptx::ir::{Inst, MemMods, Op, Operand, Order, Reg, RegClass, Space};

/// A load or store that has machine code.
struct Access {
    addresses: Addresses,
    /// Bytes of an element: 1, 2, 4 or 8.
    element: u32,
    /// True if a load extends elements by their sign.
    signed: bool,
    /// The class of the registers; if only constants are stored, a class that can hold them.
    class: RegClass,
}

impl Access {
    /// Returns the number of columns that the access moves.
    fn columns(&self) -> usize {
        match (self.class, self.element) {
            (RegClass::B64, 8) => self.addresses.size as usize / 8,
            _ => (self.addresses.size as usize / 4).max(1),
        }
    }
}

const AND: Code = Code::VEX_Vpand_ymm_ymm_ymmm256;
const LEFT: Code = Code::VEX_Vpslld_ymm_ymm_imm8;

impl Emitter<'_> {
    /// Adds a load or store. If it has no machine code, returns false and adds nothing.
    pub(super) fn access(&mut self, step: usize, inst: &Inst, live: &[Reg], rest: u32) -> bool {
        match &inst.op {
            Op::Ld(m) => self.load(step, inst, m, live, rest).is_some(),
            Op::St(m) => self.store(step, inst, m, live, rest).is_some(),
            _ => false,
        }
    }

    /// Returns the access of an instruction that loads or stores these registers. Returns `None` if it has no machine
    /// code.
    fn access_of(&self, inst: &Inst, m: &MemMods, registers: impl Iterator<Item = Reg>) -> Option<Access> {
        let mut classes = registers.map(|reg| self.class(reg));
        let element = m.ty.size();
        let class = match (classes.next(), element) {
            (Some(class), _) => class,
            (None, 8) => RegClass::B64,
            (None, _) => RegClass::B32,
        };
        let (count, size) = (u32::from(m.vec), element * u32::from(m.vec));
        let fits = match class {
            RegClass::B16 => element <= 2,
            RegClass::B32 => element <= 4,
            RegClass::B64 => element == 8 || (element <= 4 && count == 1),
            RegClass::Pred | RegClass::B128 => false,
        };
        if classes.any(|other| other != class) || !fits || size > 16 || count > 4 || m.order != Order::Weak {
            return None;
        }
        Some(Access {
            addresses: self.addresses_of(inst, m, size)?,
            element,
            signed: m.ty.is_signed(),
            class,
        })
    }

    /// Returns the addresses of an access of `size` bytes per lane if there is machine code for their places.
    pub(super) fn addresses_of(&self, inst: &Inst, m: &MemMods, size: u32) -> Option<Addresses> {
        let memory = Memory::of(m.space)?;
        let operand = inst.srcs.first()?;
        let narrow =
            memory != Memory::Global && matches!(operand, Operand::Reg(reg) if self.class(*reg) == RegClass::B32);
        let addresses = Addresses {
            memory,
            value: self.value(operand, if narrow { Width::Bits32 } else { Width::Bits64 })?,
            offset: i32::try_from(m.offset).ok()?,
            size,
            aligned: self.is_aligned(operand, m.offset, size),
        };
        self.has_places(&addresses).then_some(addresses)
    }

    /// Returns true if the addresses of all lanes are known to be multiples of the size of the access.
    fn is_aligned(&self, operand: &Operand, offset: i64, bytes: u32) -> bool {
        let Operand::Reg(reg) = operand else { return bytes == 1 };
        let is_multiple = |distance: i64| distance.rem_euclid(i64::from(bytes)) == 0;
        // The alignment is that of the first lane.
        let first = !self.is_alias(*reg) && self.shapes.alignment(*reg) >= bytes.trailing_zeros();
        let step = match self.shape(*reg) {
            Shape::Affine(step) => step,
            Shape::Uniform | Shape::Any => 0,
        };
        bytes == 1 || first && is_multiple(offset) && is_multiple(step)
    }

    /// Adds a load. Returns `None` if it has no machine code.
    fn load(&mut self, step: usize, inst: &Inst, m: &MemMods, live: &[Reg], rest: u32) -> Option<()> {
        let to: Vec<Reg> = inst.dsts.iter().copied().collect::<Option<_>>()?;
        let distinct = (1..to.len()).all(|i| !to[..i].contains(&to[i]));
        let access = self.access_of(inst, m, to.iter().copied())?;
        let same = access.addresses.are_same();
        let vectors = to.iter().all(|d| matches!(self.kind(*d), Kind::Vector(_) | Kind::Half));
        if !distinct || to.len() != usize::from(m.vec) || !(same || vectors) {
            return None;
        }
        let uniform = |d: &Reg| matches!(self.kind(*d), Kind::Vector(_) | Kind::Half | Kind::Scalar(_, 0));
        if !to.iter().all(uniform) {
            return None;
        }
        let places = self.checked(&access.addresses, inst);
        match places.same() {
            Some(at) => {
                for (d, i) in to.iter().zip(0..) {
                    self.load_same(&access, *d, at.plus((i * access.element) as i32), m.ty.is_float());
                }
            }
            None => {
                // Of elements of 1 or 2 bytes in one column, those that nothing reads need no registers.
                let wanted: Vec<Reg> = match access.element {
                    1 | 2 if access.columns() == 1 => to.iter().copied().filter(|d| self.is_read_later(*d)).collect(),
                    _ => to.clone(),
                };
                let mut defined = self.define_vectors(&wanted).into_iter();
                let d: Vec<Vec<Ymm>> = to
                    .iter()
                    .map(|d| wanted.contains(d).then(|| defined.next()).flatten().unwrap_or_default())
                    .collect();
                if !wanted.is_empty() {
                    self.load_vectors(&access, &places, &d);
                }
            }
        }
        self.failed(step, inst, places, access.addresses.aligned, live, rest);
        Some(())
    }

    /// Loads an element that is the same for all lanes.
    fn load_same(&mut self, access: &Access, d: Reg, at: Mem, float: bool) {
        let (element, class) = (access.element, access.class);
        let width = if class == RegClass::B64 {
            Width::Bits64
        } else {
            Width::Bits32
        };
        let kind = self.kind(d);
        // Floating-point numbers are mostly used in vectors, integers in addresses.
        let scalar = matches!(kind, Kind::Scalar(..)) && !float;
        if !scalar && element == width.bytes() {
            for ymm in self.define_vector(d) {
                self.asm.broadcast(width, ymm, at);
            }
            return;
        }
        match element {
            8 => self.asm.alu(Alu::Mov, width, Gpr::CX, Word::Mem(at)),
            4 if class == RegClass::B64 && access.signed => self.asm.extend_signed(Gpr::CX, Word::Mem(at)),
            4 => self.asm.alu(Alu::Mov, Width::Bits32, Gpr::CX, Word::Mem(at)),
            _ => {
                self.asm.load_narrow(element, access.signed, Gpr::CX, at);
                if class == RegClass::B64 && access.signed {
                    self.asm.extend_signed(Gpr::CX, Word::Gpr(Gpr::CX));
                }
                if class == RegClass::B16 {
                    self.asm.alu(Alu::And, Width::Bits32, Gpr::CX, Word::Imm(0xffff));
                }
            }
        }
        if scalar {
            let d = self.define_gpr(d);
            self.asm.alu(Alu::Mov, width, d, Word::Gpr(Gpr::CX));
        } else {
            for ymm in self.define_vector(d) {
                self.asm.broadcast_gpr(width, ymm, Gpr::CX);
            }
        }
    }

    /// Loads elements that differ from lane to lane. `d` has the registers of each element; none for elements of a
    /// single column that are not needed.
    fn load_vectors(&mut self, access: &Access, places: &Places, d: &[Vec<Ymm>]) {
        let element = access.element;
        match (access.class, element) {
            (RegClass::B64, 8) => {
                for part in 0..d[0].len() {
                    let columns: Vec<Ymm> = d.iter().map(|d| d[part]).collect();
                    self.load_columns64(places, part, &columns);
                }
            }
            (RegClass::B64, _) => {
                let code = if access.signed {
                    Code::VEX_Vpmovsxdq_ymm_xmmm128
                } else {
                    Code::VEX_Vpmovzxdq_ymm_xmmm128
                };
                for (part, pair) in d[0].chunks(2).enumerate() {
                    self.load_columns32(places, part, &[TEMP], access.signed);
                    self.asm.widen(code, pair[0], Source::Ymm(TEMP));
                    self.asm.upper_half(TEMP, TEMP);
                    self.asm.widen(code, pair[1], Source::Ymm(TEMP));
                }
            }
            _ => {
                // Number of elements in a column.
                let each = (4 / element as usize).min(d.len());
                // The bits above the value of a 16-bit register must be zero.
                let signed = access.signed && !(access.class == RegClass::B16 && element == 2);
                for part in 0..self.parts(Width::Bits32) {
                    // The first element that is needed has the column until it is extracted itself.
                    let holder = |elements: &[Vec<Ymm>]| elements.iter().find_map(|d| d.get(part)).copied();
                    let columns: Vec<Ymm> = d.chunks(each).filter_map(holder).collect();
                    self.load_columns32(places, part, &columns, signed && each == 1);
                    for (elements, column) in d.chunks(each).zip(columns) {
                        for (i, d) in elements.iter().enumerate().rev() {
                            let Some(d) = d.get(part).copied() else { continue };
                            if each > 1 {
                                self.element_of(column, d, i as u32, element, signed);
                            }
                            if signed && access.class == RegClass::B16 {
                                self.mask(d, 0xffff);
                            }
                        }
                    }
                }
            }
        }
    }

    /// Sets `d` to an element of a column, extended.
    fn element_of(&mut self, column: Ymm, d: Ymm, i: u32, element: u32, signed: bool) {
        let bits = 8 * element;
        if signed {
            self.asm.unary_imm(LEFT, d, Source::Ymm(column), 32 - bits * (i + 1));
            self.asm
                .unary_imm(Code::VEX_Vpsrad_ymm_ymm_imm8, d, Source::Ymm(d), 32 - bits);
            return;
        }
        if i > 0 {
            self.asm
                .unary_imm(Code::VEX_Vpsrld_ymm_ymm_imm8, d, Source::Ymm(column), bits * i);
        }
        if bits * (i + 1) < 32 {
            let bits = self.same_constant(Width::Bits32, (1 << bits) - 1);
            let from = if i > 0 { d } else { column };
            self.asm.vector(AND, d, from, Source::Mem(bits));
        }
    }

    fn mask(&mut self, d: Ymm, bits: u64) {
        let bits = self.same_constant(Width::Bits32, bits);
        self.asm.vector(AND, d, d, Source::Mem(bits));
    }

    /// Adds a store. Returns `None` if it has no machine code.
    fn store(&mut self, step: usize, inst: &Inst, m: &MemMods, live: &[Reg], rest: u32) -> Option<()> {
        if m.space == Space::Const {
            return None;
        }
        let sources = inst.srcs.get(1..)?;
        let registers = sources.iter().filter_map(|operand| match operand {
            Operand::Reg(reg) => Some(*reg),
            _ => None,
        });
        let access = self.access_of(inst, m, registers)?;
        let values = sources.iter().map(|operand| match access.class {
            RegClass::B16 => self.half_value(operand),
            RegClass::B64 => self.value(operand, Width::Bits64),
            _ => self.value(operand, Width::Bits32),
        });
        let values: Vec<Value> = values.collect::<Option<_>>()?;
        let same = access.addresses.are_same();
        // All lanes store to one place, which keeps the value of the last lane that runs. Only code for some lanes
        // stores that value by itself; in other code, the interpreter runs the instruction.
        let last = same && !values.iter().all(Value::is_uniform);
        let has_last = self.masked && access.class != RegClass::B16;
        if values.len() != usize::from(m.vec) || (last && !has_last) {
            return None;
        }
        let rows: Vec<Option<Mem>> = match last {
            true => values.iter().map(|value| self.row_of(*value)).collect(),
            false => Vec::new(),
        };
        if !same {
            values.iter().for_each(|value| self.prepare(*value));
        }
        let columns = self.spare(if same { 0 } else { access.columns() });
        let places = self.checked(&access.addresses, inst);
        match places.same() {
            Some(at) => {
                for (value, i) in values.iter().zip(0..) {
                    let at = at.plus((i * access.element) as i32);
                    match rows.get(i as usize) {
                        Some(row) => self.store_last_active(access.element, at, *value, *row),
                        None => self.store_same(&access, *value, at),
                    }
                }
            }
            None => self.store_vectors(&access, &places, &values, &columns),
        }
        self.failed(step, inst, places, access.addresses.aligned, live, rest);
        Some(())
    }

    /// Stores an element that is the same for all lanes.
    fn store_same(&mut self, access: &Access, value: Value, at: Mem) {
        let vector = match access.class {
            RegClass::B16 if value.number().is_none() => Some(self.loaded(value, 0, 0)),
            _ => self.uniform_vector(value),
        };
        match vector {
            Some(ymm) => self.asm.extract(access.element, at, ymm, 0),
            None => {
                self.copy_first_lane(value, Gpr::CX);
                self.asm.store(access.element, at, Gpr::CX);
            }
        }
    }

    /// Stores elements that differ from lane to lane.
    fn store_vectors(&mut self, access: &Access, places: &Places, values: &[Value], spare: &[Ymm]) {
        let element = access.element;
        if access.class == RegClass::B64 && element == 8 {
            for part in 0..self.parts(Width::Bits64) {
                let columns: Vec<Ymm> = values
                    .iter()
                    .zip(spare)
                    .map(|(value, spare)| self.column(*value, part, *spare))
                    .collect();
                self.store_columns64(places, part, &columns);
            }
            return;
        }
        let each = (4 / element as usize).min(values.len());
        for part in 0..self.parts(Width::Bits32) {
            let mut columns = Vec::new();
            for (at, elements) in values.chunks(each).enumerate() {
                // `store_columns32` overwrites the last two of four columns.
                let keeps = access.addresses.size < 16 || at < 2;
                let column = match (access.class, element, elements) {
                    (RegClass::B64, _, [value]) => {
                        self.narrowed_part(*value, spare[at], part);
                        spare[at]
                    }
                    (_, 4, [value]) if keeps => self.column(*value, part, spare[at]),
                    _ => {
                        self.joined(elements, element, part, spare[at]);
                        spare[at]
                    }
                };
                columns.push(column);
            }
            if let (RegClass::B64, 1 | 2) = (access.class, element) {
                self.mask(columns[0], (1 << (8 * element)) - 1);
            }
            self.store_columns32(places, part, &columns);
        }
    }

    /// Returns a part of a source in a register that other sources do not use: its own, or `spare`.
    fn column(&mut self, value: Value, part: usize, spare: Ymm) -> Ymm {
        match self.source(value, part, 0) {
            Source::Ymm(ymm) if ymm != SOURCES[0] => ymm,
            source => {
                self.asm.load(spare, source);
                spare
            }
        }
    }

    /// Sets `to` to a column that is joined from several elements.
    fn joined(&mut self, elements: &[Value], element: u32, part: usize, to: Ymm) {
        let bits = 8 * element;
        for (value, i) in elements.iter().zip(0..) {
            let mut source = self.source(*value, part, 0);
            let d = if i == 0 { to } else { SOURCES[0] };
            // At the top of the column, the bits above an element are shifted out, so they need not be cleared.
            if bits * (i + 1) < 32 {
                let ymm = self.in_register(source, SOURCES[0]);
                let bits = self.same_constant(Width::Bits32, (1 << bits) - 1);
                self.asm.vector(AND, d, ymm, Source::Mem(bits));
                source = Source::Ymm(d);
            }
            if i > 0 {
                let ymm = self.in_register(source, SOURCES[0]);
                self.asm.unary_imm(LEFT, d, Source::Ymm(ymm), bits * i);
                self.asm.vector(Code::VEX_Vpor_ymm_ymm_ymmm256, to, to, Source::Ymm(d));
            } else {
                self.asm.load(d, source);
            }
        }
    }
}
