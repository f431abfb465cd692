//! The parts of `cuda-doctor`, which explains why CUDA does or does not work on a machine: [`gather`] observes the
//! machine, [`diagnose`] draws conclusions from the observations alone, and [`text`] and [`json`] write the report.
//!
#![doc = include_str!("rooms.md")]

pub mod attributes;
mod call_failure;
pub mod diagnosis;
pub mod findings;
mod gather;
mod library_version;
mod probe;
mod render;

pub use diagnosis::diagnose;
pub use gather::{Surroundings, gather};
pub use probe::{Open, Place, Prober, Task, examine, open};
pub use render::{json, text};
