//! Tests of the names and texts of result codes: the driver's against the table that errors print from.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::ptr;

use cuda_driver::sys::*;

use crate::common::{Codes, driver_version, select_driver};
use crate::is;

/// Returns the codes up to 1200 that the driver names, with their names.
fn names() -> BTreeMap<u32, String> {
    select_driver();
    let mut names = BTreeMap::new();
    for code in 0..=1200 {
        let mut name = ptr::null();
        // SAFETY: the pointer is valid for the write.
        let result = unsafe { cuGetErrorName(CUresult(code), &raw mut name) };
        if result.0 == 0 {
            // SAFETY: on success the driver writes a static string.
            names.insert(code, unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned());
        }
    }
    names
}

#[test]
fn names_match_the_drivers() {
    let mut c = Codes::new();
    let names = names();
    c.that(names.len() >= 90, || format!("{} names", names.len()));
    // The number of names of some drivers, among them that of the bindings.
    let expected = match driver_version() {
        13000 => Some(101),
        version if version as u32 == CUDA_VERSION => Some(106),
        _ => None,
    };
    if let Some(expected) = expected {
        c.that(names.len() == expected, || {
            format!("{} names, expected {expected}", names.len())
        });
    }
    for (code, name) in &names {
        if *code == 0 {
            continue;
        }
        let error = cuda_driver::check(CUresult(*code), Function::cuInit).expect_err("a code other than 0");
        c.that(error.name() == Some(name), || {
            format!("{code}: {:?}, the driver says {name}", error.name())
        });
        c.that(error.text().is_some_and(|text| !text.is_empty()), || {
            format!("{code} has no text")
        });
        let shown = error.to_string();
        c.that(shown.contains(&format!("{name} ({code})")), || {
            format!("{code} prints {shown}")
        });
    }
}

#[test]
fn every_name_has_a_text() {
    let mut c = Codes::new();
    for (code, name) in names() {
        let mut text = ptr::null();
        is!(c, 0, cuGetErrorString(CUresult(code), &raw mut text));
        c.that(!text.is_null(), || format!("{name} has no text"));
    }
}

#[test]
fn unknown_codes() {
    select_driver();
    let mut c = Codes::new();
    for code in [12345, 12, 99, 1200, u32::MAX] {
        let mut name = c"untouched".as_ptr();
        is!(c, 1, cuGetErrorName(CUresult(code), &raw mut name));
        c.that(name.is_null(), || format!("the name of {code} is not NULL"));
        let mut text = c"untouched".as_ptr();
        is!(c, 1, cuGetErrorString(CUresult(code), &raw mut text));
        c.that(text.is_null(), || format!("the text of {code} is not NULL"));
    }
}
