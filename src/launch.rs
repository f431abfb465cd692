//! Launches: configuration, arguments and attributes.

mod arguments;
mod attribute;
mod buffer;
mod check;
mod config;
mod parameter;

pub use arguments::{KernelArg, KernelArgs};
pub(crate) use attribute::described;
pub use attribute::{AccessPolicyWindow, LaunchAttribute};
pub use buffer::ParamBuffer;
pub(crate) use check::{check_launch, compare};
pub use config::{Dim3, LaunchConfig};
pub use parameter::{ArgumentError, ParamInfo};
