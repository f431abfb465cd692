//! The CUDA Driver API, checked: every call returns a [`Result`] whose error says which function failed, where and why.
//!
//! Three levels, each usable alone and together with the others:
//!
//! - the objects of this page ([`Device`], [`Context`], [`Module`], [`Function`], [`DeviceBuffer`], [`Stream`],
//!   [`Event`]): owners of what the driver manages;
//! - [`checked`]: every function of the driver as one that returns a `Result`;
//! - [`sys`]: every function, type and constant as in C, and the loader that finds the driver when it is first called.
//!
//! ```no_run
//! use cuda_driver::{Context, Device, DeviceBuffer, LaunchConfig, Module, Stream};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     cuda_driver::init()?;
//!     let context = Context::create(Device::first()?)?;
//!     let module = Module::load_ptx(&context, "scale.ptx")?;
//!     let scale = module.function("scale")?;
//!
//!     let stream = Stream::new(&context)?;
//!     let mut values = DeviceBuffer::from_slice(&context, &[1.0f32; 1000])?;
//!     let config = LaunchConfig { grid: 4.into(), block: 256.into(), ..LaunchConfig::default() };
//!     // SAFETY: `scale` takes an address, a count and a factor, and touches only as many values.
//!     unsafe { scale.launch(&stream, config, (values.ptr(), 1000u32, 2.0f32)) }?;
//!     stream.synchronize()?;
//!     assert_eq!(values.to_vec()?, [2.0; 1000]);
//!     Ok(())
//! }
//! ```
//!
//! # Rules
//!
//! - Objects may be dropped in any order and on any thread: each keeps alive what it needs. Dropping never panics
//!   (but an interposer that does, in the call that it sees), and cannot report a failure; where that matters, `destroy` and
//!   its like can.
//! - Which context is current is the driver's business. An object makes its context current for those calls that need
//!   one, and only for them; a launch asks nothing.
//! - What the host must not touch while a device uses it is behind `unsafe`, or owned until an event gives it back. What
//!   only the device sees is not guarded: a copy to a buffer while a kernel works on it leaves one or the other there, as in
//!   C, and streams and events are how to say which. No bytes are wrong for a [`DeviceCopy`] type.
//! - A panic in a [host function](Stream::launch_host_fn) comes out of the next call that waits for it.
//! - One driver serves all of it: the process's default library, [`sys::DEFAULT`], which [`sys::set_default`] chooses. Raw
//!   calls go through any number of others, and [`check_in`] makes errors of their codes.
//! - Handles of other libraries are taken over with `from_raw` and used without owning with `borrow_raw`; `as_raw` and
//!   `into_raw` go the other way.
//!
//! # Errors
//!
//! An [`Error`] is a code, the function that answered it, and the line that called. Where a function's documentation gives a
//! number, it is the code of that [`CUresult`](sys::CUresult):
//!
//! | | |
//! | --- | --- |
//! | 1 | `CUDA_ERROR_INVALID_VALUE` |
//! | 2 | `CUDA_ERROR_OUT_OF_MEMORY` |
//! | 3 | `CUDA_ERROR_NOT_INITIALIZED` |
//! | 100 | `CUDA_ERROR_NO_DEVICE` |
//! | 101 | `CUDA_ERROR_INVALID_DEVICE` |
//! | 200 | `CUDA_ERROR_INVALID_IMAGE` |
//! | 201 | `CUDA_ERROR_INVALID_CONTEXT` |
//! | 209 | `CUDA_ERROR_NO_BINARY_FOR_GPU` |
//! | 215 | `CUDA_ERROR_UNSUPPORTED_LIMIT` |
//! | 218 | `CUDA_ERROR_INVALID_PTX` |
//! | 222 | `CUDA_ERROR_UNSUPPORTED_PTX_VERSION` |
//! | 301 | `CUDA_ERROR_FILE_NOT_FOUND` |
//! | 400 | `CUDA_ERROR_INVALID_HANDLE` |
//! | 500 | `CUDA_ERROR_NOT_FOUND` |
//! | 600 | `CUDA_ERROR_NOT_READY` |
//! | 701 | `CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES` |
//! | 720 | `CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE` |
//! | 800 | `CUDA_ERROR_NOT_PERMITTED` |
//! | 900 | `CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED` |
//! | 905 | `CUDA_ERROR_STREAM_CAPTURE_ISOLATION` |
//!
//! What is said is what a call finds out itself. Besides, nearly every call answers a [fault](Error::is_fault) of earlier
//! work, 3 in a process that was forked from one which used the driver, and what [`Error::is_no_driver`] and
//! [`Error::is_missing_function`] tell.
//!
//! # Features
//!
//! Both are [`sys`]'s, and for programs to choose: `link` adds [`sys`]`::Library::linked`, for programs that are to start
//! with the driver; `bindgen` checks this machine's `cuda.h` against the bindings and adds what is newer. `loader`, which
//! finds the driver at run time, is always on: objects need a library behind them.

pub use cuda_driver_sys as sys;

mod borrowed;
pub mod checked;
mod context;
mod device;
mod driver;
mod error;
mod error_table;
mod event;
mod function;
mod host_fn;
mod launch;
mod memory;
mod module;
mod pending;
mod primary_context;
mod refusal;
mod stream;
pub mod vector;
mod version;

pub use borrowed::Borrowed;
pub use context::{Attachment, Context, Current};
pub use device::{Device, Uuid};
pub use driver::{init, load, version};
pub use error::{Error, Result, check, check_in};
pub use event::Event;
pub use function::Function;
pub use launch::{
    ArgumentError, Dim3, KernelArg, KernelArgs, LaunchConfig, ParamBuffer, ParamInfo,
};
pub use memory::{DeviceBuffer, DeviceCopy, DevicePtr, HostBuffer};
pub use module::{Global, JitError, JitOptions, Module};
pub use pending::{Pending, QueueError};
pub use primary_context::PrimaryContext;
pub use stream::Stream;
pub use version::Version;

#[cfg(test)]
mod tests;
