//! The part of a worker's state that handlers see.

#![forbid(unsafe_code)]

use super::compiled::{CompiledContext, Window};
use super::watch::Watch;
use crate::fault::FaultKind;
use crate::lanes::Mask;
use crate::memory::warp::{AccessCache, Refusal, Refused, Spaces};
use ptx::ir::{FuncId, Space};

/// Number of freed bytes after which a worker ends.
const MUCH_FREED: u64 = 16 << 20;

/// The part of a worker's state that handlers see.
#[derive(Debug)]
pub(crate) struct Machine<'m> {
    /// The state spaces.
    pub(crate) spaces: Spaces<'m>,
    /// Access caches of the running function, by memory instruction.
    pub(crate) caches: Vec<AccessCache<'m>>,
    /// Access caches of the kernel for groups of lanes that run compiled code, by group.
    pub(crate) group_caches: Vec<Vec<AccessCache<'m>>>,
    /// Windows of the memory instructions of compiled code.
    pub(crate) windows: Vec<Window<'m>>,
    /// The context of compiled code, kept here while no such code runs; `None` before the first run.
    pub(crate) context: Option<Box<CompiledContext>>,
    /// The number of the block whose constants are in [`context`](Self::context).
    pub(crate) uniforms_of: Option<u64>,
    /// Access caches of the other functions, by function.
    pub(crate) other_caches: Vec<Vec<AccessCache<'m>>>,
    /// The running function.
    pub(crate) function: FuncId,
    /// Target of a branch, or number of a barrier.
    pub(crate) target: u32,
    /// Lanes that take a branch, or that the next instruction runs for.
    pub(crate) taken: Mask,
    /// The fault, and the lane that raised it.
    pub(crate) fault: Option<(FaultKind, usize)>,
    /// Backward jumps that the running split, a set of lanes at one instruction, may still take.
    pub(crate) quantum: i64,
    /// True if the kernel has accesses whose results depend on other threads, so that its loops may wait for them.
    pub(crate) spins: bool,
    /// Limit on the local memory of a thread, in bytes.
    pub(crate) stack_limit: u64,
    /// Limit in bytes on the memory that the context's kernels may allocate with `malloc`.
    pub(crate) heap_limit: u64,
    /// Bytes that threads have freed since this worker began, plus the host's overhead for each allocation. The host
    /// keeps this memory until the worker ends.
    pub(crate) freed: u64,
    /// Output of `printf`.
    pub(crate) output: Vec<u8>,
    /// The context that owns the memory that threads allocate.
    pub(crate) owner: u64,
    /// Lanes of the running warp that have not exited.
    pub(crate) live: Mask,
    /// True for a launch with clusters.
    pub(crate) clusters: bool,
    /// The running warp's number in its block.
    pub(crate) warp: u32,
    /// Warp instructions run so far, counted at branches.
    pub(crate) steps: u64,
    /// Instructions of [`steps`](Self::steps) that compiled code ran, or the interpreter for it.
    pub(crate) compiled_steps: u64,
    /// Instructions that the interpreter ran for groups of lanes in compiled code.
    pub(crate) called_steps: u64,
    /// `steps` when the running block was last resumed, minus the instructions that the block had run before.
    pub(crate) block_start: u64,
    /// Number of times that the block has read its clock.
    pub(crate) clock_reads: u64,
    /// The observers of an observed launch.
    pub(crate) watch: Option<Box<Watch>>,
}

impl Machine<'_> {
    /// Returns true if the worker should end soon, because the host keeps much freed memory.
    #[inline]
    pub(crate) fn has_freed_much(&self) -> bool {
        self.freed >= MUCH_FREED
    }

    /// Makes `function`, which has `caches` access caches, the running function.
    #[inline]
    pub(crate) fn switch_to(&mut self, function: FuncId, caches: u32) {
        if self.function != function {
            self.switch(function, caches);
        }
    }

    fn switch(&mut self, function: FuncId, caches: u32) {
        for id in [self.function, function] {
            std::mem::swap(&mut self.caches, &mut self.other_caches[id.0 as usize]);
        }
        self.function = function;
        if self.caches.len() < caches as usize {
            self.caches.resize_with(caches as usize, AccessCache::default);
        }
    }

    /// Reads the virtual clock of the block. It never decreases, and is the same in each run.
    pub(crate) fn read_clock(&mut self) -> u64 {
        self.clock_reads += 1;
        self.steps.wrapping_sub(self.block_start) * 4 + self.clock_reads * 32
    }

    /// Records a refused access as the fault.
    #[cold]
    pub(crate) fn refuse(&mut self, refusal: Refusal, size: u32, write: bool) {
        self.fault = Some((self.fault_of(refusal, size, write), refusal.lane));
    }

    /// Returns the fault of a refused access of `size` bytes.
    #[cold]
    pub(crate) fn fault_of(&self, refusal: Refusal, size: u32, write: bool) -> FaultKind {
        let Refusal {
            why, address, space, ..
        } = refusal;
        match (why, space) {
            (Refused::Misaligned, _) => FaultKind::Misaligned {
                address,
                size,
                write,
                space,
            },
            (Refused::Outside, Space::Shared | Space::SharedCluster) => FaultKind::SharedOutOfRange {
                address,
                size,
                write,
                available: self.spaces.shared.len().saturating_sub(self.spaces.slack) as u32,
            },
            (Refused::Outside, Space::Local) => FaultKind::LocalOutOfRange {
                address,
                size,
                write,
                available: self.spaces.local_end,
            },
            (Refused::NoBlock, _) => FaultKind::NoBlock { address },
            (Refused::Outside | Refused::OutsideOfBlock, _) => FaultKind::IllegalAddress {
                address,
                size,
                write,
                space,
            },
        }
    }
}
