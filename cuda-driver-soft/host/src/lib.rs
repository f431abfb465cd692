//! The host of the software driver: everything that the driver asks of the operating system, outside of device memory.
//!
//! | module | purpose |
//! | --- | --- |
//! | [`environment`] | all environment variables that the driver reads |
//! | [`console`] | writes to standard output and standard error without Rust's locks |
//! | [`log!`] | the driver's log |
//! | [`memory()`] | the amount of memory that the process can have |
//! | [`mapping()`] | the access that the process has to a range of addresses |

// `unsafe` is needed to write to a file descriptor that is not ours to close (`console`), and to call getrlimit
// (`memory`) and the functions of kernel32 (`memory`, `mapping`).

pub mod console;
pub mod environment;
mod log;
mod mapping;
mod memory;

pub use mapping::{Mapping, mapping};
pub use memory::memory;
