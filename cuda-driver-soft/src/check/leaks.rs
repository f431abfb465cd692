//! Memory that the program has not freed.

use std::sync::{Mutex, MutexGuard, PoisonError};

use engine::check::Finding;
use engine::memory::{Allocation, address_space};

/// Allocations that calls have made.
#[derive(Debug, Default)]
pub(super) struct Made {
    allocations: Vec<Allocation>,
}

impl Made {
    pub(super) fn add(&mut self, allocation: &Allocation) {
        self.allocations.push(*allocation);
    }

    /// Returns a finding for each allocation that is live.
    pub(super) fn findings(&self) -> Vec<Finding> {
        let live = self.allocations.iter().filter(|made| {
            let now = address_space().find(made.base);
            now.is_some_and(|now| now.id == made.id)
        });
        live.filter_map(|leaked| Finding::leak(leaked.base)).collect()
    }
}

/// Returns the allocations of the process.
pub(super) fn of_process() -> MutexGuard<'static, Made> {
    static MADE: Mutex<Made> = Mutex::new(Made {
        allocations: Vec::new(),
    });
    MADE.lock().unwrap_or_else(PoisonError::into_inner)
}
