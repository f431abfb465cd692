//! Table rows of `multimem`, which the manual defines for addresses of multicast objects only.
//!
//! This driver has no multicast objects. On other memory, an H200 executes `multimem.st` and `multimem.red` like `st`
//! and `red`, and so does this driver. `multimem.ld_reduce` faults on an H200; here it is a load, because there is only
//! one copy of the value to reduce.

use super::memory::{load, red, store};
use crate::forms::mods::Mods;
use crate::forms::row::{Lowering, Reject, Row, row};
use crate::ir::Type;

#[rustfmt::skip] // one row per line
pub(super) const ROWS: &[Row] = &[
    row("multimem.st{.weak}{.global}(.b32|.u32|.s32|.f32|.b64|.u64|.s64|.f64|.f16x2|.bf16x2) [a], b~", 81, 90, st),
    row("multimem.st{.weak}{.global}(.v2|.v4)(.f32|.f16x2|.bf16x2) [a], b*~", 81, 90, st),
    row("multimem.st{.weak}{.global}<vec>(.f16|.bf16) [a], b*~", 81, 90, st),
    row("multimem.st(.relaxed|.release)<scope>{.global}(.b32|.u32|.s32|.f32|.b64|.u64|.s64|.f64|.f16x2|.bf16x2) [a], b~", 81, 90, st),
    row("multimem.st(.relaxed|.release)<scope>{.global}(.v2|.v4)(.f32|.f16x2|.bf16x2) [a], b*~", 81, 90, st),
    row("multimem.st(.relaxed|.release)<scope>{.global}<vec>(.f16|.bf16) [a], b*~", 81, 90, st),
    row("multimem.red{.global}<bool><bits3264> [a], b", 81, 90, red),
    row("multimem.red{.global}.add(.u32|.s32|.u64|.f32|.f64|.f16x2|.bf16x2) [a], b", 81, 90, red),
    row("multimem.red{.global}(.min|.max)<int3264> [a], b", 81, 90, red),
    row("multimem.red{.global}.add(.v2|.v4).f32 [a], b*", 81, 90, red),
    row("multimem.red{.global}(.add|.min|.max)(.v2|.v4)(.f16x2|.bf16x2) [a], b*", 81, 90, red),
    row("multimem.red{.global}(.add|.min|.max)<vec>(.f16|.bf16) [a], b*", 81, 90, red),
    row("multimem.red(.relaxed|.release)<scope>{.global}<bool><bits3264> [a], b", 81, 90, red),
    row("multimem.red(.relaxed|.release)<scope>{.global}.add(.u32|.s32|.u64|.f32|.f64|.f16x2|.bf16x2) [a], b", 81, 90, red),
    row("multimem.red(.relaxed|.release)<scope>{.global}(.min|.max)<int3264> [a], b", 81, 90, red),
    row("multimem.red(.relaxed|.release)<scope>{.global}.add(.v2|.v4).f32 [a], b*", 81, 90, red),
    row("multimem.red(.relaxed|.release)<scope>{.global}(.add|.min|.max)(.v2|.v4)(.f16x2|.bf16x2) [a], b*", 81, 90, red),
    row("multimem.red(.relaxed|.release)<scope>{.global}(.add|.min|.max)<vec>(.f16|.bf16) [a], b*", 81, 90, red),
    row("multimem.ld_reduce{.weak}{.global}<bool><bits3264> d~, [a]", 81, 90, ld_reduce),
    row("multimem.ld_reduce{.weak}{.global}.add(.u32|.s32|.u64|.f32|.f64|.f16x2|.bf16x2) d~, [a]", 81, 90, ld_reduce),
    row("multimem.ld_reduce{.weak}{.global}(.min|.max)(.u32|.s32|.u64|.s64|.f16x2|.bf16x2) d~, [a]", 81, 90, ld_reduce),
    row("multimem.ld_reduce{.weak}{.global}.add.acc::f32(.f16x2|.bf16x2) d~, [a]", 81, 90, ld_reduce),
    row("multimem.ld_reduce{.weak}{.global}.add(.v2|.v4).f32 d*~, [a]", 81, 90, ld_reduce),
    row("multimem.ld_reduce{.weak}{.global}(.add|.min|.max)(.v2|.v4)(.f16x2|.bf16x2) d*~, [a]", 81, 90, ld_reduce),
    row("multimem.ld_reduce{.weak}{.global}(.add|.min|.max)<vec>(.f16|.bf16) d*~, [a]", 81, 90, ld_reduce),
    row("multimem.ld_reduce{.weak}{.global}.add.acc::f32(.v2|.v4)(.f16x2|.bf16x2) d*~, [a]", 81, 90, ld_reduce),
    row("multimem.ld_reduce{.weak}{.global}.add.acc::f32<vec>(.f16|.bf16) d*~, [a]", 81, 90, ld_reduce),
    row("multimem.ld_reduce(.relaxed|.acquire)<scope>{.global}<bool><bits3264> d~, [a]", 81, 90, ld_reduce),
    row("multimem.ld_reduce(.relaxed|.acquire)<scope>{.global}.add(.u32|.s32|.u64|.f32|.f64|.f16x2|.bf16x2) d~, [a]", 81, 90, ld_reduce),
    row("multimem.ld_reduce(.relaxed|.acquire)<scope>{.global}(.min|.max)(.u32|.s32|.u64|.s64|.f16x2|.bf16x2) d~, [a]", 81, 90, ld_reduce),
    row("multimem.ld_reduce(.relaxed|.acquire)<scope>{.global}.add.acc::f32(.f16x2|.bf16x2) d~, [a]", 81, 90, ld_reduce),
    row("multimem.ld_reduce(.relaxed|.acquire)<scope>{.global}.add(.v2|.v4).f32 d*~, [a]", 81, 90, ld_reduce),
    row("multimem.ld_reduce(.relaxed|.acquire)<scope>{.global}(.add|.min|.max)(.v2|.v4)(.f16x2|.bf16x2) d*~, [a]", 81, 90, ld_reduce),
    row("multimem.ld_reduce(.relaxed|.acquire)<scope>{.global}(.add|.min|.max)<vec>(.f16|.bf16) d*~, [a]", 81, 90, ld_reduce),
    row("multimem.ld_reduce(.relaxed|.acquire)<scope>{.global}.add.acc::f32(.v2|.v4)(.f16x2|.bf16x2) d*~, [a]", 81, 90, ld_reduce),
    row("multimem.ld_reduce(.relaxed|.acquire)<scope>{.global}.add.acc::f32<vec>(.f16|.bf16) d*~, [a]", 81, 90, ld_reduce),
];

/// Lowers `multimem.st` to a store of the bits.
fn st(m: &Mods) -> Result<Lowering, Reject> {
    Ok(store(m, bits(m)))
}

/// Lowers `multimem.ld_reduce` to a load of the bits.
fn ld_reduce(m: &Mods) -> Result<Lowering, Reject> {
    Ok(load(m, bits(m)))
}

/// Returns the type of an element in memory: half-precision types become bit types, which `ld` and `st` have.
fn bits(m: &Mods) -> Type {
    match m.ty(0) {
        Type::F16 | Type::BF16 => Type::B16,
        Type::F16x2 | Type::BF16x2 => Type::B32,
        other => other,
    }
}
