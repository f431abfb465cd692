//! The sources of instructions in compiled code: registers, numbers, and constants in the frame or the context.

use super::assembler::{Alu, Gpr, Mem, Source, Width, Word, Ymm};
use super::emitter::Emitter;
use super::registers::{CONTEXT, Kind, SOURCES};
use crate::code::compiled::CompiledContext;
use crate::code::constant::{Constant, Lifetime};
use crate::plan::shape::Shape;
use crate::plan::source::constant_of;
use ptx::ir::{Operand, Reg, RegClass};
use std::mem::offset_of;

/// A source of 32 or 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Value {
    pub(super) width: Width,
    place: Place,
    pub(super) shape: Shape,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Register(Reg),
    Number(u64),
    /// A constant in a row of the frame.
    Row(u32),
    /// A constant that is the same in all lanes: its row, its place in the context, and true if it must be read there
    /// because it changes from block to block.
    Uniform(u32, Mem, bool),
}

impl Value {
    /// Returns true if the first lane determines all lanes.
    pub(super) fn is_scalar(&self) -> bool {
        self.shape != Shape::Any
    }

    /// Returns true if the value is in this register.
    pub(super) fn is_register(&self, reg: Reg) -> bool {
        self.place == Place::Register(reg)
    }

    /// Returns the register that has the value.
    pub(super) fn register(&self) -> Option<Reg> {
        match self.place {
            Place::Register(reg) => Some(reg),
            _ => None,
        }
    }

    pub(super) fn is_uniform(&self) -> bool {
        self.shape == Shape::Uniform
    }

    /// Returns the value if it is known.
    pub(super) fn number(&self) -> Option<u64> {
        match self.place {
            Place::Number(bits) => Some(bits),
            _ => None,
        }
    }
}

impl Emitter<'_> {
    /// Returns a source operand; `None` if it has another width, or is not supported here.
    pub(super) fn value(&self, operand: &Operand, width: Width) -> Option<Value> {
        let (class, bytes) = match width {
            Width::Bits32 => (RegClass::B32, 4),
            Width::Bits64 => (RegClass::B64, 8),
        };
        let mask = match width {
            Width::Bits32 => u64::from(u32::MAX),
            Width::Bits64 => u64::MAX,
        };
        let mut shape = self.shapes.of_operand(operand);
        let constant = match operand {
            Operand::Reg(reg) => {
                if self.class(*reg) != class {
                    return None;
                }
                let known = self.shapes.constant(*reg).map(Constant::Bits);
                known.or(self.input.map.aliases[reg.0 as usize])
            }
            Operand::NotReg(_) => return None,
            operand => Some(constant_of(operand)?),
        };
        let place = match (constant, operand) {
            (Some(Constant::Bits(bits)), _) => {
                shape = Shape::Uniform;
                Place::Number(bits & mask)
            }
            (Some(constant), _) => self.constant_place(constant, bytes)?,
            (None, Operand::Reg(reg)) => Place::Register(*reg),
            (None, _) => return None,
        };
        Some(Value { width, place, shape })
    }

    /// Returns the place of a constant whose bits are not known.
    fn constant_place(&self, constant: Constant, bytes: u8) -> Option<Place> {
        let slot = self.constants.get(&(constant, bytes))?.0;
        let index = self.uniforms.iter().position(|uniform| *uniform == (constant, bytes));
        Some(match index {
            Some(index) => {
                let at = Mem::at(CONTEXT, offset_of!(CompiledContext, uniforms) as i32).plus(8 * index as i32);
                Place::Uniform(slot, at, constant.lifetime() == Lifetime::Block)
            }
            None => Place::Row(slot),
        })
    }

    /// Returns a source operand of 16 bits, with zeros above them; `None` if it is not supported here.
    pub(super) fn half_value(&self, operand: &Operand) -> Option<Value> {
        let (place, shape) = match operand {
            Operand::Imm(bits) => (Place::Number(bits & 0xffff), Shape::Uniform),
            Operand::Reg(reg) if self.class(*reg) == RegClass::B16 => {
                let known = self.shapes.constant(*reg).map(Constant::Bits);
                match known.or(self.input.map.aliases[reg.0 as usize]) {
                    Some(Constant::Bits(bits)) => (Place::Number(bits & 0xffff), Shape::Uniform),
                    Some(_) => return None,
                    // The first lane may not run, and then has any value.
                    None if self.masked => (Place::Register(*reg), Shape::Any),
                    None => (Place::Register(*reg), self.shape(*reg)),
                }
            }
            _ => return None,
        };
        Some(Value {
            width: Width::Bits32,
            place,
            shape,
        })
    }

    /// Loads a vector source into registers if that is worth it.
    pub(super) fn prepare(&mut self, value: Value) {
        if let Place::Register(reg) = value.place {
            self.prepare_vector(reg);
        }
    }

    /// Returns a part of a source: in a register, or in memory. A part that must be computed or broadcast first is in
    /// `SOURCES[at]`. Call this function only after the destination has got its registers, because taking registers may
    /// move sources to memory.
    pub(super) fn source(&mut self, value: Value, part: usize, at: usize) -> Source {
        let temp = SOURCES[at];
        let reg = match value.place {
            Place::Number(bits) => return Source::Mem(self.same_constant(value.width, bits)),
            Place::Uniform(_, at, true) => {
                self.asm.broadcast(value.width, temp, at);
                return Source::Ymm(temp);
            }
            Place::Row(slot) | Place::Uniform(slot, ..) => {
                return Source::Mem(self.row(slot, value.width).plus(32 * part as i32));
            }
            Place::Register(reg) => reg,
        };
        let cached = self.state.get(reg).copied();
        if let (Kind::Half, None) = (self.kind(reg), cached) {
            self.load_half_part(reg, part, temp);
            return Source::Ymm(temp);
        }
        let home = self.home(reg);
        let step = match self.kind(reg) {
            Kind::Scalar(_, step) => step,
            _ => {
                return match cached {
                    Some(cached) => Source::Ymm(cached.parts()[part]),
                    None => Source::Mem(home.plus(32 * part as i32)),
                };
            }
        };
        let first = match cached {
            Some(cached) => match (cached.parts(), cached.gpr) {
                ([first], _) => *first,
                (_, Some(gpr)) => {
                    self.asm.broadcast_gpr(value.width, temp, gpr);
                    temp
                }
                _ => temp,
            },
            None => {
                self.asm.broadcast(value.width, temp, home);
                temp
            }
        };
        if step == 0 {
            return Source::Ymm(first);
        }
        let steps = self.steps(value.width, step, part);
        let code = Self::add_code(value.width);
        self.asm.vector(code, temp, first, Source::Mem(steps));
        Source::Ymm(temp)
    }

    /// Returns the place in memory of a part of a source whose row is complete.
    pub(super) fn memory_of(&mut self, value: Value, part: usize) -> Mem {
        match value.place {
            Place::Number(bits) => self.same_constant(value.width, bits),
            // The scheduler fills the rows of constants for kernels with instructions for whole warps.
            Place::Row(slot) | Place::Uniform(slot, ..) => self.row(slot, value.width).plus(32 * part as i32),
            Place::Register(reg) => self.home(reg).plus(32 * part as i32),
        }
    }

    /// Returns the row of a vector source, which is written first if it is older than the machine registers; `None` for
    /// scalars.
    pub(super) fn row_of(&mut self, value: Value) -> Option<Mem> {
        if value.is_scalar() {
            return None;
        }
        if let Place::Register(reg) = value.place {
            self.write_row(reg);
        }
        Some(self.memory_of(value, 0))
    }

    /// Returns a part of a source in a register.
    pub(super) fn loaded(&mut self, value: Value, part: usize, at: usize) -> Ymm {
        let source = self.source(value, part, at);
        self.in_register(source, SOURCES[at])
    }

    /// Returns a source in a register.
    pub(super) fn in_register(&mut self, source: Source, temp: Ymm) -> Ymm {
        match source {
            Source::Ymm(ymm) => ymm,
            Source::Mem(_) => {
                self.asm.load(temp, source);
                temp
            }
        }
    }

    /// Returns the first lane of a scalar source, in `temp` if it is neither a small number nor in another register or
    /// memory.
    pub(super) fn first_lane(&mut self, value: Value, temp: Gpr) -> Word {
        match value.place {
            Place::Number(bits) => {
                let signed = match value.width {
                    Width::Bits32 => i64::from(bits as u32 as i32),
                    Width::Bits64 => bits.cast_signed(),
                };
                match i32::try_from(signed) {
                    Ok(number) => Word::Imm(number),
                    Err(_) => {
                        self.asm.constant(temp, bits);
                        Word::Gpr(temp)
                    }
                }
            }
            Place::Row(slot) => Word::Mem(self.row(slot, value.width)),
            Place::Uniform(_, at, _) => Word::Mem(at),
            Place::Register(reg) => self.word(reg, temp),
        }
    }

    /// Copies the first lane of a scalar source into `to`.
    pub(super) fn copy_first_lane(&mut self, value: Value, to: Gpr) {
        match self.first_lane(value, to) {
            Word::Imm(number) => self.asm.constant(
                to,
                match value.width {
                    Width::Bits32 => u64::from(number.cast_unsigned()),
                    Width::Bits64 => i64::from(number).cast_unsigned(),
                },
            ),
            Word::Gpr(gpr) if gpr == to => {}
            word => self.asm.alu(Alu::Mov, value.width, to, word),
        }
    }

    /// Returns the vector register that has a uniform source in all elements, if there is one.
    pub(super) fn uniform_vector(&self, value: Value) -> Option<Ymm> {
        let Place::Register(reg) = value.place else { return None };
        let cached = self.state.get(reg)?;
        match (self.kind(reg), cached.parts()) {
            (Kind::Scalar(_, 0), [first]) => Some(*first),
            _ => None,
        }
    }
}
