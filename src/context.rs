//! Contexts, and which one is current.

use core::marker::PhantomData;
use core::mem;
use std::sync::Arc;

use crate::error::{Error, dropping};
use crate::refusal::Refusal;
use crate::sys::{self, CUresult, Function};
use crate::{Device, Result, checked, host_fn};

/// A context: an address space on a device, with everything that lives there.
///
/// A context made here is *floating*, current on no thread: what is made in it makes it current for the one call that
/// needs it. Work on the null stream needs it current for longer; [`push`](Self::push) does that. To share a context with
/// the CUDA runtime and its libraries, take the device's [primary](crate::PrimaryContext) one instead.
///
/// ```no_run
/// use cuda_driver::{Context, Device};
///
/// cuda_driver::init()?;
/// let context = Context::create(Device::first()?)?;
/// let current = context.push()?;
/// // Here the context is this thread's current one.
/// drop(current);
/// context.destroy()?;
/// # Ok::<(), cuda_driver::Error>(())
/// ```
///
/// A clone is one more reference to the same context, and so is every object that was made in it; the last one destroys
/// it.
#[derive(Debug, Clone)]
pub struct Context {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    raw: sys::CUcontext,
    owner: Owner,
}

/// What the last reference does.
#[derive(Debug, Clone, Copy)]
enum Owner {
    /// Destroys the context.
    Created,
    /// Releases the device's primary context.
    Primary(Device),
    /// Nothing: it belongs to someone else.
    Foreign,
}

// SAFETY: the driver takes a context's handle on every thread.
unsafe impl Send for Inner {}
// SAFETY: as above; the driver locks what it shares.
unsafe impl Sync for Inner {}

impl Inner {
    #[inline]
    #[track_caller]
    fn end(&self) -> Result<()> {
        match self.owner {
            Owner::Created => {
                // SAFETY: the handle is live and ours, and this is its last use.
                let result = unsafe { checked::ctx_destroy(self.raw) };
                // What still ran until then could panic until then.
                host_fn::context_is_gone(self.raw);
                result
            }
            // SAFETY: we retained it once, and release it once.
            Owner::Primary(device) => unsafe {
                checked::device_primary_ctx_release(device.as_raw())
            },
            Owner::Foreign => Ok(()),
        }
    }
}

impl Drop for Inner {
    #[inline]
    fn drop(&mut self) {
        dropping().done(self.end());
    }
}

impl Context {
    #[inline]
    fn new(raw: sys::CUcontext, owner: Owner) -> Self {
        Self {
            inner: Arc::new(Inner { raw, owner }),
        }
    }

    /// Makes a context on a device, floating ([`cuCtxCreate`](checked::ctx_create)).
    ///
    /// # Errors
    /// 101 for a device that is not there, 2 without memory for it.
    #[inline]
    #[doc(alias = "cuCtxCreate")]
    #[track_caller]
    pub fn create(device: Device) -> Result<Self> {
        Self::create_with_flags(device, sys::CUctx_flags(0))
    }

    /// The same with flags, for instance how a waiting thread waits ([`cuCtxCreate`](checked::ctx_create)).
    ///
    /// # Errors
    /// 1 for flags that do not go together, and as [`create`](Self::create).
    #[inline]
    #[doc(alias = "cuCtxCreate")]
    #[track_caller]
    pub fn create_with_flags(device: Device, flags: sys::CUctx_flags) -> Result<Self> {
        // SAFETY: the driver checks flags and device.
        let raw = unsafe { checked::ctx_create(flags.0, device.as_raw()) }?;
        let context = Self::new(raw, Owner::Created);
        // C's call leaves it current.
        // SAFETY: this pops what was just pushed.
        unsafe { checked::ctx_pop_current() }?;
        Ok(context)
    }

    /// Pushes the context onto the calling thread's stack: it is the current one until the guard goes
    /// ([`cuCtxPushCurrent`](checked::ctx_push_current)).
    ///
    /// # Errors
    /// 3 in a forked process.
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
        // Made before the call: an interposer may panic when the context is on the stack already.
        let pushed = OnStack(self);
        // SAFETY: the handle is live, and `OnStack` does not let it end before it is popped.
        match unsafe { checked::ctx_push_current(self.inner.raw) } {
            Ok(()) => Ok(pushed),
            Err(error) => {
                mem::forget(pushed);
                Err(error)
            }
        }
    }

    /// Whether the context is the calling thread's current one ([`cuCtxGetCurrent`](checked::ctx_get_current)).
    ///
    /// # Errors
    /// 3 in a forked process.
    #[inline]
    #[doc(alias = "cuCtxGetCurrent")]
    #[track_caller]
    pub fn is_current(&self) -> Result<bool> {
        Ok(Self::current_raw()? == self.inner.raw)
    }

    /// The handle of the calling thread's current context, null if there is none
    /// ([`cuCtxGetCurrent`](checked::ctx_get_current)).
    ///
    /// # Errors
    /// 3 before [`init`](crate::init).
    #[inline]
    #[doc(alias = "cuCtxGetCurrent")]
    #[track_caller]
    pub fn current_raw() -> Result<sys::CUcontext> {
        // SAFETY: it takes nothing.
        unsafe { checked::ctx_get_current() }
    }

    /// The calling thread's current context, whoever made it, or `None`. It is not destroyed with the value.
    ///
    /// # Safety
    /// As [`borrow_raw`](Self::borrow_raw) of that context.
    ///
    /// # Errors
    /// 3 before [`init`](crate::init).
    #[inline]
    #[track_caller]
    pub unsafe fn current() -> Result<Option<Self>> {
        let raw = Self::current_raw()?;
        if raw.is_null() {
            return Ok(None);
        }
        // SAFETY: the caller's.
        Ok(Some(unsafe { Self::borrow_raw(raw) }))
    }

    /// Makes the context current for one call of this crate, if it is not already.
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

    /// Gives back this reference. If it is the last one, the context is destroyed ([`cuCtxDestroy`](checked::ctx_destroy)),
    /// or for a primary one released, and the driver's answer returned; else that is left to the last one.
    ///
    /// # Errors
    /// A fault of earlier work.
    #[inline]
    #[doc(alias = "cuCtxDestroy")]
    #[track_caller]
    pub fn destroy(self) -> Result<()> {
        match Arc::try_unwrap(self.inner) {
            Ok(inner) => mem::ManuallyDrop::new(inner).end(),
            Err(_) => Ok(()),
        }
    }

    /// Counts one more user of the context, by the driver's own count ([`cuCtxAttach`](checked::ctx_attach), which C
    /// deprecates). References here need no such count.
    ///
    /// # Errors
    /// 3 in a forked process.
    #[inline]
    #[doc(alias = "cuCtxAttach")]
    #[track_caller]
    pub fn attach(&self) -> Result<Attachment> {
        let _current = self.enter()?;
        // SAFETY: 0 are the only flags that there are.
        unsafe { checked::ctx_attach(0) }?;
        Ok(Attachment {
            context: self.clone(),
            detached: false,
        })
    }

    /// The device that the context was made on ([`cuCtxGetDevice`](checked::ctx_get_device)).
    ///
    /// # Errors
    /// 3 in a forked process.
    #[inline]
    #[doc(alias = "cuCtxGetDevice")]
    #[track_caller]
    pub fn device(&self) -> Result<Device> {
        let _current = self.enter()?;
        // SAFETY: the current context is live.
        let device = unsafe { checked::ctx_get_device() }?;
        Ok(Device::from_raw(device))
    }

    /// Waits until all work of the context is done ([`cuCtxSynchronize`](checked::ctx_synchronize)).
    ///
    /// # Errors
    /// A fault of the work that was waited for.
    ///
    /// # Panics
    /// With what a [host function](crate::Stream::launch_host_fn) of one of its streams panicked with.
    #[inline]
    #[doc(alias = "cuCtxSynchronize")]
    #[track_caller]
    pub fn synchronize(&self) -> Result<()> {
        let _current = self.enter()?;
        // SAFETY: the current context is live.
        let result = unsafe { checked::ctx_synchronize() };
        host_fn::resume_of_context(self.as_raw());
        result
    }

    /// The flags that the context was made with ([`cuCtxGetFlags`](checked::ctx_get_flags)).
    ///
    /// # Errors
    /// 3 in a forked process.
    #[inline]
    #[doc(alias = "cuCtxGetFlags")]
    #[track_caller]
    pub fn flags(&self) -> Result<sys::CUctx_flags> {
        let _current = self.enter()?;
        // SAFETY: the current context is live.
        let flags = unsafe { checked::ctx_get_flags() }?;
        Ok(sys::CUctx_flags(flags))
    }

    /// The API version that the context was made with, for instance 3020
    /// ([`cuCtxGetApiVersion`](checked::ctx_get_api_version)).
    ///
    /// # Errors
    /// 3 in a forked process.
    #[inline]
    #[doc(alias = "cuCtxGetApiVersion")]
    #[track_caller]
    pub fn api_version(&self) -> Result<u32> {
        // SAFETY: the handle is live.
        unsafe { checked::ctx_get_api_version(self.inner.raw) }
    }

    /// One of the context's limits; most are in bytes ([`cuCtxGetLimit`](checked::ctx_get_limit)).
    ///
    /// # Errors
    /// 215 for a limit that the device does not have, 1 for one that the driver does not know.
    #[inline]
    #[doc(alias = "cuCtxGetLimit")]
    #[track_caller]
    pub fn limit(&self, limit: sys::CUlimit) -> Result<usize> {
        let _current = self.enter()?;
        // SAFETY: the current context is live.
        unsafe { checked::ctx_get_limit(limit) }
    }

    /// Sets one of the context's limits; the driver may take another value than asked
    /// ([`cuCtxSetLimit`](checked::ctx_set_limit)).
    ///
    /// # Errors
    /// 215 for a limit that the device does not have, 1 for a value out of range.
    #[inline]
    #[doc(alias = "cuCtxSetLimit")]
    #[track_caller]
    pub fn set_limit(&self, limit: sys::CUlimit, value: usize) -> Result<()> {
        let _current = self.enter()?;
        // SAFETY: the current context is live.
        unsafe { checked::ctx_set_limit(limit, value) }
    }

    /// How the context likes to divide memory between L1 cache and shared memory
    /// ([`cuCtxGetCacheConfig`](checked::ctx_get_cache_config)).
    ///
    /// # Errors
    /// 3 in a forked process.
    #[inline]
    #[doc(alias = "cuCtxGetCacheConfig")]
    #[track_caller]
    pub fn cache_config(&self) -> Result<sys::CUfunc_cache> {
        let _current = self.enter()?;
        // SAFETY: the current context is live.
        unsafe { checked::ctx_get_cache_config() }
    }

    /// Sets how the context likes to divide memory between L1 cache and shared memory
    /// ([`cuCtxSetCacheConfig`](checked::ctx_set_cache_config)).
    ///
    /// # Errors
    /// 1 for a value that the driver does not know.
    #[inline]
    #[doc(alias = "cuCtxSetCacheConfig")]
    #[track_caller]
    pub fn set_cache_config(&self, config: sys::CUfunc_cache) -> Result<()> {
        let _current = self.enter()?;
        // SAFETY: the current context is live.
        unsafe { checked::ctx_set_cache_config(config) }
    }

    /// Free and total memory of the device, in bytes ([`cuMemGetInfo`](checked::mem_get_info)).
    ///
    /// # Errors
    /// 3 in a forked process.
    #[inline]
    #[doc(alias = "cuMemGetInfo")]
    #[track_caller]
    pub fn mem_info(&self) -> Result<checked::MemGetInfo> {
        let _current = self.enter()?;
        // SAFETY: the current context is live.
        unsafe { checked::mem_get_info() }
    }

    /// The least and the greatest priority of a stream; a smaller number runs first
    /// ([`cuCtxGetStreamPriorityRange`](checked::ctx_get_stream_priority_range)).
    ///
    /// # Errors
    /// 3 in a forked process.
    #[inline]
    #[doc(alias = "cuCtxGetStreamPriorityRange")]
    #[track_caller]
    pub fn stream_priority_range(&self) -> Result<checked::CtxGetStreamPriorityRange> {
        let _current = self.enter()?;
        // SAFETY: the current context is live.
        unsafe { checked::ctx_get_stream_priority_range() }
    }

    /// C's handle, live as long as `self`.
    #[inline]
    #[must_use]
    pub fn as_raw(&self) -> sys::CUcontext {
        self.inner.raw
    }

    /// Takes over a context that C made: the last reference destroys it.
    ///
    /// # Safety
    /// The handle is live, and nobody else destroys it or leaves it current on a thread for longer than the references
    /// live.
    #[inline]
    #[must_use]
    pub unsafe fn from_raw(raw: sys::CUcontext) -> Self {
        Self::new(raw, Owner::Created)
    }

    /// A context that belongs to someone else; it is not destroyed here.
    ///
    /// # Safety
    /// The handle stays live as long as the value, its clones and everything that is made with them.
    #[inline]
    #[must_use]
    pub unsafe fn borrow_raw(raw: sys::CUcontext) -> Self {
        Self::new(raw, Owner::Foreign)
    }

    /// Gives the context away: no reference destroys it any more.
    #[inline]
    #[must_use]
    pub fn into_raw(self) -> sys::CUcontext {
        let raw = self.inner.raw;
        // The count never falls to zero then.
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

/// A context that is current on this thread as long as this value lives; see [`Context::push`]. It is one more reference to
/// the context.
///
/// Guards go in the opposite order of their making. One that goes while another context is on top of the stack pops
/// nothing: its context stays on the stack, and alive for good. [`pop`](Self::pop) tells of it.
#[derive(Debug)]
#[must_use = "the context is popped at once if the guard is not kept"]
pub struct Current {
    context: Context,
    popped: bool,
    /// The stack is the thread's.
    thread: PhantomData<*const ()>,
}

impl Current {
    /// Pops the context and tells how that went ([`cuCtxPopCurrent`](checked::ctx_pop_current)).
    ///
    /// # Errors
    /// 201 if the context is not on top of the stack: another one was pushed and not popped. It then stays where it is.
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
        let on_stack = OnStack(&self.context);
        if Context::current_raw()? != self.context.inner.raw {
            return Err(Error::refused(
                CUresult::CUDA_ERROR_INVALID_CONTEXT,
                Function::cuCtxPopCurrent,
                Refusal::NotOnTop,
            ));
        }
        on_stack.pop()
    }
}

/// A context that is on the thread's stack. If it is not taken off, since that failed or was not reached, it must not end any
/// more: a destroyed context that is current crashes the driver.
struct OnStack<'a>(&'a Context);

impl OnStack<'_> {
    /// Takes off the top of the stack, which is this context.
    #[inline]
    #[track_caller]
    fn pop(self) -> Result<()> {
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
            dropping().done(self.end());
        }
    }
}

/// A context that is current for one call.
pub(crate) struct Entered<'a> {
    /// If it was pushed for that.
    pushed: Option<OnStack<'a>>,
    thread: PhantomData<*const ()>,
}

impl Drop for Entered<'_> {
    #[inline]
    fn drop(&mut self) {
        // What `enter` pushed is on top: nothing in between pushes without popping.
        if let Some(pushed) = self.pushed.take() {
            dropping().done(pushed.pop());
        }
    }
}

/// One use of a context by the driver's own count; see [`Context::attach`].
#[derive(Debug)]
#[must_use = "the use is given back at once if the value is not kept"]
pub struct Attachment {
    context: Context,
    detached: bool,
}

impl Attachment {
    /// Gives the use back ([`cuCtxDetach`](checked::ctx_detach)); dropping does the same.
    ///
    /// # Errors
    /// A fault of earlier work.
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
        // SAFETY: the context is current, and its own use outlives this one.
        unsafe { checked::ctx_detach(self.context.inner.raw) }
    }
}

impl Drop for Attachment {
    #[inline]
    fn drop(&mut self) {
        if !self.detached {
            dropping().done(self.end());
        }
    }
}

impl Context {
    #[inline]
    pub(crate) fn primary(raw: sys::CUcontext, device: Device) -> Self {
        Self::new(raw, Owner::Primary(device))
    }
}
