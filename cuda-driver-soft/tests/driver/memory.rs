//! Tests of memory: allocation, copies, fills, page-locked memory, attributes of pointers, and refused calls.

use crate::common::{Context, check, cuda, expect, in_child, lacks_software, software};
use crate::stream::{Door, hold};
use cuda_driver_sys::*;
use std::ffi::c_void;
use std::ptr::{null, null_mut};

fn alloc(bytes: usize) -> CUdeviceptr {
    let mut address = 0;
    check(unsafe { cuda().cuMemAlloc(&mut address, bytes) });
    address
}

#[test]
fn allocation() {
    // The test needs a process of its own: another test could be given the freed memory immediately.
    in_child("memory::allocation", &[], || {
        let (cuda, _context) = (cuda(), Context::new());
        let mut address = 0;
        unsafe {
            expect(cuda.cuMemAlloc(&mut address, 0), 1);
            expect(cuda.cuMemAlloc(null_mut(), 4), 1);
            expect(cuda.cuMemAlloc(&mut address, 1 << 60), 2);
            // The error is not sticky.
            let one = alloc(1);
            let two = alloc(1);
            assert!(one.abs_diff(two) >= 512 && one.is_multiple_of(512));
            let (mut base, mut size) = (0, 0);
            check(cuda.cuMemGetAddressRange(&mut base, &mut size, one));
            assert_eq!((base, size), (one, 1));
            check(cuda.cuMemGetAddressRange(null_mut(), null_mut(), one));
            check(cuda.cuMemFree(0));
            expect(cuda.cuMemFree(one + 1), 1);
            check(cuda.cuMemFree(one));
            expect(cuda.cuMemFree(one), 1);
            expect(cuda.cuMemGetAddressRange(&mut base, &mut size, one), 500);
            expect(cuda.cuMemGetAddressRange(&mut base, &mut size, 0), 500);
            expect(
                cuda.cuMemGetAddressRange(&mut base, &mut size, (&raw const base) as u64),
                500,
            );
            check(cuda.cuMemFree(two));
            let mut pitch = 0;
            check(cuda.cuMemAllocPitch(&mut address, &mut pitch, 100, 7, 4));
            assert_eq!(pitch, 512);
            check(cuda.cuMemGetAddressRange(null_mut(), &mut size, address));
            assert_eq!(size, 512 * 7);
            check(cuda.cuMemFree(address));
            expect(cuda.cuMemAllocPitch(&mut address, &mut pitch, 100, 7, 3), 1);
            expect(cuda.cuMemAllocPitch(&mut address, &mut pitch, 0, 7, 4), 1);
            let (mut free, mut total) = (0, 0);
            check(cuda.cuMemGetInfo(&mut free, &mut total));
            assert!(0 < free && free <= total);
            check(cuda.cuMemGetInfo(null_mut(), null_mut()));
        }
    });
}

#[test]
fn copies_and_their_limits() {
    // The test needs a process of its own: another test could be given the freed memory immediately.
    in_child("memory::copies_and_their_limits", &[], || {
        let (cuda, _context) = (cuda(), Context::new());
        let (a, b) = (alloc(64), alloc(64));
        let bytes: Vec<u8> = (0..64).collect();
        let mut back = vec![0u8; 64];
        let (from, to): (*const c_void, *mut c_void) = (bytes.as_ptr().cast(), back.as_mut_ptr().cast());
        unsafe {
            check(cuda.cuMemcpyHtoD(a, from, 64));
            check(cuda.cuMemcpyDtoD(b, a + 32, 32));
            check(cuda.cuMemcpyDtoD(b + 32, a, 32));
            check(cuda.cuMemcpyDtoH(to, b, 64));
            assert!(back[..32] == bytes[32..] && back[32..] == bytes[..32]);
            // The size is checked against the allocation.
            expect(cuda.cuMemcpyHtoD(a, from, 65), 1);
            expect(cuda.cuMemcpyHtoD(a + 63, from, 2), 1);
            expect(cuda.cuMemcpyDtoH(to, a + 60, 5), 1);
            expect(cuda.cuMemcpyDtoD(b, a, 65), 1);
            expect(cuda.cuMemcpyHtoD(0, from, 4), 1);
            // A host address is not device memory; NULL is not host memory.
            expect(cuda.cuMemcpyHtoD(to as u64, from, 4), 1);
            expect(cuda.cuMemcpyHtoD(a, null(), 4), 1);
            expect(cuda.cuMemcpyDtoH(null_mut(), a, 4), 1);
            check(cuda.cuMemcpyHtoD(a, null(), 0));
            // `cuMemcpy` determines the kind of each address.
            check(cuda.cuMemcpy(to as u64, from as u64, 64));
            assert_eq!(back, bytes);
            check(cuda.cuMemcpy(a, from as u64, 64));
            check(cuda.cuMemcpy(b, a, 64));
            back.fill(0);
            check(cuda.cuMemcpy(back.as_mut_ptr() as u64, b, 64));
            assert_eq!(back, bytes);
            check(cuda.cuMemFree(a));
            if software() {
                // Freed memory does not count as host memory; NVIDIA's driver crashes.
                expect(cuda.cuMemcpy(a, b, 4), 1);
            }
            expect(cuda.cuMemcpyDtoD(b, a, 4), 1);
            check(cuda.cuMemFree(b));
        }
    });
}

#[test]
fn fills() {
    let (cuda, _context) = (cuda(), Context::new());
    let a = alloc(64);
    let read = || {
        let mut bytes = [0u8; 64];
        check(unsafe { cuda.cuMemcpyDtoH(bytes.as_mut_ptr().cast(), a, 64) });
        bytes
    };
    unsafe {
        check(cuda.cuMemsetD8(a, 0xAB, 64));
        assert_eq!(read(), [0xAB; 64]);
        check(cuda.cuMemsetD16(a + 2, 0x1234, 2));
        assert_eq!(read()[..8], [0xAB, 0xAB, 0x34, 0x12, 0x34, 0x12, 0xAB, 0xAB]);
        check(cuda.cuMemsetD32(a + 60, 0x0102_0304, 1));
        assert_eq!(read()[60..], [4, 3, 2, 1]);
        check(cuda.cuMemsetD8(a, 1, 0));
        expect(cuda.cuMemsetD8(a, 1, 65), 1);
        expect(cuda.cuMemsetD32(a + 2, 1, 1), 1);
        expect(cuda.cuMemsetD16(a + 1, 1, 1), 1);
        if software() {
            // NVIDIA's driver lets the number of bytes wrap around, and the device faults.
            expect(cuda.cuMemsetD32(a, 1, usize::MAX / 2), 1);
        }
        check(cuda.cuMemsetD8(a, 0, 64));
        // Three rows, 16 bytes apart, of two values each.
        check(cuda.cuMemsetD2D32(a, 16, 0x0101_0101, 2, 3));
        let bytes = read();
        for row in 0..4 {
            let expected = if row < 3 { [1; 8] } else { [0; 8] };
            assert_eq!(bytes[row * 16..][..8], expected, "row {row}");
            assert_eq!(bytes[row * 16 + 8..][..8], [0; 8], "row {row}");
        }
        expect(cuda.cuMemsetD2D32(a, 4, 1, 2, 3), 1);
        expect(cuda.cuMemsetD2D32(a, 16, 1, 2, 5), 1);
        check(cuda.cuMemFree(a));
    }
}

#[test]
fn page_locked_memory() {
    // The test needs a process of its own: another test could be given the freed memory immediately.
    in_child("memory::page_locked_memory", &[], || {
        let (cuda, _context) = (cuda(), Context::new());
        let mut pinned = null_mut();
        let mut address = 0;
        let mut flags = 0;
        unsafe {
            check(cuda.cuMemHostAlloc(&mut pinned, 0, 0));
            expect(cuda.cuMemHostAlloc(&mut pinned, 16, 8), 1);
            expect(cuda.cuMemHostAlloc(null_mut(), 16, 0), 1);
            check(cuda.cuMemAllocHost(&mut pinned, 4096));
            pinned.cast::<u32>().write(0xDEAD_BEEF);
            check(cuda.cuMemHostGetDevicePointer(&mut address, pinned, 0));
            assert_eq!(address, pinned as u64);
            expect(cuda.cuMemHostGetDevicePointer(&mut address, pinned, 1), 1);
            expect(
                cuda.cuMemHostGetDevicePointer(&mut address, (&raw mut flags).cast(), 0),
                1,
            );
            check(cuda.cuMemHostGetFlags(&mut flags, pinned));
            let device = alloc(4);
            let mut word = 0u32;
            check(cuda.cuMemcpyHtoD(device, pinned, 4));
            check(cuda.cuMemcpyDtoH((&raw mut word).cast(), device, 4));
            assert_eq!(word, 0xDEAD_BEEF);
            check(cuda.cuMemFree(device));
            expect(cuda.cuMemFree(pinned as u64), 1);
            check(cuda.cuMemFreeHost(pinned));
            expect(cuda.cuMemFreeHost(pinned), 1);
            // Memory that the program allocated.
            let mut own = vec![0u8; 8192];
            let at: *mut c_void = own.as_mut_ptr().cast();
            check(cuda.cuMemHostRegister(at, 8192, 0));
            expect(cuda.cuMemHostRegister(at, 8192, 0), 712);
            expect(cuda.cuMemHostRegister(at.byte_add(4096), 64, 0), 712);
            check(cuda.cuMemHostGetDevicePointer(&mut address, at, 0));
            assert_eq!(address, at as u64);
            let device = alloc(8192);
            check(cuda.cuMemsetD8(device, 7, 8192));
            check(cuda.cuMemcpyAsync(address, device, 8192, null_mut()));
            check(cuda.cuCtxSynchronize());
            assert!(own.iter().all(|&b| b == 7));
            // The device can fill registered host memory, up to its end.
            check(cuda.cuMemsetD8(address, 9, 8192));
            check(cuda.cuMemsetD32(address + 4, 0x0102_0304, 1));
            check(cuda.cuCtxSynchronize());
            assert_eq!(own[..10], [9, 9, 9, 9, 4, 3, 2, 1, 9, 9]);
            expect(cuda.cuMemsetD8(address, 7, 8193), 1);
            check(cuda.cuMemFree(device));
            check(cuda.cuMemHostUnregister(at));
            expect(cuda.cuMemHostUnregister(at), 713);
            expect(cuda.cuMemHostRegister(null_mut(), 64, 0), 1);
            expect(cuda.cuMemHostRegister(at, 0, 0), 1);
        }
    });
}

#[test]
fn pointer_attributes() {
    let (cuda, context) = (cuda(), Context::new());
    let device = alloc(100);
    let (mut kind, mut owner, mut start, mut size, mut managed) = (0u32, null_mut::<c_void>(), 0u64, 0usize, 9u32);
    let ask =
        |data: *mut c_void, attribute, address: u64| unsafe { cuda.cuPointerGetAttribute(data, attribute, address) };
    unsafe {
        check(ask(
            (&raw mut kind).cast(),
            CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
            device + 7,
        ));
        assert_eq!(kind, CUmemorytype::CU_MEMORYTYPE_DEVICE.0);
        check(ask(
            (&raw mut owner).cast(),
            CUpointer_attribute::CU_POINTER_ATTRIBUTE_CONTEXT,
            device,
        ));
        assert_eq!(owner, context.0.cast());
        check(ask(
            (&raw mut start).cast(),
            CUpointer_attribute::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
            device + 99,
        ));
        check(ask(
            (&raw mut size).cast(),
            CUpointer_attribute::CU_POINTER_ATTRIBUTE_RANGE_SIZE,
            device + 99,
        ));
        assert_eq!((start, size), (device, 100));
        expect(
            ask(
                (&raw mut start).cast(),
                CUpointer_attribute::CU_POINTER_ATTRIBUTE_HOST_POINTER,
                device,
            ),
            1,
        );
        expect(ask((&raw mut start).cast(), CUpointer_attribute(999), device), 1);
        expect(
            ask(null_mut(), CUpointer_attribute::CU_POINTER_ATTRIBUTE_CONTEXT, device),
            1,
        );
        // Plain host memory.
        let address = (&raw const size) as u64;
        expect(
            ask(
                (&raw mut kind).cast(),
                CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                address,
            ),
            1,
        );
        // Several attributes in one call: one without a value is set to 0, without an error.
        let mut names = [
            CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
            CUpointer_attribute::CU_POINTER_ATTRIBUTE_IS_MANAGED,
        ];
        let mut data = [(&raw mut kind).cast(), (&raw mut managed).cast()];
        check(cuda.cuPointerGetAttributes(2, names.as_mut_ptr(), data.as_mut_ptr(), address));
        assert_eq!((kind, managed), (0, 0));
        check(cuda.cuMemFree(device));
        let mut address = 0;
        expect(cuda.cuMemAllocManaged(&mut address, 64, 0), 1);
        check(cuda.cuMemAllocManaged(&mut address, 64, 1));
        check(cuda.cuPointerGetAttributes(2, names.as_mut_ptr(), data.as_mut_ptr(), address));
        assert_eq!((kind, managed), (CUmemorytype::CU_MEMORYTYPE_DEVICE.0, 1));
        // The host can access managed memory, too.
        check(cuda.cuMemsetD8(address, 3, 64));
        check(cuda.cuCtxSynchronize());
        assert_eq!(*(address as *const u8).add(63), 3);
        check(cuda.cuMemFree(address));
    }
}

#[test]
fn without_a_current_context() {
    let cuda = cuda();
    let (mut address, mut size, mut pointer) = (0, 0, null_mut());
    let context = Context::new();
    let (device, mut other) = (alloc(64), null_mut());
    unsafe {
        check(cuda.cuMemAllocHost(&mut pointer, 64));
        check(cuda.cuCtxPopCurrent(&mut other));
        let mut word = [0u8; 64];
        let host: *mut c_void = word.as_mut_ptr().cast();
        expect(cuda.cuMemAlloc(&mut address, 4), 201);
        expect(cuda.cuMemAllocHost(&mut pointer, 4), 201);
        expect(cuda.cuMemAllocManaged(&mut address, 4, 1), 201);
        expect(cuda.cuMemcpyHtoD(device, host, 4), 201);
        expect(cuda.cuMemcpyDtoH(host, device, 4), 201);
        expect(cuda.cuMemcpyDtoD(device, device, 4), 201);
        expect(cuda.cuMemsetD8(device, 0, 4), 201);
        expect(cuda.cuMemsetD8Async(device, 0, 4, CU_STREAM_LEGACY), 201);
        expect(cuda.cuMemsetD8Async(device, 0, 4, CU_STREAM_PER_THREAD), 201);
        expect(cuda.cuMemGetInfo(&mut size, &mut size.clone()), 201);
        expect(cuda.cuMemGetAddressRange(&mut address, &mut size, device), 201);
        expect(cuda.cuMemHostGetDevicePointer(&mut address, pointer, 0), 201);
        // These calls need no context.
        let mut kind = 0u32;
        check(cuda.cuPointerGetAttribute(
            (&raw mut kind).cast(),
            CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
            device,
        ));
        check(cuda.cuMemFree(device));
        check(cuda.cuMemFreeHost(pointer));
        check(cuda.cuCtxPushCurrent(other));
    }
    drop(context);
}

#[test]
fn rectangles_and_boxes() {
    let (cuda, _context) = (cuda(), Context::new());
    let image: Vec<u8> = (0..6 * 8).map(|i| (i / 8 * 16 + i % 8) as u8).collect();
    let device = alloc(16 * 8);
    let mut copy = CUDA_MEMCPY2D {
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
        srcHost: image.as_ptr().cast(),
        srcPitch: 8,
        srcXInBytes: 2,
        srcY: 1,
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
        dstDevice: device,
        dstPitch: 16,
        dstXInBytes: 4,
        WidthInBytes: 5,
        Height: 3,
        ..CUDA_MEMCPY2D::default()
    };
    let mut back = vec![0u8; 16 * 8];
    unsafe {
        check(cuda.cuMemsetD8(device, 0xEE, 16 * 8));
        check(cuda.cuMemcpy2D(&copy));
        check(cuda.cuMemcpyDtoH(back.as_mut_ptr().cast(), device, 16 * 8));
        let mut expected = vec![0xEE; 16 * 8];
        for y in 0..3 {
            for x in 0..5 {
                expected[y * 16 + 4 + x] = ((y + 1) * 16 + 2 + x) as u8;
            }
        }
        assert_eq!(back, expected);
        copy.Height = 0;
        check(cuda.cuMemcpy2D(&copy));
        copy.Height = 3;
        copy.dstPitch = 8;
        // A row that begins at byte 4 and has 5 bytes does not fit into a pitch of 8.
        expect(cuda.cuMemcpy2D(&copy), 1);
        copy.dstPitch = 64;
        expect(cuda.cuMemcpy2D(&copy), 1);
        copy.dstMemoryType = CUmemorytype(9);
        expect(cuda.cuMemcpy2D(&copy), 1);
        expect(cuda.cuMemcpy2D(null()), 1);
        // A box of 3 x 2 x 2, from the device to the host by unified address.
        let mut cuboid = CUDA_MEMCPY3D {
            srcMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
            srcDevice: device,
            srcPitch: 16,
            srcHeight: 4,
            dstMemoryType: CUmemorytype::CU_MEMORYTYPE_UNIFIED,
            dstDevice: back.as_mut_ptr() as u64,
            dstPitch: 3,
            dstHeight: 2,
            WidthInBytes: 3,
            Height: 2,
            Depth: 2,
            ..CUDA_MEMCPY3D::default()
        };
        let numbers: Vec<u8> = (0..128).collect();
        check(cuda.cuMemcpyHtoD(device, numbers.as_ptr().cast(), 128));
        check(cuda.cuMemcpy3D(&cuboid));
        assert_eq!(back[..12], [0, 1, 2, 16, 17, 18, 64, 65, 66, 80, 81, 82]);
        cuboid.srcZ = 1;
        expect(cuda.cuMemcpy3D(&cuboid), 1);
        cuboid.Depth = 1;
        check(cuda.cuMemcpy3DAsync(&cuboid, null_mut()));
        assert_eq!(back[..6], [64, 65, 66, 80, 81, 82]);
        check(cuda.cuMemFree(device));
    }
}

/// Returns an operand of a batch of box copies: contiguous memory.
fn operand(address: u64) -> CUmemcpy3DOperand {
    let mut operand = CUmemcpy3DOperand {
        type_: CUmemcpy3DOperandType::CU_MEMCPY_OPERAND_TYPE_POINTER,
        ..CUmemcpy3DOperand::default()
    };
    operand.op.ptr = CUmemcpy3DOperand_st__op__ptr {
        ptr: address,
        ..CUmemcpy3DOperand_st__op__ptr::default()
    };
    operand
}

/// Copies whose source is read during the call do not wait for the stream: the source may then change.
#[test]
fn copies_of_boxes_read_their_source_in_the_call() {
    // NVIDIA's driver may wait, or read the source later if it can.
    if lacks_software() {
        return;
    }
    let (cuda, _context) = (cuda(), Context::new());
    let door = Door::default();
    let (mut host, device, array, to) = ([1_u8; 64], alloc(64), byte_array(), alloc(192));
    let (mut stream, mut failed, mut back) = (null_mut(), 0, [9_u8; 192]);
    let mut in_array = CUmemcpy3DOperand {
        type_: CUmemcpy3DOperandType::CU_MEMCPY_OPERAND_TYPE_ARRAY,
        ..CUmemcpy3DOperand::default()
    };
    in_array.op.array.array = array;
    let mut copies = [operand(host.as_ptr() as u64), operand(device), in_array].map(|src| CUDA_MEMCPY3D_BATCH_OP {
        src,
        srcAccessOrder: CUmemcpySrcAccessOrder::CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL,
        ..CUDA_MEMCPY3D_BATCH_OP::default()
    });
    for (i, copy) in copies.iter_mut().enumerate() {
        copy.dst = operand(to + 64 * i as u64);
        (copy.extent.width, copy.extent.height, copy.extent.depth) = (16, 4, 1);
    }
    unsafe {
        check(cuda.cuStreamCreate(&mut stream, CUstream_flags::CU_STREAM_NON_BLOCKING.0));
        check(cuda.cuMemsetD8(device, 2, 64));
        fill_array(array, 3);
        check(cuda.cuCtxSynchronize());
        hold(stream, &door);
        check(cuda.cuMemcpy3DBatchAsync(3, copies.as_mut_ptr(), &mut failed, 0, stream));
        expect(cuda.cuStreamQuery(stream), 600);
        host = [4; 64];
        std::hint::black_box(&mut host);
        check(cuda.cuMemsetD8(device, 4, 64));
        fill_array(array, 4);
        check(cuda.cuStreamSynchronize(null_mut()));
        door.open();
        check(cuda.cuStreamSynchronize(stream));
        check(cuda.cuMemcpyDtoH(back.as_mut_ptr().cast(), to, 192));
        assert_eq!(back[..], [[1; 64], [2; 64], [3; 64]].concat());
        check(cuda.cuStreamDestroy(stream));
        check(cuda.cuArrayDestroy(array));
        check(cuda.cuMemFree(device));
        check(cuda.cuMemFree(to));
    }
}

/// Creates an array of 4 rows of 16 bytes.
fn byte_array() -> CUarray {
    let mut array = null_mut();
    let descriptor = CUDA_ARRAY_DESCRIPTOR {
        Width: 16,
        Height: 4,
        Format: CUarray_format::CU_AD_FORMAT_UNSIGNED_INT8,
        NumChannels: 1,
    };
    check(unsafe { cuda().cuArrayCreate(&mut array, &descriptor) });
    array
}

/// Fills an array of 4 rows of 16 bytes.
fn fill_array(array: CUarray, value: u8) {
    let bytes = [value; 64];
    let copy = CUDA_MEMCPY2D {
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
        srcHost: bytes.as_ptr().cast(),
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_ARRAY,
        dstArray: array,
        WidthInBytes: 16,
        Height: 4,
        ..CUDA_MEMCPY2D::default()
    };
    check(unsafe { cuda().cuMemcpy2D(&copy) });
}

#[test]
fn a_batch_with_a_wrong_box_copies_nothing() {
    // It is not known if NVIDIA's driver has begun the copies before the wrong one.
    if lacks_software() {
        return;
    }
    let (cuda, _context) = (cuda(), Context::new());
    let (from, to) = (alloc(64), alloc(64));
    let copy = |width| {
        let mut op = CUDA_MEMCPY3D_BATCH_OP {
            src: operand(from),
            dst: operand(to),
            srcAccessOrder: CUmemcpySrcAccessOrder::CU_MEMCPY_SRC_ACCESS_ORDER_STREAM,
            ..CUDA_MEMCPY3D_BATCH_OP::default()
        };
        (op.extent.width, op.extent.height, op.extent.depth) = (width, 1, 1);
        op
    };
    let mut both = [copy(64), copy(65)];
    let (mut stream, mut failed, mut back) = (null_mut(), 0, [9_u8; 64]);
    unsafe {
        check(cuda.cuStreamCreate(&mut stream, 1));
        check(cuda.cuMemsetD8(from, 7, 64));
        check(cuda.cuMemsetD8(to, 0, 64));
        check(cuda.cuCtxSynchronize());
        expect(
            cuda.cuMemcpy3DBatchAsync(2, both.as_mut_ptr(), &mut failed, 0, stream),
            1,
        );
        assert_eq!(failed, 1);
        check(cuda.cuStreamSynchronize(stream));
        check(cuda.cuMemcpyDtoH(back.as_mut_ptr().cast(), to, 64));
        assert_eq!(back, [0; 64]);
        // These errors do not concern one copy.
        for (flags, stream) in [(1, stream), (0, null_mut())] {
            failed = 0;
            expect(
                cuda.cuMemcpy3DBatchAsync(2, both.as_mut_ptr(), &mut failed, flags, stream),
                1,
            );
            assert_eq!(failed, usize::MAX);
        }
        check(cuda.cuMemcpy3DBatchAsync(1, both.as_mut_ptr(), &mut failed, 0, stream));
        check(cuda.cuStreamSynchronize(stream));
        check(cuda.cuMemcpyDtoH(back.as_mut_ptr().cast(), to, 64));
        assert_eq!(back, [7; 64]);
        check(cuda.cuStreamDestroy(stream));
        check(cuda.cuMemFree(from));
        check(cuda.cuMemFree(to));
    }
}
