//! Machine code of arithmetic on vectors, one part of the lanes at a time.

use super::assembler::{Gpr, Source, Width, Word, Ymm};
use super::emitter::Emitter;
use super::registers::{Kind, SOURCES, TEMP};
use super::scalar::{bits, integer};
use super::value::Value;
use crate::semantics::float::NAN_F32;
use crate::window;
use iced_x86::Code;
use ptx::ir::{FloatMods, Inst, Op, Part, Reg, Rounding, Space, Type};

/// An operation on parts. Its sources have the width of its result, unless a variant says otherwise.
#[derive(Clone, Copy, Debug)]
enum Work {
    Copy,
    /// An instruction with two sources, in this order.
    Two(Code),
    /// An instruction with two sources, for a result of `.f32`.
    TwoF32(Code),
    /// `d = a b + c` of `.f32`
    Fused,
    /// An instruction with one source, for a result of `.f32`.
    OneF32(Code),
    /// Flips or clears the sign bit of an `.f32`.
    Sign {
        flip: bool,
    },
    /// `d = a b + c` of 32 bits
    MultiplyAdd,
    /// Widens 32 bits to 64. Two sources give their product; a third source is added to the product.
    Widen {
        signed: bool,
    },
    /// Narrows 64 bits to 32.
    Narrow,
    /// `~a`
    Not,
    Negate,
    /// A shift by a constant.
    ShiftBy(Code, u32),
    /// Shifts two sources: one to the left by a constant, one to the right by the remaining bits. Combines the results.
    Funnel {
        left: u32,
    },
    /// Shifts 64 bits by a 32-bit number in each lane.
    ShiftWide(Code),
    /// A logic function of three sources, given by its table.
    Logic(u8),
    /// `d = p ? a : b`; the predicate, and true if it is negated.
    Select(Reg, bool),
    /// The sum with a constant of 64 bits.
    Offset(u64),
    /// Converts an `.s32` to `.f32`.
    ToFloat,
}

/// Returns the words of a vector whose elements have the bits, in a mask, of the lanes of a part.
pub(super) fn lane_bits(part: usize, width: Width) -> [u32; 8] {
    std::array::from_fn(|i| match width {
        Width::Bits32 => 1 << (8 * part + i),
        Width::Bits64 if i % 2 == 0 => 1 << (4 * part + i / 2),
        Width::Bits64 => 0,
    })
}

/// Returns true for the arithmetic of `.f32` that one instruction of the host does.
fn is_plain(m: &FloatMods) -> bool {
    m.ty == Type::F32 && m.rnd == Rounding::Rn && !m.ftz && !m.sat && !m.relu && !m.oob
}

impl<'a> Emitter<'a> {
    /// Returns the instruction that adds integers.
    pub(super) fn add_code(width: Width) -> Code {
        match width {
            Width::Bits32 => Code::VEX_Vpaddd_ymm_ymm_ymmm256,
            Width::Bits64 => Code::VEX_Vpaddq_ymm_ymm_ymmm256,
        }
    }

    /// Adds an instruction on vectors, or on a uniform result that is kept as a vector. If it is not one that this file
    /// compiles, returns false and adds nothing.
    pub(super) fn vector(&mut self, inst: &Inst, d: Reg) -> bool {
        let Some((work, sources, width)) = self.vector_work(inst) else {
            return false;
        };
        let parts = match self.kind(d) {
            Kind::Vector(of) if of == width => self.parts(width),
            Kind::Scalar(of, 0) if of == width && sources.iter().all(Value::is_uniform) => 1,
            _ => return false,
        };
        if let (Work::Select(predicate, _), Kind::Scalar(..)) = (work, self.kind(d))
            && self.shape(predicate) != crate::plan::shape::Shape::Uniform
        {
            return false;
        }
        for value in &sources {
            self.prepare(*value);
        }
        if let Work::Select(predicate, _) = work {
            // If a general register is free, this loads the predicate once, instead of once for each part.
            let _ = self.word(predicate, Gpr::AX);
        }
        if sources.iter().any(|value| value.is_register(d)) {
            self.load_before_write(d);
        }
        let ending = self.ending_source(&sources, d);
        let ymms = match ending {
            Some(source) => self.take_over(source, d),
            None => self.define_vector(d),
        };
        let seen = self.input.plan.is_payload_seen(d);
        for (part, ymm) in ymms.into_iter().enumerate() {
            self.part(work, &sources, ymm, part, seen, width);
            debug_assert!(part < parts);
        }
        if let Some(source) = ending {
            self.forget(source);
        }
        true
    }

    /// Returns a source that nothing reads after this instruction, and whose vector registers fit the result: each part
    /// of a result is written after the same part of all sources of its width has been read.
    pub(super) fn ending_source(&self, sources: &[Value], d: Reg) -> Option<Reg> {
        let width = |reg: Reg| match self.kind(reg) {
            Kind::Vector(width) => Some(width),
            Kind::Half => Some(Width::Bits32),
            _ => None,
        };
        let wanted = width(d)?;
        let fits = |reg: &Reg| {
            let cached = self.state.get(*reg);
            width(*reg) == Some(wanted)
                && cached.is_some_and(|cached| cached.parts().len() == self.parts(wanted))
                && !self.is_alias(*reg)
                && !self.is_read_later(*reg)
        };
        let replaced = sources.iter().any(|value| value.is_register(d));
        let mut registers = sources.iter().filter_map(Value::register);
        registers.find(fits).filter(|_| !replaced)
    }

    fn vector_work(&self, inst: &Inst) -> Option<(Work, Vec<Value>, Width)> {
        let source = |at: usize, width| self.value(inst.srcs.get(at)?, width);
        let sources = |count: usize, width| (0..count).map(|at| source(at, width)).collect::<Option<Vec<Value>>>();
        let (narrow, wide) = (Width::Bits32, Width::Bits64);
        let two = |narrow_code, wide_code: Option<Code>, ty: Type| {
            let width = integer(ty)?;
            let code = match width {
                Width::Bits32 => narrow_code,
                Width::Bits64 => wide_code?,
            };
            Some((Work::Two(code), sources(2, width)?, width))
        };
        match &inst.op {
            Op::Mov { ty } => {
                let width = bits(*ty)?;
                Some((Work::Copy, sources(1, width)?, width))
            }
            Op::Add { ty, sat: false } => two(
                Code::VEX_Vpaddd_ymm_ymm_ymmm256,
                Some(Code::VEX_Vpaddq_ymm_ymm_ymmm256),
                *ty,
            ),
            Op::Sub { ty, sat: false } => two(
                Code::VEX_Vpsubd_ymm_ymm_ymmm256,
                Some(Code::VEX_Vpsubq_ymm_ymm_ymmm256),
                *ty,
            ),
            Op::And { ty } => two(
                Code::VEX_Vpand_ymm_ymm_ymmm256,
                Some(Code::VEX_Vpand_ymm_ymm_ymmm256),
                *ty,
            ),
            Op::Or { ty } => two(
                Code::VEX_Vpor_ymm_ymm_ymmm256,
                Some(Code::VEX_Vpor_ymm_ymm_ymmm256),
                *ty,
            ),
            Op::Xor { ty } => two(
                Code::VEX_Vpxor_ymm_ymm_ymmm256,
                Some(Code::VEX_Vpxor_ymm_ymm_ymmm256),
                *ty,
            ),
            Op::Mul { ty, part: Part::Lo } => two(Code::VEX_Vpmulld_ymm_ymm_ymmm256, None, *ty),
            Op::Min { ty, relu: false } if ty.is_signed() => two(Code::VEX_Vpminsd_ymm_ymm_ymmm256, None, *ty),
            Op::Min { ty, relu: false } => two(Code::VEX_Vpminud_ymm_ymm_ymmm256, None, *ty),
            Op::Max { ty, relu: false } if ty.is_signed() => two(Code::VEX_Vpmaxsd_ymm_ymm_ymmm256, None, *ty),
            Op::Max { ty, relu: false } => two(Code::VEX_Vpmaxud_ymm_ymm_ymmm256, None, *ty),
            Op::Not { ty } => {
                let width = integer(*ty)?;
                Some((Work::Not, sources(1, width)?, width))
            }
            Op::Neg { ty } => {
                let width = integer(*ty)?;
                Some((Work::Negate, sources(1, width)?, width))
            }
            Op::Mad {
                ty,
                part: Part::Lo,
                sat: false,
            } if ty.size() == 4 => Some((Work::MultiplyAdd, sources(3, narrow)?, narrow)),
            Op::Mul { ty, part: Part::Wide } if ty.size() == 4 => {
                let signed = ty.is_signed();
                Some((Work::Widen { signed }, sources(2, narrow)?, wide))
            }
            Op::Mad {
                ty,
                part: Part::Wide,
                sat: false,
            } if ty.size() == 4 => {
                let mut all = sources(2, narrow)?;
                all.push(source(2, wide)?);
                let signed = ty.is_signed();
                Some((Work::Widen { signed }, all, wide))
            }
            Op::Cvt(cvt) if !cvt.sat => {
                if cvt.to == Type::F32 && cvt.from == Type::S32 && cvt.rnd == Some(Rounding::Rn) {
                    return Some((Work::ToFloat, sources(1, narrow)?, narrow));
                }
                match (integer(cvt.from)?, integer(cvt.to)?) {
                    (Width::Bits32, Width::Bits64) => {
                        let signed = cvt.from.is_signed();
                        Some((Work::Widen { signed }, sources(1, narrow)?, wide))
                    }
                    (Width::Bits64, Width::Bits32) => Some((Work::Narrow, sources(1, wide)?, narrow)),
                    (width, _) => Some((Work::Copy, sources(1, width)?, width)),
                }
            }
            Op::Cvta { space, to, ty } => {
                let width = integer(*ty)?;
                let start = match space {
                    Space::Generic | Space::Global | Space::Const => {
                        return Some((Work::Copy, sources(1, width)?, width));
                    }
                    Space::Shared | Space::SharedCluster => window::SHARED,
                    Space::Local => window::LOCAL,
                    Space::Param => window::PARAM,
                };
                if width != wide {
                    return None;
                }
                let start = if *to { start.wrapping_neg() } else { start };
                Some((Work::Offset(start), sources(1, wide)?, wide))
            }
            Op::Shl { ty } | Op::Shr { ty } => self.vector_shift(inst, *ty, matches!(inst.op, Op::Shl { .. })),
            Op::Shf { left, clamp: false } => {
                let distance = self.value(inst.srcs.get(2)?, narrow)?.number()? as u32 % 32;
                // The result is the upper word of the pair `b:a` after a shift to the left, or the lower word after a
                // shift to the right.
                let left = if *left { distance } else { 32 - distance };
                if left == 0 || left == 32 {
                    return None;
                }
                Some((Work::Funnel { left }, sources(2, narrow)?, narrow))
            }
            Op::Lop3 { lut, bool_op: None } => Some((Work::Logic(*lut), sources(3, narrow)?, narrow)),
            Op::Selp { ty } => {
                let width = bits(*ty)?;
                let (predicate, negated) = self.mask_of(inst.srcs.get(2)?)?;
                Some((Work::Select(predicate, negated), sources(2, width)?, width))
            }
            Op::FAdd(m) if is_plain(m) => Some((
                Work::TwoF32(Code::VEX_Vaddps_ymm_ymm_ymmm256),
                sources(2, narrow)?,
                narrow,
            )),
            Op::FSub(m) if is_plain(m) => Some((
                Work::TwoF32(Code::VEX_Vsubps_ymm_ymm_ymmm256),
                sources(2, narrow)?,
                narrow,
            )),
            Op::FMul(m) if is_plain(m) => Some((
                Work::TwoF32(Code::VEX_Vmulps_ymm_ymm_ymmm256),
                sources(2, narrow)?,
                narrow,
            )),
            Op::Fma(m) if is_plain(m) => Some((Work::Fused, sources(3, narrow)?, narrow)),
            Op::FNeg {
                ty: Type::F32,
                ftz: false,
            } => Some((Work::Sign { flip: true }, sources(1, narrow)?, narrow)),
            Op::FAbs {
                ty: Type::F32,
                ftz: false,
            } => Some((Work::Sign { flip: false }, sources(1, narrow)?, narrow)),
            Op::FDiv {
                ty: Type::F32,
                precision: ptx::ir::Precision::Ieee(Rounding::Rn),
                ftz: false,
            } => Some((
                Work::TwoF32(Code::VEX_Vdivps_ymm_ymm_ymmm256),
                sources(2, narrow)?,
                narrow,
            )),
            Op::Sqrt {
                ty: Type::F32,
                precision: ptx::ir::Precision::Ieee(Rounding::Rn),
                ftz: false,
            } => Some((Work::OneF32(Code::VEX_Vsqrtps_ymm_ymmm256), sources(1, narrow)?, narrow)),
            _ => None,
        }
    }

    fn vector_shift(&self, inst: &Inst, ty: Type, left: bool) -> Option<(Work, Vec<Value>, Width)> {
        let width = integer(ty)?;
        let a = self.value(inst.srcs.first()?, width)?;
        let by = self.value(inst.srcs.get(1)?, Width::Bits32)?;
        let signed = ty.is_signed();
        if let Some(distance) = by.number() {
            // PTX limits the distance to the width, as these instructions do.
            let distance = distance.min(255) as u32;
            let code = match (width, left, signed) {
                (Width::Bits32, true, _) => Code::VEX_Vpslld_ymm_ymm_imm8,
                (Width::Bits64, true, _) => Code::VEX_Vpsllq_ymm_ymm_imm8,
                (Width::Bits32, false, false) => Code::VEX_Vpsrld_ymm_ymm_imm8,
                (Width::Bits64, false, false) => Code::VEX_Vpsrlq_ymm_ymm_imm8,
                (Width::Bits32, false, true) => Code::VEX_Vpsrad_ymm_ymm_imm8,
                (Width::Bits64, false, true) => return None,
            };
            return Some((Work::ShiftBy(code, distance), vec![a], width));
        }
        let work = match (width, left, signed) {
            (Width::Bits32, true, _) => Work::Two(Code::VEX_Vpsllvd_ymm_ymm_ymmm256),
            (Width::Bits32, false, false) => Work::Two(Code::VEX_Vpsrlvd_ymm_ymm_ymmm256),
            (Width::Bits32, false, true) => Work::Two(Code::VEX_Vpsravd_ymm_ymm_ymmm256),
            (Width::Bits64, true, _) => Work::ShiftWide(Code::VEX_Vpsllvq_ymm_ymm_ymmm256),
            (Width::Bits64, false, false) => Work::ShiftWide(Code::VEX_Vpsrlvq_ymm_ymm_ymmm256),
            (Width::Bits64, false, true) => return None,
        };
        Some((work, vec![a, by], width))
    }

    /// Adds one part of an operation.
    fn part(&mut self, work: Work, sources: &[Value], d: Ymm, part: usize, seen: bool, width: Width) {
        match work {
            Work::Copy => {
                let a = self.source(sources[0], part, 0);
                self.asm.load(d, a);
            }
            Work::Two(code) => {
                let a = self.loaded(sources[0], part, 0);
                let b = self.source(sources[1], part, 1);
                self.asm.vector(code, d, a, b);
            }
            Work::TwoF32(code) => {
                let a = self.loaded(sources[0], part, 0);
                let b = self.source(sources[1], part, 1);
                self.asm.vector(code, d, a, b);
                self.canonical(d, seen);
            }
            Work::OneF32(code) => {
                let a = self.source(sources[0], part, 0);
                self.asm.unary(code, d, a);
                self.canonical(d, seen);
            }
            Work::Fused => self.fused(sources, d, part, seen),
            Work::Sign { flip } => {
                let (code, bits) = if flip {
                    (Code::VEX_Vpxor_ymm_ymm_ymmm256, 1 << 31)
                } else {
                    (Code::VEX_Vpand_ymm_ymm_ymmm256, (1 << 31) - 1)
                };
                let a = self.loaded(sources[0], part, 0);
                let bits = self.same_constant(Width::Bits32, bits);
                self.asm.vector(code, d, a, Source::Mem(bits));
                self.canonical(d, seen);
            }
            Work::MultiplyAdd => {
                let a = self.loaded(sources[0], part, 0);
                let b = self.source(sources[1], part, 1);
                self.asm.vector(Code::VEX_Vpmulld_ymm_ymm_ymmm256, TEMP, a, b);
                let c = self.source(sources[2], part, 2);
                self.asm.vector(Code::VEX_Vpaddd_ymm_ymm_ymmm256, d, TEMP, c);
            }
            Work::Widen { signed } => self.widened_part(sources, d, part, signed),
            Work::Narrow => self.narrowed_part(sources[0], d, part),
            Work::Not => {
                let a = self.loaded(sources[0], part, 0);
                let ones = self.same_constant(Width::Bits64, !0);
                self.asm
                    .vector(Code::VEX_Vpxor_ymm_ymm_ymmm256, d, a, Source::Mem(ones));
            }
            Work::Negate => {
                let a = self.source(sources[0], part, 0);
                let zero = Code::VEX_Vpxor_ymm_ymm_ymmm256;
                self.asm.vector(zero, TEMP, TEMP, Source::Ymm(TEMP));
                let code = match width {
                    Width::Bits32 => Code::VEX_Vpsubd_ymm_ymm_ymmm256,
                    Width::Bits64 => Code::VEX_Vpsubq_ymm_ymm_ymmm256,
                };
                self.asm.vector(code, d, TEMP, a);
            }
            Work::ShiftBy(code, distance) => {
                let a = self.loaded(sources[0], part, 0);
                self.asm.unary_imm(code, d, Source::Ymm(a), distance);
            }
            Work::Funnel { left } => {
                // `a` is the lower word.
                let b = self.loaded(sources[1], part, 1);
                self.asm
                    .unary_imm(Code::VEX_Vpslld_ymm_ymm_imm8, TEMP, Source::Ymm(b), left);
                let a = self.loaded(sources[0], part, 0);
                let low = SOURCES[2];
                self.asm
                    .unary_imm(Code::VEX_Vpsrld_ymm_ymm_imm8, low, Source::Ymm(a), 32 - left);
                self.asm
                    .vector(Code::VEX_Vpor_ymm_ymm_ymmm256, d, TEMP, Source::Ymm(low));
            }
            Work::ShiftWide(code) => {
                self.half(sources[1], part, TEMP, false, 1);
                let a = self.loaded(sources[0], part, 0);
                self.asm.vector(code, d, a, Source::Ymm(TEMP));
            }
            Work::Logic(table) => self.logic(sources, d, part, table),
            Work::Select(predicate, negated) => {
                self.expand(predicate, part, width);
                let (a, b) = (self.source(sources[0], part, 0), self.source(sources[1], part, 1));
                let (yes, no) = if negated { (b, a) } else { (a, b) };
                let no = self.in_register(no, SOURCES[2]);
                self.asm.blend(d, no, yes, TEMP);
            }
            Work::Offset(start) => {
                let a = self.loaded(sources[0], part, 0);
                let start = self.same_constant(Width::Bits64, start);
                self.asm
                    .vector(Code::VEX_Vpaddq_ymm_ymm_ymmm256, d, a, Source::Mem(start));
            }
            Work::ToFloat => {
                let a = self.source(sources[0], part, 0);
                self.asm.unary(Code::VEX_Vcvtdq2ps_ymm_ymmm256, d, a);
            }
        }
    }

    /// Replaces NaNs by the canonical NaN if `seen` is true, which means that their bits can be observed.
    fn canonical(&mut self, d: Ymm, seen: bool) {
        if seen {
            const UNORDERED: u32 = 3;
            let code = Code::VEX_Vcmpps_ymm_ymm_ymmm256_imm8;
            self.asm.vector_imm(code, TEMP, d, Source::Ymm(d), UNORDERED);
            let nan = self.same_constant(Width::Bits32, u64::from(NAN_F32));
            self.asm.blend(d, d, Source::Mem(nan), TEMP);
        }
    }

    fn fused(&mut self, sources: &[Value], d: Ymm, part: usize, seen: bool) {
        let [a, b, c] = [0, 1, 2].map(|at| self.source(sources[at], part, at));
        // The instruction overwrites one of its sources, so that one must be `d`.
        let is_d = |source: Source| source == Source::Ymm(d);
        if is_d(c) {
            let a = self.in_register(a, SOURCES[0]);
            self.asm.vector(Code::VEX_Vfmadd231ps_ymm_ymm_ymmm256, d, a, b);
        } else if is_d(a) {
            let b = self.in_register(b, SOURCES[1]);
            self.asm.vector(Code::VEX_Vfmadd213ps_ymm_ymm_ymmm256, d, b, c);
        } else if is_d(b) {
            let a = self.in_register(a, SOURCES[0]);
            self.asm.vector(Code::VEX_Vfmadd213ps_ymm_ymm_ymmm256, d, a, c);
        } else {
            let a = self.in_register(a, SOURCES[0]);
            self.asm.load(d, c);
            self.asm.vector(Code::VEX_Vfmadd231ps_ymm_ymm_ymmm256, d, a, b);
        }
        self.canonical(d, seen);
    }

    /// Extends half of a part of 32 bits to part `part` of 64 bits, in `to`.
    fn half(&mut self, value: Value, part: usize, to: Ymm, signed: bool, at: usize) {
        let code = if signed {
            Code::VEX_Vpmovsxdq_ymm_xmmm128
        } else {
            Code::VEX_Vpmovzxdq_ymm_xmmm128
        };
        match self.source(value, part / 2, at) {
            Source::Mem(mem) => self.asm.widen(code, to, Source::Mem(mem.plus(16 * (part % 2) as i32))),
            Source::Ymm(ymm) if part.is_multiple_of(2) => self.asm.widen(code, to, Source::Ymm(ymm)),
            Source::Ymm(ymm) => {
                self.asm.upper_half(to, ymm);
                self.asm.widen(code, to, Source::Ymm(to));
            }
        }
    }

    fn widened_part(&mut self, sources: &[Value], d: Ymm, part: usize, signed: bool) {
        if sources.len() == 1 {
            return self.half(sources[0], part, d, signed, 0);
        }
        // The products use the lower halves of 64-bit elements.
        self.half(sources[0], part, SOURCES[2], false, 0);
        let factor = match sources[1].number() {
            Some(bits) => Source::Mem(self.same_constant(Width::Bits64, bits)),
            None => {
                self.half(sources[1], part, TEMP, false, 1);
                Source::Ymm(TEMP)
            }
        };
        let code = if signed {
            Code::VEX_Vpmuldq_ymm_ymm_ymmm256
        } else {
            Code::VEX_Vpmuludq_ymm_ymm_ymmm256
        };
        match sources.get(2) {
            None => self.asm.vector(code, d, SOURCES[2], factor),
            Some(c) => {
                self.asm.vector(code, TEMP, SOURCES[2], factor);
                let c = self.source(*c, part, 0);
                self.asm.vector(Code::VEX_Vpaddq_ymm_ymm_ymmm256, d, TEMP, c);
            }
        }
    }

    pub(super) fn narrowed_part(&mut self, value: Value, d: Ymm, part: usize) {
        let low = self.loaded(value, 2 * part, 0);
        let high = self.source(value, 2 * part + 1, 1);
        const EVEN: u32 = 0b10_00_10_00;
        self.asm
            .vector_imm(Code::VEX_Vshufps_ymm_ymm_ymmm256_imm8, TEMP, low, high, EVEN);
        const IN_ORDER: u32 = 0b11_01_10_00;
        self.asm
            .unary_imm(Code::VEX_Vpermq_ymm_ymmm256_imm8, d, Source::Ymm(TEMP), IN_ORDER);
    }

    /// Sets each element of `TEMP` to all ones if its lane is in the mask, else to zero.
    fn expand(&mut self, predicate: Reg, part: usize, width: Width) {
        let mask = match self.word(predicate, Gpr::AX) {
            Word::Gpr(gpr) => gpr,
            Word::Mem(_) | Word::Imm(_) => Gpr::AX,
        };
        self.asm.broadcast_gpr(width, TEMP, mask);
        let bits = self.constant_vector(lane_bits(part, width));
        self.asm
            .vector(Code::VEX_Vpand_ymm_ymm_ymmm256, TEMP, TEMP, Source::Mem(bits));
        let code = match width {
            Width::Bits32 => Code::VEX_Vpcmpeqd_ymm_ymm_ymmm256,
            Width::Bits64 => Code::VEX_Vpcmpeqq_ymm_ymm_ymmm256,
        };
        self.asm.vector(code, TEMP, TEMP, Source::Mem(bits));
    }

    /// Adds a logic function of three sources. `table` has the result for each combination of bits; `a` is the highest
    /// bit of the index.
    fn logic(&mut self, sources: &[Value], d: Ymm, part: usize, table: u8) {
        let (and, or, xor) = (
            Code::VEX_Vpand_ymm_ymm_ymmm256,
            Code::VEX_Vpor_ymm_ymm_ymmm256,
            Code::VEX_Vpxor_ymm_ymm_ymmm256,
        );
        let [a, b, c] = [0, 1, 2].map(|at| self.loaded(sources[at], part, at));
        let [b_, c_] = [b, c].map(Source::Ymm);
        match table {
            0x96 => {
                self.asm.vector(xor, TEMP, a, b_);
                self.asm.vector(xor, d, TEMP, c_);
            }
            // `(a & b) | (~a & c)`, as `c ^ (a & (b ^ c))`.
            0xca => {
                self.asm.vector(xor, TEMP, b, c_);
                self.asm.vector(and, TEMP, TEMP, Source::Ymm(a));
                self.asm.vector(xor, d, TEMP, c_);
            }
            // The majority, as `((a ^ b) & c) | (a & b)`; the sources may be `d`, so the result comes last.
            0xe8 => {
                self.asm.vector(xor, TEMP, a, b_);
                self.asm.vector(and, TEMP, TEMP, c_);
                self.asm.vector(and, SOURCES[0], a, b_);
                self.asm.vector(or, d, TEMP, Source::Ymm(SOURCES[0]));
            }
            _ => {
                // A choice by `c` between two functions of `a` and `b`.
                let half = |of_c: u8| (0..4).fold(0u8, |t, i| t | (table >> (2 * i + of_c) & 1) << i);
                self.pair(half(1), a, b, TEMP);
                self.asm.vector(and, TEMP, TEMP, c_);
                let ones = Source::Mem(self.same_constant(Width::Bits64, !0));
                self.asm.vector(xor, SOURCES[2], c, ones);
                self.pair(half(0), a, b, SOURCES[0]);
                self.asm.vector(and, SOURCES[0], SOURCES[0], Source::Ymm(SOURCES[2]));
                self.asm.vector(or, d, TEMP, Source::Ymm(SOURCES[0]));
            }
        }
    }

    /// Sets `to` to a logic function of two sources: bit `2 a + b` of the table is the result.
    fn pair(&mut self, table: u8, a: Ymm, b: Ymm, to: Ymm) {
        let (and, or, xor, and_not) = (
            Code::VEX_Vpand_ymm_ymm_ymmm256,
            Code::VEX_Vpor_ymm_ymm_ymmm256,
            Code::VEX_Vpxor_ymm_ymm_ymmm256,
            Code::VEX_Vpandn_ymm_ymm_ymmm256,
        );
        let ones = Source::Mem(self.same_constant(Width::Bits64, !0));
        let b_ = Source::Ymm(b);
        // Half of the functions are the opposites of the other half.
        let flip = table & 1 == 1;
        match if flip { table ^ 0xf } else { table } {
            0b0000 => self.asm.vector(xor, to, to, Source::Ymm(to)),
            0b0010 => self.asm.vector(and_not, to, a, b_),
            0b0100 => self.asm.vector(and_not, to, b, Source::Ymm(a)),
            0b0110 => self.asm.vector(xor, to, a, b_),
            0b1000 => self.asm.vector(and, to, a, b_),
            0b1010 => self.asm.load(to, b_),
            0b1100 => self.asm.load(to, Source::Ymm(a)),
            _ => self.asm.vector(or, to, a, b_),
        }
        if flip {
            self.asm.vector(xor, to, to, ones);
        }
    }
}
