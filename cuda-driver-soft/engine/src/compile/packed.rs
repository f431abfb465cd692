//! Machine code of arithmetic of `.f16`, `.bf16` and integers of 16 bits in pairs: the steps of `semantics::half`, on
//! vectors.

use super::assembler::Width;
use super::emitter::Emitter;
use super::float::{Recipe, bitwise, double, single};
use super::formula::{Formula, Term};
use super::integer::on;
use crate::semantics::half::NAN_HALF;
use iced_x86::Code;
use ptx::ir::{Cvt, FloatMods, Inst, Op, Rounding, Type};

const NARROW: Width = Width::Bits32;
const WIDE: Width = Width::Bits64;

/// `2^-14 - 2^-26`: see `semantics::half`.
const TINY: f32 = f32::from_bits(0x387f_f000);

/// Predicates of the host's floating-point comparisons. The first one is true for NaNs.
const NOT_EQUAL: u32 = 4;
const GREATER: u32 = 0x1e;

/// A format of 16 bits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// `.f16`
    Half,
    /// `.bf16`
    Brain,
}

impl Format {
    /// Returns the format of the elements of a pair.
    fn of_pair(ty: Type) -> Option<Format> {
        match ty {
            Type::F16x2 => Some(Format::Half),
            Type::BF16x2 => Some(Format::Brain),
            _ => None,
        }
    }

    fn infinity(self) -> u16 {
        match self {
            Format::Half => 0x7c00,
            Format::Brain => 0x7f80,
        }
    }
}

impl Formula<'_, '_> {
    /// Returns a vector with the same 16 bits in each half of its elements.
    fn half_words(&mut self, bits: u16) -> Term {
        self.number(NARROW, u64::from(bits) * 0x1_0001)
    }

    /// Returns the lower or upper half of a vector of 16-bit elements as `.f32`.
    fn singles(&mut self, format: Format, a: Term, half: usize) -> Term {
        match format {
            Format::Half => self.widened_half(Code::VEX_Vcvtph2ps_ymm_xmmm128, a, half),
            Format::Brain => {
                let words = self.widened_half(Code::VEX_Vpmovzxwd_ymm_xmmm128, a, half);
                self.one_imm(Code::VEX_Vpslld_ymm_ymm_imm8, words, 16)
            }
        }
    }

    /// Rounds two vectors of `.f32` to a format and packs them.
    fn packed(&mut self, format: Format, [low, high]: [Term; 2]) -> Term {
        match format {
            Format::Half => {
                // The canonical NaN of `.f32` becomes that of `.f16`.
                let [low, high] = [low, high].map(|a| self.canonical(a, true));
                const NEAREST: u32 = 0;
                self.narrowed_by(Code::VEX_Vcvtps2ph_xmmm128_ymm_imm8, low, high, NEAREST)
            }
            Format::Brain => {
                let [low, high] = [low, high].map(|a| self.brain(a));
                let pairs = self.two(Code::VEX_Vpackusdw_ymm_ymm_ymmm256, low, high);
                const IN_ORDER: u32 = 0b11_01_10_00;
                self.one_imm(Code::VEX_Vpermq_ymm_ymmm256_imm8, pairs, IN_ORDER)
            }
        }
    }

    /// Applies `.ftz` to an operand of `.f16`.
    fn flushed_halves(&mut self, a: Term, ftz: bool) -> Term {
        if !ftz {
            return a;
        }
        let exponent = self.half_words(0x7c00);
        let bits = self.two(bitwise::AND, a, exponent);
        let zero = self.half_words(0);
        let small = self.two(Code::VEX_Vpcmpeqw_ymm_ymm_ymmm256, bits, zero);
        let all_but_sign = self.one_imm(Code::VEX_Vpsrlw_ymm_ymm_imm8, small, 1);
        self.two(bitwise::AND_NOT, all_but_sign, a)
    }

    fn are_nan_halves(&mut self, a: Term, format: Format) -> Term {
        let mask = self.half_words(0x7fff);
        let magnitude = self.two(bitwise::AND, a, mask);
        let infinity = self.half_words(format.infinity());
        self.two(Code::VEX_Vpcmpgtw_ymm_ymm_ymmm256, magnitude, infinity)
    }

    fn canonical_halves(&mut self, a: Term, format: Format) -> Term {
        let are_nan = self.are_nan_halves(a, format);
        let nan = self.half_words(NAN_HALF);
        self.mixed(are_nan, nan, a)
    }

    /// Applies `.relu`: negative numbers become +0.
    fn positive_halves(&mut self, a: Term, relu: bool) -> Term {
        if !relu {
            return a;
        }
        let negative = self.one_imm(Code::VEX_Vpsraw_ymm_ymm_imm8, a, 15);
        self.two(bitwise::AND_NOT, negative, a)
    }

    fn extreme_halves(&mut self, a: Term, b: Term, format: Format, nan: bool, xorsign: bool, maximum: bool) -> Term {
        let (mut a, mut b) = (a, b);
        let mask = self.half_words(0x7fff);
        let mut sign = None;
        if xorsign {
            let signs = self.two(bitwise::XOR, a, b);
            sign = Some(self.two(bitwise::AND_NOT, mask, signs));
            (a, b) = (self.two(bitwise::AND, a, mask), self.two(bitwise::AND, b, mask));
        }
        let [a_key, b_key] = [a, b].map(|value| {
            let negative = self.one_imm(Code::VEX_Vpsraw_ymm_ymm_imm8, value, 15);
            let flipped = self.two(bitwise::AND, negative, mask);
            self.two(bitwise::XOR, flipped, value)
        });
        let (more, less) = if maximum { (a_key, b_key) } else { (b_key, a_key) };
        let a_first = self.two(Code::VEX_Vpcmpgtw_ymm_ymm_ymmm256, more, less);
        let number = self.mixed(a_first, a, b);
        let (a_nan, b_nan) = (self.are_nan_halves(a, format), self.are_nan_halves(b, format));
        let number = self.mixed(a_nan, b, number);
        let mut number = self.mixed(b_nan, a, number);
        let mut is_nan = self.are_nan_halves(number, format);
        if nan {
            let any = self.two(bitwise::OR, a_nan, b_nan);
            is_nan = self.two(bitwise::OR, any, is_nan);
        }
        if let Some(sign) = sign {
            number = self.two(bitwise::OR, number, sign);
        }
        let result = self.half_words(NAN_HALF);
        self.mixed(is_nan, result, number)
    }

    /// Returns the sum of an exact product and `c`, rounded to odd. It is made from the sum rounded to nearest.
    fn odd_sum(&mut self, width: Width, product: Term, c: Term) -> Term {
        let (add, sub, compare) = match width {
            Width::Bits32 => (single::ADD, single::SUB, single::CMP),
            Width::Bits64 => (double::ADD, double::SUB, double::CMP),
        };
        let sum = self.two(add, product, c);
        // Compute the exact error of the sum.
        let second = self.two(sub, sum, product);
        let first = self.two(sub, sum, second);
        let first = self.two(sub, product, first);
        let second = self.two(sub, c, second);
        let error = self.two(add, first, second);
        let zero = self.number(width, 0);
        const LESS_OR_GREATER: u32 = 0xc;
        // False where the sum is infinite: its error is a NaN.
        let inexact = self.two_imm(compare, error, zero, LESS_OR_GREATER);
        let signs = self.two(bitwise::XOR, sum, error);
        self.odd(width, sum, inexact, signs)
    }

    /// Replaces each inexact number whose last bit is 0 by its neighbour: by the one towards zero if the sign bit of
    /// `towards_zero` is set.
    fn odd(&mut self, width: Width, number: Term, inexact: Term, towards_zero: Term) -> Term {
        let one = self.number(width, 1);
        let zero = self.number(width, 0);
        let last = self.two(bitwise::AND, number, one);
        let even = self.equal(width, last, zero);
        let moves = self.two(bitwise::AND, even, inexact);
        let ones = self.number(WIDE, !0);
        let by = self.choose(width, towards_zero, ones, one);
        let by = self.two(bitwise::AND, by, moves);
        self.sum(width, number, by)
    }

    /// Rounds two vectors of `.f64` to `.f32`, to odd.
    fn odd_singles(&mut self, low: Term, high: Term) -> Term {
        let number = self.narrowed(Code::VEX_Vcvtpd2ps_xmm_ymmm256, low, high);
        let [[low_inexact, low_more], [high_inexact, high_more]] = [(low, 0), (high, 1)].map(|(exact, half)| {
            let back = self.widened_half(Code::VEX_Vcvtps2pd_ymm_xmmm128, number, half);
            let inexact = self.two_imm(double::CMP, back, exact, NOT_EQUAL);
            let (back, exact) = (self.magnitude(WIDE, back), self.magnitude(WIDE, exact));
            [inexact, self.two_imm(double::CMP, back, exact, GREATER)]
        });
        let inexact = self.lower_words(low_inexact, high_inexact);
        let more = self.lower_words(low_more, high_more);
        self.odd(NARROW, number, inexact, more)
    }

    /// Applies an operation of `.f64` to operands of `.f32`, and rounds its results to odd.
    fn by_doubles(&mut self, terms: &[Term], operation: impl Fn(&mut Self, &[Term]) -> Term) -> Term {
        let [low, high] = [0, 1].map(|half| {
            let wide: Vec<Term> = terms
                .iter()
                .map(|term| self.widened_half(Code::VEX_Vcvtps2pd_ymm_xmmm128, *term, half))
                .collect();
            operation(self, &wide)
        });
        self.odd_singles(low, high)
    }

    fn fused_singles(&mut self, format: Format, terms: &[Term]) -> Term {
        match format {
            Format::Half => {
                // The product of two `.f16` numbers is exact in `.f32`.
                let product = self.two(single::MUL, terms[0], terms[1]);
                self.odd_sum(NARROW, product, terms[2])
            }
            Format::Brain => self.by_doubles(terms, |f, s| {
                let product = f.two(double::MUL, s[0], s[1]);
                f.odd_sum(WIDE, product, s[2])
            }),
        }
    }

    /// Applies `.ftz` and `.sat` to a result of `.f16` before it is rounded.
    fn finished_half(&mut self, a: Term, m: FloatMods) -> Term {
        let a = if m.ftz { self.clear_where_less(a, a, TINY) } else { a };
        if m.sat { self.finished(a, true, false) } else { a }
    }

    /// Rounds `.f32` to a format, in elements of 32 bits whose upper halves are zero.
    pub(super) fn rounded(&mut self, format: Format, a: Term) -> Term {
        match format {
            Format::Half => {
                let a = self.canonical(a, true);
                const NEAREST: u32 = 0;
                let words = self.narrow_by(Code::VEX_Vcvtps2ph_xmmm128_ymm_imm8, a, NEAREST);
                self.widened_half(Code::VEX_Vpmovzxwd_ymm_xmmm128, words, 0)
            }
            Format::Brain => self.brain(a),
        }
    }

    fn brain(&mut self, a: Term) -> Term {
        let upper = self.one_imm(Code::VEX_Vpsrld_ymm_ymm_imm8, a, 16);
        let one = self.number(NARROW, 1);
        let odd = self.two(bitwise::AND, upper, one);
        let half = self.number(NARROW, 0x7fff);
        let rounding = self.sum(NARROW, odd, half);
        let rounded = self.sum(NARROW, rounding, a);
        let rounded = self.one_imm(Code::VEX_Vpsrld_ymm_ymm_imm8, rounded, 16);
        let is_nan = self.is_nan(NARROW, a);
        let nan = self.number(NARROW, u64::from(NAN_HALF));
        self.choose(NARROW, is_nan, nan, rounded)
    }
}

impl Emitter<'_> {
    /// Returns arithmetic of pairs as a formula.
    pub(super) fn pairs(&self, inst: &Inst) -> Option<Recipe> {
        let values = |count| self.values(inst, NARROW, count);
        let near = |m: &FloatMods| m.rnd == Rounding::Rn && !m.oob;
        match inst.op {
            Op::FAdd(m) | Op::FSub(m) | Op::FMul(m) if near(&m) => {
                let format = Format::of_pair(m.ty)?;
                let (subtract, multiply) = (matches!(inst.op, Op::FSub(_)), matches!(inst.op, Op::FMul(_)));
                on(NARROW, &values(2)?, move |f, s| {
                    let (a, b) = (f.flushed_halves(s[0], m.ftz), f.flushed_halves(s[1], m.ftz));
                    let halves = [0, 1].map(|half| {
                        let terms = [a, b].map(|term| f.singles(format, term, half));
                        let result = match (multiply, subtract, format) {
                            (true, _, Format::Brain) => f.by_doubles(&terms, |f, s| f.two(double::MUL, s[0], s[1])),
                            (true, ..) => f.two(single::MUL, terms[0], terms[1]),
                            (_, true, _) => f.two(single::SUB, terms[0], terms[1]),
                            _ => f.two(single::ADD, terms[0], terms[1]),
                        };
                        f.finished_half(result, m)
                    });
                    f.packed(format, halves)
                })
            }
            Op::Fma(m) if near(&m) => {
                let format = Format::of_pair(m.ty)?;
                on(NARROW, &values(3)?, move |f, s| {
                    let sources = [s[0], s[1], s[2]].map(|term| f.flushed_halves(term, m.ftz));
                    let halves = [0, 1].map(|half| {
                        let terms = sources.map(|term| f.singles(format, term, half));
                        let result = f.fused_singles(format, &terms);
                        f.finished_half(result, m)
                    });
                    let result = f.packed(format, halves);
                    f.positive_halves(result, m.relu)
                })
            }
            Op::FNeg { ty, ftz } | Op::FAbs { ty, ftz } => {
                let (format, negate) = (Format::of_pair(ty)?, matches!(inst.op, Op::FNeg { .. }));
                on(NARROW, &values(1)?, move |f, s| {
                    let a = f.flushed_halves(s[0], ftz);
                    let bits = f.half_words(if negate { 0x8000 } else { 0x7fff });
                    let a = f.two(if negate { bitwise::XOR } else { bitwise::AND }, a, bits);
                    f.canonical_halves(a, format)
                })
            }
            Op::FMin {
                ty,
                ftz,
                nan,
                xorsign_abs,
            }
            | Op::FMax {
                ty,
                ftz,
                nan,
                xorsign_abs,
            } => {
                let (format, maximum) = (Format::of_pair(ty)?, matches!(inst.op, Op::FMax { .. }));
                on(NARROW, &values(2)?, move |f, s| {
                    let (a, b) = (f.flushed_halves(s[0], ftz), f.flushed_halves(s[1], ftz));
                    f.extreme_halves(a, b, format, nan, xorsign_abs, maximum)
                })
            }
            Op::Cvt(c) if inst.srcs.len() == 2 => self.pair_of_singles(inst, c),
            Op::Add {
                ty: Type::U16x2 | Type::S16x2,
                sat: false,
            } => on(NARROW, &values(2)?, |f, s| {
                f.two(Code::VEX_Vpaddw_ymm_ymm_ymmm256, s[0], s[1])
            }),
            Op::Sub {
                ty: Type::U16x2 | Type::S16x2,
                sat: false,
            } => on(NARROW, &values(2)?, |f, s| {
                f.two(Code::VEX_Vpsubw_ymm_ymm_ymmm256, s[0], s[1])
            }),
            Op::Min {
                ty: ty @ (Type::U16x2 | Type::S16x2),
                relu,
            }
            | Op::Max {
                ty: ty @ (Type::U16x2 | Type::S16x2),
                relu,
            } => {
                let code = match (matches!(inst.op, Op::Max { .. }), ty == Type::S16x2) {
                    (false, false) => Code::VEX_Vpminuw_ymm_ymm_ymmm256,
                    (false, true) => Code::VEX_Vpminsw_ymm_ymm_ymmm256,
                    (true, false) => Code::VEX_Vpmaxuw_ymm_ymm_ymmm256,
                    (true, true) => Code::VEX_Vpmaxsw_ymm_ymm_ymmm256,
                };
                on(NARROW, &values(2)?, move |f, s| {
                    let result = f.two(code, s[0], s[1]);
                    f.positive_halves(result, relu)
                })
            }
            _ => None,
        }
    }

    /// Returns `cvt.rn.f16x2.f32 d, a, b`, or the same to `.bf16x2`, as a formula. `a` is the upper element.
    fn pair_of_singles(&self, inst: &Inst, c: Cvt) -> Option<Recipe> {
        let format = Format::of_pair(c.to)?;
        if c.from != Type::F32 || c.rnd != Some(Rounding::Rn) || c.satfinite || c.sat {
            return None;
        }
        on(NARROW, &self.values(inst, NARROW, 2)?, move |f, s| {
            let ftz = c.ftz && format == Format::Brain;
            let [high, low] = [s[0], s[1]].map(|a| {
                let a = f.flushed(a, ftz);
                f.rounded(format, a)
            });
            let high = f.one_imm(Code::VEX_Vpslld_ymm_ymm_imm8, high, 16);
            let pair = f.two(bitwise::OR, high, low);
            f.positive_halves(pair, c.relu)
        })
    }
}
