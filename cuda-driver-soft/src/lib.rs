//! A CUDA driver in software: the C ABI of libcuda, running PTX on the CPU.

mod abi;
mod driver;
pub mod exec;
mod image;
pub mod ir;
mod log;
pub mod memory;
pub mod ptx;
mod selection;
mod settings;

pub use abi::{REAL as IMPLEMENTED, resolve};
#[doc(hidden)]
pub use abi::{Stubs, Table, set_exports};
pub(crate) use log::log;
pub use selection::{AlreadyInstalled, Prefer, Selection, SelectionError, from_env, library};

use std::ffi::CStr;

/// The symbol by which a software driver is known: `libcuda.so.1` of this project exports it, and [`resolve`] finds it.
pub const MARKER: &CStr = c"cuda_driver_soft_marker";

/// What the marker symbol points to: the version of the interface between the copies of this driver in a process.
#[doc(hidden)]
pub static MARKER_VALUE: u32 = 1;

/// Whether this crate was compiled with optimisation.
pub(crate) fn built_with_optimisation() -> bool {
    // Set by the build script from the profile's opt-level.
    option_env!("CUDA_DRIVER_SOFT_OPT_LEVEL").is_none_or(|level| level != "0")
}
