//! Runs the blocks of a launch.

mod block;
pub(crate) mod cluster;
pub(crate) mod execution;
mod rounding;
mod worker;
