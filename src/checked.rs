//! Every call of the driver, checked: one function per export, and nothing between it and the driver.
//!
//! A function here is named as in C, without `cu` and in Rust's case: `cuMemAlloc` is [`mem_alloc`], and
//! `cuCtxCreate_v4` is `ctx_create_v4`. The rules by which its parameters follow from C's:
//!
//! - A value that C writes through a pointer is returned; several are a struct named after the function.
//! - A code other than 0 is an [`Error`](crate::Error) that names the function and the line of the caller.
//! - An array is a slice, and the parameter that counts it is gone: the count comes from the slice. Slices that share a
//!   count must be of one length, else the answer is `CUDA_ERROR_INVALID_VALUE` and the driver is not asked. An empty
//!   slice is passed as null, or as an address that is not followed.
//! - What C may be given null for is an `Option` where it is read. What C may leave out of its answers is always asked for.
//! - A text is `&CStr` where the driver reads it and `String` where the driver gives it. What is only said yes or no to is a
//!   `bool`, and an array of its own is copied to a `Vec`.
//! - What C asks for in two calls, first how many and then which, is one call that returns a `Vec`. It says
//!   `CUDA_ERROR_OUT_OF_MEMORY` where the host has no room for so many.
//! - Untyped pointers, callbacks and flags are passed on as they are. Which flags, each call says: `CUctx_flags(x)` and its
//!   like hold the number that C takes in their field.
//!
//! Where a driver lacks an export, the error says which CUDA version has it. Six functions that C knows by a plain name and
//! that CUDA 12.0 replaced (`cuGetProcAddress`, `cuGraphAddKernelNode` and its like) do with the older export instead; each
//! says what that one lacks.
//!
//! The calls go to [`sys::DEFAULT`](crate::sys::DEFAULT). All are `unsafe`, as each says under *Safety*: handles and
//! pointers are the caller's to answer for, and the driver does not check all of them. Nor does it check the context that is
//! current on the calling thread, which it uses for all that names no other: one that was destroyed on another thread, or
//! while it was pushed twice, is current still, and the driver crashes on it.

mod fallback;
#[rustfmt::skip]
mod generated;
mod give;

pub use generated::*;
