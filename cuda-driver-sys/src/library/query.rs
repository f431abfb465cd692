//! Questions about a library: its file, its version, and the functions that it exports.

use core::ffi::{CStr, c_void};
use core::ptr::NonNull;
use core::sync::atomic::Ordering;
use std::path::Path;

use super::error::{LoadError, MissingSymbol};
use super::interposer::Interposed;
use super::nested;
use super::open::Opened;
use super::slots::{Library, NOT_QUERIED};
use crate::{CUresult, Function};

/// The symbol that a driver exports if it runs on the CPU; see [`Library::is_software`].
pub const SOFTWARE_MARKER: &CStr = c"cuda_driver_soft_marker";

impl Library {
    /// Returns the path of the driver's file, on Unix with symbolic links resolved; `None` if no driver could be
    /// loaded, if the functions come from a resolver, or if the system does not know the path.
    #[inline]
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.opened().ok().and_then(|opened| opened.origin.path())
    }

    /// Returns the driver's path or, if it is not known, the name of the source, such as a resolver's, for messages;
    /// `None` if no driver could be loaded.
    #[inline]
    #[must_use]
    pub fn description(&self) -> Option<String> {
        self.opened().ok().map(Opened::description)
    }

    /// Returns the same as [`description`](Self::description), but does not open the library.
    #[inline]
    pub(crate) fn described(&self) -> Option<String> {
        let opened = self.state.peek()?.as_ref().ok()?;
        Some(opened.description())
    }

    /// Returns the reason why no driver could be loaded, or `None` if one was loaded. Only
    /// [`DEFAULT`](super::DEFAULT) can be without a driver.
    #[inline]
    #[must_use]
    pub fn load_error(&self) -> Option<&LoadError> {
        self.opened().err()
    }

    /// Returns the CUDA version that the driver supports, from `cuDriverGetVersion`; `None` if no driver could be
    /// loaded, or if the call fails or returns no version. The result of a successful call is cached, but a library
    /// with interposers makes the call each time, because interposers see every query.
    ///
    /// Versions in this crate are C's numbers: 1000 × major + 10 × minor, so 12050 for CUDA 12.5.
    #[inline]
    #[must_use]
    pub fn version(&self) -> Option<u32> {
        // Interposers see every query and may answer it, so the cache is not used.
        let is_interposed = self.opened().is_ok_and(|opened| opened.interposed.is_some());
        if self.version.load(Ordering::Relaxed) != NOT_QUERIED && !is_interposed {
            return self.known_version();
        }
        let mut version = 0;
        // SAFETY: the pointer is to a local integer.
        let code = unsafe { self.cuDriverGetVersion(&raw mut version) };
        if code != CUresult::CUDA_SUCCESS {
            return None;
        }
        // In a forked process a driver may return the version 0; another query would return the same.
        let version = version.max(0).unsigned_abs();
        self.version.store(version, Ordering::Relaxed);
        // Not read back: another thread may have cached the claim of an interposer meanwhile.
        (version != 0).then_some(version)
    }

    /// Returns the version that [`version`](Self::version), [`note_version`](Self::note_version) or
    /// [`missing`](Self::missing) cached, without calling the driver; `None` if there is none.
    #[must_use]
    pub fn known_version(&self) -> Option<u32> {
        match self.version.load(Ordering::Relaxed) {
            0 | NOT_QUERIED => None,
            version => Some(version),
        }
    }

    /// Caches the version for [`known_version`](Self::known_version), for a message that is printed later. Interposers
    /// do not see the call of `cuDriverGetVersion`, because the program did not make it. If one
    /// [claims](super::Interposer::version) a version, that version replaces the cached one. Otherwise, a version that
    /// is already cached stays.
    pub fn note_version(&self) {
        let Ok(opened) = self.opened() else {
            return;
        };
        let claimed = opened.interposed.as_ref().and_then(Interposed::version);
        if let Some(claimed) = claimed {
            self.version.store(claimed, Ordering::Relaxed);
        } else if self.version.load(Ordering::Relaxed) == NOT_QUERIED {
            nested::with(&nested::INTERPOSING, self, || self.version());
        }
    }

    /// Returns true if the library exports a function. In a per-thread library this is about the per-thread twin, where
    /// the function has one.
    #[inline]
    #[must_use]
    pub fn supports(&self, function: Function) -> bool {
        self.get(function).is_some()
    }

    /// Returns an error that describes a missing function; `None` if the library exports it, or if no driver could be
    /// loaded. In a per-thread library this is about the per-thread twin, where the function has one.
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

    /// Returns the address of the export that calls of `function` go to; `None` if it is missing or hidden by an
    /// interposer, or if no driver could be loaded. Calls through this address bypass all interposers.
    #[inline]
    #[must_use]
    pub fn get(&self, function: Function) -> Option<NonNull<c_void>> {
        let opened = self.opened().ok()?;
        NonNull::new(self.find(opened, function).cast_mut())
    }

    /// Returns the address of any symbol of the library, even one that the registry does not know; `None` if there is
    /// no such symbol, if an interposer hides it, or if no driver could be loaded.
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

    /// Returns true if the driver runs on the CPU, that is, if it exports [`SOFTWARE_MARKER`].
    #[inline]
    #[must_use]
    pub fn is_software(&self) -> bool {
        self.symbol(SOFTWARE_MARKER).is_some()
    }

    /// Returns true if functions with a `_ptds` or `_ptsz` twin call that twin; see
    /// [`Options::per_thread_default_stream`](super::Options::per_thread_default_stream).
    #[inline]
    #[must_use]
    pub fn is_per_thread(&self) -> bool {
        self.opened().is_ok_and(|opened| opened.per_thread)
    }
}
