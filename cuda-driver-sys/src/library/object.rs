//! A shared object that the system loaded.

use core::ffi::{CStr, c_void};
use std::path::{Path, PathBuf};

/// A loaded shared object; it is never closed.
#[derive(Debug)]
pub(crate) struct Object(imp::Library);

impl Object {
    /// Loads a file. A bare name is looked for by the system's loader; anything else must be a regular file, because
    /// opening a pipe would hang.
    pub(crate) fn open(path: &Path) -> Result<Self, String> {
        if path.components().count() > 1 || path.is_absolute() {
            let file = std::fs::metadata(path).map_err(|error| error.to_string())?;
            if file.is_dir() {
                return Err("is a directory, not a library".to_owned());
            }
            if !file.is_file() {
                return Err("is not a regular file".to_owned());
            }
        }
        imp::open(path).map(Self)
    }

    /// The address of an exported symbol, or null.
    pub(crate) fn symbol(&self, name: &CStr) -> *const c_void {
        imp::symbol(&self.0, name)
    }

    /// The real path of the file that a symbol of this object lies in.
    pub(crate) fn path_of(symbol: *const c_void) -> Option<PathBuf> {
        let path = imp::path_of(symbol)?;
        Some(std::fs::canonicalize(&path).unwrap_or(path))
    }
}

#[cfg(unix)]
mod imp {
    use core::ffi::{CStr, c_char, c_int, c_void};
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    use std::path::{Path, PathBuf};

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

    /// `Dl_info` of `dlfcn.h`.
    #[repr(C)]
    struct SymbolInfo {
        file: *const c_char,
        base: *mut c_void,
        name: *const c_char,
        address: *mut c_void,
    }

    unsafe extern "C" {
        fn dladdr(address: *const c_void, info: *mut SymbolInfo) -> c_int;
    }

    pub(super) fn path_of(symbol: *const c_void) -> Option<PathBuf> {
        let null = core::ptr::null_mut();
        let mut info = SymbolInfo {
            file: core::ptr::null(),
            base: null,
            name: core::ptr::null(),
            address: null,
        };
        // SAFETY: dladdr takes any address and writes to the record that it is given.
        let found = unsafe { dladdr(symbol, &raw mut info) };
        if found == 0 || info.file.is_null() {
            return None;
        }
        // SAFETY: dladdr found the object, so this is its name, which lives as long as the object.
        let file = unsafe { CStr::from_ptr(info.file) };
        Some(PathBuf::from(OsStr::from_bytes(file.to_bytes())))
    }
}

#[cfg(windows)]
mod imp {
    use core::ffi::{CStr, c_void};
    use std::path::{Path, PathBuf};

    pub(super) use libloading::os::windows::Library;
    use libloading::os::windows::{LOAD_LIBRARY_SEARCH_DEFAULT_DIRS, LOAD_LIBRARY_SEARCH_SYSTEM32};

    pub(super) fn open(path: &Path) -> Result<Library, String> {
        // A bare name comes from the system folder and from nowhere else.
        let flags = if path.is_absolute() {
            LOAD_LIBRARY_SEARCH_DEFAULT_DIRS
        } else {
            LOAD_LIBRARY_SEARCH_SYSTEM32
        };
        // SAFETY: whoever named the path vouches for what the file does when it is loaded; the system's own driver
        // is taken at its word, as every program does.
        let opened = unsafe { Library::load_with_flags(path, flags) };
        opened.map_err(|error| error.to_string())
    }

    pub(super) fn symbol(library: &Library, name: &CStr) -> *const c_void {
        // SAFETY: the symbol's address is only taken here; whoever calls it vouches for its type.
        let symbol = unsafe { library.get::<*const c_void>(name.to_bytes_with_nul()) };
        symbol.map_or(core::ptr::null(), |symbol| *symbol)
    }

    /// Not asked of the system: the driver has one place there, and other paths are known.
    pub(super) fn path_of(_symbol: *const c_void) -> Option<PathBuf> {
        None
    }
}

#[cfg(not(any(unix, windows)))]
mod imp {
    use core::ffi::{CStr, c_void};
    use std::path::{Path, PathBuf};

    /// Nothing can be loaded here.
    #[derive(Debug)]
    pub(super) enum Library {}

    pub(super) fn open(_path: &Path) -> Result<Library, String> {
        Err("unsupported here: this system loads no libraries".to_owned())
    }

    pub(super) fn symbol(library: &Library, _name: &CStr) -> *const c_void {
        match *library {}
    }

    pub(super) fn path_of(_symbol: *const c_void) -> Option<PathBuf> {
        None
    }
}
