//! Tests the calls of a typical first program, which adds two vectors: allocations, copies and launches.

use crate::common::{Kernel, check, cuda, ptr};
use cuda_driver_sys::*;

#[test]
fn vector_add_with_pointers_and_with_a_packed_buffer() {
    let cuda = cuda();
    const N: usize = 5000;
    let a: Vec<f32> = (0..N).map(|i| i as f32).collect();
    let b: Vec<f32> = (0..N).map(|i| (2 * i) as f32).collect();
    let _context = crate::common::Context::new();
    let kernel = Kernel::load("vector_add", "vector_add");
    unsafe {
        let mut device = [0; 3];
        for d in &mut device {
            check(cuda.cuMemAlloc(d, N * 4));
        }
        check(cuda.cuMemcpyHtoD(device[0], a.as_ptr().cast(), N * 4));
        check(cuda.cuMemcpyHtoD(device[1], b.as_ptr().cast(), N * 4));
        let mut n = N as i32;
        let [mut da, mut db, mut dc] = device;
        let mut params = [ptr(&mut da), ptr(&mut db), ptr(&mut dc), ptr(&mut n)];
        let launch = |params, extra| {
            let (blocks, null) = ((N as u32).div_ceil(256), std::ptr::null_mut());
            cuda.cuLaunchKernel(kernel.function, blocks, 1, 1, 256, 1, 1, 0, null, params, extra)
        };
        let result = || {
            let mut c = vec![0f32; N];
            check(cuda.cuCtxSynchronize());
            check(cuda.cuMemcpyDtoH(c.as_mut_ptr().cast(), dc, N * 4));
            check(cuda.cuMemsetD32(dc, 0, N));
            c
        };
        let expected: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
        check(launch(params.as_mut_ptr(), std::ptr::null_mut()));
        assert_eq!(result(), expected);
        let mut packed = Vec::new();
        for address in device {
            packed.extend(address.to_ne_bytes());
        }
        packed.extend(n.to_ne_bytes());
        let mut size = packed.len();
        let mut extra = [
            CU_LAUNCH_PARAM_BUFFER_POINTER,
            packed.as_mut_ptr().cast(),
            CU_LAUNCH_PARAM_BUFFER_SIZE,
            ptr(&mut size),
            CU_LAUNCH_PARAM_END,
        ];
        check(launch(std::ptr::null_mut(), extra.as_mut_ptr()));
        assert_eq!(result(), expected);
        for d in device {
            check(cuda.cuMemFree(d));
        }
    }
}
