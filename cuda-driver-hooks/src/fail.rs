//! Hooks that make calls fail.

use core::cell::RefCell;
use core::fmt;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use cuda_driver_sys::library::{Call, Faithful, Interposer};
use cuda_driver_sys::{CUresult, Function};

/// Makes calls fail with a code instead of passing them to the driver. Clones share their count of calls.
///
/// A call that is not made cannot have succeeded: with [`CUDA_SUCCESS`](CUresult::CUDA_SUCCESS) as the code, no call
/// fails and all are passed on.
///
/// To test a program against the failure of each of its calls, run it with [`nth_of_all`](Self::nth_of_all) for 1, 2, 3
/// … until [`failed`](Self::failed) returns 0.
///
/// Used as a hook, it counts the calls of all threads. Tests that share a process and its default library use
/// [`in_this_thread`](Self::in_this_thread) instead, so that each makes only its own calls fail.
#[derive(Debug, Clone)]
pub struct Fail {
    /// The function whose calls are counted; `None` for all functions.
    function: Option<Function>,
    code: CUresult,
    /// The number of the first call that fails, counted from 1; if it is 0, no call fails.
    first: u64,
    /// The number of the last call that fails.
    last: u64,
    /// The number of calls counted so far.
    seen: Arc<AtomicU64>,
}

impl Fail {
    #[inline]
    fn new(function: Option<Function>, first: u64, last: u64, code: CUresult) -> Self {
        // Calls are numbered from 1: with 0, no call fails.
        let first = if code == CUresult::CUDA_SUCCESS { 0 } else { first };
        Self {
            function,
            code,
            first,
            last,
            seen: Arc::default(),
        }
    }

    /// Makes the `n`-th call of a function fail with `code`. The first call has the number 1; with 0, no call fails.
    #[inline]
    #[must_use]
    pub fn nth(function: Function, n: u64, code: CUresult) -> Self {
        Self::new(Some(function), n, n, code)
    }

    /// Makes the `n`-th and every later call of a function fail with `code`, as after a fault on the device. With 0, no
    /// call fails.
    #[inline]
    #[must_use]
    pub fn from_nth(function: Function, n: u64, code: CUresult) -> Self {
        Self::new(Some(function), n, u64::MAX, code)
    }

    /// Makes every call of a function fail with `code`.
    #[inline]
    #[must_use]
    pub fn always(function: Function, code: CUresult) -> Self {
        Self::from_nth(function, 1, code)
    }

    /// Makes the `n`-th of the calls of all functions fail with `code`. With 0, no call fails.
    #[inline]
    #[must_use]
    pub fn nth_of_all(n: u64, code: CUresult) -> Self {
        Self::new(None, n, n, code)
    }

    /// Returns the number of calls that this hook has made fail so far.
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

impl Fail {
    /// Returns true if both have the same count of calls, because one is a clone of the other.
    #[inline]
    fn shares_count(&self, other: &Fail) -> bool {
        Arc::ptr_eq(&self.seen, &other.seen)
    }

    /// Counts a call and returns true if it must fail.
    #[inline]
    fn count_and_check(&self, function: Function) -> bool {
        if self.function.is_some_and(|mine| mine != function) {
            return false;
        }
        let number = self.seen.fetch_add(1, Ordering::Relaxed) + 1;
        self.first > 0 && self.first <= number && number <= self.last
    }

    /// Applies to the calls of this thread, instead of all threads, until the returned guard is dropped. Only calls
    /// through a library that has the hook [`FailInThread`] are counted and can fail. While several guards of this hook
    /// and its clones are alive in a thread, a call counts once.
    #[inline]
    #[must_use = "calls fail only until the guard is dropped"]
    pub fn in_this_thread(&self) -> Failing {
        FAILING.with_borrow_mut(|failing| failing.push(self.clone()));
        Failing {
            seen: self.seen.clone(),
            thread: PhantomData,
        }
    }
}

impl Interposer for Fail {
    #[inline]
    fn call(&self, call: Call<'_>) -> CUresult {
        if self.count_and_check(call.function()) {
            self.code
        } else {
            call.forward()
        }
    }
}

// SAFETY: a failing call is not forwarded and its code is never CUDA_SUCCESS; all others are forwarded.
unsafe impl Faithful for Fail {}

thread_local! {
    /// The active guards of this thread, oldest first.
    static FAILING: RefCell<Vec<Fail>> = const { RefCell::new(Vec::new()) };
}

/// Makes calls fail in threads that use [`Fail::in_this_thread`]. This is the hook for tests, which run as threads of
/// one process: set it once, and let each test choose its own failures.
///
/// ```
/// use cuda_driver_hooks::{Fail, FailInThread};
/// use cuda_driver_sys::library::{Options, Source};
/// use cuda_driver_sys::{CUresult, Function, Library};
///
/// fn over(driver: &'static Library) -> Result<(), Box<dyn std::error::Error>> {
///     let library = Library::new(Source::library(driver), Options::new().hook(FailInThread))?;
///     let second = Fail::nth(Function::cuInit, 2, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
///     let failing = second.in_this_thread();
///     // SAFETY: cuInit takes no pointers.
///     let code = || unsafe { library.cuInit(0) };
///     assert_eq!(code(), CUresult::CUDA_SUCCESS);
///     assert_eq!(code(), CUresult::CUDA_ERROR_OUT_OF_MEMORY);
///     assert_eq!(second.failed(), 1);
///     drop(failing);
///     assert_eq!(code(), CUresult::CUDA_SUCCESS);
///     Ok(())
/// }
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct FailInThread;

impl Interposer for FailInThread {
    #[inline]
    fn call(&self, call: Call<'_>) -> CUresult {
        // Every active `Fail` counts the call, including those after the first that makes it fail. `try_with` returns
        // an error while the thread ends and its list of guards is gone; the call is then forwarded.
        let code = FAILING.try_with(|failing| {
            let failing = failing.borrow();
            // Several guards of one `Fail`, or of its clones, count the call once.
            let is_first = |(i, fail): &(usize, &Fail)| !failing[..*i].iter().any(|other| other.shares_count(fail));
            let hooks = failing.iter().enumerate().filter(is_first).map(|(_, fail)| fail);
            let hit = hooks.filter(|fail| fail.count_and_check(call.function()));
            hit.map(|fail| fail.code).reduce(|first, _| first)
        });
        code.ok().flatten().unwrap_or_else(|| call.forward())
    }
}

// SAFETY: a failing call is not forwarded and its code is never CUDA_SUCCESS; all others are forwarded.
unsafe impl Faithful for FailInThread {}

/// Guard of [`Fail::in_this_thread`]: calls of this thread fail until it is dropped.
pub struct Failing {
    seen: Arc<AtomicU64>,
    /// Keeps the guard on its thread.
    thread: PhantomData<*const ()>,
}

impl fmt::Debug for Failing {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Failing").finish_non_exhaustive()
    }
}

impl Drop for Failing {
    #[inline]
    fn drop(&mut self) {
        _ = FAILING.try_with(|failing| {
            let mut failing = failing.borrow_mut();
            let last = failing.iter().rposition(|fail| Arc::ptr_eq(&fail.seen, &self.seen));
            if let Some(last) = last {
                failing.remove(last);
            }
        });
    }
}
