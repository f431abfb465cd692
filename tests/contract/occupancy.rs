//! Tests of the occupancy calls: blocks per multiprocessor, suggested sizes of launches, shared memory that blocks may
//! use, and invalid queries.

use std::ptr::null_mut;

use cuda_driver::sys::*;

use crate::common::Codes;
use crate::common::gpu::Gpu;
use crate::is;

fn attribute(which: CUdevice_attribute) -> i32 {
    let mut value = 0;
    crate::ok!(cuDeviceGetAttribute(&raw mut value, which, 0));
    value
}

#[test]
fn blocks_of_a_multiprocessor() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let kernel = gpu.kernel("my_kernel.ptx", "my_kernel");
    let threads = attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
    let mut blocks = -1;
    is!(
        c,
        0,
        cuOccupancyMaxActiveBlocksPerMultiprocessor(&raw mut blocks, kernel, 1024, 0)
    );
    c.that(blocks == threads / 1024, || {
        format!("{blocks} blocks of 1024 threads, expected {}", threads / 1024)
    });
    // A block with too many threads or too much shared memory does not fit.
    for (block, dynamic) in [(1025, 0), (100_000, 0), (32, (48 << 10) + 1)] {
        is!(
            c,
            0,
            cuOccupancyMaxActiveBlocksPerMultiprocessor(&raw mut blocks, kernel, block, dynamic)
        );
        c.that(blocks == 0, || {
            format!("{blocks} blocks of {block} threads and {dynamic} bytes fit, expected none")
        });
    }
    for block in [0, -1] {
        is!(
            c,
            1,
            cuOccupancyMaxActiveBlocksPerMultiprocessor(&raw mut blocks, kernel, block, 0)
        );
    }
    is!(
        c,
        1,
        cuOccupancyMaxActiveBlocksPerMultiprocessor(null_mut(), kernel, 32, 0)
    );
    is!(
        c,
        400,
        cuOccupancyMaxActiveBlocksPerMultiprocessor(&raw mut blocks, null_mut(), 32, 0)
    );
    is!(
        c,
        1,
        cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&raw mut blocks, kernel, 32, 0, 2)
    );
}

#[test]
fn potential_block_sizes() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let kernel = gpu.kernel("my_kernel.ptx", "my_kernel");
    let processors = attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    let (mut grid, mut block) = (-1, -1);
    is!(
        c,
        0,
        cuOccupancyMaxPotentialBlockSize(&raw mut grid, &raw mut block, kernel, None, 0, 128)
    );
    c.that(block == 128 && grid % processors == 0 && grid > 0, || {
        format!("{grid} blocks of {block} threads, expected a multiple of {processors} blocks of 128")
    });
    is!(
        c,
        1,
        cuOccupancyMaxPotentialBlockSize(&raw mut grid, &raw mut block, kernel, None, 0, -1)
    );
    is!(
        c,
        0,
        cuOccupancyMaxPotentialBlockSize(&raw mut grid, &raw mut block, kernel, None, 100_000, 0)
    );
    c.that((grid, block) == (0, 0), || {
        format!("{grid} blocks of {block} threads with too much shared memory, expected 0 and 0")
    });
}

#[test]
fn available_shared_memory() {
    let gpu = Gpu::new();
    let mut c = Codes::new();
    let kernel = gpu.kernel("my_kernel.ptx", "my_kernel");
    let all = attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
    let all = usize::try_from(all).expect("a size");
    let mut bytes = 0;
    // Each block has an equal share of the multiprocessor's shared memory, rounded down to a multiple of 128 bytes, up
    // to the function's limit of 48 KiB.
    for blocks in [1, 2, 8, 16] {
        is!(
            c,
            0,
            cuOccupancyAvailableDynamicSMemPerBlock(&raw mut bytes, kernel, blocks, 32)
        );
        let share = all / blocks.cast_unsigned() as usize / 128 * 128;
        c.that(bytes == share.min(48 << 10), || {
            format!(
                "{bytes} bytes for each of {blocks} blocks, expected {}",
                share.min(48 << 10)
            )
        });
    }
    for (blocks, threads) in [(0, 32), (-1, 32), (3, 1024), (33, 32), (1, 0)] {
        is!(
            c,
            1,
            cuOccupancyAvailableDynamicSMemPerBlock(&raw mut bytes, kernel, blocks, threads)
        );
    }
}
