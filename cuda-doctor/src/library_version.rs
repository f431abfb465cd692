//! Parses driver versions in the names of library files.

use std::path::Path;

/// Returns the driver's version from a library's file name: `580.159.04` for `libcuda.so.580.159.04`. The names
/// `libcuda.so.1` and, on WSL and Jetson boards, `libcuda.so.1.1` contain none.
pub(crate) fn library_version(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let version = name.strip_prefix("libcuda.so.")?;
    let (major, rest) = version.split_once('.')?;
    let is_driver = major.len() >= 3
        && major
            .bytes()
            .chain(rest.bytes())
            .all(|b| b.is_ascii_digit() || b == b'.');
    is_driver.then(|| version.to_owned())
}
