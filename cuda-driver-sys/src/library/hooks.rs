//! Ready-made interposers: watch, count and time, hide functions, claim another version, change results, let calls fail.
//!
//! Each goes to [`Options::hook`], any number together, in any order: the first that is given sees a call first, so a
//! [`Watch`] that is given before a [`Fail`] sees the failures too. They work over every driver, the system's and
//! the software one; [`Source::library`] puts them over a library that there is already. With
//! [`set_default_with`](super::set_default_with) they are in force for the free functions, and for whatever is built on
//! these. Those that may answer what is not so, like [`ChangeResult`] and closures over [`Call`], go to
//! [`Options::interposer`], which is `unsafe`: safe code reads what a call says it wrote, and frees what it says it
//! did not take.
//!
//! ```
//! use cuda_driver_sys::library::hooks::{Counter, DriverVersion, Fail, Watch};
//! use cuda_driver_sys::library::{Options, Source};
//! use cuda_driver_sys::{CUresult, Function, Library};
//!
//! fn over(driver: &'static Library) -> Result<(), Box<dyn std::error::Error>> {
//!     let calls = Counter::new();
//!     let options = Options::new()
//!         .hook(Watch::new(|seen| println!("{seen}")))
//!         .hook(calls.clone())
//!         .hook(DriverVersion::claim(12020))
//!         .hook(Fail::nth(Function::cuMemAlloc, 3, CUresult::CUDA_ERROR_OUT_OF_MEMORY));
//!     let library = Library::new(Source::library(driver), options)?;
//!     assert_eq!(library.version(), Some(12020));
//!     assert!(!library.supports(Function::cuCtxCreate_v4));
//!     assert_eq!(calls.calls(Function::cuDriverGetVersion), 1);
//!     Ok(())
//! }
//! ```
//!
//! [`Interposer`] says what an interposer cannot see.
//!
//! [`Options::hook`]: super::Options::hook
//! [`Options::interposer`]: super::Options::interposer
//! [`Source::library`]: super::Source::library

mod count;
mod fail;
mod hide;
mod watch;

pub use count::Counter;
pub use fail::{Fail, FailInThread, Failing};
pub use hide::{DriverVersion, Hide};
pub use watch::{Observed, Watch};

use super::{Call, Interposer};
use crate::{CUresult, Function};

/// Changes the results of one function. Who calls a library with it is told what is not so:
/// [`Options::interposer`](super::Options::interposer) says what that asks of them.
///
/// ```
/// use cuda_driver_sys::library::hooks::ChangeResult;
/// use cuda_driver_sys::{CUresult, Function};
///
/// // A stream that is never done.
/// let hook = ChangeResult::of(Function::cuStreamQuery, |_| CUresult::CUDA_ERROR_NOT_READY);
/// # _ = hook;
/// ```
#[derive(Debug, Clone, Copy)]
pub struct ChangeResult<F> {
    function: Function,
    change: F,
}

impl<F: Fn(CUresult) -> CUresult + Send + Sync> ChangeResult<F> {
    /// What the driver returned goes through `change`. The call is made, and its outputs are the driver's.
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
