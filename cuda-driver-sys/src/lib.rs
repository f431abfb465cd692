//! Raw bindings to the CUDA Driver API, found and loaded at run time.
//!
//! Every type, constant and exported function of CUDA 13.5's `cuda.h`. Building needs no CUDA toolkit, no libclang and
//! no GPU; `libcuda.so.1` or `nvcuda.dll` is found when a function is first called, and each function is looked up
//! when it is first used. One build serves all drivers from CUDA 11.7 on: what a driver lacks is an answer, not a
//! failure to start.
//!
//! ```no_run
//! # #[cfg(feature = "loader")] {
//! use cuda_driver_sys::{CUresult, DEFAULT, cuDeviceGetCount, cuInit};
//!
//! let mut count = 0;
//! // SAFETY: the pointer is to an integer.
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
//! - **Names.** [`cuMemAlloc_v2`] is the export of that name. [`cuMemAlloc`] is what a C program gets by that name
//!   from a CUDA 12 header, or for later functions the first variant. Exports whose own name means another one in C
//!   are in [`legacy`].
//! - **Structs and unions without a name** in C are called after the member that they are the type of,
//!   [`CUDA_RESOURCE_DESC_st__res`]. What C reaches through a member without a name is set by a method and read by another:
//!   [`location.with_id(0)`](CUmemLocation::with_id), [`location.id()`](CUmemLocation::id).
//! - **Free functions** call [`DEFAULT`]; [`set_default`] says where it comes from. Any number of other libraries can
//!   be made with [`Library`].
//! - **C enumerations** are newtypes: a value that these bindings do not know is data like any other.
//! - **[`Function`]** is the registry: every export with its base name, version, parameters and default-stream mode.
//!
//! # Errors
//!
//! Every call returns a [`CUresult`], as in C. Two codes may be this crate's: 303
//! ([`CUDA_ERROR_SHARED_OBJECT_INIT_FAILED`](CUresult::CUDA_ERROR_SHARED_OBJECT_INIT_FAILED)) where no driver was found,
//! and [`Library::load_error`] says where it was looked for; 302
//! ([`CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND`](CUresult::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND)) where the driver
//! lacks the function, and [`Library::missing`] says which CUDA version has it. [`Library::supports`] tells beforehand.
//! Nothing of this crate panics (a resolver's or an interposer's panic goes on through the call), and no function is
//! called through a type that is not its own: for targets that are not of 64 bits, whose device pointers are others, no
//! driver is loaded.
//!
//! # Safety
//!
//! All calls are `unsafe`, on C's terms: pointers must be to what the manual asks for, handles must be live, and what
//! the device works on must stay until it is done. NULL where the manual forbids it may crash the process. The crate
//! answers for the types of the functions. A record's `Default` is zeros: what a program passes in fields that it does not
//! know, and not always something that the function takes.
//!
//! # Which driver
//!
//! [`Source::search`](library::Source::search) lists where the system's driver is looked for; the environment variable
//! `CUDA_DRIVER_LIBRARY` names another file. [`Options`](library::Options) choose per-thread default streams, and
//! put an [`Interposer`](library::Interposer) between the program and the driver: one that counts, watches, hides
//! functions or makes calls fail. The crate `cuda-driver-hooks` has these ready-made.
//!
//! # Features
//!
//! Any two dependents may choose any of them: each adds, and none changes what the others do. `link` and `bindgen` ask
//! something of the machine that builds, so they are for programs to choose; a library leaves them to its users.
//!
//! - `loader` (default) finds and loads the driver at run time, by `libloading`. Without it and without `link` the crate
//!   is types, constants and registry, and has no dependency.
//! - `link` adds `Library::linked`, for programs that are to start with the driver, as a C program does that is linked
//!   with `-lcuda`. It needs no toolkit, but a linker that links dynamically, and changes nothing until `linked` is asked
//!   for.
//! - `bindgen` checks this machine's `cuda.h` against these bindings while building, and adds what is newer if the header's
//!   CUDA version is above theirs: functions too, so that [`Function::COUNT`] and a function's [`index`](Function::index)
//!   depend on the header. What these bindings know keeps its form: [`CUDA_VERSION`] stays theirs with a newer header, and a
//!   union or structure of theirs has the members that it has here. It needs libclang. It is built again when the header or
//!   a variable that leads to it changes; cargo goes by times, so where a link such as `/usr/local/cuda` is set to another
//!   toolkit, `cargo clean -p cuda-driver-sys` is what makes that count.
//!
//! Not affiliated with NVIDIA. The names and values are the API's; no text of `cuda.h` is part of this crate.
#![cfg_attr(docsrs, feature(doc_cfg))]
// Without it there is nothing behind some names that the text above speaks of.
#![cfg_attr(not(feature = "loader"), allow(rustdoc::broken_intra_doc_links))]

// First: the others use its macro.
#[macro_use]
mod generated;

#[cfg(any(feature = "loader", feature = "link"))]
mod calls;
mod constants;
mod enumeration;
mod function;
#[cfg(any(feature = "loader", feature = "link"))]
pub mod library;
mod locations;
mod parameters;
mod retired;
mod shape;
mod text;

#[cfg(any(feature = "loader", feature = "link"))]
pub use calls::free::*;
pub use constants::*;
pub use function::{Function, StreamMode};
pub use generated::constants::*;
pub use generated::enumerations::*;
pub use generated::records::*;
#[cfg(any(feature = "loader", feature = "link"))]
pub use library::{DEFAULT, Library, default_library, set_default};
pub use parameters::Parameter;
pub use retired::*;

/// Exports whose own name means another export in C: mostly the 32-bit era's, which take device pointers of 32 bits.
///
/// `legacy::cuMemAlloc` is the export `cuMemAlloc` of CUDA 2.0; the free function [`cuMemAlloc`](fn@crate::cuMemAlloc)
/// is `cuMemAlloc_v2`, as in C. As data it is [`legacy::function::cuMemAlloc`].
pub mod legacy {
    #[cfg(any(feature = "loader", feature = "link"))]
    pub use crate::calls::old::*;
    pub use crate::function::old as function;
}
