//! Reads files and folders below the root: `/`, or a folder that a test chooses.

use std::fs;
use std::path::{Path, PathBuf};

/// Returns the path below the root for this absolute path.
pub(super) fn below(root: &Path, path: &str) -> PathBuf {
    root.join(path.trim_start_matches('/'))
}

/// Removes the root from a path; a path outside the root is unchanged.
pub(super) fn display(root: &Path, path: &Path) -> String {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    path.strip_prefix(root)
        .map_or_else(|_| text(path), |rest| format!("/{}", text(rest)))
}

/// Returns the text of a file below the root, or `None` if it cannot be read.
pub(super) fn read(root: &Path, path: &str) -> Option<String> {
    let bytes = fs::read(below(root, path)).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the names in a folder below the root, sorted; none if it cannot be read.
pub(super) fn names(root: &Path, folder: &str) -> Vec<String> {
    let Ok(entries) = fs::read_dir(below(root, folder)) else {
        return Vec::new();
    };
    let mut names: Vec<String> = entries
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}
