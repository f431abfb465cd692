//! Reports of a thread at a fault: its calls, its registers, and the other lanes of its warp.

#![forbid(unsafe_code)]

use super::frame::{Frame, FrameId, Frames};
use super::{Split, Wait, Warp};
use crate::fault::{LaneGroup, LaneState, Position, Report};
use crate::lanes::Mask;
use ptx::ir::{FuncId, Function};

/// Limit on the calls that a report shows.
const MOST_CALLS: usize = 64;

impl Warp {
    /// Returns the report of a lane. If the lane is in no split, `line` is its PTX line. `at_barrier` is true if the
    /// block has not let the warp continue since its last arrival.
    pub(crate) fn report(&mut self, frames: &Frames<'_>, lane: usize, line: u32, at_barrier: bool) -> Report {
        let mask = 1 << lane;
        let (mut here, mut others) = (None, Vec::new());
        let mut reported: Mask = 0;
        let stopped = self.stopped.take();
        // A warp that arrives as a whole at a plain barrier is not parked: it is ready at the instruction after it.
        let arrived = at_barrier && self.parked.is_empty();
        let groups: Vec<(Split, LaneState, u32)> = stopped
            .iter()
            .chain(&self.ready)
            .map(|split| match arrived {
                true => (*split, LaneState::AtBarrier, self.arrival.line),
                false => (*split, LaneState::Running, self.line_at(frames, split.frame, split.pc)),
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

    /// Returns a frame; `None` if no lane is in it.
    fn frame(&self, id: FrameId) -> Option<&Frame> {
        self.frames.get(id as usize)?.as_ref()
    }

    /// Returns the PTX line of an instruction of a frame; 0 if there is no such instruction.
    fn line_at(&self, frames: &Frames<'_>, frame: FrameId, pc: u32) -> u32 {
        let lines = self.frame(frame).map(|frame| &frames.code(frame.function).lines);
        lines.and_then(|lines| lines.get(pc as usize).copied()).unwrap_or(0)
    }

    /// Returns the position of a line in the function of a frame.
    fn position_of(&self, frames: &Frames<'_>, frame: FrameId, line: u32) -> Position {
        let function = self.frame(frame).and_then(|frame| frames.function(frame.function));
        Position::of(function, line)
    }

    /// Returns the calls of a thread in this frame, the innermost first.
    fn calls(&self, frames: &Frames<'_>, frame: FrameId, line: u32) -> Vec<Position> {
        let mut calls = vec![self.position_of(frames, frame, line)];
        let mut at = frame;
        while let Some(caller) = self.frame(at).and_then(|frame| frame.caller)
            && calls.len() < MOST_CALLS
        {
            let line = self.line_at(frames, caller.frame, caller.pc.saturating_sub(1));
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
        let code = frames.code(frame.function);
        code.registers_before(body, line, |slot, width| frame.file.get(slot, width, lane))
    }
}

impl Frames<'_> {
    fn function(&self, id: FuncId) -> Option<&Function> {
        self.loaded.module.functions.get(id.0 as usize)
    }
}
