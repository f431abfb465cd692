//! Writes the report, as text or JSON.
#![forbid(unsafe_code)]

mod devices;
mod json;
mod libraries;
mod machine;
mod section;
mod text;

pub use json::json;
pub use text::text;
