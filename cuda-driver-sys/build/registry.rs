//! The facts of the registry that no signature tells: base name, CUDA version, default-stream mode, plain name.

use std::collections::{BTreeMap, BTreeSet};

use super::model::Declaration;

/// How an export treats the default stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreamMode {
    /// It has one form only.
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
    /// What `cuGetProcAddress` calls it, for instance `cuMemcpyHtoD`.
    pub(crate) base: String,
    /// The CUDA version that introduced it, for instance 12050.
    pub(crate) since: u32,
    /// How it treats the default stream.
    pub(crate) stream: StreamMode,
    /// Plain C names that mean this export, other than its own.
    pub(crate) aliases: Vec<String>,
    /// Its own name is a plain name that means another export.
    pub(crate) legacy: bool,
    /// Names and Rust types.
    pub(crate) parameters: Vec<(String, String)>,
}

/// Symbol without `_ptds`/`_ptsz`, and that suffix.
pub(crate) fn split_stream(symbol: &str) -> (&str, &str) {
    for suffix in ["_ptds", "_ptsz"] {
        if let Some(rest) = symbol.strip_suffix(suffix) {
            return (rest, suffix);
        }
    }
    (symbol, "")
}

/// Name without `_vN`, and N, which is 1 where there is none.
pub(crate) fn split_version(name: &str) -> (&str, u32) {
    if let Some((base, digits)) = name.rsplit_once("_v") {
        if let Ok(version) = digits.parse() {
            return (base, version);
        }
    }
    (name, 1)
}

/// Which of the function-pointer types of `cudaTypedefs.h` there are: (base, stream suffix) → ascending versions.
fn typedef_versions(typedefs: &str) -> Result<BTreeMap<(String, String), Vec<u32>>, String> {
    let mut found: BTreeMap<(String, String), BTreeSet<u32>> = BTreeMap::new();
    for line in typedefs
        .lines()
        .filter(|line| line.trim_start().starts_with("typedef CUresult"))
    {
        let Some(name) = line
            .split("*PFN_")
            .nth(1)
            .and_then(|rest| rest.split(')').next())
        else {
            continue;
        };
        let (rest, suffix) = split_stream(name);
        let (base, version) = split_version(rest);
        if version < 2000 {
            return Err(format!("PFN_{name} carries no CUDA version"));
        }
        found
            .entry((base.to_owned(), suffix.to_owned()))
            .or_default()
            .insert(version);
    }
    Ok(found
        .into_iter()
        .map(|(key, versions)| (key, versions.into_iter().collect()))
        .collect())
}

/// Plain name → export that a header's own `#define`s make of it, per-thread suffixes apart.
pub(crate) fn defined_aliases(header: &str) -> BTreeMap<String, String> {
    let mut aliases = BTreeMap::new();
    for line in header.lines() {
        let mut words = line
            .trim_start()
            .strip_prefix('#')
            .unwrap_or("")
            .split_whitespace();
        let (Some("define"), Some(name), Some(target)) = (words.next(), words.next(), words.next())
        else {
            continue;
        };
        let target = target
            .trim_start_matches("__CUDA_API_PTDS(")
            .trim_start_matches("__CUDA_API_PTSZ(");
        let target = split_stream(target.trim_end_matches(')')).0;
        if name.starts_with("cu") && !name.contains('(') && target.starts_with("cu") {
            aliases
                .entry(name.to_owned())
                .or_insert_with(|| target.to_owned());
        }
    }
    aliases
}

/// Whether a header declares a function of that name, or defines an alias of it.
fn knows(header: &str, name: &str) -> bool {
    header.match_indices(name).any(|(at, _)| {
        let before = header[..at].chars().next_back();
        let after = header[at + name.len()..]
            .trim_start_matches([' ', '\t'])
            .chars()
            .next();
        let whole = !before.is_some_and(|c| c.is_alphanumeric() || c == '_');
        whole && after == Some('(')
    })
}

/// The registry of everything that `declared` exports.
///
/// The k-th smallest CUDA version of a base name is its k-th variant among those that exist with the same stream
/// suffix (24 bases have no unnumbered `_ptds`). A plain name means what a C program gets from the CUDA 12 header
/// (`frozen`), and for functions which that one does not have, the first variant.
///
/// # Errors
/// An export without a version, or a version without an export.
pub(crate) fn derive(
    declared: &[Declaration],
    typedefs: &str,
    frozen: &str,
) -> Result<Vec<Entry>, String> {
    let versions = typedef_versions(typedefs)?;
    let symbols: BTreeSet<&str> = declared.iter().map(|d| d.name.as_str()).collect();
    let mut variants: BTreeMap<(&str, &str), Vec<(u32, &str)>> = BTreeMap::new();
    for symbol in &symbols {
        let (rest, suffix) = split_stream(symbol);
        let (base, number) = split_version(rest);
        variants
            .entry((base, suffix))
            .or_default()
            .push((number, symbol));
    }
    let mut since: BTreeMap<&str, u32> = BTreeMap::new();
    for ((base, suffix), list) in &mut variants {
        list.sort_unstable();
        let known = versions.get(&((*base).to_owned(), (*suffix).to_owned()));
        let known = known.map_or(&[][..], Vec::as_slice);
        if known.len() != list.len() {
            return Err(format!(
                "{base}{suffix}: cuda.h has {} variants, cudaTypedefs.h has {} versions",
                list.len(),
                known.len()
            ));
        }
        for ((_, symbol), version) in list.iter().zip(known) {
            since.insert(symbol, *version);
        }
    }
    let plain = plain_names(&variants, &symbols, frozen)?;
    let mut entries = Vec::new();
    for declaration in declared {
        let symbol = declaration.name.as_str();
        let (rest, suffix) = split_stream(symbol);
        let twin = ["_ptds", "_ptsz"]
            .iter()
            .any(|s| symbols.contains(format!("{symbol}{s}").as_str()));
        entries.push(Entry {
            symbol: symbol.to_owned(),
            base: split_version(rest).0.to_owned(),
            since: since[symbol],
            stream: match (suffix.is_empty(), twin) {
                (false, _) => StreamMode::PerThread,
                (true, true) => StreamMode::Legacy,
                (true, false) => StreamMode::None,
            },
            aliases: plain
                .iter()
                .filter(|(name, target)| target.as_str() == symbol && name.as_str() != symbol)
                .map(|(name, _)| name.clone())
                .collect(),
            legacy: plain.get(symbol).is_some_and(|target| target != symbol),
            parameters: declaration.parameters.clone(),
        });
    }
    Ok(entries)
}

/// Every plain name and what it means.
fn plain_names(
    variants: &BTreeMap<(&str, &str), Vec<(u32, &str)>>,
    symbols: &BTreeSet<&str>,
    frozen: &str,
) -> Result<BTreeMap<String, String>, String> {
    let defined = defined_aliases(frozen);
    let mut plain = BTreeMap::new();
    for ((base, suffix), list) in variants {
        if !suffix.is_empty() {
            continue;
        }
        let target = match defined.get(*base) {
            Some(target) => target.as_str(),
            None if knows(frozen, base) => base,
            None => list.first().map_or(*base, |(_, first)| first),
        };
        if !symbols.contains(target) {
            return Err(format!(
                "the plain name {base} means {target}, which is not exported"
            ));
        }
        plain.insert((*base).to_owned(), target.to_owned());
    }
    Ok(plain)
}
