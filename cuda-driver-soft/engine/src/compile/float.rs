//! Machine code of the floating-point arithmetic that `vector` does not have: arithmetic of `.f64`, or of `.f32` with
//! `.ftz` or `.sat`, reciprocals, minima, maxima and `copysign`. The steps are those of `semantics::float`, on vectors.

use super::assembler::Width;
use super::emitter::Emitter;
use super::formula::{Body, Formula, Term};
use super::value::Value;
use crate::semantics::float::{NAN_F32, SCALE};
use iced_x86::Code;
use ptx::ir::{FloatMods, Inst, Op, Precision, Reg, Rounding, Type};

/// Predicates of the host's floating-point comparisons.
const LESS: u32 = 0x11;
const UNORDERED: u32 = 3;

/// An instruction as a formula.
pub(super) struct Recipe {
    /// The width of the result.
    pub(super) width: Width,
    pub(super) values: Vec<Value>,
    pub(super) body: Body<1>,
}

impl Recipe {
    pub(super) fn new(
        width: Width,
        values: &[Value],
        body: impl Fn(&mut Formula<'_, '_>, usize) -> Term + 'static,
    ) -> Option<Recipe> {
        Some(Recipe {
            width,
            values: values.to_vec(),
            body: Box::new(move |f, part| [body(f, part)]),
        })
    }
}

/// Vector instructions on `.f32`.
pub(super) mod single {
    use iced_x86::Code;
    pub(in super::super) const ADD: Code = Code::VEX_Vaddps_ymm_ymm_ymmm256;
    pub(in super::super) const SUB: Code = Code::VEX_Vsubps_ymm_ymm_ymmm256;
    pub(in super::super) const MUL: Code = Code::VEX_Vmulps_ymm_ymm_ymmm256;
    pub(in super::super) const DIV: Code = Code::VEX_Vdivps_ymm_ymm_ymmm256;
    pub(in super::super) const MIN: Code = Code::VEX_Vminps_ymm_ymm_ymmm256;
    pub(in super::super) const MAX: Code = Code::VEX_Vmaxps_ymm_ymm_ymmm256;
    pub(in super::super) const SQRT: Code = Code::VEX_Vsqrtps_ymm_ymmm256;
    pub(in super::super) const FMA: Code = Code::VEX_Vfmadd231ps_ymm_ymm_ymmm256;
    pub(in super::super) const CMP: Code = Code::VEX_Vcmpps_ymm_ymm_ymmm256_imm8;
}

/// Vector instructions on `.f64`.
pub(super) mod double {
    use iced_x86::Code;
    pub(in super::super) const ADD: Code = Code::VEX_Vaddpd_ymm_ymm_ymmm256;
    pub(in super::super) const SUB: Code = Code::VEX_Vsubpd_ymm_ymm_ymmm256;
    pub(in super::super) const MUL: Code = Code::VEX_Vmulpd_ymm_ymm_ymmm256;
    pub(in super::super) const DIV: Code = Code::VEX_Vdivpd_ymm_ymm_ymmm256;
    pub(in super::super) const MIN: Code = Code::VEX_Vminpd_ymm_ymm_ymmm256;
    pub(in super::super) const MAX: Code = Code::VEX_Vmaxpd_ymm_ymm_ymmm256;
    pub(in super::super) const SQRT: Code = Code::VEX_Vsqrtpd_ymm_ymmm256;
    pub(in super::super) const FMA: Code = Code::VEX_Vfmadd231pd_ymm_ymm_ymmm256;
    pub(in super::super) const CMP: Code = Code::VEX_Vcmppd_ymm_ymm_ymmm256_imm8;
}

/// Operations on all bits of a vector.
pub(super) mod bitwise {
    use iced_x86::Code;
    pub(in super::super) const AND: Code = Code::VEX_Vpand_ymm_ymm_ymmm256;
    /// `!a & b`
    pub(in super::super) const AND_NOT: Code = Code::VEX_Vpandn_ymm_ymm_ymmm256;
    pub(in super::super) const OR: Code = Code::VEX_Vpor_ymm_ymm_ymmm256;
    pub(in super::super) const XOR: Code = Code::VEX_Vpxor_ymm_ymm_ymmm256;
}

use bitwise::{AND, AND_NOT, OR, XOR};

const NARROW: Width = Width::Bits32;
const WIDE: Width = Width::Bits64;

impl Formula<'_, '_> {
    pub(super) fn f32(&mut self, number: f32) -> Term {
        self.number(NARROW, u64::from(number.to_bits()))
    }

    pub(super) fn f64(&mut self, number: f64) -> Term {
        self.number(WIDE, number.to_bits())
    }

    /// Clears the sign bit.
    pub(super) fn magnitude(&mut self, width: Width, a: Term) -> Term {
        let bits = self.number(
            width,
            match width {
                Width::Bits32 => 0x7fff_ffff,
                Width::Bits64 => i64::MAX.cast_unsigned(),
            },
        );
        self.two(AND, a, bits)
    }

    /// Returns the sign bit alone or, with `flip`, the value with the other sign.
    pub(super) fn sign(&mut self, width: Width, a: Term, flip: bool) -> Term {
        let bits = self.number(
            width,
            match width {
                Width::Bits32 => 1 << 31,
                Width::Bits64 => 1 << 63,
            },
        );
        self.two(if flip { XOR } else { AND }, a, bits)
    }

    /// Replaces `a` by a zero of its sign where the magnitude of `by` is less than a limit.
    pub(super) fn clear_where_less(&mut self, a: Term, by: Term, limit: f32) -> Term {
        let magnitude = self.magnitude(NARROW, by);
        let limit = self.f32(limit);
        let tiny = self.two_imm(single::CMP, magnitude, limit, LESS);
        let all_but_sign = self.one_imm(Code::VEX_Vpsrld_ymm_ymm_imm8, tiny, 1);
        self.two(AND_NOT, all_but_sign, a)
    }

    /// Applies `.ftz` to an operand, or to a result that is exact if subnormal.
    pub(super) fn flushed(&mut self, a: Term, ftz: bool) -> Term {
        if ftz {
            self.clear_where_less(a, a, f32::MIN_POSITIVE)
        } else {
            a
        }
    }

    /// Applies `.ftz` to a result. `scaled` is the same result times 2^24.
    pub(super) fn flushed_result(&mut self, a: Term, scaled: Term) -> Term {
        self.clear_where_less(a, scaled, f32::MIN_POSITIVE * SCALE)
    }

    /// Returns all ones where a number is a NaN.
    pub(super) fn is_nan(&mut self, width: Width, a: Term) -> Term {
        self.are_unordered(width, a, a)
    }

    pub(super) fn are_unordered(&mut self, width: Width, a: Term, b: Term) -> Term {
        let code = match width {
            Width::Bits32 => single::CMP,
            Width::Bits64 => double::CMP,
        };
        self.two_imm(code, a, b, UNORDERED)
    }

    /// Replaces NaNs by the canonical NaN of `.f32`, if they can be observed.
    pub(super) fn canonical(&mut self, a: Term, seen: bool) -> Term {
        if !seen {
            return a;
        }
        let is_nan = self.is_nan(NARROW, a);
        let nan = self.number(NARROW, u64::from(NAN_F32));
        self.choose(NARROW, is_nan, nan, a)
    }

    /// Applies `.sat`, or replaces NaNs by the canonical NaN.
    pub(super) fn finished(&mut self, a: Term, sat: bool, seen: bool) -> Term {
        if !sat {
            return self.canonical(a, seen);
        }
        // The second source is the result for a NaN and for two zeros.
        let zero = self.f32(0.0);
        let positive = self.two(single::MAX, a, zero);
        let one = self.f32(1.0);
        self.two(single::MIN, positive, one)
    }

    /// Returns the minimum or maximum of numbers, where -0 is less than +0. Also returns two results for operands of
    /// which at least one is a NaN: the first of them is then `b`, and the second is `a`.
    fn extreme(&mut self, width: Width, a: Term, b: Term, maximum: bool) -> [Term; 3] {
        let code = match (width, maximum) {
            (Width::Bits32, false) => single::MIN,
            (Width::Bits32, true) => single::MAX,
            (Width::Bits64, false) => double::MIN,
            (Width::Bits64, true) => double::MAX,
        };
        // The instruction returns its second source for a NaN and for two zeros.
        let (b_last, a_last) = (self.two(code, a, b), self.two(code, b, a));
        let both = self.two(if maximum { AND } else { OR }, b_last, a_last);
        [both, b_last, a_last]
    }

    /// Returns the minimum or maximum. If one operand is a NaN, the result is the other operand; if both are, it is
    /// `b`.
    fn extreme_number(&mut self, width: Width, a: Term, b: Term, maximum: bool) -> Term {
        let [both, b_last, a_last] = self.extreme(width, a, b, maximum);
        let b_is_nan = self.is_nan(width, b);
        let number = self.choose(width, b_is_nan, a_last, both);
        let a_is_nan = self.is_nan(width, a);
        self.choose(width, a_is_nan, b_last, number)
    }

    /// Replaces results by the quiet NaN of `b`, else of `c`, where one of these is a NaN.
    fn payload_of(&mut self, result: Term, b: Term, c: Term, seen: bool) -> Term {
        if !seen {
            return result;
        }
        let unordered = self.are_unordered(WIDE, b, c);
        // A sum has the payload of its first source that is a NaN.
        let nan = self.two(double::ADD, b, c);
        self.choose(WIDE, unordered, nan, result)
    }
}

/// Returns true for operations that are compiled here: those that round to nearest, without `.relu` and `.oob`.
fn is_near(m: &FloatMods) -> bool {
    m.rnd == Rounding::Rn && !m.relu && !m.oob
}

impl Emitter<'_> {
    pub(super) fn values(&self, inst: &Inst, width: Width, count: usize) -> Option<Vec<Value>> {
        (0..count).map(|at| self.value(inst.srcs.get(at)?, width)).collect()
    }

    /// Returns arithmetic of `.f32` and `.f64` as a formula.
    pub(super) fn float(&self, inst: &Inst, d: Reg) -> Option<Recipe> {
        let ty = match &inst.op {
            Op::FAdd(m) | Op::FSub(m) | Op::FMul(m) | Op::Fma(m) => m.ty,
            Op::FNeg { ty, .. }
            | Op::FAbs { ty, .. }
            | Op::FMin { ty, .. }
            | Op::FMax { ty, .. }
            | Op::FDiv { ty, .. }
            | Op::Sqrt { ty, .. }
            | Op::Rcp { ty, .. }
            | Op::Copysign { ty } => *ty,
            _ => return None,
        };
        let seen = self.input.plan.is_payload_seen(d);
        match ty {
            Type::F32 => self.single(inst, seen),
            Type::F64 => self.double(inst, seen),
            _ => None,
        }
    }

    fn single(&self, inst: &Inst, seen: bool) -> Option<Recipe> {
        let one = || self.values(inst, NARROW, 1);
        let two = || self.values(inst, NARROW, 2);
        match inst.op {
            Op::FAdd(m) | Op::FSub(m) if is_near(&m) => {
                let values = two()?;
                let code = if matches!(inst.op, Op::FAdd(_)) {
                    single::ADD
                } else {
                    single::SUB
                };
                let [x, y] = [values[0], values[1]];
                Recipe::new(NARROW, &values, move |f, part| {
                    let (a, b) = (f.source(x, part, 0), f.source(y, part, 1));
                    let (a, b) = (f.flushed(a, m.ftz), f.flushed(b, m.ftz));
                    let sum = f.two(code, a, b);
                    // A subnormal sum is exact.
                    let sum = f.flushed(sum, m.ftz);
                    f.finished(sum, m.sat, seen)
                })
            }
            Op::FMul(m) if is_near(&m) => self.scaled(&two()?, single::MUL, None, (m.ftz, m.sat), seen),
            Op::FDiv {
                precision: Precision::Ieee(Rounding::Rn),
                ftz,
                ..
            } => self.scaled(&two()?, single::DIV, None, (ftz, false), seen),
            Op::Rcp {
                precision: Precision::Ieee(Rounding::Rn),
                ftz,
                ..
            } => self.scaled(&one()?, single::DIV, Some(1.0), (ftz, false), seen),
            Op::Fma(m) if is_near(&m) => {
                let values = self.values(inst, NARROW, 3)?;
                let [x, y, z] = [values[0], values[1], values[2]];
                Recipe::new(NARROW, &values, move |f, part| {
                    let sources = [(x, 0), (y, 1), (z, 2)].map(|(value, at)| f.source(value, part, at));
                    let [a, b, c] = sources.map(|source| f.flushed(source, m.ftz));
                    let mut result = f.fused(single::FMA, a, b, c);
                    if m.ftz {
                        let scale = f.f32(SCALE);
                        let (a, c) = (f.two(single::MUL, a, scale), f.two(single::MUL, c, scale));
                        let scaled = f.fused(single::FMA, a, b, c);
                        result = f.flushed_result(result, scaled);
                    }
                    f.finished(result, m.sat, seen)
                })
            }
            Op::Sqrt {
                precision: Precision::Ieee(Rounding::Rn),
                ftz,
                ..
            } => {
                let values = one()?;
                let x = values[0];
                Recipe::new(NARROW, &values, move |f, part| {
                    let a = f.source(x, part, 0);
                    let a = f.flushed(a, ftz);
                    let root = f.one(single::SQRT, a);
                    f.canonical(root, seen)
                })
            }
            Op::FNeg { ftz, .. } | Op::FAbs { ftz, .. } => {
                let values = one()?;
                let (x, flip) = (values[0], matches!(inst.op, Op::FNeg { .. }));
                Recipe::new(NARROW, &values, move |f, part| {
                    let a = f.source(x, part, 0);
                    let a = f.flushed(a, ftz);
                    let result = if flip {
                        f.sign(NARROW, a, true)
                    } else {
                        f.magnitude(NARROW, a)
                    };
                    f.canonical(result, seen)
                })
            }
            Op::FMin {
                ftz, nan, xorsign_abs, ..
            }
            | Op::FMax {
                ftz, nan, xorsign_abs, ..
            } => {
                let values = two()?;
                let [x, y] = [values[0], values[1]];
                let maximum = matches!(inst.op, Op::FMax { .. });
                Recipe::new(NARROW, &values, move |f, part| {
                    let (a, b) = (f.source(x, part, 0), f.source(y, part, 1));
                    let (mut a, mut b) = (f.flushed(a, ftz), f.flushed(b, ftz));
                    let mut sign = None;
                    if xorsign_abs {
                        let signs = f.two(XOR, a, b);
                        sign = Some(f.sign(NARROW, signs, false));
                        (a, b) = (f.magnitude(NARROW, a), f.magnitude(NARROW, b));
                    }
                    let mut result = if nan {
                        let [both, ..] = f.extreme(NARROW, a, b, maximum);
                        let unordered = f.are_unordered(NARROW, a, b);
                        let nan = f.number(NARROW, u64::from(NAN_F32));
                        f.choose(NARROW, unordered, nan, both)
                    } else {
                        f.extreme_number(NARROW, a, b, maximum)
                    };
                    if let Some(sign) = sign {
                        result = f.two(OR, result, sign);
                    }
                    f.canonical(result, seen)
                })
            }
            Op::Copysign { .. } => self.copysign(&two()?, NARROW),
            _ => None,
        }
    }

    /// Returns a product or quotient as a formula; `first` is the dividend of a reciprocal.
    fn scaled(
        &self,
        values: &[Value],
        code: Code,
        first: Option<f32>,
        (ftz, sat): (bool, bool),
        seen: bool,
    ) -> Option<Recipe> {
        let (x, y) = (values[0], *values.last()?);
        Recipe::new(NARROW, values, move |f, part| {
            let a = match first {
                Some(number) => f.f32(number),
                None => {
                    let a = f.source(x, part, 0);
                    f.flushed(a, ftz)
                }
            };
            let b = f.source(y, part, 1);
            let b = f.flushed(b, ftz);
            let mut result = f.two(code, a, b);
            if ftz {
                let scaled = match first {
                    Some(number) => f.f32(number * SCALE),
                    None => {
                        let scale = f.f32(SCALE);
                        f.two(single::MUL, a, scale)
                    }
                };
                let scaled = f.two(code, scaled, b);
                result = f.flushed_result(result, scaled);
            }
            f.finished(result, sat, seen)
        })
    }

    fn copysign(&self, values: &[Value], width: Width) -> Option<Recipe> {
        let [x, y] = [values[0], values[1]];
        Recipe::new(width, values, move |f, part| {
            let (a, b) = (f.source(x, part, 0), f.source(y, part, 1));
            let (sign, magnitude) = (f.sign(width, a, false), f.magnitude(width, b));
            f.two(OR, sign, magnitude)
        })
    }

    fn double(&self, inst: &Inst, seen: bool) -> Option<Recipe> {
        let one = || self.values(inst, WIDE, 1);
        let two = || self.values(inst, WIDE, 2);
        match inst.op {
            // Of two NaNs, the host's instructions keep the first source's. An H200 keeps the second source's in sums
            // and products, and the first source's in quotients.
            Op::FAdd(m) if is_near(&m) => self.in_order(&two()?, double::ADD, [1, 0]),
            Op::FMul(m) if is_near(&m) => self.in_order(&two()?, double::MUL, [1, 0]),
            Op::FDiv {
                precision: Precision::Ieee(Rounding::Rn),
                ..
            } => self.in_order(&two()?, double::DIV, [0, 1]),
            Op::FSub(m) if is_near(&m) => {
                let values = two()?;
                let [x, y] = [values[0], values[1]];
                Recipe::new(WIDE, &values, move |f, part| {
                    let (a, b) = (f.source(x, part, 0), f.source(y, part, 1));
                    let difference = f.two(double::SUB, a, b);
                    f.payload_of(difference, b, b, seen)
                })
            }
            Op::Fma(m) if is_near(&m) => {
                let values = self.values(inst, WIDE, 3)?;
                let [x, y, z] = [values[0], values[1], values[2]];
                Recipe::new(WIDE, &values, move |f, part| {
                    let [a, b, c] = [(x, 0), (y, 1), (z, 2)].map(|(value, at)| f.source(value, part, at));
                    let result = f.fused(double::FMA, a, b, c);
                    f.payload_of(result, b, c, seen)
                })
            }
            Op::Rcp {
                precision: Precision::Ieee(Rounding::Rn),
                ..
            } => {
                let values = one()?;
                let x = values[0];
                Recipe::new(WIDE, &values, move |f, part| {
                    let (one, a) = (f.f64(1.0), f.source(x, part, 0));
                    f.two(double::DIV, one, a)
                })
            }
            Op::Sqrt {
                precision: Precision::Ieee(Rounding::Rn),
                ..
            } => {
                let values = one()?;
                let x = values[0];
                Recipe::new(WIDE, &values, move |f, part| {
                    let a = f.source(x, part, 0);
                    f.one(double::SQRT, a)
                })
            }
            Op::FNeg { .. } | Op::FAbs { .. } => {
                let values = one()?;
                let (x, flip) = (values[0], matches!(inst.op, Op::FNeg { .. }));
                Recipe::new(WIDE, &values, move |f, part| {
                    let a = f.source(x, part, 0);
                    let result = if flip {
                        f.sign(WIDE, a, true)
                    } else {
                        f.magnitude(WIDE, a)
                    };
                    f.payload_of(result, a, a, seen)
                })
            }
            Op::FMin { .. } | Op::FMax { .. } => {
                let values = two()?;
                let [x, y] = [values[0], values[1]];
                let maximum = matches!(inst.op, Op::FMax { .. });
                Recipe::new(WIDE, &values, move |f, part| {
                    let (a, b) = (f.source(x, part, 0), f.source(y, part, 1));
                    let number = f.extreme_number(WIDE, a, b, maximum);
                    // Adding -0 makes a NaN quiet, and changes no number.
                    let zero = f.f64(-0.0);
                    if seen { f.two(double::ADD, number, zero) } else { number }
                })
            }
            Op::Copysign { .. } => self.copysign(&two()?, WIDE),
            _ => None,
        }
    }

    /// Returns an instruction with its sources in this order.
    fn in_order(&self, values: &[Value], code: Code, order: [usize; 2]) -> Option<Recipe> {
        let [x, y] = order.map(|at| (values[at], at));
        Recipe::new(WIDE, values, move |f, part| {
            let (a, b) = (f.source(x.0, part, x.1), f.source(y.0, part, y.1));
            f.two(code, a, b)
        })
    }
}
