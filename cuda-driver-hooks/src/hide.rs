//! A hook that hides functions.

use core::fmt;

use cuda_driver_sys::Function;
use cuda_driver_sys::library::{Faithful, Interposer};

/// Hides functions, as if the driver did not export them: calls return
/// [`CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND`], [`supports`] returns false, and `cuGetProcAddress` finds the next
/// older variant or nothing.
///
/// The per-thread twin of a hidden function is also hidden.
///
/// [`CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND`]: cuda_driver_sys::CUresult::CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND
/// [`supports`]: cuda_driver_sys::Library::supports
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

    /// Hides every function that is newer than a CUDA version, for instance 12020 for CUDA 12.2.
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

// SAFETY: calls to hidden functions are not made and fail; all others are forwarded.
unsafe impl Faithful for Hide {}

impl fmt::Debug for Hide {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hidden = self.0.iter().filter(|hidden| **hidden).count();
        write!(f, "Hide({hidden} functions)")
    }
}
