//! Every driver call, checked: one function for each export, except the variants for per-thread default streams, such
//! as `cuLaunchKernel_ptsz`, and the functions with 32-bit addresses and sizes that CUDA 3.2 replaced. Apart from the
//! rules and the fallbacks below, a function adds no logic of its own.
//!
//! Functions have the names of C without `cu` and in snake case: `cuMemAlloc` is [`mem_alloc`], and `cuCtxCreate_v4` is
//! `ctx_create_v4`. Their signatures follow from C's by these rules:
//!
//! - Values that C writes through pointers are returned; several values are a struct named after the function.
//! - A code other than `CUDA_SUCCESS` is an [`Error`](crate::Error) with the function and the caller's line.
//! - Arrays are slices, without the parameter for their count. Slices that share a count must have the same length;
//!   otherwise the call returns `CUDA_ERROR_INVALID_VALUE` without calling the driver. For an empty slice the driver
//!   gets null or a dangling address, which it does not dereference.
//! - Inputs that may be null in C are an `Option`. Outputs that are optional in C are always requested.
//! - Strings are `&CStr` as inputs and `String` as outputs, booleans are `bool`, and arrays that the driver owns are
//!   copied to a `Vec`.
//! - Functions that C programs call twice, first for the count and then for the values, are one call that returns a
//!   `Vec`. It returns `CUDA_ERROR_OUT_OF_MEMORY` if the host does not have enough memory for the values.
//! - Untyped pointers, callbacks and flags are passed unchanged. The documentation of each call names the type of its
//!   flags, such as `CUctx_flags`; pass the number of a constant, such as `CUctx_flags::CU_CTX_SCHED_AUTO.0`.
//!
//! Each section of NVIDIA's manual of the driver API has a module with an example. All functions are also here:
//! `checked::mem_alloc` is `checked::memory::mem_alloc`.
//!
//! If the driver does not export a function, the error names the CUDA version that does. Since CUDA 12.0, the plain C
//! names of six functions, such as `cuGetProcAddress` and `cuGraphAddKernelNode`, mean a newer export. If the driver
//! lacks it, these functions call the older one; their documentation states the differences.
//!
//! The calls use [`sys::DEFAULT`](crate::sys::DEFAULT). All are `unsafe`, for the reasons in their *Safety* sections:
//! the driver does not check all handles and pointers. It also does not check the current context, which most calls
//! use: if another thread destroys a context, or if it is destroyed while it is twice on a thread's stack, it stays
//! current on that thread, and the driver crashes in calls that use it.

mod convert;
mod fallback;
#[rustfmt::skip]
mod generated;
mod profiler;

pub use generated::*;
pub use profiler::{profiler_start, profiler_stop};
