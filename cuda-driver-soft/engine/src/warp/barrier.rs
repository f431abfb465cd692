//! A warp at a barrier of its block or cluster.

#![forbid(unsafe_code)]

use super::frame::Frames;
use super::{Arrival, Parked, Pause, Wait, Warp};
use crate::code::action::{Action, BarrierInst, BarrierOperand};
use crate::code::machine::Machine;
use crate::fault::FaultKind;
use crate::lanes;
use ptx::ir::BarOp;

impl Warp {
    /// Determines why no split can run: all lanes have exited, or they wait.
    pub(super) fn settle(&mut self, m: &mut Machine<'_>, frames: &Frames<'_>) -> Pause {
        let Some(first) = self.parked.first().copied() else {
            return Pause::Done;
        };
        // Fast path: the whole warp is at one barrier.
        if self.parked.len() == 1
            && let Some(arrival) = self.arrival_of(frames, &first)
        {
            self.arrival = arrival;
            return Pause::Barrier;
        }
        let arrivals: Vec<Option<Arrival>> = self.parked.clone().iter().map(|p| self.arrival_of(frames, p)).collect();
        let place = |p: &Parked| {
            (
                self.frames[p.split.frame as usize].as_ref().map(|f| f.function),
                p.split.pc,
            )
        };
        let mut all: Option<Arrival> = None;
        for (parked, arrival) in self.parked.iter().zip(&arrivals) {
            let aligned = self.barrier(frames, parked).is_none_or(|b| b.aligned);
            let same_place = !aligned || place(parked) == place(&first);
            all = match (all, arrival) {
                (None, Some(arrival)) => Some(*arrival),
                (Some(a), Some(b)) if same_place && (a.id, a.count, a.op) == (b.id, b.count, b.op) => Some(Arrival {
                    holds: a.holds | b.holds,
                    lanes: a.lanes | b.lanes,
                    ..a
                }),
                _ => return self.misuse(m, frames, &arrivals),
            };
        }
        match all {
            Some(arrival) => {
                self.arrival = arrival;
                Pause::Barrier
            }
            None => self.misuse(m, frames, &arrivals),
        }
    }

    /// Returns the arrival of parked lanes; `None` if the lanes do not agree on the barrier or its thread count, or if
    /// they are not at a barrier.
    fn arrival_of(&mut self, frames: &Frames<'_>, parked: &Parked) -> Option<Arrival> {
        let Parked { split, .. } = *parked;
        let barrier = self.barrier(frames, parked)?;
        let frame = self.frames[split.frame as usize].as_mut()?;
        let function = frame.function;
        let line = frames.code(function).lines[split.pc as usize - 1];
        let mut uniform = |value: BarrierOperand| match value {
            BarrierOperand::Constant(value) => Some(value),
            BarrierOperand::Register(slot) => {
                let mut lanes = lanes::iter(split.mask).map(|lane| frame.file.get(slot, 4, lane) as u32);
                let first = lanes.next()?;
                lanes.all(|v| v == first).then_some(first)
            }
        };
        let id = match barrier.id {
            Some(id) => Some(uniform(id)?),
            None => None,
        };
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
            function,
            line,
        })
    }

    pub(super) fn barrier<'e>(&self, frames: &Frames<'e>, parked: &Parked) -> Option<&'e BarrierInst> {
        let frame = self.frames[parked.split.frame as usize].as_ref()?;
        match frames.code(frame.function).actions.get(parked.action as usize)? {
            Action::Barrier(barrier) => Some(barrier),
            _ => None,
        }
    }

    /// Returns the name of the matrix instruction at which lanes wait.
    fn matrix(&self, frames: &Frames<'_>, parked: &Parked) -> &'static str {
        let frame = self.frames[parked.split.frame as usize].as_ref();
        let code = frame.map(|f| frames.code(f.function));
        match code.and_then(|c| c.actions.get(parked.action as usize)) {
            Some(Action::Matrix(call)) => call.name(),
            _ => "an operation",
        }
    }

    fn misuse(&self, m: &mut Machine<'_>, frames: &Frames<'_>, arrivals: &[Option<Arrival>]) -> Pause {
        let places = self.parked.iter().zip(arrivals).map(|(p, arrival)| {
            let which = match (p.wait, arrival) {
                (Wait::Collective(what, members), _) => {
                    format!("`{}` of lanes {members:#010x}", what.name())
                }
                (Wait::Warp, _) => format!("`{}` of all lanes", self.matrix(frames, p)),
                (Wait::Barrier, Some(Arrival { id: Some(id), .. })) => format!("barrier {id}"),
                (Wait::Barrier, Some(_)) => "the cluster's barrier".into(),
                (Wait::Barrier, None) => "barriers with different numbers or thread counts".into(),
            };
            format!(
                "lanes {:#010x} wait at {which} in line {}",
                p.split.mask,
                self.line(frames, p)
            )
        });
        let report = format!(
            "in warp {}, {}",
            self.position.warp,
            places.collect::<Vec<_>>().join(", ")
        );
        let at = self.parked.first().map_or(0, |p| self.line(frames, p));
        // If all lanes wait at barriers of the block, a GPU faults because of different numbers or thread counts. It
        // waits for ever if the lanes wait at different instructions.
        let barrier = |arrival: &Option<Arrival>| arrival.map(|arrival| (arrival.id, arrival.count));
        let in_block = |(p, arrival): (&Parked, &Option<Arrival>)| {
            p.wait == Wait::Barrier && arrival.is_none_or(|a| a.id.is_some())
        };
        let conflict = self.parked.iter().zip(arrivals).all(in_block)
            && (arrivals.contains(&None) || arrivals.iter().any(|other| barrier(other) != barrier(&arrivals[0])));
        let kind = if conflict {
            FaultKind::BarrierConflict { report }
        } else {
            FaultKind::BarrierMisuse { report }
        };
        m.fault = Some((kind, self.live.trailing_zeros() as usize % 32));
        Pause::Fault { line: at }
    }

    /// Returns the PTX line of the instruction at which lanes wait.
    pub(super) fn line(&self, frames: &Frames<'_>, parked: &Parked) -> u32 {
        let frame = self.frames[parked.split.frame as usize].as_ref();
        frame.map_or(0, |f| frames.code(f.function).lines[parked.split.pc as usize - 1])
    }

    /// Makes the lanes at a barrier ready to run, with the result of `.red`.
    #[inline]
    pub(crate) fn release(&mut self, frames: &Frames<'_>, result: u32) {
        if !self.parked.is_empty() {
            self.release_parked(frames, result);
        }
        if self.order.is_some() {
            self.forget_rounds();
        }
    }

    fn release_parked(&mut self, frames: &Frames<'_>, result: u32) {
        // Keep the list's allocation for the next barrier.
        let mut all = std::mem::take(&mut self.parked);
        for parked in all.drain(..) {
            let barrier = self.barrier(frames, &parked).map(|b| (b.op, b.result));
            if let Some((op, Some(slot))) = barrier
                && let Some(frame) = self.frames[parked.split.frame as usize].as_mut()
            {
                let width = if op == BarOp::Popc { 4 } else { 0 };
                frame.file.set(slot, width, parked.split.mask, |_| u64::from(result));
            }
            self.push(parked.split);
        }
        self.parked = all;
    }

    /// Returns the PTX lines at which lanes wait, for reports.
    pub(crate) fn lines(&self, frames: &Frames<'_>) -> Vec<u32> {
        if self.parked.is_empty() {
            return vec![self.arrival.line];
        }
        self.parked.iter().map(|p| self.line(frames, p)).collect()
    }
}
