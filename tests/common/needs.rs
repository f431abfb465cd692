//! Messages of tests that cannot run on this machine.
#![allow(dead_code)] // each test program uses only a part

use std::io::Write as _;

/// Prints to the real standard output, because the test harness hides the output of passing tests.
pub(crate) fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Reports that a test was skipped because this machine lacks `what`; CI lists these lines.
pub(crate) fn needs(what: &str) {
    say(&format!("needs {what}"));
}

/// Like [`needs`], for requirements that CI's machine meets: a failure there.
#[track_caller]
pub(crate) fn needs_but_not_in_ci(what: &str) {
    assert!(
        std::env::var("CI").as_deref() != Ok("true"),
        "CI needs {what}"
    );
    needs(what);
}
