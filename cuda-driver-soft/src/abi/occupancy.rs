//! Occupancy.

use std::ffi::{c_int, c_uint};

use cuda_driver_sys::{CUfunction, CUoccupancyB2DSize};

use super::args::Caller;
use super::exports;
use crate::driver::error::{Error, Result};
use crate::driver::function;
use crate::driver::occupancy;

fn max_active(
    c: Caller,
    out: *mut c_int,
    function: CUfunction,
    threads: c_int,
    dynamic: usize,
) -> Result<()> {
    let device = function::current_device()?;
    let out = c.out(out)?;
    let function = function::get_or_of_kernel(function as usize)?;
    out.set(occupancy::max_active_blocks(&function, device, threads, dynamic as u64)? as c_int);
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
    let device = function::current_device()?;
    let (grid, block) = (c.out(grid)?, c.out(block)?);
    let function = function::get_or_of_kernel(function as usize)?;
    let dynamic_of = |threads: c_int| match size {
        // SAFETY: the caller vouches for its function, which takes the number of threads and gives bytes.
        Some(size) => unsafe { size(threads) },
        None => dynamic,
    };
    let (is_grid, is_block) = occupancy::best_block(&function, device, limit, dynamic_of)?;
    grid.set(is_grid);
    block.set(is_block);
    Ok(())
}

exports! {
    fn cuOccupancyMaxActiveBlocksPerMultiprocessor [c] (out: *mut c_int, function: CUfunction, threads: c_int, dynamic: usize) {
        max_active(c, out, function, threads, dynamic)
    }

    fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags [c] (out: *mut c_int, function: CUfunction, threads: c_int, dynamic: usize, flags: c_uint) {
        function::current_device()?;
        if flags > 1 {
            return Err(Error::INVALID_VALUE);
        }
        max_active(c, out, function, threads, dynamic)
    }

    fn cuOccupancyMaxPotentialBlockSize [c] (grid: *mut c_int, block: *mut c_int, function: CUfunction, size: CUoccupancyB2DSize, dynamic: usize, limit: c_int) {
        best(c, grid, block, function, size, dynamic, limit)
    }

    fn cuOccupancyMaxPotentialBlockSizeWithFlags [c] (grid: *mut c_int, block: *mut c_int, function: CUfunction, size: CUoccupancyB2DSize, dynamic: usize, limit: c_int, flags: c_uint) {
        if flags > 1 {
            return Err(Error::INVALID_VALUE);
        }
        best(c, grid, block, function, size, dynamic, limit)
    }

    fn cuOccupancyAvailableDynamicSMemPerBlock [c] (out: *mut usize, function: CUfunction, blocks: c_int, threads: c_int) {
        let device = function::current_device()?;
        let out = c.out(out)?;
        let function = function::get_or_of_kernel(function as usize)?;
        out.set(occupancy::available_dynamic(&function, device, blocks, threads)? as usize);
        Ok(())
    }
}
