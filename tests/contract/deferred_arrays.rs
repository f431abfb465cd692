//! Tests of arrays with deferred mapping, which get all of their memory by `cuMemMapArrayAsync`.

use std::ptr::null_mut;

use cuda_driver::sys::*;

use crate::array_mappings::{TILE, copy_square, mapping, memory};
use crate::common::gpu::Gpu;
use crate::common::{Codes, needs_but_not_in_software};
use crate::{child, is, ok};

const DEFERRED: u32 = CUDA_ARRAY3D_DEFERRED_MAPPING;

fn descriptor(size: [usize; 3], format: u32, channels: u32, flags: u32) -> CUDA_ARRAY3D_DESCRIPTOR {
    CUDA_ARRAY3D_DESCRIPTOR {
        Width: size[0],
        Height: size[1],
        Depth: size[2],
        Format: CUarray_format(format),
        NumChannels: channels,
        Flags: flags | DEFERRED,
    }
}

/// Creates an array of 512 x 512 floats.
fn square() -> CUarray {
    let (mut array, wanted) = (null_mut(), descriptor([512, 512, 0], 0x20, 1, 0));
    ok!(cuArray3DCreate(&raw mut array, &raw const wanted));
    array
}

/// Returns a context and a stream if the device has arrays with deferred mapping; otherwise reports that it has none.
fn start() -> Option<(Gpu, CUstream)> {
    let gpu = Gpu::new();
    let (mut has, mut stream) = (0, null_mut());
    let attribute = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED;
    // SAFETY: the output is live; a driver that does not know the attribute returns an error.
    let code = unsafe { cuDeviceGetAttribute(&raw mut has, attribute, 0) };
    if code != CUresult::CUDA_SUCCESS || has == 0 {
        needs_but_not_in_software("arrays with deferred mapping");
        return None;
    }
    ok!(cuStreamCreate(&raw mut stream, 1));
    Some((gpu, stream))
}

/// Copies all texels to an array of [`square`], or from it, and returns the results of the copy and of waiting.
fn copy(array: CUarray, texels: &mut [u32], write: bool) -> [u32; 2] {
    copy_square(array, 512, texels, write)
}

#[test]
fn memory_that_arrays_need() {
    let Some((_gpu, stream)) = start() else { return };
    let mut c = Codes::new();
    let (layered, cube) = (CUDA_ARRAY3D_LAYERED, CUDA_ARRAY3D_CUBEMAP);
    // Size, format, channels, flags, tiles of 64 KiB of the array, and of 4 and 7 levels of a mipmapped one.
    for (size, format, channels, flags, tiles) in [
        ([512, 512, 0], 0x20, 1, 0, [16, 22, 22]),
        ([16, 16, 0], 0x20, 1, 0, [1, 1, 1]),
        ([64, 64, 64], 0x20, 1, 0, [16, 19, 19]),
        ([100, 0, 0], 1, 1, 0, [1, 1, 1]),
        ([1000, 700, 0], 1, 4, 0, [48, 65, 65]),
        ([130, 140, 0], 0x20, 4, 0, [9, 11, 12]),
        ([64, 64, 5], 0x20, 1, layered, [2, 2, 2]),
        ([64, 64, 6], 0x20, 1, cube, [2, 3, 3]),
        ([64, 64, 0], 0x20, 1, CUDA_ARRAY3D_SURFACE_LDST, [1, 1, 1]),
        ([2000, 3, 0], 0x10, 2, 0, [1, 2, 2]),
    ] {
        let wanted = descriptor(size, format, channels, flags);
        let mut needed = CUDA_ARRAY_MEMORY_REQUIREMENTS::default();
        let mut array = null_mut();
        ok!(cuArray3DCreate(&raw mut array, &raw const wanted));
        is!(c, 0, cuArrayGetMemoryRequirements(&raw mut needed, array, 0));
        let mut found = vec![(needed.size, needed.alignment)];
        ok!(cuArrayDestroy(array));
        for levels in [4, 7] {
            let mut array = null_mut();
            ok!(cuMipmappedArrayCreate(&raw mut array, &raw const wanted, levels));
            is!(c, 0, cuMipmappedArrayGetMemoryRequirements(&raw mut needed, array, 0));
            found.push((needed.size, needed.alignment));
            ok!(cuMipmappedArrayDestroy(array));
        }
        let expected = tiles.map(|tiles| (tiles * TILE, TILE));
        c.that(found == expected, || format!("{size:?} {format}: {found:?}"));
    }
    let array = square();
    let mut properties = CUDA_ARRAY_SPARSE_PROPERTIES::default();
    is!(c, 1, cuArrayGetSparseProperties(&raw mut properties, array));
    let mut seen = descriptor([0; 3], 0, 0, 0);
    ok!(cuArray3DGetDescriptor(&raw mut seen, array));
    assert_eq!(seen.Flags, DEFERRED);
    ok!(cuArrayDestroy(array));
    let both = descriptor([512, 512, 0], 0x20, 1, CUDA_ARRAY3D_SPARSE);
    let mut array = null_mut();
    is!(c, 1, cuArray3DCreate(&raw mut array, &raw const both));
    ok!(cuStreamDestroy(stream));
}

#[test]
fn arrays_have_the_memory_that_is_mapped_to_them() {
    let Some((_gpu, stream)) = start() else { return };
    let mut c = Codes::new();
    let mut texels: Vec<u32> = (1..=512 * 512).collect();
    let written = texels.clone();
    let (array, pool, plain) = (
        square(),
        memory(2 << 20, CU_MEM_CREATE_USAGE_TILE_POOL),
        memory(2 << 20, 0),
    );
    for mut wrong in [
        mapping(array, plain, 0),
        mapping(array, pool, 100),
        mapping(array, pool, 4096),
        mapping(array, pool, 1536 << 10),
    ] {
        is!(c, 1, cuMemMapArrayAsync(&raw mut wrong, 1, stream));
    }
    let mut map = |array, at| {
        let mut info = mapping(array, pool, at);
        is!(c, 0, cuMemMapArrayAsync(&raw mut info, 1, stream));
        ok!(cuStreamSynchronize(stream));
    };
    map(array, 0);
    assert_eq!(copy(array, &mut texels, true), [0, 0]);
    texels.fill(7);
    assert_eq!(copy(array, &mut texels, false), [0, 0]);
    assert_eq!(texels, written);
    // Other memory has other texels.
    map(array, 1 << 20);
    assert_eq!(copy(array, &mut texels, false), [0, 0]);
    assert_ne!(texels, written);
    let second = square();
    map(second, 0);
    assert_eq!(copy(second, &mut texels, false), [0, 0]);
    assert_eq!(texels, written);
    ok!(cuMemRelease(pool));
    ok!(cuMemRelease(plain));
    assert_eq!(copy(second, &mut texels, false), [0, 0]);
    assert_eq!(texels, written);
    ok!(cuArrayDestroy(array));
    ok!(cuArrayDestroy(second));
    ok!(cuStreamDestroy(stream));
}

#[test]
fn an_access_without_memory_is_a_fault() {
    child!("an_access_without_memory_is_a_fault", {
        let Some((_gpu, _stream)) = start() else { return };
        let [copied, waited] = copy(square(), &mut vec![0; 512 * 512], false);
        assert!(matches!(copied, 0 | 719) && waited == 719, "{copied} {waited}");
    });
}
