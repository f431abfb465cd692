//! The entry point of a child process: performs a task and writes its results to the parent.

use std::io::Write;

use super::open::Open;
use super::task::Task;
use super::{driver, kernel};

/// Performs a task and writes messages for the parent.
pub fn examine(task: &Task, open: Open<'_>, output: &mut dyn Write) {
    match task {
        Task::Driver { places, is_named } => driver::examine(places, *is_named, open, output),
        Task::Kernel { place, ordinal } => kernel::run(place, *ordinal, open, output),
    }
}
