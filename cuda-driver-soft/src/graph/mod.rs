//! Graphs: nodes hold operations, and an executable graph is a plan of launches.
#![forbid(unsafe_code)]

pub(crate) mod dot;
pub(crate) mod exec;
pub(crate) mod store;
pub(crate) mod update;
