//! Facts about the ABI, and differences between two sources of them.

use std::collections::BTreeMap;

/// Facts, each a name and a value as text, such as the size of a structure.
pub(crate) type Facts = BTreeMap<String, String>;

/// A difference between a header and the bindings.
#[derive(Debug)]
pub(crate) struct Difference {
    /// The header's `CUDA_VERSION`.
    pub(crate) version: u32,
    /// The name of the fact.
    pub(crate) what: String,
    /// The value in the bindings; `None` if they lack the fact.
    pub(crate) ours: Option<String>,
    /// The value in the header; `None` if it lacks the fact.
    pub(crate) theirs: Option<String>,
}
