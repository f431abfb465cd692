//! Tests of the choice between the interpreter and compilation to machine code.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use crate::common::{Context, Kernel, check, cuda, in_child, library, ptr};
use crate::needs::needs;
use std::ptr::null_mut;

/// Adds a vector to itself, with a kernel of a module that it loads.
fn add() {
    const N: usize = 256;
    let cuda = cuda();
    let kernel = Kernel::load("vector_add", "vector_add");
    let numbers: Vec<f32> = (0..N).map(|i| i as f32).collect();
    let (mut from, mut to, mut n) = (0, 0, N as u32);
    let mut sums = vec![0f32; N];
    unsafe {
        check(cuda.cuMemAlloc(&mut from, 4 * N));
        check(cuda.cuMemAlloc(&mut to, 4 * N));
        check(cuda.cuMemcpyHtoD(from, numbers.as_ptr().cast(), 4 * N));
        let mut params = [ptr(&mut from), ptr(&mut from), ptr(&mut to), ptr(&mut n)];
        check(kernel.launch(1, N as u32, null_mut(), &mut params));
        check(cuda.cuMemcpyDtoH(sums.as_mut_ptr().cast(), to, 4 * N));
        check(cuda.cuMemFree(from));
        check(cuda.cuMemFree(to));
        check(cuda.cuModuleUnload(kernel.module));
    }
    assert!((0..N).all(|i| sums[i] == 2.0 * i as f32), "{sums:?}");
}

/// A system may refuse to make memory executable. Kernels still run then, and the refusal is logged once.
#[test]
fn kernels_run_without_executable_memory() {
    let variables = [("CUDA_SOFT_ENGINE", "compiled"), ("CUDA_SOFT_LOG", "1")];
    let log = in_child("engine::kernels_run_without_executable_memory", &variables, || {
        // Loads the driver before the system refuses executable memory.
        if !library().is_software() || !std::arch::is_x86_feature_detected!("avx2") {
            return needs("the software driver and AVX2");
        }
        let refuse = libc::PR_MDWE_REFUSE_EXEC_GAIN;
        // SAFETY: the call only makes later requests of this process for executable memory fail.
        if unsafe { libc::prctl(libc::PR_SET_MDWE, refuse, 0, 0, 0) } != 0 {
            return needs("Linux 6.3");
        }
        let _context = Context::new();
        add();
        add();
    });
    let Some(log) = log else { return };
    if !log.lines().any(|line| line.starts_with("needs ")) {
        assert_eq!(log.matches("refuses executable memory").count(), 1, "{log}");
    }
}
