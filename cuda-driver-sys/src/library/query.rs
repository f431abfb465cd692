//! Questions about a library: its file, its version, and the functions that it exports.

use core::ffi::{CStr, c_void};
use core::ptr::NonNull;
use core::sync::atomic::Ordering;
use std::path::Path;

use super::error::{LoadError, MissingSymbol};
use super::interposer::Interposed;
use super::nested;
use super::open::Opened;
use super::slots::{Library, NOT_ASKED};
use crate::{CUresult, Function};

/// A symbol by which a driver says that it runs on the CPU; [`Library::is_software`] looks for it.
pub const SOFTWARE_MARKER: &CStr = c"cuda_driver_soft_marker";

impl Library {
    /// Where the driver was loaded from: the real path of its file, or `None` for a resolver without one and where
    /// nothing is loaded.
    #[inline]
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.opened().ok().and_then(|opened| opened.origin.path())
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
