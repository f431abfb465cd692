//! Requests of a warp to memory: the sectors of global memory and the banks of shared memory that they access.

#![forbid(unsafe_code)]

use crate::lanes::{self, LANES, Lanes, Mask};

/// Bytes of a sector, as a power of two.
const SECTOR_SHIFT: u32 = 5;
/// Banks of shared memory, each of 4 bytes.
const BANKS: usize = 32;

/// Returns the number of sectors that a request accesses, if each lane accesses `bytes` bytes.
pub(super) fn sectors(addresses: &Lanes<u64>, mask: Mask, bytes: u32) -> u64 {
    if mask == 0 || bytes == 0 {
        return 0;
    }
    let last = u64::from(bytes - 1);
    let first = addresses[mask.trailing_zeros() as usize % LANES];
    // Lanes that are not active count as the first active lane.
    let mut sectors = [0u64; LANES];
    let mut crosses = 0;
    for i in 0..LANES {
        let address = if mask >> i & 1 == 1 { addresses[i] } else { first };
        sectors[i] = address >> SECTOR_SHIFT;
        crosses |= (address.wrapping_add(last) >> SECTOR_SHIFT) ^ sectors[i];
    }
    if crosses != 0 {
        return wide_sectors(addresses, mask, last);
    }
    distinct(sectors)
}

/// Returns the number of distinct values.
fn distinct(mut values: [u64; LANES]) -> u64 {
    let (mut ascends, mut steps) = (true, 1);
    for i in 1..LANES {
        ascends &= values[i] >= values[i - 1];
        steps += u64::from(values[i] != values[i - 1]);
    }
    if ascends {
        return steps;
    }
    values.sort_unstable();
    1 + values.windows(2).filter(|w| w[0] != w[1]).count() as u64
}

/// Returns the number of sectors of a request whose lanes access more than one sector each.
fn wide_sectors(addresses: &Lanes<u64>, mask: Mask, last: u64) -> u64 {
    let mut all: Vec<u64> = lanes::iter(mask)
        .flat_map(|i| addresses[i] >> SECTOR_SHIFT..=addresses[i].saturating_add(last) >> SECTOR_SHIFT)
        .collect();
    all.sort_unstable();
    all.dedup();
    all.len() as u64
}

/// The passes of a request through the banks of shared memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Wavefronts {
    /// Number of passes.
    pub(super) all: u64,
    /// Number of passes without conflicts, which the width of the access needs.
    pub(super) ideal: u64,
}

/// Returns the passes of a request to shared memory. Lanes that access the same word do not conflict. An access of 8
/// bytes is made for 16 lanes at a time, one of 16 bytes for 8 lanes.
pub(super) fn wavefronts(addresses: &Lanes<u64>, mask: Mask, bytes: u32) -> Wavefronts {
    let together = match bytes {
        0..=4 => 32,
        5..=8 => 16,
        _ => 8,
    };
    let mut sum = Wavefronts::default();
    let mut group = if together == 32 { Mask::MAX } else { (1 << together) - 1 };
    for _ in 0..LANES / together {
        let active = mask & group;
        if active != 0 {
            sum.all += passes(addresses, active, bytes);
            sum.ideal += 1;
        }
        group = group.checked_shl(together as u32).unwrap_or(0);
    }
    sum
}

/// Returns the passes of lanes whose accesses are made together: the most words that they access in one bank.
fn passes(addresses: &Lanes<u64>, mask: Mask, bytes: u32) -> u64 {
    let words = u64::from(bytes.div_ceil(4).max(1));
    // Fast paths: every lane has banks of its own, or all have the same address.
    let (mut banks, mut count, mut same) = (0u32, 0, true);
    let first = addresses[mask.trailing_zeros() as usize % LANES];
    let ones = ((1u64 << words) - 1) as u32;
    for i in lanes::iter(mask) {
        let bank = (addresses[i] >> 2) as u32 % BANKS as u32;
        banks |= ones.rotate_left(bank);
        count += words as u32;
        same &= addresses[i] == first;
    }
    if same || banks.count_ones() == count {
        return 1;
    }
    let mut words: Vec<u64> = lanes::iter(mask)
        .flat_map(|i| (0..words).map(move |w| (addresses[i] >> 2) + w))
        .collect();
    words.sort_unstable();
    words.dedup();
    let mut in_bank = [0u64; BANKS];
    for word in words {
        in_bank[word as usize % BANKS] += 1;
    }
    in_bank.into_iter().max().unwrap_or(1)
}

/// Returns the number of lanes whose address is also accessed by a lower lane.
pub(super) fn repeated(addresses: &Lanes<u64>, mask: Mask) -> u64 {
    let mut all = [0; LANES];
    let mut count = 0;
    for i in lanes::iter(mask) {
        all[count] = addresses[i];
        count += 1;
    }
    let all = &mut all[..count];
    all.sort_unstable();
    all.windows(2).filter(|w| w[0] == w[1]).count() as u64
}

#[cfg(test)]
mod tests {
    use super::{Wavefronts, repeated, sectors, wavefronts};
    use crate::lanes::{FULL, Lanes};

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
    fn atomic_operations_conflict_at_one_address() {
        assert_eq!(repeated(&lanes(|_| 64), FULL), 31);
        assert_eq!(repeated(&lanes(|i| 4 * i), FULL), 0);
        assert_eq!(repeated(&lanes(|i| 4 * (i % 8)), FULL), 24);
        assert_eq!(repeated(&lanes(|i| i / 2), 0b111), 1);
    }
}
