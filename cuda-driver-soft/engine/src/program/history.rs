//! The instructions that a kernel has run, over all its launches.

use std::ops::Sub;
use std::sync::atomic::{AtomicU64, Ordering};

/// Numbers of warp instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All instructions.
    pub all: u64,
    /// Instructions that ran in compiled code, including those that it left to the interpreter one at a time.
    pub compiled: u64,
    /// Instructions that compiled code left to the interpreter one at a time. Those of lanes that begin again in other
    /// code (see `compile::again`) count each time they run.
    pub called: u64,
}

impl Sub for Counts {
    type Output = Counts;

    fn sub(self, other: Counts) -> Counts {
        Counts {
            all: self.all.saturating_sub(other.all),
            compiled: self.compiled.saturating_sub(other.compiled),
            called: self.called.saturating_sub(other.called),
        }
    }
}

/// Sums of [`Counts`] that any number of threads add to.
#[derive(Debug, Default)]
pub(crate) struct Sums {
    all: AtomicU64,
    compiled: AtomicU64,
    called: AtomicU64,
}

impl Sums {
    /// Adds counts.
    pub(crate) fn add(&self, counts: Counts) {
        if counts.compiled > 0 {
            self.compiled.fetch_add(counts.compiled, Ordering::Relaxed);
            self.called.fetch_add(counts.called, Ordering::Relaxed);
        }
        self.all.fetch_add(counts.all, Ordering::Relaxed);
    }

    /// Returns the sums.
    pub(crate) fn get(&self) -> Counts {
        Counts {
            all: self.all.load(Ordering::Relaxed),
            compiled: self.compiled.load(Ordering::Relaxed),
            called: self.called.load(Ordering::Relaxed),
        }
    }
}

/// The instructions that a kernel has run, in interpreted launches and in launches with machine code.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// Launches that were interpreted.
    pub(crate) interpreted: Sums,
    /// Launches with machine code.
    pub(crate) compiled: Sums,
}
