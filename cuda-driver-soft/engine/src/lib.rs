//! Device memory, and the execution of kernels on the CPU.
//!
//! | module | |
//! | --- | --- |
//! | [`memory`] | one address space for all devices and contexts of the process |
//! | `exec` | a PTX interpreter that runs the 32 lanes of a warp in lockstep |
//!
//! A [`Program`] is a module with its variables in device memory; [`Program::kernel`] finds a [`Kernel`] in it; a
//! [`Launch`] of it starts an [`Execution`], which any number of host threads drive together by calling
//! [`Execution::work`]. An error of a kernel is a [`Fault`]; it never reaches the host process as a signal or panic.
//!
//! The interpreter is slow without optimisation: a workspace that uses this crate wants
//! `[profile.dev.package.cuda-driver-soft-engine]` with `opt-level = 3`.

mod code;
mod decode;
mod fault;
mod grid;
mod lanes;
mod launch;
pub mod memory;
mod memory_budget;
mod ops;
mod program;
pub mod semantics;
pub mod tensor_map;
#[cfg(test)]
mod tests;
pub mod texture;
mod warp;
mod window;

pub use code::isa::Isa;
pub use fault::{Fault, FaultKind};
pub use grid::execution::{Execution, Launch, Options, Progress};
pub use launch::workspace::GridWorkspace;
pub use program::kernel::Kernel;
pub use program::{LoadError, Program};

/// Returns true if this crate was compiled with optimisation.
pub fn built_with_optimisation() -> bool {
    // The build script sets the variable from the profile's opt-level.
    option_env!("CUDA_DRIVER_SOFT_OPT_LEVEL").is_none_or(|level| level != "0")
}
