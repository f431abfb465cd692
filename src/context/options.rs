//! Creation of contexts with parameters.

use core::ffi::c_void;

use super::Context;
use crate::sys::{
    CUcigDataType, CUctx_flags, CUctxCigParam, CUctxCreateParams, CUexecAffinityParam, CUexecAffinityParam_st__param,
    CUexecAffinitySmCount, CUexecAffinityType,
};
use crate::{Device, Result, checked};

/// Options of a context, for [`Context::create_with`]. The default options create the same context as
/// [`Context::create`].
///
/// Later versions may add fields: end a literal with `..Default::default()`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ContextOptions {
    /// The flags, for instance `CU_CTX_SCHED_BLOCKING_SYNC`.
    pub flags: CUctx_flags,
    /// The number of multiprocessors that the context may use, for a device under the Multi-Process Service. The driver
    /// may round it up: see [`Context::sm_affinity`].
    pub sm_count: Option<u32>,
}

impl Default for ContextOptions {
    #[inline]
    fn default() -> Self {
        Self {
            flags: CUctx_flags::CU_CTX_SCHED_AUTO,
            sm_count: None,
        }
    }
}

impl Context {
    /// Creates a floating context with options ([`cuCtxCreate_v4`](checked::ctx_create_v4), or with drivers before CUDA
    /// 12.5 [`cuCtxCreate_v3`](checked::ctx_create_v3)). Without [`sm_count`](ContextOptions::sm_count), it is the same
    /// as [`create_with_flags`](Self::create_with_flags).
    ///
    /// ```
    /// use cuda_driver::{Context, ContextOptions, Device, sys::CUctx_flags};
    ///
    /// # cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software).unwrap().install().unwrap();
    /// # cuda_driver::init()?;
    /// let flags = CUctx_flags::CU_CTX_SCHED_BLOCKING_SYNC;
    /// let options = ContextOptions { flags, ..Default::default() };
    /// let context = Context::create_with(Device::first()?, &options)?;
    /// assert!(context.flags()?.contains(flags));
    /// # Ok::<(), cuda_driver::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY` if the number of multiprocessors cannot be limited, and the
    /// errors of [`create_with_flags`](Self::create_with_flags).
    #[inline]
    #[doc(alias = "cuCtxCreate_v4")]
    #[doc(alias = "cuCtxCreate_v3")]
    #[track_caller]
    pub fn create_with(device: Device, options: &ContextOptions) -> Result<Self> {
        let Some(sm_count) = options.sm_count else {
            return Self::create_with_flags(device, options.flags);
        };
        let mut affinity = CUexecAffinityParam {
            type_: CUexecAffinityType::CU_EXEC_AFFINITY_TYPE_SM_COUNT,
            param: CUexecAffinityParam_st__param {
                smCount: CUexecAffinitySmCount { val: sm_count },
            },
        };
        let (flags, device) = (options.flags.0, device.as_raw());
        let params = CUctxCreateParams {
            execAffinityParams: &raw mut affinity,
            numExecAffinityParams: 1,
            ..Default::default()
        };
        // SAFETY: the parameters are live for the call, and the driver checks their values.
        let raw = match unsafe { checked::ctx_create_v4(Some(&params), flags, device) } {
            // SAFETY: as above.
            Err(error) if error.is_missing_function() => unsafe { checked::ctx_create_v3(&[affinity], flags, device) },
            result => result,
        }?;
        Self::float(raw)
    }

    /// Creates a floating context that shares work submission with a graphics API
    /// ([`cuCtxCreate_v4`](checked::ctx_create_v4)).
    ///
    /// # Safety
    /// `shared` must be a valid object of type `kind`, such as a live `ID3D12CommandQueue`, as long as the context
    /// exists.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_NOT_SUPPORTED` if the device does not support such contexts, a
    /// [missing-function error](crate::Error::is_missing_function) if the driver is older than CUDA 12.5, and the
    /// errors of [`create_with_flags`](Self::create_with_flags).
    #[inline]
    #[doc(alias = "cuCtxCreate_v4")]
    #[track_caller]
    pub unsafe fn create_for_graphics(
        device: Device,
        flags: CUctx_flags,
        kind: CUcigDataType,
        shared: *mut c_void,
    ) -> Result<Self> {
        let mut graphics = CUctxCigParam {
            sharedDataType: kind,
            sharedData: shared,
        };
        let params = CUctxCreateParams {
            cigParams: &raw mut graphics,
            ..Default::default()
        };
        // SAFETY: the parameters are live for the call; the rest is upheld by the caller.
        let raw = unsafe { checked::ctx_create_v4(Some(&params), flags.0, device.as_raw()) }?;
        Self::float(raw)
    }

    /// Returns the number of multiprocessors that the context may use
    /// ([`cuCtxGetExecAffinity`](checked::ctx_get_exec_affinity)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY` if the driver does not report it.
    #[inline]
    #[doc(alias = "cuCtxGetExecAffinity")]
    #[track_caller]
    pub fn sm_affinity(&self) -> Result<u32> {
        let _current = self.enter()?;
        // SAFETY: the current context is live.
        let affinity = unsafe { checked::ctx_get_exec_affinity(CUexecAffinityType::CU_EXEC_AFFINITY_TYPE_SM_COUNT) }?;
        // SAFETY: the driver wrote the member of this type; any number is valid.
        Ok(unsafe { affinity.param.smCount.val })
    }
}
