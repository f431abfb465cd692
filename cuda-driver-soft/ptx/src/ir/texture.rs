//! Modifiers of texture and surface instructions: `tex`, `tld4`, `suld`, `sust`, `sured` and the queries.

use super::types::{AtomOp, Type};

/// The geometry of a texture or surface, which determines its coordinates.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Geometry {
    D1,
    D2,
    D3,
    /// Layers of one dimension each.
    A1,
    /// Layers of two dimensions each.
    A2,
    Cube,
    /// A layered cubemap.
    ACube,
}

impl Geometry {
    /// Returns true if the first coordinate is the layer.
    pub const fn is_layered(self) -> bool {
        matches!(self, Geometry::A1 | Geometry::A2 | Geometry::ACube)
    }

    /// Returns the number of coordinates without the layer.
    pub const fn axes(self) -> usize {
        match self {
            Geometry::D1 | Geometry::A1 => 1,
            Geometry::D2 | Geometry::A2 => 2,
            Geometry::D3 | Geometry::Cube | Geometry::ACube => 3,
        }
    }

    /// Returns the number of elements of the vector of coordinates in PTX. Elements after the coordinates are ignored.
    pub const fn written(self) -> u8 {
        match self {
            Geometry::D1 => 1,
            Geometry::D2 | Geometry::A1 => 2,
            _ => 4,
        }
    }
}

/// The level of a mipmap that is sampled, or a gather of four texels.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// `tex`, `tex.base`
    Base,
    /// `tex.level`: one source
    Given,
    /// `tex.grad`: the number of sources of each of the two gradients
    Gradient(u8),
    /// `tld4`: the component that is read from four texels, 0 to 3 for red, green, blue and alpha
    Gather(u8),
}

/// `tex` and `tld4`. Sources: the handle, the vector of coordinates with all its elements, the level or the gradients,
/// the offsets.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tex {
    pub geometry: Geometry,
    pub level: Level,
    /// Type of the result: u32, s32, f32, f16, or f16x2 for two registers
    pub ty: Type,
    /// Type of the coordinates: s32 or f32
    pub coordinates: Type,
    /// Number of offset sources, which are added to the texel's coordinates. Offsets after the axes are ignored.
    pub offsets: u8,
}

/// The effect of an access outside of a surface.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bounds {
    Trap,
    Clamp,
    Zero,
}

/// The operation of a surface instruction.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SurfaceOp {
    Load,
    Store,
    Reduce(AtomOp),
}

/// `suld`, `sust`, `sured`. Sources: the handle, the vector of coordinates with all its elements, the values.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Surface {
    pub op: SurfaceOp,
    pub geometry: Geometry,
    /// Type of one element
    pub ty: Type,
    pub vec: u8,
    pub bounds: Bounds,
    /// True for `.p`: x is in texels, and values are converted to the surface's format. For `.b`, x is in bytes.
    pub formatted: bool,
}

/// The property that `txq` and `suq` return.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Query {
    Width,
    Height,
    Depth,
}

/// A kind of opaque object: the type of a variable such as `.texref`, and the kind that `istypep` tests for.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opaque {
    Texture,
    Sampler,
    Surface,
}
