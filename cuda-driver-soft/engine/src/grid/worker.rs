//! A worker: the state of one host thread that runs blocks of a launch.

#![forbid(unsafe_code)]

use super::block::Outcome;
use super::cluster::Cluster;
use super::queue::Taken;
use super::started::StartedLaunch;
use crate::code::machine::Machine;
use crate::fault::FaultKind;
use crate::memory::InFlight;
use crate::memory::buffer::{Buffer, LocalMemory};
use crate::memory::warp::{AccessCache, Spaces};
use crate::program::history::Counts;
use crate::warp::frame::Frames;
use std::ops::Range;

/// A worker takes as many clusters at once as are expected to run about this many instructions together, judging by the
/// last cluster.
const AT_ONCE: u64 = 1 << 15;
/// The largest number of clusters that a worker takes at once. Neighbouring blocks use neighbouring memory, so a long
/// run of them on one processor is faster than short runs in turn with other processors.
const MOST_AT_ONCE: u64 = 512;

/// A cluster to run.
enum Next {
    /// A cluster in progress.
    Parked(Box<Cluster>),
    /// The number of a cluster to start.
    New(u64),
}

/// The state of one host thread that runs blocks of a launch.
pub(super) struct Worker<'e> {
    started: &'e StartedLaunch,
    machine: Machine<'e>,
    frames: Frames<'e>,
    /// A finished cluster, to be reused.
    spare: Option<Box<Cluster>>,
    /// Clusters that this worker has taken and not started.
    next: Range<u64>,
    /// Number of finished clusters that the queue has not counted.
    finished: u64,
    /// Number of clusters to take at once.
    at_once: u64,
    /// The instructions of this worker that the launch has counted.
    counted: Counts,
}

impl<'e> Worker<'e> {
    /// Returns a worker, or `None` if the host is out of memory.
    pub(super) fn new(started: &'e StartedLaunch, flight: &'e InFlight) -> Option<Self> {
        let launch = &started.launch;
        let kernel = &launch.kernel;
        let mut params = launch.params.to_vec();
        params.resize(params.len().max(kernel.param_bytes() as usize), 0);
        let mut caches = Vec::new();
        let code = started.codes[kernel.id().0 as usize].as_ref();
        let count = code.map_or(0, |code| code.caches as usize);
        caches.resize_with(count, AccessCache::default);
        let machine = Machine {
            spaces: Spaces {
                flight,
                shared: Buffer::default(),
                shared_base: 0,
                cluster: Vec::new(),
                local: LocalMemory::default(),
                local_end: 0,
                slack: launch.options.slack,
                params: Buffer::of(&params)?,
            },
            caches,
            group_caches: Vec::new(),
            windows: Vec::new(),
            context: None,
            uniforms_of: None,
            other_caches: started.codes.iter().map(|_| Vec::new()).collect(),
            function: kernel.id(),
            target: 0,
            taken: 0,
            fault: None,
            quantum: 0,
            spins: kernel.spins(),
            stack_limit: kernel.stack_bytes(launch.options.stack_limit),
            heap_limit: launch.options.heap_limit,
            output: Vec::new(),
            freed: 0,
            owner: kernel.loaded().owner,
            live: 0,
            warp: 0,
            clusters: launch.options.cluster.is_some(),
            steps: 0,
            compiled_steps: 0,
            called_steps: 0,
            block_start: 0,
            clock_reads: 0,
            watch: started.observation.worker(&started.codes),
        };
        let frames = Frames::new(launch, &started.codes, started.machine_code);
        Some(Worker {
            started,
            machine,
            frames,
            spare: None,
            next: 0..0,
            finished: 0,
            at_once: 1,
            counted: Counts::default(),
        })
    }

    /// Runs clusters until none is left to take, until about `budget` instructions have run, or until the worker has to
    /// end to release memory.
    pub(super) fn work(&mut self, budget: u64) {
        while self.machine.steps < budget
            && !self.machine.has_freed_much()
            && let Some((taken, alone)) = self.take()
        {
            let shape = &self.started.shape;
            let (cluster, share) = match taken {
                Next::Parked(cluster) if self.is_wanted(cluster.number()) => (cluster, shape.slice),
                Next::New(number) if self.is_wanted(number) => match self.begin(number) {
                    Some(cluster) => (cluster, shape.patience),
                    None => {
                        self.settle();
                        // End this worker to free its memory; the cluster starts later.
                        if self.started.queue.put_back(number, alone) {
                            return;
                        }
                        self.fault(number, FaultKind::OutOfMemory);
                        continue;
                    }
                },
                _ => {
                    // A fault has cancelled it.
                    self.finished += 1;
                    continue;
                }
            };
            let rest = budget.saturating_sub(self.machine.steps);
            self.run(cluster, share.min(rest));
        }
        self.settle();
    }

    fn is_wanted(&self, number: u64) -> bool {
        self.started.queue.wants(number)
    }

    /// Returns the next cluster to run, and true if no other cluster may be in progress.
    #[inline]
    fn take(&mut self) -> Option<(Next, bool)> {
        if let Some(number) = self.next.next() {
            return Some((Next::New(number), false));
        }
        let finished = std::mem::take(&mut self.finished);
        let name = self.started.launch.kernel.name();
        match self.started.queue.take(name, self.at_once, finished)? {
            Taken::Parked(cluster) => Some((Next::Parked(cluster), false)),
            Taken::New(numbers, alone) => {
                self.next = numbers;
                Some((Next::New(self.next.next()?), alone))
            }
        }
    }

    /// Puts back the clusters that have not started, and counts the instructions and clusters that are done. Counting
    /// them after each cluster would take longer than a small block runs; only a launch with a budget counts its
    /// instructions that often.
    fn settle(&mut self) {
        self.count_steps();
        let unstarted = std::mem::replace(&mut self.next, 0..0);
        self.started.queue.settle(unstarted, std::mem::take(&mut self.finished));
    }

    /// Counts the instructions run since the last count.
    fn count_steps(&mut self) {
        let now = counts(&self.machine);
        let before = std::mem::replace(&mut self.counted, now);
        if now != before {
            self.started.count_steps(now - before);
        }
    }

    /// Ends the worker: its observers merge their results.
    pub(super) fn finish(mut self) {
        if let Some(watch) = self.machine.watch.take() {
            self.started.observation.finish_worker(*watch);
        }
    }

    fn begin(&mut self, number: u64) -> Option<Box<Cluster>> {
        let shape = &self.started.shape;
        match self.spare.take() {
            Some(mut cluster) => {
                cluster.reuse(&mut self.frames, shape, number)?;
                Some(cluster)
            }
            None => Cluster::new(&mut self.frames, shape, number).map(Box::new),
        }
    }

    fn run(&mut self, mut cluster: Box<Cluster>, share: u64) {
        let number = cluster.number();
        if let Some(instructions) = self.started.spent_budget() {
            self.fault(number, FaultKind::Budget { instructions });
            return;
        }
        let queue = &self.started.queue;
        let before = self.machine.steps;
        let outcome = cluster.run(&mut self.machine, &mut self.frames, &self.started.shape, share);
        let steps = self.machine.steps - before;
        self.at_once = (AT_ONCE / steps.max(1)).clamp(1, MOST_AT_ONCE);
        if self.started.launch.options.budget.is_some() {
            self.count_steps();
        }
        self.started.print(&self.machine.output);
        self.machine.output.clear();
        match outcome {
            Outcome::Done => {
                self.spare = Some(cluster);
                self.finished += 1;
            }
            Outcome::Share | Outcome::Blocked => {
                queue.park(cluster);
                // The parked cluster may be waiting for one that this worker has taken and not started.
                self.settle();
            }
            Outcome::Fault(fault) => {
                self.started.report(number, *fault);
                queue.count_finished();
            }
        }
    }

    fn fault(&mut self, number: u64, kind: FaultKind) {
        self.started.report_kind(number, kind);
        self.started.queue.count_finished();
    }
}

/// Returns the instructions that a worker has run.
fn counts(m: &Machine<'_>) -> Counts {
    let groups = m.group_caches.len().max(1) as u64;
    Counts {
        all: m.steps,
        compiled: m.compiled_steps,
        // An instruction of a warp runs once for each group.
        called: m.called_steps / groups,
    }
}
