//! The checker of uninitialised reads: which bytes of shared and local memory were written, and the look-up of device
//! memory.

use super::race::Effect;
use crate::lanes::{self, LANES, Mask};
use crate::memory::address_space;
use crate::memory::written::{Bits, WrittenMap};
use std::sync::Arc;

/// The bytes of a block's shared and local memory that were written.
#[derive(Debug)]
pub(super) struct BlockWritten {
    pub(super) shared: Bits,
    /// By warp: the bits of its lanes, one lane after the other, and the bytes of a lane.
    local: Vec<(Bits, u64)>,
}

impl BlockWritten {
    /// Returns the state of a block that has not started.
    pub(super) fn new(shared_bytes: u64, warps: u32) -> Self {
        BlockWritten {
            shared: Bits::new(shared_bytes),
            local: (0..warps).map(|_| (Bits::new(0), 0)).collect(),
        }
    }

    /// Forgets what was written, for another block.
    pub(super) fn clear(&mut self) {
        self.shared.clear();
        for (bits, _) in &self.local {
            bits.clear();
        }
    }

    /// Returns the bits of a lane's local memory, of which at least `bytes` bytes are needed, and the first of them.
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

/// The allocations of device memory that a worker used last.
#[derive(Debug, Default)]
pub(super) struct Maps {
    recent: Vec<Arc<WrittenMap>>,
}

impl Maps {
    const KEPT: usize = 8;

    /// Returns the tracked allocation of an access; `None` if the memory counts as written.
    fn find(&mut self, address: u64, bytes: u64) -> Option<&WrittenMap> {
        let known = self.recent.iter().position(|m| m.offsets(address, bytes).is_some());
        let index = match known {
            Some(index) => index,
            None => {
                let map = address_space().written_map(address)?;
                map.offsets(address, bytes)?;
                if self.recent.len() == Self::KEPT {
                    self.recent.remove(0);
                }
                self.recent.push(map);
                self.recent.len() - 1
            }
        };
        Some(&self.recent[index])
    }

    /// An access of lanes of a warp to device memory. Returns the first lane that reads an element of which no byte was
    /// written.
    pub(super) fn access(
        &mut self,
        lanes: Mask,
        addresses: &[u64; LANES],
        bytes: u64,
        element: u64,
        (effect, needs_value): (Effect, bool),
    ) -> Option<usize> {
        if let Some(whole) = span(lanes, addresses, bytes) {
            let map = self.find(whole.start, whole.end - whole.start)?;
            let range = map.offsets(whole.start, whole.end - whole.start)?;
            if is_simple(map.bits(), range, (effect, needs_value)) {
                return None;
            }
        }
        let mut found = None;
        for lane in lanes::iter(lanes) {
            let Some(map) = self.find(addresses[lane], bytes) else {
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

/// Returns the range of an access whose lanes are next to each other, or all at one address.
pub(super) fn span(lanes: Mask, addresses: &[u64; LANES], bytes: u64) -> Option<std::ops::Range<u64>> {
    let first = addresses[lanes.trailing_zeros() as usize % LANES];
    if lanes::iter(lanes).all(|lane| addresses[lane] == first) {
        return Some(first..first + bytes);
    }
    let rows = lanes::iter(lanes)
        .zip(0..)
        .all(|(lane, i)| addresses[lane] == first + i * bytes);
    rows.then(|| first..first + u64::from(lanes.count_ones()) * bytes)
}

/// Notes an access to a range. Returns false for a read of bytes of which some were not written: then the lanes have to
/// be looked at one by one.
pub(super) fn is_simple(bits: &Bits, range: std::ops::Range<u64>, (effect, needs_value): (Effect, bool)) -> bool {
    if effect != Effect::Write && needs_value && !bits.every(range.clone()) {
        return false;
    }
    if effect != Effect::Read {
        bits.set(range);
    }
    true
}

/// Returns true if no byte of some element of a range was written. Elements that are written in part are accepted,
/// because compilers copy the padding of structures.
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
    use super::{BlockWritten, is_unwritten};
    use crate::memory::written::Bits;

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
