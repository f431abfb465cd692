//! The checker of uninitialised reads. It records the bytes of shared and local memory that a kernel writes. For device
//! memory it uses the record that `memory` keeps, and adds the bytes that the kernel writes.

use super::warp_access::{Effect, hull, span};
use crate::lanes::{self, LANES, Mask};
use crate::memory::address_space;
use crate::memory::written::{Bits, KnownRange, WrittenMap};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// The bytes of a block's shared and local memory that were written.
#[derive(Debug)]
pub(super) struct BlockWritten {
    pub(super) shared: Bits,
    /// A part of the shared memory whose bytes are all written: a shortcut for most accesses.
    pub(super) known: KnownRange,
    /// For each warp: the bits of its lanes, one lane after the other, and the number of bytes of a lane.
    local: Vec<(Bits, u64)>,
}

impl BlockWritten {
    /// Returns the state of a block that has not started.
    pub(super) fn new(shared_bytes: u64, warps: u32) -> Self {
        BlockWritten {
            shared: Bits::new(shared_bytes),
            known: KnownRange::default(),
            local: (0..warps).map(|_| (Bits::new(0), 0)).collect(),
        }
    }

    /// Clears the record for the next block.
    pub(super) fn clear(&mut self) {
        self.shared.clear();
        self.known = KnownRange::default();
        for (bits, _) in &self.local {
            bits.clear();
        }
    }

    /// Returns the bits of the local memory of all lanes of a warp, and the first bit of this lane. Makes room for
    /// `bytes` bytes per lane.
    pub(super) fn local(&mut self, warp: u32, lane: u64, bytes: u64) -> Option<(&Bits, u64)> {
        let (bits, stride) = self.local.get_mut(warp as usize)?;
        if bytes > *stride {
            let wider = bytes.next_power_of_two().max(256);
            let new = Bits::new(wider * LANES as u64);
            for lane in 0..LANES as u64 {
                for byte in 0..*stride {
                    let at = lane * *stride + byte;
                    if bits.any(at..at + 1) {
                        new.set(lane * wider + byte..lane * wider + byte + 1);
                    }
                }
            }
            (*bits, *stride) = (new, wider);
        }
        Some((bits, lane * *stride))
    }
}

/// The shared memory of each block that other blocks of its cluster have written.
#[derive(Debug)]
pub(super) struct WrittenByOthers {
    shared_bytes: u64,
    blocks: Mutex<HashMap<u64, Bits>>,
}

impl WrittenByOthers {
    pub(super) fn new(shared_bytes: u64) -> Self {
        WrittenByOthers {
            shared_bytes,
            blocks: Mutex::default(),
        }
    }

    /// Records a write to the shared memory of a block, by another block or by a copy to several blocks.
    pub(super) fn add(&self, block: u64, range: Range<u64>) {
        let mut blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        let bits = blocks.entry(block).or_insert_with(|| Bits::new(self.shared_bytes));
        bits.set(range);
    }

    /// Removes the record of a block that has ended.
    pub(super) fn remove(&self, block: u64) {
        let mut blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        blocks.remove(&block);
    }

    /// Adds to `written` the bytes in a range of a block's shared memory that other blocks have written.
    pub(super) fn copy_to(&self, block: u64, written: &Bits, range: Range<u64>) {
        let blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bits) = blocks.get(&block) {
            let bytes = range.filter(|byte| bits.any(*byte..*byte + 1));
            bytes.for_each(|byte| written.set(byte..byte + 1));
        }
    }
}

/// The tracked allocations of device memory that a worker looked up last.
#[derive(Debug, Default)]
pub(super) struct Maps {
    recent: Vec<RecentMap>,
}

/// An allocation, and a part of it whose bytes are all written.
#[derive(Debug)]
struct RecentMap {
    map: Arc<WrittenMap>,
    known: KnownRange,
    /// The value of [`WrittenMap::clearings`] when `known` was last emptied.
    clearings: u64,
}

impl RecentMap {
    /// Returns the known part. It is emptied first if bytes of the allocation may have become unwritten since the last
    /// call.
    #[inline]
    fn known(&mut self) -> &mut KnownRange {
        let clearings = self.map.clearings();
        if clearings != self.clearings {
            self.clearings = clearings;
            self.known = KnownRange::default();
        }
        &mut self.known
    }
}

impl Maps {
    const KEPT: usize = 8;

    /// Returns the tracked allocation of an access; `None` if the memory counts as written.
    #[inline]
    fn find(&mut self, address: u64, bytes: u64) -> Option<&mut RecentMap> {
        let known = self.recent.iter().position(|m| m.map.offsets(address, bytes).is_some());
        let index = match known {
            Some(index) if !self.recent[index].map.is_freed() => index,
            _ => self.look_up(address, bytes)?,
        };
        Some(&mut self.recent[index])
    }

    #[inline(never)]
    fn look_up(&mut self, address: u64, bytes: u64) -> Option<usize> {
        // Kernels may free memory and allocate other memory at its address.
        self.recent.retain(|recent| !recent.map.is_freed());
        let map = address_space().written_map(address)?;
        map.offsets(address, bytes)?;
        if self.recent.len() == Self::KEPT {
            self.recent.remove(0);
        }
        self.recent.push(RecentMap {
            clearings: map.clearings(),
            map,
            known: KnownRange::default(),
        });
        Some(self.recent.len() - 1)
    }

    /// Returns true if an access whose lanes are in a range needs no check and no record: see [`is_simple`]. `is_span`
    /// is true for lanes that are next to each other, or all at one address. Memory that is not tracked counts as
    /// written, but other lanes of the range may access an allocation that is tracked.
    #[inline]
    pub(super) fn is_simple(&mut self, range: Range<u64>, is_span: bool, effect: (Effect, bool)) -> bool {
        let Some(recent) = self.find(range.start, range.end.wrapping_sub(range.start)) else {
            return is_span;
        };
        recent.known();
        let offsets = recent.map.offsets(range.start, range.end.wrapping_sub(range.start));
        offsets.is_some_and(|range| is_simple(recent.map.bits(), &mut recent.known, range, effect))
    }

    /// Checks and records an access of lanes of a warp to device memory. Returns the first lane that reads an element
    /// of which no byte was written.
    pub(super) fn access(
        &mut self,
        lanes: Mask,
        addresses: &[u64; LANES],
        bytes: u64,
        element: u64,
        (effect, needs_value): (Effect, bool),
    ) -> Option<usize> {
        let whole = hull(lanes, addresses, bytes);
        if let Some(recent) = self.find(whole.start, whole.end.wrapping_sub(whole.start))
            && let Some(range) = recent.map.offsets(whole.start, whole.end - whole.start)
        {
            recent.known();
            if is_simple(recent.map.bits(), &mut recent.known, range, (effect, needs_value)) {
                return None;
            }
            if effect == Effect::Write
                && let Some(row) = span(lanes, addresses, bytes)
                && let Some(range) = recent.map.offsets(row.start, row.end - row.start)
            {
                recent.map.bits().set(range);
                return None;
            }
        } else if span(lanes, addresses, bytes).is_some() {
            return None;
        }
        let mut found = None;
        for lane in lanes::iter(lanes) {
            let Some(RecentMap { map, .. }) = self.find(addresses[lane], bytes) else {
                continue;
            };
            let Some(range) = map.offsets(addresses[lane], bytes) else {
                continue;
            };
            if needs_value && found.is_none() && is_unwritten(map.bits(), range.clone(), element) {
                found = Some(lane);
            }
            if effect != Effect::Read {
                map.bits().set(range);
            }
        }
        found
    }
}

/// Returns true if an access inside a range needs no check and no record: it reads bytes that need not have been
/// written, or all bytes of the range have been. Otherwise the lanes must be checked one by one.
pub(super) fn is_simple(
    bits: &Bits,
    known: &mut KnownRange,
    range: std::ops::Range<u64>,
    (effect, needs_value): (Effect, bool),
) -> bool {
    (effect == Effect::Read && !needs_value) || known.covers(bits, range)
}

/// Returns true if a range has an element of which no byte was written. `element` is the bytes of an element, or 0 if
/// the range is one element. Elements that are written in part are accepted, because compilers copy the padding of
/// structures.
pub(super) fn is_unwritten(bits: &Bits, range: std::ops::Range<u64>, element: u64) -> bool {
    let element = if element == 0 { range.end - range.start } else { element }.max(1);
    let mut at = range.start;
    while at < range.end {
        let end = (at + element).min(range.end);
        if !bits.any(at..end) {
            return true;
        }
        at = end;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::{BlockWritten, WrittenByOthers, is_unwritten};
    use crate::memory::written::Bits;

    #[test]
    fn writes_by_other_blocks_are_kept_until_the_block_ends() {
        let (others, written) = (WrittenByOthers::new(64), Bits::new(64));
        others.add(3, 4..8);
        others.add(5, 8..9);
        others.remove(5);
        others.copy_to(3, &written, 0..64);
        assert!(written.every(4..8) && !written.any(8..64));
        others.remove(3);
        assert!(others.blocks.lock().unwrap().is_empty());
    }

    #[test]
    fn an_element_counts_as_written_if_a_byte_of_it_is() {
        let bits = Bits::new(64);
        bits.set(5..6);
        assert!(is_unwritten(&bits, 0..4, 4));
        assert!(!is_unwritten(&bits, 4..8, 4));
        assert!(is_unwritten(&bits, 4..12, 4), "the second element");
        assert!(!is_unwritten(&bits, 0..8, 0), "one element");
    }

    #[test]
    fn local_memory_grows_and_keeps_its_bits() {
        let mut written = BlockWritten::new(0, 2);
        let (bits, first) = written.local(1, 3, 16).unwrap();
        bits.set(first + 8..first + 12);
        let (bits, first) = written.local(1, 3, 5000).unwrap();
        assert!(bits.every(first + 8..first + 12) && !bits.any(first..first + 8));
        let (bits, first) = written.local(1, 4, 5000).unwrap();
        assert!(!bits.any(first..first + 5000));
        written.clear();
        let (bits, first) = written.local(1, 3, 5000).unwrap();
        assert!(!bits.any(first..first + 5000));
    }
}
