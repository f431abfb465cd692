//! Memory pools and memory that is allocated and freed in stream order.

mod buffer;
mod shared;

use core::ffi::c_void;
use core::{fmt, mem, ptr};

pub use buffer::StreamBuffer;
pub use shared::SharedPointer;

use crate::error::{Error, dropping};
use crate::refusal::Refusal;
use crate::sys::{self, CUresult, Function};
use crate::{Borrowed, Device, Result, checked};

/// A memory pool, from which [`StreamBuffer`]s are allocated in stream order.
///
/// Each device has a default pool. A pool keeps freed memory for later allocations: when a stream, an event or a
/// context is synchronised, the pool releases the unused memory above its release threshold, which is 0 by default.
///
/// ```
/// # use cuda_driver::sys::CUmemPool_attribute as Attribute;
/// # use cuda_driver::{Context, Device, MemPool, Stream, StreamBuffer};
/// # cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software).unwrap().install().unwrap();
/// # cuda_driver::init()?;
/// # let device = Device::first()?;
/// # let context = Context::create(device)?;
/// let pool = MemPool::new(device)?;
/// pool.set_attribute(Attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, u64::MAX)?;
/// let stream = Stream::new(&context)?;
/// let buffer = StreamBuffer::<f32>::alloc_from(&pool, &context, &stream, 1000)?;
/// assert_eq!(pool.attribute(Attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT)?, 4000);
/// buffer.free()?;
/// pool.trim_to(0)?;
/// # Ok::<(), cuda_driver::Error>(())
/// ```
///
/// A pool belongs to no context. It may be dropped before its buffers: the driver releases its memory when all of them
/// are freed.
#[derive(Debug)]
pub struct MemPool {
    raw: sys::CUmemoryPool,
}

// SAFETY: a pool handle may be used on any thread.
unsafe impl Send for MemPool {}
// SAFETY: as above; the driver synchronises access to its objects.
unsafe impl Sync for MemPool {}

/// The properties of a new pool.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct PoolOptions {
    /// The location of the pool's memory. Locations other than devices need CUDA 12.2.
    pub location: sys::CUmemLocation,
    /// The kind of memory. Kinds other than `CU_MEM_ALLOCATION_TYPE_PINNED` need CUDA 13.0.
    pub allocation_type: sys::CUmemAllocationType,
    /// The kinds of handles with which other processes can import the pool.
    pub handle_types: sys::CUmemAllocationHandleType,
    /// The maximum size of the pool in bytes; 0 for a limit that the driver chooses. Other values need CUDA 12.2.
    pub max_size: usize,
}

impl PoolOptions {
    /// Returns the options of a pool of device memory that other processes cannot import.
    #[inline]
    #[must_use]
    pub fn on_device(device: Device) -> Self {
        Self {
            location: sys::CUmemLocation::device(device.as_raw()),
            allocation_type: sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
            handle_types: sys::CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE,
            max_size: 0,
        }
    }
}

impl fmt::Debug for PoolOptions {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoolOptions")
            .field("location", &self.location.type_)
            .field("allocation_type", &self.allocation_type)
            .field("handle_types", &self.handle_types)
            .field("max_size", &self.max_size)
            .finish()
    }
}

/// One more than the largest attribute that this crate knows.
const ATTRIBUTES: u32 = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_LOCALITY_DOMAIN_ID.0 + 1;

impl MemPool {
    /// Creates a pool of a device's memory ([`cuMemPoolCreate`](checked::mem_pool_create)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_NOT_SUPPORTED` if the device has no memory pools.
    #[inline]
    #[doc(alias = "cuMemPoolCreate")]
    #[track_caller]
    pub fn new(device: Device) -> Result<Self> {
        Self::with_options(&PoolOptions::on_device(device))
    }

    /// Creates a pool ([`cuMemPoolCreate`](checked::mem_pool_create)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for a location or kind of memory that the driver does not have, and
    /// `CUDA_ERROR_NOT_SUPPORTED` if the device has no memory pools or cannot share them.
    #[inline]
    #[doc(alias = "cuMemPoolCreate")]
    #[track_caller]
    pub fn with_options(options: &PoolOptions) -> Result<Self> {
        let properties = sys::CUmemPoolProps {
            allocType: options.allocation_type,
            handleTypes: options.handle_types,
            location: options.location,
            maxSize: options.max_size,
            ..Default::default()
        };
        // SAFETY: the driver checks the properties, which hold no handles.
        let raw = unsafe { checked::mem_pool_create(&properties) }?;
        Ok(Self { raw })
    }

    /// Returns the default pool of a device ([`cuDeviceGetDefaultMemPool`](checked::device_get_default_mem_pool)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_NOT_SUPPORTED` if the device has no memory pools.
    #[inline]
    #[doc(alias = "cuDeviceGetDefaultMemPool")]
    #[track_caller]
    pub fn default_of(device: Device) -> Result<Borrowed<'static, Self>> {
        // SAFETY: the driver checks the device.
        let raw = unsafe { checked::device_get_default_mem_pool(device.as_raw()) }?;
        Ok(Borrowed::new(Self { raw }))
    }

    /// Returns the default pool of a location and a kind of memory
    /// ([`cuMemGetDefaultMemPool`](checked::mem_get_default_mem_pool)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for a location without such a pool, and a
    /// [missing-function error](crate::Error::is_missing_function) if the driver is older than CUDA 13.0.
    #[inline]
    #[doc(alias = "cuMemGetDefaultMemPool")]
    #[track_caller]
    pub fn default_at(
        location: &sys::CUmemLocation,
        allocation_type: sys::CUmemAllocationType,
    ) -> Result<Borrowed<'static, Self>> {
        // SAFETY: the driver checks both arguments.
        let raw = unsafe { checked::mem_get_default_mem_pool(location, allocation_type) }?;
        Ok(Borrowed::new(Self { raw }))
    }

    /// Returns the current pool of a device, which [`StreamBuffer::alloc`] uses
    /// ([`cuDeviceGetMemPool`](checked::device_get_mem_pool)).
    ///
    /// # Safety
    /// The pool's owner must not destroy it as long as the returned value exists.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_NOT_SUPPORTED` if the device has no memory pools.
    #[inline]
    #[doc(alias = "cuDeviceGetMemPool")]
    #[track_caller]
    pub unsafe fn current_of<'a>(device: Device) -> Result<Borrowed<'a, Self>> {
        // SAFETY: the driver checks the device.
        let raw = unsafe { checked::device_get_mem_pool(device.as_raw()) }?;
        Ok(Borrowed::new(Self { raw }))
    }

    /// Returns the current pool of a location and a kind of memory ([`cuMemGetMemPool`](checked::mem_get_mem_pool)).
    ///
    /// # Safety
    /// The pool's owner must not destroy it as long as the returned value exists.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for a location without such a pool, and a
    /// [missing-function error](crate::Error::is_missing_function) if the driver is older than CUDA 13.0.
    #[inline]
    #[doc(alias = "cuMemGetMemPool")]
    #[track_caller]
    pub unsafe fn current_at<'a>(
        location: &sys::CUmemLocation,
        allocation_type: sys::CUmemAllocationType,
    ) -> Result<Borrowed<'a, Self>> {
        // SAFETY: the driver checks both arguments.
        let raw = unsafe { checked::mem_get_mem_pool(location, allocation_type) }?;
        Ok(Borrowed::new(Self { raw }))
    }

    /// Makes the pool the current one of a device ([`cuDeviceSetMemPool`](checked::device_set_mem_pool)). When the pool
    /// is destroyed, the device's default pool is current again.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the pool's memory is of another kind or not on the device.
    #[inline]
    #[doc(alias = "cuDeviceSetMemPool")]
    #[track_caller]
    pub fn make_current(&self, device: Device) -> Result<()> {
        // SAFETY: the handle is live, and the driver checks the device.
        unsafe { checked::device_set_mem_pool(device.as_raw(), self.raw) }
    }

    /// Makes the pool the current one of a location and a kind of memory
    /// ([`cuMemSetMemPool`](checked::mem_set_mem_pool)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` if the pool's memory has another kind or location, and a
    /// [missing-function error](crate::Error::is_missing_function) if the driver is older than CUDA 13.0.
    #[inline]
    #[doc(alias = "cuMemSetMemPool")]
    #[track_caller]
    pub fn make_current_at(
        &self,
        location: &sys::CUmemLocation,
        allocation_type: sys::CUmemAllocationType,
    ) -> Result<()> {
        // SAFETY: the handle is live, and the driver checks the other arguments.
        unsafe { checked::mem_set_mem_pool(location, allocation_type, self.raw) }
    }

    /// Returns an attribute: a number of bytes, a flag that is 0 or 1, an enumeration's value, or an ID
    /// ([`cuMemPoolGetAttribute`](checked::mem_pool_get_attribute)). An ID may be negative: cast it to an `i32`.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for an attribute that the driver does not have.
    #[inline]
    #[doc(alias = "cuMemPoolGetAttribute")]
    #[track_caller]
    pub fn attribute(&self, attribute: sys::CUmemPool_attribute) -> Result<u64> {
        known(attribute, Function::cuMemPoolGetAttribute)?;
        // Some values have 32 bits: as CUDA's platforms are little-endian, they fill the lower half.
        let mut value = 0_u64;
        // SAFETY: the handle is live, and every attribute has at most 8 bytes.
        unsafe { checked::mem_pool_get_attribute(self.raw, attribute, (&raw mut value).cast::<c_void>()) }?;
        Ok(value)
    }

    /// Sets an attribute ([`cuMemPoolSetAttribute`](checked::mem_pool_set_attribute)). The high-water marks can only be
    /// set to 0.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for a read-only attribute and for one that the driver does not have.
    #[inline]
    #[doc(alias = "cuMemPoolSetAttribute")]
    #[track_caller]
    pub fn set_attribute(&self, attribute: sys::CUmemPool_attribute, value: u64) -> Result<()> {
        known(attribute, Function::cuMemPoolSetAttribute)?;
        let mut value = value;
        // SAFETY: the handle is live, and every attribute has at most 8 bytes.
        unsafe { checked::mem_pool_set_attribute(self.raw, attribute, (&raw mut value).cast::<c_void>()) }
    }

    /// Returns a location's access rights to the pool's memory ([`cuMemPoolGetAccess`](checked::mem_pool_get_access)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_DEVICE` or `CUDA_ERROR_INVALID_VALUE` for an invalid location.
    #[inline]
    #[doc(alias = "cuMemPoolGetAccess")]
    #[track_caller]
    pub fn access(&self, location: &sys::CUmemLocation) -> Result<sys::CUmemAccess_flags> {
        // SAFETY: the handle is live, and the driver checks the location.
        unsafe { checked::mem_pool_get_access(self.raw, location) }
    }

    /// Sets the access rights of locations to all memory of the pool, including existing buffers
    /// ([`cuMemPoolSetAccess`](checked::mem_pool_set_access)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_NOT_SUPPORTED` for read-only access, and `CUDA_ERROR_INVALID_DEVICE` for a device that
    /// cannot access the memory, or if the rights of the pool's own device would be removed.
    #[inline]
    #[doc(alias = "cuMemPoolSetAccess")]
    #[track_caller]
    pub fn set_access(&self, access: &[sys::CUmemAccessDesc]) -> Result<()> {
        // SAFETY: the handle is live, and the driver checks the list.
        unsafe { checked::mem_pool_set_access(self.raw, access) }
    }

    /// Releases unused memory to the system, until at most `bytes` bytes are reserved or no unused memory is left
    /// ([`cuMemPoolTrimTo`](checked::mem_pool_trim_to)).
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuMemPoolTrimTo")]
    #[track_caller]
    pub fn trim_to(&self, bytes: usize) -> Result<()> {
        // SAFETY: the handle is live.
        unsafe { checked::mem_pool_trim_to(self.raw, bytes) }
    }

    /// Destroys the pool without waiting ([`cuMemPoolDestroy`](checked::mem_pool_destroy)). Its memory is released when
    /// all buffers are freed. Dropping does the same.
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuMemPoolDestroy")]
    #[track_caller]
    pub fn destroy(mut self) -> Result<()> {
        // SAFETY: the handle is live, and replaced by null so that `drop` does not use it.
        unsafe { checked::mem_pool_destroy(mem::replace(&mut self.raw, ptr::null_mut())) }
    }

    /// Returns the raw handle, which is valid as long as `self`.
    #[inline]
    #[must_use]
    pub const fn as_raw(&self) -> sys::CUmemoryPool {
        self.raw
    }

    /// Takes ownership of a pool.
    ///
    /// # Safety
    /// The handle must be live, and no other code may destroy it.
    #[inline]
    #[must_use]
    pub const unsafe fn from_raw(raw: sys::CUmemoryPool) -> Self {
        Self { raw }
    }

    /// Borrows a pool.
    ///
    /// # Safety
    /// The handle must stay valid as long as the returned value.
    #[inline]
    #[must_use]
    pub const unsafe fn borrow_raw<'a>(raw: sys::CUmemoryPool) -> Borrowed<'a, Self> {
        Borrowed::new(Self { raw })
    }

    /// Releases ownership of the handle.
    #[inline]
    #[must_use]
    pub fn into_raw(self) -> sys::CUmemoryPool {
        let raw = self.raw;
        mem::forget(self);
        raw
    }
}

/// Returns an error of `function` for an unknown attribute, because the size of its value is not known.
#[inline]
#[track_caller]
fn known(attribute: sys::CUmemPool_attribute, function: Function) -> Result<()> {
    if (1..ATTRIBUTES).contains(&attribute.0) {
        return Ok(());
    }
    let code = CUresult::CUDA_ERROR_INVALID_VALUE;
    Err(Error::refused(code, function, Refusal::Attribute))
}

impl Drop for MemPool {
    #[inline]
    fn drop(&mut self) {
        if !self.raw.is_null() {
            if let Some(dropping) = dropping() {
                // SAFETY: the handle is live, and this is its last use.
                dropping.done(unsafe { checked::mem_pool_destroy(self.raw) });
            }
        }
    }
}
