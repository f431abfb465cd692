//! Hooks for [`cuda_driver_sys`]: watch, count and time driver calls, hide functions, claim another version, change
//! results, make calls fail.
//!
//! Each hook implements [`Interposer`], and all except [`ChangeResult`] are passed to [`Options::hook`]. Several can be
//! combined in any order: the one added first sees a call first, so a [`Watch`] added before a [`Fail`] also sees the
//! failures. Hooks work over every driver, the system's and the software driver; [`Source::library`] puts them over a
//! library that already exists. With [`set_default_with`] they apply to the free functions, and to everything that is
//! built on these.
//!
//! Interposers that are not [`Faithful`], like [`ChangeResult`] and closures over [`Call`], may report a success as a
//! failure or a failure as a success. They are passed to [`Options::interposer`], which is `unsafe`, because safe code
//! reads the outputs of a call that succeeded, and frees the inputs of a call that failed.
//!
//! ```
//! use cuda_driver_hooks::{Counter, DriverVersion, Fail, Watch};
//! use cuda_driver_sys::library::{Options, Source};
//! use cuda_driver_sys::{CUresult, Function, Library};
//!
//! fn over(driver: &'static Library) -> Result<(), Box<dyn std::error::Error>> {
//!     let calls = Counter::new();
//!     let options = Options::new()
//!         .hook(Watch::new(|call| println!("{call}")))
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
//! The documentation of [`Interposer`] lists the calls that no interposer can see.
//!
//! [`Call`]: cuda_driver_sys::library::Call
//! [`Faithful`]: cuda_driver_sys::library::Faithful
//! [`Interposer`]: cuda_driver_sys::library::Interposer
//! [`Options::hook`]: cuda_driver_sys::library::Options::hook
//! [`Options::interposer`]: cuda_driver_sys::library::Options::interposer
//! [`Source::library`]: cuda_driver_sys::library::Source::library
//! [`set_default_with`]: cuda_driver_sys::library::set_default_with
// This crate writes nothing to standard output and standard error, which belong to the program.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod change;
mod count;
mod fail;
mod hide;
mod version;
mod watch;

pub use change::ChangeResult;
pub use count::Counter;
pub use fail::{Fail, FailInThread, Failing};
pub use hide::Hide;
pub use version::DriverVersion;
pub use watch::{Observed, Watch};
