//! Table rows of matrix operations of a warpgroup of four warps: `wgmma`.

use crate::forms::mods::Mods;
use crate::forms::row::{Lowering, Reject, Row, op, row};
use crate::ir::{Mma, Op, Space, Wgmma};

#[rustfmt::skip] // one row per line
pub(super) const ROWS: &[Row] = &[
    // Products complete with their instruction, so there is nothing to order or to wait for.
    row("wgmma.fence.sync{.aligned}", 80, 90, |_| op(Op::Nop)),
    row("wgmma.commit_group.sync{.aligned}", 80, 90, |_| op(Op::Nop)),
    row("wgmma.wait_group.sync{.aligned} #n:u32", 80, 90, |_| Ok(Lowering::Hint(Space::Generic))),
    // --- A in shared memory (`a:b64`, a descriptor) or in registers (`a:b32^4`)
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
    // --- a sparse A; `m` is the metadata, `#n` the sparsity selector
    row("wgmma.mma_async.sp.sync{.aligned}<m64k32>.f32.f16.f16 d:f32^n/2, a:b64, b:b64, m:b32, #n:u32, !c, #i:s32, #j:s32, #k:s32, #l:s32", 82, 90, product),
    row("wgmma.mma_async.sp.sync{.aligned}<m64k32>.f32.f16.f16 d:f32^n/2, a:b32^4, b:b64, m:b32, #n:u32, !c, #i:s32, #j:s32, #l:s32", 82, 90, from_registers),
    row("wgmma.mma_async.sp.sync{.aligned}<m64k32>.f16.f16.f16 d:b32^n/4, a:b64, b:b64, m:b32, #n:u32, !c, #i:s32, #j:s32, #k:s32, #l:s32", 82, 90, product),
    row("wgmma.mma_async.sp.sync{.aligned}<m64k32>.f16.f16.f16 d:b32^n/4, a:b32^4, b:b64, m:b32, #n:u32, !c, #i:s32, #j:s32, #l:s32", 82, 90, from_registers),
    row("wgmma.mma_async.sp.sync{.aligned}<m64k32>.f32.bf16.bf16 d:f32^n/2, a:b64, b:b64, m:b32, #n:u32, !c, #i:s32, #j:s32, #k:s32, #l:s32", 82, 90, product),
    row("wgmma.mma_async.sp.sync{.aligned}<m64k32>.f32.bf16.bf16 d:f32^n/2, a:b32^4, b:b64, m:b32, #n:u32, !c, #i:s32, #j:s32, #l:s32", 82, 90, from_registers),
    row("wgmma.mma_async.sp.sync{.aligned}<m64k16>.f32.tf32.tf32 d:f32^n/2, a:b64, b:b64, m:b32, #n:u32, !c, #i:s32, #j:s32", 82, 90, product),
    row("wgmma.mma_async.sp.sync{.aligned}<m64k16>.f32.tf32.tf32 d:f32^n/2, a:b32^4, b:b64, m:b32, #n:u32, !c, #i:s32, #j:s32", 82, 90, from_registers),
    row("wgmma.mma_async.sp.sync{.aligned}<m64k64>.f32(.e4m3|.e5m2)(.e4m3|.e5m2) d:f32^n/2, a:b64, b:b64, m:b32, #n:u32, !c, #i:s32, #j:s32", 82, 90, product),
    row("wgmma.mma_async.sp.sync{.aligned}<m64k64>.f32(.e4m3|.e5m2)(.e4m3|.e5m2) d:f32^n/2, a:b32^4, b:b64, m:b32, #n:u32, !c, #i:s32, #j:s32", 82, 90, from_registers),
    row("wgmma.mma_async.sp.sync{.aligned}<m64k64>.f16(.e4m3|.e5m2)(.e4m3|.e5m2) d:b32^n/4, a:b64, b:b64, m:b32, #n:u32, !c, #i:s32, #j:s32", 82, 90, product),
    row("wgmma.mma_async.sp.sync{.aligned}<m64k64>.f16(.e4m3|.e5m2)(.e4m3|.e5m2) d:b32^n/4, a:b32^4, b:b64, m:b32, #n:u32, !c, #i:s32, #j:s32", 82, 90, from_registers),
    row("wgmma.mma_async.sp.sync{.aligned}<m64k64int>{.satfinite}.s32.s8.s8 d:s32^n/2, a:b64, b:b64, m:b32, #n:u32, !c", 82, 90, product),
    row("wgmma.mma_async.sp.sync{.aligned}<m64k64int>{.satfinite}.s32.s8.s8 d:s32^n/2, a:b32^4, b:b64, m:b32, #n:u32, !c", 82, 90, from_registers),
    row("wgmma.mma_async.sp.sync{.aligned}<m64k64int>{.satfinite}.s32.u8.u8 d:s32^n/2, a:b64, b:b64, m:b32, #n:u32, !c", 82, 90, product),
    row("wgmma.mma_async.sp.sync{.aligned}<m64k64int>{.satfinite}.s32.u8.u8 d:s32^n/2, a:b32^4, b:b64, m:b32, #n:u32, !c", 82, 90, from_registers),
    row("wgmma.mma_async.sp.sync{.aligned}<m64k64int>{.satfinite}.s32.s8.u8 d:s32^n/2, a:b64, b:b64, m:b32, #n:u32, !c", 84, 90, product),
    row("wgmma.mma_async.sp.sync{.aligned}<m64k64int>{.satfinite}.s32.s8.u8 d:s32^n/2, a:b32^4, b:b64, m:b32, #n:u32, !c", 84, 90, from_registers),
    row("wgmma.mma_async.sp.sync{.aligned}<m64k64int>{.satfinite}.s32.u8.s8 d:s32^n/2, a:b64, b:b64, m:b32, #n:u32, !c", 84, 90, product),
    row("wgmma.mma_async.sp.sync{.aligned}<m64k64int>{.satfinite}.s32.u8.s8 d:s32^n/2, a:b32^4, b:b64, m:b32, #n:u32, !c", 84, 90, from_registers),
];

fn product(m: &Mods) -> Result<Lowering, Reject> {
    wgmma(m, false)
}

fn from_registers(m: &Mods) -> Result<Lowering, Reject> {
    wgmma(m, true)
}

fn wgmma(m: &Mods, a_in_registers: bool) -> Result<Lowering, Reject> {
    let (a, b) = match m.small_types().as_slice() {
        [a, b] => (*a, *b),
        _ => (m.ty(1), m.ty(2)),
    };
    Ok(Lowering::Wgmma(Wgmma {
        mma: Mma {
            shape: m.shape(),
            d: m.ty(0),
            a,
            b,
            c: m.ty(0),
            satfinite: m.has(".satfinite"),
            bits: m.bool_op(),
            wmma: false,
            swapped: [false; 2],
            sparse: m.has(".sp").then_some(0),
        },
        a_in_registers,
        negated: [false; 2],
        transposed: [false; 2],
    }))
}
