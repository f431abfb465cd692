//! Device memory and page-locked host memory.

mod device;
mod element;
mod host;
mod pitched;
mod pointer;
mod slice;
mod slice_mut;
mod values;

pub use device::DeviceBuffer;
pub use element::{Download, Upload};
pub use host::HostBuffer;
pub use pitched::PitchedBuffer;
pub use pointer::DevicePtr;
pub use slice::DeviceSlice;
pub use slice_mut::DeviceSliceMut;
pub(crate) use values::{device_values, device_views};
