//! The forms: PTX text, operands, and the function that says what it computes.
//!
//! In the text `%d0 %w0 %h0` are the first operand in 64, 32 and 16 bits, `%q2` the low bit of the third as a predicate,
//! and `%D %W %H %P` the result; `%V` and `%Q` are free.

use crate::random::Random;
use cuda_driver_soft::exec::semantics::{
    approx::*, bits::*, carry::*, compare::*, cvt::*, float::*, half::*, int, logic, video::*,
};
use cuda_driver_soft::ir::{BoolOp, Compare, Cvt, Rounding, Type};

/// What operands look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Int,
    F16,
    F16x2,
    BF16,
    BF16x2,
    F32,
    F64,
}

/// Width of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    Pred,
    B16,
    B32,
    B64,
}

/// An instruction with all modifiers.
pub(crate) struct Form {
    pub(crate) text: String,
    pub(crate) kind: Kind,
    pub(crate) width: Width,
    /// A difference in the last places is no fault.
    pub(crate) approximate: bool,
    pub(crate) eval: Box<dyn Fn(u64, u64, u64) -> u64>,
}

impl Kind {
    fn layout(self) -> (u32, u32) {
        match self {
            Kind::Int => (64, 0),
            Kind::F16 | Kind::F16x2 => (16, 10),
            Kind::BF16 | Kind::BF16x2 => (16, 7),
            Kind::F32 => (32, 23),
            Kind::F64 => (64, 52),
        }
    }

    /// Values at the edges.
    pub(crate) fn special(self) -> Vec<u64> {
        let (width, fraction) = self.layout();
        if self == Kind::Int {
            let edges = [
                0, 1, 2, 3, 7, 8, 15, 16, 24, 31, 32, 33, 63, 64, 65, 127, 128, 255, 256,
            ];
            let signs = [
                0x7fff,
                0x8000,
                0xffff,
                0x7fff_ffff,
                0x8000_0000,
                0xffff_ffff,
                1 << 63,
                (1 << 63) - 1,
            ];
            let all = edges.into_iter().chain(signs);
            return all.clone().chain(all.map(u64::wrapping_neg)).collect();
        }
        let (one, exponents) = (1u64 << fraction, (1u64 << (width - 1 - fraction)) - 1);
        let bias = exponents / 2;
        let infinity = exponents << fraction;
        let mut values = vec![0, 1, 2, one - 1, one, one + 1, infinity - 1, infinity];
        // NaNs: signalling, quiet, with a payload low and high, and all ones.
        values.extend([
            infinity + 1,
            infinity + one / 2,
            infinity + one / 2 + 0x15,
            infinity + one / 4,
            infinity + one - 1,
        ]);
        // 1/4 … 4, and their neighbours; powers whose products and quotients lie at the edge of the range.
        for e in [bias - 2, bias - 1, bias, bias + 1, bias + 2] {
            values.extend([
                e << fraction,
                (e << fraction) + 1,
                (e << fraction) - 1,
                (e << fraction) + one / 2,
            ]);
        }
        for e in [
            2,
            bias / 2,
            bias / 2 + 1,
            bias + bias / 2,
            exponents - 1,
            exponents - 2,
            exponents - 3,
        ] {
            values.extend([e << fraction, (e << fraction) + one - 1]);
        }
        let negative: Vec<u64> = values.iter().map(|v| v | 1 << (width - 1)).collect();
        values.extend(negative);
        values
    }

    /// Operands that look for trouble.
    pub(crate) fn random(self, random: &mut Random) -> [u64; 3] {
        let (width, fraction) = self.layout();
        match self {
            Kind::Int => [random.int(), random.int(), random.int()],
            Kind::F16x2 | Kind::BF16x2 => {
                let [a, b, c] = [0; 3].map(|_| random.float(width, fraction, 0));
                let [d, e, f] = [0; 3].map(|_| random.float(width, fraction, a));
                [a | d << 16, b | e << 16, c | f << 16]
            }
            _ => {
                let exponent = |bits: u64| bits >> fraction & ((1 << (width - 1 - fraction)) - 1);
                let mask = (1u64 << (width - 1 - fraction)) - 1;
                let bias = mask / 2;
                let exponent_of_a = (bias / 2 + random.next() % (bias + 1)).max(2);
                let a = random.float(width, fraction, exponent_of_a << fraction);
                let near = match random.next() % 4 {
                    // b whose product or quotient with a lies at the least normal number.
                    0 => (bias + 1).saturating_sub(exponent(a)),
                    1 => exponent(a) + bias,
                    _ => exponent(a),
                };
                let b = random.float(width, fraction, near.min(mask) << fraction);
                let product = (exponent(a) + exponent(b)).saturating_sub(bias).min(mask);
                let c = random.float(width, fraction, product << fraction);
                [a, b, c]
            }
        }
    }
}

impl Form {
    /// How far apart two results are as numbers of their format; 10^9 for a NaN or infinity against something else.
    pub(crate) fn distance(&self, ours: u64, theirs: u64) -> u64 {
        let (sign, infinity) = match (self.width, self.kind) {
            (Width::B64, _) => (1u64 << 63, 0x7ff0 << 48),
            (Width::B16, Kind::BF16) => (1 << 15, 0x7f80),
            (Width::B16, _) => (1 << 15, 0x7c00),
            _ => (1 << 31, 0x7f80_0000),
        };
        let (x, y) = (ours & (sign - 1), theirs & (sign - 1));
        if x >= infinity || y >= infinity {
            1_000_000_000
        } else if (ours ^ theirs) & sign != 0 {
            x + y
        } else {
            x.abs_diff(y)
        }
    }

    fn digits(&self) -> usize {
        match self.kind {
            Kind::Int | Kind::F64 => 16,
            Kind::F32 | Kind::F16x2 | Kind::BF16x2 => 8,
            Kind::F16 | Kind::BF16 => 4,
        }
    }

    /// The operands, in hexadecimal.
    pub(crate) fn show(&self, operands: &[u64; 3]) -> String {
        operands
            .map(|v| format!("{v:0width$x}", width = self.digits()))
            .join(" ")
    }

    /// A result, in hexadecimal.
    pub(crate) fn show_result(&self, bits: u64) -> String {
        match self.width {
            Width::Pred => bits.to_string(),
            Width::B16 => format!("{bits:04x}"),
            Width::B32 => format!("{bits:08x}"),
            Width::B64 => format!("{bits:016x}"),
        }
    }
}

const MODES: [(Rounding, &str); 4] = [
    (Rounding::Rn, ".rn"),
    (Rounding::Rz, ".rz"),
    (Rounding::Rm, ".rm"),
    (Rounding::Rp, ".rp"),
];
const INT_MODES: [(Rounding, &str); 4] = [
    (Rounding::Rn, ".rni"),
    (Rounding::Rz, ".rzi"),
    (Rounding::Rm, ".rmi"),
    (Rounding::Rp, ".rpi"),
];

/// A modifier that is there or not.
fn flags(name: &'static str) -> [(bool, &'static str); 2] {
    [(false, ""), (true, name)]
}

#[derive(Default)]
struct List(Vec<Form>);

impl List {
    fn add(
        &mut self,
        kind: Kind,
        width: Width,
        text: String,
        eval: impl Fn(u64, u64, u64) -> u64 + 'static,
    ) {
        self.0.push(Form {
            text,
            kind,
            width,
            approximate: false,
            eval: Box::new(eval),
        });
    }

    fn near(
        &mut self,
        kind: Kind,
        width: Width,
        text: String,
        eval: impl Fn(u64, u64, u64) -> u64 + 'static,
    ) {
        self.0.push(Form {
            text,
            kind,
            width,
            approximate: true,
            eval: Box::new(eval),
        });
    }

    fn f32(&mut self, text: String, eval: impl Fn(f32, f32, f32) -> f32 + 'static) {
        let text = format!("{text} %W, %w0, %w1, %w2");
        self.add(Kind::F32, Width::B32, text, move |a, b, c| {
            let [a, b, c] = [a, b, c].map(|v| f32::from_bits(v as u32));
            eval(a, b, c).to_bits().into()
        });
    }

    /// Takes away the operands that the last form does not have.
    fn operands(&mut self, count: usize) {
        let text = &mut self.0.last_mut().expect("a form was added").text;
        for _ in count..3 {
            text.truncate(text.rfind(',').expect("three operands"));
        }
    }

    fn f64(&mut self, text: String, eval: impl Fn(f64, f64, f64) -> f64 + 'static) {
        let text = format!("{text} %D, %d0, %d1, %d2");
        self.add(Kind::F64, Width::B64, text, move |a, b, c| {
            let [a, b, c] = [a, b, c].map(f64::from_bits);
            eval(a, b, c).to_bits()
        });
    }

    fn half(&mut self, kind: Kind, text: String, eval: impl Fn(u16, u16, u16) -> u16 + 'static) {
        let text = format!("{text} %H, %h0, %h1, %h2");
        self.add(kind, Width::B16, text, move |a, b, c| {
            eval(a as u16, b as u16, c as u16).into()
        });
    }

    fn pair(&mut self, kind: Kind, text: String, eval: impl Fn(u32, u32, u32) -> u32 + 'static) {
        let text = format!("{text} %W, %w0, %w1, %w2");
        self.add(kind, Width::B32, text, move |a, b, c| {
            eval(a as u32, b as u32, c as u32).into()
        });
    }

    fn w32(&mut self, text: &str, eval: impl Fn(u32, u32, u32) -> u32 + 'static) {
        self.add(Kind::Int, Width::B32, text.into(), move |a, b, c| {
            eval(a as u32, b as u32, c as u32).into()
        });
    }

    fn d64(&mut self, text: &str, eval: impl Fn(u64, u64, u64) -> u64 + 'static) {
        self.add(Kind::Int, Width::B64, text.into(), eval);
    }
}

/// Every form.
pub(crate) fn all() -> Vec<Form> {
    let mut list = List::default();
    single(&mut list);
    double(&mut list);
    halves(&mut list);
    approximate(&mut list);
    integers(&mut list);
    bit_forms(&mut list);
    conversions(&mut list);
    comparisons(&mut list);
    video(&mut list);
    list.0
}

fn single(list: &mut List) {
    for (ftz, f) in flags(".ftz") {
        for (rnd, r) in MODES {
            for (sat, s) in flags(".sat") {
                list.f32(format!("add{r}{f}{s}.f32"), move |a, b, _| {
                    add_f32(a, b, rnd, ftz, sat)
                });
                list.operands(2);
                list.f32(format!("sub{r}{f}{s}.f32"), move |a, b, _| {
                    sub_f32(a, b, rnd, ftz, sat)
                });
                list.operands(2);
                list.f32(format!("mul{r}{f}{s}.f32"), move |a, b, _| {
                    mul_f32(a, b, rnd, ftz, sat)
                });
                list.operands(2);
                list.f32(format!("fma{r}{f}{s}.f32"), move |a, b, c| {
                    fma_f32(a, b, c, rnd, ftz, sat, false)
                });
            }
            list.f32(format!("div{r}{f}.f32"), move |a, b, _| {
                div_f32(a, b, rnd, ftz)
            });
            list.operands(2);
            list.f32(format!("rcp{r}{f}.f32"), move |a, _, _| {
                rcp_f32(a, rnd, ftz)
            });
            list.operands(1);
            list.f32(format!("sqrt{r}{f}.f32"), move |a, _, _| {
                sqrt_f32(a, rnd, ftz)
            });
            list.operands(1);
        }
        list.f32(format!("abs{f}.f32"), move |a, _, _| abs_f32(a, ftz));
        list.operands(1);
        list.f32(format!("neg{f}.f32"), move |a, _, _| neg_f32(a, ftz));
        list.operands(1);
        for (nan, n) in flags(".NaN") {
            for (xor, x) in flags(".xorsign.abs") {
                list.f32(format!("min{f}{n}{x}.f32"), move |a, b, _| {
                    min_f32(a, b, ftz, nan, xor)
                });
                list.operands(2);
                list.f32(format!("max{f}{n}{x}.f32"), move |a, b, _| {
                    max_f32(a, b, ftz, nan, xor)
                });
                list.operands(2);
            }
        }
    }
    list.f32("copysign.f32".into(), |a, b, _| copysign_f32(a, b));
    list.operands(2);
}

fn double(list: &mut List) {
    for (rnd, r) in MODES {
        list.f64(format!("add{r}.f64"), move |a, b, _| add_f64(a, b, rnd));
        list.operands(2);
        list.f64(format!("sub{r}.f64"), move |a, b, _| sub_f64(a, b, rnd));
        list.operands(2);
        list.f64(format!("mul{r}.f64"), move |a, b, _| mul_f64(a, b, rnd));
        list.operands(2);
        list.f64(format!("fma{r}.f64"), move |a, b, c| fma_f64(a, b, c, rnd));
        list.f64(format!("div{r}.f64"), move |a, b, _| div_f64(a, b, rnd));
        list.operands(2);
        list.f64(format!("rcp{r}.f64"), move |a, _, _| rcp_f64(a, rnd));
        list.operands(1);
        list.f64(format!("sqrt{r}.f64"), move |a, _, _| sqrt_f64(a, rnd));
        list.operands(1);
    }
    list.f64("abs.f64".into(), |a, _, _| abs_f64(a));
    list.operands(1);
    list.f64("neg.f64".into(), |a, _, _| neg_f64(a));
    list.operands(1);
    list.f64("min.f64".into(), |a, b, _| min_f64(a, b));
    list.operands(2);
    list.f64("max.f64".into(), |a, b, _| max_f64(a, b));
    list.operands(2);
    list.f64("copysign.f64".into(), |a, b, _| copysign_f64(a, b));
    list.operands(2);
}

fn halves(list: &mut List) {
    for (ftz, f) in flags(".ftz") {
        for (sat, s) in flags(".sat") {
            list.half(Kind::F16, format!("add{f}{s}.f16"), move |a, b, _| {
                add_f16(a, b, ftz, sat)
            });
            list.operands(2);
            list.half(Kind::F16, format!("sub{f}{s}.f16"), move |a, b, _| {
                sub_f16(a, b, ftz, sat)
            });
            list.operands(2);
            list.half(Kind::F16, format!("mul{f}{s}.f16"), move |a, b, _| {
                mul_f16(a, b, ftz, sat)
            });
            list.operands(2);
            list.half(Kind::F16, format!("fma.rn{f}{s}.f16"), move |a, b, c| {
                fma_f16(a, b, c, ftz, sat, false, false)
            });
            list.pair(Kind::F16x2, format!("add{f}{s}.f16x2"), move |a, b, _| {
                add_f16x2(a, b, ftz, sat)
            });
            list.operands(2);
        }
        list.half(Kind::F16, format!("fma.rn{f}.relu.f16"), move |a, b, c| {
            fma_f16(a, b, c, ftz, false, true, false)
        });
        list.pair(
            Kind::F16x2,
            format!("fma.rn{f}.relu.f16x2"),
            move |a, b, c| fma_f16x2(a, b, c, ftz, false, true, false),
        );
        list.half(Kind::F16, format!("neg{f}.f16"), move |a, _, _| {
            neg_f16(a, ftz)
        });
        list.operands(1);
        list.half(Kind::F16, format!("abs{f}.f16"), move |a, _, _| {
            abs_f16(a, ftz)
        });
        list.operands(1);
        list.pair(Kind::F16x2, format!("abs{f}.f16x2"), move |a, _, _| {
            abs_f16x2(a, ftz)
        });
        list.operands(1);
        for (nan, n) in flags(".NaN") {
            for (xor, x) in flags(".xorsign.abs") {
                list.half(Kind::F16, format!("min{f}{n}{x}.f16"), move |a, b, _| {
                    min_f16(a, b, ftz, nan, xor)
                });
                list.operands(2);
                list.half(Kind::F16, format!("max{f}{n}{x}.f16"), move |a, b, _| {
                    max_f16(a, b, ftz, nan, xor)
                });
                list.operands(2);
            }
        }
    }
    for (relu, e) in flags(".relu") {
        list.half(Kind::F16, format!("fma.rn.oob{e}.f16"), move |a, b, c| {
            fma_f16(a, b, c, false, false, relu, true)
        });
        list.half(Kind::BF16, format!("fma.rn{e}.bf16"), move |a, b, c| {
            fma_bf16(a, b, c, relu, false)
        });
        list.half(Kind::BF16, format!("fma.rn.oob{e}.bf16"), move |a, b, c| {
            fma_bf16(a, b, c, relu, true)
        });
    }
    list.half(Kind::BF16, "add.rn.bf16".into(), |a, b, _| add_bf16(a, b));
    list.operands(2);
    list.half(Kind::BF16, "sub.rn.bf16".into(), |a, b, _| sub_bf16(a, b));
    list.operands(2);
    list.half(Kind::BF16, "mul.rn.bf16".into(), |a, b, _| mul_bf16(a, b));
    list.operands(2);
    list.half(Kind::BF16, "neg.bf16".into(), |a, _, _| neg_bf16(a));
    list.operands(1);
    list.half(Kind::BF16, "abs.bf16".into(), |a, _, _| abs_bf16(a));
    list.operands(1);
    list.pair(Kind::BF16x2, "fma.rn.bf16x2".into(), |a, b, c| {
        fma_bf16x2(a, b, c, false, false)
    });
    list.pair(Kind::BF16x2, "neg.bf16x2".into(), |a, _, _| neg_bf16x2(a));
    list.operands(1);
    for (nan, n) in flags(".NaN") {
        for (xor, x) in flags(".xorsign.abs") {
            list.half(Kind::BF16, format!("min{n}{x}.bf16"), move |a, b, _| {
                min_bf16(a, b, nan, xor)
            });
            list.operands(2);
            list.half(Kind::BF16, format!("max{n}{x}.bf16"), move |a, b, _| {
                max_bf16(a, b, nan, xor)
            });
            list.operands(2);
        }
    }
}

fn approximate(list: &mut List) {
    let mut unary = |name: &str, eval: fn(f32, bool) -> f32| {
        for (ftz, f) in flags(".ftz") {
            list.near(
                Kind::F32,
                Width::B32,
                format!("{name}.approx{f}.f32 %W, %w0"),
                move |a, _, _| eval(f32::from_bits(a as u32), ftz).to_bits().into(),
            );
        }
    };
    unary("rcp", rcp_approx_f32);
    unary("sqrt", sqrt_approx_f32);
    unary("rsqrt", rsqrt_approx_f32);
    unary("sin", sin_approx_f32);
    unary("cos", cos_approx_f32);
    unary("lg2", lg2_approx_f32);
    unary("ex2", ex2_approx_f32);
    for (ftz, f) in flags(".ftz") {
        for (name, eval) in [
            ("approx", div_approx_f32 as fn(f32, f32, bool) -> f32),
            ("full", div_full_f32),
        ] {
            list.near(
                Kind::F32,
                Width::B32,
                format!("div.{name}{f}.f32 %W, %w0, %w1"),
                move |a, b, _| {
                    eval(f32::from_bits(a as u32), f32::from_bits(b as u32), ftz)
                        .to_bits()
                        .into()
                },
            );
        }
    }
    list.near(
        Kind::F32,
        Width::B32,
        "tanh.approx.f32 %W, %w0".into(),
        |a, _, _| tanh_approx_f32(f32::from_bits(a as u32)).to_bits().into(),
    );
    for (kind, name, eval) in [
        (
            Kind::F16,
            "ex2.approx.f16",
            ex2_approx_f16 as fn(u16) -> u16,
        ),
        (Kind::F16, "tanh.approx.f16", tanh_approx_f16),
        (Kind::BF16, "ex2.approx.ftz.bf16", ex2_approx_bf16),
        (Kind::BF16, "tanh.approx.bf16", tanh_approx_bf16),
    ] {
        list.near(
            kind,
            Width::B16,
            format!("{name} %H, %h0"),
            move |a, _, _| eval(a as u16).into(),
        );
    }
    for (name, eval) in [
        ("rcp.approx.ftz.f64", rcp_approx_f64 as fn(f64) -> f64),
        ("rsqrt.approx.ftz.f64", rsqrt_approx_ftz_f64),
        ("rsqrt.approx.f64", rsqrt_approx_f64),
    ] {
        list.near(
            Kind::F64,
            Width::B64,
            format!("{name} %D, %d0"),
            move |a, _, _| eval(f64::from_bits(a)).to_bits(),
        );
    }
}

/// The forms that exist for all of u16 s16 u32 s32 u64 s64.
macro_rules! for_int_types {
    ($list:ident, $($t:ident $name:literal $width:ident $d:literal $a:literal $b:literal $c:literal;)*) => {$({
        type T = $t;
        let mut one = |op: &str, eval: fn(T, T, T) -> T, operands: usize| {
            let text = format!("{op}.{} {}, {}, {}, {}", $name, $d, $a, $b, $c);
            let mask = u64::MAX >> (64 - T::BITS);
            $list.add(Kind::Int, Width::$width, text, move |a, b, c| eval(a as T, b as T, c as T) as u64 & mask);
            $list.operands(operands);
        };
        one("add", |a, b, _| int::add(a, b), 2);
        one("sub", |a, b, _| int::sub(a, b), 2);
        one("mul.lo", |a, b, _| int::mul_lo(a, b), 2);
        one("mul.hi", |a, b, _| int::mul_hi(a, b), 2);
        one("mad.lo", int::mad_lo, 3);
        one("mad.hi", int::mad_hi, 3);
        one("div", |a, b, _| int::div(a, b), 2);
        one("rem", |a, b, _| int::rem(a, b), 2);
        one("min", |a, b, _| int::min(a, b), 2);
        one("max", |a, b, _| int::max(a, b), 2);
        one("sad", int::sad, 3);
        let shift = format!("shr.{} {}, {}, %w1", $name, $d, $a);
        let mask = u64::MAX >> (64 - T::BITS);
        $list.add(Kind::Int, Width::$width, shift, move |a, b, _| logic::shr(a as T, b as u32) as u64 & mask);
    })*};
}

fn integers(list: &mut List) {
    for_int_types! { list,
        u16 "u16" B16 "%H" "%h0" "%h1" "%h2";
        i16 "s16" B16 "%H" "%h0" "%h1" "%h2";
        u32 "u32" B32 "%W" "%w0" "%w1" "%w2";
        i32 "s32" B32 "%W" "%w0" "%w1" "%w2";
        u64 "u64" B64 "%D" "%d0" "%d1" "%d2";
        i64 "s64" B64 "%D" "%d0" "%d1" "%d2";
    }
    for (wide, text) in [
        ("u32", "mul.wide.u32 %D, %w0, %w1"),
        ("s32", "mul.wide.s32 %D, %w0, %w1"),
        ("u32", "mad.wide.u32 %D, %w0, %w1, %d2"),
        ("s32", "mad.wide.s32 %D, %w0, %w1, %d2"),
    ] {
        let add = text.starts_with("mad");
        list.d64(text, move |a, b, c| {
            let c = if add { c } else { 0 };
            if wide == "u32" {
                int::mad_wide(a as u32, b as u32, c)
            } else {
                int::mad_wide(a as i32, b as i32, c as i64) as u64
            }
        });
    }
    list.w32("mul.wide.u16 %W, %h0, %h1", |a, b, _| {
        int::mul_wide(a as u16, b as u16)
    });
    list.w32("mul.wide.s16 %W, %h0, %h1", |a, b, _| {
        int::mul_wide(a as i16, b as i16) as u32
    });
    list.w32("add.sat.s32 %W, %w0, %w1", |a, b, _| {
        int::add_sat(a as i32, b as i32) as u32
    });
    list.w32("sub.sat.s32 %W, %w0, %w1", |a, b, _| {
        int::sub_sat(a as i32, b as i32) as u32
    });
    list.w32("mad.hi.sat.s32 %W, %w0, %w1, %w2", |a, b, c| {
        int::mad_hi_sat(a as i32, b as i32, c as i32) as u32
    });
    list.w32("mul24.lo.u32 %W, %w0, %w1", |a, b, _| int::mul24_lo(a, b));
    list.w32("mul24.hi.u32 %W, %w0, %w1", |a, b, _| int::mul24_hi(a, b));
    list.w32("mul24.lo.s32 %W, %w0, %w1", |a, b, _| {
        int::mul24_lo(a as i32, b as i32) as u32
    });
    list.w32("mul24.hi.s32 %W, %w0, %w1", |a, b, _| {
        int::mul24_hi(a as i32, b as i32) as u32
    });
    list.w32("mad24.hi.s32 %W, %w0, %w1, %w2", |a, b, c| {
        int::mad24_hi(a as i32, b as i32, c as i32) as u32
    });
    list.w32("mad24.lo.u32 %W, %w0, %w1, %w2", int::mad24_lo);
    list.w32("mad24.hi.sat.s32 %W, %w0, %w1, %w2", |a, b, c| {
        int::mad24_hi_sat(a as i32, b as i32, c as i32) as u32
    });
    list.w32("abs.s32 %W, %w0", |a, _, _| int::abs(a as i32) as u32);
    list.d64("abs.s64 %D, %d0", |a, _, _| int::abs(a as i64) as u64);
    list.w32("neg.s32 %W, %w0", |a, _, _| int::neg(a as i32) as u32);
    list.w32("min.relu.s32 %W, %w0, %w1", |a, b, _| {
        int::min_relu(a as i32, b as i32) as u32
    });
    list.w32("max.relu.s32 %W, %w0, %w1", |a, b, _| {
        int::max_relu(a as i32, b as i32) as u32
    });
    list.w32("add.u16x2 %W, %w0, %w1", |a, b, _| {
        int::x2(a, b, int::add::<u16>)
    });
    list.w32("min.s16x2 %W, %w0, %w1", |a, b, _| {
        int::x2(a, b, int::min::<i16>)
    });
    list.w32("max.u16x2 %W, %w0, %w1", |a, b, _| {
        int::x2(a, b, int::max::<u16>)
    });
    list.w32("min.relu.s16x2 %W, %w0, %w1", |a, b, _| {
        int::x2(a, b, int::min_relu::<i16>)
    });
    list.w32("max.relu.s16x2 %W, %w0, %w1", |a, b, _| {
        int::x2(a, b, int::max_relu::<i16>)
    });
    list.add(
        Kind::Int,
        Width::B16,
        "shl.b16 %H, %h0, %w1".into(),
        |a, b, _| logic::shl(a as u16, b as u32).into(),
    );
    list.w32("shl.b32 %W, %w0, %w1", |a, b, _| logic::shl(a, b));
    list.d64("shl.b64 %D, %d0, %w1", |a, b, _| logic::shl(a, b as u32));
    list.w32("cnot.b32 %W, %w0", |a, _, _| logic::cnot(a));
    list.d64("not.b64 %D, %d0", |a, _, _| logic::not(a));
    list.w32("lop3.b32 %W, %w0, %w1, %w2, 0xb8", |a, b, c| {
        logic::lop3(a, b, c, 0xb8)
    });
    for (wrap, m) in [(false, "clamp"), (true, "wrap")] {
        list.w32(
            &format!("shf.l.{m}.b32 %W, %w0, %w1, %w2"),
            move |a, b, c| logic::shf_l(a, b, c, wrap),
        );
        list.w32(
            &format!("shf.r.{m}.b32 %W, %w0, %w1, %w2"),
            move |a, b, c| logic::shf_r(a, b, c, wrap),
        );
        list.w32(&format!("bmsk.{m}.b32 %W, %w0, %w1"), move |a, b, _| {
            bmsk(a, b, wrap)
        });
        list.w32(&format!("szext.{m}.u32 %W, %w0, %w1"), move |a, b, _| {
            szext(a, b, wrap)
        });
        list.w32(&format!("szext.{m}.s32 %W, %w0, %w1"), move |a, b, _| {
            szext(a as i32, b, wrap) as u32
        });
    }
}

fn bit_forms(list: &mut List) {
    list.w32("bfe.u32 %W, %w0, %w1, %w2", bfe);
    list.w32("bfe.s32 %W, %w0, %w1, %w2", |a, b, c| {
        bfe(a as i32, b, c) as u32
    });
    list.d64("bfe.u64 %D, %d0, %w1, %w2", |a, b, c| {
        bfe(a, b as u32, c as u32)
    });
    list.d64("bfe.s64 %D, %d0, %w1, %w2", |a, b, c| {
        bfe(a as i64, b as u32, c as u32) as u64
    });
    list.w32("bfi.b32 %W, %w0, %w1, %w2, %w0", |a, b, c| bfi(a, b, c, a));
    list.d64("bfi.b64 %D, %d0, %d1, %w2, %w1", |a, b, c| {
        bfi(a, b, c as u32, b as u32)
    });
    for (shiftamt, s) in flags(".shiftamt") {
        list.w32(&format!("bfind{s}.u32 %W, %w0"), move |a, _, _| {
            bfind(a, shiftamt)
        });
        list.w32(&format!("bfind{s}.s32 %W, %w0"), move |a, _, _| {
            bfind(a as i32, shiftamt)
        });
        list.add(
            Kind::Int,
            Width::B32,
            format!("bfind{s}.u64 %W, %d0"),
            move |a, _, _| bfind(a, shiftamt).into(),
        );
        list.add(
            Kind::Int,
            Width::B32,
            format!("bfind{s}.s64 %W, %d0"),
            move |a, _, _| bfind(a as i64, shiftamt).into(),
        );
    }
    list.w32("brev.b32 %W, %w0", |a, _, _| brev(a));
    list.d64("brev.b64 %D, %d0", |a, _, _| brev(a));
    list.w32("clz.b32 %W, %w0", |a, _, _| clz(a));
    list.w32("popc.b32 %W, %w0", |a, _, _| popc(a));
    list.add(
        Kind::Int,
        Width::B32,
        "clz.b64 %W, %d0".into(),
        |a, _, _| clz(a).into(),
    );
    list.w32(
        "and.b32 %V, %w1, 31; fns.b32 %W, %w0, %V, %w2",
        |a, b, c| fns(a, b & 31, c as i32),
    );
    for (mode, m) in [
        (Permute::Generic, ""),
        (Permute::F4e, ".f4e"),
        (Permute::B4e, ".b4e"),
        (Permute::Rc8, ".rc8"),
        (Permute::Ecl, ".ecl"),
        (Permute::Ecr, ".ecr"),
        (Permute::Rc16, ".rc16"),
    ] {
        list.w32(&format!("prmt.b32{m} %W, %w0, %w1, %w2"), move |a, b, c| {
            prmt(a, b, c, mode)
        });
    }
    for (s, x) in [(false, "u32"), (true, "s32")] {
        for (t, y) in [(false, "u32"), (true, "s32")] {
            list.w32(
                &format!("dp4a.{x}.{y} %W, %w0, %w1, %w2"),
                move |a, b, c| dp4a(a, b, c, s, t),
            );
            list.w32(
                &format!("dp2a.lo.{x}.{y} %W, %w0, %w1, %w2"),
                move |a, b, c| dp2a(a, b, c, false, s, t),
            );
            list.w32(
                &format!("dp2a.hi.{x}.{y} %W, %w0, %w1, %w2"),
                move |a, b, c| dp2a(a, b, c, true, s, t),
            );
        }
    }
    list.w32("add.cc.u32 %V, %w0, %w1; addc.u32 %W, %w2, 0", |a, b, c| {
        addc(c, 0, add_cc(a, b).1).0
    });
    list.w32("sub.cc.u32 %V, %w0, %w1; subc.u32 %W, %w2, 0", |a, b, c| {
        subc(c, 0, sub_cc(a, b).1).0
    });
    list.w32(
        "add.cc.u32 %V, %w0, %w1; addc.cc.u32 %V, %w1, %w2; addc.u32 %W, 0, 0",
        |a, b, c| u32::from(addc(b, c, add_cc(a, b).1).1),
    );
    list.w32(
        "sub.cc.u32 %V, %w0, %w1; subc.cc.u32 %V, %w1, %w2; subc.u32 %W, 0, 0",
        |a, b, c| subc(0, 0, subc(b, c, sub_cc(a, b).1).1).0,
    );
    list.w32(
        "mad.lo.cc.u32 %V, %w0, %w1, %w2; madc.hi.u32 %W, %w0, %w1, %w2",
        |a, b, c| madc_hi(a, b, c, madc_lo(a, b, c, false).1).0,
    );
    list.w32(
        "mad.hi.cc.s32 %V, %w0, %w1, %w2; madc.lo.s32 %W, %w0, %w1, %w2",
        |a, b, c| {
            let [a, b, c] = [a, b, c].map(|v| v as i32);
            madc_lo(a, b, c, madc_hi(a, b, c, false).1).0 as u32
        },
    );
    list.d64("add.cc.u64 %D, %d0, %d1; addc.u64 %D, %d2, 0", |a, b, c| {
        addc(c, 0, add_cc(a, b).1).0
    });
}

fn comparisons(list: &mut List) {
    use Compare::*;
    let ordered = [
        (Eq, "eq"),
        (Ne, "ne"),
        (Lt, "lt"),
        (Le, "le"),
        (Gt, "gt"),
        (Ge, "ge"),
    ];
    let unordered = [
        (Equ, "equ"),
        (Neu, "neu"),
        (Ltu, "ltu"),
        (Leu, "leu"),
        (Gtu, "gtu"),
        (Geu, "geu"),
        (Num, "num"),
        (Nan, "nan"),
    ];
    for (op, o) in ordered.into_iter().chain(unordered) {
        for (ftz, f) in flags(".ftz") {
            list.add(
                Kind::F32,
                Width::Pred,
                format!("setp.{o}{f}.f32 %P, %w0, %w1"),
                move |a, b, _| {
                    compare_f32(op, f32::from_bits(a as u32), f32::from_bits(b as u32), ftz).into()
                },
            );
            list.add(
                Kind::F16,
                Width::Pred,
                format!("setp.{o}{f}.f16 %P, %h0, %h1"),
                move |a, b, _| compare_f16(op, a as u16, b as u16, ftz).into(),
            );
        }
        list.add(
            Kind::F64,
            Width::Pred,
            format!("setp.{o}.f64 %P, %d0, %d1"),
            move |a, b, _| compare_f64(op, f64::from_bits(a), f64::from_bits(b)).into(),
        );
        list.add(
            Kind::BF16,
            Width::Pred,
            format!("setp.{o}.bf16 %P, %h0, %h1"),
            move |a, b, _| compare_bf16(op, a as u16, b as u16).into(),
        );
        list.add(
            Kind::F32,
            Width::B32,
            format!("set.{o}.f32.f32 %W, %w0, %w1"),
            move |a, b, _| {
                set_f32(compare_f32(
                    op,
                    f32::from_bits(a as u32),
                    f32::from_bits(b as u32),
                    false,
                ))
                .to_bits()
                .into()
            },
        );
    }
    for (op, o) in ordered {
        list.add(
            Kind::Int,
            Width::Pred,
            format!("setp.{o}.and.s32 %P|%Q, %w0, %w1, %q2"),
            move |a, b, c| {
                setp(
                    compare_int(op, a as i32, b as i32),
                    Some((BoolOp::And, c & 1 != 0)),
                )
                .0
                .into()
            },
        );
        list.add(
            Kind::Int,
            Width::Pred,
            format!("setp.{o}.xor.u64 %Q|%P, %d0, %d1, %q2"),
            move |a, b, c| {
                setp(compare_int(op, a, b), Some((BoolOp::Xor, c & 1 != 0)))
                    .1
                    .into()
            },
        );
    }
    list.add(
        Kind::F32,
        Width::B32,
        "slct.b32.f32 %W, %w0, %w1, %w2".into(),
        |a, b, c| logic::slct_f32(a as u32, b as u32, f32::from_bits(c as u32), false).into(),
    );
    list.add(
        Kind::F32,
        Width::B32,
        "slct.ftz.b32.f32 %W, %w0, %w1, %w2".into(),
        |a, b, c| logic::slct_f32(a as u32, b as u32, f32::from_bits(c as u32), true).into(),
    );
    list.w32("slct.b32.s32 %W, %w0, %w1, %w2", |a, b, c| {
        logic::slct_s32(a, b, c as i32)
    });
    for (property, p) in [
        (Property::Finite, "finite"),
        (Property::Infinite, "infinite"),
        (Property::Number, "number"),
        (Property::NotANumber, "notanumber"),
        (Property::Normal, "normal"),
        (Property::Subnormal, "subnormal"),
    ] {
        list.add(
            Kind::F32,
            Width::Pred,
            format!("testp.{p}.f32 %P, %w0"),
            move |a, _, _| testp_f32(property, f32::from_bits(a as u32)).into(),
        );
        list.add(
            Kind::F64,
            Width::Pred,
            format!("testp.{p}.f64 %P, %d0"),
            move |a, _, _| testp_f64(property, f64::from_bits(a)).into(),
        );
    }
}

/// A type of `cvt`: its name, its registers (destination and source), the width of its result, its operands.
#[derive(Clone, Copy)]
struct CvtType {
    ty: Type,
    name: &'static str,
    to: &'static str,
    from: &'static str,
    width: Width,
    kind: Kind,
}

const fn cvt_type(
    ty: Type,
    name: &'static str,
    registers: (&'static str, &'static str),
    width: Width,
    kind: Kind,
) -> CvtType {
    CvtType {
        ty,
        name,
        to: registers.0,
        from: registers.1,
        width,
        kind,
    }
}

const CVT_INTS: [CvtType; 8] = [
    cvt_type(Type::U8, "u8", ("%W", "%w0"), Width::B32, Kind::Int),
    cvt_type(Type::S8, "s8", ("%W", "%w0"), Width::B32, Kind::Int),
    cvt_type(Type::U16, "u16", ("%H", "%h0"), Width::B16, Kind::Int),
    cvt_type(Type::S16, "s16", ("%H", "%h0"), Width::B16, Kind::Int),
    cvt_type(Type::U32, "u32", ("%W", "%w0"), Width::B32, Kind::Int),
    cvt_type(Type::S32, "s32", ("%W", "%w0"), Width::B32, Kind::Int),
    cvt_type(Type::U64, "u64", ("%D", "%d0"), Width::B64, Kind::Int),
    cvt_type(Type::S64, "s64", ("%D", "%d0"), Width::B64, Kind::Int),
];
const CVT_FLOATS: [CvtType; 4] = [
    cvt_type(Type::F16, "f16", ("%H", "%h0"), Width::B16, Kind::F16),
    cvt_type(Type::BF16, "bf16", ("%H", "%h0"), Width::B16, Kind::BF16),
    cvt_type(Type::F32, "f32", ("%W", "%w0"), Width::B32, Kind::F32),
    cvt_type(Type::F64, "f64", ("%D", "%d0"), Width::B64, Kind::F64),
];

fn plain(to: Type, from: Type) -> Cvt {
    Cvt {
        to,
        from,
        rnd: None,
        int_rnd: None,
        ftz: false,
        sat: false,
        relu: false,
        satfinite: false,
    }
}

fn conversion(list: &mut List, modifiers: &str, to: CvtType, from: CvtType, c: Cvt) {
    let text = format!(
        "cvt{modifiers}.{}.{} {}, {}",
        to.name, from.name, to.to, from.from
    );
    let mask = match to.width {
        Width::B16 => 0xffff,
        Width::B32 => 0xffff_ffff,
        _ => u64::MAX,
    };
    list.add(from.kind, to.width, text, move |a, _, _| {
        cvt(c, a).expect("a conversion of the table") & mask
    });
}

fn conversions(list: &mut List) {
    for from in CVT_INTS {
        for to in CVT_INTS {
            conversion(list, "", to, from, plain(to.ty, from.ty));
            // ptxas refuses .sat where the destination holds every value of the source.
            let signed = |t: CvtType| t.name.starts_with('s');
            let (wider, same) = (
                to.ty.size() > from.ty.size(),
                to.ty.size() == from.ty.size(),
            );
            let holds = if signed(from) == signed(to) {
                wider || same
            } else {
                signed(to) && wider
            };
            if !holds {
                conversion(
                    list,
                    ".sat",
                    to,
                    from,
                    Cvt {
                        sat: true,
                        ..plain(to.ty, from.ty)
                    },
                );
            }
        }
        for to in CVT_FLOATS {
            if to.ty == Type::BF16 && from.ty.size() == 1 {
                // There is no conversion between .bf16 and the eight-bit integers.
                continue;
            }
            for (rnd, r) in MODES {
                conversion(
                    list,
                    r,
                    to,
                    from,
                    Cvt {
                        rnd: Some(rnd),
                        ..plain(to.ty, from.ty)
                    },
                );
            }
            if to.ty != Type::BF16 {
                let c = Cvt {
                    rnd: Some(Rounding::Rn),
                    sat: true,
                    ..plain(to.ty, from.ty)
                };
                conversion(list, ".rn.sat", to, from, c);
            }
        }
    }
    for from in CVT_FLOATS {
        for to in CVT_INTS {
            if from.ty == Type::BF16 && to.ty.size() == 1 {
                continue;
            }
            for (rnd, r) in INT_MODES {
                conversion(
                    list,
                    r,
                    to,
                    from,
                    Cvt {
                        int_rnd: Some(rnd),
                        ..plain(to.ty, from.ty)
                    },
                );
            }
            if from.ty == Type::F32 {
                let c = Cvt {
                    int_rnd: Some(Rounding::Rp),
                    ftz: true,
                    ..plain(to.ty, from.ty)
                };
                conversion(list, ".rpi.ftz", to, from, c);
            }
        }
        for to in CVT_FLOATS {
            float_conversions(list, to, from);
        }
    }
    narrow_conversions(list);
}

fn float_conversions(list: &mut List, to: CvtType, from: CvtType) {
    let c = plain(to.ty, from.ty);
    if to.ty == from.ty {
        for (rnd, r) in INT_MODES {
            conversion(
                list,
                r,
                to,
                from,
                Cvt {
                    int_rnd: Some(rnd),
                    ..c
                },
            );
        }
        if to.ty == Type::F32 {
            conversion(
                list,
                ".rni.ftz",
                to,
                from,
                Cvt {
                    int_rnd: Some(Rounding::Rn),
                    ftz: true,
                    ..c
                },
            );
            conversion(list, ".ftz", to, from, Cvt { ftz: true, ..c });
            conversion(
                list,
                ".ftz.sat",
                to,
                from,
                Cvt {
                    ftz: true,
                    sat: true,
                    ..c
                },
            );
        }
        if to.ty != Type::BF16 {
            conversion(list, "", to, from, c);
            conversion(list, ".sat", to, from, Cvt { sat: true, ..c });
            conversion(
                list,
                ".rni.sat",
                to,
                from,
                Cvt {
                    int_rnd: Some(Rounding::Rn),
                    sat: true,
                    ..c
                },
            );
        }
        return;
    }
    let order = |t: Type| CVT_FLOATS.iter().position(|f| f.ty == t);
    let widening = order(to.ty) > order(from.ty) && !(from.ty == Type::F16 && to.ty == Type::BF16);
    if widening {
        conversion(list, "", to, from, c);
        if from.ty != Type::BF16 {
            conversion(list, ".sat", to, from, Cvt { sat: true, ..c });
        }
        if from.ty == Type::F32 {
            conversion(list, ".ftz", to, from, Cvt { ftz: true, ..c });
        }
        return;
    }
    for (rnd, r) in MODES {
        let c = Cvt {
            rnd: Some(rnd),
            ..c
        };
        conversion(list, r, to, from, c);
        if (to.ty, from.ty) == (Type::F32, Type::F64) || (to.ty, from.ty) == (Type::F16, Type::F32)
        {
            conversion(list, &format!("{r}.ftz"), to, from, Cvt { ftz: true, ..c });
            conversion(list, &format!("{r}.sat"), to, from, Cvt { sat: true, ..c });
        }
    }
}

fn narrow_conversions(list: &mut List) {
    let f32 = CVT_FLOATS[2];
    for (rnd, r) in [(Rounding::Rn, ".rn"), (Rounding::Rz, ".rz")] {
        for (relu, e) in flags(".relu") {
            for (satfinite, s) in flags(".satfinite") {
                for to in [CVT_FLOATS[0], CVT_FLOATS[1]] {
                    let c = Cvt {
                        rnd: Some(rnd),
                        relu,
                        satfinite,
                        ..plain(to.ty, Type::F32)
                    };
                    if relu || satfinite {
                        conversion(list, &format!("{r}{e}{s}"), to, f32, c);
                    }
                    let (pair, name) = if to.ty == Type::F16 {
                        (Type::F16x2, "f16x2")
                    } else {
                        (Type::BF16x2, "bf16x2")
                    };
                    let text = format!("cvt{r}{e}{s}.{name}.f32 %W, %w0, %w1");
                    two_sources(list, text, Width::B32, Cvt { to: pair, ..c });
                }
            }
            let tf32 = cvt_type(Type::TF32, "tf32", ("%W", ""), Width::B32, Kind::F32);
            conversion(
                list,
                &format!("{r}{e}"),
                tf32,
                f32,
                Cvt {
                    rnd: Some(rnd),
                    relu,
                    ..plain(Type::TF32, Type::F32)
                },
            );
        }
    }
    let tf32 = cvt_type(Type::TF32, "tf32", ("%W", ""), Width::B32, Kind::F32);
    for (satfinite, s) in flags(".satfinite") {
        let c = Cvt {
            rnd: Some(Rounding::Rna),
            satfinite,
            ..plain(Type::TF32, Type::F32)
        };
        conversion(list, &format!(".rna{s}"), tf32, f32, c);
    }
    for (relu, e) in flags(".relu") {
        for (ty, name) in [(Type::E4M3x2, "e4m3x2"), (Type::E5M2x2, "e5m2x2")] {
            let c = Cvt {
                rnd: Some(Rounding::Rn),
                satfinite: true,
                relu,
                ..plain(ty, Type::F32)
            };
            two_sources(
                list,
                format!("cvt.rn.satfinite{e}.{name}.f32 %H, %w0, %w1"),
                Width::B16,
                c,
            );
            let narrow = cvt_type(ty, name, ("%H", "%h0"), Width::B16, Kind::Int);
            let halves = cvt_type(Type::F16x2, "f16x2", ("%W", "%w0"), Width::B32, Kind::F16x2);
            conversion(
                list,
                &format!(".rn.satfinite{e}"),
                narrow,
                halves,
                Cvt {
                    from: Type::F16x2,
                    ..c
                },
            );
            conversion(
                list,
                &format!(".rn{e}"),
                halves,
                narrow,
                Cvt {
                    relu,
                    ..plain(Type::F16x2, ty)
                },
            );
        }
    }
    list.w32("cvt.pack.sat.u8.s32.b32 %W, %w0, %w1, %w2", |a, b, c| {
        cvt_pack(8, false, a as i32, b as i32, Some(c))
    });
    list.w32("cvt.pack.sat.s4.s32.b32 %W, %w0, %w1, %w2", |a, b, c| {
        cvt_pack(4, true, a as i32, b as i32, Some(c))
    });
    list.w32("cvt.pack.sat.u2.s32.b32 %W, %w0, %w1, %w2", |a, b, c| {
        cvt_pack(2, false, a as i32, b as i32, Some(c))
    });
    list.w32("cvt.pack.sat.s16.s32 %W, %w0, %w1", |a, b, _| {
        cvt_pack(16, true, a as i32, b as i32, None)
    });
}

fn two_sources(list: &mut List, text: String, width: Width, c: Cvt) {
    list.add(Kind::F32, width, text, move |a, b, _| {
        cvt_pair(c, f32::from_bits(a as u32), f32::from_bits(b as u32))
            .expect("a conversion of the table")
            .into()
    });
}

const SIGNS: [(bool, &str); 2] = [(false, "u32"), (true, "s32")];
const PARTS: [(Part, &str); 7] = [
    (Part::Word, ""),
    (Part::B0, ".b0"),
    (Part::B1, ".b1"),
    (Part::B2, ".b2"),
    (Part::B3, ".b3"),
    (Part::H0, ".h0"),
    (Part::H1, ".h1"),
];

/// The scalar video instructions: every pair of types, selectors that vary with the form, each secondary operation.
fn video(list: &mut List) {
    let scalar: [(&str, fn(Video, u32, u32, u32) -> u32); 5] = [
        ("vadd", vadd),
        ("vsub", vsub),
        ("vabsdiff", vabsdiff),
        ("vmin", vmin),
        ("vmax", vmax),
    ];
    let then = [
        (Then::Nothing, ""),
        (Then::Add, ".add"),
        (Then::Min, ".min"),
        (Then::Max, ".max"),
        (Then::Merge(Part::B1), ""),
        (Then::Merge(Part::H1), ""),
    ];
    let mut turn = 0;
    let mut each = |make: &mut dyn FnMut(&mut List, Video, String, String)| {
        for (signed, d) in SIGNS {
            for (a_signed, x) in SIGNS {
                for (b_signed, y) in SIGNS {
                    for (sat, s) in flags(".sat") {
                        for (then, t) in then {
                            turn += 1;
                            let ((a, p), (b, q)) = (PARTS[turn % 7], PARTS[turn / 3 % 7]);
                            let v = Video {
                                a: (a, a_signed),
                                b: (b, b_signed),
                                signed,
                                sat,
                                then,
                            };
                            let to = match then {
                                Then::Merge(Part::B1) => ".b1",
                                Then::Merge(_) => ".h1",
                                _ => "",
                            };
                            let c = if then == Then::Nothing { "" } else { ", %w2" };
                            let types = format!(".{d}.{x}.{y}{s}#{t}");
                            make(list, v, types, format!(" %W{to}, %w0{p}, %w1{q}{c}"));
                        }
                    }
                }
            }
        }
    };
    each(&mut |list, v, types, operands| {
        for (name, eval) in scalar {
            let text = format!("{name}{}{operands}", types.replace('#', ""));
            list.w32(&text, move |a, b, c| eval(v, a, b, c));
        }
        if v.b.1 {
            return;
        }
        for (wrap, mode) in [(false, ".clamp"), (true, ".wrap")] {
            let types = types.replace('#', mode);
            list.w32(&format!("vshl{types}{operands}"), move |a, b, c| {
                vshl(v, wrap, a, b, c)
            });
            list.w32(&format!("vshr{types}{operands}"), move |a, b, c| {
                vshr(v, wrap, a, b, c)
            });
        }
    });
    for (op, o) in [
        (Compare::Eq, "eq"),
        (Compare::Lt, "lt"),
        (Compare::Ge, "ge"),
    ] {
        for (a_signed, x) in SIGNS {
            for (b_signed, y) in SIGNS {
                let (a, b) = ((Part::Word, a_signed), (Part::H1, b_signed));
                let v = Video {
                    a,
                    b,
                    signed: false,
                    sat: false,
                    then: Then::Add,
                };
                let text = format!("vset.{x}.{y}.{o}.add %W, %w0, %w1.h1, %w2");
                list.w32(&text, move |a, b, c| vset(v, op, a, b, c));
                let v = Video {
                    then: Then::Merge(Part::B2),
                    ..v
                };
                let text = format!("vset.{x}.{y}.{o} %W.b2, %w0, %w1.h1, %w2");
                list.w32(&text, move |a, b, c| vset(v, op, a, b, c));
            }
        }
    }
    video_mad(list);
    video_packed_forms::<2>(
        list,
        &["h10", "h32", "h03", "h21"],
        &[("h10", 3), ("h1", 2)],
    );
    video_packed_forms::<4>(
        list,
        &["b3210", "b7654", "b0527", "b4321"],
        &[("b3210", 15), ("b31", 10)],
    );
}

fn video_mad(list: &mut List) {
    for (a_signed, x) in SIGNS {
        for (b_signed, y) in SIGNS {
            for (sat, s) in flags(".sat") {
                for (shift, h) in [(0, ""), (7, ".shr7"), (15, ".shr15")] {
                    for (mode, po, m, n) in [
                        (0, "", "", ""),
                        (1, "", "-", ""),
                        (2, "", "", "-"),
                        (3, ".po", "", ""),
                    ] {
                        let v = VideoMad {
                            a: (Part::H0, a_signed),
                            b: (Part::B3, b_signed),
                            negate_product: mode == 1,
                            negate_c: mode == 2,
                            plus_one: mode == 3,
                            sat,
                            shift,
                        };
                        let d = if a_signed || b_signed || mode == 1 || mode == 2 {
                            "s32"
                        } else {
                            "u32"
                        };
                        let text =
                            format!("vmad.{d}.{x}.{y}{po}{s}{h} %W, {m}%w0.h0, %w1.b3, {n}%w2");
                        list.w32(&text, move |a, b, c| vmad(v, a, b, c));
                        let v = VideoMad {
                            a: (Part::Word, a_signed),
                            b: (Part::Word, b_signed),
                            ..v
                        };
                        let text = format!("vmad.{d}.{x}.{y}{po}{s}{h} %W, {m}%w0, %w1, {n}%w2");
                        list.w32(&text, move |a, b, c| vmad(v, a, b, c));
                    }
                }
            }
        }
    }
}

fn video_packed_forms<const N: usize>(
    list: &mut List,
    selectors: &[&'static str],
    masks: &[(&'static str, u8)],
) {
    // "h10" names the elements from the highest down.
    let elements = |s: &str| {
        let mut all = [0; N];
        s.bytes()
            .skip(1)
            .rev()
            .enumerate()
            .for_each(|(i, digit)| all[i] = digit - b'0');
        all
    };
    let mut turn = 0;
    for (op, o) in [
        (Packed::Add, "vadd"),
        (Packed::Sub, "vsub"),
        (Packed::Avrg, "vavrg"),
        (Packed::AbsDiff, "vabsdiff"),
        (Packed::Min, "vmin"),
        (Packed::Max, "vmax"),
        (Packed::Set(Compare::Lt), "vset"),
        (Packed::Set(Compare::Ne), "vset"),
    ] {
        for (a_signed, x) in SIGNS {
            for (b_signed, y) in SIGNS {
                for (signed, d) in SIGNS {
                    for (sat, add, s) in [
                        (false, false, ""),
                        (true, false, ".sat"),
                        (false, true, ".add"),
                    ] {
                        turn += 1;
                        let (p, q) = (
                            selectors[turn % selectors.len()],
                            selectors[turn / 3 % selectors.len()],
                        );
                        let (m, mask) = masks[turn / 2 % masks.len()];
                        let (a, b) = (elements(p), elements(q));
                        let v = VideoPacked {
                            a,
                            b,
                            a_signed,
                            b_signed,
                            signed,
                            sat,
                            mask,
                            add,
                        };
                        let types = match op {
                            Packed::Set(_) if signed || sat => continue,
                            Packed::Set(Compare::Lt) => format!(".{x}.{y}.lt{s}"),
                            Packed::Set(_) => format!(".{x}.{y}.ne{s}"),
                            _ => format!(".{d}.{x}.{y}{s}"),
                        };
                        let text = format!("{o}{N}{types} %W.{m}, %w0.{p}, %w1.{q}, %w2");
                        list.w32(&text, move |a, b, c| video_packed(op, v, a, b, c));
                    }
                }
            }
        }
    }
}
