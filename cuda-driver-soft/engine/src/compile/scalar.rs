//! Machine code of integer arithmetic on the first lane of a group, for uniform and affine results.

use super::assembler::{Alu, Gpr, Label, Mem, Shift, When, Width, Word};
use super::emitter::Emitter;
use super::lanes::whole_reach;
use super::registers::Kind;
use super::value::Value;
use crate::plan::shape::{Condition, Shape};
use crate::window;
use ptx::ir::{Inst, Op, Operand, Part, Reg, Space, Type};

/// Returns the width of an integer type.
pub(super) fn integer(ty: Type) -> Option<Width> {
    match ty {
        Type::B32 | Type::U32 | Type::S32 => Some(Width::Bits32),
        Type::B64 | Type::U64 | Type::S64 => Some(Width::Bits64),
        _ => None,
    }
}

/// Returns the width of a type of 32 or 64 bits, for moves.
pub(super) fn bits(ty: Type) -> Option<Width> {
    match ty.size() {
        4 => Some(Width::Bits32),
        8 => Some(Width::Bits64),
        _ => None,
    }
}

impl Emitter<'_> {
    /// Adds an instruction whose result `d` and whose sources are all uniform or affine. If it is not one that this
    /// file compiles, returns false and adds nothing.
    pub(super) fn scalar(&mut self, step: usize, inst: &Inst, d: Reg, live: &[Reg], rest: u32) -> bool {
        let Some(work) = self.scalar_work(inst) else {
            return false;
        };
        // The register of a conversion may be wider than the result, whose sign is then extended.
        if !matches!(self.kind(d), Kind::Scalar(width, _) if width == work.width()) {
            return false;
        }
        let sources = work.sources();
        if !sources.iter().all(Value::is_scalar) {
            return false;
        }
        let uniform = sources.iter().all(Value::is_uniform);
        let chosen = matches!(work, Work::Choice(..)) && self.shapes.assumption(step).is_none();
        if !uniform && chosen {
            return false;
        }
        if let Some(assumption) = self.shapes.assumption(step) {
            let Some(value) = sources.get(assumption.source).copied() else {
                return false;
            };
            if let (Condition::Chosen, Work::Choice(a, b, choice)) = (assumption.kind, &work) {
                let other = if assumption.source == 0 { *b } else { *a };
                self.check_choice(step, value, other, *choice, live, rest);
                self.run_scalar(&Work::Copy(value), d);
                return true;
            }
            self.check(step, value, assumption.kind, live, rest);
        }
        self.run_scalar(&work, d);
        true
    }

    fn scalar_work(&self, inst: &Inst) -> Option<Work> {
        let source = |at: usize, width| self.value(inst.srcs.get(at)?, width);
        Some(match &inst.op {
            Op::Mov { ty } => Work::Copy(source(0, bits(*ty)?)?),
            Op::Add { ty, sat: false } => {
                let width = integer(*ty)?;
                Work::Sum(source(0, width)?, source(1, width)?, Alu::Add)
            }
            Op::Sub { ty, sat: false } => {
                let width = integer(*ty)?;
                Work::Sum(source(0, width)?, source(1, width)?, Alu::Sub)
            }
            Op::Mul { ty, part: Part::Lo } => {
                let width = integer(*ty)?;
                Work::Product(source(0, width)?, source(1, width)?, None)
            }
            Op::Mad {
                ty,
                part: Part::Lo,
                sat: false,
            } => {
                let width = integer(*ty)?;
                Work::Product(source(0, width)?, source(1, width)?, Some(source(2, width)?))
            }
            Op::Mul { ty, part: Part::Wide } if ty.size() == 4 => {
                let narrow = Width::Bits32;
                Work::WideProduct(source(0, narrow)?, source(1, narrow)?, None, ty.is_signed())
            }
            Op::Mad {
                ty,
                part: Part::Wide,
                sat: false,
            } if ty.size() == 4 => {
                let narrow = Width::Bits32;
                let c = source(2, Width::Bits64)?;
                Work::WideProduct(source(0, narrow)?, source(1, narrow)?, Some(c), ty.is_signed())
            }
            Op::Shl { ty } => {
                let width = integer(*ty)?;
                Work::ShiftLeft(source(0, width)?, self.distance(inst)?)
            }
            Op::Shr { ty } => {
                let width = integer(*ty)?;
                Work::ShiftRight(source(0, width)?, self.distance(inst)?, ty.is_signed())
            }
            Op::And { ty } | Op::Or { ty } | Op::Xor { ty } => {
                let width = integer(*ty)?;
                let alu = match &inst.op {
                    Op::And { .. } => Alu::And,
                    Op::Or { .. } => Alu::Or,
                    _ => Alu::Xor,
                };
                Work::Bits(source(0, width)?, source(1, width)?, alu)
            }
            Op::Not { ty } => {
                let width = integer(*ty)?;
                Work::Bits(source(0, width)?, self.value(&Operand::Imm(u64::MAX), width)?, Alu::Xor)
            }
            Op::Neg { ty } => {
                let width = integer(*ty)?;
                Work::Sum(self.value(&Operand::Imm(0), width)?, source(0, width)?, Alu::Sub)
            }
            Op::Div {
                ty: ty @ (Type::U32 | Type::U64),
            }
            | Op::Rem {
                ty: ty @ (Type::U32 | Type::U64),
            } => {
                let width = integer(*ty)?;
                let (a, by) = (source(0, width)?, source(1, width)?.number()?);
                match inst.op {
                    _ if !by.is_power_of_two() => return None,
                    Op::Div { .. } => Work::ShiftRight(a, by.trailing_zeros(), false),
                    _ => Work::Bits(a, self.value(&Operand::Imm(by - 1), width)?, Alu::And),
                }
            }
            Op::Selp { ty } => {
                let width = bits(*ty)?;
                let (a, b) = (source(0, width)?, source(1, width)?);
                let (predicate, negated) = self.mask_of(inst.srcs.get(2)?)?;
                // A uniform result may be a float, which is better kept as a vector.
                if a.is_uniform() && b.is_uniform() || self.shape(predicate) != Shape::Uniform {
                    return None;
                }
                let (yes, no) = if negated { (b, a) } else { (a, b) };
                Work::Select(yes, no, predicate)
            }
            Op::Min { ty, relu: false } | Op::Max { ty, relu: false } => {
                let width = integer(*ty)?;
                let choice = Choice {
                    least: matches!(inst.op, Op::Min { .. }),
                    signed: ty.is_signed(),
                };
                Work::Choice(source(0, width)?, source(1, width)?, choice)
            }
            Op::Cvt(cvt) if !cvt.sat => match (integer(cvt.from)?, integer(cvt.to)?) {
                (Width::Bits32, Width::Bits64) => Work::Widen(source(0, Width::Bits32)?, cvt.from.is_signed()),
                (Width::Bits64, Width::Bits32) => Work::Narrow(source(0, Width::Bits64)?),
                (width, _) => Work::Copy(source(0, width)?),
            },
            Op::Cvta { space, to, ty } => {
                let value = source(0, integer(*ty)?)?;
                let start = match space {
                    Space::Generic | Space::Global | Space::Const => return Some(Work::Copy(value)),
                    Space::Shared | Space::SharedCluster => window::SHARED,
                    Space::Local => window::LOCAL,
                    Space::Param => window::PARAM,
                };
                if ty.size() != 8 {
                    return None;
                }
                let start = if *to { start.wrapping_neg() } else { start };
                Work::Offset(value, start)
            }
            _ => return None,
        })
    }

    /// Returns the constant distance of a shift, unless it shifts everything out.
    fn distance(&self, inst: &Inst) -> Option<u32> {
        let number = self.value(inst.srcs.get(1)?, Width::Bits32)?.number()?;
        let bits = match &inst.op {
            Op::Shl { ty } | Op::Shr { ty } => u64::from(8 * ty.size()),
            _ => 0,
        };
        (number < bits).then_some(number as u32)
    }

    /// Adds code that leaves, or begins again, if an assumption about an affine value of 32 bits does not hold.
    fn check(&mut self, step: usize, value: Value, kind: Condition, live: &[Reg], rest: u32) {
        let Shape::Affine(each) = value.shape else { return };
        let reach = each.wrapping_mul(i64::from(self.lanes) - 1);
        let out: Label = self.assumption_stub(step, live, rest);
        let signed = kind == Condition::Signed;
        let fits = if signed {
            i32::try_from(reach).is_ok()
        } else {
            u32::try_from(reach.unsigned_abs()).is_ok()
        };
        if !fits {
            return self.asm.jump(out);
        }
        let first = self.first_in_register(value);
        self.leave_if_wrapped(first, reach, signed, out);
    }

    /// Returns a general register with the first lane of a scalar: its own, or `AX`.
    pub(super) fn first_in_register(&mut self, value: Value) -> Gpr {
        match self.first_lane(value, Gpr::AX) {
            Word::Gpr(gpr) => gpr,
            Word::Mem(_) | Word::Imm(_) => {
                self.copy_first_lane(value, Gpr::AX);
                Gpr::AX
            }
        }
    }

    /// Adds code that jumps to `out` if the sum of a number of 32 bits and `reach` does not fit in 32 bits. The
    /// magnitude of `reach` must fit in 32 bits; if `signed` is true, `reach` must be a signed number of 32 bits.
    fn leave_if_wrapped(&mut self, first: Gpr, reach: i64, signed: bool, out: Label) {
        let (limit, when) = match (signed, reach >= 0) {
            (true, true) => (i64::from(i32::MAX) - reach, When::Greater),
            (true, false) => (i64::from(i32::MIN) - reach, When::Less),
            (false, true) => (i64::from(u32::MAX) - reach, When::Above),
            (false, false) => (-reach, When::Below),
        };
        // The comparison reads only the lower half of the limit.
        let limit = Word::Imm(limit as i32);
        self.asm.alu(Alu::Cmp, Width::Bits32, first, limit);
        self.asm.jump_when(when, out);
    }

    /// Adds code that leaves, or begins again, unless an affine value is the minimum or maximum of itself and a uniform
    /// one in all lanes.
    fn check_choice(&mut self, step: usize, value: Value, other: Value, choice: Choice, live: &[Reg], rest: u32) {
        let out: Label = self.assumption_stub(step, live, rest);
        let reach = match value.shape {
            Shape::Affine(each) => whole_reach(each, self.lanes),
            _ => Some(0),
        };
        let Some(reach) = reach.filter(|reach| *reach != i32::MIN && other.is_uniform()) else {
            return self.asm.jump(out);
        };
        let otherwise = choice.otherwise();
        let first = self.first_in_register(value);
        let bound = self.first_lane(other, Gpr::CX);
        // If no lane wraps, the first or the last lane decides.
        if (reach >= 0) != choice.least {
            self.asm.alu(Alu::Cmp, value.width, first, bound);
            self.asm.jump_when(otherwise, out);
            if value.width == Width::Bits32 {
                return self.leave_if_wrapped(first, reach.into(), choice.signed, out);
            }
        }
        let (alu, distance) = if choice.signed || reach >= 0 {
            (Alu::Add, reach)
        } else {
            (Alu::Sub, -reach)
        };
        if first != Gpr::AX {
            self.asm.alu(Alu::Mov, value.width, Gpr::AX, Word::Gpr(first));
        }
        self.asm.alu(alu, value.width, Gpr::AX, Word::Imm(distance));
        self.asm
            .jump_when(if choice.signed { When::Overflow } else { When::Below }, out);
        if (reach >= 0) == choice.least {
            self.asm.alu(Alu::Cmp, value.width, Gpr::AX, bound);
            self.asm.jump_when(otherwise, out);
        }
    }

    fn run_scalar(&mut self, work: &Work, d: Reg) {
        let mut factor = 0;
        let (a, b, c) = match *work {
            Work::Copy(a) | Work::ShiftLeft(a, _) | Work::ShiftRight(a, _, _) | Work::Widen(a, _) | Work::Narrow(a) => {
                (a, None, None)
            }
            Work::Sum(a, b, _) | Work::Bits(a, b, _) => (a, Some(b), None),
            Work::Product(a, b, c) => (a, Some(b), c),
            Work::WideProduct(a, b, c, signed) => match b.number().filter(|n| n.is_power_of_two() && *n < 1 << 31) {
                Some(number) => {
                    factor = number.trailing_zeros();
                    (a, None, c)
                }
                None => return self.multiply_wide([a, b], c, signed, d),
            },
            Work::Choice(a, b, choice) => return self.choose(a, b, choice, d),
            Work::Select(a, b, predicate) => return self.select(a, b, predicate, d),
            Work::Offset(a, start) => return self.offset(a, start, d),
        };
        let first = self.first_lane(a, Gpr::AX);
        let [second, third] =
            [(b, Gpr::CX), (c, Gpr::DX)].map(|(value, temp)| value.map(|value| self.first_lane(value, temp)));
        let d = self.define_gpr(d);
        // Other sources are read after the register has changed.
        let blocked = [second, third].contains(&Some(Word::Gpr(d)));
        let to = if blocked { Gpr::AX } else { d };
        let width = work.width();
        match (*work, second) {
            (Work::Sum(_, _, alu) | Work::Bits(_, _, alu), Some(second)) => {
                self.combine_into(alu, width, to, first, second)
            }
            (Work::Product(..), Some(second)) => {
                self.combine_into(Alu::Imul, width, to, first, second);
            }
            (Work::Widen(_, signed) | Work::WideProduct(_, _, _, signed), _) => {
                self.widen_into(to, first, signed);
                if factor > 0 {
                    self.asm.shift(Shift::Left, width, to, factor);
                }
            }
            _ => {
                self.copy_word(width, to, first);
                match *work {
                    Work::ShiftLeft(_, distance) => self.asm.shift(Shift::Left, width, to, distance),
                    Work::ShiftRight(_, distance, true) => self.asm.shift(Shift::RightSigned, width, to, distance),
                    Work::ShiftRight(_, distance, false) => self.asm.shift(Shift::Right, width, to, distance),
                    _ => {}
                }
            }
        }
        if let Some(third) = third {
            self.asm.alu(Alu::Add, width, to, third);
        }
        if to != d {
            self.asm.alu(Alu::Mov, width, d, Word::Gpr(to));
        }
    }

    /// Multiplies two numbers of 32 bits, extended to 64, and adds a third of 64.
    fn multiply_wide(&mut self, [a, b]: [Value; 2], c: Option<Value>, signed: bool, d: Reg) {
        let wide = Width::Bits64;
        self.widened(a, signed, Gpr::AX);
        self.widened(b, signed, Gpr::CX);
        self.asm.alu(Alu::Imul, wide, Gpr::AX, Word::Gpr(Gpr::CX));
        if let Some(c) = c {
            let word = self.first_lane(c, Gpr::CX);
            self.asm.alu(Alu::Add, wide, Gpr::AX, word);
        }
        self.define_from_ax(wide, d);
    }

    fn choose(&mut self, a: Value, b: Value, choice: Choice, d: Reg) {
        self.copy_first_lane(a, Gpr::AX);
        self.copy_first_lane(b, Gpr::CX);
        self.asm.alu(Alu::Cmp, a.width, Gpr::AX, Word::Gpr(Gpr::CX));
        self.asm.move_when(choice.otherwise(), a.width, Gpr::AX, Gpr::CX);
        self.define_from_ax(a.width, d);
    }

    /// Sets the result to `a` if a uniform predicate is true, and to `b` if it is false.
    fn select(&mut self, a: Value, b: Value, predicate: Reg, d: Reg) {
        self.copy_first_lane(a, Gpr::CX);
        self.copy_first_lane(b, Gpr::DX);
        self.copy_mask(predicate, Gpr::AX);
        self.asm.alu(Alu::And, Width::Bits32, Gpr::AX, Word::Imm(1));
        self.asm.move_when(When::NotEqual, a.width, Gpr::DX, Gpr::CX);
        let d = self.define_gpr(d);
        self.asm.alu(Alu::Mov, a.width, d, Word::Gpr(Gpr::DX));
    }

    fn offset(&mut self, a: Value, start: u64, d: Reg) {
        self.copy_first_lane(a, Gpr::AX);
        self.asm.constant(Gpr::CX, start);
        self.asm.alu(Alu::Add, Width::Bits64, Gpr::AX, Word::Gpr(Gpr::CX));
        self.define_from_ax(Width::Bits64, d);
    }

    /// Sets the result to `AX`.
    fn define_from_ax(&mut self, width: Width, d: Reg) {
        let d = self.define_gpr(d);
        self.asm.alu(Alu::Mov, width, d, Word::Gpr(Gpr::AX));
    }

    /// Sets a register to a word.
    fn copy_word(&mut self, width: Width, to: Gpr, word: Word) {
        match word {
            Word::Imm(number) if width == Width::Bits32 => self.asm.constant(to, u64::from(number.cast_unsigned())),
            Word::Imm(number) => self.asm.constant(to, i64::from(number).cast_unsigned()),
            Word::Gpr(gpr) if gpr == to => {}
            word => self.asm.alu(Alu::Mov, width, to, word),
        }
    }

    /// Sets a register, which is not the second source, to the result of an operation.
    fn combine_into(&mut self, alu: Alu, width: Width, to: Gpr, first: Word, second: Word) {
        let sum = match (alu, first, second) {
            (Alu::Add, Word::Gpr(x), Word::Gpr(y)) => Some(Mem {
                index: Some(y),
                ..Mem::at(x, 0)
            }),
            (Alu::Add, Word::Gpr(x), Word::Imm(number)) => Some(Mem::at(x, number)),
            (Alu::Sub, Word::Gpr(x), Word::Imm(number)) if number != i32::MIN => Some(Mem::at(x, -number)),
            _ => None,
        };
        match (sum, first, second) {
            (Some(sum), first, _) if first != Word::Gpr(to) => self.asm.lea(width, to, sum),
            (_, Word::Gpr(_) | Word::Mem(_), Word::Imm(number)) if alu == Alu::Imul => {
                self.asm.multiply(width, to, first, number);
            }
            _ => {
                self.copy_word(width, to, first);
                self.asm.alu(alu, width, to, second);
            }
        }
    }

    /// Sets a register to a word of 32 bits, extended to 64.
    fn widen_into(&mut self, to: Gpr, word: Word, signed: bool) {
        match (word, signed) {
            (Word::Imm(number), true) => self.asm.constant(to, i64::from(number).cast_unsigned()),
            (Word::Imm(number), false) => self.asm.constant(to, u64::from(number.cast_unsigned())),
            (word, true) => self.asm.extend_signed(to, word),
            // A move of 32 bits clears the upper half.
            (word, false) => self.asm.alu(Alu::Mov, Width::Bits32, to, word),
        }
    }

    /// Copies the first lane of a value of 32 bits into `to`, extended to 64.
    fn widened(&mut self, value: Value, signed: bool, to: Gpr) {
        let word = self.first_lane(value, to);
        self.widen_into(to, word, signed);
    }
}

/// A minimum or maximum.
#[derive(Clone, Copy)]
struct Choice {
    /// True for a minimum.
    least: bool,
    signed: bool,
}

impl Choice {
    /// Returns the condition, after a comparison of two numbers, under which the second one is chosen.
    fn otherwise(self) -> When {
        match (self.least, self.signed) {
            (true, true) => When::Greater,
            (true, false) => When::Above,
            (false, true) => When::Less,
            (false, false) => When::Below,
        }
    }
}

/// An operation on first lanes. The `bool` of an operation is true for signed numbers.
#[derive(Clone, Copy)]
enum Work {
    Copy(Value),
    Sum(Value, Value, Alu),
    Product(Value, Value, Option<Value>),
    WideProduct(Value, Value, Option<Value>, bool),
    ShiftLeft(Value, u32),
    ShiftRight(Value, u32, bool),
    Bits(Value, Value, Alu),
    Choice(Value, Value, Choice),
    /// The first value where the predicate is true, else the second one.
    Select(Value, Value, Reg),
    Widen(Value, bool),
    Narrow(Value),
    /// The sum with a constant of 64 bits.
    Offset(Value, u64),
}

impl Work {
    /// Returns the width of the result.
    fn width(&self) -> Width {
        match self {
            Work::Widen(..) | Work::WideProduct(..) | Work::Offset(..) => Width::Bits64,
            Work::Narrow(_) => Width::Bits32,
            Work::Copy(a)
            | Work::ShiftLeft(a, _)
            | Work::ShiftRight(a, _, _)
            | Work::Sum(a, _, _)
            | Work::Product(a, _, _)
            | Work::Bits(a, _, _)
            | Work::Choice(a, _, _)
            | Work::Select(a, _, _) => a.width,
        }
    }

    fn sources(&self) -> Vec<Value> {
        match self {
            Work::Copy(a)
            | Work::ShiftLeft(a, _)
            | Work::ShiftRight(a, _, _)
            | Work::Widen(a, _)
            | Work::Narrow(a)
            | Work::Offset(a, _) => vec![*a],
            Work::Sum(a, b, _) | Work::Bits(a, b, _) | Work::Choice(a, b, _) | Work::Select(a, b, _) => vec![*a, *b],
            Work::Product(a, b, c) | Work::WideProduct(a, b, c, _) => [*a, *b].into_iter().chain(*c).collect(),
        }
    }
}
