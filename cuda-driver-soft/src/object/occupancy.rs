//! Occupancy: the number of blocks of a kernel that fit on a multiprocessor.
//!
//! The formula is the hardware's. The number of registers of a kernel is an estimate here, so the results are
//! estimates, too.

use cuda_driver_sys::CUdevice_attribute as Attribute;

use crate::object::device::Device;
use crate::object::function::Function;
use crate::object::kernel_attribute as attribute;
use crate::object::register_limit;
use crate::state::error::{Error, Result};

/// Shared memory is allocated to a block in units of this many bytes.
const SHARED_UNIT: u64 = 128;
const WARP: u32 = 32;

/// Returns the shared memory of a multiprocessor in bytes; the rest of the memory on the chip is L1 cache. This is the
/// maximum, or the function's preferred carve-out, at least `block` bytes, rounded up to a size that an H200 supports.
fn shared_capacity(function: &Function, device: &Device, block: u64) -> u64 {
    const STEPS_KIB: [u64; 9] = [8, 16, 32, 64, 100, 132, 164, 196, 228];
    let most = u64::from(device.limit(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR));
    let preferred = function.attribute(attribute::PREFERRED_SHARED_MEMORY_CARVEOUT);
    let Ok(percent @ 0..) = preferred.map(i64::from) else {
        return most;
    };
    let wanted = (most * percent.unsigned_abs() / 100).max(block);
    let steps = STEPS_KIB.iter().map(|kib| kib << 10);
    steps
        .filter(|&bytes| bytes < most)
        .find(|&bytes| bytes >= wanted)
        .unwrap_or(most)
}

/// Returns the number of blocks of `threads` threads with `dynamic` bytes of dynamic shared memory that fit on a
/// multiprocessor; 0 if the kernel cannot run with such blocks.
pub(crate) fn blocks_per_multiprocessor(function: &Function, device: &Device, threads: u32, dynamic: u64) -> u32 {
    if threads == 0 || threads > device.limit(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK) {
        return 0;
    }
    let warps = threads.div_ceil(WARP);
    let by_threads = device.limit(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR) / (warps * WARP);
    let by_blocks = device.limit(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
    let by_registers = register_limit::warps(&function.kernel, device) / warps;
    let reserved = u64::from(device.limit(Attribute::CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK));
    let used = u64::from(function.kernel.shared_bytes()).saturating_add(dynamic);
    if dynamic > u64::from(function.max_dynamic_shared()) {
        return 0;
    }
    let per_block = (used + reserved).next_multiple_of(SHARED_UNIT);
    let by_shared = match per_block {
        0 => u64::from(u32::MAX),
        bytes => shared_capacity(function, device, bytes) / bytes,
    };
    by_threads
        .min(by_blocks)
        .min(by_registers)
        .min(u32::try_from(by_shared).unwrap_or(u32::MAX))
}

/// `cuOccupancyMaxActiveBlocksPerMultiprocessor`
pub(crate) fn max_active_blocks(function: &Function, device: &Device, threads: i32, dynamic: u64) -> Result<u32> {
    let threads = u32::try_from(threads)
        .ok()
        .filter(|&n| n > 0)
        .ok_or(Error::CUDA_ERROR_INVALID_VALUE)?;
    Ok(blocks_per_multiprocessor(function, device, threads, dynamic))
}

/// `cuOccupancyMaxPotentialBlockSize`: returns the smallest grid with the most resident threads, and its block size.
/// `limit` is the maximum block size, or 0 for that of the kernel. `dynamic` returns the bytes of dynamic shared memory
/// of a block with a given number of threads.
pub(crate) fn best_block(
    function: &Function,
    device: &Device,
    limit: i32,
    dynamic: impl Fn(i32) -> usize,
) -> Result<(i32, i32)> {
    let most = match u32::try_from(limit) {
        Ok(0) => function.max_threads(),
        Ok(limit) => limit.min(function.max_threads()),
        Err(_) => return Err(Error::CUDA_ERROR_INVALID_VALUE),
    };
    let (mut best, mut best_threads, mut best_blocks) = (0, 0, 0);
    let mut threads = most;
    while threads > 0 {
        let blocks = blocks_per_multiprocessor(function, device, threads, dynamic(threads as i32) as u64);
        if blocks * threads > best_threads {
            (best, best_threads, best_blocks) = (threads, blocks * threads, blocks);
        }
        // After the maximum itself, tries only whole warps, in descending order.
        threads = if threads % WARP == 0 {
            threads - WARP
        } else {
            threads - threads % WARP
        };
    }
    Ok((
        (best_blocks * device.limit(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)) as i32,
        best as i32,
    ))
}

/// `cuOccupancyAvailableDynamicSMemPerBlock`: returns the bytes available to each of `blocks` blocks on a
/// multiprocessor.
pub(crate) fn available_dynamic(function: &Function, device: &Device, blocks: i32, threads: i32) -> Result<u64> {
    let blocks = u64::try_from(blocks)
        .ok()
        .filter(|&n| n > 0)
        .ok_or(Error::CUDA_ERROR_INVALID_VALUE)?;
    if max_active_blocks(function, device, threads, 0)? as u64 <= blocks.saturating_sub(1) {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    // Driver 580 does not subtract the shared memory reserved per block.
    let share = u64::from(device.limit(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR))
        / blocks
        / SHARED_UNIT
        * SHARED_UNIT;
    let own = u64::from(function.kernel.shared_bytes());
    let most = u64::from(function.max_dynamic_shared());
    Ok(share.saturating_sub(own).min(most))
}
