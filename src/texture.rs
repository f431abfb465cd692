//! Textures and surfaces: objects through which kernels access arrays and device memory, and texture and surface
//! references of older modules.

mod descriptor;
mod object;
mod reference;
mod resource;
mod surface;
mod surface_reference;

pub use descriptor::{ResourceView, TextureDescriptor};
pub use object::{Texture, TextureHandle};
pub use reference::TextureReference;
pub use resource::TextureResource;
pub use surface::{Surface, SurfaceHandle};
pub use surface_reference::SurfaceReference;
