//! A block: its warps, barriers and shared memory.

#![forbid(unsafe_code)]

use super::shape::GridShape;
use crate::code::function::BARRIERS;
use crate::code::machine::Machine;
use crate::code::watch::{BarrierArrival, BlockAt};
use crate::fault::{Fault, FaultKind};
use crate::lanes::{self, Mask, thread_of};
use crate::memory::buffer::Buffer;
use crate::memory_budget::MemoryReservation;
use crate::warp::frame::{Frames, WarpPosition};
use crate::warp::phase::{self, PhaseEnd};
use crate::warp::{Arrival, Pause, Warp};
use ptx::ir::{BarOp, BoolOp};

/// Index of the cluster's barrier, after the block's own.
const CLUSTER: usize = BARRIERS as usize;

/// A block in progress, or a finished one that can be reused.
pub(crate) struct Block {
    index: [u32; 3],
    threads: u32,
    warps: Vec<Warp>,
    states: Vec<WarpState>,
    /// The warp to run next.
    turn: usize,
    /// Number of warps that have not finished.
    left: usize,
    /// The barrier operation of each waiting warp.
    waiting_for: Vec<BarOp>,
    barriers: [BarrierCounts; CLUSTER + 1],
    /// Mask of the barriers at which a warp has arrived.
    in_use: u32,
    /// Mask of the warps that have arrived at the cluster's barrier since it last opened.
    at_cluster: u32,
    /// Shared memory; moved out while another block of the cluster runs.
    pub(crate) shared: Buffer,
    _reservation: MemoryReservation,
    /// Instructions run so far.
    steps: u64,
    clock_reads: u64,
    /// True if the block is the only one of its cluster.
    alone: bool,
    /// True if the warps of each block of the launch begin together in compiled code.
    begins_together: bool,
    /// The instruction that all threads have reached, as long as they run in compiled code together.
    together: Option<u32>,
}

/// The state of a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WarpState {
    Ready,
    /// The warp waits at this barrier.
    Waiting(usize),
    Done,
}

/// The arrivals at a barrier.
#[derive(Clone, Copy, Debug, Default)]
struct BarrierCounts {
    /// Threads that have arrived; a warp counts as 32.
    arrived: u32,
    /// Threads that the barrier waits for; `None` for all threads of the block.
    count: Option<u32>,
    /// Number of lanes that have arrived with a true predicate.
    holding: u32,
    /// Number of lanes that have arrived with a predicate.
    lanes: u32,
}

/// The reason why a block stopped running.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// All threads of the block have exited.
    Done,
    /// The block can continue later: it has used its share of instructions, or the worker should end to release freed
    /// memory.
    Share,
    /// No warp can run, and at least one waits for other blocks of the cluster.
    Blocked,
    /// A warp raised a fault, or no warp can ever run again.
    Fault(Box<Fault>),
}

impl Block {
    /// Returns a block at its start, or `None` if the host is out of memory. `alone` is true if the cluster has no
    /// other block.
    pub(crate) fn new(frames: &mut Frames<'_>, shape: &GridShape, index: [u32; 3], alone: bool) -> Option<Self> {
        let threads: u32 = shape.block.iter().product();
        let number = shape.number(index);
        let begins_together = frames.begins_together(threads);
        let count = threads.div_ceil(32);
        let mut warps = Vec::with_capacity(count as usize);
        for warp in 0..count {
            let position = WarpPosition {
                block: index,
                number,
                warp,
            };
            warps.push(Warp::new(frames, shape.function, position, lanes_of(threads, warp))?);
        }
        Some(Block {
            index,
            threads,
            alone,
            together: begins_together.then_some(0),
            begins_together,
            states: vec![WarpState::Ready; warps.len()],
            turn: 0,
            left: warps.len(),
            waiting_for: vec![BarOp::Sync; warps.len()],
            warps,
            barriers: [BarrierCounts::default(); CLUSTER + 1],
            in_use: 0,
            at_cluster: 0,
            _reservation: MemoryReservation::new(shape.shared_bytes)?,
            shared: Buffer::new(shape.shared_bytes)?,
            steps: 0,
            clock_reads: 0,
        })
    }

    /// Restarts a finished block as another block of the same launch. Returns `None` if the host is out of memory.
    #[inline]
    pub(crate) fn reuse(&mut self, frames: &mut Frames<'_>, shape: &GridShape, index: [u32; 3]) -> Option<()> {
        self.index = index;
        let (number, threads) = (shape.number(index), self.threads);
        self.together = self.begins_together.then_some(0);
        for warp in &mut self.warps {
            if self.begins_together {
                warp.begin_later(frames);
                continue;
            }
            let lanes = lanes_of(threads, warp.number());
            warp.reuse(frames, index, number, lanes)?;
        }
        self.states.fill(WarpState::Ready);
        (self.turn, self.left) = (0, self.warps.len());
        for id in lanes::iter(std::mem::take(&mut self.in_use)) {
            self.barriers[id] = BarrierCounts::default();
        }
        self.at_cluster = 0;
        self.shared.clear();
        (self.steps, self.clock_reads) = (0, 0);
        Some(())
    }

    /// Returns the number of instructions run so far.
    pub(crate) fn steps(&self) -> u64 {
        self.steps
    }

    /// Runs the warps in turn until all have finished, until they have run about `share` instructions, or until the
    /// block cannot continue.
    pub(crate) fn run(
        &mut self,
        m: &mut Machine<'_>,
        frames: &mut Frames<'_>,
        shape: &GridShape,
        share: u64,
    ) -> Outcome {
        // A swap takes 6 ns, which is noticeable in kernels with small blocks.
        let has_shared = shape.shared_bytes > 0;
        if has_shared {
            std::mem::swap(&mut m.spaces.shared, &mut self.shared);
        }
        (m.block_start, m.clock_reads) = (m.steps.wrapping_sub(self.steps), self.clock_reads);
        self.tell_enter(m, shape);
        let outcome = self.run_warps(m, frames, shape, share);
        (self.steps, self.clock_reads) = (m.steps.wrapping_sub(m.block_start), m.clock_reads);
        if has_shared {
            std::mem::swap(&mut m.spaces.shared, &mut self.shared);
        }
        self.tell_leave(m, shape);
        outcome
    }

    /// Returns the block as observers see it.
    #[cold]
    fn observed(&self, shape: &GridShape) -> BlockAt {
        BlockAt {
            index: self.index,
            number: shape.number(self.index),
            threads: self.threads,
        }
    }

    fn run_warps(&mut self, m: &mut Machine<'_>, frames: &mut Frames<'_>, shape: &GridShape, share: u64) -> Outcome {
        let end = m.steps.saturating_add(share);
        if let Some(at) = self.together
            && let Some(outcome) = self.run_together(m, frames, shape, at, end)
        {
            return outcome;
        }
        let mut idle = 0;
        loop {
            let w = self.turn;
            self.turn = if w + 1 < self.warps.len() { w + 1 } else { 0 };
            if self.states[w] != WarpState::Ready {
                idle += 1;
                if idle >= self.warps.len() {
                    let for_others = !self.alone && self.states.contains(&WarpState::Waiting(CLUSTER));
                    return if for_others {
                        Outcome::Blocked
                    } else {
                        self.deadlock(frames, shape)
                    };
                }
                continue;
            }
            idle = 0;
            // Each warp gets its full share, even if less is left of the block's share. Otherwise the order of warps,
            // and so the stores that they see, would depend on how host threads divide the work.
            let issued = m.watch.as_ref().map_or(0, |watch| watch.issued);
            let pause = self.warps[w].run(m, frames, shape.interpreted_share);
            if m.watch.is_some() {
                self.tell_ran(m, w, issued, &pause);
            }
            match pause {
                Pause::Share => {}
                Pause::Done => {
                    self.states[w] = WarpState::Done;
                    self.left -= 1;
                    if let Some(watch) = &mut m.watch {
                        watch.each(|o| o.warp_end(w as u32));
                    }
                    if self.left == 0 {
                        return Outcome::Done;
                    }
                    // Arrivals are compared with the number of warps that have not finished.
                    if self.at_cluster >> w & 1 == 1 {
                        self.at_cluster &= !(1 << w);
                        self.barriers[CLUSTER].arrived -= 32;
                    }
                    // Barriers without a count do not wait for warps that have exited.
                    for id in lanes::iter(self.in_use) {
                        self.complete(m, frames, id);
                    }
                }
                Pause::Barrier => {
                    if let Err(report) = self.arrive(m, frames, w) {
                        return self.fault_at_barrier(frames, shape, FaultKind::BarrierConflict { report }, w);
                    }
                }
                Pause::Fault { line } => {
                    let (kind, lane) = m.fault.take().unwrap_or((FaultKind::Trap, 0));
                    return self.fault(frames, shape, kind, w, (lane % 32, line), false);
                }
            }
            // Checked after every kind of pause: warps that loop around a barrier pause there, and may never use up
            // their own share.
            if m.steps >= end || m.has_freed_much() {
                return Outcome::Share;
            }
        }
    }

    /// Runs all threads in compiled code from the instruction that they have reached. Returns `None` if each warp has
    /// to continue on its own.
    fn run_together(
        &mut self,
        m: &mut Machine<'_>,
        frames: &Frames<'_>,
        shape: &GridShape,
        mut at: u32,
        end: u64,
    ) -> Option<Outcome> {
        let block = (self.index, shape.number(self.index));
        loop {
            match phase::run(&mut self.warps, m, frames, block, at, shape.warp_share, end) {
                PhaseEnd::End => {
                    self.states.fill(WarpState::Done);
                    (self.left, self.together) = (0, None);
                    return Some(Outcome::Done);
                }
                PhaseEnd::Barrier(next) => {
                    (at, self.together) = (next, Some(next));
                    if m.steps >= end || m.has_freed_much() {
                        return Some(Outcome::Share);
                    }
                }
                PhaseEnd::Apart => {
                    self.together = None;
                    return None;
                }
            }
        }
    }

    /// Notifies observers that a warp has run. `before` is the number of instructions that had been issued.
    #[cold]
    fn tell_ran(&self, m: &mut Machine<'_>, w: usize, before: u64, pause: &Pause) {
        let count = m.watch.as_ref().map_or(0, |watch| watch.issued - before);
        if let Some(watch) = &mut m.watch {
            watch.each(|o| o.warp_ran(w as u32, count));
            if *pause == Pause::Barrier {
                let Arrival {
                    id,
                    count,
                    op,
                    lanes,
                    function,
                    line,
                    ..
                } = *self.warps[w].arrival();
                let arrival = BarrierArrival {
                    id,
                    count,
                    op,
                    lanes,
                    function,
                    line,
                };
                watch.each(|o| o.barrier_arrive(w as u32, &arrival));
            }
        }
    }

    fn arrive(&mut self, m: &mut Machine<'_>, frames: &Frames<'_>, w: usize) -> Result<(), String> {
        let arrival = self.warps[w].arrival();
        let Some(id) = arrival.id else {
            self.arrive_at_cluster(m, frames, w);
            return Ok(());
        };
        let id = id as usize;
        let plain = arrival.op == BarOp::Sync && arrival.count.is_none();
        let Some(barrier) = self.barriers[..CLUSTER].get_mut(id) else {
            return Err(format!(
                "barrier {id} is out of range: a block has barriers 0 to {}",
                BARRIERS - 1
            ));
        };
        if plain && barrier.count.is_none() {
            // Fast path for the most common barrier.
            barrier.arrived += 32;
            self.in_use |= 1 << id;
            self.states[w] = WarpState::Waiting(id);
            self.waiting_for[w] = BarOp::Sync;
            if barrier.arrived >= self.left as u32 * 32 {
                self.complete(m, frames, id);
            }
            return Ok(());
        }
        match arrival.count {
            Some(count) if count == 0 || !count.is_multiple_of(32) => {
                return Err(format!(
                    "thread count {count} of barrier {id} is not a positive multiple of 32"
                ));
            }
            Some(count) if barrier.arrived > 0 && barrier.count != Some(count) => {
                return Err(format!(
                    "barrier {id} has thread count {count} here, but another count or none in other warps; give the \
                     same count in all warps"
                ));
            }
            None if barrier.count.is_some() => {
                return Err(format!(
                    "barrier {id} has no thread count here, but has one in other warps; give the same count in all \
                     warps"
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
            self.states[w] = WarpState::Waiting(id);
            self.waiting_for[w] = op;
        }
        self.complete(m, frames, id);
        Ok(())
    }

    /// Handles `barrier.cluster`, where arriving and waiting are two instructions.
    fn arrive_at_cluster(&mut self, m: &mut Machine<'_>, frames: &Frames<'_>, w: usize) {
        let arrived = self.at_cluster >> w & 1 == 1;
        if self.warps[w].arrival().op == BarOp::Arrive {
            if !arrived {
                self.at_cluster |= 1 << w;
                self.barriers[CLUSTER].arrived += 32;
                self.in_use |= 1 << CLUSTER;
            }
            self.warps[w].release(frames, 0);
            self.complete(m, frames, CLUSTER);
        } else if arrived {
            self.states[w] = WarpState::Waiting(CLUSTER);
            self.waiting_for[w] = BarOp::Sync;
        } else {
            // The barrier at which the warp arrived has opened already.
            self.warps[w].release(frames, 0);
        }
    }

    /// Returns true if all warps that have not finished have arrived at the cluster's barrier.
    pub(crate) fn is_at_cluster(&self) -> bool {
        self.left == 0 || self.barriers[CLUSTER].arrived >= self.left as u32 * 32
    }

    /// Returns true if some warp has arrived at the cluster's barrier.
    pub(crate) fn has_arrived(&self) -> bool {
        self.left > 0 && self.barriers[CLUSTER].arrived > 0
    }

    /// Releases the warps at the cluster's barrier, once the warps of all blocks have arrived.
    pub(crate) fn leave_cluster(&mut self, m: &mut Machine<'_>, frames: &Frames<'_>, shape: &GridShape) {
        self.tell_enter(m, shape);
        self.open(m, frames, CLUSTER);
        self.tell_leave(m, shape);
    }

    fn tell_enter(&self, m: &mut Machine<'_>, shape: &GridShape) {
        if let Some(watch) = &mut m.watch {
            let (block, first) = (self.observed(shape), self.steps == 0);
            watch.each(|o| o.block_enter(&block, first));
        }
    }

    fn tell_leave(&self, m: &mut Machine<'_>, shape: &GridShape) {
        if let Some(watch) = &mut m.watch {
            let block = self.observed(shape);
            watch.each(|o| o.block_leave(&block, self.left == 0));
        }
    }

    /// Releases the warps at a barrier if as many threads have arrived as it waits for.
    fn complete(&mut self, m: &mut Machine<'_>, frames: &Frames<'_>, id: usize) {
        let barrier = &self.barriers[id];
        let all = self.left as u32 * 32;
        let incomplete = barrier.arrived == 0 || barrier.arrived < barrier.count.unwrap_or(all);
        // If the cluster has several blocks, the cluster opens this barrier itself.
        if incomplete || (id == CLUSTER && !self.alone) {
            return;
        }
        self.open(m, frames, id);
    }

    fn open(&mut self, m: &mut Machine<'_>, frames: &Frames<'_>, id: usize) {
        let barrier = std::mem::take(&mut self.barriers[id]);
        self.in_use &= !(1 << id);
        if id == CLUSTER {
            self.at_cluster = 0;
        }
        if let Some(watch) = &mut m.watch {
            let states = &self.states;
            let waits = |warp: u32| states.get(warp as usize) == Some(&WarpState::Waiting(id));
            let number = (id != CLUSTER).then_some(id as u32);
            watch.each(|o| o.barrier_open(number, &waits));
        }
        for w in 0..self.warps.len() {
            if self.states[w] == WarpState::Waiting(id) {
                self.states[w] = WarpState::Ready;
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

    /// Returns the fault of a block in which no warp can run any more.
    pub(crate) fn deadlock(&mut self, frames: &Frames<'_>, shape: &GridShape) -> Outcome {
        self.warps.iter_mut().for_each(|warp| warp.complete_rows(frames));
        let mut reports = Vec::new();
        let mut first = None;
        for (w, state) in self.states.iter().enumerate() {
            if let WarpState::Waiting(id) = state {
                let lines: Vec<String> = self.warps[w].lines(frames).iter().map(u32::to_string).collect();
                let BarrierCounts { arrived, count, .. } = self.barriers[*id];
                let wanted = count.map_or("all".into(), |c| c.to_string());
                let which = match *id {
                    CLUSTER => "the cluster's barrier".to_string(),
                    id => format!("barrier {id}"),
                };
                reports.push(format!(
                    "warp {w} waits at {which} in line {} ({arrived} threads have arrived, and it opens when {wanted} \
                     have)",
                    lines.join(", ")
                ));
                first.get_or_insert(w);
            }
        }
        let report = reports.join("; ");
        self.fault_at_barrier(frames, shape, FaultKind::Deadlock { report }, first.unwrap_or(0))
    }

    /// Returns a fault of the first lane of a warp that has arrived at a barrier, and still is there.
    fn fault_at_barrier(&mut self, frames: &Frames<'_>, shape: &GridShape, kind: FaultKind, warp: usize) -> Outcome {
        let Arrival { lanes, line, .. } = *self.warps[warp].arrival();
        let lane = lanes::iter(lanes).next().unwrap_or(0);
        self.fault(frames, shape, kind, warp, (lane, line), true)
    }

    fn fault(
        &mut self,
        frames: &Frames<'_>,
        shape: &GridShape,
        kind: FaultKind,
        warp: usize,
        (lane, line): (usize, u32),
        at_barrier: bool,
    ) -> Outcome {
        Outcome::Fault(Box::new(Fault {
            kind,
            kernel: String::new(),
            line,
            block: self.index,
            block_size: shape.block,
            thread: thread_of(shape.block, warp as u32 * 32 + lane as u32),
            report: self.warps[warp].report(frames, lane, line, at_barrier),
        }))
    }
}

/// Returns the lanes of a warp that are threads of the block.
fn lanes_of(threads: u32, warp: u32) -> Mask {
    let count = (threads - warp * 32).min(32);
    u32::MAX >> (32 - count)
}
