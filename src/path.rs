//! Paths as the driver takes them.

use std::ffi::CString;
use std::path::Path;

/// Returns a path as a C string, or `None` if it contains a NUL byte. On systems other than Unix, paths are not strings
/// of bytes, and the result is also `None` for a path that is not Unicode.
#[inline]
pub(crate) fn c_path(path: &Path) -> Option<CString> {
    #[cfg(unix)]
    let bytes = std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str());
    #[cfg(not(unix))]
    let bytes = path.to_str()?;
    CString::new(bytes).ok()
}
