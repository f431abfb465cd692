//! Facts about the ABI, and differences between two sources of them.

use std::collections::BTreeMap;

/// The values of facts, by name.
pub(crate) type Facts = BTreeMap<String, String>;

/// A difference between a header and the bindings.
#[derive(Debug)]
pub(crate) struct Difference {
    pub(crate) version: u32,
    pub(crate) what: String,
    pub(crate) ours: Option<String>,
    pub(crate) theirs: Option<String>,
}
