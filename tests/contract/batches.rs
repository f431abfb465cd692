//! Tests of batched copies and of batched moves of managed memory.

use std::ffi::c_void;
use std::ptr;

use cuda_driver::sys::*;

use crate::common::gpu::Gpu;
use crate::common::{Codes, driver_version};
use crate::{is, ok};

fn stream() -> CUstream {
    let mut stream = ptr::null_mut();
    ok!(cuStreamCreate(&raw mut stream, 1));
    stream
}

/// Returns true if the driver has the batch calls of CUDA 13; else reports that the test needs them.
fn has_batches() -> bool {
    let has = driver_version() >= 13000;
    if !has {
        crate::common::needs("a driver of CUDA 13");
    }
    has
}

fn in_order(order: u32) -> CUmemcpyAttributes {
    CUmemcpyAttributes {
        srcAccessOrder: CUmemcpySrcAccessOrder(order),
        ..Default::default()
    }
}

#[test]
fn batched_copies() {
    if !has_batches() {
        return;
    }
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let stream = stream();
    let data: Vec<u32> = (0..3072).map(|i| i * 5 + 1).collect();
    let (from, to) = (gpu.upload(&data), gpu.upload(&[0_u32; 3072]));
    let host = [7_u32; 16];
    let mut targets = [to, to + 4096, to + 8192];
    let mut sources = [from + 64, host.as_ptr() as u64, from];
    let mut sizes = [64_usize, 64, 128];
    let mut kinds = [in_order(1), in_order(2), in_order(3)];
    let mut indexes = [0_usize, 1, 2];
    let batch = |targets: &mut [u64; 3],
                 sources: &mut [u64; 3],
                 sizes: &mut [usize; 3],
                 count: usize,
                 kinds: &mut [CUmemcpyAttributes; 3],
                 indexes: &mut [usize; 3],
                 of: usize,
                 stream: CUstream| {
        // SAFETY: the arrays have the given lengths, and this test owns the memory.
        unsafe {
            cuMemcpyBatchAsync_v2(
                targets.as_mut_ptr(),
                sources.as_mut_ptr(),
                sizes.as_mut_ptr(),
                count,
                kinds.as_mut_ptr(),
                indexes.as_mut_ptr(),
                of,
                stream,
            )
        }
        .0
    };
    macro_rules! batch {
        ($code:expr, $count:expr, $of:expr, $stream:expr) => {{
            let got = batch(
                &mut targets,
                &mut sources,
                &mut sizes,
                $count,
                &mut kinds,
                &mut indexes,
                $of,
                $stream,
            );
            c.is($code, "cuMemcpyBatchAsync", got);
        }};
    }
    let mut expected = vec![0_u32; 3072];
    expected[..16].copy_from_slice(&data[16..32]);
    expected[1024..1040].copy_from_slice(&host);
    expected[2048..2080].copy_from_slice(&data[..32]);
    for (attributes, stream) in [(3, stream), (1, stream), (1, 2 as CUstream)] {
        ok!(cuMemsetD8(to, 0, 3072 * 4));
        ok!(cuCtxSynchronize());
        batch!(0, 3, attributes, stream);
        ok!(cuStreamSynchronize(stream));
        assert_eq!(gpu.read::<u32>(to, 3072), expected, "{attributes} attributes");
    }
    for legacy in [ptr::null_mut(), 1 as CUstream] {
        batch!(1, 3, 1, legacy);
    }
    batch!(1, 0, 1, stream);
    batch!(1, 3, 0, stream);
    indexes = [1, 2, 2];
    batch!(1, 3, 1, stream);
    indexes = [0, 0, 2];
    batch!(1, 3, 2, stream);
    indexes = [0, 5, 6];
    batch!(1, 3, 2, stream);
    indexes = [0, 1, 2];
    for (order, code) in [(0, 1), (1, 0), (2, 0), (3, 0), (4, 1)] {
        kinds[0] = in_order(order);
        batch!(code, 3, 1, stream);
    }
    kinds[0] = in_order(1);
    for (flags, code) in [(0, 0), (1, 0), (2, 1)] {
        kinds[0].flags = flags;
        batch!(code, 3, 1, stream);
    }
    kinds[0].flags = 0;
    for (size, code) in [(0, 1), (1 << 20, 1), (64, 0)] {
        sizes[2] = size;
        batch!(code, 3, 1, stream);
    }
    sources[2] = 0;
    batch!(1, 3, 1, stream);
    is!(c, 0, cuStreamSynchronize(stream));
    ok!(cuStreamDestroy(stream));
}

/// Returns an operand in linear memory. Lengths are in elements.
fn pointer(address: u64, row: usize, rows: usize) -> CUmemcpy3DOperand {
    let mut operand = CUmemcpy3DOperand {
        type_: CUmemcpy3DOperandType::CU_MEMCPY_OPERAND_TYPE_POINTER,
        ..Default::default()
    };
    operand.op.ptr = CUmemcpy3DOperand_st__op__ptr {
        ptr: address,
        rowLength: row,
        layerHeight: rows,
        ..Default::default()
    };
    operand
}

#[test]
fn batched_copies_of_boxes() {
    if !has_batches() {
        return;
    }
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let stream = stream();
    let data: Vec<u8> = (0..64 * 16 * 2).map(|i: u32| (i * 7 + i / 64) as u8).collect();
    let (from, to) = (gpu.upload(&data), gpu.upload(&[0_u8; 4096]));
    let new = |width: usize, order: u32| {
        let mut op = CUDA_MEMCPY3D_BATCH_OP {
            src: pointer(from, 64, 16),
            dst: pointer(to, 32, 0),
            srcAccessOrder: CUmemcpySrcAccessOrder(order),
            ..Default::default()
        };
        op.extent.width = width;
        op.extent.height = 16;
        op.extent.depth = 2;
        op
    };
    let mut op = new(32, 1);
    is!(c, 0, cuMemcpy3DBatchAsync_v2(1, &raw mut op, 0, stream));
    ok!(cuStreamSynchronize(stream));
    let got = gpu.read::<u8>(to, 1024);
    for (row, got) in got.chunks(32).enumerate() {
        assert_eq!(*got, data[row * 64..row * 64 + 32], "row {row}");
    }
    is!(c, 1, cuMemcpy3DBatchAsync_v2(1, &raw mut op, 1, stream));
    is!(c, 1, cuMemcpy3DBatchAsync_v2(0, &raw mut op, 0, stream));
    is!(c, 1, cuMemcpy3DBatchAsync_v2(1, ptr::null_mut(), 0, stream));
    let null = ptr::null_mut();
    is!(c, 1, cuMemcpy3DBatchAsync_v2(1, &raw mut op, 0, null));
    for (width, order) in [(65, 1), (0, 1), (32, 0)] {
        let mut op = new(width, order);
        is!(c, 1, cuMemcpy3DBatchAsync_v2(1, &raw mut op, 0, stream));
    }
    ok!(cuStreamDestroy(stream));
}

#[test]
fn batched_copies_of_arrays() {
    if !has_batches() {
        return;
    }
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let stream = stream();
    let numbers: Vec<u32> = (100..164).collect();
    let (from, to) = (gpu.upload(&numbers), gpu.upload(&[0_u32; 64]));
    let mut array = ptr::null_mut();
    let descriptor = CUDA_ARRAY3D_DESCRIPTOR {
        Width: 8,
        Height: 4,
        Format: CUarray_format::CU_AD_FORMAT_UNSIGNED_INT16,
        NumChannels: 2,
        ..Default::default()
    };
    ok!(cuArray3DCreate_v2(&raw mut array, &raw const descriptor));
    // Positions and lengths are in texels of 4 bytes.
    let mut inside = CUmemcpy3DOperand {
        type_: CUmemcpy3DOperandType::CU_MEMCPY_OPERAND_TYPE_ARRAY,
        ..Default::default()
    };
    inside.op.array = CUmemcpy3DOperand_st__op__array {
        array,
        offset: CUoffset3D { x: 2, y: 1, z: 0 },
    };
    let copy = |src: CUmemcpy3DOperand, dst: CUmemcpy3DOperand, [width, height, depth]: [usize; 3]| {
        let mut op = CUDA_MEMCPY3D_BATCH_OP {
            src,
            dst,
            srcAccessOrder: CUmemcpySrcAccessOrder(1),
            ..Default::default()
        };
        (op.extent.width, op.extent.height, op.extent.depth) = (width, height, depth);
        op
    };
    let size = [4, 2, 1];
    for (row, rows, second) in [(0, 0, 104), (4, 2, 104), (16, 8, 116)] {
        let mut both = [
            copy(pointer(from, row, rows), inside, size),
            copy(inside, pointer(to, 0, 0), size),
        ];
        is!(c, 0, cuMemcpy3DBatchAsync_v2(2, both.as_mut_ptr(), 0, stream));
        ok!(cuStreamSynchronize(stream));
        let want: Vec<u32> = (100..104).chain(second..second + 4).collect();
        assert_eq!(gpu.read::<u32>(to, 8), want, "{row} {rows}");
    }
    // Too wide for the array, empty, too deep, and wider than its rows in memory.
    for (row, size) in [(0, [7, 2, 1]), (0, [0, 2, 1]), (0, [2, 2, 2]), (1, [2, 2, 1])] {
        let mut op = copy(pointer(from, row, 0), inside, size);
        is!(c, 1, cuMemcpy3DBatchAsync_v2(1, &raw mut op, 0, stream));
    }
    ok!(cuArrayDestroy(array));
    ok!(cuStreamDestroy(stream));
}

#[test]
fn batched_moves_of_managed_memory() {
    if !has_batches() {
        return;
    }
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let stream = stream();
    let mut managed = 0;
    ok!(cuMemAllocManaged(&raw mut managed, 1 << 20, 1));
    gpu.write(managed, &[5_u32; 4]);
    let (mut size, mut index) = (1_usize << 20, 0_usize);
    let mut device = CUmemLocation {
        type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
        ..Default::default()
    };
    let (address, bytes) = (&raw mut managed, &raw mut size);
    let (place, at) = (&raw mut device, &raw mut index);
    for (count, flags, stream, code) in [
        (1, 0, stream, 0),
        (1, 1, stream, 1),
        (0, 0, stream, 1),
        (1, 0, ptr::null_mut(), 1),
    ] {
        is!(
            c,
            code,
            cuMemPrefetchBatchAsync(address, bytes, count, place, at, 1, flags, stream)
        );
    }
    for (kind, id, code) in [
        (CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST_NUMA, 0, 0),
        (CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST_NUMA, 99, 1),
        (CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST_NUMA, -1, 1),
        (CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST, 3, 0),
        (CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, 99, 1),
        (CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, 0, 0),
    ] {
        let mut place = CUmemLocation {
            type_: kind,
            ..Default::default()
        };
        place.anonymous1.id = id;
        let place = &raw mut place;
        is!(
            c,
            code,
            cuMemPrefetchBatchAsync(address, bytes, 1, place, at, 1, 0, stream)
        );
    }
    ok!(cuStreamSynchronize(stream));
    assert_eq!(gpu.read::<u32>(managed, 4), [5; 4]);
    let mut last = -9;
    ok!(cuMemRangeGetAttribute(
        (&raw mut last).cast::<c_void>(),
        4,
        CUmem_range_attribute::CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION,
        managed,
        size
    ));
    assert_eq!(last, 0);
    is!(c, 0, cuMemDiscardBatchAsync(address, bytes, 1, 0, stream));
    is!(c, 1, cuMemDiscardBatchAsync(address, bytes, 1, 1, stream));
    is!(c, 1, cuMemDiscardBatchAsync(address, bytes, 0, 0, stream));
    is!(
        c,
        0,
        cuMemDiscardAndPrefetchBatchAsync(address, bytes, 1, place, at, 1, 0, stream)
    );
    // Calls for memory that is not managed are refused.
    let mut memory = gpu.alloc(1 << 20);
    let address = &raw mut memory;
    is!(
        c,
        1,
        cuMemPrefetchBatchAsync(address, bytes, 1, place, at, 1, 0, stream)
    );
    is!(c, 1, cuMemDiscardBatchAsync(address, bytes, 1, 0, stream));
    ok!(cuStreamSynchronize(stream));
    gpu.write(managed, &[6_u32; 4]);
    assert_eq!(gpu.read::<u32>(managed, 4), [6; 4]);
    ok!(cuStreamDestroy(stream));
    ok!(cuMemFree(managed));
}
