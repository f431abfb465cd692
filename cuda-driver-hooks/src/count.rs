//! A hook that counts and times calls.

use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Instant;

use cuda_driver_sys::library::{Call, Faithful, Interposer};
use cuda_driver_sys::{CUresult, Function};

/// Counts the calls of each function and adds up their durations. Clones share their counts: keep one, and pass
/// another to the options.
#[derive(Clone)]
pub struct Counter(Arc<[Count]>);

#[derive(Default)]
struct Count {
    calls: AtomicU64,
    nanoseconds: AtomicU64,
}

impl Counter {
    /// Returns a counter whose counts are all 0.
    #[inline]
    #[must_use]
    pub fn new() -> Self {
        Self((0..Function::COUNT).map(|_| Count::default()).collect())
    }

    /// Returns the number of calls of a function under the name that the caller used. Calls that have not returned yet
    /// are not counted.
    #[inline]
    #[must_use]
    pub fn calls(&self, function: Function) -> u64 {
        self.0[function.index()].calls.load(Ordering::Relaxed)
    }

    /// Returns the total duration of the calls that [`calls`](Self::calls) counts, in nanoseconds.
    #[inline]
    #[must_use]
    pub fn nanoseconds(&self, function: Function) -> u64 {
        self.0[function.index()].nanoseconds.load(Ordering::Relaxed)
    }

    /// Returns the number of calls of all functions.
    #[inline]
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().map(|count| count.calls.load(Ordering::Relaxed)).sum()
    }

    /// Returns the functions that were called.
    #[inline]
    pub fn called(&self) -> impl Iterator<Item = Function> + '_ {
        let all = Function::ALL.iter().copied();
        all.filter(|function| self.calls(*function) > 0)
    }

    /// Resets all counts and times to 0.
    #[inline]
    pub fn reset(&self) {
        for count in self.0.iter() {
            count.calls.store(0, Ordering::Relaxed);
            count.nanoseconds.store(0, Ordering::Relaxed);
        }
    }
}

impl Default for Counter {
    #[inline]
    fn default() -> Self {
        Self::new()
    }
}

impl Interposer for Counter {
    #[inline]
    fn call(&self, call: Call<'_>) -> CUresult {
        let count = &self.0[call.function().index()];
        let start = Instant::now();
        let result = call.forward();
        let elapsed = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        count.calls.fetch_add(1, Ordering::Relaxed);
        count.nanoseconds.fetch_add(elapsed, Ordering::Relaxed);
        result
    }
}

// SAFETY: every call is forwarded and its result returned.
unsafe impl Faithful for Counter {}

impl fmt::Debug for Counter {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = self.called().map(|function| (function, self.calls(function)));
        f.debug_map().entries(counts).finish()
    }
}
