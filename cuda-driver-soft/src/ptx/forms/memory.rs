//! Loads, stores, atomic operations, fences, cache hints.

use super::mods::{bad_types, op};
use super::{Made, Mods, Reject, Row, row};
use crate::ir::*;

#[rustfmt::skip] // a row is a line
pub(super) const ROWS: &[Row] = &[
    // --- loads
    row("ld{.weak}{.global|.local|.const|.param|.param::entry|.param::func|<shared>}{.ca|.cg|.cs|.lu|.cv}{<vec>}<mem> d*~?, [a]", 10, 0, ld),
    row("ld{.weak}{.global}{.ca|.cg|.cs|.lu|.cv|<l1>}{<pf>}{<vec>}<mem> d*~?, [a]", 10, 0, ld),
    row("ld{.weak}{.global}{.ca|.cg|.cs|.lu|.cv|<l1>}{<pf>}.L2::cache_hint{<vec>}<mem> d*~?, [a], c:b64", 74, 80, ld),
    row("ld.volatile{.global|.local|<shared>}{<vec>}<mem> d*~?, [a]", 10, 0, ld),
    row("ld.volatile{.global}{<pf>}{<vec>}<mem> d*~?, [a]", 10, 0, ld),
    row("ld(.relaxed|.acquire)<scope>{.global|<shared>}{<vec>}<mem> d*~?, [a]", 60, 70, ld),
    row("ld(.relaxed|.acquire)<scope>{.global}{<l1>}{<pf>}{<vec>}<mem> d*~?, [a]", 60, 70, ld),
    row("ld(.relaxed|.acquire)<scope>{.global}{<l1>}{<pf>}.L2::cache_hint{<vec>}<mem> d*~?, [a], c:b64", 74, 80, ld),
    row("ld.mmio.relaxed.sys{.global}<mem> d~, [a]", 82, 70, ld),
    row("ld.global{.ca|.cg|.cs|<l1>}.nc{<pf>}{<vec>}<mem> d*~?, [a]", 31, 32, ld),
    row("ld.global{.ca|.cg|.cs|<l1>}.nc{<pf>}.L2::cache_hint{<vec>}<mem> d*~?, [a], c:b64", 74, 80, ld),
    row("ldu{.global}{.v2|.v4}<mem> d*~?, [a]", 20, 0, ld),
    // --- stores
    row("st{.weak}{.global|.local|.param|.param::func|<shared>}{.wb|.cg|.cs|.wt}{<vec>}<mem> [a], b*~", 10, 0, st),
    row("st{.weak}{.global}{<l1>}{<vec>}<mem> [a], b*~", 10, 0, st),
    row("st{.weak}{.global}{.wb|.cg|.cs|.wt|<l1>}.L2::cache_hint{<vec>}<mem> [a], b*~, c:b64", 74, 80, st),
    row("st.volatile{.global|.local|<shared>}{<vec>}<mem> [a], b*~", 10, 0, st),
    row("st(.relaxed|.release)<scope>{.global|<shared>}{<vec>}<mem> [a], b*~", 60, 70, st),
    row("st(.relaxed|.release)<scope>{.global}{<l1>}{<vec>}<mem> [a], b*~", 60, 70, st),
    row("st(.relaxed|.release)<scope>{.global}{<l1>}.L2::cache_hint{<vec>}<mem> [a], b*~, c:b64", 74, 80, st),
    row("st.mmio.relaxed.sys{.global}<mem> [a], b~", 82, 70, st),
    // --- atomic operations
    row("atom{.relaxed|.acquire|.release|.acq_rel}{<scope>}{.global|<shared>}<bool><bits3264> d?, [a], b", 11, 11, atom),
    row("atom{.relaxed|.acquire|.release|.acq_rel}{<scope>}{.global|<shared>}.exch<bits3264> d?, [a], b", 11, 11, atom),
    row("atom{.relaxed|.acquire|.release|.acq_rel}{<scope>}{.global|<shared>}.cas(.b16|.b32|.b64) d?, [a], b, c", 11, 11, atom),
    row("atom{.relaxed|.acquire|.release|.acq_rel}{<scope>}{.global|<shared>}.exch.b128 d?, [a], b", 83, 90, atom),
    row("atom{.relaxed|.acquire|.release|.acq_rel}{<scope>}{.global|<shared>}.cas.b128 d?, [a], b, c", 83, 90, atom),
    row("atom{.relaxed|.acquire|.release|.acq_rel}{<scope>}{.global|<shared>}.add(.u32|.s32|.u64) d?, [a], b", 11, 11, atom),
    row("atom{.relaxed|.acquire|.release|.acq_rel}{<scope>}{.global|<shared>}.add.f32 d?, [a], b", 20, 20, atom),
    row("atom{.relaxed|.acquire|.release|.acq_rel}{<scope>}{.global|<shared>}.add.f64 d?, [a], b", 50, 60, atom),
    row("atom{.relaxed|.acquire|.release|.acq_rel}{<scope>}{.global|<shared>}.add.noftz.f16x2 d?, [a], b", 62, 60, atom),
    row("atom{.relaxed|.acquire|.release|.acq_rel}{<scope>}{.global|<shared>}.add.noftz.f16 d?, [a], b", 63, 70, atom),
    row("atom{.relaxed|.acquire|.release|.acq_rel}{<scope>}{.global|<shared>}.add.noftz<bhalf> d?, [a], b", 78, 90, atom),
    row("atom{.relaxed|.acquire|.release|.acq_rel}{<scope>}{.global|<shared>}(.inc|.dec).u32 d?, [a], b", 11, 11, atom),
    row("atom{.relaxed|.acquire|.release|.acq_rel}{<scope>}{.global|<shared>}(.min|.max)(.u32|.s32|.u64|.s64) d?, [a], b", 11, 11, atom),
    row("red{.relaxed|.release}{<scope>}{.global|<shared>}<bool><bits3264> [a], b", 12, 11, red),
    row("red{.relaxed|.release}{<scope>}{.global|<shared>}.add(.u32|.s32|.u64) [a], b", 12, 11, red),
    row("red{.relaxed|.release}{<scope>}{.global|<shared>}.add.f32 [a], b", 20, 20, red),
    row("red{.relaxed|.release}{<scope>}{.global|<shared>}.add.f64 [a], b", 50, 60, red),
    row("red{.relaxed|.release}{<scope>}{.global|<shared>}.add.noftz.f16x2 [a], b", 62, 60, red),
    row("red{.relaxed|.release}{<scope>}{.global|<shared>}.add.noftz.f16 [a], b", 63, 70, red),
    row("red{.relaxed|.release}{<scope>}{.global|<shared>}.add.noftz<bhalf> [a], b", 78, 90, red),
    row("red{.relaxed|.release}{<scope>}{.global|<shared>}(.inc|.dec).u32 [a], b", 12, 11, red),
    row("red{.relaxed|.release}{<scope>}{.global|<shared>}(.min|.max)(.u32|.s32|.u64|.s64) [a], b", 12, 11, red),
    // --- order
    row("fence{.sc|.acq_rel|.acquire|.release}<scope>", 60, 70, |m| op(Op::Fence { scope: m.scope() })),
    row("fence.proxy.alias", 75, 70, |_| op(Op::Fence { scope: Scope::Sys })),
    row("membar(.cta|.gl|.sys)", 14, 0, |m| {
        op(Op::Fence { scope: if m.has(".gl") { Scope::Gpu } else { m.scope() } })
    }),
    row("membar.proxy.alias", 75, 70, |_| op(Op::Fence { scope: Scope::Sys })),
    // --- hints: checked, then nothing
    row("prefetch{.global|.local}(.L1|.L2) [a]", 20, 20, hint),
    row("prefetch.global(.L2::evict_last|.L2::evict_normal) [a]", 74, 80, hint),
    row("prefetchu.L1 [a]", 20, 20, hint),
    row("applypriority{.global}.L2::evict_normal [a], #b", 74, 80, hint),
    row("discard{.global}.L2 [a], #b", 74, 80, hint),
];

fn mem(m: &Mods) -> MemMods {
    MemMods {
        space: m.space(),
        ty: m.ty(0),
        vec: m.vec(),
        order: m.order(),
        offset: 0,
    }
}

/// Vectors are at most 16 bytes, and never of 128-bit elements.
fn fits(m: &Mods) -> bool {
    m.vec() == 1 || u32::from(m.vec()) * m.ty(0).size() <= 16 && m.ty(0) != Type::B128
}

fn ld(m: &Mods) -> Result<Made, Reject> {
    if fits(m) {
        Ok(Made::Memory(Op::Ld(mem(m))))
    } else {
        bad_types("ld")
    }
}

fn st(m: &Mods) -> Result<Made, Reject> {
    if fits(m) {
        Ok(Made::Memory(Op::St(mem(m))))
    } else {
        bad_types("st")
    }
}

/// Without ordering modifiers, an atomic operation is `.relaxed.gpu`.
fn relaxed(m: &Mods) -> MemMods {
    let order = match m.order() {
        Order::Weak => Order::Relaxed(m.scope()),
        order => order,
    };
    MemMods { order, ..mem(m) }
}

fn atom(m: &Mods) -> Result<Made, Reject> {
    Ok(Made::Memory(Op::Atom {
        op: m.atom_op(),
        mem: relaxed(m),
    }))
}

fn red(m: &Mods) -> Result<Made, Reject> {
    Ok(Made::Memory(Op::Red {
        op: m.atom_op(),
        mem: relaxed(m),
    }))
}

fn hint(m: &Mods) -> Result<Made, Reject> {
    Ok(Made::Hint(m.space()))
}
