//! The report.

mod devices;
mod json;
mod libraries;
mod machine;
mod section;
mod text;

pub use json::json;
pub use text::text;
