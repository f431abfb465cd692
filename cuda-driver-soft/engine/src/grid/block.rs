//! A block: its warps, its barriers, its shared memory.

use crate::code::machine::Machine;
use crate::fault::{Fault, FaultKind};
use crate::lanes::{self, Mask};
use crate::memory::buffer::Buffer;
use crate::memory_budget::Held;
use crate::warp::frame::{Frames, Here, thread_of};
use crate::warp::{Arrival, Pause, Warp};
use ptx::ir::{BarOp, BoolOp, FuncId};

/// Barriers of a block.
const BARRIERS: usize = 16;
/// Where the cluster's barrier is among those of a block, which is its only one.
const CLUSTER: usize = BARRIERS;

/// A block in progress, or one that is over and can be used again.
pub(crate) struct Block {
    index: [u32; 3],
    threads: u32,
    warps: Vec<Warp>,
    states: Vec<State>,
    /// The warp whose turn it is.
    turn: usize,
    /// Warps that are not done.
    left: usize,
    /// What each warp that waits asked for.
    waiting_for: Vec<BarOp>,
    barriers: [Barrier; BARRIERS + 1],
    /// Barriers at which somebody has arrived.
    in_use: u32,
    /// Warps that have arrived at the cluster's barrier since it last let everybody go.
    at_cluster: u32,
    /// Away while another block of the cluster runs.
    pub(crate) shared: Buffer,
    _shared_held: Held,
    /// Instructions that the block has run.
    steps: u64,
    clock_reads: u64,
    /// The block is a cluster by itself.
    alone: bool,
}

/// What a warp does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ready,
    Waiting(usize),
    Done,
}

/// A barrier that warps have arrived at.
#[derive(Clone, Copy, Debug, Default)]
struct Barrier {
    /// Threads that have arrived; a warp counts as 32.
    arrived: u32,
    /// Threads that it waits for, if said.
    count: Option<u32>,
    /// Lanes that have arrived with a predicate that holds, and all that have arrived.
    holding: u32,
    lanes: u32,
}

/// Why a block stopped running.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// All its threads have exited.
    Done,
    /// It has had its share.
    Share,
    /// Its warps wait for those of other blocks of the cluster.
    Blocked,
    /// Something went wrong.
    Fault(Box<Fault>),
}

/// Where a block is, and of what size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) shared_bytes: u64,
    pub(crate) function: FuncId,
    /// Instructions after which a block lets another one begin: it may be waiting for that.
    pub(crate) patience: u64,
    /// Blocks of a cluster.
    pub(crate) cluster: [u32; 3],
}

impl Shape {
    /// Clusters of the grid.
    pub(crate) fn clusters(&self) -> [u32; 3] {
        std::array::from_fn(|i| self.grid[i] / self.cluster[i].max(1))
    }

    /// The coordinates of a block in the grid: by the number of its cluster, and its rank in that.
    pub(crate) fn index(&self, cluster: u64, rank: u64) -> [u32; 3] {
        let [cluster, inside] = [
            coordinates(self.clusters(), cluster),
            coordinates(self.cluster, rank),
        ];
        std::array::from_fn(|i| cluster[i] * self.cluster[i] + inside[i])
    }

    /// The number of a block in the grid.
    fn number(&self, [x, y, z]: [u32; 3]) -> u64 {
        let [width, height, _] = self.grid.map(u64::from);
        u64::from(x) + width * (u64::from(y) + height * u64::from(z))
    }
}

impl Block {
    /// A block at its start, which may be `alone` in its cluster. `None` if the host has no memory for it.
    pub(crate) fn new(
        frames: &mut Frames<'_>,
        shape: &Shape,
        index: [u32; 3],
        alone: bool,
    ) -> Option<Self> {
        let threads: u32 = shape.block.iter().product();
        let number = shape.number(index);
        let warps = (0..threads.div_ceil(32)).map(|warp| {
            let here = Here {
                block: index,
                number,
                warp,
            };
            Warp::new(frames, shape.function, here, lanes_of(threads, warp))
        });
        let warps: Vec<Warp> = warps.collect::<Option<_>>()?;
        Some(Block {
            index,
            threads,
            alone,
            states: vec![State::Ready; warps.len()],
            turn: 0,
            left: warps.len(),
            waiting_for: vec![BarOp::Sync; warps.len()],
            warps,
            barriers: [Barrier::default(); BARRIERS + 1],
            in_use: 0,
            at_cluster: 0,
            _shared_held: Held::take(shape.shared_bytes)?,
            shared: Buffer::new(shape.shared_bytes)?,
            steps: 0,
            clock_reads: 0,
        })
    }

    /// Makes a block that is over another block of the same launch.
    pub(crate) fn reuse(
        &mut self,
        frames: &mut Frames<'_>,
        shape: &Shape,
        index: [u32; 3],
    ) -> Option<()> {
        self.index = index;
        let (number, threads) = (shape.number(index), self.threads);
        for warp in &mut self.warps {
            let lanes = lanes_of(threads, warp.number());
            warp.reuse(frames, index, number, lanes)?;
        }
        self.states.fill(State::Ready);
        (self.turn, self.left) = (0, self.warps.len());
        for id in lanes::iter(std::mem::take(&mut self.in_use)) {
            self.barriers[id] = Barrier::default();
        }
        self.at_cluster = 0;
        self.shared.clear();
        (self.steps, self.clock_reads) = (0, 0);
        Some(())
    }

    /// Instructions of a warp that it has run.
    pub(crate) fn steps(&self) -> u64 {
        self.steps
    }

    /// Runs the warps in turn until all are done, or until they have run about `share` instructions.
    pub(crate) fn run(
        &mut self,
        m: &mut Machine<'_>,
        frames: &mut Frames<'_>,
        shape: &Shape,
        share: u64,
    ) -> Outcome {
        std::mem::swap(&mut m.spaces.shared, &mut self.shared);
        (m.block_start, m.clock_reads) = (m.steps.wrapping_sub(self.steps), self.clock_reads);
        let outcome = self.run_warps(m, frames, shape, share);
        (self.steps, self.clock_reads) = (m.steps.wrapping_sub(m.block_start), m.clock_reads);
        std::mem::swap(&mut m.spaces.shared, &mut self.shared);
        outcome
    }

    fn run_warps(
        &mut self,
        m: &mut Machine<'_>,
        frames: &mut Frames<'_>,
        shape: &Shape,
        share: u64,
    ) -> Outcome {
        let end = m.steps.saturating_add(share);
        let mut idle = 0;
        loop {
            let w = self.turn;
            self.turn = if w + 1 < self.warps.len() { w + 1 } else { 0 };
            if self.states[w] != State::Ready {
                idle += 1;
                if idle >= self.warps.len() {
                    let for_others = !self.alone && self.states.contains(&State::Waiting(CLUSTER));
                    return if for_others {
                        Outcome::Blocked
                    } else {
                        self.deadlock(frames, shape)
                    };
                }
                continue;
            }
            idle = 0;
            // A warp's share is its own, whatever is left of the block's: else the order of warps, and with it what they see
            // of one another, would depend on how the host's threads share the work.
            match self.warps[w].run(m, frames, WARP_SHARE) {
                Pause::Share => {}
                Pause::Done => {
                    self.states[w] = State::Done;
                    self.left -= 1;
                    if self.left == 0 {
                        return Outcome::Done;
                    }
                    // What has arrived counts among those that are left.
                    if self.at_cluster >> w & 1 == 1 {
                        self.at_cluster &= !(1 << w);
                        self.barriers[CLUSTER].arrived -= 32;
                    }
                    // A warp that is gone is not waited for, where no count is said.
                    for id in lanes::iter(self.in_use) {
                        self.complete(frames, id);
                    }
                }
                Pause::Barrier => {
                    if let Err(report) = self.arrive(frames, w) {
                        let kind = FaultKind::BarrierMisuse { report };
                        let Arrival { lanes, line, .. } = *self.warps[w].arrival();
                        return self.fault(shape, kind, w, lanes, line);
                    }
                }
                Pause::Fault { line } => {
                    let (kind, lane) = m.fault.take().unwrap_or((FaultKind::Trap, 0));
                    return self.fault(shape, kind, w, 1 << (lane % 32), line);
                }
            }
            // Also where warps moved: a loop around a barrier moves for ever.
            if m.steps >= end {
                return Outcome::Share;
            }
        }
    }

    fn arrive(&mut self, frames: &Frames<'_>, w: usize) -> Result<(), String> {
        let arrival = self.warps[w].arrival();
        let Some(id) = arrival.id else {
            self.arrive_at_cluster(frames, w);
            return Ok(());
        };
        let id = id as usize;
        let plain = arrival.op == BarOp::Sync && arrival.count.is_none();
        let Some(barrier) = self.barriers[..BARRIERS].get_mut(id) else {
            return Err(format!(
                "a block has {BARRIERS} barriers, from 0; this is barrier {id}"
            ));
        };
        if plain && barrier.count.is_none() {
            // The most usual one.
            barrier.arrived += 32;
            self.in_use |= 1 << id;
            self.states[w] = State::Waiting(id);
            self.waiting_for[w] = BarOp::Sync;
            if barrier.arrived >= self.left as u32 * 32 {
                self.complete(frames, id);
            }
            return Ok(());
        }
        match arrival.count {
            Some(count) if count == 0 || !count.is_multiple_of(32) => {
                return Err(format!(
                    "barrier {id} for {count} threads, which is no multiple of 32"
                ));
            }
            Some(count) if barrier.arrived > 0 && barrier.count != Some(count) => {
                return Err(format!(
                    "barrier {id} for {count} threads, where other warps said otherwise"
                ));
            }
            None if barrier.count.is_some() => {
                return Err(format!(
                    "barrier {id} for all threads, where other warps said how many"
                ));
            }
            _ => {}
        }
        barrier.count = arrival.count;
        barrier.arrived += 32;
        self.in_use |= 1 << id;
        let op = arrival.op;
        if matches!(op, BarOp::Red(_) | BarOp::Popc) {
            barrier.holding += arrival.holds.count_ones();
            barrier.lanes += arrival.lanes.count_ones();
        }
        if op == BarOp::Arrive {
            self.warps[w].release(frames, 0);
        } else {
            self.states[w] = State::Waiting(id);
            self.waiting_for[w] = op;
        }
        self.complete(frames, id);
        Ok(())
    }

    /// `barrier.cluster`: arriving and waiting are two instructions.
    fn arrive_at_cluster(&mut self, frames: &Frames<'_>, w: usize) {
        let arrived = self.at_cluster >> w & 1 == 1;
        if self.warps[w].arrival().op == BarOp::Arrive {
            if !arrived {
                self.at_cluster |= 1 << w;
                self.barriers[CLUSTER].arrived += 32;
                self.in_use |= 1 << CLUSTER;
            }
            self.warps[w].release(frames, 0);
            self.complete(frames, CLUSTER);
        } else if arrived {
            self.states[w] = State::Waiting(CLUSTER);
            self.waiting_for[w] = BarOp::Sync;
        } else {
            // What it arrived at is over.
            self.warps[w].release(frames, 0);
        }
    }

    /// Whether all its warps that are left have arrived at the cluster's barrier.
    pub(crate) fn is_at_cluster(&self) -> bool {
        self.left == 0 || self.barriers[CLUSTER].arrived >= self.left as u32 * 32
    }

    /// Whether some have.
    pub(crate) fn has_arrived(&self) -> bool {
        self.left > 0 && self.barriers[CLUSTER].arrived > 0
    }

    /// Lets the warps at the cluster's barrier go, at which those of all its blocks have arrived.
    pub(crate) fn leave_cluster(&mut self, frames: &Frames<'_>) {
        self.open(frames, CLUSTER);
    }

    /// Lets the warps at a barrier go, if all have come.
    fn complete(&mut self, frames: &Frames<'_>, id: usize) {
        let barrier = &self.barriers[id];
        let there = self.left as u32 * 32;
        let lacks = barrier.arrived == 0 || barrier.arrived < barrier.count.unwrap_or(there);
        // The other blocks of the cluster have to come, too.
        if lacks || (id == CLUSTER && !self.alone) {
            return;
        }
        self.open(frames, id);
    }

    fn open(&mut self, frames: &Frames<'_>, id: usize) {
        let barrier = std::mem::take(&mut self.barriers[id]);
        self.in_use &= !(1 << id);
        if id == CLUSTER {
            self.at_cluster = 0;
        }
        for w in 0..self.warps.len() {
            if self.states[w] == State::Waiting(id) {
                self.states[w] = State::Ready;
                let result = match self.waiting_for[w] {
                    BarOp::Popc => barrier.holding,
                    BarOp::Red(BoolOp::And) => u32::from(barrier.holding == barrier.lanes),
                    BarOp::Red(_) => u32::from(barrier.holding != 0),
                    BarOp::Sync | BarOp::Arrive => 0,
                };
                self.warps[w].release(frames, result);
            }
        }
    }

    /// What to say when nothing can run any more.
    pub(crate) fn deadlock(&self, frames: &Frames<'_>, shape: &Shape) -> Outcome {
        let mut reports = Vec::new();
        let mut first = None;
        for (w, state) in self.states.iter().enumerate() {
            if let State::Waiting(id) = state {
                let lines: Vec<String> = self.warps[w]
                    .lines(frames)
                    .iter()
                    .map(u32::to_string)
                    .collect();
                let Barrier { arrived, count, .. } = self.barriers[*id];
                let wanted = count.map_or("all".into(), |c| c.to_string());
                let which = match *id {
                    CLUSTER => "the cluster's barrier".to_string(),
                    id => format!("barrier {id}"),
                };
                reports.push(format!(
                    "warp {w} waits at {which} in line {}, where {arrived} of {wanted} threads have arrived",
                    lines.join(", ")
                ));
                first.get_or_insert((w, self.warps[w].lines(frames).first().copied().unwrap_or(0)));
            }
        }
        let (w, line) = first.unwrap_or((0, 0));
        self.fault(
            shape,
            FaultKind::Deadlock {
                report: reports.join("; "),
            },
            w,
            1,
            line,
        )
    }

    fn fault(
        &self,
        shape: &Shape,
        kind: FaultKind,
        warp: usize,
        lanes: Mask,
        line: u32,
    ) -> Outcome {
        let lane = lanes::iter(lanes).next().unwrap_or(0) as u32;
        let thread = thread_of(shape.block, warp as u32 * 32 + lane);
        Outcome::Fault(Box::new(Fault {
            kind,
            kernel: String::new(),
            line,
            block: self.index,
            thread,
        }))
    }
}

/// Lanes of a warp that are threads of the block.
fn lanes_of(threads: u32, warp: u32) -> Mask {
    let here = (threads - warp * 32).min(32);
    u32::MAX >> (32 - here)
}

/// The coordinates of what has this number in a grid.
fn coordinates(grid: [u32; 3], number: u64) -> [u32; 3] {
    let [x, y, _] = grid.map(|n| u64::from(n.max(1)));
    [
        (number % x) as u32,
        (number / x % y) as u32,
        (number / x / y) as u32,
    ]
}

/// Jumps backwards of a warp before the next warp has its turn: it may be waiting for that.
const WARP_SHARE: i64 = 1_024;
