//! Result codes of calls.

/// The error of a call: the code that it returns, never `CUDA_SUCCESS`.
pub(crate) use cuda_driver_sys::CUresult as Error;

/// The result of a call, or of a part of it.
pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;
