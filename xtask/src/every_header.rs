//! `cargo xtask every-header`: fetches the header package of every CUDA release since 11.7 into `.cache/`.
//!
//! `ci/abi.sh` and `ci/bindgen.sh` compare the bindings with each of them. None is committed.

use crate::headers;

/// Fetches the headers of all releases, and prints the path of each.
pub(crate) fn run() -> Result<(), String> {
    for package in headers::releases()? {
        println!("{}", headers::fetch(&package)?.display());
    }
    Ok(())
}
