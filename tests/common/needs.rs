//! Messages of tests that cannot run on this machine.
#![allow(dead_code)] // each test program uses only a part

use std::io::Write as _;

/// Prints directly to the standard error stream: the test harness would hide the output of a passing test.
pub(crate) fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Reports that a test, or a part of it, was skipped because this machine lacks `missing`; CI lists these lines.
pub(crate) fn needs(missing: &str) {
    say(&format!("needs {missing}"));
}

/// Like [`needs`], but fails in CI, whose machine meets the requirement.
#[track_caller]
pub(crate) fn needs_but_not_in_ci(missing: &str) {
    assert!(std::env::var("CI").as_deref() != Ok("true"), "CI needs {missing}");
    needs(missing);
}
