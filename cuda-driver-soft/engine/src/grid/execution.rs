//! A launched kernel, driven by the host threads that call [`Execution::work`].

use super::cluster::Cluster;
use super::worker::Worker;
use super::{block, rounding};
use crate::code::Code;
use crate::code::isa::Isa;
use crate::fault::{Fault, FaultKind};
use crate::launch::workspace::GridWorkspace;
use crate::memory::space;
use crate::program::kernel::Kernel;
use crate::warp::frame::lane_rows;
use ptx::ir::FuncId;
use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// A kernel with everything that a launch says.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The kernel.
    pub kernel: Arc<Kernel>,
    /// Blocks of the grid: x, y, z. The caller has checked that the device takes them.
    pub grid: [u32; 3],
    /// Threads of a block: x, y, z; as for `grid`, at most 1024 together.
    pub block: [u32; 3],
    /// Dynamic shared memory in bytes.
    pub dynamic_shared: u32,
    /// The parameter buffer: values at the offsets of [`Kernel::params`]. What is missing at its end is zero.
    pub params: Box<[u8]>,
    /// What most launches leave as it is.
    pub options: Options,
}

/// Settings of a launch.
#[derive(Clone, Debug)]
pub struct Options {
    /// Instructions of a warp that the launch may run, about; `None` for no limit.
    pub budget: Option<u64>,
    /// The instruction set to use.
    pub isa: Isa,
    /// Warps whose lanes go the same way may run the code that is made for such; results are the same without it.
    pub converged: bool,
    /// Bytes of local memory that a thread may have for calls whose depth is known only when they are made: of recursive
    /// functions, or through pointers. What is known comes on top; both together are at most what a thread can have.
    pub stack_limit: u64,
    /// Bytes that the kernels of the module's owner may have from `malloc` together.
    pub heap_limit: u64,
    /// Blocks of a kernel that sees what other threads do may run at the same time, on several host threads: faster, but
    /// its results may differ from run to run.
    pub parallel: bool,
    /// Blocks that the device holds at once: so many may have begun and wait for one another, memory permitting.
    pub resident: u64,
    /// All blocks must be able to wait for one another: memory is no reason to begin fewer.
    pub cooperative: bool,
    /// Where the blocks of a cooperative launch count who has arrived.
    pub workspace: Option<Arc<GridWorkspace>>,
    /// Blocks of a cluster, if the launch is one of clusters; the grid is a multiple of it.
    pub cluster: Option<[u32; 3]>,
}

impl Default for Options {
    /// No limit, the best instruction set, 128 KiB of stack, a heap of 8 MiB, 4096 resident blocks;
    /// `CUDA_SOFT_PARALLEL=1` in the environment sets `parallel`.
    fn default() -> Self {
        Options {
            budget: None,
            isa: Isa::best(),
            converged: true,
            stack_limit: 128 << 10,
            heap_limit: 8 << 20,
            parallel: host::environment::parallel(),
            resident: 4096,
            cooperative: false,
            workspace: None,
            cluster: None,
        }
    }
}

/// What a call of [`Execution::work`] came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The execution has ended, by this call or before it.
    Finished,
    /// No block is left to take, but other threads still run some; one of them will see [`Finished`](Self::Finished).
    NothingToTake,
    /// The budget of the call is spent, and blocks are left.
    BudgetSpent,
}

/// Blocks that wait for a thread.
struct Queue {
    /// The next block that has not begun.
    next: u64,
    /// Blocks before it that could not begin for want of memory.
    returned: BTreeSet<u64>,
    /// Blocks that may have begun without being over, at most.
    most_begun: u64,
    /// The log has said that no more can begin.
    told: bool,
    /// Blocks that have begun and are not over, in the hands of threads or put aside.
    begun: u64,
    /// Blocks that were put aside, the next one to go on first.
    parked: VecDeque<Box<Cluster>>,
}

/// Instructions that a block runs before another one may begin: this one may be waiting for that.
const PATIENCE: u64 = 1 << 22;
/// The same if it can see what other blocks do.
const SPIN_PATIENCE: u64 = 1 << 16;
/// The same in a cooperative launch: all its blocks begin anyway, and most wait for the whole grid again and again.
const COOPERATIVE_PATIENCE: u64 = 1 << 11;
/// Bytes of blocks that have begun: there it is better to go on with those than to begin another.
const ENOUGH_BEGUN: u64 = 1 << 30;
/// Blocks that may wait for one another however large they are.
const LEAST_BEGUN: u64 = 4;

/// Bytes of shared memory that the system keeps for itself.
const RESERVED_SHARED: u64 = 1 << 10;

/// A launch in progress.
pub struct Execution {
    pub(super) launch: Launch,
    /// By function: decoded code of those that may run.
    pub(super) codes: Vec<Option<Arc<Code>>>,
    pub(super) shape: block::Shape,
    /// Clusters, of which each is mostly one block: what is said of blocks below is said of them.
    blocks: u64,
    queue: Mutex<Queue>,
    /// Threads that are at work on it.
    workers: AtomicU64,
    /// Blocks can see what other blocks do, so wait for them.
    sees_other_blocks: bool,
    /// Blocks that are over, or will never begin.
    done: AtomicU64,
    finished: AtomicBool,
    /// Held while a thread works, if only one may.
    turn: Mutex<()>,
    ordered: bool,
    /// Instructions run so far, of calls that have ended.
    steps: AtomicU64,
    fault: Mutex<Option<(u64, Fault)>>,
    /// Blocks from this number on need not run any more.
    limit: AtomicU64,
    output: Mutex<Vec<u8>>,
}

impl Launch {
    /// Bytes of a block's shared memory: the kernel's variables, the dynamic part, and what it uses of the system's.
    fn shared_bytes(&self) -> u64 {
        let dynamic = u64::from(self.dynamic_shared);
        let own = if dynamic == 0 {
            u64::from(self.kernel.shared_bytes())
        } else {
            u64::from(self.kernel.shared_layout().dynamic) + dynamic
        };
        match self.reserved_shared() {
            Some(reserved) => reserved.end,
            None => own,
        }
    }

    /// Where in a block's shared memory the part is that the system keeps for itself. A GPU has it at the beginning; here
    /// it is behind the rest, and only where a kernel uses it, as cooperative groups of several warps do.
    pub(crate) fn reserved_shared(&self) -> Option<Range<u64>> {
        if !self.kernel.uses_reserved_shared() {
            return None;
        }
        let layout = self.kernel.shared_layout();
        let own = u64::from(layout.dynamic.max(layout.fixed)) + u64::from(self.dynamic_shared);
        let start = own.next_multiple_of(16);
        Some(start..start + RESERVED_SHARED)
    }

    /// Makes the launch ready to be worked on; nothing runs yet. A kernel that this driver cannot run, or a grid without
    /// blocks, makes an execution that has ended already.
    pub fn start(self) -> Arc<Execution> {
        let isa = if Isa::available().any(|isa| isa == self.options.isa) {
            self.options.isa
        } else {
            Isa::Baseline
        };
        let image = self.kernel.image();
        let grid = lane_rows(self.block).is_some_and(|rows| rows.count() > 1);
        let mut codes = vec![None; image.module.functions.len()];
        let mut refused = None;
        for id in self.kernel.reachable() {
            match image.code(*id, isa, grid) {
                Some(Ok(code)) => codes[id.0 as usize] = Some(Arc::clone(code)),
                Some(Err(cannot)) => {
                    refused.get_or_insert((cannot.opcode.clone(), cannot.line));
                }
                None => {}
            }
        }
        let count = |n: [u32; 3]| n.iter().map(|n| u64::from(*n)).product::<u64>();
        let shared_bytes = self.shared_bytes();
        let cluster = self.options.cluster.unwrap_or([1; 3]).map(|n| n.max(1));
        let clusters = std::array::from_fn(|i| self.grid[i] / cluster[i]);
        let blocks = if (1..=1024).contains(&count(self.block)) {
            count(clusters)
        } else {
            0
        };
        let fault = refused.map(|(opcode, line)| {
            let kind = FaultKind::Unsupported { opcode };
            (
                0,
                Fault {
                    kind,
                    kernel: self.kernel.name().into(),
                    line,
                    block: [0; 3],
                    thread: [0; 3],
                },
            )
        });
        let function: FuncId = self.kernel.id();
        let sees_other_blocks = self.kernel.sees_other_blocks();
        let patience = match (sees_other_blocks, self.options.cooperative) {
            (true, true) => COOPERATIVE_PATIENCE,
            (true, false) => SPIN_PATIENCE,
            (false, _) => PATIENCE,
        };
        let warp_bytes = codes[function.0 as usize].as_ref().map_or(0, |c| {
            u64::from(c.frame_bytes) + 32 * u64::from(c.local_bytes)
        });
        let block_bytes = count(self.block)
            .div_ceil(32)
            .saturating_mul(warp_bytes)
            .saturating_add(shared_bytes)
            .saturating_mul(count(cluster));
        let by_memory = (ENOUGH_BEGUN / block_bytes.max(1)).max(LEAST_BEGUN);
        let resident = self.options.resident / count(cluster);
        let most_begun = if self.options.cooperative {
            resident
        } else {
            resident.min(by_memory)
        };
        Arc::new(Execution {
            codes,
            shape: block::Shape {
                grid: self.grid,
                block: self.block,
                shared_bytes,
                function,
                patience,
                cluster,
            },
            blocks,
            queue: Mutex::new(Queue {
                next: 0,
                returned: BTreeSet::new(),
                most_begun: most_begun.max(1),
                told: false,
                begun: 0,
                parked: VecDeque::new(),
            }),
            workers: AtomicU64::new(0),
            sees_other_blocks,
            done: AtomicU64::new(0),
            finished: AtomicBool::new(blocks == 0 || fault.is_some()),
            turn: Mutex::new(()),
            ordered: sees_other_blocks && !self.options.parallel,
            steps: AtomicU64::new(0),
            fault: Mutex::new(fault),
            limit: AtomicU64::new(u64::MAX),
            output: Mutex::new(Vec::new()),
            launch: self,
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Execution {
    /// Takes blocks and runs them until none is left to take, or until about `budget` instructions of a warp were run.
    /// Any number of threads may call this at once.
    ///
    /// A kernel in which threads can see what other blocks do (volatile or relaxed loads, atomics) is run by one thread
    /// at a time, in the order of its blocks, so that its results repeat; the other threads find nothing to take.
    pub fn work(&self, budget: u64) -> Progress {
        if self.is_finished() {
            return Progress::Finished;
        }
        let _turn = if self.ordered {
            match self.turn.try_lock() {
                Ok(turn) => Some(turn),
                Err(std::sync::TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
                Err(std::sync::TryLockError::WouldBlock) => return Progress::NothingToTake,
            }
        } else {
            None
        };
        if !self.has_work() {
            return Progress::NothingToTake;
        }
        let flight = space().enter();
        let _rounding = rounding::RoundingGuard::new();
        self.workers.fetch_add(1, Ordering::SeqCst);
        let _inside = Inside(&self.workers);
        match Worker::new(self, &flight) {
            Some(mut worker) => worker.work(budget),
            None => self.out_of_memory(),
        }
        if self.is_finished() {
            Progress::Finished
        } else if self.has_work() {
            Progress::BudgetSpent
        } else {
            Progress::NothingToTake
        }
    }

    /// All blocks have run, or a fault has ended the execution and no thread is at work on it any more.
    pub fn is_finished(&self) -> bool {
        self.finished.load(Ordering::Acquire)
    }

    /// What ended the execution early; final once it is finished. Of several faults it is that of the lowest block.
    pub fn fault(&self) -> Option<Fault> {
        lock(&self.fault).as_ref().map(|(_, fault)| fault.clone())
    }

    /// Takes what the kernel has printed so far, if that is at least so many bytes: the caller writes it to standard
    /// output.
    pub fn take_output(&self, at_least: usize) -> Vec<u8> {
        let mut output = lock(&self.output);
        if output.len() < at_least {
            return Vec::new();
        }
        std::mem::take(&mut *output)
    }

    /// The launch.
    pub fn launch(&self) -> &Launch {
        &self.launch
    }

    fn has_work(&self) -> bool {
        let queue = lock(&self.queue);
        !queue.parked.is_empty() || self.may_begin(&queue)
    }

    fn may_begin(&self, queue: &Queue) -> bool {
        self.has_unbegun(queue) && queue.begun < queue.most_begun
    }

    fn has_unbegun(&self, queue: &Queue) -> bool {
        queue.next < self.blocks || !queue.returned.is_empty()
    }

    /// The next block to run: the one that was put aside first, or a new one if that has run for long enough to make one
    /// think that it waits for another.
    pub(crate) fn take(&self) -> Option<Taken> {
        let mut queue = lock(&self.queue);
        let may_begin = self.may_begin(&queue);
        let patience = self.shape.patience;
        let another = match queue.parked.front_mut() {
            Some(first) => may_begin && first.gives_way(patience),
            None => may_begin,
        };
        if !another {
            let first = queue.parked.pop_front()?;
            let waits = self.sees_other_blocks && first.steps() >= patience;
            let tell = waits && !may_begin && self.has_unbegun(&queue) && !queue.told;
            queue.told |= tell;
            let begun = queue.begun;
            drop(queue);
            if tell {
                host::log!(
                    "`{}`: {begun} of {} blocks have begun and go on in turn; more would take too much memory, or more than \
                    the device holds at once. If they wait for the others, they wait for ever",
                    self.launch.kernel.name(),
                    self.blocks
                );
            }
            return Some(Taken::Parked(first));
        }
        let number = match queue.returned.pop_first() {
            Some(number) => number,
            None => {
                queue.next += 1;
                queue.next - 1
            }
        };
        queue.begun += 1;
        Some(Taken::New(number, queue.most_begun == 1))
    }

    /// Gives back a block that could not begin for want of memory: from now on no more blocks begin than did. False if there
    /// is nothing to hope for, since it was `alone`: no other block had begun, or could, and no thread held what one leaves.
    pub(crate) fn put_back(&self, number: u64, alone: bool) -> bool {
        let mut queue = lock(&self.queue);
        if alone && self.workers.load(Ordering::SeqCst) <= 1 {
            return false;
        }
        queue.begun -= 1;
        queue.most_begun = queue.begun.max(1);
        if self.wants(number) {
            queue.returned.insert(number);
            return true;
        }
        drop(queue);
        self.count_done(1);
        true
    }

    /// Puts a block aside that has had its share. After a fault in a later block it goes on: it might fault itself, and be
    /// the one to blame. One that can see what others do does so only while it is young: it might wait for what will never
    /// be.
    pub(crate) fn park(&self, block: Box<Cluster>) {
        let old = self.sees_other_blocks && block.steps() >= self.shape.patience;
        let faulted = self.limit.load(Ordering::Relaxed) != u64::MAX;
        if faulted && (old || !self.wants(block.number())) {
            self.count_over();
        } else {
            lock(&self.queue).parked.push_back(block);
        }
    }

    /// Whether this block still has to run.
    pub(crate) fn wants(&self, number: u64) -> bool {
        number < self.limit.load(Ordering::Relaxed)
    }

    /// A block that had begun is over.
    pub(crate) fn count_over(&self) {
        lock(&self.queue).begun -= 1;
        self.count_done(1);
    }

    fn count_done(&self, blocks: u64) {
        if self.done.fetch_add(blocks, Ordering::AcqRel) + blocks >= self.blocks {
            self.finished.store(true, Ordering::Release);
        }
    }

    /// Records a fault in a block; blocks behind it need not run.
    pub(crate) fn report(&self, number: u64, mut fault: Fault) {
        fault.kernel = self.launch.kernel.name().into();
        {
            let mut first = lock(&self.fault);
            if first.as_ref().is_none_or(|(at, _)| number < *at) {
                *first = Some((number, fault));
            }
        }
        self.limit.fetch_min(number, Ordering::Relaxed);
        let (mut unwanted, mut kept) = (VecDeque::new(), VecDeque::new());
        let mut queue = lock(&self.queue);
        let unbegun = self.blocks - std::mem::replace(&mut queue.next, self.blocks);
        let returned = queue.returned.split_off(&number).len() as u64;
        for block in std::mem::take(&mut queue.parked) {
            if self.wants(block.number()) {
                kept.push_back(block);
            } else {
                unwanted.push_back(block);
            }
        }
        queue.parked = kept;
        queue.begun -= unwanted.len() as u64;
        drop(queue);
        self.count_done(unbegun + returned + unwanted.len() as u64);
    }

    /// Counts instructions. False if the launch has no budget left.
    pub(super) fn count_steps(&self, steps: u64) -> bool {
        let all = self
            .steps
            .fetch_add(steps, Ordering::Relaxed)
            .saturating_add(steps);
        self.launch.options.budget.is_none_or(|budget| all < budget)
    }

    pub(super) fn print(&self, text: &[u8]) {
        if !text.is_empty() {
            lock(&self.output).extend_from_slice(text);
        }
    }

    fn out_of_memory(&self) {
        let fault = Fault {
            kind: FaultKind::OutOfMemory,
            kernel: String::new(),
            line: 0,
            block: [0; 3],
            thread: [0; 3],
        };
        self.report(0, fault);
    }
}

/// What [`Execution::take`] gives.
pub(crate) enum Taken {
    /// A block that was put aside.
    Parked(Box<Cluster>),
    /// A block that has not begun, and whether no other may have begun.
    New(u64, bool),
}

/// Counts a thread as long as it is at work.
struct Inside<'e>(&'e AtomicU64);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl fmt::Debug for Execution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Execution")
            .field("kernel", &self.launch.kernel.name())
            .field("blocks", &self.blocks)
            .field("done", &self.done)
            .finish_non_exhaustive()
    }
}
