//! Substrings of constant strings. Names are stored in a few long strings, because thousands of separate strings would
//! make up most of the crate's size.
#![forbid(unsafe_code)]

use core::ffi::CStr;

/// Returns the substring between two byte offsets.
pub(crate) const fn piece(text: &'static str, start: usize, end: usize) -> &'static str {
    let bytes = text.as_bytes().split_at(end).0.split_at(start).1;
    match core::str::from_utf8(bytes) {
        Ok(piece) => piece,
        // Not reached: the strings are ASCII.
        Err(_) => "",
    }
}

/// Returns the NUL-terminated string with an index, counted from 0, of the strings that begin at an offset.
pub(crate) const fn part(text: &'static str, mut start: usize, index: u32) -> Option<&'static CStr> {
    let bytes = text.as_bytes();
    let mut passed = 0;
    while passed < index {
        if bytes[start] == 0 {
            passed += 1;
        }
        start += 1;
    }
    match CStr::from_bytes_until_nul(bytes.split_at(start).1) {
        Ok(part) => Some(part),
        Err(_) => None,
    }
}
