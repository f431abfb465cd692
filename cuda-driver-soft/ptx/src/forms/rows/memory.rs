//! Table rows of loads, stores, atomic operations, fences and cache hints.

use crate::forms::mods::Mods;
use crate::forms::row::{Lowering, Reject, Row, bad_types, op, row};
use crate::ir::{MemMods, Op, Order, Scope, Space, Type};

#[rustfmt::skip] // one row per line
pub(super) const ROWS: &[Row] = &[
    // --- loads
    row("ld{.weak}{.global|.local|.const|.param|.param::entry|.param::func|<shared>}{<cop>}{<vec>}<mem> d*~, [a]", 10, 0, ld),
    row("ld{.weak}{.global}{<cop>|<l1>}{<pf>}{.L2::cache_hint}{<vec>}<mem> d*~, [a]{, policy}", 10, 0, ld),
    row("ld.volatile{.global|<shared>}{<vec>}<mem> d*~, [a]", 10, 0, ld),
    row("ld.volatile.local{<vec>}<mem> d*~, [a]", 91, 0, ld),
    row("ld.volatile{.global}{<pf>}{<vec>}<mem> d*~, [a]", 10, 0, ld),
    row("ld(.relaxed|.acquire)<scope>{<gs>}{<vec>}<mem> d*~, [a]", 60, 70, ld),
    row("ld(.relaxed|.acquire)<scope>{.global}{<l1>}{<pf>}{.L2::cache_hint}{<vec>}<mem> d*~, [a]{, policy}", 60, 70, ld),
    row("ld.mmio.relaxed.sys{.global}<mem> d~, [a]", 82, 70, ld),
    row("ld.mmio.acquire.sys{.global}<mem> d~, [a]", 93, 70, ld),
    row("ld.global{.ca|.cg|.cs|<l1>}.nc{<pf>}{.L2::cache_hint}{<vec>}<mem> d*~, [a]{, policy}", 31, 32, ld),
    row("ld{.weak}{.global}{<cop>|<l1>}{<l2>}{<pf>}{.L2::cache_hint}.v8<mem32> d*~, [a]{, policy}", 88, 100, ld_256),
    row("ld{.weak}{.global}{<cop>|<l1>}{<l2>}{<pf>}{.L2::cache_hint}.v4<mem64> d*~, [a]{, policy}", 88, 100, ld_256),
    row("ld.volatile{.global}{<l2>}{<pf>}.v8<mem32> d*~, [a]", 88, 100, ld_256),
    row("ld.volatile{.global}{<l2>}{<pf>}.v4<mem64> d*~, [a]", 88, 100, ld_256),
    row("ld(.relaxed|.acquire)<scope>{.global}{<l1>}{<l2>}{<pf>}{.L2::cache_hint}.v8<mem32> d*~, [a]{, policy}", 88, 100, ld_256),
    row("ld(.relaxed|.acquire)<scope>{.global}{<l1>}{<l2>}{<pf>}{.L2::cache_hint}.v4<mem64> d*~, [a]{, policy}", 88, 100, ld_256),
    row("ld.global{.ca|.cg|.cs|<l1>}.nc{<l2>}{<pf>}{.L2::cache_hint}.v8<mem32> d*~, [a]{, policy}", 88, 100, ld_256),
    row("ld.global{.ca|.cg|.cs|<l1>}.nc{<l2>}{<pf>}{.L2::cache_hint}.v4<mem64> d*~, [a]{, policy}", 88, 100, ld_256),
    row("ldu{.global}{.v2|.v4}<mem> d*~, [a]", 20, 0, ld),
    // --- stores
    row("st{.weak}{.global|.local|.param|.param::func|<shared>}{<wop>}{<vec>}<mem> [a], b*~", 10, 0, st),
    row("st{.weak}{.global}{<wop>|<l1>}{.L2::cache_hint}{<vec>}<mem> [a], b*~{, policy}", 10, 0, st),
    row("st.volatile{.global|<shared>}{<vec>}<mem> [a], b*~", 10, 0, st),
    row("st.volatile.local{<vec>}<mem> [a], b*~", 91, 0, st),
    row("st(.relaxed|.release)<scope>{<gs>}{<vec>}<mem> [a], b*~", 60, 70, st),
    row("st(.relaxed|.release)<scope>{.global}{<l1>}{.L2::cache_hint}{<vec>}<mem> [a], b*~{, policy}", 60, 70, st),
    row("st{.weak}{.global}{<wop>|<l1>}{<l2>}{.L2::cache_hint}.v8<mem32> [a], b*~{, policy}", 88, 100, st_256),
    row("st{.weak}{.global}{<wop>|<l1>}{<l2>}{.L2::cache_hint}.v4<mem64> [a], b*~{, policy}", 88, 100, st_256),
    row("st.volatile{.global}{<l2>}.v8<mem32> [a], b*~", 88, 100, st_256),
    row("st.volatile{.global}{<l2>}.v4<mem64> [a], b*~", 88, 100, st_256),
    row("st(.relaxed|.release)<scope>{.global}{<l1>}{<l2>}{.L2::cache_hint}.v8<mem32> [a], b*~{, policy}", 88, 100, st_256),
    row("st(.relaxed|.release)<scope>{.global}{<l1>}{<l2>}{.L2::cache_hint}.v4<mem64> [a], b*~{, policy}", 88, 100, st_256),
    row("st.mmio.relaxed.sys{.global}<mem> [a], b~", 82, 70, st),
    row("st.mmio.release.sys{.global}<mem> [a], b~", 93, 70, st),
    // --- atomic operations
    row("atom{<asem>}{<scope>}{<gs>}<bool>{.L2::cache_hint}.b32 d?, [a], b{, policy}", 11, 0, atom),
    row("atom{<asem>}{<scope>}{<gs>}<bool>{.L2::cache_hint}.b64 d?, [a], b{, policy}", 31, 32, atom),
    row("atom{<asem>}{<scope>}{<gs>}.exch{.L2::cache_hint}<bits3264> d?, [a], b{, policy}", 11, 0, atom),
    row("atom{<asem>}{<scope>}{<gs>}.exch{.L2::cache_hint}.b128 d?, [a], b{, policy}", 83, 90, atom),
    row("atom{<asem>}{<scope>}{<gs>}.cas(.b32|.b64) d?, [a], b, c", 11, 0, atom),
    row("atom{<asem>}{<scope>}{<gs>}.cas.b16 d?, [a], b, c", 63, 70, atom),
    row("atom{<asem>}{<scope>}{<gs>}.cas.b128 d?, [a], b, c", 83, 90, atom),
    row("atom{<asem>}{<scope>}{<gs>}.add{.L2::cache_hint}(.u32|.s32|.u64) d?, [a], b{, policy}", 11, 0, atom),
    row("atom{<asem>}{<scope>}{<gs>}.add{.L2::cache_hint}.f32 d?, [a], b{, policy}", 20, 20, atom),
    row("atom{<asem>}{<scope>}{<gs>}.add.noftz{.L2::cache_hint}.f32 d?, [a], b{, policy}", 94, 90, atom),
    row("atom{<asem>}{<scope>}{<gs>}.add{.L2::cache_hint}.f64 d?, [a], b{, policy}", 50, 60, atom),
    row("atom{<asem>}{<scope>}{<gs>}.add.noftz{.L2::cache_hint}.f16x2 d?, [a], b{, policy}", 62, 60, atom),
    row("atom{<asem>}{<scope>}{<gs>}.add.noftz{.L2::cache_hint}.f16 d?, [a], b{, policy}", 63, 70, atom),
    row("atom{<asem>}{<scope>}{<gs>}.add.noftz{.L2::cache_hint}<bhalf> d?, [a], b{, policy}", 78, 90, atom),
    row("atom{<asem>}{<scope>}{<gs>}(.inc|.dec){.L2::cache_hint}.u32 d?, [a], b{, policy}", 11, 0, atom),
    row("atom{<asem>}{<scope>}{<gs>}(.min|.max){.L2::cache_hint}<int32> d?, [a], b{, policy}", 11, 0, atom),
    row("atom{<asem>}{<scope>}{<gs>}(.min|.max){.L2::cache_hint}(.u64|.s64) d?, [a], b{, policy}", 31, 32, atom),
    row("atom{<asem>}{<scope>}{.global}.add{.L2::cache_hint}(.v2|.v4).f32 d*?, [a], b*{, policy}", 81, 90, atom),
    row("atom{<asem>}{<scope>}{.global}.add.noftz{.L2::cache_hint}(.v2|.v4).f32 d*?, [a], b*{, policy}", 94, 90, atom),
    row("atom{<asem>}{<scope>}{.global}(.add|.min|.max).noftz{.L2::cache_hint}(.v2|.v4|.v8)(.f16|.bf16) d*?, [a], b*{, policy}", 81, 90, atom),
    row("atom{<asem>}{<scope>}{.global}(.add|.min|.max).noftz{.L2::cache_hint}(.v2|.v4)(.f16x2|.bf16x2) d*?, [a], b*{, policy}", 81, 90, atom),
    row("red{<rsem>}{<scope>}{<gs>}<bool>{.L2::cache_hint}.b32 [a], b{, policy}", 12, 0, red),
    row("red{<rsem>}{<scope>}{<gs>}<bool>{.L2::cache_hint}.b64 [a], b{, policy}", 31, 32, red),
    row("red{<rsem>}{<scope>}{<gs>}.add{.L2::cache_hint}(.u32|.s32|.u64) [a], b{, policy}", 12, 0, red),
    row("red{<rsem>}{<scope>}{<gs>}.add{.L2::cache_hint}.f32 [a], b{, policy}", 20, 20, red),
    row("red{<rsem>}{<scope>}{<gs>}.add.noftz{.L2::cache_hint}.f32 [a], b{, policy}", 94, 90, red),
    row("red{<rsem>}{<scope>}{<gs>}.add{.L2::cache_hint}.f64 [a], b{, policy}", 50, 60, red),
    row("red{<rsem>}{<scope>}{<gs>}.add.noftz{.L2::cache_hint}.f16x2 [a], b{, policy}", 62, 60, red),
    row("red{<rsem>}{<scope>}{<gs>}.add.noftz{.L2::cache_hint}.f16 [a], b{, policy}", 63, 70, red),
    row("red{<rsem>}{<scope>}{<gs>}.add.noftz{.L2::cache_hint}<bhalf> [a], b{, policy}", 78, 90, red),
    row("red{<rsem>}{<scope>}{<gs>}(.inc|.dec){.L2::cache_hint}.u32 [a], b{, policy}", 12, 0, red),
    row("red{<rsem>}{<scope>}{<gs>}(.min|.max){.L2::cache_hint}<int32> [a], b{, policy}", 12, 0, red),
    row("red{<rsem>}{<scope>}{<gs>}(.min|.max){.L2::cache_hint}(.u64|.s64) [a], b{, policy}", 31, 32, red),
    row("red{<rsem>}{<scope>}{.global}.add{.L2::cache_hint}(.v2|.v4).f32 [a], b*{, policy}", 81, 90, red),
    row("red{<rsem>}{<scope>}{.global}.add.noftz{.L2::cache_hint}(.v2|.v4).f32 [a], b*{, policy}", 94, 90, red),
    row("red{<rsem>}{<scope>}{.global}(.add|.min|.max).noftz{.L2::cache_hint}(.v2|.v4|.v8)(.f16|.bf16) [a], b*{, policy}", 81, 90, red),
    row("red{<rsem>}{<scope>}{.global}(.add|.min|.max).noftz{.L2::cache_hint}(.v2|.v4)(.f16x2|.bf16x2) [a], b*{, policy}", 81, 90, red),
    // --- fences
    row("fence{.sc|.acq_rel}<scope>", 60, 70, |m| op(Op::Fence { scope: m.scope() })),
    row("fence(.acquire|.release)<scope>", 86, 90, |m| op(Op::Fence { scope: m.scope() })),
    row("fence.async<scope>", 80, 90, |m| op(Op::Fence { scope: m.scope() })),
    row("fence.proxy.alias", 75, 70, |_| op(Op::Fence { scope: Scope::Sys })),
    row("fence.proxy.async{.global|.shared::cta|.shared::cluster}", 80, 90, |_| op(Op::Fence { scope: Scope::Cluster })),
    row("fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster", 86, 90, |_| op(Op::Fence { scope: Scope::Cluster })),
    row("fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster", 86, 90, |_| op(Op::Fence { scope: Scope::Cluster })),
    row("fence.proxy.tensormap::generic.release<scope>", 83, 90, |m| op(Op::Fence { scope: m.scope() })),
    row("fence.proxy.tensormap::generic.acquire<scope> [a], #b:u32", 83, 90, |_| Ok(Lowering::Hint(Space::Generic))),
    row("fence.mbarrier_init.release.cluster", 80, 90, |_| op(Op::Fence { scope: Scope::Cluster })),
    row("fence.acquire.sync_restrict::shared::cluster.cluster", 86, 90, |_| op(Op::Fence { scope: Scope::Cluster })),
    row("fence.release.sync_restrict::shared::cta.cluster", 86, 90, |_| op(Op::Fence { scope: Scope::Cluster })),
    row("membar(.cta|.gl|.sys)", 14, 0, membar),
    row("membar.proxy.alias", 75, 60, |_| op(Op::Fence { scope: Scope::Sys })),
    row("membar.proxy.async", 80, 90, |_| op(Op::Fence { scope: Scope::Sys })),
    // --- cache hints, whose operands are checked; only `createpolicy` has a result
    row("prefetch{.global|.local}(.L1|.L2) [a]", 20, 20, hint),
    row("prefetch{.global}(.L2::evict_last|.L2::evict_normal) [a]", 74, 80, hint),
    row("prefetch{.const|.param}.tensormap [a]", 80, 90, hint),
    row("prefetchu.L1 [a]", 20, 20, hint),
    row("applypriority{.global}.L2::evict_normal [a], #b:u32", 74, 80, hint),
    row("discard{.global}.L2 [a], #b:u32", 74, 80, hint),
    row("createpolicy.fractional(.L2::evict_last|.L2::evict_normal|.L2::evict_first|.L2::evict_unchanged){.L2::evict_first|.L2::evict_unchanged}.b64 d{, a:f32}", 74, 80, policy),
    row("createpolicy.range{.global}(.L2::evict_last|.L2::evict_normal|.L2::evict_first|.L2::evict_unchanged){.L2::evict_first|.L2::evict_unchanged}.b64 d, [a], b:u32, c:u32", 74, 80, policy),
    row("createpolicy.cvt.L2.b64 d, a", 74, 80, policy),
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

/// Returns true unless a vector is longer than 16 bytes or has elements of 128 bits.
fn fits(m: &Mods) -> bool {
    m.vec() == 1 || u32::from(m.vec()) * m.ty(0).size() <= 16 && m.ty(0) != Type::B128
}

fn ld(m: &Mods) -> Result<Lowering, Reject> {
    if fits(m) {
        Ok(Lowering::Memory(Op::Ld(mem(m))))
    } else {
        bad_types("ld")
    }
}

fn st(m: &Mods) -> Result<Lowering, Reject> {
    if fits(m) {
        Ok(Lowering::Memory(Op::St(mem(m))))
    } else {
        bad_types("st")
    }
}

/// Lowers a load of a vector of 256 bits.
fn ld_256(m: &Mods) -> Result<Lowering, Reject> {
    Ok(Lowering::Memory(Op::Ld(mem(m))))
}

/// Lowers a store of a vector of 256 bits.
fn st_256(m: &Mods) -> Result<Lowering, Reject> {
    Ok(Lowering::Memory(Op::St(mem(m))))
}

/// Lowers to a load of values of this type.
pub(super) fn load(m: &Mods, ty: Type) -> Lowering {
    Lowering::Memory(Op::Ld(MemMods { ty, ..mem(m) }))
}

/// Lowers to a store of values of this type.
pub(super) fn store(m: &Mods, ty: Type) -> Lowering {
    Lowering::Memory(Op::St(MemMods { ty, ..mem(m) }))
}

/// Returns the modifiers of an atomic operation. Its order is `.relaxed` by default.
fn relaxed(m: &Mods) -> MemMods {
    let order = match m.order() {
        Order::Weak => Order::Relaxed(m.scope()),
        order => order,
    };
    MemMods { order, ..mem(m) }
}

/// Refuses a cache policy for shared memory, which is not behind the L2 cache.
fn check_policy(m: &Mods, root: &str) -> Result<(), Reject> {
    let mut shared = [".shared", ".shared::cta", ".shared::cluster"].into_iter();
    match shared.find(|space| m.has(space)) {
        Some(space) if m.has(".L2::cache_hint") => Err(Reject(format!(
            "Modifier '.L2::cache_hint' cannot be applied to '{space}' space for instruction '{root}'"
        ))),
        _ => Ok(()),
    }
}

fn atom(m: &Mods) -> Result<Lowering, Reject> {
    check_policy(m, "atom")?;
    Ok(Lowering::Memory(Op::Atom {
        op: m.atom_op(),
        mem: relaxed(m),
    }))
}

pub(super) fn red(m: &Mods) -> Result<Lowering, Reject> {
    check_policy(m, "red")?;
    Ok(Lowering::Memory(Op::Red {
        op: m.atom_op(),
        mem: relaxed(m),
    }))
}

fn membar(m: &Mods) -> Result<Lowering, Reject> {
    op(Op::Fence {
        scope: if m.has(".gl") { Scope::Gpu } else { m.scope() },
    })
}

fn hint(m: &Mods) -> Result<Lowering, Reject> {
    Ok(Lowering::Hint(m.space()))
}

/// Lowers `createpolicy` to a constant. For `.fractional` with 1.0, an H200 returns the same upper 16 bits. No
/// instruction uses the policy here.
fn policy(m: &Mods) -> Result<Lowering, Reject> {
    // The first priority is the primary one. `createpolicy.cvt` has none.
    let primary = m.find(|modifier| match modifier {
        ".L2::evict_last" => Some(0x14f0),
        ".L2::evict_first" => Some(0x12f0),
        ".L2::evict_normal" => Some(0x16f0),
        ".L2::evict_unchanged" => Some(0x10f0),
        _ => None,
    });
    Ok(Lowering::Policy(primary.unwrap_or(0x1000) << 48))
}
