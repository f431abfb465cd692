//! Which libraries' resolvers and interposers run on this thread right now.

use core::cell::Cell;
use core::ptr;
use std::thread::LocalKey;

use super::slots::Library;

/// One library on a thread's list; lives in the frame of the call that put it there.
pub(crate) struct Frame {
    library: *const Library,
    outer: *const Frame,
}

/// A thread's list of libraries, the innermost first.
pub(crate) type Nested = LocalKey<Cell<*const Frame>>;

thread_local! {
    /// The libraries whose resolver runs.
    pub(crate) static RESOLVING: Cell<*const Frame> = const { Cell::new(ptr::null()) };
    /// The libraries whose interposer runs.
    pub(crate) static INTERPOSING: Cell<*const Frame> = const { Cell::new(ptr::null()) };
}

/// Puts the list back as it was, even if the work panics.
struct Restore(&'static Nested, *const Frame);

impl Drop for Restore {
    fn drop(&mut self) {
        self.0.set(self.1);
    }
}

/// Does the work with a library on the list.
pub(crate) fn with<R>(list: &'static Nested, library: &Library, work: impl FnOnce() -> R) -> R {
    let frame = Frame {
        library,
        outer: list.get(),
    };
    let _restore = Restore(list, list.replace(&raw const frame));
    work()
}

/// Does the work with an empty list.
pub(crate) fn without<R>(list: &'static Nested, work: impl FnOnce() -> R) -> R {
    let _restore = Restore(list, list.replace(ptr::null()));
    work()
}

/// Whether a library is on the list.
pub(crate) fn holds(list: &'static Nested, library: &Library) -> bool {
    let mut frame = list.get();
    loop {
        // SAFETY: what is on the list lives in frames of this thread that are below this one: `with` takes each off
        // before its frame ends.
        let Some(one) = (unsafe { frame.as_ref() }) else {
            return false;
        };
        if ptr::eq(one.library, library) {
            return true;
        }
        frame = one.outer;
    }
}
