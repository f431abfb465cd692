//! Device memory and page-locked host memory.

mod borrowed;
mod copy;
mod device;
mod host;
mod pointer;

pub use copy::DeviceCopy;
pub use device::DeviceBuffer;
pub use host::HostBuffer;
pub use pointer::DevicePtr;
