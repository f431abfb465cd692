//! Machine code of products of integers, and of sums with carries.

use super::assembler::{Alu, Gpr, Shift, Width, Word};
use super::emitter::Emitter;
use super::float::bitwise;
use super::formula::{Body, Formula, Term};
use super::registers::{Kind, TEMP};
use iced_x86::Code;
use ptx::ir::{Inst, Op, Type};

const WIDE: Width = Width::Bits64;

impl Formula<'_, '_> {
    pub(super) fn sum(&mut self, width: Width, a: Term, b: Term) -> Term {
        self.two(Emitter::add_code(width), a, b)
    }

    pub(super) fn difference(&mut self, width: Width, a: Term, b: Term) -> Term {
        let code = match width {
            Width::Bits32 => Code::VEX_Vpsubd_ymm_ymm_ymmm256,
            Width::Bits64 => Code::VEX_Vpsubq_ymm_ymm_ymmm256,
        };
        self.two(code, a, b)
    }

    pub(super) fn equal(&mut self, width: Width, a: Term, b: Term) -> Term {
        let code = match width {
            Width::Bits32 => Code::VEX_Vpcmpeqd_ymm_ymm_ymmm256,
            Width::Bits64 => Code::VEX_Vpcmpeqq_ymm_ymm_ymmm256,
        };
        self.two(code, a, b)
    }

    /// Returns all ones where `a` is greater than `b`.
    pub(super) fn greater(&mut self, width: Width, a: Term, b: Term, signed: bool) -> Term {
        let (mut a, mut b) = (a, b);
        if !signed {
            (a, b) = (self.sign(width, a, true), self.sign(width, b, true));
        }
        let code = match width {
            Width::Bits32 => Code::VEX_Vpcmpgtd_ymm_ymm_ymmm256,
            Width::Bits64 => Code::VEX_Vpcmpgtq_ymm_ymm_ymmm256,
        };
        self.two(code, a, b)
    }

    /// Returns all ones where a number of 64 bits is negative.
    pub(super) fn is_negative(&mut self, a: Term) -> Term {
        let zero = self.number(WIDE, 0);
        self.two(Code::VEX_Vpcmpgtq_ymm_ymm_ymmm256, zero, a)
    }

    fn upper_words(&mut self, a: Term) -> Term {
        self.one_imm(Code::VEX_Vpsrlq_ymm_ymm_imm8, a, 32)
    }

    pub(super) fn product_low(&mut self, width: Width, a: Term, b: Term) -> Term {
        if width == Width::Bits32 {
            return self.two(Code::VEX_Vpmulld_ymm_ymm_ymmm256, a, b);
        }
        const SWAPPED: u32 = 0b10_11_00_01;
        let swapped = self.one_imm(Code::VEX_Vpshufd_ymm_ymmm256_imm8, b, SWAPPED);
        let cross = self.two(Code::VEX_Vpmulld_ymm_ymm_ymmm256, swapped, a);
        let moved = self.one_imm(Code::VEX_Vpsllq_ymm_ymm_imm8, cross, 32);
        let cross = self.sum(Width::Bits32, moved, cross);
        let mask = self.number(WIDE, !u64::from(u32::MAX));
        let cross = self.two(bitwise::AND, cross, mask);
        let low = self.two(Code::VEX_Vpmuludq_ymm_ymm_ymmm256, a, b);
        self.sum(WIDE, cross, low)
    }

    pub(super) fn product_high(&mut self, width: Width, a: Term, b: Term, signed: bool) -> Term {
        let unsigned = Code::VEX_Vpmuludq_ymm_ymm_ymmm256;
        if width == Width::Bits32 {
            let code = if signed {
                Code::VEX_Vpmuldq_ymm_ymm_ymmm256
            } else {
                unsigned
            };
            let (a_odd, b_odd) = (self.upper_words(a), self.upper_words(b));
            let odd = self.two(code, a_odd, b_odd);
            let even = self.two(code, a, b);
            let even = self.upper_words(even);
            const ODD: u32 = 0b1010_1010;
            return self.two_imm(Code::VEX_Vpblendd_ymm_ymm_ymmm256_imm8, even, odd, ODD);
        }
        let (a_high, b_high) = (self.upper_words(a), self.upper_words(b));
        let low = self.two(unsigned, a, b);
        let low = self.upper_words(low);
        let middle = self.two(unsigned, a_high, b);
        let middle = self.sum(WIDE, middle, low);
        let mask = self.number(WIDE, u64::from(u32::MAX));
        let rest = self.two(bitwise::AND, middle, mask);
        let other = self.two(unsigned, b_high, a);
        let other = self.sum(WIDE, other, rest);
        let other = self.upper_words(other);
        let high = self.two(unsigned, a_high, b_high);
        let middle = self.upper_words(middle);
        let high = self.sum(WIDE, high, middle);
        let high = self.sum(WIDE, high, other);
        if !signed {
            return high;
        }
        let a_negative = self.is_negative(a);
        let taken = self.two(bitwise::AND, a_negative, b);
        let high = self.difference(WIDE, high, taken);
        let b_negative = self.is_negative(b);
        let taken = self.two(bitwise::AND, b_negative, a);
        self.difference(WIDE, high, taken)
    }

    /// Returns `a + b`, plus 1 where the carry in is all ones; and all ones where the sum has a carry out (64 bits), or
    /// has none (32 bits).
    fn sum_with_carry(&mut self, width: Width, a: Term, b: Term, carry: Option<Term>) -> [Term; 2] {
        let sum = self.sum(width, a, b);
        let out = match width {
            Width::Bits32 => {
                let most = self.two(Code::VEX_Vpmaxud_ymm_ymm_ymmm256, sum, a);
                self.equal(width, most, sum)
            }
            Width::Bits64 => self.greater(width, a, sum, false),
        };
        let Some(carry) = carry else { return [sum, out] };
        let more = self.difference(width, sum, carry);
        let zero = self.number(width, 0);
        let wrapped = self.equal(width, more, zero);
        let wrapped = self.two(bitwise::AND, wrapped, carry);
        let out = match width {
            Width::Bits32 => self.two(bitwise::AND_NOT, wrapped, out),
            Width::Bits64 => self.two(bitwise::OR, wrapped, out),
        };
        [more, out]
    }
}

impl Emitter<'_> {
    /// Adds an instruction with a carry in or out. For other instructions, and for sources that are not supported,
    /// returns false and adds nothing.
    pub(super) fn carrying(&mut self, inst: &Inst) -> bool {
        let (ty, carry_in, carry_out, count) = match inst.op {
            Op::AddC {
                ty,
                carry_in,
                carry_out,
                ..
            } => (ty, carry_in, carry_out, 2),
            Op::MadC {
                ty,
                carry_in,
                carry_out,
                ..
            } => (ty, carry_in, carry_out, 3),
            _ => return false,
        };
        let width = if ty.size() == 4 { Width::Bits32 } else { WIDE };
        let (Some(values), [Some(d), rest @ ..]) = (self.values(inst, width, count), inst.dsts.as_slice()) else {
            return false;
        };
        let carry = match inst.srcs.get(count).filter(|_| carry_in) {
            Some(operand) => match self.mask_of(operand) {
                Some(found @ (_, false)) => Some(found.0),
                _ => return false,
            },
            None => None,
        };
        if carry.is_some_and(|carry| self.kind(*d) == Kind::Scalar(width, 0) && !self.is_same(carry)) {
            return false;
        }
        let Some(parts) = self.parts_of(*d, width, &values) else {
            return false;
        };
        let out = rest.first().copied().flatten().filter(|_| carry_out);
        let subtracts = matches!(inst.op, Op::AddC { sub: true, .. });
        let mask = carry.map(|carry| self.mask_in_register(carry, Gpr::DX));
        let op = inst.op.clone();
        let sources = values.clone();
        let both: Body<2> = Box::new(move |f, part| {
            let term = |f: &mut Formula<'_, '_>, at: usize| f.source(sources[at], part, at);
            let (mut a, mut b) = (term(f, 0), term(f, 1));
            if let Op::MadC { ty, hi, .. } = op {
                a = if hi {
                    f.product_high(width, a, b, matches!(ty, Type::S32 | Type::S64))
                } else {
                    f.product_low(width, a, b)
                };
                b = term(f, 2);
            }
            let mut carry = mask.map(|mask| f.lanes_of(mask, part, width));
            if subtracts {
                // `a - b` is `a + !b + 1`.
                let ones = f.number(WIDE, !0);
                b = f.two(bitwise::XOR, b, ones);
                carry = carry.or(Some(ones));
            }
            f.sum_with_carry(width, a, b, carry)
        });
        let Some(out) = out else {
            let sum: Body<1> = Box::new(move |f, part| [both(f, part)[0]]);
            return self.compute(*d, width, &values, &sum);
        };
        let pool = self.prepare_formula(Some(*d), false, &values, &both);
        let ymms = self.define_vector(*d);
        let lanes = if width == Width::Bits32 { 8 } else { 4 };
        for (part, ymm) in ymms.into_iter().enumerate().take(parts) {
            self.write_part(part, [ymm, TEMP], &pool, &both);
            if part == 0 {
                self.asm.signs(width, Gpr::AX, TEMP);
                continue;
            }
            self.asm.signs(width, Gpr::CX, TEMP);
            self.asm.shift(Shift::Left, Width::Bits32, Gpr::CX, lanes * part as u32);
            self.asm.alu(Alu::Or, Width::Bits32, Gpr::AX, Word::Gpr(Gpr::CX));
        }
        self.state.reserved = 0;
        if matches!(self.kind(*d), Kind::Scalar(..)) {
            self.all_as_first(Gpr::AX);
        }
        if width == Width::Bits32 {
            self.negate_mask(Gpr::AX);
        }
        self.set_mask(out, Gpr::AX);
        true
    }
}
