//! The types that can be texels of arrays, with their formats.
#![forbid(unsafe_code)]

use crate::error::Error;
use crate::refusal::Refusal;
use crate::sys::{CUarray_format as Format, CUresult, Function};
use crate::vector::{Component, Vector2, Vector4};
use crate::{Download, Result, Upload};

/// A type whose values are the texels of an array: it has a format and a number of channels.
///
/// Implemented for integers of up to 32 bits and `f32`, arrays of 2 or 4 of them, and the types of
/// [`vector`](crate::vector) with 2 or 4 of them. For a type of another crate, such as `half::f16`, pass the format to
/// [`Array::with_format`](crate::Array::with_format). For a type of your own:
///
/// ```
/// use cuda_driver::array::Texel;
/// use cuda_driver::bytemuck::{Pod, Zeroable};
/// use cuda_driver::sys::CUarray_format;
///
/// #[derive(Clone, Copy)]
/// #[repr(C)]
/// struct Rgba {
///     red: u8,
///     green: u8,
///     blue: u8,
///     alpha: u8,
/// }
/// // SAFETY: zeros are valid numbers.
/// unsafe impl Zeroable for Rgba {}
/// // SAFETY: any bytes are valid numbers, and there is no padding.
/// unsafe impl Pod for Rgba {}
///
/// impl Texel for Rgba {
///     const FORMAT: CUarray_format = CUarray_format::CU_AD_FORMAT_UNSIGNED_INT8;
///     const CHANNELS: u32 = 4;
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no array format",
    label = "does not implement `Texel`",
    note = "texels are `u8`, `i8`, `u16`, `i16`, `u32`, `i32`, `f32`, and arrays or `vector` types with 2 or 4 of them",
    note = "for a type of another crate, such as `half::f16`, pass the format to `with_format`",
    note = "for a type of your own write `impl Texel for TheType`"
)]
pub trait Texel: Upload + Download {
    /// The format of each channel.
    const FORMAT: Format;

    /// The number of channels: 1, 2 or 4.
    const CHANNELS: u32;
}

macro_rules! texels {
    ($($format:ident: $ty:ident;)*) => {
        $(
            impl Texel for $ty {
                const FORMAT: Format = Format::$format;
                const CHANNELS: u32 = 1;
            }
        )*
    };
}
texels! {
    CU_AD_FORMAT_UNSIGNED_INT8: u8;
    CU_AD_FORMAT_UNSIGNED_INT16: u16;
    CU_AD_FORMAT_UNSIGNED_INT32: u32;
    CU_AD_FORMAT_SIGNED_INT8: i8;
    CU_AD_FORMAT_SIGNED_INT16: i16;
    CU_AD_FORMAT_SIGNED_INT32: i32;
    CU_AD_FORMAT_FLOAT: f32;
}

macro_rules! texels_of_channels {
    ($($count:literal $ty:ty;)*) => {
        $(
            impl<T: Texel + Component> Texel for $ty {
                const FORMAT: Format = T::FORMAT;
                const CHANNELS: u32 = $count;
            }
        )*
    };
}
// `T: Component` allows numbers only, so that an array of arrays is not a texel.
texels_of_channels! {
    2 [T; 2];
    4 [T; 4];
    2 Vector2<T>;
    4 Vector4<T>;
}

/// Returns the size of a texel in bytes; `None` for block-compressed, planar, packed and unknown formats.
#[inline]
fn bytes(format: Format, channels: u32) -> Option<usize> {
    let channel = match format {
        Format::CU_AD_FORMAT_UNSIGNED_INT8
        | Format::CU_AD_FORMAT_SIGNED_INT8
        | Format::CU_AD_FORMAT_UNORM_INT8X1
        | Format::CU_AD_FORMAT_UNORM_INT8X2
        | Format::CU_AD_FORMAT_UNORM_INT8X4
        | Format::CU_AD_FORMAT_SNORM_INT8X1
        | Format::CU_AD_FORMAT_SNORM_INT8X2
        | Format::CU_AD_FORMAT_SNORM_INT8X4 => 1,
        Format::CU_AD_FORMAT_UNSIGNED_INT16
        | Format::CU_AD_FORMAT_SIGNED_INT16
        | Format::CU_AD_FORMAT_HALF
        | Format::CU_AD_FORMAT_UNORM_INT16X1
        | Format::CU_AD_FORMAT_UNORM_INT16X2
        | Format::CU_AD_FORMAT_UNORM_INT16X4
        | Format::CU_AD_FORMAT_SNORM_INT16X1
        | Format::CU_AD_FORMAT_SNORM_INT16X2
        | Format::CU_AD_FORMAT_SNORM_INT16X4 => 2,
        Format::CU_AD_FORMAT_UNSIGNED_INT32 | Format::CU_AD_FORMAT_SIGNED_INT32 | Format::CU_AD_FORMAT_FLOAT => 4,
        _ => return None,
    };
    Some(channel * channels as usize)
}

/// Returns an error of `function` if values of `size` bytes are not texels of this format.
#[inline]
#[track_caller]
pub(crate) fn check_size(size: usize, format: Format, channels: u32, function: Function) -> Result<()> {
    match bytes(format, channels) {
        Some(bytes) if bytes != size => Err(Error::refused(
            CUresult::CUDA_ERROR_INVALID_VALUE,
            function,
            Refusal::Texel,
        )),
        _ => Ok(()),
    }
}
