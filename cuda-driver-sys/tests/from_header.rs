//! With the feature `bindgen`: what the generator makes of the committed bindings and the header of this machine.
#![cfg(feature = "bindgen")]

use cuda_driver_sys::{CUDA_VERSION, Function};

/// `render` puts the inputs into the first line; the rest is the bindings.
fn body(text: &str) -> &str {
    text.split_once('\n').expect("more than one line").1
}

macro_rules! compare {
    ($($file:literal)*) => {
        $(
            let committed = body(include_str!(concat!("../src/generated/", $file)));
            let merged = body(include_str!(concat!(env!("OUT_DIR"), "/", $file)));
            assert!(committed == merged, "{} is not the committed one", $file);
        )*
    };
}

#[test]
fn a_header_that_is_not_newer_changes_nothing() {
    let stamp = include_str!(concat!(env!("OUT_DIR"), "/constants.rs"))
        .lines()
        .next()
        .expect("a first line");
    let version: u32 = stamp
        .rsplit_once('(')
        .and_then(|(_, version)| version.trim_end_matches(')').parse().ok())
        .expect("the first line names the header's CUDA_VERSION");
    if version > CUDA_VERSION {
        println!("needs a header that is not newer than {CUDA_VERSION}; this one is {version}");
        assert!(Function::COUNT >= 685);
        return;
    }
    compare! { "constants.rs" "enumerations.rs" "records.rs" "functions.rs" "layout.rs" }
}
