//! Requests of a warp to memory: the sectors of global memory and the banks of shared memory that they access.

#![forbid(unsafe_code)]

use crate::lanes::{self, LANES, Lanes, Mask};

/// Binary logarithm of [`SECTOR`].
const SECTOR_SHIFT: u32 = 5;
/// Bytes of a sector.
pub(super) const SECTOR: u64 = 1 << SECTOR_SHIFT;
/// Banks of shared memory, each of 4 bytes.
const BANKS: usize = 32;

/// Returns true if all lanes are active and access consecutive memory, in the order of the lanes.
fn is_row(addresses: &Lanes<u64>, mask: Mask, bytes: u32) -> bool {
    let mut differs = 0;
    for (i, address) in (0..).zip(addresses) {
        differs |= address.wrapping_sub(addresses[0]) ^ (i * u64::from(bytes));
    }
    differs == 0 && mask == lanes::FULL
}

/// The memory that a request accesses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Footprint {
    /// Sectors of 32 bytes.
    pub(super) sectors: u64,
    /// Bytes, each counted once.
    pub(super) bytes: u64,
}

/// Returns the memory that a request accesses, if each lane accesses `bytes` bytes. Accesses are aligned to their size,
/// so two of them overlap as a whole or not at all.
pub(super) fn footprint(addresses: &Lanes<u64>, mask: Mask, bytes: u32) -> Footprint {
    if mask == 0 || bytes == 0 {
        return Footprint::default();
    }
    let size = u64::from(bytes);
    if is_row(addresses, mask, bytes) {
        // The addresses are not checked yet, so the row may wrap.
        let end = addresses[0] % SECTOR + LANES as u64 * size - 1;
        return Footprint {
            sectors: (end >> SECTOR_SHIFT) + 1,
            bytes: LANES as u64 * size,
        };
    }
    // An inactive lane counts as the active lane before it, or as the first active lane.
    let mut active = *addresses;
    if mask != lanes::FULL {
        let mut last = addresses[mask.trailing_zeros() as usize % LANES];
        for (i, address) in active.iter_mut().enumerate() {
            if mask >> i & 1 == 1 {
                last = *address;
            }
            *address = last;
        }
    }
    let (mut ascends, mut places, mut sectors) = (true, 1, 1);
    for i in 1..LANES {
        let (before, address) = (active[i - 1], active[i]);
        ascends &= before <= address;
        places += u64::from(before != address);
        sectors += u64::from(before >> SECTOR_SHIFT != address >> SECTOR_SHIFT);
    }
    if !ascends && let Some(counts) = nearby(&active, bytes) {
        (places, sectors) = counts;
    } else if !ascends {
        active.sort_unstable();
        let differ = |shift: u32| 1 + active.windows(2).filter(|w| w[0] >> shift != w[1] >> shift).count() as u64;
        (places, sectors) = (differ(0), differ(SECTOR_SHIFT));
    }
    Footprint {
        // An access that is larger than a sector shares no sector with others.
        sectors: if bytes > 1 << SECTOR_SHIFT {
            places * size.div_ceil(1 << SECTOR_SHIFT)
        } else {
            sectors
        },
        bytes: places * size,
    }
}

/// Returns the number of distinct addresses and of their sectors, if all are inside of 4 KiB, and the size of the
/// accesses is a power of two of at least 4 bytes; otherwise `None`.
fn nearby(addresses: &Lanes<u64>, bytes: u32) -> Option<(u64, u64)> {
    const RANGE: u64 = 4096;
    let lowest = addresses.iter().fold(u64::MAX, |a, b| a.min(*b)) >> SECTOR_SHIFT << SECTOR_SHIFT;
    let highest = addresses.iter().fold(0, |a, b| a.max(*b));
    if highest - lowest >= RANGE || bytes < 4 || !bytes.is_power_of_two() {
        return None;
    }
    let (mut places, mut sectors) = ([0u64; RANGE as usize / 4 / 64], 0u128);
    let shift = bytes.trailing_zeros();
    for address in addresses {
        let offset = address - lowest;
        let place = (offset >> shift) as usize;
        places[place / 64] |= 1 << (place % 64);
        sectors |= 1 << (offset >> SECTOR_SHIFT);
    }
    let count = places.iter().map(|bits| u64::from(bits.count_ones())).sum();
    Some((count, sectors.count_ones().into()))
}

/// Returns the number of sectors that an atomic operation accesses. Lanes with the same address take turns, each of
/// which accesses the sector again: ncu counts so on an H200.
pub(super) fn atomic_sectors(addresses: &Lanes<u64>, mask: Mask) -> u64 {
    let mut all: Vec<u64> = lanes::iter(mask).map(|i| addresses[i]).collect();
    all.sort_unstable();
    let sectors = all.chunk_by(|a, b| a >> SECTOR_SHIFT == b >> SECTOR_SHIFT);
    let turns = |sector: &[u64]| sector.chunk_by(|a, b| a == b).map(|same| same.len() as u64).max();
    sectors.filter_map(turns).sum()
}

/// The passes of a request through the banks of shared memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Wavefronts {
    /// Number of passes.
    pub(super) all: u64,
    /// Number of passes without conflicts, which the width of the access needs.
    pub(super) ideal: u64,
}

/// Returns the passes of a request to shared memory. Lanes that access the same word do not conflict. Accesses of 8
/// bytes are made for 16 lanes at a time, and accesses of 16 bytes for 8 lanes; for twice as many lanes if neighbours
/// have the same address.
pub(super) fn wavefronts(addresses: &Lanes<u64>, mask: Mask, bytes: u32) -> Wavefronts {
    let together = match bytes {
        0..=4 => 32,
        5..=8 => 16,
        _ => 8,
    };
    if is_row(addresses, mask, bytes) {
        let passes = (LANES / together) as u64;
        return Wavefronts {
            all: passes,
            ideal: passes,
        };
    }
    let mut sum = Wavefronts::default();
    let mut add = |active: Mask| {
        if active != 0 {
            sum.all += passes(addresses, active, bytes);
            sum.ideal += 1;
        }
    };
    if together == 32 {
        add(mask);
        return sum;
    }
    for pair in 0..LANES / (2 * together) {
        let lanes = ((1u64 << (2 * together)) - 1) as Mask;
        let lower = (1 << together) - 1;
        let shift = 2 * together * pair;
        let (lanes, lower) = (mask & lanes << shift, lower << shift);
        if in_pairs(addresses, lanes, 1) || in_pairs(addresses, lanes, 2) {
            add(lanes);
        } else {
            add(lanes & lower);
            add(lanes & !lower);
        }
    }
    sum
}

/// Returns true if each active lane has the same address as the lane whose number differs in this bit, if that lane is
/// active.
fn in_pairs(addresses: &Lanes<u64>, mask: Mask, bit: usize) -> bool {
    lanes::iter(mask).all(|i| mask >> (i ^ bit) & 1 == 0 || addresses[i] == addresses[i ^ bit])
}

/// Returns the passes of lanes whose accesses are made together: the most words that they access in one bank.
fn passes(addresses: &Lanes<u64>, mask: Mask, bytes: u32) -> u64 {
    let words = bytes.div_ceil(4).max(1);
    // Fast path: one word in each bank.
    let (mut used, mut seen, mut more) = (0u32, [0; BANKS], false);
    for i in lanes::iter(mask) {
        for w in 0..words {
            let word = (addresses[i] >> 2).wrapping_add(u64::from(w));
            let bank = word as usize % BANKS;
            more |= used >> bank & 1 == 1 && seen[bank] != word;
            used |= 1 << bank;
            seen[bank] = word;
        }
    }
    if !more {
        return 1;
    }
    // At most 64 words: at most 32 lanes with 2 words each, or 16 lanes with 4 words each.
    let mut all = [0; 2 * LANES];
    let mut count = 0;
    for i in lanes::iter(mask) {
        for w in 0..words.min(4) {
            if let Some(word) = all.get_mut(count) {
                *word = (addresses[i] >> 2).wrapping_add(u64::from(w));
                count += 1;
            }
        }
    }
    let all = &mut all[..count];
    all.sort_unstable();
    let mut in_bank = [0u64; BANKS];
    for same in all.chunk_by(|a, b| a == b) {
        in_bank[same[0] as usize % BANKS] += 1;
    }
    in_bank.into_iter().max().unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::{Wavefronts, atomic_sectors, footprint, wavefronts};
    use crate::lanes::{FULL, Lanes, Mask};

    fn sectors(addresses: &Lanes<u64>, mask: Mask, size: u32) -> u64 {
        footprint(addresses, mask, size).sectors
    }

    fn bytes(addresses: &Lanes<u64>, mask: Mask, size: u32) -> u64 {
        footprint(addresses, mask, size).bytes
    }

    fn lanes(address: impl Fn(u64) -> u64) -> Lanes<u64> {
        std::array::from_fn(|lane| address(lane as u64))
    }

    #[test]
    fn sectors_are_counted_once_per_request() {
        assert_eq!(sectors(&lanes(|i| 4096 + 4 * i), FULL, 4), 4);
        assert_eq!(sectors(&lanes(|i| 4096 + 8 * i), FULL, 8), 8);
        assert_eq!(sectors(&lanes(|i| 4096 + 16 * i), FULL, 16), 16);
        // One address; a row that begins in the middle of a sector; reversed; 128 bytes apart.
        assert_eq!(sectors(&lanes(|_| 4096), FULL, 4), 1);
        assert_eq!(sectors(&lanes(|i| 4100 + 4 * i), FULL, 4), 5);
        assert_eq!(sectors(&lanes(|i| 8192 - 4 * i), FULL, 4), 5);
        assert_eq!(sectors(&lanes(|i| 4096 + 128 * i), FULL, 4), 32);
        // Lanes that are not active do not count.
        assert_eq!(sectors(&lanes(|i| 4096 + 128 * i), 0x0f0, 4), 4);
        assert_eq!(sectors(&lanes(|i| 4096 + 128 * i), 0, 4), 0);
        // Ascending and descending, with repeated addresses.
        assert_eq!(sectors(&lanes(|i| 4096 + 32 * (i / 4)), FULL, 4), 8);
        assert_eq!(sectors(&lanes(|i| 8192 - 32 * (i % 8)), FULL, 4), 8);
        assert_eq!(sectors(&lanes(|i| 4100 + 4 * (i % 16)), FULL, 4), 3);
        assert_eq!(bytes(&lanes(|i| 4100 + 4 * (i % 16)), FULL, 4), 64);
        assert_eq!(sectors(&lanes(|i| 4096 + 4000 * (i % 3)), FULL, 8), 3);
        // More than a sector per lane.
        assert_eq!(sectors(&lanes(|i| 4096 + 64 * i), FULL, 64), 64);
    }

    #[test]
    fn conflicts_are_passes_beyond_the_width() {
        let all = |address: &dyn Fn(u64) -> u64, bytes| {
            let Wavefronts { all, ideal } = wavefronts(&lanes(address), FULL, bytes);
            (all, ideal)
        };
        assert_eq!(all(&|i| 4 * i, 4), (1, 1));
        assert_eq!(all(&|_| 12, 4), (1, 1));
        assert_eq!(all(&|i| 8 * i, 4), (2, 1));
        assert_eq!(all(&|i| 128 * i, 4), (32, 1));
        assert_eq!(all(&|i| 132 * i, 4), (1, 1));
        assert_eq!(all(&|i| i, 1), (1, 1));
        assert_eq!(all(&|i| 4 * (i % 16) + 128 * (i / 16), 4), (2, 1));
        assert_eq!(all(&|i| 8 * i, 8), (2, 2));
        assert_eq!(all(&|i| 16 * i, 16), (4, 4));
        assert_eq!(all(&|i| 16 * i, 8), (4, 2));
        assert_eq!(wavefronts(&lanes(|i| 128 * i), 0x7, 4), Wavefronts { all: 3, ideal: 1 });
    }

    #[test]
    fn wide_accesses_of_neighbours_are_made_together() {
        let all = |address: &dyn Fn(u64) -> u64, bytes| {
            let Wavefronts { all, ideal } = wavefronts(&lanes(address), FULL, bytes);
            (all, ideal)
        };
        assert_eq!(all(&|_| 64, 8), (1, 1));
        assert_eq!(all(&|i| 8 * (i / 2), 8), (1, 1));
        assert_eq!(all(&|i| 64 * (i / 16), 16), (2, 2));
        assert_eq!(all(&|i| 16 * (i % 16), 16), (4, 4));
    }

    #[test]
    fn bytes_are_counted_once_per_request() {
        assert_eq!(bytes(&lanes(|i| 4096 + 4 * i), FULL, 4), 128);
        assert_eq!(bytes(&lanes(|_| 4096), FULL, 16), 16);
        assert_eq!(bytes(&lanes(|i| 4096 - 8 * (i % 4)), 0xff, 8), 32);
        assert_eq!(bytes(&lanes(|_| 4096), 0, 16), 0);
    }

    #[test]
    fn atomic_operations_take_turns() {
        assert_eq!(atomic_sectors(&lanes(|i| 4096 + 4 * i), FULL), 4);
        assert_eq!(atomic_sectors(&lanes(|i| 4096 + 4 * (i % 8)), FULL), 4);
        assert_eq!(atomic_sectors(&lanes(|i| 4096 + 4 * (i / 2)), FULL), 4);
        assert_eq!(atomic_sectors(&lanes(|_| 4096), 0xf), 4);
    }
}
