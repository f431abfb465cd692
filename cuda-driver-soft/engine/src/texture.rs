//! Textures and surfaces as kernels see them: by handle, with where their texels are.
//!
//! The driver makes them, and takes them away; a handle is a number of an object, or the address of a variable that stands
//! for a texture or a surface. Texels are in device memory, and each access is checked as any other.

use crate::semantics::texture::place::Address;
use crate::semantics::texture::texel::{Channel, Read};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

/// What texels are arranged as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
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
    /// Device memory, one after the other
    Linear,
}

/// One level of an image.
#[derive(Clone, Copy, Debug)]
pub struct Plane {
    /// Of its first texel.
    pub address: u64,
    /// Texels of a row, rows, and slices, layers or faces; none of them 0.
    pub size: [u32; 3],
    /// Bytes from a row to the next.
    pub pitch: u64,
    /// Bytes from a slice to the next.
    pub slice: u64,
}

/// Texels in memory.
#[derive(Clone, Debug)]
pub struct Image {
    pub shape: Shape,
    pub channel: Channel,
    /// Channels of a texel: 1, 2 or 4.
    pub channels: u32,
    /// The largest first; at least one.
    pub levels: Vec<Plane>,
}

impl Image {
    /// Bytes of a texel.
    pub fn texel_bytes(&self) -> u32 {
        self.channel.bytes() * self.channels
    }
}

/// How texels are read.
#[derive(Clone, Debug)]
pub struct Sampler {
    pub modes: [Address; 3],
    /// Texels are filtered.
    pub linear: bool,
    /// Coordinates go from 0 to 1.
    pub normalized: bool,
    pub read: Read,
    pub border: [f32; 4],
    /// Levels are mixed.
    pub mip_linear: bool,
    pub bias: f32,
    /// The lowest and the highest level.
    pub clamp: [f32; 2],
    /// Faces of a cube are filtered across their edges.
    pub seamless: bool,
}

/// What a handle means.
#[derive(Clone, Debug)]
pub enum Object {
    Texture(Image, Sampler),
    Surface(Image),
    /// Nothing yet: a variable that nothing is bound to.
    Nothing,
}

type Objects = RwLock<HashMap<u64, Arc<Object>>>;

fn objects() -> &'static Objects {
    static OBJECTS: OnceLock<Objects> = OnceLock::new();
    OBJECTS.get_or_init(Objects::default)
}

/// A handle that no other object of the process has had.
pub fn new_handle() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

/// Makes a handle mean this, from now on.
pub fn bind(handle: u64, object: Object) {
    objects()
        .write()
        .unwrap_or_else(PoisonError::into_inner)
        .insert(handle, Arc::new(object));
}

/// Makes a handle mean nothing.
pub fn unbind(handle: u64) {
    objects()
        .write()
        .unwrap_or_else(PoisonError::into_inner)
        .remove(&handle);
}

/// What a handle means now.
pub fn object(handle: u64) -> Option<Arc<Object>> {
    objects()
        .read()
        .unwrap_or_else(PoisonError::into_inner)
        .get(&handle)
        .cloned()
}
