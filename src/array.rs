//! Arrays and mipmapped arrays: texels that kernels access through textures and surfaces.

mod mipmapped;
mod object;
mod shape;
mod texel;

pub use mipmapped::MipmappedArray;
pub use object::Array;
pub(crate) use object::{Inner, Keep};
pub use shape::ArrayShape;
pub use texel::Texel;
pub(crate) use texel::check_size;
