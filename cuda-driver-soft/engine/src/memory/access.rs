//! The engine's loads and stores of device memory, except those of compiled kernels.
//!
//! Kernels and copies may access the same bytes at the same time. That is not undefined behaviour of the host process,
//! because nothing here is a plain load or store of Rust: single values use atomics; rows of a warp, bulk copies, fills
//! and atomic updates of 16 bytes use `asm!`, whose effect on memory the compiler does not reason about. On targets
//! other than x86-64, and under `--cfg cuda_soft_atomics` (for sanitizers), everything uses atomics.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::AcqRel, Ordering::Relaxed};

macro_rules! scalar {
    ($load:ident, $store:ident, $ty:ty, $atomic:ty) => {
        /// Loads one value.
        ///
        /// # Safety
        /// `at` must be valid for reads of the value and aligned to its size.
        #[inline(always)]
        pub(crate) unsafe fn $load(at: *const u8) -> $ty {
            // SAFETY: the caller promises a valid, aligned address; atomics may race with other accesses of this
            // module.
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

/// Atomically replaces a value of 2, 4 or 8 bytes by a function of it. Returns the old value.
///
/// # Safety
/// `at` must be valid for reads and writes of the value and aligned to its size.
pub(crate) unsafe fn update(at: *mut u8, bytes: u32, new: impl Fn(u64) -> u64) -> u64 {
    macro_rules! update {
        ($ty:ty, $atomic:ty) => {{
            // SAFETY: the caller promises a valid, aligned address; atomics may race with other accesses of this
            // module.
            let place = unsafe { &*at.cast::<$atomic>() };
            let mut old = place.load(Relaxed);
            while let Err(other) = place.compare_exchange_weak(old, new(u64::from(old)) as $ty, AcqRel, Relaxed) {
                old = other;
            }
            u64::from(old)
        }};
    }
    match bytes {
        2 => update!(u16, AtomicU16),
        4 => update!(u32, AtomicU32),
        _ => update!(u64, AtomicU64),
    }
}

/// Replaces a value of 2, 4 or 8 bytes by a function of it, not atomically: for memory that no other thread accesses.
/// Returns the old value.
///
/// # Safety
/// As [`update`].
#[inline(always)]
pub(crate) unsafe fn replace(at: *mut u8, bytes: u32, new: impl Fn(u64) -> u64) -> u64 {
    macro_rules! replace {
        ($load:ident $store:ident $ty:ty) => {{
            // SAFETY: as promised by the caller.
            let old = u64::from(unsafe { $load(at) });
            // SAFETY: as promised by the caller.
            unsafe { $store(at, new(old) as $ty) };
            old
        }};
    }
    match bytes {
        2 => replace!(load16 store16 u16),
        4 => replace!(load32 store32 u32),
        _ => replace!(load64 store64 u64),
    }
}

/// Atomically replaces a value of 16 bytes by a function of it. Returns the old value.
///
/// Without the instruction `cmpxchg16b`, or under `--cfg cuda_soft_atomics`, the update is atomic only with regard to
/// other calls of this function.
///
/// # Safety
/// `at` must be valid for reads and writes of 16 bytes and aligned to 16.
pub(crate) unsafe fn update128(at: *mut u8, new: impl Fn(u128) -> u128) -> u128 {
    #[cfg(all(target_arch = "x86_64", not(cuda_soft_atomics)))]
    if std::arch::is_x86_feature_detected!("cmpxchg16b") {
        // SAFETY: as promised by the caller; the CPU has the instruction.
        return unsafe { exchange128(at, new) };
    }
    static ONE_AT_A_TIME: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    // SAFETY: as promised by the caller.
    unsafe {
        let (low, high) = (at, at.wrapping_add(8));
        let old = u128::from(load64(high)) << 64 | u128::from(load64(low));
        let value = new(old);
        store64(low, value as u64);
        store64(high, (value >> 64) as u64);
        old
    }
}

/// # Safety
/// As [`update128`]; the CPU has `cmpxchg16b`.
#[cfg(all(target_arch = "x86_64", not(cuda_soft_atomics)))]
unsafe fn exchange128(at: *mut u8, new: impl Fn(u128) -> u128) -> u128 {
    // The two halves are not loaded atomically. If they do not belong together, the exchange fails and returns the
    // current value.
    // SAFETY: both halves are valid and aligned, as the caller promises.
    let mut old = unsafe { u128::from(load64(at.wrapping_add(8))) << 64 | u128::from(load64(at)) };
    loop {
        let value = new(old);
        let (mut low, mut high) = (old as u64, (old >> 64) as u64);
        // SAFETY: valid and aligned to 16, as the caller promises. `rbx` is reserved by the compiler and cannot be an
        // operand, so it is exchanged with `rsi` and back.
        unsafe {
            std::arch::asm!("xchg rsi, rbx", "lock cmpxchg16b [rdi]", "xchg rsi, rbx",
                in("rdi") at, inout("rsi") value as u64 => _, in("rcx") (value >> 64) as u64,
                inout("rax") low, inout("rdx") high, options(nostack));
        }
        let found = u128::from(high) << 64 | u128::from(low);
        if found == old {
            return old;
        }
        old = found;
    }
}

/// Copies bytes; the ranges may overlap.
///
/// # Safety
/// `from` must be valid for reads and `to` for writes of `bytes` bytes.
pub(crate) unsafe fn copy(to: *mut u8, from: *const u8, bytes: usize) {
    if (to as usize).wrapping_sub(from as usize) < bytes {
        // The target starts inside the source, so the last bytes have to be copied first.
        // SAFETY: as promised by the caller.
        unsafe { copy_backward(to, from, bytes) }
    } else {
        // SAFETY: as promised by the caller.
        unsafe { copy_forward(to, from, bytes) }
    }
}

/// # Safety
/// As [`copy`].
unsafe fn copy_backward(to: *mut u8, from: *const u8, bytes: usize) {
    /// The minimum number of bytes in a piece, except in the one that is copied last: smaller pieces are slow.
    const PIECE: usize = 16 << 10;
    let mut between = [0u8; PIECE];
    let between = between.as_mut_ptr();
    // The end of the range is copied first. A piece that overlaps its own target goes through the buffer.
    let distance = (to as usize).wrapping_sub(from as usize);
    let piece = distance.max(PIECE);
    let mut end = bytes;
    while end > 0 {
        let start = end.saturating_sub(piece);
        let part = end - start;
        // SAFETY: a part of the ranges that the caller promises. A part longer than `distance` is at most `PIECE`
        // bytes, since `piece` is the greater of the two.
        unsafe {
            let (to, from) = (to.add(start), from.add(start));
            if part <= distance {
                copy_forward(to, from, part);
            } else {
                copy_forward(between, from, part);
                copy_forward(to, between, part);
            }
        }
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

    /// Copies the row of a register to memory or back.
    ///
    /// # Safety
    /// `bytes` must be a multiple of 16, `from` valid for reads and `to` for writes of `bytes` bytes. With `WIDE` the
    /// CPU must have AVX.
    #[inline(always)]
    pub(crate) unsafe fn copy_row<const WIDE: bool>(to: *mut u8, from: *const u8, bytes: usize) {
        let mut offset = 0;
        while offset < bytes {
            let (to, from) = (to.wrapping_add(offset), from.wrapping_add(offset));
            if WIDE && bytes - offset >= 128 {
                // SAFETY: the 128 bytes are inside the promised ranges.
                unsafe {
                    // Clobbers name the lower halves of the registers, because this function is not compiled for AVX.
                    asm!("vmovups ymm4, [{from}]", "vmovups ymm5, [{from} + 32]",
                        "vmovups ymm6, [{from} + 64]", "vmovups ymm7, [{from} + 96]",
                        "vmovups [{to}], ymm4", "vmovups [{to} + 32], ymm5",
                        "vmovups [{to} + 64], ymm6", "vmovups [{to} + 96], ymm7",
                        from = in(reg) from, to = in(reg) to,
                        out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
                        options(nostack, preserves_flags));
                }
                offset += 128;
            } else if WIDE && bytes - offset >= 64 {
                // SAFETY: the 64 bytes are inside the promised ranges.
                unsafe {
                    asm!("vmovups ymm4, [{from}]", "vmovups ymm5, [{from} + 32]",
                        "vmovups [{to}], ymm4", "vmovups [{to} + 32], ymm5",
                        from = in(reg) from, to = in(reg) to, out("xmm4") _, out("xmm5") _,
                        options(nostack, preserves_flags));
                }
                offset += 64;
            } else if WIDE && bytes - offset >= 32 {
                // SAFETY: the 32 bytes are inside the promised ranges.
                unsafe {
                    asm!("vmovups ymm4, [{from}]", "vmovups [{to}], ymm4",
                        from = in(reg) from, to = in(reg) to, out("xmm4") _,
                        options(nostack, preserves_flags));
                }
                offset += 32;
            } else if bytes - offset < 64 {
                // SAFETY: the 16 bytes are inside the promised ranges.
                unsafe {
                    asm!("movups {a}, [{from}]", "movups [{to}], {a}",
                        from = in(reg) from, to = in(reg) to, a = out(xmm_reg) _,
                        options(nostack, preserves_flags));
                }
                offset += 16;
            } else {
                // SAFETY: the 64 bytes are inside the promised ranges.
                unsafe {
                    asm!("movups {a}, [{from}]", "movups {b}, [{from} + 16]",
                        "movups {c}, [{from} + 32]", "movups {d}, [{from} + 48]",
                        "movups [{to}], {a}", "movups [{to} + 16], {b}",
                        "movups [{to} + 32], {c}", "movups [{to} + 48], {d}",
                        from = in(reg) from, to = in(reg) to,
                        a = out(xmm_reg) _, b = out(xmm_reg) _, c = out(xmm_reg) _, d = out(xmm_reg) _,
                        options(nostack, preserves_flags));
                }
                offset += 64;
            }
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

    /// Copies the row of a register to memory or back.
    ///
    /// # Safety
    /// `from` must be valid for reads and `to` for writes of `bytes` bytes.
    #[inline(always)]
    pub(crate) unsafe fn copy_row<const WIDE: bool>(to: *mut u8, from: *const u8, bytes: usize) {
        // SAFETY: as promised by the caller.
        unsafe { copy_forward(to, from, bytes) }
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
pub(crate) use bulk::{copy_row, fill8, fill16, fill32};

#[cfg(test)]
mod tests {
    use super::copy;

    #[test]
    fn overlapping_copies_give_the_source_bytes() {
        let pattern: Vec<u8> = (0..100_000u32).map(|i| (i * 7 + i / 256) as u8).collect();
        for distance in [0, 1, 3, 8, 63, 4096, 16 << 10, (16 << 10) + 1, 40_000] {
            for bytes in [0, 1, 7, 16 << 10, 33_333, 60_000] {
                for forward in [false, true] {
                    let (from, to) = if forward { (distance, 0) } else { (0, distance) };
                    let (mut ours, mut theirs) = (pattern.clone(), pattern.clone());
                    let base = ours.as_mut_ptr();
                    // SAFETY: both ranges are inside the vector.
                    unsafe { copy(base.add(to), base.add(from), bytes) };
                    theirs.copy_within(from..from + bytes, to);
                    assert!(ours == theirs, "{bytes} bytes from {from} to {to}");
                }
            }
        }
    }
}
