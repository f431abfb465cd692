//! Zeroed memory of the host that takes no room until it is touched.

use std::alloc::{Layout, alloc_zeroed, dealloc};

/// From this size on memory comes from the system page by page, as it is touched.
const LARGE: usize = 128 << 10;

/// Zeroed bytes. Whoever holds it decides who may access them when.
#[derive(Debug)]
pub(super) struct Zeroed {
    /// The first byte: a multiple of the alignment that was asked for.
    address: *mut u8,
    /// What the allocator gave.
    start: *mut u8,
    layout: Layout,
}

// SAFETY: plain memory that this value alone owns; it never looks inside.
unsafe impl Send for Zeroed {}
// SAFETY: as above.
unsafe impl Sync for Zeroed {}

impl Zeroed {
    /// No bytes, at a multiple of `align`.
    pub(super) const fn empty(align: usize) -> Self {
        Zeroed {
            address: std::ptr::without_provenance_mut(align),
            start: std::ptr::null_mut(),
            layout: Layout::new::<()>(),
        }
    }

    /// At least one byte, at a multiple of `align`, which is a power of two. `None` if the host has no memory for it.
    pub(super) fn new(bytes: u64, align: u64) -> Option<Self> {
        let bytes = usize::try_from(bytes.max(1)).ok()?;
        let align = usize::try_from(align).ok()?;
        // For more than malloc's own alignment the allocator writes the zeros itself, which would make the system
        // provide every page: large memory is asked for with some more, and aligned here.
        let layout = if bytes < LARGE {
            Layout::from_size_align(bytes, align)
        } else {
            Layout::from_size_align(bytes.checked_add(align)?, align_of::<u64>())
        };
        let layout = layout.ok()?;
        // SAFETY: the layout's size is not zero.
        let start = unsafe { alloc_zeroed(layout) };
        (!start.is_null()).then(|| Zeroed {
            address: start.wrapping_add(start.align_offset(align)),
            start,
            layout,
        })
    }

    /// The first byte.
    #[inline]
    pub(super) fn address(&self) -> *mut u8 {
        self.address
    }
}

impl Drop for Zeroed {
    fn drop(&mut self) {
        if !self.start.is_null() {
            // SAFETY: allocated in `new` with this layout; whoever accessed the bytes kept this value alive.
            unsafe { dealloc(self.start, self.layout) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aligned_zeroed_and_too_much_is_no_panic() {
        for bytes in [0, 1, 1000, LARGE as u64 - 1, LARGE as u64, 1 << 20] {
            for align in [1, 16, 128, 512, 1 << 16] {
                let memory = Zeroed::new(bytes, align).unwrap();
                assert_eq!(memory.address() as u64 % align, 0);
                // SAFETY: `bytes` bytes that nobody else knows of.
                let all =
                    unsafe { std::slice::from_raw_parts_mut(memory.address(), bytes as usize) };
                assert!(all.iter().all(|b| *b == 0));
                all.fill(1);
            }
        }
        assert!(Zeroed::new(u64::MAX, 512).is_none());
        assert!(Zeroed::new(u64::MAX / 2, 512).is_none());
        assert!(Zeroed::new(1 << 60, 1 << 16).is_none());
    }
}
