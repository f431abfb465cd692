//! Arrays: texels in a layout that the device chooses.

use core::marker::PhantomData;
use core::{fmt, mem};
use std::sync::Arc;

use super::shape::{ArrayShape, check_mapped};
use super::texel::{Texel, check_size};
use crate::context::Entered;
use crate::error::dropping;
use crate::sys::{self, Function};
use crate::{Context, Device, Result, checked};

/// An array: texels in a layout that the device chooses. Kernels read them through a [`Texture`](crate::Texture), and
/// read and write them through a [`Surface`](crate::Surface).
///
/// ```
/// # use cuda_driver::{Context, Device};
/// # cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software).unwrap().install().unwrap();
/// # cuda_driver::init()?;
/// # let context = Context::create(Device::first()?)?;
/// use cuda_driver::Array;
/// use cuda_driver::array::ArrayShape;
///
/// let array = Array::<f32>::new(&context, ArrayShape::d2(3, 2))?;
/// array.copy_from(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// assert_eq!(array.to_vec()?, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
/// # Ok::<(), cuda_driver::Error>(())
/// ```
///
/// [`Copy3d`](crate::copy::Copy3d) copies parts of an array from and to host memory, device memory and other arrays.
///
/// Clones, textures and surfaces are references to an array. The last reference destroys it.
pub struct Array<T> {
    inner: Arc<Inner>,
    /// Marks the type of the texels. They are on the device, so their type does not restrict the threads that use the
    /// array.
    texels: PhantomData<fn() -> T>,
}

/// A reference that keeps an object alive.
pub(crate) type Keep = Arc<dyn Send + Sync>;

/// The array that all references share.
pub(crate) struct Inner {
    raw: sys::CUarray,
    /// `None` for a borrowed array, and for a part of a borrowed object.
    context: Option<Context>,
    owner: Owner,
    /// Width, height and depth, at least 1 each; `None` for a part of an object, and for an array from a raw handle.
    size: Option<[usize; 3]>,
}

/// The ownership of an array, which determines the action of its last reference.
enum Owner {
    /// The last reference destroys the array.
    Created,
    /// The array is a part of this object.
    PartOf(#[allow(dead_code)] Keep),
    /// Another owner destroys the array.
    Foreign,
}

// SAFETY: an array handle may be used on any thread.
unsafe impl Send for Inner {}
// SAFETY: as above; the driver synchronises access to its objects.
unsafe impl Sync for Inner {}

impl Inner {
    #[inline]
    #[track_caller]
    fn end(&mut self) -> Result<()> {
        // Replaced before the call, because an interposer may panic after the array was destroyed.
        if !matches!(mem::replace(&mut self.owner, Owner::Foreign), Owner::Created) {
            return Ok(());
        }
        // SAFETY: the handle is live and owned, and this is its last use.
        unsafe { checked::array_destroy(self.raw) }
    }

    /// Makes the array's context current until the guard is dropped. Does nothing if the context is not known.
    #[inline]
    #[track_caller]
    pub(crate) fn enter(&self) -> Result<Option<Entered<'_>>> {
        self.context.as_ref().map(Context::enter).transpose()
    }

    #[inline]
    #[track_caller]
    fn descriptor(&self) -> Result<sys::CUDA_ARRAY3D_DESCRIPTOR> {
        // SAFETY: the handle is live.
        unsafe { checked::array_3d_get_descriptor(self.raw) }
    }

    /// Returns width, height and depth, at least 1 each.
    #[inline]
    #[track_caller]
    pub(crate) fn size(&self) -> Result<[usize; 3]> {
        match self.size {
            Some(size) => Ok(size),
            None => Ok(ArrayShape::from(&self.descriptor()?).size()),
        }
    }

    #[inline]
    pub(crate) const fn raw(&self) -> sys::CUarray {
        self.raw
    }

    #[inline]
    pub(crate) const fn context(&self) -> Option<&Context> {
        self.context.as_ref()
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

impl<T> Array<T> {
    #[inline]
    fn of(inner: Inner) -> Self {
        Self {
            inner: Arc::new(inner),
            texels: PhantomData,
        }
    }

    /// Creates an array with undefined contents, in the format of `T` ([`cuArray3DCreate`](checked::array_3d_create)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for a shape or flags that the device does not support and for the flag
    /// `CUDA_ARRAY3D_DEFERRED_MAPPING`, and `CUDA_ERROR_OUT_OF_MEMORY` if there is not enough memory.
    #[inline]
    #[doc(alias = "cuArrayCreate")]
    #[doc(alias = "cuArray3DCreate")]
    #[track_caller]
    pub fn new(context: &Context, shape: ArrayShape) -> Result<Self>
    where
        T: Texel,
    {
        Self::with_format(context, shape, T::FORMAT, T::CHANNELS)
    }

    /// Creates an array in a format that `T` does not determine ([`cuArray3DCreate`](checked::array_3d_create)), for
    /// instance `CU_AD_FORMAT_HALF` with texels of `half::f16`.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if `T` does not have the size of `channels` values in the format, and the
    /// errors of [`new`](Self::new). The size of `T` is not checked for block-compressed, planar and packed formats.
    #[inline]
    #[doc(alias = "cuArray3DCreate")]
    #[track_caller]
    pub fn with_format(
        context: &Context,
        shape: ArrayShape,
        format: sys::CUarray_format,
        channels: u32,
    ) -> Result<Self> {
        check_mapped(shape, Function::cuArray3DCreate_v2)?;
        // SAFETY: `check_mapped` rejects deferred mapping, so the array has memory.
        unsafe { Self::create(context, shape, format, channels) }
    }

    /// Creates an array without memory ([`cuArray3DCreate`](checked::array_3d_create)): adds the flag
    /// `CUDA_ARRAY3D_DEFERRED_MAPPING`. [`Stream::map_arrays`](crate::Stream::map_arrays) maps memory to it later.
    ///
    /// # Safety
    /// As long as any part has no memory, the array must not be used in copies, and kernels must not access it through
    /// textures and surfaces: driver 580 accepts a copy, and faults when it runs.
    ///
    /// # Errors
    /// Same as [`with_format`](Self::with_format), but the flag is not an error.
    #[inline]
    #[doc(alias = "cuArray3DCreate")]
    #[track_caller]
    pub unsafe fn unmapped(
        context: &Context,
        shape: ArrayShape,
        format: sys::CUarray_format,
        channels: u32,
    ) -> Result<Self> {
        let shape = shape.with_flags(sys::CUDA_ARRAY3D_DEFERRED_MAPPING);
        // SAFETY: upheld by the caller.
        unsafe { Self::create(context, shape, format, channels) }
    }

    /// # Safety
    /// Same as [`unmapped`](Self::unmapped).
    #[inline]
    #[track_caller]
    unsafe fn create(context: &Context, shape: ArrayShape, format: sys::CUarray_format, channels: u32) -> Result<Self> {
        check_size(size_of::<T>(), format, channels, Function::cuArray3DCreate_v2)?;
        let descriptor = shape.descriptor(format, channels);
        let _current = context.enter()?;
        // SAFETY: the driver checks the descriptor.
        let raw = unsafe { checked::array_3d_create(&descriptor) }?;
        Ok(Self::of(Inner {
            raw,
            context: Some(context.clone()),
            owner: Owner::Created,
            size: Some(shape.size()),
        }))
    }

    /// Returns an array that is a part of another object.
    #[inline]
    pub(super) fn part(raw: sys::CUarray, of: Keep, context: Option<&Context>) -> Self {
        Self::of(Inner {
            raw,
            context: context.cloned(),
            owner: Owner::PartOf(of),
            size: None,
        })
    }

    /// Returns width, height and depth in texels, at least 1 each; layers and faces are the depth. For a level,
    /// a plane or an array from a raw handle, queries the driver
    /// ([`cuArray3DGetDescriptor`](checked::array_3d_get_descriptor)).
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuArray3DGetDescriptor")]
    #[track_caller]
    pub fn size(&self) -> Result<[usize; 3]> {
        self.inner.size()
    }

    /// Returns size, format and flags ([`cuArray3DGetDescriptor`](checked::array_3d_get_descriptor)).
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuArrayGetDescriptor")]
    #[doc(alias = "cuArray3DGetDescriptor")]
    #[track_caller]
    pub fn descriptor(&self) -> Result<sys::CUDA_ARRAY3D_DESCRIPTOR> {
        self.inner.descriptor()
    }

    /// Returns a plane of an array in a format with planes ([`cuArrayGetPlane`](checked::array_get_plane)), with texels
    /// of type `U`, whose size is not checked. The plane is a reference to this array.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if there is no such plane, or if the array has only one plane.
    #[inline]
    #[doc(alias = "cuArrayGetPlane")]
    #[track_caller]
    pub fn plane<U>(&self, index: u32) -> Result<Array<U>> {
        let _current = self.inner.enter()?;
        // SAFETY: the handle is live.
        let raw = unsafe { checked::array_get_plane(self.inner.raw, index) }?;
        Ok(Array::part(raw, self.keep(), self.context()))
    }

    /// Returns the memory that an array with deferred mapping needs on a device
    /// ([`cuArrayGetMemoryRequirements`](checked::array_get_memory_requirements)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for an array that was not created [without memory](Self::unmapped).
    #[inline]
    #[doc(alias = "cuArrayGetMemoryRequirements")]
    #[track_caller]
    pub fn memory_requirements(&self, device: Device) -> Result<sys::CUDA_ARRAY_MEMORY_REQUIREMENTS> {
        let _current = self.inner.enter()?;
        // SAFETY: the handle is live.
        unsafe { checked::array_get_memory_requirements(self.inner.raw, device.as_raw()) }
    }

    /// Returns the layout of a sparse array ([`cuArrayGetSparseProperties`](checked::array_get_sparse_properties)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for an array that is not [sparse](ArrayShape::sparse), and for a level of a
    /// mipmapped array.
    #[inline]
    #[doc(alias = "cuArrayGetSparseProperties")]
    #[track_caller]
    pub fn sparse_properties(&self) -> Result<sys::CUDA_ARRAY_SPARSE_PROPERTIES> {
        let _current = self.inner.enter()?;
        // SAFETY: the handle is live.
        unsafe { checked::array_get_sparse_properties(self.inner.raw) }
    }

    /// Drops this reference. If it is the last one, destroys the array and returns the result
    /// ([`cuArrayDestroy`](checked::array_destroy)). Otherwise, the last reference does that. A level or plane is
    /// destroyed with the array that it belongs to. A borrowed array is not destroyed.
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuArrayDestroy")]
    #[track_caller]
    pub fn destroy(self) -> Result<()> {
        Arc::try_unwrap(self.inner).map_or(Ok(()), |mut inner| inner.end())
    }

    /// Returns the raw handle, which is valid as long as `self`.
    #[inline]
    #[must_use]
    pub fn as_raw(&self) -> sys::CUarray {
        self.inner.raw
    }

    /// Takes ownership of an array in `context`.
    ///
    /// # Safety
    /// The handle must be live and belong to that context, and no other code may destroy it.
    #[inline]
    #[must_use]
    pub unsafe fn from_raw(raw: sys::CUarray, context: &Context) -> Self {
        Self::of(Inner {
            raw,
            context: Some(context.clone()),
            owner: Owner::Created,
            size: None,
        })
    }

    /// Borrows an array, which is not destroyed with the returned value. Its methods do not make a context current: the
    /// caller must do so for the calls that need it.
    ///
    /// # Safety
    /// The handle must stay valid as long as the returned value, its clones, and all textures and surfaces created with
    /// them.
    #[inline]
    #[must_use]
    pub unsafe fn borrow_raw(raw: sys::CUarray) -> Self {
        Self::of(Inner {
            raw,
            context: None,
            owner: Owner::Foreign,
            size: None,
        })
    }

    /// Releases ownership of the handle, so that no reference destroys the array.
    #[inline]
    #[must_use]
    pub fn into_raw(self) -> sys::CUarray {
        let raw = self.inner.raw;
        // The reference count never reaches zero.
        mem::forget(self);
        raw
    }

    /// Returns the context of the array; `None` for a borrowed array, and for a part of a borrowed object.
    #[inline]
    #[must_use]
    pub fn context(&self) -> Option<&Context> {
        self.inner.context()
    }

    #[inline]
    pub(crate) fn inner(&self) -> &Inner {
        &self.inner
    }

    /// Returns a reference without the type of the texels.
    #[inline]
    pub(crate) fn keep(&self) -> Keep {
        self.inner.clone()
    }
}

impl<T> Clone for Array<T> {
    #[inline]
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            texels: PhantomData,
        }
    }
}

impl<T> fmt::Debug for Array<T> {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Array")
            .field("raw", &self.inner.raw)
            .field("size", &self.inner.size)
            .finish_non_exhaustive()
    }
}
