//! The example crate `examples/higher-crate` with its tests, built as a part of this workspace: on each driver, without
//! another build of the dependencies.

extern crate self as higher_crate;

#[path = "../examples/higher-crate/src/lib.rs"]
mod library;
#[path = "../examples/higher-crate/tests/vector.rs"]
mod vector;

pub use library::*;
