//! Loads shared objects and looks up their symbols.

use core::ffi::{CStr, c_void};
use std::path::Path;

/// A loaded shared object. It stays open as long as the [`Library`](super::Library) that owns it, which is never
/// dropped.
#[derive(Debug)]
pub(crate) struct Object(imp::Library);

impl Object {
    /// Loads a file. The system's loader searches for a bare name; a path must be a regular file, because opening a
    /// pipe would hang.
    pub(crate) fn open(path: &Path) -> Result<Self, String> {
        // The system's loader would return the program itself.
        if path.as_os_str().is_empty() {
            return Err("the path is empty".to_owned());
        }
        if path.components().count() > 1 || path.is_absolute() {
            let file = std::fs::metadata(path).map_err(|error| error.to_string())?;
            if file.is_dir() {
                return Err("is a directory, not a library".to_owned());
            }
            if !file.is_file() {
                return Err("is not a regular file".to_owned());
            }
        }
        if path.components().count() == 1 && !path.is_absolute() {
            return imp::open(path).map(Self);
        }
        // Absolute, so that the path stays valid if the current folder changes. Windows requires an absolute path.
        let path = std::path::absolute(path).map_err(|error| error.to_string())?;
        imp::open(&path).map(Self)
    }

    /// Returns the address of an exported symbol, or null.
    pub(crate) fn symbol(&self, name: &CStr) -> *const c_void {
        imp::symbol(&self.0, name)
    }
}

#[cfg(unix)]
mod imp {
    use core::ffi::{CStr, c_int, c_void};
    use std::path::Path;

    pub(super) use libloading::os::unix::Library;
    use libloading::os::unix::{RTLD_LOCAL, RTLD_NOW};

    /// Keeps the object loaded after its handle is closed.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    const RTLD_NODELETE: c_int = 0x1000;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    const RTLD_NODELETE: c_int = 0;

    pub(super) fn open(path: &Path) -> Result<Library, String> {
        // SAFETY: the caller of `Source::path` guarantees that the file may be loaded; the system's driver is trusted.
        let opened = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) };
        opened.map_err(|error| error.to_string())
    }

    pub(super) fn symbol(library: &Library, name: &CStr) -> *const c_void {
        // SAFETY: only the address is used; its callers guarantee the type.
        let symbol = unsafe { library.get::<*const c_void>(name.to_bytes_with_nul()) };
        symbol.map_or(core::ptr::null(), |symbol| *symbol)
    }
}

#[cfg(windows)]
mod imp {
    use core::error::Error as _;
    use core::ffi::{CStr, c_void};
    use std::ffi::OsString;
    use std::os::windows::ffi::OsStringExt as _;
    use std::path::{Path, PathBuf};

    pub(super) use libloading::os::windows::Library;
    use libloading::os::windows::{
        LOAD_LIBRARY_SEARCH_DEFAULT_DIRS, LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR, LOAD_LIBRARY_SEARCH_SYSTEM32,
    };

    // kernel32 exports its functions without the suffix that x86 names have.
    #[cfg_attr(
        target_arch = "x86",
        link(name = "kernel32", kind = "raw-dylib", import_name_type = "undecorated")
    )]
    #[cfg_attr(not(target_arch = "x86"), link(name = "kernel32", kind = "raw-dylib"))]
    unsafe extern "system" {
        fn GetSystemDirectoryW(buffer: *mut u16, size: u32) -> u32;
    }

    /// Returns the path of System32.
    fn system_folder() -> Option<PathBuf> {
        let mut name = [0u16; 260];
        // SAFETY: the buffer has the given length.
        let length = unsafe { GetSystemDirectoryW(name.as_mut_ptr(), name.len() as u32) };
        let name = name.get(..length as usize).filter(|name| !name.is_empty())?;
        Some(OsString::from_wide(name).into())
    }

    pub(super) fn open(path: &Path) -> Result<Library, String> {
        // A bare name is loaded from System32 only. It is turned into a path, because for a bare name Windows returns
        // any library of that name that is already loaded. A library at a path may also load its dependencies from its
        // folder.
        let (path, flags) = if path.is_absolute() {
            (
                path.to_owned(),
                LOAD_LIBRARY_SEARCH_DEFAULT_DIRS | LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR,
            )
        } else {
            let folder = system_folder().unwrap_or_default();
            (folder.join(path), LOAD_LIBRARY_SEARCH_SYSTEM32)
        };
        // SAFETY: the caller of `Source::path` guarantees that the file may be loaded; the system's driver is trusted.
        let opened = unsafe { Library::load_with_flags(path, flags) };
        // The system's message is in the error's source.
        opened.map_err(|error| match error.source() {
            Some(words) => format!("{error}: {words}"),
            None => error.to_string(),
        })
    }

    pub(super) fn symbol(library: &Library, name: &CStr) -> *const c_void {
        // SAFETY: only the address is used; its callers guarantee the type.
        let symbol = unsafe { library.get::<*const c_void>(name.to_bytes_with_nul()) };
        symbol.map_or(core::ptr::null(), |symbol| *symbol)
    }
}

#[cfg(not(any(unix, windows)))]
mod imp {
    use core::ffi::{CStr, c_void};
    use std::path::Path;

    /// This system loads no libraries.
    #[derive(Debug)]
    pub(super) enum Library {}

    pub(super) fn open(_path: &Path) -> Result<Library, String> {
        Err("unsupported: this system loads no libraries".to_owned())
    }

    pub(super) fn symbol(library: &Library, _name: &CStr) -> *const c_void {
        match *library {}
    }
}
