//! Views of device memory that can be written.

use core::fmt;
use core::marker::PhantomData;
use core::ops::RangeBounds;

use super::{DeviceSlice, Download, Upload};
use crate::error::Error;
use crate::refusal::Refusal;
use crate::stream::synchronize_null;
use crate::sys::{CUresult, Function};
use crate::{Context, DevicePtr, Result, Stream, checked};

/// A view of values in device memory that can be written, like `&mut [T]` on the host.
///
/// ```
/// # use cuda_driver::{Context, Device, DeviceBuffer};
/// # cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software).unwrap().install().unwrap();
/// # cuda_driver::init()?;
/// # let context = Context::create(Device::first()?)?;
/// let mut buffer = DeviceBuffer::<u32>::zeroed(&context, 6)?;
/// buffer.slice_mut(4..)?.copy_from(&[8, 9])?;
/// let (mut first, second) = buffer.split_at_mut(3)?;
/// first.copy_from_device(&second)?;
/// assert_eq!(buffer.to_vec()?, [0, 8, 9, 0, 8, 9]);
/// # Ok::<(), cuda_driver::Error>(())
/// ```
///
/// The rules are the same as for a [`DeviceSlice`]. [`DeviceBuffer`](crate::DeviceBuffer) describes copies without a
/// stream.
#[repr(transparent)] // As an argument of a kernel, the view is the first field of its `DeviceSlice`.
pub struct DeviceSliceMut<'a, T> {
    view: DeviceSlice<'a, T>,
    exclusive: PhantomData<&'a mut ()>,
}

impl<'a, T> DeviceSliceMut<'a, T> {
    #[inline]
    pub(super) const fn new(ptr: DevicePtr, len: usize, context: Option<&'a Context>) -> Self {
        Self::over(DeviceSlice::new(ptr, len, context))
    }

    #[inline]
    const fn over(view: DeviceSlice<'a, T>) -> Self {
        Self {
            view,
            exclusive: PhantomData,
        }
    }

    /// Returns a view of `len` values at an address. Without a context, the caller must make the memory's context
    /// current for the methods that copy or fill.
    ///
    /// # Safety
    /// For all of `'a`, and until the work that the view's methods queue is done, the address must point to device
    /// memory with `len` values, which belongs to `context` if one is given.
    #[inline]
    #[must_use]
    pub const unsafe fn from_raw_parts(ptr: DevicePtr, len: usize, context: Option<&'a Context>) -> Self {
        Self::new(ptr, len, context)
    }

    /// Returns the number of values.
    #[inline]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.view.len
    }

    /// Returns true if there are no values.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.view.len == 0
    }

    /// Returns the size in bytes.
    #[inline]
    #[must_use]
    pub const fn size_bytes(&self) -> usize {
        self.view.size_bytes()
    }

    /// Returns the address of the first value.
    #[inline]
    #[must_use]
    pub const fn ptr(&self) -> DevicePtr {
        self.view.ptr
    }

    /// Returns the context of the memory; `None` if it is not known.
    #[inline]
    #[must_use]
    pub const fn context(&self) -> Option<&'a Context> {
        self.view.context
    }

    /// Returns a read-only view that borrows this one.
    #[inline]
    #[must_use]
    pub const fn as_slice(&self) -> DeviceSlice<'_, T> {
        self.view
    }

    /// Returns a view of the same values that borrows this one, for calls that take a view by value.
    #[inline]
    #[must_use]
    pub const fn reborrow(&mut self) -> DeviceSliceMut<'_, T> {
        DeviceSliceMut::over(self.view)
    }

    /// Returns a read-only view of a range of values.
    ///
    /// # Errors
    /// Same as [`DeviceSlice::slice`].
    #[inline]
    #[track_caller]
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<DeviceSlice<'_, T>> {
        self.view.slice(range)
    }

    /// Returns a view of a range of values that can be written.
    ///
    /// # Errors
    /// Same as [`DeviceSlice::slice`].
    #[inline]
    #[track_caller]
    pub fn slice_mut(&mut self, range: impl RangeBounds<usize>) -> Result<DeviceSliceMut<'_, T>> {
        self.reborrow().into_slice(range)
    }

    /// Returns two read-only views: of the values before `index`, and of the others.
    ///
    /// # Errors
    /// Same as [`DeviceSlice::split_at`].
    #[inline]
    #[track_caller]
    pub fn split_at(&self, index: usize) -> Result<(DeviceSlice<'_, T>, DeviceSlice<'_, T>)> {
        self.view.split_at(index)
    }

    /// Returns two views that can be written: of the values before `index`, and of the others.
    ///
    /// # Errors
    /// Same as [`DeviceSlice::split_at`].
    #[inline]
    #[track_caller]
    pub fn split_at_mut(&mut self, index: usize) -> Result<(DeviceSliceMut<'_, T>, DeviceSliceMut<'_, T>)> {
        self.reborrow().into_split_at(index)
    }

    /// Shortens the view to a range of its values.
    ///
    /// # Errors
    /// Same as [`DeviceSlice::slice`].
    #[inline]
    #[track_caller]
    pub fn into_slice(self, range: impl RangeBounds<usize>) -> Result<Self> {
        self.view.slice(range).map(Self::over)
    }

    /// Splits the view in two, which live as long as this one.
    ///
    /// # Errors
    /// Same as [`DeviceSlice::split_at`].
    #[inline]
    #[track_caller]
    pub fn into_split_at(self, index: usize) -> Result<(Self, Self)> {
        let (first, second) = self.view.split_at(index)?;
        Ok((Self::over(first), Self::over(second)))
    }

    /// Returns a read-only view of the same bytes as values of another type.
    ///
    /// # Errors
    /// Same as [`DeviceSlice::cast`].
    #[inline]
    #[track_caller]
    pub fn cast<U>(&self) -> Result<DeviceSlice<'_, U>> {
        self.view.cast()
    }

    /// Returns a view of the same bytes as values of another type, which can be written.
    ///
    /// # Errors
    /// Same as [`DeviceSlice::cast`].
    #[inline]
    #[track_caller]
    pub fn cast_mut<U>(&mut self) -> Result<DeviceSliceMut<'_, U>> {
        self.view.cast().map(DeviceSliceMut::over)
    }

    /// Fills this view with the first values of another view. The copy is queued in the null stream
    /// ([`cuMemcpyDtoD`](checked::memcpy_dtod)). If the contexts of the views differ, the method waits for the copy,
    /// because freeing the other memory may not wait for it.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the other view is shorter.
    #[inline]
    #[doc(alias = "cuMemcpyDtoD")]
    #[track_caller]
    pub fn copy_from_device<'b>(&mut self, other: impl Into<DeviceSlice<'b, T>>) -> Result<()>
    where
        T: 'b,
    {
        let other = other.into();
        other.require(self.len(), Function::cuMemcpyDtoD)?;
        if self.size_bytes() == 0 {
            return Ok(());
        }
        let _current = self.view.enter()?;
        // SAFETY: both ranges are inside their memory.
        unsafe { checked::memcpy_dtod(self.view.raw(), other.raw(), self.size_bytes()) }?;
        if self.context() == other.context() {
            return Ok(());
        }
        synchronize_null()
    }

    /// Sets every byte. The fill is queued in the null stream ([`cuMemsetD8`](checked::memset_d8)).
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuMemsetD8")]
    #[doc(alias = "memset")]
    #[track_caller]
    pub fn fill_u8(&mut self, value: u8) -> Result<()> {
        let units = self.units(1, Function::cuMemsetD8)?;
        if units == 0 {
            return Ok(());
        }
        let _current = self.view.enter()?;
        // SAFETY: the range is the view's memory.
        unsafe { checked::memset_d8(self.view.raw(), value, units) }
    }

    /// Sets every 16-bit value. The fill is queued in the null stream ([`cuMemsetD16`](checked::memset_d16)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the view's size or address is not a multiple of 2 bytes.
    #[inline]
    #[doc(alias = "cuMemsetD16")]
    #[doc(alias = "memset")]
    #[track_caller]
    pub fn fill_u16(&mut self, value: u16) -> Result<()> {
        let units = self.units(2, Function::cuMemsetD16)?;
        if units == 0 {
            return Ok(());
        }
        let _current = self.view.enter()?;
        // SAFETY: as above.
        unsafe { checked::memset_d16(self.view.raw(), value, units) }
    }

    /// Sets every 32-bit value. The fill is queued in the null stream ([`cuMemsetD32`](checked::memset_d32)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the view's size or address is not a multiple of 4 bytes.
    #[inline]
    #[doc(alias = "cuMemsetD32")]
    #[doc(alias = "memset")]
    #[track_caller]
    pub fn fill_u32(&mut self, value: u32) -> Result<()> {
        let units = self.units(4, Function::cuMemsetD32)?;
        if units == 0 {
            return Ok(());
        }
        let _current = self.view.enter()?;
        // SAFETY: as above.
        unsafe { checked::memset_d32(self.view.raw(), value, units) }
    }

    /// Returns the number of units of `bytes` bytes for a fill by `function`.
    #[inline]
    #[track_caller]
    fn units(&self, bytes: usize, function: Function) -> Result<usize> {
        let refused = |reason| {
            let code = CUresult::CUDA_ERROR_INVALID_VALUE;
            Err(Error::refused(code, function, reason))
        };
        if self.size_bytes() % bytes != 0 {
            return refused(Refusal::Unit);
        }
        if self.size_bytes() > 0 && self.view.raw() % bytes as u64 != 0 {
            return refused(Refusal::UnitAddress);
        }
        Ok(self.size_bytes() / bytes)
    }

    /// Queues a copy of the start of another view ([`cuMemcpyDtoDAsync`](checked::memcpy_dtod_async)).
    ///
    /// # Safety
    /// Until the copy is done, neither memory may be freed or used by work that does not wait for the copy. The end of
    /// the views' lifetimes does not wait for it.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the other view is shorter, and `CUDA_ERROR_INVALID_CONTEXT` on the null
    /// stream if no context is current.
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
        let other = other.into();
        other.require(self.len(), Function::cuMemcpyDtoDAsync)?;
        if self.size_bytes() == 0 {
            return Ok(());
        }
        let (to, from) = (self.view.raw(), other.raw());
        // SAFETY: both ranges are inside their memory; the rest is upheld by the caller.
        unsafe { checked::memcpy_dtod_async(to, from, self.size_bytes(), stream.as_raw()) }
    }

    /// Queues a fill of every byte ([`cuMemsetD8Async`](checked::memset_d8_async)).
    ///
    /// # Safety
    /// Until the fill is done, the memory must not be freed or used by work that does not wait for the fill. The end of
    /// the view's lifetime does not wait for it.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_CONTEXT` on the null stream if no context is current.
    #[inline]
    #[doc(alias = "cuMemsetD8Async")]
    #[doc(alias = "memset")]
    #[track_caller]
    pub unsafe fn fill_u8_async(&mut self, value: u8, stream: &Stream) -> Result<()> {
        let units = self.units(1, Function::cuMemsetD8Async)?;
        if units == 0 {
            return Ok(());
        }
        // SAFETY: the range is the view's memory; the rest is upheld by the caller.
        unsafe { checked::memset_d8_async(self.view.raw(), value, units, stream.as_raw()) }
    }

    /// Queues a fill of every 16-bit value ([`cuMemsetD16Async`](checked::memset_d16_async)).
    ///
    /// # Safety
    /// Same as [`fill_u8_async`](Self::fill_u8_async).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the view's size or address is not a multiple of 2 bytes, and the errors of
    /// [`fill_u8_async`](Self::fill_u8_async).
    #[inline]
    #[doc(alias = "cuMemsetD16Async")]
    #[doc(alias = "memset")]
    #[track_caller]
    pub unsafe fn fill_u16_async(&mut self, value: u16, stream: &Stream) -> Result<()> {
        let units = self.units(2, Function::cuMemsetD16Async)?;
        if units == 0 {
            return Ok(());
        }
        // SAFETY: the range is the view's memory; the rest is upheld by the caller.
        unsafe { checked::memset_d16_async(self.view.raw(), value, units, stream.as_raw()) }
    }

    /// Queues a fill of every 32-bit value ([`cuMemsetD32Async`](checked::memset_d32_async)).
    ///
    /// # Safety
    /// Same as [`fill_u8_async`](Self::fill_u8_async).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the view's size or address is not a multiple of 4 bytes, and the errors of
    /// [`fill_u8_async`](Self::fill_u8_async).
    #[inline]
    #[doc(alias = "cuMemsetD32Async")]
    #[doc(alias = "memset")]
    #[track_caller]
    pub unsafe fn fill_u32_async(&mut self, value: u32, stream: &Stream) -> Result<()> {
        let units = self.units(4, Function::cuMemsetD32Async)?;
        if units == 0 {
            return Ok(());
        }
        // SAFETY: the range is the view's memory; the rest is upheld by the caller.
        unsafe { checked::memset_d32_async(self.view.raw(), value, units, stream.as_raw()) }
    }
}

impl<T> DeviceSliceMut<'_, T> {
    /// Copies a slice to the start of the view ([`cuMemcpyHtoD`](checked::memcpy_htod)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the slice is longer than the view, or an error from the work that was
    /// waited for.
    #[inline]
    #[doc(alias = "cuMemcpyHtoD")]
    #[track_caller]
    pub fn copy_from(&mut self, values: &[T]) -> Result<()>
    where
        T: Upload,
    {
        self.view.require(values.len(), Function::cuMemcpyHtoD)?;
        if size_of_val(values) == 0 {
            return Ok(());
        }
        let _current = self.view.enter()?;
        // SAFETY: the range is inside the memory, and the driver has read the slice when the call returns.
        unsafe { checked::memcpy_htod(self.view.raw(), values) }
    }

    /// Queues a copy of a slice to the start of the view ([`cuMemcpyHtoDAsync`](checked::memcpy_htod_async)).
    /// [`Stream::upload`] is a safe alternative for a whole buffer.
    ///
    /// # Safety
    /// Until the copy is done, the slice must stay valid and unchanged, and the memory must not be freed or used by
    /// work that does not wait for the copy. The end of the view's lifetime does not wait for it.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the slice is longer than the view, and `CUDA_ERROR_INVALID_CONTEXT` on the
    /// null stream if no context is current.
    #[inline]
    #[doc(alias = "cuMemcpyHtoDAsync")]
    #[track_caller]
    pub unsafe fn copy_from_async(&mut self, values: &[T], stream: &Stream) -> Result<()>
    where
        T: Upload,
    {
        let function = Function::cuMemcpyHtoDAsync;
        self.view.require(values.len(), function)?;
        if size_of_val(values) == 0 {
            return Ok(());
        }
        // SAFETY: the range is inside the memory; the rest is upheld by the caller.
        unsafe { checked::memcpy_htod_async(self.view.raw(), values, stream.as_raw()) }
    }
}

impl<T> DeviceSliceMut<'_, T> {
    /// Copies the start of the view to a slice.
    ///
    /// # Errors
    /// Same as [`DeviceSlice::copy_to`].
    #[inline]
    #[track_caller]
    pub fn copy_to(&self, values: &mut [T]) -> Result<()>
    where
        T: Download,
    {
        self.view.copy_to(values)
    }

    /// Copies all values to the host.
    ///
    /// # Errors
    /// Same as [`DeviceSlice::to_vec`].
    #[inline]
    #[track_caller]
    pub fn to_vec(&self) -> Result<Vec<T>>
    where
        T: Download,
    {
        self.view.to_vec()
    }

    /// Queues a copy of the start of the view to a slice.
    ///
    /// # Safety
    /// Same as [`DeviceSlice::copy_to_async`].
    ///
    /// # Errors
    /// Same as [`DeviceSlice::copy_to_async`].
    #[inline]
    #[track_caller]
    pub unsafe fn copy_to_async(&self, values: &mut [T], stream: &Stream) -> Result<()>
    where
        T: Download,
    {
        // SAFETY: upheld by the caller.
        unsafe { self.view.copy_to_async(values, stream) }
    }
}

impl<T> fmt::Debug for DeviceSliceMut<'_, T> {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceSliceMut")
            .field("ptr", &self.ptr())
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}
