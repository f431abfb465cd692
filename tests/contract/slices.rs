//! Tests of views of device memory, and of the types of values that device memory can hold.

use bytemuck::{Pod, Zeroable};
use cuda_driver::sys::CUresult;
use cuda_driver::vector::{float3, float4};
use cuda_driver::{
    Context, DeviceBuffer, DevicePtr, DeviceSlice, DeviceSliceMut, HostBuffer, LaunchConfig, Module, ParamBuffer,
    Stream,
};

use crate::common::{code, context, ptx_path};

#[test]
fn copies_and_fills_of_parts() {
    let context = context();
    let values: Vec<u32> = (0..100).collect();
    let mut buffer = DeviceBuffer::from_slice(&context, &values).expect("memory");
    let part = buffer.slice(10..20).expect("a part");
    assert_eq!((part.len(), part.size_bytes()), (10, 40));
    assert_eq!(part.ptr(), buffer.ptr().byte_add(40));
    assert_eq!(part.to_vec().expect("a copy"), values[10..20]);
    let inner = part.slice(2..=3).expect("a part of a part");
    assert_eq!(inner.to_vec().expect("a copy"), [12, 13]);
    let mut few = [0; 3];
    part.copy_to(&mut few).expect("a copy of the start");
    assert_eq!(few, [10, 11, 12]);

    let mut part = buffer.slice_mut(50..54).expect("a part");
    part.fill_u32(7).expect("a fill");
    part.slice_mut(1..2)
        .expect("a part of a part")
        .fill_u16(3)
        .expect("a fill");
    part.slice_mut(3..)
        .expect("a part of a part")
        .fill_u8(1)
        .expect("a fill");
    part.copy_from(&[5]).expect("a copy to the start");
    let after = buffer.slice(49..55).and_then(|part| part.to_vec()).expect("a copy");
    assert_eq!(after, [49, 5, 0x0003_0003, 7, 0x0101_0101, 54]);
}

#[test]
fn copies_between_views() {
    let context = context();
    let mut a = DeviceBuffer::from_slice(&context, &[1_i16, 2, 3, 4, 5, 6]).expect("memory");
    let b = DeviceBuffer::from_slice(&context, &[-1_i16, -2, -3]).expect("memory");
    let (mut first, mut second) = a.split_at_mut(2).expect("two parts");
    // The sources are a mutable view of the same buffer, a buffer, and a part of a buffer.
    first.copy_from_device(&second).expect("a copy inside the buffer");
    second
        .slice_mut(..3)
        .and_then(|mut part| part.copy_from_device(&b))
        .expect("a copy of a buffer");
    second
        .slice_mut(3..)
        .and_then(|mut part| part.copy_from_device(b.slice(1..)?))
        .expect("a copy of a part");
    assert_eq!(a.to_vec().expect("a copy"), [3, 4, -1, -2, -3, -2]);
    // The source must be as long as the destination.
    assert_eq!(code(a.copy_from_device(&b)), CUresult::CUDA_ERROR_INVALID_VALUE);
}

#[test]
fn a_view_split_again_and_again() {
    let context = context();
    let mut buffer = DeviceBuffer::<u32>::zeroed(&context, 10).expect("memory");
    let mut rest = buffer.as_mut_slice();
    let mut parts = Vec::new();
    while !rest.is_empty() {
        let length = rest.len().min(4);
        let (part, others) = rest.into_split_at(length).expect("two parts");
        parts.push(part);
        rest = others;
    }
    for (number, part) in (1..).zip(&mut parts) {
        part.fill_u32(number).expect("a fill");
    }
    assert_eq!(buffer.to_vec().expect("a copy"), [1, 1, 1, 1, 2, 2, 2, 2, 3, 3]);
}

#[test]
fn parts_that_are_not_inside() {
    let context = context();
    let mut buffer = DeviceBuffer::<u8>::zeroed(&context, 7).expect("memory");
    let invalid = CUresult::CUDA_ERROR_INVALID_VALUE;
    assert_eq!(code(buffer.slice(..8)), invalid);
    assert_eq!(code(buffer.slice_mut(8..)), invalid);
    assert_eq!(code(buffer.split_at(8)), invalid);
    assert_eq!(code(buffer.split_at_mut(usize::MAX)), invalid);
    let view = buffer.slice(2..4).expect("a part");
    assert_eq!(code(view.slice(1..3)), invalid);
    assert_eq!(code(view.copy_to(&mut [0; 3])), invalid);
    let mut view = buffer.slice_mut(1..5).expect("a part");
    assert_eq!(code(view.copy_from(&[0; 5])), invalid);
    // Fills and casts need an address and a length that are multiples of the unit's size.
    assert_eq!(code(view.fill_u16(1)), invalid);
    assert_eq!(code(view.fill_u32(1)), invalid);
    assert_eq!(code(view.cast::<u32>()), invalid);
    assert!(buffer.slice(7..).expect("the empty part at the end").is_empty());
    assert_eq!(buffer.to_vec().expect("a copy"), [0; 7]);
}

#[test]
fn views_of_the_same_bytes_as_another_type() {
    let context = context();
    let mut buffer = DeviceBuffer::from_slice(&context, &[1.0_f32, 2.0, 3.0, 4.0]).expect("memory");
    let bits = buffer.as_slice().cast::<u32>().expect("words");
    assert_eq!(
        bits.to_vec().expect("a copy"),
        [0x3f80_0000, 0x4000_0000, 0x4040_0000, 0x4080_0000]
    );
    let vectors = buffer.as_slice().cast::<float4>().expect("one vector");
    assert_eq!(vectors.to_vec().expect("a copy"), [float4::new(1.0, 2.0, 3.0, 4.0)]);
    buffer
        .as_mut_slice()
        .cast_mut::<u64>()
        .and_then(|mut halves| halves.slice_mut(1..)?.copy_from(&[0]))
        .expect("a copy");
    assert_eq!(buffer.to_vec().expect("a copy"), [1.0, 2.0, 0.0, 0.0]);
    // 16 bytes are not a multiple of 12 or 32, and the second value of `odd` is not aligned to 16 bytes.
    let invalid = CUresult::CUDA_ERROR_INVALID_VALUE;
    assert_eq!(code(buffer.as_slice().cast::<float3>()), invalid);
    assert_eq!(code(buffer.as_slice().cast::<[float4; 2]>()), invalid);
    let odd = DeviceBuffer::<f32>::zeroed(&context, 5).expect("memory");
    let unaligned = odd.slice(1..).expect("a part");
    assert_eq!(code(unaligned.cast::<float4>()), invalid);
    // Values of a type with invalid bit patterns, such as `bool`, can be written, but are read back as bytes only.
    let flags = DeviceBuffer::from_slice(&context, &[true, false, true]).expect("memory");
    let bytes = flags.as_slice().cast::<u8>().and_then(|bytes| bytes.to_vec());
    assert_eq!(bytes.expect("a copy"), [1, 0, 1]);
}

#[test]
fn views_of_raw_memory() {
    let context = context();
    let owner = DeviceBuffer::from_slice(&context, &[1_u16, 2, 3]).expect("memory");
    // SAFETY: the owner lives longer.
    let view = unsafe { DeviceSlice::<u16>::from_raw_parts(owner.ptr(), owner.len(), Some(&context)) };
    assert_eq!(view.to_vec().expect("a copy"), [1, 2, 3]);
    // SAFETY: the owner lives longer, and the first view is not used any more.
    let mut view = unsafe { DeviceSliceMut::<u16>::from_raw_parts(owner.ptr(), 2, None) };
    // Calls on a view without a context need a current context.
    assert_eq!(code(view.fill_u16(9)), CUresult::CUDA_ERROR_INVALID_CONTEXT);
    let current = context.push().expect("a push");
    view.fill_u16(9).expect("a fill");
    current.pop().expect("a pop");
    assert_eq!(owner.to_vec().expect("a copy"), [9, 9, 3]);
    // SAFETY: an empty view needs no memory.
    let nothing = unsafe { DeviceSlice::<u16>::from_raw_parts(DevicePtr::null(), 0, None) };
    assert_eq!(nothing.to_vec().expect("a copy of nothing"), [0; 0]);
}

#[test]
fn launches_with_views() {
    let context = context();
    let module = Module::load_ptx(&context, ptx_path("saxpy.ptx")).expect("a module");
    let saxpy = module.function("saxpy").expect("a kernel");
    let stream = Stream::new(&context).expect("a stream");
    let x = DeviceBuffer::from_slice(&context, &[1.0_f32, 2.0, 3.0, 4.0]).expect("memory");
    let mut y = DeviceBuffer::<f32>::zeroed(&context, 4).expect("memory");
    let config = LaunchConfig::covering(2, 32);
    {
        let arguments = (
            2.0_f32,
            x.slice(1..3).expect("a part"),
            y.slice_mut(2..).expect("a part"),
            2_u64,
        );
        saxpy.check_args(&arguments).expect("arguments that fit");
        // SAFETY: the kernel takes a factor, two addresses and a count of values at them.
        unsafe { saxpy.launch(&stream, config, arguments) }.expect("a launch");
    }
    let mut packed = ParamBuffer::new();
    packed
        .push(1.0_f32)
        .push(x.as_slice())
        .push(y.as_mut_slice())
        .push(2_u64);
    saxpy.check_args(&&packed).expect("arguments that fit");
    // SAFETY: the kernel takes a factor, two addresses and a count of values at them.
    unsafe { saxpy.launch(&stream, config, &packed) }.expect("a launch");
    stream.synchronize().expect("the end");
    assert_eq!(y.to_vec().expect("a copy"), [1.0, 2.0, 4.0, 6.0]);
}

#[test]
fn queued_copies_and_fills_of_parts() {
    let context = context();
    let stream = Stream::non_blocking(&context).expect("a stream");
    let mut host = HostBuffer::from_slice(&context, &[1_u32, 2, 3, 4]).expect("page-locked memory");
    let mut buffer = DeviceBuffer::<u32>::zeroed(&context, 8).expect("memory");
    let (mut first, mut second) = buffer.split_at_mut(4).expect("two parts");
    // SAFETY: the stream is synchronised before any of the memory is used or freed.
    unsafe {
        first.copy_from_async(&host, &stream).expect("a copy");
        second.copy_from_device_async(&first, &stream).expect("a copy");
        first
            .slice_mut(..1)
            .and_then(|mut part| part.fill_u8_async(1, &stream))
            .expect("a fill");
        first
            .slice_mut(1..2)
            .and_then(|mut part| part.fill_u16_async(2, &stream))
            .expect("a fill");
        first
            .slice_mut(2..3)
            .and_then(|mut part| part.fill_u32_async(3, &stream))
            .expect("a fill");
        second
            .slice(1..)
            .and_then(|part| part.copy_to_async(&mut host[..3], &stream))
            .expect("a copy");
    }
    stream.synchronize().expect("the end");
    assert_eq!(*host, [2, 3, 4, 4]);
    assert_eq!(
        buffer.to_vec().expect("a copy"),
        [0x0101_0101, 0x0002_0002, 3, 4, 1, 2, 3, 4]
    );
}

#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C)]
struct Particle {
    position: [f32; 3],
    number: u32,
}

// SAFETY: zeros are valid numbers.
unsafe impl Zeroable for Particle {}
// SAFETY: any bytes are valid numbers, and there is no padding.
unsafe impl Pod for Particle {}

#[test]
fn types_with_several_parts() {
    fn there_and_back<T: Pod + PartialEq + std::fmt::Debug>(context: &Context, values: &[T]) {
        let buffer = DeviceBuffer::from_slice(context, values).expect("memory");
        assert_eq!(buffer.to_vec().expect("a copy"), values);
    }
    let context = context();
    there_and_back(&context, &[[1_u8; 37], [2; 37]]);
    there_and_back(&context, &[float3::new(1.0, 2.0, 3.0)]);
    let particle = Particle {
        position: [1.0, 2.0, 3.0],
        number: 4,
    };
    there_and_back(&context, &[particle; 3]);
}
