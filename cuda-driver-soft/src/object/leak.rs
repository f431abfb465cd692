//! Records the objects that calls make, for the check of leaks.

use std::sync::Arc;

use crate::check;
use crate::object::context::Context;
use crate::state::handle::Table;

/// Records an object of a table. It is a leak until it is destroyed, or until the context that owns it is.
pub(crate) fn note<T: Send + Sync>(
    kind: &'static str,
    table: &'static Table<T>,
    handle: usize,
    context: Option<&Arc<Context>>,
) {
    note_unless_gone(kind, handle, context, move || table.get(handle).is_ok());
}

/// Records an object that is live as long as `exists` returns true and its context, if it has one, is live. The caller
/// must not hold a lock that `exists` takes.
pub(crate) fn note_unless_gone(
    kind: &'static str,
    handle: usize,
    context: Option<&Arc<Context>>,
    exists: impl Fn() -> bool + Send + Sync + 'static,
) {
    if !check::finds_leaks() {
        return;
    }
    // The serial number changes when a primary context is reset and becomes active again.
    let owner = context.map(|context| (Arc::downgrade(context), context.serial()));
    let has_owner = move || match &owner {
        None => true,
        Some((context, serial)) => context.upgrade().is_some_and(|c| c.is_alive() && c.serial() == *serial),
    };
    check::note_object(kind, handle, move || exists() && has_owner());
}

/// Records a primary context that became active. Only the process as a whole can leak it, because its threads share it.
pub(crate) fn note_primary(context: &Arc<Context>) {
    let (of, serial) = (Arc::downgrade(context), context.serial());
    check::note_object_of_process("primary context", context.handle, move || {
        of.upgrade().is_some_and(|c| c.is_alive() && c.serial() == serial)
    });
}
