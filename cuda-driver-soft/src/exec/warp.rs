//! A warp: its lanes, split into groups that are at the same place.
//!
//! A [`Split`] is a set of lanes at one instruction of one frame. The one that runs is that in the deepest frame, and
//! there the one at the lowest block; it runs until it comes to where another split waits, and joins it there. Only
//! splits that could run join: lanes parked at a barrier are elsewhere, and come back together. So that lanes that spin
//! cannot starve those they wait for, another split gets a turn when one has gone round too often.

use super::code::{Action, Barrier, Builtin, Call, Code, Place, Target, Value};
use super::fault::FaultKind;
use super::frame::{Caller, Frame, FrameId, Frames, Here};
use super::lanes::{self, Mask};
use super::machine::Machine;
use super::ops::collective::{Collective, Operands, compute};
use super::registers::Slot;
use super::registers::bytes_of;
use super::run::{Event, run};
use super::{builtins, window};
use crate::ir::{BarOp, FuncId, RegClass};
use crate::memory::buffer::LocalMemory;

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

/// Lanes that wait at a barrier, or for others to do something together; they go on behind it.
#[derive(Clone, Copy, Debug)]
struct Parked {
    split: Split,
    action: u32,
    /// What they wait to do together with which lanes: wherever those come to the same, it is done.
    together: Option<(Collective, Mask)>,
}

/// A warp of a block.
pub(crate) struct Warp {
    here: Here,
    frames: Vec<Option<Frame>>,
    /// Splits that can run; the next one last.
    ready: Vec<Split>,
    parked: Vec<Parked>,
    /// Lanes that have not exited.
    live: Mask,
    local: LocalMemory,
    /// Whose turn it is when splits take turns.
    turn: usize,
}

/// Why a warp stopped running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Pause {
    /// All its lanes have exited.
    Done,
    /// All its lanes are at this barrier.
    Barrier(Arrival),
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
    /// Which barrier.
    pub(crate) id: u32,
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
/// Nested calls.
const MAX_DEPTH: u32 = 4096;

impl Warp {
    /// A warp at the start of the kernel. `None` if the host has no memory for it.
    pub(crate) fn new(
        frames: &mut Frames<'_>,
        function: FuncId,
        here: Here,
        lanes: Mask,
    ) -> Option<Self> {
        let frame = frames.make(function, here, None, 0, lanes);
        let mut warp = Warp {
            here,
            frames: vec![Some(frame)],
            ready: Vec::new(),
            parked: Vec::new(),
            live: lanes,
            local: LocalMemory::default(),
            turn: 0,
        };
        warp.begin(frames, lanes)?;
        Some(warp)
    }

    /// Makes a warp that is done ready for the same place in another block.
    pub(crate) fn reuse(&mut self, frames: &mut Frames<'_>, here: Here, lanes: Mask) -> Option<()> {
        self.here = here;
        self.live = lanes;
        for frame in self.frames.drain(1..).flatten() {
            frames.give_back(frame);
        }
        frames.reuse(self.frames[0].as_mut()?, here, lanes);
        self.begin(frames, lanes)
    }

    fn begin(&mut self, frames: &Frames<'_>, lanes: Mask) -> Option<()> {
        self.ready.clear();
        self.parked.clear();
        self.ready.push(Split {
            frame: 0,
            depth: 0,
            pc: 0,
            mask: lanes,
        });
        let bytes = u64::from(frames.code(self.frames[0].as_ref()?.function).local_bytes);
        self.local.reserve(bytes)?;
        self.local.clear(0, bytes);
        Some(())
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
        std::mem::swap(&mut m.spaces.local, &mut self.local);
        let pause = self.run_splits(m, frames, share);
        std::mem::swap(&mut m.spaces.local, &mut self.local);
        pause
    }

    fn run_splits(&mut self, m: &mut Machine<'_>, frames: &mut Frames<'_>, share: i64) -> Pause {
        let mut share = share;
        let mut in_turn = false;
        m.live = self.live;
        loop {
            let Some(mut split) = self.ready.pop() else {
                return self.settle(m, frames);
            };
            while let Some(other) = self.ready.last()
                && (other.frame, other.pc) == (split.frame, split.pc)
            {
                split.mask |= other.mask;
                self.ready.pop();
            }
            // Where it meets the next one. In its turn it goes past: the order would only hold it again.
            let stop = match self.ready.last() {
                Some(other) if other.frame == split.frame && other.pc > split.pc => other.pc,
                _ => u32::MAX,
            };
            let Some(frame) = self.frames[split.frame as usize].as_mut() else {
                continue;
            };
            let code = frames.code(frame.function);
            m.spaces.local_end = frame.local_base + u64::from(code.local_bytes);
            let had_turn = std::mem::take(&mut in_turn);
            let quantum = match (had_turn, self.ready.is_empty()) {
                (true, _) => TURN,
                (false, true) => share.max(1),
                (false, false) => share.clamp(1, if m.spins { SPIN_QUANTUM } else { QUANTUM }),
            };
            m.quantum = quantum;
            // SAFETY: the registers are those of the frame, made for its code, which was decoded for this CPU.
            let (pc, event) =
                unsafe { run(m, code, frame.file.regs(), split.pc, split.mask, stop) };
            split.pc = pc;
            match event {
                Event::Stop => self.push(split),
                Event::Diverge => {
                    self.push(Split {
                        pc: pc + 1,
                        mask: split.mask & !m.taken,
                        ..split
                    });
                    self.push(Split {
                        pc: m.target,
                        mask: m.taken,
                        ..split
                    });
                }
                Event::Quantum => {
                    share -= quantum;
                    let others = self.ready.len();
                    if others == 0 || share <= 0 {
                        self.push(split);
                        return Pause::Share;
                    }
                    if had_turn {
                        self.push(split);
                        continue;
                    }
                    self.turn += 1;
                    let other = self.ready.remove(self.turn % others);
                    self.push(split);
                    // In front of the order, for once.
                    self.ready.push(other);
                    in_turn = true;
                }
                Event::Fault => {
                    return Pause::Fault {
                        line: code.lines[pc as usize],
                    };
                }
                Event::Act => {
                    let index = code.insts[pc as usize].aux;
                    if let Err(()) = self.act(m, frames, code, split, index) {
                        return Pause::Fault {
                            line: code.lines[pc as usize],
                        };
                    }
                }
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

    /// Runs an instruction of the scheduler. `Err`: the fault is recorded.
    fn act(
        &mut self,
        m: &mut Machine<'_>,
        frames: &mut Frames<'_>,
        code: &Code,
        split: Split,
        index: u32,
    ) -> Result<(), ()> {
        let after = Split {
            pc: split.pc + 1,
            ..split
        };
        match &code.actions[index as usize] {
            Action::Exit => self.exit(m, frames, split),
            Action::Return => self.return_from(m, frames, code, split),
            Action::Branch { index, targets } => {
                let values = self.values(split.frame, *index, 4);
                let mut rest = split.mask;
                while rest != 0 {
                    let first = values[rest.trailing_zeros() as usize];
                    let lanes = lanes::iter(rest)
                        .filter(|i| values[*i] == first)
                        .fold(0, |m, i| m | 1 << i);
                    rest &= !lanes;
                    let Some(target) = targets.get(first as usize) else {
                        let kind = FaultKind::InvalidPc { address: first };
                        m.fault = Some((kind, lanes.trailing_zeros() as usize));
                        return Err(());
                    };
                    self.push(Split {
                        pc: *target,
                        mask: lanes,
                        ..split
                    });
                }
            }
            Action::Barrier(_) => self.parked.push(Parked {
                split: after,
                action: index,
                together: None,
            }),
            Action::Collective(what, operands) => {
                self.park_together(m, after, index, *what, operands)?;
                self.do_together(frames);
            }
            Action::Call(call) => return self.call(m, frames, call, split, index),
        }
        Ok(())
    }

    fn exit(&mut self, m: &mut Machine<'_>, frames: &mut Frames<'_>, split: Split) {
        self.live &= !split.mask;
        m.live = self.live;
        let mut next = Some(split.frame);
        while let Some(id) = next {
            next = self.leave(frames, id, split.mask).map(|c| c.frame);
        }
        // Those who waited for these lanes wait no longer.
        self.do_together(frames);
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
            frames.give_back(frame);
        }
        caller
    }

    fn return_from(
        &mut self,
        m: &mut Machine<'_>,
        frames: &mut Frames<'_>,
        code: &Code,
        split: Split,
    ) {
        let Some(caller) = self.frames[split.frame as usize]
            .as_ref()
            .and_then(|f| f.caller)
        else {
            self.exit(m, frames, split);
            return;
        };
        let calling = self.frames[caller.frame as usize]
            .as_ref()
            .map(|f| frames.code(f.function));
        if let Some(Action::Call(call)) =
            calling.and_then(|code| code.actions.get(caller.action as usize))
        {
            for (from, to) in code.returns.iter().zip(&call.rets) {
                self.pass(m, (split.frame, *from), (caller.frame, *to), split.mask);
            }
        }
        let depth = split.depth.saturating_sub(1);
        self.leave(frames, split.frame, split.mask);
        self.push(Split {
            frame: caller.frame,
            depth,
            pc: caller.pc,
            mask: split.mask,
        });
    }

    fn call(
        &mut self,
        m: &mut Machine<'_>,
        frames: &mut Frames<'_>,
        call: &Call,
        split: Split,
        action: u32,
    ) -> Result<(), ()> {
        match call.callee {
            Target::Function(id) => self.enter(m, frames, call, split, action, id, split.mask),
            Target::Builtin(builtin) => self.builtin(m, call, split, builtin),
            Target::Indirect(slot) => {
                let addresses = self.values(split.frame, slot, 8);
                let mut rest = split.mask;
                while rest != 0 {
                    let first = rest.trailing_zeros() as usize;
                    let lanes = lanes::iter(rest)
                        .filter(|i| addresses[*i] == addresses[first])
                        .fold(0, |m, i| m | 1 << i);
                    rest &= !lanes;
                    let function = window::function_index(addresses[first]).map(FuncId);
                    match function.filter(|id| frames.has(*id)) {
                        Some(id) => self.enter(m, frames, call, split, action, id, lanes)?,
                        None => {
                            m.fault = Some((
                                FaultKind::InvalidPc {
                                    address: addresses[first],
                                },
                                first,
                            ));
                            return Err(());
                        }
                    }
                }
                Ok(())
            }
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn enter(
        &mut self,
        m: &mut Machine<'_>,
        frames: &mut Frames<'_>,
        call: &Call,
        split: Split,
        action: u32,
        id: FuncId,
        lanes: Mask,
    ) -> Result<(), ()> {
        let code = frames.code(id);
        let caller_end = self.frames[split.frame as usize].as_ref().map_or(0, |f| {
            f.local_base + u64::from(frames.code(f.function).local_bytes)
        });
        let base = caller_end.next_multiple_of(16);
        let base = base.next_multiple_of(u64::from(code.local_align));
        let bytes = u64::from(code.local_bytes);
        if split.depth >= MAX_DEPTH
            || base + bytes > m.stack_limit
            || m.spaces.local.reserve(base + bytes).is_none()
        {
            m.fault = Some((
                FaultKind::StackOverflow {
                    bytes: base + bytes,
                },
                lanes.trailing_zeros() as usize,
            ));
            return Err(());
        }
        for lane in lanes::iter(lanes) {
            if let Some(part) = m.spaces.local.lane(lane, base, bytes) {
                part.fill(0);
            }
        }
        let origin = Caller {
            frame: split.frame,
            pc: split.pc + 1,
            action,
        };
        let function = id;
        let frame = frames.make(function, self.here, Some(origin), base, lanes);
        let id = match self.frames.iter().position(Option::is_none) {
            Some(free) => {
                self.frames[free] = Some(frame);
                free
            }
            None => {
                self.frames.push(Some(frame));
                self.frames.len() - 1
            }
        } as FrameId;
        for (from, to) in call.args.iter().zip(&code.params) {
            self.pass(m, (split.frame, *from), (id, *to), lanes);
        }
        self.push(Split {
            frame: id,
            depth: split.depth + 1,
            pc: 0,
            mask: lanes,
        });
        Ok(())
    }

    /// Copies a value from one frame to another, for some lanes.
    fn pass(
        &mut self,
        m: &mut Machine<'_>,
        from: (FrameId, Place),
        to: (FrameId, Place),
        lanes: Mask,
    ) {
        for lane in lanes::iter(lanes) {
            let mut bytes = [0u8; 16];
            let long = match (from.1, to.1) {
                (Place::Frame { size: a, .. }, Place::Frame { size: b, .. }) => a.min(b) > 16,
                _ => false,
            };
            if long {
                let (Place::Frame { offset: a, size: n }, Place::Frame { offset: b, size }) =
                    (from.1, to.1)
                else {
                    continue;
                };
                let (a, b) = (
                    self.base(from.0) + u64::from(a),
                    self.base(to.0) + u64::from(b),
                );
                m.spaces.local.copy(lane, a, b, u64::from(n.min(size)));
                continue;
            }
            self.get(m, from, lane, &mut bytes);
            self.set(m, to, lane, &bytes);
        }
    }

    fn base(&self, frame: FrameId) -> u64 {
        self.frames[frame as usize]
            .as_ref()
            .map_or(0, |f| f.local_base)
    }

    /// The first 16 bytes of a value.
    fn get(
        &mut self,
        m: &mut Machine<'_>,
        (id, place): (FrameId, Place),
        lane: usize,
        bytes: &mut [u8; 16],
    ) {
        let base = self.base(id);
        let Some(frame) = self.frames[id as usize].as_mut() else {
            return;
        };
        match place {
            Place::Mask(slot) => bytes[0] = frame.file.get(slot, 0, lane) as u8,
            Place::Row(slot, 16) => {
                bytes[..8].copy_from_slice(&frame.file.get(slot, 8, lane).to_le_bytes());
                let high = Slot(slot.0 + 8 * 32);
                bytes[8..].copy_from_slice(&frame.file.get(high, 8, lane).to_le_bytes());
            }
            Place::Row(slot, width) => {
                bytes[..8].copy_from_slice(&frame.file.get(slot, width as u8, lane).to_le_bytes());
            }
            Place::Frame { offset, size } => {
                let size = size.min(16);
                if let Some(from) =
                    m.spaces
                        .local
                        .lane(lane, base + u64::from(offset), u64::from(size))
                {
                    bytes[..from.len()].copy_from_slice(from);
                }
            }
        }
    }

    fn set(
        &mut self,
        m: &mut Machine<'_>,
        (id, place): (FrameId, Place),
        lane: usize,
        bytes: &[u8; 16],
    ) {
        let base = self.base(id);
        let Some(frame) = self.frames[id as usize].as_mut() else {
            return;
        };
        let word = |i: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[i..i + 8]);
            u64::from_le_bytes(word)
        };
        match place {
            Place::Mask(slot) => frame.file.set(slot, 0, 1 << lane, |_| word(0)),
            Place::Row(slot, 16) => {
                frame.file.set(slot, 8, 1 << lane, |_| word(0));
                frame
                    .file
                    .set(Slot(slot.0 + 8 * 32), 8, 1 << lane, |_| word(8));
            }
            Place::Row(slot, width) => frame.file.set(slot, width as u8, 1 << lane, |_| word(0)),
            Place::Frame { offset, size } => {
                let size = size.min(16);
                if let Some(to) =
                    m.spaces
                        .local
                        .lane(lane, base + u64::from(offset), u64::from(size))
                {
                    to.copy_from_slice(&bytes[..to.len()]);
                }
            }
        }
    }

    /// The values of a register, one per lane.
    fn values(&mut self, frame: FrameId, slot: Slot, width: u8) -> [u64; 32] {
        let mut values = [0; 32];
        if let Some(frame) = self.frames[frame as usize].as_mut() {
            for (lane, value) in values.iter_mut().enumerate() {
                *value = frame.file.get(slot, width, lane);
            }
        }
        values
    }

    fn builtin(
        &mut self,
        m: &mut Machine<'_>,
        call: &Call,
        split: Split,
        builtin: Builtin,
    ) -> Result<(), ()> {
        for lane in lanes::iter(split.mask) {
            let mut args = [0u64; 5];
            for (arg, place) in args.iter_mut().zip(&call.args) {
                let mut bytes = [0; 16];
                self.get(m, (split.frame, *place), lane, &mut bytes);
                let mut word = [0; 8];
                word.copy_from_slice(&bytes[..8]);
                *arg = u64::from_le_bytes(word);
            }
            match builtins::run(m, builtin, &args, lane) {
                Ok(result) => {
                    let mut bytes = [0; 16];
                    bytes[..8].copy_from_slice(&result.to_le_bytes());
                    if let Some(place) = call.rets.first() {
                        self.set(m, (split.frame, *place), lane, &bytes);
                    }
                }
                Err(kind) => {
                    m.fault = Some((kind, lane));
                    return Err(());
                }
            }
        }
        self.push(Split {
            pc: split.pc + 1,
            ..split
        });
        Ok(())
    }

    /// Keeps lanes until all that they are to do something together with have come.
    fn park_together(
        &mut self,
        m: &mut Machine<'_>,
        split: Split,
        action: u32,
        what: Collective,
        operands: &Operands,
    ) -> Result<(), ()> {
        let members = match operands.members {
            Some(slot) => self.values(split.frame, slot, 4),
            None => [u64::from(split.mask); 32],
        };
        // Lanes may name different lanes, as long as each names itself.
        let mut rest = split.mask;
        while rest != 0 {
            let first = rest.trailing_zeros() as usize;
            let wanted = members[first] as Mask;
            let lanes = lanes::iter(rest)
                .filter(|i| members[*i] as Mask == wanted)
                .fold(0, |m, i| m | 1 << i);
            rest &= !lanes;
            if wanted & lanes != lanes {
                let report =
                    format!("a lane takes part whose bit is not in its member mask {wanted:#010x}");
                m.fault = Some((FaultKind::BarrierMisuse { report }, first));
                return Err(());
            }
            self.parked.push(Parked {
                split: Split {
                    mask: lanes,
                    ..split
                },
                action,
                together: Some((what, wanted)),
            });
        }
        Ok(())
    }

    /// Does what lanes wait to do together, wherever all have come.
    fn do_together(&mut self, frames: &Frames<'_>) {
        let mut next = 0;
        while let Some(Parked { together, .. }) = self.parked.get(next).copied() {
            next += 1;
            let Some((what, members)) = together else {
                continue;
            };
            let here = self.parked.iter().filter(|p| p.together == together);
            let lanes = here.fold(0, |lanes, p| lanes | p.split.mask);
            if members & self.live & !lanes != 0 {
                continue;
            }
            let (group, rest) = std::mem::take(&mut self.parked)
                .into_iter()
                .partition(|p| p.together == together);
            self.parked = rest;
            self.together(frames, what, lanes, group);
            next = 0;
        }
    }

    fn together(&mut self, frames: &Frames<'_>, what: Collective, lanes: Mask, group: Vec<Parked>) {
        let (mut a, mut b, mut c) = ([0; 32], [0; 32], [0; 32]);
        for parked in &group {
            let Some(operands) = self.operands(frames, parked) else {
                continue;
            };
            let width = what.source().map_or(4, |class| {
                if class == RegClass::Pred {
                    0
                } else {
                    bytes_of(class) / 32
                }
            });
            let frame = parked.split.frame;
            let (from_a, from_b, from_c) = (
                self.values(frame, operands.a, width as u8),
                self.values(frame, operands.b, 4),
                self.values(frame, operands.c, 4),
            );
            for i in lanes::iter(parked.split.mask) {
                a[i] = from_a[i] ^ u64::from(operands.negated);
                (b[i], c[i]) = (from_b[i] as u32, from_c[i] as u32);
            }
        }
        let outcome = compute(what, lanes, &a, &b, &c);
        for parked in group {
            if let Some(operands) = self.operands(frames, &parked)
                && let Some(frame) = self.frames[parked.split.frame as usize].as_mut()
            {
                let mask = parked.split.mask;
                if let Some(class) = what.result() {
                    let width = if class == RegClass::Pred { 0 } else { 4 };
                    frame.file.set(operands.d, width, mask, |i| outcome.d[i]);
                }
                frame
                    .file
                    .set(operands.p, 0, mask, |i| u64::from(outcome.p >> i & 1));
            }
            self.push(parked.split);
        }
    }

    fn operands<'e>(&self, frames: &Frames<'e>, parked: &Parked) -> Option<&'e Operands> {
        let frame = self.frames[parked.split.frame as usize].as_ref()?;
        match frames
            .code(frame.function)
            .actions
            .get(parked.action as usize)?
        {
            Action::Collective(_, operands) => Some(operands),
            _ => None,
        }
    }

    /// No split can run: all have exited, or wait at barriers.
    fn settle(&mut self, m: &mut Machine<'_>, frames: &Frames<'_>) -> Pause {
        let Some(first) = self.parked.first().copied() else {
            return Pause::Done;
        };
        let arrivals: Vec<Option<Arrival>> = self
            .parked
            .clone()
            .iter()
            .map(|p| self.arrival(frames, p))
            .collect();
        let place = |p: &Parked| {
            (
                self.frames[p.split.frame as usize]
                    .as_ref()
                    .map(|f| f.function),
                p.split.pc,
            )
        };
        let mut all: Option<Arrival> = None;
        for (parked, arrival) in self.parked.iter().zip(&arrivals) {
            let aligned = self.barrier(frames, parked).is_none_or(|b| b.aligned);
            let same_place = !aligned || place(parked) == place(&first);
            all = match (all, arrival) {
                (None, Some(arrival)) => Some(*arrival),
                (Some(a), Some(b))
                    if same_place && (a.id, a.count, a.op) == (b.id, b.count, b.op) =>
                {
                    Some(Arrival {
                        holds: a.holds | b.holds,
                        lanes: a.lanes | b.lanes,
                        ..a
                    })
                }
                _ => return self.misuse(m, frames, &arrivals),
            };
        }
        match all {
            Some(arrival) => Pause::Barrier(arrival),
            None => self.misuse(m, frames, &arrivals),
        }
    }

    /// What parked lanes want; `None` if the lanes do not agree on the barrier.
    fn arrival(&mut self, frames: &Frames<'_>, parked: &Parked) -> Option<Arrival> {
        let Parked { split, .. } = *parked;
        let barrier = self.barrier(frames, parked)?;
        let frame = self.frames[split.frame as usize].as_mut()?;
        let line = frames.code(frame.function).lines[split.pc as usize - 1];
        let mut uniform = |value: Value| match value {
            Value::Is(value) => Some(value),
            Value::In(slot) => {
                let mut lanes =
                    lanes::iter(split.mask).map(|lane| frame.file.get(slot, 4, lane) as u32);
                let first = lanes.next()?;
                lanes.all(|v| v == first).then_some(first)
            }
        };
        let id = uniform(barrier.id)?;
        let count = match barrier.count {
            Some(count) => Some(uniform(count)?),
            None => None,
        };
        let mut holds = 0;
        if let Some((slot, negated)) = barrier.predicate {
            for lane in lanes::iter(split.mask) {
                let value = frame.file.get(slot, 0, lane) as u32 & 1;
                holds |= (value ^ u32::from(negated)) << lane;
            }
        }
        Some(Arrival {
            id,
            count,
            op: barrier.op,
            holds,
            lanes: split.mask,
            line,
        })
    }

    fn barrier<'e>(&self, frames: &Frames<'e>, parked: &Parked) -> Option<&'e Barrier> {
        let frame = self.frames[parked.split.frame as usize].as_ref()?;
        match frames
            .code(frame.function)
            .actions
            .get(parked.action as usize)?
        {
            Action::Barrier(barrier) => Some(barrier),
            _ => None,
        }
    }

    fn misuse(
        &self,
        m: &mut Machine<'_>,
        frames: &Frames<'_>,
        arrivals: &[Option<Arrival>],
    ) -> Pause {
        let places = self.parked.iter().zip(arrivals).map(|(p, arrival)| {
            let which = match (p.together, arrival) {
                (Some((what, members)), _) => format!("{what:?} of lanes {members:#010x}"),
                (None, Some(arrival)) => format!("barrier {}", arrival.id),
                (None, None) => "different barriers".into(),
            };
            format!(
                "lanes {:#010x} wait at {which} in line {}",
                p.split.mask,
                self.line(frames, p)
            )
        });
        let report = format!(
            "in warp {}, {}",
            self.here.warp,
            places.collect::<Vec<_>>().join(", ")
        );
        let at = self.parked.first().map_or(0, |p| self.line(frames, p));
        m.fault = Some((
            FaultKind::BarrierMisuse { report },
            self.live.trailing_zeros() as usize % 32,
        ));
        Pause::Fault { line: at }
    }

    /// The line of the barrier that lanes wait at.
    fn line(&self, frames: &Frames<'_>, parked: &Parked) -> u32 {
        let frame = self.frames[parked.split.frame as usize].as_ref();
        frame.map_or(0, |f| {
            frames.code(f.function).lines[parked.split.pc as usize - 1]
        })
    }

    /// The barrier let the warp go: its lanes can run, and have the result of `.red`.
    pub(crate) fn release(&mut self, frames: &Frames<'_>, result: u32) {
        for parked in std::mem::take(&mut self.parked) {
            let barrier = self.barrier(frames, &parked).map(|b| (b.op, b.result));
            if let Some((op, Some(slot))) = barrier
                && let Some(frame) = self.frames[parked.split.frame as usize].as_mut()
            {
                let width = if op == BarOp::Popc { 4 } else { 0 };
                frame
                    .file
                    .set(slot, width, parked.split.mask, |_| u64::from(result));
            }
            self.push(parked.split);
        }
    }

    /// Where the lanes wait, for reports.
    pub(crate) fn lines(&self, frames: &Frames<'_>) -> Vec<u32> {
        self.parked.iter().map(|p| self.line(frames, p)).collect()
    }
}
