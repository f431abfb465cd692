//! Zeroed host memory. The system provides each page when it is first touched.

use std::alloc::{Layout, alloc_zeroed, dealloc};

/// The size in bytes from which allocators take new memory from the system.
const LARGE: usize = 128 << 10;
/// The size in bytes from which memory is mapped directly. An allocator that reuses memory clears it, and so touches
/// every page.
const MAPPED: usize = 1 << 20;

/// Owned memory, initially zero. Its users synchronise their accesses.
#[derive(Debug)]
pub(super) struct Zeroed {
    /// The first byte, at a multiple of the requested alignment.
    address: *mut u8,
    origin: Origin,
}

/// The way in which memory was allocated, which decides how it is freed.
#[derive(Debug)]
enum Origin {
    /// No memory was allocated.
    Nothing,
    /// The allocator returned this pointer for this layout.
    Allocator(*mut u8, Layout),
    /// A mapping of the system: its address and its length.
    System(*mut u8, usize),
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
            origin: Origin::Nothing,
        }
    }

    /// Allocates `bytes` bytes, at least one, at a multiple of `align`, which must be a power of two. Returns `None` if
    /// the host has no memory for them.
    pub(super) fn new(bytes: u64, align: u64) -> Option<Self> {
        let bytes = usize::try_from(bytes.max(1)).ok()?;
        let align = usize::try_from(align).ok()?;
        if bytes < LARGE {
            return Self::from_allocator(Layout::from_size_align(bytes, align).ok()?, align);
        }
        // The memory has extra bytes and is aligned here: for alignments above that of `malloc`, the allocator would
        // clear the memory itself, and so touch every page.
        let room = bytes.checked_add(align)?;
        if bytes >= MAPPED
            && let Some(start) = system::map(room)
        {
            return Some(Zeroed {
                address: start.wrapping_add(start.align_offset(align)),
                origin: Origin::System(start, room),
            });
        }
        // The system limits the number of mappings of a process, so mapping can fail.
        Self::from_allocator(Layout::from_size_align(room, align_of::<u64>()).ok()?, align)
    }

    fn from_allocator(layout: Layout, align: usize) -> Option<Self> {
        // SAFETY: the size of the layout is not zero.
        let start = unsafe { alloc_zeroed(layout) };
        (!start.is_null()).then(|| Zeroed {
            address: start.wrapping_add(start.align_offset(align)),
            origin: Origin::Allocator(start, layout),
        })
    }

    /// Returns the address of the first byte.
    #[inline]
    pub(super) fn address(&self) -> *mut u8 {
        self.address
    }

    /// Gives the whole pages in a range of bytes back to the system, which makes them zero. Returns the range of bytes
    /// that is now zero. It is empty if the range is small or the memory cannot be given back.
    ///
    /// # Safety
    /// The range is inside the memory, and no other reference to it is in use.
    pub(super) unsafe fn discard(&mut self, start: usize, bytes: usize) -> std::ops::Range<usize> {
        if bytes < MAPPED || !matches!(self.origin, Origin::System(..)) {
            return start..start;
        }
        // SAFETY: the range is part of a private mapping of this value, by the caller's contract.
        let zero = unsafe { system::discard(self.address.wrapping_add(start), bytes) };
        start + zero.start..start + zero.end
    }
}

impl Drop for Zeroed {
    fn drop(&mut self) {
        match self.origin {
            Origin::Nothing => {}
            // SAFETY: allocated in `from_allocator` with this layout. Accesses are valid only while this value lives.
            Origin::Allocator(start, layout) => unsafe { dealloc(start, layout) },
            // SAFETY: mapped in `new` with this length. Accesses are valid only while this value lives.
            Origin::System(start, bytes) => unsafe { system::unmap(start, bytes) },
        }
    }
}

#[cfg(unix)]
mod system {
    use std::ops::Range;
    use std::sync::OnceLock;

    /// Maps zeroed memory. Returns `None` if the system refuses.
    pub(super) fn map(bytes: usize) -> Option<*mut u8> {
        let (rights, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANON);
        // SAFETY: a new private mapping, at an address that the system chooses.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, rights, flags, -1, 0) };
        (start != libc::MAP_FAILED).then_some(start.cast())
    }

    /// Ends a mapping.
    ///
    /// # Safety
    /// [`map`] returned it for this length, and nothing accesses it any more.
    pub(super) unsafe fn unmap(start: *mut u8, bytes: usize) {
        // SAFETY: by the caller's contract.
        unsafe { libc::munmap(start.cast(), bytes) };
    }

    /// Gives the whole pages in a range back to the system. Returns the part of the range that is now zero.
    ///
    /// # Safety
    /// The range is part of a mapping from [`map`], and nothing else accesses it.
    pub(super) unsafe fn discard(start: *mut u8, bytes: usize) -> Range<usize> {
        static ZEROES: OnceLock<bool> = OnceLock::new();
        if !*ZEROES.get_or_init(zeroes) {
            return 0..0;
        }
        let page = page();
        let first = start.align_offset(page).min(bytes);
        let length = (bytes - first) / page * page;
        // SAFETY: whole pages of the range.
        match unsafe { give_back(start.wrapping_add(first), length) } {
            true => first..first + length,
            false => 0..0,
        }
    }

    /// Returns true if discarded pages read as zero. Some systems and emulators treat the call only as a hint.
    fn zeroes() -> bool {
        let page = page();
        let Some(start) = map(page) else { return false };
        // SAFETY: the page is mapped, and nothing else accesses it.
        unsafe {
            start.write_volatile(1);
            let zero = give_back(start, page) && start.read_volatile() == 0;
            unmap(start, page);
            zero
        }
    }

    fn page() -> usize {
        static PAGE: OnceLock<usize> = OnceLock::new();
        // SAFETY: the call only reads a setting of the system.
        *PAGE.get_or_init(|| usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(1 << 16))
    }

    /// Discards the contents of pages. Returns false if the system refuses.
    ///
    /// # Safety
    /// The pages belong to a mapping from [`map`], and nothing else accesses them.
    unsafe fn give_back(start: *mut u8, bytes: usize) -> bool {
        // SAFETY: by the caller's contract, the contents are not needed.
        unsafe { libc::madvise(start.cast(), bytes, libc::MADV_DONTNEED) == 0 }
    }
}

#[cfg(not(unix))]
mod system {
    use std::ops::Range;

    /// Returns `None`: the allocator provides all memory.
    pub(super) fn map(_bytes: usize) -> Option<*mut u8> {
        None
    }

    /// Does nothing: nothing is ever mapped.
    ///
    /// # Safety
    /// None.
    pub(super) unsafe fn unmap(_start: *mut u8, _bytes: usize) {}

    /// Does nothing, and returns an empty range.
    ///
    /// # Safety
    /// None.
    pub(super) unsafe fn discard(_start: *mut u8, _bytes: usize) -> Range<usize> {
        0..0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_aligned_and_zeroed_or_refused() {
        for bytes in [0, 1, 1000, LARGE as u64 - 1, LARGE as u64, MAPPED as u64, 3 << 20] {
            for align in [1, 16, 128, 512, 1 << 16] {
                let mut memory = Zeroed::new(bytes, align).unwrap();
                assert_eq!(memory.address() as u64 % align, 0);
                // SAFETY: `memory` owns at least `bytes` bytes, and there is no other reference to them.
                let all = unsafe { std::slice::from_raw_parts_mut(memory.address(), bytes as usize) };
                assert!(all.iter().all(|b| *b == 0));
                all.fill(1);
                // SAFETY: the range is inside, and `all` is not used until after.
                let zero = unsafe { memory.discard(0, bytes as usize) };
                for (i, byte) in all.iter().enumerate() {
                    assert_eq!(*byte, u8::from(!zero.contains(&i)));
                }
            }
        }
        assert!(Zeroed::new(u64::MAX, 512).is_none());
        assert!(Zeroed::new(u64::MAX / 2, 512).is_none());
        assert!(Zeroed::new(1 << 60, 1 << 16).is_none());
    }
}
