//! Texture references, with which modules of older programs access textures.

use core::{fmt, mem};
use std::ffi::CString;

use super::resource::check_rows;
use crate::array::{Array, MipmappedArray, Texel};
use crate::context::Entered;
use crate::error::{Error, dropping};
use crate::refusal::Refusal;
use crate::sys::{self, CUaddress_mode, CUarray_format, CUfilter_mode, CUresult};
use crate::{Borrowed, Context, DevicePtr, DeviceSlice, Module, Result, checked};

/// A texture reference, to which texels can be bound. CUDA deprecates references, and only the PTX of older programs
/// has them; new programs pass a [`Texture`](crate::Texture) to the kernel.
///
/// A reference of a module keeps that module loaded, unless the module is [borrowed](Module::borrow_raw).
/// [`new`](Self::new) creates a reference that belongs to no module.
pub struct TextureReference {
    raw: sys::CUtexref,
    /// `None` for a reference that belongs to no module, and for a borrowed one.
    module: Option<Module>,
    /// The context of a reference that belongs to no module. Dropping destroys such a reference.
    context: Option<Context>,
}

// SAFETY: the handle may be used on any thread.
unsafe impl Send for TextureReference {}
// SAFETY: as above; the driver synchronises access to its objects.
unsafe impl Sync for TextureReference {}

impl Module {
    /// Finds a texture reference by its name ([`cuModuleGetTexRef`](checked::module_get_tex_ref), which is deprecated).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_NOT_FOUND` if no reference has that name.
    #[inline]
    #[doc(alias = "cuModuleGetTexRef")]
    #[track_caller]
    pub fn texture_reference(&self, name: &str) -> Result<TextureReference> {
        let Ok(name) = CString::new(name) else {
            // No reference has a name that contains a NUL byte.
            let code = CUresult::CUDA_ERROR_NOT_FOUND;
            return Err(Error::refused(code, sys::Function::cuModuleGetTexRef, Refusal::NulByte));
        };
        // SAFETY: the module is live.
        let raw = unsafe { checked::module_get_tex_ref(self.as_raw(), &name) }?;
        Ok(TextureReference {
            raw,
            module: Some(self.clone()),
            context: None,
        })
    }
}

impl TextureReference {
    /// Creates a reference that belongs to no module ([`cuTexRefCreate`](checked::tex_ref_create)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_OUT_OF_MEMORY` if there is not enough memory.
    #[inline]
    #[doc(alias = "cuTexRefCreate")]
    #[track_caller]
    pub fn new(context: &Context) -> Result<Self> {
        let _current = context.enter()?;
        // SAFETY: no preconditions.
        let raw = unsafe { checked::tex_ref_create() }?;
        Ok(Self {
            raw,
            module: None,
            context: Some(context.clone()),
        })
    }

    #[inline]
    #[track_caller]
    fn enter(&self) -> Result<Option<Entered<'_>>> {
        let context = self.context.as_ref();
        let context = context.or_else(|| self.module.as_ref().and_then(Module::context));
        context.map(Context::enter).transpose()
    }

    /// Binds an array and its format ([`cuTexRefSetArray`](checked::tex_ref_set_array)).
    ///
    /// # Safety
    /// The array must not be destroyed as long as it is bound: until other texels are bound, the module is unloaded, or
    /// the reference is destroyed.
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuTexRefSetArray")]
    #[track_caller]
    pub unsafe fn bind_array<T>(&self, array: &Array<T>) -> Result<()> {
        let _current = self.enter()?;
        // SAFETY: both handles are live; the rest is upheld by the caller.
        unsafe { checked::tex_ref_set_array(self.raw, array.as_raw(), sys::CU_TRSA_OVERRIDE_FORMAT) }
    }

    /// Binds a mipmapped array and its format ([`cuTexRefSetMipmappedArray`](checked::tex_ref_set_mipmapped_array)).
    ///
    /// # Safety
    /// The array must not be destroyed as long as it is bound: until other texels are bound, the module is unloaded, or
    /// the reference is destroyed.
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuTexRefSetMipmappedArray")]
    #[track_caller]
    pub unsafe fn bind_mipmapped_array<T>(&self, array: &MipmappedArray<T>) -> Result<()> {
        let _current = self.enter()?;
        let flags = sys::CU_TRSA_OVERRIDE_FORMAT;
        // SAFETY: both handles are live; the rest is upheld by the caller.
        unsafe { checked::tex_ref_set_mipmapped_array(self.raw, array.as_raw(), flags) }
    }

    /// Binds a row of values in device memory, and sets their format
    /// ([`cuTexRefSetFormat`](checked::tex_ref_set_format), [`cuTexRefSetAddress`](checked::tex_ref_set_address)).
    /// Returns the number of bytes between the start of the texture, which is aligned, and the first value; kernels
    /// must add this number, divided by the size of a value, to their coordinates.
    ///
    /// # Safety
    /// The memory must not be freed as long as it is bound: until other texels are bound, the module is unloaded, or
    /// the reference is destroyed.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if there are more values than a texture can have.
    #[inline]
    #[doc(alias = "cuTexRefSetFormat")]
    #[doc(alias = "cuTexRefSetAddress")]
    #[track_caller]
    pub unsafe fn bind_memory<T: Texel>(&self, values: DeviceSlice<'_, T>) -> Result<usize> {
        self.set_format(T::FORMAT, T::CHANNELS)?;
        let _current = self.enter()?;
        // SAFETY: the memory has that many bytes; the rest is upheld by the caller.
        unsafe { checked::tex_ref_set_address(self.raw, values.ptr().as_raw(), values.size_bytes()) }
    }

    /// Binds a two-dimensional picture in device memory, and sets its format
    /// ([`cuTexRefSetFormat`](checked::tex_ref_set_format), [`cuTexRefSetAddress2D`](checked::tex_ref_set_address_2d)).
    /// `size` is the width and height in values, and `pitch` the number of bytes from one row to the next.
    ///
    /// # Safety
    /// The memory must not be freed as long as it is bound: until other texels are bound, the module is unloaded, or
    /// the reference is destroyed.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the memory is smaller than the picture, if the pitch is shorter than a
    /// row, or if the address or the pitch is not aligned as textures require.
    #[inline]
    #[doc(alias = "cuTexRefSetFormat")]
    #[doc(alias = "cuTexRefSetAddress2D")]
    #[track_caller]
    pub unsafe fn bind_pitched<T: Texel>(
        &self,
        values: DeviceSlice<'_, T>,
        size: [usize; 2],
        pitch: usize,
    ) -> Result<()> {
        let function = sys::Function::cuTexRefSetAddress2D_v3;
        check_rows(values.size_bytes(), size_of::<T>(), size, pitch, function)?;
        // The manual does not allow `cuTexRefSetFormat` after `cuTexRefSetAddress2D`.
        self.set_format(T::FORMAT, T::CHANNELS)?;
        let descriptor = sys::CUDA_ARRAY_DESCRIPTOR {
            Width: size[0],
            Height: size[1],
            Format: T::FORMAT,
            NumChannels: T::CHANNELS,
        };
        let _current = self.enter()?;
        // SAFETY: the memory contains all rows; the rest is upheld by the caller.
        unsafe { checked::tex_ref_set_address_2d(self.raw, &descriptor, values.ptr().as_raw(), pitch) }
    }

    /// Sets the format and the number of channels
    /// ([`cuTexRefSetFormat`](checked::tex_ref_set_format)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if `channels` is not 1, 2 or 4. Driver 580 accepts any format here. It checks
    /// the format of a module's reference when memory is bound.
    #[inline]
    #[doc(alias = "cuTexRefSetFormat")]
    #[track_caller]
    pub fn set_format(&self, format: CUarray_format, channels: u32) -> Result<()> {
        // The driver rejects the saturated number.
        let channels = i32::try_from(channels).unwrap_or(i32::MAX);
        let _current = self.enter()?;
        // SAFETY: the handle is live.
        unsafe { checked::tex_ref_set_format(self.raw, format, channels) }
    }

    /// Sets the treatment of coordinates outside the texture, in dimension 0, 1 or 2
    /// ([`cuTexRefSetAddressMode`](checked::tex_ref_set_address_mode)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for another dimension.
    #[inline]
    #[doc(alias = "cuTexRefSetAddressMode")]
    #[track_caller]
    pub fn set_address_mode(&self, dimension: u32, mode: CUaddress_mode) -> Result<()> {
        // The driver rejects the saturated number.
        let dimension = i32::try_from(dimension).unwrap_or(i32::MAX);
        let _current = self.enter()?;
        // SAFETY: the handle is live.
        unsafe { checked::tex_ref_set_address_mode(self.raw, dimension, mode) }
    }

    /// Sets the filter
    /// ([`cuTexRefSetFilterMode`](checked::tex_ref_set_filter_mode)).
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work. Driver 580 accepts any value.
    #[inline]
    #[doc(alias = "cuTexRefSetFilterMode")]
    #[track_caller]
    pub fn set_filter_mode(&self, mode: CUfilter_mode) -> Result<()> {
        let _current = self.enter()?;
        // SAFETY: the handle is live.
        unsafe { checked::tex_ref_set_filter_mode(self.raw, mode) }
    }

    /// Sets the flags: the constants `CU_TRSF_*`
    /// ([`cuTexRefSetFlags`](checked::tex_ref_set_flags)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for unknown flags.
    #[inline]
    #[doc(alias = "cuTexRefSetFlags")]
    #[track_caller]
    pub fn set_flags(&self, flags: u32) -> Result<()> {
        let _current = self.enter()?;
        // SAFETY: the handle is live.
        unsafe { checked::tex_ref_set_flags(self.raw, flags) }
    }

    /// Sets the maximum anisotropy ratio
    /// ([`cuTexRefSetMaxAnisotropy`](checked::tex_ref_set_max_anisotropy)).
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuTexRefSetMaxAnisotropy")]
    #[track_caller]
    pub fn set_max_anisotropy(&self, ratio: u32) -> Result<()> {
        let _current = self.enter()?;
        // SAFETY: the handle is live.
        unsafe { checked::tex_ref_set_max_anisotropy(self.raw, ratio) }
    }

    /// Sets the color outside the texture
    /// ([`cuTexRefSetBorderColor`](checked::tex_ref_set_border_color)).
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuTexRefSetBorderColor")]
    #[track_caller]
    pub fn set_border_color(&self, color: &[f32; 4]) -> Result<()> {
        let _current = self.enter()?;
        // SAFETY: the handle is live.
        unsafe { checked::tex_ref_set_border_color(self.raw, color) }
    }

    /// Sets the filter between levels
    /// ([`cuTexRefSetMipmapFilterMode`](checked::tex_ref_set_mipmap_filter_mode)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for a value that the driver does not know.
    #[inline]
    #[doc(alias = "cuTexRefSetMipmapFilterMode")]
    #[track_caller]
    pub fn set_mipmap_filter_mode(&self, mode: CUfilter_mode) -> Result<()> {
        let _current = self.enter()?;
        // SAFETY: the handle is live.
        unsafe { checked::tex_ref_set_mipmap_filter_mode(self.raw, mode) }
    }

    /// Sets the offset that is added to the level
    /// ([`cuTexRefSetMipmapLevelBias`](checked::tex_ref_set_mipmap_level_bias)).
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuTexRefSetMipmapLevelBias")]
    #[track_caller]
    pub fn set_mipmap_level_bias(&self, bias: f32) -> Result<()> {
        let _current = self.enter()?;
        // SAFETY: the handle is live.
        unsafe { checked::tex_ref_set_mipmap_level_bias(self.raw, bias) }
    }

    /// Sets the minimum and maximum level ([`cuTexRefSetMipmapLevelClamp`](checked::tex_ref_set_mipmap_level_clamp)).
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuTexRefSetMipmapLevelClamp")]
    #[track_caller]
    pub fn set_mipmap_level_clamp(&self, min: f32, max: f32) -> Result<()> {
        let _current = self.enter()?;
        // SAFETY: the handle is live.
        unsafe { checked::tex_ref_set_mipmap_level_clamp(self.raw, min, max) }
    }

    /// Returns the handle of the bound array
    /// ([`cuTexRefGetArray`](checked::tex_ref_get_array)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if no array is bound.
    #[inline]
    #[doc(alias = "cuTexRefGetArray")]
    #[track_caller]
    pub fn array(&self) -> Result<sys::CUarray> {
        let _current = self.enter()?;
        // SAFETY: the handle is live.
        unsafe { checked::tex_ref_get_array(self.raw) }
    }

    /// Returns the handle of the bound mipmapped array
    /// ([`cuTexRefGetMipmappedArray`](checked::tex_ref_get_mipmapped_array)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if no mipmapped array is bound.
    #[inline]
    #[doc(alias = "cuTexRefGetMipmappedArray")]
    #[track_caller]
    pub fn mipmapped_array(&self) -> Result<sys::CUmipmappedArray> {
        let _current = self.enter()?;
        // SAFETY: the handle is live.
        unsafe { checked::tex_ref_get_mipmapped_array(self.raw) }
    }

    /// Returns the address of the bound memory
    /// ([`cuTexRefGetAddress`](checked::tex_ref_get_address)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if no memory is bound.
    #[inline]
    #[doc(alias = "cuTexRefGetAddress")]
    #[track_caller]
    pub fn address(&self) -> Result<DevicePtr> {
        let _current = self.enter()?;
        // SAFETY: the handle is live.
        unsafe { checked::tex_ref_get_address(self.raw) }.map(DevicePtr::from_raw)
    }

    /// Returns the format and the number of channels
    /// ([`cuTexRefGetFormat`](checked::tex_ref_get_format)).
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuTexRefGetFormat")]
    #[track_caller]
    pub fn format(&self) -> Result<checked::TexRefGetFormat> {
        let _current = self.enter()?;
        // SAFETY: the handle is live.
        unsafe { checked::tex_ref_get_format(self.raw) }
    }

    /// Returns the treatment of coordinates outside the texture, in dimension 0, 1 or 2
    /// ([`cuTexRefGetAddressMode`](checked::tex_ref_get_address_mode)). Driver 580 returns `CU_TR_ADDRESS_MODE_CLAMP`
    /// unless coordinates are [normalized](sys::CU_TRSF_NORMALIZED_COORDINATES).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for another dimension.
    #[inline]
    #[doc(alias = "cuTexRefGetAddressMode")]
    #[track_caller]
    pub fn address_mode(&self, dimension: u32) -> Result<CUaddress_mode> {
        // The driver rejects the saturated number.
        let dimension = i32::try_from(dimension).unwrap_or(i32::MAX);
        let _current = self.enter()?;
        // SAFETY: the handle is live.
        unsafe { checked::tex_ref_get_address_mode(self.raw, dimension) }
    }

    /// Returns the filter
    /// ([`cuTexRefGetFilterMode`](checked::tex_ref_get_filter_mode)).
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuTexRefGetFilterMode")]
    #[track_caller]
    pub fn filter_mode(&self) -> Result<CUfilter_mode> {
        let _current = self.enter()?;
        // SAFETY: the handle is live.
        unsafe { checked::tex_ref_get_filter_mode(self.raw) }
    }

    /// Returns the flags
    /// ([`cuTexRefGetFlags`](checked::tex_ref_get_flags)).
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuTexRefGetFlags")]
    #[track_caller]
    pub fn flags(&self) -> Result<u32> {
        let _current = self.enter()?;
        // SAFETY: the handle is live.
        unsafe { checked::tex_ref_get_flags(self.raw) }
    }

    /// Returns the maximum anisotropy ratio
    /// ([`cuTexRefGetMaxAnisotropy`](checked::tex_ref_get_max_anisotropy)).
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuTexRefGetMaxAnisotropy")]
    #[track_caller]
    pub fn max_anisotropy(&self) -> Result<i32> {
        let _current = self.enter()?;
        // SAFETY: the handle is live.
        unsafe { checked::tex_ref_get_max_anisotropy(self.raw) }
    }

    /// Returns the color outside the texture
    /// ([`cuTexRefGetBorderColor`](checked::tex_ref_get_border_color)).
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuTexRefGetBorderColor")]
    #[track_caller]
    pub fn border_color(&self) -> Result<[f32; 4]> {
        let _current = self.enter()?;
        // SAFETY: the handle is live.
        unsafe { checked::tex_ref_get_border_color(self.raw) }
    }

    /// Returns the filter between levels
    /// ([`cuTexRefGetMipmapFilterMode`](checked::tex_ref_get_mipmap_filter_mode)).
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuTexRefGetMipmapFilterMode")]
    #[track_caller]
    pub fn mipmap_filter_mode(&self) -> Result<CUfilter_mode> {
        let _current = self.enter()?;
        // SAFETY: the handle is live.
        unsafe { checked::tex_ref_get_mipmap_filter_mode(self.raw) }
    }

    /// Returns the offset that is added to the level
    /// ([`cuTexRefGetMipmapLevelBias`](checked::tex_ref_get_mipmap_level_bias)).
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuTexRefGetMipmapLevelBias")]
    #[track_caller]
    pub fn mipmap_level_bias(&self) -> Result<f32> {
        let _current = self.enter()?;
        // SAFETY: the handle is live.
        unsafe { checked::tex_ref_get_mipmap_level_bias(self.raw) }
    }

    /// Returns the minimum and maximum level
    /// ([`cuTexRefGetMipmapLevelClamp`](checked::tex_ref_get_mipmap_level_clamp)).
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuTexRefGetMipmapLevelClamp")]
    #[track_caller]
    pub fn mipmap_level_clamp(&self) -> Result<checked::TexRefGetMipmapLevelClamp> {
        let _current = self.enter()?;
        // SAFETY: the handle is live.
        unsafe { checked::tex_ref_get_mipmap_level_clamp(self.raw) }
    }

    /// Destroys a reference that belongs to no module ([`cuTexRefDestroy`](checked::tex_ref_destroy)). Dropping does
    /// the same. A reference of a module stays until the module is unloaded.
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuTexRefDestroy")]
    #[track_caller]
    pub fn destroy(mut self) -> Result<()> {
        self.end()
    }

    #[inline]
    #[track_caller]
    fn end(&mut self) -> Result<()> {
        // Taken before the call, because an interposer may panic after the reference was destroyed.
        let Some(context) = self.context.take() else {
            return Ok(());
        };
        let _current = context.enter()?;
        // SAFETY: the handle is live and owned, and this is its last use.
        unsafe { checked::tex_ref_destroy(self.raw) }
    }

    /// Returns the raw handle. It is valid until the module is unloaded or, without a module, as long as `self`.
    #[inline]
    #[must_use]
    pub const fn as_raw(&self) -> sys::CUtexref {
        self.raw
    }

    /// Takes ownership of a reference that was created in `context` and belongs to no module.
    ///
    /// # Safety
    /// The handle must be live and belong to that context, and no other code may destroy it.
    #[inline]
    #[must_use]
    pub unsafe fn from_raw(raw: sys::CUtexref, context: &Context) -> Self {
        Self {
            raw,
            module: None,
            context: Some(context.clone()),
        }
    }

    /// Borrows a reference.
    ///
    /// # Safety
    /// The handle must stay valid as long as the returned value.
    #[inline]
    #[must_use]
    pub const unsafe fn borrow_raw<'a>(raw: sys::CUtexref) -> Borrowed<'a, Self> {
        Borrowed::new(Self {
            raw,
            module: None,
            context: None,
        })
    }

    /// Releases ownership of the handle. The module or context is leaked, so that the handle stays valid.
    #[inline]
    #[must_use]
    pub fn into_raw(self) -> sys::CUtexref {
        let raw = self.raw;
        mem::forget(self);
        raw
    }

    /// Returns the module; `None` for a reference that belongs to none, and for a borrowed one.
    #[inline]
    #[must_use]
    pub const fn module(&self) -> Option<&Module> {
        self.module.as_ref()
    }
}

impl Drop for TextureReference {
    #[inline]
    fn drop(&mut self) {
        if let Some(dropping) = dropping() {
            dropping.done(self.end());
        }
    }
}

impl fmt::Debug for TextureReference {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TextureReference")
            .field("raw", &self.raw)
            .finish_non_exhaustive()
    }
}
