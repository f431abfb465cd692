//! Watching calls.

use core::fmt;
use core::time::Duration;
use std::time::Instant;

use crate::library::{Arguments, Call, Faithful, Interposer};
use crate::{CUresult, Function, Library};

/// Tells a closure of every call, after it was made.
pub struct Watch<F>(F);

impl<F: Fn(&Observed<'_>) + Send + Sync> Watch<F> {
    /// `watcher` is called on the thread of the call, on many at once. Calls that it makes itself are not watched.
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

// SAFETY: every call is forwarded, and its answer handed back.
unsafe impl<F: Fn(&Observed<'_>) + Send + Sync> Faithful for Watch<F> {}

impl<F> fmt::Debug for Watch<F> {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}

/// One call that was made. `Display` prints it on one line:
/// `cuMemAlloc_v2(dptr: 0x7ffd6e4c3a58, bytesize: 4096) = CUDA_SUCCESS, 1830 ns`.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Observed<'a> {
    /// The function, by the name that the caller used.
    pub function: Function,
    /// The library that was called.
    pub library: &'a Library,
    /// The arguments. Outputs are behind them now, if the call succeeded.
    pub arguments: Arguments<'a>,
    /// What the caller gets, unless an interposer before this one changes it.
    pub result: CUresult,
    /// How long the call took, with the interposers behind this one; some 50 ns of it are the clock's and the hook's.
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
