//! The limit on host memory for the state of running kernels: registers, local and shared memory.
//!
//! The amount depends on the kernel: on its registers, its recursion, and the number of blocks that wait for one
//! another. A kernel that uses too much must end in a fault, before the system's out-of-memory killer ends the process.
//! The process therefore has one limit for all kernels.

#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes reserved by all kernels of the process.
static RESERVED: AtomicU64 = AtomicU64::new(0);

/// Assumed size of the host's memory if the system does not report it.
const UNKNOWN: u64 = 4 << 30;

/// Returns the limit: half of the host's memory, regardless of the memory size that the devices report.
fn limit() -> u64 {
    host::memory().unwrap_or(UNKNOWN) / 2
}

/// A number of bytes reserved from the limit; dropping it releases them.
#[derive(Debug, Default)]
pub(crate) struct MemoryReservation(u64);

impl MemoryReservation {
    /// Reserves `bytes`. Returns `None` if the limit does not allow it.
    pub(crate) fn new(bytes: u64) -> Option<Self> {
        let mut reservation = MemoryReservation(0);
        reservation.grow_to(bytes)?;
        Some(reservation)
    }

    /// Grows the reservation to at least `bytes`. Returns `None` if the limit does not allow it.
    pub(crate) fn grow_to(&mut self, bytes: u64) -> Option<()> {
        let more = bytes.saturating_sub(self.0);
        if more == 0 {
            return Some(());
        }
        let fits = |reserved: u64| reserved.checked_add(more).filter(|all| *all <= limit());
        RESERVED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).ok()?;
        self.0 += more;
        Some(())
    }
}

impl Drop for MemoryReservation {
    fn drop(&mut self) {
        if self.0 > 0 {
            RESERVED.fetch_sub(self.0, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{MemoryReservation, limit};

    #[test]
    fn reservations_above_the_limit_fail_and_reserve_nothing() {
        assert!(MemoryReservation::new(u64::MAX).is_none());
        assert!(MemoryReservation::new(limit() + 1).is_none());
        let mut reservation = MemoryReservation::new(1000).expect("room for a thousand bytes");
        assert!(reservation.grow_to(u64::MAX).is_none());
        assert_eq!((reservation.grow_to(2000), reservation.0), (Some(()), 2000));
    }
}
