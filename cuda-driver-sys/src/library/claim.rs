//! Describes the call that set or first used the default library.
#![forbid(unsafe_code)]

use core::panic::Location;

use crate::Function;

/// The call that set or first used the default library.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClaimedBy {
    /// The first use: a call to this function, or `None` for a query that opened the library.
    FirstUse(Option<Function>),
    /// A call of [`set_default`](super::set_default) or [`set_default_with`](super::set_default_with).
    Set {
        /// The name of the source that it set.
        source: String,
        /// The location of the call.
        location: &'static Location<'static>,
    },
}
