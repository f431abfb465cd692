//! Removes the records that objects keep about freed memory.

use crate::object::{external_mapping, foreign_use, ipc, managed, memory, pool};
use engine::memory::Allocation;

/// Removes all records about freed memory.
pub(crate) fn forget(freed: &Allocation) {
    memory::forget_notes(freed);
    managed::forget(freed);
    pool::forget(freed);
    ipc::forget(freed);
    external_mapping::forget(freed);
    foreign_use::forget(freed);
}
