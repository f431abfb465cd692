//! Tests over a small fake driver, which records its calls and returns the results that a test chooses.

mod errors;
mod fake;
mod objects;
mod sources;
