//! Unit tests of this crate. Most run on a small fake driver, which records its calls and returns the results that a
//! test chooses; `sources` checks rules for the source code.

mod allocations;
mod driver_log;
mod errors;
mod fake;
mod handles;
mod interop;
mod objects;
mod panics;
mod sources;
