//! Multicast objects: one address range for memory of several devices. A write to it goes to the memory of each device,
//! and a reduction combines the values of all of them (NVLink SHARP). They need a driver that supports CUDA 12.1.
//!
//! These calls are tested with a fake driver that records them, not on a GPU. The two functions of CUDA 13.1 are tested
//! only as functions that the driver does not export.

use core::mem;

use crate::error::dropping;
use crate::sys::{self, CUmulticastGranularity_flags, CUmulticastObjectProp};
use crate::{Borrowed, Device, DevicePtr, Result, checked};

/// A multicast object. Devices are added first, then memory of each is bound; the object is mapped like
/// [physical memory](checked::mem_map).
#[derive(Debug)]
pub struct Multicast {
    /// 0 after the object was released.
    raw: sys::CUmemGenericAllocationHandle,
}

impl Multicast {
    /// Returns the minimum or the recommended granularity of sizes and offsets, in bytes
    /// ([`cuMulticastGetGranularity`](checked::multicast_get_granularity)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_NOT_SUPPORTED` if the devices do not support multicast objects.
    #[inline]
    #[doc(alias = "cuMulticastGetGranularity")]
    #[track_caller]
    pub fn granularity(properties: &CUmulticastObjectProp, kind: CUmulticastGranularity_flags) -> Result<usize> {
        // SAFETY: the driver checks the properties.
        unsafe { checked::multicast_get_granularity(properties, kind) }
    }

    /// Creates an object ([`cuMulticastCreate`](checked::multicast_create)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for a size that is not a multiple of the granularity, and
    /// `CUDA_ERROR_NOT_SUPPORTED` if the devices do not support multicast objects.
    #[inline]
    #[doc(alias = "cuMulticastCreate")]
    #[track_caller]
    pub fn create(properties: &CUmulticastObjectProp) -> Result<Self> {
        // SAFETY: the driver checks the properties.
        let raw = unsafe { checked::multicast_create(properties) }?;
        Ok(Self { raw })
    }

    /// Adds a device. Memory can be bound after all devices of the object were added
    /// ([`cuMulticastAddDevice`](checked::multicast_add_device)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for a device that was added before, and if the object already has as many
    /// devices as its properties state.
    #[inline]
    #[doc(alias = "cuMulticastAddDevice")]
    #[track_caller]
    pub fn add_device(&self, device: Device) -> Result<()> {
        // SAFETY: the handle is live, and the driver checks the device.
        unsafe { checked::multicast_add_device(self.raw, device.as_raw()) }
    }

    /// Binds `size` bytes of physical memory, from the byte `memory_offset` on, to the object's range from the byte
    /// `offset` on ([`cuMulticastBindMem`](checked::multicast_bind_mem)).
    ///
    /// # Safety
    /// `memory` must be a live handle, and its memory must stay allocated until it is unbound.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for offsets or a size that are not multiples of the granularity.
    #[inline]
    #[doc(alias = "cuMulticastBindMem")]
    #[track_caller]
    pub unsafe fn bind_memory(
        &self,
        offset: usize,
        memory: sys::CUmemGenericAllocationHandle,
        memory_offset: usize,
        size: usize,
    ) -> Result<()> {
        // SAFETY: the object is live; the rest is upheld by the caller. 0 is the only valid value for the flags.
        unsafe { checked::multicast_bind_mem(self.raw, offset, memory, memory_offset, size, 0) }
    }

    /// Binds physical memory for one device ([`cuMulticastBindMem_v2`](checked::multicast_bind_mem_v2)).
    ///
    /// # Safety
    /// Same as [`bind_memory`](Self::bind_memory).
    ///
    /// # Errors
    /// Same as [`bind_memory`](Self::bind_memory), and a
    /// [missing-function error](crate::Error::is_missing_function) if the driver is older than CUDA 13.1.
    #[inline]
    #[doc(alias = "cuMulticastBindMem_v2")]
    #[track_caller]
    pub unsafe fn bind_memory_of(
        &self,
        device: Device,
        offset: usize,
        memory: sys::CUmemGenericAllocationHandle,
        memory_offset: usize,
        size: usize,
    ) -> Result<()> {
        let device = device.as_raw();
        // SAFETY: the object is live; the rest is upheld by the caller. 0 is the only valid value for the flags.
        unsafe { checked::multicast_bind_mem_v2(self.raw, device, offset, memory, memory_offset, size, 0) }
    }

    /// Binds `size` bytes of mapped or allocated memory to the object's range from the byte `offset` on
    /// ([`cuMulticastBindAddr`](checked::multicast_bind_addr)).
    ///
    /// # Safety
    /// The memory must stay allocated until it is unbound.
    ///
    /// # Errors
    /// Same as [`bind_memory`](Self::bind_memory).
    #[inline]
    #[doc(alias = "cuMulticastBindAddr")]
    #[track_caller]
    pub unsafe fn bind_address(&self, offset: usize, address: DevicePtr, size: usize) -> Result<()> {
        // SAFETY: the object is live; the rest is upheld by the caller. 0 is the only valid value for the flags.
        unsafe { checked::multicast_bind_addr(self.raw, offset, address.as_raw(), size, 0) }
    }

    /// Binds mapped or allocated memory for one device ([`cuMulticastBindAddr_v2`](checked::multicast_bind_addr_v2)).
    ///
    /// # Safety
    /// Same as [`bind_address`](Self::bind_address).
    ///
    /// # Errors
    /// Same as [`bind_memory_of`](Self::bind_memory_of).
    #[inline]
    #[doc(alias = "cuMulticastBindAddr_v2")]
    #[track_caller]
    pub unsafe fn bind_address_of(&self, device: Device, offset: usize, address: DevicePtr, size: usize) -> Result<()> {
        let (device, address) = (device.as_raw(), address.as_raw());
        // SAFETY: the object is live; the rest is upheld by the caller. 0 is the only valid value for the flags.
        unsafe { checked::multicast_bind_addr_v2(self.raw, device, offset, address, size, 0) }
    }

    /// Unbinds a device's memory from a range ([`cuMulticastUnbind`](checked::multicast_unbind)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for a range that was not bound.
    #[inline]
    #[doc(alias = "cuMulticastUnbind")]
    #[track_caller]
    pub fn unbind(&self, device: Device, offset: usize, size: usize) -> Result<()> {
        // SAFETY: the object is live, and the driver checks device and range.
        unsafe { checked::multicast_unbind(self.raw, device.as_raw(), offset, size) }
    }

    /// Releases the object; mappings of it stay valid ([`cuMemRelease`](checked::mem_release)). Dropping does the same.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_DEINITIALIZED` while the process exits.
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

    /// Takes ownership of an object, for instance one that was imported from another process.
    ///
    /// # Safety
    /// The handle must be a live multicast object, and no other code may release it.
    #[inline]
    #[must_use]
    pub const unsafe fn from_raw(raw: sys::CUmemGenericAllocationHandle) -> Self {
        Self { raw }
    }

    /// Borrows an object.
    ///
    /// # Safety
    /// The handle must stay valid as long as the returned value.
    #[inline]
    #[must_use]
    pub const unsafe fn borrow_raw<'a>(raw: sys::CUmemGenericAllocationHandle) -> Borrowed<'a, Self> {
        Borrowed::new(Self { raw })
    }

    /// Releases ownership of the handle.
    #[inline]
    #[must_use]
    pub const fn into_raw(self) -> sys::CUmemGenericAllocationHandle {
        let raw = self.raw;
        mem::forget(self);
        raw
    }
}

impl Drop for Multicast {
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
