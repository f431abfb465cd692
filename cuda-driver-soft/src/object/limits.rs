//! Limits of contexts: defaults, rounding and bounds as measured on an H200.

use cuda_driver_sys::{CUdevice_attribute as Attribute, CUlimit};

use crate::object::device::Device;
use crate::state::error::{Error, Result};

/// Maximum stack size of a thread in bytes.
const MOST_STACK: u64 = 523_712;
/// The size of the FIFO of `printf` is a multiple of this many bytes.
const FIFO_UNIT: u64 = 256;
/// Range of the size of the FIFO of `printf` in bytes.
const FIFO: std::ops::RangeInclusive<u64> = 512 << 10..=2 << 30;
/// The heap size is a multiple of this many bytes.
const HEAP_UNIT: u64 = 64 << 10;
/// Minimum heap size in bytes.
const LEAST_HEAP: u64 = 4 << 20;
/// Range of the number of pending launches from the device.
const PENDING: std::ops::RangeInclusive<u64> = 32..=599_186;
/// Maximum granularity of fetches into L2 in bytes.
const MOST_GRANULARITY: u64 = 128;

/// The limits of a context.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    device: &'static Device,
    pub(crate) stack: u64,
    fifo: u64,
    pub(crate) heap: u64,
    pending: u64,
    granularity: u64,
    persisting: u64,
    /// True once a kernel was launched that may print. From then on, the size of the FIFO is fixed.
    pub(crate) prints: bool,
    /// True once a kernel was launched that may allocate from the heap. From then on, the size of the heap is fixed.
    pub(crate) allocates: bool,
}

/// Returns the unit, in bytes, of the part of L2 for persisting accesses: a sixteenth of L2.
fn persisting_unit(device: &Device) -> u64 {
    u64::from(device.limit(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)) / 16
}

impl Limits {
    /// Returns the limits of a new context.
    pub(crate) fn of(device: &'static Device) -> Limits {
        Limits {
            device,
            stack: 1 << 10,
            fifo: u64::from(device.limit(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)) << 16,
            heap: 8 << 20,
            pending: 2048,
            granularity: 64,
            persisting: 3 * persisting_unit(device),
            prints: false,
            allocates: false,
        }
    }

    /// `cuCtxGetLimit`
    pub(crate) fn get(&self, limit: CUlimit) -> Result<u64> {
        Ok(match limit {
            CUlimit::CU_LIMIT_STACK_SIZE => self.stack,
            CUlimit::CU_LIMIT_PRINTF_FIFO_SIZE => self.fifo,
            CUlimit::CU_LIMIT_MALLOC_HEAP_SIZE => self.heap,
            CUlimit::CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT => self.pending,
            CUlimit::CU_LIMIT_MAX_L2_FETCH_GRANULARITY => self.granularity,
            CUlimit::CU_LIMIT_PERSISTING_L2_CACHE_SIZE => self.persisting,
            CUlimit::CU_LIMIT_SHMEM_SIZE => self
                .device
                .limit(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
                .into(),
            CUlimit::CU_LIMIT_CIG_ENABLED => 0,
            // sm_90 has no limit on the depth of device-side synchronisation.
            CUlimit::CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH | CUlimit::CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED => {
                return Err(Error::CUDA_ERROR_UNSUPPORTED_LIMIT);
            }
            _ => return Err(Error::CUDA_ERROR_INVALID_VALUE),
        })
    }

    /// `cuCtxSetLimit`: rounds sizes up to a multiple of their unit. Some limits are clamped to their range; for
    /// others, a value above it is an error.
    pub(crate) fn set(&mut self, limit: CUlimit, value: u64) -> Result<()> {
        let up = |unit: u64| value.checked_next_multiple_of(unit).unwrap_or(u64::MAX);
        let at_most = |value: u64, most: u64| {
            if value <= most {
                Ok(value)
            } else {
                Err(Error::CUDA_ERROR_INVALID_VALUE)
            }
        };
        match limit {
            CUlimit::CU_LIMIT_STACK_SIZE => self.stack = at_most(up(16), MOST_STACK)?,
            CUlimit::CU_LIMIT_PRINTF_FIFO_SIZE if self.prints => {
                return Err(Error::CUDA_ERROR_INVALID_VALUE);
            }
            CUlimit::CU_LIMIT_PRINTF_FIFO_SIZE => self.fifo = up(FIFO_UNIT).clamp(*FIFO.start(), *FIFO.end()),
            CUlimit::CU_LIMIT_MALLOC_HEAP_SIZE if self.allocates => {
                return Err(Error::CUDA_ERROR_INVALID_VALUE);
            }
            CUlimit::CU_LIMIT_MALLOC_HEAP_SIZE => {
                let most = (self.device.total_memory() / 8).max(LEAST_HEAP);
                self.heap = up(HEAP_UNIT).clamp(LEAST_HEAP, most);
            }
            CUlimit::CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT => {
                self.pending = value.clamp(*PENDING.start(), *PENDING.end())
            }
            CUlimit::CU_LIMIT_MAX_L2_FETCH_GRANULARITY => self.granularity = at_most(value, MOST_GRANULARITY)?,
            CUlimit::CU_LIMIT_PERSISTING_L2_CACHE_SIZE => {
                let unit = persisting_unit(self.device);
                self.persisting = at_most(up(unit), 10 * unit)?;
            }
            CUlimit::CU_LIMIT_SHMEM_SIZE | CUlimit::CU_LIMIT_CIG_ENABLED => {
                return Err(Error::CUDA_ERROR_NOT_PERMITTED);
            }
            _ => return self.get(limit).map(|_| ()),
        }
        Ok(())
    }
}
