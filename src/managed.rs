//! Managed memory: memory that the host and devices access at the same address.

mod batch;
mod range;

use core::marker::PhantomData;
use core::{fmt, mem, slice};

pub use batch::{discard, discard_and_prefetch, prefetch};
pub use range::RangeAttributes;

use crate::error::{Error, dropping};
use crate::memory::{device_values, device_views};
use crate::refusal::Refusal;
use crate::sys::{self, CUdevice_attribute, CUmemAttach_flags, CUresult, Function};
use crate::{Context, Download, Result, Stream, Upload, checked};

/// A buffer of a fixed number of values in managed memory, which the host and devices access at the same address: the
/// driver moves its pages between them.
///
/// ```
/// # use cuda_driver::{Context, Device, ManagedBuffer, Stream, sys};
/// # cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software).unwrap().install().unwrap();
/// # cuda_driver::init()?;
/// # let device = Device::first()?;
/// # let context = Context::create(device)?;
/// # if device.attribute(sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS)? == 0 { return Ok(()); }
/// let mut buffer = ManagedBuffer::<f32>::alloc(&context, 1000)?;
/// buffer.host_mut()?.fill(1.5);
///
/// let stream = Stream::new(&context)?;
/// buffer.prefetch(.., sys::CUmemLocation::device(device.as_raw()), &stream)?;
/// // … launches in `stream` that use `buffer.ptr()` …
/// assert_eq!(buffer.host()?[999], 1.5); // waits for the launches
/// # Ok::<(), cuda_driver::Error>(())
/// ```
///
/// [`host`](Self::host) and [`host_mut`](Self::host_mut) wait for all work of the buffer's context. On a device that
/// lacks `CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS` they return an error, because there the host must not access
/// any managed memory while a kernel runs. The copies of the [views](crate::DeviceSlice) work on every device.
///
/// On a device with `CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS`, a program may allocate more managed memory than
/// the device has. It becomes very slow if its kernels use that much.
pub struct ManagedBuffer<T> {
    raw: sys::CUdeviceptr,
    len: usize,
    /// True if the host may access the memory while kernels run.
    concurrent: bool,
    context: Context,
    /// Marks the type of the values, which the host accesses.
    values: PhantomData<T>,
}

impl<T> ManagedBuffer<T> {
    /// Allocates `len` values with undefined contents that all devices and streams can access
    /// ([`cuMemAllocManaged`](checked::mem_alloc_managed)). If the size is 0 bytes, nothing is allocated.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_OUT_OF_MEMORY` if there is not enough memory, `CUDA_ERROR_NOT_SUPPORTED` if the device has
    /// no managed memory, and `CUDA_ERROR_INVALID_VALUE` if `T` needs a larger alignment than the driver provides.
    #[inline]
    #[doc(alias = "cuMemAllocManaged")]
    #[track_caller]
    pub fn alloc(context: &Context, len: usize) -> Result<Self> {
        Self::with_flags(context, len, CUmemAttach_flags::CU_MEM_ATTACH_GLOBAL)
    }

    /// Allocates `len` values with undefined contents and the flag `CU_MEM_ATTACH_GLOBAL` or `CU_MEM_ATTACH_HOST`
    /// ([`cuMemAllocManaged`](checked::mem_alloc_managed)). Work on a device that lacks
    /// `CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS` may use memory with `CU_MEM_ATTACH_HOST` only after it was
    /// [attached](Self::attach) to a stream.
    ///
    /// # Errors
    /// Same as [`alloc`](Self::alloc), and `CUDA_ERROR_INVALID_VALUE` for other flags.
    #[inline]
    #[doc(alias = "cuMemAllocManaged")]
    #[track_caller]
    pub fn with_flags(context: &Context, len: usize, flags: CUmemAttach_flags) -> Result<Self> {
        let bytes = len.saturating_mul(size_of::<T>());
        let mut raw = 0;
        let mut concurrent = true;
        if bytes > 0 {
            let attribute = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS;
            let _current = context.enter()?;
            concurrent = context.device()?.attribute(attribute)? != 0;
            // SAFETY: the driver checks size and flags.
            raw = unsafe { checked::mem_alloc_managed(bytes, flags.0) }?;
            if raw % align_of::<T>() as u64 != 0 {
                // SAFETY: the allocation is owned, and this is its last use.
                let _ = unsafe { checked::mem_free(raw) };
                let code = CUresult::CUDA_ERROR_INVALID_VALUE;
                return Err(Error::refused(code, Function::cuMemAllocManaged, Refusal::Alignment));
            }
        }
        Ok(Self {
            raw,
            len,
            concurrent,
            context: context.clone(),
            values: PhantomData,
        })
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
        let mut buffer = Self::alloc(context, values.len())?;
        buffer.as_mut_slice().copy_from(values)?;
        Ok(buffer)
    }

    /// Waits for all work of the context, and returns the values for reading by the host.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_NOT_SUPPORTED` if the device lacks `CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS`, or an
    /// error from the work that was waited for.
    ///
    /// # Panics
    /// Same as [`Context::synchronize`].
    #[inline]
    #[track_caller]
    pub fn host(&self) -> Result<&[T]>
    where
        T: Download,
    {
        let values = self.settle()?;
        // SAFETY: any bytes are a `T`. No work of the context uses the values any more, and safe work that writes them
        // needs `&mut self`.
        Ok(unsafe { slice::from_raw_parts(values, self.len) })
    }

    /// Waits for all work of the context, and returns the values for reading and writing by the host.
    ///
    /// # Errors
    /// Same as [`host`](Self::host).
    ///
    /// # Panics
    /// Same as [`Context::synchronize`].
    #[inline]
    #[track_caller]
    pub fn host_mut(&mut self) -> Result<&mut [T]>
    where
        T: Download,
    {
        let values = self.settle()?;
        // SAFETY: as above, and safe work that reads them needs `&self`.
        Ok(unsafe { slice::from_raw_parts_mut(values, self.len) })
    }

    /// Waits until the host may access the values, and returns their address on the host.
    #[inline]
    #[track_caller]
    fn settle(&self) -> Result<*mut T> {
        if !self.concurrent {
            let code = CUresult::CUDA_ERROR_NOT_SUPPORTED;
            return Err(Error::refused(code, Function::cuCtxSynchronize, Refusal::Concurrent));
        }
        if self.raw == 0 {
            return Ok(core::ptr::NonNull::dangling().as_ptr());
        }
        self.context.synchronize()?;
        Ok(core::ptr::with_exposed_provenance_mut(self.raw as usize))
    }

    /// Restricts the memory, in stream order, to a stream (`CU_MEM_ATTACH_SINGLE`) or to the host
    /// (`CU_MEM_ATTACH_HOST`), or lifts the restriction (`CU_MEM_ATTACH_GLOBAL`)
    /// ([`cuStreamAttachMemAsync`](checked::stream_attach_mem_async)).
    ///
    /// # Safety
    /// While the memory is restricted, no other work may use it, including the copies and fills of the buffer's views.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for other flags, and for `CU_MEM_ATTACH_SINGLE` with the null stream.
    #[inline]
    #[doc(alias = "cuStreamAttachMemAsync")]
    #[track_caller]
    pub unsafe fn attach(&self, stream: &Stream, flags: CUmemAttach_flags) -> Result<()> {
        let function = Function::cuStreamAttachMemAsync;
        if !matches!(flags.0, 1 | 2 | 4) {
            // A driver may crash if the flags are 0.
            let code = CUresult::CUDA_ERROR_INVALID_VALUE;
            return Err(Error::refused(code, function, Refusal::Attach));
        }
        if self.raw == 0 {
            return Ok(());
        }
        // SAFETY: the start of managed memory; the rest is upheld by the caller.
        unsafe { checked::stream_attach_mem_async(stream.as_raw(), self.raw, 0, flags.0) }
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

    /// Takes ownership of managed memory that was allocated in `context`.
    ///
    /// # Safety
    /// The address must be the start of an allocation of managed memory with at least `len` aligned values, and no
    /// other code may free it.
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[track_caller]
    pub unsafe fn from_raw(raw: sys::CUdeviceptr, len: usize, context: &Context) -> Result<Self> {
        let attribute = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS;
        Ok(Self {
            raw,
            len,
            concurrent: context.device()?.attribute(attribute)? != 0,
            context: context.clone(),
            values: PhantomData,
        })
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

device_values!(ManagedBuffer);
device_views!(ManagedBuffer);

impl<T> fmt::Debug for ManagedBuffer<T> {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManagedBuffer")
            .field("ptr", &self.ptr())
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

impl<T> Drop for ManagedBuffer<T> {
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
