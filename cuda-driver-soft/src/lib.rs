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
//! | environment variable | value | default |
//! | --- | --- | --- |
//! | `CUDA_DRIVER` | the driver that [`from_env`] chooses: `software`, `system` or a path | its argument |
//! | `CUDA_SOFT_LOG` | any value but `0`: log on standard error why calls fail, and which functions are not supported | off |
//! | `CUDA_SOFT_DEVICES` | a number of devices, or their architectures: `sm_90,sm_80` | one of sm_90 |
//! | `CUDA_SOFT_VERSION` | the CUDA version to report: `12.4` or `12040` | the version of the bindings |
//! | `CUDA_SOFT_MEMORY` | memory of each device, in bytes | an equal share of the memory that the process can have |
//! | `CUDA_SOFT_THREADS` | number of threads that run kernels and check long PTX texts; at most 1024 | number of processors |
//! | `CUDA_SOFT_PARALLEL` | `1`: run the blocks of a kernel on several threads even if they see one another's atomics; results may then differ from run to run | such blocks run on one thread |
//! | `CUDA_SOFT_SLACK` | bytes past the end of an allocation, and of shared and local memory, that kernels may access; at most 65536 | 0 |
//! | `CUDA_SOFT_ENGINE` | `auto`: compile kernels to machine code once they have run often, where that makes them faster; `compiled`: compile all kernels where possible; `interpreter`: compile none | `auto` |
//! | `CUDA_SOFT_ISA` | `baseline`: interpret all kernels, without AVX2, FMA and other extensions of this CPU | AVX2, FMA and others if the CPU has all of them |
//! | `CUDA_SOFT_TRACE` | file to append a trace to, in the Trace Event Format: see [`trace()`] | no trace |
//! | `CUDA_SOFT_PROFILE` | count the work of kernels: `1` for a table on standard error when the program exits, or a file to write the profile to; `0`: off; see [`profile()`] | off |
//! | `CUDA_SOFT_SUMMARY` | `1`: print a summary of calls, kernels and copies when the program exits | off |
//! | `CUDA_SOFT_STOP_AT` | `FILE:LINE[,block=X.Y.Z][,thread=X.Y.Z]`: report threads that are about to run the line | none |
//! | `CUDA_SOFT_PROGRESS` | `0`: do not show the progress of long kernels | shown if standard error is a terminal |
//! | `CUDA_SOFT_REGISTERS` | `1`: log the registers of the thread that raised a fault; kernels run slower | off |
//! | `CUDA_SOFT_CHECK` | checks of kernels, such as `memory,init,race,sync,leaks` or `all`: see [`check()`] | none |
//! | `CUDA_SOFT_CHECK_REPORT` | file to which a line of JSON is appended for each finding of these checks | none |
//! | `CUDA_VISIBLE_DEVICES` | numbers of the devices to show, up to the first that is no device: `1,0`; no UUIDs | all |
//!
//! # Structure
//!
//! | crate | purpose |
//! | --- | --- |
//! | `cuda-driver-soft` | the driver, in the modules below |
//! | [`engine`] | device memory, and the execution of kernels |
//! | [`image`] | fat binaries, cubins and linked images |
//! | [`ptx`] | PTX text to a typed intermediate representation |
//! | [`host`] | the operating system: environment variables, standard streams, the log, the memory that the process can have |
//!
//! A module uses modules below it in this table, and never one above it:
//!
#![doc = include_str!("rooms.md")]
//!
//! The engine is slow without optimisation: set `opt-level = 3` in `[profile.dev.package.cuda-driver-soft-engine]` of
//! the workspace that uses this crate.
// All output goes through `host::console`.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod abi;
mod call;
mod check;
mod graph;
mod json;
mod marker;
mod object;
mod observation;
mod operation;
mod profile;
mod queue;
mod selection;
mod state;
mod stop;
mod trace;

pub use abi::{IMPLEMENTED, resolve};
#[doc(hidden)]
pub use abi::{Stubs, Table, note_newer, set_exports};
pub use check::{AlreadyChecking, Checking, check};
pub use engine::check::{AllocationPlace, Checks, Finding, Place, UnknownCheck};
pub use engine::count::{Counters, InstructionProfile, LaunchProfile, SourceLocation};
pub use marker::MARKER;
#[doc(hidden)]
pub use marker::Marker;
pub use operation::HostAccesses;
pub use profile::{KernelReport, LineReport, Profile, Report, profile};
pub use selection::{AlreadyInstalled, Prefer, Selection, SelectionError, from_env, library};
pub use trace::{CallTotal, CopyTotal, KernelTotal, NotSupported, Summary, Trace, trace};
