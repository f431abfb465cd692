//! Calls that fail.

use core::cell::RefCell;
use core::fmt;
use core::marker::PhantomData;
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
///
/// As a hook it counts the calls of all threads, from the start of the library. Tests share a process and its default
/// library: each lets its own calls fail, with [`in_this_thread`](Self::in_this_thread).
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

impl Fail {
    /// Counts a call; whether it fails.
    #[inline]
    fn hits(&self, function: Function) -> bool {
        if self.function.is_some_and(|mine| mine != function) {
            return false;
        }
        let number = self.seen.fetch_add(1, Ordering::Relaxed) + 1;
        self.first > 0 && self.first <= number && number <= self.last
    }

    /// From here on, until what this returns is dropped, calls that this thread makes through a library with the hook
    /// [`FailInThread`] are counted, and fail. Without that hook nothing does.
    #[inline]
    #[must_use = "calls fail for as long as this lives"]
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
        if self.hits(call.function()) {
            self.code
        } else {
            call.forward()
        }
    }
}

// SAFETY: a call fails without being forwarded, and never with 0; the others are forwarded.
unsafe impl Faithful for Fail {}

thread_local! {
    /// What this thread asked for, the oldest first.
    static FAILING: RefCell<Vec<Fail>> = const { RefCell::new(Vec::new()) };
}

/// Lets calls fail for those threads that ask for it, with [`Fail::in_this_thread`]: the hook for tests, which are threads of
/// one process. It is set once, and each test asks for its own failures.
///
/// ```
/// use cuda_driver_sys::library::hooks::{Fail, FailInThread};
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
        // All count it, also behind the first one that lets it fail. At a thread's end nothing is asked for any more.
        let code = FAILING.try_with(|failing| {
            let failing = failing.borrow();
            let hit = failing.iter().filter(|fail| fail.hits(call.function()));
            hit.map(|fail| fail.code).reduce(|first, _| first)
        });
        code.ok().flatten().unwrap_or_else(|| call.forward())
    }
}

// SAFETY: as for `Fail`.
unsafe impl Faithful for FailInThread {}

/// While it lives, calls of this thread fail; see [`Fail::in_this_thread`].
pub struct Failing {
    seen: Arc<AtomicU64>,
    /// It is of one thread.
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
            let last = failing
                .iter()
                .rposition(|fail| Arc::ptr_eq(&fail.seen, &self.seen));
            if let Some(last) = last {
                failing.remove(last);
            }
        });
    }
}
