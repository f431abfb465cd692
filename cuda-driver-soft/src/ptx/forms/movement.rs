//! Data movement, conversion, and control.

use super::mods::{bad_types, op};
use super::{Made, Mods, Reject, Row, row};
use crate::ir::*;

pub(super) const ROWS: &[Row] = &[
    row(
        "mov(.pred|.b16|.b32|.b64|.u16|.u32|.u64|.s16|.s32|.s64|.f32|.f64) d, a",
        10,
        0,
        |m| Ok(Made::Mov(m.ty(0))),
    ),
    row(
        "cvta(.global|.shared|.local|.const|.param)<size> d, a",
        20,
        20,
        cvta,
    ),
    row(
        "cvta.to(.global|.shared|.local|.const|.param)<size> d, a",
        20,
        20,
        cvta,
    ),
    row(
        "isspacep(.global|.shared|.local|.const|.param) p, a:u64",
        20,
        20,
        |m| op(Op::Isspacep { space: m.space() }),
    ),
    row(
        "cvt{<rnd>|<irnd>}{.ftz}{.sat}(<cvt>)(<cvt>) d:1~, a:2~",
        10,
        0,
        cvt,
    ),
    row("bra{.uni} #a", 10, 0, |m| {
        Ok(Made::Bra { uni: m.has(".uni") })
    }),
    row("brx.idx{.uni} a:u32, #b", 60, 30, |m| {
        Ok(Made::Brx { uni: m.has(".uni") })
    }),
    row("call{.uni} #a", 10, 0, |m| {
        Ok(Made::Call { uni: m.has(".uni") })
    }),
    row("ret{.uni}", 10, 0, |m| op(Op::Ret { uni: m.has(".uni") })),
    row("exit", 10, 0, |_| op(Op::Exit)),
    row("trap", 10, 0, |_| op(Op::Trap)),
];

fn cvta(m: &Mods) -> Result<Made, Reject> {
    Ok(Made::Cvta(Op::Cvta {
        space: m.space(),
        to: m.has(".to"),
        ty: m.ty(0),
    }))
}

fn cvt(m: &Mods) -> Result<Made, Reject> {
    let (to, from) = (m.ty(0), m.ty(1));
    let (rnd, int_rnd) = (m.rounding(), m.int_rounding());
    let rounds = match (from.is_float(), to.is_float()) {
        (false, false) => rnd.is_none() && int_rnd.is_none(),
        (false, true) => rnd.is_some() && int_rnd.is_none(),
        (true, false) => rnd.is_none() && int_rnd.is_some(),
        (true, true) if to.size() < from.size() => rnd.is_some() && int_rnd.is_none(),
        (true, true) if to == from => rnd.is_none(),
        (true, true) => rnd.is_none() && int_rnd.is_none(),
    };
    if !rounds {
        return bad_types("cvt");
    }
    op(Op::Cvt(Cvt {
        to,
        from,
        rnd,
        int_rnd,
        ftz: m.has(".ftz"),
        sat: m.has(".sat"),
        relu: m.has(".relu"),
        satfinite: m.has(".satfinite"),
    }))
}
