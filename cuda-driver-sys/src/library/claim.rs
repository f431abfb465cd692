//! The first use of the default library, which fixes it.
#![forbid(unsafe_code)]

use core::panic::Location;

use crate::Function;

/// What came first.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClaimedBy {
    /// The library was used: by a call to this function, or by a question that has to open it.
    FirstUse(Option<Function>),
    /// An earlier [`set_default`](super::set_default).
    Set {
        /// What it chose.
        source: String,
        /// Where it was called.
        location: &'static Location<'static>,
    },
}
