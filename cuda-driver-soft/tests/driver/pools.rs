//! Tests of memory that is freed in stream order: calls no longer accept it, work that runs too late faults, and pools
//! release it when a call waits.

use crate::common::{Context, check, cuda, expect, in_child, lacks_software};
use crate::stream::{Door, NON_BLOCKING, hold, stream};
use cuda_driver_sys::*;
use std::ffi::c_void;
use std::ptr::null_mut;

/// Allocates memory in stream order.
fn alloc(bytes: usize, stream: CUstream) -> CUdeviceptr {
    let mut address = 0;
    check(unsafe { cuda().cuMemAllocAsync(&mut address, bytes, stream) });
    address
}

fn managed(bytes: usize) -> CUdeviceptr {
    let mut address = 0;
    check(unsafe { cuda().cuMemAllocManaged(&mut address, bytes, 1) });
    address
}

fn pinned(bytes: usize) -> *mut c_void {
    let mut address = null_mut();
    check(unsafe { cuda().cuMemAllocHost(&mut address, bytes) });
    address
}

#[test]
fn memory_queued_for_freeing_is_invalid_for_calls() {
    let (cuda, _context) = (cuda(), Context::new());
    let (door, busy, other) = (Door::default(), stream(NON_BLOCKING), stream(NON_BLOCKING));
    let host = pinned(64);
    let (pooled, mut plain) = (alloc(1000, busy), 0);
    unsafe {
        check(cuda.cuMemAlloc(&mut plain, 1000));
        hold(busy, &door);
        check(cuda.cuMemFreeAsync(pooled, busy));
        check(cuda.cuMemFreeAsync(plain, busy));
        for address in [pooled, plain] {
            let (mut base, mut kind) = (0, 0u32);
            expect(cuda.cuMemGetAddressRange(&mut base, null_mut(), address + 8), 500);
            let attribute = CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
            let kind = (&raw mut kind).cast();
            expect(cuda.cuPointerGetAttribute(kind, attribute, address), 1);
            for stream in [busy, other] {
                expect(cuda.cuMemcpyDtoHAsync(host, address, 64, stream), 1);
                expect(cuda.cuMemcpyHtoDAsync(address, host, 64, stream), 1);
                expect(cuda.cuMemcpyAsync(host as u64, address, 64, stream), 1);
                expect(cuda.cuMemsetD8Async(address, 1, 64, stream), 1);
                expect(cuda.cuMemFreeAsync(address, stream), 1);
            }
            expect(cuda.cuMemFree(address), 1);
        }
        // Managed memory cannot be freed in stream order, and stays allocated.
        let shared = managed(8192);
        expect(cuda.cuMemFreeAsync(shared, busy), 801);
        check(cuda.cuMemAdvise(shared, 8192, CUmem_advise(1), 0));
        check(cuda.cuMemcpyDtoHAsync(host, shared, 64, other));
        door.open();
        check(cuda.cuStreamSynchronize(busy));
        check(cuda.cuMemFreeHost(host));
        check(cuda.cuStreamDestroy(busy));
        check(cuda.cuStreamDestroy(other));
    }
}

#[test]
fn a_pool_releases_memory_at_a_synchronisation() {
    // The test needs a process of its own: a synchronisation in another test would make all pools release memory.
    in_child(
        "pools::a_pool_releases_memory_at_a_synchronisation",
        &[],
        a_pool_releases_memory_alone,
    );
}

fn a_pool_releases_memory_alone() {
    let (cuda, _context) = (cuda(), Context::new());
    let (door, busy, other) = (Door::default(), stream(NON_BLOCKING), stream(NON_BLOCKING));
    let mut pool = null_mut();
    let mut props = CUmemPoolProps {
        allocType: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        ..Default::default()
    };
    props.location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
    let of = |pool, attribute: u32| {
        let mut value = 0u64;
        let place = (&raw mut value).cast();
        check(unsafe { cuda.cuMemPoolGetAttribute(pool, CUmemPool_attribute(attribute), place) });
        value
    };
    unsafe {
        check(cuda.cuMemPoolCreate(&mut pool, &props));
        let mut address = 0;
        check(cuda.cuMemAllocFromPoolAsync(&mut address, 1000, pool, busy));
        // Bytes reserved, bytes used, and the high-water mark of bytes used.
        let numbers = || [5, 7, 8].map(|attribute| of(pool, attribute));
        assert_eq!(numbers(), [32 << 20, 1000, 1000]);
        hold(busy, &door);
        check(cuda.cuMemFreeAsync(address, busy));
        assert_eq!(numbers(), [32 << 20, 0, 1000]);
        // The stream has not reached the free, so neither call releases the memory.
        check(cuda.cuStreamSynchronize(other));
        check(cuda.cuMemPoolTrimTo(pool, 0));
        assert_eq!(numbers(), [32 << 20, 0, 1000]);
        door.open();
        while cuda.cuStreamQuery(busy).0 == 600 {
            std::thread::yield_now();
        }
        assert_eq!(numbers(), [32 << 20, 0, 1000]);
        check(cuda.cuStreamSynchronize(other));
        assert_eq!(numbers(), [0, 0, 1000]);
        // A failed allocation does not count as used.
        expect(cuda.cuMemAllocFromPoolAsync(&mut address, 1 << 50, pool, busy), 2);
        assert_eq!(numbers(), [0, 0, 1000]);
        // A free that waits releases memory immediately.
        check(cuda.cuMemAllocFromPoolAsync(&mut address, 8, pool, busy));
        check(cuda.cuMemFree(address));
        assert_eq!(of(pool, 5), 0);
        check(cuda.cuMemPoolDestroy(pool));
        check(cuda.cuStreamDestroy(busy));
        check(cuda.cuStreamDestroy(other));
    }
}

/// Runs `work` in a process of its own on memory of 1 MiB that is freed after the work is queued and before it runs.
fn run_too_late(test: &str, work: impl FnOnce(CUdeviceptr, *mut c_void, CUstream)) {
    if lacks_software() {
        return; // only the software driver detects such work and logs it
    }
    let log = in_child(&format!("pools::{test}"), &[("CUDA_SOFT_LOG", "1")], || {
        let (cuda, _context) = (cuda(), Context::new());
        let (door, late, other) = (Door::default(), stream(NON_BLOCKING), stream(NON_BLOCKING));
        let (address, host) = (alloc(1 << 20, other), pinned(1 << 20));
        unsafe {
            hold(late, &door);
            work(address, host, late);
            check(cuda.cuMemFreeAsync(address, other));
            check(cuda.cuStreamSynchronize(other));
            door.open();
            expect(cuda.cuStreamSynchronize(late), 719);
            expect(cuda.cuStreamSynchronize(other), 719);
        }
        std::mem::forget(_context);
    });
    if let Some(log) = log {
        assert!(log.contains("freed before the work ran"), "{log}");
    }
}

#[test]
fn a_copy_that_runs_too_late() {
    run_too_late("a_copy_that_runs_too_late", |address, host, stream| {
        check(unsafe { cuda().cuMemcpyHtoDAsync(address, host, 1 << 20, stream) });
    });
}

#[test]
fn a_copy_to_the_host_that_runs_too_late() {
    let name = "a_copy_to_the_host_that_runs_too_late";
    run_too_late(name, |address, host, stream| {
        check(unsafe { cuda().cuMemcpyDtoHAsync(host, address + 8, 8, stream) });
    });
}

#[test]
fn a_copy_of_pageable_memory_that_runs_too_late() {
    let name = "a_copy_of_pageable_memory_that_runs_too_late";
    run_too_late(name, |address, _, stream| {
        let bytes = [1u8; 64];
        let host = bytes.as_ptr().cast();
        check(unsafe { cuda().cuMemcpyHtoDAsync(address, host, 64, stream) });
    });
}

#[test]
fn a_fill_that_runs_too_late() {
    run_too_late("a_fill_that_runs_too_late", |address, _, stream| {
        check(unsafe { cuda().cuMemsetD2D8Async(address, 16, 1, 8, 4, stream) });
    });
}

#[test]
fn a_rectangle_that_runs_too_late() {
    run_too_late("a_rectangle_that_runs_too_late", |address, host, stream| {
        let copy = CUDA_MEMCPY2D {
            srcMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
            srcHost: host,
            srcPitch: 64,
            dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
            dstDevice: address,
            dstPitch: 64,
            WidthInBytes: 32,
            Height: 4,
            ..Default::default()
        };
        check(unsafe { cuda().cuMemcpy2DAsync(&copy, stream) });
    });
}

#[test]
fn the_next_allocation_at_the_same_address_is_untouched() {
    let name = "pools::the_next_allocation_at_the_same_address_is_untouched";
    in_child(name, &[], || {
        // More than the C library's allocator keeps: the memory comes from the system and is returned to it.
        const BYTES: usize = 40 << 20;
        let cuda = cuda();
        let working = Context::new();
        let (door, late, host) = (Door::default(), stream(NON_BLOCKING), pinned(BYTES));
        // This context owns the memory. Freeing it also waits for the copy, which is in the other context.
        let owner = Context::new();
        let address = managed(BYTES);
        unsafe {
            host.cast::<u8>().write_bytes(7, BYTES);
            hold(late, &door);
            check(cuda.cuMemcpyHtoDAsync(address, host, BYTES, late));
            std::thread::scope(|scope| {
                scope.spawn(|| door.open());
                check(cuda.cuMemFree(address));
            });
            // The system may map the same addresses again.
            let next: Vec<_> = (0..4).map(|_| managed(BYTES)).collect();
            check(cuda.cuStreamSynchronize(late));
            for at in next {
                let bytes = std::slice::from_raw_parts(at as *const u8, BYTES);
                assert!(
                    bytes.iter().all(|&byte| byte == 0),
                    "the memory at {at:#x} was written; the freed memory was at {address:#x}"
                );
            }
        }
        std::mem::forget((owner, working));
    });
}

#[test]
fn an_allocation_does_not_wait_for_host_functions() {
    if lacks_software() {
        return; // this test limits the memory of the software driver
    }
    let name = "pools::an_allocation_does_not_wait_for_host_functions";
    in_child(name, &[("CUDA_SOFT_MEMORY", "67108864")], || {
        let (cuda, _context) = (cuda(), Context::new());
        let (door, busy, other) = (Door::default(), stream(NON_BLOCKING), stream(NON_BLOCKING));
        let first = alloc(40 << 20, busy);
        let mut second = 0;
        unsafe {
            hold(busy, &door);
            check(cuda.cuMemFreeAsync(first, busy));
            // These would not fit even if all memory were free.
            expect(cuda.cuMemAllocAsync(&mut second, 1 << 50, other), 2);
            expect(cuda.cuMemAllocAsync(&mut second, 65 << 20, other), 2);
            // There is enough memory after the queued free.
            for stream in [other, busy] {
                let second = alloc(60 << 20, stream);
                expect(cuda.cuMemAllocAsync(&mut 0, 8 << 20, other), 2);
                check(cuda.cuMemsetD8Async(second, 1, 60 << 20, stream));
                check(cuda.cuMemFreeAsync(second, stream));
            }
            door.open();
            check(cuda.cuCtxSynchronize());
            let (mut free, mut total) = (0, 0);
            check(cuda.cuMemGetInfo(&mut free, &mut total));
            assert_eq!((free, total), (64 << 20, 64 << 20));
        }
    });
}

#[test]
fn memory_of_a_pool_belongs_to_the_device_of_the_pool() {
    if lacks_software() {
        return;
    }
    let name = "pools::memory_of_a_pool_belongs_to_the_device_of_the_pool";
    in_child(name, &[("CUDA_SOFT_DEVICES", "2")], || unsafe {
        const BYTES: usize = 1 << 20;
        let cuda = cuda();
        check(cuda.cuInit(0));
        let (mut other, mut context, mut pool) = (null_mut(), null_mut(), null_mut());
        check(cuda.cuCtxCreate(&mut other, 0, 1));
        check(cuda.cuCtxCreate(&mut context, 0, 0));
        check(cuda.cuDeviceGetDefaultMemPool(&mut pool, 1));
        let free_on = |on| {
            let (mut free, mut total) = (0, 0);
            check(cuda.cuCtxPushCurrent(on));
            check(cuda.cuMemGetInfo(&mut free, &mut total));
            check(cuda.cuCtxPopCurrent(null_mut()));
            free
        };
        let before = [context, other].map(free_on);
        let (stream, mut address) = (stream(NON_BLOCKING), 0);
        check(cuda.cuMemAllocFromPoolAsync(&mut address, BYTES, pool, stream));
        assert_eq!([context, other].map(free_on), [before[0], before[1] - BYTES]);
        let mut ordinal = -1;
        let attribute = CUpointer_attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL;
        check(cuda.cuPointerGetAttribute((&raw mut ordinal).cast(), attribute, address));
        assert_eq!(ordinal, 1);
        // Freeing the memory waits for the work that uses it.
        let door = Door::default();
        hold(stream, &door);
        check(cuda.cuMemsetD8Async(address, 1, BYTES, stream));
        door.open_soon(|| check(cuda.cuMemFree(address)));
        assert_eq!([context, other].map(free_on), before);
    });
}
