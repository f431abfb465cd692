//! A launch of a kernel.

pub(crate) mod workspace;
