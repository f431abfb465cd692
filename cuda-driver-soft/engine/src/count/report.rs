//! The counters of a launch, summed over its workers, by instruction.

#![forbid(unsafe_code)]

use super::counters::Counters;
use super::shared::SharedCounts;
use super::worker::WorkerCounts;
use crate::code::watch::WorkerObserver;
use crate::fault::Fault;
use crate::observe::{LaunchObserver, ObservedLaunch};
use ptx::ir::{Function, Op, SourcePlace};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

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
    /// Warps of the launch that a multiprocessor can hold at once, divided by the most that it can hold of any launch;
    /// 0 if unknown.
    ///
    /// Nsight Compute: `sm__maximum_warps_per_active_cycle_pct`, divided by 100.
    pub occupancy: f64,
    /// The fault that ended the launch, if any.
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
            shared: Arc::new(SharedCounts::new(launch)),
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
        let sums = shared.take();
        let mut waited = sums.waited;
        let mut instructions = Vec::new();
        let reached = shared.functions.iter().flatten();
        for function in reached.filter_map(|code| shared.function(code.id).map(|f| (code.id, f))) {
            let (id, function) = function;
            let Some(body) = function.body() else { continue };
            for (index, inst) in (0..).zip(&body.insts) {
                let mut counters = sums.instructions.get(&(id.0, index)).copied().unwrap_or_default();
                if matches!(inst.op, Op::Bar { .. } | Op::ClusterBarrier { .. }) {
                    counters.barrier_wait += waited.remove(&(id.0, inst.line)).unwrap_or(0);
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
