//! Tests that call the driver as a C program does: through its exported symbols, with valid and invalid arguments. The
//! expected results were observed on NVIDIA's driver.

// These tests call a C API. They pass pointers to their own variables, or invalid pointers that the software driver
// detects.
#![allow(clippy::undocumented_unsafe_blocks)]

mod checks;
mod common;
mod context;
mod engine;
mod fault;
mod graphs;
mod hostile;
mod launch;
mod leaks;
mod limits;
mod linking;
mod load;
mod load_graphs;
mod memory;
mod module;
mod node_attributes;
mod other_contexts;
mod pools;
mod process;
mod profile;
mod report;
mod stream;
mod stream_races;
mod trace;
mod vector_add;
mod waiting;
