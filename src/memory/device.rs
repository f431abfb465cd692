//! Device memory.

use core::marker::PhantomData;
use core::{fmt, mem};

use crate::error::{Error, dropping};
use crate::refusal::Refusal;
use crate::sys::{self, CUresult, Function};
use crate::{Borrowed, Context, DeviceCopy, DevicePtr, Result, Stream, checked};

/// Device memory for a number of values, which does not change: the device's `Box<[T]>`.
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
/// Copies without a stream come after all earlier work of the null stream and of the streams that wait for it, and are
/// done with the host's memory when they return. A copy *to* a device may reach it a little later, if the slice is not
/// page-locked: before any later work of those streams, but not before that of a
/// [non-blocking](Stream::non_blocking) one, which must be made to wait ([`Context::synchronize`], or an [`Event`](crate::Event)
/// recorded in the null stream). Indices and lengths count values, unless a name says bytes.
pub struct DeviceBuffer<T: DeviceCopy> {
    raw: sys::CUdeviceptr,
    len: usize,
    context: Option<Context>,
    /// They are on the device: a buffer owns no `T` of the host's.
    values: PhantomData<T>,
}

// SAFETY: device memory belongs to no thread, and `T` is plain data.
unsafe impl<T: DeviceCopy> Send for DeviceBuffer<T> {}
// SAFETY: as above; what writes takes `&mut self` or is unsafe.
unsafe impl<T: DeviceCopy> Sync for DeviceBuffer<T> {}

impl<T: DeviceCopy> DeviceBuffer<T> {
    /// Allocates room for `len` values; what they are is not defined ([`cuMemAlloc`](checked::mem_alloc)).
    ///
    /// Where that is no byte at all, nothing is allocated: the address is 0, and copying or setting nothing asks nothing of
    /// the driver.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_OUT_OF_MEMORY` if there is not enough memory.
    #[doc(alias = "cuMemAlloc")]
    #[track_caller]
    pub fn alloc(context: &Context, len: usize) -> Result<Self> {
        // More than there are addresses is more than there is memory.
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

    /// Allocates room for `len` values, sets all bytes to zero, and waits until they are: so also for earlier work of
    /// the null stream and of the streams that it waits for.
    ///
    /// # Errors
    /// As [`alloc`](Self::alloc); a fault of the work that was waited for.
    #[track_caller]
    pub fn zeroed(context: &Context, len: usize) -> Result<Self> {
        let _current = context.enter()?;
        let mut buffer = Self::alloc(context, len)?;
        buffer.fill_u8(0)?;
        if buffer.size_bytes() > 0 {
            // Setting is only queued. A stream that does not wait for the null stream would see it half done.
            // SAFETY: the null stream of the context, which is current.
            unsafe { checked::stream_synchronize(core::ptr::null_mut()) }?;
        }
        Ok(buffer)
    }

    /// Allocates room for a slice and copies it there.
    ///
    /// # Errors
    /// Same as [`alloc`](Self::alloc).
    #[track_caller]
    pub fn from_slice(context: &Context, values: &[T]) -> Result<Self> {
        let _current = context.enter()?;
        let mut buffer = Self::alloc(context, values.len())?;
        buffer.copy_from(values)?;
        Ok(buffer)
    }

    /// How many values there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The size in bytes.
    #[must_use]
    pub const fn size_bytes(&self) -> usize {
        self.len * size_of::<T>()
    }

    /// The address, for kernels. It is good as long as the buffer lives.
    #[must_use]
    pub const fn ptr(&self) -> DevicePtr {
        DevicePtr::from_raw(self.raw)
    }

    /// Makes the buffer's context current for one call.
    #[track_caller]
    fn enter(&self) -> Result<Option<crate::context::Entered<'_>>> {
        match &self.context {
            Some(context) => context.enter().map(Some),
            None => Ok(None),
        }
    }

    /// The address of the value at `index`, if `len` values from there on are inside.
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
    pub fn copy_from(&mut self, values: &[T]) -> Result<()> {
        self.copy_from_at(0, values)
    }

    /// Copies a slice to the buffer from `index` on ([`cuMemcpyHtoD`](checked::memcpy_htod)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the range is not inside the buffer.
    #[doc(alias = "cuMemcpyHtoD")]
    #[track_caller]
    pub fn copy_from_at(&mut self, index: usize, values: &[T]) -> Result<()> {
        let to = self.range(index, values.len(), Function::cuMemcpyHtoD)?;
        if size_of_val(values) == 0 {
            return Ok(());
        }
        let _current = self.enter()?;
        // SAFETY: the range is inside the allocation, and the slice was read on return.
        unsafe { checked::memcpy_htod(to, values) }
    }

    /// Copies the start of the buffer to a slice ([`cuMemcpyDtoH`](checked::memcpy_dtoh)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the slice is longer than the buffer, or an error from the work that was waited
    /// for.
    #[doc(alias = "cuMemcpyDtoH")]
    #[track_caller]
    pub fn copy_to(&self, values: &mut [T]) -> Result<()> {
        self.copy_to_at(0, values)
    }

    /// Copies from `index` on to a slice ([`cuMemcpyDtoH`](checked::memcpy_dtoh)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the range is not inside the buffer, or an error from the work that was waited
    /// for.
    #[doc(alias = "cuMemcpyDtoH")]
    #[track_caller]
    pub fn copy_to_at(&self, index: usize, values: &mut [T]) -> Result<()> {
        let from = self.range(index, values.len(), Function::cuMemcpyDtoH)?;
        if size_of_val(values) == 0 {
            return Ok(());
        }
        let _current = self.enter()?;
        // SAFETY: the range is inside the allocation, any bytes are a `T`, and the copy is done on return.
        unsafe { checked::memcpy_dtoh(values, from) }
    }

    /// All values, on the host ([`cuMemcpyDtoH`](checked::memcpy_dtoh)).
    ///
    /// # Errors
    /// 2 if the host has not so much memory; a fault of the work that was waited for.
    #[doc(alias = "cuMemcpyDtoH")]
    #[track_caller]
    pub fn to_vec(&self) -> Result<Vec<T>> {
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
            // SAFETY: the room is as long as the buffer.
            unsafe { checked::memcpy_dtoh(room, self.raw) }?;
        }
        // SAFETY: the copy is done, and any bytes are a `T`.
        unsafe { values.set_len(self.len) };
        Ok(values)
    }

    /// Copies the start of another buffer, as long as this one, to this one; queued in the null stream
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

    /// Sets every byte; queued in the null stream ([`cuMemsetD8`](checked::memset_d8)).
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
        // SAFETY: the range is the allocation, and any bytes are a `T`.
        unsafe { checked::memset_d8(self.raw, value, self.size_bytes()) }
    }

    /// Sets every 16 bits; queued in the null stream ([`cuMemsetD16`](checked::memset_d16)).
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

    /// Sets every 32 bits; queued in the null stream ([`cuMemsetD32`](checked::memset_d32)).
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
    /// [`Stream::upload`] does the same without `unsafe`.
    ///
    /// # Safety
    /// Until the copy is done the slice stays valid and unchanged, and the buffer is neither dropped nor used by work
    /// that does not wait for it.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the slice is longer than the buffer.
    #[doc(alias = "cuMemcpyHtoDAsync")]
    #[track_caller]
    pub unsafe fn copy_from_async(&mut self, values: &[T], stream: &Stream) -> Result<()> {
        // SAFETY: upheld by the caller.
        unsafe { self.copy_from_at_async(0, values, stream) }
    }

    /// Queues a copy of a slice to the buffer from `index` on ([`cuMemcpyHtoDAsync`](checked::memcpy_htod_async)).
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
    ) -> Result<()> {
        let to = self.range(index, values.len(), Function::cuMemcpyHtoDAsync)?;
        if size_of_val(values) == 0 {
            return Ok(());
        }
        // SAFETY: the range is inside the allocation; the rest is the caller's.
        unsafe { checked::memcpy_htod_async(to, values, stream.as_raw()) }
    }

    /// Queues a copy of the start of the buffer to a slice ([`cuMemcpyDtoHAsync`](checked::memcpy_dtoh_async)).
    /// [`Stream::download`] does the same without `unsafe`.
    ///
    /// # Safety
    /// Until the copy is done the slice stays valid and is not touched, and the buffer is neither dropped nor written by
    /// work that does not wait for it.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the slice is longer than the buffer.
    #[doc(alias = "cuMemcpyDtoHAsync")]
    #[track_caller]
    pub unsafe fn copy_to_async(&self, values: &mut [T], stream: &Stream) -> Result<()> {
        // SAFETY: upheld by the caller.
        unsafe { self.copy_to_at_async(0, values, stream) }
    }

    /// Queues a copy from `index` on to a slice ([`cuMemcpyDtoHAsync`](checked::memcpy_dtoh_async)).
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
    ) -> Result<()> {
        let from = self.range(index, values.len(), Function::cuMemcpyDtoHAsync)?;
        if size_of_val(values) == 0 {
            return Ok(());
        }
        // SAFETY: the range is inside the allocation; the rest is the caller's.
        unsafe { checked::memcpy_dtoh_async(values, from, stream.as_raw()) }
    }

    /// Queues a copy of the start of another buffer ([`cuMemcpyDtoDAsync`](checked::memcpy_dtod_async)).
    ///
    /// # Safety
    /// Until the copy is done neither buffer is dropped or used by work that does not wait for it.
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
        // SAFETY: both ranges are inside their allocations; the rest is the caller's.
        unsafe { checked::memcpy_dtod_async(self.raw, from, self.size_bytes(), stream.as_raw()) }
    }

    /// Queues the setting of every byte ([`cuMemsetD8Async`](checked::memset_d8_async)).
    ///
    /// # Safety
    /// Until it is done the buffer is neither dropped nor used by work that does not wait for it.
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
        // SAFETY: the range is the allocation; the rest is the caller's.
        unsafe { checked::memset_d8_async(self.raw, value, self.size_bytes(), stream.as_raw()) }
    }

    /// Queues the setting of every 16 bits ([`cuMemsetD16Async`](checked::memset_d16_async)).
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
        // SAFETY: the range is the allocation; the rest is the caller's.
        unsafe { checked::memset_d16_async(self.raw, value, units, stream.as_raw()) }
    }

    /// Queues the setting of every 32 bits ([`cuMemsetD32Async`](checked::memset_d32_async)).
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
        // SAFETY: the range is the allocation; the rest is the caller's.
        unsafe { checked::memset_d32_async(self.raw, value, units, stream.as_raw()) }
    }

    /// Frees the memory, waiting for work that uses it ([`cuMemFree`](checked::mem_free)). Dropping does the same.
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[doc(alias = "cuMemFree")]
    #[track_caller]
    pub fn free(mut self) -> Result<()> {
        if self.raw == 0 {
            return Ok(());
        }
        // SAFETY: the allocation is ours, and null from here on.
        unsafe { checked::mem_free(mem::take(&mut self.raw)) }
    }

    /// C's address, good as long as `self`.
    #[must_use]
    pub const fn as_raw(&self) -> sys::CUdeviceptr {
        self.raw
    }

    /// Takes over memory that C allocated in `context`.
    ///
    /// # Safety
    /// The address is the start of an allocation of at least `len` values in that context, and nobody else frees it.
    #[must_use]
    pub unsafe fn from_raw(raw: sys::CUdeviceptr, len: usize, context: &Context) -> Self {
        Self {
            raw,
            len,
            context: Some(context.clone()),
            values: PhantomData,
        }
    }

    /// Memory that belongs to someone else. The caller makes its context current for copies.
    ///
    /// # Safety
    /// From the address on there are `len` values of device memory as long as the value lives.
    #[must_use]
    pub const unsafe fn borrow_raw<'a>(raw: sys::CUdeviceptr, len: usize) -> Borrowed<'a, Self> {
        Borrowed::new(Self {
            raw,
            len,
            context: None,
            values: PhantomData,
        })
    }

    /// Gives the memory away; the context that it needs is kept alive for good.
    #[must_use]
    pub fn into_raw(self) -> sys::CUdeviceptr {
        let raw = self.raw;
        mem::forget(self);
        raw
    }

    /// The context that the memory was allocated in, if it is known.
    #[must_use]
    pub const fn context(&self) -> Option<&Context> {
        self.context.as_ref()
    }
}

impl<T: DeviceCopy> fmt::Debug for DeviceBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceBuffer")
            .field("ptr", &self.ptr())
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

impl<T: DeviceCopy> Drop for DeviceBuffer<T> {
    fn drop(&mut self) {
        if self.raw != 0 {
            // SAFETY: the allocation is ours, and this is its last use.
            dropping().done(unsafe { checked::mem_free(self.raw) });
        }
    }
}
