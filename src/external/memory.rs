//! Memory imported from other APIs, and buffers in it.

use core::marker::PhantomData;
use core::{fmt, mem};
#[cfg(unix)]
use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd};
use std::sync::Arc;

use crate::error::dropping;
use crate::memory::device_values;
use crate::sys::{self, CUDA_EXTERNAL_MEMORY_HANDLE_DESC};
use crate::{Context, DeviceSlice, DeviceSliceMut, Result, checked};

/// Memory that another API allocated and exported. Each buffer in it holds a reference to it; dropping the last
/// reference releases it.
///
/// ```
/// # #[cfg(target_os = "linux")] {
/// # use cuda_driver::virtual_memory::{MemoryOptions, PhysicalMemory};
/// # use cuda_driver::{Context, Device};
/// # cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software).unwrap().install().unwrap();
/// # cuda_driver::init()?;
/// # let device = Device::first()?;
/// # let context = &Context::create(device)?;
/// # let mut options = MemoryOptions::on_device(device);
/// # options.handle_types = cuda_driver::sys::CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
/// # let exported = PhysicalMemory::new(&options, 2 << 20)?.export_fd()?;
/// use cuda_driver::external::ExternalMemory;
///
/// // SAFETY: `exported` is a descriptor of 2 MiB, of Vulkan (`vkGetMemoryFdKHR`) or of `PhysicalMemory::export_fd`.
/// let memory = unsafe { ExternalMemory::import_fd(context, exported, 2 << 20) }?;
/// let mut values = memory.buffer::<f32>(0, 1000)?;
/// values.as_mut_slice().copy_from(&[1.0; 1000])?;
/// # }
/// # Ok::<(), cuda_driver::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct ExternalMemory {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    raw: sys::CUexternalMemory,
    /// False if the handle is borrowed, or was destroyed.
    is_owned: bool,
    context: Context,
}

// SAFETY: the handle may be used on any thread.
unsafe impl Send for Inner {}
// SAFETY: as above; the driver synchronises access to its objects.
unsafe impl Sync for Inner {}

impl Inner {
    /// Releases the memory, if possible with its context current.
    ///
    /// # Safety
    /// The handle must be live, and not be used again.
    #[inline]
    #[track_caller]
    unsafe fn end(&self, raw: sys::CUexternalMemory) -> Result<()> {
        let _current = self.context.enter();
        // SAFETY: upheld by the caller.
        unsafe { checked::destroy_external_memory(raw) }
    }
}

impl Drop for Inner {
    #[inline]
    fn drop(&mut self) {
        if self.is_owned {
            if let Some(dropping) = dropping() {
                // SAFETY: the handle is live, and this is its last use.
                dropping.done(unsafe { self.end(self.raw) });
            }
        }
    }
}

impl ExternalMemory {
    /// Imports memory ([`cuImportExternalMemory`](checked::import_external_memory)). The driver then owns a file
    /// descriptor in the description, but not a Win32 handle. Driver 580 also closes the descriptor if it returns
    /// `CUDA_ERROR_UNKNOWN`.
    ///
    /// # Safety
    /// The handle in the description must be valid and of the type that the description names. The memory must have the
    /// size in the description, and stay allocated until it is released here.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_NOT_SUPPORTED` if the device or the operating system does not support this type,
    /// `CUDA_ERROR_INVALID_VALUE` or `CUDA_ERROR_INVALID_HANDLE` for an invalid description, and `CUDA_ERROR_UNKNOWN`
    /// for a file descriptor that is not of memory.
    #[inline]
    #[doc(alias = "cuImportExternalMemory")]
    #[track_caller]
    pub unsafe fn import(context: &Context, description: &CUDA_EXTERNAL_MEMORY_HANDLE_DESC) -> Result<Self> {
        let _current = context.enter()?;
        // SAFETY: upheld by the caller.
        let raw = unsafe { checked::import_external_memory(description) }?;
        // SAFETY: the memory was just imported.
        Ok(unsafe { Self::from_raw(raw, context) })
    }

    /// Imports memory of `size` bytes from a file descriptor of Vulkan or of this driver's virtual memory. The driver
    /// owns the descriptor afterwards; if the import fails, the driver or this function closes it.
    ///
    /// # Safety
    /// The descriptor must refer to memory of this size.
    ///
    /// # Errors
    /// Same as [`import`](Self::import).
    #[cfg(unix)]
    #[inline]
    #[track_caller]
    pub unsafe fn import_fd(context: &Context, fd: OwnedFd, size: u64) -> Result<Self> {
        let mut description = CUDA_EXTERNAL_MEMORY_HANDLE_DESC {
            type_: sys::CUexternalMemoryHandleType::CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD,
            size,
            ..Default::default()
        };
        // Released before the call, because an interposer may panic after the driver closed the descriptor.
        let fd = fd.into_raw_fd();
        description.handle.fd = fd;
        // SAFETY: upheld by the caller.
        unsafe { Self::import(context, &description) }.inspect_err(|error| {
            // Driver 580 closes the descriptor if it returns `CUDA_ERROR_UNKNOWN`, because it is not of memory.
            if error.code() != sys::CUresult::CUDA_ERROR_UNKNOWN {
                // SAFETY: the descriptor is open and has no other owner.
                drop(unsafe { OwnedFd::from_raw_fd(fd) });
            }
        })
    }

    /// Maps `len` values at an offset in bytes
    /// ([`cuExternalMemoryGetMappedBuffer`](checked::external_memory_get_mapped_buffer)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if `len` is 0 or the values are not inside the memory.
    #[inline]
    #[doc(alias = "cuExternalMemoryGetMappedBuffer")]
    #[track_caller]
    pub fn buffer<T>(&self, offset: u64, len: usize) -> Result<ExternalBuffer<T>> {
        let description = sys::CUDA_EXTERNAL_MEMORY_BUFFER_DESC {
            offset,
            // The driver rejects the saturated size.
            size: len.saturating_mul(size_of::<T>()) as u64,
            ..Default::default()
        };
        let _current = self.inner.context.enter()?;
        // SAFETY: the handle is live, and the driver checks the range.
        let raw = unsafe { checked::external_memory_get_mapped_buffer(self.inner.raw, &description) }?;
        Ok(ExternalBuffer {
            raw,
            len,
            memory: self.clone(),
            values: PhantomData,
        })
    }

    /// Maps a mipmapped array
    /// ([`cuExternalMemoryGetMappedMipmappedArray`](checked::external_memory_get_mapped_mipmapped_array)). The caller
    /// owns it: the value of [`MipmappedArray::from_raw`](crate::MipmappedArray::from_raw) destroys it, but does not
    /// keep this memory imported.
    ///
    /// # Safety
    /// The memory must contain an array that matches the description, and the caller must destroy the returned array
    /// before the last reference to this memory is dropped.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for an invalid description.
    #[inline]
    #[doc(alias = "cuExternalMemoryGetMappedMipmappedArray")]
    #[track_caller]
    pub unsafe fn mipmapped_array(
        &self,
        description: &sys::CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC,
    ) -> Result<sys::CUmipmappedArray> {
        let _current = self.inner.context.enter()?;
        // SAFETY: the handle is live; the rest is upheld by the caller.
        unsafe { checked::external_memory_get_mapped_mipmapped_array(self.inner.raw, description) }
    }

    /// Drops this reference. If it is the last one, releases the memory
    /// ([`cuDestroyExternalMemory`](checked::destroy_external_memory)) and returns the result. Otherwise,
    /// the last reference does that.
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuDestroyExternalMemory")]
    #[track_caller]
    pub fn destroy(self) -> Result<()> {
        match Arc::try_unwrap(self.inner) {
            Ok(mut inner) if inner.is_owned => {
                // Keeps `drop` from using the handle again.
                inner.is_owned = false;
                // SAFETY: the handle is live, and this is its last use.
                unsafe { inner.end(inner.raw) }
            }
            _ => Ok(()),
        }
    }

    /// Returns the raw handle, which is valid as long as `self`.
    #[inline]
    #[must_use]
    pub fn as_raw(&self) -> sys::CUexternalMemory {
        self.inner.raw
    }

    /// Takes ownership of memory that was imported in `context`.
    ///
    /// # Safety
    /// The handle must be live and belong to that context, and no other code may destroy it.
    #[inline]
    #[must_use]
    pub unsafe fn from_raw(raw: sys::CUexternalMemory, context: &Context) -> Self {
        Self::of(raw, true, context)
    }

    /// Borrows memory that was imported in `context`. Buffers are mapped in that context. No reference releases the
    /// memory.
    ///
    /// # Safety
    /// The handle must belong to that context, and stay valid as long as all references to the memory and all buffers
    /// in it.
    #[inline]
    #[must_use]
    pub unsafe fn borrow_raw(raw: sys::CUexternalMemory, context: &Context) -> Self {
        Self::of(raw, false, context)
    }

    #[inline]
    fn of(raw: sys::CUexternalMemory, is_owned: bool, context: &Context) -> Self {
        Self {
            inner: Arc::new(Inner {
                raw,
                is_owned,
                context: context.clone(),
            }),
        }
    }

    /// Releases ownership of the handle, so that no reference destroys it. The reference to the context is leaked.
    #[inline]
    #[must_use]
    pub fn into_raw(self) -> sys::CUexternalMemory {
        let raw = self.inner.raw;
        mem::forget(self);
        raw
    }

    /// Returns the context of the memory.
    #[inline]
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.inner.context
    }
}

/// Values in external memory. Dropping unmaps them.
pub struct ExternalBuffer<T> {
    raw: sys::CUdeviceptr,
    len: usize,
    /// Keeps the memory imported until `drop` has unmapped the values.
    memory: ExternalMemory,
    values: PhantomData<fn() -> T>,
}

impl<T> ExternalBuffer<T> {
    /// Unmaps the values after waiting for work that uses them ([`cuMemFree`](checked::mem_free)). Dropping does the
    /// same.
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuMemFree")]
    #[track_caller]
    pub fn unmap(mut self) -> Result<()> {
        // SAFETY: the mapping is owned, and replaced by 0 so that `drop` does not use it.
        unsafe { checked::mem_free(mem::take(&mut self.raw)) }
    }

    /// Returns a view of all values. Order the accesses of CUDA and of the other API with an
    /// [`ExternalSemaphore`](super::ExternalSemaphore).
    #[inline]
    #[must_use]
    pub fn as_slice(&self) -> DeviceSlice<'_, T> {
        // SAFETY: the mapping has `len` values and lives as long as `self`.
        unsafe { DeviceSlice::from_raw_parts(self.ptr(), self.len, Some(self.memory.context())) }
    }

    /// Returns a mutable view of all values. Order the accesses of CUDA and of the other API with an
    /// [`ExternalSemaphore`](super::ExternalSemaphore).
    #[inline]
    #[must_use]
    pub fn as_mut_slice(&mut self) -> DeviceSliceMut<'_, T> {
        // SAFETY: the mapping has `len` values and lives as long as `self`.
        unsafe { DeviceSliceMut::from_raw_parts(self.ptr(), self.len, Some(self.memory.context())) }
    }

    /// Takes ownership of `len` values that were mapped from `memory`.
    ///
    /// # Safety
    /// The address must be the start of a mapping of this memory with this number of values, and no other code may free
    /// it.
    #[inline]
    #[must_use]
    pub unsafe fn from_raw(raw: sys::CUdeviceptr, len: usize, memory: &ExternalMemory) -> Self {
        Self {
            raw,
            len,
            memory: memory.clone(),
            values: PhantomData,
        }
    }

    /// Releases ownership of the mapping. The reference to the memory is leaked, so the memory stays imported.
    #[inline]
    #[must_use]
    pub fn into_raw(self) -> sys::CUdeviceptr {
        let raw = self.raw;
        mem::forget(self);
        raw
    }

    /// Returns the memory.
    #[inline]
    #[must_use]
    pub const fn memory(&self) -> &ExternalMemory {
        &self.memory
    }
}

device_values!(ExternalBuffer);

impl<T> fmt::Debug for ExternalBuffer<T> {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExternalBuffer")
            .field("ptr", &self.ptr())
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

impl<T> Drop for ExternalBuffer<T> {
    #[inline]
    fn drop(&mut self) {
        if self.raw != 0 {
            if let Some(dropping) = dropping() {
                // SAFETY: the mapping is owned, and this is its last use.
                dropping.done(unsafe { checked::mem_free(self.raw) });
            }
        }
    }
}
