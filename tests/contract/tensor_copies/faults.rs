//! Tests of tensor copies that fault, each in a child process.

use std::ptr::null_mut;

use cuda_driver::sys::*;

use super::has_tensor_copies;
use super::kernels::loads_and_stores;
use super::model::{Map, TILE, TYPES, Tensor};
use crate::common::gpu::Gpu;
use crate::common::{Codes, in_child};
use crate::{arguments, is, ok, test_path};

/// Runs a copy that must fault with `code`.
fn fault(name: &str, code: u32, kernel: &'static str, at: [i32; 5], start: u32, map: fn(&Tensor, CUdeviceptr) -> Map) {
    if !has_tensor_copies() {
        return;
    }
    let _ = in_child(name, &[], || {
        let gpu = Gpu::new();
        let module = gpu.text(&loads_and_stores());
        let function = gpu.function(module, kernel);
        let tensor = Tensor::new(TYPES[0], &[64, 16], &[32, 8]);
        let (memory, out) = (gpu.alloc(tensor.bytes), gpu.alloc(TILE + 16));
        let mut arguments = arguments![map(&tensor, memory), out, 256_u32, at, [0_u16; 3], start];
        let mut pointers = arguments.pointers();
        let none = null_mut();
        ok!(cuLaunchKernel(
            function,
            1,
            1,
            1,
            128,
            1,
            1,
            0,
            none,
            pointers.as_mut_ptr(),
            null_mut()
        ));
        let mut c = Codes::new();
        is!(c, code, cuCtxSynchronize());
    });
}

#[test]
fn a_first_element_that_is_not_aligned() {
    let name = test_path!("a_first_element_that_is_not_aligned");
    fault(&name, 715, "load2", [1, 0, 0, 0, 0], 0, |tensor, memory| {
        tensor.tiled(memory)
    });
}

#[test]
fn a_map_of_another_rank() {
    let name = test_path!("a_map_of_another_rank");
    fault(&name, 715, "load3", [0; 5], 0, |tensor, memory| tensor.tiled(memory));
}

#[test]
fn shared_memory_that_is_not_aligned() {
    let name = test_path!("shared_memory_that_is_not_aligned");
    fault(&name, 716, "load2", [0; 5], 16, |tensor, memory| tensor.tiled(memory));
}

#[test]
fn a_store_with_a_negative_coordinate() {
    let name = test_path!("a_store_with_a_negative_coordinate");
    fault(&name, 715, "store2", [-16, 0, 0, 0, 0], 0, |tensor, memory| {
        tensor.tiled(memory)
    });
}

#[test]
fn bytes_that_are_not_a_map() {
    let name = test_path!("bytes_that_are_not_a_map");
    fault(&name, 715, "load2", [0; 5], 0, |_, _| [0; 16]);
}
