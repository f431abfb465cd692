//! The end of an allocation: what the objects know of it is forgotten.

use crate::object::{ipc, managed, memory, pool};
use engine::memory::Allocation;

/// Forgets what was noted of memory that is freed.
pub(crate) fn forget(freed: &Allocation) {
    memory::forget_notes(freed);
    managed::forget(freed);
    pool::forget(freed);
    ipc::forget(freed);
}
