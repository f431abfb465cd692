//! Pitched device memory: rows of values, each of which starts at an aligned address.

use core::marker::PhantomData;
use core::{fmt, mem};

use super::{DevicePtr, DeviceSlice, DeviceSliceMut, Download, Upload};
use crate::error::{Error, dropping};
use crate::refusal::Refusal;
use crate::sys::{self, CUDA_MEMCPY2D, CUmemorytype, CUresult, Function};
use crate::{Context, Result, Stream, checked};

/// A buffer of rows of values in device memory. Each row begins at an aligned address, [`pitch`](Self::pitch) bytes
/// after the one before, so that accesses to all rows are equally fast.
///
/// ```
/// # use cuda_driver::{Context, Device, PitchedBuffer};
/// # cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software).unwrap().install().unwrap();
/// # cuda_driver::init()?;
/// # let context = Context::create(Device::first()?)?;
/// let mut picture = PitchedBuffer::<f32>::alloc(&context, 3, 2)?;
/// picture.copy_from(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// assert!(picture.pitch() >= 12);
/// assert_eq!(picture.row(1)?.to_vec()?, [4.0, 5.0, 6.0]);
/// # Ok::<(), cuda_driver::Error>(())
/// ```
///
/// [`DeviceBuffer`](crate::DeviceBuffer) describes when copies wait, and when they finish.
pub struct PitchedBuffer<T> {
    raw: sys::CUdeviceptr,
    /// Bytes from one row to the next.
    pitch: usize,
    width: usize,
    height: usize,
    context: Context,
    /// Marks the type of the values. They are on the device, so their type does not restrict the threads that use the
    /// buffer.
    values: PhantomData<fn() -> T>,
}

impl<T> PitchedBuffer<T> {
    /// Allocates `height` rows of `width` values with undefined contents
    /// ([`cuMemAllocPitch`](checked::mem_alloc_pitch)). If the size is 0 bytes, nothing is allocated and the address is
    /// 0.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_OUT_OF_MEMORY` if there is not enough memory, or `CUDA_ERROR_INVALID_VALUE` if the size in
    /// bytes overflows.
    #[inline]
    #[doc(alias = "cuMemAllocPitch")]
    #[track_caller]
    pub fn alloc(context: &Context, width: usize, height: usize) -> Result<Self> {
        // Also checked if the driver is not called, because the methods multiply these numbers again.
        let (Some(bytes), Some(_)) = (width.checked_mul(size_of::<T>()), width.checked_mul(height)) else {
            let code = CUresult::CUDA_ERROR_INVALID_VALUE;
            return Err(Error::refused(code, Function::cuMemAllocPitch, Refusal::Overflow));
        };
        let (mut raw, mut pitch) = (0, 0);
        if bytes > 0 && height > 0 {
            let _current = context.enter()?;
            // The size of the accesses by which the driver chooses the pitch. It accepts 4, 8 and 16 bytes: here, the
            // largest of these that divides the size of a value, or else 4.
            let access = match size_of::<T>() {
                size if size % 16 == 0 => 16,
                size if size % 8 == 0 => 8,
                _ => 4,
            };
            // SAFETY: no preconditions; the size is checked below.
            let allocated = unsafe { checked::mem_alloc_pitch(bytes, height, access) }?;
            (raw, pitch) = (allocated.dptr, allocated.pitch);
        }
        // SAFETY: the new memory is owned here. If it does not have this size, it is only freed.
        let buffer = unsafe { Self::from_raw(raw, pitch, width, height, context) };
        // Driver 580 computes the size modulo 2^64: if it overflows, the allocation is too small for the rows.
        if pitch.checked_mul(height).is_none() {
            let code = CUresult::CUDA_ERROR_INVALID_VALUE;
            return Err(Error::refused(code, Function::cuMemAllocPitch, Refusal::Overflow));
        }
        Ok(buffer)
    }

    /// Returns the number of values in a row.
    #[inline]
    #[must_use]
    pub const fn width(&self) -> usize {
        self.width
    }

    /// Returns the number of rows.
    #[inline]
    #[must_use]
    pub const fn height(&self) -> usize {
        self.height
    }

    /// Returns the number of bytes from one row to the next.
    #[inline]
    #[must_use]
    pub const fn pitch(&self) -> usize {
        self.pitch
    }

    /// Returns the address of the first row, which is valid until the buffer is dropped.
    #[inline]
    #[must_use]
    pub const fn ptr(&self) -> DevicePtr {
        DevicePtr::from_raw(self.raw)
    }

    /// Returns a view of a row.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if there is no such row.
    #[inline]
    #[track_caller]
    pub fn row(&self, row: usize) -> Result<DeviceSlice<'_, T>> {
        let ptr = self.row_ptr(row)?;
        Ok(DeviceSlice::new(ptr, self.width, Some(&self.context)))
    }

    /// Returns a view of a row that can be written.
    ///
    /// # Errors
    /// Same as [`row`](Self::row).
    #[inline]
    #[track_caller]
    pub fn row_mut(&mut self, row: usize) -> Result<DeviceSliceMut<'_, T>> {
        let ptr = self.row_ptr(row)?;
        Ok(DeviceSliceMut::new(ptr, self.width, Some(&self.context)))
    }

    #[inline]
    #[track_caller]
    fn row_ptr(&self, row: usize) -> Result<DevicePtr> {
        if row >= self.height {
            // No call is made. The error prints no function.
            let function = Function::cuMemGetAddressRange;
            return Err(Error::refused(
                CUresult::CUDA_ERROR_INVALID_VALUE,
                function,
                Refusal::ViewRange,
            ));
        }
        Ok(self.ptr().byte_add((row * self.pitch) as u64))
    }

    /// Copies all rows from a slice that contains them without gaps
    /// ([`cuMemcpy2DUnaligned`](checked::memcpy_2d_unaligned)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the slice is not as long as all rows.
    #[inline]
    #[doc(alias = "cuMemcpy2DUnaligned")]
    #[track_caller]
    pub fn copy_from(&mut self, values: &[T]) -> Result<()>
    where
        T: Upload,
    {
        let mut copy = self.description(values.len())?;
        if self.raw == 0 {
            return Ok(());
        }
        copy.srcMemoryType = CUmemorytype::CU_MEMORYTYPE_HOST;
        copy.srcHost = values.as_ptr().cast();
        copy.dstMemoryType = CUmemorytype::CU_MEMORYTYPE_DEVICE;
        copy.dstDevice = self.raw;
        copy.dstPitch = self.pitch;
        let _current = self.context.enter()?;
        // SAFETY: slice and buffer have the size that is copied, and the driver has read the slice when the call
        // returns.
        unsafe { checked::memcpy_2d_unaligned(&copy) }
    }

    /// Copies all rows to the host, without gaps ([`cuMemcpy2DUnaligned`](checked::memcpy_2d_unaligned)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_OUT_OF_MEMORY` if there is not enough host memory, or an error from the work that was waited
    /// for.
    #[inline]
    #[doc(alias = "cuMemcpy2DUnaligned")]
    #[track_caller]
    pub fn to_vec(&self) -> Result<Vec<T>>
    where
        T: Download,
    {
        let len = self.width * self.height;
        let mut values: Vec<T> = Vec::new();
        if values.try_reserve_exact(len).is_err() {
            let code = CUresult::CUDA_ERROR_OUT_OF_MEMORY;
            return Err(Error::refused(code, Function::cuMemcpy2DUnaligned, Refusal::HostMemory));
        }
        if self.raw != 0 {
            let mut copy = self.description(len)?;
            copy.srcMemoryType = CUmemorytype::CU_MEMORYTYPE_DEVICE;
            copy.srcDevice = self.raw;
            copy.srcPitch = self.pitch;
            copy.dstMemoryType = CUmemorytype::CU_MEMORYTYPE_HOST;
            copy.dstHost = values.as_mut_ptr().cast();
            let _current = self.context.enter()?;
            // SAFETY: the spare capacity and the buffer have the size that is copied.
            unsafe { checked::memcpy_2d_unaligned(&copy) }?;
        }
        // SAFETY: the copy is done, and any bytes are a `T`.
        unsafe { values.set_len(len) };
        Ok(values)
    }

    /// Returns the description of a copy of all rows from or to `len` values on the host without gaps. The caller adds
    /// the source and the destination.
    #[inline]
    #[track_caller]
    fn description(&self, len: usize) -> Result<CUDA_MEMCPY2D> {
        if len != self.width * self.height {
            let code = CUresult::CUDA_ERROR_INVALID_VALUE;
            return Err(Error::refused(code, Function::cuMemcpy2DUnaligned, Refusal::AllRows));
        }
        Ok(CUDA_MEMCPY2D {
            WidthInBytes: self.width * size_of::<T>(),
            Height: self.height,
            ..Default::default()
        })
    }

    /// Sets every byte of all rows. The fill is queued in the null stream ([`cuMemsetD2D8`](checked::memset_d2d8)).
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuMemsetD2D8")]
    #[doc(alias = "memset")]
    #[track_caller]
    pub fn fill_u8(&mut self, value: u8) -> Result<()> {
        let width = self.units(1, Function::cuMemsetD2D8)?;
        if self.raw == 0 {
            return Ok(());
        }
        let _current = self.context.enter()?;
        // SAFETY: the rows are the buffer's memory.
        unsafe { checked::memset_d2d8(self.raw, self.pitch, value, width, self.height) }
    }

    /// Sets every 16-bit value of all rows. The fill is queued in the null stream
    /// ([`cuMemsetD2D16`](checked::memset_d2d16)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the size of a row is not a multiple of 2 bytes.
    #[inline]
    #[doc(alias = "cuMemsetD2D16")]
    #[doc(alias = "memset")]
    #[track_caller]
    pub fn fill_u16(&mut self, value: u16) -> Result<()> {
        let width = self.units(2, Function::cuMemsetD2D16)?;
        if self.raw == 0 {
            return Ok(());
        }
        let _current = self.context.enter()?;
        // SAFETY: as above.
        unsafe { checked::memset_d2d16(self.raw, self.pitch, value, width, self.height) }
    }

    /// Sets every 32-bit value of all rows. The fill is queued in the null stream
    /// ([`cuMemsetD2D32`](checked::memset_d2d32)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the size of a row is not a multiple of 4 bytes.
    #[inline]
    #[doc(alias = "cuMemsetD2D32")]
    #[doc(alias = "memset")]
    #[track_caller]
    pub fn fill_u32(&mut self, value: u32) -> Result<()> {
        let width = self.units(4, Function::cuMemsetD2D32)?;
        if self.raw == 0 {
            return Ok(());
        }
        let _current = self.context.enter()?;
        // SAFETY: as above.
        unsafe { checked::memset_d2d32(self.raw, self.pitch, value, width, self.height) }
    }

    /// Queues a fill of every byte of all rows ([`cuMemsetD2D8Async`](checked::memset_d2d8_async)).
    ///
    /// # Safety
    /// Until the fill is done, the memory must not be freed or used by work that does not wait for the fill. The end of
    /// the borrow does not wait for it.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_CONTEXT` on the null stream if no context is current.
    #[inline]
    #[doc(alias = "cuMemsetD2D8Async")]
    #[doc(alias = "memset")]
    #[track_caller]
    pub unsafe fn fill_u8_async(&mut self, value: u8, stream: &Stream) -> Result<()> {
        let width = self.units(1, Function::cuMemsetD2D8Async)?;
        if self.raw == 0 {
            return Ok(());
        }
        // SAFETY: the rows are the buffer's memory; the rest is upheld by the caller.
        unsafe { checked::memset_d2d8_async(self.raw, self.pitch, value, width, self.height, stream.as_raw()) }
    }

    /// Queues a fill of every 16-bit value of all rows ([`cuMemsetD2D16Async`](checked::memset_d2d16_async)).
    ///
    /// # Safety
    /// Same as [`fill_u8_async`](Self::fill_u8_async).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the size of a row is not a multiple of 2 bytes, and the errors of
    /// [`fill_u8_async`](Self::fill_u8_async).
    #[inline]
    #[doc(alias = "cuMemsetD2D16Async")]
    #[doc(alias = "memset")]
    #[track_caller]
    pub unsafe fn fill_u16_async(&mut self, value: u16, stream: &Stream) -> Result<()> {
        let width = self.units(2, Function::cuMemsetD2D16Async)?;
        if self.raw == 0 {
            return Ok(());
        }
        // SAFETY: the rows are the buffer's memory; the rest is upheld by the caller.
        unsafe { checked::memset_d2d16_async(self.raw, self.pitch, value, width, self.height, stream.as_raw()) }
    }

    /// Queues a fill of every 32-bit value of all rows ([`cuMemsetD2D32Async`](checked::memset_d2d32_async)).
    ///
    /// # Safety
    /// Same as [`fill_u8_async`](Self::fill_u8_async).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the size of a row is not a multiple of 4 bytes, and the errors of
    /// [`fill_u8_async`](Self::fill_u8_async).
    #[inline]
    #[doc(alias = "cuMemsetD2D32Async")]
    #[doc(alias = "memset")]
    #[track_caller]
    pub unsafe fn fill_u32_async(&mut self, value: u32, stream: &Stream) -> Result<()> {
        let width = self.units(4, Function::cuMemsetD2D32Async)?;
        if self.raw == 0 {
            return Ok(());
        }
        // SAFETY: the rows are the buffer's memory; the rest is upheld by the caller.
        unsafe { checked::memset_d2d32_async(self.raw, self.pitch, value, width, self.height, stream.as_raw()) }
    }

    /// Returns the number of units of `bytes` bytes in a row for a fill by `function`.
    #[inline]
    #[track_caller]
    fn units(&self, bytes: usize, function: Function) -> Result<usize> {
        let row = self.width * size_of::<T>();
        if row % bytes == 0 {
            return Ok(row / bytes);
        }
        let code = CUresult::CUDA_ERROR_INVALID_VALUE;
        Err(Error::refused(code, function, Refusal::Unit))
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

    /// Returns the raw address, which is valid until the buffer is dropped.
    #[inline]
    #[must_use]
    pub const fn as_raw(&self) -> sys::CUdeviceptr {
        self.raw
    }

    /// Takes ownership of memory that was allocated in `context`.
    ///
    /// # Safety
    /// The address must be the start of an allocation in that context with `height` rows of `width` values, `pitch`
    /// bytes apart, and no other code may free it.
    #[inline]
    #[must_use]
    pub unsafe fn from_raw(
        raw: sys::CUdeviceptr,
        pitch: usize,
        width: usize,
        height: usize,
        context: &Context,
    ) -> Self {
        Self {
            raw,
            pitch,
            width,
            height,
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

    /// Returns the context of the memory.
    #[inline]
    #[must_use]
    pub const fn context(&self) -> &Context {
        &self.context
    }
}

impl<T> fmt::Debug for PitchedBuffer<T> {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PitchedBuffer")
            .field("ptr", &self.ptr())
            .field("pitch", &self.pitch)
            .field("width", &self.width)
            .field("height", &self.height)
            .finish_non_exhaustive()
    }
}

impl<T> Drop for PitchedBuffer<T> {
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
