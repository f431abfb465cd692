//! What threads allocate on their stacks while they run: behind the frame of the function that they are in.

use super::{Split, Warp};
use crate::code::Stack;
use crate::code::machine::Machine;
use crate::fault::FaultKind;
use crate::lanes;

impl Warp {
    /// Does it for the lanes of a split. `Err`: the fault is recorded.
    pub(super) fn stack(
        &mut self,
        m: &mut Machine<'_>,
        split: Split,
        what: Stack,
    ) -> Result<(), ()> {
        let (values, width) = match what {
            Stack::Alloca { to, size, .. } => (self.values(split.frame, size, to.1), to.1),
            Stack::Save((_, width)) => ([0; 32], width),
            Stack::Restore((slot, width)) => (self.values(split.frame, slot, width), width),
        };
        let Some(frame) = self.frames[split.frame as usize].as_mut() else {
            return Ok(());
        };
        let mut tops = frame.stack_tops();
        let (fixed, mut result) = (frame.local_fixed, tops);
        for lane in lanes::iter(split.mask) {
            match what {
                Stack::Alloca { align, .. } => {
                    let start = tops[lane].next_multiple_of(align);
                    let end = start.saturating_add(values[lane]);
                    let room = end <= m.stack_limit
                        && m.spaces.local.reserve(end).is_some()
                        && self
                            .local_held
                            .grow_to(32 * m.spaces.local.stride())
                            .is_some();
                    if !room {
                        m.fault = Some((FaultKind::StackOverflow { bytes: end }, lane));
                        return Err(());
                    }
                    // What was there before depends on what ran there before.
                    if let Some(part) = m.spaces.local.lane(lane, start, end - start) {
                        part.fill(0);
                    }
                    (tops[lane], result[lane]) = (end, start);
                }
                Stack::Save(_) => {}
                // Only what was saved in this function can come back.
                Stack::Restore(_) => tops[lane] = values[lane].clamp(fixed, tops[lane]),
            }
        }
        match what {
            Stack::Alloca { to: (slot, _), .. } | Stack::Save((slot, _)) => {
                frame.file.set(slot, width, split.mask, |lane| result[lane]);
            }
            Stack::Restore(_) => {}
        }
        frame.set_stack_tops(tops);
        Ok(())
    }
}
