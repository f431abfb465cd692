//! The scheduler of a warp: it runs the lanes of the warp in sets that are at the same instruction.
//!
//! A [`Split`] is a set of lanes at one instruction of one frame. The split in the deepest frame runs; in one frame,
//! the split at the lowest instruction. It runs until it reaches the instruction of another split, and joins it there.
//! Lanes that wait at a barrier, or at an instruction that lanes run together, are parked: they are not in a split that
//! can run, and become ready together. When a split has jumped backwards too often, another split runs for a while, so
//! that lanes that spin cannot starve the lanes that they wait for.

mod barrier;
mod builtins;
mod call;
mod compiled;
pub(crate) mod frame;
mod order;
pub(crate) mod phase;
mod printf;
mod report;
mod run;
mod stack;
pub(crate) mod tier;
mod together;

use crate::code::action::Action;
use crate::code::collective::Collective;
use crate::code::function::Code;
use crate::code::machine::Machine;
use crate::code::watch::At;
use crate::fault::FaultKind;
use crate::lanes::{self, Mask};
use crate::memory::buffer::{LocalMemory, MOST_LOCAL};
use crate::memory_budget::MemoryReservation;
use crate::ops::{matrix, tensor, texture};
use compiled::{Compilation, GroupEnds};
use frame::{Caller, Frame, FrameId, Frames, WarpPosition};
use order::Order;
use ptx::ir::{BarOp, FuncId};
use run::{Event, run};

/// A set of lanes at one instruction.
#[derive(Clone, Copy, Debug)]
struct Split {
    frame: FrameId,
    depth: u32,
    pc: u32,
    mask: Mask,
}

impl Split {
    /// Returns true if this split runs before the other: the deepest frame first, then by frame, then the lowest
    /// instruction.
    fn before(&self, other: &Split) -> bool {
        (other.depth, self.frame, self.pc) < (self.depth, other.frame, other.pc)
    }
}

/// Lanes that wait, at the instruction before `split.pc`.
#[derive(Clone, Copy, Debug)]
struct Parked {
    split: Split,
    action: u32,
    wait: Wait,
}

/// The event that lanes wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// A barrier of the block or cluster.
    Barrier,
    /// A collective with these members: they may arrive at different instructions.
    Collective(Collective, Mask),
    /// The arrival of all lanes of the warp at this instruction.
    Warp,
}

/// A warp of a block.
pub(crate) struct Warp {
    position: WarpPosition,
    frames: Vec<Option<Frame>>,
    /// Splits that can run; the last one runs next.
    ready: Vec<Split>,
    parked: Vec<Parked>,
    /// The last arrival at a barrier.
    arrival: Arrival,
    /// Lanes that have not exited.
    live: Mask,
    /// The lanes that the warp began with.
    lanes: Mask,
    /// The split that has raised a fault.
    stopped: Option<Split>,
    local: LocalMemory,
    local_reservation: MemoryReservation,
    /// Bytes of the registers of all frames.
    registers: u64,
    /// Selects the next split when splits take turns.
    turn: usize,
    /// Backward jumps since another split had its turn, including those before the warp was interrupted.
    since_turn: i64,
    /// Number of consecutive attempts to return to compiled code that failed or saved no time.
    vain_returns: u32,
    /// The instruction at which compiled code has left the warp, if it can continue there without a check of the
    /// registers.
    trusted: Option<u32>,
    /// The order of lanes that compiled code has left in different rounds of a loop, or with a fault.
    order: Option<Box<Order>>,
    /// True if the block has begun with [`Warp::begin_later`], and only compiled code has run since.
    is_behind: bool,
    /// The ends of the warp's groups in compiled code, from which it continues.
    group_ends: Option<GroupEnds>,
}

/// The reason why a warp stopped running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Pause {
    /// All lanes of the warp have exited.
    Done,
    /// All lanes that have not exited have arrived at a barrier: see [`Warp::arrival`].
    Barrier,
    /// The warp has used its share of backward jumps, and can continue.
    Share,
    /// A lane raised the fault in [`Machine::fault`].
    Fault {
        /// Line in the PTX source.
        line: u32,
    },
}

/// A warp's arrival at a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// Number of the barrier; `None` for the cluster's.
    pub(crate) id: Option<u32>,
    /// Number of threads that take part, if given.
    pub(crate) count: Option<u32>,
    /// The operation.
    pub(crate) op: BarOp,
    /// Lanes whose predicate for `.red` is true.
    pub(crate) holds: Mask,
    /// Lanes that have arrived.
    pub(crate) lanes: Mask,
    /// The function that the lanes are in.
    pub(crate) function: FuncId,
    /// Line in the PTX source.
    pub(crate) line: u32,
}

/// Backward jumps of a split before others get a turn.
const QUANTUM: i64 = 16_384;
/// [`QUANTUM`] in kernels with accesses whose results depend on other threads.
const SPIN_QUANTUM: i64 = 64;
/// Backward jumps of a split in its turn.
const TURN: i64 = 64;
/// Instructions that a warp must run in compiled code for a return to it to save time.
const WORTH_COMING_BACK: u64 = 24;
/// Number of consecutive attempts to return to compiled code without benefit after which a warp stops trying, until its
/// next block.
const MOST_VAIN_RETURNS: u32 = 3;
/// Limit on nested calls.
const MAX_DEPTH: u32 = 4096;
/// Limit on the registers of all frames of a warp in bytes.
const MAX_REGISTERS: u64 = 256 << 20;

/// Returns the number of backward jumps that an instruction of `steps` steps counts as: a round of a short loop has
/// about 16 steps, and one backward jump.
fn rounds_of(steps: u64) -> i64 {
    (steps / 16).cast_signed()
}

impl Warp {
    /// Returns a warp at the start of the kernel, or `None` if the host is out of memory.
    pub(crate) fn new(frames: &mut Frames<'_>, function: FuncId, position: WarpPosition, lanes: Mask) -> Option<Self> {
        let frame = frames.make(function, position, None, 0, lanes)?;
        let mut warp = Warp {
            registers: frame.file.bytes(),
            position,
            frames: vec![Some(frame)],
            ready: Vec::new(),
            parked: Vec::new(),
            arrival: Arrival {
                id: None,
                count: None,
                op: BarOp::Sync,
                holds: 0,
                lanes: 0,
                function,
                line: 0,
            },
            live: lanes,
            lanes,
            stopped: None,
            local: LocalMemory::default(),
            local_reservation: MemoryReservation::default(),
            turn: 0,
            since_turn: 0,
            vain_returns: 0,
            trusted: None,
            order: None,
            is_behind: false,
            group_ends: None,
        };
        warp.begin(frames, lanes)?;
        Some(warp)
    }

    /// Restarts a finished warp with these lanes, at the same position in another block. Returns `None` if the host is
    /// out of memory.
    #[inline]
    pub(crate) fn reuse(&mut self, frames: &mut Frames<'_>, block: [u32; 3], number: u64, lanes: Mask) -> Option<()> {
        self.position.block = block;
        self.position.number = number;
        (self.live, self.lanes) = (lanes, lanes);
        if self.frames.len() > 1 {
            for frame in self.frames.drain(1..).flatten() {
                frames.give_back(frame);
            }
        }
        let frame = self.frames[0].as_mut()?;
        frames.reuse(frame, self.position, lanes);
        self.registers = frame.file.bytes();
        self.begin(frames, lanes)
    }

    #[inline]
    fn begin(&mut self, frames: &Frames<'_>, lanes: Mask) -> Option<()> {
        self.ready.clear();
        self.parked.clear();
        self.turn = 0;
        self.since_turn = 0;
        self.vain_returns = 0;
        self.trusted = None;
        self.order = None;
        (self.is_behind, self.group_ends) = (false, None);
        let function = self.frames[0].as_ref()?.function;
        self.ready.push(Split {
            frame: 0,
            depth: 0,
            pc: 0,
            mask: lanes,
        });
        let bytes = u64::from(frames.code(function).local_bytes);
        if bytes == 0 {
            return Some(());
        }
        let bytes = (bytes + frames.slack()).min(MOST_LOCAL);
        let before = self.local.stride();
        self.local.reserve(bytes)?;
        self.local_reservation.grow_to(32 * self.local.stride())?;
        // New memory is zero, and takes no space until it is touched.
        self.local.restart(bytes.min(before));
        Some(())
    }

    /// Returns the last arrival at a barrier.
    pub(crate) fn arrival(&self) -> &Arrival {
        &self.arrival
    }

    /// Returns the warp's number in its block.
    pub(crate) fn number(&self) -> u32 {
        self.position.warp
    }

    /// Runs until all lanes have exited or wait, a lane faults, or the warp has taken `share` backward jumps.
    #[inline]
    pub(crate) fn run(&mut self, m: &mut Machine<'_>, frames: &mut Frames<'_>, share: i64) -> Pause {
        let mut ran = None;
        // Most kernels have no local memory.
        if self.local.stride() > 0 {
            std::mem::swap(&mut m.spaces.local, &mut self.local);
        } else if frames.compiled().is_none() {
            ran = self.run_together(m, frames, share);
            match ran {
                Some((at, Event::Barrier)) => {
                    self.arrive_at(m, frames, at);
                    return Pause::Barrier;
                }
                Some((_, Event::End)) => {
                    self.ready.clear();
                    return self.end(m);
                }
                _ => {}
            }
        }
        let pause = self.run_splits(m, frames, share, ran);
        if m.spaces.local.stride() > 0 {
            std::mem::swap(&mut m.spaces.local, &mut self.local);
        }
        pause
    }

    /// Fast path for a warp whose lanes are all at one instruction of the kernel: runs it until an [`Event`], and
    /// returns the instruction and the event. Returns `None` for other warps.
    #[inline(always)]
    fn run_together(&mut self, m: &mut Machine<'_>, frames: &Frames<'_>, share: i64) -> Option<(u32, Event)> {
        let [Split { frame: 0, pc, mask, .. }] = *self.ready.as_slice() else {
            return None;
        };
        // The first frame is the kernel's.
        let (frame, code) = (self.frames[0].as_mut()?, frames.kernel()?);
        if !self.parked.is_empty() {
            return None;
        }
        (m.live, m.warp) = (self.live, self.position.warp);
        m.switch_to(frame.function, code.caches);
        m.spaces.local_end = frame.local_end;
        self.since_turn = 0;
        m.quantum = share.max(1);
        // SAFETY: the registers belong to a frame of this code, which was decoded for this CPU.
        Some(unsafe { run(m, code, frame.file.regs(), pc, mask, u32::MAX) })
    }

    /// Records that the whole warp has arrived at a plain barrier. No lanes are parked; the warp stays ready until the
    /// block runs it again.
    #[inline(always)]
    fn arrive_at(&mut self, m: &mut Machine<'_>, frames: &Frames<'_>, at: u32) {
        m.steps += 1;
        if let Some(split) = self.ready.last_mut() {
            split.pc = at + 1;
        }
        let line = frames.kernel().map_or(0, |code| code.lines[at as usize]);
        self.arrival = Arrival {
            id: Some(m.target),
            count: None,
            op: BarOp::Sync,
            holds: 0,
            lanes: self.live,
            function: m.function,
            line,
        };
    }

    /// Ends the warp: all lanes exit at the end of the kernel.
    fn end(&mut self, m: &mut Machine<'_>) -> Pause {
        m.steps += 1;
        if let Some(frame) = self.frames[0].as_mut() {
            frame.live = 0;
        }
        self.live = 0;
        m.live = 0;
        Pause::Done
    }

    /// Runs any warp. `ran` is the result of [`run_together`](Self::run_together), if that has run the warp.
    fn run_splits(
        &mut self,
        m: &mut Machine<'_>,
        frames: &mut Frames<'_>,
        share: i64,
        ran: Option<(u32, Event)>,
    ) -> Pause {
        let (mut share, mut ran) = (share, ran);
        let mut in_turn = false;
        // Compiled code that is left at its entry must not run again at once.
        let mut left = false;
        let patience = if m.spins { SPIN_QUANTUM } else { QUANTUM };
        (m.live, m.warp) = (self.live, self.position.warp);
        loop {
            if self.order.is_some()
                && let Some(pause) = self.keep_order(m, frames)
            {
                return pause;
            }
            // Copied by field: copying a split as a whole right after its fields were written stalls the CPU.
            let Some(Split {
                frame: id,
                depth,
                pc,
                mut mask,
            }) = self.ready.pop()
            else {
                return self.settle(m, frames);
            };
            // Lanes at the same instruction may be in different rounds of a loop.
            let in_step = self.order.as_ref().is_some_and(|order| order.is_in_step());
            while let Some(other) = self.ready.last()
                && (other.frame, other.pc) == (id, pc)
                && !in_step
            {
                mask |= other.mask;
                self.ready.pop();
            }
            let split = |pc: u32, mask: Mask| Split {
                frame: id,
                depth,
                pc,
                mask,
            };
            // The split stops where it meets the next one. In its turn, it runs past splits that come before it in the
            // order.
            let mut stop = match self.ready.last() {
                Some(other) if other.frame == id && other.pc > pc => other.pc,
                _ => u32::MAX,
            };
            let Some(frame) = self.frames[id as usize].as_ref() else {
                continue;
            };
            let code = frames.code(frame.function);
            m.switch_to(frame.function, code.caches);
            m.spaces.local_end = frame.local_end;
            if !std::mem::take(&mut left)
                && mask == lanes::FULL
                && (self.vain_returns < MOST_VAIN_RETURNS || frames.is_leaving())
                && self.ready.is_empty()
                && self.parked.is_empty()
                && let Some(compiled) = self.compiled_entry(frames, id, pc)
            {
                (self.since_turn, in_turn) = (0, false);
                match self.run_groups(m, frames, code, compiled, share.max(1)) {
                    Compilation::Ready(rounds) => share -= rounds,
                    Compilation::Barrier => return Pause::Barrier,
                    Compilation::End => return self.end(m),
                    Compilation::Fault(line) => return Pause::Fault { line },
                }
                left = true;
                if share <= 0 && self.order.as_ref().is_none_or(|order| !order.is_holding()) {
                    return Pause::Share;
                }
                continue;
            }
            self.complete_rows(frames);
            let Some(frame) = self.frames[id as usize].as_mut() else {
                continue;
            };
            let had_turn = std::mem::take(&mut in_turn);
            let alone = self.ready.is_empty();
            if had_turn || alone {
                self.since_turn = 0;
            }
            let quantum = match (had_turn, alone) {
                (true, _) => TURN,
                (false, true) => share,
                (false, false) => share.min(patience - self.since_turn),
            };
            let mut quantum = if frames.is_leaving() && alone {
                1
            } else {
                quantum.max(1)
            };
            if let Some(order) = &mut self.order {
                (stop, quantum) = (order.run(mask).min(stop), 1);
            }
            let (pc, event) = ran.take().unwrap_or_else(|| {
                m.quantum = quantum;
                // SAFETY: the registers belong to a frame of this code, which was decoded for this CPU.
                unsafe { run(m, code, frame.file.regs(), pc, mask, stop) }
            });
            // Every kind of loop counts: backward jumps, divergent branches, jump tables, recursive calls. Otherwise
            // the lanes that these lanes wait for might never run.
            let mut rounds = quantum - m.quantum.max(0);
            match event {
                Event::Stop | Event::Quantum => self.push(split(pc, mask)),
                Event::Diverge => {
                    m.steps += 1;
                    rounds += i64::from(m.target <= pc);
                    self.push(split(pc + 1, mask & !m.taken));
                    self.push(split(m.target, m.taken));
                }
                Event::Fault => {
                    if self.hold_fault(m, code, split(pc, mask)) {
                        continue;
                    }
                    self.stopped = Some(split(pc, mask));
                    return Pause::Fault {
                        line: code.lines[pc as usize],
                    };
                }
                Event::Act | Event::Barrier | Event::End => {
                    m.steps += 1;
                    let index = code.insts[pc as usize].aux;
                    // Fast path: the whole warp is at a plain barrier.
                    if let Action::Barrier(barrier) = &code.actions[index as usize]
                        && let Some(id) = barrier.plain()
                        && mask == self.live
                        && self.parked.is_empty()
                    {
                        self.arrival = Arrival {
                            id: Some(id),
                            count: None,
                            op: BarOp::Sync,
                            holds: 0,
                            lanes: mask,
                            function: code.id,
                            line: code.lines[pc as usize],
                        };
                        self.ready.push(split(pc + 1, mask));
                        return Pause::Barrier;
                    }
                    // Fast path: the whole warp is at a matrix instruction.
                    if let Action::Matrix(call) = &code.actions[index as usize]
                        && mask == self.live
                        && self.parked.is_empty()
                    {
                        let before = m.steps;
                        if matrix::run(m, &mut frame.file, call, mask).is_err() {
                            if self.hold_fault(m, code, split(pc, mask)) {
                                continue;
                            }
                            self.stopped = Some(split(pc, mask));
                            return Pause::Fault {
                                line: code.lines[pc as usize],
                            };
                        }
                        rounds += rounds_of(m.steps - before);
                        share -= rounds;
                        self.ready.push(split(pc + 1, mask));
                        if share <= 0 {
                            return Pause::Share;
                        }
                        continue;
                    }
                    // Fast path: all lanes are at the end of the kernel.
                    if let Action::Return = &code.actions[index as usize]
                        && frame.caller.is_none()
                        && mask == self.live
                        && self.parked.is_empty()
                    {
                        frame.live = 0;
                        self.live = 0;
                        m.live = 0;
                        return Pause::Done;
                    }
                    match self.act(m, frames, code, split(pc, mask), index) {
                        Ok(more) => rounds += more,
                        Err(line) => {
                            if self.hold_fault(m, code, split(pc, mask)) {
                                continue;
                            }
                            self.stopped = Some(split(pc, mask));
                            return Pause::Fault { line };
                        }
                    }
                }
            }
            if self.order.as_ref().is_some_and(|order| order.is_holding()) {
                continue;
            }
            share -= rounds;
            // Jumps count from the moment at which lanes diverge, so that turns are the same in the interpreter and in
            // compiled code.
            if !had_turn && !alone {
                self.since_turn += rounds;
            }
            if share <= 0 && !self.ready.is_empty() {
                return Pause::Share;
            }
            let others = self.ready.len().saturating_sub(1);
            if self.since_turn >= patience && others > 0 {
                self.since_turn = 0;
                self.turn += 1;
                // The chosen split runs out of order for one turn.
                let other = self.ready.remove(self.turn % others);
                self.ready.push(other);
                in_turn = true;
            }
        }
    }

    /// Inserts a split into the splits that can run, in their order, or joins it with the one at the same instruction.
    fn push(&mut self, split: Split) {
        let mut at = self.ready.len();
        while at > 0 && self.ready[at - 1].before(&split) {
            at -= 1;
        }
        if let Some(other) = at.checked_sub(1).and_then(|i| self.ready.get_mut(i))
            && (other.frame, other.pc) == (split.frame, split.pc)
        {
            other.mask |= split.mask;
            return;
        }
        self.ready.insert(at, split);
    }

    /// Runs an instruction of the scheduler, and returns the number of backward jumps that it counts as. Returns `Err`
    /// with the line if a lane faults; the machine then has the fault.
    #[inline(never)]
    fn act(
        &mut self,
        m: &mut Machine<'_>,
        frames: &mut Frames<'_>,
        code: &Code,
        split: Split,
        index: u32,
    ) -> Result<i64, u32> {
        let (mut rounds, before) = (0, m.steps);
        let line = code.lines[split.pc as usize];
        let after = Split {
            pc: split.pc + 1,
            ..split
        };
        match &code.actions[index as usize] {
            Action::Exit => self.exit(m, frames, split)?,
            Action::Return => self.return_from(m, frames, code, split)?,
            Action::Branch { index, targets } => {
                let values = self.values(split.frame, *index, 4);
                let (mut rest, mut back) = (split.mask, false);
                while rest != 0 {
                    let first = values[rest.trailing_zeros() as usize];
                    let lanes = lanes::iter(rest)
                        .filter(|i| values[*i] == first)
                        .fold(0, |m, i| m | 1 << i);
                    rest &= !lanes;
                    if lanes != split.mask && rest != 0 {
                        self.tell_diverge(m, code, split, lanes);
                    }
                    let Some(target) = targets.get(first as usize) else {
                        let kind = FaultKind::InvalidBranchIndex {
                            index: first,
                            labels: targets.len(),
                        };
                        m.fault = Some((kind, lanes.trailing_zeros() as usize));
                        return Err(line);
                    };
                    back |= *target <= split.pc;
                    self.push(Split {
                        pc: *target,
                        mask: lanes,
                        ..split
                    });
                }
                rounds = i64::from(back);
            }
            Action::Barrier(_) => self.parked.push(Parked {
                split: after,
                action: index,
                wait: Wait::Barrier,
            }),
            Action::Collective(what, operands) => {
                self.park_members(m, after, index, *what, operands).map_err(|()| line)?;
                self.run_arrived(m, frames)?;
            }
            Action::Matrix(_) => {
                self.parked.push(Parked {
                    split: after,
                    action: index,
                    wait: Wait::Warp,
                });
                self.run_arrived(m, frames)?;
            }
            Action::Texture(call) => {
                let Some(frame) = self.frames[split.frame as usize].as_mut() else {
                    return Ok(0);
                };
                texture::run(m, &mut frame.file, call, split.mask).map_err(|()| line)?;
                self.push(after);
            }
            Action::Tensor(inst) => {
                let Some(frame) = self.frames[split.frame as usize].as_mut() else {
                    return Ok(0);
                };
                tensor::run(m, &mut frame.file, inst, split.mask).map_err(|()| line)?;
                self.push(after);
            }
            Action::Stack(what) => {
                self.stack(m, split, *what).map_err(|()| line)?;
                self.push(after);
            }
            Action::Call(call) => {
                self.call(m, frames, call, split, index).map_err(|()| line)?;
                rounds = 1;
            }
        }
        Ok(rounds + rounds_of(m.steps - before))
    }

    /// Notifies observers that lanes of a `brx` diverge from the others.
    #[cold]
    fn tell_diverge(&mut self, m: &mut Machine<'_>, code: &Code, split: Split, taken: Mask) {
        if let (Some(watch), Some(frame)) = (&mut m.watch, self.frames[split.frame as usize].as_mut()) {
            let (pc, warp) = (split.pc as usize, self.position.warp);
            // SAFETY: the frame of a split is a frame of its code.
            let at = unsafe { At::new(code, frame.file.regs(), pc, warp, split.mask, self.live) };
            watch.each(|o| o.diverge(&at, taken));
        }
    }

    fn exit(&mut self, m: &mut Machine<'_>, frames: &mut Frames<'_>, split: Split) -> Result<(), u32> {
        if let Some(watch) = &mut m.watch {
            watch.each(|o| o.exit(self.position.warp, split.mask));
        }
        self.live &= !split.mask;
        m.live = self.live;
        let mut next = Some(split.frame);
        while let Some(id) = next {
            next = self.leave(frames, id, split.mask).map(|c| c.frame);
        }
        // Collectives no longer wait for these lanes.
        self.run_arrived(m, frames)
    }

    /// Removes lanes from a frame, and drops the frame when it is empty, unless it is the kernel's. Returns its caller.
    fn leave(&mut self, frames: &mut Frames<'_>, id: FrameId, lanes: Mask) -> Option<Caller> {
        let frame = self.frames[id as usize].as_mut()?;
        frame.live &= !lanes;
        let caller = frame.caller;
        if frame.live == 0
            && caller.is_some()
            && let Some(frame) = self.frames[id as usize].take()
        {
            self.registers -= frame.file.bytes();
            frames.give_back(frame);
        }
        caller
    }
}
