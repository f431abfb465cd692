//! A hook that passes every call to a closure.

use core::fmt;
use core::time::Duration;
use std::time::Instant;

use cuda_driver_sys::library::{Arguments, Call, Faithful, Interposer};
use cuda_driver_sys::{CUresult, Function, Library};

/// Passes every call to a closure after the call has returned.
pub struct Watch<F>(F);

impl<F: Fn(&Observed<'_>) + Send + Sync> Watch<F> {
    /// Returns a hook that calls `watcher` on the thread of the call, possibly on several threads at once. Calls of the
    /// same library that the watcher itself makes on this thread are not watched.
    #[inline]
    #[must_use]
    pub const fn new(watcher: F) -> Self {
        Self(watcher)
    }
}

impl<F: Fn(&Observed<'_>) + Send + Sync> Interposer for Watch<F> {
    #[inline]
    fn call(&self, call: Call<'_>) -> CUresult {
        let (function, library, arguments) = (call.function(), call.library(), call.arguments());
        let start = Instant::now();
        let result = call.forward();
        let elapsed = start.elapsed();
        (self.0)(&Observed {
            function,
            library,
            arguments,
            result,
            elapsed,
        });
        result
    }
}

// SAFETY: every call is forwarded and its result returned.
unsafe impl<F: Fn(&Observed<'_>) + Send + Sync> Faithful for Watch<F> {}

impl<F> fmt::Debug for Watch<F> {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}

/// A call that has returned. `Display` prints it on one line:
/// `cuMemAlloc_v2(dptr: 0x7ffd6e4c3a58, bytesize: 4096) = CUDA_SUCCESS, 1830 ns`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Observed<'a> {
    /// The function under the name that the caller used.
    pub function: Function,
    /// The called library.
    pub library: &'a Library,
    /// The arguments. If the call succeeded, the outputs that they point to have been written.
    pub arguments: Arguments<'a>,
    /// The result that the caller gets, unless an interposer before this one changes it.
    pub result: CUresult,
    /// Duration of the call, including the interposers after this one. About 50 ns of it are the cost of reading the
    /// clock and of the hook itself.
    pub elapsed: Duration,
}

impl fmt::Display for Observed<'_> {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanoseconds = self.elapsed.as_nanos();
        let Self {
            function,
            arguments,
            result,
            ..
        } = self;
        write!(f, "{function}({arguments}) = {result:?}, {nanoseconds} ns")
    }
}
