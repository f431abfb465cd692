//! Tests over a small fake driver, which records its calls and returns the results that a test chooses.

mod allocations;
mod driver_log;
mod errors;
mod fake;
mod handles;
mod interop;
mod objects;
mod sources;
