//! The facts about exports that are not in their signatures: base name, CUDA version, default-stream mode, plain names.

use std::collections::{BTreeMap, BTreeSet};

use super::model::Declaration;

/// The meaning of NULL as a stream for an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreamMode {
    /// No per-thread twin exists.
    None,
    /// NULL is the legacy default stream; a `_ptds` or `_ptsz` twin exists.
    Legacy,
    /// A `_ptds` or `_ptsz` export: NULL is the calling thread's own default stream.
    PerThread,
}

/// One exported symbol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The exported symbol, for instance `cuMemcpyHtoD_v2_ptds`.
    pub(crate) symbol: String,
    /// The name that `cuGetProcAddress` takes, for instance `cuMemcpyHtoD`.
    pub(crate) base: String,
    /// The CUDA version that introduced it, for instance 12050.
    pub(crate) since: u32,
    /// The meaning of NULL as a stream.
    pub(crate) stream: StreamMode,
    /// Plain names, as C programs write them, that mean this export, other than its own symbol.
    pub(crate) aliases: Vec<String>,
    /// True if its own symbol is also a plain name, and C programs that write it get another export.
    pub(crate) legacy: bool,
    /// The group in the manual, for instance `CUDA_MEM`; empty if unknown.
    pub(crate) group: String,
    /// A description in one sentence; empty if unknown.
    pub(crate) does: String,
    /// Names and Rust types of the parameters.
    pub(crate) parameters: Vec<(String, String)>,
}

/// Splits a symbol into the part before `_ptds` or `_ptsz`, and that suffix.
pub(crate) fn split_stream(symbol: &str) -> (&str, &str) {
    for suffix in ["_ptds", "_ptsz"] {
        if let Some(rest) = symbol.strip_suffix(suffix) {
            return (rest, suffix);
        }
    }
    (symbol, "")
}

/// Splits a name into the part before `_vN`, and N, which is 1 without a suffix.
pub(crate) fn split_version(name: &str) -> (&str, u32) {
    if let Some((base, digits)) = name.rsplit_once("_v") {
        if let Ok(version) = digits.parse() {
            return (base, version);
        }
    }
    (name, 1)
}

/// Returns the versions of the function-pointer types in `cudaTypedefs.h`: (base, stream suffix) → ascending versions.
fn typedef_versions(typedefs: &str) -> BTreeMap<(String, String), Vec<u32>> {
    let mut found: BTreeMap<(String, String), BTreeSet<u32>> = BTreeMap::new();
    for line in typedefs
        .lines()
        .filter(|line| line.trim_start().starts_with("typedef CUresult"))
    {
        let Some(name) = line.split("*PFN_").nth(1).and_then(|rest| rest.split(')').next()) else {
            continue;
        };
        let (rest, suffix) = split_stream(name);
        let (base, version) = split_version(rest);
        if version < 2000 {
            // The name ends in the number of a variant, not in a CUDA version.
            continue;
        }
        found
            .entry((base.to_owned(), suffix.to_owned()))
            .or_default()
            .insert(version);
    }
    found
        .into_iter()
        .map(|(key, versions)| (key, versions.into_iter().collect()))
        .collect()
}

/// Base name and stream suffix → the variants with both, oldest first.
pub(crate) type Variants<'a> = BTreeMap<(&'a str, &'a str), Vec<&'a str>>;

pub(crate) fn variants(symbols: &BTreeSet<String>) -> Variants<'_> {
    let mut variants: BTreeMap<(&str, &str), Vec<(u32, &str)>> = BTreeMap::new();
    for symbol in symbols {
        let (rest, suffix) = split_stream(symbol);
        let (base, number) = split_version(rest);
        variants.entry((base, suffix)).or_default().push((number, symbol));
    }
    let sorted = variants.into_iter().map(|(key, mut list)| {
        list.sort_unstable();
        (key, list.into_iter().map(|(_, symbol)| symbol).collect())
    });
    sorted.collect()
}

/// Returns the CUDA version that introduced each export: the k-th smallest version of a base name belongs to its k-th
/// variant with the same stream suffix. The suffixes are counted separately, because the first variant of 24 base names
/// has no twin: `cuMemcpyHtoD_v2_ptds` exists, `cuMemcpyHtoD_ptds` does not. Base names whose numbers of variants and
/// of versions differ are skipped; CUDA 12.9 has one.
pub(crate) fn introduced(symbols: &BTreeSet<String>, typedefs: &str) -> BTreeMap<String, u32> {
    let versions = typedef_versions(typedefs);
    let mut since = BTreeMap::new();
    for ((base, suffix), list) in variants(symbols) {
        let known = versions
            .get(&(base.to_owned(), suffix.to_owned()))
            .map_or(&[][..], Vec::as_slice);
        if known.len() == list.len() {
            since.extend(
                list.iter()
                    .map(|symbol| (*symbol).to_owned())
                    .zip(known.iter().copied()),
            );
        }
    }
    since
}

/// Makes the entry of an export from the plain names and the other exports.
pub(crate) fn entry(
    declaration: &Declaration,
    since: u32,
    plain: &BTreeMap<String, String>,
    symbols: &BTreeSet<String>,
) -> Entry {
    let symbol = &declaration.name;
    let (rest, suffix) = split_stream(symbol);
    let twin = ["_ptds", "_ptsz"]
        .iter()
        .any(|suffix| symbols.contains(&format!("{symbol}{suffix}")));
    Entry {
        symbol: symbol.clone(),
        base: split_version(rest).0.to_owned(),
        since,
        stream: match (suffix.is_empty(), twin) {
            (false, _) => StreamMode::PerThread,
            (true, true) => StreamMode::Legacy,
            (true, false) => StreamMode::None,
        },
        aliases: plain
            .iter()
            .filter(|(name, target)| *target == symbol && *name != symbol)
            .map(|(name, _)| name.clone())
            .collect(),
        legacy: plain.get(symbol).is_some_and(|target| target != symbol),
        group: String::new(),
        does: String::new(),
        parameters: declaration.parameters.clone(),
    }
}

/// Adds the functions of a newer header to a registry. Existing entries change only if the header adds their per-thread
/// twins: their mode becomes [`StreamMode::Legacy`]. A plain name that the registry lacks means the first variant. A
/// function without a version in the typedefs (CUDA 12.9 has one) gets the version of the header.
#[cfg(any(feature = "bindgen", test))]
pub(crate) fn extend(registry: &mut Vec<Entry>, declared: &[Declaration], typedefs: &str, version: u32) {
    let symbols: BTreeSet<String> = declared.iter().map(|declaration| declaration.name.clone()).collect();
    let known: BTreeSet<String> = registry.iter().map(|entry| entry.symbol.clone()).collect();
    if symbols.is_subset(&known) {
        return;
    }
    let since = introduced(&symbols, typedefs);
    let bases: BTreeSet<String> = registry.iter().map(|entry| entry.base.clone()).collect();
    let first: BTreeMap<String, String> = variants(&symbols)
        .into_iter()
        .filter(|((base, suffix), _)| suffix.is_empty() && !bases.contains(*base))
        .filter_map(|((base, _), list)| Some((base.to_owned(), (*list.first()?).to_owned())))
        .collect();
    let new = declared.iter().filter(|declaration| !known.contains(&declaration.name));
    for declaration in new {
        registry.push(entry(
            declaration,
            since.get(&declaration.name).copied().unwrap_or(version),
            &first,
            &symbols,
        ));
    }
    for entry in registry.iter_mut().filter(|entry| entry.stream == StreamMode::None) {
        if ["_ptds", "_ptsz"]
            .iter()
            .any(|suffix| symbols.contains(&format!("{}{suffix}", entry.symbol)))
        {
            entry.stream = StreamMode::Legacy;
        }
    }
    registry.sort_by(|a, b| a.symbol.cmp(&b.symbol));
}

/// Returns the exports in the order of the table: first those that are not [legacy](Entry::legacy), then the others.
pub(crate) fn in_order(registry: &[Entry]) -> Vec<&Entry> {
    let own = registry.iter().filter(|entry| !entry.legacy);
    own.chain(registry.iter().filter(|entry| entry.legacy)).collect()
}

/// Returns the per-thread twin of an export.
pub(crate) fn twin<'a>(entry: &Entry, registry: &'a [Entry]) -> Option<&'a str> {
    let mut symbols = registry.iter().map(|other| other.symbol.as_str());
    symbols.find(|symbol| {
        let (rest, suffix) = split_stream(symbol);
        !suffix.is_empty() && rest == entry.symbol
    })
}
