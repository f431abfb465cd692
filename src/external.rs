//! Memory and semaphores imported from other APIs, such as Vulkan and Direct3D.

mod memory;
mod semaphore;

pub use memory::{ExternalBuffer, ExternalMemory};
pub use semaphore::ExternalSemaphore;
