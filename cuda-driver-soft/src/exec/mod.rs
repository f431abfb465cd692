//! The engine that runs PTX.

pub mod semantics;
