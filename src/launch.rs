//! Launches: grid, block and arguments.

mod arguments;
mod buffer;
mod check;
mod config;
mod parameter;

pub use arguments::{KernelArg, KernelArgs};
pub use buffer::ParamBuffer;
pub(crate) use check::{check_launch, compare};
pub use config::{Dim3, LaunchConfig};
pub use parameter::{ArgumentError, ParamInfo};
