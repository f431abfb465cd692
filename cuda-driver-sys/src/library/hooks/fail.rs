//! Calls that fail.

use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use crate::library::{Call, Faithful, Interposer};
use crate::{CUresult, Function};

/// Lets calls fail with a code, without making them. Clones share their count of calls.
///
/// A call that is not made cannot have succeeded: with [`CUDA_SUCCESS`](CUresult::CUDA_SUCCESS) as the code none fails, and
/// all are made.
///
/// To see what a program does when any of its calls fails, run it with [`nth_of_all`](Self::nth_of_all) for 1, 2, 3 …
/// until [`failed`](Self::failed) says 0.
#[derive(Debug, Clone)]
pub struct Fail {
    /// `None` is every function.
    function: Option<Function>,
    code: CUresult,
    first: u64,
    last: u64,
    /// Calls seen so far.
    seen: Arc<AtomicU64>,
}

impl Fail {
    #[inline]
    fn new(function: Option<Function>, first: u64, last: u64, code: CUresult) -> Self {
        // No call has the number 0.
        let first = if code == CUresult::CUDA_SUCCESS {
            0
        } else {
            first
        };
        Self {
            function,
            code,
            first,
            last,
            seen: Arc::default(),
        }
    }

    /// The `n`-th call of a function fails with `code`. The first is 1; with 0 none fails.
    #[inline]
    #[must_use]
    pub fn nth(function: Function, n: u64, code: CUresult) -> Self {
        Self::new(Some(function), n, n, code)
    }

    /// The `n`-th call of a function fails with `code`, and so does every later one, as after a fault on the device.
    #[inline]
    #[must_use]
    pub fn from_nth(function: Function, n: u64, code: CUresult) -> Self {
        Self::new(Some(function), n, u64::MAX, code)
    }

    /// Every call of a function fails with `code`.
    #[inline]
    #[must_use]
    pub fn always(function: Function, code: CUresult) -> Self {
        Self::from_nth(function, 1, code)
    }

    /// The `n`-th call of all fails with `code`, whichever function it is of.
    #[inline]
    #[must_use]
    pub fn nth_of_all(n: u64, code: CUresult) -> Self {
        Self::new(None, n, n, code)
    }

    /// How many calls failed so far.
    #[inline]
    #[must_use]
    pub fn failed(&self) -> u64 {
        let seen = self.seen.load(Ordering::Relaxed);
        if self.first == 0 || seen < self.first {
            return 0;
        }
        seen.min(self.last) - self.first + 1
    }
}

impl Interposer for Fail {
    #[inline]
    fn call(&self, call: Call<'_>) -> CUresult {
        if self
            .function
            .is_some_and(|function| function != call.function())
        {
            return call.forward();
        }
        let number = self.seen.fetch_add(1, Ordering::Relaxed) + 1;
        if self.first > 0 && self.first <= number && number <= self.last {
            self.code
        } else {
            call.forward()
        }
    }
}

// SAFETY: a call fails without being forwarded, and never with 0; the others are forwarded.
unsafe impl Faithful for Fail {}
