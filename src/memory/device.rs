//! Buffers in device memory.

use core::marker::PhantomData;
use core::{fmt, mem};

use crate::error::{Error, dropping};
use crate::refusal::Refusal;
use crate::sys::{self, CUresult, Function};
use crate::{Borrowed, Context, DevicePtr, Download, Result, Stream, Upload, checked};

/// A buffer of a fixed number of values in device memory, like `Box<[T]>` on the host.
///
/// ```no_run
/// # use cuda_driver::{Context, Device, DeviceBuffer};
/// # cuda_driver::init()?;
/// # let context = Context::create(Device::first()?)?;
/// let mut buffer = DeviceBuffer::from_slice(&context, &[1.0f32, 2.0, 3.0])?;
/// assert_eq!(buffer.to_vec()?, [1.0, 2.0, 3.0]);
/// buffer.fill_u32(0)?;
/// # Ok::<(), cuda_driver::Error>(())
/// ```
///
/// Copies without a stream wait for all earlier work in the null stream and in blocking streams, and no longer access the
/// host memory when they return. If the slice is not page-locked, a copy *to* the device may finish after the method
/// returns. Later work in the null stream and in blocking streams waits for it, but work in a
/// [non-blocking](Stream::non_blocking) stream does not: synchronise first, with [`Context::synchronize`] or with an
/// [`Event`](crate::Event) recorded in the null stream.
///
/// Indices and lengths are in values, not bytes.
pub struct DeviceBuffer<T> {
    raw: sys::CUdeviceptr,
    len: usize,
    context: Option<Context>,
    /// Marks the type of the values. They are on the device, so their type does not restrict the threads that use the buffer.
    values: PhantomData<fn() -> T>,
}

impl<T> DeviceBuffer<T> {
    /// Allocates `len` values with undefined contents ([`cuMemAlloc`](checked::mem_alloc)).
    ///
    /// If the size is 0 bytes, nothing is allocated and the address is 0; copies and fills then do not call the driver.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_OUT_OF_MEMORY` if there is not enough memory.
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
            context: Some(context.clone()),
            values: PhantomData,
        })
    }

    /// Allocates `len` values and sets all bytes to zero. Waits until that is done, and therefore for earlier work in the
    /// null stream and in blocking streams.
    ///
    /// # Errors
    /// Same as [`alloc`](Self::alloc), or an error from the work that was waited for.
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

    /// Returns the number of values.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns true if there are no values.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the size in bytes.
    #[must_use]
    pub const fn size_bytes(&self) -> usize {
        self.len * size_of::<T>()
    }

    /// Returns the address, which is valid until the buffer is dropped.
    #[must_use]
    pub const fn ptr(&self) -> DevicePtr {
        DevicePtr::from_raw(self.raw)
    }

    /// Makes the buffer's context current until the guard is dropped, if it is known.
    #[track_caller]
    fn enter(&self) -> Result<Option<crate::context::Entered<'_>>> {
        match &self.context {
            Some(context) => context.enter().map(Some),
            None => Ok(None),
        }
    }

    /// Returns the address of the value at `index`, if `len` values from there are inside the buffer.
    #[track_caller]
    fn range(&self, index: usize, len: usize, function: Function) -> Result<sys::CUdeviceptr> {
        if index > self.len || len > self.len - index {
            return Err(Error::refused(
                CUresult::CUDA_ERROR_INVALID_VALUE,
                function,
                Refusal::Range,
            ));
        }
        Ok(self.raw + (index * size_of::<T>()) as sys::CUdeviceptr)
    }

    /// Copies a slice to the start of the buffer ([`cuMemcpyHtoD`](checked::memcpy_htod)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the slice is longer than the buffer.
    #[doc(alias = "cuMemcpyHtoD")]
    #[track_caller]
    pub fn copy_from(&mut self, values: &[T]) -> Result<()>
    where
        T: Upload,
    {
        self.copy_from_at(0, values)
    }

    /// Copies a slice to the buffer, starting at `index` ([`cuMemcpyHtoD`](checked::memcpy_htod)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the range is not inside the buffer.
    #[doc(alias = "cuMemcpyHtoD")]
    #[track_caller]
    pub fn copy_from_at(&mut self, index: usize, values: &[T]) -> Result<()>
    where
        T: Upload,
    {
        let to = self.range(index, values.len(), Function::cuMemcpyHtoD)?;
        if size_of_val(values) == 0 {
            return Ok(());
        }
        let _current = self.enter()?;
        // SAFETY: the range is inside the allocation, and the driver has read the slice when the call returns.
        unsafe { checked::memcpy_htod(to, values) }
    }

    /// Copies the start of the buffer to a slice ([`cuMemcpyDtoH`](checked::memcpy_dtoh)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the slice is longer than the buffer, or an error from the work that was waited
    /// for.
    #[doc(alias = "cuMemcpyDtoH")]
    #[track_caller]
    pub fn copy_to(&self, values: &mut [T]) -> Result<()>
    where
        T: Download,
    {
        self.copy_to_at(0, values)
    }

    /// Copies the values from `index` to a slice ([`cuMemcpyDtoH`](checked::memcpy_dtoh)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the range is not inside the buffer, or an error from the work that was waited
    /// for.
    #[doc(alias = "cuMemcpyDtoH")]
    #[track_caller]
    pub fn copy_to_at(&self, index: usize, values: &mut [T]) -> Result<()>
    where
        T: Download,
    {
        let from = self.range(index, values.len(), Function::cuMemcpyDtoH)?;
        if size_of_val(values) == 0 {
            return Ok(());
        }
        let _current = self.enter()?;
        // SAFETY: the range is inside the allocation, any bytes are a `T`, and the copy is done when the call returns.
        unsafe { checked::memcpy_dtoh(values, from) }
    }

    /// Copies all values to the host ([`cuMemcpyDtoH`](checked::memcpy_dtoh)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_OUT_OF_MEMORY` if there is not enough host memory, or an error from the work that was waited for.
    #[doc(alias = "cuMemcpyDtoH")]
    #[track_caller]
    pub fn to_vec(&self) -> Result<Vec<T>>
    where
        T: Download,
    {
        let mut values: Vec<T> = Vec::new();
        if values.try_reserve_exact(self.len).is_err() {
            return Err(Error::refused(
                CUresult::CUDA_ERROR_OUT_OF_MEMORY,
                Function::cuMemcpyDtoH,
                Refusal::HostMemory,
            ));
        }
        if self.size_bytes() > 0 {
            let room = &mut values.spare_capacity_mut()[..self.len];
            let _current = self.enter()?;
            // SAFETY: the spare capacity is as long as the buffer.
            unsafe { checked::memcpy_dtoh(room, self.raw) }?;
        }
        // SAFETY: the copy is done, and any bytes are a `T`.
        unsafe { values.set_len(self.len) };
        Ok(values)
    }

    /// Fills this buffer with the start of another one. The copy is queued in the null stream
    /// ([`cuMemcpyDtoD`](checked::memcpy_dtod)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the other buffer is shorter.
    #[doc(alias = "cuMemcpyDtoD")]
    #[track_caller]
    pub fn copy_from_device(&mut self, other: &Self) -> Result<()> {
        let from = other.range(0, self.len, Function::cuMemcpyDtoD)?;
        if self.size_bytes() == 0 {
            return Ok(());
        }
        let _current = self.enter()?;
        // SAFETY: both ranges are inside their allocations.
        unsafe { checked::memcpy_dtod(self.raw, from, self.size_bytes()) }
    }

    /// Sets every byte. The fill is queued in the null stream ([`cuMemsetD8`](checked::memset_d8)).
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[doc(alias = "cuMemsetD8")]
    #[doc(alias = "memset")]
    #[track_caller]
    pub fn fill_u8(&mut self, value: u8) -> Result<()> {
        if self.size_bytes() == 0 {
            return Ok(());
        }
        let _current = self.enter()?;
        // SAFETY: the range is the whole allocation, and any bytes are a `T`.
        unsafe { checked::memset_d8(self.raw, value, self.size_bytes()) }
    }

    /// Sets every 16-bit value. The fill is queued in the null stream ([`cuMemsetD16`](checked::memset_d16)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the buffer's size is not a multiple of 2 bytes.
    #[doc(alias = "cuMemsetD16")]
    #[doc(alias = "memset")]
    #[track_caller]
    pub fn fill_u16(&mut self, value: u16) -> Result<()> {
        let units = self.units(2, Function::cuMemsetD16)?;
        if units == 0 {
            return Ok(());
        }
        let _current = self.enter()?;
        // SAFETY: as above.
        unsafe { checked::memset_d16(self.raw, value, units) }
    }

    /// Sets every 32-bit value. The fill is queued in the null stream ([`cuMemsetD32`](checked::memset_d32)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the buffer's size is not a multiple of 4 bytes.
    #[doc(alias = "cuMemsetD32")]
    #[doc(alias = "memset")]
    #[track_caller]
    pub fn fill_u32(&mut self, value: u32) -> Result<()> {
        let units = self.units(4, Function::cuMemsetD32)?;
        if units == 0 {
            return Ok(());
        }
        let _current = self.enter()?;
        // SAFETY: as above.
        unsafe { checked::memset_d32(self.raw, value, units) }
    }

    #[track_caller]
    fn units(&self, bytes: usize, function: Function) -> Result<usize> {
        if self.size_bytes() % bytes != 0 {
            return Err(Error::refused(
                CUresult::CUDA_ERROR_INVALID_VALUE,
                function,
                Refusal::Unit,
            ));
        }
        Ok(self.size_bytes() / bytes)
    }

    /// Queues a copy of a slice to the start of the buffer ([`cuMemcpyHtoDAsync`](checked::memcpy_htod_async)).
    /// [`Stream::upload`] is a safe alternative.
    ///
    /// # Safety
    /// Until the copy is done, the slice must stay valid and unchanged, and the buffer must not be dropped or used by work
    /// that does not wait for the copy.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the slice is longer than the buffer.
    #[doc(alias = "cuMemcpyHtoDAsync")]
    #[track_caller]
    pub unsafe fn copy_from_async(&mut self, values: &[T], stream: &Stream) -> Result<()>
    where
        T: Upload,
    {
        // SAFETY: upheld by the caller.
        unsafe { self.copy_from_at_async(0, values, stream) }
    }

    /// Queues a copy of a slice to the buffer, starting at `index` ([`cuMemcpyHtoDAsync`](checked::memcpy_htod_async)).
    ///
    /// # Safety
    /// Same as [`copy_from_async`](Self::copy_from_async).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the range is not inside the buffer.
    #[doc(alias = "cuMemcpyHtoDAsync")]
    #[track_caller]
    pub unsafe fn copy_from_at_async(
        &mut self,
        index: usize,
        values: &[T],
        stream: &Stream,
    ) -> Result<()>
    where
        T: Upload,
    {
        let to = self.range(index, values.len(), Function::cuMemcpyHtoDAsync)?;
        if size_of_val(values) == 0 {
            return Ok(());
        }
        // SAFETY: the range is inside the allocation; the rest is upheld by the caller.
        unsafe { checked::memcpy_htod_async(to, values, stream.as_raw()) }
    }

    /// Queues a copy of the start of the buffer to a slice ([`cuMemcpyDtoHAsync`](checked::memcpy_dtoh_async)).
    /// [`Stream::download`] is a safe alternative.
    ///
    /// # Safety
    /// Until the copy is done, the slice must stay valid and must not be accessed, and the buffer must not be dropped or
    /// written by work that does not wait for the copy.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the slice is longer than the buffer.
    #[doc(alias = "cuMemcpyDtoHAsync")]
    #[track_caller]
    pub unsafe fn copy_to_async(&self, values: &mut [T], stream: &Stream) -> Result<()>
    where
        T: Download,
    {
        // SAFETY: upheld by the caller.
        unsafe { self.copy_to_at_async(0, values, stream) }
    }

    /// Queues a copy of the values from `index` to a slice ([`cuMemcpyDtoHAsync`](checked::memcpy_dtoh_async)).
    ///
    /// # Safety
    /// As [`copy_to_async`](Self::copy_to_async).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the range is not inside the buffer.
    #[doc(alias = "cuMemcpyDtoHAsync")]
    #[track_caller]
    pub unsafe fn copy_to_at_async(
        &self,
        index: usize,
        values: &mut [T],
        stream: &Stream,
    ) -> Result<()>
    where
        T: Download,
    {
        let from = self.range(index, values.len(), Function::cuMemcpyDtoHAsync)?;
        if size_of_val(values) == 0 {
            return Ok(());
        }
        // SAFETY: the range is inside the allocation; the rest is upheld by the caller.
        unsafe { checked::memcpy_dtoh_async(values, from, stream.as_raw()) }
    }

    /// Queues a copy of the start of another buffer ([`cuMemcpyDtoDAsync`](checked::memcpy_dtod_async)).
    ///
    /// # Safety
    /// Until the copy is done, neither buffer may be dropped or used by work that does not wait for the copy.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the other buffer is shorter.
    #[doc(alias = "cuMemcpyDtoDAsync")]
    #[track_caller]
    pub unsafe fn copy_from_device_async(&mut self, other: &Self, stream: &Stream) -> Result<()> {
        let from = other.range(0, self.len, Function::cuMemcpyDtoDAsync)?;
        if self.size_bytes() == 0 {
            return Ok(());
        }
        // SAFETY: both ranges are inside their allocations; the rest is upheld by the caller.
        unsafe { checked::memcpy_dtod_async(self.raw, from, self.size_bytes(), stream.as_raw()) }
    }

    /// Queues a fill of every byte ([`cuMemsetD8Async`](checked::memset_d8_async)).
    ///
    /// # Safety
    /// Until the fill is done, the buffer must not be dropped or used by work that does not wait for the fill.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_CONTEXT` on the null stream if no context is current.
    #[doc(alias = "cuMemsetD8Async")]
    #[doc(alias = "memset")]
    #[track_caller]
    pub unsafe fn fill_u8_async(&mut self, value: u8, stream: &Stream) -> Result<()> {
        if self.size_bytes() == 0 {
            return Ok(());
        }
        // SAFETY: the range is the whole allocation; the rest is upheld by the caller.
        unsafe { checked::memset_d8_async(self.raw, value, self.size_bytes(), stream.as_raw()) }
    }

    /// Queues a fill of every 16-bit value ([`cuMemsetD16Async`](checked::memset_d16_async)).
    ///
    /// # Safety
    /// Same as [`fill_u8_async`](Self::fill_u8_async).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the buffer's size is not a multiple of 2 bytes.
    #[doc(alias = "cuMemsetD16Async")]
    #[doc(alias = "memset")]
    #[track_caller]
    pub unsafe fn fill_u16_async(&mut self, value: u16, stream: &Stream) -> Result<()> {
        let units = self.units(2, Function::cuMemsetD16Async)?;
        if units == 0 {
            return Ok(());
        }
        // SAFETY: the range is the whole allocation; the rest is upheld by the caller.
        unsafe { checked::memset_d16_async(self.raw, value, units, stream.as_raw()) }
    }

    /// Queues a fill of every 32-bit value ([`cuMemsetD32Async`](checked::memset_d32_async)).
    ///
    /// # Safety
    /// Same as [`fill_u8_async`](Self::fill_u8_async).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the buffer's size is not a multiple of 4 bytes.
    #[doc(alias = "cuMemsetD32Async")]
    #[doc(alias = "memset")]
    #[track_caller]
    pub unsafe fn fill_u32_async(&mut self, value: u32, stream: &Stream) -> Result<()> {
        let units = self.units(4, Function::cuMemsetD32Async)?;
        if units == 0 {
            return Ok(());
        }
        // SAFETY: the range is the whole allocation; the rest is upheld by the caller.
        unsafe { checked::memset_d32_async(self.raw, value, units, stream.as_raw()) }
    }

    /// Frees the memory after waiting for work that uses it ([`cuMemFree`](checked::mem_free)). Dropping does the same.
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[doc(alias = "cuMemFree")]
    #[track_caller]
    pub fn free(mut self) -> Result<()> {
        if self.raw == 0 {
            return Ok(());
        }
        // SAFETY: the allocation is owned, and replaced by 0 so that `drop` does not use it.
        unsafe { checked::mem_free(mem::take(&mut self.raw)) }
    }

    /// Returns the raw address, which is valid until the buffer is dropped.
    #[must_use]
    pub const fn as_raw(&self) -> sys::CUdeviceptr {
        self.raw
    }

    /// Takes ownership of memory that was allocated in `context`.
    ///
    /// # Safety
    /// The address must be the start of an allocation of at least `len` values in that context, and no other code may free
    /// it.
    #[must_use]
    pub unsafe fn from_raw(raw: sys::CUdeviceptr, len: usize, context: &Context) -> Self {
        Self {
            raw,
            len,
            context: Some(context.clone()),
            values: PhantomData,
        }
    }

    /// Borrows device memory. The caller must make its context current for copies.
    ///
    /// # Safety
    /// There must be `len` values of device memory at the address as long as the returned value lives.
    #[must_use]
    pub const unsafe fn borrow_raw<'a>(raw: sys::CUdeviceptr, len: usize) -> Borrowed<'a, Self> {
        Borrowed::new(Self {
            raw,
            len,
            context: None,
            values: PhantomData,
        })
    }

    /// Releases ownership of the memory. The reference to the context is leaked, so the context stays alive.
    #[must_use]
    pub fn into_raw(self) -> sys::CUdeviceptr {
        let raw = self.raw;
        mem::forget(self);
        raw
    }

    /// Returns the context of the memory; `None` for a borrowed buffer.
    #[must_use]
    pub const fn context(&self) -> Option<&Context> {
        self.context.as_ref()
    }
}

impl<T> fmt::Debug for DeviceBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceBuffer")
            .field("ptr", &self.ptr())
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

impl<T> Drop for DeviceBuffer<T> {
    fn drop(&mut self) {
        if self.raw != 0 {
            // SAFETY: the allocation is owned, and this is its last use.
            dropping().done(unsafe { checked::mem_free(self.raw) });
        }
    }
}
