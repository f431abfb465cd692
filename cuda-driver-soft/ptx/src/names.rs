//! Interned names of PTX symbols.
//!
//! Most names in PTX end with a number: `%r1`, `%rd217`, `$L__BB0_12`, `kernel_param_3`. A name is therefore an
//! interned prefix and a number. A range of registers such as `%r<100>` is one table entry, not one for each register.

use std::hash::{Hash, Hasher};

use crate::hash::{self, NumberMap, Seeds};

/// A name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    /// Index of the interned prefix.
    pub(crate) prefix: u32,
    /// The decimal number at the end, or [`Name::PLAIN`].
    pub(crate) number: u32,
}

impl Name {
    /// The `number` of a name that does not end with one.
    pub(crate) const PLAIN: u32 = u32::MAX;
    /// The discard symbol `_`: the first name interned.
    pub(crate) const SINK: Name = Name {
        prefix: 0,
        number: Name::PLAIN,
    };
}

impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(u64::from(self.prefix) << 32 | u64::from(self.number));
    }
}

/// Interned strings. The first one is always `_`.
#[derive(Debug)]
pub(crate) struct Names {
    seeds: Seeds,
    all: Vec<Interned>,
    /// The bytes of all strings.
    bytes: Vec<u8>,
    /// A hash table with linear probing. The upper half of a slot is the upper half of a string's hash, and the lower
    /// half is the string's index plus one. A free slot is 0. The length is a power of two.
    slots: Vec<u64>,
}

/// An interned string.
#[derive(Debug)]
struct Interned {
    hash: u64,
    /// See [`hash::ends`].
    ends: [u64; 2],
    /// Offset in [`Names::bytes`].
    start: u32,
    len: u32,
}

impl Default for Names {
    fn default() -> Self {
        let mut names = Names {
            seeds: Seeds::default(),
            all: Vec::new(),
            bytes: Vec::new(),
            slots: vec![0; 64],
        };
        names.intern(b"_");
        names
    }
}

/// Mask of the half of a slot that is the upper half of a hash.
const TAG: u64 = !0 << 32;

impl Names {
    /// Returns the index of a string, or the free slot for it.
    fn search(&self, text: &[u8], hash: u64, ends: [u64; 2]) -> Result<u32, usize> {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                return Err(at);
            }
            let id = slot as u32 - 1;
            if slot & TAG == hash & TAG && self.is(id, text, ends) {
                return Ok(id);
            }
            at = (at + 1) & mask;
        }
    }

    /// Returns true if the string with this index is `text`.
    fn is(&self, id: u32, text: &[u8], ends: [u64; 2]) -> bool {
        let known = &self.all[id as usize];
        known.len as usize == text.len() && known.ends == ends && (text.len() <= 16 || self.string(id) == text)
    }

    /// Interns a string and returns its index.
    pub(crate) fn intern(&mut self, text: &[u8]) -> u32 {
        let ends = hash::ends(text);
        let hash = self.seeds.hash(text, ends);
        match self.search(text, hash, ends) {
            Ok(id) => id,
            Err(slot) => self.add(text, hash, ends, slot),
        }
    }

    #[cold]
    fn add(&mut self, text: &[u8], hash: u64, ends: [u64; 2], slot: usize) -> u32 {
        let id = self.all.len() as u32;
        self.all.push(Interned {
            hash,
            ends,
            start: self.bytes.len() as u32,
            len: text.len() as u32,
        });
        self.bytes.extend_from_slice(text);
        self.slots[slot] = hash & TAG | u64::from(id + 1);
        if self.all.len() * 2 > self.slots.len() {
            self.grow();
        }
        id
    }

    /// Doubles the hash table.
    fn grow(&mut self) {
        let mask = self.slots.len() * 2 - 1;
        self.slots.clear();
        self.slots.resize(mask + 1, 0);
        for (id, known) in (1..).zip(&self.all) {
            let mut at = known.hash as usize & mask;
            while self.slots[at] != 0 {
                at = (at + 1) & mask;
            }
            self.slots[at] = known.hash & TAG | id;
        }
    }

    /// Returns the name without the leading zeros of its number for each name that has such zeros, by its prefix: `%r4`
    /// for `%r04`. Without its zeros, the name must have an interned prefix.
    pub(crate) fn unpadded(&self) -> NumberMap<u32, Name> {
        let unpadded = |id: u32| {
            let text = self.string(id);
            let digits = text.iter().rev().take_while(|b| b.is_ascii_digit()).count();
            let (prefix, number) = text.split_at(text.len() - digits);
            let zeros = number.iter().take_while(|&&b| b == b'0').count();
            let zeros = zeros.min(digits.saturating_sub(1));
            let plain = (zeros > 0).then(|| self.find(&[prefix, &number[zeros..]].concat()))??;
            Some((id, plain))
        };
        (0..self.len() as u32).filter_map(unpadded).collect()
    }

    /// Returns the number of strings.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns the name with this spelling, and interns its prefix.
    pub(crate) fn name(&mut self, text: &[u8]) -> Name {
        let (prefix, number) = split(text);
        Name {
            prefix: self.intern(prefix),
            number,
        }
    }

    /// Returns the name with this spelling, if its prefix is interned.
    pub(crate) fn find(&self, text: &[u8]) -> Option<Name> {
        let (prefix, number) = split(text);
        let ends = hash::ends(prefix);
        let found = self.search(prefix, self.seeds.hash(prefix, ends), ends);
        found.ok().map(|prefix| Name { prefix, number })
    }

    /// Returns the string with this index.
    pub(crate) fn string(&self, id: u32) -> &[u8] {
        let Some(&Interned { start, len, .. }) = self.all.get(id as usize) else {
            return b"";
        };
        &self.bytes[start as usize..][..len as usize]
    }

    /// Returns the spelling of a name; only the first `most` bytes if its prefix has that many.
    pub(crate) fn text_up_to(&self, name: Name, most: usize) -> String {
        match self.string(name.prefix).get(..most) {
            Some(start) => String::from_utf8_lossy(start).into_owned(),
            None => self.text(name),
        }
    }

    /// Returns the spelling of a name.
    pub(crate) fn text(&self, name: Name) -> String {
        let mut text = String::from_utf8_lossy(self.string(name.prefix)).into_owned();
        if name.number != Name::PLAIN {
            text.push_str(&name.number.to_string());
        }
        text
    }
}

/// Splits a spelling into prefix and number. A number with leading zeros or more than nine digits stays in the prefix,
/// as does a number without anything before it.
fn split(text: &[u8]) -> (&[u8], u32) {
    let digits = text.iter().rev().take_while(|b| b.is_ascii_digit()).count();
    if digits == 0 || digits > 9 {
        return (text, Name::PLAIN);
    }
    let (prefix, number) = text.split_at(text.len() - digits);
    if prefix.is_empty() || (number[0] == b'0' && digits > 1) {
        return (text, Name::PLAIN);
    }
    (prefix, number.iter().fold(0, |v, &b| v * 10 + u32::from(b - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::tests::colliding_names;

    #[test]
    fn spelling_survives() {
        let mut names = Names::default();
        for text in [
            "%r1",
            "%r01",
            "%rd12345",
            "x",
            "a0",
            "$L__BB0_12",
            "v1234567890",
            "_",
            "%tid",
        ] {
            let name = names.name(text.as_bytes());
            assert_eq!(names.text(name), text);
            assert_eq!(names.find(text.as_bytes()), Some(name));
        }
        assert_ne!(names.name(b"%r1"), names.name(b"%r01"));
        let unpadded = names.unpadded();
        let [padded, plain] = [&b"%r01"[..], b"%r1"].map(|text| names.name(text));
        assert_eq!(unpadded.get(&padded.prefix), Some(&plain));
        assert_eq!(unpadded.len(), 1);
        let long = names.name(&[b'x'; 10]);
        assert_eq!(names.text_up_to(long, 4), "xxxx");
        assert_eq!(names.text_up_to(long, 11), "xxxxxxxxxx");
        assert_eq!(names.name(b"_"), Name::SINK);
        assert_eq!(names.find(b"nothing"), None);
    }

    /// The worst input for the table: names that would have one hash without the random numbers of the process.
    #[test]
    fn searches_are_short() {
        let mut names = Names::default();
        let all = colliding_names(12);
        let ids: Vec<u32> = all.iter().map(|name| names.intern(name)).collect();
        for (name, id) in all.iter().zip(&ids) {
            assert_eq!(names.string(*id), name);
            assert_eq!(names.intern(name), *id);
        }
        let mask = names.slots.len() - 1;
        let slots = names.slots.iter().enumerate().filter(|(_, slot)| **slot != 0);
        let steps = slots.map(|(at, slot)| {
            let first = names.all[*slot as u32 as usize - 1].hash as usize;
            at.wrapping_sub(first) & mask
        });
        assert!(steps.sum::<usize>() < 4 * all.len());
    }
}
