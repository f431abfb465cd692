//! Running kernels: a PTX interpreter that runs the 32 lanes of a warp in lockstep.
//!
//! A [`Program`] is a module with its variables in device memory; [`Program::kernel`] finds a [`Kernel`] in it; a
//! [`Launch`] of it starts an [`Execution`], which any number of host threads drive together by calling
//! [`Execution::work`]. What goes wrong inside is a [`Fault`]; it never reaches the host process as a signal or panic.

mod execution;
mod fault;
mod kernel;
mod program;
pub mod semantics;
mod window;

pub use execution::{Execution, Launch, Options, Progress};
pub use fault::{Fault, FaultKind};
pub use kernel::Kernel;
pub use program::{LoadError, Program};
