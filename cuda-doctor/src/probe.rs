//! Examines the driver in child processes, so that a crash or a hang of the driver is an observation.

mod child;
mod driver;
mod kernel;
mod prober;
mod progress;
mod task;

pub use child::{Open, examine, open};
pub use prober::Prober;
pub use task::{Place, Task};
