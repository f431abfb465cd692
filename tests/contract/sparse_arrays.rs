//! Tests of sparse arrays, whose tiles get memory by `cuMemMapArrayAsync`.

use std::ptr::{self, null_mut};

use cuda_driver::sys::*;

use crate::array_mappings::{TILE, copy_square, mapping, memory};
use crate::common::gpu::Gpu;
use crate::common::{Codes, needs};
use crate::{is, ok};

const FLOAT: CUarray_format = CUarray_format::CU_AD_FORMAT_FLOAT;
const SPARSE: u32 = CUDA_ARRAY3D_SPARSE;
const LAYERED: u32 = CUDA_ARRAY3D_LAYERED;
/// Edge of the tested array, in texels of 4 bytes.
const EDGE: u32 = 512;
/// Edge of the tiles of that array, in texels.
const TILE_EDGE: u32 = 128;

fn descriptor(size: [usize; 3], flags: u32) -> CUDA_ARRAY3D_DESCRIPTOR {
    CUDA_ARRAY3D_DESCRIPTOR {
        Width: size[0],
        Height: size[1],
        Depth: size[2],
        Format: FLOAT,
        NumChannels: 1,
        Flags: flags,
    }
}

fn array(size: [usize; 3], flags: u32) -> CUarray {
    let (mut array, wanted) = (null_mut(), descriptor(size, flags));
    ok!(cuArray3DCreate(&raw mut array, &raw const wanted));
    array
}

/// Returns a context and a stream if the device has sparse arrays.
fn start() -> Option<(Gpu, CUstream)> {
    let gpu = Gpu::new();
    let (mut has, mut stream) = (0, null_mut());
    let attribute = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED;
    ok!(cuDeviceGetAttribute(&raw mut has, attribute, 0));
    if has == 0 {
        needs("sparse arrays");
        return None;
    }
    ok!(cuStreamCreate(&raw mut stream, 1));
    Some((gpu, stream))
}

/// Returns the mapping of a rectangle of an array to memory from offset `at` on. If `memory` is 0, the mapping unmaps
/// the rectangle.
fn piece(
    array: CUarray,
    offset: [u32; 2],
    extent: [u32; 2],
    memory: CUmemGenericAllocationHandle,
    at: usize,
) -> CUarrayMapInfo {
    let mut info = mapping(array, memory, at);
    info.subresource.sparseLevel = CUarrayMapInfo_st__subresource__sparseLevel {
        offsetX: offset[0],
        offsetY: offset[1],
        extentWidth: extent[0],
        extentHeight: extent[1],
        extentDepth: 1,
        ..Default::default()
    };
    info
}

fn map(mut info: CUarrayMapInfo, stream: CUstream) {
    ok!(cuMemMapArrayAsync(&raw mut info, 1, stream));
    ok!(cuStreamSynchronize(stream));
}

/// Copies all texels to a square array with this edge if `write` is true, else from it.
fn copy_level(array: CUarray, edge: usize, texels: &mut [u32], write: bool) {
    assert_eq!(copy_square(array, edge, texels, write), [0, 0]);
}

fn copy(array: CUarray, texels: &mut [u32], write: bool) {
    copy_level(array, EDGE as usize, texels, write);
}

/// Returns five texels of an array: the first and the last of the first tile, the first of the tile to its right, the
/// first of the tile below it, and the last of the array.
fn corners(array: CUarray) -> [u32; 5] {
    let mut texels = vec![0xee; (EDGE * EDGE) as usize];
    copy(array, &mut texels, false);
    let inside = TILE_EDGE - 1;
    [
        (0, 0),
        (inside, inside),
        (TILE_EDGE, 0),
        (0, TILE_EDGE),
        (EDGE - 1, EDGE - 1),
    ]
    .map(|(x, y)| texels[(y * EDGE + x) as usize])
}

/// The corners of an array whose texels are numbered from 1 on.
const ALL: [u32; 5] = [1, 65152, 129, 65537, 262_144];

#[test]
fn tiles_have_the_memory_that_is_mapped_to_them() {
    let Some((_gpu, stream)) = start() else { return };
    let mut c = Codes::new();
    let mut texels: Vec<u32> = (1..=EDGE * EDGE).collect();
    let first = array([EDGE as usize, EDGE as usize, 0], SPARSE);
    let mut seen = descriptor([0; 3], 0);
    ok!(cuArray3DGetDescriptor(&raw mut seen, first));
    assert_eq!(seen.Flags, SPARSE);
    // Without memory, writes do nothing and reads return zeros.
    copy(first, &mut texels, true);
    assert_eq!(corners(first), [0; 5]);
    let pool = memory(2 << 20, CU_MEM_CREATE_USAGE_TILE_POOL);
    let tile = [TILE_EDGE; 2];
    map(piece(first, [0, 0], tile, pool, 0), stream);
    copy(first, &mut texels, true);
    assert_eq!(corners(first), [1, 65152, 0, 0, 0]);
    // Two tiles may have the same memory.
    map(piece(first, [TILE_EDGE, 0], tile, pool, 0), stream);
    assert_eq!(corners(first), [1, 65152, 1, 0, 0]);
    map(piece(first, [0, 0], tile, 0, 0), stream);
    assert_eq!(corners(first), [0, 0, 1, 0, 0]);
    map(
        piece(first, [0, TILE_EDGE], [2 * TILE_EDGE, TILE_EDGE], pool, 0),
        stream,
    );
    assert_eq!(corners(first), [0, 0, 1, 1, 0]);
    // The whole array has 16 tiles.
    let whole = [EDGE; 2];
    map(piece(first, [0, 0], whole, pool, 16 * TILE), stream);
    copy(first, &mut texels, true);
    assert_eq!(corners(first), ALL);
    // Memory keeps its texels when it is mapped to another array.
    let second = array([EDGE as usize, EDGE as usize, 0], SPARSE);
    map(piece(second, [0, 0], whole, pool, 16 * TILE), stream);
    assert_eq!(corners(second), ALL);
    is!(c, 0, cuArrayDestroy(second));
    assert_eq!(corners(first), ALL);
    is!(c, 0, cuMemRelease(pool));
    assert_eq!(corners(first), ALL);
    is!(c, 0, cuArrayDestroy(first));
    ok!(cuStreamDestroy(stream));
}

#[test]
fn wrong_mappings_are_refused() {
    let Some((_gpu, stream)) = start() else { return };
    let mut c = Codes::new();
    let made = array([EDGE as usize, EDGE as usize, 0], SPARSE);
    let pool = memory(2 << 20, CU_MEM_CREATE_USAGE_TILE_POOL);
    let tile = [TILE_EDGE; 2];
    let good = piece(made, [0, 0], tile, pool, 0);
    let mut list = good;
    is!(c, 1, cuMemMapArrayAsync(&raw mut list, 0, stream));
    is!(c, 1, cuMemMapArrayAsync(ptr::null_mut(), 1, stream));
    type Change = fn(&mut CUarrayMapInfo);
    let changes: [(u32, Change); 9] = [
        (1, |info| info.memHandleType = CUmemHandleType(1)),
        (1, |info| info.flags = 1),
        (1, |info| info.deviceBitMask = 0),
        (1, |info| info.deviceBitMask = 3),
        (1, |info| info.memOperationType = CUmemOperationType(0)),
        (1, |info| info.memOperationType = CUmemOperationType(3)),
        // Unmapping ignores the handle.
        (0, |info| info.memOperationType = CUmemOperationType(2)),
        (1, |info| info.reserved[0] = 1),
        (1, |info| info.resourceType = CUresourcetype::CU_RESOURCE_TYPE_LINEAR),
    ];
    for (code, change) in changes {
        let mut info = good;
        change(&mut info);
        is!(c, code, cuMemMapArrayAsync(&raw mut info, 1, stream));
    }
    let changes: [fn(&mut CUarrayMapInfo_st__subresource__sparseLevel); 9] = [
        |part| part.level = 1,
        |part| part.layer = 1,
        |part| part.extentDepth = 0,
        |part| part.extentDepth = 2,
        |part| part.extentWidth = 100,
        |part| part.extentWidth = 0,
        |part| part.extentWidth = 640,
        |part| part.offsetX = 64,
        |part| part.offsetX = 512,
    ];
    for change in changes {
        let mut info = good;
        // SAFETY: the subresource was set to a level.
        change(unsafe { &mut info.subresource.sparseLevel });
        is!(c, 1, cuMemMapArrayAsync(&raw mut info, 1, stream));
    }
    // The array has no mip tail.
    let mut info = good;
    info.subresourceType = CUarraySparseSubresourceType(1);
    info.subresource.miptail = CUarrayMapInfo_st__subresource__miptail {
        layer: 0,
        offset: 0,
        size: TILE as u64,
    };
    is!(c, 1, cuMemMapArrayAsync(&raw mut info, 1, stream));
    let plain_memory = memory(2 << 20, 0);
    let mut info = piece(made, [0, 0], tile, plain_memory, 0);
    is!(c, 1, cuMemMapArrayAsync(&raw mut info, 1, stream));
    let plain = array([EDGE as usize, EDGE as usize, 0], 0);
    let mut info = piece(plain, [0, 0], tile, pool, 0);
    is!(c, 1, cuMemMapArrayAsync(&raw mut info, 1, stream));
    let mut info = piece(null_mut(), [0, 0], tile, pool, 0);
    is!(c, 1, cuMemMapArrayAsync(&raw mut info, 1, stream));
    let mut properties = CUDA_ARRAY_SPARSE_PROPERTIES::default();
    is!(c, 1, cuArrayGetSparseProperties(&raw mut properties, plain));
    // Of a tile that reaches past the array's edge, only the texels inside the array are mapped.
    let odd = array([200, 300, 0], SPARSE);
    let mut info = piece(odd, [128, 256], [72, 44], pool, 0);
    is!(c, 0, cuMemMapArrayAsync(&raw mut info, 1, stream));
    let mut info = piece(odd, [128, 256], tile, pool, 0);
    is!(c, 1, cuMemMapArrayAsync(&raw mut info, 1, stream));
    ok!(cuStreamSynchronize(stream));
    // Memory for tiles cannot be mapped to an address.
    let mut base = 0;
    ok!(cuMemAddressReserve(&raw mut base, 2 << 20, 0, 0, 0));
    is!(c, 1, cuMemMap(base, 2 << 20, 0, pool, 0));
    // The mapping call cannot be captured.
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    ok!(cuStreamBeginCapture(stream, mode));
    let mut info = good;
    is!(c, 900, cuMemMapArrayAsync(&raw mut info, 1, stream));
    let mut graph = null_mut();
    is!(c, 901, cuStreamEndCapture(stream, &raw mut graph));
    ok!(cuMemAddressFree(base, 2 << 20));
    for array in [made, plain, odd] {
        ok!(cuArrayDestroy(array));
    }
    ok!(cuMemRelease(pool));
    ok!(cuMemRelease(plain_memory));
    ok!(cuStreamDestroy(stream));
}

#[test]
fn shapes_of_sparse_arrays() {
    let Some((_gpu, stream)) = start() else { return };
    let mut c = Codes::new();
    // One-dimensional arrays, cube maps and arrays for surfaces cannot be sparse.
    for (size, flags) in [
        ([512, 0, 0], 0),
        ([512, 512, 6], CUDA_ARRAY3D_CUBEMAP),
        ([512, 512, 12], CUDA_ARRAY3D_CUBEMAP | LAYERED),
        ([512, 512, 0], CUDA_ARRAY3D_SURFACE_LDST),
    ] {
        let (mut made, mut levels) = (null_mut(), null_mut());
        let wanted = descriptor(size, flags | SPARSE);
        is!(c, 1, cuArray3DCreate(&raw mut made, &raw const wanted));
        is!(c, 1, cuMipmappedArrayCreate(&raw mut levels, &raw const wanted, 4));
    }
    // The size, the flags, and the number of levels (0: not a mipmapped array); then the expected tile, first level in
    // the tail, bytes of the tail, and 1 if all layers share one tail.
    let (flat, deep) = ([128, 128, 1], [32, 32, 16]);
    for (size, flags, levels, tile, first, bytes, single) in [
        ([512, 512, 4], LAYERED, 0, flat, 0, 0, 0),
        ([512, 512, 4], LAYERED, 1, flat, 1, 0, 0),
        ([512, 512, 4], LAYERED, 4, flat, 3, TILE, 0),
        ([512, 512, 4], LAYERED, 10, flat, 3, TILE, 0),
        ([130, 140, 0], 0, 0, flat, 0, 0, 0),
        ([130, 140, 0], 0, 4, flat, 1, TILE, 0),
        ([64, 64, 0], 0, 0, flat, 0, TILE, 1),
        ([64, 64, 0], 0, 7, flat, 0, TILE, 1),
        ([512, 512, 64], 0, 0, deep, 0, 0, 0),
        ([512, 512, 64], 0, 1, deep, 1, 0, 0),
        ([512, 512, 64], 0, 4, deep, 3, 2 * TILE, 0),
        ([512, 512, 64], 0, 7, deep, 3, 3 * TILE, 0),
        ([512, 512, 0], CUDA_ARRAY3D_TEXTURE_GATHER, 7, flat, 3, TILE, 0),
        // A GPU rounds the number of rows of a level up to a power of two, and above 128 to a multiple of 128.
        ([64, 512, 0], 0, 0, flat, 0, 2 * TILE, 1),
        ([64, 512, 0], 0, 2, flat, 0, 3 * TILE, 1),
        ([300, 200, 0], 0, 2, flat, 1, 2 * TILE, 0),
        ([64, 64, 3], LAYERED, 2, flat, 0, TILE, 1),
        ([64, 64, 3], LAYERED, 3, flat, 0, 2 * TILE, 1),
        ([200, 200, 5], LAYERED, 2, flat, 1, TILE, 0),
        ([200, 200, 5], LAYERED, 3, flat, 1, 2 * TILE, 0),
        ([16, 64, 64], 0, 0, deep, 0, 4 * TILE, 1),
        ([16, 64, 64], 0, 3, deep, 0, 6 * TILE, 1),
        ([100, 100, 100], 0, 3, deep, 2, 2 * TILE, 0),
        ([100, 100, 100], 0, 4, deep, 2, 3 * TILE, 0),
    ] {
        let wanted = descriptor(size, flags | SPARSE);
        let mut seen = CUDA_ARRAY_SPARSE_PROPERTIES::default();
        if levels == 0 {
            let made = array(size, flags | SPARSE);
            is!(c, 0, cuArrayGetSparseProperties(&raw mut seen, made));
            ok!(cuArrayDestroy(made));
        } else {
            let mut made = null_mut();
            ok!(cuMipmappedArrayCreate(&raw mut made, &raw const wanted, levels));
            is!(c, 0, cuMipmappedArrayGetSparseProperties(&raw mut seen, made));
            ok!(cuMipmappedArrayDestroy(made));
        }
        let extent = [seen.tileExtent.width, seen.tileExtent.height, seen.tileExtent.depth];
        let found = (extent, seen.miptailFirstLevel, seen.miptailSize as usize, seen.flags);
        c.that(found == (tile, first, bytes, single), || {
            format!(
                "{size:?}, {levels} levels: {found:?}, expected {:?}",
                (tile, first, bytes, single)
            )
        });
    }
    ok!(cuStreamDestroy(stream));
}

#[test]
fn tiles_of_formats() {
    let Some((_gpu, stream)) = start() else { return };
    let mut c = Codes::new();
    // The format, the channels, and the tiles of arrays with two and with three dimensions.
    for (format, channels, flat, deep) in [
        (1, 1, [256, 256, 1], [64, 32, 32]),
        (1, 2, [256, 128, 1], [32, 32, 32]),
        (2, 2, [128, 128, 1], [32, 32, 16]),
        (2, 4, [128, 64, 1], [32, 16, 16]),
        (3, 4, [64, 64, 1], [16, 16, 16]),
        // BC1 and BC7: blocks of 4 x 4 texels.
        (0x91, 4, [512, 256, 1], [128, 64, 16]),
        (0x9d, 4, [256, 256, 1], [64, 64, 16]),
    ] {
        for (depth, tile) in [(0, flat), (512, deep)] {
            let mut wanted = descriptor([512, 512, depth], SPARSE);
            (wanted.Format, wanted.NumChannels) = (CUarray_format(format), channels);
            let mut made = null_mut();
            ok!(cuArray3DCreate(&raw mut made, &raw const wanted));
            let mut seen = CUDA_ARRAY_SPARSE_PROPERTIES::default();
            is!(c, 0, cuArrayGetSparseProperties(&raw mut seen, made));
            let extent = [seen.tileExtent.width, seen.tileExtent.height, seen.tileExtent.depth];
            c.that(extent == tile, || {
                format!("format {format:#x} x {channels}: {extent:?}, expected {tile:?}")
            });
            ok!(cuArrayDestroy(made));
        }
    }
    ok!(cuStreamDestroy(stream));
}

#[test]
fn levels_and_the_tail_of_a_mipmapped_array() {
    let Some((_gpu, stream)) = start() else { return };
    let mut c = Codes::new();
    let wanted = descriptor([EDGE as usize, EDGE as usize, 0], SPARSE);
    let mut made = null_mut();
    ok!(cuMipmappedArrayCreate(&raw mut made, &raw const wanted, 10));
    let levels: [CUarray; 10] = std::array::from_fn(|number| {
        let mut level = null_mut();
        ok!(cuMipmappedArrayGetLevel(&raw mut level, made, number as u32));
        level
    });
    let mut seen = CUDA_ARRAY_SPARSE_PROPERTIES::default();
    is!(c, 1, cuArrayGetSparseProperties(&raw mut seen, levels[1]));
    let pool = memory(4 << 20, CU_MEM_CREATE_USAGE_TILE_POOL);
    let level = |number: u32, edge: u32, at: usize| {
        let mut info = piece(null_mut(), [0, 0], [edge; 2], pool, at);
        info.resourceType = CUresourcetype::CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
        info.resource.mipmap = made;
        info.subresource.sparseLevel.level = number;
        info
    };
    let tail = |layer: u32, offset: usize, size: usize| {
        let mut info = level(0, 0, 21 * TILE);
        info.subresourceType = CUarraySparseSubresourceType(1);
        info.subresource.miptail = CUarrayMapInfo_st__subresource__miptail {
            layer,
            offset: offset as u64,
            size: size as u64,
        };
        info
    };
    map(level(0, 512, 0), stream);
    map(level(1, 256, 16 * TILE), stream);
    map(level(2, 128, 20 * TILE), stream);
    for mut wrong in [
        level(3, 64, 21 * TILE),
        level(10, 128, 21 * TILE),
        piece(levels[1], [0, 0], [256; 2], pool, 0),
        tail(0, 0, 0),
        tail(0, 0, 4096),
        tail(0, 0, 2 * TILE),
        tail(0, TILE, TILE),
        tail(1, 0, TILE),
    ] {
        is!(c, 1, cuMemMapArrayAsync(&raw mut wrong, 1, stream));
    }
    let check = |has_tail: bool| {
        for (number, level) in levels.iter().enumerate() {
            let edge = EDGE as usize >> number;
            let mut texels: Vec<u32> = (1..).take(edge * edge).collect();
            let written = texels.clone();
            copy_level(*level, edge, &mut texels, true);
            texels.fill(77);
            copy_level(*level, edge, &mut texels, false);
            if number < 3 || has_tail {
                assert_eq!(texels, written, "level {number}");
            } else {
                assert!(texels.iter().all(|texel| *texel == 0), "level {number}");
            }
        }
    };
    check(false);
    map(tail(0, 0, TILE), stream);
    check(true);
    let mut end = tail(0, 0, TILE);
    end.memOperationType = CUmemOperationType::CU_MEM_OPERATION_TYPE_UNMAP;
    map(end, stream);
    check(false);
    ok!(cuMipmappedArrayDestroy(made));
    ok!(cuMemRelease(pool));
    ok!(cuStreamDestroy(stream));
}
