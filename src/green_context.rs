//! Green contexts: contexts whose work runs on a part of a device's multiprocessors.

mod resource;
mod stream;

use core::ops::Deref;

pub use self::resource::{DeviceResource, Split};

use crate::refusal::Refusal;
use crate::sys::{self, CUresult};
use crate::{Context, Device, Error, Event, Result, checked, host_fn};

/// A green context: a context whose work runs on a part of the device's multiprocessors. Needs CUDA 12.4.
///
/// It dereferences to [`Context`], so it can be used wherever a `&Context` is needed; it shares the address space of
/// the device's [primary context](crate::PrimaryContext), which it retains. Clones, and all objects created in the
/// green context, are references to it. The last reference destroys it.
///
/// ```
/// use cuda_driver::{Device, GreenContext, sys::CUdevResourceType};
///
/// # cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software).unwrap().install().unwrap();
/// # cuda_driver::init()?;
/// # let device = Device::first()?;
/// let all = device.resource(CUdevResourceType::CU_DEV_RESOURCE_TYPE_SM)?;
/// // One group of at least 8 multiprocessors, and the others.
/// let split = all.split_by_count(1, 8, 0)?;
/// let urgent = GreenContext::create(device, &split.groups)?;
/// let stream = urgent.stream(0)?;
/// // … launches in `stream`, which run on the multiprocessors of the group only …
/// stream.synchronize()?;
/// # Ok::<(), cuda_driver::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GreenContext {
    raw: sys::CUgreenCtx,
    context: Context,
}

// SAFETY: a green context handle may be used on any thread.
unsafe impl Send for GreenContext {}
// SAFETY: as above; the driver synchronises access to its objects.
unsafe impl Sync for GreenContext {}

impl GreenContext {
    /// Creates a green context with resources of a device ([`cuGreenCtxCreate`](checked::green_ctx_create) with the
    /// result of [`cuDevResourceGenerateDesc`](checked::dev_resource_generate_desc)).
    ///
    /// The manual requires that all resources come from one split. Driver 580 does not check this.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION` for an empty list, and a [missing-function
    /// error](crate::Error::is_missing_function) if the driver is older than CUDA 12.4.
    #[inline]
    #[doc(alias = "cuGreenCtxCreate")]
    #[doc(alias = "cuDevResourceGenerateDesc")]
    #[track_caller]
    pub fn create(device: Device, resources: &[DeviceResource]) -> Result<Self> {
        if resources.is_empty() {
            // Driver 580 crashes on an empty list.
            return Err(Error::refused(
                CUresult::CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION,
                sys::Function::cuDevResourceGenerateDesc,
                Refusal::NoResource,
            ));
        }
        // Copied, because the driver writes links between the records.
        let mut resources: Vec<_> = resources.iter().map(|resource| *resource.as_raw()).collect();
        // SAFETY: the records were written by the driver.
        let description = unsafe { checked::dev_resource_generate_desc(&mut resources) }?;
        // Driver 580 requires this flag.
        let flags = sys::CUgreenCtxCreate_flags::CU_GREEN_CTX_DEFAULT_STREAM;
        // SAFETY: the description is the driver's.
        let raw = unsafe { checked::green_ctx_create(description, device.as_raw(), flags.0) }?;
        // SAFETY: the handle is live, and owned by nothing else.
        let green = unsafe { Self::from_raw(raw) }?;
        host_fn::forget_context(green.context.as_raw());
        Ok(green)
    }

    /// Returns the resource of a kind that the green context owns
    /// ([`cuGreenCtxGetDevResource`](checked::green_ctx_get_dev_resource)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_RESOURCE_TYPE` for a kind that it does not own.
    #[inline]
    #[doc(alias = "cuGreenCtxGetDevResource")]
    #[track_caller]
    pub fn resource(&self, kind: sys::CUdevResourceType) -> Result<DeviceResource> {
        // SAFETY: the handle is live.
        unsafe { checked::green_ctx_get_dev_resource(self.raw, kind) }.map(DeviceResource::new)
    }

    /// Returns a number that no other context of the process has ([`cuGreenCtxGetId`](checked::green_ctx_get_id)).
    ///
    /// # Errors
    /// Returns a [missing-function error](crate::Error::is_missing_function) if the driver is older than CUDA 12.9.
    #[inline]
    #[doc(alias = "cuGreenCtxGetId")]
    #[track_caller]
    pub fn green_id(&self) -> Result<u64> {
        // SAFETY: the handle is live.
        unsafe { checked::green_ctx_get_id(self.raw) }
    }

    /// Records the work that is currently queued in all streams of the green context
    /// ([`cuGreenCtxRecordEvent`](checked::green_ctx_record_event)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_HANDLE` for an event of another context.
    #[inline]
    #[doc(alias = "cuGreenCtxRecordEvent")]
    #[track_caller]
    pub fn record_event(&self, event: &Event) -> Result<()> {
        // SAFETY: both handles are live.
        unsafe { checked::green_ctx_record_event(self.raw, event.as_raw()) }?;
        event.forget_stream();
        Ok(())
    }

    /// Makes future work in all streams of the green context wait for an event
    /// ([`cuGreenCtxWaitEvent`](checked::green_ctx_wait_event)).
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuGreenCtxWaitEvent")]
    #[track_caller]
    pub fn wait_event(&self, event: &Event) -> Result<()> {
        // SAFETY: both handles are live.
        unsafe { checked::green_ctx_wait_event(self.raw, event.as_raw()) }
    }

    /// Drops this reference. If it is the last one, destroys the green context and returns the result
    /// ([`cuGreenCtxDestroy`](checked::green_ctx_destroy)). Otherwise, the last reference destroys it.
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuGreenCtxDestroy")]
    #[track_caller]
    pub fn destroy(self) -> Result<()> {
        self.context.destroy()
    }

    /// Returns the raw handle, which is valid as long as `self`. `Context::as_raw` returns the context's handle.
    #[inline]
    #[must_use]
    pub const fn as_raw_green(&self) -> sys::CUgreenCtx {
        self.raw
    }

    /// Takes ownership of a green context: the last reference destroys it
    /// ([`cuCtxFromGreenCtx`](checked::ctx_from_green_ctx)).
    ///
    /// # Safety
    /// The handle must be live. No other code may destroy the green context, or leave it current on a thread after the
    /// last reference is dropped.
    ///
    /// # Errors
    /// Returns an error if the driver does not convert it to a context. The green context is then leaked.
    #[inline]
    #[doc(alias = "cuCtxFromGreenCtx")]
    #[track_caller]
    pub unsafe fn from_raw(raw: sys::CUgreenCtx) -> Result<Self> {
        // SAFETY: the handle is live.
        let context = unsafe { checked::ctx_from_green_ctx(raw) }?;
        Ok(Self {
            raw,
            context: Context::green(context, raw),
        })
    }

    /// Borrows a green context, which is not destroyed with the returned value
    /// ([`cuCtxFromGreenCtx`](checked::ctx_from_green_ctx)).
    ///
    /// # Safety
    /// The handle must stay valid as long as the returned value, its clones and all objects created with them.
    ///
    /// # Errors
    /// Returns an error if the driver does not convert it to a context.
    #[inline]
    #[doc(alias = "cuCtxFromGreenCtx")]
    #[track_caller]
    pub unsafe fn borrow_raw(raw: sys::CUgreenCtx) -> Result<Self> {
        // SAFETY: the handle is live.
        let context = unsafe { checked::ctx_from_green_ctx(raw) }?;
        // SAFETY: upheld by the caller.
        let context = unsafe { Context::borrow_raw(context) };
        Ok(Self { raw, context })
    }

    /// Releases ownership of the handle, so that no reference destroys the green context.
    #[inline]
    #[must_use]
    pub fn into_raw(self) -> sys::CUgreenCtx {
        let _ = self.context.into_raw();
        self.raw
    }
}

impl Deref for GreenContext {
    type Target = Context;

    #[inline]
    fn deref(&self) -> &Context {
        &self.context
    }
}
