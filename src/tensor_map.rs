//! Tensor maps: descriptions of tensors in device memory for the copies of the tensor memory accelerator.

use core::ffi::c_void;
use core::fmt;
use core::ptr;

use crate::sys::{
    self, CUtensorMapDataType, CUtensorMapFloatOOBfill, CUtensorMapIm2ColWideMode, CUtensorMapInterleave,
    CUtensorMapL2promotion, CUtensorMapSwizzle,
};
use crate::{Context, DevicePtr, KernelArg, Result, checked};

/// A tensor map, which is passed to a kernel by value. Devices from compute capability 9.0 on support it.
///
/// A tensor map contains an address, and does not keep the memory allocated.
///
/// ```
/// # use cuda_driver::{Context, Device, DeviceBuffer};
/// # use cuda_driver::sys::CUtensorMapDataType;
/// # cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software).unwrap().install().unwrap();
/// # cuda_driver::init()?;
/// # let context = Context::create(Device::first()?)?;
/// use cuda_driver::tensor_map::{Layout, TensorMap, Tiles};
///
/// // A matrix of 64 rows with 128 columns, which is copied in tiles of 16 rows with 32 columns.
/// let matrix = DeviceBuffer::<f32>::zeroed(&context, 64 * 128)?;
/// let kind = CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
/// let tensor = Layout::new(kind, matrix.ptr(), &[128, 64], &[128 * 4]);
/// let map = TensorMap::tiled(&context, &tensor, &Tiles { size: &[32, 16], element_strides: &[1, 1] })?;
/// # Ok::<(), cuda_driver::Error>(())
/// ```
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct TensorMap(sys::CUtensorMap);

// SAFETY: a transparent wrapper of a kernel argument.
unsafe impl KernelArg for TensorMap {}

/// The layout of a tensor in device memory, and options of its copies. Lists begin with the innermost dimension.
#[derive(Debug, Clone, Copy)]
pub struct Layout<'a> {
    /// The type of the elements.
    pub data_type: CUtensorMapDataType,
    /// The address of the first element: a multiple of 16 bytes, or of 32 bytes with `CU_TENSOR_MAP_INTERLEAVE_32B` or
    /// a packed type whose name ends with `ALIGN16B`.
    pub address: DevicePtr,
    /// The number of elements in each dimension. There are 1 to 5 dimensions, and with interleaving, or for columns of
    /// images, 3 to 5.
    pub sizes: &'a [u64],
    /// The distance in bytes between neighbours in each dimension but the innermost: multiples of 16 or 32, as for
    /// [`address`](Self::address).
    pub strides: &'a [u64],
    /// The order of elements in memory.
    pub interleave: CUtensorMapInterleave,
    /// The order of elements in shared memory.
    pub swizzle: CUtensorMapSwizzle,
    /// The size of fetches to the L2 cache.
    pub l2_promotion: CUtensorMapL2promotion,
    /// The value of elements outside of the tensor: 0, or a special NaN for floating-point types.
    pub fill: CUtensorMapFloatOOBfill,
}

impl<'a> Layout<'a> {
    /// Returns a layout without interleaving, swizzling and L2 promotion. Elements outside of the tensor are 0.
    #[inline]
    #[must_use]
    pub const fn new(data_type: CUtensorMapDataType, address: DevicePtr, sizes: &'a [u64], strides: &'a [u64]) -> Self {
        Self {
            data_type,
            address,
            sizes,
            strides,
            interleave: CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
            swizzle: CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_NONE,
            l2_promotion: CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_NONE,
            fill: CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        }
    }
}

/// The tiles of a tensor. Lists have one entry for each dimension.
#[derive(Debug, Clone, Copy)]
pub struct Tiles<'a> {
    /// The extent of a tile in elements, including those that `element_strides` skips: at most 256 in each dimension.
    pub size: &'a [u32],
    /// The distance in elements between copied elements, from 1 to 8.
    pub element_strides: &'a [u32],
}

/// The columns of an image that are copied for a convolution.
#[derive(Debug, Clone, Copy)]
pub struct Im2Col<'a> {
    /// The lower corner of the pixels' bounding box: one entry for each dimension but the innermost and the outermost.
    pub lower_corner: &'a [i32],
    /// The upper corner of the pixels' bounding box: as many entries as [`lower_corner`](Self::lower_corner).
    pub upper_corner: &'a [i32],
    /// The number of channels that are copied of each pixel, at most 256.
    pub channels_per_pixel: u32,
    /// The number of pixels of a column, at most 1024.
    pub pixels_per_column: u32,
    /// The distance in elements between copied elements, from 1 to 8: one entry for each dimension.
    pub element_strides: &'a [u32],
}

/// The columns of an image that are copied for a convolution along the width.
#[derive(Debug, Clone, Copy)]
pub struct Im2ColWide<'a> {
    /// The lower end of the pixels' bounding box along the width.
    pub lower_width: i32,
    /// The upper end of the pixels' bounding box along the width.
    pub upper_width: i32,
    /// The number of channels of a column.
    pub channels_per_pixel: u32,
    /// The number of pixels of a column.
    pub pixels_per_column: u32,
    /// The distance in elements between copied elements, one entry for each dimension.
    pub element_strides: &'a [u32],
    /// The mode of the copy along the width.
    pub mode: CUtensorMapIm2ColWideMode,
}

#[inline]
const fn pointer(address: DevicePtr) -> *mut c_void {
    ptr::without_provenance_mut(address.as_raw() as usize)
}

impl TensorMap {
    /// Creates a map for copies of tiles ([`cuTensorMapEncodeTiled`](checked::tensor_map_encode_tiled)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for sizes, strides or an address that the hardware does not support, or for
    /// lists whose lengths do not fit together, and a [missing-function error](crate::Error::is_missing_function) if
    /// the driver is older than CUDA 12.0.
    #[inline]
    #[doc(alias = "cuTensorMapEncodeTiled")]
    #[track_caller]
    pub fn tiled(context: &Context, layout: &Layout<'_>, tiles: &Tiles<'_>) -> Result<Self> {
        let _current = context.enter()?;
        // SAFETY: the call only encodes its arguments, and the checked call compares the lengths of the slices.
        let raw = unsafe {
            checked::tensor_map_encode_tiled(
                layout.data_type,
                pointer(layout.address),
                layout.sizes,
                layout.strides,
                tiles.size,
                tiles.element_strides,
                layout.interleave,
                layout.swizzle,
                layout.l2_promotion,
                layout.fill,
            )
        }?;
        Ok(Self(raw))
    }

    /// Creates a map for copies of an image's columns ([`cuTensorMapEncodeIm2col`](checked::tensor_map_encode_im2col)).
    ///
    /// # Errors
    /// Same as [`tiled`](Self::tiled).
    #[inline]
    #[doc(alias = "cuTensorMapEncodeIm2col")]
    #[track_caller]
    pub fn im2col(context: &Context, layout: &Layout<'_>, columns: &Im2Col<'_>) -> Result<Self> {
        let _current = context.enter()?;
        // SAFETY: as above.
        let raw = unsafe {
            checked::tensor_map_encode_im2col(
                layout.data_type,
                pointer(layout.address),
                layout.sizes,
                layout.strides,
                columns.lower_corner,
                columns.upper_corner,
                columns.channels_per_pixel,
                columns.pixels_per_column,
                columns.element_strides,
                layout.interleave,
                layout.swizzle,
                layout.l2_promotion,
                layout.fill,
            )
        }?;
        Ok(Self(raw))
    }

    /// Creates a map for copies of an image's columns along the width
    /// ([`cuTensorMapEncodeIm2colWide`](checked::tensor_map_encode_im2col_wide)). Devices from compute capability 10.0
    /// on support it.
    ///
    /// # Errors
    /// Same as [`tiled`](Self::tiled), but the driver must not be older than CUDA 12.8.
    #[inline]
    #[doc(alias = "cuTensorMapEncodeIm2colWide")]
    #[track_caller]
    pub fn im2col_wide(context: &Context, layout: &Layout<'_>, columns: &Im2ColWide<'_>) -> Result<Self> {
        let _current = context.enter()?;
        // SAFETY: as above.
        let raw = unsafe {
            checked::tensor_map_encode_im2col_wide(
                layout.data_type,
                pointer(layout.address),
                layout.sizes,
                layout.strides,
                columns.lower_width,
                columns.upper_width,
                columns.channels_per_pixel,
                columns.pixels_per_column,
                columns.element_strides,
                layout.interleave,
                columns.mode,
                layout.swizzle,
                layout.l2_promotion,
                layout.fill,
            )
        }?;
        Ok(Self(raw))
    }

    /// Replaces the address of the tensor ([`cuTensorMapReplaceAddress`](checked::tensor_map_replace_address)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for an address without the alignment of [`Layout::address`].
    #[inline]
    #[doc(alias = "cuTensorMapReplaceAddress")]
    #[track_caller]
    pub fn replace_address(&mut self, context: &Context, address: DevicePtr) -> Result<()> {
        let _current = context.enter()?;
        // SAFETY: the call only encodes the address.
        unsafe { checked::tensor_map_replace_address(&mut self.0, pointer(address)) }
    }

    /// Requests an allocation class, and returns the class that the map has afterwards
    /// ([`cuTensorMapSetAllocationClass`](checked::tensor_map_set_allocation_class)).
    ///
    /// # Safety
    /// For the large class, the memory of the tensor must be as large as the manual requires.
    ///
    /// # Errors
    /// Returns a [missing-function error](crate::Error::is_missing_function) if the driver is older than CUDA 13.5.
    #[inline]
    #[doc(alias = "cuTensorMapSetAllocationClass")]
    #[track_caller]
    pub unsafe fn set_allocation_class(
        &mut self,
        context: &Context,
        class: sys::CUtensorMapAllocClass,
    ) -> Result<sys::CUtensorMapAllocClass> {
        let _current = context.enter()?;
        // SAFETY: upheld by the caller.
        unsafe { checked::tensor_map_set_allocation_class(&mut self.0, class) }
    }

    /// Returns C's representation.
    #[inline]
    #[must_use]
    pub const fn as_raw(&self) -> &sys::CUtensorMap {
        &self.0
    }

    /// Converts C's representation to a map.
    #[inline]
    #[must_use]
    pub const fn from_raw(raw: sys::CUtensorMap) -> Self {
        Self(raw)
    }
}

impl fmt::Debug for TensorMap {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TensorMap").finish_non_exhaustive()
    }
}
