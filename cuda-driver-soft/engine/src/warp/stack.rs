//! `alloca`, `stacksave` and `stackrestore`: allocations on the threads' stacks, after the frame of the running
//! function.

#![forbid(unsafe_code)]

use super::{Split, Warp};
use crate::code::action::StackOp;
use crate::code::machine::Machine;
use crate::fault::FaultKind;
use crate::lanes;

impl Warp {
    /// Runs a stack operation for the lanes of a split. Returns `Err` if a lane faults; the machine then has the fault.
    pub(super) fn stack(&mut self, m: &mut Machine<'_>, split: Split, op: StackOp) -> Result<(), ()> {
        let (values, width) = match op {
            StackOp::Alloca { to, size, .. } => (self.values(split.frame, size, to.1), to.1),
            StackOp::Save((_, width)) => ([0; 32], width),
            StackOp::Restore((slot, width)) => (self.values(split.frame, slot, width), width),
        };
        let Some(frame) = self.frames[split.frame as usize].as_mut() else {
            return Ok(());
        };
        let mut tops = frame.stack_tops();
        let (fixed, mut result) = (frame.local_fixed, tops);
        for lane in lanes::iter(split.mask) {
            match op {
                StackOp::Alloca { align, .. } => {
                    let start = tops[lane].next_multiple_of(align);
                    let end = start.saturating_add(values[lane]);
                    let room = end <= m.stack_limit
                        && m.spaces.local.reserve(end).is_some()
                        && self.local_reservation.grow_to(32 * m.spaces.local.stride()).is_some();
                    if !room {
                        m.fault = Some((FaultKind::StackOverflow { bytes: end }, lane));
                        return Err(());
                    }
                    // Clear the memory, so that results do not depend on its earlier use.
                    if let Some(part) = m.spaces.local.lane(lane, start, end - start) {
                        part.fill(0);
                    }
                    (tops[lane], result[lane]) = (end, start);
                }
                StackOp::Save(_) => {}
                // Only positions saved in this function are valid.
                StackOp::Restore(_) => tops[lane] = values[lane].clamp(fixed, tops[lane]),
            }
        }
        match op {
            StackOp::Alloca { to: (slot, _), .. } | StackOp::Save((slot, _)) => {
                frame.file.set(slot, width, split.mask, |lane| result[lane]);
            }
            StackOp::Restore(_) => {}
        }
        frame.set_stack_tops(tops);
        Ok(())
    }
}
