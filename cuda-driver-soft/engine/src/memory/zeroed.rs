//! Zeroed host memory. The system provides each page when it is first touched.

use std::alloc::{Layout, alloc_zeroed, dealloc};

/// The size in bytes from which the allocator takes memory from the system, which provides each page when it is
/// first touched.
const LARGE: usize = 128 << 10;

/// Owned memory, initially zero. Its users synchronise their accesses.
#[derive(Debug)]
pub(super) struct Zeroed {
    /// The first byte, at a multiple of the requested alignment.
    address: *mut u8,
    /// The pointer that the allocator returned; null if nothing was allocated.
    start: *mut u8,
    layout: Layout,
}

// SAFETY: plain memory that this value alone owns and never accesses itself.
unsafe impl Send for Zeroed {}
// SAFETY: as above.
unsafe impl Sync for Zeroed {}

impl Zeroed {
    /// Creates a value without bytes, at a multiple of `align`.
    pub(super) const fn empty(align: usize) -> Self {
        Zeroed {
            address: std::ptr::without_provenance_mut(align),
            start: std::ptr::null_mut(),
            layout: Layout::new::<()>(),
        }
    }

    /// Allocates `bytes` bytes, at least one, at a multiple of `align`, which must be a power of two. Returns `None` if
    /// the host has no memory for them.
    pub(super) fn new(bytes: u64, align: u64) -> Option<Self> {
        let bytes = usize::try_from(bytes.max(1)).ok()?;
        let align = usize::try_from(align).ok()?;
        // For alignments above the one of `malloc`, the allocator writes the zeros itself, and so touches every page.
        // Large memory is therefore allocated with extra bytes and aligned here.
        let layout = if bytes < LARGE {
            Layout::from_size_align(bytes, align)
        } else {
            Layout::from_size_align(bytes.checked_add(align)?, align_of::<u64>())
        };
        let layout = layout.ok()?;
        // SAFETY: the size of the layout is not zero.
        let start = unsafe { alloc_zeroed(layout) };
        (!start.is_null()).then(|| Zeroed {
            address: start.wrapping_add(start.align_offset(align)),
            start,
            layout,
        })
    }

    /// Returns the address of the first byte.
    #[inline]
    pub(super) fn address(&self) -> *mut u8 {
        self.address
    }
}

impl Drop for Zeroed {
    fn drop(&mut self) {
        if !self.start.is_null() {
            // SAFETY: allocated in `new` with this layout. Accesses are valid only while this value lives.
            unsafe { dealloc(self.start, self.layout) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_aligned_and_zeroed_and_too_much_is_none() {
        for bytes in [0, 1, 1000, LARGE as u64 - 1, LARGE as u64, 1 << 20] {
            for align in [1, 16, 128, 512, 1 << 16] {
                let memory = Zeroed::new(bytes, align).unwrap();
                assert_eq!(memory.address() as u64 % align, 0);
                // SAFETY: `memory` owns at least `bytes` bytes, and there is no other reference to them.
                let all = unsafe { std::slice::from_raw_parts_mut(memory.address(), bytes as usize) };
                assert!(all.iter().all(|b| *b == 0));
                all.fill(1);
            }
        }
        assert!(Zeroed::new(u64::MAX, 512).is_none());
        assert!(Zeroed::new(u64::MAX / 2, 512).is_none());
        assert!(Zeroed::new(1 << 60, 1 << 16).is_none());
    }
}
