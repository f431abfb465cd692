//! Tests that call the driver as a C program does, with valid and invalid arguments, and tests of the checks, profiles
//! and traces of the software driver. Tests that also run on NVIDIA's driver expect the results that were observed
//! there.

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
mod large_graphs;
mod launch;
mod leaks;
mod limits;
mod linking;
mod load;
mod load_graphs;
mod memory;
mod module;
#[path = "../../../tests/common/needs.rs"]
mod needs;
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
