//! The generated table of pointer parameters.

mod shown;

pub(super) use shown::SHOWN;
