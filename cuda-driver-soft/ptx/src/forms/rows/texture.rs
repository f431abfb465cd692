//! Table rows of textures and surfaces.

use crate::forms::mods::Mods;
use crate::forms::row::{Lowering, Reject, Row, bad_types, row};
use crate::ir::{Bounds, Level, Op, Opaque, Query, Surface, SurfaceOp, Tex};

#[rustfmt::skip] // one row per line
pub(super) const ROWS: &[Row] = &[
    // --- a texel, or the filtered value of several, as four elements or as two pairs of halves
    row("tex{.base}(.1d|.a1d).v4(.u32|.s32|.f32|.f16)(.s32|.f32) d|p:1?^4, [a]", 20, 20, |m| tex(m, Level::Base)),
    row("tex{.base}(.1d|.a1d).v4(.u32|.s32|.f32|.f16)(.s32|.f32) d|p:1?^4, [a], b:s32^1", 43, 30, |m| tex(m, Level::Base)),
    row("tex{.base}(.2d|.a2d).v4(.u32|.s32|.f32|.f16)(.s32|.f32) d|p:1?^4, [a]", 20, 20, |m| tex(m, Level::Base)),
    row("tex{.base}(.2d|.a2d).v4(.u32|.s32|.f32|.f16)(.s32|.f32) d|p:1?^4, [a], b:s32^2", 43, 30, |m| tex(m, Level::Base)),
    row("tex{.base}.3d.v4(.u32|.s32|.f32|.f16)(.s32|.f32) d|p:1?^4, [a]", 20, 20, |m| tex(m, Level::Base)),
    row("tex{.base}.3d.v4(.u32|.s32|.f32|.f16)(.s32|.f32) d|p:1?^4, [a], b:s32^4", 43, 30, |m| tex(m, Level::Base)),
    row("tex{.base}(.cube|.acube).v4(.u32|.s32|.f32|.f16).f32 d|p:1?^4, [a]", 30, 20, |m| tex(m, Level::Base)),
    row("tex{.base}(.1d|.a1d).v2.f16x2(.s32|.f32) d|p:1?^2, [a]", 20, 20, |m| tex(m, Level::Base)),
    row("tex{.base}(.1d|.a1d).v2.f16x2(.s32|.f32) d|p:1?^2, [a], b:s32^1", 43, 30, |m| tex(m, Level::Base)),
    row("tex{.base}(.2d|.a2d).v2.f16x2(.s32|.f32) d|p:1?^2, [a]", 20, 20, |m| tex(m, Level::Base)),
    row("tex{.base}(.2d|.a2d).v2.f16x2(.s32|.f32) d|p:1?^2, [a], b:s32^2", 43, 30, |m| tex(m, Level::Base)),
    row("tex{.base}.3d.v2.f16x2(.s32|.f32) d|p:1?^2, [a]", 20, 20, |m| tex(m, Level::Base)),
    row("tex{.base}.3d.v2.f16x2(.s32|.f32) d|p:1?^2, [a], b:s32^4", 43, 30, |m| tex(m, Level::Base)),
    row("tex{.base}(.cube|.acube).v2.f16x2.f32 d|p:1?^2, [a]", 30, 20, |m| tex(m, Level::Base)),
    // --- the same from a given level of a mipmap
    row("tex.level(.1d|.a1d).v4(.u32|.s32|.f32|.f16)(.s32|.f32) d|p:1?^4, [a], b", 31, 20, |m| tex(m, Level::Given)),
    row("tex.level(.1d|.a1d).v4(.u32|.s32|.f32|.f16)(.s32|.f32) d|p:1?^4, [a], b, c:s32^1", 43, 30, |m| tex(m, Level::Given)),
    row("tex.level(.2d|.a2d).v4(.u32|.s32|.f32|.f16)(.s32|.f32) d|p:1?^4, [a], b", 31, 20, |m| tex(m, Level::Given)),
    row("tex.level(.2d|.a2d).v4(.u32|.s32|.f32|.f16)(.s32|.f32) d|p:1?^4, [a], b, c:s32^2", 43, 30, |m| tex(m, Level::Given)),
    row("tex.level.3d.v4(.u32|.s32|.f32|.f16)(.s32|.f32) d|p:1?^4, [a], b", 31, 20, |m| tex(m, Level::Given)),
    row("tex.level.3d.v4(.u32|.s32|.f32|.f16)(.s32|.f32) d|p:1?^4, [a], b, c:s32^4", 43, 30, |m| tex(m, Level::Given)),
    row("tex.level(.cube|.acube).v4(.u32|.s32|.f32|.f16).f32 d|p:1?^4, [a], b", 31, 20, |m| tex(m, Level::Given)),
    row("tex.level(.1d|.a1d).v2.f16x2(.s32|.f32) d|p:1?^2, [a], b", 31, 20, |m| tex(m, Level::Given)),
    row("tex.level(.1d|.a1d).v2.f16x2(.s32|.f32) d|p:1?^2, [a], b, c:s32^1", 43, 30, |m| tex(m, Level::Given)),
    row("tex.level(.2d|.a2d).v2.f16x2(.s32|.f32) d|p:1?^2, [a], b", 31, 20, |m| tex(m, Level::Given)),
    row("tex.level(.2d|.a2d).v2.f16x2(.s32|.f32) d|p:1?^2, [a], b, c:s32^2", 43, 30, |m| tex(m, Level::Given)),
    row("tex.level.3d.v2.f16x2(.s32|.f32) d|p:1?^2, [a], b", 31, 20, |m| tex(m, Level::Given)),
    row("tex.level.3d.v2.f16x2(.s32|.f32) d|p:1?^2, [a], b, c:s32^4", 43, 30, |m| tex(m, Level::Given)),
    row("tex.level(.cube|.acube).v2.f16x2.f32 d|p:1?^2, [a], b", 31, 20, |m| tex(m, Level::Given)),
    // --- the same from the level that gradients select
    row("tex.grad(.1d|.a1d).v4(.u32|.s32|.f32|.f16)(.s32|.f32) d|p:1?^4, [a], b:f32^1, c:f32^1", 31, 20, |m| tex(m, Level::Gradient(1))),
    row("tex.grad(.1d|.a1d).v4(.u32|.s32|.f32|.f16)(.s32|.f32) d|p:1?^4, [a], b:f32^1, c:f32^1, a:s32^1", 43, 30, |m| tex(m, Level::Gradient(1))),
    row("tex.grad(.2d|.a2d).v4(.u32|.s32|.f32|.f16)(.s32|.f32) d|p:1?^4, [a], b:f32^2, c:f32^2", 31, 20, |m| tex(m, Level::Gradient(2))),
    row("tex.grad(.2d|.a2d).v4(.u32|.s32|.f32|.f16)(.s32|.f32) d|p:1?^4, [a], b:f32^2, c:f32^2, a:s32^2", 43, 30, |m| tex(m, Level::Gradient(2))),
    row("tex.grad.3d.v4(.u32|.s32|.f32|.f16)(.s32|.f32) d|p:1?^4, [a], b:f32^4, c:f32^4", 31, 20, |m| tex(m, Level::Gradient(4))),
    row("tex.grad.3d.v4(.u32|.s32|.f32|.f16)(.s32|.f32) d|p:1?^4, [a], b:f32^4, c:f32^4, a:s32^4", 43, 30, |m| tex(m, Level::Gradient(4))),
    row("tex.grad(.cube|.acube).v4(.u32|.s32|.f32|.f16).f32 d|p:1?^4, [a], b:f32^4, c:f32^4", 43, 20, |m| tex(m, Level::Gradient(4))),
    row("tex.grad(.1d|.a1d).v2.f16x2(.s32|.f32) d|p:1?^2, [a], b:f32^1, c:f32^1", 31, 20, |m| tex(m, Level::Gradient(1))),
    row("tex.grad(.1d|.a1d).v2.f16x2(.s32|.f32) d|p:1?^2, [a], b:f32^1, c:f32^1, a:s32^1", 43, 30, |m| tex(m, Level::Gradient(1))),
    row("tex.grad(.2d|.a2d).v2.f16x2(.s32|.f32) d|p:1?^2, [a], b:f32^2, c:f32^2", 31, 20, |m| tex(m, Level::Gradient(2))),
    row("tex.grad(.2d|.a2d).v2.f16x2(.s32|.f32) d|p:1?^2, [a], b:f32^2, c:f32^2, a:s32^2", 43, 30, |m| tex(m, Level::Gradient(2))),
    row("tex.grad.3d.v2.f16x2(.s32|.f32) d|p:1?^2, [a], b:f32^4, c:f32^4", 31, 20, |m| tex(m, Level::Gradient(4))),
    row("tex.grad.3d.v2.f16x2(.s32|.f32) d|p:1?^2, [a], b:f32^4, c:f32^4, a:s32^4", 43, 30, |m| tex(m, Level::Gradient(4))),
    row("tex.grad(.cube|.acube).v2.f16x2.f32 d|p:1?^2, [a], b:f32^4, c:f32^4", 43, 20, |m| tex(m, Level::Gradient(4))),
    // --- the same with a reference value for depth textures; not implemented
    row("tex{.base}(.1d|.a1d).v4(.u32|.s32|.f32|.f16).f32 d|p:1?^4, [a], a:f32", 43, 30, unimplemented),
    row("tex{.base}(.1d|.a1d).v4(.u32|.s32|.f32|.f16).f32 d|p:1?^4, [a], c:s32^1, a:f32", 43, 30, unimplemented),
    row("tex{.base}(.2d|.a2d).v4(.u32|.s32|.f32|.f16).f32 d|p:1?^4, [a], a:f32", 43, 30, unimplemented),
    row("tex{.base}(.2d|.a2d).v4(.u32|.s32|.f32|.f16).f32 d|p:1?^4, [a], c:s32^2, a:f32", 43, 30, unimplemented),
    row("tex{.base}(.cube|.acube).v4(.u32|.s32|.f32|.f16).f32 d|p:1?^4, [a], a:f32", 43, 30, unimplemented),
    row("tex.level(.1d|.a1d).v4(.u32|.s32|.f32|.f16).f32 d|p:1?^4, [a], b, a:f32", 43, 30, unimplemented),
    row("tex.level(.1d|.a1d).v4(.u32|.s32|.f32|.f16).f32 d|p:1?^4, [a], b, c:s32^1, a:f32", 43, 30, unimplemented),
    row("tex.level(.2d|.a2d).v4(.u32|.s32|.f32|.f16).f32 d|p:1?^4, [a], b, a:f32", 43, 30, unimplemented),
    row("tex.level(.2d|.a2d).v4(.u32|.s32|.f32|.f16).f32 d|p:1?^4, [a], b, c:s32^2, a:f32", 43, 30, unimplemented),
    row("tex.level(.cube|.acube).v4(.u32|.s32|.f32|.f16).f32 d|p:1?^4, [a], b, a:f32", 43, 30, unimplemented),
    row("tex.grad(.1d|.a1d).v4(.u32|.s32|.f32|.f16).f32 d|p:1?^4, [a], b:f32^1, c:f32^1, a:f32", 43, 30, unimplemented),
    row("tex.grad(.1d|.a1d).v4(.u32|.s32|.f32|.f16).f32 d|p:1?^4, [a], b:f32^1, c:f32^1, c:s32^1, a:f32", 43, 30, unimplemented),
    row("tex.grad(.2d|.a2d).v4(.u32|.s32|.f32|.f16).f32 d|p:1?^4, [a], b:f32^2, c:f32^2, a:f32", 43, 30, unimplemented),
    row("tex.grad(.2d|.a2d).v4(.u32|.s32|.f32|.f16).f32 d|p:1?^4, [a], b:f32^2, c:f32^2, c:s32^2, a:f32", 43, 30, unimplemented),
    row("tex.grad(.cube|.acube).v4(.u32|.s32|.f32|.f16).f32 d|p:1?^4, [a], b:f32^4, c:f32^4, a:f32", 43, 30, unimplemented),
    row("tex{.base}(.1d|.a1d).v2.f16x2.f32 d|p:1?^2, [a], a:f32", 43, 30, unimplemented),
    row("tex{.base}(.1d|.a1d).v2.f16x2.f32 d|p:1?^2, [a], c:s32^1, a:f32", 43, 30, unimplemented),
    row("tex{.base}(.2d|.a2d).v2.f16x2.f32 d|p:1?^2, [a], a:f32", 43, 30, unimplemented),
    row("tex{.base}(.2d|.a2d).v2.f16x2.f32 d|p:1?^2, [a], c:s32^2, a:f32", 43, 30, unimplemented),
    row("tex{.base}(.cube|.acube).v2.f16x2.f32 d|p:1?^2, [a], a:f32", 43, 30, unimplemented),
    row("tex.level(.1d|.a1d).v2.f16x2.f32 d|p:1?^2, [a], b, a:f32", 43, 30, unimplemented),
    row("tex.level(.1d|.a1d).v2.f16x2.f32 d|p:1?^2, [a], b, c:s32^1, a:f32", 43, 30, unimplemented),
    row("tex.level(.2d|.a2d).v2.f16x2.f32 d|p:1?^2, [a], b, a:f32", 43, 30, unimplemented),
    row("tex.level(.2d|.a2d).v2.f16x2.f32 d|p:1?^2, [a], b, c:s32^2, a:f32", 43, 30, unimplemented),
    row("tex.level(.cube|.acube).v2.f16x2.f32 d|p:1?^2, [a], b, a:f32", 43, 30, unimplemented),
    row("tex.grad(.1d|.a1d).v2.f16x2.f32 d|p:1?^2, [a], b:f32^1, c:f32^1, a:f32", 43, 30, unimplemented),
    row("tex.grad(.1d|.a1d).v2.f16x2.f32 d|p:1?^2, [a], b:f32^1, c:f32^1, c:s32^1, a:f32", 43, 30, unimplemented),
    row("tex.grad(.2d|.a2d).v2.f16x2.f32 d|p:1?^2, [a], b:f32^2, c:f32^2, a:f32", 43, 30, unimplemented),
    row("tex.grad(.2d|.a2d).v2.f16x2.f32 d|p:1?^2, [a], b:f32^2, c:f32^2, c:s32^2, a:f32", 43, 30, unimplemented),
    row("tex.grad(.cube|.acube).v2.f16x2.f32 d|p:1?^2, [a], b:f32^4, c:f32^4, a:f32", 43, 30, unimplemented),
    // --- one component of each of the four texels that would be filtered
    row("tld4(.r|.g|.b|.a).2d.v4(.u32|.s32|.f32).f32 d|p:1?^4, [a]", 22, 20, gather),
    row("tld4(.r|.g|.b|.a).2d.v4(.u32|.s32|.f32).f32 d|p:1?^4, [a], b:s32^2", 43, 30, gather),
    row("tld4(.r|.g|.b|.a).a2d.v4(.u32|.s32|.f32).f32 d|p:1?^4, [a]", 43, 30, gather),
    row("tld4(.r|.g|.b|.a).a2d.v4(.u32|.s32|.f32).f32 d|p:1?^4, [a], b:s32^2", 43, 30, gather),
    row("tld4(.r|.g|.b|.a)(.cube|.acube).v4(.u32|.s32|.f32).f32 d|p:1?^4, [a]", 43, 30, gather),
    row("tld4(.r|.g|.b|.a)(.2d|.a2d|.cube|.acube).v4(.u32|.s32|.f32).f32 d|p:1?^4, [a], c:f32", 43, 30, unimplemented),
    // --- queries
    row("txq(.width|.height|.depth).b32 d, [a]", 20, 20, |m| query(m, false)),
    row("txq.level(.width|.height|.depth).b32 d, [a], b", 43, 30, |m| query(m, false)),
    row("suq(.width|.height|.depth).b32 d, [a]", 21, 20, |m| query(m, true)),
    row("istypep(.texref|.samplerref|.surfref) p, a:u64", 40, 30, istypep),
    // --- surfaces
    row("suld.b(.1d|.2d|.3d|.a1d|.a2d){.ca|.cg|.cs|.cv}(.b8|.b16|.b32|.b64)(.trap|.clamp|.zero) d~*, [a]", 15, 20, |m| surface(m, SurfaceOp::Load)),
    row("suld.b(.1d|.2d|.3d|.a1d|.a2d){.ca|.cg|.cs|.cv}(.v2|.v4)(.b8|.b16|.b32|.b64)(.trap|.clamp|.zero) d~*, [a]", 15, 20, |m| surface(m, SurfaceOp::Load)),
    row("sust.b(.1d|.2d|.3d|.a1d|.a2d){<wop>}(.b8|.b16|.b32|.b64)(.trap|.clamp|.zero) [a], b~*", 15, 20, |m| surface(m, SurfaceOp::Store)),
    row("sust.b(.1d|.2d|.3d|.a1d|.a2d){<wop>}(.v2|.v4)(.b8|.b16|.b32|.b64)(.trap|.clamp|.zero) [a], b~*", 15, 20, |m| surface(m, SurfaceOp::Store)),
    row("sust.p(.1d|.2d|.3d){<wop>}.b32(.trap|.clamp|.zero) [a], b~*", 20, 20, |m| surface(m, SurfaceOp::Store)),
    row("sust.p(.a1d|.a2d){<wop>}.b32(.trap|.clamp|.zero) [a], b~*", 41, 30, |m| surface(m, SurfaceOp::Store)),
    row("sust.p(.1d|.2d|.3d){<wop>}(.v2|.v4).b32(.trap|.clamp|.zero) [a], b~*", 20, 20, |m| surface(m, SurfaceOp::Store)),
    row("sust.p(.a1d|.a2d){<wop>}(.v2|.v4).b32(.trap|.clamp|.zero) [a], b~*", 41, 30, |m| surface(m, SurfaceOp::Store)),
    row("sured.b.add(.1d|.2d|.3d)(.u32|.s32|.u64)(.trap|.clamp|.zero) [a], b", 20, 20, reduce),
    row("sured.b(.min|.max)(.1d|.2d|.3d)(.u32|.s32)(.trap|.clamp|.zero) [a], b", 20, 20, reduce),
    row("sured.b(.min|.max)(.1d|.2d|.3d)(.u64|.s64)(.trap|.clamp|.zero) [a], b", 81, 50, reduce),
    row("sured.b(.and|.or)(.1d|.2d|.3d).b32(.trap|.clamp|.zero) [a], b", 20, 20, reduce),
    row("sured.p(.add|.min|.max|.and|.or)(.1d|.2d|.3d).b32(.trap|.clamp|.zero) [a], b", 20, 20, reduce),
    row("sured.p(.min|.max)(.1d|.2d|.3d).b64(.trap|.clamp|.zero) [a], b", 81, 50, reduce),
];

fn tex(m: &Mods, level: Level) -> Result<Lowering, Reject> {
    Ok(Lowering::Texture(Op::Tex(Tex {
        geometry: m.geometry(),
        level,
        ty: m.ty(0),
        coordinates: m.ty(1),
        offsets: 0,
    })))
}

fn gather(m: &Mods) -> Result<Lowering, Reject> {
    let components = [".r", ".g", ".b", ".a"];
    let component = components.iter().position(|c| m.has(c)).unwrap_or(0);
    tex(m, Level::Gather(component as u8))
}

fn unimplemented(_: &Mods) -> Result<Lowering, Reject> {
    Ok(Lowering::Unsupported)
}

fn query(m: &Mods, surface: bool) -> Result<Lowering, Reject> {
    let query = match (m.has(".width"), m.has(".height")) {
        (true, _) => Query::Width,
        (_, true) => Query::Height,
        _ => Query::Depth,
    };
    Ok(Lowering::Texture(Op::Query { query, surface }))
}

fn istypep(m: &Mods) -> Result<Lowering, Reject> {
    let queried = match (m.has(".texref"), m.has(".surfref")) {
        (true, _) => Opaque::Texture,
        (_, true) => Opaque::Surface,
        _ => Opaque::Sampler,
    };
    Ok(Lowering::Op(Op::Istypep(queried)))
}

fn surface(m: &Mods, op: SurfaceOp) -> Result<Lowering, Reject> {
    let (ty, vec) = (m.ty(0), m.vec());
    if ty.size() * u32::from(vec) > 16 {
        return Err(Reject("Vector type too large, exceeds 128 bit limit".to_owned()));
    }
    let bounds = match (m.has(".trap"), m.has(".clamp")) {
        (true, _) => Bounds::Trap,
        (_, true) => Bounds::Clamp,
        _ => Bounds::Zero,
    };
    Ok(Lowering::Texture(Op::Surface(Surface {
        op,
        geometry: m.geometry(),
        ty,
        vec,
        bounds,
        formatted: m.has(".p"),
    })))
}

fn reduce(m: &Mods) -> Result<Lowering, Reject> {
    if m.types().len() != 1 {
        return bad_types("sured");
    }
    surface(m, SurfaceOp::Reduce(m.atom_op()))
}
