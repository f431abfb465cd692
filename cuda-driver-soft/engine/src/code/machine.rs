//! What handlers see of the worker that runs them.

use crate::code::Code;
use crate::fault::FaultKind;
use crate::lanes::Mask;
use crate::memory::warp::{AccessCache, Refusal, Refused, Spaces};
use crate::semantics::affine::Rows;
use ptx::ir::{FuncId, Space};

/// The state of a worker that handlers use.
#[derive(Debug)]
pub(crate) struct Machine<'m> {
    /// Memory.
    pub(crate) spaces: Spaces<'m>,
    /// By memory instruction of the running function: what it remembers.
    pub(crate) caches: Vec<AccessCache<'m>>,
    /// The same of the other functions, by function.
    pub(crate) other_caches: Vec<Vec<AccessCache<'m>>>,
    /// The running function.
    pub(crate) function: FuncId,
    /// Where a branch goes.
    pub(crate) target: u32,
    /// Lanes that a branch takes there, or that the next instruction is for.
    pub(crate) taken: Mask,
    /// What went wrong, and in which lane.
    pub(crate) fault: Option<(FaultKind, usize)>,
    /// Jumps backwards that the running split may still do.
    pub(crate) quantum: i64,
    /// The kernel has loads that see what other threads do: a loop may be waiting for them.
    pub(crate) spins: bool,
    /// Bytes of local memory that a thread may have.
    pub(crate) stack_limit: u64,
    /// Bytes that the context's kernels may have from `malloc` together.
    pub(crate) heap_limit: u64,
    /// What threads have printed.
    pub(crate) output: Vec<u8>,
    /// The context that owns what threads allocate.
    pub(crate) owner: u64,
    /// Lanes of the running warp that have not exited.
    pub(crate) live: Mask,
    /// How the lanes of each warp lie in the block.
    pub(crate) rows: Rows,
    /// The launch is one of clusters.
    pub(crate) clusters: bool,
    /// The running warp's number in its block.
    pub(crate) warp: u32,
    /// Instructions of a warp that have been run, counted at branches.
    pub(crate) steps: u64,
    /// `steps` when the running block was last taken up, less what it had run before.
    pub(crate) block_start: u64,
    /// How often the block has read its clock.
    pub(crate) clock_reads: u64,
}

impl Machine<'_> {
    /// How the lanes of a warp lie in the block, for code that was made for several rows or for one.
    #[inline(always)]
    pub(crate) fn lane_rows<const GRID: bool>(&self) -> Rows {
        if GRID { self.rows } else { Rows::ONE }
    }

    /// Makes a function the running one.
    #[inline]
    pub(crate) fn switch_to(&mut self, function: FuncId, code: &Code) {
        if self.function != function {
            self.switch(function, code);
        }
    }

    fn switch(&mut self, function: FuncId, code: &Code) {
        for id in [self.function, function] {
            std::mem::swap(&mut self.caches, &mut self.other_caches[id.0 as usize]);
        }
        self.function = function;
        if self.caches.len() < code.caches as usize {
            self.caches
                .resize_with(code.caches as usize, AccessCache::default);
        }
    }

    /// The virtual clock of the block: it only goes forward, and by the same steps in each run.
    pub(crate) fn read_clock(&mut self) -> u64 {
        self.clock_reads += 1;
        self.steps.wrapping_sub(self.block_start) * 4 + self.clock_reads * 32
    }

    /// Records a refused access as the fault.
    #[cold]
    pub(crate) fn refuse(&mut self, refusal: Refusal, size: u32, write: bool) {
        let Refusal {
            why,
            lane,
            address,
            space,
        } = refusal;
        let kind = match (why, space) {
            (Refused::Misaligned, _) => FaultKind::Misaligned {
                address,
                size,
                write,
                space,
            },
            (Refused::Outside, Space::Shared | Space::SharedCluster) => {
                FaultKind::SharedOutOfRange {
                    address,
                    size,
                    write,
                    available: self.spaces.shared.len() as u32,
                }
            }
            (Refused::NoBlock, _) => FaultKind::NoBlock { address },
            (Refused::Outside | Refused::OutsideOfBlock, _) => FaultKind::IllegalAddress {
                address,
                size,
                write,
                space,
            },
        };
        self.fault = Some((kind, lane));
    }
}
