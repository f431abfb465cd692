//! Host memory that the threads of running kernels hold: registers, local and shared memory.
//!
//! A kernel decides how much that is, by its registers, its recursion, the blocks that wait for one another. One that
//! wants too much is to end in a fault, not the process in the hands of the system's out-of-memory killer: so the whole
//! process has one limit.

use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes held by all kernels of the process.
static HELD: AtomicU64 = AtomicU64::new(0);

/// Memory where the system does not say how much there is.
const UNKNOWN: u64 = 4 << 30;

/// Bytes that all kernels of the process may hold: half of the memory that there is, whatever the devices claim to have.
fn limit() -> u64 {
    host::memory().unwrap_or(UNKNOWN) / 2
}

/// A part of what the process holds; given back when it is dropped.
#[derive(Debug, Default)]
pub(crate) struct Held(u64);

impl Held {
    /// Counts so many bytes. `None` if that is too much.
    pub(crate) fn take(bytes: u64) -> Option<Held> {
        let mut held = Held(0);
        held.grow_to(bytes)?;
        Some(held)
    }

    /// Counts at least so many bytes. `None` if that is too much.
    pub(crate) fn grow_to(&mut self, bytes: u64) -> Option<()> {
        let more = bytes.saturating_sub(self.0);
        if more == 0 {
            return Some(());
        }
        let fits = |held: u64| held.checked_add(more).filter(|all| *all <= limit());
        HELD.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits)
            .ok()?;
        self.0 += more;
        Some(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.0 > 0 {
            HELD.fetch_sub(self.0, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_much_is_refused_and_counts_for_nothing() {
        assert!(Held::take(u64::MAX).is_none());
        assert!(Held::take(limit() + 1).is_none());
        let mut held = Held::take(1000).expect("room for a thousand bytes");
        assert!(held.grow_to(u64::MAX).is_none());
        assert_eq!((held.grow_to(2000), held.0), (Some(()), 2000));
    }
}
