//! Two copies of this driver in one process, the library and `libcuda.so.1`, would each have its own devices and memory. By
//! their markers they find each other, and the second to be initialised refuses.

use std::ffi::CStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

/// The symbol by which a software driver is known: `libcuda.so.1` of this project exports it, and
/// [`resolve`](crate::resolve) finds it. It points to a [`Marker`].
pub const MARKER: &CStr = cuda_driver_sys::library::SOFTWARE_MARKER;

/// What the marker symbol points to. The layout is part of the interface between copies of different versions.
#[repr(C)]
#[derive(Debug)]
pub struct Marker {
    version: AtomicU32,
    /// A copy is at work in this process: this one, or another that has noted it here.
    taken: AtomicU32,
}

impl Marker {
    /// A marker of a copy that is not initialised.
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

/// The marker of this copy.
pub(crate) fn own() -> &'static Marker {
    EXPORTED.get().copied().unwrap_or(&OF_THIS_CRATE)
}

/// Makes an exported static the marker of this copy.
pub(crate) fn set(marker: &'static Marker) {
    let _ = EXPORTED.set(marker);
}

/// Takes the process for this copy; false if another has it.
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

/// The marker of the copy that the process has loaded as `libcuda.so.1`, if that is not this one.
#[cfg(unix)]
fn other() -> Option<&'static Marker> {
    // SAFETY: loads nothing: it asks for a library that is there already.
    let library = unsafe {
        libc::dlopen(
            c"libcuda.so.1".as_ptr(),
            libc::RTLD_LAZY | libc::RTLD_NOLOAD,
        )
    };
    if library.is_null() {
        return None;
    }
    // SAFETY: a handle that dlopen gave, and a NUL-terminated name. The handle is kept: the library is never unloaded.
    let marker = unsafe { libc::dlsym(library, MARKER.as_ptr()) }
        .cast_const()
        .cast::<Marker>();
    if marker.is_null() || std::ptr::eq(marker, own()) {
        return None;
    }
    // SAFETY: the symbol of this name is a `Marker` in every copy of this driver, for the rest of the process.
    Some(unsafe { &*marker })
}

#[cfg(not(unix))]
fn other() -> Option<&'static Marker> {
    None
}
