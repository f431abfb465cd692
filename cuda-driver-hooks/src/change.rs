//! A hook that changes results.

use cuda_driver_sys::library::{Call, Interposer};
use cuda_driver_sys::{CUresult, Function};

/// Changes the results of one function. Callers see altered results:
/// [`Options::interposer`](cuda_driver_sys::library::Options::interposer) states the obligations that come with that.
///
/// ```
/// use cuda_driver_hooks::ChangeResult;
/// use cuda_driver_sys::{CUresult, Function};
///
/// // Every stream looks busy.
/// let hook = ChangeResult::of(Function::cuStreamQuery, |_| CUresult::CUDA_ERROR_NOT_READY);
/// # _ = hook;
/// ```
#[derive(Debug, Clone, Copy)]
pub struct ChangeResult<F> {
    function: Function,
    change: F,
}

impl<F: Fn(CUresult) -> CUresult + Send + Sync> ChangeResult<F> {
    /// Passes each result of `function` through `change`. The call is made, and its outputs are the driver's.
    #[inline]
    #[must_use]
    pub const fn of(function: Function, change: F) -> Self {
        Self { function, change }
    }
}

impl<F: Fn(CUresult) -> CUresult + Send + Sync> Interposer for ChangeResult<F> {
    #[inline]
    fn call(&self, call: Call<'_>) -> CUresult {
        if call.function() == self.function {
            (self.change)(call.forward())
        } else {
            call.forward()
        }
    }
}
