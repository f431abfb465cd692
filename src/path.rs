//! Paths as the driver takes them.

use std::ffi::CString;
use std::path::Path;

/// Returns a path as a C string. Returns `None` if it contains a NUL byte, or is not Unicode on a system other than
/// Unix, where paths are not strings of bytes.
pub(crate) fn c_path(path: &Path) -> Option<CString> {
    #[cfg(unix)]
    let bytes = std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str());
    #[cfg(not(unix))]
    let bytes = path.to_str()?;
    CString::new(bytes).ok()
}
