//! Tests of managed memory: prefetches and advice, which can be queried and change no results.

use std::ffi::{c_int, c_void};

use cuda_driver::sys::*;

use crate::common::Codes;
use crate::common::gpu::Gpu;
use crate::{arguments, is, ok};

/// `CU_DEVICE_CPU`
const CPU: c_int = -1;
/// `CU_DEVICE_INVALID`
const NOWHERE: c_int = -2;

fn managed(bytes: usize) -> CUdeviceptr {
    let mut address = 0;
    ok!(cuMemAllocManaged(&raw mut address, bytes, 1));
    address
}

/// Returns an attribute of a range by its number: 1 read mostly, 2 preferred location, 4 last prefetch location, 5 to 8
/// the types and IDs of these two locations.
fn attribute(which: u32, address: CUdeviceptr, bytes: usize) -> c_int {
    let mut value = 77;
    ok!(cuMemRangeGetAttribute(
        (&raw mut value).cast::<c_void>(),
        4,
        CUmem_range_attribute(which),
        address,
        bytes
    ));
    value
}

#[test]
fn prefetches_keep_the_contents() {
    let gpu = Gpu::new();
    let kernel = gpu.kernel("saxpy.ptx", "saxpy");
    let (x, y) = (managed(4000), managed(4000));
    for i in 0..1000 {
        // SAFETY: managed memory of this size, which no kernel uses at the moment.
        unsafe {
            (x as *mut f32).add(i).write(i as f32);
            (y as *mut f32).add(i).write(1.0);
        }
    }
    let stream = std::ptr::null_mut();
    ok!(cuMemPrefetchAsync(x, 4000, 0, stream));
    ok!(cuMemPrefetchAsync(y, 4000, 0, stream));
    gpu.launch(
        kernel,
        [4, 1, 1],
        [256, 1, 1],
        0,
        &mut arguments![3_f32, x, y, 1000_u64],
    );
    ok!(cuMemPrefetchAsync(y, 4000, CPU, stream));
    ok!(cuCtxSynchronize());
    // SAFETY: managed memory of this size, which the kernel has written, and which it no longer uses.
    let sums = unsafe { std::slice::from_raw_parts(y as *const f32, 1000) };
    assert!(sums.iter().enumerate().all(|(i, v)| *v == 3.0 * i as f32 + 1.0));
    assert_eq!(attribute(4, x, 4000), 0);
    assert_eq!(attribute(4, y, 4000), CPU);
    ok!(cuMemFree(x));
    ok!(cuMemFree(y));
}

#[test]
fn advice_and_queries_of_a_range() {
    let _gpu = Gpu::new();
    let mut c = Codes::new();
    const MIB: usize = 1 << 20;
    let address = managed(8 * MIB);
    for which in [1, 2, 4] {
        let expected = if which == 1 { 0 } else { NOWHERE };
        let seen = attribute(which, address, 8 * MIB);
        c.that(seen == expected, || format!("attribute {which} at first: {seen}"));
    }
    let second = address + 2 * MIB as u64;
    let advise = |address, bytes, advice, device| {
        // SAFETY: the range is managed memory.
        unsafe { cuMemAdvise(address, bytes, CUmem_advise(advice), device) }.0
    };
    c.is(0, "read mostly", advise(second, 2 * MIB, 1, 0));
    c.is(0, "preferred", advise(address, 8 * MIB, 3, CPU));
    c.is(0, "accessed by", advise(address, 4 * MIB, 5, 0));
    c.is(0, "accessed by the host", advise(second, 2 * MIB, 5, CPU));
    let parts = [
        (1, second, 2, 1),
        (1, address, 4, 0),
        (2, address, 8, CPU),
        (2, second, 1, CPU),
    ];
    for (which, at, mib, expected) in parts {
        let seen = attribute(which, at, mib * MIB);
        c.that(seen == expected, || format!("attribute {which} of {mib} MiB: {seen}"));
    }
    let mut who = [7_i32; 3];
    is!(
        c,
        0,
        cuMemRangeGetAttribute(who.as_mut_ptr().cast(), 12, CUmem_range_attribute(3), address, 4 * MIB)
    );
    c.that(who == [0, NOWHERE, NOWHERE], || format!("accessed by {who:?}"));
    c.is(0, "no preferred location", advise(address, 8 * MIB, 4, 0));
    c.is(0, "not read mostly", advise(address, 8 * MIB, 2, 0));
    let seen = attribute(2, address, 8 * MIB);
    c.that(seen == NOWHERE, || format!("preferred location {seen}"));
    let seen = attribute(1, second, MIB);
    c.that(seen == 0, || format!("read mostly: {seen}"));

    c.is(1, "unknown advice", advise(address, MIB, 99, 0));
    c.is(101, "no such device", advise(address, MIB, 3, 99));
    c.is(1, "too long", advise(address, 9 * MIB, 1, 0));
    is!(c, 0, cuMemFree(address));
    let mut plain = 0;
    is!(c, 0, cuMemAlloc(&raw mut plain, MIB));
    c.is(1, "not managed", advise(plain, MIB, 1, 0));
    is!(c, 0, cuMemFree(plain));
}

#[test]
fn locations_have_a_type_and_an_id() {
    let _gpu = Gpu::new();
    let mut c = Codes::new();
    let address = managed(8192);
    let mut stream = std::ptr::null_mut();
    is!(c, 0, cuStreamCreate(&raw mut stream, 1));
    is!(c, 0, cuMemPrefetchAsync(address, 8192, CPU, stream));
    is!(c, 0, cuMemAdvise(address, 8192, CUmem_advise(3), 0));
    // The preferred and the last prefetch location as device numbers, then the type and the ID of each.
    for (which, expected) in [(2, 0), (4, CPU), (5, 1), (6, 0), (7, 2), (8, CPU)] {
        let seen = attribute(which, address, 8192);
        c.that(seen == expected, || format!("attribute {which}: {seen}"));
    }
    let mut context = std::ptr::null_mut();
    is!(c, 0, cuCtxGetCurrent(&raw mut context));
    is!(c, 0, cuCtxSetCurrent(std::ptr::null_mut()));
    is!(c, 201, cuMemAdvise(address, 8192, CUmem_advise(1), 0));
    let mut value = 0_i32;
    is!(
        c,
        201,
        cuMemRangeGetAttribute(
            (&raw mut value).cast::<c_void>(),
            4,
            CUmem_range_attribute(1),
            address,
            8192
        )
    );
    // The stream determines the context.
    is!(c, 0, cuMemPrefetchAsync(address, 8192, 0, stream));
    is!(c, 201, cuMemPrefetchAsync(address, 8192, 0, std::ptr::null_mut()));
    is!(c, 201, cuMemAdvise(address, 8192, CUmem_advise(3), 77));
    is!(c, 0, cuCtxSetCurrent(context));
    // Managed memory cannot be freed in stream order.
    is!(c, 801, cuMemFreeAsync(address, stream));
    is!(c, 0, cuMemAdvise(address, 8192, CUmem_advise(1), 0));
    is!(c, 0, cuStreamDestroy(stream));
    is!(c, 0, cuMemFree(address));
}
