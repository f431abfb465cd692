//! Tests of memory pools: allocation and freeing in stream order, attributes, limits and access.

use std::ffi::c_void;
use std::ptr;

use cuda_driver::sys::*;

use crate::common::Codes;
use crate::common::gpu::Gpu;
use crate::{arguments, child, is, ok};

type Attribute = CUmemPool_attribute;

fn stream() -> CUstream {
    let mut stream = ptr::null_mut();
    ok!(cuStreamCreate(&raw mut stream, 1));
    stream
}

fn default_pool() -> CUmemoryPool {
    let mut pool = ptr::null_mut();
    ok!(cuDeviceGetDefaultMemPool(&raw mut pool, 0));
    pool
}

fn on_device(ordinal: i32) -> CUmemLocation {
    let mut location = CUmemLocation {
        type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
        ..Default::default()
    };
    location.anonymous1.id = ordinal;
    location
}

fn props(most: usize) -> CUmemPoolProps {
    CUmemPoolProps {
        allocType: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        location: on_device(0),
        maxSize: most,
        ..Default::default()
    }
}

fn pool(most: usize) -> CUmemoryPool {
    let mut pool = ptr::null_mut();
    let props = props(most);
    ok!(cuMemPoolCreate(&raw mut pool, &raw const props));
    pool
}

fn bytes(pool: CUmemoryPool, attribute: Attribute) -> u64 {
    let mut value = 0_u64;
    ok!(cuMemPoolGetAttribute(
        pool,
        attribute,
        (&raw mut value).cast::<c_void>()
    ));
    value
}

#[test]
fn a_device_has_pools() {
    let _gpu = Gpu::new();
    let mut has = 0;
    ok!(cuDeviceGetAttribute(
        &raw mut has,
        CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED,
        0
    ));
    assert_eq!(has, 1);
}

#[test]
fn memory_in_stream_order() {
    let gpu = Gpu::new();
    let kernel = gpu.kernel("saxpy.ptx", "saxpy");
    let stream = stream();
    let x: Vec<f32> = (0..1000).map(|i| i as f32).collect();
    let mut y = vec![0_f32; 1000];
    for round in 0..20 {
        let (mut a, mut b) = (0, 0);
        ok!(cuMemAllocAsync(&raw mut a, 4000, stream));
        ok!(cuMemAllocAsync(&raw mut b, 4000, stream));
        ok!(cuMemcpyHtoDAsync(a, x.as_ptr().cast(), 4000, stream));
        ok!(cuMemsetD32Async(b, 1_f32.to_bits(), 1000, stream));
        let mut arguments = arguments![round as f32, a, b, 1000_u64];
        let mut pointers = arguments.pointers();
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
        ok!(cuMemFreeAsync(a, stream));
        ok!(cuMemcpyDtoHAsync(y.as_mut_ptr().cast(), b, 4000, stream));
        ok!(cuMemFreeAsync(b, stream));
        ok!(cuStreamSynchronize(stream));
        assert!((0..1000).all(|i| y[i] == round as f32 * x[i] + 1.0), "{round}");
    }
    ok!(cuStreamDestroy(stream));
}

#[test]
fn freeing() {
    // Alone in its process: another thread could be given freed memory immediately.
    child!("freeing", { freeing_alone() });
}

fn freeing_alone() {
    let _gpu = Gpu::new();
    let mut c = Codes::new();
    let stream = stream();
    let (mut pooled, mut plain) = (0, 0);
    is!(c, 0, cuMemAllocAsync(&raw mut pooled, 1000, stream));
    is!(c, 0, cuMemAlloc(&raw mut plain, 1000));
    is!(c, 1, cuMemFreeAsync(pooled + 16, stream));
    // No call accepts the memory once its freeing is queued.
    let mut again = 0;
    is!(c, 0, cuMemAllocAsync(&raw mut again, 1000, stream));
    is!(c, 0, cuMemFreeAsync(again, stream));
    is!(c, 1, cuMemFreeAsync(again, stream));
    is!(c, 1, cuMemFree(again));
    is!(c, 500, cuMemGetAddressRange(&raw mut again, ptr::null_mut(), again));
    is!(c, 0, cuStreamSynchronize(stream));
    // Both ways of freeing accept both kinds of memory.
    is!(c, 0, cuMemFree(pooled));
    is!(c, 0, cuMemFreeAsync(plain, stream));
    is!(c, 0, cuMemFreeAsync(0, stream));
    is!(c, 0, cuMemAllocAsync(&raw mut pooled, 0, stream));
    is!(c, 1, cuMemAllocAsync(ptr::null_mut(), 8, stream));
    is!(c, 0, cuStreamSynchronize(stream));
    is!(c, 0, cuStreamDestroy(stream));
}

#[test]
fn freed_memory_is_invalid_at_once() {
    // Alone in its process: another thread could be given freed memory immediately.
    child!("freed_memory_is_invalid_at_once", {
        freed_memory_is_invalid_at_once_alone()
    });
}

fn freed_memory_is_invalid_at_once_alone() {
    let _gpu = Gpu::new();
    let mut c = Codes::new();
    let stream = stream();
    let pool = pool(0);
    let used = Attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT;
    let used_high = Attribute::CU_MEMPOOL_ATTR_USED_MEM_HIGH;
    let (mut address, mut base) = (0, 0);
    is!(c, 0, cuMemAllocFromPoolAsync(&raw mut address, 1000, pool, stream));
    // The pool counts exactly the requested bytes.
    c.that(bytes(pool, used) == 1000, || "used".into());
    is!(c, 0, cuMemFreeAsync(address, stream));
    is!(c, 1, cuMemFreeAsync(address, stream));
    is!(c, 1, cuMemFree(address));
    is!(c, 500, cuMemGetAddressRange(&raw mut base, ptr::null_mut(), address));
    c.that(bytes(pool, used) == 0, || "used after the free".into());
    c.that(bytes(pool, used_high) == 1000, || "most used".into());
    is!(c, 0, cuStreamSynchronize(stream));
    let reserved = Attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT;
    c.that(bytes(pool, reserved) == 0, || "reserved".into());
    is!(c, 2, cuMemAllocAsync(&raw mut address, 1 << 50, stream));
    is!(c, 1, cuMemFreeAsync(12345, stream));
    is!(c, 0, cuMemPoolDestroy(pool));
    is!(c, 0, cuStreamDestroy(stream));
}

#[test]
fn attributes() {
    let _gpu = Gpu::new();
    let mut c = Codes::new();
    let stream = stream();
    let pool = pool(0);
    for attribute in 1..=3 {
        let attribute = CUmemPool_attribute(attribute);
        let int = || {
            let mut value = -1_i32;
            let place = (&raw mut value).cast::<c_void>();
            ok!(cuMemPoolGetAttribute(pool, attribute, place));
            value
        };
        let mut off = 0_i32;
        c.that(int() == 1, || format!("{attribute:?}"));
        is!(c, 0, cuMemPoolSetAttribute(pool, attribute, (&raw mut off).cast()));
        c.that(int() == 0, || format!("{attribute:?} set to 0"));
    }
    let threshold = Attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
    c.that(bytes(pool, threshold) == 0, || "threshold at first".into());
    let mut most = u64::MAX;
    is!(c, 0, cuMemPoolSetAttribute(pool, threshold, (&raw mut most).cast()));
    c.that(bytes(pool, threshold) == u64::MAX, || {
        "threshold after it was set".into()
    });

    let used = Attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT;
    let used_high = Attribute::CU_MEMPOOL_ATTR_USED_MEM_HIGH;
    let reserved = Attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT;
    let reserved_high = Attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH;
    c.that(bytes(pool, used) == 0, || "used at first".into());
    let mut address = 0;
    is!(
        c,
        0,
        cuMemAllocFromPoolAsync(&raw mut address, (1 << 20) + 8, pool, stream)
    );
    is!(c, 0, cuStreamSynchronize(stream));
    c.that(bytes(pool, used) == (1 << 20) + 8, || "used".into());
    c.that(bytes(pool, reserved) >= 1 << 20, || "reserved".into());
    is!(c, 0, cuMemFreeAsync(address, stream));
    c.that(bytes(pool, used) == 0, || "used after the free".into());
    is!(c, 0, cuStreamSynchronize(stream));
    let most = bytes(pool, used_high);
    c.that(most == (1 << 20) + 8, || format!("most used: {most}"));
    c.that(bytes(pool, reserved) >= 1 << 20, || "reserved after the free".into());
    is!(c, 0, cuMemPoolTrimTo(pool, 0));
    c.that(bytes(pool, reserved) == 0, || "reserved after the trim".into());
    c.that(bytes(pool, reserved_high) >= 1 << 20, || "most reserved".into());

    let mut zero = 0_u64;
    let mut one = 1_u64;
    is!(c, 0, cuMemPoolSetAttribute(pool, used_high, (&raw mut zero).cast()));
    c.that(bytes(pool, used_high) == 0, || {
        "the high-water mark was not reset".into()
    });
    is!(c, 1, cuMemPoolSetAttribute(pool, used_high, (&raw mut one).cast()));
    is!(c, 1, cuMemPoolSetAttribute(pool, used, (&raw mut zero).cast()));
    is!(
        c,
        1,
        cuMemPoolGetAttribute(pool, CUmemPool_attribute(99), (&raw mut zero).cast())
    );
    is!(c, 0, cuMemPoolDestroy(pool));
    is!(c, 0, cuStreamDestroy(stream));
}

#[test]
fn the_current_pool() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let stream = stream();
    let own = pool(0);
    let mut current = ptr::null_mut();
    is!(c, 0, cuMemAllocFromPoolAsync(ptr::from_mut(&mut 0), 0, own, stream));
    is!(c, 0, cuDeviceGetMemPool(&raw mut current, 0));
    c.that(current == default_pool(), || {
        "the default pool is not current at first".into()
    });

    let mut address = 0;
    is!(c, 0, cuMemAllocFromPoolAsync(&raw mut address, 64, own, stream));
    let mut handle = ptr::null_mut::<c_void>();
    is!(
        c,
        0,
        cuPointerGetAttribute(
            (&raw mut handle).cast(),
            CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE,
            address
        )
    );
    c.that(handle.cast() == own, || "the memory belongs to another pool".into());
    // Memory outlives its pool.
    is!(c, 0, cuMemPoolDestroy(own));
    gpu.write(address, &[1_u32, 2, 3]);
    c.that(gpu.read::<u32>(address, 3) == [1, 2, 3], || "memory".into());
    is!(c, 0, cuMemFreeAsync(address, stream));
    is!(c, 0, cuStreamSynchronize(stream));

    is!(c, 1, cuMemPoolDestroy(default_pool()));
    is!(c, 0, cuStreamDestroy(stream));
}

#[test]
fn a_pool_has_a_limit() {
    let _gpu = Gpu::new();
    let mut c = Codes::new();
    let stream = stream();
    let pool = pool(64 << 20);
    let (mut a, mut b) = (0, 0);
    is!(c, 0, cuMemAllocFromPoolAsync(&raw mut a, 40 << 20, pool, stream));
    is!(c, 2, cuMemAllocFromPoolAsync(&raw mut b, 40 << 20, pool, stream));
    // Memory whose freeing is queued can be allocated again on the same stream.
    for _ in 0..4 {
        is!(c, 0, cuMemFreeAsync(a, stream));
        is!(c, 0, cuMemAllocFromPoolAsync(&raw mut a, 40 << 20, pool, stream));
        is!(c, 0, cuMemsetD8Async(a + (39 << 20), 7, 100, stream));
    }
    is!(c, 0, cuMemFreeAsync(a, stream));
    is!(c, 0, cuStreamSynchronize(stream));
    is!(c, 0, cuMemPoolDestroy(pool));
    is!(c, 0, cuStreamDestroy(stream));
}

#[test]
fn access_to_a_pool() {
    let _gpu = Gpu::new();
    let mut c = Codes::new();
    let pool = pool(0);
    let mut location = on_device(0);
    let mut flags = CUmemAccess_flags(9);
    is!(c, 0, cuMemPoolGetAccess(&raw mut flags, pool, &raw mut location));
    c.that(flags.0 == 3, || format!("{flags:?}"));
    let access = CUmemAccessDesc {
        location: on_device(0),
        flags: CUmemAccess_flags(3),
    };
    is!(c, 0, cuMemPoolSetAccess(pool, &raw const access, 1));
    is!(c, 0, cuMemPoolSetAccess(pool, &raw const access, 0));
    is!(c, 1, cuMemPoolSetAccess(pool, ptr::null(), 0));
    is!(c, 0, cuMemPoolDestroy(pool));
    let mut other = props(0);
    other.allocType = CUmemAllocationType(0);
    let mut made = ptr::null_mut();
    is!(c, 1, cuMemPoolCreate(&raw mut made, &raw const other));
    let mut nowhere = props(0);
    nowhere.location = on_device(99);
    is!(c, 1, cuMemPoolCreate(&raw mut made, &raw const nowhere));
}
