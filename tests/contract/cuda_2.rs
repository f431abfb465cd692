//! Tests of the launch functions of CUDA 2.0, which store block shape, shared memory and parameters in the function.

use std::ffi::c_void;
use std::ptr::null_mut;

use cuda_driver::sys::*;

use crate::common::Codes;
use crate::common::gpu::Gpu;
use crate::is;

#[test]
fn parameters_and_shapes() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    // `my_kernel` turns n floats of 1 into 3; its parameters are a pointer and a 64-bit n.
    let f = gpu.kernel("my_kernel.ptx", "my_kernel");
    let data = gpu.upload(&[1.0_f32; 64]);
    let set = |c: &mut Codes, n: u32| {
        let mut address = data;
        let address: *mut c_void = (&raw mut address).cast();
        is!(c, 0, cuParamSetv(f, 0, address, 8));
        is!(c, 0, cuParamSeti(f, 8, n));
        is!(c, 0, cuParamSeti(f, 12, 0));
        is!(c, 0, cuParamSetSize(f, 16));
    };
    let ones = || vec![1.0_f32; 64];
    let seen = |c: &mut Codes, label: &str, written: usize| {
        let mut expected = ones();
        expected[..written].fill(3.0);
        let values = gpu.read::<f32>(data, 64);
        c.that(values == expected, || format!("{label}: {values:?}"));
        gpu.write(data, &ones());
    };
    set(&mut c, 64);
    // Without a block shape a block has one thread.
    is!(c, 0, cuLaunch(f));
    seen(&mut c, "no shape", 1);
    is!(c, 0, cuFuncSetBlockShape(f, 16, 1, 1));
    is!(c, 0, cuLaunch(f));
    seen(&mut c, "a block", 16);
    is!(c, 0, cuLaunchGrid(f, 3, 1));
    seen(&mut c, "three blocks", 48);
    is!(c, 0, cuLaunchGridAsync(f, 4, 1, null_mut()));
    seen(&mut c, "four blocks", 64);
    is!(c, 0, cuParamSetf(f, 8, f32::from_bits(32)));
    is!(c, 0, cuLaunchGrid(f, 4, 1));
    seen(&mut c, "n from the bits of a float", 32);
    // Only parameters within the set size are passed; the others are zero.
    is!(c, 0, cuParamSetSize(f, 8));
    is!(c, 0, cuLaunch(f));
    seen(&mut c, "no n", 0);
    is!(c, 0, cuParamSetSize(f, 24));
    is!(c, 701, cuLaunch(f));
    is!(c, 0, cuParamSetSize(f, 32_764));
    is!(c, 1, cuParamSetSize(f, 32_765));
    is!(c, 0, cuParamSeti(f, 32_760, 1));
    is!(c, 1, cuParamSeti(f, 32_764, 1));
    is!(c, 1, cuParamSetv(f, 0, null_mut(), 8));
}

#[test]
fn wrong_shapes() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let f = gpu.kernel("my_kernel.ptx", "my_kernel");
    for (x, y, z) in [(0, 1, 1), (1025, 1, 1), (32, 32, 2), (1, 1, 65), (-1, 1, 1)] {
        is!(c, 1, cuFuncSetBlockShape(f, x, y, z));
    }
    is!(c, 400, cuFuncSetBlockShape(null_mut(), 1, 1, 1));
    is!(c, 0, cuFuncSetSharedSize(f, 48 << 10));
    is!(c, 1, cuFuncSetSharedSize(f, (48 << 10) + 1));
    is!(c, 0, cuFuncSetSharedSize(f, 0));
    for (width, height) in [(0, 1), (-1, 1), (1, 65_536)] {
        is!(c, 1, cuLaunchGrid(f, width, height));
    }
}
