//! The libraries whose resolvers and interposers are running on this thread.

use core::cell::Cell;
use core::ptr;
use std::thread::LocalKey;

use super::slots::Library;

/// One entry of a thread's list of libraries. It lives on the stack, in the frame of [`with`].
pub(crate) struct Frame {
    library: *const Library,
    outer: *const Frame,
}

/// A thread's list of libraries, innermost first.
pub(crate) type Nested = LocalKey<Cell<*const Frame>>;

thread_local! {
    /// The libraries whose resolver is running.
    pub(crate) static RESOLVING: Cell<*const Frame> = const { Cell::new(ptr::null()) };
    /// The libraries whose interposer is running.
    pub(crate) static INTERPOSING: Cell<*const Frame> = const { Cell::new(ptr::null()) };
}

/// Restores the list when dropped, even after a panic.
struct Restore(&'static Nested, *const Frame);

impl Drop for Restore {
    fn drop(&mut self) {
        self.0.set(self.1);
    }
}

/// Runs `work` with a library on the list.
pub(crate) fn with<R>(list: &'static Nested, library: &Library, work: impl FnOnce() -> R) -> R {
    let frame = Frame {
        library,
        outer: list.get(),
    };
    let _restore = Restore(list, list.replace(&raw const frame));
    work()
}

/// Runs `work` with an empty list.
pub(crate) fn without<R>(list: &'static Nested, work: impl FnOnce() -> R) -> R {
    let _restore = Restore(list, list.replace(ptr::null()));
    work()
}

/// Returns true if a library is on the list.
pub(crate) fn holds(list: &'static Nested, library: &Library) -> bool {
    let mut frame = list.get();
    loop {
        // SAFETY: every entry is in a stack frame of this thread that is still active, because `with` removes its entry
        // before it returns.
        let Some(one) = (unsafe { frame.as_ref() }) else {
            return false;
        };
        if ptr::eq(one.library, library) {
            return true;
        }
        frame = one.outer;
    }
}
