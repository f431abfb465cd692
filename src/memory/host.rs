//! Page-locked host memory.

use core::ops::{Deref, DerefMut};
use core::ptr::{self, NonNull};
use core::{fmt, mem, slice};

use bytemuck::Zeroable;

use crate::error::{Error, dropping};
use crate::refusal::Refusal;
use crate::sys::{CUresult, Function};
use crate::{Context, DevicePtr, Result, checked};

/// A buffer of a fixed number of values in page-locked (pinned) host memory. Devices access it directly, so
/// asynchronous copies return without waiting.
///
/// The driver allocates the memory, or page-locks the memory of a `Vec` in place.
///
/// ```
/// # use cuda_driver::{Context, Device, DeviceBuffer, HostBuffer, Stream};
/// # cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software).unwrap().install().unwrap();
/// # cuda_driver::init()?;
/// # let context = Context::create(Device::first()?)?;
/// # let stream = Stream::new(&context)?;
/// let host = HostBuffer::register(&context, vec![1_u32, 2, 3], 0)?;
/// let device = DeviceBuffer::alloc(&context, 3)?;
/// let (host, device) = stream.upload(host, device)?.wait()?;
/// assert_eq!(device.to_vec()?, [1, 2, 3]);
/// assert_eq!(host.into_vec()?, [1, 2, 3]);
/// # Ok::<(), cuda_driver::Error>(())
/// ```
///
/// It dereferences to a slice, like `Box<[T]>`.
pub struct HostBuffer<T: Copy> {
    values: NonNull<T>,
    len: usize,
    /// The capacity of the `Vec` whose memory was registered; `None` for memory that the driver allocated.
    registered: Option<usize>,
    /// Keeps the context of the memory alive.
    context: Context,
}

// SAFETY: the buffer owns its values, like a `Vec`.
unsafe impl<T: Copy + Send> Send for HostBuffer<T> {}
// SAFETY: as above.
unsafe impl<T: Copy + Sync> Sync for HostBuffer<T> {}

impl<T: Copy> HostBuffer<T> {
    /// Allocates `len` values and sets all bytes to zero ([`cuMemHostAlloc`](checked::mem_host_alloc)). If the size is
    /// 0 bytes, nothing is allocated.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_OUT_OF_MEMORY` if there is not enough memory, and `CUDA_ERROR_INVALID_VALUE` if `T` needs a
    /// larger alignment than the driver provides, which is at least a page.
    #[inline]
    #[doc(alias = "cuMemHostAlloc")]
    #[doc(alias = "cuMemAllocHost")]
    #[track_caller]
    pub fn zeroed(context: &Context, len: usize) -> Result<Self>
    where
        T: Zeroable,
    {
        Self::zeroed_with_flags(context, len, 0)
    }

    /// Allocates `len` values with flags, which are bits of `CU_MEMHOSTALLOC_…`, and sets all bytes to zero
    /// ([`cuMemHostAlloc`](checked::mem_host_alloc)). The host reads memory with `CU_MEMHOSTALLOC_WRITECOMBINED` very
    /// slowly.
    ///
    /// # Errors
    /// Same as [`zeroed`](Self::zeroed), and `CUDA_ERROR_INVALID_VALUE` for unknown flags.
    #[inline]
    #[doc(alias = "cuMemHostAlloc")]
    #[track_caller]
    pub fn zeroed_with_flags(context: &Context, len: usize, flags: u32) -> Result<Self>
    where
        T: Zeroable,
    {
        let bytes = len.saturating_mul(size_of::<T>());
        let mut values = NonNull::dangling();
        if bytes > 0 {
            let _current = context.enter()?;
            // SAFETY: the driver checks size and flags.
            let memory = unsafe { checked::mem_host_alloc(bytes, flags) }?.cast::<T>();
            values = match NonNull::new(memory) {
                Some(memory) if memory.is_aligned() => memory,
                _ => {
                    // SAFETY: the allocation is owned, and this is its last use.
                    let _ = unsafe { checked::mem_free_host(memory.cast()) };
                    return Err(Error::refused(
                        CUresult::CUDA_ERROR_INVALID_VALUE,
                        Function::cuMemHostAlloc,
                        Refusal::Alignment,
                    ));
                }
            };
            // SAFETY: the allocation has `bytes` bytes and is aligned, and zeros are a `T`.
            unsafe { ptr::write_bytes(values.as_ptr(), 0, len) };
        }
        Ok(Self {
            values,
            len,
            registered: None,
            context: context.clone(),
        })
    }

    /// Page-locks the memory of a `Vec`, with flags that are bits of `CU_MEMHOSTREGISTER_…`
    /// ([`cuMemHostRegister`](checked::mem_host_register)). If the size is 0 bytes, nothing is registered.
    ///
    /// The buffer owns the memory, because memory must not be freed while it is registered:
    /// [`into_vec`](Self::into_vec) returns it.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for unknown flags, `CUDA_ERROR_OUT_OF_MEMORY` if there is not enough memory
    /// that can be page-locked, and `CUDA_ERROR_NOT_SUPPORTED` if the system cannot page-lock. After an error, the
    /// `Vec` is dropped.
    #[inline]
    #[doc(alias = "cuMemHostRegister")]
    #[track_caller]
    pub fn register(context: &Context, values: Vec<T>, flags: u32) -> Result<Self> {
        if size_of_val(&values[..]) > 0 {
            let memory = values.as_ptr().cast_mut().cast();
            let _current = context.enter()?;
            // SAFETY: the memory is valid until it is unregistered.
            unsafe { checked::mem_host_register(memory, size_of_val(&values[..]), flags) }?;
        }
        let mut values = mem::ManuallyDrop::new(values);
        Ok(Self {
            // SAFETY: the address of a `Vec` is not null.
            values: unsafe { NonNull::new_unchecked(values.as_mut_ptr()) },
            len: values.len(),
            registered: Some(values.capacity()),
            context: context.clone(),
        })
    }

    /// Waits for work that uses the memory, and returns the `Vec` that was [registered](Self::register)
    /// ([`cuMemHostUnregister`](checked::mem_host_unregister)). If the driver allocated the memory, this method waits
    /// for all work of the context ([`cuCtxSynchronize`](checked::ctx_synchronize)), copies the values to a new `Vec`
    /// and [frees](Self::free) the memory.
    ///
    /// # Errors
    /// Returns an error from the work that was waited for. Registered memory is then leaked, and other memory is freed.
    ///
    /// # Panics
    /// Same as [`Context::synchronize`], if the driver allocated the memory.
    #[inline]
    #[doc(alias = "cuMemHostUnregister")]
    #[doc(alias = "cuCtxSynchronize")]
    #[track_caller]
    pub fn into_vec(mut self) -> Result<Vec<T>> {
        if self.is_registered() {
            return self.unregister();
        }
        // Work that is still running may write the values.
        if size_of_val(&self[..]) > 0 {
            self.context.synchronize()?;
        }
        let values = self.to_vec();
        self.free()?;
        Ok(values)
    }

    /// Unregisters the memory and returns it. The buffer is empty afterwards.
    #[inline]
    #[track_caller]
    fn unregister(&mut self) -> Result<Vec<T>> {
        let (memory, len) = (self.values.as_ptr(), mem::take(&mut self.len));
        let capacity = self.registered.replace(0).unwrap_or(0);
        self.values = NonNull::dangling();
        if len > 0 && size_of::<T>() > 0 {
            let _current = self.context.enter()?;
            // SAFETY: the memory was registered, and the call waits for work that uses it.
            unsafe { checked::mem_host_unregister(memory.cast()) }?;
        }
        // SAFETY: these are the parts of the `Vec` that was registered, which the buffer no longer has.
        Ok(unsafe { Vec::from_raw_parts(memory, len, capacity) })
    }

    /// Returns true if the buffer is the memory of a `Vec` that was [registered](Self::register).
    #[inline]
    #[must_use]
    pub const fn is_registered(&self) -> bool {
        self.registered.is_some()
    }

    /// Returns the flags of the memory, bits of `CU_MEMHOSTALLOC_…`
    /// ([`cuMemHostGetFlags`](checked::mem_host_get_flags)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for a buffer of 0 bytes.
    #[inline]
    #[doc(alias = "cuMemHostGetFlags")]
    #[track_caller]
    pub fn flags(&self) -> Result<u32> {
        let _current = self.context.enter()?;
        // SAFETY: the driver checks the address.
        unsafe { checked::mem_host_get_flags(self.values.as_ptr().cast()) }
    }

    /// Returns the address with which kernels access the memory
    /// ([`cuMemHostGetDevicePointer`](checked::mem_host_get_device_pointer)). It is valid until the buffer is dropped.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for a buffer of 0 bytes, and if the memory is not mapped for devices.
    #[inline]
    #[doc(alias = "cuMemHostGetDevicePointer")]
    #[track_caller]
    pub fn device_ptr(&self) -> Result<DevicePtr> {
        let _current = self.context.enter()?;
        // SAFETY: the driver checks the address.
        let raw = unsafe { checked::mem_host_get_device_pointer(self.values.as_ptr().cast(), 0) }?;
        Ok(DevicePtr::from_raw(raw))
    }

    /// Allocates a buffer for a slice and copies the slice to it.
    ///
    /// # Errors
    /// Same as [`zeroed`](Self::zeroed).
    #[inline]
    #[track_caller]
    pub fn from_slice(context: &Context, values: &[T]) -> Result<Self>
    where
        T: Zeroable,
    {
        let mut buffer = Self::zeroed(context, values.len())?;
        buffer.copy_from_slice(values);
        Ok(buffer)
    }

    /// Frees the memory after waiting for work that uses it ([`cuMemFreeHost`](checked::mem_free_host)). If the memory
    /// was [registered](Self::register), unregisters it ([`cuMemHostUnregister`](checked::mem_host_unregister)) and
    /// drops the `Vec`. Dropping does the same.
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuMemFreeHost")]
    #[doc(alias = "cuMemHostUnregister")]
    #[track_caller]
    pub fn free(mut self) -> Result<()> {
        if self.is_registered() {
            return self.into_vec().map(drop);
        }
        let len = mem::take(&mut self.len);
        if len == 0 || size_of::<T>() == 0 {
            return Ok(());
        }
        // SAFETY: the allocation is owned, and the length is now 0 so that `drop` does not free it.
        unsafe { checked::mem_free_host(self.values.as_ptr().cast()) }
    }

    /// Returns the address of the first value, which is valid until the buffer is dropped.
    #[inline]
    #[must_use]
    pub const fn as_raw(&self) -> *mut T {
        self.values.as_ptr()
    }

    /// Takes ownership of page-locked memory that was allocated in `context`. With a `len` of 0, the memory is not
    /// freed.
    ///
    /// # Safety
    /// The address must be the start of memory from `cuMemHostAlloc` or `cuMemAllocHost`, with `len` initialised and
    /// aligned values, and no other code may free it.
    #[inline]
    #[must_use]
    pub unsafe fn from_raw(raw: NonNull<T>, len: usize, context: &Context) -> Self {
        Self {
            values: raw,
            len,
            registered: None,
            context: context.clone(),
        }
    }

    /// Releases ownership of the memory. The reference to the context is leaked, so the context stays alive. Registered
    /// memory stays registered.
    #[inline]
    #[must_use]
    pub fn into_raw(self) -> *mut T {
        let raw = self.values.as_ptr();
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

impl<T: Copy> Deref for HostBuffer<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: there are `len` values, which are initialised.
        unsafe { slice::from_raw_parts(self.values.as_ptr(), self.len) }
    }
}

impl<T: Copy> DerefMut for HostBuffer<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and `self` is borrowed mutably.
        unsafe { slice::from_raw_parts_mut(self.values.as_ptr(), self.len) }
    }
}

impl<T: Copy + fmt::Debug> fmt::Debug for HostBuffer<T> {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<T: Copy> Drop for HostBuffer<T> {
    #[inline]
    fn drop(&mut self) {
        if self.is_registered() {
            let Some(dropping) = dropping() else { return };
            dropping.done(self.unregister().map(drop));
            return;
        }
        if self.len > 0 && size_of::<T>() > 0 {
            if let Some(dropping) = dropping() {
                // SAFETY: the allocation is owned, and this is its last use.
                dropping.done(unsafe { checked::mem_free_host(self.values.as_ptr().cast()) });
            }
        }
    }
}
