//! Reports of a thread at a fault: its calls, its registers, and the other lanes of its warp.

#![forbid(unsafe_code)]

use super::frame::{FrameId, Frames};
use super::{Split, Wait, Warp};
use crate::code::registers::{Slot, lane_bytes};
use crate::fault::{LaneGroup, LaneState, Position, Report, SourceLine};
use crate::lanes::Mask;
use ptx::ir::{FuncId, Function, Reg};

/// Limit on the calls that a report shows.
const MOST_CALLS: usize = 64;

impl Warp {
    /// Returns the report of a lane. If the lane is in no split, `line` is its PTX line.
    pub(crate) fn report(&mut self, frames: &Frames<'_>, lane: usize, line: u32) -> Report {
        let mask = 1 << lane;
        let (mut here, mut others) = (None, Vec::new());
        let mut reported: Mask = 0;
        let stopped = self.stopped.take();
        let running = stopped
            .iter()
            .chain(&self.ready)
            .map(|split| (*split, LaneState::Running));
        let groups: Vec<(Split, LaneState, u32)> = running
            .map(|(split, state)| {
                let function = self.frames[split.frame as usize].as_ref().map(|f| f.function);
                let line = function.and_then(|id| frames.code(id).lines.get(split.pc as usize).copied());
                (split, state, line.unwrap_or(0))
            })
            .chain(self.parked.iter().map(|parked| {
                let state = match parked.wait {
                    Wait::Barrier => LaneState::AtBarrier,
                    Wait::Collective(..) | Wait::Warp => LaneState::AtCollective,
                };
                (parked.split, state, self.line(frames, parked))
            }))
            .collect();
        for (split, state, at) in groups {
            // A lane may be in two splits: lanes can fault after other lanes of their split were set aside.
            let lanes = split.mask & !reported & self.live;
            reported |= lanes;
            if lanes & mask != 0 {
                here = Some((split, at));
            }
            let rest = lanes & !mask;
            if rest != 0 {
                others.push(LaneGroup {
                    lanes: rest,
                    state,
                    position: self.position_of(frames, split.frame, at),
                });
            }
        }
        let frame = here.map_or(0, |(split, _)| split.frame);
        let line = here.map_or(line, |(_, at)| at);
        Report {
            calls: self.calls(frames, frame, line),
            others,
            exited: self.lanes & !self.live,
            registers: self.registers(frames, frame, line, lane),
        }
    }

    /// Returns the position of a line in the function of a frame.
    fn position_of(&self, frames: &Frames<'_>, frame: FrameId, line: u32) -> Position {
        let frame = self.frames.get(frame as usize).and_then(Option::as_ref);
        let function = frame.and_then(|frame| frames.function(frame.function));
        Position {
            function: function.map_or("?".into(), |function| function.name.clone()),
            line,
            source: function.and_then(|function| SourceLine::of(function, line)),
        }
    }

    /// Returns the calls of a thread in this frame, the innermost first.
    fn calls(&self, frames: &Frames<'_>, frame: FrameId, line: u32) -> Vec<Position> {
        let mut calls = vec![self.position_of(frames, frame, line)];
        let mut at = frame;
        while let Some(caller) = self
            .frames
            .get(at as usize)
            .and_then(Option::as_ref)
            .and_then(|f| f.caller)
            && calls.len() < MOST_CALLS
        {
            let calling = self.frames.get(caller.frame as usize).and_then(Option::as_ref);
            let lines = calling.map(|f| &frames.code(f.function).lines);
            let call = (caller.pc as usize).saturating_sub(1);
            let line = lines.and_then(|lines| lines.get(call).copied()).unwrap_or(0);
            calls.push(self.position_of(frames, caller.frame, line));
            at = caller.frame;
        }
        calls
    }

    /// Returns the registers that instructions on the lines before `line` write. Empty if reports do not contain
    /// registers.
    fn registers(&mut self, frames: &Frames<'_>, frame: FrameId, line: u32, lane: usize) -> Vec<(String, u64)> {
        if !frames.reports_registers() {
            return Vec::new();
        }
        let Some(frame) = self.frames.get_mut(frame as usize).and_then(Option::as_mut) else {
            return Vec::new();
        };
        let Some(body) = frames.function(frame.function).and_then(Function::body) else {
            return Vec::new();
        };
        let mut set: Vec<Reg> = Vec::new();
        for inst in body.insts.iter().filter(|inst| inst.line < line) {
            set.extend(inst.dsts.iter().flatten());
        }
        set.sort_unstable_by_key(|reg| reg.0);
        set.dedup();
        let slots = &frames.code(frame.function).registers;
        let mut registers = Vec::new();
        for reg in set {
            let (Some(Slot(slot)), Some(class)) = (slots.get(reg.0 as usize), body.registers.get(reg.0 as usize))
            else {
                continue;
            };
            if let Some(name) = body.register_name(reg) {
                registers.push((name, frame.file.get(Slot(*slot), lane_bytes(*class), lane)));
            }
        }
        registers
    }
}

impl Frames<'_> {
    fn function(&self, id: FuncId) -> Option<&Function> {
        self.loaded.module.functions.get(id.0 as usize)
    }
}
