//! `cargo xtask every-header`: fetches the header package of every CUDA release since 11.7 into `.cache/`.
//!
//! The bindings are compared with each of them (`ci/abi.sh`, `ci/bindgen.sh`); none is ever committed.

use crate::headers;

/// Fetches all of them, and prints where each header is.
pub(crate) fn run() -> Result<(), String> {
    for package in headers::releases() {
        println!("{}", headers::fetch(&package)?.display());
    }
    Ok(())
}
