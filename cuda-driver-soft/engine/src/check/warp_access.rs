//! An access of the lanes of a warp, as the checkers see it: its effect, its addresses and the stored values.

use crate::lanes::{self, FULL, LANES, Mask};
use std::ops::Range;

/// The effect of an access on memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Read,
    Write,
    /// An atomic operation.
    Update,
}

/// The addresses of the lanes of a warp: a base, and the distance of each lane from it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places<'a> {
    pub(super) base: u64,
    pub(super) distances: &'a [u64; LANES],
}

impl<'a> Places<'a> {
    /// Returns the places of addresses.
    pub(super) fn of(addresses: &'a [u64; LANES]) -> Self {
        Places {
            base: 0,
            distances: addresses,
        }
    }

    /// Returns the address of a lane.
    #[inline]
    pub(super) fn address(&self, lane: usize) -> u64 {
        self.base.wrapping_add(self.distances[lane % LANES])
    }

    /// Returns the address of each lane.
    pub(super) fn all(&self) -> [u64; LANES] {
        self.distances.map(|distance| self.base.wrapping_add(distance))
    }
}

/// The values that an instruction stores.
pub(super) trait Values {
    /// Returns the `bytes` bytes (1 or 4) at an offset of the value that a lane stores; `None` if they are not known.
    fn get(&self, lane: usize, offset: u64, bytes: u32) -> Option<u32>;
}

/// Returns the smallest range that contains the accesses of all lanes.
pub(super) fn hull(lanes: Mask, addresses: &[u64; LANES], bytes: u64) -> Range<u64> {
    let (mut low, mut high) = (u64::MAX, 0);
    if lanes == FULL {
        for address in addresses {
            (low, high) = (low.min(*address), high.max(*address));
        }
    } else {
        for lane in lanes::iter(lanes) {
            (low, high) = (low.min(addresses[lane]), high.max(addresses[lane]));
        }
    }
    low..high.saturating_add(bytes)
}

/// Returns the range of an access whose lanes are next to each other, or all at one address; `None` for other accesses.
pub(super) fn span(lanes: Mask, addresses: &[u64; LANES], bytes: u64) -> Option<Range<u64>> {
    let first = addresses[lanes.trailing_zeros() as usize % LANES];
    if lanes::iter(lanes).all(|lane| addresses[lane] == first) {
        return Some(first..first.checked_add(bytes)?);
    }
    let rows = lanes::iter(lanes)
        .zip(0..)
        .all(|(lane, i)| Some(addresses[lane]) == first.checked_add(i * bytes));
    let all = u64::from(lanes.count_ones()) * bytes;
    rows.then(|| first.checked_add(all).map(|end| first..end))?
}

/// Returns the first lane of a set and the lanes right after it that access the same address. Returns only the first
/// lane for a write, because each lane stores its own value.
pub(super) fn neighbours(addresses: &[u64; LANES], rest: Mask, effect: Effect) -> Mask {
    let first = rest.trailing_zeros() as usize % LANES;
    let mut group = 1 << first;
    if effect != Effect::Write {
        for lane in first + 1..LANES {
            if addresses[lane] != addresses[first] || rest >> lane & 1 == 0 {
                break;
            }
            group |= 1 << lane;
        }
    }
    group
}
