//! Tests that cannot do their work here, and say so.
#![allow(dead_code)] // each test program uses a part

use std::io::Write as _;

/// Prints past the test harness, which holds back what passing tests print.
pub(crate) fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Says that a test did nothing for want of `what`; CI lists these lines.
pub(crate) fn needs(what: &str) {
    say(&format!("needs {what}"));
}

/// The same for what CI's machine has: there it is a failure.
#[track_caller]
pub(crate) fn needs_but_not_in_ci(what: &str) {
    assert!(
        std::env::var("CI").as_deref() != Ok("true"),
        "CI needs {what}"
    );
    needs(what);
}
