//! The profiler's functions, which are declared in `cudaProfiler.h` instead of `cuda.h`. They are not in the registry,
//! and interposers do not see them.
#![allow(non_snake_case)]

use core::ffi::{CStr, c_void};
use core::mem;
use core::ptr::NonNull;

use crate::{CUresult, DEFAULT};

/// The type of both functions.
type Switch = unsafe extern "system" fn() -> CUresult;

/// Calls a function of [`DEFAULT`] that takes no arguments.
unsafe fn switch(name: &CStr) -> CUresult {
    let Some(address) = DEFAULT.symbol(name) else {
        return if DEFAULT.load_error().is_some() {
            CUresult::CUDA_ERROR_SHARED_OBJECT_INIT_FAILED
        } else {
            CUresult::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND
        };
    };
    // SAFETY: drivers export functions of this type by these names.
    let function = unsafe { mem::transmute::<NonNull<c_void>, Switch>(address) };
    // SAFETY: the function takes no arguments.
    unsafe { function() }
}

/// Starts the collection of data by an attached profiler.
///
/// Since CUDA 4.0; [manual](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__PROFILER.html). Returns
/// [`CUresult::CUDA_ERROR_INVALID_CONTEXT`] if no context is current,
/// [`CUresult::CUDA_ERROR_SHARED_OBJECT_INIT_FAILED`] without a driver, and
/// [`CUresult::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND`] if the driver does not export the function.
///
/// # Safety
/// As in C: the current context must not be destroyed.
pub unsafe fn cuProfilerStart() -> CUresult {
    // SAFETY: upheld by the caller.
    unsafe { switch(c"cuProfilerStart") }
}

/// Stops the collection of data by an attached profiler.
///
/// Since CUDA 4.0; [manual](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__PROFILER.html). Returns the codes
/// of [`cuProfilerStart`].
///
/// # Safety
/// As in C: the current context must not be destroyed.
pub unsafe fn cuProfilerStop() -> CUresult {
    // SAFETY: upheld by the caller.
    unsafe { switch(c"cuProfilerStop") }
}
