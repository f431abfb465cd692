//! A CUDA driver in software: the C ABI of libcuda, running PTX on the CPU.
//!
//! Programs and tests run with real kernels and real results where there is no GPU:
//!
//! ```
//! // The driver that `CUDA_DRIVER` names, else this one.
//! let driver = cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software)?;
//! driver.install()?; // the functions of `cuda-driver` and `cuda-driver-sys` now call it
//! println!("{driver}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | environment variable | |
//! | --- | --- |
//! | `CUDA_DRIVER` | `software`, `system` or a path: what [`from_env`] chooses |
//! | `CUDA_SOFT_LOG` | `1`: say on standard error why calls fail, and which functions are not supported |
//! | `CUDA_SOFT_DEVICES` | a number of devices, or their architectures: `sm_90,sm_80`; one of sm_90 if not set |
//! | `CUDA_SOFT_VERSION` | the CUDA version to report, `12.4` or `12040`; that of the bindings if not set |
//! | `CUDA_SOFT_MEMORY` | memory of each device in bytes; its share of that of the machine if not set |
//! | `CUDA_SOFT_THREADS` | threads that run kernels at once; the number of processors if not set |
//! | `CUDA_SOFT_PARALLEL` | `1`: run blocks that see one another's atomics on several threads; results may then differ from run to run |
//! | `CUDA_SOFT_SLACK` | bytes past the end of an allocation that kernels may touch; 0 if not set |
//! | `CUDA_VISIBLE_DEVICES` | as with any driver |
//!
//! The rooms of the crate, doors one way: `abi` (the C functions) → `driver` (contexts, streams, modules …) → [`exec`] (runs
//! kernels) → [`ir`] ← [`ptx`] (reads PTX); [`memory`] is under `exec` and `driver`.
//! The interpreter is slow without optimisation; a workspace that uses this crate wants
//! `[profile.dev.package.cuda-driver-soft]` with `opt-level = 3`.

mod abi;
mod console;
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
mod system;

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
