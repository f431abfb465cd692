//! The referee's forms of integer arithmetic, logic, bit fields, bytes and carries.

use super::form::{OperandKind, Width};
use super::list::{List, flags};
use cuda_driver_soft_engine::semantics::{bits::*, carry::*, int, logic};

/// Adds the forms that exist for all of u16 s16 u32 s32 u64 s64.
macro_rules! for_int_types {
    ($list:ident, $($t:ident $name:literal $width:ident $d:literal $a:literal $b:literal $c:literal;)*) => {$({
        type T = $t;
        let mut one = |op: &str, eval: fn(T, T, T) -> T, operands: usize| {
            let text = format!("{op}.{} {}, {}, {}, {}", $name, $d, $a, $b, $c);
            let mask = u64::MAX >> (64 - T::BITS);
            $list.add(OperandKind::Int, Width::$width, text, move |a, b, c| eval(a as T, b as T, c as T) as u64 & mask);
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
        $list.add(OperandKind::Int, Width::$width, shift, move |a, b, _| logic::shr(a as T, b as u32) as u64 & mask);
    })*};
}

pub(super) fn integers(list: &mut List) {
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
    list.w32("mul.wide.u16 %W, %h0, %h1", |a, b, _| int::mul_wide(a as u16, b as u16));
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
    list.w32("add.u16x2 %W, %w0, %w1", |a, b, _| int::x2(a, b, int::add::<u16>));
    list.w32("min.s16x2 %W, %w0, %w1", |a, b, _| int::x2(a, b, int::min::<i16>));
    list.w32("max.u16x2 %W, %w0, %w1", |a, b, _| int::x2(a, b, int::max::<u16>));
    list.w32("min.relu.s16x2 %W, %w0, %w1", |a, b, _| {
        int::x2(a, b, int::min_relu::<i16>)
    });
    list.w32("max.relu.s16x2 %W, %w0, %w1", |a, b, _| {
        int::x2(a, b, int::max_relu::<i16>)
    });
    list.add(
        OperandKind::Int,
        Width::B16,
        "shl.b16 %H, %h0, %w1".into(),
        |a, b, _| logic::shl(a as u16, b as u32).into(),
    );
    list.w32("shl.b32 %W, %w0, %w1", |a, b, _| logic::shl(a, b));
    list.d64("shl.b64 %D, %d0, %w1", |a, b, _| logic::shl(a, b as u32));
    for (text, eval) in [
        ("abs.s16 %H, %h0", (|a| int::abs(a as i16) as u16) as fn(u16) -> u16),
        ("neg.s16 %H, %h0", |a| int::neg(a as i16) as u16),
        ("not.b16 %H, %h0", logic::not),
        ("cnot.b16 %H, %h0", logic::cnot),
    ] {
        list.add(OperandKind::Int, Width::B16, text.into(), move |a, _, _| {
            eval(a as u16).into()
        });
    }
    list.d64("neg.s64 %D, %d0", |a, _, _| int::neg(a as i64) as u64);
    list.d64("cnot.b64 %D, %d0", |a, _, _| logic::cnot(a));
    list.d64("and.b64 %D, %d0, %d1", |a, b, _| logic::and(a, b));
    list.w32("xor.b32 %W, %w0, %w1", |a, b, _| logic::xor(a, b));
    list.d64("selp.b64 %D, %d0, %d1, %q2", |a, b, c| logic::selp(a, b, c & 1 != 0));
    for table in [0x01, 0x27, 0x96, 0xe8, 0xfe] {
        list.w32(&format!("lop3.b32 %W, %w0, %w1, %w2, {table}"), move |a, b, c| {
            logic::lop3(a, b, c, table)
        });
    }
    list.w32("cnot.b32 %W, %w0", |a, _, _| logic::cnot(a));
    list.d64("not.b64 %D, %d0", |a, _, _| logic::not(a));
    list.w32("lop3.b32 %W, %w0, %w1, %w2, 0xb8", |a, b, c| logic::lop3(a, b, c, 0xb8));
    for (wrap, m) in [(false, "clamp"), (true, "wrap")] {
        list.w32(&format!("shf.l.{m}.b32 %W, %w0, %w1, %w2"), move |a, b, c| {
            logic::shf_l(a, b, c, wrap)
        });
        list.w32(&format!("shf.r.{m}.b32 %W, %w0, %w1, %w2"), move |a, b, c| {
            logic::shf_r(a, b, c, wrap)
        });
        list.w32(&format!("bmsk.{m}.b32 %W, %w0, %w1"), move |a, b, _| bmsk(a, b, wrap));
        list.w32(&format!("szext.{m}.u32 %W, %w0, %w1"), move |a, b, _| szext(a, b, wrap));
        list.w32(&format!("szext.{m}.s32 %W, %w0, %w1"), move |a, b, _| {
            szext(a as i32, b, wrap) as u32
        });
    }
}

pub(super) fn bit_forms(list: &mut List) {
    list.w32("bfe.u32 %W, %w0, %w1, %w2", bfe);
    list.w32("bfe.s32 %W, %w0, %w1, %w2", |a, b, c| bfe(a as i32, b, c) as u32);
    list.d64("bfe.u64 %D, %d0, %w1, %w2", |a, b, c| bfe(a, b as u32, c as u32));
    list.d64("bfe.s64 %D, %d0, %w1, %w2", |a, b, c| {
        bfe(a as i64, b as u32, c as u32) as u64
    });
    list.w32("bfi.b32 %W, %w0, %w1, %w2, %w0", |a, b, c| bfi(a, b, c, a));
    list.d64("bfi.b64 %D, %d0, %d1, %w2, %w1", |a, b, c| {
        bfi(a, b, c as u32, b as u32)
    });
    for (shiftamt, s) in flags(".shiftamt") {
        list.w32(&format!("bfind{s}.u32 %W, %w0"), move |a, _, _| bfind(a, shiftamt));
        list.w32(&format!("bfind{s}.s32 %W, %w0"), move |a, _, _| {
            bfind(a as i32, shiftamt)
        });
        list.add(
            OperandKind::Int,
            Width::B32,
            format!("bfind{s}.u64 %W, %d0"),
            move |a, _, _| bfind(a, shiftamt).into(),
        );
        list.add(
            OperandKind::Int,
            Width::B32,
            format!("bfind{s}.s64 %W, %d0"),
            move |a, _, _| bfind(a as i64, shiftamt).into(),
        );
    }
    list.w32("brev.b32 %W, %w0", |a, _, _| brev(a));
    list.d64("brev.b64 %D, %d0", |a, _, _| brev(a));
    list.w32("clz.b32 %W, %w0", |a, _, _| clz(a));
    list.w32("popc.b32 %W, %w0", |a, _, _| popc(a));
    list.add(OperandKind::Int, Width::B32, "clz.b64 %W, %d0".into(), |a, _, _| {
        clz(a).into()
    });
    list.w32("and.b32 %V, %w1, 31; fns.b32 %W, %w0, %V, %w2", |a, b, c| {
        fns(a, b & 31, c as i32)
    });
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
            list.w32(&format!("dp4a.{x}.{y} %W, %w0, %w1, %w2"), move |a, b, c| {
                dp4a(a, b, c, s, t)
            });
            list.w32(&format!("dp2a.lo.{x}.{y} %W, %w0, %w1, %w2"), move |a, b, c| {
                dp2a(a, b, c, false, s, t)
            });
            list.w32(&format!("dp2a.hi.{x}.{y} %W, %w0, %w1, %w2"), move |a, b, c| {
                dp2a(a, b, c, true, s, t)
            });
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
