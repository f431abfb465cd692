//! Mipmapped arrays: arrays of several sizes, from which a texture chooses by its level of detail.

use core::marker::PhantomData;
use core::{fmt, mem};
use std::sync::Arc;

use super::object::{Array, Keep};
use super::shape::{ArrayShape, check_mapped};
use super::texel::{Texel, check_size};
use crate::context::Entered;
use crate::error::dropping;
use crate::sys::{self, Function};
use crate::{Context, Device, Result, checked};

/// A mipmapped array: levels that are [arrays](Array), each half as large in every dimension as the one before, rounded
/// down to at least 1. All levels have the same number of layers and faces.
///
/// ```
/// # use cuda_driver::{Context, Device};
/// # cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software).unwrap().install().unwrap();
/// # cuda_driver::init()?;
/// # let context = Context::create(Device::first()?)?;
/// use cuda_driver::MipmappedArray;
/// use cuda_driver::array::ArrayShape;
///
/// let mipmapped = MipmappedArray::<[u8; 4]>::new(&context, ArrayShape::d2(16, 8), 3)?;
/// let level = mipmapped.level(2)?;
/// assert_eq!(level.size()?, [4, 2, 1]);
/// level.copy_from(&[[255, 0, 0, 255]; 8])?;
/// # Ok::<(), cuda_driver::Error>(())
/// ```
///
/// Clones, levels, textures and surfaces are references to a mipmapped array. The last reference destroys it.
pub struct MipmappedArray<T> {
    inner: Arc<Inner>,
    /// Marks the type of the texels. They are on the device, so their type does not restrict the threads that use the
    /// array.
    texels: PhantomData<fn() -> T>,
}

struct Inner {
    raw: sys::CUmipmappedArray,
    /// `None` for a borrowed array.
    context: Option<Context>,
    /// True if the last reference destroys the array.
    owned: bool,
}

// SAFETY: an array handle may be used on any thread.
unsafe impl Send for Inner {}
// SAFETY: as above; the driver synchronises access to its objects.
unsafe impl Sync for Inner {}

impl Inner {
    #[inline]
    #[track_caller]
    fn end(&mut self) -> Result<()> {
        // Cleared before the call, because an interposer may panic after the array was destroyed.
        if !mem::replace(&mut self.owned, false) {
            return Ok(());
        }
        // SAFETY: the handle is live and owned, and this is its last use.
        unsafe { checked::mipmapped_array_destroy(self.raw) }
    }

    #[inline]
    #[track_caller]
    fn enter(&self) -> Result<Option<Entered<'_>>> {
        self.context.as_ref().map(Context::enter).transpose()
    }
}

impl Drop for Inner {
    #[inline]
    fn drop(&mut self) {
        if let Some(dropping) = dropping() {
            dropping.done(self.end());
        }
    }
}

impl<T> MipmappedArray<T> {
    #[inline]
    fn of(raw: sys::CUmipmappedArray, context: Option<&Context>) -> Self {
        Self {
            inner: Arc::new(Inner {
                raw,
                context: context.cloned(),
                owned: context.is_some(),
            }),
            texels: PhantomData,
        }
    }

    /// Creates a mipmapped array with undefined contents, in the format of `T`
    /// ([`cuMipmappedArrayCreate`](checked::mipmapped_array_create)). The driver limits `levels` to the number at which
    /// the last level has one texel, or one in each layer and face.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for a shape or flags that the device does not support and for the flag
    /// `CUDA_ARRAY3D_DEFERRED_MAPPING`, and `CUDA_ERROR_OUT_OF_MEMORY` if there is not enough memory.
    #[inline]
    #[doc(alias = "cuMipmappedArrayCreate")]
    #[track_caller]
    pub fn new(context: &Context, shape: ArrayShape, levels: u32) -> Result<Self>
    where
        T: Texel,
    {
        Self::with_format(context, shape, levels, T::FORMAT, T::CHANNELS)
    }

    /// Creates a mipmapped array in a format that `T` does not determine
    /// ([`cuMipmappedArrayCreate`](checked::mipmapped_array_create)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if `T` does not have the size of `channels` values in the format, and the
    /// errors of [`new`](Self::new). The size of `T` is not checked for block-compressed, planar and packed formats.
    #[inline]
    #[doc(alias = "cuMipmappedArrayCreate")]
    #[track_caller]
    pub fn with_format(
        context: &Context,
        shape: ArrayShape,
        levels: u32,
        format: sys::CUarray_format,
        channels: u32,
    ) -> Result<Self> {
        check_mapped(shape, Function::cuMipmappedArrayCreate)?;
        // SAFETY: `check_mapped` rejects deferred mapping, so the array has memory.
        unsafe { Self::create(context, shape, levels, format, channels) }
    }

    /// Creates a mipmapped array without memory ([`cuMipmappedArrayCreate`](checked::mipmapped_array_create)): adds the
    /// flag `CUDA_ARRAY3D_DEFERRED_MAPPING`. [`Stream::map_arrays`](crate::Stream::map_arrays) maps memory to it later.
    ///
    /// # Safety
    /// Same as [`Array::unmapped`], for all levels.
    ///
    /// # Errors
    /// Same as [`with_format`](Self::with_format), but the flag is not an error.
    #[inline]
    #[doc(alias = "cuMipmappedArrayCreate")]
    #[track_caller]
    pub unsafe fn unmapped(
        context: &Context,
        shape: ArrayShape,
        levels: u32,
        format: sys::CUarray_format,
        channels: u32,
    ) -> Result<Self> {
        let shape = shape.with_flags(sys::CUDA_ARRAY3D_DEFERRED_MAPPING);
        // SAFETY: upheld by the caller.
        unsafe { Self::create(context, shape, levels, format, channels) }
    }

    /// # Safety
    /// Same as [`unmapped`](Self::unmapped).
    #[inline]
    #[track_caller]
    unsafe fn create(
        context: &Context,
        shape: ArrayShape,
        levels: u32,
        format: sys::CUarray_format,
        channels: u32,
    ) -> Result<Self> {
        check_size(size_of::<T>(), format, channels, Function::cuMipmappedArrayCreate)?;
        let descriptor = shape.descriptor(format, channels);
        let _current = context.enter()?;
        // SAFETY: the driver checks the descriptor and the number of levels.
        let raw = unsafe { checked::mipmapped_array_create(&descriptor, levels) }?;
        Ok(Self::of(raw, Some(context)))
    }

    /// Returns a level ([`cuMipmappedArrayGetLevel`](checked::mipmapped_array_get_level)). Level 0 is the largest one.
    /// The returned array is a reference to this one.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if there is no such level.
    #[inline]
    #[doc(alias = "cuMipmappedArrayGetLevel")]
    #[track_caller]
    pub fn level(&self, level: u32) -> Result<Array<T>> {
        // SAFETY: the handle is live.
        let raw = unsafe { checked::mipmapped_array_get_level(self.inner.raw, level) }?;
        Ok(Array::part(raw, self.keep(), self.context()))
    }

    /// Returns the memory that an array with deferred mapping needs on a device
    /// ([`cuMipmappedArrayGetMemoryRequirements`](checked::mipmapped_array_get_memory_requirements)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for an array that was not created [without memory](Self::unmapped).
    #[inline]
    #[doc(alias = "cuMipmappedArrayGetMemoryRequirements")]
    #[track_caller]
    pub fn memory_requirements(&self, device: Device) -> Result<sys::CUDA_ARRAY_MEMORY_REQUIREMENTS> {
        let _current = self.inner.enter()?;
        // SAFETY: the handle is live.
        unsafe { checked::mipmapped_array_get_memory_requirements(self.inner.raw, device.as_raw()) }
    }

    /// Returns the layout of a sparse array
    /// ([`cuMipmappedArrayGetSparseProperties`](checked::mipmapped_array_get_sparse_properties)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for an array that is not [sparse](ArrayShape::sparse).
    #[inline]
    #[doc(alias = "cuMipmappedArrayGetSparseProperties")]
    #[track_caller]
    pub fn sparse_properties(&self) -> Result<sys::CUDA_ARRAY_SPARSE_PROPERTIES> {
        let _current = self.inner.enter()?;
        // SAFETY: the handle is live.
        unsafe { checked::mipmapped_array_get_sparse_properties(self.inner.raw) }
    }

    /// Drops this reference. If it is the last one, destroys the array and returns the result
    /// ([`cuMipmappedArrayDestroy`](checked::mipmapped_array_destroy)). Otherwise, the last reference does that.
    /// A borrowed array is not destroyed.
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuMipmappedArrayDestroy")]
    #[track_caller]
    pub fn destroy(self) -> Result<()> {
        Arc::try_unwrap(self.inner).map_or(Ok(()), |mut inner| inner.end())
    }

    /// Returns the raw handle, which is valid as long as `self`.
    #[inline]
    #[must_use]
    pub fn as_raw(&self) -> sys::CUmipmappedArray {
        self.inner.raw
    }

    /// Takes ownership of a mipmapped array in `context`.
    ///
    /// # Safety
    /// The handle must be live and belong to that context, and no other code may destroy it.
    #[inline]
    #[must_use]
    pub unsafe fn from_raw(raw: sys::CUmipmappedArray, context: &Context) -> Self {
        Self::of(raw, Some(context))
    }

    /// Borrows a mipmapped array, which is not destroyed with the returned value. The methods of the value and of its
    /// levels do not make a context current: the caller must do so for the calls that need it.
    ///
    /// # Safety
    /// The handle must stay valid as long as the returned value, its clones and levels, and all textures and surfaces
    /// created with them.
    #[inline]
    #[must_use]
    pub unsafe fn borrow_raw(raw: sys::CUmipmappedArray) -> Self {
        Self::of(raw, None)
    }

    /// Releases ownership of the handle, so that no reference destroys the array.
    #[inline]
    #[must_use]
    pub fn into_raw(self) -> sys::CUmipmappedArray {
        let raw = self.inner.raw;
        // The reference count never reaches zero.
        mem::forget(self);
        raw
    }

    /// Returns the context of the array; `None` for a borrowed array.
    #[inline]
    #[must_use]
    pub fn context(&self) -> Option<&Context> {
        self.inner.context.as_ref()
    }

    /// Returns a reference without the type of the texels.
    #[inline]
    pub(crate) fn keep(&self) -> Keep {
        self.inner.clone()
    }
}

impl<T> Clone for MipmappedArray<T> {
    #[inline]
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            texels: PhantomData,
        }
    }
}

impl<T> fmt::Debug for MipmappedArray<T> {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MipmappedArray")
            .field("raw", &self.inner.raw)
            .finish_non_exhaustive()
    }
}
