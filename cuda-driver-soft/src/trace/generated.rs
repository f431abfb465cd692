//! The generated table of the pointer parameters whose values a trace shows.

mod shown;

pub(super) use shown::SHOWN;
