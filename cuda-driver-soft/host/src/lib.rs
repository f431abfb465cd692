//! The host of the software driver: environment variables, standard streams, the log, memory for machine code, and
//! facts about the memory of the process.
//!
//! | module | purpose |
//! | --- | --- |
//! | [`environment`] | all environment variables that the driver reads |
//! | [`console`] | writes to standard output and standard error without Rust's locks |
//! | [`log!`] | the driver's log |
//! | [`messages`] | the messages of the log that programs can read |
//! | [`memory()`] | the amount of memory that the process can have |
//! | [`executable`] | executable memory for machine code |
//! | [`mapping()`] | read and write access of the process to a range of addresses |
//!
//! # Structure
//!
//! A module uses modules below it in this table, and never one above it:
//!
#![doc = include_str!("rooms.md")]
#![deny(unsafe_code)]
// All output goes through `console`.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

// Writes to file descriptors that it must not close.
#[allow(unsafe_code)]
pub mod console;
pub mod environment;
// Maps memory and makes it executable.
#[allow(unsafe_code)]
pub mod executable;
mod log;
// Calls VirtualQuery on Windows.
#[allow(unsafe_code)]
mod mapping;
// Calls getrlimit on Linux and GlobalMemoryStatusEx on Windows.
#[allow(unsafe_code)]
mod memory;
pub mod messages;

pub use log::{observe, write_detail, write_log, write_log_of_work, write_result};
pub use mapping::{Mapping, mapping};
pub use memory::memory;
