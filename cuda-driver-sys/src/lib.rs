//! Raw bindings to the CUDA Driver API, found and loaded at run time.
#![cfg_attr(docsrs, feature(doc_cfg))]

// First: the others use its macro.
#[macro_use]
mod generated;

#[cfg(feature = "loader")]
mod calls;
mod constants;
mod enumeration;
mod function;
#[cfg(feature = "loader")]
pub mod library;

#[cfg(feature = "loader")]
pub use calls::free::*;
pub use constants::*;
pub use function::{Function, StreamMode};
pub use generated::constants::*;
pub use generated::enumerations::*;
pub use generated::records::*;
#[cfg(feature = "loader")]
pub use library::{DEFAULT, Library, default_library, set_default};

/// Exports whose own name means another export in C: mostly the 32-bit era's, which take device pointers of 32 bits.
///
/// `legacy::cuMemAlloc` is the export `cuMemAlloc` of CUDA 2.0; the free function [`cuMemAlloc`](crate::cuMemAlloc)
/// is `cuMemAlloc_v2`, as in C.
pub mod legacy {
    #[cfg(feature = "loader")]
    pub use crate::calls::old::*;
    pub use crate::function::old::Function;
}
