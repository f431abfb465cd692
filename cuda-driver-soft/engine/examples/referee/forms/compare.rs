//! The referee's forms of `setp set slct testp`.

use super::form::{OperandKind, Width};
use super::list::{List, flags};
use cuda_driver_soft_engine::semantics::{compare::*, half::*, logic};
use ptx::ir::{BoolOp, Compare};

pub(super) fn comparisons(list: &mut List) {
    use Compare::*;
    let ordered = [(Eq, "eq"), (Ne, "ne"), (Lt, "lt"), (Le, "le"), (Gt, "gt"), (Ge, "ge")];
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
                OperandKind::F32,
                Width::Pred,
                format!("setp.{o}{f}.f32 %P, %w0, %w1"),
                move |a, b, _| compare_f32(op, f32::from_bits(a as u32), f32::from_bits(b as u32), ftz).into(),
            );
            list.add(
                OperandKind::F16,
                Width::Pred,
                format!("setp.{o}{f}.f16 %P, %h0, %h1"),
                move |a, b, _| compare_f16(op, a as u16, b as u16, ftz).into(),
            );
        }
        list.add(
            OperandKind::F64,
            Width::Pred,
            format!("setp.{o}.f64 %P, %d0, %d1"),
            move |a, b, _| compare_f64(op, f64::from_bits(a), f64::from_bits(b)).into(),
        );
        list.add(
            OperandKind::BF16,
            Width::Pred,
            format!("setp.{o}.bf16 %P, %h0, %h1"),
            move |a, b, _| compare_bf16(op, a as u16, b as u16).into(),
        );
        let text = format!("set.{o}.f16.f16 %H, %h0, %h1");
        list.add(OperandKind::F16, Width::B16, text, move |a, b, _| {
            set_f16(compare_f16(op, a as u16, b as u16, false)).into()
        });
        let text = format!("set.{o}.u16.f16 %H, %h0, %h1");
        list.add(OperandKind::F16, Width::B16, text, move |a, b, _| {
            u64::from(set_int(compare_f16(op, a as u16, b as u16, false)) & 0xffff)
        });
        let text = format!("set.{o}.bf16.bf16 %H, %h0, %h1");
        list.add(OperandKind::BF16, Width::B16, text, move |a, b, _| {
            set_bf16(compare_bf16(op, a as u16, b as u16)).into()
        });
        let text = format!("setp.{o}.f16x2 %Q|%P, %w0, %w1");
        list.add(OperandKind::F16x2, Width::Pred, text, move |a, b, _| {
            compare_f16(op, (a >> 16) as u16, (b >> 16) as u16, false).into()
        });
        list.add(
            OperandKind::F32,
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
            OperandKind::Int,
            Width::Pred,
            format!("setp.{o}.and.s32 %P|%Q, %w0, %w1, %q2"),
            move |a, b, c| {
                setp(compare_int(op, a as i32, b as i32), Some((BoolOp::And, c & 1 != 0)))
                    .0
                    .into()
            },
        );
        list.add(
            OperandKind::Int,
            Width::Pred,
            format!("setp.{o}.xor.u64 %Q|%P, %d0, %d1, %q2"),
            move |a, b, c| setp(compare_int(op, a, b), Some((BoolOp::Xor, c & 1 != 0))).1.into(),
        );
    }
    list.add(
        OperandKind::F32,
        Width::B32,
        "slct.b32.f32 %W, %w0, %w1, %w2".into(),
        |a, b, c| logic::slct_f32(a as u32, b as u32, f32::from_bits(c as u32), false).into(),
    );
    list.add(
        OperandKind::F32,
        Width::B32,
        "slct.ftz.b32.f32 %W, %w0, %w1, %w2".into(),
        |a, b, c| logic::slct_f32(a as u32, b as u32, f32::from_bits(c as u32), true).into(),
    );
    list.w32("slct.b32.s32 %W, %w0, %w1, %w2", |a, b, c| {
        logic::slct_s32(a, b, c as i32)
    });
    for (op, o) in [(Lo, "lo"), (Ls, "ls"), (Hi, "hi"), (Hs, "hs")] {
        let text = format!("setp.{o}.u16 %P, %h0, %h1");
        list.add(OperandKind::Int, Width::Pred, text, move |a, b, _| {
            compare_int(op, a as u16, b as u16).into()
        });
        let text = format!("setp.{o}.or.u32 %P|%Q, %w0, %w1, !%q2");
        list.add(OperandKind::Int, Width::Pred, text, move |a, b, c| {
            setp(compare_int(op, a as u32, b as u32), Some((BoolOp::Or, c & 1 == 0)))
                .0
                .into()
        });
        let text = format!("setp.{o}.u64 %P, %d0, %d1");
        list.add(OperandKind::Int, Width::Pred, text, move |a, b, _| {
            compare_int(op, a, b).into()
        });
        list.w32(&format!("set.{o}.u32.u32 %W, %w0, %w1"), move |a, b, _| {
            set_int(compare_int(op, a, b))
        });
    }
    for (op, o) in ordered {
        let text = format!("setp.{o}.s16 %P, %h0, %h1");
        list.add(OperandKind::Int, Width::Pred, text, move |a, b, _| {
            compare_int(op, a as i16, b as i16).into()
        });
        let text = format!("setp.{o}.s64 %P, %d0, %d1");
        list.add(OperandKind::Int, Width::Pred, text, move |a, b, _| {
            compare_int(op, a as i64, b as i64).into()
        });
        list.w32(&format!("set.{o}.and.f32.s32 %W, %w0, %w1, %q2"), move |a, b, c| {
            let holds = compare_int(op, a as i32, b as i32);
            set_f32(combine(holds, Some((BoolOp::And, c & 1 != 0)))).to_bits()
        });
    }
    for (property, p) in [
        (Property::Finite, "finite"),
        (Property::Infinite, "infinite"),
        (Property::Number, "number"),
        (Property::NotANumber, "notanumber"),
        (Property::Normal, "normal"),
        (Property::Subnormal, "subnormal"),
    ] {
        list.add(
            OperandKind::F32,
            Width::Pred,
            format!("testp.{p}.f32 %P, %w0"),
            move |a, _, _| testp_f32(property, f32::from_bits(a as u32)).into(),
        );
        list.add(
            OperandKind::F64,
            Width::Pred,
            format!("testp.{p}.f64 %P, %d0"),
            move |a, _, _| testp_f64(property, f64::from_bits(a)).into(),
        );
    }
}
