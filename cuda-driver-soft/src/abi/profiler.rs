//! `cudaProfiler.h`: not in `cuda.h`, but exported by every driver, and programs are linked with it.

use std::ffi::{c_char, c_int};

use super::{Table, exports};
use crate::driver::context;
use crate::driver::error::Error;

/// Version that introduced the functions.
pub(super) const SINCE: u32 = 4000;

exports! {
    fn cuProfilerInitialize [_c] (_config: *const c_char, _output: *const c_char, _mode: c_int) {
        Err(Error::NOT_SUPPORTED)
    }

    // No profiler can be attached: there is nothing to start or to stop.
    fn cuProfilerStart [_c] () {
        context::current().map(drop)
    }

    fn cuProfilerStop [_c] () {
        context::current().map(drop)
    }
}

/// Their symbols and addresses.
pub(super) fn list() -> [(&'static str, usize); 3] {
    [
        ("cuProfilerInitialize", Table::cuProfilerInitialize as usize),
        ("cuProfilerStart", Table::cuProfilerStart as usize),
        ("cuProfilerStop", Table::cuProfilerStop as usize),
    ]
}
