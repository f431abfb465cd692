//! Device memory, and the execution of kernels on the CPU.
//!
//! A [`Program`] is a PTX module with its variables in device memory; [`Program::kernel`] returns one of its kernels. A
//! [`Launch`] of a kernel starts an [`Execution`], which any number of host threads drive together by calling
//! [`Execution::work`]. An error raised by the kernel is a [`Fault`]; it never reaches the host process as a signal or
//! panic.
//!
//! Kernels are interpreted: each instruction runs for the 32 lanes of a warp at once. With [`Engine::Compiled`] or
//! [`Engine::Auto`], warps whose lanes are all active can run machine code instead, in groups of neighbouring lanes, if
//! the CPU is an x86-64 with AVX2.
//!
//! The interpreter is slow without optimisation: set `opt-level = 3` in `[profile.dev.package.cuda-driver-soft-engine]`
//! of the workspace that uses this crate.
//!
//! Unsafe code is in `memory`, `code` (registers, handlers and their observation), `ops`, and in a few places of
//! `lanes`, `warp` and `grid`: handlers run some 10^9 times a second, and checked accesses would double their cost. The
//! other modules have none.
#![doc = include_str!("rooms.md")]
// All output goes through `host::console`.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod check;
mod code;
mod compile;
pub mod conditional;
pub mod count;
mod decode;
mod fault;
mod grid;
pub mod id_map;
mod lanes;
mod launch;
pub mod memory;
mod memory_budget;
mod observe;
mod ops;
mod plan;
mod program;
// Not a part of the API. The example `referee` and the test `recorded`, which are separate crates, compare these
// functions with a GPU's results. There are too many functions to wrap each of them for the tests.
#[doc(hidden)]
pub mod semantics;
pub mod stop;
pub mod tensor_map;
#[cfg(test)]
mod tests;
pub mod texture;
mod warp;
mod window;

pub use code::isa::Isa;
pub use fault::{Fault, FaultKind, LaneGroup, LaneState, Position, Report, SourceLine};
pub use grid::execution::{Execution, Progress};
pub use launch::workspace::GridWorkspace;
pub use launch::{Engine, Launch, Options};
pub use observe::Observers;
pub use program::Program;
pub use program::history::Counts;
pub use program::kernel::Kernel;
pub use program::loaded::LoadError;
pub use program::resources::Resources;

/// Returns true if this crate was compiled with optimisation.
pub fn built_with_optimisation() -> bool {
    // The build script sets the variable from the profile's opt-level.
    option_env!("CUDA_DRIVER_SOFT_OPT_LEVEL").is_none_or(|level| level != "0")
}
