//! Runs the blocks of a launch on host threads.
//!
//! An `Execution` is driven by any number of host threads. Each makes a `worker`, which takes clusters from the `queue`
//! and runs them; a `cluster` runs its blocks in turn, a `block` its warps.

mod block;
pub(crate) mod cluster;
pub(crate) mod execution;
pub(crate) mod queue;
mod rounding;
mod shape;
mod started;
mod upper_halves;
mod worker;
