//! The file that contains a function.

use core::ffi::c_void;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The file that contains a function. The path is found when it is first needed, because finding it takes a tenth as
/// long as loading the driver.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    /// The function's address, or 0 if there is no file.
    address: usize,
    /// The path to report if the system does not know it.
    named: Option<PathBuf>,
    path: OnceLock<Option<PathBuf>>,
}

#[allow(dead_code)] // Not used without the features `loader` and `link`.
impl Origin {
    /// Returns an origin without a file.
    pub(crate) fn none() -> Self {
        Self::of(core::ptr::null(), None)
    }

    /// Returns the origin of a function that stays loaded. `named` is reported if the system does not know its path.
    pub(crate) fn of(address: *const c_void, named: Option<PathBuf>) -> Self {
        Self {
            address: address.addr(),
            named,
            path: OnceLock::new(),
        }
    }

    /// Returns the path of the file, on Unix with symbolic links resolved; `None` if it is not known.
    pub(crate) fn path(&self) -> Option<&Path> {
        let find = || match self.address {
            0 => None,
            address => {
                // The address is only compared, never dereferenced.
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
        // SAFETY: dladdr accepts any address and writes to a valid struct.
        let found = unsafe { dladdr(address, &raw mut info) };
        if found == 0 || info.file.is_null() {
            return None;
        }
        // SAFETY: dladdr succeeded, so this is the object's name, which lives as long as the object.
        let file = unsafe { CStr::from_ptr(info.file) };
        let path = PathBuf::from(OsStr::from_bytes(file.to_bytes()));
        // The name is the one that the object was loaded by, usually a symbolic link.
        Some(std::fs::canonicalize(&path).unwrap_or(path))
    }
}

#[cfg(windows)]
mod imp {
    use core::ffi::{c_int, c_void};
    use std::ffi::OsString;
    use std::os::windows::ffi::OsStringExt as _;
    use std::path::PathBuf;

    /// Finds the module that contains an address, without incrementing its reference count.
    const FROM_ADDRESS: u32 = 4 | 2;

    /// The maximum length of a path on Windows in UTF-16 units, including the NUL.
    const LONGEST: usize = 32_768;

    // kernel32 exports its functions without the suffix that x86 names have.
    #[cfg_attr(
        target_arch = "x86",
        link(name = "kernel32", kind = "raw-dylib", import_name_type = "undecorated")
    )]
    #[cfg_attr(not(target_arch = "x86"), link(name = "kernel32", kind = "raw-dylib"))]
    unsafe extern "system" {
        fn GetModuleHandleExW(flags: u32, address: *const c_void, module: *mut *mut c_void) -> c_int;
        fn GetModuleFileNameW(module: *mut c_void, name: *mut u16, size: u32) -> u32;
    }

    pub(super) fn path_of(address: *const c_void) -> Option<PathBuf> {
        let mut module = core::ptr::null_mut();
        // SAFETY: with these flags the function accepts any address, and it writes to a valid handle.
        if unsafe { GetModuleHandleExW(FROM_ADDRESS, address, &raw mut module) } == 0 {
            return None;
        }
        let mut name = vec![0u16; LONGEST];
        // SAFETY: the module is loaded, and the buffer has the given length.
        let length = unsafe { GetModuleFileNameW(module, name.as_mut_ptr(), LONGEST as u32) };
        let name = name.get(..length as usize).filter(|name| !name.is_empty())?;
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
