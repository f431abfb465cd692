//! Removes the data that the modules of `object` keep about freed memory.

use crate::object::{foreign_use, managed, mappings, memory, pool};
use engine::memory::Allocation;

/// Removes the records about freed memory, subtracts its bytes from the counts of its pool, and releases the reserved
/// addresses of a mapping.
pub(crate) fn forget(freed: &Allocation) {
    memory::forget_notes(freed);
    managed::forget(freed);
    pool::forget(freed);
    mappings::forget(freed);
    foreign_use::forget(freed);
}
