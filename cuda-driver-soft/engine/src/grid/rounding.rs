//! The host's floating-point environment while kernels run: round to nearest, no flushing of subnormal numbers, no
//! traps.
//!
//! The calling thread may have a different environment: a library built with fast-math flags flushes subnormal numbers
//! for its whole thread. The thread's environment is restored afterwards.

/// Sets the environment of the calling thread. Dropping the guard restores the old one.
#[derive(Debug)]
pub(crate) struct RoundingGuard {
    saved: u64,
}

impl RoundingGuard {
    /// Sets the environment of the calling thread.
    pub(crate) fn new() -> Self {
        let saved = read();
        write(PLAIN);
        RoundingGuard { saved }
    }
}

impl Drop for RoundingGuard {
    fn drop(&mut self) {
        write(self.saved);
    }
}

/// MXCSR: all exceptions masked, to nearest, no flushing.
#[cfg(target_arch = "x86_64")]
const PLAIN: u64 = 0x1f80;

#[cfg(target_arch = "x86_64")]
fn read() -> u64 {
    let mut value = 0u32;
    // SAFETY: stores MXCSR to `value`.
    unsafe { std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut value, options(nostack, preserves_flags)) };
    u64::from(value)
}

#[cfg(target_arch = "x86_64")]
fn write(value: u64) {
    let value = value as u32;
    // SAFETY: loads a value that is either `PLAIN` or was read from MXCSR. The code that runs until it is restored does
    // not depend on floating-point exception flags, and expects rounding to nearest, as in `PLAIN`.
    unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const value, options(nostack, preserves_flags)) };
}

/// FPCR: to nearest, no flushing, no traps.
#[cfg(target_arch = "aarch64")]
const PLAIN: u64 = 0;

#[cfg(target_arch = "aarch64")]
fn read() -> u64 {
    let value: u64;
    // SAFETY: reads FPCR.
    unsafe { std::arch::asm!("mrs {}, fpcr", out(reg) value, options(nomem, nostack, preserves_flags)) };
    value
}

#[cfg(target_arch = "aarch64")]
fn write(value: u64) {
    // SAFETY: as on x86-64.
    unsafe { std::arch::asm!("msr fpcr, {}", in(reg) value, options(nomem, nostack, preserves_flags)) };
}

/// On other processors, the environment is left as it is.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const PLAIN: u64 = 0;

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn read() -> u64 {
    PLAIN
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn write(_value: u64) {}

#[cfg(all(test, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod tests {
    use super::{RoundingGuard, read, write};

    #[test]
    fn the_guard_keeps_subnormal_numbers_and_restores_the_environment() {
        // Flush to zero: bit 15 of MXCSR, bit 24 of FPCR.
        let flushing = if cfg!(target_arch = "x86_64") { 0x9f80 } else { 1 << 24 };
        let half = |x: f32| std::hint::black_box(x) * std::hint::black_box(0.5);
        let saved = read();
        write(flushing);
        let outside = half(f32::MIN_POSITIVE);
        let inside = {
            let _guard = RoundingGuard::new();
            half(f32::MIN_POSITIVE)
        };
        let after = read();
        write(saved);
        assert_eq!(outside, 0.0);
        assert_eq!(inside.to_bits(), f32::MIN_POSITIVE.to_bits() >> 1);
        assert_eq!(after & flushing, flushing);
    }
}
