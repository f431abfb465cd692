//! Compiles the example crate `examples/higher-crate` and its tests into this test program. They then run on each
//! driver that the workspace is tested with, and their dependencies are built only once.

// The example's tests name the crate `higher_crate`.
extern crate self as higher_crate;

#[path = "../examples/higher-crate/src/lib.rs"]
mod library;
#[path = "../examples/higher-crate/tests/vector.rs"]
mod vector;

pub use library::*;
