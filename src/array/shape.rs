//! Shapes of arrays.
#![forbid(unsafe_code)]

use crate::error::Error;
use crate::refusal::Refusal;
use crate::{Result, sys};

/// Dimensions in texels, and flags, of an [`Array`](crate::Array) or [`MipmappedArray`](crate::MipmappedArray).
///
/// ```
/// use cuda_driver::array::ArrayShape;
///
/// let picture = ArrayShape::d2(640, 480);
/// assert_eq!(picture.size(), [640, 480, 1]);
/// // Kernels can write to this one through a surface.
/// let canvas = picture.surface();
/// # assert_ne!(picture, canvas);
/// ```
///
/// A height of 0 makes an array one-dimensional, and a depth of 0 makes it one- or two-dimensional, as in C.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArrayShape {
    width: usize,
    height: usize,
    depth: usize,
    flags: u32,
}

impl ArrayShape {
    #[inline]
    const fn of(width: usize, height: usize, depth: usize, flags: u32) -> Self {
        Self {
            width,
            height,
            depth,
            flags,
        }
    }

    /// Returns a one-dimensional shape.
    #[inline]
    #[must_use]
    pub const fn d1(width: usize) -> Self {
        Self::of(width, 0, 0, 0)
    }

    /// Returns a two-dimensional shape.
    #[inline]
    #[must_use]
    pub const fn d2(width: usize, height: usize) -> Self {
        Self::of(width, height, 0, 0)
    }

    /// Returns a three-dimensional shape.
    #[inline]
    #[must_use]
    pub const fn d3(width: usize, height: usize, depth: usize) -> Self {
        Self::of(width, height, depth, 0)
    }

    /// Returns the shape of `layers` one-dimensional arrays.
    #[inline]
    #[must_use]
    pub const fn layered_d1(width: usize, layers: usize) -> Self {
        Self::of(width, 0, layers, sys::CUDA_ARRAY3D_LAYERED)
    }

    /// Returns the shape of `layers` two-dimensional arrays.
    #[inline]
    #[must_use]
    pub const fn layered_d2(width: usize, height: usize, layers: usize) -> Self {
        Self::of(width, height, layers, sys::CUDA_ARRAY3D_LAYERED)
    }

    /// Returns the shape of a cubemap: six square faces, which copies address as slices.
    #[inline]
    #[must_use]
    pub const fn cubemap(width: usize) -> Self {
        Self::of(width, width, 6, sys::CUDA_ARRAY3D_CUBEMAP)
    }

    /// Returns the shape of several cubemaps, with six slices for each.
    #[inline]
    #[must_use]
    pub const fn layered_cubemap(width: usize, cubemaps: usize) -> Self {
        let flags = sys::CUDA_ARRAY3D_CUBEMAP | sys::CUDA_ARRAY3D_LAYERED;
        Self::of(width, width, cubemaps.saturating_mul(6), flags)
    }

    /// Adds flags: the constants `CUDA_ARRAY3D_*`.
    #[inline]
    #[must_use]
    pub const fn with_flags(mut self, flags: u32) -> Self {
        self.flags |= flags;
        self
    }

    /// Allows surfaces of the array (`CUDA_ARRAY3D_SURFACE_LDST`).
    #[inline]
    #[must_use]
    pub const fn surface(self) -> Self {
        self.with_flags(sys::CUDA_ARRAY3D_SURFACE_LDST)
    }

    /// Allows texture gathers from a two-dimensional array (`CUDA_ARRAY3D_TEXTURE_GATHER`).
    #[inline]
    #[must_use]
    pub const fn gather(self) -> Self {
        self.with_flags(sys::CUDA_ARRAY3D_TEXTURE_GATHER)
    }

    /// Makes the array sparse (`CUDA_ARRAY3D_SPARSE`): it has no memory until
    /// [`Stream::map_arrays`](crate::Stream::map_arrays) maps memory to its tiles. Writes to unmapped tiles have no
    /// effect, and reads give zeros.
    #[inline]
    #[must_use]
    pub const fn sparse(self) -> Self {
        self.with_flags(sys::CUDA_ARRAY3D_SPARSE)
    }

    /// Returns width, height and depth as copies use them: at least 1 each, and with layers and faces as the depth.
    #[inline]
    #[must_use]
    pub const fn size(&self) -> [usize; 3] {
        [
            at_least_one(self.width),
            at_least_one(self.height),
            at_least_one(self.depth),
        ]
    }

    /// Returns the flags.
    #[inline]
    #[must_use]
    pub const fn flags(&self) -> u32 {
        self.flags
    }

    /// Returns C's descriptor of an array of this shape.
    #[inline]
    pub const fn descriptor(&self, format: sys::CUarray_format, channels: u32) -> sys::CUDA_ARRAY3D_DESCRIPTOR {
        sys::CUDA_ARRAY3D_DESCRIPTOR {
            Width: self.width,
            Height: self.height,
            Depth: self.depth,
            Format: format,
            NumChannels: channels,
            Flags: self.flags,
        }
    }
}

impl From<&sys::CUDA_ARRAY3D_DESCRIPTOR> for ArrayShape {
    #[inline]
    fn from(descriptor: &sys::CUDA_ARRAY3D_DESCRIPTOR) -> Self {
        Self::of(descriptor.Width, descriptor.Height, descriptor.Depth, descriptor.Flags)
    }
}

/// Returns an error of `function` if the shape has the flag `CUDA_ARRAY3D_DEFERRED_MAPPING`, with which an array has no
/// memory.
#[inline]
#[track_caller]
pub(super) fn check_mapped(shape: ArrayShape, function: sys::Function) -> Result<()> {
    if shape.flags & sys::CUDA_ARRAY3D_DEFERRED_MAPPING == 0 {
        return Ok(());
    }
    let code = sys::CUresult::CUDA_ERROR_INVALID_VALUE;
    Err(Error::refused(code, function, Refusal::Unmapped))
}

#[inline]
const fn at_least_one(size: usize) -> usize {
    if size == 0 { 1 } else { size }
}
