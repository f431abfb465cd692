//! The linker: several sources into one image.

/// A linker in use.
pub(crate) struct Linker {}
