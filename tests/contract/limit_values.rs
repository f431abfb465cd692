//! Tests of a context's limits: defaults, rounding, and refused values.

use cuda_driver::sys::*;

use crate::common::gpu::Gpu;
use crate::common::{Codes, driver_version, is_software, needs};
use crate::is;

fn limit(c: &mut Codes, limit: CUlimit) -> usize {
    let mut value = 7;
    is!(c, 0, cuCtxGetLimit(&raw mut value, limit));
    value
}

#[test]
fn rounding_and_bounds() {
    let _gpu = Gpu::new();
    let mut c = Codes::new();
    let stack = CUlimit::CU_LIMIT_STACK_SIZE;
    let fifo = CUlimit::CU_LIMIT_PRINTF_FIFO_SIZE;
    let heap = CUlimit::CU_LIMIT_MALLOC_HEAP_SIZE;
    let pending = CUlimit::CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT;
    let granularity = CUlimit::CU_LIMIT_MAX_L2_FETCH_GRANULARITY;
    for (which, default) in [(stack, 1024), (heap, 8 << 20), (pending, 2048), (granularity, 64)] {
        let value = limit(&mut c, which);
        c.that(value == default, || format!("{which:?}: {value}, not {default}"));
    }
    let mut processors = 0;
    let count = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
    is!(c, 0, cuDeviceGetAttribute(&raw mut processors, count, 0));
    // 64 KiB for each multiprocessor.
    let default = limit(&mut c, fifo);
    c.that(default == (processors as usize) << 16, || {
        format!("{default} bytes for printf on {processors} multiprocessors")
    });
    for (which, value, becomes) in [
        (stack, 0, 0),
        (stack, 100, 112),
        (stack, 1000, 1008),
        (stack, 1024, 1024),
        (stack, 5000, 5008),
        (fifo, 0, 512 << 10),
        (fifo, (512 << 10) + 1, (512 << 10) + 256),
        (fifo, 3_000_000, 3_000_064),
        (heap, 0, 4 << 20),
        (heap, (4 << 20) + 1, (4 << 20) + (64 << 10)),
        (heap, 9_000_000, 9_043_968),
        (pending, 0, 32),
        (pending, 100, 100),
        (pending, 599_187, 599_186),
        (pending, 1 << 40, 599_186),
        (granularity, 0, 0),
        (granularity, 100, 100),
        (granularity, 128, 128),
    ] {
        is!(c, 0, cuCtxSetLimit(which, value));
        let now = limit(&mut c, which);
        c.that(now == becomes, || {
            format!("{which:?} set to {value}: {now}, not {becomes}")
        });
    }
    for (which, value) in [
        (stack, 523_728),
        (stack, 524_272),
        (stack, 1 << 20),
        (stack, 1 << 40),
        (granularity, 129),
        (granularity, 1 << 40),
    ] {
        let before = limit(&mut c, which);
        is!(c, 1, cuCtxSetLimit(which, value));
        let after = limit(&mut c, which);
        c.that(before == after, || format!("{which:?}: {before} became {after}"));
    }
}

#[test]
fn unsupported_and_read_only_limits() {
    let _gpu = Gpu::new();
    let mut c = Codes::new();
    let mut value = 0;
    // DEV_RUNTIME_SYNC_DEPTH and CIG_SHMEM_FALLBACK_ENABLED.
    for number in [3, 9] {
        is!(c, 215, cuCtxGetLimit(&raw mut value, CUlimit(number)));
        is!(c, 215, cuCtxSetLimit(CUlimit(number), 1));
    }
    // Numbers that driver 580 does not know; for newer drivers, 10 is `CU_LIMIT_PER_BLOCK_MEMORY_SIZE`.
    for number in [10, 11, 100_000] {
        is!(c, 1, cuCtxGetLimit(&raw mut value, CUlimit(number)));
        is!(c, 1, cuCtxSetLimit(CUlimit(number), 1));
    }
    if driver_version() >= 12050 || is_software() {
        // SHMEM_SIZE (7) and CIG_ENABLED (8) cannot be set.
        let most = limit(&mut c, CUlimit(7));
        c.that(most >= 48 << 10, || format!("shared memory: {most}"));
        is!(c, 800, cuCtxSetLimit(CUlimit(7), 64));
        is!(c, 800, cuCtxSetLimit(CUlimit(8), 64));
    } else {
        needs("a driver of CUDA 12.5 or later for the limits of graphics contexts");
    }
}
