//! Tests of device memory: allocation, address ranges, copies and fills, with valid and invalid arguments.

use std::ffi::c_void;
use std::ptr;

use cuda_driver::sys::*;

use crate::common::Codes;
use crate::common::gpu::{Gpu, Pages};
use crate::{child, is, ok};

#[test]
fn allocation() {
    // Alone in its process: another thread could be given freed memory immediately.
    child!("allocation", {
        let gpu = Gpu::new();
        let mut c = Codes::new();
        let mut address = 0;
        is!(c, 1, cuMemAlloc(&raw mut address, 0));
        is!(c, 1, cuMemAlloc(ptr::null_mut(), 4));
        is!(c, 2, cuMemAlloc(&raw mut address, 1 << 50));
        is!(c, 0, cuMemAlloc(&raw mut address, 1));
        c.that(address != 0 && address % 256 == 0, || format!("address {address:#x}"));
        is!(c, 0, cuMemFree(0));
        is!(c, 0, cuMemFree(address));
        is!(c, 1, cuMemFree(address));
        let block = gpu.alloc(4096);
        is!(c, 1, cuMemFree(block + 256));
        is!(c, 0, cuMemFree(block));
        // The out-of-memory error is not sticky.
        is!(c, 0, cuCtxSynchronize());
    });
}

#[test]
fn ranges() {
    // Alone in its process: another thread could be given freed memory immediately.
    child!("ranges", {
        let gpu = Gpu::new();
        let mut c = Codes::new();
        let (mut base, mut size) = (0, 0);
        for bytes in [1, 3, 512, 1000, 1 << 20] {
            let address = gpu.alloc(bytes);
            for offset in [0, bytes - 1] {
                is!(
                    c,
                    0,
                    cuMemGetAddressRange(&raw mut base, &raw mut size, address + offset as u64)
                );
                c.that(base == address && size == bytes, || {
                    format!("{bytes} bytes: base {base:#x} of {address:#x}, size {size}")
                });
            }
            is!(c, 0, cuMemGetAddressRange(ptr::null_mut(), ptr::null_mut(), address));
            is!(c, 0, cuMemFree(address));
            is!(c, 500, cuMemGetAddressRange(&raw mut base, &raw mut size, address));
        }
        is!(c, 500, cuMemGetAddressRange(&raw mut base, &raw mut size, 0));
        let host = 0_u64;
        is!(
            c,
            500,
            cuMemGetAddressRange(&raw mut base, &raw mut size, (&raw const host).addr() as u64)
        );
    });
}

#[test]
fn info() {
    let _gpu = Gpu::new();
    let mut c = Codes::new();
    let (mut free, mut total) = (0, 0);
    is!(c, 0, cuMemGetInfo(&raw mut free, &raw mut total));
    c.that(0 < free && free <= total, || format!("{free} free of {total}"));
    is!(c, 0, cuMemGetInfo(ptr::null_mut(), &raw mut total));
    is!(c, 0, cuMemGetInfo(&raw mut free, ptr::null_mut()));
    is!(c, 0, cuMemGetInfo(ptr::null_mut(), ptr::null_mut()));
}

#[test]
fn copies() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let data: Vec<u8> = (0..1000).map(|i| (i * 7 % 251) as u8).collect();
    let (a, b) = (gpu.alloc(1000), gpu.alloc(1000));
    is!(c, 0, cuMemcpyHtoD(a, data.as_ptr().cast(), 1000));
    is!(c, 0, cuMemcpyDtoD(b, a, 1000));
    c.that(gpu.read::<u8>(b, 1000) == data, || {
        "wrong data after a copy from device to device".to_owned()
    });
    // Odd offsets and lengths.
    is!(c, 0, cuMemcpyDtoD(b + 1, a + 3, 500));
    let mut part = vec![0_u8; 502];
    is!(c, 0, cuMemcpyDtoH(part.as_mut_ptr().cast(), b, 502));
    c.that(
        part[1..501] == data[3..503] && part[0] == data[0] && part[501] == data[501],
        || "wrong data after a copy at odd offsets".to_owned(),
    );
    // `cuMemcpy` takes addresses of the host and of the device in every combination.
    let mut back = vec![0_u8; 1000];
    let host = |p: *const u8| p.addr() as u64;
    is!(c, 0, cuMemcpy(b, host(data.as_ptr()), 1000));
    is!(c, 0, cuMemcpy(a, b, 1000));
    is!(c, 0, cuMemcpy(host(back.as_mut_ptr()), a, 1000));
    c.that(back == data, || "wrong data after cuMemcpy".to_owned());
    let mut other = vec![0_u8; 1000];
    is!(c, 0, cuMemcpy(host(other.as_mut_ptr()), host(data.as_ptr()), 1000));
    c.that(other == data, || {
        "wrong data after cuMemcpy from host to host".to_owned()
    });
    // A copy of no bytes is valid.
    is!(c, 0, cuMemcpyHtoD(a, data.as_ptr().cast(), 0));
    is!(c, 0, cuMemcpyDtoD(a, b, 0));
    // Asynchronous copies on the null stream.
    is!(c, 0, cuMemcpyHtoDAsync(a, data.as_ptr().cast(), 1000, ptr::null_mut()));
    is!(c, 0, cuMemcpyDtoDAsync(b, a, 1000, ptr::null_mut()));
    let mut late = vec![0_u8; 1000];
    is!(
        c,
        0,
        cuMemcpyDtoHAsync(late.as_mut_ptr().cast(), b, 1000, ptr::null_mut())
    );
    is!(c, 0, cuCtxSynchronize());
    c.that(late == data, || "wrong data after asynchronous copies".to_owned());
}

#[test]
fn copies_out_of_range() {
    // Alone in its process: another thread could be given freed memory immediately.
    child!("copies_out_of_range", {
        let gpu = Gpu::new();
        let mut c = Codes::new();
        let mut host = vec![0_u8; 4096];
        let pointer: *mut c_void = host.as_mut_ptr().cast();
        let (a, b) = (gpu.alloc(1000), gpu.alloc(1000));
        is!(c, 1, cuMemcpyHtoD(a, pointer, 1001));
        is!(c, 1, cuMemcpyHtoD(a + 999, pointer, 2));
        is!(c, 1, cuMemcpyDtoH(pointer, a, 1001));
        is!(c, 1, cuMemcpyDtoD(a, b, 1001));
        is!(c, 1, cuMemcpyDtoD(a + 1, b, 1000));
        is!(c, 1, cuMemcpyHtoD(0, pointer, 4));
        is!(c, 1, cuMemcpyDtoH(pointer, 0, 4));
        is!(c, 1, cuMemcpyHtoD(pointer.addr() as u64, pointer, 4));
        is!(c, 1, cuMemcpyHtoD(a, ptr::null(), 4));
        is!(c, 1, cuMemcpyDtoH(ptr::null_mut(), a, 4));
        ok!(cuMemFree(a));
        is!(c, 1, cuMemcpyHtoD(a, pointer, 4));
        is!(c, 1, cuMemcpyDtoH(pointer, a, 4));
        is!(c, 0, cuCtxSynchronize());
    });
}

#[test]
fn fills() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let a = gpu.alloc(64);
    is!(c, 0, cuMemsetD8(a, 0x11, 64));
    is!(c, 0, cuMemsetD8(a + 1, 0x22, 3));
    is!(c, 0, cuMemsetD16(a + 8, 0x3344, 2));
    is!(c, 0, cuMemsetD32(a + 16, 0x5566_7788, 3));
    let mut expected = vec![0x11_u8; 64];
    expected[1..4].fill(0x22);
    expected[8..12].copy_from_slice(&[0x44, 0x33, 0x44, 0x33]);
    for i in 0..3 {
        expected[16 + 4 * i..20 + 4 * i].copy_from_slice(&0x5566_7788_u32.to_le_bytes());
    }
    let seen = gpu.read::<u8>(a, 64);
    c.that(seen == expected, || format!("{seen:02x?}"));
    is!(c, 0, cuMemsetD32Async(a, 7, 16, ptr::null_mut()));
    c.that(gpu.read::<u32>(a, 16) == [7; 16], || {
        "wrong data after an asynchronous fill".to_owned()
    });

    is!(c, 1, cuMemsetD8(a, 0, 65));
    is!(c, 1, cuMemsetD16(a + 1, 0, 1));
    is!(c, 1, cuMemsetD32(a + 2, 0, 1));
    is!(c, 1, cuMemsetD32(a, 0, 17));
    is!(c, 1, cuMemsetD8(0, 0, 1));
    is!(c, 0, cuMemsetD8(a, 0, 0));
}

#[test]
fn memory_across_contexts() {
    // Alone in its process: another thread could be given freed memory immediately.
    child!("memory_across_contexts", {
        let gpu = Gpu::new();
        let mut c = Codes::new();
        let a = gpu.upload(&[1_u32, 2, 3, 4]);
        let other = Gpu::new();
        // Memory of one context can be read and freed while another context of the same device is current.
        c.that(other.read::<u32>(a, 4) == [1, 2, 3, 4], || {
            "wrong data in another context".to_owned()
        });
        let mine = other.alloc(16);
        is!(c, 0, cuMemFree(a));
        drop(other);
        // Destroying a context frees its memory.
        let mut word = 0_u32;
        is!(c, 1, cuMemFree(mine));
        is!(c, 1, cuMemcpyDtoH((&raw mut word).cast(), mine, 4));
        drop(gpu);
    });
}

#[test]
fn page_locked_memory() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let mut pointer = ptr::null_mut();
    is!(c, 0, cuMemHostAlloc(&raw mut pointer, 4096, 0));
    let mut address = 0;
    is!(c, 0, cuMemHostGetDevicePointer(&raw mut address, pointer, 0));
    c.that(address == pointer.addr() as u64, || {
        format!("{pointer:?} is {address:#x} on the device")
    });
    // Unknown flags are an error, and the address is set to 0.
    let mut nowhere = 7;
    is!(c, 1, cuMemHostGetDevicePointer(&raw mut nowhere, pointer, 1));
    c.that(nowhere == 0, || format!("{nowhere:#x} with an error"));
    let mut flags = 99;
    is!(c, 0, cuMemHostGetFlags(&raw mut flags, pointer));
    let filled = gpu.upload(&[0x0102_0304_u32; 1024]);
    is!(c, 0, cuMemcpyDtoH(pointer, filled, 4096));
    // SAFETY: the allocation holds 1,024 words, written by the finished copy.
    let last = unsafe { pointer.cast::<u32>().add(1023).read() };
    c.that(last == 0x0102_0304, || format!("{last:#x} in page-locked memory"));
    // Fills by the device reach all of the memory and nothing beyond it.
    is!(c, 0, cuMemsetD32(address, 7, 1024));
    is!(c, 0, cuMemsetD8Async(address + 1, 9, 1, ptr::null_mut()));
    is!(c, 0, cuCtxSynchronize());
    // SAFETY: as above; the fills are done.
    let (first, last) = unsafe { (pointer.cast::<u32>().read(), pointer.cast::<u32>().add(1023).read()) };
    c.that((first, last) == (0x0907, 7), || format!("{first:#x} and {last:#x}"));
    is!(c, 1, cuMemsetD32(address, 7, 1025));
    is!(c, 1, cuMemsetD32(address + 2, 7, 1));
    is!(c, 1, cuMemHostUnregister(pointer));
    is!(c, 1, cuMemHostRegister(pointer, 4096, 0));
    is!(c, 0, cuMemFreeHost(pointer));

    let mut words = Box::new(Pages([0_u64; 1024]));
    let memory: *mut c_void = words.0.as_mut_ptr().cast();
    is!(c, 0, cuMemHostRegister(memory, 8192, 0));
    is!(c, 0, cuMemsetD8(memory.addr() as u64, 3, 8192));
    is!(c, 0, cuCtxSynchronize());
    c.that(words.0.iter().all(|w| *w == 0x0303_0303_0303_0303), || {
        "registered memory was not filled".to_owned()
    });
    is!(c, 712, cuMemHostRegister(memory, 8192, 0));
    is!(c, 0, cuMemHostUnregister(memory));
    is!(c, 713, cuMemHostUnregister(memory));
    is!(c, 1, cuMemHostAlloc(ptr::null_mut(), 4096, 0));
    is!(c, 0, cuMemHostAlloc(&raw mut pointer, 0, 0));
}

#[test]
fn fills_of_host_memory_finish_before_the_call_returns() {
    let gpu = Gpu::new();
    let kernel = gpu.kernel("saxpy.ptx", "saxpy");
    let (mut pinned, mut managed) = (ptr::null_mut(), 0);
    ok!(cuMemHostAlloc(&raw mut pinned, 4096, 0));
    ok!(cuMemAllocManaged(&raw mut managed, 4096, 1));
    let mut words = Box::new(Pages([0_u32; 1024]));
    let registered: *mut c_void = words.0.as_mut_ptr().cast();
    ok!(cuMemHostRegister(registered, 4096, 0));
    let (x, y) = (gpu.upload(&[0_f32; 1000]), gpu.upload(&[0_f32; 1000]));
    let places = [pinned.addr() as u64, managed, registered.expose_provenance() as u64];
    for place in places {
        let mut arguments = crate::arguments![1_f32, x, y, 1000_u64];
        let mut pointers = arguments.pointers();
        let stream = ptr::null_mut();
        // The fills below must wait for this launch and then finish before they return.
        ok!(cuLaunchKernel(
            kernel,
            4,
            1,
            1,
            256,
            1,
            1,
            0,
            stream,
            pointers.as_mut_ptr(),
            ptr::null_mut()
        ));
        // SAFETY: 1,024 words of memory that host and device share; their fill has finished.
        let word = |i: usize| unsafe { (place as *const u32).add(i).read_volatile() };
        ok!(cuMemsetD32(place, 0x0102_0304, 1024));
        assert_eq!((word(0), word(1023)), (0x0102_0304, 0x0102_0304));
        ok!(cuMemsetD2D8(place, 64, 7, 64, 64));
        assert_eq!((word(0), word(1023)), (0x0707_0707, 0x0707_0707));
    }
    ok!(cuCtxSynchronize());
    ok!(cuMemHostUnregister(registered));
    ok!(cuMemFree(managed));
    ok!(cuMemFreeHost(pinned));
}

#[test]
fn pitched_memory() {
    let _gpu = Gpu::new();
    let mut c = Codes::new();
    let (mut address, mut pitch) = (0, 0);
    is!(c, 0, cuMemAllocPitch(&raw mut address, &raw mut pitch, 100, 10, 4));
    c.that(pitch == 512, || format!("pitch {pitch}"));
    is!(c, 0, cuMemFree(address));
    for (width, height) in [(usize::MAX, 1), (1 << 20, 1 << 62)] {
        is!(
            c,
            1,
            cuMemAllocPitch(&raw mut address, &raw mut pitch, width, height, 4)
        );
    }
}

#[test]
fn pointer_attributes() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let a = gpu.alloc(1024);
    let mut kind = 0_u32;
    let kind_of = CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
    is!(c, 0, cuPointerGetAttribute((&raw mut kind).cast(), kind_of, a + 8));
    c.that(kind == CUmemorytype::CU_MEMORYTYPE_DEVICE.0, || {
        format!("memory type {kind}")
    });
    let mut context: CUcontext = ptr::null_mut();
    is!(
        c,
        0,
        cuPointerGetAttribute(
            (&raw mut context).cast(),
            CUpointer_attribute::CU_POINTER_ATTRIBUTE_CONTEXT,
            a
        )
    );
    c.that(context == gpu.context, || format!("the memory belongs to {context:?}"));
    let word = 0_u64;
    is!(
        c,
        1,
        cuPointerGetAttribute((&raw mut kind).cast(), kind_of, (&raw const word).addr() as u64)
    );
    is!(c, 1, cuPointerGetAttribute(ptr::null_mut(), kind_of, a));
}

#[test]
fn rectangles() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let source: Vec<u8> = (1..=64).collect();
    let device = gpu.upload(&[0_u8; 128]);
    let copy = |width: usize, height: usize, from: [usize; 2], to: [usize; 2]| {
        let copy = CUDA_MEMCPY2D {
            srcMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
            srcHost: source.as_ptr().cast(),
            srcPitch: from[0],
            srcXInBytes: from[1],
            dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
            dstDevice: device,
            dstPitch: to[0],
            dstXInBytes: to[1],
            WidthInBytes: width,
            Height: height,
            ..CUDA_MEMCPY2D::default()
        };
        // SAFETY: every copy that is not refused stays within the buffers above.
        unsafe { cuMemcpy2D(&raw const copy) }.0
    };
    c.is(0, "three rows", copy(5, 3, [8, 2], [16, 4]));
    c.is(0, "nothing", copy(0, 3, [8, 2], [16, 4]));
    c.is(1, "a pitch below the row", copy(5, 3, [4, 0], [16, 0]));
    c.is(1, "a pitch below a single row", copy(5, 1, [4, 0], [16, 0]));
    c.is(1, "a row that ends beyond the pitch", copy(5, 1, [8, 0], [16, 12]));
    c.is(1, "out of range", copy(5, 3, [16, 0], [64, 0]));
    gpu.write(device, &[0_u8; 128]);
    // A pitch of 0 means the offset in the row plus the width.
    c.is(0, "without a pitch", copy(5, 3, [0, 2], [0, 1]));
    let seen = gpu.read::<u8>(device, 19);
    let expected = [0, 3, 4, 5, 6, 7, 0, 10, 11, 12, 13, 14, 0, 17, 18, 19, 20, 21, 0];
    c.that(seen == expected, || format!("{seen:?}"));
}

#[test]
fn several_attributes_of_a_pointer() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let device = gpu.alloc(1000);
    let (mut managed, host) = (0, 0_u64);
    ok!(cuMemAllocManaged(&raw mut managed, 64, 1));
    let plain = (&raw const host).addr() as u64;
    // (address, kind, managed, size, device); an address unknown to the driver is not an error here.
    for (address, expected) in [
        (device + 8, (2, 0, 1000, 0)),
        (managed, (2, 1, 64, 0)),
        (plain, (0, 0, 77, -2)),
    ] {
        let (mut kind, mut is_managed, mut size, mut ordinal) = (77_u32, 77_u32, 77_usize, 77_i32);
        let mut names = [
            CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
            CUpointer_attribute::CU_POINTER_ATTRIBUTE_IS_MANAGED,
            CUpointer_attribute::CU_POINTER_ATTRIBUTE_RANGE_SIZE,
            CUpointer_attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
        ];
        let mut data: [*mut c_void; 4] = [
            (&raw mut kind).cast(),
            (&raw mut is_managed).cast(),
            (&raw mut size).cast(),
            (&raw mut ordinal).cast(),
        ];
        is!(
            c,
            0,
            cuPointerGetAttributes(4, names.as_mut_ptr(), data.as_mut_ptr(), address)
        );
        let seen = (kind, is_managed, size, ordinal);
        c.that(seen == expected, || format!("{seen:?}, expected {expected:?}"));
    }
    // Tokens and unknown attributes cannot be in a list.
    let mut value = [0_u64; 4];
    let mut data = [value.as_mut_ptr().cast::<c_void>()];
    for unknown in [
        CUpointer_attribute::CU_POINTER_ATTRIBUTE_P2P_TOKENS,
        CUpointer_attribute(0),
        CUpointer_attribute(99),
    ] {
        let mut names = [unknown];
        is!(
            c,
            1,
            cuPointerGetAttributes(1, names.as_mut_ptr(), data.as_mut_ptr(), device)
        );
    }
    // `cuPointerGetAttributes` writes the device address only while a context is current, and 0 otherwise.
    let mut names = [CUpointer_attribute::CU_POINTER_ATTRIBUTE_DEVICE_POINTER];
    let mut seen = [7_u64; 2];
    let mut listed = |index: usize| {
        let mut data = [(&raw mut seen[index]).cast::<c_void>()];
        is!(
            c,
            0,
            cuPointerGetAttributes(1, names.as_mut_ptr(), data.as_mut_ptr(), managed)
        );
    };
    listed(0);
    let mut context = ptr::null_mut();
    ok!(cuCtxPopCurrent(&raw mut context));
    listed(1);
    ok!(cuCtxPushCurrent(context));
    assert_eq!(seen, [managed, 0]);
    let mut mapped = 7_u32;
    let which = CUpointer_attribute::CU_POINTER_ATTRIBUTE_MAPPED;
    is!(c, 1, cuPointerGetAttribute((&raw mut mapped).cast(), which, plain));
    ok!(cuMemFree(managed));
}
