//! Products of matrices that four warps make together: `wgmma`.

use super::matrix::shape;
use super::mods::op;
use super::{Made, Mods, Reject, Row, row};
use crate::ir::*;

#[rustfmt::skip] // a row is a line
pub(super) const ROWS: &[Row] = &[
    // A product is done when its instruction is: there is nothing to order or to wait for.
    row("wgmma.fence.sync{.aligned}", 80, 90, |_| op(Op::Nop)),
    row("wgmma.commit_group.sync{.aligned}", 80, 90, |_| op(Op::Nop)),
    row("wgmma.wait_group.sync{.aligned} #n:u32", 80, 90, |_| Ok(Made::Hint(Space::Generic))),
    // --- A as a descriptor, or in registers
    row("wgmma.mma_async.sync{.aligned}<m64k16>.f32.f16.f16 d:f32^n/2, a:b64, b:b64, !c, #i:s32, #j:s32, #k:s32, #l:s32", 80, 90, product),
    row("wgmma.mma_async.sync{.aligned}<m64k16>.f32.f16.f16 d:f32^n/2, a:b32^4, b:b64, !c, #i:s32, #j:s32, #l:s32", 80, 90, from_registers),
    row("wgmma.mma_async.sync{.aligned}<m64k16>.f16.f16.f16 d:b32^n/4, a:b64, b:b64, !c, #i:s32, #j:s32, #k:s32, #l:s32", 80, 90, product),
    row("wgmma.mma_async.sync{.aligned}<m64k16>.f16.f16.f16 d:b32^n/4, a:b32^4, b:b64, !c, #i:s32, #j:s32, #l:s32", 80, 90, from_registers),
    row("wgmma.mma_async.sync{.aligned}<m64k16>.f32.bf16.bf16 d:f32^n/2, a:b64, b:b64, !c, #i:s32, #j:s32, #k:s32, #l:s32", 80, 90, product),
    row("wgmma.mma_async.sync{.aligned}<m64k16>.f32.bf16.bf16 d:f32^n/2, a:b32^4, b:b64, !c, #i:s32, #j:s32, #l:s32", 80, 90, from_registers),
    row("wgmma.mma_async.sync{.aligned}<m64k8>.f32.tf32.tf32 d:f32^n/2, a:b64, b:b64, !c, #i:s32, #j:s32", 80, 90, product),
    row("wgmma.mma_async.sync{.aligned}<m64k8>.f32.tf32.tf32 d:f32^n/2, a:b32^4, b:b64, !c, #i:s32, #j:s32", 80, 90, from_registers),
    row("wgmma.mma_async.sync{.aligned}<m64k32>.f32(.e4m3|.e5m2)(.e4m3|.e5m2) d:f32^n/2, a:b64, b:b64, !c, #i:s32, #j:s32", 80, 90, product),
    row("wgmma.mma_async.sync{.aligned}<m64k32>.f32(.e4m3|.e5m2)(.e4m3|.e5m2) d:f32^n/2, a:b32^4, b:b64, !c, #i:s32, #j:s32", 80, 90, from_registers),
    row("wgmma.mma_async.sync{.aligned}<m64k32>.f16(.e4m3|.e5m2)(.e4m3|.e5m2) d:b32^n/4, a:b64, b:b64, !c, #i:s32, #j:s32", 80, 90, product),
    row("wgmma.mma_async.sync{.aligned}<m64k32>.f16(.e4m3|.e5m2)(.e4m3|.e5m2) d:b32^n/4, a:b32^4, b:b64, !c, #i:s32, #j:s32", 80, 90, from_registers),
    row("wgmma.mma_async.sync{.aligned}<m64k32int>{.satfinite}.s32.s8.s8 d:s32^n/2, a:b64, b:b64, !c", 80, 90, product),
    row("wgmma.mma_async.sync{.aligned}<m64k32int>{.satfinite}.s32.s8.s8 d:s32^n/2, a:b32^4, b:b64, !c", 80, 90, from_registers),
    row("wgmma.mma_async.sync{.aligned}<m64k32int>{.satfinite}.s32.u8.u8 d:s32^n/2, a:b64, b:b64, !c", 80, 90, product),
    row("wgmma.mma_async.sync{.aligned}<m64k32int>{.satfinite}.s32.u8.u8 d:s32^n/2, a:b32^4, b:b64, !c", 80, 90, from_registers),
    row("wgmma.mma_async.sync{.aligned}<m64k32int>{.satfinite}.s32.s8.u8 d:s32^n/2, a:b64, b:b64, !c", 84, 90, product),
    row("wgmma.mma_async.sync{.aligned}<m64k32int>{.satfinite}.s32.s8.u8 d:s32^n/2, a:b32^4, b:b64, !c", 84, 90, from_registers),
    row("wgmma.mma_async.sync{.aligned}<m64k32int>{.satfinite}.s32.u8.s8 d:s32^n/2, a:b64, b:b64, !c", 84, 90, product),
    row("wgmma.mma_async.sync{.aligned}<m64k32int>{.satfinite}.s32.u8.s8 d:s32^n/2, a:b32^4, b:b64, !c", 84, 90, from_registers),
    row("wgmma.mma_async.sync{.aligned}<m64k256>.s32.b1.b1.and.popc d:s32^n/2, a:b64, b:b64, !c", 80, 90, product),
    row("wgmma.mma_async.sync{.aligned}<m64k256>.s32.b1.b1.and.popc d:s32^n/2, a:b32^4, b:b64, !c", 80, 90, from_registers),
];

/// How many registers of the accumulator `n/2` or `n/4` are.
pub(super) fn columns(m: &Mods, count: &str) -> u8 {
    let parts = if count == "n/4" { 4 } else { 2 };
    (shape(m)[1] / parts) as u8
}

fn product(m: &Mods) -> Result<Made, Reject> {
    made(m, false)
}

fn from_registers(m: &Mods) -> Result<Made, Reject> {
    made(m, true)
}

fn made(m: &Mods, a_in_registers: bool) -> Result<Made, Reject> {
    let (a, b) = match m.small_types().as_slice() {
        [a, b] => (*a, *b),
        _ => (m.ty(1), m.ty(2)),
    };
    Ok(Made::Wgmma(Wgmma {
        mma: Mma {
            shape: shape(m),
            d: m.ty(0),
            a,
            b,
            c: m.ty(0),
            satfinite: m.has(".satfinite"),
            bits: m.bool_op(),
            wmma: false,
        },
        a_in_registers,
        negated: [false; 2],
        transposed: [false; 2],
    }))
}
