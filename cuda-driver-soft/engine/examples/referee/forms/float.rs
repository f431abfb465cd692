//! The referee's forms of arithmetic on `.f32 .f64 .f16 .bf16`, and of the approximate functions.

use super::form::{OperandKind, Width};
use super::list::{List, MODES, flags};
use cuda_driver_soft_engine::semantics::{approx::*, float::*, half::*};

pub(super) fn single(list: &mut List) {
    for (ftz, f) in flags(".ftz") {
        for (rnd, r) in MODES {
            for (sat, s) in flags(".sat") {
                list.f32(format!("add{r}{f}{s}.f32"), move |a, b, _| add_f32(a, b, rnd, ftz, sat));
                list.operands(2);
                list.f32(format!("sub{r}{f}{s}.f32"), move |a, b, _| sub_f32(a, b, rnd, ftz, sat));
                list.operands(2);
                list.f32(format!("mul{r}{f}{s}.f32"), move |a, b, _| mul_f32(a, b, rnd, ftz, sat));
                list.operands(2);
                list.f32(format!("fma{r}{f}{s}.f32"), move |a, b, c| {
                    fma_f32(a, b, c, rnd, ftz, sat, false)
                });
            }
            list.f32(format!("div{r}{f}.f32"), move |a, b, _| div_f32(a, b, rnd, ftz));
            list.operands(2);
            list.f32(format!("rcp{r}{f}.f32"), move |a, _, _| rcp_f32(a, rnd, ftz));
            list.operands(1);
            list.f32(format!("sqrt{r}{f}.f32"), move |a, _, _| sqrt_f32(a, rnd, ftz));
            list.operands(1);
        }
        list.f32(format!("abs{f}.f32"), move |a, _, _| abs_f32(a, ftz));
        list.operands(1);
        list.f32(format!("neg{f}.f32"), move |a, _, _| neg_f32(a, ftz));
        list.operands(1);
        for (nan, n) in flags(".NaN") {
            for (xor, x) in flags(".xorsign.abs") {
                list.f32(format!("min{f}{n}{x}.f32"), move |a, b, _| min_f32(a, b, ftz, nan, xor));
                list.operands(2);
                list.f32(format!("max{f}{n}{x}.f32"), move |a, b, _| max_f32(a, b, ftz, nan, xor));
                list.operands(2);
            }
        }
    }
    list.f32("copysign.f32".into(), |a, b, _| copysign_f32(a, b));
    list.operands(2);
}

pub(super) fn double(list: &mut List) {
    for (rnd, r) in MODES {
        list.f64(format!("add{r}.f64"), move |a, b, _| add_f64(a, b, rnd));
        list.operands(2);
        list.f64(format!("sub{r}.f64"), move |a, b, _| sub_f64(a, b, rnd));
        list.operands(2);
        list.f64(format!("mul{r}.f64"), move |a, b, _| mul_f64(a, b, rnd));
        list.operands(2);
        list.f64(format!("fma{r}.f64"), move |a, b, c| {
            fma_f64(a, b, c, rnd, BASELINE_FUSED)
        });
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

pub(super) fn halves(list: &mut List) {
    for (ftz, f) in flags(".ftz") {
        for (sat, s) in flags(".sat") {
            list.half(OperandKind::F16, format!("add{f}{s}.f16"), move |a, b, _| {
                add_f16(a, b, ftz, sat)
            });
            list.operands(2);
            list.half(OperandKind::F16, format!("sub{f}{s}.f16"), move |a, b, _| {
                sub_f16(a, b, ftz, sat)
            });
            list.operands(2);
            list.half(OperandKind::F16, format!("mul{f}{s}.f16"), move |a, b, _| {
                mul_f16(a, b, ftz, sat)
            });
            list.operands(2);
            list.half(OperandKind::F16, format!("fma.rn{f}{s}.f16"), move |a, b, c| {
                fma_f16(a, b, c, ftz, sat, false, false)
            });
            list.pair(OperandKind::F16x2, format!("add{f}{s}.f16x2"), move |a, b, _| {
                add_f16x2(a, b, ftz, sat)
            });
            list.operands(2);
        }
        list.half(OperandKind::F16, format!("fma.rn{f}.relu.f16"), move |a, b, c| {
            fma_f16(a, b, c, ftz, false, true, false)
        });
        list.pair(OperandKind::F16x2, format!("fma.rn{f}.relu.f16x2"), move |a, b, c| {
            fma_f16x2(a, b, c, ftz, false, true, false)
        });
        list.half(OperandKind::F16, format!("neg{f}.f16"), move |a, _, _| neg_f16(a, ftz));
        list.operands(1);
        list.half(OperandKind::F16, format!("abs{f}.f16"), move |a, _, _| abs_f16(a, ftz));
        list.operands(1);
        list.pair(OperandKind::F16x2, format!("abs{f}.f16x2"), move |a, _, _| {
            abs_f16x2(a, ftz)
        });
        list.operands(1);
        for (nan, n) in flags(".NaN") {
            for (xor, x) in flags(".xorsign.abs") {
                list.half(OperandKind::F16, format!("min{f}{n}{x}.f16"), move |a, b, _| {
                    min_f16(a, b, ftz, nan, xor)
                });
                list.operands(2);
                list.half(OperandKind::F16, format!("max{f}{n}{x}.f16"), move |a, b, _| {
                    max_f16(a, b, ftz, nan, xor)
                });
                list.operands(2);
            }
        }
    }
    for (relu, e) in flags(".relu") {
        list.half(OperandKind::F16, format!("fma.rn.oob{e}.f16"), move |a, b, c| {
            fma_f16(a, b, c, false, false, relu, true)
        });
        list.half(OperandKind::BF16, format!("fma.rn{e}.bf16"), move |a, b, c| {
            fma_bf16(a, b, c, relu, false)
        });
        list.half(OperandKind::BF16, format!("fma.rn.oob{e}.bf16"), move |a, b, c| {
            fma_bf16(a, b, c, relu, true)
        });
    }
    list.half(OperandKind::BF16, "add.rn.bf16".into(), |a, b, _| add_bf16(a, b));
    list.operands(2);
    list.half(OperandKind::BF16, "sub.rn.bf16".into(), |a, b, _| sub_bf16(a, b));
    list.operands(2);
    list.half(OperandKind::BF16, "mul.rn.bf16".into(), |a, b, _| mul_bf16(a, b));
    list.operands(2);
    list.pair(OperandKind::F16x2, "sub.f16x2".into(), |a, b, _| {
        sub_f16x2(a, b, false, false)
    });
    list.operands(2);
    list.pair(OperandKind::F16x2, "mul.sat.f16x2".into(), |a, b, _| {
        mul_f16x2(a, b, false, true)
    });
    list.operands(2);
    list.pair(OperandKind::F16x2, "neg.f16x2".into(), |a, _, _| neg_f16x2(a, false));
    list.operands(1);
    list.pair(OperandKind::F16x2, "max.NaN.f16x2".into(), |a, b, _| {
        max_f16x2(a, b, false, true, false)
    });
    list.operands(2);
    list.pair(OperandKind::BF16x2, "add.rn.bf16x2".into(), |a, b, _| add_bf16x2(a, b));
    list.operands(2);
    list.pair(OperandKind::BF16x2, "mul.rn.bf16x2".into(), |a, b, _| mul_bf16x2(a, b));
    list.operands(2);
    list.pair(OperandKind::BF16x2, "min.xorsign.abs.bf16x2".into(), |a, b, _| {
        min_bf16x2(a, b, false, true)
    });
    list.operands(2);
    list.half(OperandKind::BF16, "neg.bf16".into(), |a, _, _| neg_bf16(a));
    list.operands(1);
    list.half(OperandKind::BF16, "abs.bf16".into(), |a, _, _| abs_bf16(a));
    list.operands(1);
    list.pair(OperandKind::BF16x2, "fma.rn.bf16x2".into(), |a, b, c| {
        fma_bf16x2(a, b, c, false, false)
    });
    list.pair(OperandKind::BF16x2, "neg.bf16x2".into(), |a, _, _| neg_bf16x2(a));
    list.operands(1);
    for (nan, n) in flags(".NaN") {
        for (xor, x) in flags(".xorsign.abs") {
            list.half(OperandKind::BF16, format!("min{n}{x}.bf16"), move |a, b, _| {
                min_bf16(a, b, nan, xor)
            });
            list.operands(2);
            list.half(OperandKind::BF16, format!("max{n}{x}.bf16"), move |a, b, _| {
                max_bf16(a, b, nan, xor)
            });
            list.operands(2);
        }
    }
}

pub(super) fn approximate(list: &mut List) {
    let mut unary = |name: &str, eval: fn(f32, bool) -> f32| {
        for (ftz, f) in flags(".ftz") {
            list.near(
                OperandKind::F32,
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
                OperandKind::F32,
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
        OperandKind::F32,
        Width::B32,
        "tanh.approx.f32 %W, %w0".into(),
        |a, _, _| tanh_approx_f32(f32::from_bits(a as u32)).to_bits().into(),
    );
    for (kind, name, eval) in [
        (OperandKind::F16, "ex2.approx.f16", ex2_approx_f16 as fn(u16) -> u16),
        (OperandKind::F16, "tanh.approx.f16", tanh_approx_f16),
        (OperandKind::BF16, "ex2.approx.ftz.bf16", ex2_approx_bf16),
        (OperandKind::BF16, "tanh.approx.bf16", tanh_approx_bf16),
    ] {
        list.near(kind, Width::B16, format!("{name} %H, %h0"), move |a, _, _| {
            eval(a as u16).into()
        });
    }
    for (name, eval) in [
        ("rcp.approx.ftz.f64", rcp_approx_f64 as fn(f64) -> f64),
        ("rsqrt.approx.ftz.f64", rsqrt_approx_ftz_f64),
        ("rsqrt.approx.f64", rsqrt_approx_f64),
    ] {
        list.near(
            OperandKind::F64,
            Width::B64,
            format!("{name} %D, %d0"),
            move |a, _, _| eval(f64::from_bits(a)).to_bits(),
        );
    }
}
