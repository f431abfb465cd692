//! Buffers in device memory.

use core::marker::PhantomData;
use core::ops::RangeBounds;
use core::{fmt, mem};

use super::{DeviceSlice, DeviceSliceMut, Download, Upload, device_values, device_views};
use crate::error::dropping;
use crate::{Context, Result, Stream, checked, sys};

/// A buffer of a fixed number of values in device memory, like `Box<[T]>` on the host.
///
/// ```
/// # use cuda_driver::{Context, Device, DeviceBuffer};
/// # cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software).unwrap().install().unwrap();
/// # cuda_driver::init()?;
/// # let context = Context::create(Device::first()?)?;
/// let mut buffer = DeviceBuffer::from_slice(&context, &[1.0f32, 2.0, 3.0])?;
/// assert_eq!(buffer.to_vec()?, [1.0, 2.0, 3.0]);
/// buffer.fill_u32(0)?;
/// # Ok::<(), cuda_driver::Error>(())
/// ```
///
/// Copies from and to the host without a stream wait for all earlier work in the null stream and in blocking streams,
/// and no longer access the host memory when they return. If the slice is not page-locked, a copy *to* the device may
/// finish after the method returns. Later work in the null stream and in blocking streams waits for it, but work in a
/// [non-blocking](Stream::non_blocking) stream does not: synchronise first, with [`Context::synchronize`] or with an
/// [`Event`](crate::Event) recorded in the null stream.
///
/// Indices and lengths are in values, not bytes.
pub struct DeviceBuffer<T> {
    raw: sys::CUdeviceptr,
    len: usize,
    context: Context,
    /// Marks the type of the values. They are on the device, so their type does not restrict the threads that use the
    /// buffer.
    values: PhantomData<fn() -> T>,
}

impl<T> DeviceBuffer<T> {
    /// Allocates `len` values with undefined contents ([`cuMemAlloc`](checked::mem_alloc)).
    ///
    /// If the size is 0 bytes, nothing is allocated and the address is 0; copies and fills then do not call the driver.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_OUT_OF_MEMORY` if there is not enough memory.
    #[inline]
    #[doc(alias = "cuMemAlloc")]
    #[track_caller]
    pub fn alloc(context: &Context, len: usize) -> Result<Self> {
        // The driver rejects the saturated size.
        let bytes = len.saturating_mul(size_of::<T>());
        let mut raw = 0;
        if bytes > 0 {
            let _current = context.enter()?;
            // SAFETY: the driver checks the size.
            raw = unsafe { checked::mem_alloc(bytes) }?;
        }
        Ok(Self {
            raw,
            len,
            context: context.clone(),
            values: PhantomData,
        })
    }

    /// Allocates `len` values and sets all bytes to zero. Waits until that is done, and therefore for earlier work in
    /// the null stream and in blocking streams.
    ///
    /// # Errors
    /// Same as [`alloc`](Self::alloc), or an error from the work that was waited for.
    #[inline]
    #[track_caller]
    pub fn zeroed(context: &Context, len: usize) -> Result<Self> {
        let _current = context.enter()?;
        let mut buffer = Self::alloc(context, len)?;
        buffer.fill_u8(0)?;
        if buffer.size_bytes() > 0 {
            // The fill is only queued, and non-blocking streams do not wait for it.
            // SAFETY: the null stream of the context, which is current.
            unsafe { checked::stream_synchronize(core::ptr::null_mut()) }?;
        }
        Ok(buffer)
    }

    /// Allocates a buffer for a slice and copies the slice to it.
    ///
    /// # Errors
    /// Same as [`alloc`](Self::alloc).
    #[inline]
    #[track_caller]
    pub fn from_slice(context: &Context, values: &[T]) -> Result<Self>
    where
        T: Upload,
    {
        let _current = context.enter()?;
        let mut buffer = Self::alloc(context, values.len())?;
        buffer.copy_from(values)?;
        Ok(buffer)
    }

    /// Returns a view of a range of values.
    ///
    /// # Errors
    /// Same as [`DeviceSlice::slice`].
    #[inline]
    #[track_caller]
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<DeviceSlice<'_, T>> {
        self.as_slice().slice(range)
    }

    /// Returns a view of a range of values that can be written.
    ///
    /// # Errors
    /// Same as [`DeviceSlice::slice`].
    #[inline]
    #[track_caller]
    pub fn slice_mut(&mut self, range: impl RangeBounds<usize>) -> Result<DeviceSliceMut<'_, T>> {
        self.as_mut_slice().into_slice(range)
    }

    /// Returns two views: of the values before `index`, and of the others.
    ///
    /// # Errors
    /// Same as [`DeviceSlice::split_at`].
    #[inline]
    #[track_caller]
    pub fn split_at(&self, index: usize) -> Result<(DeviceSlice<'_, T>, DeviceSlice<'_, T>)> {
        self.as_slice().split_at(index)
    }

    /// Returns two views that can be written: of the values before `index`, and of the others.
    ///
    /// # Errors
    /// Same as [`DeviceSlice::split_at`].
    #[inline]
    #[track_caller]
    pub fn split_at_mut(&mut self, index: usize) -> Result<(DeviceSliceMut<'_, T>, DeviceSliceMut<'_, T>)> {
        self.as_mut_slice().into_split_at(index)
    }

    /// Copies a slice to the start of the buffer ([`cuMemcpyHtoD`](checked::memcpy_htod)).
    ///
    /// # Errors
    /// Same as [`DeviceSliceMut::copy_from`].
    #[inline]
    #[doc(alias = "cuMemcpyHtoD")]
    #[track_caller]
    pub fn copy_from(&mut self, values: &[T]) -> Result<()>
    where
        T: Upload,
    {
        self.as_mut_slice().copy_from(values)
    }

    /// Copies a slice to the buffer, starting at `index`; short for [`slice_mut`](Self::slice_mut) and a copy.
    ///
    /// # Errors
    /// Same as [`DeviceSliceMut::copy_from`].
    #[inline]
    #[track_caller]
    pub fn copy_from_at(&mut self, index: usize, values: &[T]) -> Result<()>
    where
        T: Upload,
    {
        self.slice_mut(index..)?.copy_from(values)
    }

    /// Copies the start of the buffer to a slice ([`cuMemcpyDtoH`](checked::memcpy_dtoh)).
    ///
    /// # Errors
    /// Same as [`DeviceSlice::copy_to`].
    #[inline]
    #[doc(alias = "cuMemcpyDtoH")]
    #[track_caller]
    pub fn copy_to(&self, values: &mut [T]) -> Result<()>
    where
        T: Download,
    {
        self.as_slice().copy_to(values)
    }

    /// Copies the values from `index` to a slice; short for [`slice`](Self::slice) and a copy.
    ///
    /// # Errors
    /// Same as [`DeviceSlice::copy_to`].
    #[inline]
    #[track_caller]
    pub fn copy_to_at(&self, index: usize, values: &mut [T]) -> Result<()>
    where
        T: Download,
    {
        self.slice(index..)?.copy_to(values)
    }

    /// Copies all values to the host ([`cuMemcpyDtoH`](checked::memcpy_dtoh)).
    ///
    /// # Errors
    /// Same as [`DeviceSlice::to_vec`].
    #[inline]
    #[doc(alias = "cuMemcpyDtoH")]
    #[track_caller]
    pub fn to_vec(&self) -> Result<Vec<T>>
    where
        T: Download,
    {
        self.as_slice().to_vec()
    }

    /// Fills this buffer with the first values of another buffer or view. The copy is queued in the null stream
    /// ([`cuMemcpyDtoD`](checked::memcpy_dtod)).
    ///
    /// # Errors
    /// Same as [`DeviceSliceMut::copy_from_device`].
    #[inline]
    #[doc(alias = "cuMemcpyDtoD")]
    #[track_caller]
    pub fn copy_from_device<'b>(&mut self, other: impl Into<DeviceSlice<'b, T>>) -> Result<()>
    where
        T: 'b,
    {
        self.as_mut_slice().copy_from_device(other)
    }

    /// Sets every byte. The fill is queued in the null stream ([`cuMemsetD8`](checked::memset_d8)).
    ///
    /// # Errors
    /// Same as [`DeviceSliceMut::fill_u8`].
    #[inline]
    #[doc(alias = "cuMemsetD8")]
    #[doc(alias = "memset")]
    #[track_caller]
    pub fn fill_u8(&mut self, value: u8) -> Result<()> {
        self.as_mut_slice().fill_u8(value)
    }

    /// Sets every 16-bit value. The fill is queued in the null stream ([`cuMemsetD16`](checked::memset_d16)).
    ///
    /// # Errors
    /// Same as [`DeviceSliceMut::fill_u16`].
    #[inline]
    #[doc(alias = "cuMemsetD16")]
    #[doc(alias = "memset")]
    #[track_caller]
    pub fn fill_u16(&mut self, value: u16) -> Result<()> {
        self.as_mut_slice().fill_u16(value)
    }

    /// Sets every 32-bit value. The fill is queued in the null stream ([`cuMemsetD32`](checked::memset_d32)).
    ///
    /// # Errors
    /// Same as [`DeviceSliceMut::fill_u32`].
    #[inline]
    #[doc(alias = "cuMemsetD32")]
    #[doc(alias = "memset")]
    #[track_caller]
    pub fn fill_u32(&mut self, value: u32) -> Result<()> {
        self.as_mut_slice().fill_u32(value)
    }

    /// Queues a copy of a slice to the start of the buffer ([`cuMemcpyHtoDAsync`](checked::memcpy_htod_async)).
    /// [`Stream::upload`] is a safe alternative.
    ///
    /// # Safety
    /// Same as [`DeviceSliceMut::copy_from_async`].
    ///
    /// # Errors
    /// Same as [`DeviceSliceMut::copy_from_async`].
    #[inline]
    #[doc(alias = "cuMemcpyHtoDAsync")]
    #[track_caller]
    pub unsafe fn copy_from_async(&mut self, values: &[T], stream: &Stream) -> Result<()>
    where
        T: Upload,
    {
        // SAFETY: upheld by the caller.
        unsafe { self.as_mut_slice().copy_from_async(values, stream) }
    }

    /// Queues a copy of a slice to the buffer, starting at `index`.
    ///
    /// # Safety
    /// Same as [`DeviceSliceMut::copy_from_async`].
    ///
    /// # Errors
    /// Same as [`DeviceSliceMut::copy_from_async`].
    #[inline]
    #[track_caller]
    pub unsafe fn copy_from_at_async(&mut self, index: usize, values: &[T], stream: &Stream) -> Result<()>
    where
        T: Upload,
    {
        // SAFETY: upheld by the caller.
        unsafe { self.slice_mut(index..)?.copy_from_async(values, stream) }
    }

    /// Queues a copy of the start of the buffer to a slice ([`cuMemcpyDtoHAsync`](checked::memcpy_dtoh_async)).
    /// [`Stream::download`] is a safe alternative.
    ///
    /// # Safety
    /// Same as [`DeviceSlice::copy_to_async`].
    ///
    /// # Errors
    /// Same as [`DeviceSlice::copy_to_async`].
    #[inline]
    #[doc(alias = "cuMemcpyDtoHAsync")]
    #[track_caller]
    pub unsafe fn copy_to_async(&self, values: &mut [T], stream: &Stream) -> Result<()>
    where
        T: Download,
    {
        // SAFETY: upheld by the caller.
        unsafe { self.as_slice().copy_to_async(values, stream) }
    }

    /// Queues a copy of the values from `index` to a slice.
    ///
    /// # Safety
    /// Same as [`DeviceSlice::copy_to_async`].
    ///
    /// # Errors
    /// Same as [`DeviceSlice::copy_to_async`].
    #[inline]
    #[track_caller]
    pub unsafe fn copy_to_at_async(&self, index: usize, values: &mut [T], stream: &Stream) -> Result<()>
    where
        T: Download,
    {
        // SAFETY: upheld by the caller.
        unsafe { self.slice(index..)?.copy_to_async(values, stream) }
    }

    /// Queues a copy of the first values of another buffer or view to this buffer
    /// ([`cuMemcpyDtoDAsync`](checked::memcpy_dtod_async)).
    ///
    /// # Safety
    /// Same as [`DeviceSliceMut::copy_from_device_async`].
    ///
    /// # Errors
    /// Same as [`DeviceSliceMut::copy_from_device_async`].
    #[inline]
    #[doc(alias = "cuMemcpyDtoDAsync")]
    #[track_caller]
    pub unsafe fn copy_from_device_async<'b>(
        &mut self,
        other: impl Into<DeviceSlice<'b, T>>,
        stream: &Stream,
    ) -> Result<()>
    where
        T: 'b,
    {
        // SAFETY: upheld by the caller.
        unsafe { self.as_mut_slice().copy_from_device_async(other, stream) }
    }

    /// Queues a fill of every byte ([`cuMemsetD8Async`](checked::memset_d8_async)).
    ///
    /// # Safety
    /// Same as [`DeviceSliceMut::fill_u8_async`].
    ///
    /// # Errors
    /// Same as [`DeviceSliceMut::fill_u8_async`].
    #[inline]
    #[doc(alias = "cuMemsetD8Async")]
    #[doc(alias = "memset")]
    #[track_caller]
    pub unsafe fn fill_u8_async(&mut self, value: u8, stream: &Stream) -> Result<()> {
        // SAFETY: upheld by the caller.
        unsafe { self.as_mut_slice().fill_u8_async(value, stream) }
    }

    /// Queues a fill of every 16-bit value ([`cuMemsetD16Async`](checked::memset_d16_async)).
    ///
    /// # Safety
    /// Same as [`DeviceSliceMut::fill_u16_async`].
    ///
    /// # Errors
    /// Same as [`DeviceSliceMut::fill_u16_async`].
    #[inline]
    #[doc(alias = "cuMemsetD16Async")]
    #[doc(alias = "memset")]
    #[track_caller]
    pub unsafe fn fill_u16_async(&mut self, value: u16, stream: &Stream) -> Result<()> {
        // SAFETY: upheld by the caller.
        unsafe { self.as_mut_slice().fill_u16_async(value, stream) }
    }

    /// Queues a fill of every 32-bit value ([`cuMemsetD32Async`](checked::memset_d32_async)).
    ///
    /// # Safety
    /// Same as [`DeviceSliceMut::fill_u32_async`].
    ///
    /// # Errors
    /// Same as [`DeviceSliceMut::fill_u32_async`].
    #[inline]
    #[doc(alias = "cuMemsetD32Async")]
    #[doc(alias = "memset")]
    #[track_caller]
    pub unsafe fn fill_u32_async(&mut self, value: u32, stream: &Stream) -> Result<()> {
        // SAFETY: upheld by the caller.
        unsafe { self.as_mut_slice().fill_u32_async(value, stream) }
    }

    /// Frees the memory after waiting for work that uses it ([`cuMemFree`](checked::mem_free)). Dropping does the same.
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuMemFree")]
    #[track_caller]
    pub fn free(mut self) -> Result<()> {
        if self.raw == 0 {
            return Ok(());
        }
        // SAFETY: the allocation is owned, and replaced by 0 so that `drop` does not use it.
        unsafe { checked::mem_free(mem::take(&mut self.raw)) }
    }

    /// Takes ownership of memory that was allocated in `context`.
    ///
    /// # Safety
    /// The address must be the start of an allocation of at least `len` values in that context, and no other code may
    /// free it.
    #[inline]
    #[must_use]
    pub unsafe fn from_raw(raw: sys::CUdeviceptr, len: usize, context: &Context) -> Self {
        Self {
            raw,
            len,
            context: context.clone(),
            values: PhantomData,
        }
    }

    /// Releases ownership of the memory. The reference to the context is leaked, so the context stays alive.
    #[inline]
    #[must_use]
    pub fn into_raw(self) -> sys::CUdeviceptr {
        let raw = self.raw;
        mem::forget(self);
        raw
    }
}

device_values!(DeviceBuffer);
device_views!(DeviceBuffer);

impl<T> fmt::Debug for DeviceBuffer<T> {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceBuffer")
            .field("ptr", &self.ptr())
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

impl<T> Drop for DeviceBuffer<T> {
    #[inline]
    fn drop(&mut self) {
        if self.raw != 0 {
            if let Some(dropping) = dropping() {
                // SAFETY: the allocation is owned, and this is its last use.
                dropping.done(unsafe { checked::mem_free(self.raw) });
            }
        }
    }
}
