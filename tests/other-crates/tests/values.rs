//! Tests of values of other crates' types in device memory and arrays.

use std::fmt::Debug;

use cuda_driver::array::ArrayShape;
use cuda_driver::bytemuck::Pod;
use cuda_driver::sys::CUarray_format;
use cuda_driver::{Array, Context, Device, DeviceBuffer};
use glam::{Mat4, Vec3};
use half::{bf16, f16};
use num_complex::Complex;

fn context() -> Context {
    static INSTALLED: std::sync::Once = std::sync::Once::new();
    INSTALLED.call_once(|| {
        let selection = cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software).expect("a driver");
        selection.install().expect("the first default library of the process");
    });
    cuda_driver::init().expect("cuInit");
    Context::create(Device::first().expect("a device")).expect("a context")
}

#[test]
fn copies_return_the_same_values() {
    fn there_and_back<T: Pod + PartialEq + Debug>(context: &Context, values: &[T]) {
        let buffer = DeviceBuffer::from_slice(context, values).expect("memory");
        assert_eq!(buffer.to_vec().expect("a copy"), values);
    }
    let context = context();
    there_and_back(&context, &[f16::from_f32(1.5), f16::MAX]);
    there_and_back(&context, &[bf16::from_f32(-2.0)]);
    there_and_back(&context, &[Complex::new(1.0_f64, -1.0), Complex::new(0.0, 2.0)]);
    there_and_back(&context, &[Vec3::new(1.0, 2.0, 3.0), Vec3::X]);
    there_and_back(&context, &[Mat4::IDENTITY]);
    // Device memory holds the bits of a half unchanged.
    let halves = DeviceBuffer::from_slice(&context, &[f16::ONE]).expect("memory");
    let bits = halves.as_slice().cast::<u16>().and_then(|bits| bits.to_vec());
    assert_eq!(bits.expect("a copy"), [0x3c00]);
}

#[test]
fn arrays_of_halves() {
    let context = context();
    let format = CUarray_format::CU_AD_FORMAT_HALF;
    let array = Array::<f16>::with_format(&context, ArrayShape::d2(2, 1), format, 1).expect("an array");
    let values = [f16::from_f32(1.5), f16::MAX];
    array.copy_from(&values).expect("a copy");
    assert_eq!(array.to_vec().expect("a copy"), values);
    assert!(Array::<[f16; 4]>::with_format(&context, ArrayShape::d2(2, 1), format, 4).is_ok());
}
