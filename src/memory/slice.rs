//! Read-only views of device memory.

use core::fmt;
use core::marker::PhantomData;
use core::ops::{Bound, RangeBounds};

use super::{DeviceSliceMut, Download};
use crate::context::Entered;
use crate::error::Error;
use crate::refusal::Refusal;
use crate::sys::{self, CUresult, Function};
use crate::{Context, DevicePtr, Result, Stream, checked};

/// A read-only view of values in device memory, like `&[T]` on the host: an address, a length and a context.
///
/// ```
/// # use cuda_driver::{Context, Device, DeviceBuffer};
/// # cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software).unwrap().install().unwrap();
/// # cuda_driver::init()?;
/// # let context = Context::create(Device::first()?)?;
/// let buffer = DeviceBuffer::from_slice(&context, &[1.0f32, 2.0, 3.0, 4.0])?;
/// let middle = buffer.slice(1..3)?;
/// assert_eq!(middle.to_vec()?, [2.0, 3.0]);
///
/// let (first, second) = buffer.split_at(2)?;
/// assert_eq!(first.to_vec()?, [1.0, 2.0]);
/// assert_eq!(second.cast::<u32>()?.to_vec()?, [0x4040_0000, 0x4080_0000]);
/// # Ok::<(), cuda_driver::Error>(())
/// ```
///
/// Methods for a part return an error if the part is not inside the view; none of them panics. Ranges, indices and
/// lengths are in values, not bytes.
///
/// A view borrows the memory on the host only: the compiler keeps the owner from freeing it while the view exists.
/// Work that a device does with the memory later is not covered: the asynchronous methods and launches that queue such
/// work are `unsafe`.
///
/// ```compile_fail,E0505
/// # fn f(buffer: cuda_driver::DeviceBuffer<f32>) -> cuda_driver::Result<()> {
/// let view = buffer.as_slice();
/// buffer.free()?; // error: the view is used later
/// view.to_vec()?;
/// # Ok(())
/// # }
/// ```
///
/// A view is a [`KernelArg`](crate::KernelArg): the kernel gets its address.
#[repr(C)] // As an argument of a kernel, the view is its first field.
pub struct DeviceSlice<'a, T> {
    pub(super) ptr: DevicePtr,
    pub(super) len: usize,
    /// `None` if the caller makes the context current.
    pub(super) context: Option<&'a Context>,
    /// Marks the type of the values. They are on the device, so their type does not restrict the threads that use the
    /// view.
    values: PhantomData<fn() -> T>,
}

impl<T> Copy for DeviceSlice<'_, T> {}

impl<T> Clone for DeviceSlice<'_, T> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<'a, T> DeviceSlice<'a, T> {
    #[inline]
    pub(super) const fn new(ptr: DevicePtr, len: usize, context: Option<&'a Context>) -> Self {
        Self {
            ptr,
            len,
            context,
            values: PhantomData,
        }
    }

    /// Returns a view of `len` values at an address. Without a context, the caller must make the memory's context
    /// current for the methods that copy.
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
        self.len
    }

    /// Returns true if there are no values.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the size in bytes.
    #[inline]
    #[must_use]
    pub const fn size_bytes(&self) -> usize {
        self.len * size_of::<T>()
    }

    /// Returns a `dma-buf` descriptor of the memory, for drivers of other devices such as network cards
    /// ([`cuMemGetHandleForAddressRange`](checked::mem_get_handle_for_address_range)). Address and size must be
    /// multiples of the host's page size.
    ///
    /// # Safety
    /// The memory must stay allocated as long as a device uses the descriptor, and work of that device must be ordered
    /// with work of this device.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for memory that is not aligned, and `CUDA_ERROR_NOT_SUPPORTED` if the device
    /// lacks [the feature](sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED).
    #[cfg(unix)]
    #[inline]
    #[doc(alias = "cuMemGetHandleForAddressRange")]
    #[track_caller]
    pub unsafe fn dma_buf(&self) -> Result<std::os::fd::OwnedFd> {
        use std::os::fd::{FromRawFd as _, OwnedFd};

        let mut descriptor: core::ffi::c_int = -1;
        let kind = sys::CUmemRangeHandleType::CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD;
        let out = (&raw mut descriptor).cast();
        let _current = self.enter()?;
        // SAFETY: the range is allocated, and a handle of this kind is an `int`.
        unsafe { checked::mem_get_handle_for_address_range(out, self.raw(), self.size_bytes(), kind, 0) }?;
        // SAFETY: the driver opened the descriptor for the caller.
        Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
    }

    /// Returns the address of the first value.
    #[inline]
    #[must_use]
    pub const fn ptr(&self) -> DevicePtr {
        self.ptr
    }

    /// Returns the context of the memory; `None` if it is not known.
    #[inline]
    #[must_use]
    pub const fn context(&self) -> Option<&'a Context> {
        self.context
    }

    /// Returns a view of a range of values.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the range is not inside this view.
    #[inline]
    #[track_caller]
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<Self> {
        let (start, end) = bounds(&range, self.len)?;
        Ok(Self::new(
            self.ptr.byte_add((start * size_of::<T>()) as u64),
            end - start,
            self.context,
        ))
    }

    /// Returns two views: of the values before `index`, and of the others.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if `index` is larger than the length.
    #[inline]
    #[track_caller]
    pub fn split_at(&self, index: usize) -> Result<(Self, Self)> {
        Ok((self.slice(..index)?, self.slice(index..)?))
    }

    /// Returns a view of the same bytes as values of another type. Any two types are allowed: the bytes become values
    /// only when they are copied to the host, and such copies require [`Download`].
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the view's size is not a multiple of the size of `U`, or its address is
    /// not a multiple of the alignment of `U`, which device code relies on.
    #[inline]
    #[track_caller]
    pub fn cast<U>(&self) -> Result<DeviceSlice<'a, U>> {
        let bytes = self.size_bytes();
        let len = match bytes.checked_rem(size_of::<U>()) {
            Some(0) => bytes / size_of::<U>(),
            // A `U` has 0 bytes, so only a view of 0 bytes can be cast.
            None if bytes == 0 => 0,
            _ => return Err(refused(Refusal::CastSize)),
        };
        if self.ptr.as_raw() % align_of::<U>() as u64 != 0 {
            return Err(refused(Refusal::CastAlignment));
        }
        Ok(DeviceSlice::new(self.ptr, len, self.context))
    }

    /// Makes the view's context current until the guard is dropped. Does nothing if the context is not known.
    #[inline]
    #[track_caller]
    pub(super) fn enter(&self) -> Result<Option<Entered<'a>>> {
        self.context.map(Context::enter).transpose()
    }

    /// Returns an error of `function` if there are fewer than `len` values.
    #[inline]
    #[track_caller]
    pub(super) fn require(&self, len: usize, function: Function) -> Result<()> {
        if len > self.len {
            let code = CUresult::CUDA_ERROR_INVALID_VALUE;
            return Err(Error::refused(code, function, Refusal::Range));
        }
        Ok(())
    }

    /// Returns the raw address.
    #[inline]
    pub(super) const fn raw(&self) -> sys::CUdeviceptr {
        self.ptr.as_raw()
    }
}

impl<T> DeviceSlice<'_, T> {
    /// Copies the start of the view to a slice ([`cuMemcpyDtoH`](checked::memcpy_dtoh)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the slice is longer than the view, or an error from the work that was
    /// waited for.
    #[inline]
    #[doc(alias = "cuMemcpyDtoH")]
    #[track_caller]
    pub fn copy_to(&self, values: &mut [T]) -> Result<()>
    where
        T: Download,
    {
        self.require(values.len(), Function::cuMemcpyDtoH)?;
        if size_of_val(values) == 0 {
            return Ok(());
        }
        let _current = self.enter()?;
        // SAFETY: the range is inside the memory, any bytes are a `T`, and the copy is done when the call returns.
        unsafe { checked::memcpy_dtoh(values, self.raw()) }
    }

    /// Copies all values to the host ([`cuMemcpyDtoH`](checked::memcpy_dtoh)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_OUT_OF_MEMORY` if there is not enough host memory, or an error from the work that was waited
    /// for.
    #[inline]
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
            // SAFETY: the spare capacity is as long as the view.
            unsafe { checked::memcpy_dtoh(room, self.raw()) }?;
        }
        // SAFETY: the copy is done, and any bytes are a `T`.
        unsafe { values.set_len(self.len) };
        Ok(values)
    }

    /// Queues a copy of the start of the view to a slice ([`cuMemcpyDtoHAsync`](checked::memcpy_dtoh_async)).
    /// [`Stream::download`] is a safe alternative for a whole buffer.
    ///
    /// # Safety
    /// Until the copy is done, the slice must stay valid and must not be accessed, and the memory must not be freed, or
    /// written by work that does not wait for the copy. The end of the view's lifetime does not wait for it.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the slice is longer than the view, and `CUDA_ERROR_INVALID_CONTEXT` on the
    /// null stream if no context is current.
    #[inline]
    #[doc(alias = "cuMemcpyDtoHAsync")]
    #[track_caller]
    pub unsafe fn copy_to_async(&self, values: &mut [T], stream: &Stream) -> Result<()>
    where
        T: Download,
    {
        self.require(values.len(), Function::cuMemcpyDtoHAsync)?;
        if size_of_val(values) == 0 {
            return Ok(());
        }
        // SAFETY: the range is inside the memory; the rest is upheld by the caller.
        unsafe { checked::memcpy_dtoh_async(values, self.raw(), stream.as_raw()) }
    }
}

impl<'a, T> From<&'a DeviceSliceMut<'_, T>> for DeviceSlice<'a, T> {
    #[inline]
    fn from(view: &'a DeviceSliceMut<'_, T>) -> Self {
        view.as_slice()
    }
}

impl<T> fmt::Debug for DeviceSlice<'_, T> {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceSlice")
            .field("ptr", &self.ptr)
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

/// Returns the error for a part or a cast that is not possible.
#[cold]
#[inline]
#[track_caller]
fn refused(reason: Refusal) -> Error {
    // No call is made. The error prints no function.
    let function = Function::cuMemGetAddressRange;
    Error::refused(CUresult::CUDA_ERROR_INVALID_VALUE, function, reason)
}

/// Returns the start and the end of a range inside `len` values.
#[inline]
#[track_caller]
fn bounds(range: &impl RangeBounds<usize>, len: usize) -> Result<(usize, usize)> {
    let start = match range.start_bound() {
        Bound::Included(start) => Some(*start),
        Bound::Excluded(before) => before.checked_add(1),
        Bound::Unbounded => Some(0),
    };
    let end = match range.end_bound() {
        Bound::Included(last) => last.checked_add(1),
        Bound::Excluded(end) => Some(*end),
        Bound::Unbounded => Some(len),
    };
    match (start, end) {
        (Some(start), Some(end)) if start <= end && end <= len => Ok((start, end)),
        _ => Err(refused(Refusal::ViewRange)),
    }
}
