//! Markers that let two copies of this driver in one process find each other. The library and `libcuda.so.1` would each
//! have their own devices and memory, so the second copy to be initialised returns an error.

use std::ffi::CStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

/// The symbol that identifies a software driver: this project's `libcuda.so.1` exports it, and
/// [`resolve`](crate::resolve) finds it. It points to a [`Marker`].
pub const MARKER: &CStr = cuda_driver_sys::library::SOFTWARE_MARKER;

/// The static that the marker symbol points to. The layout is part of the interface between copies of different
/// versions.
#[repr(C)]
#[derive(Debug)]
pub struct Marker {
    version: AtomicU32,
    /// Nonzero if a copy is initialised in this process: this one, or another that has stored 1 here.
    taken: AtomicU32,
}

impl Marker {
    /// Returns the marker of a copy that is not initialised.
    #[must_use]
    #[allow(clippy::new_without_default)] // for statics only
    pub const fn new() -> Self {
        Marker {
            version: AtomicU32::new(1),
            taken: AtomicU32::new(0),
        }
    }
}

static OF_THIS_CRATE: Marker = Marker::new();
static EXPORTED: OnceLock<&'static Marker> = OnceLock::new();

/// Returns the marker of this copy.
pub(crate) fn own() -> &'static Marker {
    EXPORTED.get().copied().unwrap_or(&OF_THIS_CRATE)
}

/// Makes an exported static the marker of this copy.
pub(crate) fn set(marker: &'static Marker) {
    let _ = EXPORTED.set(marker);
}

/// Claims the process for this copy; returns false if a copy has claimed it already.
pub(crate) fn take() -> bool {
    let other = other();
    if own().taken.load(SeqCst) != 0 || other.is_some_and(|o| o.taken.load(SeqCst) != 0) {
        return false;
    }
    if let Some(other) = other {
        other.taken.store(1, SeqCst);
    }
    own().taken.store(1, SeqCst);
    true
}

/// Returns the marker of the copy that the process has loaded as `libcuda.so.1`, unless that is this copy.
#[cfg(unix)]
fn other() -> Option<&'static Marker> {
    // SAFETY: RTLD_NOLOAD loads nothing and runs no code; it only finds a library that is already loaded.
    let library = unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
    if library.is_null() {
        return None;
    }
    // SAFETY: `library` is a handle from dlopen, and the name is NUL-terminated. The handle is never closed, so the
    // library stays loaded.
    let marker = unsafe { libc::dlsym(library, MARKER.as_ptr()) }
        .cast_const()
        .cast::<Marker>();
    if marker.is_null() || std::ptr::eq(marker, own()) {
        return None;
    }
    // SAFETY: the symbol of this name is a `Marker` in every copy of this driver, and the library is never unloaded.
    Some(unsafe { &*marker })
}

#[cfg(not(unix))]
fn other() -> Option<&'static Marker> {
    None
}
