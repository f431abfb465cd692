//! The exports of a header, with the plain names of CUDA 12.

use std::collections::{BTreeMap, BTreeSet};

use crate::bindings::model::Declaration;
use crate::bindings::registry::{Entry, entry, introduced, split_stream, variants};

/// Returns an entry for every declared function.
///
/// A plain name means the same export as in a C program with the CUDA 12 header (`frozen`); for functions that this
/// header lacks, it means the first variant.
///
/// # Errors
/// Returns an error for an export without a version, and for a plain name without an export.
pub(crate) fn registry(declared: &[Declaration], typedefs: &str, frozen: &str) -> Result<Vec<Entry>, String> {
    let symbols: BTreeSet<String> = declared.iter().map(|declaration| declaration.name.clone()).collect();
    let since = introduced(&symbols, typedefs);
    let plain = plain_names(&symbols, frozen)?;
    let known = |declaration: &Declaration| {
        Ok(entry(
            declaration,
            version_of(&declaration.name, &since)?,
            &plain,
            &symbols,
        ))
    };
    declared.iter().map(known).collect()
}

/// Returns the export of every plain name.
fn plain_names(symbols: &BTreeSet<String>, frozen: &str) -> Result<BTreeMap<String, String>, String> {
    let defined = defined_aliases(frozen);
    let mut plain = BTreeMap::new();
    for ((base, suffix), list) in variants(symbols) {
        if !suffix.is_empty() {
            continue;
        }
        let target = match defined.get(base) {
            Some(target) => target.as_str(),
            None if declares(frozen, base) => base,
            None => list.first().copied().unwrap_or(base),
        };
        if !symbols.contains(target) {
            return Err(format!("the plain name {base} means {target}, which is not exported"));
        }
        plain.insert(base.to_owned(), target.to_owned());
    }
    Ok(plain)
}

/// Returns the export, without a per-thread suffix, of every plain name that the header defines with `#define`.
fn defined_aliases(header: &str) -> BTreeMap<String, String> {
    let mut aliases = BTreeMap::new();
    for line in header.lines() {
        let mut words = line.trim_start().strip_prefix('#').unwrap_or("").split_whitespace();
        let (Some("define"), Some(name), Some(target)) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        let target = target
            .trim_start_matches("__CUDA_API_PTDS(")
            .trim_start_matches("__CUDA_API_PTSZ(");
        let target = split_stream(target.trim_end_matches(')')).0;
        if name.starts_with("cu") && !name.contains('(') && target.starts_with("cu") {
            aliases.entry(name.to_owned()).or_insert_with(|| target.to_owned());
        }
    }
    aliases
}

/// Returns true if a header declares a function or an alias of this name.
fn declares(header: &str, name: &str) -> bool {
    header.match_indices(name).any(|(at, _)| {
        let before = header[..at].chars().next_back();
        let after = header[at + name.len()..].trim_start_matches([' ', '\t']).chars().next();
        let whole = !before.is_some_and(|c| c.is_alphanumeric() || c == '_');
        whole && after == Some('(')
    })
}

/// Returns the CUDA version that introduced an export.
fn version_of(symbol: &str, since: &BTreeMap<String, u32>) -> Result<u32, String> {
    let version = since.get(symbol).copied();
    version.ok_or_else(|| format!("{symbol}: cudaTypedefs.h does not contain the CUDA version that introduced it"))
}
