//! Page-locked host memory.

use core::ops::{Deref, DerefMut};
use core::ptr::{self, NonNull};
use core::{fmt, mem, slice};

use crate::error::{Error, dropping};
use crate::refusal::Refusal;
use crate::sys::{CUresult, Function};
use crate::{Context, DeviceCopy, Result, checked};

/// Page-locked (pinned) host memory for a number of values: a device copies from it and to it without the host's help, and
/// copies that are queued in a stream return at once.
///
/// It is a slice, like `Box<[T]>`.
pub struct HostBuffer<T: DeviceCopy> {
    values: NonNull<T>,
    len: usize,
    /// Keeps the context alive that the memory belongs to.
    context: Context,
}

// SAFETY: it owns its values like a `Vec`.
unsafe impl<T: DeviceCopy + Send> Send for HostBuffer<T> {}
// SAFETY: as above.
unsafe impl<T: DeviceCopy + Sync> Sync for HostBuffer<T> {}

impl<T: DeviceCopy> HostBuffer<T> {
    /// Allocates `len` values, all bytes zero ([`cuMemHostAlloc`](checked::mem_host_alloc)). Where that is no byte at all,
    /// nothing is allocated.
    ///
    /// # Errors
    /// 2 if there is not so much memory, 1 if the driver does not align it as far as `T` needs (more than a page).
    #[doc(alias = "cuMemHostAlloc")]
    #[track_caller]
    pub fn zeroed(context: &Context, len: usize) -> Result<Self> {
        let bytes = len.saturating_mul(size_of::<T>());
        let mut values = NonNull::dangling();
        if bytes > 0 {
            let _current = context.enter()?;
            // SAFETY: the driver checks the size; 0 are no flags.
            let memory = unsafe { checked::mem_host_alloc(bytes, 0) }?.cast::<T>();
            values = match NonNull::new(memory) {
                Some(memory) if memory.is_aligned() => memory,
                // A page is not enough for the type, or this is no driver.
                _ => {
                    // SAFETY: the allocation is ours, and this is its last use.
                    let _ = unsafe { checked::mem_free_host(memory.cast()) };
                    return Err(Error::refused(
                        CUresult::CUDA_ERROR_INVALID_VALUE,
                        Function::cuMemHostAlloc,
                        Refusal::Alignment,
                    ));
                }
            };
            // SAFETY: the allocation is of so many bytes, and aligned.
            unsafe { ptr::write_bytes(values.as_ptr(), 0, len) };
        }
        Ok(Self {
            values,
            len,
            context: context.clone(),
        })
    }

    /// Allocates room for a slice and copies it there.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_OUT_OF_MEMORY` if there is not enough memory.
    #[track_caller]
    pub fn from_slice(context: &Context, values: &[T]) -> Result<Self> {
        let mut buffer = Self::zeroed(context, values.len())?;
        buffer.copy_from_slice(values);
        Ok(buffer)
    }

    /// Frees the memory ([`cuMemFreeHost`](checked::mem_free_host)), waiting for work that uses it; dropping does the
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
        // SAFETY: the allocation is ours; with a length of 0 `drop` frees nothing.
        unsafe { checked::mem_free_host(self.values.as_ptr().cast()) }
    }

    /// The address of the first value, good as long as `self`.
    #[must_use]
    pub const fn as_raw(&self) -> *mut T {
        self.values.as_ptr()
    }

    /// Takes over page-locked memory that C allocated in `context`.
    ///
    /// # Safety
    /// The address is that of an allocation of page-locked memory with `len` initialised values, aligned for them, and
    /// nobody else frees it. With `len` 0 it is not freed.
    #[must_use]
    pub unsafe fn from_raw(raw: NonNull<T>, len: usize, context: &Context) -> Self {
        Self {
            values: raw,
            len,
            context: context.clone(),
        }
    }

    /// Gives the memory away; the context that it needs is kept alive for good.
    #[must_use]
    pub fn into_raw(self) -> *mut T {
        let raw = self.values.as_ptr();
        mem::forget(self);
        raw
    }

    /// The context that the memory belongs to.
    #[must_use]
    pub const fn context(&self) -> &Context {
        &self.context
    }
}

impl<T: DeviceCopy> Deref for HostBuffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: so many values are there, zeroed at first, and any bytes are a `T`.
        unsafe { slice::from_raw_parts(self.values.as_ptr(), self.len) }
    }
}

impl<T: DeviceCopy> DerefMut for HostBuffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and `self` is borrowed mutably.
        unsafe { slice::from_raw_parts_mut(self.values.as_ptr(), self.len) }
    }
}

impl<T: DeviceCopy + fmt::Debug> fmt::Debug for HostBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<T: DeviceCopy> Drop for HostBuffer<T> {
    fn drop(&mut self) {
        if self.len > 0 && size_of::<T>() > 0 {
            // SAFETY: the allocation is ours, and this is its last use.
            dropping().done(unsafe { checked::mem_free_host(self.values.as_ptr().cast()) });
        }
    }
}
