//! Every driver call, checked: one function for each export, except the variants for per-thread default streams, such
//! as `cuLaunchKernel_ptsz`, and the functions with 32-bit addresses and sizes that CUDA 3.2 replaced. A function
//! converts arguments and results; apart from the fallbacks below, no other logic is between it and the driver.
//!
//! Functions have the names of C without `cu` and in snake case: `cuMemAlloc` is [`mem_alloc`], and `cuCtxCreate_v4` is
//! `ctx_create_v4`. Their signatures follow from C's by these rules:
//!
//! - Values that C writes through pointers are returned; several values are a struct named after the function.
//! - A code other than `CUDA_SUCCESS` is an [`Error`](crate::Error) with the function and the caller's line.
//! - Arrays are slices, without the parameter for their count. Slices that share a count must have the same length;
//!   otherwise the call returns `CUDA_ERROR_INVALID_VALUE` without calling the driver. An empty slice is passed as
//!   null, or as an address that is not dereferenced.
//! - Inputs that may be null in C are an `Option`. Outputs that are optional in C are always requested.
//! - Strings are `&CStr` as inputs and `String` as outputs, booleans are `bool`, and arrays that the driver owns are
//!   copied to a `Vec`.
//! - Functions that C programs call twice, first for the count and then for the values, are one call that returns a
//!   `Vec`. It returns `CUDA_ERROR_OUT_OF_MEMORY` if the host does not have enough memory for the values.
//! - Untyped pointers, callbacks and flags are passed unchanged. The documentation of each call names the type of its
//!   flags, such as `CUctx_flags`; pass the number in its field.
//!
//! Each group of the manual has a module with an example. All functions are also here: `checked::mem_alloc` is
//! `checked::memory::mem_alloc`.
//!
//! If the driver does not export a function, the error names the CUDA version that does. Six functions with a plain
//! name that CUDA 12.0 redefined, such as `cuGetProcAddress` and `cuGraphAddKernelNode`, fall back to the older export;
//! their documentation states the differences.
//!
//! The calls use [`sys::DEFAULT`](crate::sys::DEFAULT). All are `unsafe`, for the reasons in their *Safety* sections:
//! the driver does not check all handles and pointers. It also does not check the current context, which most calls
//! use: a context that was destroyed on another thread, or while it was pushed twice, is still current, and the driver
//! crashes in calls that use it.

mod convert;
mod fallback;
#[rustfmt::skip]
mod generated;
mod profiler;

pub use generated::*;
pub use profiler::{profiler_start, profiler_stop};
