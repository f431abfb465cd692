//! Texture and surface objects, by handle: the driver binds them, and kernels access their texels.
//!
//! A handle is the number of an object, or the address of a variable of type `.texref` or `.surfref`. Texels are in
//! device memory, and each access is checked like any other.

#![forbid(unsafe_code)]

mod tiles;

pub use tiles::{TileGrid, TileLayout, TileMemory, TilePart, TilePlace, Tiles};

pub use crate::semantics::texture::anisotropy::Anisotropy;
pub use crate::semantics::texture::block::Block;
pub use crate::semantics::texture::place::Address;
pub use crate::semantics::texture::texel::{Channel, Read};

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

/// The dimensions of a texture or surface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextureShape {
    /// One dimension.
    D1,
    /// Two dimensions.
    D2,
    /// Three dimensions.
    D3,
    /// Layers of one dimension.
    A1,
    /// Layers of two dimensions.
    A2,
    /// Six faces of a cube.
    Cube,
    /// Layers of cubes.
    ACube,
    /// Device memory, read as one row.
    Linear,
}

/// One mipmap level of a [`TexelArray`].
#[derive(Clone, Copy, Debug)]
pub struct Plane {
    /// Address of the first texel; its offset if the array has [`Tiles`].
    pub address: u64,
    /// Texels per row, rows, and slices (or layers, or faces); none of them is 0.
    pub size: [u32; 3],
    /// Bytes from one row of texels to the next, or of blocks if texels are stored in blocks.
    pub pitch: u64,
    /// Bytes from one slice to the next.
    pub slice: u64,
}

/// The storage of the texels of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    /// Channel by channel.
    Channels,
    /// Three channels of 10 bits and one of 2 bits, from 0 to 1, in 32 bits. They are read as [`Channel::U16`].
    Packed,
    /// In compressed blocks of 4 x 4 texels.
    Blocks(Block),
}

/// Texels in device memory.
#[derive(Clone, Debug)]
pub struct TexelArray {
    /// The dimensions.
    pub shape: TextureShape,
    /// The type of a channel when it is read.
    pub channel: Channel,
    /// Channels per texel: 1, 2 or 4.
    pub channels: u32,
    /// The storage of the texels.
    pub storage: Storage,
    /// True if integers are always read as numbers from 0 to 1, or if they are signed, from -1 to 1.
    pub normalized: bool,
    /// Mipmap levels, the largest first; at least one.
    pub levels: Vec<Plane>,
    /// The memory of a sparse array, or of an array with deferred mapping.
    pub tiles: Option<Arc<Tiles>>,
}

impl TexelArray {
    /// Returns the size of a texel in bytes, or of a block of texels.
    pub fn texel_bytes(&self) -> u32 {
        match self.storage {
            Storage::Channels => self.channel.bytes() * self.channels,
            Storage::Packed => 4,
            Storage::Blocks(block) => block.bytes(),
        }
    }

    /// Returns the number of texels along each side of a block, which is 1 if texels are stored one by one.
    pub fn block_edge(&self) -> u32 {
        match self.storage {
            Storage::Blocks(_) => 4,
            _ => 1,
        }
    }
}

/// The sampling of a texture, from the fields of `CUDA_TEXTURE_DESC`.
#[derive(Clone, Debug)]
pub struct Sampler {
    /// Address mode of each dimension.
    pub modes: [Address; 3],
    /// True if texels are filtered linearly.
    pub linear: bool,
    /// True if coordinates are normalized to 0..1.
    pub normalized: bool,
    /// The conversion of channels.
    pub read: Read,
    /// Border color.
    pub border: [f32; 4],
    /// True if mipmap levels are filtered linearly.
    pub mip_linear: bool,
    /// Mipmap level bias.
    pub bias: f32,
    /// Lowest and highest mipmap level.
    pub clamp: [f32; 2],
    /// The settings for anisotropic filtering, if there is any.
    pub anisotropy: Option<Anisotropy>,
    /// True if faces of a cube are filtered across their edges.
    pub seamless: bool,
}

/// The object that a handle names.
#[derive(Clone, Debug)]
pub enum Object {
    /// A texture.
    Texture(TexelArray, Sampler),
    /// A surface.
    Surface(TexelArray),
    /// A `.texref` or `.surfref` variable without a texture or surface.
    Nothing,
}

type Objects = RwLock<HashMap<u64, Arc<Object>>>;

fn objects() -> &'static Objects {
    static OBJECTS: OnceLock<Objects> = OnceLock::new();
    OBJECTS.get_or_init(Objects::default)
}

/// Returns a handle that no other object of the process has had.
pub fn new_handle() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

/// Binds an object to a handle, and replaces any object that was bound to it.
pub fn bind(handle: u64, object: Object) {
    objects()
        .write()
        .unwrap_or_else(PoisonError::into_inner)
        .insert(handle, Arc::new(object));
}

/// Removes the object of a handle.
pub fn unbind(handle: u64) {
    objects()
        .write()
        .unwrap_or_else(PoisonError::into_inner)
        .remove(&handle);
}

/// Returns the object of a handle.
pub fn object(handle: u64) -> Option<Arc<Object>> {
    objects()
        .read()
        .unwrap_or_else(PoisonError::into_inner)
        .get(&handle)
        .cloned()
}
