//! Which file a function lies in.

use core::ffi::c_void;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The file that a function lies in. It is looked for when somebody asks: that takes a tenth of the time of loading it.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    /// The function's, or 0.
    address: usize,
    /// What to say where the system does not tell.
    named: Option<PathBuf>,
    path: OnceLock<Option<PathBuf>>,
}

#[allow(dead_code)] // Only loaded and linked libraries have files.
impl Origin {
    /// No file.
    pub(crate) fn nowhere() -> Self {
        Self::of(core::ptr::null(), None)
    }

    /// That of a function that stays loaded; `named` is its path where the system does not tell.
    pub(crate) fn of(address: *const c_void, named: Option<PathBuf>) -> Self {
        Self {
            address: address.addr(),
            named,
            path: OnceLock::new(),
        }
    }

    /// Its real path.
    pub(crate) fn path(&self) -> Option<&Path> {
        let find = || match self.address {
            0 => None,
            address => {
                // The system compares the address with those of what is loaded.
                imp::path_of(core::ptr::without_provenance(address)).or_else(|| self.named.clone())
            }
        };
        self.path.get_or_init(find).as_deref()
    }
}

#[cfg(unix)]
mod imp {
    use core::ffi::{CStr, c_char, c_int, c_void};
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    use std::path::PathBuf;

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

    pub(super) fn path_of(address: *const c_void) -> Option<PathBuf> {
        let null = core::ptr::null_mut();
        let mut info = SymbolInfo {
            file: core::ptr::null(),
            base: null,
            name: core::ptr::null(),
            address: null,
        };
        // SAFETY: dladdr takes any address and writes to the record that it is given.
        let found = unsafe { dladdr(address, &raw mut info) };
        if found == 0 || info.file.is_null() {
            return None;
        }
        // SAFETY: dladdr found the object, so this is its name, which lives as long as the object.
        let file = unsafe { CStr::from_ptr(info.file) };
        let path = PathBuf::from(OsStr::from_bytes(file.to_bytes()));
        // The name that it was loaded by, which is mostly a link.
        Some(std::fs::canonicalize(&path).unwrap_or(path))
    }
}

#[cfg(windows)]
mod imp {
    use core::ffi::{c_int, c_void};
    use std::ffi::OsString;
    use std::os::windows::ffi::OsStringExt as _;
    use std::path::PathBuf;

    /// The module is named by an address inside it, and is not kept from being unloaded.
    const FROM_ADDRESS: u32 = 4 | 2;

    /// The longest path that Windows knows, in UTF-16 units, and its NUL.
    const LONGEST: usize = 32_768;

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
        fn GetModuleHandleExW(
            flags: u32,
            address: *const c_void,
            module: *mut *mut c_void,
        ) -> c_int;
        fn GetModuleFileNameW(module: *mut c_void, name: *mut u16, size: u32) -> u32;
    }

    pub(super) fn path_of(address: *const c_void) -> Option<PathBuf> {
        let mut module = core::ptr::null_mut();
        // SAFETY: with these flags the function takes any address; it writes a handle.
        if unsafe { GetModuleHandleExW(FROM_ADDRESS, address, &raw mut module) } == 0 {
            return None;
        }
        let mut name = vec![0u16; LONGEST];
        // SAFETY: the module is loaded, and the buffer is as long as the call is told.
        let length = unsafe { GetModuleFileNameW(module, name.as_mut_ptr(), LONGEST as u32) };
        let name = name
            .get(..length as usize)
            .filter(|name| !name.is_empty())?;
        Some(PathBuf::from(OsString::from_wide(name)))
    }
}

#[cfg(not(any(unix, windows)))]
mod imp {
    use core::ffi::c_void;
    use std::path::PathBuf;

    pub(super) fn path_of(_address: *const c_void) -> Option<PathBuf> {
        None
    }
}
