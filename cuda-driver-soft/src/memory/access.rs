//! Every load and store of device memory.
//!
//! Kernels, and copies beside kernels, may touch the same bytes at the same time. That is no undefined behaviour of the
//! host process, because nothing here is a plain load or store of Rust: single values go through relaxed atomics, rows
//! of a warp and bulk copies through `asm!`, whose effect on memory the compiler does not reason about. On machines
//! without such code, and under `--cfg cuda_soft_atomics` (for sanitizers), all goes through relaxed atomics.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

macro_rules! scalar {
    ($load:ident, $store:ident, $ty:ty, $atomic:ty) => {
        /// Loads one value.
        ///
        /// # Safety
        /// `at` must be valid for reads of the value and aligned to its size.
        #[inline(always)]
        pub(crate) unsafe fn $load(at: *const u8) -> $ty {
            // SAFETY: valid and aligned, as the caller promises; atomics may race with other accesses of this module.
            unsafe { &*at.cast::<$atomic>() }.load(Relaxed)
        }

        /// Stores one value.
        ///
        /// # Safety
        /// `at` must be valid for writes of the value and aligned to its size.
        #[inline(always)]
        pub(crate) unsafe fn $store(at: *mut u8, value: $ty) {
            // SAFETY: as for the load.
            unsafe { &*at.cast::<$atomic>() }.store(value, Relaxed)
        }
    };
}

scalar!(load8, store8, u8, AtomicU8);
scalar!(load16, store16, u16, AtomicU16);
scalar!(load32, store32, u32, AtomicU32);
scalar!(load64, store64, u64, AtomicU64);

/// Copies bytes; the ranges may overlap.
///
/// # Safety
/// `from` must be valid for reads and `to` for writes of `bytes` bytes.
pub(crate) unsafe fn copy(to: *mut u8, from: *const u8, bytes: usize) {
    if (to as usize).wrapping_sub(from as usize) < bytes {
        // The target starts inside the source: back to front.
        // SAFETY: as promised by the caller.
        unsafe { copy_backward(to, from, bytes) }
    } else {
        // SAFETY: as promised by the caller.
        unsafe { copy_forward(to, from, bytes) }
    }
}

unsafe fn copy_backward(to: *mut u8, from: *const u8, bytes: usize) {
    let mut end = bytes;
    // Pieces that do not overlap their own target go forward, the last piece first.
    let distance = (to as usize).wrapping_sub(from as usize).max(1);
    while end > 0 {
        let start = end.saturating_sub(distance);
        // SAFETY: a part of the ranges that the caller promises.
        unsafe { copy_forward(to.add(start), from.add(start), end - start) };
        end = start;
    }
}

#[cfg(all(target_arch = "x86_64", not(cuda_soft_atomics)))]
mod bulk {
    use std::arch::asm;

    /// # Safety
    /// As [`copy`](super::copy); the target does not start inside the source.
    pub(super) unsafe fn copy_forward(to: *mut u8, from: *const u8, bytes: usize) {
        // SAFETY: reads and writes the promised ranges only; the direction flag is clear by the ABI.
        unsafe {
            asm!("rep movsb", inout("rcx") bytes => _, inout("rdi") to => _, inout("rsi") from => _,
                options(nostack, preserves_flags));
        }
    }

    macro_rules! fill {
        ($name:ident, $ty:ty, $instruction:literal, $register:tt) => {
            /// # Safety
            /// `at` must be valid for writes of `count` values.
            pub(crate) unsafe fn $name(at: *mut u8, value: $ty, count: usize) {
                // SAFETY: writes the promised range only; the direction flag is clear by the ABI.
                unsafe {
                    asm!($instruction, inout("rcx") count => _, inout("rdi") at => _, in($register) value,
                        options(nostack, preserves_flags));
                }
            }
        };
    }
    fill!(fill16, u16, "rep stosw", "ax");
    fill!(fill32, u32, "rep stosd", "eax");

    /// # Safety
    /// `at` must be valid for writes of `count` bytes.
    pub(crate) unsafe fn fill8(at: *mut u8, value: u8, count: usize) {
        // SAFETY: writes the promised range only; the direction flag is clear by the ABI.
        unsafe {
            asm!("rep stosb", inout("rcx") count => _, inout("rdi") at => _, in("al") value,
                options(nostack, preserves_flags));
        }
    }
}

#[cfg(not(all(target_arch = "x86_64", not(cuda_soft_atomics))))]
mod bulk {
    use super::*;

    /// # Safety
    /// As [`copy`](super::copy); the target does not start inside the source.
    pub(super) unsafe fn copy_forward(to: *mut u8, from: *const u8, bytes: usize) {
        let mut i = 0;
        if (to as usize) % 8 == (from as usize) % 8 {
            while i < bytes && (to as usize + i) % 8 != 0 {
                // SAFETY: inside the promised ranges.
                unsafe { store8(to.add(i), load8(from.add(i))) };
                i += 1;
            }
            while i + 8 <= bytes {
                // SAFETY: inside the promised ranges, and aligned by the loop above.
                unsafe { store64(to.add(i), load64(from.add(i))) };
                i += 8;
            }
        }
        while i < bytes {
            // SAFETY: inside the promised ranges.
            unsafe { store8(to.add(i), load8(from.add(i))) };
            i += 1;
        }
    }

    macro_rules! fill {
        ($name:ident, $ty:ty) => {
            /// # Safety
            /// `at` must be valid for writes of `count` values.
            pub(crate) unsafe fn $name(at: *mut u8, value: $ty, count: usize) {
                let bytes = value.to_ne_bytes();
                for i in 0..count * bytes.len() {
                    // SAFETY: inside the promised range.
                    unsafe { store8(at.add(i), bytes[i % bytes.len()]) };
                }
            }
        };
    }
    fill!(fill8, u8);
    fill!(fill16, u16);
    fill!(fill32, u32);
}

use bulk::copy_forward;
pub(crate) use bulk::{fill8, fill16, fill32};
