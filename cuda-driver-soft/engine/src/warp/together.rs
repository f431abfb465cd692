//! Instructions that lanes of a warp run together (shuffles, votes, matrices), once all that take part have arrived.

#![forbid(unsafe_code)]

use super::frame::{FrameId, Frames};
use super::{Parked, Split, Wait, Warp};
use crate::code::action::Action;
use crate::code::collective::{Collective, CollectiveOperands};
use crate::code::machine::Machine;
use crate::code::registers::{Slot, bytes_of};
use crate::fault::FaultKind;
use crate::lanes::{self, Mask};
use crate::ops::collective::compute;
use crate::ops::matrix;
use ptx::ir::RegClass;

impl Warp {
    /// Parks lanes at a collective instruction until all its members have arrived.
    pub(super) fn park_members(
        &mut self,
        m: &mut Machine<'_>,
        split: Split,
        action: u32,
        collective: Collective,
        operands: &CollectiveOperands,
    ) -> Result<(), ()> {
        let members = match operands.members {
            Some(slot) => self.values(split.frame, slot, 4),
            None => [u64::from(split.mask); 32],
        };
        // Lanes may have different member masks, as long as each lane is in its own mask.
        let mut rest = split.mask;
        while rest != 0 {
            let first = rest.trailing_zeros() as usize;
            let wanted = members[first] as Mask;
            let lanes = lanes::iter(rest)
                .filter(|i| members[*i] as Mask == wanted)
                .fold(0, |m, i| m | 1 << i);
            rest &= !lanes;
            let outside = lanes & !wanted;
            if outside != 0 {
                let lane = outside.trailing_zeros() as usize;
                let report = format!("lane {lane} is not in its own member mask {wanted:#010x}");
                m.fault = Some((FaultKind::BarrierMisuse { report }, lane));
                return Err(());
            }
            self.parked.push(Parked {
                split: Split { mask: lanes, ..split },
                action,
                wait: Wait::Collective(collective, wanted),
            });
        }
        Ok(())
    }

    /// Runs the collective and matrix instructions whose members have all arrived. Returns `Err` with the line if a
    /// lane faults; the machine then has the fault.
    pub(super) fn run_arrived(&mut self, m: &mut Machine<'_>, frames: &Frames<'_>) -> Result<(), u32> {
        let mut next = 0;
        while let Some(first) = self.parked.get(next).copied() {
            next += 1;
            let same = |p: &Parked| match first.wait {
                Wait::Barrier => false,
                Wait::Collective(..) => p.wait == first.wait,
                Wait::Warp => p.wait == first.wait && self.at_one_place(&first, p),
            };
            let arrived = self.parked.iter().filter(|p| same(p));
            let lanes = arrived.fold(0, |lanes, p| lanes | p.split.mask);
            let members = match first.wait {
                Wait::Barrier => continue,
                Wait::Collective(_, members) => members,
                Wait::Warp => Mask::MAX,
            };
            if members & self.live & !lanes != 0 {
                continue;
            }
            let (group, rest): (Vec<_>, Vec<_>) = self.parked.iter().copied().partition(|p| same(p));
            self.parked = rest;
            match first.wait {
                Wait::Collective(collective, _) => {
                    if let Some(watch) = &mut m.watch {
                        watch.each(|o| o.warp_sync(self.position.warp, lanes));
                    }
                    self.run_collective(frames, collective, lanes, group);
                }
                _ => self.run_matrix(m, frames, lanes, &group)?,
            }
            next = 0;
        }
        Ok(())
    }

    /// Returns true if lanes are at the same instruction: in one frame, or in two frames of the same function that did
    /// not call each other.
    fn at_one_place(&self, a: &Parked, b: &Parked) -> bool {
        let frame = |p: &Parked| self.frames[p.split.frame as usize].as_ref();
        let (Some(first), Some(other)) = (frame(a), frame(b)) else {
            return false;
        };
        let apart = first.live & other.live == 0;
        a.split.pc == b.split.pc && (a.split.frame == b.split.frame || (apart && first.function == other.function))
    }

    /// Runs a matrix instruction at which all lanes of the warp have arrived. The sources of lanes in other frames are
    /// copied to the first frame, whose rows are unused in those lanes, and the results are copied back.
    fn run_matrix(
        &mut self,
        m: &mut Machine<'_>,
        frames: &Frames<'_>,
        lanes: Mask,
        group: &[Parked],
    ) -> Result<(), u32> {
        let Some((Split { frame: id, pc, .. }, action)) = group.first().map(|p| (p.split, p.action)) else {
            return Ok(());
        };
        let others = || group.iter().filter(|p| p.split.frame != id);
        let function = self.frames[id as usize].as_ref().map(|f| f.function);
        let code = function.map(|function| frames.code(function));
        if let Some(code) = code
            && let Some(Action::Matrix(call)) = code.actions.get(action as usize)
        {
            for other in others() {
                let Split { frame, mask, .. } = other.split;
                self.copy_rows(call.reads(), (frame, id), mask);
            }
            if let Some(frame) = self.frames[id as usize].as_mut() {
                m.spaces.local_end = frame.local_end;
                matrix::run(m, &mut frame.file, call, lanes).map_err(|()| code.lines[pc as usize - 1])?;
            }
            for other in others() {
                let Split { frame, mask, .. } = other.split;
                self.copy_rows(call.writes(), (id, frame), mask);
            }
        }
        for parked in group {
            self.push(parked.split);
        }
        Ok(())
    }

    /// Copies rows, given with their bytes per lane, from one frame to another.
    fn copy_rows(&mut self, rows: impl Iterator<Item = (Slot, u8)>, (from, to): (FrameId, FrameId), lanes: Mask) {
        for (slot, width) in rows {
            let values = self.values(from, slot, width);
            if let Some(frame) = self.frames[to as usize].as_mut() {
                frame.file.set(slot, width, lanes, |lane| values[lane]);
            }
        }
    }

    /// Runs a collective instruction at which all members have arrived.
    fn run_collective(&mut self, frames: &Frames<'_>, collective: Collective, lanes: Mask, group: Vec<Parked>) {
        let (mut a, mut b, mut c) = ([0; 32], [0; 32], [0; 32]);
        for parked in &group {
            let Some(operands) = self.operands(frames, parked) else {
                continue;
            };
            let width = collective.source().map_or(4, |class| {
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
        let outcome = compute(collective, lanes, &a, &b, &c);
        for parked in group {
            if let Some(operands) = self.operands(frames, &parked)
                && let Some(frame) = self.frames[parked.split.frame as usize].as_mut()
            {
                let mask = parked.split.mask;
                if let Some(class) = collective.result() {
                    let width = if class == RegClass::Pred { 0 } else { 4 };
                    frame.file.set(operands.d, width, mask, |i| outcome.d[i]);
                }
                frame.file.set(operands.p, 0, mask, |i| u64::from(outcome.p >> i & 1));
            }
            self.push(parked.split);
        }
    }

    pub(super) fn operands<'e>(&self, frames: &Frames<'e>, parked: &Parked) -> Option<&'e CollectiveOperands> {
        let frame = self.frames[parked.split.frame as usize].as_ref()?;
        match frames.code(frame.function).actions.get(parked.action as usize)? {
            Action::Collective(_, operands) => Some(operands),
            _ => None,
        }
    }
}
