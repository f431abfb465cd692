//! Semaphores imported from other APIs.

use core::mem;
#[cfg(unix)]
use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd};

use crate::borrowed::handle;
use crate::error::dropping;
#[cfg(unix)]
use crate::sys::CUexternalSemaphoreHandleType;
use crate::sys::{
    self, CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC, CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS,
    CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS,
};
use crate::{Borrowed, Context, Result, Stream, checked};

/// A semaphore that another API created and exported. Streams signal it and wait for it.
///
/// ```no_run
/// # #[cfg(unix)]
/// # fn f(context: &cuda_driver::Context, exported: std::os::fd::OwnedFd) -> cuda_driver::Result<()> {
/// use cuda_driver::Stream;
/// use cuda_driver::external::ExternalSemaphore;
/// use cuda_driver::sys::CUexternalSemaphoreHandleType;
///
/// let stream = Stream::new(context)?;
/// let kind = CUexternalSemaphoreHandleType::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD;
/// // SAFETY: `exported` comes from `vkGetSemaphoreFdKHR` for a timeline semaphore.
/// let semaphore = unsafe { ExternalSemaphore::import_fd(context, exported, kind) }?;
/// // SAFETY: the semaphore lives until the stream is done.
/// unsafe {
///     semaphore.wait(&stream, 1)?;
///     // … launches …
///     semaphore.signal(&stream, 2)?;
/// }
/// stream.synchronize()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ExternalSemaphore {
    raw: sys::CUexternalSemaphore,
    /// `None` for a borrowed semaphore.
    context: Option<Context>,
}

// SAFETY: the handle may be used on any thread.
unsafe impl Send for ExternalSemaphore {}
// SAFETY: as above; the driver synchronises access to its objects.
unsafe impl Sync for ExternalSemaphore {}

impl ExternalSemaphore {
    /// Imports a semaphore ([`cuImportExternalSemaphore`](checked::import_external_semaphore)). The driver then owns a
    /// file descriptor in the description, but not a Win32 handle.
    ///
    /// # Safety
    /// The handle in the description must be valid and of the type that the description names.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_NOT_SUPPORTED` if the device or the operating system does not support this type,
    /// `CUDA_ERROR_INVALID_VALUE` or `CUDA_ERROR_INVALID_HANDLE` for an invalid description, and `CUDA_ERROR_UNKNOWN`
    /// for a file descriptor that is not of a semaphore.
    #[inline]
    #[doc(alias = "cuImportExternalSemaphore")]
    #[track_caller]
    pub unsafe fn import(context: &Context, description: &CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC) -> Result<Self> {
        let _current = context.enter()?;
        // SAFETY: upheld by the caller.
        let raw = unsafe { checked::import_external_semaphore(description) }?;
        // SAFETY: the semaphore was just imported.
        Ok(unsafe { Self::from_raw(raw, context) })
    }

    /// Imports a semaphore from a file descriptor. The driver owns the descriptor afterwards; if the import fails,
    /// this function closes it.
    ///
    /// # Safety
    /// The descriptor must refer to a semaphore of this type.
    ///
    /// # Errors
    /// Same as [`import`](Self::import).
    #[cfg(unix)]
    #[inline]
    #[track_caller]
    pub unsafe fn import_fd(context: &Context, fd: OwnedFd, kind: CUexternalSemaphoreHandleType) -> Result<Self> {
        let mut description = CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC {
            type_: kind,
            ..Default::default()
        };
        // Released before the call, because an interposer may panic after the driver closed the descriptor.
        let fd = fd.into_raw_fd();
        description.handle.fd = fd;
        // SAFETY: upheld by the caller.
        unsafe { Self::import(context, &description) }.inspect_err(|_| {
            // SAFETY: the descriptor is open and has no other owner.
            drop(unsafe { OwnedFd::from_raw_fd(fd) });
        })
    }

    /// Queues a signal; a timeline semaphore or fence gets the value
    /// ([`cuSignalExternalSemaphoresAsync`](checked::signal_external_semaphores_async)). A keyed mutex is released with
    /// the key 0.
    ///
    /// # Safety
    /// The semaphore must not be dropped until the signal is done.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_NOT_SUPPORTED` if the semaphore cannot be signalled.
    #[inline]
    #[doc(alias = "cuSignalExternalSemaphoresAsync")]
    #[track_caller]
    pub unsafe fn signal(&self, stream: &Stream, value: u64) -> Result<()> {
        let mut params = CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS::default();
        params.params.fence.value = value;
        // SAFETY: both handles are live; the rest is upheld by the caller.
        unsafe { checked::signal_external_semaphores_async(&[self.raw], &[params], stream.as_raw()) }
    }

    /// Makes later work in the stream wait for a signal; for a timeline semaphore or fence, for the value
    /// ([`cuWaitExternalSemaphoresAsync`](checked::wait_external_semaphores_async)). A keyed mutex is acquired with the
    /// key 0 and a timeout of 0 ms.
    ///
    /// # Safety
    /// The semaphore must not be dropped until the wait is over.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_NOT_SUPPORTED` if the semaphore cannot be waited for, and `CUDA_ERROR_TIMEOUT` if a keyed
    /// mutex was not released in time.
    #[inline]
    #[doc(alias = "cuWaitExternalSemaphoresAsync")]
    #[track_caller]
    pub unsafe fn wait(&self, stream: &Stream, value: u64) -> Result<()> {
        let mut params = CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS::default();
        params.params.fence.value = value;
        // SAFETY: both handles are live; the rest is upheld by the caller.
        unsafe { checked::wait_external_semaphores_async(&[self.raw], &[params], stream.as_raw()) }
    }

    /// Destroys the semaphore ([`cuDestroyExternalSemaphore`](checked::destroy_external_semaphore)). Dropping does the
    /// same.
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuDestroyExternalSemaphore")]
    #[track_caller]
    pub fn destroy(mut self) -> Result<()> {
        // SAFETY: the handle is live, and replaced by null so that `drop` does not use it.
        unsafe {
            Self::end(
                mem::replace(&mut self.raw, core::ptr::null_mut()),
                self.context.as_ref(),
            )
        }
    }

    /// Destroys the semaphore, if possible with its context current.
    ///
    /// # Safety
    /// The handle must be live, and not be used again.
    #[inline]
    #[track_caller]
    unsafe fn end(raw: sys::CUexternalSemaphore, context: Option<&Context>) -> Result<()> {
        let _current = match context {
            Some(context) => context.enter().ok(),
            None => None,
        };
        // SAFETY: upheld by the caller.
        unsafe { checked::destroy_external_semaphore(raw) }
    }

    /// Takes ownership of a semaphore that was imported in `context`.
    ///
    /// # Safety
    /// The handle must be live and belong to that context, and no other code may destroy it.
    #[inline]
    #[must_use]
    pub unsafe fn from_raw(raw: sys::CUexternalSemaphore, context: &Context) -> Self {
        Self {
            raw,
            context: Some(context.clone()),
        }
    }

    /// Borrows a semaphore.
    ///
    /// # Safety
    /// The handle must stay valid as long as the returned value.
    #[inline]
    #[must_use]
    pub const unsafe fn borrow_raw<'a>(raw: sys::CUexternalSemaphore) -> Borrowed<'a, Self> {
        Borrowed::new(Self { raw, context: None })
    }
}

handle! {
    [ExternalSemaphore] CUexternalSemaphore,
    leaked: "The reference to the context is leaked, so the context stays alive.",
    context: "of the semaphore; `None` for a borrowed semaphore."
}

impl Drop for ExternalSemaphore {
    #[inline]
    fn drop(&mut self) {
        if !self.raw.is_null() {
            if let Some(dropping) = dropping() {
                // SAFETY: the handle is live, and this is its last use.
                dropping.done(unsafe { Self::end(self.raw, self.context.as_ref()) });
            }
        }
    }
}
