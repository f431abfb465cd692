//! Calls and returns: creating and leaving frames, and passing values between them.

#![forbid(unsafe_code)]

use super::builtins;
use super::frame::{Caller, FrameId, Frames};
use super::{MAX_DEPTH, MAX_REGISTERS, Split, Warp};
use crate::code::action::{Action, Builtin, CallSite, CallTarget, ValueLocation};
use crate::code::function::Code;
use crate::code::machine::Machine;
use crate::code::registers::Slot;
use crate::fault::FaultKind;
use crate::lanes::{self, Mask};
use crate::memory::buffer::MOST_LOCAL;
use crate::window;
use ptx::ir::FuncId;

impl Warp {
    pub(super) fn return_from(
        &mut self,
        m: &mut Machine<'_>,
        frames: &mut Frames<'_>,
        code: &Code,
        split: Split,
    ) -> Result<(), u32> {
        let Some(caller) = self.frames[split.frame as usize].as_ref().and_then(|f| f.caller) else {
            return self.exit(m, frames, split);
        };
        let calling = self.frames[caller.frame as usize]
            .as_ref()
            .map(|f| frames.code(f.function));
        if let Some(Action::Call(call)) = calling.and_then(|code| code.actions.get(caller.action as usize)) {
            for (from, to) in code.returns.iter().zip(&call.rets) {
                self.pass(m, (split.frame, *from), (caller.frame, *to), split.mask);
            }
        }
        if let Some(watch) = &mut m.watch {
            watch.each(|o| o.ret(self.position.warp, split.mask, code.id));
        }
        let depth = split.depth.saturating_sub(1);
        self.leave(frames, split.frame, split.mask);
        self.push(Split {
            frame: caller.frame,
            depth,
            pc: caller.pc,
            mask: split.mask,
        });
        Ok(())
    }

    pub(super) fn call(
        &mut self,
        m: &mut Machine<'_>,
        frames: &mut Frames<'_>,
        call: &CallSite,
        split: Split,
        action: u32,
    ) -> Result<(), ()> {
        match call.callee {
            CallTarget::Function(id) => self.enter(m, frames, call, split, action, id, split.mask),
            CallTarget::Builtin(builtin) => self.builtin(m, call, split, builtin),
            CallTarget::Indirect(slot) => {
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
        call: &CallSite,
        split: Split,
        action: u32,
        id: FuncId,
        lanes: Mask,
    ) -> Result<(), ()> {
        let (code, function) = (frames.code(id), id);
        let caller_end = self.frames[split.frame as usize].as_ref().map_or(0, |f| f.local_end);
        let base = caller_end.next_multiple_of(16);
        let base = base.next_multiple_of(u64::from(code.local_align));
        let bytes = u64::from(code.local_bytes);
        let registers = u64::from(code.frame_bytes);
        let frame = if split.depth < MAX_DEPTH
            && base + bytes <= m.stack_limit
            && self.registers + registers <= MAX_REGISTERS
            && m.spaces
                .local
                .reserve((base + bytes + m.spaces.slack).min(MOST_LOCAL))
                .is_some()
            && let Some(()) = self.local_reservation.grow_to(32 * m.spaces.local.stride())
        {
            let origin = Caller {
                frame: split.frame,
                pc: split.pc + 1,
                action,
            };
            frames.make(id, self.position, Some(origin), base, lanes)
        } else {
            None
        };
        let Some(frame) = frame else {
            // A GPU keeps the callers' registers on the stack, so they count.
            let bytes = base + bytes + (self.registers + registers) / 32;
            m.fault = Some((FaultKind::StackOverflow { bytes }, lanes.trailing_zeros() as usize));
            return Err(());
        };
        self.registers += frame.file.bytes();
        for lane in lanes::iter(lanes) {
            if let Some(part) = m.spaces.local.lane(lane, base, bytes) {
                part.fill(0);
            }
        }
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
        if let Some(watch) = &mut m.watch {
            watch.each(|o| o.call(self.position.warp, lanes, split.pc, function));
        }
        self.push(Split {
            frame: id,
            depth: split.depth + 1,
            pc: 0,
            mask: lanes,
        });
        Ok(())
    }

    /// Copies a value from one frame to another for some lanes.
    fn pass(&mut self, m: &mut Machine<'_>, from: (FrameId, ValueLocation), to: (FrameId, ValueLocation), lanes: Mask) {
        for lane in lanes::iter(lanes) {
            let mut bytes = [0u8; 16];
            let long = match (from.1, to.1) {
                (ValueLocation::Frame { size: a, .. }, ValueLocation::Frame { size: b, .. }) => a.min(b) > 16,
                _ => false,
            };
            if long {
                let (ValueLocation::Frame { offset: a, size: n }, ValueLocation::Frame { offset: b, size }) =
                    (from.1, to.1)
                else {
                    continue;
                };
                let (a, b) = (self.base(from.0) + u64::from(a), self.base(to.0) + u64::from(b));
                m.spaces.local.copy(lane, a, b, u64::from(n.min(size)));
                continue;
            }
            self.get(m, from, lane, &mut bytes);
            self.set(m, to, lane, &bytes);
        }
    }

    fn base(&self, frame: FrameId) -> u64 {
        self.frames[frame as usize].as_ref().map_or(0, |f| f.local_base)
    }

    /// Reads the first 16 bytes of a value.
    fn get(&mut self, m: &mut Machine<'_>, (id, place): (FrameId, ValueLocation), lane: usize, bytes: &mut [u8; 16]) {
        let base = self.base(id);
        let Some(frame) = self.frames[id as usize].as_mut() else {
            return;
        };
        match place {
            ValueLocation::Mask(slot) => bytes[0] = frame.file.get(slot, 0, lane) as u8,
            ValueLocation::Row(slot, 16) => {
                bytes[..8].copy_from_slice(&frame.file.get(slot, 8, lane).to_le_bytes());
                let high = Slot(slot.0 + 8 * 32);
                bytes[8..].copy_from_slice(&frame.file.get(high, 8, lane).to_le_bytes());
            }
            ValueLocation::Row(slot, width) => {
                bytes[..8].copy_from_slice(&frame.file.get(slot, width as u8, lane).to_le_bytes());
            }
            ValueLocation::Frame { offset, size } => {
                let size = size.min(16);
                if let Some(from) = m.spaces.local.lane(lane, base + u64::from(offset), u64::from(size)) {
                    bytes[..from.len()].copy_from_slice(from);
                }
            }
        }
    }

    fn set(&mut self, m: &mut Machine<'_>, (id, place): (FrameId, ValueLocation), lane: usize, bytes: &[u8; 16]) {
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
            ValueLocation::Mask(slot) => frame.file.set(slot, 0, 1 << lane, |_| word(0)),
            ValueLocation::Row(slot, 16) => {
                frame.file.set(slot, 8, 1 << lane, |_| word(0));
                frame.file.set(Slot(slot.0 + 8 * 32), 8, 1 << lane, |_| word(8));
            }
            ValueLocation::Row(slot, width) => frame.file.set(slot, width as u8, 1 << lane, |_| word(0)),
            ValueLocation::Frame { offset, size } => {
                let size = size.min(16);
                if let Some(to) = m.spaces.local.lane(lane, base + u64::from(offset), u64::from(size)) {
                    to.copy_from_slice(&bytes[..to.len()]);
                }
            }
        }
    }

    /// Returns the values of a register, one per lane.
    pub(super) fn values(&mut self, frame: FrameId, slot: Slot, width: u8) -> [u64; 32] {
        let mut values = [0; 32];
        if let Some(frame) = self.frames[frame as usize].as_mut() {
            for (lane, value) in values.iter_mut().enumerate() {
                *value = frame.file.get(slot, width, lane);
            }
        }
        values
    }

    /// Returns the arguments of a lane's call of a builtin.
    fn builtin_args(&mut self, m: &mut Machine<'_>, call: &CallSite, frame: FrameId, lane: usize) -> [u64; 5] {
        let mut args = [0; 5];
        for (arg, place) in args.iter_mut().zip(&call.args) {
            let mut bytes = [0; 16];
            self.get(m, (frame, *place), lane, &mut bytes);
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[..8]);
            *arg = u64::from_le_bytes(word);
        }
        args
    }

    fn builtin(&mut self, m: &mut Machine<'_>, call: &CallSite, split: Split, builtin: Builtin) -> Result<(), ()> {
        for lane in lanes::iter(split.mask) {
            let args = self.builtin_args(m, call, split.frame, lane);
            match builtins::run(m, builtin, &args, lane) {
                Ok(result) => {
                    let mut bytes = [0; 16];
                    bytes[..8].copy_from_slice(&result.to_le_bytes());
                    if let Some(place) = call.rets.first() {
                        self.set(m, (split.frame, *place), lane, &bytes);
                    }
                }
                Err(mut kind) => {
                    if let FaultKind::Assert { lanes: failed, .. } = &mut kind {
                        let same = |other: &usize| self.builtin_args(m, call, split.frame, *other) == args;
                        *failed = lanes::iter(split.mask)
                            .filter(same)
                            .fold(0, |mask, lane| mask | 1 << lane);
                    }
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
}
