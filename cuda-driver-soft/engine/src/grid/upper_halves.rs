//! The upper halves of the vector registers of x86-64, which kernels leave in use.
//!
//! The interpreter copies rows with 256-bit registers in inline assembly. The compiler does not know that, so it does
//! not clear the upper halves. As long as they are in use, SSE instructions that run later on the thread can be many
//! times slower on some processors.

/// Clears the upper halves of the calling thread's vector registers when it is dropped.
#[derive(Debug)]
pub(super) struct UpperHalvesGuard;

impl Drop for UpperHalvesGuard {
    fn drop(&mut self) {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx") {
            // SAFETY: the CPU has the instruction.
            unsafe { clear() };
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx")]
fn clear() {
    std::arch::x86_64::_mm256_zeroupper();
}
