//! Graphs: their nodes hold operations. An executable graph is a copy that can be launched.
#![forbid(unsafe_code)]

pub(crate) mod dot;
pub(crate) mod exec;
pub(crate) mod store;
pub(crate) mod update;
