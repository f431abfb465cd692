//! The driver that the program is linked against.

use core::ffi::{CStr, c_void};

/// A function of the driver's, by its address: asking for it makes the driver a library that the program starts with.
///
/// Inlined, so that the reference comes to lie in the crate that asks, and in no other program: where nobody asks, the
/// linker finds that the driver is not needed, and leaves it out.
#[inline]
pub(crate) fn reference() -> usize {
    imp::reference()
}

/// The address of a symbol of the driver that the system loaded with the program, or null.
pub(crate) fn symbol(name: &CStr) -> *const c_void {
    imp::symbol(name)
}

#[cfg(target_os = "linux")]
mod imp {
    use core::ffi::{CStr, c_char, c_uint, c_void};
    use core::ptr;

    use crate::CUresult;

    unsafe extern "system" {
        // Linked by build.rs.
        fn cuInit(flags: c_uint) -> CUresult;
    }

    unsafe extern "C" {
        fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    }

    /// Everything that was loaded with the program and with this object, in the order of loading.
    const RTLD_DEFAULT: *mut c_void = ptr::null_mut();

    #[inline]
    pub(super) fn reference() -> usize {
        cuInit as *const () as usize
    }

    pub(super) fn symbol(name: &CStr) -> *const c_void {
        // A handle of the driver's own would bypass a tool that LD_PRELOAD put before it.
        // SAFETY: dlsym reads the name, and answers null for what there is not.
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
        fn GetModuleHandleA(name: *const c_char) -> *mut c_void;
        fn GetProcAddress(module: *mut c_void, name: *const c_char) -> *mut c_void;
    }

    #[inline]
    pub(super) fn reference() -> usize {
        cuInit as *const () as usize
    }

    pub(super) fn symbol(name: &CStr) -> *const c_void {
        // SAFETY: both functions read a string; the module was loaded with the program, and stays.
        unsafe {
            let module = GetModuleHandleA(c"nvcuda.dll".as_ptr());
            if module.is_null() {
                return core::ptr::null();
            }
            GetProcAddress(module, name.as_ptr())
        }
    }
}

/// There is no driver to link against.
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
