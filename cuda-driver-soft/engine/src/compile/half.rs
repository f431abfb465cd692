//! Machine code for registers of 16 bits, and for integer arithmetic and conversions on 8 and 16 bits.
//!
//! A register of 16 bits is a vector of 32-bit elements, with zeros above the 16 bits. Only its row in the frame has
//! elements of 16 bits, as the interpreter expects it.

use super::assembler::{Alu, Gpr, Mem, Source, Width, Word, Ymm};
use super::emitter::Emitter;
use super::registers::{Kind, ROWS32, SOURCES, TEMP, field};
use super::value::Value;
use crate::code::compiled::CompiledContext;
use iced_x86::Code;
use ptx::ir::{Cvt, Inst, Op, Operand, Part, Reg, RegClass, Type};
use std::mem::offset_of;

/// The low bits of a source, and how they are extended to a number of 32 bits.
#[derive(Clone, Copy, Debug)]
struct Number {
    value: Value,
    /// Number of low bits that are used, and true if they are a signed number.
    from: (u32, bool),
    /// True if the bits above are known to be zero.
    clean: bool,
}

/// An operation on numbers of 32 bits.
#[derive(Clone, Copy, Debug)]
enum Work {
    Copy,
    Two(Code),
    /// `d = a b + c`
    MultiplyAdd,
    Not,
    ToFloat,
    ShiftBy(Code, u32),
}

/// An operation, its sources, and the number of bits of the result that are kept if less than 32, with true if they are
/// signed.
type Operation = (Work, Vec<Number>, Option<(u32, bool)>);

/// Returns the bits of an integer type of 8, 16 or 32 bits, and true if it is signed.
fn integer(ty: Type) -> Option<(u32, bool)> {
    Some(match ty {
        Type::B8 | Type::U8 => (8, false),
        Type::S8 => (8, true),
        Type::B16 | Type::U16 => (16, false),
        Type::S16 => (16, true),
        Type::B32 | Type::U32 => (32, false),
        Type::S32 => (32, true),
        _ => return None,
    })
}

const ADD: Code = Code::VEX_Vpaddd_ymm_ymm_ymmm256;
const MULTIPLY: Code = Code::VEX_Vpmulld_ymm_ymm_ymmm256;

impl Emitter<'_> {
    /// Writes a register of 16 bits to its row. Uses `TEMP`.
    pub(super) fn store_half(&mut self, reg: Reg, parts: &[Ymm]) {
        self.with_half_row(reg, |emitter, row| {
            for (part, ymm) in (0..).zip(parts) {
                emitter.asm.upper_half(TEMP, *ymm);
                emitter
                    .asm
                    .vector_low(Code::VEX_Vpackusdw_xmm_xmm_xmmm128, TEMP, *ymm, TEMP);
                emitter.asm.store_low(16, row.plus(16 * part), TEMP);
            }
        });
    }

    /// Reads a register of 16 bits from its row.
    pub(super) fn load_half(&mut self, reg: Reg, parts: &[Ymm]) {
        for (part, ymm) in parts.iter().enumerate() {
            self.load_half_part(reg, part, *ymm);
        }
    }

    /// Reads a part of a register of 16 bits from its row.
    pub(super) fn load_half_part(&mut self, reg: Reg, part: usize, d: Ymm) {
        self.with_half_row(reg, |emitter, row| {
            let at = Source::Mem(row.plus(16 * part as i32));
            emitter.asm.widen(Code::VEX_Vpmovzxwd_ymm_xmmm128, d, at);
        });
    }

    /// Adds code that needs the row of a register of 16 bits.
    fn with_half_row(&mut self, reg: Reg, code: impl FnOnce(&mut Self, Mem)) {
        let slot = self.slot(reg) as i32;
        if self.is_whole_warp() {
            return code(self, Mem::at(ROWS32, slot));
        }
        // Values are also moved where all general registers may be in use.
        self.asm.push_register(Gpr::DX);
        let halves = Word::Mem(field(offset_of!(CompiledContext, halves)));
        self.asm.alu(Alu::Mov, Width::Bits64, Gpr::DX, halves);
        code(self, Mem::at(Gpr::DX, slot));
        self.asm.pop_register(Gpr::DX);
    }

    /// Adds an integer instruction or a copy that has a source or result of 8 or 16 bits. Returns false, and adds
    /// nothing, if the instruction has no machine code here.
    pub(super) fn halves(&mut self, inst: &Inst, d: Reg) -> bool {
        let Some((work, sources, to)) = self.half_work(inst, d) else {
            return false;
        };
        let uniform = sources.iter().all(|source| source.value.is_uniform());
        match self.kind(d) {
            Kind::Vector(Width::Bits32) | Kind::Half => {}
            Kind::Scalar(Width::Bits32, 0) if uniform => {}
            _ => return false,
        }
        for source in &sources {
            self.prepare(source.value);
        }
        if sources.iter().any(|source| source.value.is_register(d)) {
            self.load_before_write(d);
        }
        let values: Vec<Value> = sources.iter().map(|source| source.value).collect();
        let ending = self.ending_source(&values, d);
        let ymms = match ending {
            Some(source) => self.take_over(source, d),
            None => self.define_vector(d),
        };
        for (part, ymm) in ymms.into_iter().enumerate() {
            let loaded: Vec<Ymm> = sources
                .iter()
                .zip(SOURCES)
                .enumerate()
                .map(|(at, (source, temp))| self.number(*source, part, at, temp))
                .collect();
            self.half_part(work, &loaded, ymm);
            if let Some((bits, signed)) = to {
                self.extend(ymm, ymm, bits, signed);
            }
            if matches!(self.kind(d), Kind::Half) && !matches!(to, Some((8 | 16, false))) {
                self.extend(ymm, ymm, 16, false);
            }
        }
        if let Some(source) = ending {
            self.forget(source);
        }
        true
    }

    /// Returns the operation of an instruction.
    fn half_work(&self, inst: &Inst, d: Reg) -> Option<Operation> {
        let class = self.class(d);
        if !matches!(class, RegClass::B16 | RegClass::B32) {
            return None;
        }
        let numbers = |count: usize, ty: Type| {
            let from = integer(ty)?;
            let all = inst.srcs.get(..count)?.iter();
            all.map(|operand| self.number_of(operand, from))
                .collect::<Option<Vec<_>>>()
        };
        // Returns an operation whose sources and result have 16 bits.
        let plain = |work, count, ty: Type| {
            let fits = ty.size() == 2 && class == RegClass::B16;
            Some((work, numbers(count, ty).filter(|_| fits)?, Some((16, false))))
        };
        let unsigned = |ty: Type| if ty.is_float() { None } else { Some(Type::U16) };
        match &inst.op {
            Op::Mov { ty } if ty.size() == 2 => plain(Work::Copy, 1, Type::U16),
            Op::Add { ty, sat: false } if ty.size() == 2 => plain(Work::Two(ADD), 2, unsigned(*ty)?),
            Op::Sub { ty, sat: false } if ty.size() == 2 => {
                plain(Work::Two(Code::VEX_Vpsubd_ymm_ymm_ymmm256), 2, unsigned(*ty)?)
            }
            Op::Mul { ty, part: Part::Lo } if ty.size() == 2 => plain(Work::Two(MULTIPLY), 2, unsigned(*ty)?),
            Op::Mad {
                ty,
                part: Part::Lo,
                sat: false,
            } if ty.size() == 2 => plain(Work::MultiplyAdd, 3, unsigned(*ty)?),
            Op::And { ty } if ty.size() == 2 => plain(Work::Two(Code::VEX_Vpand_ymm_ymm_ymmm256), 2, Type::U16),
            Op::Or { ty } if ty.size() == 2 => plain(Work::Two(Code::VEX_Vpor_ymm_ymm_ymmm256), 2, Type::U16),
            Op::Xor { ty } if ty.size() == 2 => plain(Work::Two(Code::VEX_Vpxor_ymm_ymm_ymmm256), 2, Type::U16),
            Op::Not { ty } if ty.size() == 2 => plain(Work::Not, 1, Type::U16),
            Op::Min { ty, relu: false } if ty.size() == 2 => {
                plain(Work::Two(Code::VEX_Vpminsd_ymm_ymm_ymmm256), 2, *ty)
            }
            Op::Max { ty, relu: false } if ty.size() == 2 => {
                plain(Work::Two(Code::VEX_Vpmaxsd_ymm_ymm_ymmm256), 2, *ty)
            }
            Op::Shl { ty } | Op::Shr { ty } if ty.size() == 2 => {
                let distance = self.value(inst.srcs.get(1)?, Width::Bits32)?.number()?.min(255) as u32;
                let code = match (&inst.op, ty.is_signed()) {
                    (Op::Shl { .. }, _) => Code::VEX_Vpslld_ymm_ymm_imm8,
                    (_, false) => Code::VEX_Vpsrld_ymm_ymm_imm8,
                    (_, true) => Code::VEX_Vpsrad_ymm_ymm_imm8,
                };
                let sources = numbers(1, *ty)?;
                (class == RegClass::B16).then_some((Work::ShiftBy(code, distance), sources, Some((16, false))))
            }
            Op::Mul { ty, part: Part::Wide } if ty.size() == 2 && class == RegClass::B32 => {
                Some((Work::Two(MULTIPLY), numbers(2, *ty)?, None))
            }
            Op::Mad {
                ty,
                part: Part::Wide,
                sat: false,
            } if ty.size() == 2 && class == RegClass::B32 => {
                let mut sources = numbers(2, *ty)?;
                sources.push(self.number_of(inst.srcs.get(2)?, (32, false))?);
                Some((Work::MultiplyAdd, sources, None))
            }
            Op::Cvt(cvt) => self.half_conversion(inst, cvt, class),
            _ => None,
        }
    }

    fn half_conversion(&self, inst: &Inst, cvt: &Cvt, class: RegClass) -> Option<Operation> {
        if cvt.sat {
            return None;
        }
        let from = integer(cvt.from)?;
        let sources = vec![self.number_of(inst.srcs.first()?, from)?];
        if cvt.to == Type::F32 {
            // Numbers of 8 or 16 bits are exact in `.f32`, so that the rounding mode does not matter.
            return (from.0 < 32 && class == RegClass::B32).then_some((Work::ToFloat, sources, None));
        }
        let (bits, signed) = integer(cvt.to)?;
        if bits == 32 && (class != RegClass::B32 || from.0 == 32) {
            return None;
        }
        Some((Work::Copy, sources, (bits < 32).then_some((bits, signed))))
    }

    /// Returns a source of which these low bits are used.
    fn number_of(&self, operand: &Operand, from: (u32, bool)) -> Option<Number> {
        let half = match operand {
            Operand::Reg(reg) => self.class(*reg) == RegClass::B16,
            _ => from.0 <= 16,
        };
        if half && from.0 > 16 {
            return None;
        }
        let value = if half {
            self.half_value(operand)?
        } else {
            self.value(operand, Width::Bits32)?
        };
        Some(Number {
            value,
            from,
            clean: from.0 == 32 || (half && from == (16, false)),
        })
    }

    /// Returns a part of a source, extended to 32 bits, in a register.
    fn number(&mut self, number: Number, part: usize, at: usize, temp: Ymm) -> Ymm {
        let ymm = self.loaded(number.value, part, at);
        if number.clean {
            return ymm;
        }
        self.extend(temp, ymm, number.from.0, number.from.1);
        temp
    }

    /// Extends the low bits of each element.
    fn extend(&mut self, d: Ymm, a: Ymm, bits: u32, signed: bool) {
        if signed {
            let distance = 32 - bits;
            self.asm
                .unary_imm(Code::VEX_Vpslld_ymm_ymm_imm8, d, Source::Ymm(a), distance);
            self.asm
                .unary_imm(Code::VEX_Vpsrad_ymm_ymm_imm8, d, Source::Ymm(d), distance);
        } else {
            let bits = self.same_constant(Width::Bits32, (1 << bits) - 1);
            self.asm
                .vector(Code::VEX_Vpand_ymm_ymm_ymmm256, d, a, Source::Mem(bits));
        }
    }

    fn half_part(&mut self, work: Work, sources: &[Ymm], d: Ymm) {
        match (work, sources) {
            (Work::Copy, [a]) => self.asm.load(d, Source::Ymm(*a)),
            (Work::Two(code), [a, b]) => self.asm.vector(code, d, *a, Source::Ymm(*b)),
            (Work::MultiplyAdd, [a, b, c]) => {
                self.asm.vector(MULTIPLY, TEMP, *a, Source::Ymm(*b));
                self.asm.vector(ADD, d, TEMP, Source::Ymm(*c));
            }
            (Work::Not, [a]) => {
                let ones = self.same_constant(Width::Bits32, u64::from(u32::MAX));
                self.asm
                    .vector(Code::VEX_Vpxor_ymm_ymm_ymmm256, d, *a, Source::Mem(ones));
            }
            (Work::ToFloat, [a]) => self.asm.unary(Code::VEX_Vcvtdq2ps_ymm_ymmm256, d, Source::Ymm(*a)),
            (Work::ShiftBy(code, distance), [a]) => self.asm.unary_imm(code, d, Source::Ymm(*a), distance),
            _ => debug_assert!(false, "each operation has its number of sources"),
        }
    }
}
