//! Tests of memory calls with unusual arguments: tiny allocations, fills of host memory, attributes of addresses,
//! rectangles and boxes to copy, and host memory to register.

use std::ffi::c_void;
use std::ptr::{self, null_mut};

use cuda_driver::sys::*;

use crate::common::Codes;
use crate::common::gpu::Gpu;
use crate::{child, is, ok};

type A = CUpointer_attribute;

#[test]
fn small_allocations_are_512_bytes_apart() {
    let gpu = Gpu::new();
    let mut addresses: Vec<u64> = (0..8).map(|_| gpu.alloc(1)).collect();
    addresses.sort_unstable();
    assert!(addresses.iter().all(|address| address % 512 == 0), "{addresses:x?}");
    assert!(
        addresses.windows(2).all(|pair| pair[1] - pair[0] >= 512),
        "{addresses:x?}"
    );
}

#[test]
fn fills_need_memory_of_the_driver() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let plain = [0_u64; 16];
    let plain = (&raw const plain).addr() as u64;
    let device = gpu.alloc(64);
    is!(c, 1, cuMemsetD8(plain, 1, 8));
    is!(c, 1, cuMemsetD16(plain, 1, 4));
    is!(c, 1, cuMemsetD32(plain, 1, 2));
    is!(c, 1, cuMemsetD32Async(plain, 1, 2, null_mut()));
    is!(c, 1, cuMemsetD2D8(plain, 8, 1, 8, 2));
    // Page-locked memory takes fills of every width, at addresses that are multiples of the width.
    let mut pinned = null_mut();
    ok!(cuMemHostAlloc(&raw mut pinned, 64, 0));
    let at = pinned.addr() as u64;
    is!(c, 0, cuMemsetD8(at, 1, 64));
    is!(c, 0, cuMemsetD8(at + 1, 2, 1));
    is!(c, 0, cuMemsetD16(at + 2, 0x0403, 1));
    is!(c, 0, cuMemsetD32Async(at + 4, 0x0807_0605, 2, null_mut()));
    is!(c, 0, cuMemsetD2D8(at + 16, 16, 9, 2, 3));
    is!(c, 0, cuMemsetD2D32(at + 24, 16, 0x0a0a_0a0a, 1, 2));
    is!(c, 0, cuCtxSynchronize());
    let mut expected = [1_u8; 64];
    expected[1..12].copy_from_slice(&[2, 3, 4, 5, 6, 7, 8, 5, 6, 7, 8]);
    for row in [16, 32, 48] {
        expected[row..row + 2].fill(9);
    }
    for row in [24, 40] {
        expected[row..row + 4].fill(10);
    }
    // SAFETY: the allocation has 64 bytes, and the fills have finished.
    let seen = unsafe { pinned.cast::<[u8; 64]>().read() };
    c.that(seen == expected, || format!("{seen:?}, expected {expected:?}"));
    is!(c, 1, cuMemsetD16(at + 1, 0, 1));
    is!(c, 1, cuMemsetD32(at + 2, 0, 1));
    is!(c, 1, cuMemsetD8(at, 0, 65));
    // A peer copy may read host memory, and its contexts may be null.
    is!(c, 0, cuMemcpyPeer(device, null_mut(), at, null_mut(), 64));
    is!(c, 0, cuMemFreeHost(pinned));
}

#[test]
fn attributes_of_addresses() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let device = gpu.alloc(1000);
    let mut managed = 0;
    ok!(cuMemAllocManaged(&raw mut managed, 64, 1));
    let plain = 7_u64;
    let plain = (&raw const plain).addr() as u64;
    let ask = |which: A, address| {
        let mut value = [0xeeee_eeee_eeee_eeee_u64; 2];
        let data = (&raw mut value).cast::<c_void>();
        (crate::call!(cuPointerGetAttribute(data, which, address)).0, value[0])
    };
    // Kinds, ordinals and booleans have 4 bytes: the upper half of the 8-byte word keeps its contents.
    let word = |value: u32| 0xeeee_eeee_0000_0000 | u64::from(value);
    for (label, got, expected) in [
        (
            "the type of device memory",
            ask(A::CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device),
            (0, word(2)),
        ),
        (
            "the type of managed memory",
            ask(A::CU_POINTER_ATTRIBUTE_MEMORY_TYPE, managed),
            (0, word(2)),
        ),
        (
            "the managed flag of device memory",
            ask(A::CU_POINTER_ATTRIBUTE_IS_MANAGED, device),
            (0, word(0)),
        ),
        (
            "the managed flag of managed memory",
            ask(A::CU_POINTER_ATTRIBUTE_IS_MANAGED, managed),
            (0, word(1)),
        ),
        (
            "the mapped flag of device memory",
            ask(A::CU_POINTER_ATTRIBUTE_MAPPED, device),
            (0, word(1)),
        ),
        (
            "the ordinal of the device",
            ask(A::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, device),
            (0, word(0)),
        ),
        (
            "the flag for synchronous operations",
            ask(A::CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, device),
            (0, word(0)),
        ),
        (
            "the start of the allocation",
            ask(A::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, device + 999),
            (0, device),
        ),
        (
            "the size of the allocation",
            ask(A::CU_POINTER_ATTRIBUTE_RANGE_SIZE, device + 999),
            (0, 1000),
        ),
        (
            "the address on the device",
            ask(A::CU_POINTER_ATTRIBUTE_DEVICE_POINTER, device + 8),
            (0, device + 8),
        ),
        // Device memory has no address on the host.
        (
            "the address of device memory on the host",
            ask(A::CU_POINTER_ATTRIBUTE_HOST_POINTER, device),
            (1, 0),
        ),
        (
            "the address of managed memory on the host",
            ask(A::CU_POINTER_ATTRIBUTE_HOST_POINTER, managed + 8),
            (0, managed + 8),
        ),
    ] {
        c.that(got == expected, || format!("{label}: {got:x?}, expected {expected:x?}"));
    }
    let mut flags = 77;
    is!(
        c,
        0,
        cuMemHostGetFlags(&raw mut flags, ptr::with_exposed_provenance_mut(managed as usize))
    );
    // For memory that the driver does not know, `cuPointerGetAttributes` writes every attribute except the start and
    // the size of the allocation.
    let mut names = [
        A::CU_POINTER_ATTRIBUTE_CONTEXT,
        A::CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
        A::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
        A::CU_POINTER_ATTRIBUTE_HOST_POINTER,
        A::CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
        A::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
        A::CU_POINTER_ATTRIBUTE_RANGE_SIZE,
        A::CU_POINTER_ATTRIBUTE_MAPPED,
        A::CU_POINTER_ATTRIBUTE_IS_MANAGED,
    ];
    let mut values = [0xeeee_eeee_eeee_eeee_u64; 9];
    let mut data: Vec<*mut c_void> = values.iter_mut().map(|v| ptr::from_mut(v).cast()).collect();
    is!(
        c,
        0,
        cuPointerGetAttributes(9, names.as_mut_ptr(), data.as_mut_ptr(), plain)
    );
    let untouched = 0xeeee_eeee_eeee_eeee;
    let expected = [
        0,
        word(0),
        word((-2_i32).cast_unsigned()),
        plain,
        0,
        untouched,
        untouched,
        word(0),
        word(0),
    ];
    c.that(values == expected, || format!("{values:x?}, expected {expected:x?}"));
    // For memory that the driver knows, `cuPointerGetAttributes` writes 0 for an attribute that has no value.
    let mut value = 7_u64;
    let mut data = (&raw mut value).cast::<c_void>();
    let mut name = A::CU_POINTER_ATTRIBUTE_HOST_POINTER;
    is!(c, 0, cuPointerGetAttributes(1, &raw mut name, &raw mut data, device));
    c.that(value == 0, || {
        format!("the address of device memory on the host is {value:#x}, expected 0")
    });
    for unknown in [0, 99, 1000] {
        let got = ask(CUpointer_attribute(unknown), device).0;
        c.is(1, &format!("attribute {unknown}"), got);
    }
    ok!(cuMemFree(managed));
}

#[test]
fn unusual_rectangles_and_boxes() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let source = [7_u8; 256];
    let device = gpu.alloc(256);
    let flat = CUDA_MEMCPY2D {
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
        srcHost: source.as_ptr().cast(),
        srcPitch: 8,
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
        dstDevice: device,
        dstPitch: 16,
        WidthInBytes: 4,
        Height: 3,
        ..CUDA_MEMCPY2D::default()
    };
    // SAFETY: every copy that is not refused stays within the buffers above.
    let copy = |copy: CUDA_MEMCPY2D| unsafe { cuMemcpy2D(&raw const copy) }.0;
    c.is(0, "a rectangle", copy(flat));
    let kind = CUmemorytype(9);
    c.is(
        1,
        "an unknown kind of memory",
        copy(CUDA_MEMCPY2D {
            srcMemoryType: kind,
            ..flat
        }),
    );
    let nothing = CUDA_MEMCPY2D {
        srcMemoryType: kind,
        WidthInBytes: 0,
        ..flat
    };
    c.is(0, "an empty copy from an unknown kind of memory", copy(nothing));
    let row = CUDA_MEMCPY2D {
        srcPitch: 1 << 32,
        Height: 1,
        ..flat
    };
    c.is(0, "one row with a large pitch", copy(row));
    let array = CUDA_MEMCPY2D {
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_ARRAY,
        dstArray: null_mut(),
        ..flat
    };
    c.is(1, "a null array", copy(array));

    let solid = CUDA_MEMCPY3D {
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
        srcHost: source.as_ptr().cast(),
        srcPitch: 8,
        srcHeight: 4,
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
        dstDevice: device,
        dstPitch: 8,
        dstHeight: 4,
        WidthInBytes: 4,
        Height: 3,
        Depth: 2,
        ..CUDA_MEMCPY3D::default()
    };
    // SAFETY: every copy that is not refused stays within the buffers above.
    let copy = |copy: CUDA_MEMCPY3D| unsafe { cuMemcpy3D(&raw const copy) }.0;
    c.is(0, "a box", copy(solid));
    c.is(0, "no rows", copy(CUDA_MEMCPY3D { Height: 0, ..solid }));
    c.is(0, "no planes", copy(CUDA_MEMCPY3D { Depth: 0, ..solid }));
    c.is(
        0,
        "a mipmap level of host memory",
        copy(CUDA_MEMCPY3D { srcLOD: 1, ..solid }),
    );
    let low = CUDA_MEMCPY3D {
        srcHeight: 2,
        Depth: 1,
        ..solid
    };
    c.is(1, "more rows than a plane has", copy(low));
    is!(c, 0, cuCtxSynchronize());
}

#[cfg(target_os = "linux")]
#[test]
fn host_memory_with_page_protections() {
    // Alone in its process: another thread could map memory where a page is unmapped.
    child!("host_memory_with_page_protections", {
        use std::ffi::c_int;
        unsafe extern "C" {
            fn mmap(
                at: *mut c_void,
                bytes: usize,
                access: c_int,
                flags: c_int,
                file: c_int,
                offset: i64,
            ) -> *mut c_void;
            fn mprotect(at: *mut c_void, bytes: usize, access: c_int) -> c_int;
            fn munmap(at: *mut c_void, bytes: usize) -> c_int;
        }
        const NONE: c_int = 0;
        const READ: c_int = 1;
        const WRITE: c_int = 2;
        const PRIVATE_ANONYMOUS: c_int = 0x22;
        const READ_ONLY: u32 = 8;
        let gpu = Gpu::new();
        let mut c = Codes::new();
        let page = 4096;
        // SAFETY: a new mapping at an address that the system chooses.
        let memory = unsafe { mmap(null_mut(), 8 * page, READ | WRITE, PRIVATE_ANONYMOUS, -1, 0) };
        assert!(memory.addr() != usize::MAX, "mmap");
        let at = |pages: usize| memory.wrapping_byte_add(pages * page);
        // SAFETY: the pages belong to the mapping, and nothing uses them.
        let changed = unsafe {
            [
                mprotect(at(2), page, READ),
                mprotect(at(4), page, NONE),
                munmap(at(6), page),
            ]
        };
        assert_eq!(changed, [0; 3]);
        for (label, code, from, pages, flags) in [
            ("writable pages", 0, 0, 2, 0),
            ("writable pages, to be read only", 0, 0, 2, READ_ONLY),
            ("a read-only page", 1, 2, 1, 0),
            ("a read-only page, to be read only", 0, 2, 1, READ_ONLY),
            ("a page without access", 1, 4, 1, 0),
            ("pages of which the second has no access", 1, 3, 2, 0),
            ("no mapping", 1, 6, 1, 0),
            ("pages of which the second is not mapped", 1, 5, 2, 0),
        ] {
            let got = crate::call!(cuMemHostRegister(at(from), pages * page, flags)).0;
            c.is(code, label, got);
            if got == 0 {
                is!(c, 0, cuMemHostUnregister(at(from)));
            }
        }
        // For the last page of the address space the driver returns another code than for unmapped pages.
        let last = ptr::without_provenance_mut(usize::MAX - 4095);
        let code = crate::call!(cuMemHostRegister(last, page, 0)).0;
        c.is(801, "the last page of the address space", code);
        // Device memory was never registered.
        let device = gpu.alloc(64);
        is!(c, 1, cuMemHostUnregister(device as *mut c_void));
        // SAFETY: nothing uses the mapping any more.
        let unmapped = unsafe { [munmap(at(0), 6 * page), munmap(at(7), page)] };
        assert_eq!(unmapped, [0; 2]);
    });
}
