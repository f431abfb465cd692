//! Physical memory, which has no address until it is mapped.

use core::ffi::c_void;
use core::{fmt, mem};
#[cfg(unix)]
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd};

#[cfg(unix)]
use crate::descriptor::Descriptor;
use crate::error::dropping;
use crate::sys::{self, CUmemAllocationHandleType as HandleType, CUmemLocationType as LocationType};
use crate::{Borrowed, Device, Result, checked};

/// Physical memory without an address. An [`AddressRange`](super::AddressRange) maps it, at one or more addresses, so
/// that it can be accessed.
///
/// ```
/// # use cuda_driver::Device;
/// # use cuda_driver::virtual_memory::{MemoryOptions, PhysicalMemory};
/// # cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software).unwrap().install().unwrap();
/// # cuda_driver::init()?;
/// # let device = Device::first()?;
/// let options = MemoryOptions::on_device(device);
/// let memory = PhysicalMemory::new(&options, options.granularity()?)?;
/// assert_eq!(memory.size_bytes(), options.granularity()?);
/// # Ok::<(), cuda_driver::Error>(())
/// ```
///
/// Physical memory belongs to no context. Dropping it releases the handle; mappings keep the memory alive.
pub struct PhysicalMemory {
    /// 0 if the handle is released.
    raw: sys::CUmemGenericAllocationHandle,
    size: usize,
}

/// The properties of new physical memory.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct MemoryOptions {
    /// The location of the memory. Locations other than devices need CUDA 12.2.
    pub location: sys::CUmemLocation,
    /// The kinds of handles with which other processes can import the memory.
    pub handle_types: HandleType,
    /// True for memory that other devices on the bus can access directly.
    pub gpu_direct_rdma: bool,
}

impl MemoryOptions {
    /// Returns the options of device memory that other processes cannot import.
    #[inline]
    #[must_use]
    pub fn on_device(device: Device) -> Self {
        Self {
            location: sys::CUmemLocation::device(device.as_raw()),
            handle_types: HandleType::CU_MEM_HANDLE_TYPE_NONE,
            gpu_direct_rdma: false,
        }
    }

    /// Returns the minimum granularity, in bytes, of sizes and addresses of such memory
    /// ([`cuMemGetAllocationGranularity`](checked::mem_get_allocation_granularity)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` or `CUDA_ERROR_INVALID_DEVICE` for an invalid location.
    #[inline]
    #[doc(alias = "cuMemGetAllocationGranularity")]
    #[track_caller]
    pub fn granularity(&self) -> Result<usize> {
        self.granularity_of(sys::CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_MINIMUM)
    }

    /// Returns the granularity, in bytes, with the best performance
    /// ([`cuMemGetAllocationGranularity`](checked::mem_get_allocation_granularity)).
    ///
    /// # Errors
    /// Same as [`granularity`](Self::granularity).
    #[inline]
    #[doc(alias = "cuMemGetAllocationGranularity")]
    #[track_caller]
    pub fn recommended_granularity(&self) -> Result<usize> {
        self.granularity_of(sys::CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
    }

    #[inline]
    #[track_caller]
    fn granularity_of(&self, option: sys::CUmemAllocationGranularity_flags) -> Result<usize> {
        // SAFETY: the driver checks the properties, which hold no handles.
        unsafe { checked::mem_get_allocation_granularity(&self.properties(), option) }
    }

    #[inline]
    fn properties(&self) -> sys::CUmemAllocationProp {
        let mut properties = sys::CUmemAllocationProp {
            type_: sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
            requestedHandleTypes: self.handle_types,
            location: self.location,
            ..Default::default()
        };
        properties.allocFlags.gpuDirectRDMACapable = self.gpu_direct_rdma.into();
        properties
    }
}

impl fmt::Debug for MemoryOptions {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryOptions")
            .field("location", &self.location.type_)
            .field("handle_types", &self.handle_types)
            .field("gpu_direct_rdma", &self.gpu_direct_rdma)
            .finish_non_exhaustive()
    }
}

impl PhysicalMemory {
    /// Allocates memory; `size`, in bytes, must be a multiple of the [granularity](MemoryOptions::granularity)
    /// ([`cuMemCreate`](checked::mem_create)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for a size that is not such a multiple or an invalid location,
    /// `CUDA_ERROR_INVALID_DEVICE` if there is no such device, and `CUDA_ERROR_OUT_OF_MEMORY` if there is not enough
    /// memory.
    #[inline]
    #[doc(alias = "cuMemCreate")]
    #[track_caller]
    pub fn new(options: &MemoryOptions, size: usize) -> Result<Self> {
        // SAFETY: the driver checks the properties, which hold no handles.
        let raw = unsafe { checked::mem_create(size, &options.properties(), 0) }?;
        Ok(Self { raw, size })
    }

    /// Returns the size in bytes.
    #[inline]
    #[must_use]
    pub const fn size_bytes(&self) -> usize {
        self.size
    }

    /// Returns the properties that the memory was allocated with
    /// ([`cuMemGetAllocationPropertiesFromHandle`](checked::mem_get_allocation_properties_from_handle)).
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuMemGetAllocationPropertiesFromHandle")]
    #[track_caller]
    pub fn properties(&self) -> Result<sys::CUmemAllocationProp> {
        // SAFETY: the handle is live.
        unsafe { checked::mem_get_allocation_properties_from_handle(self.raw) }
    }

    /// Returns true if the memory is on the host.
    #[inline]
    #[track_caller]
    pub(super) fn is_on_host(&self) -> Result<bool> {
        Ok(matches!(
            self.properties()?.location.type_,
            LocationType::CU_MEM_LOCATION_TYPE_HOST
                | LocationType::CU_MEM_LOCATION_TYPE_HOST_NUMA
                | LocationType::CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT
        ))
    }

    /// Exports the memory as a file descriptor, which can be sent to another process through a socket
    /// ([`cuMemExportToShareableHandle`](checked::mem_export_to_shareable_handle)). The memory needs
    /// `CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR` in its [options](MemoryOptions::handle_types).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the memory was allocated without this kind of handle.
    #[cfg(unix)]
    #[inline]
    #[doc(alias = "cuMemExportToShareableHandle")]
    #[track_caller]
    pub fn export_fd(&self) -> Result<OwnedFd> {
        let mut fd = -1_i32;
        let kind = HandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        // SAFETY: the handle is live, and this kind of handle is an `int`.
        unsafe { checked::mem_export_to_shareable_handle((&raw mut fd).cast::<c_void>(), self.raw, kind, 0) }?;
        // SAFETY: the driver has opened the descriptor for the caller.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }

    /// Imports another process's memory of `size` bytes from a file descriptor, which is not closed
    /// ([`cuMemImportFromShareableHandle`](checked::mem_import_from_shareable_handle)). With another size, the memory
    /// cannot be mapped.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_NOT_SUPPORTED` for a descriptor of a [memory pool](crate::MemPool), and `CUDA_ERROR_UNKNOWN`
    /// for one that the driver did not make.
    #[cfg(unix)]
    #[inline]
    #[doc(alias = "cuMemImportFromShareableHandle")]
    #[track_caller]
    pub fn import_fd(fd: BorrowedFd<'_>, size: usize) -> Result<Self> {
        let kind = HandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        let fd = Descriptor::new(fd);
        // SAFETY: an open descriptor, which takes the place of the address. The driver checks its kind, and does not
        // map memory of another size.
        unsafe { Self::import_handle(fd.as_handle(), kind, size) }
    }

    /// Exports the memory to a handle of any kind
    /// ([`cuMemExportToShareableHandle`](checked::mem_export_to_shareable_handle)).
    ///
    /// # Safety
    /// `handle` must be valid for a write of the type of such handles.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the memory was allocated without this kind of handle.
    #[inline]
    #[doc(alias = "cuMemExportToShareableHandle")]
    #[track_caller]
    pub unsafe fn export_handle(&self, handle: *mut c_void, kind: HandleType) -> Result<()> {
        // SAFETY: the memory is live; the rest is upheld by the caller.
        unsafe { checked::mem_export_to_shareable_handle(handle, self.raw, kind, 0) }
    }

    /// Imports another process's memory from a handle of any kind
    /// ([`cuMemImportFromShareableHandle`](checked::mem_import_from_shareable_handle)).
    ///
    /// # Safety
    /// `handle` must be a valid handle of this kind, in the form that the C function expects, for memory of this size.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the driver detects that the handle is not a handle of memory.
    #[inline]
    #[doc(alias = "cuMemImportFromShareableHandle")]
    #[track_caller]
    pub unsafe fn import_handle(handle: *mut c_void, kind: HandleType, size: usize) -> Result<Self> {
        // SAFETY: upheld by the caller.
        let raw = unsafe { checked::mem_import_from_shareable_handle(handle, kind) }?;
        Ok(Self { raw, size })
    }

    /// Releases the handle ([`cuMemRelease`](checked::mem_release)). The memory is freed when nothing maps it. Dropping
    /// does the same.
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuMemRelease")]
    #[track_caller]
    pub fn release(mut self) -> Result<()> {
        // SAFETY: the handle is live, and replaced by 0 so that `drop` does not use it.
        unsafe { checked::mem_release(mem::take(&mut self.raw)) }
    }

    /// Returns the raw handle, which is valid as long as `self`.
    #[inline]
    #[must_use]
    pub const fn as_raw(&self) -> sys::CUmemGenericAllocationHandle {
        self.raw
    }

    /// Takes ownership of a handle of memory of `size` bytes.
    ///
    /// # Safety
    /// The handle must be live and own one reference, which no other code may release.
    #[inline]
    #[must_use]
    pub const unsafe fn from_raw(raw: sys::CUmemGenericAllocationHandle, size: usize) -> Self {
        Self { raw, size }
    }

    /// Borrows a handle of memory of `size` bytes.
    ///
    /// # Safety
    /// The handle must stay valid as long as the returned value.
    #[inline]
    #[must_use]
    pub const unsafe fn borrow_raw<'a>(raw: sys::CUmemGenericAllocationHandle, size: usize) -> Borrowed<'a, Self> {
        Borrowed::new(Self { raw, size })
    }

    /// Releases ownership of the handle.
    #[inline]
    #[must_use]
    pub fn into_raw(self) -> sys::CUmemGenericAllocationHandle {
        let raw = self.raw;
        mem::forget(self);
        raw
    }
}

impl fmt::Debug for PhysicalMemory {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PhysicalMemory")
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}

impl Drop for PhysicalMemory {
    #[inline]
    fn drop(&mut self) {
        if self.raw != 0 {
            if let Some(dropping) = dropping() {
                // SAFETY: the handle is live, and this is its last use.
                dropping.done(unsafe { checked::mem_release(self.raw) });
            }
        }
    }
}
