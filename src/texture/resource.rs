//! The resources of textures: arrays, mipmapped arrays and device memory.

use core::fmt;
use core::marker::PhantomData;

use crate::array::{Array, Keep, MipmappedArray, Texel, check_size};
use crate::error::Error;
use crate::refusal::Refusal;
use crate::sys::{self, CUarray_format, CUresourcetype, CUresult, Function};
use crate::{Context, DevicePtr, DeviceSlice, PitchedBuffer, Result};

/// The texels of a [`Texture`](crate::Texture): an array, a mipmapped array, or device memory.
///
/// References to arrays, mipmapped arrays and pitched buffers, and views of device memory, can be passed in its place.
pub struct TextureResource<'a> {
    pub(super) raw: sys::CUDA_RESOURCE_DESC,
    pub(super) context: Option<Context>,
    pub(super) keep: Option<Keep>,
    memory: PhantomData<&'a ()>,
}

impl<'a> TextureResource<'a> {
    #[inline]
    fn of(
        kind: CUresourcetype,
        res: sys::CUDA_RESOURCE_DESC_st__res,
        context: Option<&Context>,
        keep: Option<Keep>,
    ) -> Self {
        Self {
            raw: sys::CUDA_RESOURCE_DESC {
                resType: kind,
                res,
                flags: 0,
            },
            context: context.cloned(),
            keep,
            memory: PhantomData,
        }
    }

    /// Returns a row of values in device memory. Kernels read it with integer coordinates.
    ///
    /// The address must be a multiple of the device attribute `CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT`, which it is at
    /// the start of a [`DeviceBuffer`](crate::DeviceBuffer).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if `T` does not have the size of `channels` values in the format.
    #[inline]
    #[track_caller]
    pub fn linear<T>(values: DeviceSlice<'a, T>, format: CUarray_format, channels: u32) -> Result<Self> {
        check_size(size_of::<T>(), format, channels, Function::cuTexObjectCreate)?;
        Ok(Self::row(values, format, channels))
    }

    #[inline]
    fn row<T>(values: DeviceSlice<'a, T>, format: CUarray_format, channels: u32) -> Self {
        let linear = sys::CUDA_RESOURCE_DESC_st__res__linear {
            devPtr: values.ptr().as_raw(),
            format,
            numChannels: channels,
            sizeInBytes: values.size_bytes(),
        };
        let res = sys::CUDA_RESOURCE_DESC_st__res { linear };
        Self::of(CUresourcetype::CU_RESOURCE_TYPE_LINEAR, res, values.context(), None)
    }

    /// Returns a two-dimensional picture in device memory. `size` is the width and height in values, and `pitch` the
    /// number of bytes from one row to the next.
    ///
    /// The address must be a multiple of the device attribute `CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT`, and the pitch a
    /// multiple of `CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT`.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the memory is smaller than the picture, or the pitch shorter than a row.
    #[inline]
    #[track_caller]
    pub fn pitched<T: Texel>(values: DeviceSlice<'a, T>, size: [usize; 2], pitch: usize) -> Result<Self> {
        Self::pitched_with_format(values, size, pitch, T::FORMAT, T::CHANNELS)
    }

    /// Returns a [picture](Self::pitched) in a format that `T` does not determine.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if `T` does not have the size of `channels` values in the format, and the
    /// errors of [`pitched`](Self::pitched).
    #[inline]
    #[track_caller]
    pub fn pitched_with_format<T>(
        values: DeviceSlice<'a, T>,
        size: [usize; 2],
        pitch: usize,
        format: CUarray_format,
        channels: u32,
    ) -> Result<Self> {
        check_size(size_of::<T>(), format, channels, Function::cuTexObjectCreate)?;
        check_rows(
            values.size_bytes(),
            size_of::<T>(),
            size,
            pitch,
            Function::cuTexObjectCreate,
        )?;
        let format = (format, channels);
        Ok(Self::picture(values.ptr(), size, pitch, format, values.context()))
    }

    #[inline]
    fn picture(
        ptr: DevicePtr,
        size: [usize; 2],
        pitch: usize,
        (format, channels): (CUarray_format, u32),
        context: Option<&Context>,
    ) -> Self {
        let pitched = sys::CUDA_RESOURCE_DESC_st__res__pitch2D {
            devPtr: ptr.as_raw(),
            format,
            numChannels: channels,
            width: size[0],
            height: size[1],
            pitchInBytes: pitch,
        };
        let res = sys::CUDA_RESOURCE_DESC_st__res { pitch2D: pitched };
        Self::of(CUresourcetype::CU_RESOURCE_TYPE_PITCH2D, res, context, None)
    }

    /// Returns C's descriptor.
    #[inline]
    pub const fn as_raw(&self) -> &sys::CUDA_RESOURCE_DESC {
        &self.raw
    }
}

impl<T> From<&Array<T>> for TextureResource<'static> {
    #[inline]
    fn from(array: &Array<T>) -> Self {
        let handle = sys::CUDA_RESOURCE_DESC_st__res__array { hArray: array.as_raw() };
        let res = sys::CUDA_RESOURCE_DESC_st__res { array: handle };
        let kind = CUresourcetype::CU_RESOURCE_TYPE_ARRAY;
        Self::of(kind, res, array.context(), Some(array.keep()))
    }
}

impl<T> From<&MipmappedArray<T>> for TextureResource<'static> {
    #[inline]
    fn from(array: &MipmappedArray<T>) -> Self {
        let mipmap = sys::CUDA_RESOURCE_DESC_st__res__mipmap {
            hMipmappedArray: array.as_raw(),
        };
        let res = sys::CUDA_RESOURCE_DESC_st__res { mipmap };
        let kind = CUresourcetype::CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
        Self::of(kind, res, array.context(), Some(array.keep()))
    }
}

/// The row that [`TextureResource::linear`] returns, in the format of `T`.
impl<'a, T: Texel> From<DeviceSlice<'a, T>> for TextureResource<'a> {
    #[inline]
    fn from(values: DeviceSlice<'a, T>) -> Self {
        Self::row(values, T::FORMAT, T::CHANNELS)
    }
}

/// The picture that [`TextureResource::pitched`] returns.
impl<'a, T: Texel> From<&'a PitchedBuffer<T>> for TextureResource<'a> {
    #[inline]
    fn from(values: &'a PitchedBuffer<T>) -> Self {
        let size = [values.width(), values.height()];
        let context = Some(values.context());
        Self::picture(values.ptr(), size, values.pitch(), (T::FORMAT, T::CHANNELS), context)
    }
}

impl fmt::Debug for TextureResource<'_> {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TextureResource")
            .field("kind", &self.raw.resType)
            .finish_non_exhaustive()
    }
}

/// Returns an error of `function` if the pitch is shorter than a row, or if `height` rows of `width` values, of `value`
/// bytes each, do not fit into `bytes`.
#[inline]
#[track_caller]
pub(super) fn check_rows(
    bytes: usize,
    value: usize,
    [width, height]: [usize; 2],
    pitch: usize,
    function: Function,
) -> Result<()> {
    let fail = |reason| Err(Error::refused(CUresult::CUDA_ERROR_INVALID_VALUE, function, reason));
    let Some(row) = width.checked_mul(value) else {
        return fail(Refusal::Box);
    };
    if pitch < row {
        return fail(Refusal::Pitch);
    }
    // The last row may be shorter than the pitch.
    let end = height
        .saturating_sub(1)
        .checked_mul(pitch)
        .and_then(|last| last.checked_add(row));
    match end {
        Some(end) if end <= bytes => Ok(()),
        _ => fail(Refusal::Box),
    }
}
