//! Raw bindings to the CUDA Driver API, found and loaded at run time.
//!
//! Every type, constant and exported function of CUDA 13.5's `cuda.h`. Building needs no CUDA toolkit, no libclang and
//! no GPU: `libcuda.so.1` or `nvcuda.dll` is loaded when a function is first called, and each function is looked up
//! when it is first used. One build runs on every driver from CUDA 11.7 on: a missing function is an error when it is
//! called, not when the program starts.
//!
//! ```no_run
//! # #[cfg(feature = "loader")] {
//! use cuda_driver_sys::{CUresult, DEFAULT, cuDeviceGetCount, cuInit};
//!
//! let mut count = 0;
//! // SAFETY: the output pointer is valid.
//! let code = unsafe {
//!     match cuInit(0) {
//!         CUresult::CUDA_SUCCESS => cuDeviceGetCount(&raw mut count),
//!         code => code,
//!     }
//! };
//! match DEFAULT.load_error() {
//!     Some(error) => println!("{error}"),
//!     None => println!("{code:?}, {count} devices"),
//! }
//! # }
//! ```
//!
//! - **Names.** [`cuMemAlloc_v2`] is the export of that name. [`cuMemAlloc`] is the function that a C program gets by
//!   that name from a CUDA 12 header; for later functions, the first variant. Exports whose own name means another
//!   export in C are in [`legacy`].
//! - **Structs and unions without a name** in C are named after the member whose type they are:
//!   [`CUDA_RESOURCE_DESC_st__res`]. Members that C reaches through an unnamed member have a setter and a getter:
//!   [`location.with_id(0)`](CUmemLocation::with_id), [`location.id()`](CUmemLocation::id).
//! - **Free functions** call [`DEFAULT`]; [`set_default`] chooses its driver. [`Library::new`] makes more libraries.
//! - **C enumerations** are newtypes: a value that these bindings do not know is valid data. Enumerators that mark the
//!   end of an enumeration, such as `CU_DEVICE_ATTRIBUTE_MAX`, are left out, because releases change their values.
//! - **[`Function`]** is the registry: every export with its base name, version, parameters and default-stream mode.
//!
//! # Errors
//!
//! Every call returns a [`CUresult`], as in C. Without interposers, two codes may come from this crate:
//!
//! - [`CUDA_ERROR_SHARED_OBJECT_INIT_FAILED`](CUresult::CUDA_ERROR_SHARED_OBJECT_INIT_FAILED): no driver was found.
//!   [`Library::load_error`] lists the places that were tried.
//! - [`CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND`](CUresult::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND): the driver
//!   does not export the function. [`Library::missing`] names the CUDA version that introduced it, and
//!   [`Library::supports`] tells before the call.
//!
//! This crate never panics; a panic of a resolver or an interposer passes through the call. Functions are only called
//! through their own type. No driver is loaded on targets that are not 64-bit, where device pointers have another size.
//!
//! # Safety
//!
//! All calls are `unsafe` under C's rules: pointers must point to the data that the manual asks for, handles must be
//! live, and memory must outlive the device work that uses it. NULL where the manual forbids it may crash the process.
//! The crate guarantees the types of the functions. The `Default` of a struct is all zeros: the value for fields that a
//! program does not know, but not always one that the function accepts.
//!
//! # Which driver
//!
//! [`Source::search`](library::Source::search) lists the places where the system's driver is searched for; the
//! environment variable `CUDA_DRIVER_LIBRARY` names another file. [`Options`](library::Options) select per-thread
//! default streams and put an [`Interposer`](library::Interposer) between the program and the driver, for example to
//! count or watch calls, to hide functions or to make calls fail. The crate `cuda-driver-hooks` has ready-made
//! interposers for that.
//!
//! # Features
//!
//! Features are additive: none changes the effect of another, so two dependents may choose differently. `link` and
//! `bindgen` place requirements on the build machine; libraries should leave them to the final program.
//!
//! - `loader` (default) finds and loads the driver at run time, with `libloading`. Without it and without `link`, the
//!   crate consists of types, constants and the registry, and has no dependencies.
//! - `link` adds `Library::linked`, for programs that load the driver when they start, like a C program linked with
//!   `-lcuda`. It needs no toolkit, but a linker that links dynamically. It has no effect until `linked` is called.
//! - `bindgen` checks this machine's `cuda.h` against these bindings at build time and, if the header's CUDA version is
//!   newer, adds the new items. New functions change [`Function::COUNT`] and the [indexes](Function::index) of
//!   functions; existing items do not change, including [`CUDA_VERSION`]. The feature needs libclang. Cargo rebuilds
//!   when the header, or a variable that leads to it, changes. Cargo compares file times: after pointing a link such as
//!   `/usr/local/cuda` to another toolkit, run `cargo clean -p cuda-driver-sys`.
//!
//! Not affiliated with NVIDIA. The names and values are the API's; this crate contains no text of `cuda.h`.
#![cfg_attr(docsrs, feature(doc_cfg))]
// Without `loader`, some items that the documentation above links to do not exist.
#![cfg_attr(not(feature = "loader"), allow(rustdoc::broken_intra_doc_links))]
// This crate writes nothing to standard output and standard error, which belong to the program.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

// First, because the other modules use its macro.
#[macro_use]
mod generated;

mod constants;
mod enumeration;
mod function;
#[cfg(any(feature = "loader", feature = "link"))]
pub mod library;
mod locations;
mod numbered;
mod parameters;
#[cfg(any(feature = "loader", feature = "link"))]
mod profiler;
mod result;
mod retired;
mod shape;
mod text;

#[cfg(any(feature = "loader", feature = "link"))]
#[macro_use]
mod calls;

pub use constants::*;
pub use function::{Function, StreamMode};
pub use generated::constants::*;
pub use generated::enumerations::*;
pub use generated::records::*;
#[cfg(any(feature = "loader", feature = "link"))]
pub use library::{DEFAULT, Library, default_library, set_default};
pub use numbered::*;
pub use parameters::Parameter;
#[cfg(any(feature = "loader", feature = "link"))]
pub use profiler::{cuProfilerStart, cuProfilerStop};
pub use retired::*;

/// Exports whose own name means another export in C. Most are from before CUDA 3.2 and have 32-bit device pointers or
/// sizes.
///
/// `legacy::cuMemAlloc` is the export `cuMemAlloc` of CUDA 2.0; the free function [`cuMemAlloc`](fn@crate::cuMemAlloc)
/// is `cuMemAlloc_v2`, as in C. The registry entry of the legacy export is [`legacy::function::cuMemAlloc`].
pub mod legacy {
    pub use crate::function::old as function;
    #[cfg(any(feature = "loader", feature = "link"))]
    pub use crate::old::*;
}

// For the functions below.
#[cfg(any(feature = "loader", feature = "link"))]
#[allow(clippy::wildcard_imports)]
use core::ffi::*;

// Last, so that the documentation of `Library` lists the loader's methods before the driver's functions.
#[cfg(any(feature = "loader", feature = "link"))]
generated! { "functions.rs" }
