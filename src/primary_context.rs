//! Primary contexts: the context of a device that is shared by all code of a process, including the CUDA runtime.

use core::ops::Deref;

use crate::{Context, Device, Result, checked, sys};

/// The state of a device's primary context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PrimaryState {
    /// The flags, which [`PrimaryContext::set_flags`] sets.
    pub flags: sys::CUctx_flags,
    /// True if the context has users.
    pub active: bool,
}

/// A retained primary context of a device. The driver counts its users in the whole process, and destroys the context
/// when the last one releases it.
///
/// It dereferences to [`Context`], so it can be used wherever a `&Context` is needed.
///
/// ```
/// use cuda_driver::{Device, DeviceBuffer, PrimaryContext};
///
/// # cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software).unwrap().install().unwrap();
/// # cuda_driver::init()?;
/// let device = Device::first()?;
/// let primary = PrimaryContext::retain(device)?;
/// assert!(PrimaryContext::state(device)?.active);
/// let buffer = DeviceBuffer::from_slice(&primary, &[1u8, 2, 3])?;
/// # Ok::<(), cuda_driver::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrimaryContext {
    context: Context,
}

impl PrimaryContext {
    /// Retains the device's primary context, and creates it if necessary
    /// ([`cuDevicePrimaryCtxRetain`](checked::device_primary_ctx_retain)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_DEVICE` if there is no such device, and `CUDA_ERROR_OUT_OF_MEMORY` if there is not
    /// enough memory.
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

    /// Drops this reference. If it is the last one, releases the context
    /// ([`cuDevicePrimaryCtxRelease`](checked::device_primary_ctx_release)) and returns the result. Otherwise, the last
    /// clone or object created with it does that.
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuDevicePrimaryCtxRelease")]
    #[track_caller]
    pub fn release(self) -> Result<()> {
        self.context.destroy()
    }

    /// Returns the state of a device's primary context
    /// ([`cuDevicePrimaryCtxGetState`](checked::device_primary_ctx_get_state)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_DEVICE` if there is no such device.
    #[inline]
    #[doc(alias = "cuDevicePrimaryCtxGetState")]
    #[track_caller]
    pub fn state(device: Device) -> Result<PrimaryState> {
        // SAFETY: the driver checks the device.
        let state = unsafe { checked::device_primary_ctx_get_state(device.as_raw()) }?;
        Ok(PrimaryState {
            flags: sys::CUctx_flags(state.flags),
            active: state.active,
        })
    }

    /// Sets the flags of a device's primary context, whether or not it has users
    /// ([`cuDevicePrimaryCtxSetFlags`](checked::device_primary_ctx_set_flags)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for an invalid combination of flags, and `CUDA_ERROR_INVALID_DEVICE` if there
    /// is no such device.
    #[inline]
    #[doc(alias = "cuDevicePrimaryCtxSetFlags")]
    #[track_caller]
    pub fn set_flags(device: Device, flags: sys::CUctx_flags) -> Result<()> {
        // SAFETY: the driver checks flags and device.
        unsafe { checked::device_primary_ctx_set_flags(device.as_raw(), flags.0) }
    }

    /// Destroys all objects in a device's primary context, even if it has other users
    /// ([`cuDevicePrimaryCtxReset`](checked::device_primary_ctx_reset)).
    ///
    /// # Safety
    /// No object in the context may be used or dropped afterwards, including those of other libraries in the process:
    /// the driver can crash when it uses or destroys an object of a destroyed context, such as a stream. A
    /// [`PrimaryContext`] itself may be dropped.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_DEVICE` if there is no such device.
    #[inline]
    #[doc(alias = "cuDevicePrimaryCtxReset")]
    #[track_caller]
    pub unsafe fn reset(device: Device) -> Result<()> {
        // SAFETY: upheld by the caller.
        unsafe { checked::device_primary_ctx_reset(device.as_raw()) }
    }

    /// Converts to a plain context, which keeps the primary context retained.
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
