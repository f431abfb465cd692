//! `cargo xtask results`: compares the result codes in `annotations.toml` with the manual, and the deprecated functions
//! with the header.
//!
//! NVIDIA makes the manual from the comments in `cuda.h`. Only the names of codes are read from these comments.

use std::collections::{BTreeMap, BTreeSet};

use crate::bindings::registry::{Entry, StreamMode};
use crate::files::read;
use crate::headers;
use crate::registry::Registry;

/// Returns an error that lists the functions that differ.
pub(crate) fn run() -> Result<(), String> {
    let header = read(&headers::current()?.join("cuda.h"))?;
    let (manual, marked) = (documented(&header), deprecated(&header));
    let registry = Registry::read()?;
    let annotations = &registry.annotations;
    let (mut compared, mut wrong) = (0, Vec::new());
    for entry in &registry.functions {
        if entry.stream == StreamMode::PerThread || !annotations.describes(&entry.symbol) {
            continue;
        }
        let ours = annotations.results(&entry.symbol);
        let Some(theirs) = of(entry, &manual) else {
            if !ours.is_empty() {
                wrong.push(format!("[{}] has `results`, but is not in the manual", entry.symbol));
            }
            continue;
        };
        compared += 1;
        let ours_is = entry.group.ends_with("_DEPRECATED");
        let theirs_is = own_names(entry).any(|name| marked.contains(name));
        if ours_is != theirs_is {
            let (one, other) = if ours_is { ("is", "is not") } else { ("is not", "is") };
            wrong.push(format!(
                "[{}] {one} in a group of deprecated functions, but {other} marked as deprecated in the header",
                entry.symbol
            ));
        }
        let only = |one: &BTreeSet<String>, other: &BTreeSet<String>| {
            one.difference(other).cloned().collect::<Vec<_>>().join(", ")
        };
        if ours != *theirs {
            wrong.push(format!(
                "[{}] lacks {{{}}}, and lists {{{}}}, which the manual does not list",
                entry.symbol,
                only(theirs, &ours),
                only(&ours, theirs)
            ));
        }
    }
    if wrong.is_empty() {
        let release = headers::current_release()?;
        println!("the result codes and deprecations of {compared} functions are those of the {release} header");
        return Ok(());
    }
    Err(format!("annotations.toml:\n  {}", wrong.join("\n  ")))
}

/// Returns the manual's codes for an export: under its own name, a plain name, or its base name.
fn of<'a>(entry: &Entry, manual: &'a BTreeMap<String, BTreeSet<String>>) -> Option<&'a BTreeSet<String>> {
    own_names(entry).find_map(|name| manual.get(name))
}

/// Returns the names that an export may have in the header.
fn own_names(entry: &Entry) -> impl Iterator<Item = &String> {
    let own = std::iter::once(&entry.symbol).chain(&entry.aliases);
    own.chain([&entry.base])
}

/// Returns the functions that the header marks as deprecated.
fn deprecated(header: &str) -> BTreeSet<String> {
    let marked = header.split("__CUDA_DEPRECATED").skip(1);
    marked
        .filter_map(|rest| rest.trim_start().strip_prefix("CUresult CUDAAPI"))
        .map(|rest| {
            let name = rest.trim_start().chars();
            name.take_while(|c| c.is_alphanumeric() || *c == '_').collect()
        })
        .collect()
}

/// Returns the codes in the comment before each declaration. The first declaration of a name is the documented one.
fn documented(header: &str) -> BTreeMap<String, BTreeSet<String>> {
    const DECLARATION: &str = "CUresult CUDAAPI";
    let mut found = BTreeMap::new();
    for (at, _) in header.match_indices(DECLARATION) {
        let rest = header[at + DECLARATION.len()..].trim_start();
        let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        let Some((before, comment)) = header[..at].rsplit_once("/**") else {
            continue;
        };
        let Some((comment, between)) = comment.split_once("*/") else {
            continue;
        };
        // Only preprocessor lines and marks may be between the comment and the declaration.
        let is_own = between.lines().all(|line| {
            let line = line.trim();
            line.is_empty() || line.starts_with('#') || line.starts_with("__CUDA_DEPRECATED")
        });
        if before.is_empty() || !is_own {
            continue;
        }
        let codes = comment
            .split_once("\\return")
            .map_or("", |(_, rest)| until(rest, &["\\note", "\\sa"]));
        let codes = codes.split("::CUDA_ERROR_").skip(1).map(|code| {
            code.chars()
                .take_while(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || *c == '_')
                .collect()
        });
        found.entry(name).or_insert_with(|| codes.collect());
    }
    found
}

/// Returns the part of a text before the first of some words.
fn until<'a>(text: &'a str, ends: &[&str]) -> &'a str {
    let end = ends.iter().filter_map(|end| text.find(end)).min();
    &text[..end.unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    use super::{deprecated, documented};

    #[test]
    fn codes_are_read() {
        let header = "\
#define x
/**
 * \\brief ::CUDA_ERROR_NOT_THIS
 * \\return
 * ::CUDA_SUCCESS,
 * ::CUDA_ERROR_INVALID_VALUE,
 * ::CUDA_ERROR_NOT_FOUND
 * \\note ::CUDA_ERROR_NOR_THIS
 */
#if 1
CUresult CUDAAPI cuA(int x);
CUresult CUDAAPI cuB(int x);
/** \\return ::CUDA_SUCCESS */
CUresult CUDAAPI cuC(void);
CUresult CUDAAPI cuA(void);
";
        let found = documented(header);
        let names: Vec<&str> = found.keys().map(String::as_str).collect();
        assert_eq!(names, ["cuA", "cuC"]);
        let codes: Vec<&str> = found["cuA"].iter().map(String::as_str).collect();
        assert_eq!(codes, ["INVALID_VALUE", "NOT_FOUND"]);
        assert!(found["cuC"].is_empty());
    }

    #[test]
    fn marks_are_read() {
        let header = "\
#define __CUDA_DEPRECATED
__CUDA_DEPRECATED CUresult CUDAAPI cuA(int x);
CUresult CUDAAPI cuB(int x);
__CUDA_DEPRECATED
CUresult CUDAAPI cuC_v2(void);
";
        let found: Vec<String> = deprecated(header).into_iter().collect();
        assert_eq!(found, ["cuA", "cuC_v2"]);
    }
}
