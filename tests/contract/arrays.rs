//! Tests of arrays, mipmapped arrays, copies to and from them, and surfaces.

use std::ptr;

use cuda_driver::sys::*;

use crate::common::gpu::{Gpu, Plain};
use crate::common::{Codes, is_software};
use crate::textures::run;
use crate::{call, is, ok};

const FLOAT: CUarray_format = CUarray_format::CU_AD_FORMAT_FLOAT;
const U32: CUarray_format = CUarray_format::CU_AD_FORMAT_UNSIGNED_INT32;
const U8: CUarray_format = CUarray_format::CU_AD_FORMAT_UNSIGNED_INT8;

fn descriptor(size: [usize; 3], format: CUarray_format, channels: u32, flags: u32) -> CUDA_ARRAY3D_DESCRIPTOR {
    CUDA_ARRAY3D_DESCRIPTOR {
        Width: size[0],
        Height: size[1],
        Depth: size[2],
        Format: format,
        NumChannels: channels,
        Flags: flags,
    }
}

fn array(size: [usize; 3], format: CUarray_format, channels: u32, flags: u32) -> CUarray {
    let mut array = ptr::null_mut();
    let descriptor = descriptor(size, format, channels, flags);
    ok!(cuArray3DCreate(&raw mut array, &raw const descriptor));
    array
}

const LAYERED: u32 = CUDA_ARRAY3D_LAYERED;
const CUBE: u32 = CUDA_ARRAY3D_CUBEMAP;
const GATHER: u32 = CUDA_ARRAY3D_TEXTURE_GATHER;
const SURFACE: u32 = CUDA_ARRAY3D_SURFACE_LDST;

#[test]
fn array_descriptors() {
    let _gpu = Gpu::new();
    let mut c = Codes::new();
    for (code, size, format, channels, flags) in [
        (0, [4, 3, 0], FLOAT, 1, 0),
        (0, [4, 0, 0], FLOAT, 2, 0),
        (0, [4, 3, 2], FLOAT, 4, 0),
        (1, [0, 3, 0], FLOAT, 1, 0),
        (1, [4, 3, 0], FLOAT, 3, 0),
        (1, [4, 3, 0], FLOAT, 0, 0),
        (1, [4, 3, 0], CUarray_format(0x99), 1, 0),
        (1, [4, 0, 2], FLOAT, 1, 0),
        (0, [4, 3, 2], FLOAT, 1, LAYERED),
        (0, [4, 0, 2], FLOAT, 1, LAYERED),
        (1, [4, 3, 0], FLOAT, 1, LAYERED),
        (0, [4, 4, 6], FLOAT, 1, CUBE),
        (1, [4, 4, 5], FLOAT, 1, CUBE),
        (1, [4, 3, 6], FLOAT, 1, CUBE),
        (1, [4, 4, 12], FLOAT, 1, CUBE),
        (0, [4, 4, 12], FLOAT, 1, CUBE | LAYERED),
        (1, [4, 4, 7], FLOAT, 1, CUBE | LAYERED),
        (0, [4, 3, 0], FLOAT, 1, GATHER),
        (1, [4, 3, 2], FLOAT, 1, GATHER),
        (1, [4, 0, 0], FLOAT, 1, GATHER),
        (1, [4, 3, 2], FLOAT, 1, GATHER | LAYERED),
        (1, [4, 3, 0], FLOAT, 1, 0x200),
        (0, [131_072, 1, 0], U8, 1, 0),
        (1, [131_073, 1, 0], U8, 1, 0),
        (1, [131_073, 0, 0], U8, 1, 0),
        (0, [1, 65536, 0], U8, 1, 0),
        (1, [1, 65537, 0], U8, 1, 0),
        (0, [16384, 1, 1], U8, 1, 0),
        (1, [16385, 1, 1], U8, 1, 0),
        (0, [1, 1, 32768], U8, 1, 0),
        (0, [32768, 0, 1], U8, 1, LAYERED),
        (1, [32769, 0, 1], U8, 1, LAYERED),
        (1, [1, 1, 2049], U8, 1, LAYERED),
        (0, [8, 8, 2046], U8, 1, CUBE | LAYERED),
        (1, [8, 8, 2052], U8, 1, CUBE | LAYERED),
        (1, [32769, 4, 0], U8, 1, GATHER),
        (1, [32769, 0, 0], U8, 1, SURFACE),
    ] {
        let wanted = descriptor(size, format, channels, flags);
        let mut made = ptr::null_mut();
        let result = call!(cuArray3DCreate(&raw mut made, &raw const wanted)).0;
        c.is(
            code,
            &format!("{size:?}, {format:?}, {channels} channels, flags {flags:#x}"),
            result,
        );
        if code == 0 {
            let mut seen = descriptor([9; 3], U8, 9, 9);
            is!(c, 0, cuArray3DGetDescriptor(&raw mut seen, made));
            let same = (seen.Width, seen.Height, seen.Depth) == (size[0], size[1], size[2]);
            let same = same && seen.Format == format && seen.NumChannels == channels;
            c.that(same && seen.Flags == flags, || format!("{seen:?}"));
            is!(c, 0, cuArrayDestroy(made));
        }
    }
}

#[test]
fn handles_of_arrays() {
    let _gpu = Gpu::new();
    let mut c = Codes::new();
    let mut made = ptr::null_mut();
    let wanted = CUDA_ARRAY_DESCRIPTOR {
        Width: 4,
        Height: 4,
        Format: FLOAT,
        NumChannels: 1,
    };
    is!(c, 1, cuArrayCreate(ptr::null_mut(), &raw const wanted));
    is!(c, 1, cuArrayCreate(&raw mut made, ptr::null()));
    is!(c, 0, cuArrayCreate(&raw mut made, &raw const wanted));
    let mut seen = CUDA_ARRAY_DESCRIPTOR { Width: 0, ..wanted };
    is!(c, 0, cuArrayGetDescriptor(&raw mut seen, made));
    c.that((seen.Width, seen.Height) == (4, 4), || format!("{seen:?}"));
    is!(c, 1, cuArrayGetDescriptor(ptr::null_mut(), made));
    is!(c, 400, cuArrayGetDescriptor(&raw mut seen, ptr::null_mut()));
    let mut plane = ptr::null_mut();
    is!(c, 1, cuArrayGetPlane(&raw mut plane, made, 0));
    let mut needs = CUDA_ARRAY_MEMORY_REQUIREMENTS::default();
    is!(c, 1, cuArrayGetMemoryRequirements(&raw mut needs, made, 0));
    let mut sparse = CUDA_ARRAY_SPARSE_PROPERTIES::default();
    is!(c, 1, cuArrayGetSparseProperties(&raw mut sparse, made));
    is!(c, 0, cuArrayDestroy(made));
    // NVIDIA's driver sometimes crashes here.
    if is_software() {
        is!(c, 709, cuArrayDestroy(made));
    }
    is!(c, 400, cuArrayDestroy(ptr::null_mut()));
    is!(c, 400, cuMipmappedArrayDestroy(ptr::null_mut()));
    is!(c, 400, cuMipmappedArrayGetLevel(ptr::null_mut(), ptr::null_mut(), 0));
}

#[test]
fn calls_without_a_context() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let mut stream = ptr::null_mut();
    ok!(cuStreamCreate(
        &raw mut stream,
        CUstream_flags::CU_STREAM_NON_BLOCKING.0
    ));
    let line = array([8, 0, 0], FLOAT, 1, 0);
    let (mut mipmap, mut level) = (ptr::null_mut(), ptr::null_mut());
    let wanted = descriptor([8, 8, 0], FLOAT, 1, 0);
    ok!(cuMipmappedArrayCreate(&raw mut mipmap, &raw const wanted, 2));
    let mut host = [1_u32; 8];
    let resource = of_array(line);
    let settings = CUDA_TEXTURE_DESC::default();
    let mut texture = 0;
    ok!(cuTexObjectCreate(
        &raw mut texture,
        &raw const resource,
        &raw const settings,
        ptr::null()
    ));
    let handle = surface(line);
    ok!(cuCtxPopCurrent(ptr::null_mut()));
    is!(c, 0, cuMemcpyHtoAAsync(line, 0, host.as_ptr().cast(), 32, stream));
    is!(c, 0, cuMemcpyAtoHAsync(host.as_mut_ptr().cast(), line, 0, 32, stream));
    is!(c, 0, cuStreamSynchronize(stream));
    let mut seen = descriptor([9; 3], U8, 9, 9);
    is!(c, 0, cuArray3DGetDescriptor(&raw mut seen, line));
    is!(c, 0, cuMipmappedArrayGetLevel(&raw mut level, mipmap, 1));
    let mut of = of_array(ptr::null_mut());
    is!(c, 201, cuTexObjectGetResourceDesc(&raw mut of, texture));
    is!(c, 201, cuTexObjectDestroy(texture));
    is!(c, 201, cuSurfObjectDestroy(handle));
    ok!(cuCtxPushCurrent(gpu.context));
    ok!(cuTexObjectDestroy(texture));
    ok!(cuSurfObjectDestroy(handle));
    ok!(cuCtxPopCurrent(ptr::null_mut()));
    is!(c, 0, cuArrayDestroy(line));
    is!(c, 0, cuMipmappedArrayDestroy(mipmap));
}

#[test]
fn levels_of_mipmapped_arrays() {
    let _gpu = Gpu::new();
    let mut c = Codes::new();
    for (size, flags, asked, levels) in [
        (
            [16, 16, 0],
            0,
            5,
            vec![[16, 16, 0], [8, 8, 0], [4, 4, 0], [2, 2, 0], [1, 1, 0]],
        ),
        (
            [16, 5, 0],
            0,
            99,
            vec![[16, 5, 0], [8, 2, 0], [4, 1, 0], [2, 1, 0], [1, 1, 0]],
        ),
        ([16, 0, 0], SURFACE, 3, vec![[16, 0, 0], [8, 0, 0], [4, 0, 0]]),
        ([9, 7, 5], 0, 9, vec![[9, 7, 5], [4, 3, 2], [2, 1, 1], [1, 1, 1]]),
        ([8, 8, 3], LAYERED, 4, vec![[8, 8, 3], [4, 4, 3], [2, 2, 3], [1, 1, 3]]),
        ([16, 16, 0], 0, 0, vec![[16, 16, 0]]),
    ] {
        let wanted = descriptor(size, FLOAT, 1, flags);
        let mut mipmap = ptr::null_mut();
        is!(c, 0, cuMipmappedArrayCreate(&raw mut mipmap, &raw const wanted, asked));
        let (mut level, mut again) = (ptr::null_mut(), ptr::null_mut());
        for (i, size) in (0..).zip(&levels) {
            is!(c, 0, cuMipmappedArrayGetLevel(&raw mut level, mipmap, i));
            let mut seen = descriptor([9; 3], U8, 9, 9);
            is!(c, 0, cuArray3DGetDescriptor(&raw mut seen, level));
            let found = [seen.Width, seen.Height, seen.Depth];
            c.that(found == *size && seen.Flags == flags, || format!("level {i}: {seen:?}"));
        }
        is!(
            c,
            0,
            cuMipmappedArrayGetLevel(&raw mut again, mipmap, levels.len() as u32 - 1)
        );
        c.that(again == level, || "the level's handle changed".to_owned());
        is!(
            c,
            1,
            cuMipmappedArrayGetLevel(&raw mut again, mipmap, levels.len() as u32)
        );
        is!(c, 0, cuMipmappedArrayDestroy(mipmap));
        if is_software() {
            is!(c, 709, cuMipmappedArrayDestroy(mipmap));
        }
    }
    let mut mipmap = ptr::null_mut();
    let too_large = descriptor([40_000, 1, 0], FLOAT, 1, 0);
    is!(c, 1, cuMipmappedArrayCreate(&raw mut mipmap, &raw const too_large, 2));
}

fn read<T: Plain>(array: CUarray, count: usize) -> Vec<T> {
    let mut data = vec![T::default(); count];
    ok!(cuMemcpyAtoH(data.as_mut_ptr().cast(), array, 0, size_of_val(&data[..])));
    data
}

#[test]
fn copies_of_bytes_in_a_row() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let line = array([16, 0, 0], FLOAT, 1, 0);
    let plane = array([16, 4, 0], FLOAT, 1, 0);
    let layers = array([8, 0, 3], FLOAT, 1, LAYERED);
    let bytes = array([16, 0, 0], U8, 4, 0);
    let data: Vec<u32> = (0..64).collect();
    let host = data.as_ptr().cast();
    let device = gpu.upload(&data);
    for (code, to, offset, count) in [
        (0, line, 0, 64),
        (0, line, 4, 60),
        (1, line, 4, 64),
        (0, line, 2, 8),
        (0, line, 4, 6),
        (0, line, 100, 0),
        (1, ptr::null_mut(), 0, 4),
        // Only the first row can be copied.
        (0, plane, 0, 64),
        (1, plane, 0, 256),
        (1, plane, 64, 64),
        (0, layers, 0, 32),
        (1, layers, 0, 96),
    ] {
        is!(c, code, cuMemcpyHtoA(to, offset, host, count));
    }
    is!(c, 1, cuMemcpyHtoA(line, 0, ptr::null(), 4));
    is!(c, 0, cuMemcpyHtoA(line, 0, host, 64));
    is!(c, 0, cuMemcpyAtoA(bytes, 4, line, 8, 32));
    c.that(read::<u32>(bytes, 9)[1..] == data[2..10], || {
        "array to array".to_owned()
    });
    is!(c, 0, cuMemcpyAtoD(device, line, 12, 16));
    c.that(gpu.read::<u32>(device, 5) == [3, 4, 5, 6, 4], || {
        "array to device".to_owned()
    });
    is!(c, 0, cuMemcpyDtoA(line, 40, device, 16));
    c.that(read::<u32>(line, 16)[9..15] == [9, 3, 4, 5, 6, 14], || {
        "device to array".to_owned()
    });
    let mut back = [0u32; 4];
    is!(
        c,
        0,
        cuMemcpyAtoHAsync(back.as_mut_ptr().cast(), line, 0, 16, ptr::null_mut())
    );
    is!(c, 0, cuStreamSynchronize(ptr::null_mut()));
    c.that(back == [0, 1, 2, 3], || format!("{back:?}"));
    is!(
        c,
        0,
        cuMemcpyHtoAAsync(line, 0, [7u32, 8].as_ptr().cast(), 8, ptr::null_mut())
    );
    c.that(read::<u32>(line, 3) == [7, 8, 2], || {
        "host to array, asynchronously".to_owned()
    });
}

#[test]
fn rectangles_and_boxes() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let plane = array([16, 4, 0], FLOAT, 1, 0);
    let line = array([16, 0, 0], FLOAT, 1, 0);
    let cuboid = array([8, 4, 3], FLOAT, 1, 0);
    let layers = array([8, 0, 3], FLOAT, 1, LAYERED);
    let data: Vec<u32> = (0..256).collect();
    let whole = CUDA_MEMCPY2D {
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
        srcHost: data.as_ptr().cast(),
        srcPitch: 64,
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_ARRAY,
        dstArray: plane,
        WidthInBytes: 64,
        Height: 4,
        ..Default::default()
    };
    type Change = fn(&mut CUDA_MEMCPY2D);
    let changes: [(u32, Change); 9] = [
        (0, |_| {}),
        (1, |m| m.srcPitch = 32),
        (1, |m| m.dstXInBytes = 4),
        (1, |m| m.dstY = 1),
        (0, |m| (m.dstXInBytes, m.WidthInBytes) = (2, 4)),
        (0, |m| m.Height = 0),
        (0, |m| (m.WidthInBytes, m.dstXInBytes) = (0, 1000)),
        (1, |m| m.dstArray = ptr::null_mut()),
        (0, |m| m.dstPitch = 1),
    ];
    for (code, change) in changes {
        let mut copy = whole;
        change(&mut copy);
        is!(c, code, cuMemcpy2D(&raw const copy));
        is!(c, code, cuMemcpy2DUnaligned(&raw const copy));
    }
    let mut copy = whole;
    copy.dstArray = line;
    is!(c, 1, cuMemcpy2D(&raw const copy));
    is!(c, 0, cuMemcpy2D(&raw const whole));
    // Part of the array is copied to device memory and to another array.
    let device = gpu.alloc(1024);
    ok!(cuMemsetD8(device, 0, 1024));
    let mut part = whole;
    (part.srcMemoryType, part.srcArray) = (CUmemorytype::CU_MEMORYTYPE_ARRAY, plane);
    (part.srcXInBytes, part.srcY) = (8, 1);
    (part.WidthInBytes, part.Height) = (12, 2);
    (part.dstMemoryType, part.dstDevice) = (CUmemorytype::CU_MEMORYTYPE_DEVICE, device);
    part.dstPitch = 16;
    is!(c, 0, cuMemcpy2D(&raw const part));
    let seen = gpu.read::<u32>(device, 8);
    c.that(seen == [18, 19, 20, 0, 34, 35, 36, 0], || format!("{seen:?}"));
    (part.dstMemoryType, part.dstArray) = (CUmemorytype::CU_MEMORYTYPE_ARRAY, cuboid);
    (part.dstXInBytes, part.dstY) = (4, 0);
    is!(c, 0, cuMemcpy2D(&raw const part));
    let seen = read::<u32>(cuboid, 4);
    c.that(seen[1..] == [18, 19, 20], || format!("{seen:?}"));

    let whole = CUDA_MEMCPY3D {
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
        srcHost: data.as_ptr().cast(),
        srcPitch: 32,
        srcHeight: 4,
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_ARRAY,
        dstArray: cuboid,
        WidthInBytes: 32,
        Height: 4,
        Depth: 3,
        ..Default::default()
    };
    type Change3 = fn(&mut CUDA_MEMCPY3D);
    let changes: [(u32, Change3); 8] = [
        (0, |_| {}),
        (1, |m| m.dstZ = 1),
        (0, |m| (m.dstZ, m.Depth) = (1, 2)),
        (1, |m| m.dstY = 1),
        (1, |m| m.dstLOD = 1),
        (0, |m| m.Depth = 0),
        (1, |m| m.srcHeight = 2),
        (0, |m| (m.srcPitch, m.srcHeight) = (0, 0)),
    ];
    for (code, change) in changes {
        let mut copy = whole;
        change(&mut copy);
        is!(c, code, cuMemcpy3D(&raw const copy));
    }
    let mut of_layers = whole;
    of_layers.dstArray = layers;
    (of_layers.Height, of_layers.srcHeight) = (1, 1);
    is!(c, 0, cuMemcpy3D(&raw const of_layers));
    of_layers.dstY = 1;
    is!(c, 1, cuMemcpy3D(&raw const of_layers));
    is!(c, 0, cuMemcpy3D(&raw const whole));
    let mut back = vec![0u32; 96];
    let mut out = whole;
    (out.srcMemoryType, out.srcArray) = (CUmemorytype::CU_MEMORYTYPE_ARRAY, cuboid);
    (out.dstMemoryType, out.dstHost) = (CUmemorytype::CU_MEMORYTYPE_HOST, back.as_mut_ptr().cast());
    is!(c, 0, cuMemcpy3D(&raw const out));
    c.that(back == data[..96], || format!("{back:?}"));
}

fn of_array(array: CUarray) -> CUDA_RESOURCE_DESC {
    CUDA_RESOURCE_DESC {
        resType: CUresourcetype::CU_RESOURCE_TYPE_ARRAY,
        res: CUDA_RESOURCE_DESC_st__res {
            array: CUDA_RESOURCE_DESC_st__res__array { hArray: array },
        },
        flags: 0,
    }
}

fn surface(array: CUarray) -> u64 {
    let resource = of_array(array);
    let mut handle = 0;
    ok!(cuSurfObjectCreate(&raw mut handle, &raw const resource));
    handle
}

#[test]
fn surface_loads_and_bounds() {
    let gpu = Gpu::new();
    let data: Vec<u32> = (1..13).collect();
    let plane = array([4, 3, 0], U32, 1, SURFACE);
    let copy = CUDA_MEMCPY2D {
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
        srcHost: data.as_ptr().cast(),
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_ARRAY,
        dstArray: plane,
        WidthInBytes: 16,
        Height: 3,
        ..Default::default()
    };
    ok!(cuMemcpy2D(&raw const copy));
    let handle = surface(plane);
    let rows: Vec<Vec<u32>> = [(-8, 0), (0, -2), (4, 1), (12, 2), (16, 1), (20, 5), (0, 3)]
        .map(|(x, y): (i32, i32)| vec![x.cast_unsigned(), y.cast_unsigned()])
        .to_vec();
    for (bounds, expected) in [("clamp", [1, 1, 6, 12, 8, 12, 9]), ("zero", [0, 0, 6, 12, 0, 0, 0])] {
        let load = format!("suld.b.2d.b32.{bounds} r0, [h, {{c0,c1}}];");
        let seen: Vec<u32> = run(&gpu, &load, handle, &rows).iter().map(|r| r[0]).collect();
        assert_eq!(seen, expected, "{bounds}");
    }
    // Two elements at once.
    let load = "suld.b.2d.v2.b32.trap {r0,r1}, [h, {c0,c1}];";
    let seen = run(&gpu, load, handle, &[vec![8, 1], vec![0, 2]]);
    assert_eq!(seen[0][..2], [7, 8]);
    assert_eq!(seen[1][..2], [9, 10]);
    let halves = "suld.b.2d.b16.trap s0, [h, {c0,c1}]; cvt.u32.u16 r0, s0;";
    assert_eq!(run(&gpu, halves, handle, &[vec![6, 0]])[0][0], 0);
    let sizes = "suq.width.b32 r0, [h]; suq.height.b32 r1, [h]; suq.depth.b32 r2, [h];";
    assert_eq!(run(&gpu, sizes, handle, &[vec![0]])[0][..3], [4, 3, 0]);
}

#[test]
fn surface_stores_and_reductions() {
    let gpu = Gpu::new();
    let line = array([4, 0, 0], U32, 1, SURFACE);
    let handle = surface(line);
    let start = [5u32, 0xffff_fff0, 0x7fff_ffff, 9];
    for (instruction, at, expected) in [
        (
            "sust.b.1d.b32.clamp [h, {c0}], c4;",
            4,
            [5, 0x4433_2211, 0x7fff_ffff, 9],
        ),
        (
            "sust.b.1d.b32.clamp [h, {c0}], c4;",
            -4,
            [0x4433_2211, 0xffff_fff0, 0x7fff_ffff, 9],
        ),
        ("sust.b.1d.b32.zero [h, {c0}], c4;", -4, start),
        ("sust.b.1d.b32.zero [h, {c0}], c4;", 16, start),
        (
            "sust.b.1d.v2.b32.trap [h, {c0}], {c4,c5};",
            8,
            [5, 0xffff_fff0, 0x4433_2211, 0x8000_0003],
        ),
        (
            "sust.p.1d.b32.clamp [h, {c0}], c4;",
            3,
            [5, 0xffff_fff0, 0x7fff_ffff, 0x4433_2211],
        ),
        ("sust.p.1d.b32.zero [h, {c0}], c4;", 4, start),
        (
            "sured.b.add.1d.u32.clamp [h, {c0}], c5;",
            4,
            [5, 0x7fff_fff3, 0x7fff_ffff, 9],
        ),
        (
            "sured.b.min.1d.s32.clamp [h, {c0}], c5;",
            8,
            [5, 0xffff_fff0, 0x8000_0003, 9],
        ),
        (
            "sured.b.max.1d.u32.clamp [h, {c0}], c5;",
            0,
            [0x8000_0003, 0xffff_fff0, 0x7fff_ffff, 9],
        ),
        ("sured.b.min.1d.u32.zero [h, {c0}], c5;", 16, start),
        ("sured.b.and.1d.b32.zero [h, {c0}], c5;", 8, [5, 0xffff_fff0, 3, 9]),
        (
            "sured.b.or.1d.b32.clamp [h, {c0}], c5;",
            16,
            [5, 0xffff_fff0, 0x7fff_ffff, 0x8000_000b],
        ),
    ] {
        ok!(cuMemcpyHtoA(line, 0, start.as_ptr().cast(), 16));
        let at: i32 = at;
        let row = vec![at.cast_unsigned(), 0, 0, 0, 0x4433_2211, 0x8000_0003];
        run(&gpu, instruction, handle, &[row]);
        assert_eq!(read::<u32>(line, 4), expected, "{instruction} at {at}");
    }
    // Stores in texel format convert: integers saturate, half-precision values round towards zero.
    for (format, values, expected) in [
        (U8, [1, 300, 0xffff_ffff, 0], [1, 255, 255, 0, 0, 0, 0, 0]),
        (
            CUarray_format::CU_AD_FORMAT_SIGNED_INT8,
            [0x8000_0000, 0x7fff_ffff, 0xffff_ffff, 300],
            [0x80, 0x7f, 0xff, 0x7f, 0, 0, 0, 0],
        ),
        (
            CUarray_format::CU_AD_FORMAT_HALF,
            [0x477f_f000, 0x3e99_999a, 0x7f80_0000, 0xc049_0fdb],
            [0xff, 0x7b, 0xcc, 0x34, 0x00, 0x7c, 0x48, 0xc2],
        ),
    ] {
        let line = array([2, 0, 0], format, 4, SURFACE);
        let store = "sust.p.1d.v4.b32.trap [h, {c0}], {c4,c5,c6,c7};";
        let mut row = vec![0; 4];
        row.extend(values);
        ok!(cuMemcpyHtoA(line, 0, [0u8; 8].as_ptr().cast(), 8));
        run(&gpu, store, surface(line), &[row]);
        assert_eq!(read::<u8>(line, 8), expected, "{format:?}");
    }
}
