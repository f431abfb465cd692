//! Names, interned.
//!
//! PTX is full of `%r1`, `%rd217`, `$L__BB0_12`, `kernel_param_3`: a name is kept as an interned prefix and the number at
//! its end, so that a range of registers is one table entry and needs no hashing per register.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A name: `prefix` is interned, `number` is the decimal number at its end ([`Name::PLAIN`] if it has none).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Name {
    pub(super) prefix: u32,
    pub(super) number: u32,
}

impl Name {
    /// The `number` of a name that does not end with one.
    pub(super) const PLAIN: u32 = u32::MAX;
    /// The discard symbol `_`: the first name interned.
    pub(super) const SINK: Name = Name {
        prefix: 0,
        number: Name::PLAIN,
    };
}

/// A hasher for short byte strings and pairs of integers. Not for hostile input at large: the tables it serves are
/// bounded by the text that is being loaded.
#[derive(Default)]
pub(super) struct FastHasher(u64);

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
        self.mix(
            rest.iter()
                .fold(rest.len() as u64, |v, &b| v << 8 | u64::from(b)),
        );
    }

    fn write_u32(&mut self, value: u32) {
        self.mix(u64::from(value));
    }
}

/// A `HashMap` with [`FastHasher`].
pub(super) type FastMap<K, V> = HashMap<K, V, BuildHasherDefault<FastHasher>>;

/// The interned prefixes (or any other strings) of a module.
#[derive(Debug)]
pub(super) struct Names {
    index: FastMap<Box<[u8]>, u32>,
    all: Vec<Box<[u8]>>,
}

impl Default for Names {
    fn default() -> Self {
        let mut names = Names {
            index: FastMap::default(),
            all: Vec::new(),
        };
        names.intern(b"_");
        names
    }
}

impl Names {
    /// The number of a string.
    pub(super) fn intern(&mut self, text: &[u8]) -> u32 {
        if let Some(&id) = self.index.get(text) {
            return id;
        }
        let id = self.all.len() as u32;
        self.index.insert(text.into(), id);
        self.all.push(text.into());
        id
    }

    /// How many strings there are.
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// The name of this spelling.
    pub(super) fn name(&mut self, text: &[u8]) -> Name {
        let (prefix, number) = split(text);
        Name {
            prefix: self.intern(prefix),
            number,
        }
    }

    /// The name of this spelling, if it occurs.
    pub(super) fn find(&self, text: &[u8]) -> Option<Name> {
        let (prefix, number) = split(text);
        Some(Name {
            prefix: *self.index.get(prefix)?,
            number,
        })
    }

    /// The string of this number.
    pub(super) fn string(&self, id: u32) -> &[u8] {
        self.all.get(id as usize).map_or(b"", |b| b)
    }

    /// The spelling of a name.
    pub(super) fn text(&self, name: Name) -> String {
        let mut text = String::from_utf8_lossy(self.string(name.prefix)).into_owned();
        if name.number != Name::PLAIN {
            text.push_str(&name.number.to_string());
        }
        text
    }
}

/// Prefix and number. A number with leading zeros, or one that does not fit, stays in the prefix.
fn split(text: &[u8]) -> (&[u8], u32) {
    let digits = text.iter().rev().take_while(|b| b.is_ascii_digit()).count();
    if digits == 0 || digits > 9 {
        return (text, Name::PLAIN);
    }
    let (prefix, number) = text.split_at(text.len() - digits);
    if prefix.is_empty() || (number[0] == b'0' && digits > 1) {
        return (text, Name::PLAIN);
    }
    (
        prefix,
        number.iter().fold(0, |v, &b| v * 10 + u32::from(b - b'0')),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(names.name(b"_"), Name::SINK);
        assert_eq!(names.find(b"nothing"), None);
    }
}
