//! Interned names of PTX symbols.
//!
//! Most names in PTX end with a number: `%r1`, `%rd217`, `$L__BB0_12`, `kernel_param_3`. A name is therefore an
//! interned prefix and a number. A range of registers such as `%r<100>` is one table entry, not one for each register.

use crate::hash::FastMap;

/// A name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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

/// Interned strings. The first one is always `_`.
#[derive(Debug)]
pub(crate) struct Names {
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
    /// Interns a string and returns its index.
    pub(crate) fn intern(&mut self, text: &[u8]) -> u32 {
        if let Some(&id) = self.index.get(text) {
            return id;
        }
        let id = self.all.len() as u32;
        self.index.insert(text.into(), id);
        self.all.push(text.into());
        id
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
        Some(Name {
            prefix: *self.index.get(prefix)?,
            number,
        })
    }

    /// Returns the string with this index.
    pub(crate) fn string(&self, id: u32) -> &[u8] {
        self.all.get(id as usize).map_or(b"", |b| b)
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

/// Splits a spelling into prefix and number. A number with leading zeros or more than nine digits stays in the prefix.
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
