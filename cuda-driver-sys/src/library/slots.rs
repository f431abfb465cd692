//! The driver's library: a table with one slot for every function.

use core::ffi::{CStr, c_void};
use core::fmt;
use core::mem::ManuallyDrop;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::borrow::Cow;
#[cfg(feature = "loader")]
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use super::error::LoadError;
use super::open::{self, OpenOnce};
use super::source::{Options, Source};
use crate::Function;

/// The driver's library, with a slot for every exported function.
///
/// A library is never closed, because function pointers and the driver's threads may outlive every owner; references to
/// it are always `&'static`. Functions are looked up when they are first called, so a driver may lack any function
/// except `cuInit`.
pub struct Library {
    /// For each function the address of its export, or null if it must be resolved first.
    pub(super) slots: [AtomicPtr<c_void>; Function::COUNT],
    /// A library is never dropped, so `ManuallyDrop` keeps the code that would drop it out of this crate.
    pub(super) state: ManuallyDrop<OpenOnce>,
    number: u16,
    /// The CUDA version that the driver returned or an interposer claimed; [`NOT_QUERIED`] before the first query that
    /// succeeds, 0 if that query returned no version.
    pub(super) version: AtomicU32,
}

/// The value of [`Library::version`] before the first query that succeeds; not a CUDA version.
pub(super) const NOT_QUERIED: u32 = u32::MAX;

/// Every library made with [`Library::new`]. The library number `n` is at index `n - 1`; number 0 is `DEFAULT`.
static LIBRARIES: Mutex<ManuallyDrop<Vec<&'static Library>>> = Mutex::new(ManuallyDrop::new(Vec::new()));

impl Library {
    #[inline]
    pub(super) const fn unopened(number: u16) -> Self {
        Self {
            slots: [const { AtomicPtr::new(ptr::null_mut()) }; Function::COUNT],
            state: ManuallyDrop::new(OpenOnce::new()),
            number,
            version: AtomicU32::new(NOT_QUERIED),
        }
    }

    /// Returns a library over the driver that the program is linked against.
    ///
    /// # Errors
    /// Returns an error if there is no CUDA driver for this operating system or for 32-bit programs.
    #[cfg(feature = "link")]
    #[cfg_attr(docsrs, doc(cfg(feature = "link")))]
    #[inline]
    pub fn linked() -> Result<&'static Self, LoadError> {
        Self::new(Source::linked(), Options::new())
    }

    /// Finds and loads the system's driver, in the order that [`Source::search`] documents.
    ///
    /// # Errors
    /// Returns an error with every place that was tried, and the reason why it failed.
    #[inline]
    #[cfg(feature = "loader")]
    #[cfg_attr(docsrs, doc(cfg(feature = "loader")))]
    pub fn load() -> Result<&'static Self, LoadError> {
        Self::new(Source::search(), Options::new())
    }

    /// Loads the library at a path. The system's loader searches for a bare file name; on Windows, only in the system
    /// folder.
    ///
    /// # Safety
    /// Same as [`Source::path`].
    ///
    /// # Errors
    /// Returns an error if the file cannot be loaded or is not a CUDA driver.
    #[inline]
    #[cfg(feature = "loader")]
    #[cfg_attr(docsrs, doc(cfg(feature = "loader")))]
    pub unsafe fn load_from(path: impl AsRef<Path>) -> Result<&'static Self, LoadError> {
        // SAFETY: upheld by the caller.
        Self::new(unsafe { Source::path(path.as_ref()) }, Options::new())
    }

    /// Returns a library whose functions come from a resolver; see [`Source::resolver`]. Messages call it `name`.
    ///
    /// # Safety
    /// Same as [`Source::resolver`].
    ///
    /// # Errors
    /// Returns an error if the resolver does not find `cuInit`.
    #[inline]
    pub unsafe fn from_resolver(
        name: impl Into<Cow<'static, str>>,
        resolver: impl Fn(&CStr) -> *const c_void + Send + Sync + 'static,
    ) -> Result<&'static Self, LoadError> {
        // SAFETY: upheld by the caller.
        Self::new(unsafe { Source::resolver(name, resolver) }, Options::new())
    }

    /// Makes a library from a source, with options.
    ///
    /// Each call makes a new library of about 6 kB, or 11 kB with interposers, that is never freed: make one and share
    /// it.
    ///
    /// # Errors
    /// Returns an error if the source has no driver, or if the process has made 65,535 libraries.
    #[inline]
    pub fn new(source: Source, options: Options) -> Result<&'static Self, LoadError> {
        let opened = open::open(source, options)?;
        let mut libraries = LIBRARIES.lock().unwrap_or_else(PoisonError::into_inner);
        let number = u16::try_from(libraries.len() + 1).map_err(|_| LoadError::too_many())?;
        let library: &'static Self = Box::leak(Box::new(Self::unopened(number)));
        library.state.fill(opened);
        libraries.push(library);
        Ok(library)
    }

    /// Returns the library's number in this process. [`DEFAULT`](super::DEFAULT) has the number 0.
    #[inline]
    #[must_use]
    pub const fn number(&self) -> u16 {
        self.number
    }

    #[inline]
    pub(crate) fn slot(&self, function: Function) -> *mut c_void {
        // Acquire, so that memory that the resolver wrote before it returned the pointer is visible to the call.
        self.slots[function.index()].load(Ordering::Acquire)
    }
}

impl fmt::Debug for Library {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Library");
        match self.state.peek() {
            None => out.field("state", &"not used yet"),
            Some(Ok(opened)) => out.field("path", &opened.origin.path()).field("name", &opened.name),
            Some(Err(error)) => out.field("error", error),
        };
        out.finish_non_exhaustive()
    }
}

/// Returns the library with a number above 0.
pub(super) fn by_number(number: u16) -> Option<&'static Library> {
    let index = usize::from(number).checked_sub(1)?;
    let libraries = LIBRARIES.lock().unwrap_or_else(PoisonError::into_inner);
    libraries.get(index).copied()
}
