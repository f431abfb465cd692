//! Libraries: finding and loading a driver at run time, and calling it.
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
mod claim;
mod default;
mod error;
mod interposer;
mod legacy;
#[cfg(feature = "link")]
mod linked;
mod nested;
#[cfg(feature = "loader")]
mod object;
mod open;
mod origin;
mod proc_address;
mod query;
mod resolve;
#[cfg(feature = "loader")]
mod search;
mod slots;
mod source;

pub use arguments::Arguments;
pub use claim::ClaimedBy;
pub use default::{AlreadySet, DEFAULT, default_library, set_default, set_default_with};
pub use error::{Attempt, LoadError, LoadErrorKind, MissingSymbol};
pub use interposer::{Call, Faithful, Interposer};
pub use legacy::Legacy;
pub use query::SOFTWARE_MARKER;
#[cfg(feature = "loader")]
pub use search::{is_privileged, is_stub, search_places};
pub use slots::Library;
pub use source::{Options, Source};
