//! A warp: its lanes, split into groups that are at the same place.
//!
//! A [`Split`] is a set of lanes at one instruction of one frame. The one that runs is that in the deepest frame, and
//! there the one at the lowest block; it runs until it comes to where another split waits, and joins it there. Only
//! splits that could run join: lanes parked at a barrier are elsewhere, and come back together. So that lanes that spin
//! cannot starve those they wait for, another split gets a turn when one has gone round too often.

mod barrier;
pub(crate) mod builtins;
mod call;
pub(crate) mod frame;
mod run;
mod stack;
mod together;

use crate::code::machine::Machine;
use crate::code::{Action, Code};
use crate::fault::FaultKind;
use crate::lanes::{self, Mask};
use crate::memory::buffer::LocalMemory;
use crate::memory_budget::Held;
use crate::ops::collective::Collective;
use crate::ops::{matrix, texture};
use frame::{Caller, Frame, FrameId, Frames, Here};
use ptx::ir::{BarOp, FuncId};
use run::{Event, run};

/// Lanes at one place.
#[derive(Clone, Copy, Debug)]
struct Split {
    frame: FrameId,
    depth: u32,
    pc: u32,
    mask: Mask,
}

impl Split {
    /// Whether this one goes first: deepest frame, then frame by frame, then lowest place.
    fn before(&self, other: &Split) -> bool {
        (other.depth, self.frame, self.pc) < (self.depth, other.frame, other.pc)
    }
}

/// Lanes that wait; they go on behind the instruction.
#[derive(Clone, Copy, Debug)]
struct Parked {
    split: Split,
    action: u32,
    wait: Wait,
}

/// What lanes wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// A barrier.
    Barrier,
    /// To do this together with these lanes: wherever those come to the same, it is done.
    Together(Collective, Mask),
    /// For all lanes of the warp to come to this instruction.
    Warp,
}

/// A warp of a block.
pub(crate) struct Warp {
    here: Here,
    frames: Vec<Option<Frame>>,
    /// Splits that can run; the next one last.
    ready: Vec<Split>,
    parked: Vec<Parked>,
    /// The barrier that it came to last.
    arrival: Arrival,
    /// Lanes that have not exited.
    live: Mask,
    local: LocalMemory,
    local_held: Held,
    /// Bytes of the registers of all frames.
    registers: u64,
    /// Whose turn it is when splits take turns.
    turn: usize,
    /// Jumps backwards since another split had its turn, however often the warp was interrupted in between.
    since_turn: i64,
    /// Instructions run since the warp last came back to the code for converged warps.
    stay: u64,
    /// How often, one time after the other, that was not worth it.
    in_vain: u32,
}

/// Why a warp stopped running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Pause {
    /// All its lanes have exited.
    Done,
    /// All its lanes are at a barrier: see [`Warp::arrival`].
    Barrier,
    /// It could go on, but has had its share.
    Share,
    /// Something went wrong; the rest is in [`Machine::fault`].
    Fault {
        /// Line in the PTX source.
        line: u32,
    },
}

/// A warp's arrival at a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// Which barrier of the block; `None`: the cluster's.
    pub(crate) id: Option<u32>,
    /// How many threads take part, if said.
    pub(crate) count: Option<u32>,
    /// What is done there.
    pub(crate) op: BarOp,
    /// Of `.red`: lanes whose predicate holds.
    pub(crate) holds: Mask,
    /// Lanes that are there.
    pub(crate) lanes: Mask,
    /// Line in the PTX source.
    pub(crate) line: u32,
}

/// Jumps backwards that a split may do before others get a turn.
const QUANTUM: i64 = 16_384;
/// The same once it was seen to look for what others do.
const SPIN_QUANTUM: i64 = 64;
/// Jumps backwards that a split gets in its turn.
const TURN: i64 = 64;
/// Instructions that a warp should run in the code for converged warps before it leaves it again, or coming back costs more
/// than it gains.
const WORTH_COMING_BACK: u64 = 24;
/// How often a warp of a block tries to come back in vain before it stays away.
const MOST_IN_VAIN: u32 = 3;
/// Nested calls.
const MAX_DEPTH: u32 = 4096;
/// Bytes of registers of all frames of a warp.
const MAX_REGISTERS: u64 = 256 << 20;

impl Warp {
    /// A warp at the start of the kernel. `None` if the host has no memory for it.
    pub(crate) fn new(
        frames: &mut Frames<'_>,
        function: FuncId,
        here: Here,
        lanes: Mask,
    ) -> Option<Self> {
        let frame = frames.make(function, here, None, 0, lanes)?;
        let mut warp = Warp {
            registers: frame.file.bytes(),
            here,
            frames: vec![Some(frame)],
            ready: Vec::new(),
            parked: Vec::new(),
            arrival: Arrival {
                id: None,
                count: None,
                op: BarOp::Sync,
                holds: 0,
                lanes: 0,
                line: 0,
            },
            live: lanes,
            local: LocalMemory::default(),
            local_held: Held::default(),
            turn: 0,
            since_turn: 0,
            stay: 0,
            in_vain: 0,
        };
        warp.begin(frames, lanes, true)?;
        Some(warp)
    }

    /// Makes a warp that is done ready for the same place in another block, in which it has these lanes.
    pub(crate) fn reuse(
        &mut self,
        frames: &mut Frames<'_>,
        block: [u32; 3],
        number: u64,
        lanes: Mask,
    ) -> Option<()> {
        self.here.block = block;
        self.here.number = number;
        self.live = lanes;
        if self.frames.len() > 1 {
            for frame in self.frames.drain(1..).flatten() {
                frames.give_back(frame);
            }
        }
        let frame = self.frames[0].as_mut()?;
        frames.reuse(frame, self.here, lanes);
        self.registers = frame.file.bytes();
        self.begin(frames, lanes, false)
    }

    fn begin(&mut self, frames: &Frames<'_>, lanes: Mask, new: bool) -> Option<()> {
        self.ready.clear();
        self.parked.clear();
        self.turn = 0;
        self.since_turn = 0;
        (self.stay, self.in_vain) = (u64::MAX, 0);
        let function = self.frames[0].as_ref()?.function;
        self.ready.push(Split {
            frame: 0,
            depth: 0,
            pc: frames.entry(function, lanes, new),
            mask: lanes,
        });
        let bytes = u64::from(frames.code(function).local_bytes);
        if bytes == 0 {
            return Some(());
        }
        let before = self.local.stride();
        self.local.reserve(bytes)?;
        self.local_held.grow_to(32 * self.local.stride())?;
        // What is new is zero, and takes no room until it is touched.
        self.local.clear(0, bytes.min(before));
        Some(())
    }

    /// The barrier that it came to last.
    pub(crate) fn arrival(&self) -> &Arrival {
        &self.arrival
    }

    /// The warp's number in its block.
    pub(crate) fn number(&self) -> u32 {
        self.here.warp
    }

    /// Runs until all lanes have exited or wait, or until the warp has had its share: `share` jumps backwards.
    pub(crate) fn run(
        &mut self,
        m: &mut Machine<'_>,
        frames: &mut Frames<'_>,
        share: i64,
    ) -> Pause {
        let mut ran = None;
        // Most kernels have no local memory.
        if self.local.stride() > 0 {
            std::mem::swap(&mut m.spaces.local, &mut self.local);
        } else {
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

    /// Runs a warp all of whose lanes are at one place, as most are most of the time, until something happens: says where
    /// and what. `None`: it is not such a warp, or might come back to the code for converged warps.
    #[inline(always)]
    fn run_together(
        &mut self,
        m: &mut Machine<'_>,
        frames: &Frames<'_>,
        share: i64,
    ) -> Option<(u32, Event)> {
        let [
            Split {
                frame: 0, pc, mask, ..
            },
        ] = *self.ready.as_slice()
        else {
            return None;
        };
        // The first frame is the kernel's.
        let (frame, code) = (self.frames[0].as_mut()?, frames.kernel()?);
        let elsewhere = code.converged.as_ref().is_some_and(|c| pc < c.first);
        if !self.parked.is_empty() || elsewhere {
            return None;
        }
        (m.live, m.warp) = (self.live, self.here.warp);
        m.switch_to(frame.function, code);
        m.spaces.local_end = frame.local_end;
        self.since_turn = 0;
        m.quantum = share.max(1);
        let before = m.steps;
        // SAFETY: the registers are those of the frame, made for its code, which was decoded for this CPU.
        let ran = unsafe { run(m, code, frame.file.regs(), pc, mask, u32::MAX) };
        self.stay = self.stay.saturating_add(m.steps.wrapping_sub(before));
        Some(ran)
    }

    /// The whole warp is at the most usual barrier: nobody has to be kept, it goes on when the block lets it.
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
            line,
        };
    }

    /// All lanes are at the end of the kernel.
    fn end(&mut self, m: &mut Machine<'_>) -> Pause {
        m.steps += 1;
        if let Some(frame) = self.frames[0].as_mut() {
            frame.live = 0;
        }
        self.live = 0;
        m.live = 0;
        Pause::Done
    }

    /// The same for any warp, which has come to `ran` already if it was run before.
    fn run_splits(
        &mut self,
        m: &mut Machine<'_>,
        frames: &mut Frames<'_>,
        share: i64,
        ran: Option<(u32, Event)>,
    ) -> Pause {
        let (mut share, mut ran) = (share, ran);
        let mut in_turn = false;
        let patience = if m.spins { SPIN_QUANTUM } else { QUANTUM };
        (m.live, m.warp) = (self.live, self.here.warp);
        loop {
            // In parts: a split that is put together from parts to be copied as a whole makes the CPU wait.
            let Some(Split {
                frame: id,
                depth,
                mut pc,
                mut mask,
            }) = self.ready.pop()
            else {
                return self.settle(m, frames);
            };
            while let Some(other) = self.ready.last()
                && (other.frame, other.pc) == (id, pc)
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
            // Where it meets the next one. In its turn it goes past: the order would only hold it again.
            let stop = match self.ready.last() {
                Some(other) if other.frame == id && other.pc > pc => other.pc,
                _ => u32::MAX,
            };
            let Some(frame) = self.frames[id as usize].as_mut() else {
                continue;
            };
            let code = frames.code(frame.function);
            m.switch_to(frame.function, code);
            m.spaces.local_end = frame.local_end;
            if ran.is_none()
                && mask == lanes::FULL
                && self.in_vain < MOST_IN_VAIN
                && self.ready.is_empty()
                && self.parked.is_empty()
                && let Some(resumed) = frames.resume(frame, pc)
            {
                match resumed {
                    Ok(to) => (pc, self.stay) = (to, 0),
                    Err(()) => self.in_vain += 1,
                }
            }
            let had_turn = std::mem::take(&mut in_turn);
            if had_turn || self.ready.is_empty() {
                self.since_turn = 0;
            }
            let quantum = match (had_turn, self.ready.is_empty()) {
                (true, _) => TURN,
                (false, true) => share,
                (false, false) => share.min(patience - self.since_turn),
            };
            let quantum = quantum.max(1);
            let (pc, event) = ran.take().unwrap_or_else(|| {
                m.quantum = quantum;
                let before = m.steps;
                // SAFETY: the registers are those of the frame, made for its code, which was decoded for this CPU.
                let ran = unsafe { run(m, code, frame.file.regs(), pc, mask, stop) };
                self.stay = self.stay.saturating_add(m.steps.wrapping_sub(before));
                ran
            });
            // Every way to go round counts: a loop that splits the lanes each time, one made of jump tables, calls that
            // call. Else those that the lanes wait for would never run.
            let mut rounds = quantum - m.quantum.max(0);
            match event {
                Event::Stop | Event::Quantum => self.push(split(pc, mask)),
                Event::Diverge => {
                    m.steps += 1;
                    rounds += i64::from(m.target <= pc);
                    self.push(split(pc + 1, mask & !m.taken));
                    self.push(split(m.target, m.taken));
                }
                Event::Leave => {
                    self.in_vain = if self.stay < WORTH_COMING_BACK {
                        self.in_vain + 1
                    } else {
                        0
                    };
                    // The warp is all here, so nobody is to be ordered.
                    let pc = frames.leave(frame, self.here, pc);
                    self.ready.push(split(pc, mask));
                }
                Event::Fault => {
                    return Pause::Fault {
                        line: code.lines[pc as usize],
                    };
                }
                Event::Act | Event::Barrier | Event::End => {
                    m.steps += 1;
                    let index = code.insts[pc as usize].aux;
                    // The whole warp at the most usual barrier: nobody has to be kept, it goes on when the block lets it.
                    if let Action::Barrier(barrier) = &code.actions[index as usize]
                        && let Some(id) = barrier.plain()
                        && self.ready.is_empty()
                        && self.parked.is_empty()
                    {
                        self.arrival = Arrival {
                            id: Some(id),
                            count: None,
                            op: BarOp::Sync,
                            holds: 0,
                            lanes: mask,
                            line: code.lines[pc as usize],
                        };
                        self.ready.push(split(pc + 1, mask));
                        return Pause::Barrier;
                    }
                    // The whole warp at what it does together.
                    if let Action::Matrix(call) = &code.actions[index as usize]
                        && mask == self.live
                        && self.parked.is_empty()
                    {
                        let before = m.steps;
                        if matrix::run(m, &mut frame.file, call, mask).is_err() {
                            return Pause::Fault {
                                line: code.lines[pc as usize],
                            };
                        }
                        rounds += ((m.steps - before) / 16).cast_signed();
                        share -= rounds;
                        self.ready.push(split(pc + 1, mask));
                        if share <= 0 {
                            return Pause::Share;
                        }
                        continue;
                    }
                    // The end of a kernel, for all lanes at once.
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
                        Err(line) => return Pause::Fault { line },
                    }
                }
            }
            share -= rounds;
            if !had_turn {
                self.since_turn += rounds;
            }
            if share <= 0 && !self.ready.is_empty() {
                return Pause::Share;
            }
            let others = self.ready.len().saturating_sub(1);
            if self.since_turn >= patience && others > 0 {
                self.since_turn = 0;
                self.turn += 1;
                // In front of the order, for once.
                let other = self.ready.remove(self.turn % others);
                self.ready.push(other);
                in_turn = true;
            }
        }
    }

    /// Puts a split where it belongs among those that can run.
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

    /// Runs an instruction of the scheduler, and says how many jumps backwards it is worth. `Err`: the line of the fault,
    /// which is recorded.
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
                    let Some(target) = targets.get(first as usize) else {
                        let kind = FaultKind::InvalidPc { address: first };
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
                self.park_together(m, after, index, *what, operands)
                    .map_err(|()| line)?;
                self.do_together(m, frames)?;
            }
            Action::Matrix(_) => {
                self.parked.push(Parked {
                    split: after,
                    action: index,
                    wait: Wait::Warp,
                });
                self.do_together(m, frames)?;
            }
            Action::Texture(call) => {
                let Some(frame) = self.frames[split.frame as usize].as_mut() else {
                    return Ok(0);
                };
                texture::run(m, &mut frame.file, call, split.mask).map_err(|()| line)?;
                self.push(after);
            }
            Action::Stack(what) => {
                self.stack(m, split, *what).map_err(|()| line)?;
                self.push(after);
            }
            Action::Call(call) => {
                self.call(m, frames, call, split, index)
                    .map_err(|()| line)?;
                rounds = 1;
            }
        }
        // What takes as long as many instructions counts as so many rounds of a short loop.
        Ok(rounds + ((m.steps - before) / 16).cast_signed())
    }

    fn exit(
        &mut self,
        m: &mut Machine<'_>,
        frames: &mut Frames<'_>,
        split: Split,
    ) -> Result<(), u32> {
        self.live &= !split.mask;
        m.live = self.live;
        let mut next = Some(split.frame);
        while let Some(id) = next {
            next = self.leave(frames, id, split.mask).map(|c| c.frame);
        }
        // Those who waited for these lanes wait no longer.
        self.do_together(m, frames)
    }

    /// Lanes leave a frame, which goes when it is empty. Says who called it.
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
