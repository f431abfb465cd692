//! A CUDA driver in software: the C ABI of libcuda, running PTX on the CPU.

mod abi;
mod driver;
pub mod exec;
mod image;
pub mod ir;
mod log;
mod marker;
pub mod memory;
pub mod ptx;
mod selection;
mod settings;

pub use abi::{REAL as IMPLEMENTED, resolve};
#[doc(hidden)]
pub use abi::{Stubs, Table, set_exports};
pub(crate) use log::log;
pub use marker::MARKER;
#[doc(hidden)]
pub use marker::Marker;
pub use selection::{AlreadyInstalled, Prefer, Selection, SelectionError, from_env, library};

/// Whether this crate was compiled with optimisation.
pub(crate) fn built_with_optimisation() -> bool {
    // Set by the build script from the profile's opt-level.
    option_env!("CUDA_DRIVER_SOFT_OPT_LEVEL").is_none_or(|level| level != "0")
}
