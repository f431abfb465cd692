//! Hashes of names and numbers that come from a text.
//!
//! The hashes depend on random numbers that each process chooses, so nobody can write a text whose names collide.
//! Loading such a text would take time quadratic in its length.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::OnceLock;

/// Random numbers that are the same for the whole process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seeds([u64; 2]);

impl Default for Seeds {
    fn default() -> Self {
        static SEEDS: OnceLock<Seeds> = OnceLock::new();
        *SEEDS.get_or_init(|| Seeds([0, 1].map(|number: u64| RandomState::new().hash_one(number))))
    }
}

/// The fractional part of the golden ratio, times 2^64.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Returns the exclusive or of the two halves of a product. It depends on all bits of both numbers.
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// Returns two numbers that, with the length, determine a string of at most 16 bytes.
pub(crate) fn ends(text: &[u8]) -> [u64; 2] {
    if let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) {
        return [u64::from_le_bytes(*first), u64::from_le_bytes(*last)];
    }
    if let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) {
        return [first, last].map(|bytes| u64::from(u32::from_le_bytes(*bytes)));
    }
    match text {
        [] => [0, 0],
        [first, .., last] => [u64::from(*first) << 8 | u64::from(text[1]), u64::from(*last)],
        [only] => [u64::from(*only), 0],
    }
}

impl Seeds {
    /// Returns the hash of a string whose [`ends`] are given.
    pub(crate) fn hash(self, text: &[u8], ends: [u64; 2]) -> u64 {
        let Seeds([first, second]) = self;
        // The multiplier keeps strings of different lengths apart.
        let mut hash = first ^ (text.len() as u64).wrapping_mul(MULTIPLIER);
        if text.len() > 16 {
            for chunk in text.as_chunks::<16>().0 {
                let [low, high] = self::ends(chunk);
                hash = fold(low ^ hash, high ^ second);
            }
            // The bytes after the last whole chunk are among the last sixteen.
            if let Some(last) = text.last_chunk::<16>() {
                let [low, high] = self::ends(last);
                return fold(low ^ hash, high ^ second);
            }
        }
        fold(ends[0] ^ hash, ends[1] ^ second)
    }
}

impl BuildHasher for Seeds {
    type Hasher = NumberHasher;

    fn build_hasher(&self) -> NumberHasher {
        let Seeds([hash, seed]) = *self;
        NumberHasher { hash, seed }
    }
}

/// A fast hasher for numbers.
pub(crate) struct NumberHasher {
    hash: u64,
    seed: u64,
}

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        // One product spreads the upper bits of a number too little.
        fold(self.hash, MULTIPLIER)
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        self.hash = fold(self.hash ^ value, self.seed);
    }
}

/// A map whose keys are numbers or consist of numbers.
pub(crate) type NumberMap<K, V> = HashMap<K, V, Seeds>;

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::{HashMap, HashSet};

    use super::*;

    /// A step of a hash without random numbers, which fast hashers of other libraries use.
    fn step(hash: u64, value: u64) -> u64 {
        (hash.rotate_left(5) ^ value).wrapping_mul(0x517c_c1b7_2722_0a95)
    }

    fn without_seed(name: &[u8]) -> u64 {
        let (chunks, _) = name.as_chunks::<8>();
        chunks
            .iter()
            .fold(0, |hash, chunk| step(hash, u64::from_le_bytes(*chunk)))
    }

    /// Returns two letters whose exclusive or is `bits`.
    fn letters(bits: u8) -> Option<[u8; 2]> {
        let first = (b'a'..=b'z').find(|letter| (letter ^ bits).is_ascii_alphabetic())?;
        Some([first, first ^ bits])
    }

    /// Returns two strings of 16 letters that take the hash without seed from this state to equal states.
    fn pair(state: u64) -> [[u8; 16]; 2] {
        let mut known: HashMap<u64, [u8; 8]> = HashMap::new();
        for number in 0u64.. {
            let first: [u8; 8] = std::array::from_fn(|i| b'a' + (number >> (4 * i) & 15) as u8);
            let mixed = step(state, u64::from_le_bytes(first)).rotate_left(5);
            // If the states agree in the upper bits of each byte, eight more letters can make them equal.
            let Some(other) = known.insert(mixed & 0xc0c0_c0c0_c0c0_c0c0, first) else {
                continue;
            };
            let difference = mixed ^ step(state, u64::from_le_bytes(other)).rotate_left(5);
            let seconds: Option<Vec<[u8; 2]>> = difference.to_le_bytes().into_iter().map(letters).collect();
            if let Some(seconds) = seconds {
                let join = |start: [u8; 8], which: usize| -> [u8; 16] {
                    std::array::from_fn(|i| if i < 8 { start[i] } else { seconds[i - 8][which] })
                };
                return [join(first, 0), join(other, 1)];
            }
        }
        unreachable!("no pair collides from state {state:#x}")
    }

    /// Returns `2^pairs` names that have the same hash without seed.
    pub(crate) fn colliding_names(pairs: u32) -> Vec<Vec<u8>> {
        let mut names = vec![Vec::new()];
        for _ in 0..pairs {
            let state = without_seed(&names[0]);
            let ends = pair(state);
            let longer = names.iter().flat_map(|name| ends.map(|end| [name, &end[..]].concat()));
            names = longer.collect();
        }
        names
    }

    #[test]
    fn names_cannot_be_made_to_collide() {
        let names = colliding_names(12);
        let old: HashSet<u64> = names.iter().map(|name| without_seed(name)).collect();
        assert_eq!(old.len(), 1);
        let seeds = Seeds::default();
        let new: HashSet<u64> = names.iter().map(|name| seeds.hash(name, ends(name))).collect();
        assert_eq!(new.len(), names.len());
    }

    #[test]
    fn all_bytes_and_the_length_count() {
        let seeds = Seeds::default();
        let mut all = HashSet::new();
        let mut count = 0;
        for len in 0..50 {
            for changed in 0..=len {
                let mut text = vec![b'a'; len];
                if let Some(byte) = text.get_mut(changed) {
                    *byte = b'b';
                }
                all.insert(seeds.hash(&text, ends(&text)));
                count += 1;
            }
        }
        assert_eq!(all.len(), count);
    }

    #[test]
    fn numbers_are_spread() {
        let mut seed = 1;
        for shift in [0, 8, 16, 32, 40, 48, 52] {
            for _ in 0..20 {
                let seeds = Seeds([0, 1].map(|number| {
                    seed = step(seed, number);
                    seed
                }));
                let low: HashSet<u64> = (0..4096u64).map(|n| seeds.hash_one(n << shift) & 0xffff).collect();
                assert!(low.len() > 3500, "{} of 4096 with shift {shift}", low.len());
            }
        }
    }
}
