//! Texts that lie in one: thousands of texts with an address each would be most of the crate.

/// The piece of a text between two places.
pub(crate) const fn piece(text: &'static str, start: usize, end: usize) -> &'static str {
    let bytes = text.as_bytes().split_at(end).0.split_at(start).1;
    match core::str::from_utf8(bytes) {
        Ok(piece) => piece,
        // The texts are names and types of the API: ASCII.
        Err(_) => "",
    }
}
