//! A hook that claims another CUDA version for the driver.

use core::ffi::c_int;

use cuda_driver_sys::library::{Call, Faithful, Interposer};
use cuda_driver_sys::{CUresult, Function};

/// Claims another CUDA version for the driver, and hides every function that is newer than that version.
///
/// The driver still behaves as its own version does, and gains no functions: claiming a version later than the driver's
/// own only changes the answer of `cuDriverGetVersion` and the messages about missing functions.
#[derive(Debug, Clone, Copy)]
pub struct DriverVersion(u32);

impl DriverVersion {
    /// Claims `version`, written as `cuDriverGetVersion` returns it: 12020 for CUDA 12.2.
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
                // SAFETY: the call succeeded, so the driver wrote to this pointer.
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

// SAFETY: calls to hidden functions are not made and fail; all others are forwarded. Any version is a valid output of
// cuDriverGetVersion.
unsafe impl Faithful for DriverVersion {}
