//! Descriptors of textures and views of their resources.
#![forbid(unsafe_code)]

use core::ops::RangeInclusive;

use crate::array::ArrayShape;
use crate::sys::{self, CUaddress_mode, CUfilter_mode};

/// The sampling options of a [`Texture`](crate::Texture): addressing, filtering and conversion of texels.
///
/// ```
/// use cuda_driver::sys::{CUaddress_mode, CUfilter_mode};
/// use cuda_driver::texture::TextureDescriptor;
///
/// let smooth = TextureDescriptor::new()
///     .address_mode(CUaddress_mode::CU_TR_ADDRESS_MODE_BORDER)
///     .filter_mode(CUfilter_mode::CU_TR_FILTER_MODE_LINEAR)
///     .normalized_coordinates();
/// ```
///
/// Without options, coordinates are in texels and clamped to the edge, and kernels read the nearest texel. Integers of
/// 8 and 16 bits become floats, from 0 to 1 if unsigned and from -1 to 1 if signed; other texels keep their values.
#[derive(Debug, Clone, Copy)]
#[must_use]
pub struct TextureDescriptor {
    raw: sys::CUDA_TEXTURE_DESC,
}

impl TextureDescriptor {
    /// Returns the descriptor without options.
    #[inline]
    pub fn new() -> Self {
        Self {
            raw: sys::CUDA_TEXTURE_DESC {
                addressMode: [CUaddress_mode::CU_TR_ADDRESS_MODE_CLAMP; 3],
                ..Default::default()
            },
        }
    }

    /// Sets the treatment of coordinates outside the texture, in all dimensions. `WRAP` and `MIRROR` need
    /// [normalized coordinates](Self::normalized_coordinates); otherwise they clamp.
    #[inline]
    pub const fn address_mode(self, mode: CUaddress_mode) -> Self {
        self.address_modes([mode; 3])
    }

    /// Sets the treatment of coordinates outside the texture, for x, y and z.
    #[inline]
    pub const fn address_modes(mut self, modes: [CUaddress_mode; 3]) -> Self {
        self.raw.addressMode = modes;
        self
    }

    /// Sets the filter: the nearest texel, or linear interpolation, which needs texels that are read as floats.
    #[inline]
    pub const fn filter_mode(mut self, mode: CUfilter_mode) -> Self {
        self.raw.filterMode = mode;
        self
    }

    /// Adds flags, the constants `CU_TRSF_*`.
    #[inline]
    pub const fn flags(mut self, flags: u32) -> Self {
        self.raw.flags |= flags;
        self
    }

    /// Reads integers of 8 and 16 bits as integers (`CU_TRSF_READ_AS_INTEGER`).
    #[inline]
    pub const fn read_as_integer(self) -> Self {
        self.flags(sys::CU_TRSF_READ_AS_INTEGER)
    }

    /// Makes coordinates range from 0 to 1 (`CU_TRSF_NORMALIZED_COORDINATES`).
    #[inline]
    pub const fn normalized_coordinates(self) -> Self {
        self.flags(sys::CU_TRSF_NORMALIZED_COORDINATES)
    }

    /// Converts texels from sRGB to linear when they are read (`CU_TRSF_SRGB`).
    #[inline]
    pub const fn srgb(self) -> Self {
        self.flags(sys::CU_TRSF_SRGB)
    }

    /// Disables the trilinear filtering optimization (`CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION`).
    #[inline]
    pub const fn disable_trilinear_optimization(self) -> Self {
        self.flags(sys::CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION)
    }

    /// Filters across the edges of a cubemap's faces (`CU_TRSF_SEAMLESS_CUBEMAP`). Only valid for cubemaps.
    #[inline]
    pub const fn seamless_cubemap(self) -> Self {
        self.flags(sys::CU_TRSF_SEAMLESS_CUBEMAP)
    }

    /// Sets the maximum anisotropy ratio.
    #[inline]
    pub const fn max_anisotropy(mut self, ratio: u32) -> Self {
        self.raw.maxAnisotropy = ratio;
        self
    }

    /// Sets the filter between the levels of a mipmapped array.
    #[inline]
    pub const fn mipmap_filter_mode(mut self, mode: CUfilter_mode) -> Self {
        self.raw.mipmapFilterMode = mode;
        self
    }

    /// Sets the offset that is added to the level of a mipmapped array.
    #[inline]
    pub const fn mipmap_level_bias(mut self, bias: f32) -> Self {
        self.raw.mipmapLevelBias = bias;
        self
    }

    /// Sets the minimum and maximum level that are read from a mipmapped array. Both are 0 without this option.
    #[inline]
    pub const fn mipmap_level_clamp(mut self, min: f32, max: f32) -> Self {
        self.raw.minMipmapLevelClamp = min;
        self.raw.maxMipmapLevelClamp = max;
        self
    }

    /// Sets the color outside the texture, for `CU_TR_ADDRESS_MODE_BORDER`.
    #[inline]
    pub const fn border_color(mut self, color: [f32; 4]) -> Self {
        self.raw.borderColor = color;
        self
    }

    /// Returns C's descriptor.
    #[inline]
    pub const fn as_raw(&self) -> &sys::CUDA_TEXTURE_DESC {
        &self.raw
    }
}

impl Default for TextureDescriptor {
    #[inline]
    fn default() -> Self {
        Self::new()
    }
}

impl From<sys::CUDA_TEXTURE_DESC> for TextureDescriptor {
    #[inline]
    fn from(raw: sys::CUDA_TEXTURE_DESC) -> Self {
        Self { raw }
    }
}

/// A view of an array or mipmapped array: its texels in another format, or a part of its levels or layers.
///
/// ```
/// # use cuda_driver::{Context, Device};
/// # cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software).unwrap().install().unwrap();
/// # cuda_driver::init()?;
/// # let context = Context::create(Device::first()?)?;
/// use cuda_driver::array::ArrayShape;
/// use cuda_driver::sys::CUresourceViewFormat;
/// use cuda_driver::texture::{ResourceView, TextureDescriptor};
/// use cuda_driver::{Array, Texture};
///
/// // Kernels read the numbers as pixels of four bytes.
/// let shape = ArrayShape::d2(4, 4);
/// let numbers = Array::<u32>::new(&context, shape)?;
/// let pixels = ResourceView::new(CUresourceViewFormat::CU_RES_VIEW_FORMAT_UINT_4X8, shape);
/// let texture = Texture::with_view(&numbers, &TextureDescriptor::new(), &pixels)?;
/// # Ok::<(), cuda_driver::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
#[must_use]
pub struct ResourceView {
    raw: sys::CUDA_RESOURCE_VIEW_DESC,
}

impl ResourceView {
    /// Returns a view of an array of this shape, with texels in this format. For a block-compressed format, pass a
    /// shape that is 4 times as wide and as high as the array's, because each texel of the array is a block. Driver 580
    /// accepts the array's own format, but not `CU_RES_VIEW_FORMAT_NONE`.
    #[inline]
    pub fn new(format: sys::CUresourceViewFormat, shape: ArrayShape) -> Self {
        // The driver expects 0 for a dimension that the array does not have, as in the array's own descriptor.
        let sys::CUDA_ARRAY3D_DESCRIPTOR {
            Width: width,
            Height: height,
            Depth: depth,
            ..
        } = shape.descriptor(sys::CUarray_format(0), 0);
        Self {
            raw: sys::CUDA_RESOURCE_VIEW_DESC {
                format,
                width,
                height,
                depth,
                ..Default::default()
            },
        }
    }

    /// Sets the levels of a mipmapped array that the view has. Without this option, it has the first level only.
    #[inline]
    pub const fn levels(mut self, levels: RangeInclusive<u32>) -> Self {
        self.raw.firstMipmapLevel = *levels.start();
        self.raw.lastMipmapLevel = *levels.end();
        self
    }

    /// Limits the view to some layers of a layered array.
    #[inline]
    pub const fn layers(mut self, layers: RangeInclusive<u32>) -> Self {
        self.raw.firstLayer = *layers.start();
        self.raw.lastLayer = *layers.end();
        self
    }

    /// Returns C's descriptor.
    #[inline]
    pub const fn as_raw(&self) -> &sys::CUDA_RESOURCE_VIEW_DESC {
        &self.raw
    }
}
