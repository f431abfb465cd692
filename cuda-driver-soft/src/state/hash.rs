//! Maps whose keys are the driver's own serial numbers: they need no protection against chosen keys, and looks into them
//! are on the path of every launch.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map by serial number or handle.
pub(crate) type IdMap<K, V> = HashMap<K, V, BuildHasherDefault<IdHasher>>;

/// Spreads one integer over the bits that the map looks at.
#[derive(Clone, Copy, Default)]
pub(crate) struct IdHasher(u64);

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
        // The fractional bits of the golden ratio: neighbours end up far apart, in the upper bits, which are folded down.
        let product = (self.0 ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = product ^ product >> 32;
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }
}
