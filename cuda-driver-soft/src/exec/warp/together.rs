//! What lanes of a warp do together: shuffles, votes and the like, once all that take part have come.

use super::{Parked, Split, Wait, Warp};
use crate::exec::code::Action;
use crate::exec::fault::FaultKind;
use crate::exec::frame::Frames;
use crate::exec::lanes::{self, Mask};
use crate::exec::machine::Machine;
use crate::exec::ops::collective::{Collective, Operands, compute};
use crate::exec::ops::matrix;
use crate::exec::registers::bytes_of;
use crate::ir::RegClass;

impl Warp {
    /// Keeps lanes until all that they are to do something together with have come.
    pub(super) fn park_together(
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
                wait: Wait::Together(what, wanted),
            });
        }
        Ok(())
    }

    /// Does what lanes wait to do together, wherever all have come. `Err`: the line of the fault, which is recorded.
    pub(super) fn do_together(
        &mut self,
        m: &mut Machine<'_>,
        frames: &Frames<'_>,
    ) -> Result<(), u32> {
        let mut next = 0;
        while let Some(first) = self.parked.get(next).copied() {
            next += 1;
            let place = |p: &Parked| (p.split.frame, p.split.pc);
            let belongs = |p: &Parked| match first.wait {
                Wait::Barrier => false,
                Wait::Together(..) => p.wait == first.wait,
                // The lanes' registers have to be those of one frame.
                Wait::Warp => p.wait == first.wait && place(p) == place(&first),
            };
            let here = self.parked.iter().filter(|p| belongs(p));
            let lanes = here.fold(0, |lanes, p| lanes | p.split.mask);
            let members = match first.wait {
                Wait::Barrier => continue,
                Wait::Together(_, members) => members,
                Wait::Warp => Mask::MAX,
            };
            if members & self.live & !lanes != 0 {
                continue;
            }
            let (group, rest) = std::mem::take(&mut self.parked)
                .into_iter()
                .partition(belongs);
            self.parked = rest;
            match first.wait {
                Wait::Together(what, _) => self.together(frames, what, lanes, group),
                _ => self.as_a_warp(m, frames, &first, lanes)?,
            }
            next = 0;
        }
        Ok(())
    }

    /// Runs an instruction that all lanes of the warp have come to.
    fn as_a_warp(
        &mut self,
        m: &mut Machine<'_>,
        frames: &Frames<'_>,
        parked: &Parked,
        lanes: Mask,
    ) -> Result<(), u32> {
        if let Some(frame) = self.frames[parked.split.frame as usize].as_mut() {
            let code = frames.code(frame.function);
            if let Some(Action::Matrix(call)) = code.actions.get(parked.action as usize) {
                m.spaces.local_end = frame.local_end;
                matrix::run(m, &mut frame.file, call, lanes)
                    .map_err(|()| code.lines[parked.split.pc as usize - 1])?;
            }
        }
        self.push(Split {
            mask: lanes,
            ..parked.split
        });
        Ok(())
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

    pub(super) fn operands<'e>(
        &self,
        frames: &Frames<'e>,
        parked: &Parked,
    ) -> Option<&'e Operands> {
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
}
