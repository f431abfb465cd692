//! Handlers of comparison and selection, such as `setp.lt.s32`.

use super::mods::Mods;
use super::shapes::{Form, binary_rare, pair_test, ternary, ternary_hot, ternary_once, ternary_rare, test, test_rare};
use crate::code::handlers::{Common, Hot, Rare};
use crate::semantics::compare::*;
use crate::semantics::half::{compare_bf16, compare_f16, pack, set_bf16, set_f16, unpack};
use crate::semantics::logic;
use ptx::ir::{BoolOp, Compare, Inst, Op, Operand, Type, Type::*};

pub(super) fn form(inst: &Inst) -> Option<Form> {
    Some(match inst.op {
        Op::Setp { cmp, ty, ftz, bool_op } => {
            let second = inst.dsts.get(1).is_some_and(|q| q.is_some());
            setp(cmp, ty, ftz, bool_op, negated(inst, 2), second)?
        }
        Op::Set {
            cmp,
            dty,
            ty,
            ftz,
            bool_op,
        } => set(dty, ty, Mods::of_compare(cmp, bool_op, negated(inst, 2), false, ftz))?,
        Op::Selp { ty } => match ty.size() {
            2 => ternary_once(logic::selp::<u16>),
            4 => ternary_hot(logic::selp::<u32>),
            8 => ternary(logic::selp::<u64>),
            _ => return None,
        },
        Op::Slct { ty, cty, ftz } => {
            let mods = Mods::of_minmax(ftz, false, false);
            match (ty.size(), cty) {
                (2, S32) => ternary_once(logic::slct_s32::<u16>),
                (4, S32) => ternary_once(logic::slct_s32::<u32>),
                (8, S32) => ternary_once(logic::slct_s32::<u64>),
                (2, F32) => ternary_rare(mods, |m, _, a: u16, b, c| logic::slct_f32(a, b, c, m.ftz())),
                (4, F32) => ternary_rare(mods, |m, _, a: u32, b, c| logic::slct_f32(a, b, c, m.ftz())),
                (8, F32) => ternary_rare(mods, |m, _, a: u64, b, c| logic::slct_f32(a, b, c, m.ftz())),
                _ => return None,
            }
        }
        _ => return None,
    })
}

/// Returns true if a source is a negated predicate.
fn negated(inst: &Inst, source: usize) -> bool {
    matches!(inst.srcs.get(source), Some(Operand::NotReg(_)))
}

/// Returns the form of `setp`.
fn setp(cmp: Compare, ty: Type, ftz: bool, op: Option<BoolOp>, negated: bool, second: bool) -> Option<Form> {
    use Compare::*;
    // `a > b` is `b < a`, so half of the handlers are enough.
    let (cmp, swap) = match cmp {
        Gt => (Lt, true),
        Ge => (Le, true),
        Hi => (Lo, true),
        Hs => (Ls, true),
        Gtu => (Ltu, true),
        Geu => (Leu, true),
        same => (same, false),
    };
    let mods = Mods::of_compare(cmp, op, negated, second, ftz);
    macro_rules! int {
        ($copies:ty, $le_copies:ty, $signed:ident, $unsigned:ident) => {
            match cmp {
                Eq => test::<$copies, $unsigned, _>(mods, |a, b| compare_int(Eq, a, b)),
                Ne => test::<$copies, $unsigned, _>(mods, |a, b| compare_int(Ne, a, b)),
                Lt if ty.is_signed() => test::<$copies, $signed, _>(mods, |a, b| compare_int(Lt, a, b)),
                Le if ty.is_signed() => test::<$le_copies, $signed, _>(mods, |a, b| compare_int(Le, a, b)),
                Lt | Lo => test::<$copies, $unsigned, _>(mods, |a, b| compare_int(Lt, a, b)),
                Le | Ls => test::<$le_copies, $unsigned, _>(mods, |a, b| compare_int(Le, a, b)),
                _ => return None,
            }
        };
    }
    macro_rules! float {
        ($t:ident) => {
            match cmp {
                Eq => test::<Common, $t, _>(mods, |a, b| compare_float(Eq, a, b)),
                Ne => test::<Rare, $t, _>(mods, |a, b| compare_float(Ne, a, b)),
                Lt => test::<Common, $t, _>(mods, |a, b| compare_float(Lt, a, b)),
                Le => test::<Common, $t, _>(mods, |a, b| compare_float(Le, a, b)),
                Neu => test::<Common, $t, _>(mods, |a, b| compare_float(Neu, a, b)),
                Equ | Ltu | Leu | Num | Nan => test_rare::<$t, _>(mods, |m, a, b| compare_float(m.compare(), a, b)),
                _ => return None,
            }
        };
    }
    let form = match ty {
        B16 | U16 | S16 => int!(Rare, Rare, i16, u16),
        B32 | U32 | S32 => int!(Hot, Common, i32, u32),
        B64 | U64 | S64 => int!(Common, Common, i64, u64),
        F32 if !ftz => float!(f32),
        F32 => test_rare::<f32, _>(mods, |m, a, b| compare_f32(m.compare(), a, b, true)),
        F64 => float!(f64),
        F16 if !ftz => test_rare::<u16, _>(mods, |m, a, b| compare_f16(m.compare(), a, b, false)),
        F16 => test_rare::<u16, _>(mods, |m, a, b| compare_f16(m.compare(), a, b, true)),
        BF16 => test_rare::<u16, _>(mods, |m, a, b| compare_bf16(m.compare(), a, b)),
        F16x2 if !ftz => pair_test(mods, |m, a, b| compare_f16(m.compare(), a, b, false)),
        F16x2 => pair_test(mods, |m, a, b| compare_f16(m.compare(), a, b, true)),
        BF16x2 => pair_test(mods, |m, a, b| compare_bf16(m.compare(), a, b)),
        _ => return None,
    };
    Some(form.swapped(swap))
}

/// Returns the form of `set`, which compares values of `ty` and writes the result as a value of `dty`.
fn set(dty: Type, ty: Type, mods: Mods) -> Option<Form> {
    let has_op = mods.has_bool_op();
    macro_rules! form {
        (|$m:ident, $a:ident: $t:ty, $b:ident| $compare:expr, $write:expr) => {
            if has_op {
                ternary_rare(mods, |$m: Mods, _, $a: $t, $b: $t, c: bool| {
                    $write($m.combine_one($compare, c))
                })
            } else {
                binary_rare(mods, |$m: Mods, _, $a: $t, $b: $t| $write($compare))
            }
        };
    }
    macro_rules! to_type {
        (|$m:ident, $a:ident: $t:ty, $b:ident| $compare:expr) => {
            match dty {
                U32 | S32 => form!(|$m, $a: $t, $b| $compare, set_int),
                F32 => form!(|$m, $a: $t, $b| $compare, set_f32),
                U16 | S16 => form!(|$m, $a: $t, $b| $compare, |t| set_int(t) as u16),
                F16 => form!(|$m, $a: $t, $b| $compare, set_f16),
                BF16 => form!(|$m, $a: $t, $b| $compare, set_bf16),
                _ => return None,
            }
        };
    }
    macro_rules! pair {
        ($compare:expr, $write:expr) => {{
            if has_op {
                ternary_rare(mods, |m: Mods, _, a: u32, b: u32, c: bool| {
                    let ([a0, a1], [b0, b1]) = (unpack(a), unpack(b));
                    pack(
                        $write(m.combine_one($compare(m, a0, b0), c)),
                        $write(m.combine_one($compare(m, a1, b1), c)),
                    )
                })
            } else {
                binary_rare(mods, |m: Mods, _, a: u32, b: u32| {
                    let ([a0, a1], [b0, b1]) = (unpack(a), unpack(b));
                    pack($write($compare(m, a0, b0)), $write($compare(m, a1, b1)))
                })
            }
        }};
    }
    /// Returns all ones if the comparison is true, else 0.
    fn ones(t: bool) -> u16 {
        set_int(t) as u16
    }
    Some(match (ty, dty) {
        (B16 | U16, _) => to_type!(|m, a: u16, b| compare_int(m.compare(), a, b)),
        (S16, _) => to_type!(|m, a: i16, b| compare_int(m.compare(), a, b)),
        (B32 | U32, _) => to_type!(|m, a: u32, b| compare_int(m.compare(), a, b)),
        (S32, _) => to_type!(|m, a: i32, b| compare_int(m.compare(), a, b)),
        (B64 | U64, _) => to_type!(|m, a: u64, b| compare_int(m.compare(), a, b)),
        (S64, _) => to_type!(|m, a: i64, b| compare_int(m.compare(), a, b)),
        (F32, _) => to_type!(|m, a: f32, b| compare_f32(m.compare(), a, b, m.ftz())),
        (F64, _) => to_type!(|m, a: f64, b| compare_f64(m.compare(), a, b)),
        (F16, _) => to_type!(|m, a: u16, b| compare_f16(m.compare(), a, b, m.ftz())),
        (BF16, _) => to_type!(|m, a: u16, b| compare_bf16(m.compare(), a, b)),
        (F16x2, F16x2) => pair!(|m: Mods, a, b| compare_f16(m.compare(), a, b, m.ftz()), set_f16),
        (F16x2, _) => pair!(|m: Mods, a, b| compare_f16(m.compare(), a, b, m.ftz()), ones),
        (BF16x2, BF16x2) => pair!(|m: Mods, a, b| compare_bf16(m.compare(), a, b), set_bf16),
        (BF16x2, _) => pair!(|m: Mods, a, b| compare_bf16(m.compare(), a, b), ones),
        _ => return None,
    })
}
