//! The driver's library: found, loaded and called at run time.
//!
//! ```no_run
//! # #[cfg(feature = "loader")] {
//! use cuda_driver_sys::{CUresult, Library};
//!
//! let library = Library::load()?;
//! // SAFETY: cuInit takes no pointers.
//! let code = unsafe { library.cuInit(0) };
//! assert_eq!(code, CUresult::CUDA_SUCCESS);
//! # }
//! # Ok::<(), cuda_driver_sys::library::LoadError>(())
//! ```

mod arguments;
mod default;
mod error;
mod interposer;
#[cfg(feature = "link")]
mod linked;
mod nested;
#[cfg(feature = "loader")]
mod object;
mod open;
mod proc_address;
mod resolve;
#[cfg(feature = "loader")]
mod search;
mod source;
mod whence;

use core::ffi::{CStr, c_void};
use core::fmt;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::borrow::Cow;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

pub use arguments::Arguments;
pub use default::{AlreadySet, Beaten, DEFAULT, default_library, set_default, set_default_with};
pub use error::{Attempt, LoadError, LoadErrorKind, MissingSymbol};
use interposer::Interposed;
pub use interposer::{Call, Faithful, Interposer};
use open::{Opened, State};
#[cfg(feature = "loader")]
pub use search::is_privileged;
pub use source::{Options, Source};

pub use crate::calls::Legacy;
use crate::{CUresult, Function};

/// A symbol by which a driver says that it runs on the CPU; [`Library::is_software`] looks for it.
pub const SOFTWARE_MARKER: &CStr = c"cuda_driver_soft_marker";

/// The driver's library, with a slot for every exported function.
///
/// A library is never closed: function pointers and the driver's threads outlive every owner. It is therefore
/// always `&'static`. Functions are looked up when they are first called, so a driver may lack any of them.
pub struct Library {
    /// For each function null, or the export that calls to it go to.
    slots: [AtomicPtr<c_void>; Function::COUNT],
    state: State,
    number: u16,
    /// What the driver said that it supports: [`NOT_ASKED`], or 0 if it did not tell.
    version: AtomicU32,
}

/// No CUDA version.
const NOT_ASKED: u32 = u32::MAX;

/// Every library that was made, after `DEFAULT`; the place of each is its number less one.
static MADE: Mutex<Vec<&'static Library>> = Mutex::new(Vec::new());

impl Library {
    #[inline]
    const fn unopened(number: u16) -> Self {
        Self {
            slots: [const { AtomicPtr::new(ptr::null_mut()) }; Function::COUNT],
            state: State::new(),
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

    /// The library with a number that [`number`](Self::number) gave.
    #[inline]
    #[must_use]
    pub fn by_number(number: u16) -> Option<&'static Self> {
        match usize::from(number).checked_sub(1) {
            None => Some(&DEFAULT),
            Some(place) => MADE
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .get(place)
                .copied(),
        }
    }

    #[inline]
    pub(crate) fn slot(&self, function: Function) -> *mut c_void {
        // Acquire: what the resolver wrote before it gave the pointer is visible to the call.
        self.slots[function.index()].load(Ordering::Acquire)
    }

    /// Where the driver was loaded from: the real path of its file, or `None` for a resolver without one and where
    /// nothing is loaded.
    #[inline]
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.opened().ok().and_then(|opened| opened.whence.path())
    }

    /// What the library is, for messages: its path or its resolver's name; `None` where nothing is loaded.
    #[inline]
    #[must_use]
    pub fn description(&self) -> Option<String> {
        self.opened().ok().map(Opened::description)
    }

    /// The same, without opening anything.
    #[inline]
    pub(crate) fn described(&self) -> Option<String> {
        let opened = self.state.peek()?.as_ref().ok()?;
        Some(opened.description())
    }

    /// Why there is no driver behind this library, or `None` if there is one. Only [`DEFAULT`] can lack one.
    #[inline]
    #[must_use]
    pub fn load_error(&self) -> Option<&LoadError> {
        self.opened().err()
    }

    /// The CUDA version that the driver supports, as `cuDriverGetVersion` tells it; `None` where nothing is loaded or the
    /// driver does not tell. It is asked once.
    ///
    /// Versions are C's numbers everywhere in this crate: 1000 × major + 10 × minor, 12050 for 12.5.
    #[inline]
    #[must_use]
    pub fn version(&self) -> Option<u32> {
        // Interposers see the question every time, and may answer it.
        let is_interposed = self
            .opened()
            .is_ok_and(|opened| opened.interposed.is_some());
        if self.version.load(Ordering::Relaxed) != NOT_ASKED && !is_interposed {
            return self.known_version();
        }
        let mut version = 0;
        // SAFETY: the pointer is to an integer of our own.
        let code = unsafe { self.cuDriverGetVersion(&raw mut version) };
        if code != CUresult::CUDA_SUCCESS {
            return None;
        }
        // A driver may answer 0 as well, in a forked process: asking again would not tell more.
        self.version
            .store(version.max(0).unsigned_abs(), Ordering::Relaxed);
        self.known_version()
    }

    /// The same without a call to the driver: `None` also as long as neither [`version`](Self::version) nor
    /// [`note_version`](Self::note_version) was called.
    #[must_use]
    pub fn known_version(&self) -> Option<u32> {
        match self.version.load(Ordering::Relaxed) {
            0 | NOT_ASKED => None,
            version => Some(version),
        }
    }

    /// Makes [`known_version`](Self::known_version) known, for a message that is made later. Interposers do not see this
    /// question, since no program asked it; the version that one of them [claims](Interposer::version) is the answer.
    pub fn note_version(&self) {
        if self.version.load(Ordering::Relaxed) != NOT_ASKED {
            return;
        }
        let Ok(opened) = self.opened() else {
            return;
        };
        match opened.interposed.as_ref().and_then(Interposed::version) {
            Some(claimed) => self.version.store(claimed, Ordering::Relaxed),
            None => _ = nested::with(&nested::INTERPOSING, self, || self.version()),
        }
    }

    /// Whether the library exports a function (for a per-thread library: the export that the call would go to).
    #[inline]
    #[must_use]
    pub fn supports(&self, function: Function) -> bool {
        self.get(function).is_some()
    }

    /// What to say of a function that this library does not export (for a per-thread library: of the export that the
    /// call would go to); `None` if it does, and where nothing is loaded.
    #[inline]
    #[must_use]
    pub fn missing(&self, function: Function) -> Option<MissingSymbol> {
        let opened = self.opened().ok()?;
        if !self.find(opened, function).is_null() {
            return None;
        }
        self.note_version();
        Some(MissingSymbol {
            function: Self::export_of(opened, function),
            driver_version: self.known_version(),
            library: self.description(),
        })
    }

    /// The export that a call to `function` goes to, past any interposer; `None` where there is none, or
    /// an interposer hides it.
    #[inline]
    #[must_use]
    pub fn get(&self, function: Function) -> Option<NonNull<c_void>> {
        let opened = self.opened().ok()?;
        NonNull::new(self.find(opened, function).cast_mut())
    }

    /// Any symbol of the library, known to the registry or not; `None` where there is none.
    #[inline]
    #[must_use]
    pub fn symbol(&self, name: &CStr) -> Option<NonNull<c_void>> {
        let opened = self.opened().ok()?;
        let function = name.to_str().ok().and_then(Function::by_symbol);
        if let (Some(function), Some(interposed)) = (function, &opened.interposed) {
            if interposed.hides(function) {
                return None;
            }
        }
        NonNull::new(self.look_up(opened, name).cast_mut())
    }

    /// Whether this driver says of itself that it runs on the CPU.
    #[inline]
    #[must_use]
    pub fn is_software(&self) -> bool {
        self.symbol(SOFTWARE_MARKER).is_some()
    }

    /// Whether the unsuffixed names call the per-thread forms.
    #[inline]
    #[must_use]
    pub fn is_per_thread(&self) -> bool {
        self.opened().is_ok_and(|opened| opened.per_thread)
    }
}

impl fmt::Debug for Library {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Library");
        match self.state.peek() {
            None => out.field("state", &"not used yet"),
            Some(Ok(opened)) => out
                .field("path", &opened.whence.path())
                .field("name", &opened.name),
            Some(Err(error)) => out.field("error", error),
        };
        out.finish_non_exhaustive()
    }
}
