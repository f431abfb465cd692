//! Tests of arrays and mipmapped arrays as objects, and of copies of boxes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cuda_driver::array::{ArrayShape, Texel};
use cuda_driver::copy::Copy3d;
use cuda_driver::sys::{CUDA_ARRAY3D_DEFERRED_MAPPING, CUarray_format, CUresult};
use cuda_driver::vector::{float2, float4, uchar4};
use cuda_driver::{Array, Context, Device, DeviceBuffer, DeviceSlice, HostBuffer, MipmappedArray, Stream};

use crate::common::{code, context, needs};

const INVALID: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;

#[test]
fn arrays_of_every_shape() {
    let context = context();
    for (shape, size) in [
        (ArrayShape::d1(7), [7, 1, 1]),
        (ArrayShape::d2(7, 5), [7, 5, 1]),
        (ArrayShape::d3(7, 5, 3), [7, 5, 3]),
        (ArrayShape::layered_d1(7, 3), [7, 1, 3]),
        (ArrayShape::layered_d2(7, 5, 3), [7, 5, 3]),
        (ArrayShape::cubemap(5), [5, 5, 6]),
        (ArrayShape::layered_cubemap(5, 2), [5, 5, 12]),
        (ArrayShape::d2(7, 5).surface(), [7, 5, 1]),
        (ArrayShape::d2(7, 5).gather(), [7, 5, 1]),
    ] {
        assert_eq!(shape.size(), size);
        let array = Array::<u32>::new(&context, shape).expect("an array");
        assert_eq!(array.size().expect("a size"), size);
        let seen = array.descriptor().expect("a descriptor");
        assert_eq!(ArrayShape::from(&seen), shape);
        let values: Vec<u32> = (0..).take(size.iter().product()).collect();
        array.copy_from(&values).expect("a copy");
        assert_eq!(array.to_vec().expect("a copy"), values, "{shape:?}");
        array.destroy().expect("the end");
    }
    for shape in [
        ArrayShape::d1(0),
        ArrayShape::layered_d2(7, 5, 0),
        ArrayShape::d3(7, 5, 2).gather(),
        ArrayShape::d1(usize::MAX),
        ArrayShape::layered_cubemap(5, usize::MAX),
        ArrayShape::d2(7, 5).with_flags(0x200),
        // Copies fault until memory is mapped, so the safe constructor rejects the flag.
        ArrayShape::d2(7, 5).with_flags(CUDA_ARRAY3D_DEFERRED_MAPPING),
    ] {
        assert_eq!(code(Array::<u32>::new(&context, shape)), INVALID, "{shape:?}");
        assert_eq!(code(MipmappedArray::<u32>::new(&context, shape, 2)), INVALID);
    }
}

#[test]
fn texels_of_every_type() {
    fn there_and_back<T: Texel + PartialEq + std::fmt::Debug>(context: &Context, values: &[T]) {
        let array = Array::<T>::new(context, ArrayShape::d1(values.len())).expect("an array");
        array.copy_from(values).expect("a copy");
        let mut seen = vec![T::zeroed(); values.len()];
        array.copy_to(&mut seen).expect("a copy");
        assert_eq!(seen, values);
        let descriptor = array.descriptor().expect("a descriptor");
        assert_eq!((descriptor.Format, descriptor.NumChannels), (T::FORMAT, T::CHANNELS));
    }
    let context = context();
    there_and_back(&context, &[1_u8, 2, 255]);
    there_and_back(&context, &[-1_i16, 2]);
    there_and_back(&context, &[i32::MIN]);
    there_and_back(&context, &[1.5_f32, -0.25]);
    there_and_back(&context, &[[1_i8, -2], [3, -4]]);
    there_and_back(&context, &[[1_u16, 2, 3, 4]]);
    there_and_back(&context, &[float2::new(1.0, 2.0)]);
    there_and_back(&context, &[float4::new(1.0, 2.0, 3.0, 4.0), float4::default()]);
    there_and_back(&context, &[uchar4::new(1, 2, 3, 4)]);

    // The caller passes the format: for a type that has none, or instead of the type's own.
    let half = CUarray_format::CU_AD_FORMAT_HALF;
    let shape = ArrayShape::d2(2, 1);
    let array = Array::<u16>::with_format(&context, shape, half, 1).expect("an array");
    let values = [0x3e00, 0x7bff];
    array.copy_from(&values).expect("a copy");
    assert_eq!(array.to_vec().expect("a copy"), values);
    assert!(Array::<[u16; 4]>::with_format(&context, shape, half, 4).is_ok());
    let wrong = Array::<u16>::with_format(&context, shape, half, 2).expect_err("texels of 4 bytes");
    assert_eq!(wrong.code(), INVALID);
    assert!(wrong.to_string().contains("size"), "{wrong}");
    let wrong = MipmappedArray::<u8>::with_format(&context, shape, 1, half, 1);
    assert_eq!(code(wrong), INVALID);
    // Three values have the size of three channels, but arrays have one, two or four.
    assert_eq!(
        code(Array::<[u8; 3]>::with_format(&context, shape, u8::FORMAT, 3)),
        INVALID
    );
    let unknown = Array::<u8>::with_format(&context, shape, CUarray_format(0x7777), 1);
    assert_eq!(code(unknown), INVALID);
}

/// The extent of the memory and arrays between which boxes are copied.
const ROOM: [usize; 3] = [6, 5, 4];

fn at([x, y, z]: [usize; 3]) -> usize {
    (z * ROOM[1] + y) * ROOM[0] + x
}

/// Copies a box between host memory, device memory and arrays, in every combination but host to host, and compares all
/// values.
fn boxes(context: &Context, extent: [usize; 3], from: [usize; 3], to: [usize; 3]) {
    let values: Vec<u16> = (0..).take(ROOM.iter().product()).collect();
    let old = vec![9999; values.len()];
    let mut expected = old.clone();
    for z in 0..extent[2] {
        for y in 0..extent[1] {
            for x in 0..extent[0] {
                expected[at([to[0] + x, to[1] + y, to[2] + z])] = values[at([from[0] + x, from[1] + y, from[2] + z])];
            }
        }
    }
    let pitch = ROOM[0] * size_of::<u16>();
    let shaped = |copy: Copy3d<'_, u16>| {
        let copy = copy.source_offset(from).target_offset(to);
        let copy = copy.source_pitch(pitch).source_rows(ROOM[1]);
        let copy = copy.target_pitch(pitch).target_rows(ROOM[1]);
        copy.run().expect("a copy");
    };
    let shape = ArrayShape::d3(ROOM[0], ROOM[1], ROOM[2]);
    let array = Array::<u16>::new(context, shape).expect("an array");
    array.copy_from(&values).expect("a copy");
    let memory = DeviceBuffer::from_slice(context, &values).expect("memory");

    let mut host = old.clone();
    shaped(Copy3d::new(&array, &mut host, extent));
    assert_eq!(host, expected, "array to host");
    let mut host = old.clone();
    shaped(Copy3d::new(&memory, &mut host, extent));
    assert_eq!(host, expected, "memory to host");

    let target = || DeviceBuffer::from_slice(context, &old).expect("memory");
    let mut device = target();
    shaped(Copy3d::new(&values, &mut device, extent));
    assert_eq!(device.to_vec().expect("a copy"), expected, "host to memory");
    let mut device = target();
    shaped(Copy3d::new(memory.as_slice(), device.as_mut_slice(), extent));
    assert_eq!(device.to_vec().expect("a copy"), expected, "memory to memory");
    let mut device = target();
    shaped(Copy3d::new(&array, &mut device, extent));
    assert_eq!(device.to_vec().expect("a copy"), expected, "array to memory");

    let target = || {
        let array = Array::<u16>::new(context, shape).expect("an array");
        array.copy_from(&old).expect("a copy");
        array
    };
    let texels = target();
    shaped(Copy3d::new(&values[..], &texels, extent));
    assert_eq!(texels.to_vec().expect("a copy"), expected, "host to array");
    let texels = target();
    shaped(Copy3d::new(&memory, &texels, extent));
    assert_eq!(texels.to_vec().expect("a copy"), expected, "memory to array");
    let texels = target();
    shaped(Copy3d::new(&array, &texels, extent));
    assert_eq!(texels.to_vec().expect("a copy"), expected, "array to array");
}

#[test]
fn boxes_between_all_kinds_of_memory() {
    let context = context();
    // A row at the start, in the first row, and elsewhere; rectangles; boxes.
    boxes(&context, [6, 1, 1], [0, 0, 0], [0, 0, 0]);
    boxes(&context, [3, 1, 1], [2, 0, 0], [1, 0, 0]);
    boxes(&context, [3, 1, 1], [2, 4, 3], [1, 0, 2]);
    boxes(&context, [6, 5, 1], [0, 0, 0], [0, 0, 0]);
    boxes(&context, [2, 3, 1], [4, 2, 0], [0, 1, 0]);
    boxes(&context, [2, 3, 1], [0, 1, 2], [4, 2, 3]);
    boxes(&context, [6, 5, 4], [0, 0, 0], [0, 0, 0]);
    boxes(&context, [1, 2, 3], [5, 3, 1], [2, 0, 0]);
    boxes(&context, [1, 1, 1], [5, 4, 3], [5, 4, 3]);
}

#[test]
fn rows_without_gaps() {
    let context = context();
    let array = Array::<u8>::new(&context, ArrayShape::layered_d2(8, 4, 2)).expect("an array");
    array.copy_from(&(0..64).collect::<Vec<u8>>()).expect("a copy");
    let mut part = [0; 12];
    Copy3d::new(&array, &mut part, [3, 2, 2])
        .source_offset([1, 2, 0])
        .run()
        .expect("a copy");
    assert_eq!(part, [17, 18, 19, 25, 26, 27, 49, 50, 51, 57, 58, 59]);
    // The offset applies to each row: without a given pitch, a row consists of the offset and the copied part.
    let mut part = [0; 8];
    Copy3d::new(&array, &mut part, [3, 2, 1])
        .target_offset([1, 0, 0])
        .run()
        .expect("a copy");
    assert_eq!(part, [0, 0, 1, 2, 0, 8, 9, 10]);
    // A pitch in bytes need not be a multiple of the type's size.
    let words = DeviceBuffer::from_slice(&context, &[0x0403_0201_u32, 0x0807_0605, 0x0c0b_0a09]).expect("memory");
    let mut seen = [0_u32; 2];
    Copy3d::new(&words, &mut seen, [1, 2, 1])
        .source_pitch(5)
        .run()
        .expect("a copy");
    assert_eq!(seen, [0x0403_0201, 0x0908_0706]);
}

#[test]
fn boxes_that_are_not_inside() {
    let context = context();
    let array = Array::<u16>::new(&context, ArrayShape::d3(6, 5, 4)).expect("an array");
    array.copy_from(&[7; 120]).expect("a copy");
    let mut memory = DeviceBuffer::<u16>::zeroed(&context, 120).expect("memory");
    let values = [1_u16; 120];
    let max = usize::MAX;
    for (extent, offset) in [
        ([7, 1, 1], [0, 0, 0]),
        ([6, 6, 1], [0, 0, 0]),
        ([6, 5, 5], [0, 0, 0]),
        ([1, 1, 1], [6, 0, 0]),
        ([1, 1, 1], [0, 5, 0]),
        ([1, 1, 1], [0, 0, 4]),
        ([max, 1, 1], [1, 0, 0]),
        ([1, max, 1], [0, 1, 0]),
        ([1, 1, max], [0, 0, 1]),
        ([1, 1, 1], [max, max, max]),
    ] {
        let refused = Copy3d::new(&values, &array, extent).target_offset(offset).run();
        assert_eq!(code(refused), INVALID, "{extent:?} at {offset:?} of an array");
        let refused = Copy3d::new(&array, &mut memory, extent).source_offset(offset).run();
        assert_eq!(code(refused), INVALID, "{extent:?} at {offset:?} of an array");
        let refused = Copy3d::new(&values, &mut memory, extent)
            .source_offset(offset)
            .source_pitch(12)
            .source_rows(5)
            .run();
        assert_eq!(code(refused), INVALID, "{extent:?} at {offset:?} of a slice");
        let refused = Copy3d::new(&values, &mut memory, extent)
            .target_offset(offset)
            .target_pitch(12)
            .target_rows(5)
            .run();
        assert_eq!(code(refused), INVALID, "{extent:?} at {offset:?} of memory");
    }
    // The pitch is shorter than a row, a layer has too few rows, or the source needs more values than it has.
    for copy in [
        Copy3d::new(&values, &array, [6, 2, 1]).source_pitch(11),
        Copy3d::new(&values, &array, [5, 2, 1])
            .source_offset([1, 0, 0])
            .source_pitch(10),
        Copy3d::new(&values, &array, [6, 2, 2]).source_rows(1),
        Copy3d::new(&values, &array, [6, 2, 2])
            .source_offset([0, 1, 0])
            .source_rows(2),
        Copy3d::new(&values, &array, [1, 2, 1]).source_pitch(max),
        Copy3d::new(&values, &array, [1, 1, 2]).source_rows(max),
        Copy3d::new(&values, &array, [1, 2, 2]).source_pitch(2).source_rows(max),
    ] {
        assert_eq!(code(copy.run()), INVALID);
    }
    // The last row does not fit in 119 values; `copy_from` and `copy_to` need slices of the array's length.
    assert_eq!(code(Copy3d::new(&values[..119], &array, [6, 5, 4]).run()), INVALID);
    assert_eq!(code(array.copy_from(&values[..119])), INVALID);
    assert_eq!(code(array.copy_to(&mut [0; 121])), INVALID);
    // A box with an extent of 0 is valid, and copies nothing.
    for extent in [[0, 1, 1], [1, 0, 1], [1, 1, 0]] {
        Copy3d::new(&values, &array, extent).run().expect("nothing");
    }
    assert_eq!(array.to_vec().expect("a copy"), [7; 120]);
    assert_eq!(memory.to_vec().expect("a copy"), [0; 120]);
}

#[test]
fn queued_copies() {
    let context = context();
    let stream = Stream::non_blocking(&context).expect("a stream");
    let array = Array::<u32>::new(&context, ArrayShape::d3(4, 3, 2)).expect("an array");
    let line = Array::<u32>::new(&context, ArrayShape::d1(4)).expect("an array");
    let values: Vec<u32> = (0..24).collect();
    let host = HostBuffer::from_slice(&context, &values).expect("page-locked memory");
    let mut back = HostBuffer::<u32>::zeroed(&context, 24).expect("page-locked memory");
    let mut memory = DeviceBuffer::<u32>::zeroed(&context, 24).expect("memory");
    // SAFETY: the stream is synchronised before any of the memory is used or freed.
    unsafe {
        Copy3d::new(&host[..], &array, [4, 3, 2])
            .run_async(&stream)
            .expect("a box");
        Copy3d::new(&array, &mut memory, [4, 3, 2])
            .run_async(&stream)
            .expect("a box");
        Copy3d::new(&memory, &mut back[..], [4, 3, 1])
            .run_async(&stream)
            .expect("a rectangle");
        Copy3d::new(&host[20..], &line, [4, 1, 1])
            .run_async(&stream)
            .expect("a row");
        Copy3d::new(&line, &mut back[12..], [2, 1, 1])
            .source_offset([2, 0, 0])
            .run_async(&stream)
            .expect("a row");
        let outside = Copy3d::new(&line, &mut back[..], [5, 1, 1]).run_async(&stream);
        assert_eq!(code(outside), INVALID);
    }
    stream.synchronize().expect("the end");
    assert_eq!(back[..12], values[..12]);
    assert_eq!(back[12..15], [22, 23, 0]);
    assert_eq!(memory.to_vec().expect("a copy"), values);
}

#[test]
fn copies_between_contexts() {
    let (one, other) = (context(), context());
    let values: Vec<u8> = (0..24).collect();
    let a = Array::<u8>::new(&one, ArrayShape::d3(4, 3, 2)).expect("an array");
    a.copy_from(&values).expect("a copy");
    let b = Array::<u8>::new(&other, ArrayShape::d3(4, 3, 2)).expect("an array");
    Copy3d::new(&a, &b, [4, 3, 2]).run().expect("a copy");
    assert_eq!(b.to_vec().expect("a copy"), values);
    let mut memory = DeviceBuffer::<u8>::zeroed(&other, 24).expect("memory");
    Copy3d::new(&a, &mut memory, [4, 3, 2]).run().expect("a copy");
    assert_eq!(memory.to_vec().expect("a copy"), values);
}

/// The caller may unmap or free the source next, and both wait only for the work of the source's own context.
#[test]
fn a_copy_between_contexts_is_done_when_it_returns() {
    let (one, other) = (context(), context());
    let from = DeviceBuffer::<u8>::zeroed(&one, 24).expect("memory");
    let mut to = DeviceBuffer::<u8>::zeroed(&other, 24).expect("memory");
    // The copy in the null stream waits for the function, because the stream is blocking.
    let stream = Stream::new(&other).expect("a stream");
    let is_done = Arc::new(AtomicBool::new(false));
    let set = Arc::clone(&is_done);
    stream
        .launch_host_fn(move || {
            std::thread::sleep(Duration::from_millis(150));
            set.store(true, Ordering::SeqCst);
        })
        .expect("a host function");
    Copy3d::new(&from, &mut to, [4, 3, 2]).run().expect("a copy");
    assert!(is_done.load(Ordering::SeqCst), "the copy may still run");
}

#[test]
fn levels_keep_their_array_alive() {
    let context = context();
    let mipmapped = MipmappedArray::<f32>::new(&context, ArrayShape::d2(16, 4), 99).expect("an array");
    let mut levels = Vec::new();
    for (number, size) in (0..).zip([[16, 4, 1], [8, 2, 1], [4, 1, 1], [2, 1, 1], [1, 1, 1]]) {
        let level = mipmapped.level(number).expect("a level");
        assert_eq!(level.size().expect("a size"), size);
        levels.push(level);
    }
    assert_eq!(code(mipmapped.level(5)), INVALID);
    assert_eq!(code(mipmapped.level(u32::MAX)), INVALID);
    // Destroys nothing, because the levels refer to the array.
    mipmapped.destroy().expect("no last reference");
    let level = levels.swap_remove(1);
    drop(levels);
    level.copy_from(&[0.5; 16]).expect("a copy");
    drop(context);
    assert_eq!(level.to_vec().expect("a copy"), [0.5; 16]);
    // Destroys the whole array, because this is the last reference to it.
    level.destroy().expect("the end");
}

#[test]
fn properties_of_ordinary_arrays() {
    let context = context();
    let device = Device::first().expect("a device");
    let array = Array::<f32>::new(&context, ArrayShape::d2(4, 4)).expect("an array");
    assert_eq!(code(array.plane::<u8>(0)), INVALID);
    assert_eq!(code(array.memory_requirements(device)), INVALID);
    assert_eq!(code(array.sparse_properties()), INVALID);
    let mipmapped = MipmappedArray::<f32>::new(&context, ArrayShape::d2(4, 4), 2).expect("an array");
    assert_eq!(code(mipmapped.memory_requirements(device)), INVALID);
    assert_eq!(code(mipmapped.sparse_properties()), INVALID);
}

#[test]
fn arrays_without_memory() {
    let context = context();
    let device = Device::first().expect("a device");
    let shape = ArrayShape::d2(64, 64);
    let (format, channels) = (f32::FORMAT, f32::CHANNELS);
    let attributes = device.attributes();
    if attributes.deferred_mapping_cuda_array_supported() == Ok(true) {
        // SAFETY: the array is not used in copies.
        let array = unsafe { Array::<f32>::unmapped(&context, shape, format, channels) }.expect("an array");
        let memory = array.memory_requirements(device).expect("requirements");
        assert!(memory.size >= 64 * 64 * 4 && memory.alignment > 0, "{memory:?}");
        // SAFETY: as above.
        let array = unsafe { MipmappedArray::<f32>::unmapped(&context, shape, 2, format, channels) };
        let array = array.expect("an array");
        let memory = array.memory_requirements(device).expect("requirements");
        assert!(memory.size >= 64 * 64 * 4 && memory.alignment > 0, "{memory:?}");
    } else {
        needs("arrays with deferred mapping");
    }
    if attributes.sparse_cuda_array_supported() == Ok(true) {
        let array = Array::<f32>::new(&context, shape.sparse()).expect("an array");
        let tile = array.sparse_properties().expect("properties").tileExtent;
        assert!(tile.width > 0 && tile.height > 0 && tile.depth > 0, "{tile:?}");
        // Copies to tiles without memory are dropped.
        array.copy_from(&[1.0; 64 * 64]).expect("a copy");
        context.synchronize().expect("no fault");
        assert_eq!(array.to_vec().expect("a copy"), [0.0; 64 * 64]);
    } else {
        needs("sparse arrays");
    }
}

#[test]
fn raw_handles() {
    let context = context();
    let array = Array::<u8>::new(&context, ArrayShape::d2(3, 2)).expect("an array");
    array.copy_from(&[1, 2, 3, 4, 5, 6]).expect("a copy");
    let raw = array.into_raw();
    // SAFETY: the handle was released above, and the texels have this type.
    let array = unsafe { Array::<u8>::from_raw(raw, &context) };
    assert_eq!(array.as_raw(), raw);
    assert_eq!(array.to_vec().expect("a copy"), [1, 2, 3, 4, 5, 6]);
    // The size comes from the driver, so bounds are still checked.
    assert_eq!(code(Copy3d::new(&[0; 8], &array, [4, 2, 1]).run()), INVALID);

    // SAFETY: the array lives longer.
    let borrowed = unsafe { Array::<u8>::borrow_raw(raw) };
    assert!(borrowed.context().is_none());
    let current = context.push().expect("a push");
    assert_eq!(borrowed.to_vec().expect("a copy"), [1, 2, 3, 4, 5, 6]);
    borrowed.destroy().expect("nothing to destroy");
    current.pop().expect("a pop");
    assert_eq!(array.to_vec().expect("a copy"), [1, 2, 3, 4, 5, 6]);
    array.destroy().expect("the end");

    let mipmapped = MipmappedArray::<u8>::new(&context, ArrayShape::d1(8), 2).expect("an array");
    let raw = mipmapped.into_raw();
    // SAFETY: as above.
    let mipmapped = unsafe { MipmappedArray::<u8>::from_raw(raw, &context) };
    assert_eq!(mipmapped.as_raw(), raw);
    // SAFETY: as above.
    let borrowed = unsafe { MipmappedArray::<u8>::borrow_raw(raw) };
    let current = context.push().expect("a push");
    let level = borrowed.level(1).expect("a level");
    assert_eq!(level.size().expect("a size"), [4, 1, 1]);
    drop((level, borrowed));
    current.pop().expect("a pop");
    mipmapped.destroy().expect("the end");
}

#[test]
fn arrays_outlive_their_owners() {
    fn is_thread_safe<T: Send + Sync>(_: &T) {}
    let context = context();
    let array = Array::<i16>::new(&context, ArrayShape::d1(2)).expect("an array");
    let clone = array.clone();
    is_thread_safe(&array);
    is_thread_safe(&MipmappedArray::<i16>::new(&context, ArrayShape::d1(2), 1).expect("an array"));
    array.destroy().expect("no last reference");
    // The array has the last reference to the context.
    drop(context);
    let worker = std::thread::spawn(move || {
        clone.copy_from(&[-1, 2]).expect("a copy");
        assert_eq!(clone.to_vec().expect("a copy"), [-1, 2]);
        drop(clone);
    });
    worker.join().expect("no panic");
}

#[test]
fn views_without_a_context() {
    let context = context();
    let owner = DeviceBuffer::from_slice(&context, &[1_u8, 2, 3, 4]).expect("memory");
    // SAFETY: the owner lives longer.
    let view = unsafe { DeviceSlice::<u8>::from_raw_parts(owner.ptr(), 4, None) };
    let mut seen = [0; 4];
    let copy = Copy3d::new(view, &mut seen, [2, 2, 1]).run();
    assert_eq!(code(copy), CUresult::CUDA_ERROR_INVALID_CONTEXT);
    // With an array on the other side, the copy uses the array's context.
    let array = Array::<u8>::new(&context, ArrayShape::d2(2, 2)).expect("an array");
    Copy3d::new(view, &array, [2, 2, 1]).run().expect("a copy");
    assert_eq!(array.to_vec().expect("a copy"), [1, 2, 3, 4]);
}
