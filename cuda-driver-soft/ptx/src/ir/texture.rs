//! What `tex`, `tld4`, `suld`, `sust`, `sured` and the queries do.

use super::{AtomOp, Type};

/// How texels lie, and with it what the coordinates are.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Geometry {
    D1,
    D2,
    D3,
    /// Layers of one dimension
    A1,
    /// Layers of two dimensions
    A2,
    Cube,
    /// Layers of cubes
    ACube,
}

impl Geometry {
    /// The layer is the first coordinate.
    pub const fn is_layered(self) -> bool {
        matches!(self, Geometry::A1 | Geometry::A2 | Geometry::ACube)
    }

    /// How many coordinates there are, but for the layer.
    pub const fn axes(self) -> usize {
        match self {
            Geometry::D1 | Geometry::A1 => 1,
            Geometry::D2 | Geometry::A2 => 2,
            Geometry::D3 | Geometry::Cube | Geometry::ACube => 3,
        }
    }

    /// Elements of the vector that the coordinates are written as; those behind the coordinates mean nothing.
    pub const fn written(self) -> u8 {
        match self {
            Geometry::D1 => 1,
            Geometry::D2 | Geometry::A1 => 2,
            _ => 4,
        }
    }
}

/// Which level of a mipmap is sampled, or that four texels are gathered.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// `tex`, `tex.base`
    Base,
    /// `tex.level`: one source
    Given,
    /// `tex.grad`: so many sources along x, and as many along y
    Gradient(u8),
    /// `tld4`: this component of each of four texels
    Gather(u8),
}

/// `tex` and `tld4`. Sources: the handle, the vector of coordinates as it is written, the level or the gradients, the offsets.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tex {
    pub geometry: Geometry,
    pub level: Level,
    /// Of the result: u32, s32, f32, f16, or f16x2 for two registers
    pub ty: Type,
    /// s32 or f32
    pub coordinates: Type,
    /// Offsets that are added to the texel's place; those behind the axes mean nothing.
    pub offsets: u8,
}

/// What is done where a surface ends.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bounds {
    Trap,
    Clamp,
    Zero,
}

/// What an instruction does to a surface.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SurfaceOp {
    Load,
    Store,
    Reduce(AtomOp),
}

/// `suld`, `sust`, `sured`. Sources: the handle, the vector of coordinates as it is written, the values.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Surface {
    pub op: SurfaceOp,
    pub geometry: Geometry,
    /// Of one element
    pub ty: Type,
    pub vec: u8,
    pub bounds: Bounds,
    /// `.p`: x counts texels, and values are converted to the surface's format. Else x counts bytes.
    pub formatted: bool,
}

/// What `txq` and `suq` ask.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Query {
    Width,
    Height,
    Depth,
}

/// What `istypep` asks.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opaque {
    Texture,
    Sampler,
    Surface,
}
