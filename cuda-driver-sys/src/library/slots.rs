//! The driver's library: a table of functions.

use core::ffi::{CStr, c_void};
use core::fmt;
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
/// A library is never closed: function pointers and the driver's threads outlive every owner. It is therefore
/// always `&'static`. Functions are looked up when they are first called, so a driver may lack any of them.
pub struct Library {
    /// For each function null, or the export that calls to it go to.
    pub(super) slots: [AtomicPtr<c_void>; Function::COUNT],
    pub(super) state: OpenOnce,
    number: u16,
    /// What the driver said that it supports: [`NOT_ASKED`], or 0 if it did not tell.
    pub(super) version: AtomicU32,
}

/// No CUDA version.
pub(super) const NOT_ASKED: u32 = u32::MAX;

/// Every library that was made, after `DEFAULT`; the place of each is its number less one.
static MADE: Mutex<Vec<&'static Library>> = Mutex::new(Vec::new());

impl Library {
    #[inline]
    pub(super) const fn unopened(number: u16) -> Self {
        Self {
            slots: [const { AtomicPtr::new(ptr::null_mut()) }; Function::COUNT],
            state: OpenOnce::new(),
            number,
            version: AtomicU32::new(NOT_ASKED),
        }
    }

    /// Takes the driver that the program is linked against.
    ///
    /// # Errors
    /// As [`Source::linked`].
    #[cfg(feature = "link")]
    #[cfg_attr(docsrs, doc(cfg(feature = "link")))]
    #[inline]
    pub fn linked() -> Result<&'static Self, LoadError> {
        Self::new(Source::linked(), Options::new())
    }

    /// Finds and loads the system's driver, in the order that [`Source::search`] documents.
    ///
    /// # Errors
    /// Every place that was tried, with the system's words.
    #[inline]
    #[cfg(feature = "loader")]
    #[cfg_attr(docsrs, doc(cfg(feature = "loader")))]
    pub fn load() -> Result<&'static Self, LoadError> {
        Self::new(Source::search(), Options::new())
    }

    /// Loads the library at a path; a bare file name is left to the system's loader to find.
    ///
    /// # Safety
    /// As [`Source::path`].
    ///
    /// # Errors
    /// Why the file could not be loaded, or that it is no CUDA driver.
    #[inline]
    #[cfg(feature = "loader")]
    #[cfg_attr(docsrs, doc(cfg(feature = "loader")))]
    pub unsafe fn load_from(path: impl AsRef<Path>) -> Result<&'static Self, LoadError> {
        // SAFETY: the caller keeps the contract.
        Self::new(unsafe { Source::path(path.as_ref()) }, Options::new())
    }

    /// Takes the functions that a resolver names, as [`Source::resolver`] says; `name` says in messages what they belong to.
    ///
    /// # Safety
    /// As [`Source::resolver`].
    ///
    /// # Errors
    /// The resolver knows no `cuInit`.
    #[inline]
    pub unsafe fn from_resolver(
        name: impl Into<Cow<'static, str>>,
        resolver: impl Fn(&CStr) -> *const c_void + Send + Sync + 'static,
    ) -> Result<&'static Self, LoadError> {
        // SAFETY: the caller keeps the contract.
        Self::new(unsafe { Source::resolver(name, resolver) }, Options::new())
    }

    /// Makes a library from a source, with options.
    ///
    /// Each call makes a library of its own, which stays for good (some 6 kB); make one and pass it on.
    ///
    /// # Errors
    /// Why the source gives no driver.
    #[inline]
    pub fn new(source: Source, options: Options) -> Result<&'static Self, LoadError> {
        let opened = open::open(source, options)?;
        let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
        let number = u16::try_from(made.len() + 1).map_err(|_| LoadError::too_many())?;
        let library: &'static Self = Box::leak(Box::new(Self::unopened(number)));
        library.state.fill(opened);
        made.push(library);
        Ok(library)
    }

    /// The library's number in this process: 0 is [`DEFAULT`].
    #[inline]
    #[must_use]
    pub const fn number(&self) -> u16 {
        self.number
    }

    #[inline]
    pub(crate) fn slot(&self, function: Function) -> *mut c_void {
        // Acquire: what the resolver wrote before it gave the pointer is visible to the call.
        self.slots[function.index()].load(Ordering::Acquire)
    }
}

impl fmt::Debug for Library {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Library");
        match self.state.peek() {
            None => out.field("state", &"not used yet"),
            Some(Ok(opened)) => out
                .field("path", &opened.origin.path())
                .field("name", &opened.name),
            Some(Err(error)) => out.field("error", error),
        };
        out.finish_non_exhaustive()
    }
}

/// The library with a number that [`Library::number`] gave, unless that is 0.
pub(super) fn made(number: u16) -> Option<&'static Library> {
    let place = usize::from(number).checked_sub(1)?;
    let made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    made.get(place).copied()
}
