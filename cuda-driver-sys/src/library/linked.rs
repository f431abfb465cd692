//! The driver that the program is linked against (feature `link`).

use core::ffi::{CStr, c_void};

/// Returns the address of `cuInit`, or 0 on a system without a driver. This reference makes the linker add the driver
/// to the program's libraries.
///
/// Inlined, so that the reference is in the calling crate only: the linker leaves the driver out of programs that do
/// not call this function.
#[inline]
pub(crate) fn reference() -> usize {
    imp::reference()
}

/// Returns the address of a symbol that was loaded with the program, or null.
pub(crate) fn symbol(name: &CStr) -> *const c_void {
    imp::symbol(name)
}

#[cfg(target_os = "linux")]
mod imp {
    use core::ffi::{CStr, c_char, c_uint, c_void};
    use core::ptr;

    use crate::CUresult;

    unsafe extern "system" {
        // `build.rs` adds the library that contains it to the linker's arguments.
        fn cuInit(flags: c_uint) -> CUresult;
    }

    unsafe extern "C" {
        fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    }

    /// Searches all objects that were loaded with the program, in the order of loading.
    const RTLD_DEFAULT: *mut c_void = ptr::null_mut();

    #[inline]
    pub(super) fn reference() -> usize {
        cuInit as *const () as usize
    }

    pub(super) fn symbol(name: &CStr) -> *const c_void {
        // A handle of the driver would bypass a tool in LD_PRELOAD.
        // SAFETY: dlsym reads a C string and returns null for a missing symbol.
        unsafe { dlsym(RTLD_DEFAULT, name.as_ptr()) }
    }
}

#[cfg(windows)]
mod imp {
    use core::ffi::{CStr, c_char, c_uint, c_void};

    use crate::CUresult;

    #[cfg_attr(
        target_arch = "x86",
        link(name = "nvcuda", kind = "raw-dylib", import_name_type = "undecorated")
    )]
    #[cfg_attr(not(target_arch = "x86"), link(name = "nvcuda", kind = "raw-dylib"))]
    unsafe extern "system" {
        fn cuInit(flags: c_uint) -> CUresult;
    }

    // kernel32 exports its functions without the suffix that x86 names have.
    #[cfg_attr(
        target_arch = "x86",
        link(name = "kernel32", kind = "raw-dylib", import_name_type = "undecorated")
    )]
    #[cfg_attr(not(target_arch = "x86"), link(name = "kernel32", kind = "raw-dylib"))]
    unsafe extern "system" {
        fn GetModuleHandleA(name: *const c_char) -> *mut c_void;
        fn GetProcAddress(module: *mut c_void, name: *const c_char) -> *mut c_void;
    }

    #[inline]
    pub(super) fn reference() -> usize {
        cuInit as *const () as usize
    }

    pub(super) fn symbol(name: &CStr) -> *const c_void {
        // SAFETY: both functions read a C string; the module was loaded with the program and is never unloaded.
        unsafe {
            let module = GetModuleHandleA(c"nvcuda.dll".as_ptr());
            if module.is_null() {
                return core::ptr::null();
            }
            GetProcAddress(module, name.as_ptr())
        }
    }
}

/// This system has no driver to link against.
#[cfg(not(any(target_os = "linux", windows)))]
mod imp {
    use core::ffi::{CStr, c_void};

    #[inline]
    pub(super) fn reference() -> usize {
        0
    }

    pub(super) fn symbol(_name: &CStr) -> *const c_void {
        core::ptr::null()
    }
}
