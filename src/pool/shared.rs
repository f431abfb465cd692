//! Memory pools that several processes use.

use core::ffi::c_void;
#[cfg(unix)]
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd};

use super::{MemPool, StreamBuffer};
#[cfg(unix)]
use crate::descriptor::Descriptor;
use crate::sys::{self, CUmemAllocationHandleType as HandleType};
use crate::{Context, Result, checked};

/// The bytes that identify a buffer of a shared pool to another process. They can be sent by any means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedPointer(pub [u8; 64]);

impl MemPool {
    /// Exports the pool as a file descriptor, which can be sent to another process through a socket
    /// ([`cuMemPoolExportToShareableHandle`](checked::mem_pool_export_to_shareable_handle)). The pool needs
    /// `CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR` in its [options](super::PoolOptions::handle_types).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the pool was created without this kind of handle.
    #[cfg(unix)]
    #[inline]
    #[doc(alias = "cuMemPoolExportToShareableHandle")]
    #[track_caller]
    pub fn export_fd(&self) -> Result<OwnedFd> {
        let mut fd = -1_i32;
        let kind = HandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        let to = (&raw mut fd).cast::<c_void>();
        // SAFETY: the handle is live, and this kind of handle is an `int`.
        unsafe { checked::mem_pool_export_to_shareable_handle(to, self.as_raw(), kind, 0) }?;
        // SAFETY: the driver has opened the descriptor for the caller.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }

    /// Imports another process's pool from a file descriptor, which is not closed
    /// ([`cuMemPoolImportFromShareableHandle`](checked::mem_pool_import_from_shareable_handle)). Buffers cannot be
    /// allocated from the imported pool, only [imported](Self::import).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_NOT_SUPPORTED` for a descriptor of [physical memory](crate::virtual_memory::PhysicalMemory),
    /// and `CUDA_ERROR_UNKNOWN` for one that the driver did not make.
    #[cfg(unix)]
    #[inline]
    #[doc(alias = "cuMemPoolImportFromShareableHandle")]
    #[track_caller]
    pub fn import_fd(fd: BorrowedFd<'_>) -> Result<Self> {
        let kind = HandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        let fd = Descriptor::new(fd);
        // SAFETY: an open descriptor, which takes the place of the address; the driver checks its kind.
        unsafe { Self::import_handle(fd.as_handle(), kind) }
    }

    /// Exports the pool to a handle of any kind
    /// ([`cuMemPoolExportToShareableHandle`](checked::mem_pool_export_to_shareable_handle)).
    ///
    /// # Safety
    /// `handle` must be valid for a write of the type of such handles.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the pool was created without this kind of handle.
    #[inline]
    #[doc(alias = "cuMemPoolExportToShareableHandle")]
    #[track_caller]
    pub unsafe fn export_handle(&self, handle: *mut c_void, kind: HandleType) -> Result<()> {
        // SAFETY: the pool is live; the rest is upheld by the caller.
        unsafe { checked::mem_pool_export_to_shareable_handle(handle, self.as_raw(), kind, 0) }
    }

    /// Imports another process's pool from a handle of any kind
    /// ([`cuMemPoolImportFromShareableHandle`](checked::mem_pool_import_from_shareable_handle)).
    ///
    /// # Safety
    /// `handle` must be a valid handle of this kind, in the form that the C function expects.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the driver detects that the handle is not a pool's.
    #[inline]
    #[doc(alias = "cuMemPoolImportFromShareableHandle")]
    #[track_caller]
    pub unsafe fn import_handle(handle: *mut c_void, kind: HandleType) -> Result<Self> {
        // SAFETY: upheld by the caller.
        let raw = unsafe { checked::mem_pool_import_from_shareable_handle(handle, kind, 0) }?;
        // SAFETY: the new handle is owned here.
        Ok(unsafe { Self::from_raw(raw) })
    }

    /// Imports a buffer of another process from this pool, which must be imported from that process, too
    /// ([`cuMemPoolImportPointer`](checked::mem_pool_import_pointer)).
    ///
    /// # Safety
    /// The exported buffer must have at least `len` values of this type. This process must not use it before the
    /// other process has allocated it, and the other process must not free it before this one does. When the buffer is
    /// freed or dropped, work of other contexts of this process must no longer use the memory.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the bytes were not exported from a buffer of this pool.
    #[inline]
    #[doc(alias = "cuMemPoolImportPointer")]
    #[track_caller]
    pub unsafe fn import<T>(&self, shared: &SharedPointer, len: usize, context: &Context) -> Result<StreamBuffer<T>> {
        let data = sys::CUmemPoolPtrExportData { reserved: shared.0 };
        let _current = context.enter()?;
        // SAFETY: the pool is live; the rest is upheld by the caller.
        let raw = unsafe { checked::mem_pool_import_pointer(self.as_raw(), &data) }?;
        // SAFETY: the imported memory is owned here; its length is upheld by the caller.
        Ok(unsafe { StreamBuffer::from_raw(raw, len, context) })
    }
}

impl<T> StreamBuffer<T> {
    /// Exports the buffer to a process that [imports](MemPool::import) it
    /// ([`cuMemPoolExportPointer`](checked::mem_pool_export_pointer)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the buffer's pool was not exported before, or if the buffer's size is 0
    /// bytes.
    #[inline]
    #[doc(alias = "cuMemPoolExportPointer")]
    #[track_caller]
    pub fn export(&self) -> Result<SharedPointer> {
        // SAFETY: the memory is allocated, and the driver checks its pool. The driver rejects the address 0.
        let data = unsafe { checked::mem_pool_export_pointer(self.as_raw()) }?;
        Ok(SharedPointer(data.reserved))
    }
}
