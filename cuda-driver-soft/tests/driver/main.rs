//! The driver, called as a C program calls it: through its symbols, right and wrong. What it must answer is what a real
//! driver was seen to answer.

// Calls of a C API with arguments of these tests' own, or wrong on purpose where the software driver finds that out.
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
