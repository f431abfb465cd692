//! The CUDA Driver API, checked: every call returns a [`Result`] whose error names the function, the reason and the
//! caller's line.
//!
//! There are three levels, which can be mixed freely:
//!
//! - the objects on this page ([`Device`], [`Context`], [`Module`], [`Function`], [`DeviceBuffer`], [`Stream`],
//!   [`Event`]): most of them own a resource of the driver;
//! - [`checked`]: every function of the driver, returning a `Result`;
//! - [`sys`]: every function, type and constant as in C, and the loader that finds the driver at the first call.
//!
//! ```
//! use cuda_driver::{Context, Device, DeviceBuffer, LaunchConfig, Module, Stream};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     # cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software)?.install()?;
//!     # std::env::set_current_dir("tests/kernels/generated")?;
//!     cuda_driver::init()?;
//!     let context = Context::create(Device::first()?)?;
//!     let module = Module::load_ptx(&context, "saxpy.ptx")?;
//!     let saxpy = module.function("saxpy")?;
//!
//!     let stream = Stream::new(&context)?;
//!     let x = DeviceBuffer::from_slice(&context, &[3.0_f32; 1000])?;
//!     let y = DeviceBuffer::from_slice(&context, &[1.0_f32; 1000])?;
//!     let config = LaunchConfig::covering(1000, 256);
//!     // SAFETY: `saxpy` takes a factor, two addresses and a count, and accesses that many values.
//!     unsafe { saxpy.launch(&stream, config, (2.0_f32, x.ptr(), y.ptr(), 1000_usize)) }?;
//!     stream.synchronize()?;
//!     assert_eq!(y.to_vec()?, [7.0; 1000]);
//!     Ok(())
//! }
//! ```
//!
//! # Guide
//!
//! - [From .cu to a launch](guide::from_cu_to_a_launch): how kernels are compiled to PTX and loaded
//! - [Driver or Runtime API](guide::driver_or_runtime): differences, contexts, and both in one process
//! - [Safety](guide::safety): which calls are `unsafe`, and why
//! - [Using it in your CI](guide::ci): tests without a GPU
//! - [Testing kernels without a GPU](guide::testing_kernels): tests of results, of counts, and of the absence of races
//!
//! # Rules
//!
//! - Objects may be dropped in any order and on any thread: each keeps the objects alive that it needs. The exception
//!   is [`Current`], a guard of a thread's current context. Drop ignores errors; call `destroy`, `free` or `unload` to
//!   see them. Drop panics only if code of the program does: an [interposer](sys::library::Interposer), which stands
//!   between the program and the driver, or the drop of a value that the object owns, such as a closure.
//! - An object makes its context current only for the calls that need a current context, and restores the previous one.
//!   Launches do not change the current context.
//! - Host memory that a device may access after a call returns is passed to an `unsafe` call, or owned by a [`Pending`]
//!   until the work is done. Races on device memory are not prevented: order copies and kernels with streams and
//!   events, as in C. They are not undefined behaviour on the host, because any bytes are a valid value of a type that
//!   can be [copied to the host](Download).
//! - A panic in a [host function](Stream::launch_host_fn) resumes in the next `synchronize` of its stream, of an event
//!   recorded after it, or of the context.
//! - All objects use the process's default driver, [`sys::DEFAULT`], which [`sys::set_default`] chooses. Raw calls may
//!   use another loaded driver, a [`sys::Library`]; [`check_in`] turns their codes into errors.
//! - `from_raw` takes ownership of a handle that other code has made, such as C++ or another crate, and `borrow_raw`
//!   uses one without owning it. `as_raw` and `into_raw` return the handle of an object for other code.
//!
//! # Errors
//!
//! An [`Error`] holds a [code](sys::CUresult), the function that returned it, and the caller's line. The documentation
//! of each function lists the codes for its own failures. In addition, nearly every call may return
//!
//! - a [fault](Error::is_fault) of earlier work;
//! - `CUDA_ERROR_NOT_INITIALIZED` before [`init`], and in a process that was forked after it;
//! - an error for a [missing driver](Error::is_no_driver) or a [missing function](Error::is_missing_function).
//!
//! # Features
//!
//! Both features turn on the feature of [`sys`] with the same name; libraries should leave them to the final program.
//! `link` adds [`sys`]`::Library::linked`, for programs that load the driver when they start. `bindgen` checks this
//! machine's `cuda.h` against the bindings and adds newer items. The feature `loader` of [`sys`] is always on.
// This crate writes nothing to standard output and standard error, which belong to the program.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub use bytemuck;
pub use cuda_driver_sys as sys;

pub mod array;
pub mod batch;
mod borrowed;
pub mod checked;
pub mod checkpoint;
mod context;
pub mod copy;
pub mod coredump;
#[cfg(unix)]
mod descriptor;
pub mod device;
mod driver;
pub mod driver_log;
mod error;
mod error_log;
mod event;
pub mod external;
mod function;
pub mod graph;
pub mod graphics;
pub mod green_context;
pub mod guide;
mod host_fn;
pub mod ipc;
pub mod jit;
mod launch;
mod library;
mod linker;
pub mod managed;
mod memory;
pub mod memory_operations;
mod module;
pub mod multicast;
mod path;
mod peer;
mod pending;
mod pointer_attributes;
pub mod pool;
mod primary_context;
mod profiler;
mod receivers;
mod refusal;
mod stream;
pub mod tensor_map;
pub mod texture;
mod transfer;
pub mod vector;
mod version;
pub mod virtual_memory;

pub use array::{Array, MipmappedArray};
pub use borrowed::Borrowed;
pub use context::{Attachment, Context, ContextOptions, Current};
#[doc(inline)]
pub use device::{Device, Uuid};
pub use driver::{init, load, version};
pub use error::{Error, Result, check, check_in};
pub use event::Event;
pub use function::{BlockSize, Function};
#[doc(inline)]
pub use graph::{Graph, GraphExec};
#[doc(inline)]
pub use green_context::GreenContext;
pub use ipc::IpcBuffer;
pub use jit::{JitError, JitOptions};
pub use launch::{
    AccessPolicyWindow, ArgumentError, Dim3, KernelArg, KernelArgs, LaunchAttribute, LaunchConfig, ParamBuffer,
    ParamInfo,
};
pub use library::{Kernel, Library};
pub use linker::{LinkedImage, Linker};
pub use managed::ManagedBuffer;
pub use memory::{DeviceBuffer, DevicePtr, DeviceSlice, DeviceSliceMut, Download, HostBuffer, PitchedBuffer, Upload};
pub use module::{Global, Module};
pub use peer::PeerAccess;
pub use pending::{Pending, QueueError};
pub use pointer_attributes::PointerAttributes;
pub use pool::{MemPool, StreamBuffer};
pub use primary_context::{PrimaryContext, PrimaryState};
pub use profiler::Profiling;
pub use stream::Stream;
pub use tensor_map::TensorMap;
pub use texture::{Surface, Texture};
pub use version::Version;

#[cfg(test)]
mod tests;
