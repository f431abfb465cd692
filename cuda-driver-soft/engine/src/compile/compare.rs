//! Machine code of comparisons, and of logic on predicates. A predicate is a mask of the group's lanes in a general
//! register.

use super::assembler::{Alu, Gpr, Label, Shift, Source, When, Width, Word};
use super::emitter::Emitter;
use super::formula::{Body, Formula};
use super::lanes::whole_reach;
use super::registers::{SOURCES, TEMP};
use super::scalar::integer;
use super::value::Value;
use crate::plan::shape::Shape;
use iced_x86::Code;
use ptx::ir::{BoolOp, Compare, FloatTest, Inst, Op, Operand, Reg, Type};

/// A comparison of integers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// A predicate operand of an instruction.
#[derive(Clone, Copy)]
enum PredicateSource {
    /// A register. The predicate is negated if the second field is true.
    Register(Reg, bool),
    /// The same value in all lanes.
    Constant(bool),
}

impl Order {
    /// Returns the comparison of the operands in reverse order.
    pub(super) fn mirrored(self) -> Order {
        match self {
            Order::Less => Order::Greater,
            Order::LessOrEqual => Order::GreaterOrEqual,
            Order::Greater => Order::Less,
            Order::GreaterOrEqual => Order::LessOrEqual,
            other => other,
        }
    }

    pub(super) fn when(self, signed: bool) -> When {
        match (self, signed) {
            (Order::Equal, _) => When::Equal,
            (Order::NotEqual, _) => When::NotEqual,
            (Order::Less, true) => When::Less,
            (Order::Less, false) => When::Below,
            (Order::LessOrEqual, true) => When::LessOrEqual,
            (Order::LessOrEqual, false) => When::BelowOrEqual,
            (Order::Greater, true) => When::Greater,
            (Order::Greater, false) => When::Above,
            (Order::GreaterOrEqual, true) => When::GreaterOrEqual,
            (Order::GreaterOrEqual, false) => When::AboveOrEqual,
        }
    }
}

/// Returns the comparison, and true if it compares signed numbers.
pub(super) fn order_of(cmp: Compare, ty: Type) -> Option<(Order, bool)> {
    let signed = ty.is_signed();
    Some(match cmp {
        Compare::Eq => (Order::Equal, signed),
        Compare::Ne => (Order::NotEqual, signed),
        Compare::Lt => (Order::Less, signed),
        Compare::Le => (Order::LessOrEqual, signed),
        Compare::Gt => (Order::Greater, signed),
        Compare::Ge => (Order::GreaterOrEqual, signed),
        Compare::Lo => (Order::Less, false),
        Compare::Ls => (Order::LessOrEqual, false),
        Compare::Hi => (Order::Greater, false),
        Compare::Hs => (Order::GreaterOrEqual, false),
        _ => return None,
    })
}

/// Returns the predicate of the host's instruction for a floating-point comparison.
fn float_predicate(cmp: Compare) -> Option<u32> {
    Some(match cmp {
        Compare::Eq => 0x0,
        Compare::Lt => 0x1,
        Compare::Le => 0x2,
        Compare::Nan => 0x3,
        Compare::Neu => 0x4,
        Compare::Geu => 0x5,
        Compare::Gtu => 0x6,
        Compare::Num => 0x7,
        Compare::Equ => 0x8,
        Compare::Ltu => 0x9,
        Compare::Leu => 0xa,
        Compare::Ne => 0xc,
        Compare::Ge => 0xd,
        Compare::Gt => 0xe,
        Compare::Lo | Compare::Ls | Compare::Hi | Compare::Hs => return None,
    })
}

impl Emitter<'_> {
    /// Adds an instruction whose result is a predicate. If it is not one that this file compiles, returns false and
    /// adds nothing.
    pub(super) fn predicate(&mut self, inst: &Inst) -> bool {
        match &inst.op {
            Op::Setp {
                cmp,
                ty: Type::F32,
                ftz: true,
                bool_op: None,
            } => self.setp_flushed(inst, *cmp),
            Op::Testp { test, ty } => self.testp(inst, *test, *ty),
            Op::Setp {
                cmp,
                ty,
                ftz: false,
                bool_op,
            } => self.setp(inst, *cmp, *ty, *bool_op),
            Op::And { ty: Type::Pred } => self.logic_on_masks(inst, BoolOp::And),
            Op::Or { ty: Type::Pred } => self.logic_on_masks(inst, BoolOp::Or),
            Op::Xor { ty: Type::Pred } => self.logic_on_masks(inst, BoolOp::Xor),
            Op::Not { ty: Type::Pred } | Op::Mov { ty: Type::Pred } => {
                let ([a], [Some(d)]) = (inst.srcs.as_slice(), inst.dsts.as_slice()) else {
                    return false;
                };
                let Some(a) = self.predicate_source(a) else {
                    return false;
                };
                self.copy_predicate(a, Gpr::AX);
                if matches!(inst.op, Op::Not { .. }) {
                    self.asm.alu(Alu::Xor, Width::Bits32, Gpr::AX, Word::Imm(self.full()));
                }
                self.set_mask(*d, Gpr::AX);
                true
            }
            _ => false,
        }
    }

    /// Returns the predicate of an operand, and true if it is negated.
    pub(super) fn mask_of(&self, operand: &Operand) -> Option<(Reg, bool)> {
        let found = match operand {
            Operand::Reg(reg) => (*reg, false),
            Operand::NotReg(reg) => (*reg, true),
            _ => return None,
        };
        (self.class(found.0) == ptx::ir::RegClass::Pred && !self.is_alias(found.0)).then_some(found)
    }

    /// Returns a predicate operand, which can be a constant.
    fn predicate_source(&self, operand: &Operand) -> Option<PredicateSource> {
        match operand {
            Operand::Imm(bits) => Some(PredicateSource::Constant(bits & 1 != 0)),
            operand => self
                .mask_of(operand)
                .map(|(reg, negated)| PredicateSource::Register(reg, negated)),
        }
    }

    /// Writes the mask of a predicate operand to a machine register.
    fn copy_predicate(&mut self, source: PredicateSource, to: Gpr) {
        match source {
            PredicateSource::Register(reg, negated) => {
                self.copy_mask(reg, to);
                if negated {
                    self.asm.alu(Alu::Xor, Width::Bits32, to, Word::Imm(self.full()));
                }
            }
            PredicateSource::Constant(value) => {
                let mask = if value { self.full() } else { 0 };
                self.asm.constant(to, u64::from(mask.cast_unsigned()));
            }
        }
    }

    pub(super) fn set_mask(&mut self, d: Reg, from: Gpr) {
        let d = self.define_gpr(d);
        self.asm.alu(Alu::Mov, Width::Bits32, d, Word::Gpr(from));
    }

    fn logic_on_masks(&mut self, inst: &Inst, op: BoolOp) -> bool {
        let ([a, b], [Some(d)]) = (inst.srcs.as_slice(), inst.dsts.as_slice()) else {
            return false;
        };
        let (Some(a), Some(b)) = (self.predicate_source(a), self.predicate_source(b)) else {
            return false;
        };
        self.copy_predicate(a, Gpr::AX);
        self.combine(op, b, Gpr::AX);
        self.set_mask(*d, Gpr::AX);
        true
    }

    /// Combines the mask in `to` with another one.
    fn combine(&mut self, op: BoolOp, with: PredicateSource, to: Gpr) {
        self.copy_predicate(with, Gpr::CX);
        let alu = match op {
            BoolOp::And => Alu::And,
            BoolOp::Or => Alu::Or,
            BoolOp::Xor => Alu::Xor,
        };
        self.asm.alu(alu, Width::Bits32, to, Word::Gpr(Gpr::CX));
    }

    fn setp(&mut self, inst: &Inst, cmp: Compare, ty: Type, bool_op: Option<BoolOp>) -> bool {
        let (width, float) = match ty {
            Type::F32 => (Width::Bits32, true),
            Type::F64 => (Width::Bits64, true),
            ty => match integer(ty) {
                Some(width) => (width, false),
                None => return false,
            },
        };
        let [x, y, rest @ ..] = inst.srcs.as_slice() else {
            return false;
        };
        let (Some(a), Some(b)) = (self.value(x, width), self.value(y, width)) else {
            return false;
        };
        let with = match (bool_op, rest) {
            (None, []) => None,
            (Some(op), [third]) => match self.predicate_source(third) {
                Some(mask) => Some((op, mask)),
                None => return false,
            },
            _ => return false,
        };
        if float {
            let Some(number) = float_predicate(cmp) else {
                return false;
            };
            self.compare_floats(a, b, number);
        } else {
            let Some((order, signed)) = order_of(cmp, ty) else {
                return false;
            };
            self.compare_integers(a, b, order, signed);
        }
        // The result is in `AX`.
        if let Some(Some(q)) = inst.dsts.get(1) {
            self.asm.alu(Alu::Mov, Width::Bits32, Gpr::DX, Word::Gpr(Gpr::AX));
            self.asm.alu(Alu::Xor, Width::Bits32, Gpr::DX, Word::Imm(self.full()));
            if let Some((op, mask)) = with {
                self.combine(op, mask, Gpr::DX);
                self.combine(op, mask, Gpr::AX);
            }
            self.set_mask(*q, Gpr::DX);
        } else if let Some((op, mask)) = with {
            self.combine(op, mask, Gpr::AX);
        }
        if let Some(Some(p)) = inst.dsts.first() {
            self.set_mask(*p, Gpr::AX);
        }
        true
    }

    /// Collects the results of the parts of a comparison in `AX`: `part` leaves the results of one part in `TEMP`.
    pub(super) fn collect(&mut self, width: Width, uniform: bool, mut part: impl FnMut(&mut Self, usize)) {
        let lanes = match width {
            Width::Bits32 => 8,
            Width::Bits64 => 4,
        };
        let parts = if uniform { 1 } else { self.parts(width) };
        for number in 0..parts {
            part(self, number);
            if number == 0 {
                self.asm.signs(width, Gpr::AX, TEMP);
                continue;
            }
            self.asm.signs(width, Gpr::CX, TEMP);
            self.asm
                .shift(Shift::Left, Width::Bits32, Gpr::CX, lanes * number as u32);
            self.asm.alu(Alu::Or, Width::Bits32, Gpr::AX, Word::Gpr(Gpr::CX));
        }
        if uniform {
            self.all_as_first(Gpr::AX);
        }
    }

    /// Sets all lanes of a mask to the value of the first lane.
    pub(super) fn all_as_first(&mut self, mask: Gpr) {
        self.asm.alu(Alu::And, Width::Bits32, mask, Word::Imm(1));
        let full = self.full();
        self.asm.multiply(Width::Bits32, mask, Word::Gpr(mask), full);
    }

    /// Returns true if a register has the same value in all lanes.
    pub(super) fn is_same(&self, reg: Reg) -> bool {
        self.shape(reg) == Shape::Uniform
    }

    fn setp_flushed(&mut self, inst: &Inst, cmp: Compare) -> bool {
        let (Some(number), [Some(p)], Some(values)) = (
            float_predicate(cmp),
            inst.dsts.as_slice(),
            self.values(inst, Width::Bits32, 2),
        ) else {
            return false;
        };
        let [x, y] = [values[0], values[1]];
        let body: Body<1> = Box::new(move |f, part| {
            let (a, b) = (f.source(x, part, 0), f.source(y, part, 1));
            let (a, b) = (f.flushed(a, true), f.flushed(b, true));
            [f.two_imm(Code::VEX_Vcmpps_ymm_ymm_ymmm256_imm8, a, b, number)]
        });
        self.compute_mask(*p, Width::Bits32, &values, &body);
        true
    }

    fn testp(&mut self, inst: &Inst, test: FloatTest, ty: Type) -> bool {
        let (width, infinity, least) = match ty {
            Type::F32 => (Width::Bits32, 0x7f80_0000, 0x0080_0000),
            Type::F64 => (Width::Bits64, 0x7ff0 << 48, 0x0010 << 48),
            _ => return false,
        };
        let (Some(values), [Some(p)]) = (self.values(inst, width, 1), inst.dsts.as_slice()) else {
            return false;
        };
        let x = values[0];
        // Magnitudes compare like integers.
        let body: Body<1> = Box::new(move |f, part| {
            let a = f.source(x, part, 0);
            let a = f.magnitude(width, a);
            let (infinity, least, zero) = (f.number(width, infinity), f.number(width, least), f.number(width, 0));
            let above = |f: &mut Formula<'_, '_>, a, b| f.greater(width, a, b, true);
            [match test {
                FloatTest::Finite => above(f, infinity, a),
                FloatTest::Infinite => f.equal(width, infinity, a),
                FloatTest::NotANumber => above(f, a, infinity),
                FloatTest::Number => {
                    let (less, equal) = (above(f, infinity, a), f.equal(width, infinity, a));
                    f.two(Code::VEX_Vpor_ymm_ymm_ymmm256, less, equal)
                }
                FloatTest::Normal => {
                    let (finite, small) = (above(f, infinity, a), above(f, least, a));
                    let normal = f.two(Code::VEX_Vpandn_ymm_ymm_ymmm256, small, finite);
                    let is_zero = f.equal(width, zero, a);
                    f.two(Code::VEX_Vpor_ymm_ymm_ymmm256, normal, is_zero)
                }
                FloatTest::Subnormal => {
                    let (small, positive) = (above(f, least, a), above(f, a, zero));
                    f.two(Code::VEX_Vpand_ymm_ymm_ymmm256, small, positive)
                }
            }]
        });
        self.compute_mask(*p, width, &values, &body);
        true
    }

    fn compare_floats(&mut self, a: Value, b: Value, number: u32) {
        self.prepare(a);
        self.prepare(b);
        let code = match a.width {
            Width::Bits32 => Code::VEX_Vcmpps_ymm_ymm_ymmm256_imm8,
            Width::Bits64 => Code::VEX_Vcmppd_ymm_ymm_ymmm256_imm8,
        };
        self.collect(a.width, a.is_uniform() && b.is_uniform(), |emitter, part| {
            let x = emitter.loaded(a, part, 0);
            let y = emitter.source(b, part, 1);
            emitter.asm.vector_imm(code, TEMP, x, y, number);
        });
    }

    /// Sets `AX` to the result of a comparison of integers in each lane.
    fn compare_integers(&mut self, a: Value, b: Value, order: Order, signed: bool) {
        if a.is_uniform() && b.is_uniform() {
            self.copy_first_lane(a, Gpr::AX);
            let y = self.first_lane(b, Gpr::CX);
            self.asm.alu(Alu::Cmp, a.width, Gpr::AX, y);
            self.asm.all_when(order.when(signed), Gpr::AX);
            return self.asm.alu(Alu::And, Width::Bits32, Gpr::AX, Word::Imm(self.full()));
        }
        let by_order = !matches!(order, Order::Equal | Order::NotEqual);
        let differ = match (a.shape, b.shape) {
            // The lanes at the ends of a group may not run, and may differ from those that do.
            _ if self.masked => None,
            (Shape::Affine(step), Shape::Uniform) if by_order => self.compare_ends(a, b, step, order, signed),
            (Shape::Uniform, Shape::Affine(step)) if by_order => {
                self.compare_ends(b, a, step, order.mirrored(), signed)
            }
            _ => None,
        };
        match differ {
            Some(differ) => {
                let done = self.asm.label();
                self.asm.jump(done);
                self.asm.bind(differ);
                // The machine registers are the same on both paths.
                self.compare_vectors(a, b, order, signed);
                self.asm.bind(done);
            }
            None => {
                self.prepare(a);
                self.prepare(b);
                self.compare_vectors(a, b, order, signed);
            }
        }
    }

    /// Compares the first and the last lane of an affine value with a uniform one. If both results are the same, and no
    /// lane wraps, sets `AX` to that result in all lanes; else the code jumps to the returned label. Returns `None` if
    /// the lanes are too far apart.
    fn compare_ends(&mut self, a: Value, b: Value, step: i64, order: Order, signed: bool) -> Option<Label> {
        let reach = whole_reach(step, self.lanes)?;
        let minus = reach.checked_neg()?;
        self.copy_first_lane(a, Gpr::AX);
        let y = self.first_lane(b, Gpr::CX);
        let label = self.asm.label();
        let when = order.when(signed);
        self.asm.alu(Alu::Cmp, a.width, Gpr::AX, y);
        self.asm.all_when(when, Gpr::DX);
        if reach >= 0 || signed {
            self.asm.alu(Alu::Add, a.width, Gpr::AX, Word::Imm(reach));
        } else {
            self.asm.alu(Alu::Sub, a.width, Gpr::AX, Word::Imm(minus));
        }
        let wraps = if signed { When::Overflow } else { When::Below };
        self.asm.jump_when(wraps, label);
        self.asm.alu(Alu::Cmp, a.width, Gpr::AX, y);
        self.asm.all_when(when, Gpr::AX);
        self.asm.alu(Alu::Cmp, Width::Bits32, Gpr::AX, Word::Gpr(Gpr::DX));
        self.asm.jump_when(When::NotEqual, label);
        self.asm.alu(Alu::And, Width::Bits32, Gpr::AX, Word::Imm(self.full()));
        Some(label)
    }

    /// Sets `AX` to the result of a comparison of integers in each lane, by vector instructions.
    pub(super) fn compare_vectors(&mut self, a: Value, b: Value, order: Order, signed: bool) {
        let wide = a.width == Width::Bits64;
        let (equal, greater) = if wide {
            (Code::VEX_Vpcmpeqq_ymm_ymm_ymmm256, Code::VEX_Vpcmpgtq_ymm_ymm_ymmm256)
        } else {
            (Code::VEX_Vpcmpeqd_ymm_ymm_ymmm256, Code::VEX_Vpcmpgtd_ymm_ymm_ymmm256)
        };
        // There are instructions for `a == b` and `a > b` only.
        let (first, second, opposite) = match order {
            Order::Equal => (a, b, false),
            Order::NotEqual => (a, b, true),
            Order::Greater => (a, b, false),
            Order::LessOrEqual => (a, b, true),
            Order::Less => (b, a, false),
            Order::GreaterOrEqual => (b, a, true),
        };
        let by_order = !matches!(order, Order::Equal | Order::NotEqual);
        let by_least = by_order && !signed && !wide;
        let opposite = opposite != by_least;
        self.collect(a.width, false, |emitter, part| {
            let x = emitter.loaded(first, part, 0);
            let y = emitter.source(second, part, 1);
            if !by_order {
                emitter.asm.vector(equal, TEMP, x, y);
            } else if signed {
                emitter.asm.vector(greater, TEMP, x, y);
            } else if by_least {
                // `x <= y` if `x` is the minimum of both.
                emitter.asm.vector(Code::VEX_Vpminud_ymm_ymm_ymmm256, TEMP, x, y);
                emitter.asm.vector(equal, TEMP, TEMP, Source::Ymm(x));
            } else {
                // Unsigned numbers compare like signed ones with the highest bit flipped.
                let flip = emitter.same_constant(Width::Bits64, 1 << 63);
                let xor = Code::VEX_Vpxor_ymm_ymm_ymmm256;
                emitter.asm.vector(xor, TEMP, x, Source::Mem(flip));
                let y = emitter.in_register(y, SOURCES[1]);
                emitter.asm.vector(xor, SOURCES[1], y, Source::Mem(flip));
                emitter.asm.vector(greater, TEMP, TEMP, Source::Ymm(SOURCES[1]));
            }
        });
        if opposite {
            self.asm.alu(Alu::Xor, Width::Bits32, Gpr::AX, Word::Imm(self.full()));
        }
    }
}
