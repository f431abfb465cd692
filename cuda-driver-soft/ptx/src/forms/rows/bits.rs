//! Table rows of extended-precision arithmetic, bit manipulation, and sums such as dot products.

use crate::forms::mods::Mods;
use crate::forms::row::{Lowering, Reject, Row, op, row};
use crate::ir::Op;

#[rustfmt::skip] // one row per line
pub(super) const ROWS: &[Row] = &[
    // --- extended precision
    row("add.cc<int32> d, a, b", 12, 0, carry),
    row("add.cc(.u64|.s64) d, a, b", 43, 20, carry),
    row("addc{.cc}<int32> d, a, b", 12, 0, carry_in),
    row("addc(.u64|.s64) d, a, b", 12, 0, carry_in),
    row("addc.cc(.u64|.s64) d, a, b", 43, 20, carry_in),
    row("sub.cc<int32> d, a, b", 12, 0, borrow),
    row("sub.cc(.u64|.s64) d, a, b", 43, 20, borrow),
    row("subc{.cc}<int32> d, a, b", 12, 0, borrow_in),
    row("subc(.u64|.s64) d, a, b", 12, 0, borrow_in),
    row("subc.cc(.u64|.s64) d, a, b", 43, 20, borrow_in),
    row("mad(.lo|.hi).cc<int32> d, a, b, c", 30, 20, mad),
    row("mad(.lo|.hi).cc(.u64|.s64) d, a, b, c", 43, 20, mad),
    row("madc(.lo|.hi){.cc}<int32> d, a, b, c", 30, 20, mad_in),
    row("madc(.lo|.hi)(.u64|.s64) d, a, b, c", 30, 20, mad_in),
    row("madc(.lo|.hi).cc(.u64|.s64) d, a, b, c", 43, 20, mad_in),
    row("addc(.u16|.s16) d, a, b", 12, 0, |_| Ok(Lowering::Unsupported)),
    row("addc.sat.s32 d, a, b", 12, 0, |_| Ok(Lowering::Unsupported)),
    row("subc(.u16|.s16) d, a, b", 12, 0, |_| Ok(Lowering::Unsupported)),
    row("subc.sat.s32 d, a, b", 12, 0, |_| Ok(Lowering::Unsupported)),
    row("madc(.lo|.hi)(.u16|.s16) d, a, b, c", 30, 20, |_| Ok(Lowering::Unsupported)),
    row("madc.hi.sat.s32 d, a, b, c", 30, 20, |_| Ok(Lowering::Unsupported)),
    // --- fields
    row("bfe<int3264> d, a, b:u32, c:u32", 20, 20, |m| op(Op::Bfe { ty: m.ty(0) })),
    row("bfi<bits3264> d, a, b, c:u32, f:u32", 20, 20, |m| op(Op::Bfi { ty: m.ty(0) })),
    row("bfind{.shiftamt}<int3264> d:u32, a", 20, 20, |m| {
        op(Op::Bfind { ty: m.ty(0), shiftamt: m.has(".shiftamt") })
    }),
    row("bmsk(.clamp|.wrap).b32 d:u32, a:u32, b:u32", 76, 70, |m| op(Op::Bmsk { clamp: m.has(".clamp") })),
    row("szext(.clamp|.wrap)<int32> d, a, b:u32", 76, 70, |m| {
        op(Op::Szext { ty: m.ty(0), clamp: m.has(".clamp") })
    }),
    row("brev<bits3264> d, a", 20, 20, |m| op(Op::Brev { ty: m.ty(0) })),
    row("clz<bits3264> d:u32, a", 20, 20, |m| op(Op::Clz { ty: m.ty(0) })),
    row("popc<bits3264> d:u32, a", 20, 20, |m| op(Op::Popc { ty: m.ty(0) })),
    row("fns.b32 d, a:b32, b:b32, c:b32", 60, 30, |_| op(Op::Fns)),
    row("lop3.b32 d, a, b, c, #i:u32", 43, 50, |_| Ok(Lowering::Lop3(None))),
    row("lop3(.and|.or).b32 d|p?&, a, b, c, #i:u32, !c", 82, 70, |m| Ok(Lowering::Lop3(m.bool_op()))),
    row("prmt.b32{.f4e|.b4e|.rc8|.ecl|.ecr|.rc16} d, a, b, c", 20, 20, |m| op(Op::Prmt { mode: m.prmt_mode() })),
    row("shf.l(.clamp|.wrap).b32 d, a, b, c:u32", 31, 32, |m| {
        op(Op::Shf { left: true, clamp: m.has(".clamp") })
    }),
    row("shf.r(.clamp|.wrap).b32 d, a, b, c:u32", 31, 32, |m| {
        op(Op::Shf { left: false, clamp: m.has(".clamp") })
    }),
    // --- sums
    row("sad<int> d, a, b, c", 10, 0, |m| op(Op::Sad { ty: m.ty(0) })),
    row("dp4a<int32><int32> d:2, a:u32, b:u32, c:2", 50, 61, |m| op(Op::Dp4a { aty: m.ty(0), bty: m.ty(1) })),
    row("dp2a(.lo|.hi)<int32><int32> d:2, a:u32, b:u32, c:2", 50, 61, |m| {
        op(Op::Dp2a { aty: m.ty(0), bty: m.ty(1), hi: m.has(".hi") })
    }),
    // --- floating-point bits
    row("copysign(.f32|.f64) d, a, b", 20, 20, |m| op(Op::Copysign { ty: m.ty(0) })),
    row("testp(.f32|.f64) p, a", 20, 20, |_| Ok(Lowering::Unsupported)),
    row("testp(.finite|.infinite|.number|.notanumber|.normal|.subnormal)(.f32|.f64) p, a", 20, 20, |m| {
        op(Op::Testp { test: m.float_test(), ty: m.ty(0) })
    }),
];

fn sum(m: &Mods, sub: bool, reads: bool, writes: bool) -> Result<Lowering, Reject> {
    let op = Op::AddC {
        ty: m.ty(0),
        sub,
        carry_in: reads,
        carry_out: writes,
    };
    Ok(Lowering::Carry { op, reads, writes })
}

fn carry(m: &Mods) -> Result<Lowering, Reject> {
    sum(m, false, false, true)
}

fn carry_in(m: &Mods) -> Result<Lowering, Reject> {
    sum(m, false, true, m.has(".cc"))
}

fn borrow(m: &Mods) -> Result<Lowering, Reject> {
    sum(m, true, false, true)
}

fn borrow_in(m: &Mods) -> Result<Lowering, Reject> {
    sum(m, true, true, m.has(".cc"))
}

fn product(m: &Mods, reads: bool, writes: bool) -> Result<Lowering, Reject> {
    let op = Op::MadC {
        ty: m.ty(0),
        hi: m.has(".hi"),
        carry_in: reads,
        carry_out: writes,
    };
    Ok(Lowering::Carry { op, reads, writes })
}

fn mad(m: &Mods) -> Result<Lowering, Reject> {
    product(m, false, true)
}

fn mad_in(m: &Mods) -> Result<Lowering, Reject> {
    product(m, true, m.has(".cc"))
}
