//! Running kernels: a PTX interpreter that runs the 32 lanes of a warp in lockstep.
//!
//! A [`Program`] is a module with its variables in device memory; [`Program::kernel`] finds a [`Kernel`] in it; a
//! [`Launch`] of it starts an [`Execution`], which any number of host threads drive together by calling
//! [`Execution::work`]. Kernels are decoded twice: for any lanes, and for warps all of whose lanes go the same way, which
//! compute indexes and addresses once for the warp (`decode::converged`). What goes wrong inside is a [`Fault`]; it never
//! reaches the host process as a signal or panic.

mod block;
mod builtins;
mod cluster;
mod code;
mod decode;
mod execution;
mod fault;
mod frame;
mod held;
mod isa;
mod kernel;

mod machine;
mod ops;
mod program;
mod registers;
mod rounding;
mod run;
pub mod semantics;
pub(crate) mod stack;
pub mod tensor_map;
#[cfg(test)]
mod tests;
pub mod texture;
mod warp;

mod worker;
mod workspace;

pub use execution::{Execution, Launch, Options, Progress};
pub use fault::{Fault, FaultKind};
pub use isa::Isa;
pub use kernel::Kernel;
pub use program::{LoadError, Program};
pub use workspace::GridWorkspace;
