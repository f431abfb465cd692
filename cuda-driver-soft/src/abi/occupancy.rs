//! Exports of the occupancy calculator: the blocks and clusters that can be resident at once, and the block and cluster
//! sizes and the shared memory to launch with.

use std::ffi::{c_int, c_uint};
use std::sync::Arc;

use cuda_driver_sys::{CUdevice_attribute as Attribute, CUfunction, CUlaunchConfig, CUoccupancyB2DSize};

use super::args::Caller;
use super::{exports, launch};
use crate::call::lookup::current_context;
use crate::object::device::Device;
use crate::object::function::Function;
use crate::object::{cluster, green, library, occupancy, stream};
use crate::operation::launch::LaunchShape;
use crate::state::error::{Error, Result};

fn max_active(c: Caller, out: *mut c_int, function: CUfunction, threads: c_int, dynamic: usize) -> Result<()> {
    let context = current_context()?;
    let out = c.out(out)?;
    let function = library::function_or_kernel(function as usize, &context)?;
    out.set(occupancy::max_active_blocks(&function, context.device, threads, dynamic as u64)? as c_int);
    Ok(())
}

fn best(
    c: Caller,
    grid: *mut c_int,
    block: *mut c_int,
    function: CUfunction,
    size: CUoccupancyB2DSize,
    dynamic: usize,
    limit: c_int,
) -> Result<()> {
    let context = current_context()?;
    let (grid, block) = (c.out(grid)?, c.out(block)?);
    let function = library::function_or_kernel(function as usize, &context)?;
    let dynamic_of = |threads: c_int| match size {
        // SAFETY: the caller promises that its function is valid; it takes a number of threads and returns bytes.
        Some(size) => unsafe { size(threads) },
        None => dynamic,
    };
    let (found_grid, found_block) = occupancy::best_block(&function, context.device, limit, dynamic_of)?;
    grid.set(found_grid);
    block.set(found_block);
    Ok(())
}

/// Reads the arguments of the cluster occupancy queries. Returns the device with the number of multiprocessors that the
/// launch may use, the function, and the shape of the launch with its cluster size.
fn of_clusters(
    c: Caller,
    function: CUfunction,
    config: *const CUlaunchConfig,
) -> Result<((&'static Device, u32), Arc<Function>, LaunchShape)> {
    let context = current_context()?;
    let config = c.read(config)?;
    if function.is_null() {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    let function = library::function_or_kernel(function as usize, &context)?;
    let (mut shape, ..) = launch::described(c, &config)?;
    if shape.grid.contains(&0) || shape.block.contains(&0) {
        return Err(Error::CUDA_ERROR_INVALID_VALUE);
    }
    shape.cluster = cluster::of_launch(&function, context.device, shape.cluster, shape.grid)?;
    // The launch's stream may belong to a green context.
    let green = match config.hStream as usize {
        0..=2 => None,
        handle => stream::created(handle).ok().map(|stream| stream.green),
    };
    let part = green.filter(|&handle| handle != 0).map(green::get).transpose()?;
    let all = context
        .device
        .limit(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    let count = part.map_or(all, |green| green.numbers.len() as u32);
    Ok(((context.device, count), function, shape))
}

exports! {
    fn cuOccupancyMaxActiveClusters [c] (
        out: *mut c_int,
        function: CUfunction,
        config: *const CUlaunchConfig,
    ) {
        let out = c.out(out)?;
        let (device, function, shape) = of_clusters(c, function, config)?;
        let threads = shape
            .block
            .iter()
            .fold(1u32, |all, &n| all.saturating_mul(n));
        let count = shape.cluster.map_or(0, |cluster| {
            let blocks = cluster.iter().product();
            cluster::max_active(&function, device, blocks, (threads, shape.shared.into()))
        });
        out.set(count as c_int);
        Ok(())
    }

    fn cuOccupancyMaxPotentialClusterSize [c] (
        out: *mut c_int,
        function: CUfunction,
        config: *const CUlaunchConfig,
    ) {
        let out = c.out(out)?;
        let (device, function, shape) = of_clusters(c, function, config)?;
        let threads = shape
            .block
            .iter()
            .fold(1u32, |all, &n| all.saturating_mul(n));
        let fits = |blocks: &u32| {
            cluster::max_active(&function, device, *blocks, (threads, shape.shared.into())) > 0
        };
        // On driver 580, this query ignores the cluster size that a kernel requires.
        let size = (1..=cluster::most_blocks(&function))
            .rev()
            .find(fits)
            .unwrap_or(0);
        out.set(size as c_int);
        Ok(())
    }

    fn cuOccupancyMaxActiveBlocksPerMultiprocessor [c] (
        out: *mut c_int,
        function: CUfunction,
        threads: c_int,
        dynamic: usize,
    ) {
        max_active(c, out, function, threads, dynamic)
    }

    fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags [c] (
        out: *mut c_int,
        function: CUfunction,
        threads: c_int,
        dynamic: usize,
        flags: c_uint,
    ) {
        current_context()?;
        if flags > 1 {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        max_active(c, out, function, threads, dynamic)
    }

    fn cuOccupancyMaxPotentialBlockSize [c] (
        grid: *mut c_int,
        block: *mut c_int,
        function: CUfunction,
        size: CUoccupancyB2DSize,
        dynamic: usize,
        limit: c_int,
    ) {
        best(c, grid, block, function, size, dynamic, limit)
    }

    fn cuOccupancyMaxPotentialBlockSizeWithFlags [c] (
        grid: *mut c_int,
        block: *mut c_int,
        function: CUfunction,
        size: CUoccupancyB2DSize,
        dynamic: usize,
        limit: c_int,
        flags: c_uint,
    ) {
        if flags > 1 {
            return Err(Error::CUDA_ERROR_INVALID_VALUE);
        }
        best(c, grid, block, function, size, dynamic, limit)
    }

    fn cuOccupancyAvailableDynamicSMemPerBlock [c] (
        out: *mut usize,
        function: CUfunction,
        blocks: c_int,
        threads: c_int,
    ) {
        let context = current_context()?;
        let out = c.out(out)?;
        let function = library::function_or_kernel(function as usize, &context)?;
        out.set(occupancy::available_dynamic(&function, context.device, blocks, threads)? as usize);
        Ok(())
    }
}
