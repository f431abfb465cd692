//! The upper halves of vector registers: a launch must leave none in use, because that makes SSE instructions of other
//! code slower on some CPUs.

use super::{Arg, Bench, needs, on_each_isa};
use std::arch::asm;
use std::arch::x86_64::__cpuid_count;

/// Returns true if the CPU reports that the upper halves of vector registers are in use.
fn in_use() -> bool {
    let (low, _high): (u32, u32);
    // SAFETY: `is_tracked` has found that the CPU has the instruction with this argument; it only reads.
    unsafe { asm!("xgetbv", in("ecx") 1, out("eax") low, out("edx") _high, options(nomem, nostack)) };
    low & 4 != 0
}

/// Returns true if the CPU can report that upper halves are in use, and reports it correctly.
fn is_tracked() -> bool {
    if !std::arch::is_x86_feature_detected!("avx") || !std::arch::is_x86_feature_detected!("xsave") {
        return false;
    }
    // Bit 2: XGETBV takes 1 as its argument.
    if __cpuid_count(0xd, 1).eax & 4 == 0 {
        return false;
    }
    // SAFETY: the CPU has AVX. The compiler uses no upper halves here, as this code is not compiled for AVX.
    unsafe { asm!("vzeroupper") };
    let clean = !in_use();
    // SAFETY: as above; the register that changes is declared.
    unsafe { asm!("vpcmpeqd xmm0, xmm0, xmm0", "vinsertf128 ymm0, ymm0, xmm0, 1", out("xmm0") _) };
    let dirty = in_use();
    // SAFETY: as above.
    unsafe { asm!("vzeroupper") };
    clean && dirty
}

#[test]
fn a_launch_leaves_no_upper_half_in_use() {
    if !is_tracked() {
        needs::needs("a CPU that reports the use of upper halves");
        return;
    }
    on_each_isa(|isa| {
        let mut bench = Bench::file("vector_add", isa);
        let a = bench.put(&[1.5f32; 1024], f32::to_le_bytes);
        let launch = bench.launch(
            "vector_add",
            4,
            256,
            &[Arg::U64(a), Arg::U64(a), Arg::U64(a), Arg::U32(1024)],
        );
        let execution = launch.start();
        execution.work(u64::MAX);
        let in_use = in_use();
        assert_eq!(execution.fault(), None);
        assert!(!in_use);
    });
}
