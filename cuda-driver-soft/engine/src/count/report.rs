//! The counters of a launch, summed over its workers, by instruction.

#![forbid(unsafe_code)]

use super::class::Class;
use super::clocks::Clocks;
use super::counters::Counters;
use super::worker::{FunctionCounters, WorkerCounts};
use crate::code::function::Code;
use crate::code::site::Site;
use crate::code::watch::{SiteCount, WorkerObserver};
use crate::fault::Fault;
use crate::observe::{LaunchObserver, ObservedLaunch};
use ptx::ir::{Address, FuncId, Function, Inst, Module, Op, Operand, SourcePlace, Space};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// The profile of one launch.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LaunchProfile {
    /// Number of the launch, ascending in the process.
    pub number: u64,
    /// Name of the kernel.
    pub kernel: String,
    /// Blocks of the grid.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Blocks of a cluster.
    pub cluster: [u32; 3],
    /// Registers per thread: an estimate.
    ///
    /// Nsight Compute: `launch__registers_per_thread`.
    pub registers: u32,
    /// Bytes of shared memory that the kernel declares.
    ///
    /// Nsight Compute: `launch__shared_mem_per_block_static`.
    pub static_shared: u32,
    /// Bytes of shared memory that the launch adds.
    ///
    /// Nsight Compute: `launch__shared_mem_per_block_dynamic`.
    pub dynamic_shared: u32,
    /// Bytes of local memory per thread.
    pub local_bytes: u64,
    /// Warps that a multiprocessor can hold at once, divided by the most that it can have; 0 if unknown.
    ///
    /// Nsight Compute: `sm__maximum_warps_per_active_cycle_pct`, divided by 100.
    pub occupancy: f64,
    /// The fault that ended the launch.
    pub fault: Option<String>,
    /// The sum over all instructions.
    pub total: Counters,
    /// Every instruction of the kernel and of the functions that it can reach, in the order of the PTX text.
    pub instructions: Vec<InstructionProfile>,
}

/// The counters of one instruction.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct InstructionProfile {
    /// Name of the function.
    pub function: String,
    /// Line in the PTX text.
    pub ptx_line: u32,
    /// The opcode with its modifiers.
    pub opcode: String,
    /// The place in the CUDA source, if the PTX text has `.loc`.
    pub place: Option<SourceLocation>,
    /// The counters.
    pub counters: Counters,
}

/// A place in the CUDA source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct SourceLocation {
    /// Name of the file, as the compiler saw it.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1; 0 if unknown.
    pub column: u32,
}

/// The counts of a launch so far.
pub(super) struct SharedCounts {
    module: Arc<Module>,
    /// Code by function; `None` for functions that the kernel cannot reach.
    pub(super) functions: Vec<Option<Arc<Code>>>,
    sums: Mutex<Sums>,
    /// The clocks of blocks that no worker runs at the moment.
    clocks: Mutex<HashMap<u64, KeptClocks>>,
}

/// The clocks of a block, and for each warp the line of the barrier at which it last arrived.
pub(super) type KeptClocks = (Clocks, Vec<u32>);

/// Sums over workers: the counters by function and instruction of the body, and the time waited by PTX line.
#[derive(Default)]
struct Sums {
    instructions: BTreeMap<(u32, u32), Counters>,
    waited: BTreeMap<u32, u64>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl SharedCounts {
    fn function(&self, id: FuncId) -> Option<&Function> {
        self.module.functions.get(id.0 as usize)
    }

    /// Returns the PTX instruction of a site.
    fn inst(&self, function: FuncId, site: &Site) -> Option<&Inst> {
        self.function(function)?.body()?.insts.get(site.inst? as usize)
    }

    /// Returns true for an access to the `.param` space of a call. A GPU passes such values in registers.
    pub(super) fn passes_values(&self, function: FuncId, site: &Site) -> bool {
        self.inst(function, site).is_some_and(|inst| {
            let in_frame = matches!(inst.srcs.first(), Some(Operand::Address(Address::Frame { .. })));
            match inst.op {
                Op::Ld(m) | Op::St(m) => m.space == Space::Param || (m.space == Space::Local && in_frame),
                _ => false,
            }
        })
    }

    /// Returns true for a bulk copy.
    pub(super) fn copies_in_bulk(&self, function: FuncId, site: &Site) -> bool {
        self.inst(function, site)
            .is_some_and(|inst| matches!(inst.op, Op::Bulk { .. }))
    }

    pub(super) fn take_clocks(&self, block: u64) -> Option<KeptClocks> {
        lock(&self.clocks).remove(&block)
    }

    pub(super) fn keep_clocks(&self, block: u64, clocks: KeptClocks) {
        lock(&self.clocks).insert(block, clocks);
    }

    /// Adds the counts of a worker.
    pub(super) fn merge(&self, counts: &[Vec<SiteCount>], more: &[FunctionCounters], waited: &[(u32, u64)]) {
        let mut sums = lock(&self.sums);
        for (line, time) in waited {
            *sums.waited.entry(*line).or_default() += time;
        }
        for (id, code) in (0..).zip(&self.functions) {
            let Some(code) = code else { continue };
            let function = id as usize;
            for (pc, (site, count)) in code.sites.iter().zip(&counts[function]).enumerate() {
                let extra = more[function].get(pc).and_then(Option::as_deref);
                let (Some(index), true) = (site.inst, count.runs() > 0 || extra.is_some()) else {
                    continue;
                };
                let Some(inst) = self.inst(code.id, site) else { continue };
                let sum = sums.instructions.entry((id, index)).or_default();
                add(sum, inst, site, count);
                if let Some(extra) = extra {
                    *sum += *extra;
                }
            }
        }
    }
}

/// Adds the runs of a decoded instruction.
fn add(sum: &mut Counters, inst: &Inst, site: &Site, count: &SiteCount) {
    if site.first {
        let runs = count.runs();
        sum.instructions += runs;
        sum.thread_instructions += count.lanes();
        Class::of(&inst.op).add(sum, runs);
        match inst.op {
            Op::Bra { .. } | Op::Brx { .. } => sum.branches += runs,
            Op::Bar { .. } | Op::ClusterBarrier { .. } if !site.guard => sum.barriers += runs,
            _ => {}
        }
    } else if site.effect && matches!(inst.op, Op::Bar { .. } | Op::ClusterBarrier { .. }) {
        sum.barriers += count.runs();
    }
    if site.effect {
        sum.thread_instructions_on += count.lanes();
    }
}

/// The observer of one launch.
pub(super) struct LaunchCounts<F> {
    shared: Arc<SharedCounts>,
    /// The profile without its counters.
    profile: LaunchProfile,
    add: F,
}

/// The number of the next launch.
static NUMBER: AtomicU64 = AtomicU64::new(0);

impl<F: Fn(LaunchProfile) + Send + Sync> LaunchCounts<F> {
    /// Returns an observer that calls `add` with the profile when the launch has ended.
    pub(super) fn new(launch: &ObservedLaunch<'_>, add: F) -> Self {
        let kernel = launch.kernel;
        LaunchCounts {
            shared: Arc::new(SharedCounts {
                module: Arc::clone(launch.module()),
                functions: launch.codes.to_vec(),
                sums: Mutex::default(),
                clocks: Mutex::default(),
            }),
            profile: LaunchProfile {
                number: NUMBER.fetch_add(1, Ordering::Relaxed),
                kernel: kernel.name().to_owned(),
                grid: launch.grid,
                block: launch.block,
                cluster: launch.cluster,
                registers: kernel.num_regs(),
                static_shared: kernel.shared_bytes(),
                dynamic_shared: launch.dynamic_shared,
                local_bytes: kernel.local_bytes(),
                occupancy: launch.occupancy,
                fault: None,
                total: Counters::default(),
                instructions: Vec::new(),
            },
            add,
        }
    }
}

impl<F: Fn(LaunchProfile) + Send + Sync> LaunchObserver for LaunchCounts<F> {
    fn worker(&self) -> Box<dyn WorkerObserver> {
        Box::new(WorkerCounts::new(Arc::clone(&self.shared)))
    }

    fn end(&self, fault: Option<&Fault>) {
        let shared = &self.shared;
        let sums = std::mem::take(&mut *lock(&shared.sums));
        let mut waited = sums.waited;
        let mut instructions = Vec::new();
        let reached = shared.functions.iter().flatten();
        for function in reached.filter_map(|code| shared.function(code.id).map(|f| (code.id, f))) {
            let (id, function) = function;
            let Some(body) = function.body() else { continue };
            for (index, inst) in (0..).zip(&body.insts) {
                let mut counters = sums.instructions.get(&(id.0, index)).copied().unwrap_or_default();
                if matches!(inst.op, Op::Bar { .. } | Op::ClusterBarrier { .. }) {
                    counters.barrier_wait += waited.remove(&inst.line).unwrap_or(0);
                }
                instructions.push(InstructionProfile {
                    function: function.name.clone(),
                    ptx_line: inst.line,
                    opcode: inst.op.to_string(),
                    place: function.location(inst.line).map(|found| named(function, found.place)),
                    counters,
                });
            }
        }
        let mut total = Counters::default();
        instructions.iter().for_each(|inst| total += inst.counters);
        (self.add)(LaunchProfile {
            fault: fault.map(ToString::to_string),
            total,
            instructions,
            ..self.profile.clone()
        });
    }
}

fn named(function: &Function, place: SourcePlace) -> SourceLocation {
    SourceLocation {
        file: function.source.file(place.file).unwrap_or_default().to_owned(),
        line: place.line,
        column: place.column,
    }
}
