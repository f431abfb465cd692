//! Buffers for the compiler's logs.

use core::alloc::Layout;
use core::ptr::NonNull;
use core::slice;
use std::alloc::{alloc, dealloc};

/// Memory for a log, which the driver fills with a C string. Only the first and the last byte are initialised before
/// that, so that a large buffer costs no more than a small one.
pub(super) struct LogBuffer {
    address: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the memory has no other owner.
unsafe impl Send for LogBuffer {}
// SAFETY: as above; shared references only read.
unsafe impl Sync for LogBuffer {}

impl LogBuffer {
    /// Allocates a buffer that holds an empty string. Returns `None` if there is not enough memory, or if the size is
    /// 0.
    #[inline]
    pub(super) fn new(size: u32) -> Option<Self> {
        let size = size as usize;
        let layout = Layout::array::<u8>(size).ok()?;
        if size == 0 {
            return None;
        }
        // SAFETY: the size is not 0.
        let address = NonNull::new(unsafe { alloc(layout) })?;
        for at in [0, size - 1] {
            // SAFETY: both indices are inside the buffer.
            unsafe { address.add(at).write(0) };
        }
        Some(Self { address, layout })
    }

    /// Returns the address to pass to the driver.
    #[inline]
    pub(super) const fn address(&self) -> *mut u8 {
        self.address.as_ptr()
    }

    /// Returns the text without white space at its end. If the text fills the buffer, the driver may have truncated it,
    /// and a line at the end says so.
    #[inline]
    pub(super) fn text(&self) -> String {
        let size = self.layout.size();
        let mut length = 0;
        // SAFETY: the driver writes a C string from the start on, so that all bytes up to the first NUL are
        // initialised. The last byte is, too.
        while length < size && unsafe { self.address.add(length).read() } != 0 {
            length += 1;
        }
        // SAFETY: these bytes are initialised, as above, and the driver writes only during calls.
        let bytes = unsafe { slice::from_raw_parts(self.address.as_ptr(), length) };
        let mut text = String::from_utf8_lossy(bytes).trim_end().to_owned();
        if length > 0 && length + 1 >= size {
            text.push_str("\n(truncated: set a larger `JitOptions::log_bytes`)");
        }
        text
    }
}

impl Drop for LogBuffer {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { dealloc(self.address.as_ptr(), self.layout) };
    }
}

#[cfg(test)]
mod tests {
    use super::LogBuffer;

    fn with(size: u32, text: &[u8]) -> String {
        let buffer = LogBuffer::new(size).unwrap();
        for (at, byte) in text.iter().enumerate() {
            // SAFETY: the texts of the tests fit.
            unsafe { buffer.address().add(at).write(*byte) };
        }
        buffer.text()
    }

    #[test]
    fn texts_end_at_the_nul_or_with_the_buffer() {
        assert_eq!(with(16, b""), "");
        assert_eq!(with(16, b"one\n\0"), "one");
        assert_eq!(with(1, b""), "");
        for full in [&b"abc\0"[..], b"abcd"] {
            let text = with(4, full);
            assert!(text.starts_with("abc") && text.contains("\n(truncated: "), "{text}");
        }
        assert!(LogBuffer::new(0).is_none());
    }
}
