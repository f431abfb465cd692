//! A hash map for names and other short keys.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A fast hasher for short byte strings, and for one or two integers. It does not resist chosen collisions: a text made
/// for it can take time quadratic in its length.
#[derive(Default)]
pub(crate) struct FastHasher(u64);

impl FastHasher {
    fn mix(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(5) ^ value).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

impl Hasher for FastHasher {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }

    fn write(&mut self, bytes: &[u8]) {
        let mut chunks = bytes.chunks_exact(8);
        for chunk in &mut chunks {
            self.mix(chunk.iter().rev().fold(0, |v, &b| v << 8 | u64::from(b)));
        }
        let rest = chunks.remainder();
        self.mix(rest.iter().fold(rest.len() as u64, |v, &b| v << 8 | u64::from(b)));
    }

    fn write_u32(&mut self, value: u32) {
        self.mix(u64::from(value));
    }
}

/// A `HashMap` with [`FastHasher`].
pub(crate) type FastMap<K, V> = HashMap<K, V, BuildHasherDefault<FastHasher>>;
