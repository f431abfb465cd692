//! Markers by which a copy of this driver that is linked into a program and a copy that is loaded as `libcuda.so.1`
//! find each other. Each copy has its own devices and memory, so `cuInit` of the second copy returns
//! `CUDA_ERROR_SYSTEM_DRIVER_MISMATCH`. A library that is loaded after `cuInit` of the linked copy is not detected.

use std::ffi::CStr;
#[cfg(unix)]
use std::mem::MaybeUninit;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering::SeqCst};

/// The symbol that identifies a software driver: this project's `libcuda.so.1` exports it, and
/// [`resolve`](crate::resolve) finds it. Its address is that of a [`Marker`].
pub const MARKER: &CStr = cuda_driver_sys::library::SOFTWARE_MARKER;

/// The static whose address the symbol [`MARKER`] has. The layout is part of the interface between copies of different
/// versions.
#[repr(C)]
#[derive(Debug)]
pub struct Marker {
    version: AtomicU32,
    /// Nonzero if a copy is initialised in this process: this one, or another that has stored 1 here.
    taken: AtomicU32,
    /// The marker of the copy that is initialised; since version 2.
    owner: AtomicPtr<Marker>,
}

impl Marker {
    /// Returns the marker of a copy that is not initialised.
    #[must_use]
    #[allow(clippy::new_without_default)] // for statics only
    pub const fn new() -> Self {
        Marker {
            version: AtomicU32::new(2),
            taken: AtomicU32::new(0),
            owner: AtomicPtr::new(std::ptr::null_mut()),
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

/// Claims the process for this copy of the driver.
///
/// # Errors
/// Returns the reason if another copy has claimed it, with the files of both copies and the fix.
pub(crate) fn take() -> Result<(), String> {
    let other = other();
    let claimed = [Some(own()), other]
        .into_iter()
        .flatten()
        .find(|o| o.taken.load(SeqCst) != 0);
    if let Some(claimed) = claimed {
        let first = match claimed.owner.load(SeqCst) {
            owner if owner.is_null() => claimed,
            // SAFETY: the pointer is not null, so a copy has stored the address of its own static at the end of this
            // function. That copy has called `stay_loaded` before, so the static exists until the process ends.
            owner => unsafe { &*owner },
        };
        return Err(format!(
            "the process has two copies of the software driver, each with its own devices: {} is initialised, so {} \
             cannot be: load only one of them, under one name",
            file(first),
            file(own()),
        ));
    }
    stay_loaded(own());
    for marker in [Some(own()), other].into_iter().flatten() {
        if marker.version.load(SeqCst) >= 2 {
            marker.owner.store(std::ptr::from_ref(own()).cast_mut(), SeqCst);
        }
        marker.taken.store(1, SeqCst);
    }
    Ok(())
}

/// Returns the path of the file that a marker's copy was loaded from.
#[cfg(unix)]
fn path(marker: &'static Marker) -> Option<&'static CStr> {
    let mut found = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: the call does not dereference the address, and it writes only the structure.
    let known = unsafe { libc::dladdr(std::ptr::from_ref(marker).cast(), found.as_mut_ptr()) };
    // SAFETY: the structure was zeroed, and zeros are valid for it if the call did not write it.
    let name = unsafe { found.assume_init() }.dli_fname;
    if known == 0 || name.is_null() {
        return None;
    }
    // SAFETY: the system's loader keeps the NUL-terminated name as long as the file is loaded, and a file with a marker
    // that is `'static` stays loaded.
    Some(unsafe { CStr::from_ptr(name) })
}

/// Keeps the file of this copy loaded until the process ends, also if the program closes its handle: other copies use
/// its marker, and its threads never end. A copy that is part of the program cannot be unloaded.
#[cfg(unix)]
fn stay_loaded(own: &'static Marker) {
    let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
    if let Some(path) = path(own) {
        // SAFETY: with these flags, the call loads nothing and runs no code; it only marks a loaded file.
        unsafe { libc::dlopen(path.as_ptr(), flags) };
    }
}

#[cfg(not(unix))]
fn stay_loaded(_: &'static Marker) {}

/// Returns the file that a marker's copy was loaded from.
#[cfg(unix)]
fn file(marker: &'static Marker) -> String {
    path(marker).map_or_else(
        || "a copy of unknown origin".to_owned(),
        |path| path.to_string_lossy().into_owned(),
    )
}

#[cfg(not(unix))]
fn file(_: &'static Marker) -> String {
    "a copy".to_owned()
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
    // library stays loaded when the program closes its own handle, even if the library is this copy.
    let marker = unsafe { libc::dlsym(library, MARKER.as_ptr()) }
        .cast_const()
        .cast::<Marker>();
    if marker.is_null() || std::ptr::eq(marker, own()) {
        return None;
    }
    // SAFETY: the symbol of this name is a `Marker` in every copy of this driver. The handle from dlopen is not closed,
    // so the library is never unloaded.
    Some(unsafe { &*marker })
}

#[cfg(not(unix))]
fn other() -> Option<&'static Marker> {
    None
}
