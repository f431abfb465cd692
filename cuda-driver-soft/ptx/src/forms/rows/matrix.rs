//! Table rows of matrix operations of a warp: `mma`, `ldmatrix`, `stmatrix`, `movmatrix` and `wmma`.

use crate::forms::mods::Mods;
use crate::forms::row::{Lowering, Reject, Row, op, row};
use crate::ir::{MatrixPart, Mma, Op, Type};

#[rustfmt::skip] // one row per line
pub(super) const ROWS: &[Row] = &[
    // --- mma
    row("mma.sync.aligned.m8n8k4(.row|.col)(.row|.col).f16.f16.f16.f16 d:b32^4, a:b32^2, b:b32^2, c:b32^4", 64, 70, mma),
    row("mma.sync.aligned.m8n8k4(.row|.col)(.row|.col).f32.f16.f16.f16 d:f32^8, a:b32^2, b:b32^2, c:b32^4", 64, 70, mma),
    row("mma.sync.aligned.m8n8k4(.row|.col)(.row|.col).f32.f16.f16.f32 d:f32^8, a:b32^2, b:b32^2, c:f32^8", 64, 70, mma),
    row("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 d:f32^4, a:b32^2, b:b32^1, c:f32^4", 65, 75, mma),
    row("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 d:f32^4, a:b32^4, b:b32^2, c:f32^4", 70, 80, mma),
    row("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 d:b32^2, a:b32^2, b:b32^1, c:b32^2", 65, 75, mma),
    row("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 d:b32^2, a:b32^4, b:b32^2, c:b32^2", 70, 80, mma),
    row("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 d:f32^4, a:b32^2, b:b32^1, c:f32^4", 70, 80, mma),
    row("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 d:f32^4, a:b32^4, b:b32^2, c:f32^4", 70, 80, mma),
    row("mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 d:f32^4, a:b32^2, b:b32^1, c:f32^4", 70, 80, mma),
    row("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 d:f32^4, a:b32^4, b:b32^2, c:f32^4", 70, 80, mma),
    row("mma.sync.aligned.m16n8k32.row.col.f32(.e4m3|.e5m2)(.e4m3|.e5m2).f32 d:f32^4, a:b32^4, b:b32^2, c:f32^4", 84, 89, mma),
    row("mma.sync.aligned.m16n8k16.row.col.f32(.e4m3|.e5m2)(.e4m3|.e5m2).f32 d:f32^4, a:b32^2, b:b32^1, c:f32^4", 87, 89, mma),
    row("mma.sync.aligned.m16n8k32.row.col.f16(.e4m3|.e5m2)(.e4m3|.e5m2).f16 d:b32^2, a:b32^4, b:b32^2, c:b32^2", 87, 89, mma),
    row("mma.sync.aligned.m16n8k16.row.col.f16(.e4m3|.e5m2)(.e4m3|.e5m2).f16 d:b32^2, a:b32^2, b:b32^1, c:b32^2", 87, 89, mma),
    row("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 d:f64^2, a:f64^1, b:f64^1, c:f64^2", 70, 80, mma),
    row("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 d:f64^4, a:f64^2, b:f64^1, c:f64^4", 78, 90, mma),
    row("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 d:f64^4, a:f64^4, b:f64^2, c:f64^4", 78, 90, mma),
    row("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 d:f64^4, a:f64^8, b:f64^4, c:f64^4", 78, 90, mma),
    row("mma.sync.aligned.m8n8k16.row.col{.satfinite}.s32(.u8|.s8)(.u8|.s8).s32 d:s32^2, a:b32^1, b:b32^1, c:s32^2", 65, 75, mma),
    row("mma.sync.aligned.m16n8k16.row.col{.satfinite}.s32(.u8|.s8)(.u8|.s8).s32 d:s32^4, a:b32^2, b:b32^1, c:s32^4", 70, 80, mma),
    row("mma.sync.aligned.m16n8k32.row.col{.satfinite}.s32(.u8|.s8)(.u8|.s8).s32 d:s32^4, a:b32^4, b:b32^2, c:s32^4", 70, 80, mma),
    row("mma.sync.aligned.m8n8k32.row.col{.satfinite}.s32(.u4|.s4)(.u4|.s4).s32 d:s32^2, a:b32^1, b:b32^1, c:s32^2", 65, 75, mma),
    row("mma.sync.aligned.m16n8k32.row.col{.satfinite}.s32(.u4|.s4)(.u4|.s4).s32 d:s32^4, a:b32^2, b:b32^1, c:s32^4", 70, 80, mma),
    row("mma.sync.aligned.m16n8k64.row.col{.satfinite}.s32(.u4|.s4)(.u4|.s4).s32 d:s32^4, a:b32^4, b:b32^2, c:s32^4", 70, 80, mma),
    row("mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.xor.popc d:s32^2, a:b32^1, b:b32^1, c:s32^2", 70, 75, mma),
    row("mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32.xor.popc d:s32^4, a:b32^2, b:b32^1, c:s32^4", 70, 80, mma),
    row("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc d:s32^4, a:b32^4, b:b32^2, c:s32^4", 70, 80, mma),
    row("mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.and.popc d:s32^2, a:b32^1, b:b32^1, c:s32^2", 71, 80, mma),
    row("mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32.and.popc d:s32^4, a:b32^2, b:b32^1, c:s32^4", 71, 80, mma),
    row("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc d:s32^4, a:b32^4, b:b32^2, c:s32^4", 71, 80, mma),
    // --- mma with a sparse A; `m` is the metadata, `#n` the sparsity selector
    row("mma(.sp|.sp::ordered_metadata).sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 d:b32^2, a:b32^2, b:b32^2, c:b32^2, m:b32, #n:u32", 71, 80, sparse),
    row("mma(.sp|.sp::ordered_metadata).sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 d:f32^4, a:b32^2, b:b32^2, c:f32^4, m:b32, #n:u32", 71, 80, sparse),
    row("mma(.sp|.sp::ordered_metadata).sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 d:f32^4, a:b32^2, b:b32^2, c:f32^4, m:b32, #n:u32", 71, 80, sparse),
    row("mma(.sp|.sp::ordered_metadata).sync.aligned.m16n8k32.row.col.f16.f16.f16.f16 d:b32^2, a:b32^4, b:b32^4, c:b32^2, m:b32, #n:u32", 71, 80, sparse),
    row("mma(.sp|.sp::ordered_metadata).sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 d:f32^4, a:b32^4, b:b32^4, c:f32^4, m:b32, #n:u32", 71, 80, sparse),
    row("mma(.sp|.sp::ordered_metadata).sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32 d:f32^4, a:b32^4, b:b32^4, c:f32^4, m:b32, #n:u32", 71, 80, sparse),
    row("mma(.sp|.sp::ordered_metadata).sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 d:f32^4, a:b32^2, b:b32^2, c:f32^4, m:b32, #n:u32", 71, 80, sparse),
    row("mma(.sp|.sp::ordered_metadata).sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32 d:f32^4, a:b32^4, b:b32^4, c:f32^4, m:b32, #n:u32", 71, 80, sparse),
    row("mma(.sp|.sp::ordered_metadata).sync.aligned.m16n8k32.row.col{.satfinite}.s32(.u8|.s8)(.u8|.s8).s32 d:s32^4, a:b32^2, b:b32^2, c:s32^4, m:b32, #n:u32", 71, 80, sparse),
    row("mma(.sp|.sp::ordered_metadata).sync.aligned.m16n8k64.row.col{.satfinite}.s32(.u8|.s8)(.u8|.s8).s32 d:s32^4, a:b32^4, b:b32^4, c:s32^4, m:b32, #n:u32", 71, 80, sparse),
    row("mma(.sp|.sp::ordered_metadata).sync.aligned.m16n8k64.row.col{.satfinite}.s32(.u4|.s4)(.u4|.s4).s32 d:s32^4, a:b32^2, b:b32^2, c:s32^4, m:b32, #n:u32", 71, 80, sparse),
    row("mma(.sp|.sp::ordered_metadata).sync.aligned.m16n8k128.row.col{.satfinite}.s32(.u4|.s4)(.u4|.s4).s32 d:s32^4, a:b32^4, b:b32^4, c:s32^4, m:b32, #n:u32", 71, 80, sparse),
    row("mma(.sp|.sp::ordered_metadata).sync.aligned.m16n8k64.row.col.f32(.e4m3|.e5m2)(.e4m3|.e5m2).f32 d:f32^4, a:b32^4, b:b32^4, c:f32^4, m:b32, #n:u32", 84, 89, sparse),
    // --- 8 x 8 matrices in shared memory and registers
    row("ldmatrix.sync.aligned.m8n8.x1{.trans}{.shared|.shared::cta}.b16 d:b32^1, [a]", 65, 75, |m| load(m, 1)),
    row("stmatrix.sync.aligned.m8n8.x1{.trans}{.shared|.shared::cta}.b16 [a], b:b32^1", 78, 90, |m| store(m, 1)),
    row("ldmatrix.sync.aligned.m8n8.x2{.trans}{.shared|.shared::cta}.b16 d:b32^2, [a]", 65, 75, |m| load(m, 2)),
    row("stmatrix.sync.aligned.m8n8.x2{.trans}{.shared|.shared::cta}.b16 [a], b:b32^2", 78, 90, |m| store(m, 2)),
    row("ldmatrix.sync.aligned.m8n8.x4{.trans}{.shared|.shared::cta}.b16 d:b32^4, [a]", 65, 75, |m| load(m, 4)),
    row("stmatrix.sync.aligned.m8n8.x4{.trans}{.shared|.shared::cta}.b16 [a], b:b32^4", 78, 90, |m| store(m, 4)),
    row("movmatrix.sync.aligned.m8n8.trans.b16 d:b32, a:b32", 78, 75, |_| op(Op::Movmatrix)),
    // --- wmma
    row("wmma.load.a.sync.aligned(.row|.col).m16n16k16{.global|.shared|.shared::cta}.f16 d:b32^8, [a]{, b:u32}", 60, 70, |m| wmma_load(m, MatrixPart::A)),
    row("wmma.load.b.sync.aligned(.row|.col).m16n16k16{.global|.shared|.shared::cta}.f16 d:b32^8, [a]{, b:u32}", 60, 70, |m| wmma_load(m, MatrixPart::B)),
    row("wmma.load.c.sync.aligned(.row|.col).m16n16k16{.global|.shared|.shared::cta}.f16 d:b32^4, [a]{, b:u32}", 60, 70, |m| wmma_load(m, MatrixPart::C)),
    row("wmma.store.d.sync.aligned(.row|.col).m16n16k16{.global|.shared|.shared::cta}.f16 [a], c:b32^4{, b:u32}", 60, 70, wmma_store),
    row("wmma.load.c.sync.aligned(.row|.col).m16n16k16{.global|.shared|.shared::cta}.f32 d:f32^8, [a]{, b:u32}", 60, 70, |m| wmma_load(m, MatrixPart::C)),
    row("wmma.store.d.sync.aligned(.row|.col).m16n16k16{.global|.shared|.shared::cta}.f32 [a], c:f32^8{, b:u32}", 60, 70, wmma_store),
    row("wmma.mma.sync.aligned(.row|.col)(.row|.col).m16n16k16.f16.f16 d:b32^4, a:b32^8, b:b32^8, c:b32^4", 60, 70, wmma_mma),
    row("wmma.mma.sync.aligned(.row|.col)(.row|.col).m16n16k16.f16.f32 d:b32^4, a:b32^8, b:b32^8, c:f32^8", 60, 70, wmma_mma),
    row("wmma.mma.sync.aligned(.row|.col)(.row|.col).m16n16k16.f32.f16 d:f32^8, a:b32^8, b:b32^8, c:b32^4", 60, 70, wmma_mma),
    row("wmma.mma.sync.aligned(.row|.col)(.row|.col).m16n16k16.f32.f32 d:f32^8, a:b32^8, b:b32^8, c:f32^8", 60, 70, wmma_mma),
    row("wmma.load.a.sync.aligned(.row|.col).m16n16k16{.global|.shared|.shared::cta}.u8 d:b32^2, [a]{, b:u32}", 63, 72, |m| wmma_load(m, MatrixPart::A)),
    row("wmma.load.b.sync.aligned(.row|.col).m16n16k16{.global|.shared|.shared::cta}.u8 d:b32^2, [a]{, b:u32}", 63, 72, |m| wmma_load(m, MatrixPart::B)),
    row("wmma.mma.sync.aligned(.row|.col)(.row|.col).m16n16k16.s32.u8.u8.s32{.satfinite} d:s32^8, a:b32^2, b:b32^2, c:s32^8", 63, 72, wmma_mma),
    row("wmma.load.a.sync.aligned(.row|.col).m16n16k16{.global|.shared|.shared::cta}.s8 d:b32^2, [a]{, b:u32}", 63, 72, |m| wmma_load(m, MatrixPart::A)),
    row("wmma.load.b.sync.aligned(.row|.col).m16n16k16{.global|.shared|.shared::cta}.s8 d:b32^2, [a]{, b:u32}", 63, 72, |m| wmma_load(m, MatrixPart::B)),
    row("wmma.mma.sync.aligned(.row|.col)(.row|.col).m16n16k16.s32.s8.s8.s32{.satfinite} d:s32^8, a:b32^2, b:b32^2, c:s32^8", 63, 72, wmma_mma),
    row("wmma.load.c.sync.aligned(.row|.col).m16n16k16{.global|.shared|.shared::cta}.s32 d:s32^8, [a]{, b:u32}", 63, 72, |m| wmma_load(m, MatrixPart::C)),
    row("wmma.store.d.sync.aligned(.row|.col).m16n16k16{.global|.shared|.shared::cta}.s32 [a], c:s32^8{, b:u32}", 63, 72, wmma_store),
    row("wmma.load.a.sync.aligned(.row|.col).m16n16k16{.global|.shared|.shared::cta}.bf16 d:b32^4, [a]{, b:u32}", 70, 80, |m| wmma_load(m, MatrixPart::A)),
    row("wmma.load.b.sync.aligned(.row|.col).m16n16k16{.global|.shared|.shared::cta}.bf16 d:b32^4, [a]{, b:u32}", 70, 80, |m| wmma_load(m, MatrixPart::B)),
    row("wmma.mma.sync.aligned(.row|.col)(.row|.col).m16n16k16.f32.bf16.bf16.f32 d:f32^8, a:b32^4, b:b32^4, c:f32^8", 70, 80, wmma_mma),
    row("wmma.load.a.sync.aligned(.row|.col).m8n32k16{.global|.shared|.shared::cta}.f16 d:b32^8, [a]{, b:u32}", 61, 70, |m| wmma_load(m, MatrixPart::A)),
    row("wmma.load.b.sync.aligned(.row|.col).m8n32k16{.global|.shared|.shared::cta}.f16 d:b32^8, [a]{, b:u32}", 61, 70, |m| wmma_load(m, MatrixPart::B)),
    row("wmma.load.c.sync.aligned(.row|.col).m8n32k16{.global|.shared|.shared::cta}.f16 d:b32^4, [a]{, b:u32}", 61, 70, |m| wmma_load(m, MatrixPart::C)),
    row("wmma.store.d.sync.aligned(.row|.col).m8n32k16{.global|.shared|.shared::cta}.f16 [a], c:b32^4{, b:u32}", 61, 70, wmma_store),
    row("wmma.load.c.sync.aligned(.row|.col).m8n32k16{.global|.shared|.shared::cta}.f32 d:f32^8, [a]{, b:u32}", 61, 70, |m| wmma_load(m, MatrixPart::C)),
    row("wmma.store.d.sync.aligned(.row|.col).m8n32k16{.global|.shared|.shared::cta}.f32 [a], c:f32^8{, b:u32}", 61, 70, wmma_store),
    row("wmma.mma.sync.aligned(.row|.col)(.row|.col).m8n32k16.f16.f16 d:b32^4, a:b32^8, b:b32^8, c:b32^4", 61, 70, wmma_mma),
    row("wmma.mma.sync.aligned(.row|.col)(.row|.col).m8n32k16.f16.f32 d:b32^4, a:b32^8, b:b32^8, c:f32^8", 61, 70, wmma_mma),
    row("wmma.mma.sync.aligned(.row|.col)(.row|.col).m8n32k16.f32.f16 d:f32^8, a:b32^8, b:b32^8, c:b32^4", 61, 70, wmma_mma),
    row("wmma.mma.sync.aligned(.row|.col)(.row|.col).m8n32k16.f32.f32 d:f32^8, a:b32^8, b:b32^8, c:f32^8", 61, 70, wmma_mma),
    row("wmma.load.a.sync.aligned(.row|.col).m8n32k16{.global|.shared|.shared::cta}.u8 d:b32^1, [a]{, b:u32}", 63, 72, |m| wmma_load(m, MatrixPart::A)),
    row("wmma.load.b.sync.aligned(.row|.col).m8n32k16{.global|.shared|.shared::cta}.u8 d:b32^4, [a]{, b:u32}", 63, 72, |m| wmma_load(m, MatrixPart::B)),
    row("wmma.mma.sync.aligned(.row|.col)(.row|.col).m8n32k16.s32.u8.u8.s32{.satfinite} d:s32^8, a:b32^1, b:b32^4, c:s32^8", 63, 72, wmma_mma),
    row("wmma.load.a.sync.aligned(.row|.col).m8n32k16{.global|.shared|.shared::cta}.s8 d:b32^1, [a]{, b:u32}", 63, 72, |m| wmma_load(m, MatrixPart::A)),
    row("wmma.load.b.sync.aligned(.row|.col).m8n32k16{.global|.shared|.shared::cta}.s8 d:b32^4, [a]{, b:u32}", 63, 72, |m| wmma_load(m, MatrixPart::B)),
    row("wmma.mma.sync.aligned(.row|.col)(.row|.col).m8n32k16.s32.s8.s8.s32{.satfinite} d:s32^8, a:b32^1, b:b32^4, c:s32^8", 63, 72, wmma_mma),
    row("wmma.load.c.sync.aligned(.row|.col).m8n32k16{.global|.shared|.shared::cta}.s32 d:s32^8, [a]{, b:u32}", 63, 72, |m| wmma_load(m, MatrixPart::C)),
    row("wmma.store.d.sync.aligned(.row|.col).m8n32k16{.global|.shared|.shared::cta}.s32 [a], c:s32^8{, b:u32}", 63, 72, wmma_store),
    row("wmma.load.a.sync.aligned(.row|.col).m8n32k16{.global|.shared|.shared::cta}.bf16 d:b32^2, [a]{, b:u32}", 70, 80, |m| wmma_load(m, MatrixPart::A)),
    row("wmma.load.b.sync.aligned(.row|.col).m8n32k16{.global|.shared|.shared::cta}.bf16 d:b32^8, [a]{, b:u32}", 70, 80, |m| wmma_load(m, MatrixPart::B)),
    row("wmma.mma.sync.aligned(.row|.col)(.row|.col).m8n32k16.f32.bf16.bf16.f32 d:f32^8, a:b32^2, b:b32^8, c:f32^8", 70, 80, wmma_mma),
    row("wmma.load.a.sync.aligned(.row|.col).m32n8k16{.global|.shared|.shared::cta}.f16 d:b32^8, [a]{, b:u32}", 61, 70, |m| wmma_load(m, MatrixPart::A)),
    row("wmma.load.b.sync.aligned(.row|.col).m32n8k16{.global|.shared|.shared::cta}.f16 d:b32^8, [a]{, b:u32}", 61, 70, |m| wmma_load(m, MatrixPart::B)),
    row("wmma.load.c.sync.aligned(.row|.col).m32n8k16{.global|.shared|.shared::cta}.f16 d:b32^4, [a]{, b:u32}", 61, 70, |m| wmma_load(m, MatrixPart::C)),
    row("wmma.store.d.sync.aligned(.row|.col).m32n8k16{.global|.shared|.shared::cta}.f16 [a], c:b32^4{, b:u32}", 61, 70, wmma_store),
    row("wmma.load.c.sync.aligned(.row|.col).m32n8k16{.global|.shared|.shared::cta}.f32 d:f32^8, [a]{, b:u32}", 61, 70, |m| wmma_load(m, MatrixPart::C)),
    row("wmma.store.d.sync.aligned(.row|.col).m32n8k16{.global|.shared|.shared::cta}.f32 [a], c:f32^8{, b:u32}", 61, 70, wmma_store),
    row("wmma.mma.sync.aligned(.row|.col)(.row|.col).m32n8k16.f16.f16 d:b32^4, a:b32^8, b:b32^8, c:b32^4", 61, 70, wmma_mma),
    row("wmma.mma.sync.aligned(.row|.col)(.row|.col).m32n8k16.f16.f32 d:b32^4, a:b32^8, b:b32^8, c:f32^8", 61, 70, wmma_mma),
    row("wmma.mma.sync.aligned(.row|.col)(.row|.col).m32n8k16.f32.f16 d:f32^8, a:b32^8, b:b32^8, c:b32^4", 61, 70, wmma_mma),
    row("wmma.mma.sync.aligned(.row|.col)(.row|.col).m32n8k16.f32.f32 d:f32^8, a:b32^8, b:b32^8, c:f32^8", 61, 70, wmma_mma),
    row("wmma.load.a.sync.aligned(.row|.col).m32n8k16{.global|.shared|.shared::cta}.u8 d:b32^4, [a]{, b:u32}", 63, 72, |m| wmma_load(m, MatrixPart::A)),
    row("wmma.load.b.sync.aligned(.row|.col).m32n8k16{.global|.shared|.shared::cta}.u8 d:b32^1, [a]{, b:u32}", 63, 72, |m| wmma_load(m, MatrixPart::B)),
    row("wmma.mma.sync.aligned(.row|.col)(.row|.col).m32n8k16.s32.u8.u8.s32{.satfinite} d:s32^8, a:b32^4, b:b32^1, c:s32^8", 63, 72, wmma_mma),
    row("wmma.load.a.sync.aligned(.row|.col).m32n8k16{.global|.shared|.shared::cta}.s8 d:b32^4, [a]{, b:u32}", 63, 72, |m| wmma_load(m, MatrixPart::A)),
    row("wmma.load.b.sync.aligned(.row|.col).m32n8k16{.global|.shared|.shared::cta}.s8 d:b32^1, [a]{, b:u32}", 63, 72, |m| wmma_load(m, MatrixPart::B)),
    row("wmma.mma.sync.aligned(.row|.col)(.row|.col).m32n8k16.s32.s8.s8.s32{.satfinite} d:s32^8, a:b32^4, b:b32^1, c:s32^8", 63, 72, wmma_mma),
    row("wmma.load.c.sync.aligned(.row|.col).m32n8k16{.global|.shared|.shared::cta}.s32 d:s32^8, [a]{, b:u32}", 63, 72, |m| wmma_load(m, MatrixPart::C)),
    row("wmma.store.d.sync.aligned(.row|.col).m32n8k16{.global|.shared|.shared::cta}.s32 [a], c:s32^8{, b:u32}", 63, 72, wmma_store),
    row("wmma.load.a.sync.aligned(.row|.col).m32n8k16{.global|.shared|.shared::cta}.bf16 d:b32^8, [a]{, b:u32}", 70, 80, |m| wmma_load(m, MatrixPart::A)),
    row("wmma.load.b.sync.aligned(.row|.col).m32n8k16{.global|.shared|.shared::cta}.bf16 d:b32^2, [a]{, b:u32}", 70, 80, |m| wmma_load(m, MatrixPart::B)),
    row("wmma.mma.sync.aligned(.row|.col)(.row|.col).m32n8k16.f32.bf16.bf16.f32 d:f32^8, a:b32^8, b:b32^2, c:f32^8", 70, 80, wmma_mma),
    row("wmma.load.a.sync.aligned(.row|.col).m16n16k8{.global|.shared|.shared::cta}.tf32 d:b32^4, [a]{, b:u32}", 70, 80, |m| wmma_load(m, MatrixPart::A)),
    row("wmma.load.b.sync.aligned(.row|.col).m16n16k8{.global|.shared|.shared::cta}.tf32 d:b32^4, [a]{, b:u32}", 70, 80, |m| wmma_load(m, MatrixPart::B)),
    row("wmma.load.c.sync.aligned(.row|.col).m16n16k8{.global|.shared|.shared::cta}.f32 d:f32^8, [a]{, b:u32}", 70, 80, |m| wmma_load(m, MatrixPart::C)),
    row("wmma.load.c.sync.aligned(.row|.col).m16n16k8{.global|.shared|.shared::cta}.s32 d:s32^8, [a]{, b:u32}", 70, 80, |m| wmma_load(m, MatrixPart::C)),
    row("wmma.store.d.sync.aligned(.row|.col).m16n16k8{.global|.shared|.shared::cta}.f32 [a], c:f32^8{, b:u32}", 70, 80, wmma_store),
    row("wmma.store.d.sync.aligned(.row|.col).m16n16k8{.global|.shared|.shared::cta}.s32 [a], c:s32^8{, b:u32}", 70, 80, wmma_store),
    row("wmma.mma.sync.aligned(.row|.col)(.row|.col).m16n16k8.f32.tf32.tf32.f32 d:f32^8, a:b32^4, b:b32^4, c:f32^8", 70, 80, wmma_mma),
    row("wmma.load.a.sync.aligned(.row|.col).m8n8k4{.global|.shared|.shared::cta}.f64 d:f64^1, [a]{, b:u32}", 70, 80, |m| wmma_load(m, MatrixPart::A)),
    row("wmma.load.b.sync.aligned(.row|.col).m8n8k4{.global|.shared|.shared::cta}.f64 d:f64^1, [a]{, b:u32}", 70, 80, |m| wmma_load(m, MatrixPart::B)),
    row("wmma.load.c.sync.aligned(.row|.col).m8n8k4{.global|.shared|.shared::cta}.f64 d:f64^2, [a]{, b:u32}", 70, 80, |m| wmma_load(m, MatrixPart::C)),
    row("wmma.store.d.sync.aligned(.row|.col).m8n8k4{.global|.shared|.shared::cta}.f64 [a], c:f64^2{, b:u32}", 70, 80, wmma_store),
    row("wmma.mma.sync.aligned(.row|.col)(.row|.col).m8n8k4{.rn}.f64.f64.f64.f64 d:f64^2, a:f64^1, b:f64^1, c:f64^2", 70, 80, wmma_mma),
    row("wmma.load.a.sync.aligned.row.m8n8k32{.global|.shared|.shared::cta}(.u4|.s4) d:b32^1, [a]{, b:u32}", 63, 75, |m| wmma_load(m, MatrixPart::A)),
    row("wmma.load.b.sync.aligned.col.m8n8k32{.global|.shared|.shared::cta}(.u4|.s4) d:b32^1, [a]{, b:u32}", 63, 75, |m| wmma_load(m, MatrixPart::B)),
    row("wmma.load.c.sync.aligned(.row|.col).m8n8k32{.global|.shared|.shared::cta}.s32 d:s32^2, [a]{, b:u32}", 63, 75, |m| wmma_load(m, MatrixPart::C)),
    row("wmma.store.d.sync.aligned(.row|.col).m8n8k32{.global|.shared|.shared::cta}.s32 [a], c:s32^2{, b:u32}", 63, 75, wmma_store),
    row("wmma.mma.sync.aligned.row.col.m8n8k32.s32.u4.u4.s32{.satfinite} d:s32^2, a:b32^1, b:b32^1, c:s32^2", 63, 75, wmma_mma),
    row("wmma.mma.sync.aligned.row.col.m8n8k32.s32.s4.s4.s32{.satfinite} d:s32^2, a:b32^1, b:b32^1, c:s32^2", 63, 75, wmma_mma),
    row("wmma.load.a.sync.aligned.row.m8n8k128{.global|.shared|.shared::cta}.b1 d:b32^1, [a]{, b:u32}", 63, 75, |m| wmma_load(m, MatrixPart::A)),
    row("wmma.load.b.sync.aligned.col.m8n8k128{.global|.shared|.shared::cta}.b1 d:b32^1, [a]{, b:u32}", 63, 75, |m| wmma_load(m, MatrixPart::B)),
    row("wmma.load.c.sync.aligned(.row|.col).m8n8k128{.global|.shared|.shared::cta}.s32 d:s32^2, [a]{, b:u32}", 63, 75, |m| wmma_load(m, MatrixPart::C)),
    row("wmma.store.d.sync.aligned(.row|.col).m8n8k128{.global|.shared|.shared::cta}.s32 [a], c:s32^2{, b:u32}", 63, 75, wmma_store),
    row("wmma.mma.xor.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32 d:s32^2, a:b32^1, b:b32^1, c:s32^2", 63, 75, wmma_mma),
    row("wmma.mma.and.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32 d:s32^2, a:b32^1, b:b32^1, c:s32^2", 71, 80, wmma_mma),
];

fn mma(m: &Mods) -> Result<Lowering, Reject> {
    let (a, b, c) = match (m.small_types().as_slice(), m.types()) {
        ([a, b], [_, c]) => (*a, *b, *c),
        _ => (m.ty(1), m.ty(2), m.ty(3)),
    };
    let mut layouts = m.layouts();
    op(Op::Mma(Mma {
        shape: m.shape(),
        d: m.ty(0),
        a,
        b,
        c,
        satfinite: m.has(".satfinite"),
        bits: m.bool_op(),
        wmma: false,
        swapped: [layouts.next() == Some(".col"), layouts.next() == Some(".row")],
        sparse: None,
    }))
}

fn sparse(m: &Mods) -> Result<Lowering, Reject> {
    Ok(match mma(m)? {
        Lowering::Op(Op::Mma(mma)) => Lowering::SparseMma(Mma { sparse: Some(0), ..mma }),
        other => other,
    })
}

fn load(m: &Mods, count: u8) -> Result<Lowering, Reject> {
    Ok(Lowering::Pointers(Op::Ldmatrix {
        count,
        trans: m.has(".trans"),
        space: m.space(),
    }))
}

fn store(m: &Mods, count: u8) -> Result<Lowering, Reject> {
    Ok(Lowering::Pointers(Op::Stmatrix {
        count,
        trans: m.has(".trans"),
        space: m.space(),
    }))
}

fn wmma_load(m: &Mods, part: MatrixPart) -> Result<Lowering, Reject> {
    Ok(Lowering::Pointers(Op::WmmaLd {
        shape: m.shape(),
        part,
        ty: m.small_types().first().copied().unwrap_or(m.ty(0)),
        column: m.has(".col"),
        space: m.space(),
    }))
}

fn wmma_store(m: &Mods) -> Result<Lowering, Reject> {
    Ok(Lowering::Pointers(Op::WmmaSt {
        shape: m.shape(),
        ty: m.ty(0),
        column: m.has(".col"),
        space: m.space(),
    }))
}

/// Lowers `wmma.mma`. If the opcode has only two types, they are those of the result and of the accumulator, and A and
/// B are f16.
fn wmma_mma(m: &Mods) -> Result<Lowering, Reject> {
    let (a, b, c) = match (m.small_types().as_slice(), m.types()) {
        ([a, b], [_, c]) => (*a, *b, *c),
        (_, [_, a, b, c]) => (*a, *b, *c),
        (_, [_, c]) => (Type::F16, Type::F16, *c),
        _ => (Type::F16, Type::F16, Type::F16),
    };
    op(Op::Mma(Mma {
        shape: m.shape(),
        d: m.ty(0),
        a,
        b,
        c,
        satfinite: m.has(".satfinite"),
        bits: m.bool_op(),
        wmma: true,
        swapped: [false; 2],
        sparse: None,
    }))
}
