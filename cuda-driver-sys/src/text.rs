//! Substrings of constant strings. Names are stored in few long strings, because thousands of separate strings would
//! make up most of the crate's size.
#![forbid(unsafe_code)]

/// Returns the substring between two byte offsets.
pub(crate) const fn piece(text: &'static str, start: usize, end: usize) -> &'static str {
    let bytes = text.as_bytes().split_at(end).0.split_at(start).1;
    match core::str::from_utf8(bytes) {
        Ok(piece) => piece,
        // Not reached: the strings are ASCII.
        Err(_) => "",
    }
}
