//! One host thread at work on an execution.

use super::block::Outcome;
use super::cluster::Cluster;
use super::execution::{Execution, Taken};
use crate::code::machine::Machine;
use crate::fault::{Fault, FaultKind};
use crate::memory::InFlight;
use crate::memory::buffer::{Buffer, LocalMemory};
use crate::memory::warp::{AccessCache, Spaces};
use crate::semantics::affine::Rows;
use crate::warp::frame::{Frames, lane_rows};

/// A host thread at work.
pub(super) struct Worker<'e> {
    execution: &'e Execution,
    machine: Machine<'e>,
    frames: Frames<'e>,
    /// A cluster that is over, to be used again.
    spare: Option<Box<Cluster>>,
}

impl<'e> Worker<'e> {
    /// `None` if the host has no memory for it.
    pub(super) fn new(execution: &'e Execution, flight: &'e InFlight) -> Option<Self> {
        let launch = &execution.launch;
        let kernel = &launch.kernel;
        let mut params = launch.params.to_vec();
        params.resize(params.len().max(kernel.param_bytes() as usize), 0);
        let mut caches = Vec::new();
        let code = execution.codes[kernel.id().0 as usize].as_ref();
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
                params: Buffer::of(&params)?,
            },
            caches,
            other_caches: execution.codes.iter().map(|_| Vec::new()).collect(),
            function: kernel.id(),
            target: 0,
            taken: 0,
            fault: None,
            quantum: 0,
            spins: kernel.spins(),
            stack_limit: kernel.stack_bytes(launch.options.stack_limit),
            heap_limit: launch.options.heap_limit,
            output: Vec::new(),
            owner: kernel.image().owner,
            live: 0,
            rows: lane_rows(launch.block).unwrap_or(Rows::ONE),
            warp: 0,
            clusters: launch.options.cluster.is_some(),
            steps: 0,
            block_start: 0,
            clock_reads: 0,
        };
        let frames = Frames::new(launch, &execution.codes);
        Some(Worker {
            execution,
            machine,
            frames,
            spare: None,
        })
    }

    /// Runs blocks, or clusters, until there are none, or until about `budget` instructions were run.
    pub(super) fn work(&mut self, budget: u64) {
        while self.machine.steps < budget
            && let Some(taken) = self.execution.take()
        {
            let block = match taken {
                Taken::Parked(block) => block,
                Taken::New(number, alone) => match self.begin(number) {
                    Some(block) => block,
                    // What this thread keeps may be what is missing: it comes again without.
                    None if self.execution.put_back(number, alone) => return,
                    None => {
                        self.fault(number, FaultKind::OutOfMemory);
                        continue;
                    }
                },
            };
            let rest = budget.saturating_sub(self.machine.steps);
            self.run(block, self.execution.shape.patience.min(rest));
        }
    }

    fn begin(&mut self, number: u64) -> Option<Box<Cluster>> {
        let shape = &self.execution.shape;
        match self.spare.take() {
            Some(mut block) => {
                block.reuse(&mut self.frames, shape, number)?;
                Some(block)
            }
            None => Cluster::new(&mut self.frames, shape, number).map(Box::new),
        }
    }

    fn run(&mut self, mut block: Box<Cluster>, share: u64) {
        let number = block.number();
        if !self.execution.wants(number) {
            self.execution.count_over();
            return;
        }
        let before = self.machine.steps;
        let outcome = block.run(
            &mut self.machine,
            &mut self.frames,
            &self.execution.shape,
            share,
        );
        let within = self.execution.count_steps(self.machine.steps - before);
        self.execution.print(&self.machine.output);
        self.machine.output.clear();
        match outcome {
            Outcome::Done => {
                self.spare = Some(block);
                self.execution.count_over();
            }
            Outcome::Share | Outcome::Blocked if within => self.execution.park(block),
            Outcome::Share | Outcome::Blocked => {
                let instructions = self.execution.launch.options.budget.unwrap_or(0);
                self.fault(number, FaultKind::Budget { instructions });
            }
            Outcome::Fault(fault) => {
                self.execution.report(number, *fault);
                self.execution.count_over();
            }
        }
    }

    fn fault(&mut self, number: u64, kind: FaultKind) {
        let block = self.execution.shape.index(number, 0);
        let fault = Fault {
            kind,
            kernel: String::new(),
            line: 0,
            block,
            thread: [0; 3],
        };
        self.execution.report(number, fault);
        self.execution.count_over();
    }
}
