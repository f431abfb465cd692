//! The range of addresses that device memory is given out from.

#[cfg(unix)]
use super::pages::PAGE;
use std::ops::Range;

/// Where the range should be: far from where systems put programs, heaps and mappings, and the same in each run.
const BASE: u64 = 0x2000_0000_0000;

/// Sizes to try, in bytes.
const SIZES: [u64; 3] = [1 << 40, 1 << 37, 1 << 35];

/// Reserves the range, inaccessible, at its fixed place if that is free.
///
/// Where the system has no such reservation the range is only a range of numbers: all works the same, but a host
/// program that follows a device pointer may not crash at once.
pub(super) fn reserve() -> Range<u64> {
    for fixed in [true, false] {
        for size in SIZES {
            if let Some(base) = map(fixed.then_some(BASE), size) {
                return base..base + size;
            }
        }
    }
    BASE..BASE + SIZES[0]
}

#[cfg(unix)]
fn map(at: Option<u64>, size: u64) -> Option<u64> {
    // One page more leaves room to align the start.
    let (hint, length) = (
        at.unwrap_or(0) as usize as *mut libc::c_void,
        (size + PAGE) as usize,
    );
    let flags = libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_NORESERVE;
    // SAFETY: a new private mapping without access rights, at a place of the system's choice (the address is only a
    // hint, so nothing that is mapped already is replaced).
    let got = unsafe { libc::mmap(hint, length, libc::PROT_NONE, flags, -1, 0) };
    if got == libc::MAP_FAILED {
        return None;
    }
    if at.is_some_and(|at| at != got as u64) {
        // SAFETY: the mapping made above, which nothing uses.
        unsafe { libc::munmap(got, length) };
        return None;
    }
    Some((got as u64).next_multiple_of(PAGE))
}

#[cfg(not(unix))]
fn map(_at: Option<u64>, _size: u64) -> Option<u64> {
    None
}
