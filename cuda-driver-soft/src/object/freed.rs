//! Removes the records that objects keep about freed memory.

use crate::object::{foreign_use, managed, mappings, memory, pool};
use engine::memory::Allocation;

/// Removes all records about freed memory.
pub(crate) fn forget(freed: &Allocation) {
    memory::forget_notes(freed);
    managed::forget(freed);
    pool::forget(freed);
    mappings::forget(freed);
    foreign_use::forget(freed);
}
