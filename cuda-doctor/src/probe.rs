//! Examines the driver in child processes, so that a crash or a hang of the driver is an observation.

mod child;
mod driver;
mod kernel;
mod open;
mod prober;
mod progress;
mod task;

pub use child::examine;
pub(crate) use driver::loading;
pub use open::{Open, open};
pub use prober::Prober;
pub use task::{Place, Task};
