//! Reserves the range of addresses that device addresses come from.

#[cfg(unix)]
use super::pages::PAGE;
use std::ops::Range;

/// The preferred start of the range: far from the programs, heaps and mappings of common systems, and the same in each
/// run.
const BASE: u64 = 0x2000_0000_0000;

/// Sizes in bytes, in the order in which they are tried.
const SIZES: [u64; 3] = [1 << 40, 1 << 37, 1 << 35];

/// Reserves the range without access rights, at its fixed start if that is free. Returns it, and true if the system has
/// reserved it.
///
/// On systems other than Unix, and if the system has no room for it (`ulimit -v`), nothing is reserved, and the range
/// is only a range of numbers. The driver works in the same way, but without views for the host, and a host program
/// that follows a device pointer may not crash immediately.
pub(super) fn reserve() -> (Range<u64>, bool) {
    for fixed in [true, false] {
        for size in SIZES {
            if let Some(base) = map(fixed.then_some(BASE), size) {
                return (base..base + size, true);
            }
        }
    }
    (BASE..BASE + SIZES[0], false)
}

#[cfg(unix)]
fn map(at: Option<u64>, size: u64) -> Option<u64> {
    // One extra page leaves room to align the start.
    let (hint, length) = (at.unwrap_or(0) as usize as *mut libc::c_void, (size + PAGE) as usize);
    let flags = libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_NORESERVE;
    // SAFETY: a new private mapping without access rights. Without `MAP_FIXED` the address is only a hint, so no
    // existing mapping is replaced.
    let mapping = unsafe { libc::mmap(hint, length, libc::PROT_NONE, flags, -1, 0) };
    if mapping == libc::MAP_FAILED {
        return None;
    }
    if at.is_some_and(|at| at != mapping as u64) {
        // SAFETY: the mapping was made above, and nothing uses it.
        unsafe { libc::munmap(mapping, length) };
        return None;
    }
    Some((mapping as u64).next_multiple_of(PAGE))
}

#[cfg(not(unix))]
fn map(_at: Option<u64>, _size: u64) -> Option<u64> {
    None
}

/// Maps addresses of the range without access rights again, as [`reserve`] did.
///
/// # Safety
/// The addresses are in the range, and nothing uses the memory that is mapped there.
#[cfg(unix)]
pub(super) unsafe fn again(base: u64, bytes: u64) {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_NORESERVE | libc::MAP_FIXED;
    // SAFETY: replaces only mappings that nothing uses. If the system refuses, they stay, which does no harm.
    unsafe {
        libc::mmap(
            base as usize as *mut libc::c_void,
            bytes as usize,
            libc::PROT_NONE,
            flags,
            -1,
            0,
        )
    };
}

/// Does nothing: the host has no access to the range on this system.
///
/// # Safety
/// None is needed.
#[cfg(not(unix))]
pub(super) unsafe fn again(_base: u64, _bytes: u64) {}
