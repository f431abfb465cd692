//! Reads `cuda-driver-sys/api/annotations.toml`.

use std::collections::{BTreeMap, BTreeSet};

use crate::bindings::registry::{Entry, StreamMode, split_stream};
use crate::files::{read, root};

/// CUDA 3.2, whose `_v2` exports replaced the exports of the 32-bit era, which have 32-bit addresses and sizes.
const WIDENED: u32 = 3020;

/// The annotations by symbol.
pub(crate) struct Annotations(BTreeMap<String, toml::Value>);

impl Annotations {
    /// Reads the file.
    pub(crate) fn read() -> Result<Self, String> {
        let path = root().join("cuda-driver-sys/api/annotations.toml");
        Self::parse(&read(&path)?).map_err(|e| format!("{}: {e}", path.display()))
    }

    pub(crate) fn parse(text: &str) -> Result<Self, toml::de::Error> {
        let table: toml::Table = text.parse()?;
        Ok(Self(table.into_iter().collect()))
    }

    /// Returns the symbol whose annotation applies to an export. Most exports have their own annotation. `_ptds` and
    /// `_ptsz` exports use the annotation of the twin without the suffix. Exports that are only marked as replaced,
    /// such as the exports of the 32-bit era, use the annotation of the replacement.
    fn holder<'a>(&'a self, symbol: &'a str) -> Option<&'a str> {
        let symbol = [symbol, split_stream(symbol).0]
            .into_iter()
            .find(|symbol| self.0.contains_key(*symbol))?;
        match self.replacement(symbol) {
            Some(other) if !self.describes(symbol) => (self.describes(other)).then_some(other),
            _ => Some(symbol),
        }
    }

    /// Returns the export that replaces another, according to its own annotation.
    pub(crate) fn replacement(&self, symbol: &str) -> Option<&str> {
        self.0.get(symbol)?.get("replaced_by")?.as_str()
    }

    /// Returns the result codes in a symbol's own annotation.
    pub(crate) fn results(&self, symbol: &str) -> BTreeSet<String> {
        self.0
            .get(symbol)
            .and_then(|annotation| annotation.get("results")?.as_array())
            .into_iter()
            .flatten()
            .filter_map(|code| code.as_str().map(str::to_owned))
            .collect()
    }

    /// Returns true if a symbol's own annotation describes the function.
    pub(crate) fn describes(&self, symbol: &str) -> bool {
        self.0
            .get(symbol)
            .is_some_and(|annotation| annotation.get("does").is_some())
    }

    /// Returns a symbol's own annotation.
    pub(crate) fn own(&self, symbol: &str) -> Option<&toml::Value> {
        self.0.get(symbol)
    }

    /// Returns the annotation that applies to an export.
    pub(crate) fn of(&self, symbol: &str) -> Option<&toml::Value> {
        self.0.get(self.holder(symbol)?)
    }

    /// Returns an export with the parameter names that its annotation uses: the header gives a few twins
    /// other names.
    pub(crate) fn named_as_annotated(&self, entry: &Entry, entries: &[Entry]) -> Entry {
        let mut entry = entry.clone();
        let symbol = entry.symbol.clone();
        let holder = self.holder(&symbol);
        let holder = entries.iter().find(|other| Some(other.symbol.as_str()) == holder);
        if let Some(holder) = holder.filter(|holder| holder.parameters.len() == entry.parameters.len()) {
            for ((name, _), (other, _)) in entry.parameters.iter_mut().zip(&holder.parameters) {
                name.clone_from(other);
            }
        }
        entry
    }

    /// Returns all annotations, by symbol.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&String, &toml::Value)> {
        self.0.iter()
    }

    /// Returns the manual's group of an export; empty without an annotation.
    pub(crate) fn group(&self, symbol: &str) -> &str {
        self.text(symbol, "group")
    }

    /// Returns the sentence that describes an export; empty without an annotation.
    pub(crate) fn does(&self, symbol: &str) -> &str {
        self.text(symbol, "does")
    }

    fn text(&self, symbol: &str, key: &str) -> &str {
        self.of(symbol)
            .and_then(|annotation| annotation.get(key))
            .and_then(toml::Value::as_str)
            .unwrap_or_default()
    }
}

/// Returns true if `entry` is an export of the 32-bit era that `other` replaced.
fn is_widened(entry: &Entry, other: &Entry) -> bool {
    entry.legacy && other.base == entry.base && other.since == WIDENED && other.stream != StreamMode::PerThread
}

/// Returns true if an export is of the 32-bit era.
pub(crate) fn is_32_bit(entry: &Entry, entries: &[Entry]) -> bool {
    entries.iter().any(|other| is_widened(entry, other))
}

/// Returns the word of a direction: `out` for `out[n]?`, `out:name` and `out`; `lent` for `lent@parameter`.
pub(crate) fn word(kind: &str) -> &str {
    kind.split(['[', ':', '@', '?']).next().unwrap_or(kind)
}

/// Returns the parameter that counts an array, for `out[n]`, `out[*n]` and `out[n-1]`.
pub(crate) fn counter(kind: &str) -> Option<&str> {
    let count = kind
        .split_once('[')?
        .1
        .split([']', '-'])
        .next()?
        .trim_start_matches('*');
    (!count.is_empty() && !count.starts_with(|c: char| c.is_ascii_digit())).then_some(count)
}

/// Returns the directions in an annotation, by parameter.
pub(crate) fn kinds(annotation: &toml::Value) -> BTreeMap<&str, &str> {
    let table = annotation.get("parameters").and_then(toml::Value::as_table);
    table
        .into_iter()
        .flatten()
        .filter_map(|(name, kind)| Some((name.as_str(), kind.as_str()?)))
        .collect()
}
