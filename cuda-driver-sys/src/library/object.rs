//! A shared object that the system loaded.

use core::ffi::{CStr, c_void};
use std::path::Path;

/// A loaded shared object; it is never closed.
#[derive(Debug)]
pub(crate) struct Object(imp::Library);

impl Object {
    /// Loads a file. A bare name is looked for by the system's loader; anything else must be a regular file, because
    /// opening a pipe would hang.
    pub(crate) fn open(path: &Path) -> Result<Self, String> {
        // The system's loader would take it for the program itself.
        if path.as_os_str().is_empty() {
            return Err("an empty path names no file".to_owned());
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
        // Absolute, so that it stays its path when the current folder is another; on Windows it must be.
        let path = std::path::absolute(path).map_err(|error| error.to_string())?;
        imp::open(&path).map(Self)
    }

    /// The address of an exported symbol, or null.
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

    /// Keeps the object in memory whatever happens to its handle.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    const RTLD_NODELETE: c_int = 0x1000;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    const RTLD_NODELETE: c_int = 0;

    pub(super) fn open(path: &Path) -> Result<Library, String> {
        // SAFETY: whoever named the path vouches for what the file does when it is loaded; the system's own driver
        // is taken at its word, as every program does.
        let opened = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) };
        opened.map_err(|error| error.to_string())
    }

    pub(super) fn symbol(library: &Library, name: &CStr) -> *const c_void {
        // SAFETY: the symbol's address is only taken here; whoever calls it vouches for its type.
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
        LOAD_LIBRARY_SEARCH_DEFAULT_DIRS, LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR,
        LOAD_LIBRARY_SEARCH_SYSTEM32,
    };

    // Without its suffix on x86, which kernel32 does not export its functions with.
    #[cfg_attr(
        target_arch = "x86",
        link(
            name = "kernel32",
            kind = "raw-dylib",
            import_name_type = "undecorated"
        )
    )]
    #[cfg_attr(not(target_arch = "x86"), link(name = "kernel32", kind = "raw-dylib"))]
    unsafe extern "system" {
        fn GetSystemDirectoryW(buffer: *mut u16, size: u32) -> u32;
    }

    /// System32.
    fn system_folder() -> Option<PathBuf> {
        let mut name = [0u16; 260];
        // SAFETY: the buffer is as long as the call is told.
        let length = unsafe { GetSystemDirectoryW(name.as_mut_ptr(), name.len() as u32) };
        let name = name
            .get(..length as usize)
            .filter(|name| !name.is_empty())?;
        Some(OsString::from_wide(name).into())
    }

    pub(super) fn open(path: &Path) -> Result<Library, String> {
        // A bare name comes from the system folder and from nowhere else: as a path, because for a name alone Windows
        // takes whatever library of that name is loaded already. A path is the named file, whose neighbours it may need.
        let (path, flags) = if path.is_absolute() {
            (
                path.to_owned(),
                LOAD_LIBRARY_SEARCH_DEFAULT_DIRS | LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR,
            )
        } else {
            let folder = system_folder().unwrap_or_default();
            (folder.join(path), LOAD_LIBRARY_SEARCH_SYSTEM32)
        };
        // SAFETY: whoever named the path vouches for what the file does when it is loaded; the system's own driver
        // is taken at its word, as every program does.
        let opened = unsafe { Library::load_with_flags(path, flags) };
        // The system's words are in the source.
        opened.map_err(|error| match error.source() {
            Some(words) => format!("{error}: {words}"),
            None => error.to_string(),
        })
    }

    pub(super) fn symbol(library: &Library, name: &CStr) -> *const c_void {
        // SAFETY: the symbol's address is only taken here; whoever calls it vouches for its type.
        let symbol = unsafe { library.get::<*const c_void>(name.to_bytes_with_nul()) };
        symbol.map_or(core::ptr::null(), |symbol| *symbol)
    }
}

#[cfg(not(any(unix, windows)))]
mod imp {
    use core::ffi::{CStr, c_void};
    use std::path::Path;

    /// Nothing can be loaded here.
    #[derive(Debug)]
    pub(super) enum Library {}

    pub(super) fn open(_path: &Path) -> Result<Library, String> {
        Err("unsupported here: this system loads no libraries".to_owned())
    }

    pub(super) fn symbol(library: &Library, _name: &CStr) -> *const c_void {
        match *library {}
    }
}
