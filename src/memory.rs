//! Device memory and page-locked host memory.

mod borrowed;
mod device;
mod element;
mod host;
mod pointer;

pub use device::DeviceBuffer;
pub use element::{Download, Upload};
pub use host::HostBuffer;
pub use pointer::DevicePtr;
