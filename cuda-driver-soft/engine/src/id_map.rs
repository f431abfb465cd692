//! Maps keyed by serial numbers, handles and numbers of pages. They hash faster than the standard library's maps: every
//! launch looks up several keys, and these need no protection against hash flooding.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map by serial number, handle or number of a page.
pub type IdMap<K, V> = HashMap<K, V, BuildHasherDefault<IdHasher>>;

/// Spreads an integer key over all bits of the hash.
#[derive(Clone, Copy, Debug, Default)]
pub struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, value: u64) {
        // The multiplier is the fractional part of the golden ratio, times 2^64. It spreads neighbouring keys over the
        // upper bits, which are folded into the lower ones.
        let product = (self.0 ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = product ^ product >> 32;
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }
}
