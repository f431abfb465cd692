//! An execution: a started launch, driven by the host threads that call [`Execution::work`].

#![forbid(unsafe_code)]

use super::queue::BlockQueue;
use super::rounding::RoundingGuard;
use super::shape::GridShape;
use super::started::StartedLaunch;
use super::upper_halves::UpperHalvesGuard;
use super::worker::Worker;
use crate::code::isa::Isa;
use crate::fault::{Fault, FaultKind, Report};
use crate::launch::Launch;
use crate::memory::address_space;
use crate::observe::ObservedLaunch;
use crate::program::history::Counts;
use crate::warp::tier;
use std::fmt;
use std::sync::{Arc, Mutex, TryLockError};

/// The outcome of a call of [`Execution::work`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The execution has ended.
    Finished,
    /// There is no block that this thread may run, but other threads still run blocks. One of them will return another
    /// value.
    NothingToTake,
    /// Blocks are left to take: the budget of the call is spent, the call has ended early to release memory, or another
    /// thread has just put blocks back.
    BudgetSpent,
}

/// Instructions that a cluster runs before another one may start: the cluster may be waiting for that one.
const PATIENCE: u64 = 1 << 22;
/// [`PATIENCE`] for a kernel whose blocks see stores of other blocks.
pub(crate) const SPIN_PATIENCE: u64 = 1 << 16;
/// [`PATIENCE`] for a cooperative launch of such a kernel: all its blocks start anyway, and most wait repeatedly for
/// the whole grid.
const COOPERATIVE_PATIENCE: u64 = 1 << 11;
/// Instructions that a block of a kernel whose blocks see stores of other blocks runs when it continues. Such a block
/// usually waits, and the one that it waits for may be the last to continue.
const SPIN_SLICE: u64 = COOPERATIVE_PATIENCE;
/// Backward jumps that a warp may take before the next warp of its block runs, in a kernel whose threads see stores of
/// other threads: the warp may be waiting for that one. A kernel that uses the heap has the same limit, because
/// its worker can end to release freed memory only when the warp pauses.
const SPIN_WARP_SHARE: i64 = 1 << 10;
/// [`SPIN_WARP_SHARE`] of a warp that is interpreted: the warp may be spinning on a lock that another one holds, and
/// several may spin in turn before that one continues.
const SPIN_INTERPRETED_SHARE: i64 = 1 << 7;
/// Bytes of registers, local and shared memory that the clusters in progress may need together, except in a cooperative
/// launch. At this limit, another one starts only when one of them has finished.
const ENOUGH_BEGUN: u64 = 1 << 30;
/// Number of clusters to which [`ENOUGH_BEGUN`] does not apply: as many may be in progress however large they are.
const LEAST_BEGUN: u64 = 4;

/// A launch in progress.
pub struct Execution {
    pub(crate) started: StartedLaunch,
    /// True if one thread at a time runs the blocks, so that results repeat or because an observer needs it.
    ordered: bool,
    /// Locked by the thread that runs blocks, if `ordered`.
    turn: Mutex<()>,
}

impl Launch {
    /// Returns text for debugging: the instructions that the interpreter runs when the kernel runs as machine code in
    /// groups of 16 lanes, or the reason why it is never compiled.
    pub fn describe_code(&self) -> String {
        match self.kernel.loaded().code(self.kernel.id(), Isa::Wide) {
            Some(Ok(code)) => tier::describe(self, code),
            _ => "not compiled: unsupported instructions\n".to_owned(),
        }
    }

    /// Prepares the launch for [`Execution::work`]; nothing runs yet. The execution has already ended if the kernel or
    /// a function that it can reach is unsupported, the grid has no blocks, or a block has no threads or more than
    /// 1024.
    pub fn start(self) -> Arc<Execution> {
        let isa = if Isa::available().any(|isa| isa == self.options.isa) {
            self.options.isa
        } else {
            Isa::Baseline
        };
        let loaded = self.kernel.loaded();
        let mut codes = vec![None; loaded.module.functions.len()];
        let mut fault = None;
        for id in self.kernel.reachable() {
            let code = if self.options.observers.is_empty() {
                loaded.code(*id, isa)
            } else {
                loaded.observed_code(*id, isa)
            };
            match code {
                Some(Ok(code)) => codes[id.0 as usize] = Some(Arc::clone(code)),
                Some(Err(unsupported)) => {
                    fault.get_or_insert_with(|| Fault {
                        kind: FaultKind::Unsupported {
                            opcode: unsupported.opcode.clone(),
                        },
                        kernel: self.kernel.name().into(),
                        line: unsupported.line,
                        block: [0; 3],
                        block_size: self.block,
                        thread: [0; 3],
                        report: Report::default(),
                    });
                }
                None => {}
            }
        }
        let kernel_code = codes[self.kernel.id().0 as usize].as_deref();
        let machine_code = kernel_code.and_then(|code| tier::choose(&self, code));
        let count = |n: [u32; 3]| n.iter().map(|n| u64::from(*n)).product::<u64>();
        let shared_bytes = self.shared_bytes() + self.options.slack;
        let cluster = self.options.cluster.unwrap_or([1; 3]).map(|n| n.max(1));
        let clusters = if (1..=1024).contains(&count(self.block)) {
            count(std::array::from_fn(|i| self.grid[i] / cluster[i]))
        } else {
            0
        };
        let function = self.kernel.id();
        let sees_other_blocks = self.kernel.sees_other_blocks();
        let patience = match (sees_other_blocks, self.options.cooperative) {
            (true, true) => COOPERATIVE_PATIENCE,
            (true, false) => SPIN_PATIENCE,
            (false, _) => PATIENCE,
        };
        let slice = if sees_other_blocks { SPIN_SLICE } else { PATIENCE };
        // Lanes that leave compiled code in a loop because their share is used up finish the loop in the interpreter.
        // So warps that need not wait for others have a share with which they run about `PATIENCE` instructions.
        let insts: usize = codes.iter().flatten().map(|code| code.insts.len()).sum();
        let warp_share = if self.kernel.spins() || self.kernel.uses_heap() {
            SPIN_WARP_SHARE
        } else {
            SPIN_WARP_SHARE.max((PATIENCE / insts.max(1) as u64) as i64)
        };
        let interpreted_share = if self.kernel.spins() {
            SPIN_INTERPRETED_SHARE
        } else {
            warp_share
        };
        let warp_bytes = codes[function.0 as usize]
            .as_ref()
            .map_or(0, |c| u64::from(c.frame_bytes) + 32 * u64::from(c.local_bytes));
        let cluster_bytes = count(self.block)
            .div_ceil(32)
            .saturating_mul(warp_bytes)
            .saturating_add(shared_bytes)
            .saturating_mul(count(cluster));
        let by_memory = (ENOUGH_BEGUN / cluster_bytes.max(1)).max(LEAST_BEGUN);
        let resident = self.options.resident / count(cluster);
        let most_begun = if self.options.cooperative {
            resident
        } else {
            resident.min(by_memory)
        };
        let shape = GridShape {
            grid: self.grid,
            block: self.block,
            cluster,
            shared_bytes,
            function,
            patience,
            slice,
            warp_share,
            interpreted_share,
        };
        let queue = BlockQueue::new(
            (clusters, count(cluster)),
            most_begun.max(1),
            patience,
            sees_other_blocks,
        );
        let observation = self.options.observers.begin(&ObservedLaunch {
            kernel: &self.kernel,
            grid: self.grid,
            block: self.block,
            cluster,
            dynamic_shared: self.dynamic_shared,
            shared_bytes,
            reserved_shared: self.reserved_shared(),
            occupancy: self.options.occupancy,
            codes: &codes,
        });
        Arc::new(Execution {
            ordered: (sees_other_blocks && !self.options.parallel) || self.options.observers.one_worker(),
            turn: Mutex::new(()),
            started: StartedLaunch::new(self, (codes, machine_code), shape, queue, fault, observation),
        })
    }
}

impl Execution {
    /// Takes blocks and runs them until none is left to take, until about `budget` warp instructions have run, or until
    /// the thread has to release memory. Any number of threads may call this at once.
    ///
    /// If blocks of the kernel see stores of other blocks (volatile or relaxed loads, atomics), one thread at a time
    /// runs them, in their order, so that results repeat; other threads find nothing to take. [`Options::parallel`]
    /// changes that. Some observers also need one thread at a time.
    ///
    /// [`Options::parallel`]: crate::Options::parallel
    pub fn work(&self, budget: u64) -> Progress {
        let queue = &self.started.queue;
        if self.is_finished() {
            return Progress::Finished;
        }
        let _turn = if self.ordered {
            match self.turn.try_lock() {
                Ok(turn) => Some(turn),
                Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) => return Progress::NothingToTake,
            }
        } else {
            None
        };
        if !queue.has_work() {
            return Progress::NothingToTake;
        }
        let flight = address_space().enter();
        let _rounding = RoundingGuard::new();
        let worker_guard = queue.enter();
        // Declared last, so that after a panic, too, it is dropped before the other guards.
        let upper_halves = UpperHalvesGuard;
        match Worker::new(&self.started, &flight) {
            Some(mut worker) => {
                worker.work(budget);
                worker.finish();
            }
            None => self.started.report_kind(0, FaultKind::OutOfMemory),
        }
        drop(upper_halves);
        drop(worker_guard);
        if self.is_finished() {
            Progress::Finished
        } else if queue.has_work() {
            Progress::BudgetSpent
        } else {
            Progress::NothingToTake
        }
    }

    /// Returns true if all blocks have run, or if a fault has ended the execution and no thread runs a block any more.
    pub fn is_finished(&self) -> bool {
        self.started.queue.is_finished() && self.started.observation.end(|| self.started.fault())
    }

    /// Returns the fault that ended the execution; of several faults, the one in the lowest cluster. Final once the
    /// execution is finished.
    pub fn fault(&self) -> Option<Fault> {
        self.started.fault()
    }

    /// Takes the kernel's output if it has at least this many bytes; otherwise returns nothing. The caller writes it to
    /// standard output.
    pub fn take_output(&self, at_least: usize) -> Vec<u8> {
        self.started.take_output(at_least)
    }

    /// Returns the number of blocks that have finished or are cancelled, and the number of all blocks of the grid.
    pub fn blocks_done(&self) -> (u64, u64) {
        let (done, clusters) = self.started.queue.progress();
        let blocks: u64 = self.started.shape.cluster.iter().map(|n| u64::from(*n)).product();
        (done * blocks, clusters * blocks)
    }

    /// Returns the number of warp instructions run so far, and how many of them compiled code ran. Instructions of
    /// calls of [`work`](Self::work) that have not ended may be missing.
    pub fn counts(&self) -> Counts {
        self.started.counts()
    }

    /// Returns the launch.
    pub fn launch(&self) -> &Launch {
        &self.started.launch
    }
}

impl fmt::Debug for Execution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (done, clusters) = self.started.queue.progress();
        f.debug_struct("Execution")
            .field("kernel", &self.started.launch.kernel.name())
            .field("clusters", &clusters)
            .field("done", &done)
            .finish_non_exhaustive()
    }
}
