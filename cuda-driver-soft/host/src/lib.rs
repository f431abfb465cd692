//! The host of the software driver: its environment variables, standard streams, memory and mappings.
//!
//! Everything that the driver asks of the operating system, outside of device memory, is here.

pub mod console;
pub mod environment;
mod log;
mod system;

pub use system::{Mapping, mapping, memory};
