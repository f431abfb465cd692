//! Tests of the driver, called as a C program calls it: through its symbols, with valid and invalid arguments. The
//! expected results are those observed on NVIDIA's driver.

// Calls of a C API with pointers to these tests' own variables, or with invalid ones that the software driver detects.
#![allow(clippy::undocumented_unsafe_blocks)]

mod common;
mod context;
mod fault;
mod graphs;
mod launch;
mod limits;
mod linking;
mod memory;
mod module;
mod pools;
mod process;
mod stream;
mod vector_add;
mod waiting;
