//! Occupancy: the numbers of blocks and clusters of a kernel that run at once.

use core::cell::Cell;
use core::ffi::c_int;
use core::ptr::NonNull;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::Function;
use super::attribute::check_versions;
use crate::launch::{LaunchAttribute, LaunchConfig, described};
use crate::{Result, checked, sys};

/// A block size, and the smallest grid of such blocks that fills the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockSize {
    /// Number of threads in a block; 0 if no block fits.
    pub threads: u32,
    /// Number of blocks.
    pub min_grid: u32,
}

impl BlockSize {
    #[inline]
    const fn new(threads: i32, min_grid: i32) -> Self {
        Self {
            threads: threads.unsigned_abs(),
            min_grid: min_grid.unsigned_abs(),
        }
    }
}

/// Converts a number for the driver. A number that does not fit becomes the largest `c_int`, which has the same effect.
#[inline]
fn int(number: u32) -> c_int {
    c_int::try_from(number).unwrap_or(c_int::MAX)
}

/// The closure of a query, and the panic that ended it.
struct Query<'a> {
    shared_bytes: &'a mut dyn FnMut(u32) -> usize,
    panic: Option<Box<dyn Any + Send>>,
}

thread_local! {
    /// The query that this thread is making. The driver's callback has no argument for it.
    static QUERY: Cell<Option<NonNull<Query<'static>>>> = const { Cell::new(None) };
}

/// Restores the thread's previous query when it is dropped, also if an interposer panics.
struct Restore(Option<NonNull<Query<'static>>>);

impl Drop for Restore {
    #[inline]
    fn drop(&mut self) {
        QUERY.set(self.0);
    }
}

/// Calls the closure of this thread's query. Returns 0 without a query, and after the closure panicked.
#[inline]
unsafe extern "system" fn shared_bytes(threads: c_int) -> usize {
    // The query is taken out of the cell, so that the closure is not called while it runs.
    let Some(query) = QUERY.take() else {
        return 0;
    };
    // SAFETY: the query lives until the driver's call returns, and nothing else uses it until then.
    let Query { shared_bytes, panic } = unsafe { &mut *query.as_ptr() };
    let mut bytes = 0;
    if panic.is_none() {
        match catch_unwind(AssertUnwindSafe(|| shared_bytes(threads.unsigned_abs()))) {
            Ok(found) => bytes = found,
            Err(payload) => *panic = Some(payload),
        }
    }
    QUERY.set(Some(query));
    bytes
}

impl Function {
    /// Returns the number of blocks of `block_size` threads, each with `dynamic_shared` bytes of dynamic shared memory,
    /// that run on a multiprocessor at once
    /// ([`cuOccupancyMaxActiveBlocksPerMultiprocessor`](checked::occupancy_max_active_blocks_per_multiprocessor)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for a block without threads.
    #[inline]
    #[doc(alias = "cuOccupancyMaxActiveBlocksPerMultiprocessor")]
    #[track_caller]
    pub fn max_active_blocks_per_multiprocessor(&self, block_size: u32, dynamic_shared: usize) -> Result<u32> {
        let _current = self.enter()?;
        // SAFETY: the function is live as long as its module.
        let blocks = unsafe {
            checked::occupancy_max_active_blocks_per_multiprocessor(self.raw, int(block_size), dynamic_shared)
        }?;
        Ok(blocks.unsigned_abs())
    }

    /// Same as [`max_active_blocks_per_multiprocessor`](Self::max_active_blocks_per_multiprocessor), with flags
    /// ([`cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags`](checked::occupancy_max_active_blocks_per_multiprocessor_with_flags)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for a block without threads, and for unknown flags.
    #[inline]
    #[doc(alias = "cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags")]
    #[track_caller]
    pub fn max_active_blocks_per_multiprocessor_with_flags(
        &self,
        block_size: u32,
        dynamic_shared: usize,
        flags: sys::CUoccupancy_flags,
    ) -> Result<u32> {
        let _current = self.enter()?;
        // SAFETY: the function is live as long as its module.
        let blocks = unsafe {
            checked::occupancy_max_active_blocks_per_multiprocessor_with_flags(
                self.raw,
                int(block_size),
                dynamic_shared,
                flags.0,
            )
        }?;
        Ok(blocks.unsigned_abs())
    }

    /// Returns the dynamic shared memory in bytes that each block can have if `blocks` blocks of `block_size` threads
    /// run on a multiprocessor at once
    /// ([`cuOccupancyAvailableDynamicSMemPerBlock`](checked::occupancy_available_dynamic_smem_per_block)).
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for 0 blocks, for blocks without threads, and if that many blocks do not fit
    /// on a multiprocessor.
    #[inline]
    #[doc(alias = "cuOccupancyAvailableDynamicSMemPerBlock")]
    #[track_caller]
    pub fn available_dynamic_shared(&self, blocks: u32, block_size: u32) -> Result<usize> {
        let _current = self.enter()?;
        // SAFETY: the function is live as long as its module.
        unsafe { checked::occupancy_available_dynamic_smem_per_block(self.raw, int(blocks), int(block_size)) }
    }

    /// Returns the block size with the most active threads, if each block has `dynamic_shared` bytes of dynamic shared
    /// memory and at most `limit` threads; 0 stands for no limit
    /// ([`cuOccupancyMaxPotentialBlockSize`](checked::occupancy_max_potential_block_size)).
    ///
    /// ```
    /// # use cuda_driver::{Context, Device, LaunchConfig, Module};
    /// # cuda_driver_soft::from_env(cuda_driver_soft::Prefer::Software).unwrap().install().unwrap();
    /// # cuda_driver::init()?;
    /// # let context = Context::create(Device::first()?)?;
    /// # let ptx = ".version 7.0 .target sm_52 .address_size 64 .visible .entry add() { ret; }";
    /// let add = Module::from_ptx(&context, ptx)?.function("add")?;
    /// let best = add.max_potential_block_size(0, 0)?;
    /// let config = LaunchConfig::covering(1_000_000, best.threads);
    ///
    /// // Each thread has 16 bytes of dynamic shared memory.
    /// let best = add.max_potential_block_size_with(|threads| 16 * threads as usize, 0)?;
    /// # assert!(best.threads >= 32 && config.block.x >= 32);
    /// # Ok::<(), cuda_driver::Error>(())
    /// ```
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    #[inline]
    #[doc(alias = "cuOccupancyMaxPotentialBlockSize")]
    #[track_caller]
    pub fn max_potential_block_size(&self, dynamic_shared: usize, limit: u32) -> Result<BlockSize> {
        let _current = self.enter()?;
        // SAFETY: the function is live as long as its module.
        let best = unsafe { checked::occupancy_max_potential_block_size(self.raw, None, dynamic_shared, int(limit)) }?;
        Ok(BlockSize::new(best.block_size, best.min_grid_size))
    }

    /// Returns the block size with the most active threads, if a block of `n` threads has `shared_bytes(n)` bytes of
    /// dynamic shared memory and at most `limit` threads; 0 stands for no limit
    /// ([`cuOccupancyMaxPotentialBlockSizeWithFlags`](checked::occupancy_max_potential_block_size_with_flags)).
    ///
    /// The driver calls the closure, so the closure must not wait for another thread that uses the driver.
    ///
    /// # Errors
    /// May return an error from earlier asynchronous work.
    ///
    /// # Panics
    /// Resumes a panic of the closure when the driver's call has returned.
    #[inline]
    #[doc(alias = "cuOccupancyMaxPotentialBlockSizeWithFlags")]
    #[doc(alias = "CUoccupancyB2DSize")]
    #[track_caller]
    pub fn max_potential_block_size_with(
        &self,
        mut shared_bytes: impl FnMut(u32) -> usize,
        limit: u32,
    ) -> Result<BlockSize> {
        let flags = sys::CUoccupancy_flags::CU_OCCUPANCY_DEFAULT;
        let _current = self.enter()?;
        let mut query = Query {
            shared_bytes: &mut shared_bytes,
            panic: None,
        };
        let restore = Restore(QUERY.replace(Some(NonNull::from(&mut query).cast())));
        // SAFETY: the function is live as long as its module. The callback uses the query, which outlives the call.
        let best = unsafe {
            checked::occupancy_max_potential_block_size_with_flags(
                self.raw,
                Some(self::shared_bytes),
                0,
                int(limit),
                flags.0,
            )
        };
        drop(restore);
        if let Some(payload) = query.panic {
            resume_unwind(payload);
        }
        let best = best?;
        Ok(BlockSize::new(best.block_size, best.min_grid_size))
    }

    /// Returns the number of clusters of a launch that run on the device at once
    /// ([`cuOccupancyMaxActiveClusters`](checked::occupancy_max_active_clusters)). Without a
    /// [`LaunchAttribute::cluster`], the number is 0, unless the kernel has a fixed cluster size.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for an invalid grid or block, `CUDA_ERROR_INVALID_CLUSTER_SIZE` for a cluster
    /// that is too large or does not divide the grid, and `CUDA_ERROR_NOT_SUPPORTED` if the driver is too old for an
    /// attribute.
    #[inline]
    #[doc(alias = "cuOccupancyMaxActiveClusters")]
    #[track_caller]
    pub fn max_active_clusters(&self, config: LaunchConfig, attributes: &[LaunchAttribute<'_>]) -> Result<u32> {
        check_versions(attributes, sys::Function::cuOccupancyMaxActiveClusters)?;
        let config = described(&config, attributes, core::ptr::null_mut());
        let _current = self.enter()?;
        // SAFETY: the function is live as long as its module, and the configuration points to the attributes.
        let clusters = unsafe { checked::occupancy_max_active_clusters(self.raw, &config) }?;
        Ok(clusters.unsigned_abs())
    }

    /// Returns the number of blocks in the largest cluster that a launch with this configuration and these attributes
    /// can have ([`cuOccupancyMaxPotentialClusterSize`](checked::occupancy_max_potential_cluster_size)). The size in a
    /// [`LaunchAttribute::cluster`] does not limit the result.
    ///
    /// # Errors
    /// Returns `CUDA_ERROR_INVALID_VALUE` for an invalid grid or block, `CUDA_ERROR_INVALID_CLUSTER_SIZE` for a cluster
    /// in the attributes that does not divide the grid, and `CUDA_ERROR_NOT_SUPPORTED` if the driver is too old for an
    /// attribute.
    #[inline]
    #[doc(alias = "cuOccupancyMaxPotentialClusterSize")]
    #[track_caller]
    pub fn max_potential_cluster_size(&self, config: LaunchConfig, attributes: &[LaunchAttribute<'_>]) -> Result<u32> {
        check_versions(attributes, sys::Function::cuOccupancyMaxPotentialClusterSize)?;
        let config = described(&config, attributes, core::ptr::null_mut());
        let _current = self.enter()?;
        // SAFETY: as above.
        let blocks = unsafe { checked::occupancy_max_potential_cluster_size(self.raw, &config) }?;
        Ok(blocks.unsigned_abs())
    }
}
