//! The profiler's functions. They are not generated, because `cuda.h` does not declare them.

use crate::refusal::Refusal;
use crate::sys::{self, CUresult, Function};
use crate::{Error, Result};

/// Starts the collection of data by an attached profiler. An error names `cuCtxGetCurrent`, because
/// [`sys::Function`](crate::sys::Function) has no value for this function.
///
/// C: [`cuProfilerStart`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__PROFILER.html).
///
/// # Errors
/// `CUDA_ERROR_INVALID_CONTEXT` if no context is current, `CUDA_ERROR_SHARED_OBJECT_INIT_FAILED` if no driver could be
/// loaded, and `CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND` if the driver does not export the function.
///
/// # Safety
/// The current context must be live.
#[doc(alias = "cuProfilerStart")]
#[inline]
#[track_caller]
pub unsafe fn profiler_start() -> Result<()> {
    // SAFETY: upheld by the caller.
    to_result(unsafe { sys::cuProfilerStart() })
}

/// Stops the collection of data by an attached profiler. An error names `cuCtxGetCurrent`, because
/// [`sys::Function`](crate::sys::Function) has no value for this function.
///
/// C: [`cuProfilerStop`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__PROFILER.html).
///
/// # Errors
/// Same as [`profiler_start`].
///
/// # Safety
/// The current context must be live.
#[doc(alias = "cuProfilerStop")]
#[inline]
#[track_caller]
pub unsafe fn profiler_stop() -> Result<()> {
    // SAFETY: upheld by the caller.
    to_result(unsafe { sys::cuProfilerStop() })
}

/// Converts the code of a function for which [`Function`] has no value.
#[inline]
#[track_caller]
fn to_result(code: CUresult) -> Result<()> {
    if code == CUresult::CUDA_SUCCESS {
        return Ok(());
    }
    Err(Error::refused(code, Function::cuCtxGetCurrent, Refusal::Profiler))
}
