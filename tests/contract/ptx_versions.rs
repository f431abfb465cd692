//! Tests of `.version` and `.target`: every PTX version up to 9.0 with every target up to sm_90a, and with later
//! targets.

use std::ffi::CString;
use std::ptr::null_mut;

use cuda_driver::sys::*;

use crate::common::gpu::Gpu;
use crate::common::{Codes, architecture, driver_version, needs};
use crate::{call, is, ok};

/// All versions up to that of CUDA 13.0.
const VERSIONS: [&str; 44] = [
    "1.0", "1.1", "1.2", "1.3", "1.4", "1.5", "2.0", "2.1", "2.2", "2.3", "3.0", "3.1", "3.2", "4.0", "4.1", "4.2",
    "4.3", "5.0", "5.1", "6.0", "6.1", "6.2", "6.3", "6.4", "6.5", "7.0", "7.1", "7.2", "7.3", "7.4", "7.5", "7.6",
    "7.7", "7.8", "8.0", "8.1", "8.2", "8.3", "8.4", "8.5", "8.6", "8.7", "8.8", "9.0",
];

/// Versions that do not exist.
const INVENTED: [&str; 8] = ["0.9", "1.6", "3.3", "5.2", "6.6", "6.99", "8.9", "10.0"];

/// Each target up to sm_90a with the first version that has it.
const TARGETS: [(&str, &str); 26] = [
    ("sm_10", "1.0"),
    ("sm_11", "1.0"),
    ("sm_12", "1.2"),
    ("sm_13", "1.2"),
    ("sm_20", "2.0"),
    ("sm_21", "2.0"),
    ("sm_30", "3.0"),
    ("sm_32", "4.0"),
    ("sm_35", "3.0"),
    ("sm_37", "4.1"),
    ("sm_50", "4.0"),
    ("sm_52", "4.1"),
    ("sm_53", "4.2"),
    ("sm_60", "5.0"),
    ("sm_61", "5.0"),
    ("sm_62", "5.0"),
    ("sm_70", "5.1"),
    ("sm_72", "6.1"),
    ("sm_75", "6.3"),
    ("sm_80", "7.0"),
    ("sm_86", "7.1"),
    ("sm_87", "7.4"),
    ("sm_88", "7.3"),
    ("sm_89", "7.8"),
    ("sm_90", "7.8"),
    ("sm_90a", "8.0"),
];

/// Targets above sm_90, which no version can use on a device of compute capability 9.0.
const LATER: [&str; 7] = ["sm_100", "sm_100a", "sm_100f", "sm_103", "sm_110", "sm_120", "sm_121"];

#[test]
fn every_version_with_every_target() {
    let _gpu = Gpu::new();
    if driver_version() < 13000 || architecture() != 90 {
        return needs("a driver of CUDA 13.0 or later and a device of compute capability 9.0");
    }
    let mut c = Codes::new();
    let mut load = |expected: u32, version: &str, target: &str| {
        let text = format!(".version {version}\n.target {target}\n.entry k () {{ ret; }}\n");
        let image = CString::new(text).expect("no NUL");
        let mut module = null_mut();
        let code = call!(cuModuleLoadData(&raw mut module, image.as_ptr().cast())).0;
        c.that(code == expected, || {
            format!(".version {version} .target {target}: {code}, not {expected}")
        });
        if code == 0 {
            ok!(cuModuleUnload(module));
        }
    };
    for (number, version) in VERSIONS.iter().enumerate() {
        for (target, first) in TARGETS {
            let has_target = VERSIONS[..=number].contains(&first);
            load(if has_target { 0 } else { 218 }, version, target);
        }
        for target in LATER {
            load(218, version, target);
        }
    }
    for version in INVENTED {
        for target in TARGETS.iter().map(|(target, _)| *target).chain(LATER) {
            load(222, version, target);
        }
    }
    is!(c, 0, cuCtxSynchronize());
}
