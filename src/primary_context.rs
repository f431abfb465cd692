//! Primary contexts: the one context of a device that everybody in a process shares, the CUDA runtime among them.

use core::ops::Deref;

use crate::{Context, Device, Result, checked, sys};

/// One use of a device's primary context. The last use that is given back, by whomever, destroys it.
///
/// It is a [`Context`] like any other, and everything that takes a `&Context` takes this too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrimaryContext {
    context: Context,
}

impl PrimaryContext {
    /// Makes the device's primary context, or uses the one that is there
    /// ([`cuDevicePrimaryCtxRetain`](checked::device_primary_ctx_retain)).
    ///
    /// # Errors
    /// 101 for a device that is not there, 2 without memory for it.
    #[inline]
    #[doc(alias = "cuDevicePrimaryCtxRetain")]
    #[track_caller]
    pub fn retain(device: Device) -> Result<Self> {
        // SAFETY: the driver checks the device.
        let raw = unsafe { checked::device_primary_ctx_retain(device.as_raw()) }?;
        Ok(Self {
            context: Context::primary(raw, device),
        })
    }

    /// Gives the use back, once no object made in it is left
    /// ([`cuDevicePrimaryCtxRelease`](checked::device_primary_ctx_release)).
    ///
    /// # Errors
    /// A fault of earlier work.
    #[inline]
    #[doc(alias = "cuDevicePrimaryCtxRelease")]
    #[track_caller]
    pub fn release(self) -> Result<()> {
        self.context.destroy()
    }

    /// The flags of a device's primary context, and whether it is in use by anyone
    /// ([`cuDevicePrimaryCtxGetState`](checked::device_primary_ctx_get_state)).
    ///
    /// # Errors
    /// 101 for a device that is not there.
    #[inline]
    #[doc(alias = "cuDevicePrimaryCtxGetState")]
    #[track_caller]
    pub fn state(device: Device) -> Result<checked::DevicePrimaryCtxGetState> {
        // SAFETY: the driver checks the device.
        unsafe { checked::device_primary_ctx_get_state(device.as_raw()) }
    }

    /// Sets the flags of a device's primary context, in use or not
    /// ([`cuDevicePrimaryCtxSetFlags`](checked::device_primary_ctx_set_flags)).
    ///
    /// # Errors
    /// 1 for flags that do not go together, 101 for a device that is not there.
    #[inline]
    #[doc(alias = "cuDevicePrimaryCtxSetFlags")]
    #[track_caller]
    pub fn set_flags(device: Device, flags: sys::CUctx_flags) -> Result<()> {
        // SAFETY: the driver checks flags and device.
        unsafe { checked::device_primary_ctx_set_flags(device.as_raw(), flags.0) }
    }

    /// Destroys everything in a device's primary context, whoever uses it
    /// ([`cuDevicePrimaryCtxReset`](checked::device_primary_ctx_reset)).
    ///
    /// # Safety
    /// Nothing that was made in it, here or by another library in the process, is used again: the driver crashes on a
    /// stream or an event of a context that is gone.
    ///
    /// # Errors
    /// 101 for a device that is not there.
    #[inline]
    #[doc(alias = "cuDevicePrimaryCtxReset")]
    #[track_caller]
    pub unsafe fn reset(device: Device) -> Result<()> {
        // SAFETY: the caller's.
        unsafe { checked::device_primary_ctx_reset(device.as_raw()) }
    }

    /// The same context as a plain one, which keeps this use.
    #[inline]
    #[must_use]
    pub fn into_context(self) -> Context {
        self.context
    }
}

impl Deref for PrimaryContext {
    type Target = Context;

    #[inline]
    fn deref(&self) -> &Context {
        &self.context
    }
}
