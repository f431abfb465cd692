//! Contexts and the current context.

mod options;

use core::marker::PhantomData;
use core::mem;
use std::sync::Arc;

use crate::error::{Error, dropping, note_process};
use crate::refusal::Refusal;
use crate::sys::{self, CUresult, Function};
use crate::{Device, Result, checked, host_fn};

pub use self::options::ContextOptions;

/// A context: an address space on a device, with all objects created in it.
///
/// A new context is *floating*, that is, current on no thread, unlike after `cuCtxCreate` in C. Objects make it current
/// for the calls that need it. Work on the null stream needs a current context, too: call [`push`](Self::push). To
/// share a context with the CUDA runtime and its libraries, use the device's [primary context](crate::PrimaryContext)
/// instead.
///
/// ```
/// use cuda_driver::{Context, Device};
///
/// # cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software).unwrap().install().unwrap();
/// cuda_driver::init()?;
/// let context = Context::create(Device::first()?)?;
/// let current = context.push()?;
/// // Here the context is current on this thread.
/// drop(current);
/// context.destroy()?;
/// # Ok::<(), cuda_driver::Error>(())
/// ```
///
/// Clones, and all objects created in a context, are references to it. The last reference destroys the context.
#[derive(Debug, Clone)]
pub struct Context {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    raw: sys::CUcontext,
    owner: Owner,
}

/// The ownership of a context, which determines the action of its last reference.
#[derive(Debug, Clone, Copy)]
enum Owner {
    /// The last reference destroys the context.
    Created,
    /// The last reference releases the device's primary context.
    Primary(Device),
    /// The last reference destroys the green context.
    Green(sys::CUgreenCtx),
    /// Another owner destroys the context.
    Foreign,
}

// SAFETY: a context handle may be used on any thread.
unsafe impl Send for Inner {}
// SAFETY: as above; the driver synchronises access to its objects.
unsafe impl Sync for Inner {}

impl Inner {
    #[inline]
    #[track_caller]
    fn end(&self) -> Result<()> {
        match self.owner {
            Owner::Created => {
                host_fn::forget_context(self.raw);
                // SAFETY: the handle is live and owned, and this is its last use.
                unsafe { checked::ctx_destroy(self.raw) }
            }
            Owner::Green(green) => {
                host_fn::forget_context(self.raw);
                // SAFETY: the handle is live and owned, and this is its last use.
                unsafe { checked::green_ctx_destroy(green) }
            }
            // SAFETY: the context was retained once, and is released once.
            Owner::Primary(device) => unsafe { checked::device_primary_ctx_release(device.as_raw()) },
            Owner::Foreign => Ok(()),
        }
    }
}

impl Drop for Inner {
    #[inline]
    fn drop(&mut self) {
        if let Some(dropping) = dropping() {
            dropping.done(self.end());
        }
    }
}

impl Context {
    #[inline]
    fn new(raw: sys::CUcontext, owner: Owner) -> Self {
        note_process();
        Self {
            inner: Arc::new(Inner { raw, owner }),
        }
    }

    /// Creates a floating context on a device ([`cuCtxCreate`](checked::ctx_create)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_DEVICE` if there is no such device, and `CUDA_ERROR_OUT_OF_MEMORY` if there is not
    /// enough memory.
    #[inline]
    #[doc(alias = "cuCtxCreate")]
    #[track_caller]
    pub fn create(device: Device) -> Result<Self> {
        Self::create_with_flags(device, sys::CUctx_flags(0))
    }

    /// Creates a floating context with flags, for instance to choose how threads wait
    /// ([`cuCtxCreate`](checked::ctx_create)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for an invalid combination of flags, and the errors of
    /// [`create`](Self::create).
    #[inline]
    #[doc(alias = "cuCtxCreate")]
    #[track_caller]
    pub fn create_with_flags(device: Device, flags: sys::CUctx_flags) -> Result<Self> {
        // SAFETY: the driver checks flags and device.
        let raw = unsafe { checked::ctx_create(flags.0, device.as_raw()) }?;
        Self::float(raw)
    }

    /// Takes ownership of a context that was just created, and pops it: the driver leaves a new context current.
    #[inline]
    #[track_caller]
    fn float(raw: sys::CUcontext) -> Result<Self> {
        host_fn::forget_context(raw);
        let context = Self::new(raw, Owner::Created);
        OnStack(&context).pop()?;
        Ok(context)
    }

    /// Pushes the context onto the calling thread's stack, so that it is current until the guard is dropped
    /// ([`cuCtxPushCurrent`](checked::ctx_push_current)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_NOT_INITIALIZED` in a process that was forked after the driver was initialised.
    #[inline]
    #[doc(alias = "cuCtxPushCurrent")]
    #[track_caller]
    pub fn push(&self) -> Result<Current> {
        let pushed = self.push_on_stack()?;
        let current = Current {
            context: self.clone(),
            popped: false,
            thread: PhantomData,
        };
        mem::forget(pushed);
        Ok(current)
    }

    #[inline]
    #[track_caller]
    fn push_on_stack(&self) -> Result<OnStack<'_>> {
        // Before the call, because an interposer may panic after the context was pushed.
        let pushed = OnStack(self);
        // SAFETY: the handle is live, and `OnStack` keeps the context alive until it is popped.
        match unsafe { checked::ctx_push_current(self.inner.raw) } {
            Ok(()) => Ok(pushed),
            Err(error) => {
                mem::forget(pushed);
                Err(error)
            }
        }
    }

    /// Returns true if the context is current on the calling thread ([`cuCtxGetCurrent`](checked::ctx_get_current)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_NOT_INITIALIZED` in a process that was forked after the driver was initialised.
    #[inline]
    #[doc(alias = "cuCtxGetCurrent")]
    #[track_caller]
    pub fn is_current(&self) -> Result<bool> {
        Ok(Self::current_raw()? == self.inner.raw)
    }

    /// Returns the handle of the calling thread's current context, or null if there is none
    /// ([`cuCtxGetCurrent`](checked::ctx_get_current)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_NOT_INITIALIZED` before [`init`](crate::init).
    #[inline]
    #[doc(alias = "cuCtxGetCurrent")]
    #[track_caller]
    pub fn current_raw() -> Result<sys::CUcontext> {
        // SAFETY: no preconditions.
        unsafe { checked::ctx_get_current() }
    }

    /// Returns the handle of the calling thread's current context, or `CUDA_ERROR_INVALID_CONTEXT` for a call of
    /// `called` if there is none.
    #[inline]
    #[track_caller]
    pub(crate) fn required_raw(called: Function) -> Result<sys::CUcontext> {
        let current = Self::current_raw()?;
        if current.is_null() {
            return Err(Error::unasked(CUresult::CUDA_ERROR_INVALID_CONTEXT, called));
        }
        Ok(current)
    }

    /// Returns the calling thread's current context as a borrowed one, or `None`.
    ///
    /// # Safety
    /// Same as [`borrow_raw`](Self::borrow_raw).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_NOT_INITIALIZED` before [`init`](crate::init).
    #[inline]
    #[track_caller]
    pub unsafe fn current() -> Result<Option<Self>> {
        let raw = Self::current_raw()?;
        if raw.is_null() {
            return Ok(None);
        }
        // SAFETY: upheld by the caller.
        Ok(Some(unsafe { Self::borrow_raw(raw) }))
    }

    /// Makes the context current until the guard is dropped, if it is not current already.
    #[inline]
    #[track_caller]
    pub(crate) fn enter(&self) -> Result<Entered<'_>> {
        let pushed = if Self::current_raw()? == self.inner.raw {
            None
        } else {
            Some(self.push_on_stack()?)
        };
        Ok(Entered {
            pushed,
            thread: PhantomData,
        })
    }

    /// Drops this reference. If it is the last one, destroys the context ([`cuCtxDestroy`](checked::ctx_destroy)),
    /// releases it if it is a primary context, or destroys its green context, and returns the result. Otherwise, the
    /// last reference does that. A borrowed context is not destroyed.
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuCtxDestroy")]
    #[track_caller]
    pub fn destroy(self) -> Result<()> {
        match Arc::try_unwrap(self.inner) {
            Ok(inner) => mem::ManuallyDrop::new(inner).end(),
            Err(_) => Ok(()),
        }
    }

    /// Increments the driver's usage count of the context ([`cuCtxAttach`](checked::ctx_attach), which is deprecated).
    /// Objects of this crate do not need it.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_NOT_INITIALIZED` in a process that was forked after the driver was initialised.
    #[inline]
    #[doc(alias = "cuCtxAttach")]
    #[track_caller]
    pub fn attach(&self) -> Result<Attachment> {
        let _current = self.enter()?;
        // SAFETY: 0 is the only valid value for the flags.
        unsafe { checked::ctx_attach(0) }?;
        Ok(Attachment {
            context: self.clone(),
            detached: false,
        })
    }

    /// Makes the context current on the calling thread in place of the one on top of the stack
    /// ([`cuCtxSetCurrent`](checked::ctx_set_current)), for other libraries that expect the same context to stay
    /// current on a thread. The context is never destroyed, because it stays current. [`push`](Self::push) makes it
    /// current for a scope.
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuCtxSetCurrent")]
    #[track_caller]
    pub fn set_current(&self) -> Result<()> {
        // Before the call, because an interposer may panic after the context was made current. Dropping it leaks a
        // reference to the context.
        let current = OnStack(self);
        // SAFETY: the context is live, and `current` keeps it so unless the call fails.
        let result = unsafe { checked::ctx_set_current(self.as_raw()) };
        if result.is_err() {
            mem::forget(current);
        }
        result
    }

    /// Returns the device of the context ([`cuCtxGetDevice`](checked::ctx_get_device)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_NOT_INITIALIZED` in a process that was forked after the driver was initialised.
    #[inline]
    #[doc(alias = "cuCtxGetDevice")]
    #[doc(alias = "cuCtxGetDevice_v2")]
    #[track_caller]
    pub fn device(&self) -> Result<Device> {
        let _current = self.enter()?;
        // SAFETY: the current context is live.
        let device = unsafe { checked::ctx_get_device() }?;
        Ok(Device::from_raw(device))
    }

    /// Waits until all work in the context is done ([`cuCtxSynchronize`](checked::ctx_synchronize)).
    ///
    /// # Errors
    /// Returns an error from the work that was waited for.
    ///
    /// # Panics
    /// Resumes the panic of a [host function](crate::Stream::launch_host_fn) in one of the context's streams.
    #[inline]
    #[doc(alias = "cuCtxSynchronize")]
    #[doc(alias = "cuCtxSynchronize_v2")]
    #[track_caller]
    pub fn synchronize(&self) -> Result<()> {
        let _current = self.enter()?;
        // SAFETY: the current context is live.
        let result = unsafe { checked::ctx_synchronize() };
        host_fn::resume_of_context(self.as_raw());
        result
    }

    /// Returns the flags that the context was created with, or that [`set_flags`](Self::set_flags) set
    /// ([`cuCtxGetFlags`](checked::ctx_get_flags)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_NOT_INITIALIZED` in a process that was forked after the driver was initialised.
    #[inline]
    #[doc(alias = "cuCtxGetFlags")]
    #[track_caller]
    pub fn flags(&self) -> Result<sys::CUctx_flags> {
        let _current = self.enter()?;
        // SAFETY: the current context is live.
        let flags = unsafe { checked::ctx_get_flags() }?;
        Ok(sys::CUctx_flags(flags))
    }

    /// Sets the flags, in place of those that the context was created with ([`cuCtxSetFlags`](checked::ctx_set_flags)).
    /// `CU_CTX_MAP_HOST` and the flags for core dumps cannot be changed.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for an invalid combination of flags, and a
    /// [missing-function error](Error::is_missing_function) if the driver is older than CUDA 12.1.
    #[inline]
    #[doc(alias = "cuCtxSetFlags")]
    #[track_caller]
    pub fn set_flags(&self, flags: sys::CUctx_flags) -> Result<()> {
        let _current = self.enter()?;
        // SAFETY: the current context is live, and the driver checks the flags.
        unsafe { checked::ctx_set_flags(flags.0) }
    }

    /// Returns a number that no other context of the process has, unlike the handle, which a later context may reuse
    /// ([`cuCtxGetId`](checked::ctx_get_id)).
    ///
    /// # Errors
    /// Returns a [missing-function error](Error::is_missing_function) if the driver is older than CUDA 12.0.
    #[inline]
    #[doc(alias = "cuCtxGetId")]
    #[track_caller]
    pub fn id(&self) -> Result<u64> {
        // SAFETY: the handle is live.
        unsafe { checked::ctx_get_id(self.inner.raw) }
    }

    /// Returns the API version that the context was created with, for instance 3020
    /// ([`cuCtxGetApiVersion`](checked::ctx_get_api_version)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_NOT_INITIALIZED` in a process that was forked after the driver was initialised.
    #[inline]
    #[doc(alias = "cuCtxGetApiVersion")]
    #[track_caller]
    pub fn api_version(&self) -> Result<u32> {
        // SAFETY: the handle is live.
        unsafe { checked::ctx_get_api_version(self.inner.raw) }
    }

    /// Returns a limit of the context; most are in bytes ([`cuCtxGetLimit`](checked::ctx_get_limit)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_UNSUPPORTED_LIMIT` for a limit that the device does not have, and `CUDA_ERROR_INVALID_VALUE`
    /// for an unknown limit.
    #[inline]
    #[doc(alias = "cuCtxGetLimit")]
    #[track_caller]
    pub fn limit(&self, limit: sys::CUlimit) -> Result<usize> {
        let _current = self.enter()?;
        // SAFETY: the current context is live.
        unsafe { checked::ctx_get_limit(limit) }
    }

    /// Sets a limit of the context; most are in bytes. The driver may round the value, or replace it by the nearest one
    /// that it supports ([`cuCtxSetLimit`](checked::ctx_set_limit)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_UNSUPPORTED_LIMIT` for a limit that the device does not have, `CUDA_ERROR_NOT_PERMITTED` for
    /// a limit that can only be read, and `CUDA_ERROR_INVALID_VALUE` for an unknown limit or a value out of range.
    #[inline]
    #[doc(alias = "cuCtxSetLimit")]
    #[track_caller]
    pub fn set_limit(&self, limit: sys::CUlimit, value: usize) -> Result<()> {
        let _current = self.enter()?;
        // SAFETY: the current context is live.
        unsafe { checked::ctx_set_limit(limit, value) }
    }

    /// Returns the preferred split between L1 cache and shared memory
    /// ([`cuCtxGetCacheConfig`](checked::ctx_get_cache_config)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_NOT_INITIALIZED` in a process that was forked after the driver was initialised.
    #[inline]
    #[doc(alias = "cuCtxGetCacheConfig")]
    #[track_caller]
    pub fn cache_config(&self) -> Result<sys::CUfunc_cache> {
        let _current = self.enter()?;
        // SAFETY: the current context is live.
        unsafe { checked::ctx_get_cache_config() }
    }

    /// Sets the preferred split between L1 cache and shared memory
    /// ([`cuCtxSetCacheConfig`](checked::ctx_set_cache_config)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for an unknown value.
    #[inline]
    #[doc(alias = "cuCtxSetCacheConfig")]
    #[track_caller]
    pub fn set_cache_config(&self, config: sys::CUfunc_cache) -> Result<()> {
        let _current = self.enter()?;
        // SAFETY: the current context is live.
        unsafe { checked::ctx_set_cache_config(config) }
    }

    /// Returns the size of the banks of shared memory, which is fixed on devices of compute capability 5.0 and later
    /// ([`cuCtxGetSharedMemConfig`](checked::ctx_get_shared_mem_config), which is deprecated).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_NOT_INITIALIZED` in a process that was forked after the driver was initialised.
    #[inline]
    #[doc(alias = "cuCtxGetSharedMemConfig")]
    #[track_caller]
    pub fn shared_mem_config(&self) -> Result<sys::CUsharedconfig> {
        let _current = self.enter()?;
        // SAFETY: the current context is live.
        unsafe { checked::ctx_get_shared_mem_config() }
    }

    /// Sets the size of the banks of shared memory. It has no effect on devices of compute capability 5.0 and later
    /// ([`cuCtxSetSharedMemConfig`](checked::ctx_set_shared_mem_config), which is deprecated).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for an unknown value.
    #[inline]
    #[doc(alias = "cuCtxSetSharedMemConfig")]
    #[track_caller]
    pub fn set_shared_mem_config(&self, config: sys::CUsharedconfig) -> Result<()> {
        let _current = self.enter()?;
        // SAFETY: the current context is live.
        unsafe { checked::ctx_set_shared_mem_config(config) }
    }

    /// Resets all persisting lines of the L2 cache to normal
    /// ([`cuCtxResetPersistingL2Cache`](checked::ctx_reset_persisting_l2_cache)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_NOT_SUPPORTED` if the device has no such lines.
    #[inline]
    #[doc(alias = "cuCtxResetPersistingL2Cache")]
    #[track_caller]
    pub fn reset_persisting_l2_cache(&self) -> Result<()> {
        let _current = self.enter()?;
        // SAFETY: the current context is live.
        unsafe { checked::ctx_reset_persisting_l2_cache() }
    }

    /// Waits until GPUDirect RDMA writes of other devices are visible to work in the context
    /// ([`cuFlushGPUDirectRDMAWrites`](checked::flush_gpu_direct_rdma_writes)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_NOT_SUPPORTED` if
    /// [`Attributes::gpu_direct_rdma_flush_writes_options`](crate::device::Attributes::gpu_direct_rdma_flush_writes_options)
    /// does not include flushes by the host.
    #[inline]
    #[doc(alias = "cuFlushGPUDirectRDMAWrites")]
    #[track_caller]
    pub fn flush_gpu_direct_rdma_writes(&self, scope: sys::CUflushGPUDirectRDMAWritesScope) -> Result<()> {
        let target = sys::CUflushGPUDirectRDMAWritesTarget::CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX;
        let _current = self.enter()?;
        // SAFETY: the current context is live, and the driver checks the scope.
        unsafe { checked::flush_gpu_direct_rdma_writes(target, scope) }
    }

    /// Returns the free and the total memory of the device, in bytes ([`cuMemGetInfo`](checked::mem_get_info)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_NOT_INITIALIZED` in a process that was forked after the driver was initialised.
    #[inline]
    #[doc(alias = "cuMemGetInfo")]
    #[track_caller]
    pub fn mem_info(&self) -> Result<checked::MemGetInfo> {
        let _current = self.enter()?;
        // SAFETY: the current context is live.
        unsafe { checked::mem_get_info() }
    }

    /// Returns the least and the greatest stream priority; a lower number is a higher priority
    /// ([`cuCtxGetStreamPriorityRange`](checked::ctx_get_stream_priority_range)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_NOT_INITIALIZED` in a process that was forked after the driver was initialised.
    #[inline]
    #[doc(alias = "cuCtxGetStreamPriorityRange")]
    #[track_caller]
    pub fn stream_priority_range(&self) -> Result<checked::CtxGetStreamPriorityRange> {
        let _current = self.enter()?;
        // SAFETY: the current context is live.
        unsafe { checked::ctx_get_stream_priority_range() }
    }

    /// Returns true if the context stays alive as long as this reference, and false for a borrowed context.
    #[inline]
    pub(crate) fn keeps_alive(&self) -> bool {
        !matches!(self.inner.owner, Owner::Foreign)
    }

    /// Returns the raw handle, which is valid as long as `self`.
    #[inline]
    #[must_use]
    pub fn as_raw(&self) -> sys::CUcontext {
        self.inner.raw
    }

    /// Takes ownership of a context: the last reference destroys it.
    ///
    /// # Safety
    /// The handle must be live. No other code may destroy the context, or leave it current on a thread after the last
    /// reference is dropped.
    #[inline]
    #[must_use]
    pub unsafe fn from_raw(raw: sys::CUcontext) -> Self {
        Self::new(raw, Owner::Created)
    }

    /// Borrows a context, which is not destroyed with the returned value.
    ///
    /// # Safety
    /// The handle must stay valid as long as the returned value, its clones and all objects created with them.
    #[inline]
    #[must_use]
    pub unsafe fn borrow_raw(raw: sys::CUcontext) -> Self {
        Self::new(raw, Owner::Foreign)
    }

    /// Releases ownership of the handle, so that no reference destroys the context.
    #[inline]
    #[must_use]
    pub fn into_raw(self) -> sys::CUcontext {
        let raw = self.inner.raw;
        // The reference count never reaches zero.
        mem::forget(self);
        raw
    }
}

impl PartialEq for Context {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.inner.raw == other.inner.raw
    }
}

impl Eq for Context {}

/// Guard of [`Context::push`]: the context is current on this thread until the guard is dropped. The guard is also a
/// reference to the context.
///
/// Guards must be dropped in the reverse order of their creation. A guard that is dropped while another context is on
/// top of the stack pops nothing: its context stays on the stack and is never destroyed. [`pop`](Self::pop) returns an
/// error in that case.
#[derive(Debug)]
#[must_use = "dropping the guard pops the context at once"]
pub struct Current {
    context: Context,
    popped: bool,
    /// Keeps the guard on its thread, whose stack it pops.
    thread: PhantomData<*const ()>,
}

impl Current {
    /// Pops the context and returns the result ([`cuCtxPopCurrent`](checked::ctx_pop_current)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_CONTEXT` if another context is on top of the stack. The context then stays on the
    /// stack.
    #[inline]
    #[doc(alias = "cuCtxPopCurrent")]
    #[track_caller]
    pub fn pop(mut self) -> Result<()> {
        self.end()
    }

    #[inline]
    #[track_caller]
    fn end(&mut self) -> Result<()> {
        self.popped = true;
        OnStack(&self.context).pop()
    }
}

/// A context on the thread's stack. If it is dropped without being popped, the context is leaked, because a destroyed
/// context that is still current crashes the driver.
struct OnStack<'a>(&'a Context);

impl OnStack<'_> {
    /// Pops the context if it is on top of the stack. Otherwise, the caller or an interposer left another context
    /// there, which is not popped.
    #[inline]
    #[track_caller]
    fn pop(self) -> Result<()> {
        if Context::current_raw()? != self.0.inner.raw {
            return Err(Error::refused(
                CUresult::CUDA_ERROR_INVALID_CONTEXT,
                Function::cuCtxPopCurrent,
                Refusal::NotOnTop,
            ));
        }
        // SAFETY: the current context is live.
        unsafe { checked::ctx_pop_current() }?;
        mem::forget(self);
        Ok(())
    }
}

impl Drop for OnStack<'_> {
    #[cold]
    fn drop(&mut self) {
        mem::forget(self.0.clone());
    }
}

impl Drop for Current {
    #[inline]
    fn drop(&mut self) {
        if !self.popped {
            if let Some(dropping) = dropping() {
                dropping.done(self.end());
            }
        }
    }
}

/// Guard of [`Context::enter`]: the context is current until the guard is dropped.
pub(crate) struct Entered<'a> {
    /// `None` if the context was current already.
    pushed: Option<OnStack<'a>>,
    thread: PhantomData<*const ()>,
}

impl Drop for Entered<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(pushed) = self.pushed.take() {
            if let Some(dropping) = dropping() {
                dropping.done(pushed.pop());
            }
        }
    }
}

/// Guard of [`Context::attach`]: decrements the driver's usage count when dropped.
#[derive(Debug)]
#[must_use = "dropping the guard detaches at once"]
pub struct Attachment {
    context: Context,
    detached: bool,
}

impl Attachment {
    /// Decrements the usage count ([`cuCtxDetach`](checked::ctx_detach)). Dropping does the same.
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuCtxDetach")]
    #[track_caller]
    pub fn detach(mut self) -> Result<()> {
        self.end()
    }

    #[inline]
    #[track_caller]
    fn end(&mut self) -> Result<()> {
        self.detached = true;
        let _current = self.context.enter()?;
        // SAFETY: the context is current, and stays alive because `self.context` is a reference to it.
        unsafe { checked::ctx_detach(self.context.inner.raw) }
    }
}

impl Drop for Attachment {
    #[inline]
    fn drop(&mut self) {
        if !self.detached {
            if let Some(dropping) = dropping() {
                dropping.done(self.end());
            }
        }
    }
}

impl Context {
    #[inline]
    pub(crate) fn primary(raw: sys::CUcontext, device: Device) -> Self {
        Self::new(raw, Owner::Primary(device))
    }

    #[inline]
    pub(crate) fn green(raw: sys::CUcontext, green: sys::CUgreenCtx) -> Self {
        Self::new(raw, Owner::Green(green))
    }
}
