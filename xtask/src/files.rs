//! Reads and writes files of the workspace.

use std::path::{Path, PathBuf};

/// Returns the folder of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map(Path::to_owned)
        .unwrap_or_default()
}

/// Writes a file if its text changed, so that cargo rebuilds only what it must.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), String> {
    if std::fs::read_to_string(path).is_ok_and(|old| old == text) {
        return Ok(());
    }
    let parent = path.parent().ok_or("the path has no parent folder")?;
    std::fs::create_dir_all(parent).map_err(|e| format!("{}: {e}", parent.display()))?;
    std::fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}

/// Reads a text file; the error names the file.
pub(crate) fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

/// The text of one generated file.
pub(crate) struct Output {
    /// The path in the repository.
    pub(crate) path: PathBuf,
    text: String,
}

impl Output {
    pub(crate) fn new(path: impl Into<PathBuf>, text: String) -> Self {
        Self {
            path: path.into(),
            text,
        }
    }

    /// Writes the file.
    pub(crate) fn write(&self) -> Result<(), String> {
        write(&root().join(&self.path), &self.text)
    }
}
