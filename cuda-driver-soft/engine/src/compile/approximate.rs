//! Machine code of the approximate functions: the arithmetic of `semantics::approx` and `semantics::elementary` on
//! vectors, in the same order, so that the bits are the same. The reciprocal square root of `.f32` and some conversions
//! get to the same bits by other steps.

use super::assembler::Width;
use super::emitter::Emitter;
use super::float::{Recipe, bitwise, double, single};
use super::formula::{Formula, Term};
use super::value::Value;
use crate::semantics::elementary::{COS, EXP2, LOG2, ROOT, ROUND, SIN};
use crate::semantics::float::{NAN_F32, NAN_F64};
use iced_x86::Code;
use ptx::ir::{Inst, Op, Precision, Reg, Type};

const NARROW: Width = Width::Bits32;
const WIDE: Width = Width::Bits64;

/// 2^24
const LIFT: f32 = 16_777_216.0;
/// 2^126
const LARGE: f32 = f32::from_bits((127 + 126) << 23);

/// Predicates of the host's floating-point comparisons.
const LESS: u32 = 0x11;
const GREATER: u32 = 0x1e;
const EQUAL: u32 = 0;
const NOT_LESS: u32 = 0x15;

impl Formula<'_, '_> {
    fn compare(&mut self, width: Width, a: Term, b: Term, predicate: u32) -> Term {
        let code = match width {
            Width::Bits32 => single::CMP,
            Width::Bits64 => double::CMP,
        };
        self.two_imm(code, a, b, predicate)
    }

    fn nan(&mut self) -> Term {
        self.number(NARROW, u64::from(NAN_F32))
    }

    /// Applies a function of `.f64` to a vector of `.f32`, one half at a time.
    fn by_halves(&mut self, a: Term, function: impl Fn(&mut Self, Term) -> Term) -> Term {
        let [low, high] = [0, 1].map(|half| {
            let wide = self.widened_half(Code::VEX_Vcvtps2pd_ymm_xmmm128, a, half);
            function(self, wide)
        });
        self.narrowed(Code::VEX_Vcvtpd2ps_xmm_ymmm256, low, high)
    }

    /// Returns `a` times 2^24 where its magnitude is less than the least normal number, and the mask of these elements.
    /// With `.ftz` no element is multiplied.
    fn lifted(&mut self, a: Term, ftz: bool) -> (Term, Option<Term>) {
        if ftz {
            return (a, None);
        }
        let magnitude = self.magnitude(NARROW, a);
        let least = self.f32(f32::MIN_POSITIVE);
        let small = self.compare(NARROW, magnitude, least, LESS);
        let lift = self.f32(LIFT);
        let lifted = self.two(single::MUL, a, lift);
        (self.choose(NARROW, small, lifted, a), Some(small))
    }

    fn unit_rcp(&mut self, a: Term, seen: bool) -> Term {
        let (one, a) = (self.f32(1.0), self.flushed(a, true));
        let quotient = self.two(single::DIV, one, a);
        let quotient = self.flushed(quotient, true);
        self.canonical(quotient, seen)
    }

    /// Returns the scale of a division: 2^24 for subnormal divisors if `small` is true, 1/4 for those above 2^126 if
    /// `large` is true, and 1 for all others. Returns `None` if both are false.
    fn scale(&mut self, b: Term, small: bool, large: bool) -> Option<Term> {
        if !small && !large {
            return None;
        }
        let magnitude = self.magnitude(NARROW, b);
        let mut scale = self.f32(1.0);
        if small {
            let least = self.f32(f32::MIN_POSITIVE);
            let tiny = self.compare(NARROW, magnitude, least, LESS);
            let lift = self.f32(LIFT);
            scale = self.choose(NARROW, tiny, lift, scale);
        }
        if large {
            let most = self.f32(LARGE);
            let above = self.compare(NARROW, magnitude, most, GREATER);
            let quarter = self.f32(0.25);
            scale = self.choose(NARROW, above, quarter, scale);
        }
        Some(scale)
    }

    fn times(&mut self, a: Term, b: Option<Term>) -> Term {
        match b {
            Some(b) => self.two(single::MUL, a, b),
            None => a,
        }
    }

    /// Returns a product, flushed with `.ftz`.
    fn product(&mut self, a: Term, b: Term, ftz: bool) -> Term {
        let (a, b) = (self.flushed(a, ftz), self.flushed(b, ftz));
        let product = self.two(single::MUL, a, b);
        if !ftz {
            return product;
        }
        let lift = self.f32(LIFT);
        let scaled = self.two(single::MUL, a, lift);
        let scaled = self.two(single::MUL, scaled, b);
        self.flushed_result(product, scaled)
    }

    /// Returns the reciprocal square root of numbers that are not subnormal, correctly rounded to `.f32`.
    ///
    /// The estimate has a relative error of 2^-11.4 at most, and each step squares the error and adds the error of its
    /// arithmetic: 2^-21.7 after the step in `.f32`, 2^-52.4 after the last step in `.f64`. No result is nearer than
    /// 2^-51.8 to the middle between two `.f32` numbers: all 2^24 significands and parities of the exponent were tried.
    /// So this rounds as a root and a division in `.f64` do, whose error is 2^-52 at most.
    fn rsqrt(&mut self, a: Term) -> Term {
        let estimate = self.one(Code::VEX_Vrsqrtps_ymm_ymmm256, a);
        let near = self.newton(NARROW, a, estimate);
        let [low, high] = [0, 1].map(|half| {
            const WIDEN: Code = Code::VEX_Vcvtps2pd_ymm_xmmm128;
            let (a, near) = (self.widened_half(WIDEN, a, half), self.widened_half(WIDEN, near, half));
            let near = self.newton(WIDE, a, near);
            self.newton(WIDE, a, near)
        });
        let root = self.narrowed(Code::VEX_Vcvtpd2ps_xmm_ymmm256, low, high);
        // The steps turn zeros and infinities into NaNs; the estimate of these is exact.
        let is_nan = self.is_nan(NARROW, root);
        self.choose(NARROW, is_nan, estimate, root)
    }

    /// Adds a step of Newton's method for `1 / sqrt(a)`.
    fn newton(&mut self, width: Width, a: Term, y: Term) -> Term {
        let (mul, add, subtract, one, half) = match width {
            Width::Bits32 => (
                single::MUL,
                single::FMA,
                Code::VEX_Vfnmadd231ps_ymm_ymm_ymmm256,
                self.f32(1.0),
                self.f32(0.5),
            ),
            Width::Bits64 => (
                double::MUL,
                double::FMA,
                Code::VEX_Vfnmadd231pd_ymm_ymm_ymmm256,
                self.f64(1.0),
                self.f64(0.5),
            ),
        };
        let product = self.two(mul, y, a);
        let rest = self.fused(subtract, product, y, one);
        let halved = self.two(mul, y, half);
        self.fused(add, halved, rest, y)
    }

    /// Returns the value of the polynomial with these coefficients, highest power first.
    fn polynomial(&mut self, x: Term, coefficients: &[f64]) -> Term {
        // `semantics::elementary` begins with 0. Its first step, `0 x + c`, gives `c`.
        let mut sum = self.f64(coefficients[0]);
        for coefficient in &coefficients[1..] {
            let product = self.two(double::MUL, x, sum);
            let coefficient = self.f64(*coefficient);
            sum = self.two(double::ADD, product, coefficient);
        }
        sum
    }

    /// Returns `2^x`.
    fn exp2(&mut self, x: Term) -> Term {
        let round = self.f64(ROUND);
        let shifted = self.two(double::ADD, x, round);
        let whole = self.two(double::SUB, shifted, round);
        let fraction = self.two(double::SUB, x, whole);
        let bias = self.number(WIDE, 1023);
        let power = self.two(Code::VEX_Vpaddq_ymm_ymm_ymmm256, shifted, bias);
        let power = self.one_imm(Code::VEX_Vpsllq_ymm_ymm_imm8, power, 52);
        let sum = self.polynomial(fraction, &EXP2);
        self.two(double::MUL, sum, power)
    }

    fn log2(&mut self, x: Term) -> Term {
        let root = self.number(WIDE, ROOT);
        let offset = self.two(Code::VEX_Vpsubq_ymm_ymm_ymmm256, x, root);
        // The exponent is in the upper 12 bits. As an unsigned number plus 2^52 it becomes an `.f64`.
        let unsigned = self.sign(WIDE, offset, true);
        let exponent = self.one_imm(Code::VEX_Vpsrlq_ymm_ymm_imm8, unsigned, 52);
        let shift = self.f64(4_503_599_627_370_496.0);
        let exponent = self.two(bitwise::OR, exponent, shift);
        let shift = self.f64(4_503_599_627_370_496.0 + 2048.0);
        let exponent = self.two(double::SUB, exponent, shift);
        let mask = self.number(WIDE, (1 << 52) - 1);
        let significand = self.two(bitwise::AND, offset, mask);
        let significand = self.two(Code::VEX_Vpaddq_ymm_ymm_ymmm256, significand, root);
        let one = self.f64(1.0);
        let (above, below) = (
            self.two(double::SUB, significand, one),
            self.two(double::ADD, significand, one),
        );
        let s = self.two(double::DIV, above, below);
        let square = self.two(double::MUL, s, s);
        let sum = self.polynomial(square, &LOG2);
        let product = self.two(double::MUL, s, sum);
        self.two(double::ADD, exponent, product)
    }

    /// Returns the sine of an `.f32` argument, which is given in `.f64`, plus `quarter` quarter turns.
    fn sine(&mut self, a: Term, quarter: u64) -> Term {
        // The product is exact; without its lowest bits it is the truncated `.f32`.
        let per_turn = self.f64(f64::from(f32::from_bits(0x3e22_f983)));
        let product = self.two(double::MUL, a, per_turn);
        let kept = self.number(WIDE, !((1 << 29) - 1));
        let t = self.two(bitwise::AND, product, kept);
        let magnitude = self.magnitude(WIDE, t);
        let least = self.f64(f64::from(f32::MIN_POSITIVE));
        let normal = self.compare(WIDE, magnitude, least, NOT_LESS);
        let most = self.f64(f64::from(LIFT));
        let fraction = self.compare(WIDE, magnitude, most, LESS);
        // Subnormal and large numbers become zeros of their sign.
        let used = self.two(bitwise::AND, normal, fraction);
        let sign = self.sign(WIDE, t, false);
        let t = self.choose(WIDE, used, t, sign);

        let four = self.f64(4.0);
        let quarters = self.two(double::MUL, t, four);
        let round = self.f64(ROUND);
        let shifted = self.two(double::ADD, quarters, round);
        let whole = self.two(double::SUB, shifted, round);
        let fourth = self.f64(0.25);
        let whole = self.two(double::MUL, whole, fourth);
        let rest = self.two(double::SUB, t, whole);
        let mut quadrant = shifted;
        if quarter != 0 {
            let quarter = self.number(WIDE, quarter);
            quadrant = self.two(Code::VEX_Vpaddq_ymm_ymm_ymmm256, shifted, quarter);
        }
        let square = self.two(double::MUL, rest, rest);
        let sine = self.polynomial(square, &SIN);
        let sine = self.two(double::MUL, rest, sine);
        let cosine = self.polynomial(square, &COS);
        let odd = self.one_imm(Code::VEX_Vpsllq_ymm_ymm_imm8, quadrant, 63);
        let value = self.choose(WIDE, odd, cosine, sine);
        let second = self.one_imm(Code::VEX_Vpsllq_ymm_ymm_imm8, quadrant, 62);
        let negative = self.sign(WIDE, second, false);
        self.two(bitwise::XOR, value, negative)
    }

    fn tanh(&mut self, x: Term) -> Term {
        let magnitude = self.magnitude(WIDE, x);
        let square = self.two(double::MUL, magnitude, magnitude);
        let mut above = self.f64(21.0);
        // The first step: 19 * 21 + square * 1.
        let first = self.f64(399.0);
        let mut below = self.two(double::ADD, square, first);
        let mut odd = 17.0;
        while odd > 0.0 {
            let factor = self.f64(odd);
            let tail = self.two(double::MUL, below, factor);
            let part = self.two(double::MUL, square, above);
            (above, below) = (below, self.two(double::ADD, tail, part));
            odd -= 2.0;
        }
        let near = self.two(double::MUL, magnitude, above);
        let near = self.two(double::DIV, near, below);
        let most = self.f64(100.0);
        // The second source is the result for a NaN.
        let limited = self.two(double::MIN, magnitude, most);
        let factor = self.f64(-2.0 * core::f64::consts::LOG2_E);
        let exponent = self.two(double::MUL, limited, factor);
        let power = self.exp2(exponent);
        let one = self.f64(1.0);
        let (minus, plus) = (self.two(double::SUB, one, power), self.two(double::ADD, one, power));
        let far = self.two(double::DIV, minus, plus);
        let limit = self.f64(0.625);
        let is_near = self.compare(WIDE, magnitude, limit, LESS);
        let value = self.choose(WIDE, is_near, near, far);
        let value = self.magnitude(WIDE, value);
        let sign = self.sign(WIDE, x, false);
        self.two(bitwise::OR, value, sign)
    }

    /// Returns an `.f64` source of an approximate function: subnormal numbers flushed, and the lower half zero.
    fn upper(&mut self, a: Term) -> Term {
        let kept = self.number(WIDE, !u64::from(u32::MAX));
        let a = self.two(bitwise::AND, a, kept);
        let magnitude = self.magnitude(WIDE, a);
        let least = self.f64(f64::MIN_POSITIVE);
        let small = self.compare(WIDE, magnitude, least, LESS);
        let zero = self.sign(WIDE, a, false);
        self.choose(WIDE, small, zero, a)
    }

    /// Returns an `.f64` result of an approximate function: as for a source, but with the canonical NaN.
    fn upper_result(&mut self, a: Term) -> Term {
        let upper = self.upper(a);
        let is_nan = self.is_nan(WIDE, a);
        let nan = self.number(WIDE, u64::from(NAN_F32) << 32);
        self.choose(WIDE, is_nan, nan, upper)
    }
}

impl Emitter<'_> {
    /// Returns an approximate function as a formula.
    pub(super) fn approximate(&self, inst: &Inst, d: Reg) -> Option<Recipe> {
        let seen = self.input.plan.is_payload_seen(d);
        let single = || self.value(inst.srcs.first()?, NARROW);
        let double = || self.value(inst.srcs.first()?, WIDE);
        match inst.op {
            Op::FDiv {
                ty: Type::F32,
                precision: precision @ (Precision::Approx | Precision::Full),
                ftz,
            } => {
                let [x, y] = [single()?, self.value(inst.srcs.get(1)?, NARROW)?];
                let full = precision == Precision::Full;
                Recipe::new(NARROW, &[x, y], move |f, part| {
                    let (a, b) = (f.source(x, part, 0), f.source(y, part, 1));
                    let scale = f.scale(b, !ftz, full);
                    let divisor = f.times(b, scale);
                    let reciprocal = f.unit_rcp(divisor, false);
                    let a = match scale {
                        Some(scale) if full => f.product(a, scale, ftz),
                        Some(scale) => f.two(single::MUL, a, scale),
                        None => a,
                    };
                    let quotient = f.product(reciprocal, a, ftz);
                    f.canonical(quotient, seen)
                })
            }
            Op::Rcp {
                ty: Type::F32,
                precision: Precision::Approx,
                ftz,
            } => on_single(single()?, move |f, a| {
                let scale = f.scale(a, !ftz, !ftz);
                let scaled = f.times(a, scale);
                let reciprocal = f.unit_rcp(scaled, false);
                let reciprocal = f.times(reciprocal, scale);
                f.canonical(reciprocal, seen)
            }),
            Op::Rcp {
                ty: Type::F64,
                precision: Precision::Approx,
                ..
            } => on_double(double()?, |f, a| {
                let (one, a) = (f.f64(1.0), f.upper(a));
                let quotient = f.two(double::DIV, one, a);
                f.upper_result(quotient)
            }),
            Op::Sqrt {
                ty: Type::F32,
                precision: Precision::Approx,
                ftz,
            } => on_single(single()?, move |f, a| {
                let (a, small) = f.lifted(a, ftz);
                let a = f.flushed(a, true);
                let mut root = f.one(single::SQRT, a);
                if let Some(small) = small {
                    let scale = f.f32(1.0 / 4096.0);
                    let scaled = f.two(single::MUL, root, scale);
                    root = f.choose(NARROW, small, scaled, root);
                }
                f.canonical(root, seen)
            }),
            Op::Rsqrt { ty: Type::F32, ftz } => on_single(single()?, move |f, a| {
                let (a, small) = f.lifted(a, ftz);
                let a = f.flushed(a, true);
                let mut root = f.rsqrt(a);
                if let Some(small) = small {
                    let scale = f.f32(4096.0);
                    let scaled = f.two(single::MUL, root, scale);
                    root = f.choose(NARROW, small, scaled, root);
                }
                f.canonical(root, seen)
            }),
            Op::Rsqrt {
                ty: Type::F64,
                ftz: true,
            } => on_double(double()?, |f, a| {
                let (one, a) = (f.f64(1.0), f.upper(a));
                let root = f.one(double::SQRT, a);
                let quotient = f.two(double::DIV, one, root);
                f.upper_result(quotient)
            }),
            Op::Rsqrt {
                ty: Type::F64,
                ftz: false,
            } => on_double(double()?, |f, a| {
                let (one, root) = (f.f64(1.0), f.one(double::SQRT, a));
                let quotient = f.two(double::DIV, one, root);
                let is_nan = f.is_nan(WIDE, quotient);
                let nan = f.number(WIDE, NAN_F64);
                f.choose(WIDE, is_nan, nan, quotient)
            }),
            Op::Sin { ftz } | Op::Cos { ftz } => {
                let quarter = u64::from(matches!(inst.op, Op::Cos { .. }));
                on_single(single()?, move |f, a| {
                    let a = f.flushed(a, ftz);
                    let value = f.by_halves(a, |f, a| f.sine(a, quarter));
                    let value = f.flushed(value, true);
                    // Infinities and NaNs have no sine or cosine.
                    let magnitude = f.magnitude(NARROW, a);
                    let infinity = f.f32(f32::INFINITY);
                    let infinite = f.compare(NARROW, magnitude, infinity, NOT_LESS);
                    let nan = f.nan();
                    f.choose(NARROW, infinite, nan, value)
                })
            }
            Op::Lg2 { ftz } => on_single(single()?, move |f, a| {
                let (a, small) = f.lifted(a, ftz);
                let a = f.flushed(a, true);
                let value = f.by_halves(a, Formula::log2);
                let infinity = f.f32(f32::INFINITY);
                let infinite = f.compare(NARROW, a, infinity, EQUAL);
                let value = f.choose(NARROW, infinite, a, value);
                let zero = f.f32(0.0);
                let is_zero = f.compare(NARROW, a, zero, EQUAL);
                let least = f.f32(f32::NEG_INFINITY);
                let value = f.choose(NARROW, is_zero, least, value);
                let mut value = value;
                if let Some(small) = small {
                    let lift = f.f32(24.0);
                    let less = f.two(single::SUB, value, lift);
                    value = f.choose(NARROW, small, less, value);
                }
                // True for negative numbers and NaNs.
                let none = f.compare(NARROW, a, zero, NOT_GREATER_OR_EQUAL);
                let nan = f.nan();
                f.choose(NARROW, none, nan, value)
            }),
            Op::Ex2 { ty: Type::F32, ftz } => on_single(single()?, move |f, a| {
                let mut small = None;
                let mut argument = a;
                if !ftz {
                    let limit = f.f32(-126.0);
                    let mask = f.compare(NARROW, a, limit, LESS);
                    let half = f.f32(0.5);
                    let halved = f.two(single::MUL, a, half);
                    argument = f.choose(NARROW, mask, halved, a);
                    small = Some(mask);
                }
                let power = f.by_halves(argument, |f, a| {
                    let limits = [f.f64(-200.0), f.f64(200.0)];
                    let limited = f.two(double::MAX, a, limits[0]);
                    let limited = f.two(double::MIN, limited, limits[1]);
                    f.exp2(limited)
                });
                let mut power = f.flushed(power, true);
                if let Some(small) = small {
                    let square = f.two(single::MUL, power, power);
                    power = f.choose(NARROW, small, square, power);
                }
                let is_nan = f.is_nan(NARROW, a);
                let nan = f.nan();
                f.choose(NARROW, is_nan, nan, power)
            }),
            Op::Tanh { ty: Type::F32 } => on_single(single()?, move |f, a| {
                let value = f.by_halves(a, Formula::tanh);
                let is_nan = f.is_nan(NARROW, a);
                let nan = f.nan();
                f.choose(NARROW, is_nan, nan, value)
            }),
            _ => None,
        }
    }
}

/// "Not greater or equal": true for NaNs.
const NOT_GREATER_OR_EQUAL: u32 = 0x19;

fn on_single(value: Value, body: impl Fn(&mut Formula<'_, '_>, Term) -> Term + 'static) -> Option<Recipe> {
    Recipe::new(NARROW, &[value], move |f, part| {
        let a = f.source(value, part, 0);
        body(f, a)
    })
}

fn on_double(value: Value, body: impl Fn(&mut Formula<'_, '_>, Term) -> Term + 'static) -> Option<Recipe> {
    Recipe::new(WIDE, &[value], move |f, part| {
        let a = f.source(value, part, 0);
        body(f, a)
    })
}
