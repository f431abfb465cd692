//! The host addresses of the lanes of an access.

use crate::lanes::{LANES, Lanes};
use crate::memory::access;

/// The arrangement of the addresses of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrangement {
    /// Consecutive lanes without gaps.
    Row,
    /// All lanes at one address.
    Same,
    /// Several rows of consecutive lanes, each of 16 bytes or more, with this distance from one row to the next.
    Rows(isize),
    /// Any other arrangement.
    Any,
}

/// The host addresses of an access. Each is valid for the access, and aligned.
pub(super) struct HostLanes<'c> {
    /// The address of the first lane; with [`Arrangement::Any`] the address to which the distances are added.
    pub(super) host: *mut u8,
    /// The arrangement of the lanes.
    pub(super) arrangement: Arrangement,
    /// The number of lanes in a row.
    pub(super) lanes: usize,
    /// The distances of the lanes, for [`Arrangement::Any`].
    pub(super) deltas: &'c Lanes<u32>,
}

impl HostLanes<'_> {
    /// Returns the address of a lane, for accesses of `bytes` bytes.
    #[inline(always)]
    pub(super) fn lane(&self, i: usize, bytes: usize) -> *mut u8 {
        let distance = match self.arrangement {
            Arrangement::Same => 0,
            Arrangement::Row => (i * bytes) as isize,
            Arrangement::Rows(row) => row * (i / self.lanes) as isize + (i % self.lanes * bytes) as isize,
            Arrangement::Any => self.deltas[i] as isize,
        };
        self.host.wrapping_offset(distance)
    }

    /// Copies all lanes, of `bytes` bytes each, from [`Arrangement::Rows`] to the contiguous memory `packed` or, with
    /// `STORE`, back. Does nothing for other arrangements.
    ///
    /// # Safety
    /// The addresses of all lanes must be valid for the copy, and `packed` for 32 lanes. With `WIDE` the CPU must have
    /// AVX.
    #[inline(always)]
    pub(super) unsafe fn copy<const STORE: bool, const WIDE: bool>(&self, packed: *mut u8, bytes: usize) {
        let (size, row) = match self.arrangement {
            Arrangement::Rows(row) => (self.lanes * bytes, row),
            _ => return,
        };
        for i in 0..LANES / self.lanes {
            let there = self.host.wrapping_offset(row * i as isize);
            let here = packed.wrapping_add(i * size);
            let (to, from) = if STORE { (there, here) } else { (here, there) };
            // SAFETY: a row is contiguous and valid, as promised by the caller. Its size is a power of two and at least
            // 16, so a multiple of 16.
            unsafe { access::copy_row::<WIDE>(to, from, size) };
        }
    }
}
