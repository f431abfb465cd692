//! Loads and stores: one check of bounds and alignment for a group.

use super::assembler::{Alu, Gpr, Mem, Source, When, Width, Word};
use super::emitter::Emitter;
use super::registers::{CONTEXT, Kind, SOURCES, State, WINDOWS};
use super::value::Value;
use crate::code::compiled::{CompiledContext, Window};
use crate::plan::shape::Shape;
use ptx::ir::{Inst, MemMods, Op, Operand, Order, Reg, RegClass, Space};
use std::mem::{offset_of, size_of};

impl Emitter<'_> {
    /// Adds a load or store whose address is uniform, or leads from lane to lane by the size of the access. Returns
    /// false for others; then nothing is added.
    pub(super) fn access(&mut self, step: usize, inst: &Inst) -> bool {
        match &inst.op {
            Op::Ld(m) => self.load(step, inst, m),
            Op::St(m) => self.store(step, inst, m),
            _ => false,
        }
    }

    /// Returns the address and the width of an access that is supported.
    fn address(&self, inst: &Inst, m: &MemMods) -> Option<(Value, Width)> {
        let width = match m.ty.size() {
            4 => Width::Bits32,
            8 => Width::Bits64,
            _ => return None,
        };
        if m.vec != 1 || m.order != Order::Weak {
            return None;
        }
        let operand = inst.srcs.first()?;
        let address = match m.space {
            Space::Global | Space::Const | Space::Generic => self.value(operand, Width::Bits64)?,
            Space::Shared => {
                let narrow = matches!(operand, Operand::Reg(reg) if self.class(*reg) == RegClass::B32);
                self.value(operand, if narrow { Width::Bits32 } else { Width::Bits64 })?
            }
            _ => return None,
        };
        i32::try_from(m.offset).ok()?;
        Some((address, width))
    }

    fn load(&mut self, step: usize, inst: &Inst, m: &MemMods) -> bool {
        let (Some((address, width)), [Some(d)]) = (self.address(inst, m), inst.dsts.as_slice()) else {
            return false;
        };
        let (d, bytes) = (*d, i64::from(m.ty.size()));
        let uniform = match (address.shape, self.kind(d)) {
            (Shape::Uniform, Kind::Scalar(of, 0) | Kind::Vector(of)) if of == width => true,
            (Shape::Affine(each), Kind::Vector(of)) if of == width && each == bytes => false,
            _ => return false,
        };
        let lanes = if uniform { 1 } else { self.lanes };
        let (at, before, label, window) = self.checked((&inst.srcs[0], address), m, lanes, width);
        match self.kind(d) {
            // Floating-point numbers are used as vectors, integers as addresses.
            Kind::Scalar(..) if !m.ty.is_float() => {
                let d = self.define_gpr(d);
                self.asm.alu(Alu::Mov, width, d, Word::Mem(at));
            }
            _ => {
                let ymms = self.define_vector(d);
                for (part, ymm) in (0..).zip(ymms) {
                    if uniform {
                        self.asm.broadcast(width, ymm, at);
                    } else {
                        self.asm.load(ymm, Source::Mem(at.plus(32 * part)));
                    }
                }
            }
        }
        self.interpret_stub(label, step, inst, before, window);
        true
    }

    fn store(&mut self, step: usize, inst: &Inst, m: &MemMods) -> bool {
        if m.space == Space::Const {
            return false;
        }
        let Some((address, width)) = self.address(inst, m) else {
            return false;
        };
        let Some(value) = inst.srcs.get(1).and_then(|operand| self.value(operand, width)) else {
            return false;
        };
        let bytes = m.ty.size();
        let uniform = match address.shape {
            // The last lane wins.
            Shape::Uniform => value.is_uniform(),
            Shape::Affine(each) => each == i64::from(bytes),
            Shape::Any => false,
        };
        let scalar = address.shape == Shape::Uniform;
        if !uniform {
            return false;
        }
        let lanes = if scalar { 1 } else { self.lanes };
        if !scalar {
            self.prepare(value);
        }
        let (at, before, label, window) = self.checked((&inst.srcs[0], address), m, lanes, width);
        if scalar {
            match self.uniform_vector(value) {
                Some(ymm) => self.asm.store_first(width, at, ymm),
                None => {
                    self.copy_first_lane(value, Gpr::CX);
                    self.asm.store(bytes, at, Gpr::CX);
                }
            }
        } else {
            for part in 0..self.parts(width) {
                let source = self.source(value, part, 1);
                let ymm = self.in_register(source, SOURCES[1]);
                self.asm.store_vector(at.plus(32 * part as i32), ymm);
            }
        }
        self.interpret_stub(label, step, inst, before, window);
        true
    }

    /// Adds the check of an access by these lanes. Returns the place of the first lane on the host, and what
    /// [`interpret_stub`](Self::interpret_stub) needs for accesses that do not pass.
    fn checked(
        &mut self,
        (operand, address): (&Operand, Value),
        m: &MemMods,
        lanes: u32,
        width: Width,
    ) -> (Mem, State, super::assembler::Label, u32) {
        let wide = Width::Bits64;
        let bytes = match width {
            Width::Bits32 => 4,
            Width::Bits64 => 8,
        };
        let span = (lanes * bytes) as i32;
        self.copy_first_lane(address, Gpr::AX);
        let (label, before) = (self.asm.label(), self.state.clone());
        if m.offset != 0 {
            // Addresses of 32 bits wrap.
            self.asm.lea(address.width, Gpr::AX, Mem::at(Gpr::AX, m.offset as i32));
        } else if address.width == Width::Bits32 {
            self.asm.alu(Alu::Mov, Width::Bits32, Gpr::AX, Word::Gpr(Gpr::AX));
        }
        if !self.is_aligned(operand, m.offset, bytes) {
            let low = Word::Imm(bytes as i32 - 1);
            self.asm.alu(Alu::Test, Width::Bits32, Gpr::AX, low);
            self.asm.jump_when(When::NotEqual, label);
        }
        if m.space == Space::Shared {
            let field = |offset: usize| Word::Mem(Mem::at(CONTEXT, offset as i32));
            let length = field(offset_of!(CompiledContext, shared_length));
            if address.width == Width::Bits32 {
                // The end of the access, which does not wrap.
                self.asm.lea(wide, Gpr::DX, Mem::at(Gpr::AX, span));
                self.asm.alu(Alu::Cmp, wide, Gpr::DX, length);
            } else {
                self.asm.alu(Alu::Mov, wide, Gpr::DX, length);
                self.asm.alu(Alu::Sub, wide, Gpr::DX, Word::Imm(span));
                self.asm.jump_when(When::Below, label);
                self.asm.alu(Alu::Cmp, wide, Gpr::AX, Word::Gpr(Gpr::DX));
            }
            self.asm.jump_when(When::Above, label);
            let host = field(offset_of!(CompiledContext, shared));
            self.asm.alu(Alu::Add, wide, Gpr::AX, host);
            return (Mem::at(Gpr::AX, 0), before, label, u32::MAX);
        }
        let window = self.new_window();
        let entry = window as usize * size_of::<Window<'_>>();
        let field = |offset: usize| Word::Mem(Mem::at(WINDOWS, (entry + offset) as i32));
        let [base, length, to_host] = [
            offset_of!(Window<'_>, base),
            offset_of!(Window<'_>, length),
            offset_of!(Window<'_>, to_host),
        ]
        .map(field);
        self.asm.alu(Alu::Mov, wide, Gpr::DX, length);
        self.asm.alu(Alu::Mov, wide, Gpr::DX, Word::Mem(Mem::at(Gpr::DX, 0)));
        self.asm.alu(Alu::Mov, wide, Gpr::CX, Word::Gpr(Gpr::AX));
        self.asm.alu(Alu::Sub, wide, Gpr::CX, base);
        self.asm.alu(Alu::Sub, wide, Gpr::DX, Word::Imm(span));
        self.asm.jump_when(When::Below, label);
        self.asm.alu(Alu::Cmp, wide, Gpr::CX, Word::Gpr(Gpr::DX));
        self.asm.jump_when(When::Above, label);
        self.asm.alu(Alu::Add, wide, Gpr::AX, to_host);
        (Mem::at(Gpr::AX, 0), before, label, window)
    }

    /// Returns true if an address is known to be a multiple of the size of the access.
    fn is_aligned(&self, operand: &Operand, offset: i64, bytes: u32) -> bool {
        let Operand::Reg(reg) = operand else { return false };
        let known = self.input.shapes.alignment(*reg);
        !self.is_alias(*reg) && known >= bytes.trailing_zeros() && offset.rem_euclid(i64::from(bytes)) == 0
    }

    /// Adds an instruction in machine code. Returns false if the interpreter must run it; then nothing is added.
    pub(super) fn native(&mut self, step: usize, inst: &Inst, live: &[Reg], rest: u32) -> bool {
        if let Some((guard, negated)) = inst.guard {
            return self.guarded(step, inst, guard, negated, live, rest);
        }
        match &inst.op {
            Op::Ld(_) | Op::St(_) => return self.access(step, inst),
            _ => {}
        }
        if self.predicate(step, inst) || self.carrying(inst) {
            return true;
        }
        let [Some(d)] = inst.dsts.as_slice() else {
            return false;
        };
        if matches!(self.kind(*d), Kind::Scalar(..)) && self.scalar(step, inst, *d, live, rest) {
            return true;
        }
        self.vector(inst, *d) || self.formula(inst, *d)
    }

    /// Adds an instruction with a guard: in machine code if the guard is true in all lanes, else in the interpreter.
    fn guarded(&mut self, step: usize, inst: &Inst, guard: Reg, negated: bool, live: &[Reg], rest: u32) -> bool {
        let plain = Inst {
            guard: None,
            ..inst.clone()
        };
        if self.is_alias(guard) {
            return false;
        }
        let mask = match self.word(guard, Gpr::AX) {
            Word::Gpr(gpr) => gpr,
            Word::Mem(_) | Word::Imm(_) => {
                self.copy_mask(guard, Gpr::AX);
                Gpr::AX
            }
        };
        let (label, before) = (self.asm.label(), self.state.clone());
        let all = if negated { 0 } else { self.full() };
        self.asm.alu(Alu::Cmp, Width::Bits32, mask, Word::Imm(all));
        self.asm.jump_when(When::NotEqual, label);
        if !self.native(step, &plain, live, rest) {
            // The interpreter runs it in any case.
            self.asm.bind(label);
            return false;
        }
        self.interpret_stub(label, step, inst, before, u32::MAX);
        true
    }
}
