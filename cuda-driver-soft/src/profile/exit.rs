//! Writes the profile of a process that exits.

use std::ffi::OsStr;
use std::path::Path;

use host::{console, environment};

use super::report::Report;
use super::whole;

/// Writes the profile of a process that exits, if `CUDA_SOFT_PROFILE` requests one.
pub(crate) fn at_exit() {
    let (Some(collection), Some(target)) = (whole(), environment::profile()) else {
        return;
    };
    let report = Report {
        launches: collection.take(),
    };
    if target == OsStr::new("1") {
        console::write(console::Stream::Error, report.to_string().as_bytes());
        return;
    }
    let path = Path::new(&target);
    if let Err(error) = report.write(path) {
        let line = format!(
            "cuda-driver-soft: CUDA_SOFT_PROFILE: cannot write the profile to {}: {error}\n",
            path.display()
        );
        console::write(console::Stream::Error, line.as_bytes());
    }
}
