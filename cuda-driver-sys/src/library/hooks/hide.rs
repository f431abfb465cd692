//! Drivers that lack functions, or are older than they are.

use core::ffi::c_int;
use core::fmt;

use crate::library::{Call, Faithful, Interposer};
use crate::{CUresult, Function};

/// Makes the driver look as if it did not export some functions: calls answer 302, [`supports`] says no, and
/// `cuGetProcAddress` finds the next older variant or nothing, as on a driver that lacks them.
///
/// The per-thread twin of a hidden function is hidden too.
///
/// [`supports`]: crate::Library::supports
#[derive(Clone)]
pub struct Hide(Box<[bool; Function::COUNT]>);

impl Hide {
    /// Hides these functions.
    #[inline]
    #[must_use]
    pub fn functions(functions: impl IntoIterator<Item = Function>) -> Self {
        let mut hidden = Box::new([false; Function::COUNT]);
        for function in functions {
            hidden[function.index()] = true;
            if let Some(twin) = function.per_thread() {
                hidden[twin.index()] = true;
            }
        }
        Self(hidden)
    }

    /// Hides every function that is newer than a CUDA version, 12020 for 12.2.
    #[inline]
    #[must_use]
    pub fn newer_than(version: u32) -> Self {
        let all = Function::ALL.iter().copied();
        Self::functions(all.filter(|function| function.since() > version))
    }
}

impl Interposer for Hide {
    #[inline]
    fn hides(&self, function: Function) -> bool {
        self.0[function.index()]
    }
}

// SAFETY: what is hidden is not called, and answers 302; all else is forwarded.
unsafe impl Faithful for Hide {}

impl fmt::Debug for Hide {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hidden = self.0.iter().filter(|hidden| **hidden).count();
        write!(f, "Hide({hidden} functions)")
    }
}

/// Makes the driver say that it is of another CUDA version, and hides every function that is newer than that.
///
/// It does not make the driver behave as that version did, nor give it functions that it lacks: claiming a later version
/// than the driver's own changes what `cuDriverGetVersion` says, and nothing else.
#[derive(Debug, Clone, Copy)]
pub struct DriverVersion(u32);

impl DriverVersion {
    /// The version as `cuDriverGetVersion` gives it: 12020 for 12.2.
    #[inline]
    #[must_use]
    pub const fn claim(version: u32) -> Self {
        Self(version)
    }
}

impl Interposer for DriverVersion {
    #[inline]
    fn call(&self, call: Call<'_>) -> CUresult {
        if call.function() != Function::cuDriverGetVersion {
            return call.forward();
        }
        let arguments = call.arguments();
        let result = call.forward();
        // SAFETY: the parameter of cuDriverGetVersion is a pointer to an integer.
        let version = unsafe { arguments.get::<*mut c_int>(0) };
        if let (CUresult::CUDA_SUCCESS, Some(version)) = (result, version) {
            if !version.is_null() {
                // SAFETY: the driver wrote there.
                unsafe { version.write(c_int::try_from(self.0).unwrap_or(c_int::MAX)) };
            }
        }
        result
    }

    #[inline]
    fn version(&self) -> Option<u32> {
        Some(self.0)
    }

    #[inline]
    fn hides(&self, function: Function) -> bool {
        function.since() > self.0
    }
}

// SAFETY: what is hidden is not called, and answers 302; all else is forwarded. A driver may say any version.
unsafe impl Faithful for DriverVersion {}
