//! Machine code of conversions between integers and floating-point numbers, between `.f32` and `.f64`, from
//! floating-point numbers to integral values of the same type, and from the low 8 or 16 bits of registers of 32 bits.

use super::assembler::Width;
use super::emitter::Emitter;
use super::float::{Recipe, bitwise, double, single};
use super::formula::{Formula, Term};
use iced_x86::Code;
use ptx::ir::{Cvt, Inst, Op, Reg, Rounding, Type};

const NARROW: Width = Width::Bits32;
const WIDE: Width = Width::Bits64;

/// Predicates of the host's floating-point comparisons.
const GREATER_OR_EQUAL: u32 = 0x1d;
const ORDERED: u32 = 7;

/// Returns the immediate of a rounding mode for the host's instructions that round to an integral value. It also
/// suppresses the exception for inexact results.
fn mode(rounding: Rounding) -> Option<u32> {
    Some(match rounding {
        Rounding::Rn => 0x8,
        Rounding::Rm => 0x9,
        Rounding::Rp => 0xa,
        Rounding::Rz => 0xb,
        _ => return None,
    })
}

impl Formula<'_, '_> {
    /// Rounds `.f32` to an integral value.
    fn integral(&mut self, a: Term, mode: u32) -> Term {
        self.one_imm(Code::VEX_Vroundps_ymm_ymmm256_imm8, a, mode)
    }

    fn integral_wide(&mut self, a: Term, mode: u32) -> Term {
        self.one_imm(Code::VEX_Vroundpd_ymm_ymmm256_imm8, a, mode)
    }

    /// Converts an integral `.f32` to `.s32`: limited to its range, and 0 for a NaN.
    fn signed_of(&mut self, a: Term) -> Term {
        // The instruction returns the least number for a source out of range.
        let number = self.one(Code::VEX_Vcvttps2dq_ymm_ymmm256, a);
        let limit = self.f32(2_147_483_648.0);
        let above = self.two_imm(single::CMP, a, limit, GREATER_OR_EQUAL);
        let number = self.two(bitwise::XOR, number, above);
        let ordered = self.two_imm(single::CMP, a, a, ORDERED);
        self.two(bitwise::AND, number, ordered)
    }

    /// Converts an integral `.f32` to `.u32`: limited to its range, and 0 for a NaN.
    fn unsigned_of(&mut self, a: Term) -> Term {
        let zero = self.f32(0.0);
        let positive = self.two(single::MAX, a, zero);
        let half = self.f32(2_147_483_648.0);
        let large = self.two_imm(single::CMP, positive, half, GREATER_OR_EQUAL);
        let taken = self.two(bitwise::AND, large, half);
        let rest = self.two(single::SUB, positive, taken);
        let number = self.one(Code::VEX_Vcvttps2dq_ymm_ymmm256, rest);
        let bit = self.one_imm(Code::VEX_Vpslld_ymm_ymm_imm8, large, 31);
        let number = self.two(bitwise::XOR, number, bit);
        let limit = self.f32(4_294_967_296.0);
        let above = self.two_imm(single::CMP, positive, limit, GREATER_OR_EQUAL);
        self.two(bitwise::OR, number, above)
    }

    /// Converts four integral `.f64` numbers to `.u32`, limited to its range, in the lower halves of 64-bit elements. A
    /// NaN becomes 2^31.
    fn unsigned_halves_of(&mut self, a: Term) -> Term {
        let zero = self.f64(0.0);
        // The second source is the result for a NaN.
        let limited = self.two(double::MAX, zero, a);
        let most = self.f64(f64::from(u32::MAX));
        let limited = self.two(double::MIN, most, limited);
        // The integer is in the low bits of the sum.
        let shift = self.f64(4_503_599_627_370_496.0);
        let sum = self.two(double::ADD, limited, shift);
        let is_nan = self.is_nan(WIDE, a);
        let bit = self.number(WIDE, 1 << 31);
        self.choose(WIDE, is_nan, bit, sum)
    }

    /// Returns the lower halves of the 64-bit elements of two parts.
    pub(super) fn lower_words(&mut self, low: Term, high: Term) -> Term {
        const EVEN: u32 = 0b10_00_10_00;
        let mixed = self.two_imm(Code::VEX_Vshufps_ymm_ymm_ymmm256_imm8, low, high, EVEN);
        const IN_ORDER: u32 = 0b11_01_10_00;
        self.one_imm(Code::VEX_Vpermq_ymm_ymmm256_imm8, mixed, IN_ORDER)
    }

    /// Converts 64-bit integers to `.f64`, rounded to nearest.
    fn wide_to_double(&mut self, a: Term, signed: bool) -> Term {
        // Gives each half an exponent: 2^52 + low, and 2^84 + 2^32 high. Subtracting the powers is exact, so that only
        // the sum is rounded.
        let mask = self.number(WIDE, u64::from(u32::MAX));
        let low = self.two(bitwise::AND, a, mask);
        let exponent = self.number(WIDE, 0x4330 << 48);
        let low = self.two(bitwise::OR, low, exponent);
        let high = self.one_imm(Code::VEX_Vpsrlq_ymm_ymm_imm8, a, 32);
        let exponent = self.number(WIDE, if signed { 0x4530_0000_8000_0000 } else { 0x4530 << 48 });
        let high = self.two(bitwise::XOR, high, exponent);
        let two = |power: i32| 2f64.powi(power);
        let offset = two(84) + two(52) + if signed { two(63) } else { 0.0 };
        let offset = self.f64(offset);
        let high = self.two(double::SUB, high, offset);
        self.two(double::ADD, high, low)
    }
}

impl Emitter<'_> {
    /// Returns a conversion as a formula.
    pub(super) fn conversion(&self, inst: &Inst, d: Reg) -> Option<Recipe> {
        let Op::Cvt(c) = inst.op else { return None };
        if c.relu || c.satfinite || inst.srcs.len() != 1 {
            return None;
        }
        let seen = self.input.plan.is_payload_seen(d);
        match (c.from, c.to) {
            (Type::F32 | Type::F64, to) if !to.is_float() => self.to_integer(inst, c),
            (Type::F32, Type::F64) if !c.sat => {
                let value = self.value(inst.srcs.first()?, NARROW)?;
                Recipe::new(WIDE, &[value], move |f, part| {
                    const CODE: Code = Code::VEX_Vcvtps2pd_ymm_xmmm128;
                    if !c.ftz {
                        return f.widened(CODE, value, part, 0);
                    }
                    let a = f.source(value, part / 2, 0);
                    let a = f.flushed(a, true);
                    let a = f.canonical(a, true);
                    f.widened_half(CODE, a, part % 2)
                })
            }
            (Type::F64, Type::F32) if !c.sat && !c.ftz && c.rnd == Some(Rounding::Rn) => {
                let value = self.value(inst.srcs.first()?, WIDE)?;
                Recipe::new(NARROW, &[value], move |f, part| {
                    let [low, high] = [0, 1].map(|half| f.source(value, 2 * part + half, half));
                    f.narrowed(Code::VEX_Vcvtpd2ps_xmm_ymmm256, low, high)
                })
            }
            (Type::F32, Type::F32) => {
                let value = self.value(inst.srcs.first()?, NARROW)?;
                let mode = match c.int_rnd {
                    Some(rounding) => Some(mode(rounding)?),
                    None => None,
                };
                Recipe::new(NARROW, &[value], move |f, part| {
                    let a = f.source(value, part, 0);
                    let a = f.flushed(a, c.ftz);
                    let a = mode.map_or(a, |mode| f.integral(a, mode));
                    if c.sat || c.ftz || mode.is_some() {
                        f.finished(a, c.sat, seen)
                    } else {
                        a
                    }
                })
            }
            (Type::F64, Type::F64) if !c.sat => {
                let value = self.value(inst.srcs.first()?, WIDE)?;
                let mode = match c.int_rnd {
                    Some(rounding) => Some(mode(rounding)?),
                    None => None,
                };
                Recipe::new(WIDE, &[value], move |f, part| {
                    let a = f.source(value, part, 0);
                    mode.map_or(a, |mode| f.integral_wide(a, mode))
                })
            }
            (Type::S32 | Type::U32, Type::F32) if c.rnd == Some(Rounding::Rn) => {
                let value = self.value(inst.srcs.first()?, NARROW)?;
                let signed = c.from == Type::S32;
                Recipe::new(NARROW, &[value], move |f, part| {
                    const CODE: Code = Code::VEX_Vcvtdq2ps_ymm_ymmm256;
                    let a = f.source(value, part, 0);
                    let number = if signed {
                        f.one(CODE, a)
                    } else {
                        // Both halves are exact, so that only their sum is rounded.
                        let high = f.one_imm(Code::VEX_Vpsrld_ymm_ymm_imm8, a, 16);
                        let high = f.one(CODE, high);
                        let scale = f.f32(65_536.0);
                        let high = f.two(single::MUL, high, scale);
                        let mask = f.number(NARROW, 0xffff);
                        let low = f.two(bitwise::AND, a, mask);
                        let low = f.one(CODE, low);
                        f.two(single::ADD, high, low)
                    };
                    if c.sat { f.finished(number, true, seen) } else { number }
                })
            }
            (Type::S32 | Type::U32, Type::F64) if !c.sat && c.rnd == Some(Rounding::Rn) => {
                let value = self.value(inst.srcs.first()?, NARROW)?;
                let signed = c.from == Type::S32;
                Recipe::new(WIDE, &[value], move |f, part| {
                    if signed {
                        return f.widened(Code::VEX_Vcvtdq2pd_ymm_xmmm128, value, part, 0);
                    }
                    let a = f.widened(Code::VEX_Vpmovzxdq_ymm_xmmm128, value, part, 0);
                    let exponent = f.f64(4_503_599_627_370_496.0);
                    let sum = f.two(bitwise::OR, a, exponent);
                    f.two(double::SUB, sum, exponent)
                })
            }
            (Type::S64 | Type::U64, Type::F64) if !c.sat && c.rnd == Some(Rounding::Rn) => {
                let value = self.value(inst.srcs.first()?, WIDE)?;
                let signed = c.from == Type::S64;
                Recipe::new(WIDE, &[value], move |f, part| {
                    let a = f.source(value, part, 0);
                    f.wide_to_double(a, signed)
                })
            }
            (Type::U8 | Type::S8 | Type::U16 | Type::S16, Type::U32 | Type::S32) if !c.sat => {
                let value = self.value(inst.srcs.first()?, NARROW)?;
                let unused = 32 - 8 * c.from.size();
                let signed = c.from.is_signed();
                Recipe::new(NARROW, &[value], move |f, part| {
                    let a = f.source(value, part, 0);
                    if !signed {
                        let mask = f.number(NARROW, u64::from(u32::MAX >> unused));
                        return f.two(bitwise::AND, a, mask);
                    }
                    let high = f.one_imm(Code::VEX_Vpslld_ymm_ymm_imm8, a, unused);
                    f.one_imm(Code::VEX_Vpsrad_ymm_ymm_imm8, high, unused)
                })
            }
            _ => None,
        }
    }

    fn to_integer(&self, inst: &Inst, c: Cvt) -> Option<Recipe> {
        let signed = match c.to {
            Type::S32 => true,
            Type::U32 => false,
            _ => return None,
        };
        let mode = mode(c.int_rnd.unwrap_or(Rounding::Rz))?;
        if c.from == Type::F32 {
            let value = self.value(inst.srcs.first()?, NARROW)?;
            return Recipe::new(NARROW, &[value], move |f, part| {
                let a = f.source(value, part, 0);
                let a = f.flushed(a, c.ftz);
                let a = f.integral(a, mode);
                if signed { f.signed_of(a) } else { f.unsigned_of(a) }
            });
        }
        let value = self.value(inst.srcs.first()?, WIDE)?;
        Recipe::new(NARROW, &[value], move |f, part| {
            let halves = [0, 1].map(|half| {
                let a = f.source(value, 2 * part + half, half);
                let a = f.integral_wide(a, mode);
                if !signed {
                    return f.unsigned_halves_of(a);
                }
                // The second source is the result for a NaN. It becomes the least number, like numbers below the range.
                let most = f.f64(f64::from(i32::MAX));
                f.two(double::MIN, most, a)
            });
            let [low, high] = halves;
            if signed {
                f.narrowed(Code::VEX_Vcvttpd2dq_xmm_ymmm256, low, high)
            } else {
                f.lower_words(low, high)
            }
        })
    }
}
