//! Machine code of integer arithmetic that mostly needs several vector instructions, of operations on bit fields, bits
//! and bytes, and of `slct`.

use super::assembler::Width;
use super::emitter::Emitter;
use super::float::{Recipe, bitwise, double};
use super::formula::{Formula, Term};
use super::scalar::integer;
use super::value::Value;
use crate::semantics::elementary::ROUND;
use iced_x86::Code;
use ptx::ir::{Inst, Op, Part, PrmtMode, Type};

const NARROW: Width = Width::Bits32;
const WIDE: Width = Width::Bits64;

const LEFT: Code = Code::VEX_Vpsllvd_ymm_ymm_ymmm256;
const SHUFFLE: Code = Code::VEX_Vpshufb_ymm_ymm_ymmm256;

/// Returns the shift to the right by a number in each element.
fn right(signed: bool) -> Code {
    if signed {
        Code::VEX_Vpsravd_ymm_ymm_ymmm256
    } else {
        Code::VEX_Vpsrlvd_ymm_ymm_ymmm256
    }
}

impl Formula<'_, '_> {
    fn word(&mut self, bits: u32) -> Term {
        self.number(NARROW, u64::from(bits))
    }

    /// Returns a vector with the same 16 bytes in both halves.
    fn bytes(&mut self, bytes: [u8; 16]) -> Term {
        self.words(std::array::from_fn(|i| {
            let at = 4 * (i % 4);
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        }))
    }

    /// Returns the low byte of each position or length.
    fn low_byte(&mut self, value: Value, part: usize, at: usize) -> Term {
        match value.number() {
            Some(number) => self.word(number as u32 & 0xff),
            None => {
                let a = self.source(value, part, at);
                let mask = self.word(0xff);
                self.two(bitwise::AND, a, mask)
            }
        }
    }

    /// Returns the lower half of each byte, and the upper half of each byte.
    fn nibbles(&mut self, a: Term) -> [Term; 2] {
        let mask = self.word(0x0f0f_0f0f);
        let low = self.two(bitwise::AND, a, mask);
        let high = self.one_imm(Code::VEX_Vpsrlw_ymm_ymm_imm8, a, 4);
        [low, self.two(bitwise::AND, high, mask)]
    }

    /// Returns the number of ones in each byte.
    fn ones_in_bytes(&mut self, a: Term) -> Term {
        let [low, high] = self.nibbles(a);
        let table = self.bytes(std::array::from_fn(|i| i.count_ones() as u8));
        let low = self.two(SHUFFLE, table, low);
        let high = self.two(SHUFFLE, table, high);
        self.two(Code::VEX_Vpaddb_ymm_ymm_ymmm256, low, high)
    }

    fn reversed(&mut self, a: Term) -> Term {
        let order = self.bytes(std::array::from_fn(|i| (i ^ 3) as u8));
        let a = self.two(SHUFFLE, a, order);
        let [low, high] = self.nibbles(a);
        let reversed = |i: usize| (i as u8).reverse_bits() >> 4;
        let lows = self.bytes(std::array::from_fn(|i| reversed(i) << 4));
        let low = self.two(SHUFFLE, lows, low);
        let highs = self.bytes(std::array::from_fn(reversed));
        let high = self.two(SHUFFLE, highs, high);
        self.two(bitwise::OR, low, high)
    }

    fn leading_zeros(&mut self, a: Term) -> Term {
        // Without the bit below the highest one, the conversion does not round up to the next power.
        let half = self.one_imm(Code::VEX_Vpsrld_ymm_ymm_imm8, a, 1);
        let a = self.two(bitwise::AND_NOT, half, a);
        let number = self.one(Code::VEX_Vcvtdq2ps_ymm_ymmm256, a);
        let exponent = self.one_imm(Code::VEX_Vpsrld_ymm_ymm_imm8, number, 23);
        let most = self.word(158);
        let zeros = self.difference(NARROW, most, exponent);
        // Zero has the exponent 0. For a negative number, the sign makes the difference negative.
        let bits = self.word(32);
        let zeros = self.two(Code::VEX_Vpminsd_ymm_ymm_ymmm256, zeros, bits);
        let zero = self.word(0);
        self.two(Code::VEX_Vpmaxsd_ymm_ymm_ymmm256, zeros, zero)
    }

    fn bit_field(&mut self, a: Term, position: Term, length: Term, signed: bool) -> Term {
        let field = self.two(right(signed), a, position);
        let bits = self.word(32);
        let unused = self.difference(NARROW, bits, length);
        let zero = self.word(0);
        let unused = self.two(Code::VEX_Vpmaxsd_ymm_ymm_ymmm256, unused, zero);
        let field = self.two(LEFT, field, unused);
        self.two(right(signed), field, unused)
    }

    fn inserted(&mut self, a: Term, b: Term, position: Term, length: Term) -> Term {
        let one = self.word(1);
        let bit = self.two(LEFT, one, length);
        let ones = self.difference(NARROW, bit, one);
        let mask = self.two(LEFT, ones, position);
        let field = self.two(LEFT, a, position);
        let field = self.two(bitwise::AND, field, mask);
        let rest = self.two(bitwise::AND_NOT, mask, b);
        self.two(bitwise::OR, rest, field)
    }

    /// Returns four of eight bytes, selected by a variable number.
    fn permuted(&mut self, a: Term, b: Term, c: Term) -> Term {
        // Moves each selector of four bits to its own byte.
        let mut selectors = c;
        for (distance, mask) in [(8, 0x00ff_00ff), (4, 0x0f0f_0f0f)] {
            let moved = self.one_imm(Code::VEX_Vpslld_ymm_ymm_imm8, selectors, distance);
            if distance == 8 {
                let low = self.word(0xffff);
                selectors = self.two(bitwise::AND, selectors, low);
            }
            selectors = self.two(bitwise::OR, moved, selectors);
            let mask = self.word(mask);
            selectors = self.two(bitwise::AND, selectors, mask);
        }
        let three = self.word(0x0303_0303);
        let place = self.two(bitwise::AND, selectors, three);
        let own = self.bytes(std::array::from_fn(|i| (i & 12) as u8));
        let place = self.two(bitwise::OR, place, own);
        let (from_a, from_b) = (self.two(SHUFFLE, a, place), self.two(SHUFFLE, b, place));
        let zero = self.word(0);
        let of_b = self.one_imm(Code::VEX_Vpslld_ymm_ymm_imm8, selectors, 5);
        let of_b = self.two(Code::VEX_Vpcmpgtb_ymm_ymm_ymmm256, zero, of_b);
        let bytes = self.mixed(of_b, from_b, from_a);
        let signs = self.two(Code::VEX_Vpcmpgtb_ymm_ymm_ymmm256, zero, bytes);
        let extends = self.one_imm(Code::VEX_Vpslld_ymm_ymm_imm8, selectors, 4);
        let extends = self.two(Code::VEX_Vpcmpgtb_ymm_ymm_ymmm256, zero, extends);
        self.mixed(extends, signs, bytes)
    }

    /// Returns the bits of `yes` where the mask has ones, else the bits of `no`.
    pub(super) fn mixed(&mut self, mask: Term, yes: Term, no: Term) -> Term {
        let yes = self.two(bitwise::AND, mask, yes);
        let no = self.two(bitwise::AND_NOT, mask, no);
        self.two(bitwise::OR, yes, no)
    }

    /// Returns four of eight bytes, selected by a constant.
    fn permuted_by(&mut self, a: Term, b: Term, selectors: [u32; 4]) -> Term {
        let mut shuffle = |value: Term, of_b: bool| {
            let byte = |i: usize| match selectors[i % 4] {
                s if (s >= 4) == of_b => (s & 3) as u8 + (i & 12) as u8,
                _ => 0x80,
            };
            let used = selectors.iter().any(|s| (*s >= 4) == of_b);
            used.then(|| {
                let order = self.bytes(std::array::from_fn(byte));
                self.two(SHUFFLE, value, order)
            })
        };
        match (shuffle(a, false), shuffle(b, true)) {
            (Some(a), Some(b)) => self.two(bitwise::OR, a, b),
            (Some(only), None) | (None, Some(only)) => only,
            // Never: each selector selects a byte of `a` or `b`.
            (None, None) => a,
        }
    }

    fn dot_of_bytes(&mut self, a: Term, b: Term, a_signed: bool, b_signed: bool) -> Term {
        let mut words = |value: Term, signed: bool| {
            if signed {
                let even = self.one_imm(Code::VEX_Vpsllw_ymm_ymm_imm8, value, 8);
                let even = self.one_imm(Code::VEX_Vpsraw_ymm_ymm_imm8, even, 8);
                [even, self.one_imm(Code::VEX_Vpsraw_ymm_ymm_imm8, value, 8)]
            } else {
                let mask = self.word(0x00ff_00ff);
                let even = self.two(bitwise::AND, value, mask);
                [even, self.one_imm(Code::VEX_Vpsrlw_ymm_ymm_imm8, value, 8)]
            }
        };
        let ([a_even, a_odd], [b_even, b_odd]) = (words(a, a_signed), words(b, b_signed));
        const SUMS: Code = Code::VEX_Vpmaddwd_ymm_ymm_ymmm256;
        let (even, odd) = (self.two(SUMS, a_even, b_even), self.two(SUMS, a_odd, b_odd));
        self.sum(NARROW, even, odd)
    }

    /// Divides four 32-bit numbers, one half of `a` by the same half of `b`. The quotients are in the lower halves of
    /// 64-bit elements.
    fn quotients(&mut self, a: Term, b: Term, half: usize, signed: bool) -> Term {
        let [a, b] = [a, b].map(|value| {
            if signed {
                return self.widened_half(Code::VEX_Vcvtdq2pd_ymm_xmmm128, value, half);
            }
            let value = self.widened_half(Code::VEX_Vpmovzxdq_ymm_xmmm128, value, half);
            let exponent = self.f64(4_503_599_627_370_496.0);
            let sum = self.two(bitwise::OR, value, exponent);
            self.two(double::SUB, sum, exponent)
        });
        // The quotient of such numbers never rounds up to the next integer.
        let quotient = self.two(double::DIV, a, b);
        const TRUNCATE: u32 = 0xb;
        let whole = self.one_imm(Code::VEX_Vroundpd_ymm_ymmm256_imm8, quotient, TRUNCATE);
        // The integer is in the low bits of the sum.
        let shift = self.f64(ROUND);
        self.two(double::ADD, whole, shift)
    }

    fn quotient(&mut self, a: Term, b: Term, signed: bool, remainder: bool) -> Term {
        let [low, high] = [0, 1].map(|half| self.quotients(a, b, half, signed));
        let mut result = self.lower_words(low, high);
        if remainder {
            let product = self.product_low(NARROW, result, b);
            result = self.difference(NARROW, a, product);
        }
        // Division by zero gives all ones.
        let zero = self.word(0);
        let by_zero = self.equal(NARROW, zero, b);
        self.two(bitwise::OR, by_zero, result)
    }

    fn saturated_sum(&mut self, a: Term, b: Term, subtract: bool) -> Term {
        let (result, other) = if subtract {
            (self.difference(NARROW, a, b), self.two(bitwise::XOR, b, a))
        } else {
            let sum = self.sum(NARROW, a, b);
            (sum, self.two(bitwise::XOR, sum, b))
        };
        let changed = self.two(bitwise::XOR, result, a);
        let overflow = self.two(bitwise::AND, changed, other);
        let sign = self.one_imm(Code::VEX_Vpsrad_ymm_ymm_imm8, a, 31);
        let most = self.word(0x7fff_ffff);
        let limit = self.two(bitwise::XOR, sign, most);
        self.choose(NARROW, overflow, limit, result)
    }

    /// Extends the low 24 bits, or moves them to the top.
    fn low_24(&mut self, a: Term, signed: bool, high: bool) -> Term {
        let moved = self.one_imm(Code::VEX_Vpslld_ymm_ymm_imm8, a, 8);
        if high {
            return moved;
        }
        let code = if signed {
            Code::VEX_Vpsrad_ymm_ymm_imm8
        } else {
            Code::VEX_Vpsrld_ymm_ymm_imm8
        };
        self.one_imm(code, moved, 8)
    }
}

/// Returns a formula on the parts of its sources.
pub(super) fn on(
    width: Width,
    values: &[Value],
    body: impl Fn(&mut Formula<'_, '_>, &[Term]) -> Term + 'static,
) -> Option<Recipe> {
    let sources = values.to_vec();
    Recipe::new(width, values, move |f, part| {
        let terms: Vec<Term> = (0..)
            .zip(&sources)
            .map(|(at, value)| f.source(*value, part, at))
            .collect();
        body(f, &terms)
    })
}

impl Emitter<'_> {
    /// Returns integer arithmetic as a formula.
    pub(super) fn integers(&self, inst: &Inst) -> Option<Recipe> {
        let narrow = |count| self.values(inst, NARROW, count);
        match inst.op {
            Op::Mul { ty, part: Part::Lo } if integer(ty)? == WIDE => on(WIDE, &self.values(inst, WIDE, 2)?, |f, s| {
                f.product_low(WIDE, s[0], s[1])
            }),
            Op::Mad {
                ty,
                part: Part::Lo,
                sat: false,
            } if integer(ty)? == WIDE => on(WIDE, &self.values(inst, WIDE, 3)?, |f, s| {
                let product = f.product_low(WIDE, s[0], s[1]);
                f.sum(WIDE, product, s[2])
            }),
            Op::Mul { ty, part: Part::Hi } => {
                let (width, signed) = (integer(ty)?, ty.is_signed());
                on(width, &self.values(inst, width, 2)?, move |f, s| {
                    f.product_high(width, s[0], s[1], signed)
                })
            }
            Op::Mad {
                ty,
                part: Part::Hi,
                sat: false,
            } => {
                let (width, signed) = (integer(ty)?, ty.is_signed());
                on(width, &self.values(inst, width, 3)?, move |f, s| {
                    let product = f.product_high(width, s[0], s[1], signed);
                    f.sum(width, product, s[2])
                })
            }
            Op::Mul24 { ty, hi } | Op::Mad24 { ty, hi, sat: false } => {
                let signed = ty.is_signed();
                let adds = matches!(inst.op, Op::Mad24 { .. });
                on(NARROW, &narrow(if adds { 3 } else { 2 })?, move |f, s| {
                    let (a, b) = (f.low_24(s[0], signed, hi), f.low_24(s[1], signed, hi));
                    let product = if hi {
                        f.product_high(NARROW, a, b, signed)
                    } else {
                        f.product_low(NARROW, a, b)
                    };
                    if adds { f.sum(NARROW, product, s[2]) } else { product }
                })
            }
            Op::Div { ty } | Op::Rem { ty } if integer(ty)? == NARROW => {
                let (signed, remainder) = (ty.is_signed(), matches!(inst.op, Op::Rem { .. }));
                on(NARROW, &narrow(2)?, move |f, s| {
                    f.quotient(s[0], s[1], signed, remainder)
                })
            }
            Op::Abs { ty } => {
                let width = integer(ty)?;
                on(width, &self.values(inst, width, 1)?, move |f, s| {
                    if width == NARROW {
                        return f.one(Code::VEX_Vpabsd_ymm_ymmm256, s[0]);
                    }
                    let negative = f.is_negative(s[0]);
                    let flipped = f.two(bitwise::XOR, negative, s[0]);
                    f.difference(WIDE, flipped, negative)
                })
            }
            Op::Min { ty, relu: false } | Op::Max { ty, relu: false } if integer(ty)? == WIDE => {
                let (signed, maximum) = (ty.is_signed(), matches!(inst.op, Op::Max { .. }));
                on(WIDE, &self.values(inst, WIDE, 2)?, move |f, s| {
                    let greater = f.greater(WIDE, s[0], s[1], signed);
                    let (yes, no) = if maximum { (s[0], s[1]) } else { (s[1], s[0]) };
                    f.choose(WIDE, greater, yes, no)
                })
            }
            Op::Min {
                ty: Type::S32,
                relu: true,
            }
            | Op::Max {
                ty: Type::S32,
                relu: true,
            } => {
                let maximum = matches!(inst.op, Op::Max { .. });
                on(NARROW, &narrow(2)?, move |f, s| {
                    let most = Code::VEX_Vpmaxsd_ymm_ymm_ymmm256;
                    let code = if maximum {
                        most
                    } else {
                        Code::VEX_Vpminsd_ymm_ymm_ymmm256
                    };
                    let (result, zero) = (f.two(code, s[0], s[1]), f.word(0));
                    f.two(most, result, zero)
                })
            }
            Op::Add {
                ty: Type::S32,
                sat: true,
            } => on(NARROW, &narrow(2)?, |f, s| f.saturated_sum(s[0], s[1], false)),
            Op::Sub {
                ty: Type::S32,
                sat: true,
            } => on(NARROW, &narrow(2)?, |f, s| f.saturated_sum(s[0], s[1], true)),
            Op::Sad { ty } if integer(ty)? == NARROW => {
                let codes = if ty.is_signed() {
                    [Code::VEX_Vpmaxsd_ymm_ymm_ymmm256, Code::VEX_Vpminsd_ymm_ymm_ymmm256]
                } else {
                    [Code::VEX_Vpmaxud_ymm_ymm_ymmm256, Code::VEX_Vpminud_ymm_ymm_ymmm256]
                };
                on(NARROW, &narrow(3)?, move |f, s| {
                    let [most, least] = codes.map(|code| f.two(code, s[0], s[1]));
                    let distance = f.difference(NARROW, most, least);
                    f.sum(NARROW, distance, s[2])
                })
            }
            Op::Cnot { ty } => {
                let width = integer(ty)?;
                on(width, &self.values(inst, width, 1)?, move |f, s| {
                    let (zero, one) = (f.number(width, 0), f.number(width, 1));
                    let equal = f.equal(width, zero, s[0]);
                    f.two(bitwise::AND, equal, one)
                })
            }
            Op::Shr { ty: Type::S64 } => {
                let values = [
                    self.value(inst.srcs.first()?, WIDE)?,
                    self.value(inst.srcs.get(1)?, NARROW)?,
                ];
                Recipe::new(WIDE, &values, move |f, part| {
                    let a = f.source(values[0], part, 0);
                    let negative = f.is_negative(a);
                    let flipped = f.two(bitwise::XOR, negative, a);
                    let shifted = match values[1].number() {
                        Some(by) => f.one_imm(Code::VEX_Vpsrlq_ymm_ymm_imm8, flipped, by.min(255) as u32),
                        None => {
                            let by = f.widened(Code::VEX_Vpmovzxdq_ymm_xmmm128, values[1], part, 1);
                            f.two(Code::VEX_Vpsrlvq_ymm_ymm_ymmm256, flipped, by)
                        }
                    };
                    f.two(bitwise::XOR, shifted, negative)
                })
            }
            _ => self.bit_fields(inst),
        }
    }

    fn bit_fields(&self, inst: &Inst) -> Option<Recipe> {
        let narrow = |count| self.values(inst, NARROW, count);
        match inst.op {
            Op::Bfe { ty } if integer(ty)? == NARROW => {
                let (values, signed) = (narrow(3)?, ty.is_signed());
                let [x, y, z] = [values[0], values[1], values[2]];
                Recipe::new(NARROW, &values, move |f, part| {
                    let a = f.source(x, part, 0);
                    let (position, length) = (f.low_byte(y, part, 1), f.low_byte(z, part, 2));
                    f.bit_field(a, position, length, signed)
                })
            }
            // A formula has at most three operands, so the position or the length must be a constant.
            Op::Bfi { ty } if integer(ty)? == NARROW => {
                let values = narrow(4)?;
                let [x, y, z, l] = [values[0], values[1], values[2], values[3]];
                if z.number().is_none() && l.number().is_none() {
                    return None;
                }
                Recipe::new(NARROW, &values, move |f, part| {
                    let (a, b) = (f.source(x, part, 0), f.source(y, part, 1));
                    let (position, length) = (f.low_byte(z, part, 2), f.low_byte(l, part, 2));
                    f.inserted(a, b, position, length)
                })
            }
            Op::Brev { ty } if integer(ty)? == NARROW => on(NARROW, &narrow(1)?, |f, s| f.reversed(s[0])),
            Op::Clz { ty } if integer(ty)? == NARROW => on(NARROW, &narrow(1)?, |f, s| f.leading_zeros(s[0])),
            Op::Bfind { ty, shiftamt } if integer(ty)? == NARROW => {
                let signed = ty.is_signed();
                on(NARROW, &narrow(1)?, move |f, s| {
                    let mut a = s[0];
                    if signed {
                        let sign = f.one_imm(Code::VEX_Vpsrad_ymm_ymm_imm8, a, 31);
                        a = f.two(bitwise::XOR, sign, a);
                    }
                    let zeros = f.leading_zeros(a);
                    if shiftamt {
                        let none = f.word(0);
                        let none = f.equal(NARROW, none, a);
                        return f.two(bitwise::OR, none, zeros);
                    }
                    let last = f.word(31);
                    f.difference(NARROW, last, zeros)
                })
            }
            Op::Popc { ty } if integer(ty)? == NARROW => on(NARROW, &narrow(1)?, |f, s| {
                let bytes = f.ones_in_bytes(s[0]);
                let one = f.word(0x0101_0101);
                let pairs = f.two(Code::VEX_Vpmaddubsw_ymm_ymm_ymmm256, bytes, one);
                let one = f.word(0x0001_0001);
                f.two(Code::VEX_Vpmaddwd_ymm_ymm_ymmm256, pairs, one)
            }),
            Op::Popc { ty } if integer(ty)? == WIDE => {
                let value = self.value(inst.srcs.first()?, WIDE)?;
                Recipe::new(NARROW, &[value], move |f, part| {
                    let [low, high] = [0, 1].map(|half| {
                        let a = f.source(value, 2 * part + half, half);
                        let bytes = f.ones_in_bytes(a);
                        let zero = f.word(0);
                        f.two(Code::VEX_Vpsadbw_ymm_ymm_ymmm256, bytes, zero)
                    });
                    f.lower_words(low, high)
                })
            }
            Op::Prmt { mode: PrmtMode::Index } => {
                let values = narrow(3)?;
                let known = values[2].number().map(|c| [0, 4, 8, 12].map(|at| c as u32 >> at & 15));
                match known.filter(|selectors| selectors.iter().all(|s| *s < 8)) {
                    Some(selectors) => on(NARROW, &values[..2], move |f, s| f.permuted_by(s[0], s[1], selectors)),
                    None => on(NARROW, &values, |f, s| f.permuted(s[0], s[1], s[2])),
                }
            }
            Op::Dp4a { aty, bty } => on(NARROW, &narrow(3)?, move |f, s| {
                let dot = f.dot_of_bytes(s[0], s[1], aty.is_signed(), bty.is_signed());
                f.sum(NARROW, dot, s[2])
            }),
            Op::Shf { left, clamp } => on(NARROW, &narrow(3)?, move |f, s| {
                let by = if clamp {
                    let most = f.word(32);
                    f.two(Code::VEX_Vpminud_ymm_ymm_ymmm256, s[2], most)
                } else {
                    let mask = f.word(31);
                    f.two(bitwise::AND, s[2], mask)
                };
                let bits = f.word(32);
                let rest = f.difference(NARROW, bits, by);
                let (a, b) = if left { (rest, by) } else { (by, rest) };
                let (low, high) = (f.two(right(false), s[0], a), f.two(LEFT, s[1], b));
                f.two(bitwise::OR, low, high)
            }),
            Op::Slct { ty, cty, ftz } if ty.size() == 4 => {
                on(NARROW, &narrow(3)?, move |f, s| {
                    if cty == Type::F32 {
                        let (c, zero) = (f.flushed(s[2], ftz), f.f32(0.0));
                        const GREATER_OR_EQUAL: u32 = 0x1d;
                        let mask = f.two_imm(Code::VEX_Vcmpps_ymm_ymm_ymmm256_imm8, c, zero, GREATER_OR_EQUAL);
                        return f.choose(NARROW, mask, s[0], s[1]);
                    }
                    // The sign bit of `c` decides.
                    f.choose(NARROW, s[2], s[1], s[0])
                })
            }
            _ => None,
        }
    }
}
