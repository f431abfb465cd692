//! Page-locked host memory.

use core::ops::{Deref, DerefMut};
use core::ptr::{self, NonNull};
use core::{fmt, mem, slice};

use bytemuck::Zeroable;

use crate::error::{Error, dropping};
use crate::refusal::Refusal;
use crate::sys::{CUresult, Function};
use crate::{Context, Result, checked};

/// A buffer of a fixed number of values in page-locked (pinned) host memory. Devices access it directly, so that
/// asynchronous copies return without waiting.
///
/// It dereferences to a slice, like `Box<[T]>`.
pub struct HostBuffer<T: Copy> {
    values: NonNull<T>,
    len: usize,
    /// Keeps the context of the memory alive.
    context: Context,
}

// SAFETY: the buffer owns its values, like a `Vec`.
unsafe impl<T: Copy + Send> Send for HostBuffer<T> {}
// SAFETY: as above.
unsafe impl<T: Copy + Sync> Sync for HostBuffer<T> {}

impl<T: Copy> HostBuffer<T> {
    /// Allocates `len` values and sets all bytes to zero ([`cuMemHostAlloc`](checked::mem_host_alloc)). If the size is 0
    /// bytes, nothing is allocated.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_OUT_OF_MEMORY` if there is not enough memory, and `CUDA_ERROR_INVALID_VALUE` if `T` needs a larger
    /// alignment than the driver provides, which is at least a page.
    #[doc(alias = "cuMemHostAlloc")]
    #[track_caller]
    pub fn zeroed(context: &Context, len: usize) -> Result<Self>
    where
        T: Zeroable,
    {
        let bytes = len.saturating_mul(size_of::<T>());
        let mut values = NonNull::dangling();
        if bytes > 0 {
            let _current = context.enter()?;
            // SAFETY: the driver checks the size, and 0 is a valid value for the flags.
            let memory = unsafe { checked::mem_host_alloc(bytes, 0) }?.cast::<T>();
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
            context: context.clone(),
        })
    }

    /// Allocates a buffer for a slice and copies the slice to it.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_OUT_OF_MEMORY` if there is not enough memory.
    #[track_caller]
    pub fn from_slice(context: &Context, values: &[T]) -> Result<Self>
    where
        T: Zeroable,
    {
        let mut buffer = Self::zeroed(context, values.len())?;
        buffer.copy_from_slice(values);
        Ok(buffer)
    }

    /// Frees the memory after waiting for work that uses it ([`cuMemFreeHost`](checked::mem_free_host)). Dropping does the
    /// same.
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[doc(alias = "cuMemFreeHost")]
    #[track_caller]
    pub fn free(mut self) -> Result<()> {
        let len = mem::take(&mut self.len);
        if len == 0 || size_of::<T>() == 0 {
            return Ok(());
        }
        // SAFETY: the allocation is owned, and the length is now 0 so that `drop` does not free it.
        unsafe { checked::mem_free_host(self.values.as_ptr().cast()) }
    }

    /// Returns the address of the first value, which is valid until the buffer is dropped.
    #[must_use]
    pub const fn as_raw(&self) -> *mut T {
        self.values.as_ptr()
    }

    /// Takes ownership of page-locked memory that was allocated in `context`. With a `len` of 0, the memory is not freed.
    ///
    /// # Safety
    /// The address must be the start of an allocation of page-locked memory with `len` initialised and aligned values, and
    /// no other code may free it.
    #[must_use]
    pub unsafe fn from_raw(raw: NonNull<T>, len: usize, context: &Context) -> Self {
        Self {
            values: raw,
            len,
            context: context.clone(),
        }
    }

    /// Releases ownership of the memory. The reference to the context is leaked, so the context stays alive.
    #[must_use]
    pub fn into_raw(self) -> *mut T {
        let raw = self.values.as_ptr();
        mem::forget(self);
        raw
    }

    /// Returns the context of the memory.
    #[must_use]
    pub const fn context(&self) -> &Context {
        &self.context
    }
}

impl<T: Copy> Deref for HostBuffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: there are `len` values, which are initialised.
        unsafe { slice::from_raw_parts(self.values.as_ptr(), self.len) }
    }
}

impl<T: Copy> DerefMut for HostBuffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and `self` is borrowed mutably.
        unsafe { slice::from_raw_parts_mut(self.values.as_ptr(), self.len) }
    }
}

impl<T: Copy + fmt::Debug> fmt::Debug for HostBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<T: Copy> Drop for HostBuffer<T> {
    fn drop(&mut self) {
        if self.len > 0 && size_of::<T>() > 0 {
            // SAFETY: the allocation is owned, and this is its last use.
            dropping().done(unsafe { checked::mem_free_host(self.values.as_ptr().cast()) });
        }
    }
}
